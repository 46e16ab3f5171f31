//! Verdicts of a paper: which target is faster, gates, scaling and steadiness.

use super::*;
pub use dyno_facts::statistics::ConfidenceInterval as Bounds;
pub use dyno_facts::statistics::levels::Allocation as LevelNumbers;
pub use dyno_facts::statistics::ratio::RatioVerdict as Call;
pub use dyno_facts::statistics::steady::{LevelShift as LevelChange, Stall, WarmUp};

/// Two targets held against each other at one load level.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PairedComparison {
    /// Number in this paper, from 1.
    pub number: usize,
    /// Its name as a place of findings, the same in all languages: experiment, level, both targets.
    pub name: String,
    /// Name of the experiment.
    pub experiment: String,
    pub title: Message,
    /// Number of the experiment in the paper, from 0.
    pub experiment_index: usize,
    /// The load level in words: `8 workers`.
    pub level: Message,
    /// Label of the target that ratios are taken to.
    pub baseline: String,
    /// Label of the target whose ratios are told.
    pub candidate: String,
    /// Set if both are the same system: what is found is noise.
    pub is_aa: bool,
    /// The duplicated part of the system, if it is compared with itself.
    pub aa: AaKind,
    /// Pairs that share a start of their servers or a load of their data, and so count as one.
    pub unit_pairs: u32,
    /// Variation that starts, loads and pairs add to ratios; `None` if nothing is renewed.
    pub levels: Option<RepetitionLevels>,
    /// Order of the trials of both.
    pub order: PairOrder,
    /// Labels of the trials of each pair, baseline first.
    pub pairs: Vec<[String; 2]>,
    /// Pairs of which a trial was made, but not both count.
    pub pairs_lost: usize,
    /// The sessions whose pairs count, its own the last; none where it is one session alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionRow>,
    /// When the suite ends the repetition; nothing where it says nothing.
    pub stop: StopRule,
    /// Ratios that differ from 1 by less are equivalent: 0.03.
    pub margin: f64,
    /// Per metric; the one that decides first.
    pub rows: Vec<VerdictRow>,
    /// The decision in a sentence, and the state of the first row if the sentence is about another one.
    pub sentence: Message,
    /// Reason why no pair counts; empty if one does.
    pub no_pair: Message,
    /// Numbers of the checks that found something in it or in its trials.
    pub checks: Vec<usize>,
    /// Findings that take verdicts away.
    pub vetoes: Vec<Veto>,
}

/// A finding in a comparison that can explain a difference by itself.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Veto {
    pub check: &'static str,
    pub found: Message,
    pub reach: VetoReach,
}

/// Largest effect on a ratio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VetoReach {
    #[default]
    AnyFar,
    /// The side that was held up can be better than its ratio says, by this factor as a logarithm: the candidate where
    /// it is positive, the baseline where it is negative. Percentiles and the longest times any far. What a
    /// transaction costs to either side: what others took may be work of a server that was not counted as its own.
    HeldUp(f64),
    /// By what the pairs of some trials can: see [`VerdictRow::withstood`].
    Pairs,
    /// Costs of a transaction without bound, and nothing else.
    Costs,
}

impl VetoReach {
    /// Returns true if it can have moved ratios of this metric at all.
    pub fn touches(self, metric: Metric) -> bool {
        self != VetoReach::Costs || metric.is_cost()
    }

    /// The interval of a ratio, moved so far as it reaches; `None` if that may be anywhere. `withstood`: that of the
    /// verdict on the same ratio.
    pub fn moved(
        self,
        metric: Metric,
        interval: Option<Bounds>,
        withstood: Option<Bounds>,
    ) -> Option<(f64, f64)> {
        match (self, interval) {
            (VetoReach::HeldUp(log), Some(interval)) => Some(move_held_up(log, metric, interval)),
            (VetoReach::Pairs, _) => withstood.map(|interval| (interval.low, interval.high)),
            _ => None,
        }
    }
}

fn move_held_up(log: f64, metric: Metric, interval: Bounds) -> (f64, f64) {
    let is_tail = metric.percentile().is_some() || metric == Metric::MaxMs;
    let factor = if is_tail { f64::INFINITY } else { log.abs().exp() };
    let is_candidate_better = log > 0.0;
    let is_either_side = metric.is_cost();
    let goes_up = is_either_side || is_candidate_better == (metric.better() == Better::More);
    let goes_down = is_either_side || !goes_up;
    let low = if goes_down { interval.low / factor } else { interval.low };
    let high = if goes_up { interval.high * factor } else { interval.high };
    (low, high)
}

