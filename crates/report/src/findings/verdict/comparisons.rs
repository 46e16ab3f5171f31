//! Comparisons of two targets: from pairs of trials to verdicts.

use super::pairs::{self, Duel, Pairs};
use super::{ratio_of, words};
use crate::evidence::{
    Bounds, Call, Evidence, Experiment, PairedComparison, PaperTarget, RunFacts, Spread,
    VerdictRow, figure_of, judged_metrics, metric_name,
};
use crate::text::Message;
use dyno_facts::{ComparisonFacts, TrialSummary};
use dyno_statistics::noise;
use dyno_statistics::ratio::{PairedRatio, RatioVerdict, UndecidedReason};
use dyno_statistics::{Better, ConfidenceInterval, Metric, bootstrap, holm, rank};

/// Where a suite wants no half-width, the pairs are told that this one needs.
const PLANNED_HALF_WIDTH: f64 = 0.02;

/// Every comparison of the paper, with verdicts that are corrected for each other.
pub(super) fn all(evidence: &Evidence) -> Vec<PairedComparison> {
    let mut found = Vec::new();
    for (index, experiment) in evidence.experiments.iter().enumerate() {
        for duel in duels(evidence, experiment) {
            let levels = pairs::of(evidence, &experiment.name, &duel);
            found.extend(levels.iter().map(|pairs| comparison(experiment, index, &duel, pairs)));
        }
    }
    let floors: Vec<NoiseFloor> = found.iter().flat_map(floors).collect();
    for comparison in &mut found {
        for row in &mut comparison.rows {
            row.noise_floor = noise_floor(
                evidence,
                &floors,
                comparison.experiment_index,
                &comparison.level,
                row.metric,
            );
        }
    }
    judge(&mut found);
    for (index, comparison) in found.iter_mut().enumerate() {
        comparison.number = index + 1;
        comparison.sentence = words::comparison(comparison);
    }
    found
}

/// What a run compares in an experiment: runs of the same suite may compare different targets.
fn facts<'a>(run: &'a RunFacts, experiment: &Experiment) -> Option<&'a ComparisonFacts> {
    let mut experiments = run.header.experiments.iter();
    experiments.find(|facts| facts.name == experiment.name)?.comparison.as_ref()
}

/// What is compared: as the suite says; else the two targets where there are two. Of two runs also
/// the same target of both; where each has one, whatever their names are.
fn duels<'a>(evidence: &'a Evidence, experiment: &Experiment) -> Vec<Duel<'a>> {
    let is_used =
        |target: &&PaperTarget| experiment.points.iter().any(|p| p.target == target.label);
    let used: Vec<&PaperTarget> = evidence.targets.iter().filter(is_used).collect();
    let of_runs = || evidence.runs.iter().filter_map(|run| Some((run, facts(run, experiment)?)));
    let wanted = of_runs().next().map(|(_, facts)| facts);
    let duel = |baseline: &'a PaperTarget, candidate: &'a PaperTarget, is_aa: bool| Duel {
        baseline: &baseline.label,
        candidate: &candidate.label,
        is_aa: is_aa || is_same(baseline, candidate),
        wanted_half_width: wanted.and_then(|facts| facts.stop.half_width),
        pairs_least: wanted.map_or(0, |facts| facts.stop.pairs_least),
    };
    let mut found = Vec::new();
    for (run, facts) in of_runs() {
        let is_aa = facts.is_aa && facts.candidates.len() == 1;
        let of_name = |name: &str| {
            used.iter()
                .copied()
                .find(|target| target.run == run.number && target.facts.name == name)
        };
        let Some(baseline) = of_name(&facts.baseline) else { continue };
        let candidates = facts.candidates.iter().filter_map(|name| of_name(name));
        found.extend(candidates.map(|candidate| Duel {
            wanted_half_width: facts.stop.half_width,
            pairs_least: facts.stop.pairs_least,
            ..duel(baseline, candidate, is_aa)
        }));
    }
    let is_alike =
        |a: &PaperTarget, b: &PaperTarget| is_same_load(evidence, experiment, [a.run, b.run]);
    match used.as_slice() {
        [a, b] if !is_alike(a, b) => {}
        [a, b] if a.run != b.run || wanted.is_none() => found.push(duel(a, b, false)),
        [_, _] => {}
        _ if evidence.runs.len() == 2 => {
            let of_run = |run: usize| used.iter().copied().filter(move |target| target.run == run);
            let again = |a: &&PaperTarget| of_run(2).find(|b| b.facts.name == a.facts.name);
            let both = of_run(1).filter_map(|a| Some((a, again(&a)?)));
            let both = both.filter(|(a, b)| is_alike(a, b));
            found.extend(both.map(|(a, b)| duel(a, b, false)));
        }
        _ => {}
    }
    found
}

