//! Findings that take a verdict away, because they can explain a difference by themselves.

use crate::cover::run_with_experiments;
use crate::support::elements;
use crate::synthetic::pairs::{at_rate, paired};
use crate::synthetic::run;
use crate::verdict::{around, call, cost, paper};
use dyno_facts::{CommitWait, Metric, NodeConditions, TrialSummary};
use dyno_report::{Call, GateResult, Lang, Paper};
use dyno_store::RunData;

/// A run with a gate that its pairs would break, changed.
fn vetoed(ratio: f64, change: impl Fn(&mut RunData)) -> Paper {
    let mut run = paired(&around(ratio, 8));
    run.header.experiments[0].gates = vec!["tps.ratio.low > 0.97".to_owned()];
    change(&mut run);
    paper(run)
}

/// Other programs took these shares of the CPUs while the one and the other side were measured.
fn foreign_cpu(run: &mut RunData, shares: [f64; 2]) {
    for trial in &mut run.trials {
        let share = shares[usize::from(trial.summary.target != "maria")];
        let extra = f64::from(trial.summary.repeat % 2) / 100.0;
        trial.summary.conditions.generator.foreign_cpu_share = Some(share + extra);
    }
}

/// Others committed these shares of the client's commits on the two sides.
fn foreign_load(run: &mut RunData, shares: [f64; 2]) {
    for trial in &mut run.trials {
        let share = shares[usize::from(trial.summary.target != "maria")];
        let factor = 1.0 + f64::from(trial.summary.repeat % 3) / 20.0;
        let [commits, client_commits] =
            [1.0 + share * factor, 1.0].map(|times| Some((10_000.0 * times) as u64));
        let node = NodeConditions { commits, client_commits, ..NodeConditions::default() };
        trial.summary.conditions.nodes = [("primary".to_owned(), node)].into();
    }
}

