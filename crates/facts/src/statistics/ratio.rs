//! The ratio of two systems from interleaved pairs of trials.
//!
//! A pair is a trial of each, one right after the other in a balanced order that chance has drawn: drifts over a
//! session meet both alike and cancel out in their ratio. The estimate is the pseudo-median of the logarithms of the
//! pairs' ratios with its exact interval ([`crate::statistics::rank`]); Student's t is shown next to it.
//!
//! A verdict has three statements. Direction: `faster` or `slower`, certain where the interval excludes 1. Size: the
//! interval. Stability: the variations of both sides, a label that vetoes nothing, since trials that vary are a finding
//! themselves. If no direction is certain, two one-sided tests (D. Schuirmann, Journal of Pharmacokinetics and
//! Biopharmaceutics 15, 1987) may prove that both are equivalent within a margin.

use crate::statistics::{
    ALPHA, Better, ConfidenceInterval, anytime, deviation, mean, normal_quantile, rank, t_p,
    t_quantile, variation,
};
use schemars::JsonSchema;
use serde::Serialize;

/// With fewer pairs there is no verdict: the signed-rank test can't reach 5%.
pub const LEAST_PAIRS: usize = 6;
/// Above this variation a side is called unstable.
pub const MOST_VARIATION: f64 = 0.05;
/// Ratios that differ from 1 by less are equivalent, where a suite says nothing.
pub const DEFAULT_MARGIN: f64 = 0.03;
/// The half-width, by a difference that is there, with which it is proven in four of five cases: 1.96 / (1.96 + 0.84).
const HALF_WIDTH_FOR_POWER: f64 = 0.7;
/// The factor by which a comparison of normal trials takes more pairs if ranks judge it: their efficiency is 3/π.
pub(crate) const RANKS_BY_T: f64 = std::f64::consts::PI / 3.0;

/// The repetition of pairs, which decides how they may be judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judging {
    /// With this chance of a false verdict: 5% when the number of pairs was fixed, less when their figures ended them
    /// ([`crate::statistics::sequential::level`]).
    Level(f64),
    /// Somebody may have looked after every pair.
    Anytime,
}

impl Judging {
    pub const FIXED: Judging = Judging::Level(ALPHA);

    /// The chance that an interval fails to hold the ratio.
    fn alpha(self) -> f64 {
        match self {
            Judging::Level(alpha) => alpha,
            Judging::Anytime => ALPHA,
        }
    }

    /// With fewer pairs there is no interval.
    pub fn least_pairs(self) -> usize {
        match self {
            Judging::Level(alpha) => rank::least_count(alpha),
            Judging::Anytime => {
                (2..).find(|pairs| anytime::reach(*pairs, ALPHA).is_some()).unwrap_or(LEAST_PAIRS)
            }
        }
    }
}

/// Candidate by baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedRatio {
    pub pairs: usize,
    /// The pseudo-median; judged at any time the geometric mean.
    pub ratio: f64,
    /// 95% interval of the ratio; `None` with too few pairs for one.
    pub interval: Option<ConfidenceInterval>,
    /// The interval for two one-sided tests: 90%, at any time 95%.
    pub one_sided: Option<ConfidenceInterval>,
    /// Two-sided p of a ratio of 1, as if 5% were the bar however the pairs were made.
    pub p: f64,
    /// The geometric mean with Student's t; `None` under two pairs.
    pub t: Option<StudentRatio>,
    /// Standard deviation of the logarithms.
    pub deviation: Option<f64>,
    pub variation_baseline: Option<f64>,
    pub variation_candidate: Option<f64>,
    /// The direction of the ratio if some figures are only bounds.
    pub bound: Option<FigureBound>,
    /// Judged at any time: by an e-process, whose intervals are wider.
    pub is_anytime: bool,
}

/// Direction of a figure that was not measured to its end, or of a result of such figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureBound {
    /// For example the time of a query that was given up.
    AtLeast,
    AtMost,
    /// Some figures are the one, some the other.
    Unknown,
}

