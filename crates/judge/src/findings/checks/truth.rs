//! F: the truth of the workload.

use super::nodes::{conflicts, joined_shards};
use super::{Case, Rule, commas, joined, list, parts, workload};
use crate::evidence::{Experiment, Group, Level, Trial};
use crate::families::KnownFamily;
use crate::format;
use crate::messages::checks;
use crate::text::Message;
use dyno_facts::{CheckVerdict, KindSummary, TrialStatus, say};

/// Attempts that failed by transactions.
const ERRORS_CAVEAT: f64 = 0.001;
const ERRORS_UNUSABLE: f64 = 0.01;
/// By how much statements per transaction may differ from the workload's own.
const STATEMENTS: f64 = 0.01;
/// For each branch, by the manual of pgbench.
const PGBENCH_ACCOUNTS: u64 = 100_000;
/// Chance that a mix that is as planned is found to be off.
const MIX_CHANCE_Z: f64 = 3.09;

pub(super) const RULES: &[Rule] = &[
    Rule::trial(Group::F, Level::E, checks::trial_failed, |trial| match &trial.summary.status {
        TrialStatus::Failed(why) => Some(why.clone()),
        _ => None,
    }),
    Rule::trial(Group::F, Level::E, checks::data, |trial| data_check(trial, CheckVerdict::Failed)),
    Rule::trial(Group::F, Level::W, checks::data_not_checked, |trial| {
        // Of one that was cut off another check says so.
        (!trial.is_cut_off()).then(|| data_check(trial, CheckVerdict::NotMade))?
    }),
    Rule::trial_of_case(Group::F, Level::E, checks::statements_per_transaction, |case, trial| {
        statements_per_transaction(case.experiment(trial)?, trial)
    }),
    Rule::trial_of_case(Group::F, Level::W, checks::mix, |case, trial| {
        unlike_mix(trial, &weights(case.experiment(trial)?, trial)?)
    }),
    Rule::trial_of_case(Group::F, Level::W, checks::few_branches, few_branches),
    Rule::trial_of_case(Group::F, Level::E, checks::table_scans, |case, trial| {
        rows_scanned(trial, !is_scan_of_one_side(case, trial))
    }),
    Rule::trial_of_case(Group::F, Level::W, checks::one_sided_scans, |case, trial| {
        rows_scanned(trial, is_scan_of_one_side(case, trial))
    }),
    Rule::trial(Group::F, Level::E, checks::errors_1, |trial| errors_if(trial, true)),
    Rule::trial(Group::F, Level::W, checks::errors, |trial| errors_if(trial, false)),
    Rule::trial(Group::F, Level::W, checks::reconnects, |trial| {
        let reconnects = trial.summary.counts.reconnects;
        (reconnects > 0 && !has_fault(trial)).then(|| say!(n_reconnects, n = reconnects))
    }),
    Rule::trial(Group::F, Level::E, checks::lost_acknowledged, |trial| {
        let fault = trial.summary.fault.as_ref()?;
        let (lost, acknowledged) = (fault.lost.filter(|lost| *lost > 0)?, fault.acknowledged?);
        Some(say!(of_acknowledged_transactions_lost, lost = lost, acknowledged = acknowledged))
    }),
    Rule::trial(Group::F, Level::E, checks::half_done, |trial| {
        let losses = trial.summary.fault.as_ref()?.across_shards.as_ref()?;
        let half_done = losses.half_done + losses.unknown_half_done;
        (half_done + losses.in_doubt > 0).then(|| {
            say!(
                half_done_and_in_doubt,
                half_done = half_done,
                unknown = losses.unknown_half_done,
                in_doubt = losses.in_doubt,
                left = losses.branches_left.unwrap_or(0)
            )
        })
    }),
    Rule::trial(Group::F, Level::W, checks::not_recovered, |trial| {
        let fault = trial.summary.fault.as_ref()?;
        let is_found = fault.recovered_after_s.is_none() && has_fault(trial);
        is_found.then(|| match fault.first_success_after_s {
            None => say!(no_commit_followed),
            Some(_) => say!(not_back_at_90_percent_of_the),
        })
    }),
    Rule::trial_of_case(Group::F, Level::E, checks::no_fault, no_fault),
    Rule::experiment(Group::F, Level::I, checks::lighter_workload, lighter_workload),
    Rule::experiment(Group::F, Level::I, checks::skew, workload::skew),
    Rule::experiment(Group::F, Level::I, checks::hot_range, hot_range),
    Rule::experiment(Group::F, Level::I, checks::not_a_tpc_result, of_tpc),
];

/// True where something was really done to a node.
fn has_fault(trial: &Trial) -> bool {
    trial.summary.fault.as_ref().is_some_and(|fault| !fault.steps.is_empty())
}

