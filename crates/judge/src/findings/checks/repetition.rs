//! C: repetition and statistics.

use super::*;

/// The variation of fewer trials says little.
const MIN_REPEATS: usize = 3;
/// Checks that find what makes the trials of a steady system vary: at the load generator, or by the work of others.
const DISTURBANCES: [&str; 11] = [
    "foreign-load",
    "generator-starved",
    "generator-stopped",
    "run-delay",
    "steal",
    "suspended",
    "throttled",
    "uneven-background",
    "uneven-foreign-cpu",
    "uneven-foreign-cpu-secondary",
    "uneven-foreign-load",
];

/// Checks that find what may make trials vary, and is not a disturbance from outside.
const STRAINS: [&str; 2] = ["hiccups", "shared-cpu"];

pub(super) const RULES: &[Rule] = &[
    Rule::comparison(Group::C, Level::E, checks::aa_differs, |comparison| {
        comparison.is_aa.then(|| metrics(comparison, |row| row.call.is_difference()))?
    }),
    Rule::comparison(Group::C, Level::W, checks::few_pairs, few_pairs),
    Rule::comparison(Group::C, Level::W, checks::pairs_missing, pairs_missing),
    Rule::comparison(Group::C, Level::E, checks::block_order, |comparison| {
        let is_in_blocks = comparison.order == PairOrder::Blocks && comparison.pairs.len() > 1;
        is_in_blocks.then(|| say!(one_after_the_other))
    }),
    Rule::comparison(Group::C, Level::W, checks::noise_floor, noise_floor),
    Rule::case(Group::C, Level::W, checks::variation, find_variations),
    Rule::case(Group::C, Level::W, checks::peak_not_rerun, peak_not_rerun),
    Rule::comparison(Group::C, Level::I, checks::half_width, half_width),
    Rule::comparison(Group::C, Level::I, checks::many_metrics, lost_to_holm),
    Rule::experiment(Group::C, Level::I, checks::few_repeats, |experiment| {
        // Steps of a search are not repeated; what it found is.
        let points = experiment.points.iter().filter(|point| point.purpose != Purpose::Search);
        let fewest = points.map(|point| point.repeats).min()?;
        (fewest < LEAST_PAIRS).then(|| say!(trials_per_point, n = fewest))
    }),
    Rule::case(Group::C, Level::W, checks::trials_depend, |case| {
        each_session(case, |session| {
            let mark = history::lag1(&session.figures(), session.seed())?;
            let size = Message::verbatim(format!("{:.2}", mark.size));
            session.describe_mark(mark, |n, p| say!(successive_trials_correlate, r = size, n, p))
        })
    }),
    Rule::case(Group::C, Level::W, checks::session_drifts, |case| {
        each_session(case, |session| {
            let mark = relevant_mark(history::drift(&session.figures(), session.seed()))?;
            let change = signed_percent(mark.size);
            session.describe_mark(mark, |n, p| say!(first_to_last_trial, change, n, p))
        })
    }),
    Rule::case(Group::C, Level::W, checks::second_of_pair, |case| {
        each_session(case, |session| {
            let pairs = session.pairs(case.verdicts);
            let mark = relevant_mark(history::second_of_pair(&pairs, session.seed()))?;
            let change = signed_percent(mark.size);
            session.describe_mark(mark, |n, p| say!(second_beside_first, change, n, p))
        })
    }),
    Rule::case(Group::C, Level::E, checks::uneven_foreign_load, |case| {
        each_comparison(case, |comparison| {
            Some((uneven_load(case.evidence, comparison)?, VetoReach::AnyFar))
        })
    }),
    Rule::case(Group::C, Level::E, checks::uneven_background, |case| {
        each_comparison(case, |comparison| {
            Some((uneven_background(case.evidence, comparison)?, VetoReach::AnyFar))
        })
    }),
    Rule::case(Group::C, Level::E, checks::uneven_foreign_cpu, |case| uneven_cpu(case, true)),
    Rule::case(Group::C, Level::W, checks::uneven_foreign_cpu_secondary, |case| {
        uneven_cpu(case, false)
    }),
];

