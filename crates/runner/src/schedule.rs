//! The next step of a run, from its plan and the results so far and nothing else: an interrupted run continues as it
//! would have. A plan has all its steps before it begins, also those that may turn out not to be needed: pairs beyond
//! the half-width, trials of a search that has ended, repeats that the time does not suffice for.
//!
//! If a trial of a pair has failed, the next process makes both again. A point whose trials fail one after the other is
//! given up: a statement that no server takes, a table that isn't there. What has failed repeatedly fails again, and
//! a comparison would try it for all the pairs that it may take.

use dyno_facts::format::short;
use dyno_facts::statistics::gate::Objective;
use dyno_facts::statistics::knee::{self, KneeOutcome, Search, TestedRate};
use dyno_facts::statistics::ratio::{DEFAULT_MARGIN, FigureBound, unit_means};
use dyno_facts::statistics::sequential::{
    CandidatePairs, Decision, NextPair as Pairing, Stop, StoppingPlan, decide,
};
use dyno_facts::{
    ComparisonFacts, ExperimentFacts, Message, Metric, PlanStep, PlannedTrial, Purpose, RunHeader,
    TrialStatus, TrialSummary, earlier_pairs, say,
};
use dyno_judge::evidence::{figure_bound, judged_metrics};
use dyno_judge::findings::verdict::{level_of_trial, veto_of_level};
use dyno_store::RunData;
use dyno_suite::Plan;
use std::collections::{BTreeMap, BTreeSet};

/// Failures of a point in a row after which it is given up.
const FAILURES: u32 = 3;
/// Start of a search: this share of the throughput of a closed loop.
const FIRST_SHARE: f64 = 0.5;
/// The rate of trials that are measured at once: this share of what the slower target does in a closed loop alone.
const TOGETHER_SHARE: f64 = 0.25;

#[derive(Debug, PartialEq)]
pub(super) enum Turn<'a> {
    /// Data are loaded or removed.
    Data,
    /// A trial is executed, as it is here.
    Run(Box<PlannedTrial>, Purpose),
    /// A trial is executed at once with those of other targets, in this order.
    RunTogether(Vec<(&'a PlanStep, PlannedTrial)>),
    /// A trial is not needed: why, in a sentence.
    Skip(Message),
    /// The search of a trial has ended, or its point is given up in this process.
    Over,
}

pub(super) type Level = (u32, Option<u32>, Option<u64>);

/// The steps of a plan that a process has to do, in their order.
#[derive(Debug)]
pub(super) struct Schedule<'a> {
    plan: &'a Plan,
    steps: Vec<&'a PlanStep>,
    /// Number of steps that have had their turn.
    started_steps: usize,
    /// Failures in a row by experiment, load level and target.
    in_a_row: BTreeMap<(String, Level), BTreeMap<String, u32>>,
    /// Steps whose trials were made with that of another step.
    made_together: BTreeSet<&'a str>,
}

impl<'a> Schedule<'a> {
    pub(super) fn new(plan: &'a Plan, results: &RunData) -> Self {
        let complete = results.complete().map(|trial| trial.step.clone()).collect();
        let skipped = results.header.skipped.keys().cloned().collect();
        let steps = plan.remaining(&plan.settled(&complete, &skipped));
        Schedule {
            plan,
            steps,
            started_steps: 0,
            in_a_row: BTreeMap::new(),
            made_together: BTreeSet::new(),
        }
    }

    /// Steps of the plan, all in all.
    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Returns true once each step has had its turn.
    pub(super) fn is_over(&self) -> bool {
        self.started_steps == self.steps.len()
    }

    /// The step whose turn it is, and those after it.
    pub(super) fn remaining_steps(&self) -> &[&'a PlanStep] {
        &self.steps[self.started_steps.saturating_sub(1)..]
    }

    /// The next step and what becomes of it; `None` if all have had their turn.
    pub(super) fn next(&mut self, results: &RunData) -> Option<(&'a PlanStep, Turn<'a>)> {
        let step = *self.steps.get(self.started_steps)?;
        self.started_steps += 1;
        let Some(trial) = step.trial() else { return Some((step, Turn::Data)) };
        let pending = PendingTrial { plan: self.plan, results, step, trial };
        let turn = match trial.purpose {
            _ if self.is_given_up(step, trial) || self.made_together.contains(&*step.id) => {
                Turn::Over
            }
            Purpose::Search => pending.search(),
            Purpose::Confirm => pending.confirm_best(),
            Purpose::Measure => pending.measure(),
        };
        if let Turn::RunTogether(together) = &turn {
            self.made_together.extend(together.iter().map(|(step, _)| &*step.id));
        }
        Some((step, turn))
    }

