//! `--budget 10m`: the same plan, of the size at which it takes about so long. `suites/README.md` states the rules.

use crate::plan::{Overrides, Plan};
use crate::problem::{Problem, SuiteError};
use crate::suite::{Suite, SuiteExperiment};
use dyno_core::offer::DataSizing;
use dyno_facts::format::plain;
use dyno_facts::{ExperimentFacts, Message, PlanStep, Purpose, StepAction, say};
use std::collections::BTreeMap;

/// No suite is smaller at a smaller share: everything is at its least.
const SHARE_LEAST: f64 = 1e-6;
/// Halvings of the span between a share that fits and one that does not.
const HALVINGS: u32 = 24;
/// Passes that are planned where time ends them: it does so before, unless they are faster than any that are known.
const PASSES_MOST: u32 = 200;

/// Seconds for the passes over queries of experiments, by their names.
pub(crate) type PassTimes = BTreeMap<String, f64>;

/// The largest plan whose estimate stays within the budget.
pub(crate) fn fit(suite: &Suite, overrides: &Overrides, budget_s: f64) -> Result<Plan, SuiteError> {
    if overrides.shrink.is_some() {
        let hint = "Leave one of them out: both say how large the run is.";
        return Err(Problem::new("`--budget` and `--shrink` can't be given together.")
            .hint(hint)
            .into());
    }
    let of = |share: f64, passes: &PassTimes| {
        Plan::of_size(suite, &Overrides { shrink: Some(share), ..overrides.clone() }, passes)
    };
    let of_share = |share: f64| of(share, &PassTimes::new());
    let full = of_share(1.0)?;
    if full.estimated_s <= budget_s {
        return Ok(full);
    }
    let mut best = of_share(SHARE_LEAST)?;
    let with_answers = suite.experiments.iter().all(has_answers);
    if best.estimated_s > budget_s && !with_answers {
        let message = format!(
            "The run takes about {:.0} s at its smallest, more than the budget of {budget_s} s.",
            best.estimated_s.ceil()
        );
        let least = least_budget(best.estimated_s);
        let hint = format!("Give it `--budget {least}` at least{}.", less_to_do(&best));
        return Err(Problem::new(message).hint(hint).into());
    }
    let (mut low, mut high) = (SHARE_LEAST, 1.0);
    for _ in 0..HALVINGS {
        let middle = three_digits((low * high).sqrt());
        if middle <= low || middle >= high {
            break;
        }
        let plan = of_share(middle)?;
        if plan.estimated_s <= budget_s {
            (low, best) = (middle, plan);
        } else {
            high = middle;
        }
    }
    let share = if with_answers { share_of_rows(&best, &full) } else { low };
    let mut timed = of(share, &pass_times(suite, &best, budget_s))?;
    // Fewer passes than the suite has may fit where those do not.
    if best.estimated_s > budget_s && timed.estimated_s > budget_s {
        timed.facts.notes.push(say!(smallest_with_answers));
    }
    Ok(timed)
}

/// The smallest plan, where a budget asks for one; it may take longer than the budget.
pub(crate) fn smallest(suite: &Suite, overrides: &Overrides) -> Option<Plan> {
    overrides.budget_s?;
    let least = Overrides { shrink: Some(SHARE_LEAST), ..overrides.clone() };
    Plan::of_size(suite, &least, &PassTimes::new()).ok()
}

/// What would shorten a plan that is too long at its smallest.
fn less_to_do(plan: &Plan) -> String {
    let mut ways = Vec::new();
    let pairs = plan.experiments.iter().find_map(|planned| planned.comparison.as_ref());
    match pairs {
        Some(pairs) if !pairs.is_aa => ways.push(format!(
            "fewer pairs, which may be too few to decide (`--compare {} {} --pairs 2..2`)",
            pairs.baseline, pairs.candidates[0]
        )),
        None if plan.targets.len() > 1 => ways.push("fewer targets".to_owned()),
        _ => {}
    }
    if plan.experiments.iter().any(|planned| planned.workers.len() > 1) {
        ways.push("fewer load levels (`--max-workers 1`)".to_owned());
    }
    if plan.experiments.len() > 1 {
        ways.push("a copy of the suite with fewer experiments (`dyno help suite`)".to_owned());
    }
    let ways: String = ways.iter().map(|way| format!(", or {way}")).collect();
    format!("{ways}; `--plan` prints what each step takes")
}

/// A budget that holds so many seconds, as it is typed.
pub fn least_budget(seconds: f64) -> String {
    if seconds > 300.0 {
        format!("{:.0}m", (seconds / 60.0).ceil())
    } else {
        format!("{:.0}s", seconds.ceil())
    }
}

