//! Comparisons of two targets: from pairs of trials to verdicts.

use super::pairs::{self, Duel, Pairs};
use super::{levels, ratio_of, sessions, words};
use crate::evidence::{
    AaKind, Bounds, Call, Evidence, Experiment, PairedComparison, PaperTarget, RunFacts, Spread,
    Trial, VerdictRow, figure_of, judged_metrics, judging,
};
use crate::findings::checks::generator::stopped;
use crate::text::Message;
use dyno_facts::{ComparisonFacts, ExperimentFacts, StopRule, TrialSummary};
use dyno_statistics::gate::{Gate, GateFigure};
use dyno_statistics::ratio::{DEFAULT_MARGIN, FigureBound, Judging, RatioVerdict, unit_means};
use dyno_statistics::{ALPHA, Better, ConfidenceInterval, Metric, holm, noise, rank};
use std::collections::BTreeSet;

/// Every comparison of the paper, with verdicts that are corrected for each other.
pub(super) fn all(evidence: &Evidence, more_gates: &[String]) -> Vec<PairedComparison> {
    let mut found = Vec::new();
    for (index, experiment) in evidence.experiments.iter().enumerate() {
        for duel in duels(evidence, experiment) {
            let levels = pairs::of(evidence, &experiment.name, &duel);
            let compared = |pairs| comparison(evidence, (experiment, index), &duel, pairs);
            found.extend(levels.iter().map(compared));
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
    judge(&mut found, |index| gated(evidence, index, more_gates));
    for (index, comparison) in found.iter_mut().enumerate() {
        comparison.number = index + 1;
        comparison.sentence = words::comparison(comparison);
    }
    found
}

/// The facts of an experiment in a run.
fn own_facts<'a>(run: &'a RunFacts, experiment: &Experiment) -> Option<&'a ExperimentFacts> {
    run.header.experiments.iter().find(|facts| facts.name == experiment.name)
}

/// What a run compares in an experiment: runs of the same suite may compare different targets.
fn facts<'a>(run: &'a RunFacts, experiment: &Experiment) -> Option<&'a ComparisonFacts> {
    own_facts(run, experiment)?.comparison.as_ref()
}

