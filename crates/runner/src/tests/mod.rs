//! The next step after made-up results.

mod searches;
mod starved;

use crate::schedule::{self, Schedule, Turn};
use dyno_facts::statistics::ratio::FigureBound;
use dyno_facts::{
    FamilyFacts, FamilyRecord, Message, Metric, NodeConditions, PlanStep, PlannedTrial, Purpose,
    RunHeader, StepAction, TrialIdentity, TrialStatus, TrialSummary,
};
use dyno_judge::evidence::{Call, Naming};
use dyno_judge::findings::verdict::continued_sessions;
use dyno_judge::{JudgedFamily, Judgment, Rule};
use dyno_store::{Run, RunData, TrialData};
use dyno_suite::{Overrides, Plan, Suite};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn new_plan(experiment: &str) -> Plan {
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
    Run::create(dir, RunHeader::new("s", Vec::new(), 1), false).expect("a run")
}

/// A run of this plan before its first trial.
fn empty_run(plan: &Plan) -> RunData {
    let mut header = RunHeader::new("s", Vec::new(), 1);
    plan.store(&mut header);
    run_with_header(header)
}

fn run_with_header(header: RunHeader) -> RunData {
    let (path, trials, events, warnings) =
        (PathBuf::from("run"), Vec::new(), Vec::new(), Vec::new());
    RunData { path, header, trials, events, is_growing: true, warnings }
}

fn judge_run(run: &RunData) -> Judgment {
    Judgment::from_runs(std::slice::from_ref(run), &[], &[], &Naming::default())
}

/// The trials of a plan with their steps, in its order.
fn trials(plan: &Plan) -> Vec<(&PlanStep, &PlannedTrial)> {
    let pairs = plan.steps.iter().filter_map(|step| match &step.action {
        StepAction::Trial(trial) => Some((step, trial)),
        StepAction::Prepare | StepAction::Cleanup => None,
    });
    pairs.collect()
}