    /// Notes how the trial of a step has ended; true if its point is given up from now on.
    pub(super) fn record_end(&mut self, step: &PlanStep, status: &TrialStatus) -> bool {
        // A search goes to where trials fail.
        let Some(trial) = step.trial().filter(|trial| trial.purpose != Purpose::Search) else {
            return false;
        };
        let by_target = self.in_a_row.entry((step.experiment.clone(), level(trial))).or_default();
        let failures = by_target.entry(step.target.clone()).or_default();
        match status {
            TrialStatus::Failed(_) => *failures += 1,
            TrialStatus::Complete => *failures = 0,
            _ => return false,
        }
        *failures == FAILURES
    }

    /// Returns true if a trial belongs to a point that is given up; where targets are compared, to one on any of them.
    fn is_given_up(&self, step: &PlanStep, trial: &PlannedTrial) -> bool {
        let Some(by_target) = self.in_a_row.get(&(step.experiment.clone(), level(trial))) else {
            return false;
        };
        let is_compared = planned_comparison(self.plan, step).is_some();
        let mut failures = by_target.iter();
        trial.purpose != Purpose::Search
            && failures.any(|(target, failures)| {
                (is_compared || *target == step.target) && *failures >= FAILURES
            })
    }
}

fn planned_comparison<'a>(plan: &'a Plan, step: &PlanStep) -> Option<&'a ComparisonFacts> {
    plan.experiment(&step.experiment)?.comparison.as_ref()
}

/// Complete trials of pairs of which the other trial failed or was cut off, and the steps of those: both are made
/// again, one right after the other. Made alone, the second one would meet whatever has changed since.
pub(super) fn half_pairs(plan: &Plan, results: &RunData) -> BTreeSet<String> {
    let mut halves = BTreeSet::new();
    for step in &plan.steps {
        let Some(trial) = step.trial() else { continue };
        let is_left =
            !results.is_complete(&step.id) && !results.header.skipped.contains_key(&step.id);
        let is_compared = planned_comparison(plan, step).is_some();
        if !is_left || !is_compared || trial.purpose != Purpose::Measure {
            continue;
        }
        let pair = repeat_steps(plan, step, trial, trial.repeat);
        let complete = pair.filter_map(|step| results.complete_trial(&step.id));
        // What was added up from stages has its stages still.
        let complete = complete.filter(|trial| trial.stages.is_empty());
        let complete: Vec<String> = complete.map(|trial| trial.step.clone()).collect();
        if !complete.is_empty() {
            // Its starved attempts belong to the pair that is given up.
            halves.insert(step.id.clone());
        }
        halves.extend(complete);
    }
    halves
}

/// Returns true if time ends the repeats that a step belongs to.
pub(super) fn is_timed(plan: &Plan, step: &PlanStep) -> bool {
    let bound = plan.experiment(&step.experiment).and_then(ExperimentFacts::time_bound);
    bound.is_some() && step.trial().is_some()
}

/// Notes what a trial has taken with all that was done around it: the process that continues with the run has only the
/// rest. The pace is that of trials that were completed: others end at any moment.
pub(super) fn spend(header: &mut RunHeader, step: &PlanStep, seconds: f64, is_complete: bool) {
    *header.spent_s.entry(step.experiment.clone()).or_default() += seconds;
    if is_complete {
        let [taken_s, guessed_s] = header.paces.entry(step.experiment.clone()).or_default();
        *taken_s += seconds;
        *guessed_s += step.estimated_s;
    }
}

/// Reason for ending the repeats of a point before this one, if any: to judge all pairs again for each that is left
/// takes long.
pub(super) fn end_reason(
    plan: &Plan,
    results: &RunData,
    step: &PlanStep,
    trial: &PlannedTrial,
) -> Option<Message> {
    let before = trial.repeat.checked_sub(1)?;
    let mut steps = repeat_steps(plan, step, trial, before);
    let previous = steps.find(|other| other.target == step.target)?;
    results.header.skipped.get(&previous.id).cloned()
}

