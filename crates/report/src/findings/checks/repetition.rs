//! C: repetition and statistics.

use super::{Case, Find, Rule, parts};
use crate::evidence::{Experiment, Finding, Group, Level, Paper, Point, Spot, Trial};
use crate::findings::verdict::{Call, PairOrder, PairedComparison, VerdictRow};
use crate::format;
use crate::messages;
use crate::text::Message;
use dyno_facts::{Purpose, say};
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
        rule: messages::aa_differs_rule,
        meaning: messages::aa_differs_meaning,
        advice: messages::aa_differs_advice,
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
        rule: messages::few_pairs_rule,
        meaning: messages::few_pairs_meaning,
        advice: messages::few_pairs_advice,
        find: Find::Paper(|paper| each_comparison(paper, few_pairs)),
    },
    Rule {
        id: "block-order",
        group: Group::C,
        level: Level::W,
        rule: messages::block_order_rule,
        meaning: messages::block_order_meaning,
        advice: messages::block_order_advice,
        find: Find::Paper(|paper| {
            each_comparison(paper, |of| {
                let is_in_blocks = of.order == PairOrder::Blocks && of.pairs.len() > 1;
                is_in_blocks.then(|| say!(one_after_the_other))
            })
        }),
    },
    Rule {
        id: "noise-floor",
        group: Group::C,
        level: Level::W,
        rule: messages::noise_floor_rule,
        meaning: messages::noise_floor_meaning,
        advice: messages::noise_floor_advice,
        find: Find::Paper(|paper| each_comparison(paper, noise_floor)),
    },
    Rule {
        id: "variation",
        group: Group::C,
        level: Level::W,
        rule: messages::variation_rule,
        meaning: messages::variation_meaning,
        advice: messages::variation_advice,
        find: Find::Case(|case| each_group(case, variation_of)),
    },
    Rule {
        id: "peak-not-rerun",
        group: Group::C,
        level: Level::W,
        rule: messages::peak_not_rerun_rule,
        meaning: messages::peak_not_rerun_meaning,
        advice: messages::peak_not_rerun_advice,
        find: Find::Case(peak_not_rerun),
    },
    Rule {
        id: "half-width",
        group: Group::C,
        level: Level::I,
        rule: messages::half_width_rule,
        meaning: messages::half_width_meaning,
        advice: messages::half_width_advice,
        find: Find::Paper(|paper| each_comparison(paper, half_width)),
    },
    Rule {
        id: "many-metrics",
        group: Group::C,
        level: Level::I,
        rule: messages::many_metrics_rule,
        meaning: messages::many_metrics_meaning,
        advice: messages::many_metrics_advice,
        find: Find::Paper(|paper| each_comparison(paper, lost_to_holm)),
    },
    Rule {
        id: "many-gates",
        group: Group::C,
        level: Level::I,
        rule: messages::many_gates_rule,
        meaning: messages::many_gates_meaning,
        advice: messages::many_gates_advice,
        find: Find::Paper(many_gates),
    },
    Rule {
        id: "outliers",
        group: Group::C,
        level: Level::I,
        rule: messages::outliers_rule,
        meaning: messages::outliers_meaning,
        advice: messages::outliers_advice,
        find: Find::Case(|case| each_group(case, outliers)),
    },
    Rule {
        id: "few-repeats",
        group: Group::C,
        level: Level::I,
        rule: messages::few_repeats_rule,
        meaning: messages::few_repeats_meaning,
        advice: messages::few_repeats_advice,
        find: Find::Experiment(|experiment| {
            // Steps of a search are not repeated; what it found is.
            let judged = experiment.points.iter().filter(|point| point.purpose != Purpose::Search);
            let fewest = judged.map(|point| point.repeats).min()?;
            (fewest < LEAST_PAIRS).then(|| say!(trials_per_point, n = fewest))
        }),
    },
];

/// One finding for each comparison of which `find` has something to say.
fn each_comparison(
    paper: &Paper,
    find: impl Fn(&PairedComparison) -> Option<Message>,
) -> Vec<Finding> {
    let finding = |of: &PairedComparison| {
        Some(Finding { place: Spot::comparison(&of.name), value: find(of)? })
    };
    paper.verdicts.iter().filter_map(finding).collect()
}

