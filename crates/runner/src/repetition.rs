//! What is decided from trial to trial: whether a comparison needs another pair, and which point of a
//! sweep is measured again. Decisions follow from the stored trials, so an interrupted run goes on as it would have;
//! where time ends the repeats, also from the seconds that the run has noted.

use crate::earlier::ServerChanged;
use dyno_facts::{
    ComparisonFacts, ExperimentFacts, Message, PlanStep, PlannedTrial, Purpose, StepAction,
    TrialSummary, earlier_pairs, say,
};
use dyno_statistics::Metric;
use dyno_statistics::ratio::{DEFAULT_MARGIN, FigureBound, unit_means};
use dyno_statistics::sequential::{
    CandidatePairs, Decision, NextPair as Pairing, Stop, StoppingPlan, decide,
};
use dyno_store::{Run, RunData, StoreError};
use dyno_suite::Plan;
use std::collections::BTreeSet;

/// How trials are judged when they are compared.
#[derive(Clone, Copy, Debug)]
pub struct TrialFigures {
    /// A figure of a trial, where it has it.
    pub figure_of: fn(&TrialSummary, Metric) -> Option<f64>,
    /// What a figure is that was not measured to its end.
    pub bound_of: fn(&TrialSummary, Metric) -> Option<FigureBound>,
    /// What comparisons of such trials judge, the one that decides first.
    pub judged_metrics: fn(&TrialSummary) -> Vec<Metric>,
    /// The name of its load level, as earlier sessions keep it.
    pub level_of: fn(&TrialSummary) -> String,
    /// What takes the verdict of an experiment's level away as the run stands, and whether further pairs may help.
    pub veto_of: fn(&RunData, &str, &str) -> Option<(Message, bool)>,
    /// How a server differs from what it said before an earlier trial.
    pub server_changed: ServerChanged,
}

#[derive(Debug, PartialEq)]
pub(super) enum NextTrial {
    /// It is executed, as it is here.
    Run(Box<PlannedTrial>, Purpose),
    /// It is not needed: why, in a sentence.
    Skip(Message),
    /// What it belongs to has ended; that is noted already.
    Over,
}

/// Notes what a trial has taken with all that was done around it, where time ends the repeats: the process that goes
/// on with the run has only the rest. The pace is that of trials that were completed: others end at any moment.
pub(super) fn spend(
    plan: &Plan,
    run: &mut Run,
    step: &PlanStep,
    seconds: f64,
) -> Result<(), StoreError> {
    let bound = plan.experiment(&step.experiment).and_then(ExperimentFacts::time_bound);
    if bound.is_none() || !matches!(step.action, StepAction::Trial(_)) {
        return Ok(());
    }
    let is_complete = run.is_complete(&step.id);
    run.update(|header| {
        *header.spent_s.entry(step.experiment.clone()).or_default() += seconds;
        if is_complete {
            let [taken_s, guessed_s] = header.paces.entry(step.experiment.clone()).or_default();
            *taken_s += seconds;
            *guessed_s += step.estimated_s;
        }
    })
}

/// Whether a trial of the plan is executed; not for those of a search.
pub(super) fn next(
    plan: &Plan,
    run: &Run,
    figures: TrialFigures,
    step: &PlanStep,
    trial: &PlannedTrial,
) -> NextTrial {
    if trial.purpose == Purpose::Confirm {
        return confirm(plan, run, figures, step, trial);
    }
    if let Some(why) = ended(plan, run, step, trial) {
        return NextTrial::Skip(why);
    }
    let spent_s = spent_s(run, &step.experiment);
    let experiment = plan.experiment(&step.experiment);
    let why = |experiment: &ExperimentFacts| match &experiment.comparison {
        Some(comparison) => {
            let of = (experiment, comparison);
            why_enough(plan, of, run, step, trial, (figures, spent_s))
        }
        None => why_over(plan, experiment, run, trial.repeat, spent_s),
    };
    match experiment.and_then(why) {
        Some(why) => NextTrial::Skip(why),
        None => NextTrial::Run(Box::new(trial.clone()), Purpose::Measure),
    }
}