impl FigureBound {
    pub fn from_ends([is_at_least, is_at_most]: [bool; 2]) -> Option<FigureBound> {
        match (is_at_least, is_at_most) {
            (true, true) => Some(FigureBound::Unknown),
            (true, false) => Some(FigureBound::AtLeast),
            (false, true) => Some(FigureBound::AtMost),
            (false, false) => None,
        }
    }

    /// Direction of a ratio of pairs (baseline, candidate) in which some figures are bounds: if the baseline is a lower
    /// bound, the ratio is an upper bound.
    pub fn for_ratio(
        pairs: impl IntoIterator<Item = [Option<FigureBound>; 2]>,
    ) -> Option<FigureBound> {
        let bounds = pairs
            .into_iter()
            .flat_map(|[baseline, candidate]| [baseline.map(FigureBound::turned), candidate])
            .flatten();
        let ends = bounds.fold([false; 2], |[least, most], bound| {
            [least || bound != FigureBound::AtMost, most || bound != FigureBound::AtLeast]
        });
        FigureBound::from_ends(ends)
    }

    /// The bound of a figure's reciprocal.
    fn turned(self) -> FigureBound {
        match self {
            FigureBound::AtLeast => FigureBound::AtMost,
            FigureBound::AtMost => FigureBound::AtLeast,
            FigureBound::Unknown => FigureBound::Unknown,
        }
    }

    /// The rest of the interval of figures that were taken for measured ones: one side has no end.
    pub fn widen(self, interval: ConfidenceInterval) -> ConfidenceInterval {
        ConfidenceInterval {
            low: if self == FigureBound::AtLeast { interval.low } else { 0.0 },
            high: if self == FigureBound::AtMost { interval.high } else { f64::INFINITY },
        }
    }
}

/// The opinion of Student's t.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StudentRatio {
    pub interval: ConfidenceInterval,
    pub p: f64,
}

/// The verdict of a comparison on one metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Call")]
pub enum RatioVerdict {
    Faster,
    Slower,
    /// A difference of the margin or more is excluded.
    Equivalent,
    /// No verdict: too few pairs for an interval.
    TooFewPairs,
    /// No verdict: the interval holds 1 and reaches beyond the margin.
    Undecided,
    /// No verdict: the interval excludes 1, but among the comparisons of the experiment, or because a metric before
    /// it is undecided, that proves nothing.
    Unproven,
    /// No verdict: a check found something else that can explain it.
    Explained,
}

impl RatioVerdict {
    /// Returns true if the paper says that one is faster than the other.
    pub fn is_difference(self) -> bool {
        matches!(self, RatioVerdict::Faster | RatioVerdict::Slower)
    }

    /// Returns true if the pairs prove nothing.
    pub fn is_undecided(self) -> bool {
        !self.is_difference() && self != RatioVerdict::Equivalent
    }
}

impl PairedRatio {
    /// The ratio of pairs (baseline, candidate, each with the number of its unit) that share something within their unit, such as a
    /// start of their servers: the units are what is independent, and what `pairs` counts.
    pub fn from_units(pairs: &[(u32, (f64, f64))], judging: Judging) -> Option<PairedRatio> {
        let (baselines, candidates): (Vec<f64>, Vec<f64>) =
            pairs.iter().map(|(_, pair)| *pair).unzip();
        Some(PairedRatio {
            variation_baseline: variation(&baselines),
            variation_candidate: variation(&candidates),
            ..PairedRatio::from_pairs(&unit_means(pairs), judging)?
        })
    }