/// One session of a comparison that continued over several runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SessionRow {
    /// Its run folder.
    pub folder: String,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// The load generator's: host, CPU, kernel.
    pub machine: String,
    /// Products and versions of both servers.
    pub versions: String,
    /// The version of dyno.
    pub dyno: String,
    /// By the metric that decides.
    pub pairs: usize,
    /// Geometric mean over them.
    pub ratio: Option<f64>,
}

/// The judgment of pairs that this rule has ended; as many as a `unit` has count as one.
pub fn judging(stop: StopRule, unit: u32) -> Judging {
    let units = [stop.pairs_least, stop.pairs_most].map(|pairs| (pairs / unit) as usize);
    sequential::judging(stop.is_until_decided, stop.half_width.is_some(), units)
}

impl PairedComparison {
    /// Pairs of earlier sessions, by the metric that decides.
    pub(crate) fn pairs_earlier(&self) -> usize {
        let earlier = self.sessions.len().saturating_sub(1);
        self.sessions[..earlier].iter().map(|session| session.pairs).sum()
    }

    /// Returns the verdict of the deciding metric, or too few pairs without a pair. Concurrent trials have no
    /// throughput to compare: they are slower if any metric is.
    pub fn call(&self) -> Call {
        let slower = self.rows.iter().map(|row| row.call).find(|call| *call == Call::Slower);
        let slower = slower.filter(|_| self.order == PairOrder::Together);
        slower.or(self.rows.first().map(|row| row.call)).unwrap_or(Call::TooFewPairs)
    }

    /// Number of pairs of all sessions, including those that lack a figure.
    pub(crate) fn pairs_made(&self) -> usize {
        self.pairs.len() + self.pairs_earlier()
    }

    /// Findings that can take away the verdict of the deciding metric.
    pub fn deciding_vetoes(&self) -> impl Iterator<Item = &Veto> {
        let touches =
            move |veto: &&Veto| self.rows.first().is_none_or(|row| veto.reach.touches(row.metric));
        self.vetoes.iter().filter(touches)
    }

    /// The ones among them that no number of pairs outweighs.
    pub(crate) fn final_vetoes(&self) -> impl Iterator<Item = &Veto> {
        self.deciding_vetoes().filter(|veto| veto.reach == VetoReach::AnyFar)
    }

    /// The judgment of its pairs, by how they were ended.
    pub fn judging(&self) -> Judging {
        judging(self.stop, self.unit_pairs)
    }

    /// With fewer pairs nothing can be decided.
    pub fn least_pairs(&self) -> usize {
        self.judging().least_pairs() * self.unit_pairs as usize
    }

    /// Returns true if machine, servers or dyno were not the same in all sessions.
    pub(crate) fn has_unlike_sessions(&self) -> bool {
        self.sessions.windows(2).any(|pair| {
            let [a, b] = [&pair[0], &pair[1]].map(|row| (&row.machine, &row.versions, &row.dyno));
            a != b
        })
    }

    /// Returns true if something was found in it, in one of its trials or in its targets.
    pub fn has(&self, place: &Spot) -> bool {
        let sides = [&self.baseline, &self.candidate];
        match place.kind {
            SpotKind::Trial => self.pairs.iter().flatten().any(|label| place.names.contains(label)),
            SpotKind::Target => place.names.iter().all(|name| sides.contains(&name)),
            SpotKind::Experiment => *place == SpotKind::Experiment.at(&self.experiment),
            SpotKind::Comparison => *place == SpotKind::Comparison.at(&self.name),
            SpotKind::Run => false,
        }
    }

    /// Rows in the order of reports: differences first, then equivalence, then what is undecided; else by their place.
    pub(crate) fn rows_by_decision(&self) -> Vec<&VerdictRow> {
        let mut rows: Vec<&VerdictRow> = self.rows.iter().collect();
        rows.sort_by_key(|row| (row.call.is_undecided(), !row.call.is_difference()));
        rows
    }
}

/// The duplicated part of a system that is compared with itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AaKind {
    /// Nothing but the trials.
    Trials,
    /// Starts of its servers.
    Starts,
    /// Servers and data.
    Clone,
}

