//! What is decided from trial to trial, on made-up trials in a real run folder.

mod searches;
mod starved;

use super::failing::Failing;
use super::repetition::{NextTrial, TrialFigures};
use super::{repetition, search};
use dyno_facts::{
    Message, PlanStep, PlannedTrial, Purpose, RunHeader, StepAction, TrialIdentity, TrialStart,
    TrialStatus, TrialSummary,
};
use dyno_statistics::Metric;
use dyno_statistics::ratio::FigureBound;
use dyno_store::{Run, RunData};
use dyno_suite::{Overrides, Plan, Suite};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

const FIGURES: TrialFigures = TrialFigures {
    figure_of: dyno_report::figure_of,
    bound_of: dyno_report::bound_of,
    judged_metrics: dyno_report::judged_metrics,
    level_of: dyno_judge::findings::verdict::level_of_trial,
    veto_of: |_, _, _| None,
    server_changed: |_, _| None,
};

fn plan(experiment: &str) -> Plan {
    let text = format!(
        "[suite]\nname = \"s\"\n[target.a]\nurl = \"sqlite:a\"\n[target.b]\nurl = \"sqlite:b\"\n\
         [[experiment]]\nname = \"e\"\nworkload = \"sysbench\"\ntest = \"oltp_point_select\"\n\
         prepare = false\ncleanup = false\n{experiment}"
    );
    let suite = Suite::parse("s.toml", &text, &[dyno_sysbench::OFFER])
        .unwrap_or_else(|error| panic!("{error}"));
    Plan::build(&suite, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn new_run(dir: &Path) -> Run {
    Run::create(dir, RunHeader::new("s", Vec::new(), 1)).expect("a run")
}

fn trials(plan: &Plan) -> Vec<(&PlanStep, &PlannedTrial)> {
    let pairs = plan.steps.iter().filter_map(|step| match &step.action {
        StepAction::Trial(trial) => Some((step, trial)),
        StepAction::Prepare | StepAction::Cleanup => None,
    });
    pairs.collect()
}

fn decide(
    figures: TrialFigures,
    plan: &Plan,
    run: &Run,
    step: &PlanStep,
    trial: &PlannedTrial,
) -> NextTrial {
    match trial.purpose {
        Purpose::Search => search::next(plan, run, step, trial),
        _ => repetition::next(plan, run, figures, step, trial),
    }
}

fn identity(step: &PlanStep, trial: &PlannedTrial) -> TrialIdentity {
    TrialIdentity {
        step: step.id.clone(),
        experiment: step.experiment.clone(),
        target: step.target.clone(),
        workers: trial.workers,
        repeat: trial.repeat,
        rate_per_s: trial.rate,
        ..TrialIdentity::default()
    }
}

/// Stores a complete trial as it was decided.
fn store(
    run: &mut Run,
    step: &PlanStep,
    trial: &PlannedTrial,
    purpose: Purpose,
    window_s: f64,
    tps: f64,
    p99_us: f64,
) {
    let identity = TrialIdentity { purpose, ..identity(step, trial) };
    let mut summary = identity.clone().summary(TrialStatus::Complete);
    summary.tps = tps;
    summary.window_s = window_s;
    summary.offered = trial.rate.map(|rate| (rate * window_s) as u64);
    summary.counts.committed = (tps * window_s) as u64;
    // Adds up, with all workers inside transactions all the time.
    summary.counts.started = summary.counts.committed;
    summary.latency.count = summary.counts.committed;
    summary.latency.sum_us = f64::from(trial.workers) * summary.window_s * 1e6;
    summary.latency.p99_us = p99_us;
    let writer =
        run.begin_trial(TrialStart { identity, ..TrialStart::default() }).expect("a trial");
    writer.finish(summary).expect("stored");
}

/// Goes through the plan as the runner does. `tps` is asked for the throughput of a trial. After
/// `most` trials it is interrupted.
fn go(
    plan: &Plan,
    run: &mut Run,
    most: usize,
    tps: impl Fn(&PlanStep, &PlannedTrial) -> f64,
) -> Vec<String> {
    go_by(FIGURES, plan, run, most, tps)
}

fn go_by(
    figures: TrialFigures,
    plan: &Plan,
    run: &mut Run,
    most: usize,
    tps: impl Fn(&PlanStep, &PlannedTrial) -> f64,
) -> Vec<String> {
    go_timed(figures, plan, run, most, (10.0, 10.0), tps)
}

/// The same where windows have so many seconds, and trials with all that is done around them so many.
fn go_timed(
    figures: TrialFigures,
    plan: &Plan,
    run: &mut Run,
    most: usize,
    (window_s, took_s): (f64, f64),
    tps: impl Fn(&PlanStep, &PlannedTrial) -> f64,
) -> Vec<String> {
    let complete = run.complete().map(|trial| trial.step.clone()).collect();
    let skipped = run.header().skipped.keys().cloned().collect();
    let settled: BTreeSet<String> = plan.settled(&complete, &skipped);
    let mut executed = Vec::new();
    for (step, trial) in trials(plan).into_iter().filter(|(step, _)| !settled.contains(&step.id)) {
        if executed.len() == most {
            break;
        }
        match decide(figures, plan, run, step, trial) {
            NextTrial::Run(trial, purpose) => {
                let tps = tps(step, &trial);
                // As slow as a queue that grows where the rate is not reached.
                let p99_us = if trial.rate.is_some_and(|rate| tps < rate) { 1e6 } else { 2e3 };
                store(run, step, &trial, purpose, window_s, tps, p99_us);
                repetition::spend(plan, run, step, took_s).expect("noted");
                executed.push(step.id.clone());
            }
            NextTrial::Skip(why) => {
                run.update(|header| {
                    header.skipped.insert(step.id.clone(), why);
                })
                .expect("noted");
            }
            NextTrial::Over => {}
        }
    }
    executed
}

const COMPARE: &str = "workers = [1, 8]\nduration_s = 10\n\
                       compare = { baseline = \"a\", candidates = \"b\", pairs = \"6..10\", half_width = \"2%\" }\n";

/// 8 threads vary too much, 1 thread doesn't.
fn noisy(step: &PlanStep, trial: &PlannedTrial) -> f64 {
    let noise = if trial.workers == 8 && trial.repeat.is_multiple_of(2) { 1.2 } else { 1.0 };
    if step.target == "b" { 1_010.0 * noise } else { 1_000.0 + f64::from(trial.repeat) }
}

#[test]
fn pairs_end_where_the_half_width_is_reached() {
    let dir = tempfile::tempdir().expect("a folder");
    let plan = plan(COMPARE);
    let mut run = new_run(dir.path());
    let executed = go(&plan, &mut run, usize::MAX, noisy);
    let count = |level: &str| executed.iter().filter(|id| id.contains(level)).count();
    assert_eq!((count("workers=1/"), count("workers=8/")), (2 * 6, 2 * 10));
    let skipped = &run.header().skipped;
    assert_eq!(skipped.len(), 2 * 4);
    assert!(
        skipped["e/a/workers=1/repeat=7"].to_string().starts_with("Half-width 0.")
            && skipped["e/a/workers=1/repeat=7"].to_string().ends_with("reached after 6 pairs."),
        "{skipped:?}"
    );
    assert!(plan.remaining(&settled(&plan, &run)).is_empty());
}

fn settled(plan: &Plan, run: &Run) -> BTreeSet<String> {
    let complete = run.complete().map(|trial| trial.step.clone()).collect();
    plan.settled(&complete, &run.header().skipped.keys().cloned().collect())
}

#[test]
fn pairs_of_an_open_loop_end_by_the_percentile_that_is_judged() {
    let plan = plan(&COMPARE.replace("workers = [1, 8]", "workers = 8\nrate = 1000"));
    let executed = |tps: fn(&PlanStep, &PlannedTrial) -> f64| {
        let dir = tempfile::tempdir().expect("a folder");
        go(&plan, &mut new_run(dir.path()), usize::MAX, tps).len()
    };
    assert_eq!(executed(|_, _| 1_000.0), 2 * 6);
    // The throughput is the same but for 0.1 %; the percentile is not.
    let wild = |step: &PlanStep, trial: &PlannedTrial| {
        let is_slow = step.target == "a" && trial.repeat.is_multiple_of(2);
        if is_slow { 999.0 } else { 1_000.0 }
    };
    assert_eq!(executed(wild), 2 * 10);
}

#[test]
fn pairs_end_where_they_are_decided() {
    let dir = tempfile::tempdir().expect("a folder");
    let plan = plan(&COMPARE.replace("half_width = \"2%\"", "until_decided = true"));
    let mut run = new_run(dir.path());
    // B is 1 % faster at 1 worker, which is certain; at 8 it varies too much.
    go(&plan, &mut run, usize::MAX, noisy);
    let skipped = &run.header().skipped;
    assert_eq!(skipped.len(), 2 * 4, "{skipped:?}");
    assert_eq!(skipped["e/b/workers=1/repeat=7"].to_string(), "Decided after 6 pairs.");
}

#[test]
fn pairs_are_not_decided_where_a_check_takes_the_verdict_away() {
    let plan = plan(&COMPARE.replace("half_width = \"2%\"", "until_decided = true"));
    let ended = |veto_of: fn(&RunData, &str, &str) -> Option<(Message, bool)>| {
        let dir = tempfile::tempdir().expect("a folder");
        let mut run = new_run(dir.path());
        go_by(TrialFigures { veto_of, ..FIGURES }, &plan, &mut run, usize::MAX, noisy);
        run.header().skipped.get("e/b/workers=1/repeat=7").map(ToString::to_string)
    };
    let said = "Ended after 6 pairs without a verdict: more pairs don't help against a stranger.";
    assert_eq!(
        ended(|_, _, _| Some((Message::verbatim("a stranger"), false))).as_deref(),
        Some(said)
    );
    // What further pairs may outweigh lets them be made.
    assert_eq!(ended(|_, _, _| Some((Message::verbatim("neighbours"), true))), None);
}

#[test]
fn what_has_ended_is_not_judged_again_for_each_pair_that_is_left() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let veto_of: fn(&RunData, &str, &str) -> Option<(Message, bool)> = |_, _, _| {
        ASKED.fetch_add(1, Ordering::Relaxed);
        None
    };
    let text = COMPARE.replace("half_width = \"2%\"", "until_decided = true");
    let plan = plan(&text.replace("6..10", "6..200"));
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = new_run(dir.path());
    go_by(TrialFigures { veto_of, ..FIGURES }, &plan, &mut run, usize::MAX, |step, _| {
        if step.target == "b" { 2_000.0 } else { 1_000.0 }
    });
    assert_eq!(run.header().skipped.len(), 2 * 2 * 194, "two levels of two targets");
    assert_eq!(ASKED.load(Ordering::Relaxed), 2 * 2, "once for each");
}

#[test]
fn a_verdict_is_proven_among_all_load_levels_before_it_ends_pairs() {
    // B is faster by 6 %, which is no equivalence on the way.
    let text = COMPARE.replace("half_width = \"2%\"", "until_decided = true");
    let ended = |workers: &str| {
        let dir = tempfile::tempdir().expect("a folder");
        let plan = plan(&text.replace("workers = [1, 8]", workers));
        let mut header = RunHeader::new("s", Vec::new(), 1);
        plan.store(&mut header);
        let mut run = Run::create(dir.path(), header).expect("a run");
        go(&plan, &mut run, usize::MAX, |step, trial| {
            if step.target == "b" { 1_000.0 + 30.0 * f64::from(trial.repeat % 3) } else { 970.0 }
        });
        let path = run.finish(dyno_facts::RunStatus::Complete).expect("ended");
        let paper = dyno_report::Paper::new(&[dyno_store::read(&path).expect("a run")], &[]);
        let comparisons = &paper.verdicts.comparisons;
        assert!(comparisons.iter().all(|of| of.vetoes.is_empty()), "{:?}", comparisons[0].vetoes);
        comparisons.iter().map(|of| (of.pairs.len(), of.rows[0].call)).collect()
    };
    let [one, many]: [Vec<_>; 2] = [ended("workers = 1"), ended("workers = [1, 2, 4, 8]")];
    assert_eq!(many.len(), 4);
    for of in &many {
        assert!(of.0 > one[0].0, "{one:?} {many:?}");
        assert_eq!(of.1, dyno_report::Call::Faster, "what is decided is so in the paper");
    }
}

/// Passes over queries are judged by their time, which has only a bound where a query was given up.
#[test]
fn times_that_were_cut_off_end_pairs_only_where_they_prove_something() {
    let ended = |stop: &str, bound_of: fn(&TrialSummary, Metric) -> Option<FigureBound>| {
        let times = TrialFigures {
            figure_of: |trial, metric| (metric == Metric::TotalS).then(|| 1e4 / trial.tps),
            judged_metrics: |_| vec![Metric::TotalS],
            bound_of,
            ..FIGURES
        };
        let plan = plan(&COMPARE.replace("half_width = \"2%\"", stop));
        let dir = tempfile::tempdir().expect("a folder");
        let mut run = new_run(dir.path());
        go_by(times, &plan, &mut run, usize::MAX, noisy);
        run.header().skipped.get("e/b/workers=1/repeat=7").map(ToString::to_string)
    };
    let only_bounds = "Ended after 6 pairs without a verdict: what was given up has only a bound, which more pairs \
                       don't change.";
    // B is 1 % faster at 1 worker. What A has at least, it is faster by at least that.
    for stop in ["until_decided = true", "half_width = \"2%\""] {
        let both = ended(stop, |_, _| Some(FigureBound::AtLeast));
        assert_eq!(both.as_deref(), Some(only_bounds), "{stop}");
    }
    let of_a = |trial: &TrialSummary, _| (trial.target == "a").then_some(FigureBound::AtLeast);
    assert_eq!(ended("until_decided = true", of_a).as_deref(), Some("Decided after 6 pairs."));
    assert_eq!(ended("half_width = \"2%\"", of_a).as_deref(), Some(only_bounds));
    assert!(
        ended("half_width = \"2%\"", |_, _| None).is_some_and(|why| why.starts_with("Half-width"))
    );
}

#[test]
fn a_later_run_goes_on_with_the_pairs_of_an_earlier_one() {
    let text = COMPARE.replace("half_width = \"2%\"", "until_decided = true");
    let plan = plan(&text.replace("workers = [1, 8]", "workers = 1"));
    let dir = tempfile::tempdir().expect("a folder");
    let mut header = RunHeader::new("s", Vec::new(), 1);
    plan.store(&mut header);
    let mut first = Run::create(dir.path(), header.clone()).expect("a run");
    assert_eq!(go(&plan, &mut first, 8, noisy).len(), 8);
    let path = first.finish(dyno_facts::RunStatus::Interrupted).expect("ended");
    let sessions = |path: &Path| {
        let data = dyno_store::read(path).expect("a run");
        dyno_judge::findings::verdict::sessions_of(&data).expect("sessions")
    };
    header.continues = sessions(&path);
    assert_eq!(header.continues[0].comparisons[0].metrics["tps"].len(), 4);
    let mut second = Run::create(dir.path(), header.clone()).expect("a run");
    let executed = go(&plan, &mut second, usize::MAX, noisy);
    // Six alone would be the fewest; four are there, and a single pair says nothing of its deviation.
    assert!((4..=10).contains(&executed.len()), "{executed:?}");
    let pairs = 4 + executed.len() / 2;
    let why = second.header().skipped.values().next().expect("a step that was not needed");
    assert_eq!(why.to_string(), format!("Decided after {pairs} pairs."));
    let path = second.finish(dyno_facts::RunStatus::Complete).expect("ended");
    let data = dyno_store::read(&path).expect("a run");
    let paper = dyno_report::Paper::new(&[data], &[]);
    assert_eq!(paper.verdicts.comparisons[0].rows[0].pairs, pairs, "the paper judges both");
    assert_eq!(paper.verdicts.comparisons[0].rows[0].call, dyno_report::Call::Faster);
    assert_eq!(sessions(&path).len(), 2, "a third one may follow");
    // Pairs of another level count for nothing.
    header.continues[0].comparisons[0].level = "workers=9".to_owned();
    let mut other = Run::create(dir.path(), header).expect("a run");
    assert!(go(&plan, &mut other, usize::MAX, noisy).len() >= 12);
}

/// Cut after some trials, a run goes on with the trials that it would have had.
fn goes_on_as_it_would_have(
    plan: &Plan,
    cuts: impl FnOnce(usize) -> Vec<usize>,
    figure: impl Fn(&PlanStep, &PlannedTrial) -> f64 + Copy,
) {
    let dir = tempfile::tempdir().expect("a folder");
    let whole = go(plan, &mut new_run(dir.path()), usize::MAX, figure);
    for cut in cuts(whole.len()) {
        let dir = tempfile::tempdir().expect("a folder");
        let mut run = new_run(dir.path());
        let mut executed = go(plan, &mut run, cut, figure);
        let path = run.finish(dyno_facts::RunStatus::Interrupted).expect("ended");
        let mut run = Run::open(&path).expect("goes on");
        executed.extend(go(plan, &mut run, usize::MAX, figure));
        assert_eq!(executed, whole, "cut after {cut}");
    }
}

#[test]
fn an_interrupted_comparison_goes_on_as_it_would_have() {
    goes_on_as_it_would_have(&plan(COMPARE), |_| vec![1, 11, 12, 13, 24, 25, 29], noisy);
}

/// Six pairs, or more in so many seconds.
fn of_budget(seconds: u32) -> Plan {
    plan(&format!(
        "workers = 1\nduration_s = 10\ncompare = {{ baseline = \"a\", candidates = \"b\", \
         pairs = \"6..50\", budget = \"{seconds}s\" }}\n"
    ))
}

#[test]
fn a_budget_ends_pairs_but_not_below_the_fewest() {
    let plan = of_budget(130);
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = new_run(dir.path());
    // A process of its own for each trial: what earlier ones took is read from the folder.
    let mut executed = Vec::new();
    for _ in 0..20 {
        executed.extend(go(&plan, &mut run, 1, noisy));
        let path = run.finish(dyno_facts::RunStatus::Interrupted).expect("ended");
        run = Run::open(&path).expect("goes on");
    }
    // A trial takes 10 s: after 6 pairs, 120 s, another pair would exceed the budget.
    assert_eq!(executed.len(), 12, "{executed:?}");
    let why = &run.header().skipped["e/b/workers=1/repeat=7"];
    assert!(
        why.to_string().starts_with("The budget of 130 s was spent after 6 pairs; half-width "),
        "{why}"
    );
}

#[test]
fn pairs_fill_their_budget_at_the_pace_that_they_have() {
    // Guessed are 10 s for a trial.
    let plan = of_budget(130);
    let pairs = |took_s: f64| {
        let dir = tempfile::tempdir().expect("a folder");
        let mut run = new_run(dir.path());
        go_timed(FIGURES, &plan, &mut run, usize::MAX, (1.0, took_s), noisy).len() / 2
    };
    assert_eq!([2.0, 4.0, 50.0].map(pairs), [32, 16, 6]);
}

#[test]
fn trials_that_failed_are_spent_but_set_no_pace() {
    let plan = of_budget(130);
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = new_run(dir.path());
    repetition::spend(&plan, &mut run, trials(&plan)[0].0, 100.0).expect("noted");
    let executed = go_timed(FIGURES, &plan, &mut run, usize::MAX, (1.0, 2.0), noisy);
    assert_eq!(executed.len(), 2 * 7, "after six pairs, 124 s, another takes 4 s");
}

#[test]
fn pairs_after_one_that_failed_count_where_it_would_be_made_again() {
    let plan = of_budget(130);
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = new_run(dir.path());
    for (step, trial) in trials(&plan).into_iter().filter(|(_, of)| of.repeat < 10) {
        if trial.repeat != 7 {
            store(&mut run, step, trial, Purpose::Measure, 10.0, noisy(step, trial), 2e3);
        }
    }
    let all = trials(&plan);
    let (step, trial) = all.iter().find(|(_, of)| of.repeat == 7).expect("planned");
    let NextTrial::Skip(why) = decide(FIGURES, &plan, &run, step, trial) else { panic!("made") };
    assert!(why.to_string().contains("was spent after 8 pairs"), "{why}");
}

#[test]
fn a_trial_whose_time_was_not_noted_has_spent_its_window() {
    let mut plan = plan("targets = \"a\"\nworkers = 1\nduration_s = 10\nrepeats = 40\n");
    plan.experiments[0].repeats_s = Some(25.0);
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = new_run(dir.path());
    let (step, trial) = trials(&plan)[0];
    store(&mut run, step, trial, Purpose::Measure, 20.0, 1_000.0, 2e3);
    assert_eq!(go(&plan, &mut run, usize::MAX, noisy), [""; 0], "another takes 10 s");
}

#[test]
fn a_run_that_goes_on_has_spent_what_its_trials_have_really_taken() {
    let plan = of_budget(135);
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = new_run(dir.path());
    let mut executed = 0;
    for _ in 0..40 {
        // Loads, pauses and checks take four times as long as the window.
        executed += go_timed(FIGURES, &plan, &mut run, 1, (1.0, 5.0), noisy).len();
        let path = run.finish(dyno_facts::RunStatus::Interrupted).expect("ended");
        run = Run::open(&path).expect("goes on");
    }
    assert_eq!(executed, 2 * 13, "another pair would end after 140 s");
    assert_eq!(run.header().spent_s["e"], 130.0);
}

#[test]
fn what_has_lost_its_pair_is_not_made() {
    let failed = TrialStatus::Failed("gone".into());
    // After these targets have failed in the first round.
    let alone = |plan: &Plan, targets: &[&str]| {
        let mut failing = Failing::default();
        let all = trials(plan);
        for (step, trial) in &all {
            if trial.repeat == 1 && targets.contains(&step.target.as_str()) {
                failing.ended(step, trial, &failed);
            }
        }
        let is_alone = |(step, trial): &&(&PlanStep, &PlannedTrial)| {
            failing.is_alone(plan, step, trial) && !targets.contains(&step.target.as_str())
        };
        let alone = all.iter().filter(is_alone).map(|(step, _)| step.id.clone());
        alone.collect::<BTreeSet<String>>().into_iter().collect::<Vec<String>>()
    };
    let of = |target: &str| format!("e/{target}/workers=1/repeat=1");
    let two = plan(
        "workers = 1\nduration_s = 10\n\
         compare = { baseline = \"a\", candidates = \"b\", pairs = 6 }\n",
    );
    assert_eq!(alone(&two, &[]), [""; 0]);
    assert_eq!(alone(&two, &["a"]), [of("b")]);
    assert_eq!(alone(&two, &["b"]), [of("a")]);
    let three = plan(
        "workers = 1\nduration_s = 10\n\
         compare = { baseline = \"a\", candidates = [\"b\", \"c\"], pairs = 6 }\n\
         [target.c]\nurl = \"sqlite:c\"\n",
    );
    assert_eq!(alone(&three, &["a"]), [of("b"), of("c")]);
    assert_eq!(alone(&three, &["b"]), [""; 0], "a and c are a pair still");
    assert_eq!(alone(&three, &["b", "c"]), [of("a")]);
    let apart = plan("workers = 1\nduration_s = 10\nrepeats = 2\n");
    assert_eq!(alone(&apart, &["a"]), [""; 0], "nothing is compared");
}

/// Two levels on two targets, whose repeats have 61 s.
fn timed_repeats() -> Plan {
    let mut plan = plan("workers = [1, 8]\nduration_s = 10\nrepeats = 40\n");
    plan.experiments[0].repeats_s = Some(61.0);
    plan
}

#[test]
fn repeats_keep_their_time_whatever_the_pace() {
    let plan = timed_repeats();
    let made = |took_s: f64| {
        let dir = tempfile::tempdir().expect("a folder");
        let mut run = new_run(dir.path());
        let executed = go_timed(FIGURES, &plan, &mut run, usize::MAX, (0.5, took_s), noisy);
        let points = ["a/workers=1/", "a/workers=8/", "b/workers=1/", "b/workers=8/"];
        let counts = points.map(|point| executed.iter().filter(|id| id.contains(point)).count());
        assert_eq!(counts, [counts[0]; 4], "all points equally often");
        assert!(plan.remaining(&settled(&plan, &run)).is_empty());
        let next = format!("e/b/workers=8/repeat={}", counts[0] + 1);
        (counts[0], run.header().skipped[&next].to_string())
    };
    let said = "15 repeats were made in the 61 s that the plan has for them.";
    assert_eq!(made(1.0), (15, said.to_owned()));
    assert_eq!(made(0.5).0, 30, "twice as fast: twice as many in the same time");
    // A repeat that takes longer than there is, and one that leaves too little for another.
    let said = "1 repeat was made in the 61 s that the plan has for it.";
    assert_eq!([40.0, 10.0].map(made), [(1, said.to_owned()), (1, said.to_owned())]);
}

#[test]
fn interrupted_repeats_go_on_as_they_would_have() {
    let plan = timed_repeats();
    let times = (0.25, 1.0);
    let go_on = |run: &mut Run, most: usize| go_timed(FIGURES, &plan, run, most, times, noisy);
    let dir = tempfile::tempdir().expect("a folder");
    let whole = go_on(&mut new_run(dir.path()), usize::MAX);
    for cut in [1, 4, 58, 60] {
        let dir = tempfile::tempdir().expect("a folder");
        let mut run = new_run(dir.path());
        let mut executed = go_on(&mut run, cut);
        let path = run.finish(dyno_facts::RunStatus::Interrupted).expect("ended");
        let mut run = Run::open(&path).expect("goes on");
        executed.extend(go_on(&mut run, usize::MAX));
        assert_eq!(executed, whole, "cut after {cut}");
    }
}
