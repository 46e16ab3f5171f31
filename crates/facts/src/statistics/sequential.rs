//! Planning repetitions one pair at a time.
//!
//! Pairs that end where their interval looks narrow end where the deviation happens to be small. So their intervals are
//! those of a stricter level, at which 5% hold: a table made by `cargo run --example simulate -- levels`. Pairs that
//! end where their verdict is certain are judged by an e-process ([`crate::statistics::anytime`]).

use crate::statistics::ALPHA;
use crate::statistics::Better;
use crate::statistics::ratio::{FigureBound, Judging, PairedRatio, RatioVerdict};

/// Levels for pairs that a half-width may end, by how often the most pairs exceed the fewest: the least that held 5% in
/// the worst of the simulated cells.
const LEVELS: [(f64, f64); 3] = [(1.0, ALPHA), (1.7, 0.032), (f64::INFINITY, 0.025)];

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoppingPlan {
    pub pairs_least: usize,
    pub pairs_most: usize,
    /// Half-width of the interval that ends the repetition, such as 0.02.
    pub half_width: Option<f64>,
    /// A verdict ends the repetition.
    pub is_until_decided: bool,
    /// Comparisons among which it is to be proven ([`crate::statistics::holm`]).
    pub comparisons: usize,
    /// Margin of equivalence: see [`crate::statistics::ratio::DEFAULT_MARGIN`].
    pub margin: f64,
    /// Seconds that no further pair may exceed. The time that trials take says nothing of their figures.
    pub budget_s: Option<f64>,
}

impl StoppingPlan {
    /// The judgment of pairs that were made by this plan.
    pub fn judging(&self) -> Judging {
        let pairs = [self.pairs_least, self.pairs_most];
        judging(self.is_until_decided, self.half_width.is_some(), pairs)
    }

    /// Returns true if a ratio is as sure, or its interval as narrow, as wanted.
    fn is_reached(&self, ratio: &PairedRatio) -> bool {
        if !self.is_until_decided {
            return matches!((ratio.half_width(), self.half_width), (Some(reached), Some(wanted)) if reached <= wanted);
        }
        // What other comparisons find may ask for less than that, never for more.
        let p = (ratio.p * self.comparisons.max(1) as f64).min(1.0);
        let verdict = ratio.verdict_with_p(Better::More, self.margin, p);
        !matches!(verdict, RatioVerdict::TooFewPairs | RatioVerdict::Undecided)
    }

    /// Returns true if no further pair helps: a bound has no half-width, and a verdict on its own side only.
    fn is_beyond_reach(&self, ratio: &PairedRatio) -> bool {
        let is_wanted = self.is_until_decided || self.half_width.is_some();
        let may_be_proven = self.is_until_decided && ratio.is_on_side_of_bound();
        is_wanted && ratio.bound.is_some() && !may_be_proven
    }
}

/// The judgment of pairs that ended at their fixed number, at a half-width, or at a verdict: `pairs` are the fewest and
/// the most.
pub fn judging(is_until_decided: bool, has_half_width: bool, pairs: [usize; 2]) -> Judging {
    match (is_until_decided, has_half_width) {
        (true, _) => Judging::Anytime,
        (false, false) => Judging::FIXED,
        (false, true) => Judging::Level(level(pairs[0], pairs[1])),
    }
}

/// The level at which pairs are judged that a half-width may have ended.
pub fn level(pairs_least: usize, pairs_most: usize) -> f64 {
    let times = pairs_most as f64 / pairs_least.max(1) as f64;
    LEVELS.iter().find(|(most, _)| times <= *most).map_or(ALPHA, |(_, level)| *level)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextPair {
    Continue,
    Stop(Stop),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    HalfWidthReached,
    Decided,
    /// Some figures are bounds, which no further pair makes a verdict or an interval of.
    OnlyBounds,
    BudgetSpent,
    MostPairs,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    pub next: NextPair,
    /// Pairs of the candidate with the fewest.
    pub pairs: usize,
    /// The widest one; `None` while a candidate has too few pairs for an interval.
    pub half_width: Option<f64>,
}

/// The pairs (baseline, candidate) of one candidate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CandidatePairs {
    /// Pairs of the sessions that these continue.
    pub earlier: Vec<Vec<(f64, f64)>>,
    pub pairs: Vec<(f64, f64)>,
    /// Direction of their ratio if some figures are bounds.
    pub bound: Option<FigureBound>,
}