/// The metrics of a comparison that `is_found`, in words.
fn metrics(of: &PairedComparison, is_found: impl Fn(&VerdictRow) -> bool) -> Option<Message> {
    let rows: Vec<Message> =
        of.rows.iter().filter(|row| is_found(row)).map(|row| row.name.clone()).collect();
    (!rows.is_empty()).then(|| Message::list(&rows))
}

fn few_pairs(of: &PairedComparison) -> Option<Message> {
    let least = (of.pairs_least as usize).max(LEAST_PAIRS);
    (of.pairs.len() < least).then(|| {
        say!(pairs_of_least_pairs, pairs = of.pairs.len().to_string(), least = least.to_string())
    })
}

fn half_width(of: &PairedComparison) -> Option<Message> {
    let (row, wanted) = (of.rows.first()?, of.wanted_half_width?);
    let reached = row.half_width.filter(|reached| *reached > wanted)?;
    let (reached, wanted) = (super::percent(reached), super::percent(wanted));
    Some(match row.pairs_needed {
        Some(pairs) => say!(
            instead_of_pairs_would_do,
            reached = reached,
            wanted = wanted,
            pairs = format::whole(pairs as f64)
        ),
        None => say!(reached_instead_of_wanted, reached = reached, wanted = wanted),
    })
}

fn noise_floor(of: &PairedComparison) -> Option<Message> {
    let told = of.rows.iter().filter(|row| row.call == Call::BelowNoiseFloor).map(|row| {
        say!(
            ratio_the_same_system_differs_by,
            metric = &row.name,
            ratio = format!("{:.3}", row.ratio),
            floor = super::percent(row.noise_floor.unwrap_or_default())
        )
    });
    parts(told.collect())
}

/// Differences that each would be one alone, and are none among all that is judged.
fn lost_to_holm(of: &PairedComparison) -> Option<Message> {
    let level = 1.0 - CONFIDENCE;
    metrics(of, |row| {
        let (alone, among) = (row.p.unwrap_or(1.0), row.p_adjusted.unwrap_or(1.0));
        alone < level && among >= level && row.pairs >= LEAST_PAIRS
    })
}

/// Gates on ratios are judged one by one, each with its own interval.
fn many_gates(paper: &Paper) -> Vec<Finding> {
    let judged = paper.gates.iter().filter(|gate| gate.gate.contains(".ratio")).count();
    let value = || say!(gates_on_ratios, n = judged);
    let place = paper.runs.first().map(|run| Spot::run(&run.folder));
    let place = place.filter(|_| judged > 1);
    place.map(|place| Finding { place, value: value() }).into_iter().collect()
}

/// What is found in the trials behind a point: in which of them, and its value.
type InGroup = fn(&Point, &[&Trial]) -> Option<(Spot, Message)>;

/// What `find` says of the trials behind a point, with the point's target and load.
fn each_group(case: &Case<'_>, find: InGroup) -> Vec<Finding> {
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

fn variation_of(point: &Point, trials: &[&Trial]) -> Option<(Spot, Message)> {
    let share = variation(&throughputs(trials))
        .filter(|share| trials.len() >= LEAST_REPEATS && *share > MOST_VARIATION)?;
    let value = say!(target_value, target = &point.target, value = super::percent(share));
    Some((trials_of(trials), value))
}

fn outliers(_: &Point, trials: &[&Trial]) -> Option<(Spot, Message)> {
    let values = throughputs(trials);
    let centre = median(&values).filter(|_| trials.len() >= REPEATS_FOR_OUTLIERS)?;
    let distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    let limit = (OUTLIER * median(&distances)?).max(LEAST_OUTLIER * centre);
    let far = trials.iter().filter(|trial| (trial.summary.tps - centre).abs() > limit);
    let far: Vec<&Trial> = far.copied().collect();
    let told = far.iter().map(|trial| {
        say!(
            per_second_median,
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
        let targets: Vec<Message> = targets.map(|target| Message::from(&target.label)).collect();
        if !targets.is_empty() {
            let place = Spot::experiment(&experiment.name);
            findings.push(Finding { place, value: Message::list(&targets) });
        }
    }
    findings
}

/// True when a target has several load levels, of which one is the best.
fn is_sweep(experiment: &Experiment, target: &str) -> bool {
    experiment.points.iter().filter(|point| point.target == target).count() > 1
}