fn new_identity(step: &PlanStep, trial: &PlannedTrial) -> TrialIdentity {
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

/// A complete trial as it was decided.
fn complete_trial(
    step: &PlanStep,
    trial: &PlannedTrial,
    purpose: Purpose,
    window_s: f64,
    tps: f64,
) -> TrialSummary {
    let identity = TrialIdentity { purpose, ..new_identity(step, trial) };
    let mut summary = identity.summary(TrialStatus::Complete);
    summary.tps = tps;
    summary.window_s = window_s;
    summary.offered = trial.rate.map(|rate| (rate * window_s) as u64);
    summary.counts.committed = (tps * window_s) as u64;
    // Adds up, with all workers inside transactions all the time.
    summary.counts.started = summary.counts.committed;
    summary.latency.count = summary.counts.committed;
    summary.latency.sum_us = f64::from(trial.workers) * summary.window_s * 1e6;
    // As slow as a queue that grows where the rate is not reached.
    summary.latency.p99_us = if trial.rate.is_some_and(|rate| tps < rate) { 1e6 } else { 2e3 };
    summary
}

fn add_trial(run: &mut RunData, mut summary: TrialSummary) {
    summary.trial = run.trials.len() as u32 + 1;
    run.trials.push(TrialData::new(summary, Vec::new()));
}

/// Goes through the plan as the runner does. `tps` is requested the throughput of a trial. After
/// `max_trials` trials it is interrupted.
fn go(
    plan: &Plan,
    run: &mut RunData,
    max_trials: usize,
    tps: impl Fn(&PlanStep, &PlannedTrial) -> f64,
) -> Vec<String> {
    go_timed(plan, run, max_trials, (10.0, 10.0), tps)
}

/// Executes the plan with windows of these seconds, and trials that take these seconds in all.
fn go_timed(
    plan: &Plan,
    run: &mut RunData,
    max_trials: usize,
    times: (f64, f64),
    tps: impl Fn(&PlanStep, &PlannedTrial) -> f64,
) -> Vec<String> {
    go_changed(plan, run, max_trials, times, tps, |_| {})
}

/// Executes the plan with trials that have something peculiar.
fn go_changed(
    plan: &Plan,
    run: &mut RunData,
    max_trials: usize,
    (window_s, took_s): (f64, f64),
    tps: impl Fn(&PlanStep, &PlannedTrial) -> f64,
    change: impl Fn(&mut TrialSummary),
) -> Vec<String> {
    let mut schedule = Schedule::new(plan, run);
    let mut executed = Vec::new();
    while executed.len() < max_trials
        && let Some((step, turn)) = schedule.next(run)
    {
        match turn {
            Turn::Run(trial, purpose) => {
                let mut summary =
                    complete_trial(step, &trial, purpose, window_s, tps(step, &trial));
                change(&mut summary);
                add_trial(run, summary);
                if schedule::is_timed(plan, step) {
                    schedule::spend(&mut run.header, step, took_s, true);
                }
                executed.push(step.id.clone());
            }
            Turn::RunTogether(together) => {
                for (step, trial) in together {
                    let tps = tps(step, &trial);
                    let mut summary = complete_trial(step, &trial, Purpose::Measure, window_s, tps);
                    set_cost(&mut summary, tps);
                    change(&mut summary);
                    add_trial(run, summary);
                    executed.push(step.id.clone());
                }
            }
            Turn::Skip(reason) => {
                run.header.skipped.insert(step.id.clone(), reason);
            }
            Turn::Data | Turn::Over => {}
        }
    }
    executed
}

/// Adds the CPU time of a server that executes `tps` transactions per second when it is fully busy.
fn set_cost(summary: &mut TrialSummary, tps: f64) {
    let noise = 1.0 + 0.01 * f64::from(summary.repeat % 3);
    let cpu_s = summary.counts.completed() as f64 / tps * noise;
    let measures = [(Metric::CpuS, Some(cpu_s))].into();
    let node = NodeConditions { measures, ..NodeConditions::default() };
    summary.conditions.nodes.insert("n1".to_owned(), node);
    summary.identity.is_together = true;
}

const TOGETHER: &str = "workers = [1, 8]\nduration_s = 20\n\
                        compare = { baseline = \"a\", candidates = \"b\", design = \"together\" }\n";

#[test]
fn targets_are_measured_together_at_a_share_of_what_the_slower_one_can_until_it_is_decided() {
    let plan = new_plan(TOGETHER);
    fn slower_b(step: &PlanStep, _: &PlannedTrial) -> f64 {
        if step.target == "b" { 900.0 } else { 1_000.0 }
    }
    let all_steps = go(&plan, &mut empty_run(&plan), usize::MAX, slower_b);
    // The fewest pairs have decided.
    let repeats: Vec<String> = (2..18).map(|trial| format!("/repeat={}", trial / 2)).collect();
    for level in ["workers=1", "workers=8"] {
        let steps = all_steps.iter().filter_map(|id| id.split_once(level));
        let steps: Vec<&str> = steps.map(|(_, tail)| tail).collect();
        assert_eq!(steps[..2], ["/calibrate/repeat=1"; 2], "{all_steps:?}");
        assert_eq!(steps[2..], repeats, "{all_steps:?}");
    }
    let mut run = empty_run(&plan);
    go(&plan, &mut run, usize::MAX, slower_b);
    let rates = run.trials.iter().map(|trial| trial.summary.rate_per_s);
    let rates: Vec<f64> = rates.flatten().collect();
    assert!(!rates.is_empty() && rates.iter().all(|rate| *rate == 220.0), "{rates:?}");
    for cut in [1, 2, 4, 6] {
        let mut run = empty_run(&plan);
        let mut executed = go(&plan, &mut run, cut, slower_b);
        executed.extend(go(&plan, &mut run, usize::MAX, slower_b));
        assert_eq!(executed, all_steps, "cut after {cut}");
    }
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
    let plan = new_plan(COMPARE);
    let mut run = empty_run(&plan);
    let executed = go(&plan, &mut run, usize::MAX, noisy);
    let counts = ["workers=1/", "workers=8/"]
        .map(|level| executed.iter().filter(|id| id.contains(level)).count());
    assert_eq!(counts, [2 * 6, 2 * 10]);
    let skipped = &run.header.skipped;
    assert_eq!(skipped.len(), 2 * 4);
    assert!(
        skipped["e/a/workers=1/repeat=7"].to_string().starts_with("Half-width 0.")
            && skipped["e/a/workers=1/repeat=7"].to_string().ends_with("reached after 6 pairs."),
        "{skipped:?}"
    );
    assert!(plan.remaining(&settled_steps(&plan, &run)).is_empty());
}

fn settled_steps(plan: &Plan, run: &RunData) -> BTreeSet<String> {
    let complete = run.complete().map(|trial| trial.step.clone()).collect();
    plan.settled(&complete, &run.header.skipped.keys().cloned().collect())
}

#[test]
fn pairs_of_an_open_loop_end_by_the_percentile_that_is_judged() {
    let plan = new_plan(&COMPARE.replace("workers = [1, 8]", "workers = 8\nrate = 1000"));
    let executed = go(&plan, &mut empty_run(&plan), usize::MAX, |_, _| 1_000.0);
    assert_eq!(executed.len(), 2 * 6);
    // The throughput is the same but for 0.1%; the percentile is not.
    let executed = go(&plan, &mut empty_run(&plan), usize::MAX, |step, trial| {
        let is_slow = step.target == "a" && trial.repeat.is_multiple_of(2);
        if is_slow { 999.0 } else { 1_000.0 }
    });
    assert_eq!(executed.len(), 2 * 10);
}

#[test]
fn pairs_end_where_they_are_decided() {
    let plan = new_plan(&COMPARE.replace("half_width = \"2%\"", "until_decided = true"));
    let mut run = empty_run(&plan);
    // B is 1% faster at 1 worker, which is certain; at 8 it varies too much.
    go(&plan, &mut run, usize::MAX, noisy);
    let skipped = &run.header.skipped;
    assert_eq!(skipped.len(), 2 * 4, "{skipped:?}");
    assert_eq!(skipped["e/b/workers=1/repeat=7"].to_string(), "Decided after 6 pairs.");
}

#[test]
fn pairs_are_not_decided_where_a_check_takes_the_verdict_away() {
    let plan = new_plan(&COMPARE.replace("half_width = \"2%\"", "until_decided = true"));
    let changes: [fn(&mut TrialSummary); 2] = [
        |trial| trial.counts.started += 1_000,
        // What further pairs may outweigh lets them be made.
        |trial| {
            trial.conditions.generator.hiccup_max_us = Some(4e6);
            trial.latency.max_us = 4e6;
        },
    ];
    let [vetoed, outweighed] = changes.map(|change| {
        let mut run = empty_run(&plan);
        go_changed(&plan, &mut run, usize::MAX, (10.0, 10.0), noisy, |trial| {
            if trial.repeat == 1 {
                change(trial);
            }
        });
        run.header.skipped.get("e/b/workers=1/repeat=7").map(ToString::to_string)
    });
    let reason = vetoed.expect("no more pairs");
    assert!(reason.starts_with("Ended after 6 pairs without a verdict: "), "{reason}");
    assert_eq!(outweighed, None);
}

#[test]
fn what_has_ended_is_skipped_for_all_pairs_that_are_left() {
    let text = COMPARE.replace("half_width = \"2%\"", "until_decided = true");
    let plan = new_plan(&text.replace("6..10", "6..200"));
    let mut run = empty_run(&plan);
    go(&plan, &mut run, usize::MAX, |step, _| if step.target == "b" { 2_000.0 } else { 1_000.0 });
    assert_eq!(run.header.skipped.len(), 2 * 2 * 194, "two levels of two targets");
}

#[test]
fn a_verdict_is_proven_among_all_load_levels_before_it_ends_pairs() {
    // B is faster by 6%, which is not an equivalence on the way.
    let text = COMPARE.replace("half_width = \"2%\"", "until_decided = true");
    let levels = ["workers = 1", "workers = [1, 2, 4, 8]"];
    let [single, many]: [Vec<_>; 2] = levels.map(|workers| {
        let plan = new_plan(&text.replace("workers = [1, 8]", workers));
        let mut run = empty_run(&plan);
        go(&plan, &mut run, usize::MAX, |step, trial| {
            if step.target == "b" { 1_000.0 + 30.0 * f64::from(trial.repeat % 3) } else { 970.0 }
        });
        let judgment = judge_run(&run);
        let comparisons = &judgment.verdicts.comparisons;
        assert!(
            comparisons.iter().all(|comparison| comparison.vetoes.is_empty()),
            "{:?}",
            comparisons[0].vetoes
        );
        comparisons
            .iter()
            .map(|comparison| (comparison.pairs.len(), comparison.rows[0].call))
            .collect()
    });
    assert_eq!(many.len(), 4);
    for many_pairs in &many {
        assert!(many_pairs.0 > single[0].0, "{single:?} {many:?}");
        assert_eq!(many_pairs.1, Call::Faster, "what is decided is so in the paper");
    }
}

/// Passes over queries are judged by their time, which has only a bound where a query was given up.
struct Passes;

#[derive(Serialize, Deserialize)]
struct PassFacts {
    metrics: PassMetrics,
    is_cut_off: bool,
}

#[derive(Serialize, Deserialize)]
struct PassMetrics {
    total_s: f64,
}

impl FamilyRecord for PassFacts {
    const FAMILY: &'static str = "tpch";
}

impl JudgedFamily for Passes {
    fn name(&self) -> &'static str {
        PassFacts::FAMILY
    }

    fn judged_metrics(&self) -> Option<&'static [Metric]> {
        Some(&[Metric::TotalS])
    }

    fn bound(&self, trial: &TrialSummary, _: Metric) -> Option<FigureBound> {
        trial.own::<PassFacts>()?.is_cut_off.then_some(FigureBound::AtLeast)
    }

    fn rules(&self) -> &'static [Rule] {
        &[]
    }
}

