//! `--budget 10m`: the same plan, of the size at which it takes about so long. `suites/README.md` states the rules.

use crate::plan::{Overrides, Plan};
use crate::problem::{Problem, SuiteError};
use crate::suite::{Suite, SuiteExperiment};
use dyno_core::offer::DataSizing;
use dyno_facts::{ExperimentFacts, Message, say};

/// No suite is smaller at a smaller share: everything is at its least.
const SHARE_LEAST: f64 = 1e-6;
/// Halvings of the span between a share that fits and one that does not.
const HALVINGS: u32 = 24;
/// More passes over the queries than these tell little more.
const PASSES_MOST: u32 = 60;

/// The largest plan whose estimate stays within the budget.
pub(crate) fn fit(suite: &Suite, overrides: &Overrides, budget_s: f64) -> Result<Plan, SuiteError> {
    if overrides.shrink.is_some() {
        let hint = "Leave one of them out: both say how large the run is.";
        return Err(Problem::new("`--budget` and `--shrink` can't be given together.")
            .hint(hint)
            .into());
    }
    let of = |share: f64, passes: Option<u32>| {
        Plan::of_size(suite, &Overrides { shrink: Some(share), ..overrides.clone() }, passes)
    };
    let of_share = |share: f64| of(share, None);
    let full = of_share(1.0)?;
    if full.estimated_s <= budget_s {
        return Ok(full);
    }
    let mut best = of_share(SHARE_LEAST)?;
    let with_answers = suite.experiments.iter().all(has_answers);
    if with_answers && best.estimated_s > budget_s {
        let mut smallest = of_share(share_of_rows(&best, &full))?;
        smallest.facts.notes.push(say!(smallest_with_answers));
        return Ok(smallest);
    }
    if best.estimated_s > budget_s {
        let message = format!(
            "The run takes about {:.0} s at its smallest, more than the budget of {budget_s} s.",
            best.estimated_s.ceil()
        );
        let hint = "Give it a larger `--budget`, or fewer targets.";
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
    match with_answers {
        true => {
            let share = share_of_rows(&best, &full);
            most_passes(|passes| of(share, Some(passes)), budget_s)
        }
        false => Ok(best),
    }
}

/// Data whose answers are known are of few sizes: what is left of the budget goes into passes.
fn most_passes(
    of: impl Fn(u32) -> Result<Plan, SuiteError>,
    budget_s: f64,
) -> Result<Plan, SuiteError> {
    let (mut fitting, mut too_many) = (1, PASSES_MOST + 1);
    let mut best = of(fitting)?;
    while too_many - fitting > 1 {
        let middle = u32::midpoint(fitting, too_many);
        let plan = of(middle)?;
        if plan.estimated_s <= budget_s {
            (fitting, best) = (middle, plan);
        } else {
            too_many = middle;
        }
    }
    Ok(best)
}

/// Plans so many passes, unless the user or what is found says how many pairs there are.
pub(crate) fn repeat(experiment: &SuiteExperiment, planned: &mut ExperimentFacts, passes: u32) {
    let passes = passes - passes % planned.pairs_per_unit();
    if passes <= planned.repeats {
        return;
    }
    let written = experiment.compare.as_ref().and_then(|compare| compare.stop.pairs);
    if let Some(comparison) = &mut planned.comparison {
        let stop = &mut comparison.stop;
        if written.is_some() || stop.pairs_least < stop.pairs_most {
            return;
        }
        (stop.pairs_least, stop.pairs_most) = (passes, passes);
    }
    planned.repeats = passes;
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
) -> Vec<Message> {
    let Some(share) = overrides.shrink.filter(|share| *share < 1.0) else { return Vec::new() };
    let is_published = suite.facts.paper.is_some();
    match overrides.budget_s {
        Some(_) if !is_published && suite.experiments.iter().all(has_answers) => {
            let sized = |planned: &ExperimentFacts| {
                let scale = planned.options.get("scale").cloned().unwrap_or_default();
                say!(sized_with_answers, name = &planned.name, scale = scale, n = planned.repeats)
            };
            experiments.iter().map(sized).collect()
        }
        Some(_) if !is_published => vec![say!(sized_for_the_budget, share = share.to_string())],
        _ => vec![say!(shrunk_by, share = share.to_string())],
    }
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