/// What is compared: as the suite says; else the two targets where there are two. Of two runs also
/// the same target of both; where each has one, whatever their names are.
fn duels<'a>(evidence: &'a Evidence, experiment: &Experiment) -> Vec<Duel<'a>> {
    let is_used =
        |target: &&PaperTarget| experiment.points.iter().any(|p| p.target == target.label);
    let used: Vec<&PaperTarget> = evidence.targets.iter().filter(is_used).collect();
    // Also a target of which every trial failed before it measured anything.
    let is_tried = |target: &&PaperTarget| {
        let own = |trial: &Trial| trial.summary.experiment == experiment.name;
        evidence.trials.iter().any(|trial| own(trial) && trial.target == target.label)
    };
    let tried: Vec<&PaperTarget> = evidence.targets.iter().filter(is_tried).collect();
    let of_runs = || evidence.runs.iter().filter_map(|run| Some((run, facts(run, experiment)?)));
    let wanted = of_runs().next().map(|(_, facts)| facts);
    let renewed = |runs: [usize; 2]| {
        let own = evidence.runs.iter().filter(|run| runs.contains(&run.number));
        let own = own.filter_map(|run| own_facts(run, experiment));
        own.fold([0; 2], |[restart, reload], facts| {
            [restart.max(facts.restart_each), reload.max(facts.reload_each)]
        })
    };
    let duel = |baseline: &'a PaperTarget, candidate: &'a PaperTarget, is_aa: bool| Duel {
        baseline: &baseline.label,
        candidate: &candidate.label,
        is_aa: is_aa || is_same(baseline, candidate),
        aa: match renewed([baseline.run, candidate.run]) {
            _ if !is_same(baseline, candidate) => AaKind::Clone,
            [1, _] => AaKind::Starts,
            _ => AaKind::Trials,
        },
        restart_each: renewed([baseline.run, candidate.run])[0],
        reload_each: renewed([baseline.run, candidate.run])[1],
        is_planned: false,
        stop: wanted.map_or(StopRule::default(), |facts| facts.stop),
        margin: margin(wanted),
    };
    let mut found = Vec::new();
    for (run, facts) in of_runs() {
        let is_aa = facts.is_aa && facts.candidates.len() == 1;
        let of_name = |name: &str| {
            tried
                .iter()
                .copied()
                .find(|target| target.run == run.number && target.facts.name == name)
        };
        let Some(baseline) = of_name(&facts.baseline) else { continue };
        let candidates = facts.candidates.iter().filter_map(|name| of_name(name));
        found.extend(candidates.map(|candidate| Duel {
            is_planned: true,
            stop: facts.stop,
            margin: margin(Some(facts)),
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

fn margin(facts: Option<&ComparisonFacts>) -> f64 {
    facts.and_then(|facts| facts.equivalence).unwrap_or(DEFAULT_MARGIN)
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
    evidence: &Evidence,
    (experiment, experiment_index): (&Experiment, usize),
    duel: &Duel<'_>,
    pairs: &Pairs<'_>,
) -> PairedComparison {
    let first = pairs.trials.first().map_or(pairs.any, |pair| pair.0);
    let summaries: Vec<(&TrialSummary, &TrialSummary)> =
        pairs.trials.iter().map(|(a, b)| (&a.summary, &b.summary)).collect();
    let metrics = judged_metrics(&first.summary);
    let row = |metric: &Metric| row(evidence, &pairs.trials, *metric, duel);
    let rows: Vec<VerdictRow> = metrics.iter().filter_map(row).collect();
    let sessions = rows.first().and_then(|row| {
        let own = values(&pairs.trials, row.metric);
        Some(sessions::rows(evidence, *pairs.trials.first()?, row.metric, &own))
    });
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
        aa: duel.aa,
        unit_pairs: duel.unit(),
        levels: levels::of(
            evidence,
            duel,
            &summaries,
            &pairs::level_words(first),
            metrics.first().copied(),
        ),
        order: pairs.order,
        pairs: pairs.trials.iter().map(|(a, b)| [a.label.clone(), b.label.clone()]).collect(),
        pairs_lost: pairs.lost,
        sessions: sessions.unwrap_or_default(),
        stop: duel.stop,
        margin: duel.margin,
        no_pair: if rows.is_empty() { words::no_pair(&pairs.spoilt) } else { Message::default() },
        rows,
        sentence: Message::default(),
        checks: Vec::new(),
        vetoes: Vec::new(),
    }
}

/// The figures of the pairs in which both have one.
fn values(pairs: &[(&Trial, &Trial)], metric: Metric) -> Vec<(f64, f64)> {
    let both = |(a, b): &(&Trial, &Trial)| {
        Some((figure_of(&a.summary, metric)?, figure_of(&b.summary, metric)?))
    };
    pairs.iter().filter_map(both).collect()
}

fn row(
    evidence: &Evidence,
    pairs: &[(&Trial, &Trial)],
    metric: Metric,
    duel: &Duel<'_>,
) -> Option<VerdictRow> {
    let summaries: Vec<(&TrialSummary, &TrialSummary)> =
        pairs.iter().map(|(a, b)| (&a.summary, &b.summary)).collect();
    let earlier = sessions::earlier(evidence, *pairs.first()?, metric);
    let ratio = ratio_of(&summaries, metric, duel.stop, (duel.unit(), &earlier))?;
    let whole = |units: usize| units * duel.unit() as usize;
    let values = values(pairs, metric);
    let all: Vec<(f64, f64)> = earlier.iter().flatten().chain(&values).copied().collect();
    let bounds = |interval: ConfidenceInterval| Bounds { low: interval.low, high: interval.high };
    let call = called(ratio.verdict(metric.better(), duel.margin));
    Some(VerdictRow {
        metric,
        name: metric.title(),
        is_less_better: metric.better() == Better::Less,
        baseline: Spread::of(all.iter().map(|pair| pair.0).collect())?,
        candidate: Spread::of(all.iter().map(|pair| pair.1).collect())?,
        pairs: match earlier.is_empty() {
            true => values.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0).count(),
            // Only what has a pair in a unit goes on with earlier sessions.
            false => ratio.pairs,
        },
        units: ratio.pairs,
        ratio: ratio.ratio,
        bound: match ratio.bound {
            None => "",
            Some(FigureBound::AtLeast) => "≥",
            Some(FigureBound::AtMost) => "≤",
            Some(FigureBound::Unknown) => "?",
        },
        interval: ratio.interval.map(bounds),
        withstood: withstood(pairs, metric, duel).filter(|_| ratio.bound.is_none()).map(bounds),
        half_width: ratio.half_width(),
        interval_t: ratio.t.filter(|_| !ratio.is_anytime).map(|t| bounds(t.interval)),
        p: ratio.p,
        p_adjusted: None,
        // A fixed number of pairs is what Student's t presumes.
        p_t: ratio.t.filter(|_| !ratio.is_anytime).map(|t| t.p),
        variation_baseline: ratio.variation_baseline,
        variation_candidate: ratio.variation_candidate,
        noise_floor: None,
        pairs_needed: match duel.stop.half_width {
            Some(wanted) if !call.is_undecided() => ratio.pairs_needed(wanted).map(whole),
            _ => ratio.pairs_to_decide(duel.margin).map(whole),
        },
        is_equivalent: ratio.is_equivalent(duel.margin),
        call,
        words: Message::default(),
    })
}

/// The interval of the ratio whatever the pairs in which dyno was stopped would have shown.
fn withstood(
    pairs: &[(&Trial, &Trial)],
    metric: Metric,
    duel: &Duel<'_>,
) -> Option<ConfidenceInterval> {
    let Judging::Level(alpha) = judging(duel.stop, duel.unit()) else { return None };
    let unit = |(a, _): &(&Trial, &Trial)| a.summary.repeat.saturating_sub(1) / duel.unit();
    let is_stopped = |(a, b): &&(&Trial, &Trial)| stopped(a).or_else(|| stopped(b)).is_some();
    let lost: BTreeSet<u32> = pairs.iter().filter(is_stopped).map(unit).collect();
    let figures = |pair: &(&Trial, &Trial)| {
        let both = (figure_of(&pair.0.summary, metric)?, figure_of(&pair.1.summary, metric)?);
        (!lost.contains(&unit(pair))).then(|| (unit(pair), both))
    };
    let whole = unit_means(&pairs.iter().filter_map(figures).collect::<Vec<_>>());
    let usable = whole.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0);
    let logs: Vec<f64> = usable.map(|(a, b)| (b / a).ln()).collect();
    let both = rank::interval_whatever(&logs, lost.len(), alpha).filter(|_| !lost.is_empty())?;
    Some(ConfidenceInterval { low: both.low.exp(), high: both.high.exp() })
}

fn called(verdict: RatioVerdict) -> Call {
    match verdict {
        RatioVerdict::Faster => Call::Faster,
        RatioVerdict::Slower => Call::Slower,
        RatioVerdict::Equivalent => Call::Equivalent,
        RatioVerdict::TooFewPairs => Call::TooFewPairs,
        RatioVerdict::Undecided => Call::Undecided,
    }
}

/// What a comparison of a system with itself has shown of one metric.
struct NoiseFloor {
    experiment_index: usize,
    level: Message,
    metric: Metric,
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
    metric: Metric,
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

/// The metrics on whose ratios an experiment has a gate.
fn gated(evidence: &Evidence, experiment_index: usize, more: &[String]) -> Vec<Metric> {
    let name = evidence.experiments.get(experiment_index).map(|experiment| &experiment.name);
    let facts = evidence.runs.iter().flat_map(|run| &run.header.experiments);
    let own = facts.filter(|facts| Some(&facts.name) == name).flat_map(|facts| &facts.gates);
    let own = own.filter(|_| more.is_empty());
    let gates = own.chain(more).filter_map(|text| text.parse::<Gate>().ok());
    gates.filter(|gate| gate.figure != GateFigure::Value).map(|gate| gate.metric).collect()
}

/// Corrects the p of each metric for the comparisons of its experiment and turns them into verdicts. A metric counts only
/// where those before it did (fixed sequence), so that several metrics find no more by chance than one; one that a gate
/// names was chosen beforehand and stands alone, so that the gate, which is corrected likewise, says the same. A
/// comparison of a system with itself stands alone.
fn judge(found: &mut [PairedComparison], gated: impl Fn(usize) -> Vec<Metric>) {
    let families = found.iter().map(|of| (of.experiment_index, of.is_aa));
    let mut families: Vec<(usize, bool)> = families.collect();
    families.sort_unstable();
    families.dedup();
    for family in families {
        let is_own = |at: &usize| (found[*at].experiment_index, found[*at].is_aa) == family;
        let own: Vec<usize> = (0..found.len()).filter(is_own).collect();
        let gated = gated(family.0);
        let most = own.iter().map(|at| found[*at].rows.len()).max().unwrap_or(0);
        for place in 0..most {
            // Where there are too few pairs nothing is judged, so nothing is corrected for it either.
            let judged = |at: &&usize| {
                found[**at].rows.get(place).is_some_and(|row| row.call != Call::TooFewPairs)
            };
            let judged: Vec<usize> = own.iter().filter(judged).copied().collect();
            let p: Vec<f64> = judged.iter().map(|at| found[*at].rows[place].p).collect();
            for (at, p) in judged.into_iter().zip(holm::adjusted(&p)) {
                let rows = &mut found[at].rows;
                let is_alone = rows[place].metric.is_cost() || gated.contains(&rows[place].metric);
                let before = rows[..place].iter().filter_map(|row| row.p_adjusted);
                let before = before.filter(|_| !is_alone).fold(p, f64::max);
                rows[place].p_adjusted = Some(before);
                rows[place].call = corrected(&rows[place]);
            }
        }
    }
    for of in found {
        for row in &mut of.rows {
            row.words = words::call(row, of.margin);
        }
    }
}

fn corrected(row: &VerdictRow) -> Call {
    let is_proven = row.p_adjusted.is_some_and(|p| p <= ALPHA);
    match (row.call.is_difference() && !is_proven, row.is_equivalent) {
        (false, _) => row.call,
        (true, true) => Call::Equivalent,
        (true, false) => Call::Unproven,
    }
}