/// Decides after each pair. `candidates` are those so far of each candidate, `spent_s` their cost, `next_s` the
/// expected cost of one more of each. Equal arguments give equal decisions, so an interrupted run continues as it would
/// have.
pub fn decide(
    plan: &StoppingPlan,
    candidates: &[CandidatePairs],
    spent_s: f64,
    next_s: f64,
) -> Decision {
    let judging = plan.judging();
    let ratios = candidates.iter().map(|candidate| {
        let session_ratio = PairedRatio::from_pairs(&candidate.pairs, judging)?;
        let pooled = if candidate.earlier.is_empty() {
            session_ratio
        } else {
            session_ratio.continued(&candidate.earlier, &candidate.pairs)
        };
        Some(pooled.bounded(candidate.bound))
    });
    let ratios: Vec<Option<PairedRatio>> = ratios.collect();
    // Trials without a value were executed too: they count against the most.
    let executed = candidates.iter().map(|candidate| candidate.pairs.len()).min().unwrap_or(0);
    let widths: Option<Vec<f64>> =
        ratios.iter().map(|ratio| ratio.as_ref()?.half_width()).collect();
    let half_width = widths.and_then(|widths| widths.into_iter().reduce(f64::max));
    let usable = ratios.iter().map(|ratio| ratio.as_ref().map_or(0, |ratio| ratio.pairs)).min();
    let has_least = usable.unwrap_or(0) >= plan.pairs_least;
    let mut known_ratios = ratios.iter().flatten();
    let next = if has_least && known_ratios.clone().all(|ratio| plan.is_reached(ratio)) {
        NextPair::Stop(if plan.is_until_decided { Stop::Decided } else { Stop::HalfWidthReached })
    } else if has_least
        && known_ratios.all(|ratio| plan.is_reached(ratio) || plan.is_beyond_reach(ratio))
    {
        NextPair::Stop(Stop::OnlyBounds)
    } else if executed >= plan.pairs_most {
        NextPair::Stop(Stop::MostPairs)
    } else if plan.budget_s.is_some_and(|budget_s| spent_s + next_s > budget_s) {
        NextPair::Stop(Stop::BudgetSpent)
    } else {
        NextPair::Continue
    };
    Decision { next, pairs: executed.max(usable.unwrap_or(0)), half_width }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Up to twelve pairs, until the half-width is 2%.
    fn plan() -> StoppingPlan {
        StoppingPlan {
            pairs_least: 6,
            pairs_most: 12,
            half_width: Some(0.02),
            is_until_decided: false,
            comparisons: 1,
            margin: 0.03,
            budget_s: Some(1000.0),
        }
    }

    /// The pairs of a candidate without earlier sessions.
    fn candidate(pairs: Vec<(f64, f64)>) -> CandidatePairs {
        CandidatePairs { pairs, ..CandidatePairs::default() }
    }

    /// Equal sides, but for a noise above and below in turns.
    fn pairs(count: usize, noise: f64) -> CandidatePairs {
        let noises = [noise, -noise].into_iter().cycle().take(count);
        candidate(noises.map(|noise| (100.0, 100.0 * (1.0 + noise))).collect())
    }

    fn next_pair(plan: &StoppingPlan, pairs: CandidatePairs) -> NextPair {
        decide(plan, &[pairs], 0.0, 1.0).next
    }

    #[test]
    fn it_ends_where_the_plan_says() {
        for (count, noise, spent_s, next) in [
            (6, 0.001, 0.0, NextPair::Continue),
            (7, 0.001, 0.0, NextPair::Stop(Stop::HalfWidthReached)),
            (7, 0.05, 0.0, NextPair::Continue),
            (7, 0.05, 901.0, NextPair::Stop(Stop::BudgetSpent)),
            (7, 0.05, 900.0, NextPair::Continue),
            (12, 0.05, 0.0, NextPair::Stop(Stop::MostPairs)),
            (0, 0.0, 0.0, NextPair::Continue),
        ] {
            let decision = decide(&plan(), &[pairs(count, noise)], spent_s, 100.0);
            assert_eq!(decision.next, next, "{count} {noise} {spent_s}");
        }
    }

    #[test]
    fn all_candidates_must_be_narrow() {
        let decision = decide(&plan(), &[pairs(7, 0.001), pairs(7, 0.05)], 0.0, 1.0);
        assert_eq!(decision.next, NextPair::Continue);
        assert!(decision.half_width.is_some_and(|width| width > 0.02), "{decision:?}");
    }

    #[test]
    fn trials_without_a_value_do_not_make_it_endless() {
        let failed = candidate(vec![(0.0, 100.0); 12]);
        assert_eq!(decide(&plan(), &[failed], 0.0, 1.0).next, NextPair::Stop(Stop::MostPairs));
    }

    #[test]
    fn a_verdict_ends_pairs_that_are_made_until_one() {
        let plan = StoppingPlan { half_width: None, is_until_decided: true, ..plan() };
        let [one, five, six] = [1, 5, 6].map(|count| {
            candidate((0..count).map(|k| (100.0, 90.0 + f64::from(k) / 10.0)).collect())
        });
        // What earlier sessions have found counts, their pairs among the fewest.
        let continued = CandidatePairs { earlier: vec![five.pairs.clone()], ..one };
        assert_eq!(next_pair(&plan, five), NextPair::Continue);
        assert_eq!(next_pair(&plan, six), NextPair::Stop(Stop::Decided));
        assert_eq!(next_pair(&plan, pairs(8, 0.001)), NextPair::Stop(Stop::Decided));
        assert_eq!(next_pair(&plan, pairs(8, 0.05)), NextPair::Continue);
        assert_eq!(plan.judging(), Judging::Anytime);
        let decision = decide(&plan, &[continued], 0.0, 1.0);
        assert_eq!((decision.next, decision.pairs), (NextPair::Stop(Stop::Decided), 6));
    }

    #[test]
    fn a_verdict_that_ends_pairs_is_proven_among_all_comparisons() {
        let plan = StoppingPlan { half_width: None, is_until_decided: true, ..plan() };
        let counts = [1, 2, 6].map(|comparisons| {
            let plan = StoppingPlan { comparisons, ..plan };
            (6..).find(|count| {
                let pairs = (0..*count).map(|k| (100.0, 97.0 + f64::from(k % 4)));
                next_pair(&plan, candidate(pairs.collect())) != NextPair::Continue
            })
        });
        assert!(counts[0] < counts[1] && counts[1] < counts[2], "{counts:?}");
    }

    fn with_bound(bound: FigureBound, pairs: CandidatePairs) -> CandidatePairs {
        CandidatePairs { bound: Some(bound), ..pairs }
    }

    #[test]
    fn what_was_given_up_ends_pairs_that_it_can_not_decide() {
        let decided = StoppingPlan { half_width: None, is_until_decided: true, ..plan() };
        // Equal times of both that were cut off are neither equivalence nor a narrow interval.
        for bound in [FigureBound::Unknown, FigureBound::AtLeast, FigureBound::AtMost] {
            for (count, next) in [(8, NextPair::Stop(Stop::OnlyBounds)), (5, NextPair::Continue)] {
                let equal = with_bound(bound, pairs(count, 0.001));
                assert_eq!(next_pair(&plan(), equal), next, "{bound:?} {count}");
            }
        }
        let longer = candidate((0..8).map(|k| (100.0, 150.0 + f64::from(k))).collect());
        for (bound, ended) in [
            (FigureBound::AtLeast, Stop::Decided),
            (FigureBound::AtMost, Stop::OnlyBounds),
            (FigureBound::Unknown, Stop::OnlyBounds),
        ] {
            let next = next_pair(&decided, with_bound(bound, longer.clone()));
            assert_eq!(next, NextPair::Stop(ended), "{bound:?}");
        }
        // It may be proven yet, and another candidate continues.
        let noisy = candidate((0..8).map(|k| (100.0, 101.0 + 30.0 * f64::from(k % 2))).collect());
        let bounded = with_bound(FigureBound::AtLeast, noisy.clone());
        assert_eq!(next_pair(&decided, bounded), NextPair::Continue);
        let candidates = [with_bound(FigureBound::Unknown, longer), noisy];
        assert_eq!(decide(&decided, &candidates, 0.0, 1.0).next, NextPair::Continue);
    }

    #[test]
    fn a_fixed_number_of_pairs_is_judged_at_five_percent() {
        assert_eq!(level(6, 6), ALPHA);
        assert!(level(6, 20) < ALPHA && level(6, 20) <= level(10, 20));
    }
}