/// Returns the steps that execute the repeat `repeat` of the level and purpose of `trial`, one for each target.
pub(super) fn repeat_steps<'a>(
    plan: &'a Plan,
    step: &PlanStep,
    trial: &PlannedTrial,
    repeat: u32,
) -> impl Iterator<Item = &'a PlanStep> {
    let (level, purpose) = (level(trial), trial.purpose);
    trials(plan, &step.experiment, purpose)
        .filter(move |(_, trial)| trial.repeat == repeat && self::level(trial) == level)
        .map(|(step, _)| step)
}

/// The trials of an experiment that have this purpose.
fn trials<'a>(
    plan: &'a Plan,
    experiment: &str,
    purpose: Purpose,
) -> impl Iterator<Item = (&'a PlanStep, &'a PlannedTrial)> {
    let steps = plan.steps.iter().filter(move |step| step.experiment == experiment);
    steps
        .filter_map(|step| Some((step, step.trial()?)))
        .filter(move |(_, trial)| trial.purpose == purpose)
}

/// The load level of a trial: workers, degree, and the rate by its bits.
pub(super) fn level(trial: &PlannedTrial) -> Level {
    (trial.workers, trial.degree, trial.rate.map(f64::to_bits))
}

/// A trial whose turn it is, with the results so far.
#[derive(Clone, Copy)]
struct PendingTrial<'a, 'r> {
    plan: &'a Plan,
    results: &'r RunData,
    step: &'a PlanStep,
    trial: &'a PlannedTrial,
}

