//! The names that a suite file may use: workloads, their tests, and where else to write what does
//! not belong into `options`. A new workload adds one entry to [`WORKLOADS`].

/// A workload as a suite names it.
pub(crate) struct WorkloadNames {
    pub(crate) name: &'static str,
    pub(crate) tests: &'static [TestNames],
    /// What its points differ in.
    pub(crate) levels: Levels,
    /// Another word for the key `workers`.
    pub(crate) workers_alias: Option<&'static str>,
    /// Options that are tables: names of one's own with values.
    pub(crate) tables: &'static [&'static str],
    /// Options that are lists of texts.
    pub(crate) lists: &'static [&'static str],
}

/// What the points of an experiment differ in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Levels {
    /// Numbers of workers, which are driven for some time.
    Workers,
    /// Parallel degrees, at which queries are passed through once.
    Degrees,
}

/// A test of a workload, and the options that say how much data it has.
pub(crate) struct TestNames {
    pub(crate) name: &'static str,
    /// `None`: the size is not known before the run.
    pub(crate) size: Option<Size>,
}

/// The options, with underscores, that say how much data there is.
pub(crate) enum Size {
    /// Equal tables.
    Tables {
        /// Rows of each table.
        rows: Scale,
        /// Number of tables.
        tables: Scale,
    },
    /// One number for all tables.
    Factor {
        /// That number.
        factor: Scale,
        /// Rows of the largest table for each unit of it.
        rows_per_unit: u64,
        /// Options that count rows of that table: they shrink with it, so that shares stay.
        rows: &'static [&'static str],
        /// Most workers for each unit of it; `None` is no bound.
        workers_per_unit: Option<u32>,
    },
    /// One number for all tables, which may be a fraction.
    Fraction {
        /// The option; 1 when it is not given.
        option: &'static str,
        /// Rows of the largest table for each unit of it.
        rows_per_unit: u64,
    },
}

/// An option that scales data.
pub(crate) struct Scale {
    pub(crate) option: &'static str,
    /// The value when the option is not given.
    pub(crate) default: u64,
}

/// A test of sysbench 1.0.
const fn v1(name: &'static str) -> TestNames {
    let rows = Scale { option: "table_size", default: 10_000 };
    let tables = Scale { option: "tables", default: 1 };
    TestNames { name, size: Some(Size::Tables { rows, tables }) }
}

/// A test of sysbench 0.5.
const fn v05(name: &'static str) -> TestNames {
    let rows = Scale { option: "oltp_table_size", default: 10_000 };
    let tables = Scale { option: "oltp_tables_count", default: 1 };
    TestNames { name, size: Some(Size::Tables { rows, tables }) }
}

/// A test of pgbench. The variable `range` is the number of accounts that keys are drawn from.
const fn pgbench(name: &'static str) -> TestNames {
    let factor = Scale { option: "scale", default: 1 };
    let size = Size::Factor {
        factor,
        rows_per_unit: 100_000,
        rows: &["define.range"],
        workers_per_unit: None,
    };
    TestNames { name, size: Some(size) }
}

/// All workloads.
pub(crate) const WORKLOADS: &[WorkloadNames] = &[SYSBENCH, PGBENCH, TPCC, TPCH];

/// A profile of TPC-C. The order lines of a warehouse are its largest table; it has ten terminals at
/// most.
const fn tpcc(name: &'static str) -> TestNames {
    let factor = Scale { option: "warehouses", default: 1 };
    let size =
        Size::Factor { factor, rows_per_unit: 300_000, rows: &[], workers_per_unit: Some(10) };
    TestNames { name, size: Some(size) }
}

const TPCC: WorkloadNames = WorkloadNames {
    name: "tpcc",
    tests: &[tpcc("bmsql-5.0"), tpcc("spec")],
    levels: Levels::Workers,
    workers_alias: Some("terminals"),
    tables: &["weights", "shard"],
    lists: &[],
};

/// A test of TPC-H. The lines of orders are its largest table.
const fn tpch(name: &'static str) -> TestNames {
    TestNames { name, size: Some(Size::Fraction { option: "scale", rows_per_unit: 6_000_000 }) }
}

const TPCH: WorkloadNames = WorkloadNames {
    name: "tpch",
    tests: &[tpch("queries"), tpch("power"), tpch("throughput"), tpch("refresh")],
    levels: Levels::Degrees,
    workers_alias: None,
    tables: &[],
    lists: &["degree_set", "degree_off"],
};

const PGBENCH: WorkloadNames = WorkloadNames {
    name: "pgbench",
    tests: &[
        pgbench("tpcb-like"),
        pgbench("simple-update"),
        pgbench("select-only"),
        pgbench("script"),
    ],
    levels: Levels::Workers,
    workers_alias: None,
    tables: &["define"],
    lists: &["scripts"],
};

/// Defaults: sysbench 1.0.20 and 0.5. Where both have a test of a name, it is the one of 1.0.
const SYSBENCH: WorkloadNames = WorkloadNames {
    name: "sysbench",
    tests: &[
        v1("oltp_point_select"),
        v1("oltp_read_only"),
        v1("oltp_write_only"),
        v1("oltp_read_write"),
        v1("oltp_update_index"),
        v1("oltp_update_non_index"),
        v1("oltp_insert"),
        v1("oltp_delete"),
        v1("select_random_points"),
        v1("select_random_ranges"),
        TestNames { name: "bulk_insert", size: None },
        v05("oltp"),
        v05("oltp_simple"),
        v05("select"),
        v05("insert"),
        v05("delete"),
        v05("update_index"),
        v05("update_non_index"),
    ],
    levels: Levels::Workers,
    workers_alias: None,
    tables: &[],
    lists: &[],
};

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
        "workers" | "threads" | "num_threads" | "clients" | "client" | "terminals" => {
            "Write `workers = [...]` in the experiment."
        }
        "time" | "max_time" => "Write `duration_s = ...` in the experiment.",
        "events" | "max_requests" => "Write `events = ...` in the experiment.",
        "rate" | "tx_rate" => "Write `rate = [...]` in the experiment.",
        "report_interval" => "Write `interval_s = ...` in the experiment.",
        "warmup_time" => "Write `warmup_s = ...` in the experiment.",
        "percentile" => "Write `percentiles = [...]` in the experiment.",
        "rand_seed" => "Write `seed = ...` in `[suite]`.",
        "degrees" | "degree" => "Write `degrees = [...]` in the experiment.",
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
    ("connections", "workers"),
    ("threads", "workers"),
    ("clients", "workers"),
    ("terminals", "workers"),
    ("terminal", "workers"),
    ("concurrency", "workers"),
    ("max_requests", "events"),
    ("script", "test"),
    ("runs", "repeats"),
    ("trials", "repeats"),
    ("report_interval", "interval_s"),
    ("degree", "degrees"),
    ("parallel", "degrees"),
    ("dop", "degrees"),
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
