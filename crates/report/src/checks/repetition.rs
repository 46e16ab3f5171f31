//! C: repetition and statistics.

use super::{Case, Find, Rule, parts};
use crate::format;
use crate::model::{Experiment, Finding, Group, Level, Paper, Point, Spot, Trial};
use crate::say;
use crate::text::Text;
use crate::verdict::{Call, PairOrder, PairedComparison, VerdictRow};
use dyno_measure::Purpose;
use dyno_statistics::ratio::{LEAST_PAIRS, MOST_VARIATION};
use dyno_statistics::{CONFIDENCE, median, variation};

/// A variation of fewer trials says little.
const LEAST_REPEATS: usize = 3;
/// Outliers are told from so many repeats on, beyond this many deviations of the median (Iglewicz and
/// Hoaglin 1993: 3.5 times 1.4826 of the median of the deviations).
const REPEATS_FOR_OUTLIERS: usize = 5;
const OUTLIER: f64 = 3.5 * 1.4826;
/// Where trials are nearly alike, less than this share is no outlier.
const LEAST_OUTLIER: f64 = 0.02;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "aa-differs",
        group: Group::C,
        level: Level::E,
        rule: "A comparison of a system with itself (A/A) finds no difference.",
        meaning: "The way of measuring favours one side: no comparison made so can be trusted.",
        advice: "Look for what differs between the two names: order, data, warm caches, address.",
        find: Find::Paper(|paper| {
            each_comparison(paper, |of| {
                of.is_aa.then(|| metrics(of, |row| row.call.is_difference()))?
            })
        }),
    },
    Rule {
        id: "few-pairs",
        group: Group::C,
        level: Level::W,
        rule: "A comparison rests on at least 4 pairs of trials, and on as many as the suite wants.",
        meaning: "With fewer pairs no test can tell a difference from chance (three pairs: p is 0.10 at best).",
        advice: "Repeat: 6 pairs are the least with which a rank test reaches 5 %.",
        find: Find::Paper(|paper| each_comparison(paper, few_pairs)),
    },
    Rule {
        id: "block-order",
        group: Group::C,
        level: Level::W,
        rule: "Trials of targets that are compared take turns.",
        meaning: "All trials of one target came before those of the other: what drifts over the session (temperature, neighbours, growing data) looks like a difference. Simulated with 5 % of drift, such comparisons find a difference between equal systems in every second case.",
        advice: "Measure both in one run with repeats: dyno takes turns in random order.",
        find: Find::Paper(|paper| {
            each_comparison(paper, |of| {
                let is_in_blocks = of.order == PairOrder::Blocks && of.pairs.len() > 1;
                is_in_blocks.then(|| say!("one after the other"))
            })
        }),
    },
    Rule {
        id: "noise-floor",
        group: Group::C,
        level: Level::W,
        rule: "A difference is larger than what the same system shows to itself (A/A).",
        meaning: "The difference is within the noise floor: it is no verdict.",
        advice: "Reduce the noise (dedicated machines, longer windows), or do not claim a difference.",
        find: Find::Paper(|paper| each_comparison(paper, noise_floor)),
    },
    Rule {
        id: "variation",
        group: Group::C,
        level: Level::W,
        rule: "Trials of the same point vary by at most 5 % (coefficient of variation).",
        meaning: "Deviation too high: no verdict can rest on such trials.",
        advice: "Find out what differs between the trials (neighbours, cache, background work); repeat more often.",
        find: Find::Case(|case| each_group(case, variation_of)),
    },
    Rule {
        id: "peak-not-rerun",
        group: Group::C,
        level: Level::W,
        rule: "The best of several load levels is measured again, and that figure is printed.",
        meaning: "The best of a sweep was chosen after measuring: chance helped it, by some 2 to 3 %.",
        advice: "Set confirm = true: the best point is run again.",
        find: Find::Case(peak_not_rerun),
    },
    Rule {
        id: "half-width",
        group: Group::C,
        level: Level::I,
        rule: "The interval of a comparison is as narrow as the suite wants.",
        meaning: "Repetition ended before (budget, most pairs): smaller differences than this could not be found.",
        advice: "Raise the budget or the number of pairs, and run the same command again.",
        find: Find::Paper(|paper| each_comparison(paper, half_width)),
    },
    Rule {
        id: "many-metrics",
        group: Group::C,
        level: Level::I,
        rule: "Differences hold among all metrics and levels that are judged together (Holm's correction).",
        meaning: "Alone these would have passed for differences; of so many figures some do by chance.",
        advice: "Decide before measuring which metric counts, or measure more pairs.",
        find: Find::Paper(|paper| each_comparison(paper, lost_to_holm)),
    },
    Rule {
        id: "many-gates",
        group: Group::C,
        level: Level::I,
        rule: "One gate on a ratio is judged.",
        meaning: "Each gate is judged by its own 95 % interval, without correction: with several, one of them errs by chance more often.",
        advice: "Keep to the gate that counts, or repeat a run in which a single gate broke.",
        find: Find::Paper(many_gates),
    },
    Rule {
        id: "outliers",
        group: Group::C,
        level: Level::I,
        rule: "No trial lies far from the others of its point (3.5 deviations of the median).",
        meaning: "Something happened in that trial. It is in all figures all the same: nothing is removed.",
        advice: "Look at its events and series; repeat the point rather than leave the trial out.",
        find: Find::Case(|case| each_group(case, outliers)),
    },
    Rule {
        id: "few-repeats",
        group: Group::C,
        level: Level::I,
        rule: "Every point is measured at least 4 times.",
        meaning: "Differences between points may be chance; no verdict on which is faster is given.",
        advice: "Repeat each point 6 times or more (repeats), the targets by turns.",
        find: Find::Experiment(|experiment| {
            let fewest = experiment.points.iter().map(|point| point.repeats).min()?;
            (fewest < LEAST_PAIRS)
                .then(|| Text::count(fewest as u64, "{n} trial per point", "{n} trials per point"))
        }),
    },
];

