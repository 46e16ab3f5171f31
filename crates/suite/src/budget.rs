//! `--budget 10m`: the same plan, of the size at which it takes about so long. `suites/README.md` states the rules.

use crate::plan::{Overrides, Plan};
use crate::problem::{Problem, SuiteError};
use crate::suite::Suite;
use dyno_facts::{Message, say};

/// No suite is smaller at a smaller share: everything is at its least.
const SHARE_LEAST: f64 = 1e-6;
/// Halvings of the span between a share that fits and one that does not.
const HALVINGS: u32 = 24;

/// The largest plan whose estimate stays within the budget.
pub(crate) fn fit(suite: &Suite, overrides: &Overrides, budget_s: f64) -> Result<Plan, SuiteError> {
    if overrides.shrink.is_some() {
        let hint = "Leave one of them out: both say how large the run is.";
        return Err(Problem::new("`--budget` and `--shrink` can't be given together.")
            .hint(hint)
            .into());
    }
    let of_share =
        |share: f64| Plan::of_size(suite, &Overrides { shrink: Some(share), ..overrides.clone() });
    let full = of_share(1.0)?;
    if full.estimated_s <= budget_s {
        return Ok(full);
    }
    let mut best = of_share(SHARE_LEAST)?;
    if best.estimated_s > budget_s {
        let message = format!(
            "The run takes about {:.0} s at its smallest, more than the budget of {budget_s:.0} s.",
            best.estimated_s
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
    Ok(best)
}

/// A share that people can read and type.
fn three_digits(share: f64) -> f64 {
    format!("{share:.2e}").parse().unwrap_or(share)
}

/// What a run should say of its size, where that is not the suite's.
pub(crate) fn told(suite: &Suite, overrides: &Overrides) -> Option<Message> {
    let share = overrides.shrink.filter(|share| *share < 1.0)?;
    let is_published = suite.facts.paper.is_some();
    Some(match overrides.budget_s {
        Some(_) if !is_published => say!(sized_for_the_budget, share = share.to_string()),
        _ => say!(shrunk_by, share = share.to_string()),
    })
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