    /// The ratio of pairs (baseline, candidate) with values above zero; `None` without any.
    pub fn from_pairs(pairs: &[(f64, f64)], judging: Judging) -> Option<PairedRatio> {
        let pairs = usable_pairs(pairs);
        let logs = log_ratios(&pairs);
        let alpha = judging.alpha();
        let (center, interval, one_sided, p) = match judging {
            Judging::Level(_) => (
                rank::pseudo_median(&logs)?,
                rank::pseudo_median_interval(&logs, alpha),
                rank::pseudo_median_interval(&logs, 2.0 * alpha),
                (rank::signed_rank_p(&logs) * ALPHA / alpha).min(1.0),
            ),
            Judging::Anytime => {
                let interval = anytime::interval(&logs, alpha);
                (mean(&logs)?, interval, interval, anytime::p(&logs))
            }
        };
        let (baselines, candidates): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        Some(PairedRatio {
            pairs: pairs.len(),
            ratio: center.exp(),
            interval: interval.map(ratio_interval),
            one_sided: one_sided.map(ratio_interval),
            p,
            t: student_ratio(&logs, alpha),
            deviation: deviation(&logs),
            variation_baseline: variation(&baselines),
            variation_candidate: variation(&candidates),
            bound: None,
            is_anytime: judging == Judging::Anytime,
        })
    }

    /// The ratio with earlier sessions of the comparison, judged at any time. Variations are
    /// those of these pairs: another day has another level.
    pub fn continued(self, earlier: &[Vec<(f64, f64)>], pairs: &[(f64, f64)]) -> PairedRatio {
        let sessions = earlier.iter().map(Vec::as_slice).chain([pairs]);
        let sessions: Vec<Vec<f64>> =
            sessions.map(|session| log_ratios(&usable_pairs(session))).collect();
        let Some(estimate) = anytime::joint_estimate(&sessions, ALPHA) else { return self };
        let pooled = sessions.concat();
        PairedRatio {
            pairs: pooled.len(),
            ratio: estimate.center.exp(),
            interval: estimate.interval.map(ratio_interval),
            one_sided: estimate.interval.map(ratio_interval),
            p: estimate.p,
            t: student_ratio(&pooled, ALPHA),
            deviation: deviation(&pooled),
            ..self
        }
    }

    /// The ratio for figures that were bounds: their values are taken as measured, so that the true ratio is
    /// further away, on the side of the bound. p counts in that direction alone.
    pub fn bounded(self, bound: Option<FigureBound>) -> PairedRatio {
        let Some(bound) = bound else { return self };
        let ratio = PairedRatio {
            interval: self.interval.map(|interval| bound.widen(interval)),
            one_sided: self.one_sided.map(|interval| bound.widen(interval)),
            t: None,
            deviation: None,
            bound: Some(bound),
            ..self
        };
        PairedRatio { p: if ratio.is_on_side_of_bound() { ratio.p } else { 1.0 }, ..ratio }
    }

    /// Returns true if the true ratio, which lies beyond a bound, is further from 1 than this one.
    pub(crate) fn is_on_side_of_bound(&self) -> bool {
        match self.bound {
            Some(FigureBound::AtLeast) => self.ratio > 1.0,
            Some(FigureBound::AtMost) => self.ratio < 1.0,
            Some(FigureBound::Unknown) | None => false,
        }
    }

    /// Half of the interval's width as a share of the ratio, such as 0.02.
    pub fn half_width(&self) -> Option<f64> {
        let exact = self.interval.filter(|_| self.bound.is_none());
        exact.map(|interval| (interval.high - interval.low) / (2.0 * self.ratio))
    }

    /// The verdict of this comparison alone: see [`PairedRatio::verdict_with_p`].
    pub fn verdict(&self, better: Better, margin: f64) -> RatioVerdict {
        self.verdict_with_p(better, margin, self.p)
    }

    /// The verdict with a p that was adjusted for all other comparisons ([`crate::statistics::holm`]). `margin`: ratios
    /// from 1 / (1 + margin) to 1 + margin are equivalent.
    pub fn verdict_with_p(&self, better: Better, margin: f64, adjusted_p: f64) -> RatioVerdict {
        if self.interval.is_none() || self.pairs < 2 {
            return RatioVerdict::TooFewPairs;
        }
        if adjusted_p <= ALPHA {
            return match (self.ratio > 1.0, better) {
                (true, Better::More) | (false, Better::Less) => RatioVerdict::Faster,
                (true, Better::Less) | (false, Better::More) => RatioVerdict::Slower,
            };
        }
        if self.is_equivalent(margin) { RatioVerdict::Equivalent } else { RatioVerdict::Undecided }
    }