/// The metrics of a comparison that `is_found`, in words.
fn metrics(
    comparison: &PairedComparison,
    is_found: impl Fn(&VerdictRow) -> bool,
) -> Option<Message> {
    list(comparison.rows.iter().filter(|row| is_found(row)).map(|row| row.name.clone()))
}

fn few_pairs(comparison: &PairedComparison) -> Option<Message> {
    let min_pairs = (comparison.stop.pairs_least as usize).max(comparison.least_pairs());
    let pairs = comparison.pairs_made();
    (pairs < min_pairs).then(|| say!(pairs_of_least_pairs, pairs, least = min_pairs))
}

fn pairs_missing(comparison: &PairedComparison) -> Option<Message> {
    let n = comparison.pairs_lost;
    let lost_pairs = (n > 0).then(|| say!(pairs_without_a_trial, n));
    let pairs = comparison.pairs_made();
    let incomplete_rows = comparison.rows.iter().filter(|row| row.pairs < pairs);
    let unknown_pairs = incomplete_rows.map(|row| {
        say!(pairs_without_a_figure, metric = &row.name, n = pairs - row.pairs, all = pairs)
    });
    parts(lost_pairs.into_iter().chain(unknown_pairs))
}

fn half_width(comparison: &PairedComparison) -> Option<Message> {
    let (row, goal) = (comparison.rows.first()?, comparison.stop.half_width?);
    let half_width = row.half_width.filter(|half_width| *half_width > goal)?;
    let (reached, wanted) = (percent(half_width), percent(goal));
    Some(match row.pairs_needed {
        Some(pairs) => say!(instead_of_pairs_would_do, reached, wanted, pairs),
        None => say!(reached_instead_of_wanted, reached, wanted),
    })
}

fn noise_floor(comparison: &PairedComparison) -> Option<Message> {
    let noise = comparison.rows.iter().filter(|row| {
        !comparison.is_aa
            && row.call.is_difference()
            && row.noise_floor.is_some_and(|share| is_below_noise(row.ratio, share))
    });
    parts(noise.map(|row| {
        say!(
            ratio_below_noise_floor,
            metric = &row.name,
            ratio = format!("{:.3}", row.ratio),
            floor = percent(row.noise_floor.unwrap_or_default())
        )
    }))
}

/// Differences that each would be one alone, and are none among all that is judged.
fn lost_to_holm(comparison: &PairedComparison) -> Option<Message> {
    metrics(comparison, |row| row.p <= ALPHA && row.p_adjusted.is_some_and(|p| p > ALPHA))
}

