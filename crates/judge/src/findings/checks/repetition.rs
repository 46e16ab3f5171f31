//! C: repetition and statistics.

use super::{Case, Rule, list, parts};
use crate::evidence::{
    Check, Experiment, Finding, Group, Judgment, Level, PairOrder, PairedComparison, Point, Spot,
    SpotKind, Trial, VerdictRow, Verdicts,
};
use crate::format;
use crate::messages::checks;
use crate::text::Message;
use dyno_facts::{Purpose, say};
use dyno_statistics::ratio::{LEAST_PAIRS, MOST_VARIATION};
use dyno_statistics::{ALPHA, median, noise, variation};
use std::collections::BTreeSet;

/// A variation of fewer trials says little.
const LEAST_REPEATS: usize = 3;
/// Outliers are told from so many repeats on, beyond this many deviations of the median (Iglewicz and
/// Hoaglin 1993: 3.5 times 1.4826 of the median of the deviations).
const REPEATS_FOR_OUTLIERS: usize = 5;
const OUTLIER: f64 = 3.5 * 1.4826;
/// Where trials are nearly alike, less than this share is no outlier.
const LEAST_OUTLIER: f64 = 0.02;
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

/// Checks that find what may make trials vary, and is no disturbance from outside.
const STRAINS: [&str; 2] = ["hiccups", "shared-cpu"];

pub(super) const RULES: &[Rule] = &[
    Rule::comparison(Group::C, Level::E, checks::aa_differs, |of| {
        of.is_aa.then(|| metrics(of, |row| row.call.is_difference()))?
    }),
    Rule::comparison(Group::C, Level::W, checks::few_pairs, few_pairs),
    Rule::comparison(Group::C, Level::W, checks::pairs_missing, pairs_missing),
    Rule::comparison(Group::C, Level::E, checks::block_order, |of| {
        let is_in_blocks = of.order == PairOrder::Blocks && of.pairs.len() > 1;
        is_in_blocks.then(|| say!(one_after_the_other))
    }),
    Rule::comparison(Group::C, Level::W, checks::noise_floor, noise_floor),
    Rule::case(Group::C, Level::W, checks::variation, variations),
    Rule::case(Group::C, Level::W, checks::peak_not_rerun, peak_not_rerun),
    Rule::comparison(Group::C, Level::I, checks::half_width, half_width),
    Rule::comparison(Group::C, Level::I, checks::many_metrics, lost_to_holm),
    Rule::case(Group::C, Level::I, checks::many_gates, many_gates),
    Rule::case(Group::C, Level::I, checks::outliers, |case| each_group(case, outliers)),
    Rule::experiment(Group::C, Level::I, checks::few_repeats, |experiment| {
        // Steps of a search are not repeated; what it found is.
        let judged = experiment.points.iter().filter(|point| point.purpose != Purpose::Search);
        let fewest = judged.map(|point| point.repeats).min()?;
        (fewest < LEAST_PAIRS).then(|| say!(trials_per_point, n = fewest))
    }),
];

/// The metrics of a comparison that `is_found`, in words.
fn metrics(of: &PairedComparison, is_found: impl Fn(&VerdictRow) -> bool) -> Option<Message> {
    list(of.rows.iter().filter(|row| is_found(row)).map(|row| row.name.clone()))
}

fn few_pairs(of: &PairedComparison) -> Option<Message> {
    let least = (of.stop.pairs_least as usize).max(of.least_pairs());
    let pairs = of.pairs.len() + of.pairs_earlier();
    (pairs < least).then(|| say!(pairs_of_least_pairs, pairs = pairs, least = least))
}

fn pairs_missing(of: &PairedComparison) -> Option<Message> {
    let lost = (of.pairs_lost > 0).then(|| say!(pairs_without_a_trial, n = of.pairs_lost));
    let all = of.pairs.len() + of.pairs_earlier();
    let unknown = of.rows.iter().filter(|row| row.pairs < all);
    let unknown = unknown.map(|row| {
        say!(pairs_without_a_figure, metric = &row.name, n = all - row.pairs, all = all)
    });
    parts(lost.into_iter().chain(unknown))
}

fn half_width(of: &PairedComparison) -> Option<Message> {
    let (row, wanted) = (of.rows.first()?, of.stop.half_width?);
    let reached = row.half_width.filter(|reached| *reached > wanted)?;
    let (reached, wanted) = (super::percent(reached), super::percent(wanted));
    Some(match row.pairs_needed {
        Some(pairs) => {
            say!(instead_of_pairs_would_do, reached = reached, wanted = wanted, pairs = pairs)
        }
        None => say!(reached_instead_of_wanted, reached = reached, wanted = wanted),
    })
}

fn noise_floor(of: &PairedComparison) -> Option<Message> {
    let is_noise = |row: &&VerdictRow| {
        let is_below = |share: f64| noise::is_below(row.ratio, share);
        !of.is_aa && row.call.is_difference() && row.noise_floor.is_some_and(is_below)
    };
    let told = of.rows.iter().filter(is_noise).map(|row| {
        say!(
            ratio_the_same_system_differs_by,
            metric = &row.name,
            ratio = format!("{:.3}", row.ratio),
            floor = super::percent(row.noise_floor.unwrap_or_default())
        )
    });
    parts(told)
}