#[test]
fn times_that_were_cut_off_end_pairs_only_where_they_prove_something() {
    dyno_judge::register(vec![&Passes]);
    fn end_reason(stop: &str, cut_off: &[&str]) -> Option<String> {
        let plan = new_plan(&COMPARE.replace("half_width = \"2%\"", stop));
        let mut run = empty_run(&plan);
        go_changed(&plan, &mut run, usize::MAX, (10.0, 10.0), noisy, |trial| {
            let is_cut_off = cut_off.contains(&trial.target.as_str());
            let metrics = PassMetrics { total_s: 1e4 / trial.tps };
            trial.own = Some(FamilyFacts::new(&PassFacts { metrics, is_cut_off }));
        });
        run.header.skipped.get("e/b/workers=1/repeat=7").map(ToString::to_string)
    }
    let only_bounds = "Ended after 6 pairs without a verdict: what was given up has only a bound, which more pairs \
                       don't change.";
    // B is 1% faster at 1 worker. What A has at least, it is faster by at least that.
    for stop in ["until_decided = true", "half_width = \"2%\""] {
        assert_eq!(end_reason(stop, &["a", "b"]).as_deref(), Some(only_bounds), "{stop}");
    }
    assert_eq!(
        end_reason("until_decided = true", &["a"]).as_deref(),
        Some("Decided after 6 pairs.")
    );
    assert_eq!(end_reason("half_width = \"2%\"", &["a"]).as_deref(), Some(only_bounds));
    let reason = end_reason("half_width = \"2%\"", &[]);
    assert!(reason.is_some_and(|reason| reason.starts_with("Half-width")));
}