/// A check that has found what may make trials vary, and the trials that it concerns.
type Disturbance = (&'static str, Vec<String>);

fn find_variations(case: &Case<'_>) -> Vec<Finding> {
    let disturbances = DISTURBANCES.iter().chain(&STRAINS).filter_map(|id| {
        let rule = super::RULES.into_iter().flatten().find(|rule| rule.texts.id == *id)?;
        let findings = super::apply_rule(rule, case);
        let trials = findings.iter().flat_map(|finding| trials_at(case.verdicts, &finding.place));
        Some((rule.texts.id, trials.collect::<Vec<String>>()))
    });
    let disturbances: Vec<Disturbance> = disturbances.collect();
    let mut findings = Vec::new();
    for experiment in case.measured_experiments().filter(|experiment| !experiment.is_pass()) {
        for point in &experiment.points {
            let trials = case.evidence.point_trials(point);
            findings.extend(point_variation(&disturbances, point, &trials));
        }
    }
    findings
}

/// The labels of the trials at a place that is smaller than a target.
fn trials_at(verdicts: &Verdicts, place: &Spot) -> Vec<String> {
    match place.kind {
        SpotKind::Trial => place.names.clone(),
        SpotKind::Comparison => {
            let comparisons =
                verdicts.comparisons.iter().filter(|comparison| comparison.has(place));
            comparisons.flat_map(|comparison| comparison.pairs.iter().flatten().cloned()).collect()
        }
        SpotKind::Target | SpotKind::Experiment | SpotKind::Run => Vec::new(),
    }
}

impl Judgment {
    /// The checks that have found disturbances which no one has accepted, and the number of trials concerned.
    pub fn disturbances(&self) -> (Vec<Message>, usize) {
        let open_checks =
            self.checks.iter().filter(|check| DISTURBANCES.contains(&check.id) && check.is_open());
        let findings = open_checks.clone().flat_map(|check| &check.findings);
        let trials: BTreeSet<String> =
            findings.flat_map(|finding| trials_at(&self.verdicts, &finding.place)).collect();
        (open_checks.map(|check| Message::verbatim(check.id)).collect(), trials.len())
    }
}

/// The system is to blame only if nothing else is known to be.
fn point_variation(
    disturbances: &[Disturbance],
    point: &Point,
    trials: &[&Trial],
) -> Option<Finding> {
    let throughputs: Vec<f64> = trials.iter().map(|trial| trial.summary.tps).collect();
    let share = variation(&throughputs)
        .filter(|share| trials.len() >= MIN_REPEATS && *share > MOST_VARIATION)?;
    let disturbances = disturbances.iter().filter(|(_, labels)| {
        labels.iter().any(|label| trials.iter().any(|trial| trial.label == *label))
    });
    let (target, share) = (&point.target, percent(share));
    let value = match list(disturbances.map(|(id, _)| Message::verbatim(*id))) {
        Some(ids) => say!(varies_where_disturbed, target, share, ids),
        None => say!(varies_by_itself, target, share),
    };
    let names = trials.iter().map(|trial| trial.label.clone()).collect();
    Some(Finding::new(Spot { kind: SpotKind::Trial, names }, value))
}

/// Sweeps and searches whose best point no trial has measured again.
fn peak_not_rerun(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for experiment in case.measured_experiments().filter(|experiment| !experiment.is_pass()) {
        let trials = case.trials(experiment);
        let targets = case.evidence.targets.iter().filter(|target| {
            let trials = trials.iter().filter(|trial| trial.target == target.label);
            let purposes: Vec<Purpose> = trials.map(|trial| trial.summary.purpose).collect();
            (purposes.contains(&Purpose::Search) || is_sweep(experiment, &target.label))
                && !purposes.contains(&Purpose::Confirm)
        });
        let place = SpotKind::Experiment.at(&experiment.name);
        let targets = list(targets.map(|target| Message::from(&target.label)));
        findings.extend(targets.map(|value| Finding::new(place, value)));
    }
    findings
}

/// Returns true if a target has several load levels, of which one is the best.
fn is_sweep(experiment: &Experiment, target: &str) -> bool {
    experiment.points.iter().filter(|point| point.target == target).count() > 1
}

/// A smaller change of throughput is less than what comparisons look for.
const MIN_CHANGE: f64 = 0.01;
/// Number of marks that may be found in a session.
const MARKS: f64 = 3.0;

fn relevant_mark(mark: Option<HistoryMark>) -> Option<HistoryMark> {
    mark.filter(|mark| mark.size.abs() >= MIN_CHANGE)
}

fn signed_percent(share: f64) -> Message {
    Message::verbatim(format!("{:+.1}%", share * 100.0))
}

/// The trials of an experiment in one run, in the order in which they were made.
struct Session<'a> {
    experiment: &'a Experiment,
    trials: Vec<&'a Trial>,
    /// The level of each test: all tests of a run have one chance of a false alarm together.
    alpha: f64,
}

fn each_session(case: &Case<'_>, find: impl Fn(&Session<'_>) -> Option<Message>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for run in &case.evidence.runs {
        let sessions = case.measured_experiments().filter_map(|experiment| {
            let mut trials = case.trials(experiment);
            trials.retain(|trial| trial.run == run.number && is_placed(trial));
            trials.sort_by_key(|trial| trial.summary.trial);
            (trials.len() >= history::LEAST_PLACED).then_some((experiment, trials))
        });
        let sessions: Vec<_> = sessions.collect();
        let alpha = FAMILY_ALPHA / (MARKS * sessions.len() as f64);
        for (experiment, trials) in sessions {
            let place = SpotKind::Experiment.at(&experiment.name);
            let value = find(&Session { experiment, trials, alpha });
            findings.extend(value.map(|value| Finding::new(place, value)));
        }
    }
    findings
}

fn is_placed(trial: &Trial) -> bool {
    let is_usual = trial.summary.purpose == Purpose::Measure && trial.summary.fault.is_none();
    trial.status == "complete" && is_usual && deciding_log(trial).is_some()
}

