//! F: the truth of the workload.

use super::*;

/// Attempts that failed by transactions.
const ERRORS_CAVEAT: f64 = 0.001;
const ERRORS_UNUSABLE: f64 = 0.01;
/// Amount by which statements per transaction may differ from the workload's own.
const STATEMENTS: f64 = 0.01;
/// Factor by which rows per transaction of two sides may differ, and the transactions, rows and pairs from which on.
const ROWS_FACTOR: f64 = 1.25;
const ROWS_LEAST: u64 = 100;
const ROWS_PAIRS: usize = 3;
/// Statements that met no row, by all of their kind: just under the half that a table without every second row leaves.
const ROWLESS: f64 = 0.4;
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
        // Another check reports one that was cut off.
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
    Rule::case(Group::F, Level::E, checks::unlike_rows, |case| {
        repetition::each_comparison(case, |comparison| {
            Some((unlike_rows(case, comparison)?, VetoReach::AnyFar))
        })
    }),
    Rule::trial(Group::F, Level::W, checks::no_rows, no_rows),
    Rule::trial(Group::F, Level::E, checks::errors_1, |trial| errors_if(trial, true)),
    Rule::trial(Group::F, Level::W, checks::errors, |trial| errors_if(trial, false)),
    Rule::trial(Group::F, Level::W, checks::reconnects, |trial| {
        let reconnects = trial.summary.counts.reconnects;
        (reconnects > 0 && !has_fault(trial)).then(|| say!(n_reconnects, n = reconnects))
    }),
    Rule::trial(Group::F, Level::E, checks::lost_acknowledged, |trial| {
        let fault = trial.summary.fault.as_ref()?;
        let (lost, acknowledged) = (fault.lost.filter(|lost| *lost > 0)?, fault.acknowledged?);
        Some(say!(of_acknowledged_transactions_lost, lost, acknowledged))
    }),
    Rule::trial(Group::F, Level::E, checks::half_done, |trial| {
        let losses = trial.summary.fault.as_ref()?.across_shards.as_ref()?;
        let half_done = losses.half_done + losses.unknown_half_done;
        (half_done + losses.in_doubt > 0).then(|| {
            say!(
                half_done_and_in_doubt,
                half_done,
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
            Some(_) => say!(throughput_not_recovered),
        })
    }),
    Rule::trial_of_case(Group::F, Level::E, checks::no_fault, no_fault),
    Rule::experiment(Group::F, Level::I, checks::lighter_workload, lighter_workload),
    Rule::experiment(Group::F, Level::I, checks::hot_range, hot_range),
    Rule::experiment(Group::F, Level::I, checks::not_a_tpc_result, derived_benchmark),
];

/// Returns true if something was really done to a node.
fn has_fault(trial: &Trial) -> bool {
    trial.summary.fault.as_ref().is_some_and(|fault| !fault.steps.is_empty())
}

/// Nothing was done in a trial that ended, of an experiment with a fault.
fn no_fault(case: &Case<'_>, trial: &Trial) -> Option<Message> {
    let mut plans = case.run(trial.run)?.header.experiments.iter();
    let fault = plans.find(|facts| facts.name == trial.summary.experiment)?.fault.as_ref()?;
    (!trial.is_cut_off() && !has_fault(trial)).then(|| say!(no_fault_happened, node = &fault.node))
}

/// The evidence of a trial's checks that ended like that.
fn data_check(trial: &Trial, verdict: CheckVerdict) -> Option<Message> {
    // What a fault has cost has separate rules, as some checks of families have.
    let fault = trial.summary.fault.as_ref();
    let family = KnownFamily::from_summary(&trial.summary);
    let checks = trial.summary.checks.iter().filter(|check| {
        let has_own_rule = family.is_some_and(|family| family.judges(&check.name))
            || fault.is_some_and(|fault| fault.explains(&check.name));
        check.verdict == verdict && !has_own_rule
    });
    let texts =
        checks.map(|check| say!(name_evidence, name = &check.name, evidence = &check.evidence));
    join_texts(texts, " ", "")
}

/// Returns true if another target of the comparison does not scan tables: the scans are then a difference that it
/// measures.
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

type Count = fn(&StatementCounts) -> u64;

/// The least and the most that a kind counted in a transaction, by side; `None` if that is little.
fn by_transaction(pairs: &[[&Trial; 2]], name: &str, count: Count) -> Option<[[f64; 2]; 2]> {
    let (mut sides, mut total) = ([[f64::INFINITY, 0.0]; 2], 0);
    for (side, trial) in pairs.iter().flat_map(|pair| pair.iter().enumerate()) {
        let kind = trial.summary.kinds.iter().find(|kind| kind.name == name)?;
        let ended = kind.counts.completed();
        let mean = count(&kind.statements) as f64 / ended.max(ROWS_LEAST) as f64;
        sides[side] = [sides[side][0].min(mean), sides[side][1].max(mean)];
        total += count(&kind.statements);
        (ended >= ROWS_LEAST).then_some(())?;
    }
    (total >= ROWS_LEAST * pairs.len() as u64).then_some(sides)
}