/// One finding for each comparison of which `find` has something to say.
fn each_comparison(
    paper: &Paper,
    find: impl Fn(&PairedComparison) -> Option<Text>,
) -> Vec<Finding> {
    let finding = |of: &PairedComparison| {
        Some(Finding { place: Spot::comparison(&of.name), value: find(of)? })
    };
    paper.verdicts.iter().filter_map(finding).collect()
}

/// The metrics of a comparison that `is_found`, in words.
fn metrics(of: &PairedComparison, is_found: impl Fn(&VerdictRow) -> bool) -> Option<Text> {
    let rows: Vec<Text> =
        of.rows.iter().filter(|row| is_found(row)).map(|row| row.name.clone()).collect();
    (!rows.is_empty()).then(|| Text::list(&rows))
}

fn few_pairs(of: &PairedComparison) -> Option<Text> {
    let least = (of.pairs_least as usize).max(LEAST_PAIRS);
    (of.pairs.len() < least).then(|| {
        say!(
            "{pairs} of {least} pairs",
            pairs = of.pairs.len().to_string(),
            least = least.to_string()
        )
    })
}

fn half_width(of: &PairedComparison) -> Option<Text> {
    let (row, wanted) = (of.rows.first()?, of.wanted_half_width?);
    let reached = row.half_width.filter(|reached| *reached > wanted)?;
    let (reached, wanted) = (super::percent(reached), super::percent(wanted));
    Some(match row.pairs_needed {
        Some(pairs) => say!(
            "{reached} instead of {wanted}; {pairs} pairs would do",
            reached = reached,
            wanted = wanted,
            pairs = format::whole(pairs as f64)
        ),
        None => say!("{reached} instead of {wanted}", reached = reached, wanted = wanted),
    })
}

fn noise_floor(of: &PairedComparison) -> Option<Text> {
    let told = of.rows.iter().filter(|row| row.call == Call::BelowNoiseFloor).map(|row| {
        say!(
            "{metric}: ratio {ratio}, the same system differs by {floor}",
            metric = &row.name,
            ratio = format!("{:.3}", row.ratio),
            floor = super::percent(row.noise_floor.unwrap_or_default())
        )
    });
    parts(told.collect())
}

