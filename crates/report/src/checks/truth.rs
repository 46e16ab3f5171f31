//! F: the truth of the workload.

use super::{Find, Rule, parts};
use crate::model::{Experiment, Group, Level, Trial};
use crate::say;
use crate::text::{Text, stored};
use crate::{format, tpch};
use dyno_measure::{TrialStatus, Verdict};

/// Attempts that failed by transactions.
const ERRORS_CAVEAT: f64 = 0.001;
const ERRORS_UNUSABLE: f64 = 0.01;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "trial-failed",
        group: Group::F,
        level: Level::E,
        rule: "Every trial ends as planned.",
        meaning: "A failed trial is not usable for a claim; its figures are shown only where no other trial of the point exists.",
        advice: "Remove the cause, then run the same command again: it repeats failed trials.",
        find: Find::Trial(|trial| match &trial.summary.status {
            TrialStatus::Failed(why) => Some(stored(why)),
            _ => None,
        }),
    },
    Rule {
        id: "data",
        group: Group::F,
        level: Level::E,
        rule: "Wherever a workload can check its data after a trial, they are as they must be.",
        meaning: "Work was lost, invented or done twice, or somebody else changed the data: the trial's figures count what did not happen.",
        advice: "See that nobody else uses the data; then look for lost commits.",
        find: Find::Trial(|trial| data_check(trial, Verdict::Failed)),
    },
    Rule {
        id: "data-not-checked",
        group: Group::F,
        level: Level::W,
        rule: "Every check of the data can be made.",
        meaning: "Nobody knows whether the work that was counted was done.",
        advice: "Remove what kept the check from being made, and repeat the trial.",
        find: Find::Trial(|trial| data_check(trial, Verdict::NotMade)),
    },
    Rule {
        id: "errors-1",
        group: Group::F,
        level: Level::E,
        rule: "Attempts that failed (transactions given up, and retries) are at most 1 % of the transactions.",
        meaning: "So many errors change what is measured.",
        advice: "Remove their cause; where they are conflicts, use more data or fewer workers.",
        find: Find::Trial(|trial| {
            let share = error_share(trial).filter(|share| *share > ERRORS_UNUSABLE)?;
            Some(errors(trial, share))
        }),
    },
    Rule {
        id: "errors",
        group: Group::F,
        level: Level::W,
        rule: "Attempts that failed (transactions given up, and retries) are at most 0.1 % of the transactions.",
        meaning: "Failed attempts cost the server work that is in no throughput figure.",
        advice: "Name the errors beside the figure, or remove their cause.",
        find: Find::Trial(|trial| {
            let share = error_share(trial)?;
            let is_found = share > ERRORS_CAVEAT && share <= ERRORS_UNUSABLE;
            is_found.then(|| errors(trial, share))
        }),
    },
    Rule {
        id: "reconnects",
        group: Group::F,
        level: Level::W,
        rule: "No session is lost.",
        meaning: "Sessions were connected again during the window; the time that took is in the window.",
        advice: "Look for a restart, a failover or a limit of connections in the server's log.",
        find: Find::Trial(|trial| {
            let reconnects = trial.summary.counts.reconnects;
            (reconnects > 0).then(|| Text::count(reconnects, "{n} reconnect", "{n} reconnects"))
        }),
    },
    Rule {
        id: "lighter-workload",
        group: Group::F,
        level: Level::I,
        rule: "The workload keeps its full transaction: no option takes statements or the transaction away.",
        meaning: "Figures are not comparable with those of the full transaction.",
        advice: "Name these options beside every figure, as here.",
        find: Find::Experiment(lighter_workload),
    },
];

/// The evidence of a trial's checks that ended like that.
fn data_check(trial: &Trial, verdict: Verdict) -> Option<Text> {
    // Answers of TPC-H have rules of their own.
    let is_told = |name: &str| trial.summary.tpch.is_some() && name == tpch::ANSWERS;
    let found = trial.summary.checks.iter();
    let found = found.filter(|check| check.verdict == verdict && !is_told(&check.name));
    let told = found.map(|check| {
        say!("{name}: {evidence}", name = &check.name, evidence = stored(&check.evidence))
    });
    let told: Vec<Text> = told.collect();
    (!told.is_empty()).then(|| Text::sentences(&told))
}

fn error_share(trial: &Trial) -> Option<f64> {
    // What TPC-H gives up has rules of its own: one of 22 queries is no share of many.
    let counts = trial.summary.tpch.is_none().then_some(trial.summary.counts)?;
    (counts.started > 0).then(|| (counts.failed + counts.retries) as f64 / counts.started as f64)
}

/// The share, and the errors by class and code, the most frequent first.
fn errors(trial: &Trial, share: f64) -> Text {
    const MOST: usize = 3;
    let mut errors: Vec<_> = trial.summary.errors.iter().collect();
    errors.sort_by_key(|error| std::cmp::Reverse(error.count));
    let told = errors.iter().take(MOST).map(|error| {
        let codes = [error.errno.to_string(), error.sqlstate.clone()];
        let codes: Vec<String> =
            codes.into_iter().filter(|code| !code.is_empty() && code != "0").collect();
        Text::same(format!(
            "{} {} × {}",
            error.class,
            codes.join("/"),
            format::whole(error.count as f64)
        ))
    });
    let all: Vec<Text> = [super::percent(share)].into_iter().chain(told).collect();
    parts(all).unwrap_or_default()
}

fn lighter_workload(experiment: &Experiment) -> Option<Text> {
    const LIGHTER: [(&str, &[&str]); 7] = [
        ("range_selects", &["off", "0", "false"]),
        ("skip_trx", &["on", "1", "true"]),
        ("point_selects", &["0"]),
        ("oltp_simple_ranges", &["0"]),
        ("oltp_point_selects", &["0"]),
        ("oltp_skip_trx", &["on", "1", "true"]),
        ("delete_inserts", &["0"]),
    ];
    let is_lighter = |name: &str, value: &str| {
        let name = name.replace('-', "_");
        LIGHTER.iter().any(|(known, values)| *known == name && values.contains(&value))
    };
    let found = experiment.options.iter().filter(|(name, value)| is_lighter(name, value));
    let found: Vec<Text> =
        found.map(|(name, value)| Text::same(format!("{name}={value}"))).collect();
    (!found.is_empty()).then(|| Text::joined(&found, ", ", "、"))
}
