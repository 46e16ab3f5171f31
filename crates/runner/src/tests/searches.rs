//! Sweeps and searches.

use super::*;
use dyno_facts::TrialStart;

#[test]
fn a_sweep_confirms_the_best_point_of_each_target() {
    let plan = new_plan("workers = [1, 8, 64]\nduration_s = 10\nrepeats = 2\nconfirm = 2\n");
    let mut run = empty_run(&plan);
    fn best_workers(target: &str) -> u32 {
        if target == "a" { 8 } else { 64 }
    }
    go(&plan, &mut run, usize::MAX, |step, trial| {
        if trial.workers == best_workers(&step.target) { 900.0 } else { 700.0 }
    });
    let confirmations: Vec<_> =
        run.complete().filter(|trial| trial.purpose == Purpose::Confirm).collect();
    assert_eq!(confirmations.len(), 4);
    for trial in confirmations {
        assert_eq!(trial.workers, best_workers(&trial.target), "{}", trial.step);
    }
}

const SEARCH: &str = "targets = \"a\"\nworkers = 8\nduration_s = 10\nobjective = \"p99 < 20ms\"\n";

#[test]
fn a_search_begins_at_half_of_a_closed_loop_and_confirms_what_it_finds() {
    let plan = new_plan(SEARCH);
    let mut run = empty_run(&plan);
    let executed =
        go(&plan, &mut run, usize::MAX, |_, trial| trial.rate.unwrap_or(8_000.0).min(5_000.0));
    let trials = executed.iter().map(|id| run.complete_trial(id).expect("stored").clone());
    let trials: Vec<_> = trials.collect();
    assert_eq!(trials[0].rate_per_s, None);
    assert_eq!(trials[1].rate_per_s, Some(2_500.0));
    let confirmations = trials.iter().filter(|trial| trial.purpose == Purpose::Confirm);
    let rates: Vec<f64> = confirmations.filter_map(|trial| trial.rate_per_s).collect();
    assert_eq!(rates.len(), 3);
    assert!(rates.iter().all(|rate| *rate == rates[0] && (4_750.0..=5_000.0).contains(rate)));
    let reasons: Vec<&Message> = run.header.skipped.values().collect();
    let rate = dyno_facts::format::short(rates[0]);
    let expected = format!("The search has ended: {rate} per second are held with p99 < 20ms; ");
    assert_eq!(reasons.len(), 1, "only the first step that is not needed is noted");
    assert!(reasons[0].to_string().starts_with(&expected), "{reasons:?}");
    assert!(plan.remaining(&settled_steps(&plan, &run)).is_empty());
    // What a search that has ended does not need is not missing from its folder.
    let dir = tempfile::tempdir().expect("a folder");
    let mut stored = Run::create(dir.path(), run.header.clone(), false).expect("a run");
    for trial in &run.trials {
        let identity = trial.summary.identity.clone();
        let start = TrialStart { identity, ..TrialStart::default() };
        let writer = stored.begin_trial(start).expect("a trial");
        stored.end_trial(writer, trial.summary.clone()).expect("stored");
    }
    let folder = stored.finish(dyno_facts::RunStatus::Complete).expect("ended");
    let warnings = dyno_store::read(&folder).expect("a run").warnings;
    let mut warnings = warnings.iter();
    assert_eq!(warnings.find(|warning| warning.to_string().contains("/search/")), None);
}

#[test]
fn an_interrupted_search_goes_on_as_it_would_have() {
    goes_on_as_it_would_have(
        &new_plan(SEARCH),
        |whole| (1..whole).collect(),
        |_, trial| trial.rate.unwrap_or(900.0).min(431.0),
    );
}

#[test]
fn a_search_says_when_windows_are_too_short() {
    let plan = new_plan(&format!("{SEARCH}start_rate = 50\n"));
    let mut run = empty_run(&plan);
    // 500 transactions in a window: five beyond the 99th percentile.
    go(&plan, &mut run, usize::MAX, |_, trial| trial.rate.unwrap_or(0.0));
    let reason = run.header.skipped.values().next().expect("it ended");
    assert!(reason.to_string().contains("too short to judge p99 < 20ms"), "{reason}");
}
