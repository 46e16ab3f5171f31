//! Faults: how the load fared when something was done to a node, and what was lost.

use crate::evidence::{Experiment, Judgment, Spread, Trial};
use crate::format;
use dyno_facts::statistics::median;
use dyno_facts::{FaultFacts, Message, say};

/// Checks that find what was acknowledged and is not there, or not whole.
const LOSSES: [&str; 2] = ["lost-acknowledged", "half-done"];

/// Trials of an experiment on a target, with the same number of workers, in which something was done to a node.
pub struct FaultTrials<'a> {
    pub experiment: &'a Experiment,
    pub trials: Vec<(&'a Trial, &'a FaultFacts)>,
}

impl Judgment {
    /// The trials with a fault, grouped by what is reported together.
    pub fn faults(&self) -> Vec<FaultTrials<'_>> {
        let mut rows: Vec<FaultTrials<'_>> = Vec::new();
        for trial in &self.trials {
            // If nothing was done, no time can be reported: such a trial does not count as one with a fault.
            let facts = trial.summary.fault.as_ref().filter(|facts| !facts.steps.is_empty());
            let Some(facts) = facts else { continue };
            let mut experiments = self.experiments.iter();
            let experiment = experiments.find(|known| known.name == trial.summary.experiment);
            let Some(experiment) = experiment else { continue };
            let row = rows.iter_mut().find(|row| {
                let first = row.first();
                row.experiment.name == experiment.name
                    && (first.run, &first.target) == (trial.run, &trial.target)
                    && first.summary.workers == trial.summary.workers
            });
            match row {
                Some(row) => row.trials.push((trial, facts)),
                None => rows.push(FaultTrials { experiment, trials: vec![(trial, facts)] }),
            }
        }
        rows
    }

    /// Acknowledged work that faults have lost or torn, by trial, if neither the experiment (`allow_lost`) nor the
    /// run (`--allow`) expects it.
    pub fn lost_work(&self) -> Vec<Message> {
        let checks = self.checks.iter();
        let checks = checks.filter(|check| LOSSES.contains(&check.id) && !check.is_accepted);
        let losses = checks.flat_map(|check| &check.findings).filter(|finding| {
            let mut trials = finding.place.names.iter().filter_map(|name| self.trial(name));
            trials.any(|trial| !self.allows_loss(trial))
        });
        losses
            .map(|finding| say!(place_value, place = finding.place.text(), value = &finding.value))
            .collect()
    }

    /// Returns true if the experiment of a trial expects its target to lose acknowledged work.
    fn allows_loss(&self, trial: &Trial) -> bool {
        let run = self.runs.iter().find(|run| run.number == trial.run);
        let plan = run.and_then(|run| {
            let mut plans = run.header.experiments.iter();
            plans.find(|facts| facts.name == trial.summary.experiment)
        });
        let fault = plan.and_then(|facts| facts.fault.as_ref());
        fault.is_some_and(|fault| fault.allows_lost(&trial.summary.target))
    }
}

impl<'a> FaultTrials<'a> {
    /// The trial that describes what all of them share.
    pub fn first(&self) -> &'a Trial {
        self.trials[0].0
    }

    /// The facts of the fault, trial by trial.
    pub fn facts(&self) -> impl Iterator<Item = &'a FaultFacts> {
        self.trials.iter().map(|(_, facts)| *facts)
    }

    pub fn describe_fault(&self) -> Message {
        what(self.trials[0].1)
    }

    /// Spread of the trials that have it.
    pub fn spread(&self, value: fn(&FaultFacts) -> Option<f64>) -> Option<Spread> {
        Spread::from_values(self.facts().filter_map(value).collect())
    }

    /// Number of the trials that don't have it.
    pub fn without(&self, value: fn(&FaultFacts) -> Option<f64>) -> usize {
        self.facts().filter(|facts| value(facts).is_none()).count()
    }

    /// Over the trials that tell it; `None` if none does.
    pub fn sum(&self, value: fn(&FaultFacts) -> Option<u64>) -> Option<u64> {
        self.facts().filter_map(value).reduce(|a, b| a + b)
    }

    /// Its outcome in a sentence for the summary of a paper.
    pub fn sentence(&self) -> Message {
        let [outage, back, lost] = describe_course(&self.facts().collect::<Vec<_>>());
        say!(
            experiment_target_what_outage_back_lost,
            experiment = &self.experiment.title,
            target = &self.first().target,
            what = self.describe_fault(),
            outage,
            back,
            lost,
            trials = say!(medians_of_trials, n = self.trials.len())
        )
    }
}

/// The fault in words.
pub fn what(facts: &FaultFacts) -> Message {
    let node = &facts.node;
    let action = match facts.action.as_str() {
        "kill" => say!(node_killed, node),
        "stop" => say!(node_stopped, node),
        "restart" => say!(node_restarted, node),
        "freeze" => say!(node_frozen, node),
        "partition" => say!(cut_off_from_the_network, node),
        _ => say!(treated_by_a_command, node),
    };
    match &facts.promoted {
        Some(heir) => say!(done_heir_took_over, done = action, heir),
        None => action,
    }
}

