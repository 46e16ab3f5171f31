//! What `dyno show` says of trials that several load generators made together.

use dyno_facts::{GeneratorMember, TrialSummary};
use dyno_runner::table::{grouped, layout, number};
use dyno_store::RunData;

const COLUMNS: [&str; 10] = [
    "trial",
    "load generator",
    "machine",
    "workers",
    "committed",
    "stmt/s",
    "p95 ms",
    "late ms",
    "clock +- ms",
    "CPU %",
];

/// A line for each load generator of each trial; nothing where one process made the load.
pub(super) fn tables(data: &RunData) -> String {
    let trials = || data.trials.iter().map(|trial| &trial.summary);
    let members = |trial| members_of(trial).map(move |member| (trial, member));
    let rows: Vec<Vec<String>> =
        trials().flat_map(members).map(|(trial, member)| row(trial, member)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!("\nLoad generators:\n{}", layout(&COLUMNS, &rows, 3));
    for (trial, member) in trials().flat_map(members) {
        if let Some(why) = &member.lost {
            text.push_str(&format!("trial {}: {} was lost: {why}\n", trial.trial, member.name));
        }
    }
    text
}

fn members_of(trial: &TrialSummary) -> impl Iterator<Item = &GeneratorMember> {
    trial.conditions.members.iter()
}

fn row(trial: &TrialSummary, member: &GeneratorMember) -> Vec<String> {
    let known = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    let n = |count: u64| grouped(&count.to_string());
    let qps = (trial.window_s > 0.0).then(|| member.statements as f64 / trial.window_s);
    vec![
        trial.trial.to_string(),
        member.name.clone(),
        member.host.clone(),
        n(u64::from(member.workers)),
        n(member.committed),
        known(qps),
        known(member.latency.map(|latency| latency.p95_us / 1e3)),
        known(member.late_ms),
        known(member.clock_bound_ms),
        known(member.host_load.map(|host| host.cpu_share * 100.0)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_facts::{HostSample, LatencySummary, RunHeader, TrialIdentity};
    use dyno_store::Run;

    /// A run with one trial that is empty.
    fn run() -> RunData {
        let folder = tempfile::tempdir().expect("a folder");
        let mut run = Run::create(folder.path(), RunHeader::new("s", Vec::new(), 1)).expect("run");
        let identity = TrialIdentity { kinds: vec!["read".to_owned()], ..TrialIdentity::default() };
        drop(run.begin_trial(identity).expect("begun"));
        dyno_store::read(run.path()).expect("read")
    }

    #[test]
    fn a_trial_without_a_fleet_has_no_table() {
        assert_eq!(tables(&run()), "");
    }

    #[test]
    fn each_load_generator_has_a_line_and_a_lost_one_its_reason() {
        let mut data = run();
        let trial = &mut data.trials[0].summary;
        trial.window_s = 10.0;
        let member = |name: &str| GeneratorMember {
            name: name.to_owned(),
            host: "load (10.0.0.1)".to_owned(),
            workers: 8,
            committed: 1_200,
            statements: 24_000,
            ..GeneratorMember::default()
        };
        trial.conditions.members = vec![
            GeneratorMember {
                latency: Some(LatencySummary { p95_us: 2_500.0, ..LatencySummary::default() }),
                late_ms: Some(0.25),
                clock_bound_ms: Some(0.125),
                host_load: Some(HostSample { cpu_share: 0.5, ..HostSample::default() }),
                ..member("a")
            },
            GeneratorMember { lost: Some("It answers no more.".to_owned()), ..member("b") },
        ];
        let text = tables(&data);
        let cells = |name: &str| -> Vec<String> {
            let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
            let lines: Vec<Vec<String>> = text.lines().map(words).collect();
            let line = lines.iter().find(|line| line.get(1).is_some_and(|word| word == name));
            line.expect("a line")[4..].to_vec()
        };
        let shared = ["8", "1,200", "2,400"];
        assert_eq!(cells("a")[..3], shared, "{text}");
        assert_eq!(cells("a")[3..], ["2.500", "0.250", "0.125", "50.0"], "{text}");
        assert_eq!(cells("b")[..3], shared, "{text}");
        assert_eq!(cells("b")[3..], ["-", "-", "-", "-"], "{text}");
        assert!(text.ends_with("trial 1: b was lost: It answers no more.\n"), "{text}");
    }
}