#[test]
fn a_later_run_goes_on_with_the_pairs_of_an_earlier_one() {
    let text = COMPARE.replace("half_width = \"2%\"", "until_decided = true");
    let plan = new_plan(&text.replace("workers = [1, 8]", "workers = 1"));
    let mut first = empty_run(&plan);
    let mut header = first.header.clone();
    assert_eq!(go(&plan, &mut first, 8, noisy).len(), 8);
    header.continues = continued_sessions(&first).expect("sessions");
    assert_eq!(header.continues[0].comparisons[0].metrics["tps"].len(), 4);
    let mut second = run_with_header(header.clone());
    let executed = go(&plan, &mut second, usize::MAX, noisy);
    // Six alone would be the fewest; four are there, and a single pair says nothing of its deviation.
    assert!((4..=10).contains(&executed.len()), "{executed:?}");
    let pairs = 4 + executed.len() / 2;
    let reason = second.header.skipped.values().next().expect("a step that was not needed");
    assert_eq!(reason.to_string(), format!("Decided after {pairs} pairs."));
    let row = &judge_run(&second).verdicts.comparisons[0].rows[0];
    assert_eq!((row.pairs, row.call), (pairs, Call::Faster), "the paper judges both");
    assert_eq!(continued_sessions(&second).expect("sessions").len(), 2, "a third one may follow");
    // Pairs of another level count for nothing.
    header.continues[0].comparisons[0].level = "workers=9".to_owned();
    let mut changed = run_with_header(header);
    assert!(go(&plan, &mut changed, usize::MAX, noisy).len() >= 12);
}

