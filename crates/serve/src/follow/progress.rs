//! Progress of a suite, and the time that the rest will take.

use super::*;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Progress {
    pub(crate) done: usize,
    /// Steps that can't be executed on their target, or need not be any more.
    pub(crate) skipped: usize,
    pub(crate) total: usize,
    /// The step that is executed now; `None` when nothing is.
    pub(crate) step: Option<String>,
    /// The work of that step: `prepare`, `trial` or `cleanup`.
    pub(crate) doing: Option<&'static str>,
    /// Seconds that the rest will take, as the plan guesses them or as time ends repeats; `None` when nothing runs.
    pub(crate) remaining_s: Option<f64>,
    /// Set if it may take less: a search or a comparison ends as soon as it knows enough.
    pub(crate) is_at_most: bool,
}

/// Facts of a run besides its plan.
#[derive(Debug, Default)]
pub(crate) struct RunFacts<'a> {
    /// Steps of trials that have ended, in the order of their numbers.
    pub(crate) ended: Vec<&'a str>,
    /// Trials that need not be executed any more, those that were executed among them.
    pub(crate) settled: BTreeSet<String>,
    /// The ones among them that were executed to their end.
    pub(crate) complete: BTreeSet<String>,
    pub(crate) prepared: BTreeSet<String>,
    /// The trial that runs: its step and when it began.
    pub(crate) current: Option<(&'a str, &'a str)>,
    /// When what runs now began, if it is not a trial.
    pub(crate) since: &'a str,
    pub(crate) experiments: &'a [ExperimentFacts],
    /// Per experiment: what its trials have taken of its time, as the run folder has it.
    pub(crate) spent_s: BTreeMap<String, f64>,
    /// Experiments that end as soon as they know enough.
    pub(crate) sequential: BTreeSet<&'a str>,
    pub(crate) is_running: bool,
}

impl RunFacts<'_> {
    /// The place in the plan that was reached.
    fn plan_position(&self, plan: &[PlanStep]) -> usize {
        let current = self.current.map(|(id, _)| id).into_iter();
        let mut ids = current.chain(self.ended.iter().rev().copied());
        ids.find_map(|id| plan.iter().position(|step| step.id == id)).unwrap_or(0)
    }

    /// Only a note reports the end of a load; steps before a trial that has begun have ended too.
    fn is_done(&self, step: &PlanStep, is_before: bool) -> bool {
        match step.action {
            StepAction::Trial(_) => self.complete.contains(&step.id),
            _ => is_before || self.prepared.contains(&step.id),
        }
    }

    fn may_end_sooner(&self, step: &PlanStep) -> bool {
        match &step.action {
            StepAction::Trial(trial) => {
                trial.purpose == Purpose::Search
                    || self.sequential.contains(step.experiment.as_str())
            }
            _ => false,
        }
    }
}

/// Counts what is done, and estimates the rest from the position in the plan.
pub(crate) fn estimate(plan: &[PlanStep], facts: &RunFacts<'_>, now: OffsetDateTime) -> Progress {
    let position = facts.plan_position(plan);
    let mut progress = Progress { total: plan.len(), ..Progress::default() };
    let mut remaining = Vec::new();
    for (at, step) in plan.iter().enumerate() {
        if facts.is_done(step, at < position) {
            progress.done += 1;
        } else if facts.settled.contains(&step.id) {
            progress.skipped += 1;
        } else {
            remaining.push((at, step));
        }
    }
    if !facts.is_running {
        return progress;
    }
    let now_step = match facts.current {
        Some((id, _)) => remaining.iter().find(|(_, step)| step.id == id),
        None => remaining.iter().find(|(at, _)| *at >= position),
    };
    let began_at = facts.current.map_or(facts.since, |(_, began_at)| began_at);
    let gone_s = seconds_since(began_at, now);
    let now_at = now_step.map(|(at, _)| *at);
    progress.step = now_step.map(|(_, step)| step.id.clone());
    progress.doing = now_step.map(|(_, step)| match step.action {
        StepAction::Prepare => "prepare",
        StepAction::Trial(_) => "trial",
        StepAction::Cleanup => "cleanup",
    });
    let remaining_s = remaining.iter().map(|&(at, step)| {
        if Some(at) == now_at {
            (step, (step.estimated_s - gone_s).max(0.0))
        } else {
            (step, step.estimated_s)
        }
    });
    let remaining_s: Vec<_> = remaining_s.collect();
    // The trial that runs takes of the time too.
    let takes = now_step.map(|(_, step)| *step).filter(|step| is_trial(step));
    let remaining_s = dyno_suite::estimate(facts.experiments, &remaining_s, |experiment| {
        let own_s = takes.filter(|step| step.experiment == experiment).map_or(0.0, |_| gone_s);
        facts.spent_s.get(experiment).copied().unwrap_or(0.0) + own_s
    });
    progress.remaining_s = Some(remaining_s);
    progress.is_at_most = remaining.iter().any(|(_, step)| facts.may_end_sooner(step));
    progress
}

fn is_trial(step: &PlanStep) -> bool {
    matches!(step.action, StepAction::Trial(_))
}