/// How long passes over queries take is not known before the run: they get what the rest of the plan leaves of the
/// budget, each experiment as much of it as it is guessed to need.
fn pass_times(suite: &Suite, plan: &Plan, budget_s: f64) -> PassTimes {
    let is_timed = |name: &str| {
        let mut written = suite.experiments.iter();
        let ends_otherwise = |planned: &ExperimentFacts| {
            planned.has_open_repeats() || planned.time_bound().is_some()
        };
        written.any(|written| written.name.value == name && has_answers(written))
            && !plan.experiment(name).is_some_and(ends_otherwise)
    };
    let mut guessed_s = PassTimes::new();
    for step in plan.steps.iter().filter(|step| is_timed(&step.experiment)) {
        if matches!(&step.action, StepAction::Trial(trial) if trial.purpose == Purpose::Measure) {
            *guessed_s.entry(step.experiment.clone()).or_default() += step.estimated_s;
        }
    }
    let all_s: f64 = guessed_s.values().sum();
    let left_s = (budget_s - (plan.estimated_s - all_s)).max(0.0);
    // Short numbers, and in sum never more than there is.
    let part = |own_s: f64| (left_s * own_s / all_s * 10.0).floor() / 10.0;
    guessed_s.into_iter().map(|(name, own_s)| (name, part(own_s))).collect()
}

/// Plans passes until their time is over, unless the user or what is found says how many pairs there are. Without any
/// time the fewest are planned.
pub(crate) fn repeat(experiment: &SuiteExperiment, planned: &mut ExperimentFacts, seconds: f64) {
    let most = PASSES_MOST - PASSES_MOST % planned.pairs_per_unit();
    let most = most.max(planned.repeats);
    let written = experiment.compare.as_ref().and_then(|compare| compare.stop.pairs);
    let has_time = seconds > 0.0;
    if let Some(comparison) = &mut planned.comparison {
        let stop = &mut comparison.stop;
        let is_open = stop.budget_s.is_some() || stop.pairs_least < stop.pairs_most;
        if written.is_some() || is_open || !has_time {
            return;
        }
        (stop.pairs_most, stop.budget_s) = (most, Some(seconds));
    } else if !has_time {
        planned.repeats = 1;
        return;
    } else {
        planned.repeats_s = Some(seconds);
    }
    planned.repeats = most;
}

/// Whether the data have sizes at which the right answers are known.
fn has_answers(experiment: &SuiteExperiment) -> bool {
    matches!(experiment.sizing, Some(DataSizing::Fraction { known, .. }) if !known.is_empty())
}

/// What the share really is, where few sizes can be had.
fn share_of_rows(plan: &Plan, full: &Plan) -> f64 {
    let rows = |plan: &Plan| {
        let sizes = plan.experiments.iter().filter_map(|experiment| experiment.data);
        sizes.map(|size| size.rows_per_table).max().unwrap_or(1).max(1) as f64
    };
    rows(plan) / rows(full)
}

/// A share that people can read and type.
fn three_digits(share: f64) -> f64 {
    format!("{share:.2e}").parse().unwrap_or(share)
}

/// What a run should say of its size, where that is not the suite's.
pub(crate) fn told(
    suite: &Suite,
    overrides: &Overrides,
    experiments: &[ExperimentFacts],
    passes: &PassTimes,
) -> Vec<Message> {
    let Some(share) = overrides.shrink.filter(|share| *share < 1.0) else { return Vec::new() };
    let is_published = suite.facts.paper.is_some();
    match overrides.budget_s {
        Some(_) if !is_published && suite.experiments.iter().all(has_answers) => {
            let sized = |planned: &ExperimentFacts| {
                let scale = planned.options.get("scale").cloned().unwrap_or_default();
                let (name, n) = (&planned.name, planned.repeats);
                let has_no_time = passes.get(name).is_some_and(|seconds| *seconds <= 0.0);
                match planned.time_bound() {
                    Some((least, seconds)) if planned.comparison.is_some() => say!(
                        sized_with_pairs,
                        name = name,
                        scale = scale,
                        seconds = seconds.to_string(),
                        n = least
                    ),
                    Some((_, seconds)) => {
                        let seconds = seconds.to_string();
                        say!(sized_with_passes, name = name, scale = scale, seconds = seconds)
                    }
                    None if has_no_time => {
                        say!(sized_without_time, name = name, scale = scale, n = n)
                    }
                    None => say!(sized_with_answers, name = name, scale = scale, n = n),
                }
            };
            experiments.iter().map(sized).collect()
        }
        Some(_) if !is_published => {
            vec![say!(sized_for_the_budget, times = plain(1.0 / share))]
        }
        _ => vec![say!(shrunk_by, share = share.to_string())],
    }
}

/// Comparisons whose fewest pairs are guessed to take longer than their time: they are made all the same.
pub(crate) fn over_time(experiments: &[ExperimentFacts], steps: &[PlanStep]) -> Vec<Message> {
    let of = |planned: &ExperimentFacts| {
        let (least, seconds) = planned.comparison.as_ref().and(planned.time_bound())?;
        let is_of_fewest = |step: &&PlanStep| {
            step.experiment == planned.name
                && matches!(&step.action, StepAction::Trial(trial)
                    if trial.purpose == Purpose::Measure && trial.repeat <= least)
        };
        let took_s: f64 = steps.iter().filter(is_of_fewest).map(|step| step.estimated_s).sum();
        (took_s > seconds).then(|| {
            say!(
                fewest_pairs_over_time,
                name = &planned.name,
                n = least,
                took = took_s.ceil().to_string(),
                seconds = seconds.to_string(),
            )
        })
    };
    experiments.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_short() {
        assert_eq!(three_digits(0.083_749_21), 0.083_7);
        assert_eq!(three_digits(1.0), 1.0);
    }
}