/// Differences that each would be one alone, and are none among all that is judged.
fn lost_to_holm(of: &PairedComparison) -> Option<Message> {
    metrics(of, |row| row.p <= ALPHA && row.p_adjusted.is_some_and(|p| p > ALPHA))
}

/// Gates on ratios are judged one by one, each with its own interval.
fn many_gates(case: &Case<'_>) -> Vec<Finding> {
    let judged = case.verdicts.gates.iter().filter(|gate| gate.gate.contains(".ratio")).count();
    let value = || say!(gates_on_ratios, n = judged);
    let place = case.evidence.runs.first().map(|run| Spot::run(&run.folder));
    let place = place.filter(|_| judged > 1);
    place.map(|place| Finding::new(place, value())).into_iter().collect()
}

/// What `find` says of the trials behind a point: in which of them, and its value.
fn each_group(
    case: &Case<'_>,
    find: impl Fn(&Point, &[&Trial]) -> Option<(Spot, Message)>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for experiment in case.measured().filter(|experiment| !experiment.is_pass()) {
        for point in &experiment.points {
            let own =
                case.evidence.trials.iter().filter(|trial| point.trials.contains(&trial.label));
            let found = find(point, &own.collect::<Vec<_>>());
            findings.extend(found.map(|(place, value)| Finding::new(place, value)));
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

/// A check that has found what may make trials vary, and the trials that it concerns.
type Disturbance = (&'static str, Vec<String>);

fn variations(case: &Case<'_>) -> Vec<Finding> {
    let rules = super::GROUPS.into_iter().flatten();
    let of_rule = |rule: &Rule| -> Disturbance {
        let found = super::findings(rule, case);
        let trials = found.iter().flat_map(|finding| trials_at(case.verdicts, &finding.place));
        (rule.id, trials.collect())
    };
    let explains = |rule: &&Rule| DISTURBANCES.contains(&rule.id) || STRAINS.contains(&rule.id);
    let disturbances: Vec<Disturbance> = rules.filter(explains).map(of_rule).collect();
    each_group(case, |point, trials| variation_of(&disturbances, point, trials))
}

/// The labels of the trials at a place that is smaller than a target.
fn trials_at(verdicts: &Verdicts, place: &Spot) -> Vec<String> {
    match place.kind {
        SpotKind::Trial => place.names.clone(),
        SpotKind::Comparison => {
            let own = verdicts.comparisons.iter().filter(|of| of.has(place));
            own.flat_map(|of| of.pairs.iter().flatten().cloned()).collect()
        }
        SpotKind::Target | SpotKind::Experiment | SpotKind::Run => Vec::new(),
    }
}

impl Judgment {
    /// The checks that have found disturbances which nobody has accepted, and the number of trials concerned.
    pub fn disturbances(&self) -> (Vec<Message>, usize) {
        let is_open = |check: &&Check| {
            DISTURBANCES.contains(&check.id) && !check.findings.is_empty() && !check.is_accepted
        };
        let found = || self.checks.iter().filter(is_open);
        let places = found().flat_map(|check| &check.findings).map(|finding| &finding.place);
        let trials: BTreeSet<String> =
            places.flat_map(|place| trials_at(&self.verdicts, place)).collect();
        (found().map(|check| Message::verbatim(check.id)).collect(), trials.len())
    }
}

/// The system is to blame only where nothing else is known to be.
fn variation_of(
    disturbances: &[Disturbance],
    point: &Point,
    trials: &[&Trial],
) -> Option<(Spot, Message)> {
    let share = variation(&throughputs(trials))
        .filter(|share| trials.len() >= LEAST_REPEATS && *share > MOST_VARIATION)?;
    let is_own = |label: &String| trials.iter().any(|trial| trial.label == *label);
    let found = disturbances.iter().filter(|(_, labels)| labels.iter().any(is_own));
    let (target, share) = (&point.target, super::percent(share));
    let value = match list(found.map(|(id, _)| Message::verbatim(*id))) {
        Some(ids) => say!(varies_where_disturbed, target = target, share = share, ids = ids),
        None => say!(varies_by_itself, target = target, share = share),
    };
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
    parts(told).map(|value| (trials_of(&far), value))
}

/// Sweeps and searches whose best point no trial has measured again.
fn peak_not_rerun(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for experiment in case.measured().filter(|experiment| !experiment.is_pass()) {
        let trials = case.trials(experiment);
        let targets = case.evidence.targets.iter().filter(|target| {
            let own = || trials.iter().filter(|trial| trial.target == target.label);
            let has = |purpose: Purpose| own().any(|trial| trial.summary.purpose == purpose);
            (has(Purpose::Search) || is_sweep(experiment, &target.label)) && !has(Purpose::Confirm)
        });
        let place = Spot::experiment(&experiment.name);
        let targets = list(targets.map(|target| Message::from(&target.label)));
        findings.extend(targets.map(|value| Finding::new(place, value)));
    }
    findings
}

/// True when a target has several load levels, of which one is the best.
fn is_sweep(experiment: &Experiment, target: &str) -> bool {
    experiment.points.iter().filter(|point| point.target == target).count() > 1
}