impl<'a, 'r> PendingTrial<'a, 'r> {
    /// The complete trial of a step.
    fn result(self, step: &PlanStep) -> Option<&'r TrialSummary> {
        self.results.complete_trial(&step.id)
    }

    fn repeat_steps(self, repeat: u32) -> impl Iterator<Item = &'a PlanStep> {
        repeat_steps(self.plan, self.step, self.trial, repeat)
    }

    /// Another repeat of a point, or another pair.
    fn measure(self) -> Turn<'a> {
        let end = end_reason(self.plan, self.results, self.step, self.trial).or_else(|| {
            let experiment = self.plan.experiment(&self.step.experiment)?;
            match &experiment.comparison {
                Some(comparison) => self.pairs_end_reason(experiment, comparison),
                None => self.repeats_end_reason(experiment),
            }
        });
        match end {
            Some(reason) => Turn::Skip(reason),
            None if self.trial.is_together => self.measure_together(),
            None => Turn::Run(Box::new(self.trial.clone()), Purpose::Measure),
        }
    }

    /// The trials of a repeat at once, when the first of them has its turn. Those of one that continues after a failure
    /// are all repeated.
    fn measure_together(self) -> Turn<'a> {
        let rate = self.trial.rate.or_else(|| self.calibrated_rate_per_s());
        let Some(rate) = rate else { return Turn::Skip(say!(rate_not_calibrated)) };
        let trials = self.repeat_steps(self.trial.repeat).filter_map(|step| {
            Some((step, PlannedTrial { rate: Some(rate), ..step.trial()?.clone() }))
        });
        Turn::RunTogether(trials.collect())
    }

    /// A share of what the slowest target does in a closed loop: none waits for a CPU, and both get the same
    /// load.
    fn calibrated_rate_per_s(self) -> Option<f64> {
        let searches = trials(self.plan, &self.step.experiment, Purpose::Search)
            .filter(|(_, trial)| level(trial) == level(self.trial));
        let tps =
            searches.map(|(step, _)| Some(self.result(step)?.tps)).collect::<Option<Vec<f64>>>()?;
        let slowest = tps.into_iter().reduce(f64::min).filter(|tps| *tps > 0.0)?;
        Some(round_down(slowest * TOGETHER_SHARE))
    }

    /// Seconds that an experiment has spent: as noted, or as the complete trials have taken at least. Those of a trial
    /// are noted after it is stored, and a kill -9 may come between.
    fn spent_s(self, experiment: &str) -> f64 {
        let noted_s = self.results.header.spent_s.get(experiment).copied().unwrap_or(0.0);
        let trials =
            self.results.complete().filter(|trial| trial.identity.experiment == experiment);
        let taken_s =
            trials.map(|trial| trial.connect_s + trial.identity.warmup_s + trial.window_s);
        noted_s.max(taken_s.sum())
    }

    /// Expected duration of these steps: as estimated, at the pace of the experiment's completed ones.
    fn expected_s(self, next: impl Iterator<Item = &'a PlanStep>) -> f64 {
        let paces = &self.results.header.paces;
        let [taken_s, guessed_s] = paces.get(&self.step.experiment).copied().unwrap_or_default();
        let pace = if guessed_s > 0.0 { taken_s / guessed_s } else { 1.0 };
        pace * next.map(|step| step.estimated_s).sum::<f64>()
    }

    /// Reason for ending the repeats of an experiment, if any: all its points are repeated equally often.
    fn repeats_end_reason(self, experiment: &ExperimentFacts) -> Option<Message> {
        let (min_repeats, seconds) = experiment.time_bound()?;
        let repeat = self.trial.repeat;
        if repeat <= min_repeats {
            return None;
        }
        let trials = trials(self.plan, &self.step.experiment, Purpose::Measure);
        let next_steps = trials.filter(|(_, trial)| trial.repeat == repeat);
        let next_steps: Vec<&PlanStep> = next_steps.map(|(step, _)| step).collect();
        if next_steps.iter().any(|step| self.results.is_complete(&step.id)) {
            return None;
        }
        (self.spent_s(&experiment.name) + self.expected_s(next_steps.into_iter()) > seconds)
            .then(|| say!(repeats_over, seconds = seconds.to_string(), n = repeat - 1))
    }

    /// Reason why a comparison needs no further pair, if any.
    fn pairs_end_reason(
        self,
        experiment: &ExperimentFacts,
        comparison: &ComparisonFacts,
    ) -> Option<Message> {
        let repeat = self.trial.repeat;
        // What a pair has begun is made to its end.
        if self.repeat_steps(repeat).any(|other| self.results.is_complete(&other.id)) {
            return None;
        }
        let stop = comparison.stop;
        let unit = experiment.pairs_per_unit();
        // A session that continues with others makes a unit: with the least there is something to compare them by.
        let continues = &self.results.header.continues;
        let min_pairs = if continues.is_empty() { stop.pairs_least } else { unit };
        // What a restart has begun is made to its end.
        if repeat - 1 < min_pairs || !(repeat - 1).is_multiple_of(unit) {
            return None;
        }
        let pairs = comparison.candidates.iter().map(|candidate| {
            // Later ones are there if failed ones are repeated.
            let pairs = (1..=experiment.repeats).filter_map(|repeat| {
                let [baseline, candidate] = [&comparison.baseline, candidate].map(|target| {
                    let mut steps = self.repeat_steps(repeat);
                    self.result(steps.find(|other| other.target == *target)?)
                });
                baseline.zip(candidate)
            });
            pairs.collect()
        });
        let pairs: Vec<Vec<TrialPair<'_>>> = pairs.collect();
        let level = pairs.iter().flatten().next().map(|(a, _)| level_of_trial(a));
        let (metric, mut pairs) = judged_pairs(pairs, unit);
        for (candidate_pairs, candidate) in pairs.iter_mut().zip(&comparison.candidates) {
            let key = [&experiment.name, level.as_ref()?, &comparison.baseline, candidate];
            candidate_pairs.earlier =
                earlier_pairs(continues, key.map(String::as_str), metric.name());
        }
        let trials = trials(self.plan, &self.step.experiment, Purpose::Measure);
        let levels = trials.map(|(_, trial)| self::level(trial)).collect::<BTreeSet<_>>().len();
        let stopping = StoppingPlan {
            pairs_least: (stop.pairs_least / unit) as usize,
            pairs_most: (stop.pairs_most / unit) as usize,
            half_width: stop.half_width,
            is_until_decided: stop.is_until_decided,
            comparisons: comparison.candidates.len() * levels,
            margin: comparison.equivalence.unwrap_or(DEFAULT_MARGIN),
            budget_s: stop.budget_s,
        };
        let next = (repeat..repeat + unit).flat_map(|repeat| self.repeat_steps(repeat));
        let sharing = [&experiment.name].into_iter().chain(&comparison.shares_budget_with);
        let spent_s = sharing.map(|name| self.spent_s(name)).sum();
        let next_s = self.expected_s(next);
        let mut decided = decide(&stopping, &pairs, spent_s, next_s);
        if let Pairing::Stop(Stop::Decided | Stop::HalfWidthReached) = decided.next
            && let Some((reason, may_help)) = level
                .as_ref()
                .and_then(|level| veto_of_level(self.results, &experiment.name, level))
        {
            if !may_help {
                let n = decided.pairs * unit as usize;
                return Some(say!(pairs_end_vetoed, n, why = reason));
            }
            let unended = StoppingPlan { half_width: None, is_until_decided: false, ..stopping };
            decided = decide(&unended, &pairs, spent_s, next_s);
        }
        stop_reason(&Decision { pairs: decided.pairs * unit as usize, ..decided }, stop.budget_s)
    }

    fn confirm_best(self) -> Turn<'a> {
        let mut sums: Vec<(&PlannedTrial, f64, u32)> = Vec::new();
        let trials = trials(self.plan, &self.step.experiment, Purpose::Measure);
        for (step, trial) in trials.filter(|(step, _)| step.target == self.step.target) {
            let Some(merit) = self.result(step).and_then(merit) else { continue };
            match sums.iter_mut().find(|(other, ..)| level(other) == level(trial)) {
                Some((_, sum, count)) => (*sum, *count) = (*sum + merit, *count + 1),
                None => sums.push((trial, merit, 1)),
            }
        }
        let means = sums.into_iter().map(|(trial, sum, count)| (trial, sum / f64::from(count)));
        let best = means.max_by(|(_, a), (_, b)| a.total_cmp(b));
        let Some((PlannedTrial { workers, degree, rate, .. }, _)) = best else {
            return Turn::Skip(say!(nothing_to_confirm));
        };
        let (workers, degree, rate) = (*workers, *degree, *rate);
        let confirmed = PlannedTrial { workers, degree, rate, ..self.trial.clone() };
        Turn::Run(Box::new(confirmed), Purpose::Confirm)
    }

    /// The next rate of a search: `statistics` says which, here is what the trials so far have shown.
    fn search(self) -> Turn<'a> {
        let Some(experiment) = self.plan.experiment(&self.step.experiment) else {
            return Turn::Over;
        };
        if experiment.is_together() {
            return Turn::Run(Box::new(self.trial.clone()), Purpose::Search);
        }
        // Both were checked when the suite was read.
        let Some(search) = &experiment.search else { return Turn::Over };
        let Ok(objective) = search.objective.parse::<Objective>() else { return Turn::Over };
        let trials = trials(self.plan, &self.step.experiment, Purpose::Search);
        let attempts: Vec<_> =
            trials.filter(|(_, trial)| trial.point == self.trial.point).collect();
        if attempts.iter().any(|(other, _)| self.results.header.skipped.contains_key(&other.id)) {
            return Turn::Over;
        }
        let earlier = attempts.iter().filter(|(_, other)| other.repeat < self.trial.repeat);
        let completed: Vec<&TrialSummary> =
            earlier.filter_map(|(other, _)| self.result(other)).collect();
        if completed.len() + 1 < self.trial.repeat as usize {
            return Turn::Skip(say!(search_trial_failed));
        }
        // A lower rate would tell even less.
        if completed.last().is_some_and(|last| {
            last.rate_per_s.is_some() && last.searched_figure(objective.metric).is_none()
        }) {
            return Turn::Skip(say!(search_windows_too_short, objective = &objective.text));
        }
        let closed =
            completed.iter().find(|trial| trial.rate_per_s.is_none()).map(|trial| trial.tps);
        let Some(start_per_s) = search.start_rate.or(closed.map(|tps| tps * FIRST_SHARE)) else {
            return self.run_at(None, Purpose::Search);
        };
        let (most_per_s, confirmations) = (search.most_rate, experiment.confirm);
        let from = Search { most_per_s, confirmations, ..Search::from(start_per_s) };
        let tested_rates: Vec<TestedRate> =
            completed.iter().filter_map(|trial| trial.tested_rate(&objective)).collect();
        match knee::next(&from, &tested_rates) {
            knee::KneeStep::Search { rate_per_s } => self.run_at(Some(rate_per_s), Purpose::Search),
            knee::KneeStep::Confirm { rate_per_s, .. } => {
                self.run_at(Some(rate_per_s), Purpose::Confirm)
            }
            knee::KneeStep::Done(outcome) => Turn::Skip(describe_outcome(&outcome, &objective)),
        }
    }

    fn run_at(self, rate: Option<f64>, purpose: Purpose) -> Turn<'a> {
        Turn::Run(Box::new(PlannedTrial { rate, ..self.trial.clone() }), purpose)
    }
}

