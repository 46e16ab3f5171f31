//! How far a suite has come, and how long the rest will take.

use dyno_store::{Event, EventKind};
use dyno_suite::{Action, Step};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// How far a run has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Progress {
    /// Steps that are done.
    pub(crate) done: usize,
    /// Steps that can't be executed on their target, or need not be any more.
    pub(crate) skipped: usize,
    /// Steps of the plan.
    pub(crate) total: usize,
    /// The step that is executed now; `None` when nothing is, or when it is no part of the plan.
    pub(crate) step: Option<String>,
    /// What that step does: `prepare`, `trial` or `cleanup`.
    pub(crate) doing: Option<&'static str>,
    /// Seconds that the rest will take, as the plan guesses them; `None` when nothing runs.
    pub(crate) remaining_s: Option<f64>,
    /// True when more trials may come than the plan has: a search decides while it runs.
    pub(crate) is_open: bool,
}

/// What is known of a run beside its plan.
#[derive(Debug, Default)]
pub(crate) struct Known<'a> {
    /// Trials that have ended, in the order of their numbers: step, and whether it needs no other.
    pub(crate) ended: Vec<(&'a str, bool)>,
    /// The trial that runs: its step and when it began.
    pub(crate) current: Option<(&'a str, &'a str)>,
    /// When what runs now began, if it is no trial.
    pub(crate) since: &'a str,
    /// Steps that were loads and have ended.
    pub(crate) prepared: Option<&'a BTreeSet<String>>,
    /// Steps left out.
    pub(crate) skipped: Option<&'a BTreeMap<String, String>>,
    /// Whether somebody executes it.
    pub(crate) is_running: bool,
}

/// Counts what is done, and guesses the rest from where the run stands in its plan.
pub(crate) fn of(plan: &[Step], known: &Known<'_>, now: OffsetDateTime) -> Progress {
    let is_skipped =
        |step: &Step| known.skipped.is_some_and(|skipped| skipped.contains_key(&step.id));
    let place = |id: &str| plan.iter().position(|step| step.id == id);
    let last_ended = known.ended.iter().filter_map(|(id, _)| place(id)).next_back();
    let current = known.current.and_then(|(id, _)| place(id));
    let good: BTreeSet<&str> =
        known.ended.iter().filter(|(_, is_done)| *is_done).map(|(id, _)| *id).collect();
    // Of loads only a note tells that they have ended; what comes before a trial that has begun, has too.
    let reached = current.or(last_ended).unwrap_or(0);
    let is_done = |(at, step): (usize, &Step)| match step.action {
        Action::Trial(_) => good.contains(step.id.as_str()),
        _ => at < reached || known.prepared.is_some_and(|prepared| prepared.contains(&step.id)),
    };
    let mut left =
        plan.iter().enumerate().filter(|&(at, step)| !is_skipped(step) && !is_done((at, step)));
    let mut progress = Progress {
        done: plan
            .iter()
            .enumerate()
            .filter(|&(at, step)| !is_skipped(step) && is_done((at, step)))
            .count(),
        skipped: plan.iter().filter(|step| is_skipped(step)).count(),
        total: plan.len(),
        ..Progress::default()
    };
    if !known.is_running {
        return progress;
    }
    let begun = match (known.current, current) {
        (Some((_, began_at)), Some(_)) => began_at,
        // A trial that the plan doesn't know: a step of a search.
        (Some(_), None) => {
            progress.is_open = true;
            progress.remaining_s = Some(left.map(|(_, step)| step.estimated_s).sum());
            return progress;
        }
        (None, _) => known.since,
    };
    let now_at = current.or_else(|| left.clone().map(|(at, _)| at).find(|&at| at >= reached));
    let step = now_at.map(|at| &plan[at]);
    progress.step = step.map(|step| step.id.clone());
    progress.doing = step.map(|step| match step.action {
        Action::Prepare => "prepare",
        Action::Trial(_) => "trial",
        Action::Cleanup => "cleanup",
    });
    let gone_s = seconds_since(begun, now);
    let rest_s: f64 = left
        .by_ref()
        .map(|(at, step)| match Some(at) == now_at {
            true => (step.estimated_s - gone_s).max(0.0),
            false => step.estimated_s,
        })
        .sum();
    progress.remaining_s = Some(rest_s);
    progress
}

fn seconds_since(begun: &str, now: OffsetDateTime) -> f64 {
    let begun = OffsetDateTime::parse(begun, &Rfc3339);
    begun.map_or(0.0, |begun| (now - begun).as_seconds_f64().max(0.0))
}