/// Cut after some trials, a run continues with the trials that it would have had.
fn goes_on_as_it_would_have(
    plan: &Plan,
    cuts: impl FnOnce(usize) -> Vec<usize>,
    figure: impl Fn(&PlanStep, &PlannedTrial) -> f64 + Copy,
) {
    let all_steps = go(plan, &mut empty_run(plan), usize::MAX, figure);
    for cut in cuts(all_steps.len()) {
        let mut run = empty_run(plan);
        let mut executed = go(plan, &mut run, cut, figure);
        executed.extend(go(plan, &mut run, usize::MAX, figure));
        assert_eq!(executed, all_steps, "cut after {cut}");
    }
}

#[test]
fn an_interrupted_comparison_goes_on_as_it_would_have() {
    goes_on_as_it_would_have(&new_plan(COMPARE), |_| vec![1, 11, 12, 13, 24, 25, 29], noisy);
}

/// Six pairs, or more if `seconds` suffice.
fn plan_with_budget(seconds: u32) -> Plan {
    new_plan(&format!(
        "workers = 1\nduration_s = 10\ncompare = {{ baseline = \"a\", candidates = \"b\", \
         pairs = \"6..50\", budget = \"{seconds}s\" }}\n"
    ))
}

#[test]
fn a_budget_ends_pairs_but_not_below_the_fewest() {
    let plan = plan_with_budget(130);
    let mut run = empty_run(&plan);
    // A separate process for each trial.
    let mut executed = Vec::new();
    for _ in 0..20 {
        executed.extend(go(&plan, &mut run, 1, noisy));
    }
    // A trial takes 10 s: after 6 pairs, 120 s, another pair would exceed the budget.
    assert_eq!(executed.len(), 12, "{executed:?}");
    let reason = &run.header.skipped["e/b/workers=1/repeat=7"];
    assert!(
        reason.to_string().starts_with("The budget of 130 s was spent after 6 pairs"),
        "{reason}"
    );
}

#[test]
fn pairs_fill_their_budget_at_the_pace_that_they_have() {
    // Guessed are 10 s for a trial.
    let plan = plan_with_budget(130);
    let pairs = [2.0, 4.0, 50.0].map(|took_s| {
        let mut run = empty_run(&plan);
        go_timed(&plan, &mut run, usize::MAX, (1.0, took_s), noisy).len() / 2
    });
    assert_eq!(pairs, [32, 16, 6]);
}

#[test]
fn trials_that_failed_are_spent_but_set_no_pace() {
    let plan = plan_with_budget(130);
    let mut run = empty_run(&plan);
    schedule::spend(&mut run.header, trials(&plan)[0].0, 100.0, false);
    let executed = go_timed(&plan, &mut run, usize::MAX, (1.0, 2.0), noisy);
    assert_eq!(executed.len(), 2 * 7, "after six pairs, 124 s, another takes 4 s");
}

#[test]
fn pairs_after_one_that_failed_count_where_it_would_be_made_again() {
    let plan = plan_with_budget(130);
    let mut run = empty_run(&plan);
    for (step, trial) in trials(&plan).into_iter().filter(|(_, trial)| trial.repeat < 10) {
        if trial.repeat != 7 {
            add_trial(
                &mut run,
                complete_trial(step, trial, Purpose::Measure, 10.0, noisy(step, trial)),
            );
        }
    }
    let (step, turn) = Schedule::new(&plan, &run).next(&run).expect("a step");
    let Turn::Skip(reason) = turn else { panic!("made") };
    assert!(step.id.ends_with("repeat=7"), "{}", step.id);
    assert!(reason.to_string().contains("was spent after 8 pairs"), "{reason}");
}

#[test]
fn a_trial_whose_time_was_not_noted_has_spent_its_window() {
    let mut plan = new_plan("targets = \"a\"\nworkers = 1\nduration_s = 10\nrepeats = 40\n");
    plan.experiments[0].repeats_s = Some(25.0);
    let mut run = empty_run(&plan);
    let (step, trial) = trials(&plan)[0];
    add_trial(&mut run, complete_trial(step, trial, Purpose::Measure, 20.0, 1_000.0));
    assert_eq!(go(&plan, &mut run, usize::MAX, noisy), [""; 0], "another takes 10 s");
}