/// Outcome of a fault, in a sentence for a terminal.
pub fn fault_sentence(facts: &FaultFacts) -> Message {
    let [outage, back, lost] = describe_course(&[facts]);
    say!(what_outage_back_lost, what = what(facts), outage, back, lost)
}

/// The outage, how the load came back, and what was lost: medians over the trials, of which there is one at least.
fn describe_course(trials: &[&FaultFacts]) -> [Message; 3] {
    let trial_count = trials.len().to_string();
    let noticed_s = trials.iter().map(|facts| facts.noticed_s).fold(0.0, f64::max);
    let successes_s: Vec<f64> =
        trials.iter().filter_map(|facts| facts.first_success_after_s).collect();
    let outage = match count_missing(trials, &successes_s) {
        Some(n) => say!(no_commit_followed_in_of_trials, n, all = &trial_count),
        None => with_worst(describe_outage(median(&successes_s), noticed_s), &successes_s),
    };
    let shard = trials[0].shard.as_ref().map(|shard| {
        let successes_s: Vec<f64> = trials.iter().copied().filter_map(shard_success).collect();
        (median(&successes_s), shard.noticed_s)
    });
    let recoveries_s: Vec<f64> =
        trials.iter().filter_map(|facts| facts.recovered_after_s).collect();
    let back = match count_missing(trials, &recoveries_s) {
        Some(n) => say!(not_recovered_in_some_trials, n, all = &trial_count),
        None => with_worst(describe_recovery(median(&recoveries_s)), &recoveries_s),
    };
    let torn = [half_done, in_doubt].map(|count| sum_known(trials, count).unwrap_or(0));
    let acknowledged = sum_known(trials, |facts| facts.acknowledged);
    let losses = describe_losses(acknowledged, sum_known(trials, |facts| facts.lost), torn);
    [with_shard(outage, &trials[0].node, shard), back, losses]
}

/// Number of trials without a value, in digits; `None` if all have one or none has.
fn count_missing(trials: &[&FaultFacts], values: &[f64]) -> Option<String> {
    let is_mixed = !values.is_empty() && values.len() < trials.len();
    is_mixed.then(|| (trials.len() - values.len()).to_string())
}

/// Over the trials that have the count; `None` if none has.
fn sum_known(trials: &[&FaultFacts], count: fn(&FaultFacts) -> Option<u64>) -> Option<u64> {
    trials.iter().filter_map(|facts| count(facts)).reduce(|a, b| a + b)
}

/// A median with the worst of several values.
fn with_worst(median: Message, values_s: &[f64]) -> Message {
    let worst_s = values_s.iter().copied().fold(0.0, f64::max);
    if values_s.len() > 1 && worst_s > 0.0 {
        say!(median_and_worst, median, worst = format::tenth(worst_s))
    } else {
        median
    }
}

fn describe_outage(first_success_s: Option<f64>, noticed_s: f64) -> Message {
    match first_success_s {
        Some(0.0) => say!(no_outage_of_s_or_more, s = format::plain(noticed_s)),
        Some(seconds) => say!(first_success_after_s, s = format::tenth(seconds)),
        None => say!(no_commit_followed),
    }
}

/// The other shards may have continued: the outage of what lives on the shard itself is reported alongside theirs.
fn with_shard(outage: Message, node: &str, shard: Option<(Option<f64>, f64)>) -> Message {
    let Some((first_success_s, noticed_s)) = shard else { return outage };
    let shard_outage = describe_outage(first_success_s, noticed_s);
    say!(outage_and_that_of_the_shard, all = outage, node, own = shard_outage)
}

/// When something was acknowledged again whose home is the shard.
pub fn shard_success(facts: &FaultFacts) -> Option<f64> {
    facts.shard.as_ref()?.first_success_after_s
}

fn describe_recovery(recovered_s: Option<f64>) -> Message {
    match recovered_s {
        Some(seconds) => say!(n_90_percent_of_the_throughput_after, s = format::tenth(seconds)),
        None => say!(throughput_not_recovered),
    }
}

/// Transactions that some of their shards have and others don't, acknowledged or not.
pub fn half_done(facts: &FaultFacts) -> Option<u64> {
    let losses = facts.across_shards.as_ref()?;
    Some(losses.half_done + losses.unknown_half_done)
}

pub fn in_doubt(facts: &FaultFacts) -> Option<u64> {
    Some(facts.across_shards.as_ref()?.in_doubt)
}

