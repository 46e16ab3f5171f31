//! Words of other tools for what suites say by keys.

/// The remedy for what is no option of a workload, because an experiment or a URL states it; by its name
/// with underscores.
pub(crate) fn instead_of_option(name: &str) -> Option<&'static str> {
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
        "mysql_ignore_errors" => return None,
        _ if name.starts_with("mysql_") || name.starts_with("pgsql_") => {
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