/// Logarithm of the figure that decides comparisons.
fn deciding_log(trial: &Trial) -> Option<f64> {
    let first = *judged_metrics(&trial.summary).first()?;
    trial.summary.figure(first).map(f64::ln).filter(|log| log.is_finite())
}

impl Session<'_> {
    /// The seed of its first trial.
    fn seed(&self) -> u64 {
        self.trials.first().map_or(0, |trial| trial.summary.seed)
    }

    fn describe_mark(
        &self,
        mark: HistoryMark,
        describe: impl FnOnce(usize, Message) -> Message,
    ) -> Option<Message> {
        let p = Message::verbatim(format!("{:.4}", mark.p));
        (mark.p <= self.alpha).then(|| describe(mark.figures, p))
    }

    /// The deciding figures of its trials, grouped by target and load level.
    fn figures(&self) -> Vec<PlacedFigure> {
        let mut keys = Vec::new();
        let figures = self.trials.iter().filter_map(|trial| {
            let key = (trial.target.clone(), trial.load_level());
            let group = keys.iter().position(|known| *known == key).unwrap_or_else(|| {
                keys.push(key);
                keys.len() - 1
            });
            Some(PlacedFigure { group, log: deciding_log(trial)? })
        });
        figures.collect()
    }

    /// Ratios of its pairs, and whether the candidate came second.
    fn pairs(&self, verdicts: &Verdicts) -> Vec<(PlacedFigure, bool)> {
        let comparisons = verdicts.comparisons.iter();
        let comparisons =
            comparisons.filter(|comparison| comparison.experiment == self.experiment.name);
        let pairs = comparisons.enumerate().flat_map(|(group, comparison)| {
            comparison.pairs.iter().filter_map(move |[baseline, candidate]| {
                let (baseline, candidate) = (self.trial(baseline)?, self.trial(candidate)?);
                let log = deciding_log(candidate)? - deciding_log(baseline)?;
                let is_second = candidate.summary.trial > baseline.summary.trial;
                Some((PlacedFigure { group, log }, is_second))
            })
        });
        pairs.collect()
    }

    /// Its trial with this label.
    fn trial(&self, label: &str) -> Option<&Trial> {
        self.trials.iter().copied().find(|trial| trial.label == label)
    }
}

/// Weight of CPU time that programs take from others: their caches get cold, and locks are held by processes that don't
/// run.
const CPU_COUNTS: f64 = 2.0;
/// Largest reach in words: what is left of the CPUs is not known well enough for larger ones.
const MAX_TIMES: f64 = 10.0;

/// Findings of `find` for each comparison, and their reach.
pub(super) fn each_comparison(
    case: &Case<'_>,
    find: impl Fn(&PairedComparison) -> Option<(Message, VetoReach)>,
) -> Vec<Finding> {
    let findings = case.verdicts.comparisons.iter().filter_map(|comparison| {
        let (value, reach) = find(comparison)?;
        let place = SpotKind::Comparison.at(&comparison.name);
        Some(Finding { reach, ..Finding::new(place, value) })
    });
    findings.collect()
}

/// No one knows what a transaction of others costs, so that it may explain anything.
fn uneven_load(evidence: &Evidence, comparison: &PairedComparison) -> Option<Message> {
    let (a, b) = (&comparison.baseline, &comparison.candidate);
    let in_database = uneven_shares(evidence, comparison, arithmetic::share_in_database)
        .map(|[of_a, of_b]| say!(others_committed_on_sides, a, of_a, b, of_b));
    let elsewhere = uneven_shares(evidence, comparison, arithmetic::share_elsewhere)
        .map(|[of_a, of_b]| say!(others_elsewhere_on_sides, a, of_a, b, of_b));
    parts(in_database.into_iter().chain(elsewhere))
}