/// Rows that a kind of transactions returned or changed on one side, in every trial more than on the other in any.
fn unlike_rows(case: &Case<'_>, comparison: &PairedComparison) -> Option<Message> {
    let experiment =
        case.measured_experiments().find(|experiment| experiment.name == comparison.experiment)?;
    let pairs: Vec<[&Trial; 2]> = case.evidence.pairs(comparison).map(|(a, b)| [a, b]).collect();
    if experiment.is_pass() || pairs.len() < ROWS_PAIRS {
        return None;
    }
    let [product_a, product_b] = [&comparison.baseline, &comparison.candidate].map(|label| {
        let mut targets = case.evidence.targets.iter();
        targets.find(|target| target.label == *label)?.product.split(' ').next()
    });
    let is_one_product = product_a == product_b;
    let is_unknown = has_unknown_statements(experiment);
    parts(pairs[0][0].summary.kinds.iter().filter_map(|kind| {
        let name = kind.name.as_str();
        // A family may have other statements for another product or version; those of a user follow what was read.
        let statements = by_transaction(&pairs, name, StatementCounts::total)?;
        if differ(&statements, 1.0 + STATEMENTS) && !(is_unknown && is_one_product) {
            return None;
        }
        let returned = by_transaction(&pairs, name, |counts| counts.rows_read)
            .filter(|sides| differ(sides, ROWS_FACTOR));
        // Products count the changes of a row that has the new value already in their own ways.
        let changed = by_transaction(&pairs, name, |counts| counts.rows_written)
            .filter(|sides| differ(sides, ROWS_FACTOR) && (is_one_product || !is_unknown));
        let (a, b) = (&comparison.baseline, &comparison.candidate);
        let returned = returned.map(|[rows_a, rows_b]| {
            let [rows_a, rows_b] = [rows_a, rows_b].map(format_mean);
            say!(rows_returned_on_sides, kind = name, a, rows_a, b, rows_b)
        });
        let changed = changed.map(|[rows_a, rows_b]| {
            let [rows_a, rows_b] = [rows_a, rows_b].map(format_mean);
            say!(rows_changed_on_sides, kind = name, a, rows_a, b, rows_b)
        });
        parts(returned.into_iter().chain(changed))
    }))
}

/// Returns true if each value of one side is larger than all of the other's by this factor.
fn differ([a, b]: &[[f64; 2]; 2], times: f64) -> bool {
    a[0] > b[1] * times || b[0] > a[1] * times
}

fn format_mean([low, high]: [f64; 2]) -> String {
    format!("{:.2}", (low + high) / 2.0)
}

/// Kinds of transactions whose queries or changes often met no row.
fn no_rows(trial: &Trial) -> Option<Message> {
    let is_pass = trial.summary.is_pass();
    parts(trial.summary.kinds.iter().filter(|_| !is_pass).filter_map(|kind| {
        let counts = &kind.statements;
        let reads = rowless_share(counts.empty_reads, counts.reads)
            .map(|share| say!(queries_without_rows, kind = &kind.name, share));
        let changes = rowless_share(counts.misses, counts.writes + counts.misses)
            .map(|share| say!(changes_without_rows, kind = &kind.name, share));
        parts(reads.into_iter().chain(changes))
    }))
}

/// The share of statements that met no row, if it is large and one of enough statements.
fn rowless_share(count: u64, total: u64) -> Option<Message> {
    (total >= ROWS_LEAST && count as f64 >= ROWLESS * total as f64)
        .then(|| percent(count as f64 / total as f64))
}

/// More workers than rows that each transaction of pgbench's own script updates. With a schedule most of them are idle.
fn few_branches(case: &Case<'_>, trial: &Trial) -> Option<Message> {
    const SCRIPT: &str = "tpcb-like";
    let (experiment, summary) = (case.experiment(trial)?, &trial.summary);
    let is_standard_script = experiment.test.starts_with("pgbench ")
        && experiment.scripts.iter().all(|script| script.name != SCRIPT)
        && summary.kinds.iter().any(|kind| kind.name == SCRIPT && kind.counts.started > 0);
    let branches = summary.data.as_ref()?.rows / PGBENCH_ACCOUNTS;
    let is_found =
        is_standard_script && summary.rate_per_s.is_none() && branches < u64::from(summary.workers);
    is_found.then(|| say!(workers_on_branches, workers = summary.workers.to_string(), n = branches))
}