fn describe_losses(
    acknowledged: Option<u64>,
    lost: Option<u64>,
    [half_done, in_doubt]: [u64; 2],
) -> Message {
    match (acknowledged, lost) {
        (Some(acknowledged), Some(lost)) if half_done + in_doubt > 0 => say!(
            of_acknowledged_transactions_lost_or_torn,
            lost = format::whole(lost as f64),
            acknowledged = format::whole(acknowledged as f64),
            half_done = format::whole(half_done as f64),
            in_doubt = format::whole(in_doubt as f64)
        ),
        (Some(acknowledged), Some(lost)) => say!(
            of_acknowledged_transactions_lost,
            lost = format::whole(lost as f64),
            acknowledged = format::whole(acknowledged as f64)
        ),
        _ => say!(nobody_can_tell_what_was_lost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_facts::{CrossShardLosses, ShardOutage};

    fn make_facts(
        first_success_after_s: Option<f64>,
        recovered_after_s: Option<f64>,
    ) -> FaultFacts {
        FaultFacts {
            noticed_s: 0.25,
            first_success_after_s,
            recovered_after_s,
            acknowledged: Some(1_000),
            lost: Some(4),
            ..FaultFacts::default()
        }
    }

    fn describe_action(action: &str, promoted: Option<&str>) -> Message {
        let promoted = promoted.map(str::to_owned);
        what(&FaultFacts {
            action: action.into(),
            node: "a".into(),
            promoted,
            ..Default::default()
        })
    }

    #[test]
    fn what_was_done_is_told_by_its_action() {
        let actions = ["kill", "stop", "restart", "freeze", "partition", "command"];
        let expected = [
            say!(node_killed, node = "a"),
            say!(node_stopped, node = "a"),
            say!(node_restarted, node = "a"),
            say!(node_frozen, node = "a"),
            say!(cut_off_from_the_network, node = "a"),
            say!(treated_by_a_command, node = "a"),
        ];
        assert_eq!(actions.map(|action| describe_action(action, None)), expected);
        let taken_over = say!(done_heir_took_over, done = &expected[0], heir = "b");
        assert_eq!(describe_action("kill", Some("b")), taken_over);
    }

    #[test]
    fn medians_stand_with_the_worst_value_and_the_trials_without_one() {
        let no_outage = describe_course(&[&make_facts(Some(0.0), Some(0.0))]);
        assert_eq!(no_outage[0], say!(no_outage_of_s_or_more, s = "0.25"));
        let three = [(1.0, 2.0), (3.0, 5.0), (2.0, 4.0)].map(|(a, b)| make_facts(Some(a), Some(b)));
        let median = say!(first_success_after_s, s = "2.0");
        let median_back = say!(n_90_percent_of_the_throughput_after, s = "4.0");
        let expected = [
            say!(median_and_worst, median, worst = "3.0"),
            say!(median_and_worst, median = median_back, worst = "5.0"),
            say!(of_acknowledged_transactions_lost, lost = "12", acknowledged = "3,000"),
        ];
        assert_eq!(describe_course(&three.each_ref()), expected);
        let never = describe_course(&[&make_facts(None, None), &make_facts(None, None)]);
        assert_eq!(never[..2], [say!(no_commit_followed), say!(throughput_not_recovered)]);
        let once = describe_course(&[&make_facts(Some(1.0), Some(2.0)), &make_facts(None, None)]);
        let expected = [
            say!(no_commit_followed_in_of_trials, n = "1", all = "2"),
            say!(not_recovered_in_some_trials, n = "1", all = "2"),
        ];
        assert_eq!(once[..2], expected);
        let untold = FaultFacts { lost: None, ..make_facts(Some(1.0), None) };
        assert_eq!(describe_course(&[&untold])[2], say!(nobody_can_tell_what_was_lost));
    }

    #[test]
    fn shards_have_a_separate_outage_and_may_tear_what_they_share() {
        let losses = CrossShardLosses {
            half_done: 2,
            unknown_half_done: 1,
            in_doubt: 5,
            ..Default::default()
        };
        let shard =
            ShardOutage { noticed_s: 0.5, first_success_after_s: Some(3.0), ..Default::default() };
        let sharded = FaultFacts {
            node: "a".to_owned(),
            shard: Some(shard),
            across_shards: Some(losses),
            ..make_facts(Some(0.0), Some(0.0))
        };
        let [outage, _, lost] = describe_course(&[&sharded]);
        let node_outage = say!(no_outage_of_s_or_more, s = "0.25");
        let shard_outage = say!(first_success_after_s, s = "3.0");
        let expected =
            say!(outage_and_that_of_the_shard, all = node_outage, node = "a", own = shard_outage);
        assert_eq!(outage, expected);
        let torn = say!(
            of_acknowledged_transactions_lost_or_torn,
            lost = "4",
            acknowledged = "1,000",
            half_done = "3",
            in_doubt = "5"
        );
        assert_eq!(lost, torn);
        let only_in_doubt = CrossShardLosses { in_doubt: 1, ..Default::default() };
        let in_doubt = FaultFacts { across_shards: Some(only_in_doubt), ..make_facts(None, None) };
        let plain = say!(of_acknowledged_transactions_lost, lost = "4", acknowledged = "1,000");
        assert_ne!(describe_course(&[&in_doubt])[2], plain);
    }
}