/// Differences that each would be one alone, and are none among all that is judged.
fn lost_to_holm(of: &PairedComparison) -> Option<Text> {
    let level = 1.0 - CONFIDENCE;
    metrics(of, |row| {
        let (alone, among) = (row.p.unwrap_or(1.0), row.p_adjusted.unwrap_or(1.0));
        alone < level && among >= level && row.pairs >= LEAST_PAIRS
    })
}

/// Gates on ratios are judged one by one, each with its own interval.
fn many_gates(paper: &Paper) -> Vec<Finding> {
    let judged = paper.gates.iter().filter(|gate| gate.gate.contains(".ratio")).count();
    let value = || Text::count(judged as u64, "{n} gate on a ratio", "{n} gates on ratios");
    let place = paper.runs.first().map(|run| Spot::run(&run.folder));
    let place = place.filter(|_| judged > 1);
    place.map(|place| Finding { place, value: value() }).into_iter().collect()
}

/// What `find` says of the trials behind a point, with the point's target and load.
fn each_group(
    case: &Case<'_>,
    find: fn(&Point, &[&Trial]) -> Option<(Spot, Text)>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for experiment in case.measured().filter(|experiment| experiment.tpch.is_none()) {
        for point in &experiment.points {
            let own = case.paper.trials.iter().filter(|trial| point.trials.contains(&trial.label));
            let found = find(point, &own.collect::<Vec<_>>());
            findings.extend(found.map(|(place, value)| Finding { place, value }));
        }
    }
    findings
}

fn throughputs(trials: &[&Trial]) -> Vec<f64> {
    trials.iter().map(|trial| trial.summary.tps).collect()
}

fn trials_of(trials: &[&Trial]) -> Spot {
    let names = trials.iter().map(|trial| trial.label.clone()).collect();
    Spot { names, ..Spot::trial("") }
}

fn variation_of(_: &Point, trials: &[&Trial]) -> Option<(Spot, Text)> {
    let share = variation(&throughputs(trials))
        .filter(|share| trials.len() >= LEAST_REPEATS && *share > MOST_VARIATION)?;
    Some((trials_of(trials), super::percent(share)))
}

fn outliers(_: &Point, trials: &[&Trial]) -> Option<(Spot, Text)> {
    let values = throughputs(trials);
    let centre = median(&values).filter(|_| trials.len() >= REPEATS_FOR_OUTLIERS)?;
    let distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    let limit = (OUTLIER * median(&distances)?).max(LEAST_OUTLIER * centre);
    let far = trials.iter().filter(|trial| (trial.summary.tps - centre).abs() > limit);
    let far: Vec<&Trial> = far.copied().collect();
    let told = far.iter().map(|trial| {
        say!(
            "{found} per second, median {median}",
            found = format::short(trial.summary.tps),
            median = format::short(centre)
        )
    });
    parts(told.collect()).map(|value| (trials_of(&far), value))
}

/// Sweeps and searches whose best point no trial has measured again.
fn peak_not_rerun(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for experiment in case.measured().filter(|experiment| experiment.tpch.is_none()) {
        let trials = case.trials(experiment);
        let targets = case.paper.targets.iter().filter(|target| {
            let own = || trials.iter().filter(|trial| trial.target == target.label);
            let has = |purpose: Purpose| own().any(|trial| trial.summary.purpose == purpose);
            (has(Purpose::Search) || is_sweep(experiment, &target.label)) && !has(Purpose::Confirm)
        });
        let targets: Vec<Text> = targets.map(|target| Text::from(&target.label)).collect();
        if !targets.is_empty() {
            let place = Spot::experiment(&experiment.name);
            findings.push(Finding { place, value: Text::list(&targets) });
        }
    }
    findings
}

/// True when a target has several load levels, of which one is the best.
fn is_sweep(experiment: &Experiment, target: &str) -> bool {
    experiment.points.iter().filter(|point| point.target == target).count() > 1
}