/// Shares of the transactions: those that were given up, and all attempts that failed.
pub(super) fn failed_shares(trial: &Trial) -> Option<[f64; 2]> {
    // The errors of a fault are what was requested, and are shown alongside its times.
    if has_fault(trial) {
        return None;
    }
    // What a pass gives up is for rules of its family: one of a few statements is not a share of many.
    let counts = (!trial.summary.is_pass()).then_some(trial.summary.counts)?;
    // What shards refuse by their isolation level is reported as its price.
    let shard_conflicts = if joined_shards(trial).is_some() { conflicts(trial) } else { 0 };
    let attempts = [counts.failed, counts.failed + counts.retries];
    Some(attempts.map(|n| n.saturating_sub(shard_conflicts) as f64 / counts.started.max(1) as f64))
}

/// The share that makes a trial unusable or is a caveat, and the errors by class and code, the most frequent first.
/// A retried error, such as a deadlock, costs time and is in no figure: it is a caveat at most.
fn errors_if(trial: &Trial, is_unusable: bool) -> Option<Message> {
    const MAX_ERRORS: usize = 3;
    let ([given_up, failed], counts) = (failed_shares(trial)?, trial.summary.counts);
    let share = match (given_up > ERRORS_UNUSABLE, is_unusable) {
        (true, true) => above(Some(given_up), ERRORS_UNUSABLE)?,
        (false, false) => above(Some(failed), ERRORS_CAVEAT)?,
        _ => return None,
    };
    let share = match counts.completed() {
        0 => say!(nothing_succeeded, n = counts.failed + counts.retries),
        _ => share,
    };
    let mut errors: Vec<_> = trial.summary.errors.iter().collect();
    errors.sort_by_key(|error| std::cmp::Reverse(error.count));
    let texts = errors.iter().take(MAX_ERRORS).map(|error| {
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
    parts([share].into_iter().chain(texts))
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
    let options = experiment.options.iter().filter(|(name, value)| {
        // Options of 0.5 have the family's name in front.
        let name = name.replace('-', "_");
        let name = name.trim_start_matches("oltp_");
        LIGHTER.iter().any(|(known, values)| *known == name && values.contains(&value.as_str()))
    });
    commas(options.map(|(name, value)| format!("{name}={value}")))
}

fn statements_per_transaction(experiment: &Experiment, trial: &Trial) -> Option<Message> {
    let mut kinds = statement_counts(experiment, &trial.summary);
    kinds.retain(|(_, actual, expected)| (actual / expected - 1.0).abs() > STATEMENTS);
    parts(kinds.into_iter().map(|(kind, actual, expected)| {
        let (found, wanted) = (format!("{actual:.2}"), format::plain(expected));
        say!(kind_found_instead_of_wanted, kind, found, wanted)
    }))
}

/// The kinds that are drawn, each with its planned weight; `None` if that is not known.
fn weights<'a>(experiment: &Experiment, trial: &'a Trial) -> Option<Vec<(&'a KindSummary, f64)>> {
    let summary = &trial.summary;
    let family = KnownFamily::from_summary(summary);
    let mut weights = Vec::new();
    for kind in &summary.kinds {
        let weight = family.and_then(|family| family.weight(summary, &kind.name));
        let weight = weight.or_else(|| {
            let script = experiment.scripts.iter().find(|script| script.name == kind.name)?;
            Some(f64::from(script.weight))
        });
        weights.push((kind, weight?));
    }
    weights.retain(|(_, weight)| *weight > 0.0);
    (weights.len() > 1).then_some(weights)
}

/// Shares alongside the planned ones, where chance does not explain the difference. What is in flight at
/// the end may be of any kind.
fn unlike_mix(trial: &Trial, weights: &[(&KindSummary, f64)]) -> Option<Message> {
    let total: f64 = weights.iter().map(|(kind, _)| kind.counts.ended() as f64).sum();
    let weight_sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let in_flight = trial.summary.in_flight as f64;
    let squares = weights.iter().map(|(kind, weight)| {
        let expected = total * weight / weight_sum;
        ((kind.counts.ended() as f64 - expected).abs() - in_flight).max(0.0).powi(2)
            / expected.max(1.0)
    });
    let chi_square: f64 = squares.sum();
    if chi_square <= chi_square_limit(weights.len() - 1) {
        return None;
    }
    parts(weights.iter().map(|(kind, weight)| {
        say!(
            kind_found_instead_of_wanted,
            kind = &kind.name,
            found = format!("{:.2}%", 100.0 * kind.counts.ended() as f64 / total),
            wanted = format!("{:.2}%", 100.0 * weight / weight_sum)
        )
    }))
}

/// The limit that chi-square exceeds once in a thousand times (Wilson and Hilferty's approximation).
fn chi_square_limit(freedom: usize) -> f64 {
    let freedom = freedom as f64;
    let part = 2.0 / (9.0 * freedom);
    freedom * (1.0 - part + MIX_CHANCE_Z * part.sqrt()).powi(3)
}

fn hot_range(experiment: &Experiment) -> Option<Message> {
    let shares = experiment.points.iter().filter_map(|point| point.data.as_ref()?.hot_share);
    let shares: Vec<String> = shares.filter(|share| *share < 1.0).map(format::percent).collect();
    let shares = list(format::unique(shares).into_iter().map(Message::verbatim))?;
    Some(say!(percent_of_the_rows, share = shares))
}

fn derived_benchmark(experiment: &Experiment) -> Option<Message> {
    experiment.derived_from().map(|benchmark| say!(derived_from_benchmark, benchmark))
}

/// Statements of a trial by what they should be, of each kind of which that is known.
fn statement_counts(experiment: &Experiment, summary: &TrialSummary) -> Vec<(String, f64, f64)> {
    let counts = summary.kinds.iter().filter_map(|kind| {
        let expected = families()
            .find_map(|family| family.statements(experiment, &summary.test, &kind.name))?;
        let ended = kind.counts.completed() as f64;
        (ended > 0.0).then(|| (kind.name.clone(), kind.statements.total() as f64 / ended, expected))
    });
    counts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tests::trial;

    #[test]
    fn limits_are_those_of_the_table() {
        // The table of chi-square at 0.001.
        for (freedom, limit) in [(1, 10.83), (2, 13.82), (4, 18.47), (10, 29.59)] {
            let actual = chi_square_limit(freedom);
            assert!((actual / limit - 1.0).abs() < 0.04, "{freedom}: {actual} {limit}");
        }
    }

    fn make_experiment(test: &str, options: &[(&str, &str)]) -> Experiment {
        let options =
            options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let facts = ExperimentFacts { options, ..ExperimentFacts::default() };
        Experiment { test: test.to_owned(), facts, ..Experiment::default() }
    }

    fn is_lighter(name: &str, value: &str) -> bool {
        lighter_workload(&make_experiment("x", &[(name, value)])).is_some()
    }

    #[test]
    fn options_that_lighten_a_transaction_are_found_in_any_spelling() {
        for (name, value) in [
            ("range_selects", "off"),
            ("range-selects", "false"),
            ("skip_trx", "on"),
            ("oltp-skip-trx", "1"),
            ("point_selects", "0"),
            ("simple_ranges", "0"),
            ("oltp-sum-ranges", "0"),
            ("order_ranges", "0"),
            ("distinct_ranges", "0"),
            ("index_updates", "0"),
            ("non_index_updates", "0"),
            ("delete_inserts", "0"),
        ] {
            assert!(is_lighter(name, value), "{name}={value}");
        }
        for (name, value) in
            [("range_selects", "on"), ("skip_trx", "0"), ("point_selects", "1"), ("tables", "0")]
        {
            assert!(!is_lighter(name, value), "{name}={value}");
        }
    }

    fn read_trial(committed: u64, rows_read: u64) -> Trial {
        let kind = KindSummary {
            name: "k".to_owned(),
            counts: dyno_facts::Counts { committed, ..Default::default() },
            statements: StatementCounts { rows_read, ..StatementCounts::default() },
            latency: LatencySummary::default(),
        };
        trial(TrialSummary { kinds: vec![kind], ..TrialSummary::default() })
    }

    fn count_rows(trials: &[[Trial; 2]], name: &str) -> Option<[[f64; 2]; 2]> {
        let pairs: Vec<[&Trial; 2]> = trials.iter().map(|[a, b]| [a, b]).collect();
        by_transaction(&pairs, name, |counts| counts.rows_read)
    }

    #[test]
    fn rows_of_a_kind_are_compared_by_transaction() {
        let n = ROWS_LEAST;
        let pairs = [
            [read_trial(n, 3 * n), read_trial(n, n)],
            [read_trial(2 * n, 8 * n), read_trial(n, 2 * n)],
        ];
        assert_eq!(count_rows(&pairs, "k"), Some([[3.0, 4.0], [1.0, 2.0]]));
        assert_eq!(count_rows(&pairs, "other"), None);
        assert_eq!(
            count_rows(&[[read_trial(n - 1, 3 * n), read_trial(n, n)]], "k"),
            None,
            "too few transactions"
        );
        // Rows of all pairs together.
        for (rows, is_enough) in [(2 * n, true), (2 * n - 1, false)] {
            let second = [read_trial(n, 0), read_trial(n, 0)];
            let pairs = [[read_trial(n, rows), read_trial(n, 0)], second];
            assert_eq!(count_rows(&pairs, "k").is_some(), is_enough);
        }
    }
}