/// The step of a load whose end this event notes.
pub(crate) fn prepared(event: &Event) -> Option<String> {
    if event.kind != EventKind::Note {
        return None;
    }
    let rest = event.text.strip_prefix("prepare of ")?;
    let (experiment, rest) = rest.split_once(" on ")?;
    let (target, _) = rest.split_once(": ")?;
    Some(format!("{experiment}/{target}/prepare"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_suite::Trial;

    fn plan() -> Vec<Step> {
        let step = |tail: &str, estimated_s: f64, action: Action| Step {
            id: format!("x/a/{tail}"),
            experiment: "x".to_owned(),
            target: "a".to_owned(),
            estimated_s,
            action,
        };
        let trial = |repeat| {
            Action::Trial(Trial {
                number: repeat,
                aim: dyno_suite::Aim::Measure,
                point: "x/a/threads=1".to_owned(),
                threads: 1,
                degree: None,
                rate: None,
                repeat,
                warmup_s: 0.0,
                duration_s: Some(10.0),
                events: None,
                interval_s: 1.0,
                seed: 1,
            })
        };
        vec![
            step("prepare", 5.0, Action::Prepare),
            step("threads=1/repeat=1", 10.0, trial(1)),
            step("threads=1/repeat=2", 10.0, trial(2)),
            step("cleanup", 1.0, Action::Cleanup),
        ]
    }

    fn at(second: u8) -> OffsetDateTime {
        OffsetDateTime::parse(&format!("2026-11-21T10:00:{second:02}Z"), &Rfc3339).expect("a time")
    }

    #[test]
    fn the_rest_shrinks_from_loading_to_the_end() {
        let plan = plan();
        let (nothing, loaded) = (BTreeSet::new(), BTreeSet::from(["x/a/prepare".to_owned()]));
        let mut known = Known {
            since: "2026-11-21T10:00:00Z",
            prepared: Some(&nothing),
            is_running: true,
            ..Known::default()
        };
        let loading = of(&plan, &known, at(2));
        assert_eq!(
            (loading.done, loading.doing, loading.remaining_s),
            (0, Some("prepare"), Some(24.0))
        );
        known.prepared = Some(&loaded);
        known.current = Some(("x/a/threads=1/repeat=1", "2026-11-21T10:00:10Z"));
        let first = of(&plan, &known, at(13));
        assert_eq!((first.done, first.doing, first.remaining_s), (1, Some("trial"), Some(18.0)));
        // It takes longer than it was thought to.
        assert_eq!(of(&plan, &known, at(40)).remaining_s, Some(11.0));
        known.ended = vec![("x/a/threads=1/repeat=1", true), ("x/a/threads=1/repeat=2", true)];
        known.current = None;
        let last = of(&plan, &known, at(40));
        assert_eq!((last.done, last.doing), (3, Some("cleanup")));
        known.is_running = false;
        assert_eq!(of(&plan, &known, at(41)).remaining_s, None);
    }

    #[test]
    fn what_was_cut_off_and_what_is_skipped_is_not_done() {
        let plan = plan();
        let nothing = BTreeSet::new();
        let skipped = BTreeMap::from([("x/a/threads=1/repeat=2".to_owned(), "reached".to_owned())]);
        let known = Known {
            ended: vec![("x/a/threads=1/repeat=1", false)],
            current: Some(("x/a/threads=1/repeat=1", "2026-11-21T10:00:10Z")),
            prepared: Some(&nothing),
            skipped: Some(&skipped),
            is_running: true,
            ..Known::default()
        };
        let progress = of(&plan, &known, at(10));
        assert_eq!((progress.done, progress.skipped, progress.total), (1, 1, 4));
        assert_eq!(progress.remaining_s, Some(11.0));
    }

    #[test]
    fn a_trial_that_the_plan_does_not_know_leaves_the_end_open() {
        let (plan, nothing) = (plan(), BTreeSet::new());
        let known = Known {
            current: Some(("x/a/rate=500/search=3", "2026-11-21T10:00:10Z")),
            prepared: Some(&nothing),
            is_running: true,
            ..Known::default()
        };
        assert!(of(&plan, &known, at(10)).is_open);
    }

    #[test]
    fn the_end_of_a_load_is_noted() {
        let event = Event::new(EventKind::Note, "prepare of x on a: 10 rows in 1 s");
        assert_eq!(prepared(&event).as_deref(), Some("x/a/prepare"));
        assert_eq!(prepared(&Event::new(EventKind::Note, "cleanup x on a")), None);
    }
}
