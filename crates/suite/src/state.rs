//! What the data of an experiment are like before each of its trials.

use dyno_facts::{ExperimentFacts, Restore};

/// Tests of sysbench that only read.
const READING: [&str; 5] = [
    "oltp_point_select",
    "oltp_read_only",
    "select_random_points",
    "select_random_ranges",
    "select",
];

/// `untouched`, `reloaded`, `grows`, or the command that restores them.
pub(crate) fn of(experiment: &ExperimentFacts) -> String {
    match &experiment.restore {
        Restore::Reload => "reloaded".to_owned(),
        Restore::Command(command) => command.clone(),
        Restore::None if writes(experiment) => "grows".to_owned(),
        Restore::None => "untouched".to_owned(),
    }
}

/// Whether trials may change the data.
fn writes(experiment: &ExperimentFacts) -> bool {
    let test = experiment.test.as_str();
    let is_on = |name: &str| {
        experiment
            .options
            .get(name)
            .is_some_and(|value| matches!(value.as_str(), "on" | "1" | "true"))
    };
    match experiment.workload.as_str() {
        "sysbench" if test == "oltp" => !is_on("oltp_read_only"),
        "sysbench" => !READING.contains(&test),
        "pgbench" if test == "script" => experiment.scripts.iter().any(|script| {
            let text = script.text.to_ascii_lowercase();
            ["insert", "update", "delete", "merge", "truncate"]
                .iter()
                .any(|verb| text.contains(verb))
        }),
        "pgbench" => test != "select-only",
        "tpch" => test != "queries",
        _ => true,
    }
}