#[test]
fn what_can_explain_a_difference_by_itself_takes_the_verdict_away() {
    type Spoil<'a> = &'a dyn Fn(&mut RunData);
    let every_ratio: &[f64] = &[0.9, 1.0, 1.1];
    let cases: [(&str, Spoil<'_>, &str, &[f64]); 7] = [
        (
            "uneven-foreign-load",
            &|run| foreign_load(run, [0.0, 0.5]),
            "maria 0%, postgres 5",
            every_ratio,
        ),
        ("uneven-foreign-load", &|run| foreign_load(run, [0.1, 0.5]), "maria 11", every_ratio),
        ("uneven-foreign-cpu", &|run| foreign_cpu(run, [0.1, 0.5]), "from maria and 5", &[0.9]),
        // What forbids to quote a result forbids a verdict, too.
        ("durability", &promise_unlike_commits, "maria: async, postgres: 2 of 3", every_ratio),
        (
            "uneven-foreign-cpu",
            &|run| foreign_cpu(run, [0.5, 0.1]),
            "from maria and 1",
            &[1.0, 1.1],
        ),
        ("target-changed", &turn_fsync_off, "maria by trial 12: fsync was on, is off", every_ratio),
        ("generator-stopped", &stop_dyno, "trial 4: dyno was stopped for 3.10 s", every_ratio),
    ];
    for (id, spoil, found, ratios) in cases {
        for &ratio in ratios {
            let paper = vetoed(ratio, spoil);
            let comparison = &paper.verdicts.comparisons[0];
            assert!(comparison.rows.iter().all(|row| row.call == Call::Explained), "{id} {ratio}");
            let gate = &paper.verdicts.gates[0];
            assert_eq!(gate.result, GateResult::Inconclusive, "{id} {ratio}");
            let english = paper.verdicts.sentence().expect("a sentence").to_string();
            for text in [&english, &gate.why.to_string(), &paper.digest(Lang::En, 3, &[])] {
                assert!(text.contains(id) && text.contains(found), "{id}: {text}");
            }
            assert!(!english.contains("certain") && !english.contains("pairs would"), "{english}");
            let chinese = paper.verdicts.sentence().expect("a sentence").render(Lang::Zh);
            assert!(chinese.contains("可由其他原因解释") && chinese.contains(id), "{chinese}");
            elements(&paper.html(Lang::Zh));
            // A chart has room for the number of a check alone.
            let number = paper.checks.iter().find(|check| check.id == id).map(|check| check.number);
            let short = format!("undecided: E{}", number.expect("a check"));
            let charts = paper.charts(Lang::En);
            assert!(charts.iter().any(|chart| chart.1.contains(&short)), "{id}: {short}");
            assert!(charts.iter().all(|chart| !chart.1.contains(&format!("undecided: {id}"))));
        }
    }
}

/// All trials write, and commits wait for other copies on one target.
fn promise_unlike_commits(run: &mut RunData) {
    for trial in &mut run.trials {
        promises_otherwise(&mut trial.summary);
        trial.summary.statements.writes = 1_000;
    }
}

/// A setting of one target was changed during the run.
fn turn_fsync_off(run: &mut RunData) {
    for trial in &mut run.trials {
        let is_changed = trial.summary.target == "maria" && trial.summary.repeat > 5;
        let value = if is_changed { "off" } else { "on" };
        for facts in trial.before.values_mut() {
            facts.settings.insert("fsync".to_owned(), value.to_owned());
        }
    }
}

/// The load generator was stopped in a trial.
fn stop_dyno(run: &mut RunData) {
    let trial = &mut run.trials[3].summary;
    trial.conditions.generator.hiccup_max_us = Some(3.1e6);
    trial.latency.max_us = 3.1e6;
}

#[test]
fn there_is_no_difference_to_explain_if_the_interval_contains_1() {
    let open = [0.9, 1.2, 1.1, 0.95, 1.3, 0.85].map(|ratio| (1000.0, 1000.0 * ratio));
    let mut run = paired(&open);
    foreign_load(&mut run, [0.0, 0.5]);
    let paper = paper(run);
    assert!(paper.digest(Lang::En, 3, &[]).contains("uneven-foreign-load"), "it still forbids");
    let row = &paper.verdicts.comparisons[0].rows[0];
    assert_eq!((row.call, row.pairs_needed), (Call::Undecided, None), "more pairs don't help");
    let sentence = paper.verdicts.sentence().expect("a sentence").to_string();
    assert!(sentence.contains("undecided (the interval contains 1);"), "{sentence}");
    assert!(!sentence.contains("another cause"), "{sentence}");
}

#[test]
fn work_of_others_on_both_servers_takes_the_verdict_on_server_cpu_away_alone() {
    let mut run = paired(&around(1.0, 8));
    cost(&mut run);
    let gates = ["server_cpu_us.ratio < 1.02", "tps.ratio.low > 0.97"];
    run.header.experiments[0].gates = gates.map(str::to_owned).to_vec();
    for (number, trial) in run.trials.iter_mut().enumerate() {
        let count = trial.summary.counts.committed * (20 + number as u64 % 3) / 100;
        let nodes = trial.summary.conditions.nodes.values_mut();
        nodes.for_each(|node| node.transactions_elsewhere = Some(count));
    }
    let paper = paper(run);
    let rows = &paper.verdicts.comparisons[0].rows;
    let cpu = rows.iter().find(|row| row.metric == Metric::ServerCpuUs).expect("a row");
    assert_eq!((call(&paper), cpu.call), (Call::Equivalent, Call::Explained));
    assert!(cpu.words.to_string().contains("foreign-load"), "{}", cpu.words);
    let results = paper.verdicts.gates.iter().map(|gate| gate.result);
    assert_eq!(results.collect::<Vec<_>>(), [GateResult::Inconclusive, GateResult::Pass]);
    let sentence = paper.verdicts.sentence().expect("a sentence").to_string();
    assert!(!sentence.contains("server CPU"), "{sentence}");
    let hint = "Remove what foreign-load found and measure again; more pairs don't help.";
    assert_eq!(paper.verdicts.remedy().to_string(), hint);
}

/// One pair says nothing about their order.
#[test]
fn two_runs_need_one_run_however_many_trials_they_have() {
    for count in [1, 6] {
        let runs = [1.0, 0.9].map(|factor| {
            let trials = (1..).zip(around(factor, count));
            let trials = trials.map(|(k, (_, tps))| at_rate(k, "maria", 8, k, 12, tps));
            run(&["maria"], trials.collect())
        });
        let hint = Paper::new(&runs, &[]).verdicts.remedy().to_string();
        let words = "such as those of two separate runs, give no verdict: measure both databases in one run";
        assert!(hint.contains(words), "{count}: {hint}");
    }
}

/// Commits beyond those of the clients may be made by PostgreSQL's parallel workers if others are connected.
#[test]
fn commits_that_may_be_the_servers_own_take_no_verdict_on_its_cpu_away() {
    let explained = [None, Some(0), Some(10_000_000)].map(|elsewhere| {
        let mut run = paired(&around(1.0, 8));
        cost(&mut run);
        for node in
            run.trials.iter_mut().flat_map(|trial| trial.summary.conditions.nodes.values_mut())
        {
            (node.commits, node.client_commits) = (Some(12_000), Some(10_000));
            node.transactions_elsewhere = elsewhere;
        }
        let paper = paper(run);
        assert!(
            paper.checks.iter().any(|check| check.id == "foreign-load" && !check.lines.is_empty())
        );
        let rows = &paper.verdicts.comparisons[0].rows;
        rows.iter().any(|row| row.call == Call::Explained)
    });
    assert_eq!(explained, [true, false, true]);
}

/// A commit waits for another number of copies than on the other target.
fn promises_otherwise(summary: &mut TrialSummary) {
    let waits = match summary.target.as_str() {
        "maria" => CommitWait::Local("async".into()),
        _ => CommitWait::Copies("2 of 3".into()),
    };
    let node = NodeConditions { acknowledged_by: Some(waits), ..NodeConditions::default() };
    summary.conditions.nodes = [("primary".to_owned(), node)].into();
}

#[test]
fn what_a_commit_promises_takes_no_verdict_on_reads_away() {
    let mut run = run_with_experiments(&[("reads", 1.2, 8), ("writes", 1.2, 8)]);
    for trial in &mut run.trials {
        promises_otherwise(&mut trial.summary);
        if trial.summary.experiment == "writes" {
            trial.summary.statements.writes = 1_000;
        }
    }
    let paper = paper(run);
    let calls = paper.verdicts.comparisons.iter().map(|c| (&c.experiment[..], c.rows[0].call));
    let calls: Vec<(&str, Call)> = calls.collect();
    assert_eq!(calls, [("reads", Call::Faster), ("writes", Call::Explained)]);
}

/// Ranks bound what one pair can do: among many it does little.
#[test]
fn a_trial_in_which_dyno_was_stopped_is_outweighed_by_many_others() {
    let broken = (Call::Slower, GateResult::Broken, false);
    let explained = (Call::Explained, GateResult::Inconclusive, true);
    assert_eq!(judge_stopped(0.9, 20, &[3]), broken);
    assert_eq!(judge_stopped(0.9, 20, &[3, 8]), broken);
    assert_eq!(judge_stopped(0.9, 11, &[3]), explained);
    assert_eq!(judge_stopped(0.9, 20, &[1, 5, 9, 13, 17, 21, 25]), explained);
    assert_eq!(judge_stopped(1.0, 20, &[3]), (Call::Equivalent, GateResult::Pass, false));
}

/// The call, the result of the gate, and whether a finding is reported if dyno was stopped in these trials.
fn judge_stopped(ratio: f64, pairs: usize, stopped: &[usize]) -> (Call, GateResult, bool) {
    let mut run = paired(&around(ratio, pairs));
    run.header.experiments[0].gates = vec!["tps.ratio.low > 0.97".to_owned()];
    for at in stopped {
        let trial = &mut run.trials[*at].summary;
        trial.conditions.generator.hiccup_max_us = Some(3.1e6);
        trial.latency.max_us = 3.1e6;
    }
    let paper = paper(run);
    let is_found = paper.digest(Lang::En, 5, &[]).contains("generator-stopped");
    (call(&paper), paper.verdicts.gates[0].result, is_found)
}

#[test]
fn what_meets_both_sides_or_is_accepted_or_too_small_takes_nothing_away() {
    let broken = (Call::Slower, GateResult::Broken);
    assert_eq!(call_and_gate(&vetoed(0.9, |run| foreign_load(run, [0.3, 0.3]))), broken);
    assert_eq!(call_and_gate(&vetoed(0.9, |run| foreign_cpu(run, [0.4, 0.4]))), broken);
    // Three points of the CPUs can't make it three times slower; what they can make is 10%.
    assert_eq!(call_and_gate(&vetoed(0.33, |run| foreign_cpu(run, [0.1, 0.13]))), broken);
    let paper = vetoed(0.95, |run| foreign_cpu(run, [0.1, 0.13]));
    assert_eq!(call_and_gate(&paper), (Call::Explained, GateResult::Inconclusive));
    // Who was held up and is faster would be faster still; who was not and is slower would be slower still.
    let better = (Call::Faster, GateResult::Pass);
    assert_eq!(call_and_gate(&vetoed(1.1, |run| foreign_cpu(run, [0.1, 0.5]))), better);
    assert_eq!(call_and_gate(&vetoed(0.9, |run| foreign_cpu(run, [0.5, 0.1]))), broken);
    // Equal although it was held up: it may be faster, and is not slower.
    let open = (Call::Explained, GateResult::Pass);
    assert_eq!(call_and_gate(&vetoed(1.0, |run| foreign_cpu(run, [0.1, 0.5]))), open);
    let accepted = vetoed(0.9, |run| {
        foreign_cpu(run, [0.1, 0.5]);
        run.header.allowed = vec!["uneven-foreign-cpu".to_owned()];
    });
    assert_eq!(call_and_gate(&accepted), broken);
    assert!(accepted.digest(Lang::En, 5, &[]).contains("uneven-foreign-cpu (accepted)"));
}

/// The call of the first metric and the result of the first gate.
fn call_and_gate(paper: &Paper) -> (Call, GateResult) {
    (call(paper), paper.verdicts.gates[0].result)
}