/// Variation of the ratios of pairs, level by level, and the effort for a half-width.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RepetitionLevels {
    /// From pairs outwards.
    pub levels: Vec<RepetitionLevel>,
    /// Units: of the outermost level.
    pub units: usize,
    pub half_width: f64,
    /// With the numbers of this run; `None` where too few units tell what levels add.
    pub as_made: Option<LevelNumbers>,
    pub cheapest: Option<LevelNumbers>,
    pub words: Message,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RepetitionLevel {
    pub name: Message,
    /// Standard deviation that it adds to the logarithm of the ratio; `None` if that can't be told.
    pub deviation: Option<f64>,
    /// Seconds of one, both targets together.
    pub seconds: f64,
}

/// Order of the trials of two targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PairOrder {
    /// Pair after pair: what drifts meets both alike.
    Interleaved,
    /// All trials of one before those of the other, or in different runs: drift looks like a
    /// difference.
    Blocks,
    /// Concurrent trials with the same arrivals.
    Together,
}

/// One metric of two targets.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VerdictRow {
    /// Its name in gates, CSV and JSON: `tps`.
    #[schemars(with = "String")]
    pub metric: Metric,
    pub name: Message,
    /// Set for times, of which less is better.
    pub is_less_better: bool,
    /// The baseline's trials of the pairs.
    pub baseline: Spread,
    pub candidate: Spread,
    /// Pairs in which both have a value.
    pub pairs: usize,
    /// Units of the statistics: pairs, or starts and loads of several pairs.
    pub units: usize,
    /// Candidate by baseline: pseudo-median (Hodges-Lehmann) over the pairs.
    pub ratio: f64,
    /// `≥` or `≤` where figures of one side are only bounds, as of a query that was given up; empty otherwise.
    pub bound: &'static str,
    /// 95% interval of the ratio (Wilcoxon's); `None` under six pairs.
    pub interval: Option<Bounds>,
    /// The interval whatever the pairs in which dyno was stopped would have shown; `None` if there is none, and if they
    /// alone may have made the difference.
    #[serde(skip)]
    pub(crate) withstood: Option<Bounds>,
    /// Half of the interval's width, as a share of the ratio.
    pub half_width: Option<f64>,
    /// 95% interval of the geometric mean (Student's t on the logarithms); `None` under two pairs.
    pub interval_t: Option<Bounds>,
    /// Two-sided p of a ratio of 1 by Wilcoxon's signed-rank test.
    pub p: f64,
    /// p after Holm's correction for the experiment's comparisons, and not below that of the metrics before.
    pub p_adjusted: Option<f64>,
    /// Two-sided p by Student's t.
    pub p_t: Option<f64>,
    /// Standard deviation of the baseline's trials as a share of their mean.
    pub variation_baseline: Option<f64>,
    /// Standard deviation of the candidate's trials as a share of their mean.
    pub variation_candidate: Option<f64>,
    /// The largest difference that the same system shows to itself (A/A), if that was measured.
    pub noise_floor: Option<f64>,
    /// Pairs that would decide it, or would give the wanted half-width, if the trials vary as they did.
    pub pairs_needed: Option<usize>,
    /// Set if two one-sided tests exclude a difference of the margin; a difference may be certain all the same.
    pub is_equivalent: bool,
    pub call: Call,
    pub words: Message,
}

/// Decision of a gate on one metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateResult {
    Pass,
    /// Neither is proven.
    #[default]
    Inconclusive,
    /// Is proven not to be kept.
    Broken,
}

impl GateResult {
    /// The exit code of dyno: 0, 3 or 5.
    pub fn exit_code(self) -> u8 {
        match self {
            GateResult::Pass => 0,
            GateResult::Inconclusive => 3,
            GateResult::Broken => 5,
        }
    }
}

/// A gate at one load level, of a target or of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct GateRow {
    pub gate: String,
    /// Heading of the experiment.
    pub title: Message,
    pub level: Message,
    /// Label of the target; of a ratio both, candidate first: `new / old`.
    pub target: String,
    /// Set if the figure is a ratio.
    pub is_ratio: bool,
    /// Number of the comparison whose ratio it is.
    pub comparison: Option<usize>,
    /// The figure; `None` if there is none.
    pub value: Option<f64>,
    /// Its 95% interval.
    pub interval: Option<Bounds>,
    /// Trials or pairs it rests on.
    pub count: usize,
    /// Number that would decide it, if it is inconclusive.
    pub needed: Option<usize>,
    pub result: GateResult,
    /// Reason in a sentence; empty if the figures say it.
    pub why: Message,
}

