//! Attempts of a trial whose load generator was starved, each judged and stored as the runner does.

use super::{new_identity, new_plan, new_run, trials};
use crate::starving::Starving;
use dyno_facts::{PlanStep, PlannedTrial, StageOf, TrialIdentity, TrialStart, TrialStatus};
use dyno_judge::evidence::Trial;
use dyno_store::Run;
use dyno_suite::Plan;
use std::collections::BTreeSet;

/// Long enough for each of the attempts that a test makes.
const SUITE: &str =
    "targets = \"a\"\nworkers = 1\nduration_s = 20\nrepeats = 20\nretry_starved = 2\n";

/// Stores an attempt whose loop waited for a CPU for this share of the window; the faster, the more it was starved.
fn attempt(run: &mut Run, plan: &Plan, stage: Option<StageOf>, share: f64, is_late: bool) {
    attempt_at(run, plan, trials(plan)[0], stage, share, is_late);
}

/// Like [`attempt`], of any of the plan's trials.
fn attempt_at(
    run: &mut Run,
    plan: &Plan,
    (step, trial): (&PlanStep, &PlannedTrial),
    stage: Option<StageOf>,
    share: f64,
    is_late: bool,
) {
    let identity = TrialIdentity { stage, ..new_identity(step, trial) };
    let late = TrialStatus::Failed("late".into());
    let status = if is_late { late } else { TrialStatus::Complete };
    let mut summary = identity.clone().summary(status);
    (summary.window_s, summary.generator.loops, summary.tps) = (20.0, 1, 1e3 * share);
    summary.conditions.generator.run_delay_s = Some(share * 20.0);
    let starving = Starving { is_late, ..Starving::next(run, plan, step, stage, false) };
    starving.judge(&mut summary, false);
    let writer =
        run.begin_trial(TrialStart { identity, ..TrialStart::default() }).expect("a trial");
    run.end_trial(writer, summary).expect("stored");
}

/// Opens the folder of a run again, as after the end of its process.
fn reopen(run: Run) -> Run {
    let path = run.path().to_owned();
    drop(run);
    Run::open(&path).expect("it continues")
}

/// The statuses of all trials after attempts that were starved like this, and the run. With `resumes` dyno is killed
/// behind each of them.
fn run_attempts(shares: &[f64], resumes: bool) -> (Vec<TrialStatus>, Run, tempfile::TempDir) {
    let (plan, dir) = (new_plan(SUITE), tempfile::tempdir().expect("a folder"));
    let mut run = new_run(dir.path());
    for share in shares {
        attempt(&mut run, &plan, None, *share, false);
        if resumes {
            run = reopen(run);
        }
    }
    (read_statuses(&run), run, dir)
}

fn read_statuses(run: &Run) -> Vec<TrialStatus> {
    let data = dyno_store::read(run.path()).expect("read");
    data.trials.into_iter().map(|trial| trial.summary.status).collect()
}

#[test]
fn the_last_attempt_counts() {
    use TrialStatus::{Complete, Starved};
    for resumes in [false, true] {
        for shares in [[0.3, 0.2, 0.4], [0.2, 0.3, 0.01]] {
            let (statuses, ..) = run_attempts(&shares, resumes);
            assert_eq!(statuses, [Starved, Starved, Complete], "{shares:?}, resumed: {resumes}");
        }
        assert_eq!(run_attempts(&[0.3, 0.2], resumes).0, [Starved, Starved]);
    }
}

#[test]
fn trials_are_repeated_for_a_quarter_of_the_plans_time_and_one_more() {
    use TrialStatus::{Complete, Starved};
    for resumes in [false, true] {
        let (plan, dir) = (new_plan(&SUITE.replace("20\nretry", "8\nretry")), tempfile::tempdir());
        let dir = dir.expect("a folder");
        let mut run = new_run(dir.path());
        for (step, trial) in trials(&plan) {
            while !run.data().is_complete(&step.id) {
                attempt_at(&mut run, &plan, (step, trial), None, 0.3, false);
                if resumes {
                    run = reopen(run);
                }
            }
        }
        // A quarter of eight trials are two.
        let statuses = read_statuses(&run);
        let expected = [Starved, Starved, Complete, Starved, Complete];
        assert_eq!(statuses[..5], expected, "resumed: {resumes}");
        assert!(statuses[5..].iter().all(|status| *status == Complete), "{statuses:?}");
        assert_eq!(statuses.len(), 8 + 3);
    }
}

#[test]
fn all_readers_know_which_attempt_counts() {
    let (_, run, _dir) = run_attempts(&[0.3, 0.2, 0.4], false);
    let plan = new_plan(SUITE);
    let step = &trials(&plan)[0].0.id;
    fn count_attempts(run: &Run, step: &str) -> (Option<u32>, usize, BTreeSet<u32>) {
        let number = run.data().complete_trial(step).map(|trial| trial.trial);
        (number, run.data().starved(step, None).len(), run.header().set_aside.clone())
    }
    let expected = (Some(3), 0, BTreeSet::new());
    assert_eq!(count_attempts(&run, step), expected);
    let mut run = reopen(run);
    assert_eq!(count_attempts(&run, step), expected);

    let data = dyno_store::read(run.path()).expect("read");
    let generator = &data.trials[2].summary.conditions.generator;
    assert!((generator.starved_share.expect("a share") - 0.4).abs() < 1e-9);
    assert!(generator.starved.is_some(), "it keeps its caveat");
    let judgment = super::judge_run(&data);
    let numbers =
        |trials: &[Trial]| trials.iter().map(|trial| trial.summary.trial).collect::<Vec<_>>();
    assert_eq!((numbers(&judgment.trials), numbers(&judgment.set_aside)), (vec![3], vec![1, 2]));

    // It is repeated with the other trial of its pair: none of its attempts is left.
    run.set_aside(&[step.clone()].into()).expect("stored");
    for (share, starved) in [(0.9, 1), (0.8, 2)] {
        attempt(&mut run, &plan, None, share, false);
        run = reopen(run);
        assert_eq!(run.data().starved(step, None).len(), starved);
    }
}

#[test]
fn attempts_of_a_pair_that_is_given_up_count_no_more() {
    let (_, mut run, _dir) = run_attempts(&[0.3, 0.2], false);
    let plan = new_plan(SUITE);
    let step = &trials(&plan)[0].0.id;
    run.set_aside(&[step.clone()].into()).expect("stored");
    assert!(run.data().starved(step, None).is_empty());
    assert!(reopen(run).data().starved(step, None).is_empty());
}

#[test]
fn an_attempt_counts_as_what_it_was() {
    let (plan, dir) = (new_plan(SUITE), tempfile::tempdir().expect("a folder"));
    let stage = Some(StageOf { number: 1, of: 2 });
    let [late, staged] = [(None, true), (stage, false)].map(|(stage, is_late)| {
        let mut run = new_run(dir.path());
        for share in [0.3, 0.2, 0.4] {
            attempt(&mut run, &plan, stage, share, is_late);
        }
        read_statuses(&run)[2].clone()
    });
    let failed = TrialStatus::Failed("late".into());
    assert_eq!(late, failed, "its rate was missed all the same");
    assert_eq!(staged, TrialStatus::Complete, "of its stage");
}