/// Nothing was done in a trial that ended, of an experiment with a fault.
fn no_fault(case: &Case<'_>, trial: &Trial) -> Option<Message> {
    let mut planned = case.run(trial.run)?.header.experiments.iter();
    let wanted = planned.find(|facts| facts.name == trial.summary.experiment)?.fault.as_ref()?;
    (!trial.is_cut_off() && !has_fault(trial))
        .then(|| say!(nothing_was_done_to, node = &wanted.node))
}

/// The evidence of a trial's checks that ended like that.
fn data_check(trial: &Trial, verdict: CheckVerdict) -> Option<Message> {
    // What a fault has cost has rules of its own, as some checks of families have.
    let fault = trial.summary.fault.as_ref();
    let family = KnownFamily::of(&trial.summary);
    let is_told = |name: &str| {
        family.is_some_and(|family| family.judges(name))
            || fault.is_some_and(|fault| fault.explains(name))
    };
    let found = trial.summary.checks.iter();
    let found = found.filter(|check| check.verdict == verdict && !is_told(&check.name));
    let told =
        found.map(|check| say!(name_evidence, name = &check.name, evidence = &check.evidence));
    joined(told, " ", "")
}

/// Returns true if another target of the comparison does not scan tables: the scans are then a difference that it measures.
fn is_scan_of_one_side(case: &Case<'_>, trial: &Trial) -> bool {
    let trials = case.experiment(trial).map(|experiment| case.trials(experiment));
    trials.into_iter().flatten().any(|other| {
        other.target != trial.target && !other.is_cut_off() && other.summary.scans.is_none()
    })
}

fn rows_scanned(trial: &Trial, is_found: bool) -> Option<Message> {
    let rows = trial.summary.scans?.rows_each();
    is_found.then(|| say!(rows_read_per_statement, rows = format::whole(rows as f64)))
}

/// More workers than rows that each transaction of pgbench's own script updates. With a schedule most of them are idle.
fn few_branches(case: &Case<'_>, trial: &Trial) -> Option<Message> {
    const SCRIPT: &str = "tpcb-like";
    let (experiment, summary) = (case.experiment(trial)?, &trial.summary);
    let is_own = experiment.test.starts_with("pgbench ")
        && experiment.scripts.iter().all(|script| script.name != SCRIPT)
        && summary.kinds.iter().any(|kind| kind.name == SCRIPT && kind.counts.started > 0);
    let branches = summary.data.as_ref()?.rows / PGBENCH_ACCOUNTS;
    let is_found = is_own && summary.rate_per_s.is_none() && branches < u64::from(summary.workers);
    is_found.then(|| say!(workers_on_branches, workers = summary.workers.to_string(), n = branches))
}

/// Shares of the transactions: those that were given up, and all attempts that failed.
fn failed_shares(trial: &Trial) -> Option<[f64; 2]> {
    // The errors of a fault are what was asked for, and stand beside its times.
    if has_fault(trial) {
        return None;
    }
    // What a pass gives up is for rules of its family: one of a few statements is no share of many.
    let counts = (!trial.summary.is_pass()).then_some(trial.summary.counts)?;
    // What shards refuse by their isolation level is told as its price.
    let of_shards = if joined_shards(trial).is_some() { conflicts(trial) } else { 0 };
    let attempts = [counts.failed, counts.failed + counts.retries];
    Some(attempts.map(|n| n.saturating_sub(of_shards) as f64 / counts.started.max(1) as f64))
}

/// The share that makes a trial unusable or is a caveat, and the errors by class and code, the most frequent first. What
/// is tried again, such as a deadlock, costs time and is in no figure: it is a caveat at most.
fn errors_if(trial: &Trial, is_unusable: bool) -> Option<Message> {
    const MOST: usize = 3;
    let ([given_up, failed], counts) = (failed_shares(trial)?, trial.summary.counts);
    let share = match (given_up > ERRORS_UNUSABLE, is_unusable) {
        (true, true) => super::above(Some(given_up), ERRORS_UNUSABLE)?,
        (false, false) => super::above(Some(failed), ERRORS_CAVEAT)?,
        _ => return None,
    };
    let share = match counts.committed + counts.rolled_back {
        0 => say!(nothing_succeeded, n = counts.failed + counts.retries),
        _ => share,
    };
    let mut errors: Vec<_> = trial.summary.errors.iter().collect();
    errors.sort_by_key(|error| std::cmp::Reverse(error.count));
    let told = errors.iter().take(MOST).map(|error| {
        if error.is_own_conflict() {
            return say!(own_conflicts, n = error.count);
        }
        let codes = [error.errno.to_string(), error.sqlstate.clone()];
        let codes: Vec<String> =
            codes.into_iter().filter(|code| !code.is_empty() && code != "0").collect();
        Message::verbatim(format!(
            "{} {} × {}",
            error.class,
            codes.join("/"),
            format::whole(error.count as f64)
        ))
    });
    parts([share].into_iter().chain(told))
}