    /// Returns true if both one-sided tests exclude a difference of the margin.
    pub fn is_equivalent(&self, margin: f64) -> bool {
        self.one_sided
            .is_some_and(|both| both.low >= 1.0 / (1.0 + margin) && both.high <= 1.0 + margin)
    }

    /// Pairs that would give this half-width with the same deviation, up to a million; `None` under two pairs.
    pub fn pairs_needed(&self, half_width: f64) -> Option<usize> {
        if self.is_anytime {
            let deviation = self.deviation?;
            return least_count(half_width, |pairs| {
                Some(anytime::reach(pairs, ALPHA)? * deviation)
            });
        }
        let t = pairs_needed(self.usual_deviation()?, half_width)?;
        Some(((t as f64 * RANKS_BY_T).ceil() as usize).max(LEAST_PAIRS))
    }

    /// Pairs with which a difference of the margin would be proven in four of five cases. What was found is not a guide
    /// if it is undecided: it is noise.
    pub fn pairs_to_decide(&self, margin: f64) -> Option<usize> {
        self.pairs_needed((margin.ln_1p() * HALF_WIDTH_FOR_POWER).sinh())
    }

    /// Pairs with which the ratio would be distinguished from `other` in four of five cases, were it what was found.
    /// `None` if it is less than a standard error away: then what was found is noise.
    pub fn pairs_to_tell_from(&self, other: f64) -> Option<usize> {
        let distance = (self.ratio / other).ln().abs();
        let error = self.usual_deviation()? / (self.pairs as f64).sqrt();
        (distance >= error)
            .then(|| self.pairs_needed((distance * HALF_WIDTH_FOR_POWER).sinh()))
            .flatten()
    }

    /// The deviation that the interval was made from: one wild trial moves it less than the deviation of all.
    fn usual_deviation(&self) -> Option<f64> {
        match self.interval {
            Some(interval) if self.pairs > LEAST_PAIRS && !self.is_anytime => {
                let reach = (interval.high / interval.low).ln() / 2.0;
                let pairs = (self.pairs as f64 / RANKS_BY_T).sqrt();
                let by_interval = reach * pairs / t_quantile(self.pairs - 1, ALPHA);
                self.deviation.map(|deviation| deviation.min(by_interval))
            }
            _ => self.deviation,
        }
    }
}

/// Pairs with which a difference that `pairs` have found with this p would be proven in four of five cases, if
/// Holm's correction has made `adjusted` of it.
pub fn pairs_to_prove(pairs: usize, p: f64, adjusted: f64, is_anytime: bool) -> usize {
    let target_p = ALPHA * p / adjusted.max(p);
    let times = if is_anytime {
        // What a bet gains grows by the same factor with each pair.
        target_p.ln() / p.ln()
    } else if p <= rank::least_p(pairs) {
        // These pairs can't show more: what is there is larger than p says.
        0.0
    } else {
        let [target, power, found] = [target_p, 0.4, p].map(|p| normal_quantile(1.0 - p / 2.0));
        ((target + power) / found).powi(2)
    };
    let min_pairs = if is_anytime { pairs } else { rank::least_count(target_p) };
    ((pairs as f64 * times).ceil() as usize).max(min_pairs)
}

fn usable_pairs(pairs: &[(f64, f64)]) -> Vec<(f64, f64)> {
    pairs.iter().copied().filter(is_usable).collect()
}

/// The logarithms of candidate by baseline.
fn log_ratios(pairs: &[(f64, f64)]) -> Vec<f64> {
    pairs.iter().map(|(baseline, candidate)| (candidate / baseline).ln()).collect()
}

fn is_usable((a, b): &(f64, f64)) -> bool {
    *a > 0.0 && *b > 0.0 && a.is_finite() && b.is_finite()
}