/// A repeat on the baseline and on a candidate.
type TrialPair<'a> = (&'a TrialSummary, &'a TrialSummary);

/// The figures that pairs are repeated for: those of the metric by which the paper will decide, the
/// first that the trials have. A narrow interval of any other would end too soon. Pairs that share a renewal, `unit`
/// of them, count as one.
fn judged_pairs(pairs: Vec<Vec<TrialPair<'_>>>, unit: u32) -> (Metric, Vec<CandidatePairs>) {
    let metrics = pairs.iter().flatten().next().map(|(a, _)| judged_metrics(a)).unwrap_or_default();
    for metric in metrics {
        let candidates = pairs.iter().map(|pairs| candidate_pairs(pairs, metric, unit));
        let candidates: Vec<_> = candidates.collect();
        if candidates.iter().all(|candidate| !candidate.pairs.is_empty()) {
            return (metric, candidates);
        }
    }
    (Metric::Tps, Vec::new())
}

fn candidate_pairs(pairs: &[TrialPair<'_>], metric: Metric, unit: u32) -> CandidatePairs {
    let figures = pairs.iter().flat_map(|(a, b)| a.paired_figures(b, metric, unit));
    let bounds = pairs.iter().map(|(a, b)| [figure_bound(a, metric), figure_bound(b, metric)]);
    CandidatePairs {
        earlier: Vec::new(),
        pairs: unit_means(&figures.collect::<Vec<_>>()),
        bound: FigureBound::for_ratio(bounds),
    }
}

/// To two digits.
fn round_down(rate_per_s: f64) -> f64 {
    let unit = 10f64.powf(rate_per_s.log10().floor() - 1.0);
    (rate_per_s / unit).floor() * unit
}

fn stop_reason(decision: &Decision, budget_s: Option<f64>) -> Option<Message> {
    let pairs = decision.pairs;
    let half_width = decision.half_width.map(|width| format!("{:.1}%", width * 100.0));
    match decision.next {
        Pairing::Continue | Pairing::Stop(Stop::MostPairs) => None,
        Pairing::Stop(Stop::HalfWidthReached) => {
            Some(say!(half_width_reached, reached = half_width?, n = pairs))
        }
        Pairing::Stop(Stop::Decided) => Some(say!(pairs_have_decided, n = pairs)),
        Pairing::Stop(Stop::OnlyBounds) => Some(say!(pairs_have_only_bounds, n = pairs)),
        Pairing::Stop(Stop::BudgetSpent) => {
            let budget = budget_s.unwrap_or_default().to_string();
            Some(say!(budget_spent, budget, n = pairs))
        }
    }
}

/// More is better.
fn merit(summary: &TrialSummary) -> Option<f64> {
    let shortest = summary.figure(Metric::TotalS).map(|total_s| 1.0 / total_s);
    let merit = shortest.or_else(|| summary.figure(Metric::Tps))?;
    (merit > 0.0 && merit.is_finite()).then_some(merit)
}

fn describe_outcome(outcome: &KneeOutcome, objective: &Objective) -> Message {
    let objective = &objective.text;
    match outcome {
        KneeOutcome::Held { rate_per_s, failed_per_s: Some(failed) } => {
            let (rate, failed) = (short(*rate_per_s), short(*failed));
            say!(search_ended, rate, objective, failed)
        }
        KneeOutcome::Held { rate_per_s, failed_per_s: None } => {
            say!(search_ended_at_most, rate = short(*rate_per_s), objective)
        }
        KneeOutcome::NoneHeld { lowest_per_s } => {
            say!(search_none_held, rate = short(*lowest_per_s), objective)
        }
        KneeOutcome::Unsteady => say!(search_unsteady, objective),
    }
}