/// A target at several load levels: throughput that falls with more workers.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    pub title: Message,
    pub target: String,
    /// The fewest and the most workers measured.
    pub workers: [f64; 2],
    /// The number of workers with the most throughput, where trials prove that more of them do less.
    pub peak: Option<f64>,
    /// Its meaning in a sentence.
    pub words: Message,
}

/// Steadiness of a target in the window of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct SteadyRow {
    pub trial: String,
    pub target: String,
    pub experiment: String,
    /// Set if the three below found nothing to remark; `None` if they had too few intervals to tell.
    pub is_steady: Option<bool>,
    /// Median commits per second of its intervals.
    pub median_per_s: f64,
    /// `None` if the window has too few intervals.
    pub warm_up: Option<WarmUp>,
    /// Times at which the level changed for good.
    pub changes: Vec<LevelChange>,
    /// Seconds below half of the median, with what the server did or had done to it at that time.
    pub stalls: Vec<(Stall, Vec<Message>)>,
}

impl Judgment {
    /// Returns the comparisons for the cover: those of a system with itself only if no others exist, and none between different
    /// node classes.
    pub fn cover_comparisons(&self) -> Vec<&PairedComparison> {
        let class_checks = self.checks.iter().filter(|check| check.id == "node-class");
        let class_checks: Vec<usize> = class_checks.map(|check| check.number).collect();
        let is_aa_only = self.verdicts.comparisons.iter().all(|comparison| comparison.is_aa);
        let mut comparisons: Vec<&PairedComparison> = self.verdicts.comparisons.iter().collect();
        comparisons.retain(|comparison| {
            let is_like = !comparison.checks.iter().any(|number| class_checks.contains(number));
            is_like && (!comparison.is_aa || is_aa_only)
        });
        comparisons
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tests::{comparison, row};

    fn is_near(result: Option<(f64, f64)>, low: f64, high: f64) -> bool {
        let (found_low, found_high) = result.expect("an interval");
        (found_low - low).abs() < 1e-12 && (found_high == high || (found_high - high).abs() < 1e-12)
    }

    #[test]
    fn intervals_move_to_the_side_of_what_was_held_up() {
        let interval = Some(Bounds { low: 0.5, high: 2.0 });
        let moved = |log: f64, metric| VetoReach::HeldUp(log).moved(metric, interval, None);
        let twice = 2.0_f64.ln();
        // A candidate that was held up does more than its ratio says, and in less time.
        assert!(is_near(moved(twice, Metric::Tps), 0.5, 4.0));
        assert!(is_near(moved(-twice, Metric::Tps), 0.25, 2.0));
        assert!(is_near(moved(twice, Metric::MeanMs), 0.25, 2.0));
        assert!(is_near(moved(-twice, Metric::MeanMs), 0.5, 4.0));
        assert!(is_near(moved(twice, Metric::P99Ms), 0.0, 2.0), "percentiles any far");
        assert!(is_near(moved(-twice, Metric::MaxMs), 0.5, f64::INFINITY));
        for log in [twice, -twice] {
            assert!(is_near(moved(log, Metric::ServerCpuUs), 0.25, 4.0), "costs to either side");
        }
    }

    #[test]
    fn a_reach_may_be_any_far() {
        let interval = Some(Bounds { low: 0.5, high: 2.0 });
        let withstood = Some(Bounds { low: 0.4, high: 2.1 });
        let reaches = [VetoReach::AnyFar, VetoReach::Costs, VetoReach::Pairs];
        let moved = reaches.map(|reach| reach.moved(Metric::Tps, interval, withstood));
        assert_eq!(moved, [None, None, Some((0.4, 2.1))]);
        assert_eq!(VetoReach::Pairs.moved(Metric::Tps, interval, None), None);
        assert_eq!(VetoReach::HeldUp(1.0).moved(Metric::Tps, None, withstood), None);
        let touched =
            [Metric::Tps, Metric::ServerCpuUs].map(|metric| VetoReach::Costs.touches(metric));
        assert_eq!(touched, [false, true]);
        assert!(VetoReach::AnyFar.touches(Metric::Tps));
    }

    fn make_session(pairs: usize, dyno: &str) -> SessionRow {
        SessionRow {
            folder: String::new(),
            started_at: String::new(),
            machine: "m".to_owned(),
            versions: "v".to_owned(),
            dyno: dyno.to_owned(),
            pairs,
            ratio: None,
        }
    }

    #[test]
    fn pairs_of_earlier_sessions_are_all_but_the_last() {
        let mut case = comparison(Vec::new());
        assert_eq!((case.pairs_earlier(), case.has_unlike_sessions()), (0, false));
        case.sessions = vec![make_session(3, "1"), make_session(4, "1"), make_session(8, "1")];
        assert_eq!((case.pairs_earlier(), case.has_unlike_sessions()), (7, false));
        case.sessions[2].dyno = "2".to_owned();
        assert!(case.has_unlike_sessions());
    }

    #[test]
    fn units_of_several_pairs_need_as_many_more() {
        let mut case = comparison(Vec::new());
        assert_eq!(case.least_pairs(), 6);
        case.unit_pairs = 3;
        assert_eq!(case.least_pairs(), 18);
        (case.stop.half_width, case.stop.pairs_least, case.stop.pairs_most) = (Some(0.02), 18, 60);
        assert_eq!(case.judging(), Judging::Level(0.025));
        (case.stop.pairs_least, case.stop.pairs_most) = (18, 30);
        assert_eq!(case.judging(), Judging::Level(0.032));
        case.stop.is_until_decided = true;
        assert_eq!(case.judging(), Judging::Anytime);
    }

    fn has_spot(kind: SpotKind, names: &[&str]) -> bool {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        comparison(Vec::new()).has(&Spot { kind, names })
    }

    #[test]
    fn a_comparison_has_its_trials_its_targets_and_its_names() {
        assert!(has_spot(SpotKind::Trial, &["16"]) && has_spot(SpotKind::Trial, &["99", "1"]));
        assert!(!has_spot(SpotKind::Trial, &["17"]));
        assert!(has_spot(SpotKind::Target, &["a"]) && has_spot(SpotKind::Target, &["b", "a"]));
        assert!(!has_spot(SpotKind::Target, &["a", "c"]));
        assert!(has_spot(SpotKind::Experiment, &["x"]) && !has_spot(SpotKind::Experiment, &["y"]));
        assert!(has_spot(SpotKind::Comparison, &["x 8 workers: b / a"]));
        assert!(!has_spot(SpotKind::Comparison, &["x"]) && !has_spot(SpotKind::Run, &["x"]));
    }

    #[test]
    fn differences_are_told_first_and_what_is_undecided_last() {
        let calls = [
            (Metric::Tps, Call::Undecided),
            (Metric::P95Ms, Call::Equivalent),
            (Metric::P99Ms, Call::Slower),
            (Metric::ServerCpuUs, Call::Faster),
        ];
        let rows = calls.map(|(metric, call)| VerdictRow { call, ..row(metric) });
        let case = comparison(rows.to_vec());
        let metrics: Vec<_> = case.rows_by_decision().into_iter().map(|row| row.metric).collect();
        assert_eq!(metrics, [Metric::P99Ms, Metric::ServerCpuUs, Metric::P95Ms, Metric::Tps]);
    }

    #[test]
    fn vetoes_of_costs_do_not_decide_what_throughput_does() {
        for (metric, counts) in [(Metric::Tps, [2, 1]), (Metric::ServerCpuUs, [3, 1])] {
            let mut case = comparison(vec![row(metric)]);
            let reaches = [VetoReach::Costs, VetoReach::AnyFar, VetoReach::Pairs];
            let vetoes = reaches.map(|reach| Veto { check: "c", found: Message::default(), reach });
            case.vetoes = vetoes.to_vec();
            assert_eq!([case.deciding_vetoes().count(), case.final_vetoes().count()], counts);
        }
    }

    #[test]
    fn exit_codes_of_gates_are_those_of_the_manual() {
        let results = [GateResult::Pass, GateResult::Inconclusive, GateResult::Broken];
        assert_eq!(results.map(GateResult::exit_code), [0, 3, 5]);
        assert!(results.is_sorted(), "the worst is the greatest");
    }
}