/// Seconds that an experiment has spent: as noted, or as the complete trials have taken at least. Those of a trial are
/// noted after it is stored, and a kill -9 may come between.
fn spent_s(run: &Run, experiment: &str) -> f64 {
    let noted_s = run.header().spent_s.get(experiment).copied().unwrap_or(0.0);
    let own = run.complete().filter(|trial| trial.identity.experiment == experiment);
    let taken_s = own.map(|trial| trial.connect_s + trial.identity.warmup_s + trial.window_s);
    noted_s.max(taken_s.sum())
}

/// Why the repeats of a point have ended before this one, if so: to judge all pairs again for each that is left takes
/// long.
pub(super) fn ended(
    plan: &Plan,
    run: &Run,
    step: &PlanStep,
    trial: &PlannedTrial,
) -> Option<Message> {
    let repeat = trial.repeat.checked_sub(1)?;
    let before = PlannedTrial { repeat, ..trial.clone() };
    let own = round(plan, step, &before).find(|other| other.target == step.target)?;
    run.header().skipped.get(&own.id).cloned()
}

/// The steps of the same pair: the same repeat of the same level on all targets.
pub(super) fn round<'a>(
    plan: &'a Plan,
    step: &PlanStep,
    trial: &PlannedTrial,
) -> impl Iterator<Item = &'a PlanStep> {
    let level = level(trial);
    plan.steps.iter().filter(move |other| {
        other.experiment == step.experiment
            && matches!(&other.action, StepAction::Trial(of) if of.repeat == trial.repeat
                && of.purpose == trial.purpose && self::level(of) == level)
    })
}

pub(super) fn level(trial: &PlannedTrial) -> (u32, Option<u32>, Option<u64>) {
    (trial.workers, trial.degree, trial.rate.map(f64::to_bits))
}

/// How many load levels an experiment has.
fn levels(plan: &Plan, experiment: &str) -> usize {
    let own = plan.steps.iter().filter(|step| step.experiment == experiment);
    let measured = own.filter_map(|step| match &step.action {
        StepAction::Trial(trial) if trial.purpose == Purpose::Measure => Some(level(trial)),
        _ => None,
    });
    measured.collect::<BTreeSet<_>>().len()
}

/// Why no further repeat of an experiment is begun, if so: all its points are repeated equally often.
fn why_over(
    plan: &Plan,
    experiment: &ExperimentFacts,
    run: &Run,
    repeat: u32,
    spent_s: f64,
) -> Option<Message> {
    let (least, seconds) = experiment.time_bound()?;
    let is_next = |step: &&PlanStep| {
        step.experiment == experiment.name
            && matches!(&step.action, StepAction::Trial(of) if of.repeat == repeat
                && of.purpose == Purpose::Measure)
    };
    let next: Vec<&PlanStep> = plan.steps.iter().filter(is_next).collect();
    if repeat <= least || next.iter().any(|step| run.is_complete(&step.id)) {
        return None;
    }
    let next_s = expected_s(run, &experiment.name, &next);
    (spent_s + next_s > seconds)
        .then(|| say!(repeats_over, seconds = seconds.to_string(), n = repeat - 1))
}

/// How long these steps will take: as guessed, at the pace of what the experiment has completed so far.
fn expected_s(run: &Run, experiment: &str, next: &[&PlanStep]) -> f64 {
    let [taken_s, guessed_s] = run.header().paces.get(experiment).copied().unwrap_or_default();
    let pace = if guessed_s > 0.0 { taken_s / guessed_s } else { 1.0 };
    pace * next.iter().map(|step| step.estimated_s).sum::<f64>()
}

