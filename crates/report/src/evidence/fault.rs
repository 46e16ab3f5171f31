//! Faults: how the load fared when something was done to a node, and what was lost.

use crate::evidence::{Paper, Spread, Trial};
use crate::format;
use crate::text::Message;
use dyno_facts::{FaultFacts, say};

/// A trial with a fault.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultTrial {
    /// Label of the trial.
    pub trial: String,
    /// What was done, in words.
    pub what: Message,
    /// The facts as they are stored.
    pub facts: FaultFacts,
    /// Numbers of the checks that found something in it.
    pub checks: Vec<usize>,
}

/// The trials of one experiment on one target: a row of the table of configurations.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultSummary {
    /// Title of the experiment.
    pub experiment: String,
    /// Label of the target.
    pub target: String,
    pub workers: u32,
    /// What a commit waits for, as the servers say; else as the suite states it.
    pub acknowledged_by: Option<Message>,
    /// What was done, in words.
    pub what: Message,
    /// Seconds to the first success; of the trials that had one.
    pub first_success_s: Option<Spread>,
    /// Trials in which no commit followed.
    pub without_success: usize,
    /// Seconds to 90 % of the throughput before; of the trials that came so far.
    pub recovered_s: Option<Spread>,
    /// Trials that did not recover in their window.
    pub not_recovered: usize,
    /// The longest interval: times are known as well as this.
    pub resolution_s: f64,
    /// The shortest outage that is sure to be noticed.
    pub noticed_s: f64,
    /// Transactions per second before the fault.
    pub tps_before: Spread,
    /// The same after recovery.
    pub tps_after: Option<Spread>,
    /// Errors by class, over all trials: `connection_lost` and how many.
    pub errors: Vec<(String, u64)>,
    /// Transactions that were acknowledged, over the trials in which somebody could look for them.
    pub acknowledged: Option<u64>,
    /// Of these, those that were not found.
    pub lost: Option<u64>,
    /// Transactions whose outcome the load generator was not told; see [`FaultFacts::unknown`].
    pub unknown: Option<u64>,
    /// Numbers of the checks that found something.
    pub checks: Vec<usize>,
    pub trials: Vec<FaultTrial>,
}

/// One row for each experiment, target and number of workers with a fault.
pub(crate) fn summaries(paper: &Paper) -> Vec<FaultSummary> {
    let mut rows: Vec<(&Trial, Vec<(&Trial, &FaultFacts)>)> = Vec::new();
    for trial in &paper.trials {
        // Where nothing was done, there is no time to tell: that trial is none of a fault.
        let happened = |facts: &&FaultFacts| !facts.steps.is_empty();
        let Some(facts) = trial.summary.fault.as_ref().filter(happened) else { continue };
        let same = |other: &Trial| {
            let key = |trial: &Trial| (trial.target.clone(), trial.summary.workers, trial.run);
            other.summary.experiment == trial.summary.experiment && key(other) == key(trial)
        };
        match rows.iter_mut().find(|(first, _)| same(first)) {
            Some((_, own)) => own.push((trial, facts)),
            None => rows.push((trial, vec![(trial, facts)])),
        }
    }
    rows.iter().map(|(first, own)| summary(paper, first, own)).collect()
}

fn summary(paper: &Paper, first: &Trial, own: &[(&Trial, &FaultFacts)]) -> FaultSummary {
    let facts = || own.iter().map(|(_, facts)| *facts);
    let experiment = &first.summary.experiment;
    let titled = paper.experiments.iter().find(|other| other.name == *experiment);
    let stated = || {
        let target = paper.targets.iter().find(|target| target.label == first.target)?;
        target.facts.durability.as_ref().map(Message::from)
    };
    let waits_for = paper.nodes_of(&first.target).find_map(|node| node.acknowledged_by.as_ref());
    let acknowledged_by = waits_for.cloned().or_else(stated);
    let sum = |of: fn(&FaultFacts) -> Option<u64>| facts().filter_map(of).reduce(|a, b| a + b);
    let mut checks: Vec<usize> = own.iter().flat_map(|(trial, _)| trial.checks.clone()).collect();
    checks.sort_unstable();
    checks.dedup();
    FaultSummary {
        experiment: titled.map_or_else(|| experiment.clone(), |found| found.title.clone()),
        target: first.target.clone(),
        workers: first.summary.workers,
        acknowledged_by,
        what: own.first().map(|(_, facts)| what(facts)).unwrap_or_default(),
        first_success_s: spread(facts().filter_map(|facts| facts.first_success_after_s)),
        without_success: facts().filter(|facts| facts.first_success_after_s.is_none()).count(),
        recovered_s: spread(facts().filter_map(|facts| facts.recovered_after_s)),
        not_recovered: facts().filter(|facts| facts.recovered_after_s.is_none()).count(),
        resolution_s: facts().map(|facts| facts.resolution_s).fold(0.0, f64::max),
        noticed_s: facts().map(|facts| facts.noticed_s).fold(0.0, f64::max),
        tps_before: spread(facts().map(|facts| facts.tps_before)).unwrap_or_default(),
        tps_after: spread(facts().filter_map(|facts| facts.tps_after)),
        errors: errors(facts()),
        acknowledged: sum(|facts| facts.acknowledged),
        lost: sum(|facts| facts.lost),
        unknown: sum(|facts| facts.unknown),
        checks,
        trials: own.iter().map(|(trial, facts)| of_trial(trial, facts)).collect(),
    }
}

