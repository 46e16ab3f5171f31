//! Planning repetitions one pair at a time.

use crate::ratio::{LEAST_PAIRS, PairedRatio};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StoppingPlan {
    /// Below [`LEAST_PAIRS`] no half-width ends the repetition.
    pub pairs_least: usize,
    pub pairs_most: usize,
    /// Half-width of the 95 % interval that ends the repetition, such as 0.02.
    pub half_width: Option<f64>,
    /// Seconds that no further pair may exceed.
    pub budget_s: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextPair {
    Continue,
    Stop(Stop),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    HalfWidthReached,
    BudgetSpent,
    MostPairs,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    pub next: NextPair,
    /// Pairs of the candidate with the fewest.
    pub pairs: usize,
    /// The widest one; `None` while a candidate has fewer than two pairs.
    pub half_width: Option<f64>,
    /// Pairs that the wanted half-width would need with the same deviation; `None` if unknown or none was wanted.
    pub pairs_needed: Option<usize>,
}

/// Decides after each pair. `candidates` holds the pairs (baseline, candidate) so far of each candidate, `spent_s`
/// their cost, `next_s` the expected cost of one more of each. Equal arguments give equal decisions, so an interrupted
/// run goes on as it would have.
pub fn decide(
    plan: &StoppingPlan,
    candidates: &[Vec<(f64, f64)>],
    spent_s: f64,
    next_s: f64,
) -> Decision {
    let ratios: Vec<Option<PairedRatio>> =
        candidates.iter().map(|pairs| PairedRatio::of(pairs)).collect();
    // Trials without a value were executed too: they count against the most.
    let executed = candidates.iter().map(Vec::len).min().unwrap_or(0);
    let widths: Option<Vec<f64>> =
        ratios.iter().map(|ratio| ratio.as_ref()?.half_width()).collect();
    let half_width = widths.and_then(|widths| widths.into_iter().reduce(f64::max));
    let needed = |wanted: f64| -> Option<usize> {
        let each: Option<Vec<usize>> =
            ratios.iter().map(|ratio| ratio.as_ref()?.pairs_needed(wanted)).collect();
        each?.into_iter().max()
    };
    let usable = ratios.iter().map(|ratio| ratio.as_ref().map_or(0, |ratio| ratio.pairs)).min();
    let least = plan.pairs_least.max(LEAST_PAIRS);
    let is_reached = usable.unwrap_or(0) >= least
        && matches!((half_width, plan.half_width), (Some(reached), Some(wanted)) if reached <= wanted);
    let next = if is_reached {
        NextPair::Stop(Stop::HalfWidthReached)
    } else if executed >= plan.pairs_most {
        NextPair::Stop(Stop::MostPairs)
    } else if plan.budget_s.is_some_and(|budget_s| spent_s + next_s > budget_s) {
        NextPair::Stop(Stop::BudgetSpent)
    } else {
        NextPair::Continue
    };
    let pairs_needed = plan.half_width.and_then(needed);
    Decision { next, pairs: executed, half_width, pairs_needed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> StoppingPlan {
        StoppingPlan {
            pairs_least: 4,
            pairs_most: 8,
            half_width: Some(0.02),
            budget_s: Some(1000.0),
        }
    }

    fn pairs(count: usize, noise: f64) -> Vec<(f64, f64)> {
        let sign = |k: usize| if k.is_multiple_of(2) { noise } else { -noise };
        (0..count).map(|k| (100.0, 100.0 * (1.0 + sign(k)))).collect()
    }

    #[test]
    fn it_ends_where_the_plan_says() {
        let next = |pairs: Vec<(f64, f64)>, spent_s| decide(&plan(), &[pairs], spent_s, 100.0).next;
        assert_eq!(next(pairs(3, 0.001), 0.0), NextPair::Continue);
        assert_eq!(next(pairs(4, 0.001), 0.0), NextPair::Stop(Stop::HalfWidthReached));
        assert_eq!(next(pairs(4, 0.05), 0.0), NextPair::Continue);
        assert_eq!(next(pairs(4, 0.05), 901.0), NextPair::Stop(Stop::BudgetSpent));
        assert_eq!(next(pairs(4, 0.05), 900.0), NextPair::Continue);
        assert_eq!(next(pairs(8, 0.05), 0.0), NextPair::Stop(Stop::MostPairs));
        assert_eq!(next(Vec::new(), 0.0), NextPair::Continue);
    }

    #[test]
    fn all_candidates_must_be_narrow() {
        let decision = decide(&plan(), &[pairs(4, 0.001), pairs(4, 0.03)], 0.0, 1.0);
        assert_eq!(decision.next, NextPair::Continue);
        assert!(decision.half_width.is_some_and(|width| width > 0.02), "{decision:?}");
        assert!(decision.pairs_needed.is_some_and(|pairs| pairs > 4), "{decision:?}");
    }

    #[test]
    fn trials_without_a_value_do_not_make_it_endless() {
        let failed = vec![(0.0, 100.0); 8];
        assert_eq!(decide(&plan(), &[failed], 0.0, 1.0).next, NextPair::Stop(Stop::MostPairs));
    }
}