fn seconds_since(start: &str, now: OffsetDateTime) -> f64 {
    let start = OffsetDateTime::parse(start, &Rfc3339);
    start.map_or(0.0, |start| (now - start).as_seconds_f64().max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_facts::{ComparisonFacts, PlannedTrial, StopRule};

    /// A load, two trials and a cleanup: 26 s.
    fn plan() -> Vec<PlanStep> {
        let [first, second] = [1, 2].map(|number| {
            let trial =
                PlannedTrial { number, workers: 1, repeat: number, ..PlannedTrial::default() };
            StepAction::Trial(trial)
        });
        let steps = [
            ("prepare", 5.0, StepAction::Prepare),
            ("workers=1/repeat=1", 10.0, first),
            ("workers=1/repeat=2", 10.0, second),
            ("cleanup", 1.0, StepAction::Cleanup),
        ];
        let steps = steps.map(|(tail, estimated_s, action)| PlanStep {
            id: format!("x/a/{tail}"),
            experiment: "x".to_owned(),
            target: "a".to_owned(),
            estimated_s,
            action,
        });
        Vec::from(steps)
    }

    /// Returns the second of the minute in which all runs of these tests begin.
    fn at(second: u8) -> OffsetDateTime {
        OffsetDateTime::parse(&format!("2026-11-21T10:00:{second:02}Z"), &Rfc3339).expect("a time")
    }

    fn id_set(ids: &[&str]) -> BTreeSet<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    const FIRST: &str = "x/a/workers=1/repeat=1";
    const SECOND: &str = "x/a/workers=1/repeat=2";

    #[test]
    fn the_rest_shrinks_from_loading_to_the_end() {
        let plan = plan();
        let mut facts =
            RunFacts { since: "2026-11-21T10:00:00Z", is_running: true, ..RunFacts::default() };
        let loading = estimate(&plan, &facts, at(2));
        let figures = (loading.done, loading.doing, loading.remaining_s);
        assert_eq!(figures, (0, Some("prepare"), Some(24.0)));
        facts.prepared = id_set(&["x/a/prepare"]);
        facts.current = Some((FIRST, "2026-11-21T10:00:10Z"));
        let first = estimate(&plan, &facts, at(13));
        assert_eq!((first.done, first.doing, first.remaining_s), (1, Some("trial"), Some(18.0)));
        // It takes longer than it was thought to.
        assert_eq!(estimate(&plan, &facts, at(40)).remaining_s, Some(11.0));
        facts.ended = vec![FIRST, SECOND];
        facts.complete = id_set(&[FIRST, SECOND]);
        facts.settled = facts.complete.clone();
        facts.current = None;
        let last = estimate(&plan, &facts, at(40));
        assert_eq!((last.done, last.doing, last.is_at_most), (3, Some("cleanup"), false));
        facts.is_running = false;
        assert_eq!(estimate(&plan, &facts, at(41)).remaining_s, None);
    }

    #[test]
    fn repeats_that_end_by_time_take_what_is_left_of_it() {
        let mut plan = plan();
        let second = plan[2].clone();
        // Many more than there is time for.
        for repeat in 3..=100 {
            let id = format!("x/a/workers=1/repeat={repeat}");
            let action = StepAction::Trial(PlannedTrial { repeat, ..PlannedTrial::default() });
            plan.insert(plan.len() - 1, PlanStep { id, action, ..second.clone() });
        }
        let passes = ExperimentFacts {
            name: "x".to_owned(),
            repeats_s: Some(60.0),
            ..ExperimentFacts::default()
        };
        let stop = StopRule {
            pairs_least: 1,
            pairs_most: 100,
            budget_s: Some(60.0),
            ..StopRule::default()
        };
        let comparison = Some(ComparisonFacts { stop, ..ComparisonFacts::default() });
        let pairs = ExperimentFacts { comparison, repeats_s: None, ..passes.clone() };
        for experiments in [[passes], [pairs]] {
            // The first one has taken twice as long as it was guessed, and the second runs.
            let facts = RunFacts {
                ended: vec![FIRST],
                complete: id_set(&[FIRST]),
                settled: id_set(&[FIRST]),
                prepared: id_set(&["x/a/prepare"]),
                current: Some((SECOND, "2026-11-21T10:00:10Z")),
                experiments: &experiments,
                spent_s: BTreeMap::from([("x".to_owned(), 20.0)]),
                is_running: true,
                ..RunFacts::default()
            };
            assert_eq!(
                estimate(&plan, &facts, at(10)).remaining_s,
                Some(41.0),
                "the cleanup is in it"
            );
            assert_eq!(estimate(&plan, &facts, at(35)).remaining_s, Some(16.0));
            // Its end is all that is waited for.
            assert_eq!(estimate(&plan, &facts, at(59)).remaining_s, Some(1.0));
        }
    }

    #[test]
    fn what_was_cut_off_and_what_is_skipped_is_not_done() {
        let plan = plan();
        let facts = RunFacts {
            ended: vec![FIRST],
            settled: id_set(&[SECOND]),
            current: Some((FIRST, "2026-11-21T10:00:10Z")),
            is_running: true,
            ..RunFacts::default()
        };
        let progress = estimate(&plan, &facts, at(10));
        assert_eq!((progress.done, progress.skipped, progress.total), (1, 1, 4));
        assert_eq!(progress.remaining_s, Some(11.0));
    }

    #[test]
    fn what_ends_when_it_knows_enough_takes_at_most_the_estimate() {
        let mut plan = plan();
        let mut facts = RunFacts { is_running: true, ..RunFacts::default() };
        assert!(!estimate(&plan, &facts, at(10)).is_at_most);
        facts.sequential = BTreeSet::from(["x"]);
        assert!(estimate(&plan, &facts, at(10)).is_at_most);
        facts.sequential.clear();
        let StepAction::Trial(trial) = &mut plan[2].action else { panic!("a trial") };
        trial.purpose = Purpose::Search;
        assert!(estimate(&plan, &facts, at(10)).is_at_most);
    }
}
