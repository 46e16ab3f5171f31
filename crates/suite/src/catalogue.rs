//! The names that a suite file may use: workloads, their tests, and where else to write what does
//! not belong into `options`. A new workload adds one entry to [`WORKLOADS`].

/// A workload as a suite names it.
pub(crate) struct WorkloadNames {
    pub(crate) name: &'static str,
    pub(crate) tests: &'static [TestNames],
}

/// A test of a workload, and the options that say how much data it has.
pub(crate) struct TestNames {
    pub(crate) name: &'static str,
    /// Rows per table; spellings of the option, the proper one first. Empty: the size is not
    /// known before the run.
    pub(crate) rows: Scale,
    /// Number of tables.
    pub(crate) tables: Scale,
}

/// An option that scales data.
pub(crate) struct Scale {
    pub(crate) options: &'static [&'static str],
    /// The value when the option is not given.
    pub(crate) default: u64,
}

const fn oltp(name: &'static str) -> TestNames {
    TestNames {
        name,
        rows: Scale { options: &["table_size"], default: 10_000 },
        tables: Scale { options: &["tables"], default: 1 },
    }
}

/// All workloads. Defaults: sysbench 1.0.20 and, for `oltp`, sysbench 0.5.
pub(crate) const WORKLOADS: &[WorkloadNames] = &[WorkloadNames {
    name: "sysbench",
    tests: &[
        oltp("oltp_point_select"),
        oltp("oltp_read_only"),
        oltp("oltp_write_only"),
        oltp("oltp_read_write"),
        oltp("oltp_update_index"),
        oltp("oltp_update_non_index"),
        oltp("oltp_insert"),
        oltp("oltp_delete"),
        oltp("select_random_points"),
        oltp("select_random_ranges"),
        TestNames {
            name: "bulk_insert",
            rows: Scale { options: &[], default: 0 },
            tables: Scale { options: &[], default: 1 },
        },
        TestNames {
            name: "oltp",
            // `--oltp-tablesize` and `--oltp-table-count` are spellings seen in published papers.
            rows: Scale { options: &["oltp_table_size", "oltp_tablesize"], default: 10_000 },
            tables: Scale { options: &["oltp_tables_count", "oltp_table_count"], default: 1 },
        },
    ],
}];

pub(crate) fn workload(name: &str) -> Option<&'static WorkloadNames> {
    WORKLOADS.iter().find(|workload| workload.name == name)
}

pub(crate) fn test(workload_name: &str, name: &str) -> Option<&'static TestNames> {
    workload(workload_name)?.tests.iter().find(|test| test.name == name)
}

/// What an experiment states by a key of its own must not come a second time as an option:
/// the remedy for such an option's name (with underscores).
pub(crate) fn instead_of_option(name: &str) -> Option<&'static str> {
    const KEPT: [&str; 5] = [
        "mysql_storage_engine",
        "mysql_table_engine",
        "mysql_table_options",
        "mysql_engine_trx",
        "mysql_ignore_errors",
    ];
    Some(match name {
        "threads" | "num_threads" => "Write `threads = [...]` in the experiment.",
        "time" | "max_time" => "Write `duration_s = ...` in the experiment.",
        "events" | "max_requests" => "Write `events = ...` in the experiment.",
        "rate" | "tx_rate" => "Write `rate = [...]` in the experiment.",
        "report_interval" => "Write `interval_s = ...` in the experiment.",
        "warmup_time" => "Write `warmup_s = ...` in the experiment.",
        "percentile" => "Write `percentiles = [...]` in the experiment.",
        "rand_seed" => "Write `seed = ...` in `[suite]`.",
        "test" => "Write `test = ...` in the experiment.",
        "db_driver" => "The scheme of the target's `url` chooses the driver.",
        "report_checkpoints" | "histogram" | "forced_shutdown" | "config_file" | "verbosity" => {
            "A run folder holds every interval and histogram; leave the option out."
        }
        _ if KEPT.contains(&name) => return None,
        _ if name.starts_with("mysql_")
            || name.starts_with("pgsql_") && name != "pgsql_variant" =>
        {
            "How a server is reached belongs into the `url` of its `[target.NAME]`."
        }
        _ => return None,
    })
}

/// Words of other tools for keys of an experiment.
pub(crate) const EXPERIMENT_SYNONYMS: &[(&str, &str)] = &[
    ("time", "duration_s"),
    ("seconds", "duration_s"),
    ("clients", "threads"),
    ("connections", "threads"),
    ("workers", "threads"),
    ("concurrency", "threads"),
    ("max_requests", "events"),
    ("script", "test"),
    ("runs", "repeats"),
    ("trials", "repeats"),
    ("report_interval", "interval_s"),
];

/// Words of other tools for keys of a target.
pub(crate) const TARGET_SYNONYMS: &[(&str, &str)] = &[
    ("host", "url"),
    ("cpu", "vcpu"),
    ("cores", "vcpu"),
    ("memory", "memory_gib"),
    ("ram", "memory_gib"),
    ("version", "product"),
    ("node_class", "class"),
];