/// Whether an experiment was the same load in two runs: under one name a suite may have become another
/// test. What a run does not say of it is taken for the same.
fn is_same_load(evidence: &Evidence, experiment: &Experiment, runs: [usize; 2]) -> bool {
    let load = |run: usize| {
        let run = evidence.runs.iter().find(|facts| facts.number == run)?;
        let facts = run.header.experiments.iter().find(|facts| facts.name == experiment.name)?;
        Some((facts.load(), &facts.options, &facts.scripts))
    };
    let [a, b] = runs.map(load);
    a.zip(b).is_none_or(|(a, b)| a == b)
}

/// The same servers in the same run, reached in the same way: whatever differs is noise.
fn is_same(a: &PaperTarget, b: &PaperTarget) -> bool {
    a.run == b.run
        && !a.facts.url.is_empty()
        && (&a.facts.url, &a.facts.nodes, a.facts.route)
            == (&b.facts.url, &b.facts.nodes, b.facts.route)
}

fn comparison(
    experiment: &Experiment,
    experiment_index: usize,
    duel: &Duel<'_>,
    pairs: &Pairs<'_>,
) -> PairedComparison {
    let first = pairs.trials[0].0;
    let summaries: Vec<(&TrialSummary, &TrialSummary)> =
        pairs.trials.iter().map(|(a, b)| (&a.summary, &b.summary)).collect();
    let metrics = judged_metrics(&first.summary);
    let wanted = duel.wanted_half_width;
    PairedComparison {
        number: 0,
        name: format!(
            "{} {}: {} / {}",
            experiment.name,
            pairs::level_name(first),
            duel.candidate,
            duel.baseline
        ),
        experiment: experiment.name.clone(),
        title: experiment.title.clone(),
        experiment_index,
        level: pairs::level_words(first),
        baseline: duel.baseline.to_owned(),
        candidate: duel.candidate.to_owned(),
        is_aa: duel.is_aa,
        order: pairs.order,
        pairs: pairs.trials.iter().map(|(a, b)| [a.label.clone(), b.label.clone()]).collect(),
        wanted_half_width: wanted,
        pairs_least: duel.pairs_least,
        rows: metrics.iter().filter_map(|metric| row(&summaries, *metric, wanted)).collect(),
        sentence: Message::default(),
        checks: Vec::new(),
    }
}

fn row(
    pairs: &[(&TrialSummary, &TrialSummary)],
    metric: Metric,
    wanted_half_width: Option<f64>,
) -> Option<VerdictRow> {
    let ratio = ratio_of(pairs, metric)?;
    let both = |(a, b): &(&TrialSummary, &TrialSummary)| {
        Some((figure_of(a, metric)?, figure_of(b, metric)?))
    };
    let values: Vec<(f64, f64)> = pairs.iter().filter_map(both).collect();
    let ratios: Vec<f64> =
        values.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0).map(|(a, b)| b / a).collect();
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let seed = pairs[0].0.seed;
    let bootstrap = bootstrap::median_interval(&ratios, seed).filter(|_| metric.is_percentile());
    let bounds = |interval: ConfidenceInterval| Bounds { low: interval.low, high: interval.high };
    Some(VerdictRow {
        metric: metric.name(),
        name: metric_name(metric),
        is_less_better: metric.better() == Better::Less,
        baseline: Spread::of(values.iter().map(|pair| pair.0).collect())?,
        candidate: Spread::of(values.iter().map(|pair| pair.1).collect())?,
        pairs: ratio.pairs,
        ratio: ratio.ratio,
        interval: ratio.interval.map(bounds),
        half_width: ratio.half_width(),
        bootstrap: bootstrap.map(bounds),
        p: ratio.p,
        p_adjusted: None,
        p_rank: (ratio.pairs > 1).then(|| rank::signed_rank_p(&logs)),
        variation_baseline: ratio.variation_baseline,
        variation_candidate: ratio.variation_candidate,
        noise_floor: None,
        pairs_needed: ratio.pairs_needed(wanted_half_width.unwrap_or(PLANNED_HALF_WIDTH)),
        call: called(ratio.verdict(metric.better(), wanted_half_width)),
        words: Message::default(),
    })
}

