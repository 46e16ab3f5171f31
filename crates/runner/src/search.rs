//! The search for the highest rate that an objective allows: `dyno-statistics` says which rate comes
//! next, here is what the trials so far have shown.

use super::repetition::NextTrial;
use dyno_facts::format::short;
use dyno_facts::{
    LatencySummary, Message, Metric, PlanStep, PlannedTrial, Purpose, SAMPLES_BEYOND, StepAction,
    TrialSummary, say,
};
use dyno_statistics::knee::{self, KneeOutcome, Search, Tried};
use dyno_statistics::objective::Objective;
use dyno_store::Run;
use dyno_suite::Plan;

/// Where a search begins: this share of what a closed loop does.
const FIRST_SHARE: f64 = 0.5;

pub(super) fn next(plan: &Plan, run: &Run, step: &PlanStep, trial: &PlannedTrial) -> NextTrial {
    let of_search = plan
        .experiment(&step.experiment)
        .and_then(|experiment| Some((experiment.search.as_ref()?, experiment.confirm)));
    let Some((wanted, confirmations)) = of_search else {
        return NextTrial::Skip(say!(search_without_objective));
    };
    let own: Vec<(&PlanStep, &PlannedTrial)> = steps(plan, step, trial);
    let is_over = own.iter().any(|(other, _)| run.header().skipped.contains_key(&other.id));
    if is_over {
        return NextTrial::Over;
    }
    let done: Vec<&TrialSummary> = own
        .iter()
        .filter(|(_, other)| other.repeat < trial.repeat)
        .filter_map(|(other, _)| run.complete_trial(&other.id))
        .collect();
    if done.len() + 1 < trial.repeat as usize {
        return NextTrial::Skip(say!(search_trial_failed));
    }
    let Ok(objective) = wanted.objective.parse::<Objective>() else {
        return NextTrial::Skip(say!(search_objective_invalid, objective = &wanted.objective));
    };
    let at = |rate_per_s: Option<f64>, purpose: Purpose| {
        NextTrial::Run(Box::new(PlannedTrial { rate: rate_per_s, ..trial.clone() }), purpose)
    };
    // A lower rate would tell even less.
    let is_untold = |last: &&&TrialSummary| {
        last.rate_per_s.is_some() && value(last, objective.metric).is_none()
    };
    if done.last().filter(is_untold).is_some() {
        return NextTrial::Skip(say!(search_windows_too_short, objective = &objective.text));
    }
    let closed = done.iter().find(|trial| trial.rate_per_s.is_none()).map(|trial| trial.tps);
    let Some(start_per_s) = wanted.start_rate.or(closed.map(|tps| tps * FIRST_SHARE)) else {
        return at(None, Purpose::Search);
    };
    let search =
        Search { most_per_s: wanted.most_rate, confirmations, ..Search::from(start_per_s) };
    let tried: Vec<Tried> = done.iter().filter_map(|trial| tried(trial, &objective)).collect();
    match knee::next(&search, &tried) {
        knee::KneeStep::Search { rate_per_s } => at(Some(rate_per_s), Purpose::Search),
        knee::KneeStep::Confirm { rate_per_s, .. } => at(Some(rate_per_s), Purpose::Confirm),
        knee::KneeStep::Done(outcome) => NextTrial::Skip(told(&outcome, &objective)),
    }
}

fn steps<'a>(
    plan: &'a Plan,
    step: &PlanStep,
    trial: &PlannedTrial,
) -> Vec<(&'a PlanStep, &'a PlannedTrial)> {
    let same = plan.steps.iter().filter_map(|other| match &other.action {
        StepAction::Trial(of) if of.purpose == Purpose::Search && of.point == trial.point => {
            Some((other, of))
        }
        _ => None,
    });
    same.filter(|(other, _)| other.experiment == step.experiment).collect()
}

/// What a trial of the search has shown; `None` of the closed loop before it.
fn tried(trial: &TrialSummary, objective: &Objective) -> Option<Tried> {
    let rate_per_s = trial.rate_per_s?;
    // Of what really arrived in the window: a Poisson process has its own luck.
    let counts = &trial.counts;
    let done = counts.committed + counts.rolled_back + counts.skipped + trial.in_flight;
    let failed = counts.failed;
    let offered = trial.offered.filter(|&offered| offered > 0)?;
    let is_met = objective.is_met(value(trial, objective.metric));
    Some(Tried {
        rate_per_s,
        is_confirmation: trial.purpose == Purpose::Confirm,
        is_held: knee::is_held(offered as f64, done as f64, failed as f64, objective, is_met),
    })
}

/// The metric of an objective; `None` where the window holds too few transactions for it. Arrivals without a latency
/// are slower than any bound.
fn value(trial: &TrialSummary, metric: Metric) -> Option<f64> {
    let latency: &LatencySummary = &trial.latency;
    let any = latency.count + latency.missing > 0;
    let or_beyond = |share: f64, us: f64| if latency.is_known(share) { us } else { f64::INFINITY };
    let beyond = |share: f64, us: f64| {
        let is_enough = (latency.count + latency.missing) as f64 * share >= SAMPLES_BEYOND;
        is_enough.then(|| or_beyond(share, us))
    };
    match metric.percentile() {
        Some((share, latency_us)) => beyond(share, latency_us(latency)).map(|us| us / 1e3),
        None if metric == Metric::MaxMs => any.then(|| or_beyond(0.0, latency.max_us) / 1e3),
        None => trial.figure(metric),
    }
}

/// How a search ended, in a sentence.
fn told(outcome: &KneeOutcome, objective: &Objective) -> Message {
    let objective = &objective.text;
    match outcome {
        KneeOutcome::Held { rate_per_s, failed_per_s: Some(failed) } => {
            let (rate, failed) = (short(*rate_per_s), short(*failed));
            say!(search_ended, rate = rate, objective = objective, failed = failed)
        }
        KneeOutcome::Held { rate_per_s, failed_per_s: None } => {
            say!(search_ended_at_most, rate = short(*rate_per_s), objective = objective)
        }
        KneeOutcome::NoneHeld { lowest_per_s } => {
            say!(search_none_held, rate = short(*lowest_per_s), objective = objective)
        }
        KneeOutcome::Unsteady => say!(search_unsteady, objective = objective),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_without_a_latency_are_slower_than_any_bound() {
        let latency = LatencySummary {
            count: 99_900,
            missing: 100,
            p99_us: 2e3,
            p999_us: 3e3,
            max_us: 4e3,
            ..LatencySummary::default()
        };
        let mut trial = TrialSummary { latency, ..TrialSummary::default() };
        assert_eq!(value(&trial, Metric::P999Ms), Some(3.0));
        trial.latency.missing = 101;
        assert_eq!(value(&trial, Metric::P999Ms), Some(f64::INFINITY));
        assert_eq!(
            (value(&trial, Metric::P99Ms), value(&trial, Metric::MaxMs)),
            (Some(2.0), Some(f64::INFINITY))
        );
        trial.latency = LatencySummary { missing: 5_000, ..LatencySummary::default() };
        assert_eq!(value(&trial, Metric::P95Ms), Some(f64::INFINITY), "nothing was answered");
    }
}