/// Why a comparison needs no further pair, if so.
fn why_enough(
    plan: &Plan,
    (experiment, comparison): (&ExperimentFacts, &ComparisonFacts),
    run: &Run,
    step: &PlanStep,
    trial: &PlannedTrial,
    (figures, spent_s): (TrialFigures, f64),
) -> Option<Message> {
    // What a pair has begun is made to its end.
    if round(plan, step, trial).any(|other| run.is_complete(&other.id)) {
        return None;
    }
    let stop = comparison.stop;
    let unit = experiment.pairs_per_unit();
    // A session that goes on with others makes a unit: with the least there is something to compare them by.
    let continues = &run.header().continues;
    let least = if continues.is_empty() { stop.pairs_least } else { unit };
    // What a restart has begun is made to its end.
    if trial.repeat <= least || !(trial.repeat - 1).is_multiple_of(unit) {
        return None;
    }
    let summary = |target: &str, repeat: u32| {
        let of = PlannedTrial { repeat, ..trial.clone() };
        let same = round(plan, step, &of).find(|other| other.target == target)?;
        run.complete_trial(&same.id)
    };
    let pairs = |candidate: &String| {
        let pair = |repeat: u32| {
            let (a, b) = summary(&comparison.baseline, repeat).zip(summary(candidate, repeat))?;
            Some(((repeat - 1) / unit, a, b))
        };
        // Later ones are there where failed ones are made again.
        (1..=stop.pairs_most).filter_map(pair).collect()
    };
    let pairs: Vec<Vec<_>> = comparison.candidates.iter().map(pairs).collect();
    let level = pairs.iter().flatten().next().map(|(_, a, _)| (figures.level_of)(a));
    let (metric, mut pairs) = judged_pairs(figures, pairs);
    for (own, candidate) in pairs.iter_mut().zip(&comparison.candidates) {
        let key = [&experiment.name, level.as_ref()?, &comparison.baseline, candidate];
        own.earlier = earlier_pairs(continues, key.map(String::as_str), metric.name());
    }
    let wanted = StoppingPlan {
        pairs_least: (stop.pairs_least / unit) as usize,
        pairs_most: (stop.pairs_most / unit) as usize,
        half_width: stop.half_width,
        is_until_decided: stop.is_until_decided,
        comparisons: comparison.candidates.len() * levels(plan, &step.experiment),
        margin: comparison.equivalence.unwrap_or(DEFAULT_MARGIN),
        budget_s: stop.budget_s,
    };
    let next = (trial.repeat..trial.repeat + unit).flat_map(|repeat| {
        let of = PlannedTrial { repeat, ..trial.clone() };
        round(plan, step, &of).collect::<Vec<_>>()
    });
    let next_s = expected_s(run, &step.experiment, &next.collect::<Vec<_>>());
    let mut decided = decide(&wanted, &pairs, spent_s, next_s);
    if let Pairing::Stop(Stop::Decided | Stop::HalfWidthReached) = decided.next
        && let Some((why, may_help)) = vetoed(run, figures, &experiment.name, level.as_ref())
    {
        if !may_help {
            return Some(say!(pairs_end_vetoed, n = decided.pairs * unit as usize, why = why));
        }
        let unended = StoppingPlan { half_width: None, is_until_decided: false, ..wanted };
        decided = decide(&unended, &pairs, spent_s, next_s);
    }
    told(&Decision { pairs: decided.pairs * unit as usize, ..decided }, stop.budget_s)
}

/// What takes the verdict away that would end these pairs. A folder that can't be read takes none away.
fn vetoed(
    run: &Run,
    figures: TrialFigures,
    experiment: &str,
    level: Option<&String>,
) -> Option<(Message, bool)> {
    let data = dyno_store::read(run.path()).ok()?;
    (figures.veto_of)(&data, experiment, level?)
}

/// The number of what a pair shares with others, and its trials.
type NumberedPair<'a> = (u32, &'a TrialSummary, &'a TrialSummary);