fn lighter_workload(experiment: &Experiment) -> Option<Message> {
    const NONE: &[&str] = &["0"];
    const LIGHTER: [(&str, &[&str]); 10] = [
        ("range_selects", &["off", "0", "false"]),
        ("skip_trx", &["on", "1", "true"]),
        ("point_selects", NONE),
        ("simple_ranges", NONE),
        ("sum_ranges", NONE),
        ("order_ranges", NONE),
        ("distinct_ranges", NONE),
        ("index_updates", NONE),
        ("non_index_updates", NONE),
        ("delete_inserts", NONE),
    ];
    let is_lighter = |name: &str, value: &str| {
        // Options of 0.5 have the family's name in front.
        let name = name.replace('-', "_");
        let name = name.trim_start_matches("oltp_");
        LIGHTER.iter().any(|(known, values)| *known == name && values.contains(&value))
    };
    let found = experiment.options.iter().filter(|(name, value)| is_lighter(name, value));
    commas(found.map(|(name, value)| format!("{name}={value}")))
}

fn statements_per_transaction(experiment: &Experiment, trial: &Trial) -> Option<Message> {
    let differs =
        |(_, found, wanted): &(String, f64, f64)| (found / wanted - 1.0).abs() > STATEMENTS;
    let told = |(kind, found, wanted): (String, f64, f64)| {
        let (found, wanted) = (format!("{found:.2}"), format::plain(wanted));
        say!(kind_found_instead_of_wanted, kind = kind, found = found, wanted = wanted)
    };
    let expected = workload::expected(experiment, &trial.summary).into_iter();
    parts(expected.filter(differs).map(told))
}

/// The kinds that are drawn, each with its planned weight; `None` where that is not known.
fn weights<'a>(experiment: &Experiment, trial: &'a Trial) -> Option<Vec<(&'a KindSummary, f64)>> {
    let summary = &trial.summary;
    let of_family = |kind: &KindSummary| KnownFamily::of(summary)?.weight(summary, &kind.name);
    let of_scripts = |kind: &KindSummary| {
        let script = experiment.scripts.iter().find(|script| script.name == kind.name)?;
        Some(f64::from(script.weight))
    };
    let weighed =
        |kind: &'a KindSummary| Some((kind, of_family(kind).or_else(|| of_scripts(kind))?));
    let weights: Option<Vec<(&KindSummary, f64)>> = summary.kinds.iter().map(weighed).collect();
    let weights = weights?;
    let drawn: Vec<_> = weights.into_iter().filter(|(_, weight)| *weight > 0.0).collect();
    (drawn.len() > 1).then_some(drawn)
}

/// Shares beside the planned ones, where chance does not explain the difference. What is in flight at
/// the end may be of any kind.
fn unlike_mix(trial: &Trial, weights: &[(&KindSummary, f64)]) -> Option<Message> {
    let ended = |kind: &KindSummary| kind.counts.ended() as f64;
    let all: f64 = weights.iter().map(|(kind, _)| ended(kind)).sum();
    let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let in_flight = trial.summary.in_flight as f64;
    let square = |(kind, weight): &(&KindSummary, f64)| {
        let expected = all * weight / sum;
        ((ended(kind) - expected).abs() - in_flight).max(0.0).powi(2) / expected.max(1.0)
    };
    let chi_square: f64 = weights.iter().map(square).sum();
    if chi_square <= chi_square_limit(weights.len() - 1) {
        return None;
    }
    let told = |(kind, weight): &(&KindSummary, f64)| {
        say!(
            kind_found_instead_of_wanted,
            kind = &kind.name,
            found = format!("{:.2} %", 100.0 * ended(kind) / all),
            wanted = format!("{:.2} %", 100.0 * weight / sum)
        )
    };
    parts(weights.iter().map(told))
}

/// What chi-square exceeds once in a thousand times (Wilson and Hilferty's approximation).
fn chi_square_limit(freedom: usize) -> f64 {
    let freedom = freedom as f64;
    let part = 2.0 / (9.0 * freedom);
    freedom * (1.0 - part + MIX_CHANCE_Z * part.sqrt()).powi(3)
}

fn hot_range(experiment: &Experiment) -> Option<Message> {
    let data = |point: &crate::evidence::Point| point.data.as_ref()?.hot_share;
    let shares = experiment.points.iter().filter_map(data).filter(|share| *share < 1.0);
    let shares: Vec<String> = shares.map(format::percent).collect();
    let shares = list(format::unique(shares).into_iter().map(Message::verbatim))?;
    Some(say!(percent_of_the_rows, share = shares))
}

fn of_tpc(experiment: &Experiment) -> Option<Message> {
    experiment.derived_from().map(|benchmark| say!(derived_from_benchmark, benchmark = benchmark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_table() {
        // The table of chi-square at 0.001.
        for (freedom, limit) in [(1, 10.83), (2, 13.82), (4, 18.47), (10, 29.59)] {
            let found = chi_square_limit(freedom);
            assert!((found / limit - 1.0).abs() < 0.04, "{freedom}: {found} {limit}");
        }
    }
}