fn called(verdict: RatioVerdict) -> Call {
    match verdict {
        RatioVerdict::Faster => Call::Faster,
        RatioVerdict::Slower => Call::Slower,
        RatioVerdict::NoDifference => Call::NoDifference,
        RatioVerdict::Undecided(UndecidedReason::TooFewPairs) => Call::TooFewPairs,
        RatioVerdict::Undecided(UndecidedReason::DeviationTooHigh) => Call::DeviationTooHigh,
        RatioVerdict::Undecided(UndecidedReason::Wide) => Call::Wide,
    }
}

/// What a comparison of a system with itself has shown of one metric.
struct NoiseFloor {
    experiment_index: usize,
    level: Message,
    metric: &'static str,
    share: f64,
}

fn floors(of: &PairedComparison) -> Vec<NoiseFloor> {
    let floor = |row: &VerdictRow| {
        let interval = row.interval?;
        let interval = ConfidenceInterval { low: interval.low, high: interval.high };
        Some(NoiseFloor {
            experiment_index: of.experiment_index,
            level: of.level.clone(),
            metric: row.metric,
            share: noise::floor(interval),
        })
    };
    if of.is_aa { of.rows.iter().filter_map(floor).collect() } else { Vec::new() }
}

/// The noise floor of a metric: of the same experiment and load level; else of another load level, or
/// of another experiment with the same test (a suite measures the noise in one of its own), which tells
/// more than none.
fn noise_floor(
    evidence: &Evidence,
    floors: &[NoiseFloor],
    experiment_index: usize,
    level: &Message,
    metric: &str,
) -> Option<f64> {
    let test = |index: usize| evidence.experiments.get(index).map(|experiment| &experiment.test);
    let is_here = |floor: &NoiseFloor| floor.experiment_index == experiment_index;
    let is_alike = |floor: &NoiseFloor| test(floor.experiment_index) == test(experiment_index);
    let of = |is_it: &dyn Fn(&NoiseFloor) -> bool| {
        let found = floors.iter().filter(|floor| floor.metric == metric && is_it(floor));
        found.map(|floor| floor.share).reduce(f64::max)
    };
    of(&|floor| is_here(floor) && floor.level == *level)
        .or_else(|| of(&is_here))
        .or_else(|| of(&|floor| is_alike(floor) && floor.level == *level))
        .or_else(|| of(&is_alike))
}

/// Corrects the p of all rows for each other and turns them into verdicts.
fn judge(found: &mut [PairedComparison]) {
    // Below four pairs nothing is judged, so nothing is corrected for it either.
    let is_judged = |row: &VerdictRow| row.call != Call::TooFewPairs && row.p.is_some();
    let p: Vec<f64> = found
        .iter()
        .flat_map(|comparison| &comparison.rows)
        .filter(|row| is_judged(row))
        .filter_map(|row| row.p)
        .collect();
    let mut adjusted = holm::adjusted(&p).into_iter();
    for comparison in found {
        for row in &mut comparison.rows {
            if is_judged(row) {
                row.p_adjusted = adjusted.next();
                row.call = corrected(row, comparison.wanted_half_width, comparison.is_aa);
            }
            row.words = words::call(row);
        }
    }
}

fn corrected(row: &VerdictRow, wanted_half_width: Option<f64>, is_aa: bool) -> Call {
    if !row.call.is_difference() {
        return row.call;
    }
    let holds_one = |bounds: Bounds| bounds.low <= 1.0 && 1.0 <= bounds.high;
    let is_proven = row.p_adjusted.is_some_and(|p| p < 1.0 - dyno_statistics::CONFIDENCE)
        && !row.bootstrap.is_some_and(holds_one);
    if !is_proven {
        // Its own interval excludes 1, so where that is wide it can't be said to hold 1.
        return match PairedRatio::is_narrow(row.half_width, wanted_half_width) {
            true => Call::NoDifference,
            false => Call::Unproven,
        };
    }
    let is_noise = |share: f64| noise::is_below(row.ratio, share);
    match !is_aa && row.noise_floor.is_some_and(is_noise) {
        true => Call::BelowNoiseFloor,
        false => row.call,
    }
}