/// The means of both sides in percent, if they are uneven.
fn uneven_shares(
    evidence: &Evidence,
    comparison: &PairedComparison,
    share: fn(&Trial) -> Option<f64>,
) -> Option<[Message; 2]> {
    let shares = evidence.pairs(comparison).filter_map(|(a, b)| Some([share(a)?, share(b)?]));
    let shares: Vec<[f64; 2]> = shares.collect();
    // Now and then a server does its own work there.
    let min_pairs = shares.len().div_ceil(5).max(2);
    is_uneven(&shares, min_pairs).then(|| {
        [0, 1].map(|side| {
            let shares: Vec<f64> = shares.iter().map(|pair| pair[side]).collect();
            percent(mean(&shares).unwrap_or_default())
        })
    })
}

/// Found where others executed transactions on the server of one side only, in the fewest pairs that count, or where
/// their share differs between the sides (95% t interval over the pairs).
fn is_uneven(pairs: &[[f64; 2]], min_pairs: usize) -> bool {
    let counts = [0, 1].map(|side| pairs.iter().filter(|pair| pair[side] > 0.0).count());
    let differences: Vec<f64> = pairs.iter().map(|[a, b]| b - a).collect();
    match counts {
        [0, count] | [count, 0] => count >= min_pairs,
        _ => mean_interval(&differences).is_some_and(|interval| !interval.contains(0.0)),
    }
}

/// Maintenance that others cause in a trial without a load: `VACUUM`, `CREATE INDEX` and the like. Maintenance that the
/// server begins by itself follows from the load.
fn maintenance(trial: &Trial) -> Option<&String> {
    let nodes = trial.summary.conditions.nodes.values();
    nodes.flat_map(|node| &node.background).find(|work| !work.starts_with("autovacuum"))
}

/// Found where a fifth of the pairs, and two at least, had it on one side alone, three times as many as on the other.
fn uneven_background(evidence: &Evidence, comparison: &PairedComparison) -> Option<Message> {
    let pairs: Vec<[&Trial; 2]> = evidence.pairs(comparison).map(|(a, b)| [a, b]).collect();
    let [in_a, in_b] = [0, 1].map(|side| {
        let one_sided = pairs.iter().filter(|pair| {
            maintenance(pair[side]).is_some() && maintenance(pair[1 - side]).is_none()
        });
        one_sided.count()
    });
    let (more, fewer) = (in_a.max(in_b), in_a.min(in_b));
    let work = pairs.iter().flatten().find_map(|trial| maintenance(trial))?;
    let is_uneven = more >= 2 && more * 5 >= pairs.len() && more >= 3 * fewer;
    is_uneven.then(|| {
        say!(
            maintenance_on_sides,
            a = &comparison.baseline,
            of_a = in_a.to_string(),
            b = &comparison.candidate,
            of_b = in_b.to_string(),
            n = pairs.len() as u64,
            what = work
        )
    })
}

/// Comparisons whose verdict by the metric that decides falls by the CPU that other programs took from one side; or
/// those of which only other verdicts do.
fn uneven_cpu(case: &Case<'_>, is_deciding: bool) -> Vec<Finding> {
    each_comparison(case, |comparison| {
        let uneven = UnevenCpu::from_pairs(&foreign_cpu(case.evidence, comparison))?;
        let reach = VetoReach::HeldUp(uneven.log_reach);
        let explains =
            |is_deciding| veto::explains_any(reach, comparison, case.verdicts, is_deciding);
        let is_found = explains(is_deciding) && (is_deciding || !explains(true));
        is_found.then(|| (uneven.describe(comparison), reach))
    })
}

/// The share of the CPUs that other programs took in both trials of each pair in which that is known.
fn foreign_cpu(evidence: &Evidence, comparison: &PairedComparison) -> Vec<[f64; 2]> {
    let pairs = evidence.pairs(comparison).filter_map(|(a, b)| {
        let [a, b] = [a, b].map(|trial| trial.summary.conditions.generator.foreign_cpu_share);
        Some([a?, b?])
    });
    pairs.collect()
}

/// Other programs took the CPUs from one side more than from the other.
#[derive(Clone, Copy, Debug, PartialEq)]
struct UnevenCpu {
    /// Means of both sides.
    shares: [f64; 2],
    /// 95% t interval of the difference over the pairs.
    difference: Bounds,
    /// Positive where the candidate was held up, as [`VetoReach::HeldUp`] has it.
    log_reach: f64,
}