#[test]
fn a_run_that_goes_on_has_spent_what_its_trials_have_really_taken() {
    let plan = plan_with_budget(135);
    let mut run = empty_run(&plan);
    let mut executed = 0;
    for _ in 0..40 {
        // Loads, pauses and checks take four times as long as the window.
        executed += go_timed(&plan, &mut run, 1, (1.0, 5.0), noisy).len();
    }
    assert_eq!(executed, 2 * 13, "another pair would end after 140 s");
    assert_eq!(run.header.spent_s["e"], 130.0);
}

/// Two levels on two targets, whose repeats have 61 s.
fn timed_repeats() -> Plan {
    let mut plan = new_plan("workers = [1, 8]\nduration_s = 10\nrepeats = 40\n");
    plan.experiments[0].repeats_s = Some(61.0);
    plan
}

#[test]
fn repeats_keep_their_time_whatever_the_pace() {
    let plan = timed_repeats();
    let [as_planned, fast, slow, unsteady] = [1.0, 0.5, 40.0, 10.0].map(|took_s| {
        let mut run = empty_run(&plan);
        let executed = go_timed(&plan, &mut run, usize::MAX, (0.5, took_s), noisy);
        let points = ["a/workers=1/", "a/workers=8/", "b/workers=1/", "b/workers=8/"];
        let counts = points.map(|point| executed.iter().filter(|id| id.contains(point)).count());
        assert_eq!(counts, [counts[0]; 4], "all points equally often");
        assert!(plan.remaining(&settled_steps(&plan, &run)).is_empty());
        let next = format!("e/b/workers=8/repeat={}", counts[0] + 1);
        (counts[0], run.header.skipped[&next].to_string())
    });
    let reason = "15 repeats were made in the 61 s that the plan has for them.";
    assert_eq!(as_planned, (15, reason.to_owned()));
    assert_eq!(fast.0, 30, "twice as fast: twice as many in the same time");
    // A repeat that takes longer than there is, and one that leaves too little for another.
    let reason = "1 repeat was made in the 61 s that the plan has for it.";
    assert_eq!([slow, unsteady], [(1, reason.to_owned()), (1, reason.to_owned())]);
}

#[test]
fn interrupted_repeats_go_on_as_they_would_have() {
    let plan = timed_repeats();
    let times = (0.25, 1.0);
    let execute =
        |run: &mut RunData, max_trials: usize| go_timed(&plan, run, max_trials, times, noisy);
    let all_steps = execute(&mut empty_run(&plan), usize::MAX);
    for cut in [1, 4, 58, 60] {
        let mut run = empty_run(&plan);
        let mut executed = execute(&mut run, cut);
        executed.extend(execute(&mut run, usize::MAX));
        assert_eq!(executed, all_steps, "cut after {cut}");
    }
}

#[test]
fn three_failures_in_a_row_end_a_point_and_its_comparison() {
    fn count_left_out(experiment: &str) -> [usize; 3] {
        let failed = TrialStatus::Failed("no table".into());
        let plan = new_plan(experiment);
        let run = empty_run(&plan);
        let mut schedule = Schedule::new(&plan, &run);
        let mut given_up = BTreeSet::new();
        while let Some((step, turn)) = schedule.next(&run) {
            match turn {
                Turn::Over => {
                    given_up.insert(step.id.clone());
                }
                _ if step.target == "a" && step.id.contains("workers=8/") => {
                    schedule.record_end(step, &failed);
                }
                _ => {}
            }
        }
        ["e/a/workers=8/", "e/b/workers=8/", "workers=1/"]
            .map(|point| given_up.iter().filter(|id| id.contains(point)).count())
    }
    assert_eq!(count_left_out("workers = [1, 8]\nduration_s = 10\nrepeats = 5\n"), [2, 0, 0]);
    let compared = count_left_out(COMPARE);
    assert_eq!((compared[0], compared[2]), (7, 0), "{compared:?}");
    assert!(compared[1] > 0, "without its baseline: {compared:?}");
}