/// The geometric means of the usable pairs of each unit, in order; a unit without any is not a usable pair.
pub fn unit_means(pairs: &[(u32, (f64, f64))]) -> Vec<(f64, f64)> {
    let mut pairs = pairs.to_vec();
    pairs.sort_by_key(|(unit, _)| *unit);
    pairs.chunk_by(|a, b| a.0 == b.0).map(unit_mean).collect()
}

fn unit_mean(unit: &[(u32, (f64, f64))]) -> (f64, f64) {
    if let [(_, only)] = unit {
        return *only;
    }
    let usable = unit.iter().map(|(_, pair)| pair).filter(|pair| is_usable(pair));
    let (baselines, candidates): (Vec<f64>, Vec<f64>) =
        usable.map(|(baseline, candidate)| (baseline.ln(), candidate.ln())).unzip();
    (mean(&baselines).map_or(0.0, f64::exp), mean(&candidates).map_or(0.0, f64::exp))
}

fn ratio_interval(logs: ConfidenceInterval) -> ConfidenceInterval {
    ConfidenceInterval { low: logs.low.exp(), high: logs.high.exp() }
}

fn student_ratio(logs: &[f64], alpha: f64) -> Option<StudentRatio> {
    let (center, error) = (mean(logs)?, deviation(logs)? / (logs.len() as f64).sqrt());
    let freedom = logs.len() - 1;
    let reach = t_quantile(freedom, alpha) * error;
    let p = match (error > 0.0, center == 0.0) {
        (true, _) => t_p(center / error, freedom),
        (false, true) => 1.0,
        (false, false) => 0.0,
    };
    Some(StudentRatio {
        interval: ratio_interval(ConfidenceInterval { low: center - reach, high: center + reach }),
        p,
    })
}

/// Pairs that Student's t needs for a half-width when the logarithms of the pairs' ratios have this deviation (about
/// 1.41 times the variation of single trials).
pub(crate) fn pairs_needed(deviation: f64, half_width: f64) -> Option<usize> {
    least_count(half_width, |pairs| {
        Some(t_quantile(pairs - 1, ALPHA) * deviation / (pairs as f64).sqrt())
    })
}