impl UnevenCpu {
    /// Found where the interval excludes zero: what comes to both sides by chance is in the interval of the ratio
    /// already. Programs that take a share of the CPUs leave the rest: the side with more of them, at the end of the
    /// interval that is farthest from zero, has had less of it by that much, which counts twice.
    fn from_pairs(pairs: &[[f64; 2]]) -> Option<UnevenCpu> {
        let differences: Vec<f64> = pairs.iter().map(|[a, b]| b - a).collect();
        let interval = mean_interval(&differences).filter(|interval| !interval.contains(0.0))?;
        let [a, b] =
            [0, 1].map(|side| mean(&pairs.iter().map(|pair| pair[side]).collect::<Vec<_>>()));
        let shares = [a?, b?];
        let left_share = 1.0 - shares[0].min(shares[1]);
        let largest = interval.low.abs().max(interval.high.abs()).min(left_share);
        let log_reach =
            (CPU_COUNTS * (left_share / (left_share - largest)).ln()).copysign(interval.low);
        (log_reach.abs() > MIN_CHANGE).then_some(UnevenCpu {
            shares,
            difference: interval,
            log_reach,
        })
    }

    /// The shares of both sides, what each side had left, and how far that reaches.
    fn describe(&self, comparison: &PairedComparison) -> Message {
        let (low, high) = (self.difference.low.abs(), self.difference.high.abs());
        let [low, high] =
            [low.min(high), low.max(high)].map(|share| format!("{:.0}", 100.0 * share));
        let (freer, busier) = if self.log_reach > 0.0 {
            (&comparison.baseline, &comparison.candidate)
        } else {
            (&comparison.candidate, &comparison.baseline)
        };
        let left_share = 1.0 - self.shares[0].min(self.shares[1]);
        let times = self.log_reach.abs().exp();
        say!(
            other_programs_took_cpus,
            a = &comparison.baseline,
            of_a = percent(self.shares[0]),
            b = &comparison.candidate,
            of_b = percent(self.shares[1]),
            points = if low == high { low.into() } else { say!(low_to_high, low, high) },
            left = percent(left_share),
            least = percent(left_share / times.powf(1.0 / CPU_COUNTS)),
            freer,
            busier,
            times = if times <= MAX_TIMES {
                Message::verbatim(format!("{times:.2}"))
            } else {
                say!(more_than, times = format::plain(MAX_TIMES))
            }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tests::{comparison, row};
    use dyno_core::Rng;
    use dyno_facts::Metric;

    /// CPU taken by neighbors that come and go, new for each pair and each trial.
    fn neighbors(rng: &mut Rng, pairs: usize, max_share: f64) -> Vec<[f64; 2]> {
        let mut level = max_share / 2.0;
        let mut next = || {
            level = 0.5 * level + 0.5 * (max_share * rng.unit());
            (level + 0.1 * rng.unit()).min(0.9)
        };
        (0..pairs).map(|_| [next(), next()]).collect()
    }

    #[test]
    fn neighbors_of_both_sides_take_no_verdict_away() {
        let mut rng = Rng::new(17, "neighbors", 0);
        for pairs in [6, 10, 30] {
            let is_found =
                |_: &usize| UnevenCpu::from_pairs(&neighbors(&mut rng, pairs, 0.6)).is_some();
            let count = (0..1000).filter(is_found).count();
            assert!(count <= 65, "{pairs} pairs: {count} of 1000");
        }
    }

    #[test]
    fn a_neighbor_of_one_side_explains_what_it_may_have_taken() {
        let mut rng = Rng::new(18, "neighbors", 0);
        // As a sceptic did it, in half of the pairs; alongside wild neighbors, and on a machine that is quiet else.
        for (max_share, min_count) in [(0.6, 850), (0.1, 1000)] {
            let rejected = (0..1000).filter(|_: &usize| {
                let mut pairs = neighbors(&mut rng, 10, max_share);
                pairs.iter_mut().take(5).for_each(|pair| pair[1] = (pair[1] + 0.5).min(0.95));
                UnevenCpu::from_pairs(&pairs)
                    .is_some_and(|uneven| uneven.log_reach > 1.372_f64.ln())
            });
            let count = rejected.count();
            assert!(count >= min_count, "{max_share}: {count} of 1000");
        }
        let little = UnevenCpu::from_pairs(&[[0.10, 0.102], [0.10, 0.101], [0.10, 0.102]]);
        assert_eq!(little, None, "less than comparisons look for");
    }

    fn is_few(pairs: usize, min_pairs: u32) -> bool {
        let mut case = comparison(Vec::new());
        case.pairs.truncate(pairs);
        case.stop.pairs_least = min_pairs;
        few_pairs(&case).is_some()
    }

    #[test]
    fn few_pairs_are_fewer_than_planned_and_than_a_verdict_needs() {
        assert!(!is_few(8, 8) && is_few(7, 8) && !is_few(6, 1) && is_few(5, 1));
    }

    fn describe_missing(lost: usize, pairs: usize) -> Option<Message> {
        let case = comparison(vec![VerdictRow { pairs, ..row(Metric::Tps) }]);
        pairs_missing(&PairedComparison { pairs_lost: lost, ..case })
    }

    #[test]
    fn pairs_that_are_missing_are_counted_by_what_they_miss() {
        assert_eq!(describe_missing(0, 8), None);
        let without_trial = say!(pairs_without_a_trial, n = 2_usize);
        assert_eq!(describe_missing(2, 8), parts([without_trial.clone()]));
        let without_figure =
            say!(pairs_without_a_figure, metric = "tps", n = 3_usize, all = 8_usize);
        assert_eq!(describe_missing(0, 5), parts([without_figure.clone()]));
        assert_eq!(describe_missing(2, 5), parts([without_trial, without_figure]));
    }

    fn is_lost_to_holm(p: f64, p_adjusted: Option<f64>) -> bool {
        lost_to_holm(&comparison(vec![VerdictRow { p, p_adjusted, ..row(Metric::Tps) }])).is_some()
    }

    #[test]
    fn differences_that_are_none_among_all_are_told() {
        assert!(is_lost_to_holm(0.05, Some(0.051)) && is_lost_to_holm(0.01, Some(1.0)));
        assert!(
            !is_lost_to_holm(0.051, Some(0.1))
                && !is_lost_to_holm(0.01, Some(0.05))
                && !is_lost_to_holm(0.01, None)
        );
    }

    fn judge_width(
        reached: Option<f64>,
        wanted: Option<f64>,
        pairs_needed: Option<usize>,
    ) -> Option<Message> {
        let mut case =
            comparison(vec![VerdictRow { half_width: reached, pairs_needed, ..row(Metric::Tps) }]);
        case.stop.half_width = wanted;
        half_width(&case)
    }

    #[test]
    fn a_wanted_half_width_is_reached_or_told() {
        assert_eq!(judge_width(Some(0.02), Some(0.02), Some(9)), None);
        assert_eq!(judge_width(Some(0.03), None, Some(9)), None);
        assert_eq!(judge_width(None, Some(0.02), Some(9)), None);
        let (reached, wanted) = (percent(0.03), percent(0.02));
        let with_remedy =
            say!(instead_of_pairs_would_do, reached = &reached, wanted = &wanted, pairs = 9_usize);
        assert_eq!(judge_width(Some(0.03), Some(0.02), Some(9)), Some(with_remedy));
        let without_remedy = say!(reached_instead_of_wanted, reached, wanted);
        assert_eq!(judge_width(Some(0.03), Some(0.02), None), Some(without_remedy));
    }

    fn is_below_floor(call: Call, ratio: f64, noise_floor: Option<f64>, is_aa: bool) -> bool {
        let case = comparison(vec![VerdictRow { call, ratio, noise_floor, ..row(Metric::Tps) }]);
        super::noise_floor(&PairedComparison { is_aa, ..case }).is_some()
    }

    #[test]
    fn differences_below_the_noise_of_one_system_are_told() {
        assert!(is_below_floor(Call::Faster, 1.02, Some(0.03), false));
        assert!(!is_below_floor(Call::Faster, 1.04, Some(0.03), false));
        assert!(!is_below_floor(Call::Equivalent, 1.02, Some(0.03), false));
        assert!(!is_below_floor(Call::Faster, 1.02, None, false));
        assert!(!is_below_floor(Call::Faster, 1.02, Some(0.03), true));
    }
}
