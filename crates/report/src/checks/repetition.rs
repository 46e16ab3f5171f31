//! C: repetition and statistics.

use super::sides::{Pair, Side, pairs};
use super::{Case, Find, Rule, parts};
use crate::model::{Experiment, Finding, Group, Level, Point, Spot, Trial};
use crate::say;
use crate::text::Text;
use crate::{format, points};
use dyno_measure::Purpose;
use dyno_statistics::ratio::{LEAST_PAIRS, MOST_VARIATION};
use dyno_statistics::{median, variation};

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
        id: "block-order",
        group: Group::C,
        level: Level::W,
        rule: "Trials of targets that are compared take turns.",
        meaning: "All trials of one target came before those of the other: what drifts over the session (temperature, neighbours, growing data) looks like a difference. Simulated with 5 % of drift, such comparisons find a difference between equal systems in every second case.",
        advice: "Measure both in one run with repeats: dyno takes turns in random order.",
        find: Find::Case(block_order),
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

/// Experiments in which all trials of a target came before those of the one it is compared with.
fn block_order(case: &Case<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for pair in pairs(case).iter().filter(|pair| is_in_blocks(pair)) {
        let (a, b) = (pair.baseline.label(), pair.candidate.label());
        let value = say!("{experiment}: one after the other", experiment = &pair.experiment.title);
        let finding = Finding { place: Spot::targets(&[a, b]), value };
        findings.extend((!findings.contains(&finding)).then_some(finding));
    }
    findings
}

/// True when at some load level both have several trials and none of one lies between those of the
/// other.
fn is_in_blocks(pair: &Pair<'_>) -> bool {
    let times = |side: &Side<'_>, like: &Trial| -> Vec<(String, u32)> {
        let own = side.trials.iter().filter(|trial| points::is_same_level(trial, like));
        own.map(|trial| (trial.summary.started_at.clone(), trial.summary.trial)).collect()
    };
    pair.baseline.trials.iter().any(|like| {
        let (a, b) = (times(&pair.baseline, like), times(&pair.candidate, like));
        let is_before = |first: &[(String, u32)], then: &[(String, u32)]| {
            first.iter().max() < then.iter().min()
        };
        a.len() > 1 && b.len() > 1 && (is_before(&a, &b) || is_before(&b, &a))
    })
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