/// The fewest pairs, up to a million, of which the logarithm `reach`es no further than this half-width.
fn least_count(half_width: f64, reach: impl Fn(usize) -> Option<f64>) -> Option<usize> {
    const MOST: usize = 1_000_000;
    if !half_width.is_finite() {
        return None;
    }
    let is_narrow = |pairs| reach(pairs).is_some_and(|reach| reach.sinh() <= half_width);
    // It shrinks with every pair: the number is between the last power of two that is too small and the next.
    let mut high = 2;
    while !is_narrow(high) {
        high *= 2;
        if high > MOST {
            return None;
        }
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if is_narrow(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constant_ratio(count: usize, ratio: f64) -> PairedRatio {
        let pairs: Vec<(f64, f64)> = (0..count)
            .map(|k| (100.0 + k as f64 / 10.0, ratio * 100.0 - k as f64 / 10.0))
            .collect();
        PairedRatio::from_pairs(&pairs, Judging::FIXED).expect("pairs")
    }

    #[test]
    fn under_six_pairs_there_is_no_interval_and_no_verdict() {
        assert_eq!(PairedRatio::from_pairs(&[], Judging::FIXED), None);
        assert_eq!(PairedRatio::from_pairs(&[(0.0, 1.0), (1.0, f64::NAN)], Judging::FIXED), None);
        let single = constant_ratio(1, 1.5);
        assert_eq!((single.interval, single.t, single.half_width()), (None, None, None));
        let five = constant_ratio(5, 1.5);
        assert_eq!(five.verdict(Better::More, DEFAULT_MARGIN), RatioVerdict::TooFewPairs);
        assert!(five.t.is_some());
        assert_eq!(
            constant_ratio(6, 1.5).verdict(Better::More, DEFAULT_MARGIN),
            RatioVerdict::Faster
        );
    }

    #[test]
    fn more_throughput_and_less_time_are_faster() {
        for (ratio, better, verdict) in [
            (1.1, Better::More, RatioVerdict::Faster),
            (1.1, Better::Less, RatioVerdict::Slower),
            (0.9, Better::Less, RatioVerdict::Faster),
            (0.9, Better::More, RatioVerdict::Slower),
        ] {
            assert_eq!(constant_ratio(6, ratio).verdict(better, DEFAULT_MARGIN), verdict);
        }
    }

    #[test]
    fn figures_that_were_cut_off_prove_one_side_only() {
        for (ratio, bound, verdict) in [
            // Times of a candidate that was given up: it is slower at least.
            (1.2, FigureBound::AtLeast, RatioVerdict::Slower),
            (0.8, FigureBound::AtLeast, RatioVerdict::Undecided),
            (0.8, FigureBound::AtMost, RatioVerdict::Faster),
            (1.2, FigureBound::AtMost, RatioVerdict::Undecided),
            (1.2, FigureBound::Unknown, RatioVerdict::Undecided),
            // Nor is it equivalent.
            (1.0, FigureBound::AtLeast, RatioVerdict::Undecided),
        ] {
            let bounded = constant_ratio(6, ratio).bounded(Some(bound));
            assert_eq!(bounded.verdict(Better::Less, DEFAULT_MARGIN), verdict, "{ratio} {bound:?}");
        }
        let bounded = constant_ratio(8, 1.2).bounded(Some(FigureBound::AtLeast));
        let interval = bounded.interval.expect("eight pairs");
        assert!(interval.low > 1.1 && interval.high.is_infinite());
        assert_eq!((bounded.half_width(), bounded.pairs_to_decide(0.03)), (None, None));
        assert_eq!(constant_ratio(6, 1.2).bounded(None), constant_ratio(6, 1.2));
    }

    #[test]
    fn equivalence_is_proven_by_the_place_of_the_interval() {
        let noise = [0.004, -0.003, 0.001, -0.002, 0.002, -0.004, 0.003, -0.001];
        let [equal, faster] = [1.0, 1.029].map(|center| {
            let pairs = noise.map(|noise| (100.0, 100.0 * (center + noise)));
            PairedRatio::from_pairs(&pairs, Judging::FIXED).expect("pairs")
        });
        assert_eq!(equal.verdict(Better::More, 0.03), RatioVerdict::Equivalent);
        assert_eq!(equal.verdict(Better::More, 0.002), RatioVerdict::Undecided);
        // As narrow, but not around 1: the direction is certain, and without it nothing would be.
        assert_eq!(faster.verdict_with_p(Better::More, 0.03, 0.2), RatioVerdict::Undecided);
        assert_eq!(faster.verdict(Better::More, 0.03), RatioVerdict::Faster);
    }

    #[test]
    fn trials_that_vary_take_no_certainty_away() {
        let pairs = [10.0, 14.0, 7.0, 11.0, 9.0, 13.0].map(|slow| (100.0, slow));
        let ratio = PairedRatio::from_pairs(&pairs, Judging::FIXED).expect("pairs");
        assert!(ratio.variation_candidate.is_some_and(|share| share > 0.2));
        assert_eq!(ratio.verdict(Better::More, DEFAULT_MARGIN), RatioVerdict::Slower);
        assert!(ratio.interval.is_some_and(|both| both.high < 0.15), "{ratio:?}");
    }

    #[test]
    fn pairs_of_a_start_count_as_one() {
        let pairs: Vec<(u32, (f64, f64))> = (0..6)
            .flat_map(|unit| [(unit, (100.0, 100.0 * (1.0 + 0.01 * f64::from(unit)))); 3])
            .collect();
        let ratio = PairedRatio::from_units(&pairs, Judging::FIXED).expect("pairs");
        assert_eq!(ratio.pairs, 6);
        assert!(ratio.variation_candidate.is_some_and(|share| share > 0.0));
        let mut gaps = pairs.clone();
        gaps[1].1.1 = 0.0;
        gaps.extend([(6, (0.0, 1.0)), (6, (1.0, f64::NAN))]);
        let means = unit_means(&gaps);
        assert_eq!(means.len(), 7);
        assert!((means[0].1 - 100.0).abs() < 1e-9 && means[6] == (0.0, 0.0), "{means:?}");
        assert_eq!(PairedRatio::from_units(&gaps, Judging::FIXED).expect("pairs").pairs, 6);
        assert_eq!(unit_means(&[(0, (1.1, 2.2)), (1, (3.3, 0.0))]), [(1.1, 2.2), (3.3, 0.0)]);
    }

    #[test]
    fn variation_is_that_of_trials_even_if_starts_are_judged() {
        // Every start has the same mean: only the trials within it differ.
        let pairs: Vec<(u32, (f64, f64))> =
            (0..6).flat_map(|unit| [(unit, (90.0, 80.0)), (unit, (110.0, 120.0))]).collect();
        let ratio = PairedRatio::from_units(&pairs, Judging::FIXED).expect("pairs");
        let deviation = (12.0_f64 / 11.0).sqrt();
        for (variation, expected) in
            [(ratio.variation_baseline, 0.1), (ratio.variation_candidate, 0.2)]
        {
            let share = variation.expect("pairs") / deviation;
            assert!((share / expected - 1.0).abs() < 1e-9, "{ratio:?}");
        }
    }

    #[test]
    fn six_pairs_are_too_few_to_discount_a_wild_one() {
        // The interval of six pairs is their whole range, which says nothing about the usual deviation.
        let pairs = [110.0, 90.0, 110.0, 90.0, 110.0, 90.0].map(|candidate| (100.0, candidate));
        let ratio = PairedRatio::from_pairs(&pairs, Judging::FIXED).expect("pairs");
        assert_eq!(ratio.usual_deviation(), ratio.deviation);
    }

    #[test]
    fn a_stricter_level_needs_more_pairs_and_wider_intervals() {
        let pairs: Vec<(f64, f64)> =
            (0..10).map(|k| (100.0, 102.0 + (f64::from(k) * 2.4).sin())).collect();
        let [fixed, strict, anytime] = [Judging::FIXED, Judging::Level(0.02), Judging::Anytime]
            .map(|judging| PairedRatio::from_pairs(&pairs, judging).expect("pairs"));
        assert!(strict.half_width() > fixed.half_width());
        assert!((strict.p - 2.5 * fixed.p).abs() < 1e-12);
        assert!(anytime.half_width() > strict.half_width());
        assert_eq!(
            PairedRatio::from_pairs(&pairs[..6], Judging::Level(0.02)).expect("pairs").interval,
            None
        );
    }

    #[test]
    fn pairs_needed_are_those_that_were_computed_before() {
        // Variation of single trials, wanted half-width, pairs.
        for (variation, half_width, pairs) in
            [(0.01, 0.02, 5), (0.02, 0.02, 11), (0.037, 0.02, 29), (0.037, 0.05, 7)]
        {
            let needed = pairs_needed(variation * 2.0_f64.sqrt(), half_width);
            assert_eq!(needed, Some(pairs), "{variation} {half_width}");
        }
        assert_eq!(pairs_needed(0.0, 0.02), Some(2));
        assert_eq!(pairs_needed(1e9, 0.02), None);
    }

    #[test]
    fn what_is_undecided_says_how_many_pairs_would_decide_it() {
        let pairs: Vec<(f64, f64)> =
            (0..6).map(|k| (100.0, 101.0 + 4.0 * (f64::from(k) * 2.4).sin())).collect();
        let ratio = PairedRatio::from_pairs(&pairs, Judging::FIXED).expect("pairs");
        assert_eq!(ratio.verdict(Better::More, 0.03), RatioVerdict::Undecided);
        let needed = ratio.pairs_to_decide(0.03).expect("pairs");
        assert!((7..60).contains(&needed), "{needed}");
    }
}