fn of_trial(trial: &Trial, facts: &FaultFacts) -> FaultTrial {
    FaultTrial {
        trial: trial.label.clone(),
        what: what(facts),
        facts: facts.clone(),
        checks: trial.checks.clone(),
    }
}

/// What was done, in words.
pub(crate) fn what(facts: &FaultFacts) -> Message {
    let node = &facts.node;
    let done = match facts.action.as_str() {
        "kill" => say!(node_killed, node = node),
        "stop" => say!(node_stopped, node = node),
        "restart" => say!(node_restarted, node = node),
        "freeze" => say!(node_frozen, node = node),
        "partition" => say!(cut_off_from_the_network, node = node),
        _ => say!(treated_by_a_command, node = node),
    };
    match &facts.promoted {
        Some(heir) => say!(done_heir_took_over, done = done, heir = heir),
        None => done,
    }
}

fn errors<'a>(facts: impl Iterator<Item = &'a FaultFacts>) -> Vec<(String, u64)> {
    let mut classes: Vec<(String, u64)> = Vec::new();
    for error in facts.flat_map(|facts| &facts.errors) {
        match classes.iter_mut().find(|(class, _)| *class == error.class) {
            Some((_, count)) => *count += error.count,
            None => classes.push((error.class.clone(), error.count)),
        }
    }
    classes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    classes
}

fn spread(values: impl Iterator<Item = f64>) -> Option<Spread> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let (min, max) = (*values.first()?, *values.last()?);
    let upper = values.len() / 2;
    let median = match values.len() % 2 {
        1 => values[upper],
        _ => f64::midpoint(values[upper - 1], values[upper]),
    };
    Some(Spread { min, median, max })
}

/// How a fault went, in a sentence for a terminal.
pub fn fault_sentence(facts: &FaultFacts) -> Message {
    say!(
        what_outage_back_lost,
        what = what(facts),
        outage = outage(facts.first_success_after_s, facts.noticed_s),
        back = back(facts.recovered_after_s),
        lost = lost(facts.acknowledged, facts.lost)
    )
}

/// How the faults of one experiment on one target went, in a sentence for the summary of a paper.
pub(crate) fn summary_sentence(row: &FaultSummary) -> Message {
    let trials = row.trials.len();
    let median = |spread: &Option<Spread>| spread.as_ref().map(|spread| spread.median);
    let outage = match row.without_success {
        some if some > 0 && some < trials => {
            say!(no_commit_followed_in_of_trials, n = some.to_string(), all = trials.to_string())
        }
        _ => outage(median(&row.first_success_s), row.noticed_s),
    };
    let back = match row.not_recovered {
        some if some > 0 && some < trials => {
            say!(not_back_at_90_percent_of, n = some.to_string(), all = trials.to_string())
        }
        _ => back(median(&row.recovered_s)),
    };
    say!(
        experiment_target_what_outage_back_lost,
        experiment = &row.experiment,
        target = &row.target,
        what = &row.what,
        outage = outage,
        back = back,
        lost = lost(row.acknowledged, row.lost),
        trials = say!(medians_of_trials, n = trials)
    )
}

fn outage(first_success_s: Option<f64>, noticed_s: f64) -> Message {
    match first_success_s {
        Some(0.0) => say!(no_outage_of_s_or_more, s = format::plain(noticed_s)),
        Some(seconds) => say!(first_success_after_s, s = format::tenth(seconds)),
        None => say!(no_commit_followed),
    }
}

fn back(recovered_s: Option<f64>) -> Message {
    match recovered_s {
        Some(seconds) => say!(n_90_percent_of_the_throughput_after, s = format::tenth(seconds)),
        None => say!(not_back_at_90_percent_of_the),
    }
}

fn lost(acknowledged: Option<u64>, lost: Option<u64>) -> Message {
    match (acknowledged, lost) {
        (Some(acknowledged), Some(lost)) => say!(
            of_acknowledged_transactions_lost,
            lost = format::whole(lost as f64),
            acknowledged = format::whole(acknowledged as f64)
        ),
        _ => say!(nobody_can_tell_what_was_lost),
    }
}