/// The figures that pairs are repeated for: those of the metric by which the paper will decide, the
/// first that the trials have. A narrow interval of any other would end too soon.
fn judged_pairs(
    TrialFigures { figure_of, bound_of, judged_metrics, .. }: TrialFigures,
    pairs: Vec<Vec<NumberedPair<'_>>>,
) -> (Metric, Vec<CandidatePairs>) {
    let of_metric = |metric: &Metric| -> Vec<CandidatePairs> {
        let both = |(unit, a, b): &NumberedPair<'_>| {
            Some((*unit, (figure_of(a, *metric)?, figure_of(b, *metric)?)))
        };
        let of = |pairs: &Vec<NumberedPair<'_>>| CandidatePairs {
            earlier: Vec::new(),
            pairs: unit_means(&pairs.iter().filter_map(both).collect::<Vec<_>>()),
            bound: FigureBound::of_ratio(
                pairs.iter().map(|(_, a, b)| [bound_of(a, *metric), bound_of(b, *metric)]),
            ),
        };
        pairs.iter().map(of).collect()
    };
    let metrics =
        pairs.iter().flatten().next().map(|(_, a, _)| judged_metrics(a)).unwrap_or_default();
    let mut all = metrics.iter().map(|metric| (*metric, of_metric(metric)));
    let found = all.find(|(_, found)| found.iter().all(|of| !of.pairs.is_empty()));
    found.unwrap_or((Metric::Tps, Vec::new()))
}

/// Why no further pair is made, in a sentence.
fn told(decision: &Decision, budget_s: Option<f64>) -> Option<Message> {
    let pairs = decision.pairs;
    let reached = decision.half_width.map(|width| format!("{:.1} %", width * 100.0));
    match decision.next {
        Pairing::Continue | Pairing::Stop(Stop::MostPairs) => None,
        Pairing::Stop(Stop::HalfWidthReached) => {
            Some(say!(half_width_reached, reached = reached?, n = pairs))
        }
        Pairing::Stop(Stop::Decided) => Some(say!(pairs_have_decided, n = pairs)),
        Pairing::Stop(Stop::OnlyBounds) => Some(say!(pairs_have_only_bounds, n = pairs)),
        Pairing::Stop(Stop::BudgetSpent) => {
            let budget = budget_s.unwrap_or_default().to_string();
            Some(match reached {
                Some(reached) => {
                    say!(budget_spent_half_width, budget = budget, n = pairs, reached = reached)
                }
                None => say!(budget_spent, budget = budget, n = pairs),
            })
        }
    }
}

fn confirm(
    plan: &Plan,
    run: &Run,
    figures: TrialFigures,
    step: &PlanStep,
    trial: &PlannedTrial,
) -> NextTrial {
    let mut sums: Vec<(&PlannedTrial, f64, u32)> = Vec::new();
    for planned in &plan.steps {
        let StepAction::Trial(of) = &planned.action else { continue };
        let is_own = planned.experiment == step.experiment && planned.target == step.target;
        if !is_own || of.purpose != Purpose::Measure {
            continue;
        }
        let Some(better) = run.complete_trial(&planned.id).and_then(|trial| merit(trial, figures))
        else {
            continue;
        };
        match sums.iter_mut().find(|(other, ..)| level(other) == level(of)) {
            Some((_, sum, count)) => (*sum, *count) = (*sum + better, *count + 1),
            None => sums.push((of, better, 1)),
        }
    }
    let mean = |(_, sum, count): &(&PlannedTrial, f64, u32)| sum / f64::from(*count);
    match sums.iter().max_by(|a, b| mean(a).total_cmp(&mean(b))) {
        Some((best, ..)) => {
            let confirmed = PlannedTrial {
                workers: best.workers,
                degree: best.degree,
                rate: best.rate,
                ..trial.clone()
            };
            NextTrial::Run(Box::new(confirmed), Purpose::Confirm)
        }
        None => NextTrial::Skip(say!(nothing_to_confirm)),
    }
}

/// More is better.
fn merit(summary: &TrialSummary, TrialFigures { figure_of, .. }: TrialFigures) -> Option<f64> {
    let shortest = figure_of(summary, Metric::TotalS).map(|total_s| 1.0 / total_s);
    let merit = shortest.or_else(|| figure_of(summary, Metric::Tps))?;
    (merit > 0.0 && merit.is_finite()).then_some(merit)
}
