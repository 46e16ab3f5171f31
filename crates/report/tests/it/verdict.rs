//! Verdicts, gates, scaling and steadiness of made-up runs.

use crate::support::{elements, html_texts};
use crate::synthetic::pairs::{at_rate, comparing, paired, paired_at};
use crate::synthetic::{HOSTILE, run, two_targets};
use dyno_facts::{
    ComparisonFacts, Event, EventKind, Message, Metric, NodeConditions, NodeFacts, Purpose,
    ServerFacts, StatementLatency, TrialStatus,
};
use dyno_judge::findings::verdict::{continued_sessions, veto_of_level};
use dyno_report::{Call, GateResult, Lang, PairOrder, Paper};
use dyno_store::RunData;

/// Pairs around this ratio, with trials that vary by about 1%.
pub(crate) fn around(ratio: f64, pairs: usize) -> Vec<(f64, f64)> {
    let noise = [0.4, -0.9, 1.1, -0.3, 0.8, -1.2, 0.1, 0.7, -0.6, -0.1];
    let pairs = (0..pairs).map(|k| {
        let [first, second] = [k, 3 * k + 5].map(|at| 1.0 + noise[at % noise.len()] / 100.0);
        (1000.0 * first, 1000.0 * ratio * second)
    });
    pairs.collect()
}

/// The paper of one run, without published figures.
pub(crate) fn paper(run: RunData) -> Paper {
    Paper::new(&[run], &[])
}

/// The call of the first metric of the first comparison.
pub(crate) fn call(paper: &Paper) -> Call {
    paper.verdicts.comparisons[0].rows[0].call
}

#[test]
fn pairs_of_two_targets_have_a_verdict_in_both_languages() {
    let paper = paper(paired(&around(1.10, 8)));
    let [comparison] = paper.verdicts.comparisons.as_slice() else {
        panic!("{:?}", paper.verdicts.comparisons)
    };
    assert_eq!(
        (comparison.baseline.as_str(), comparison.candidate.as_str()),
        ("maria", "postgres")
    );
    assert_eq!(comparison.order, PairOrder::Interleaved);
    assert_eq!(comparison.pairs.len(), 8);
    assert_eq!(comparison.pairs[1], ["4", "3"], "the second pair began with the candidate");
    let row = &comparison.rows[0];
    assert_eq!((row.metric, row.call, row.pairs), (Metric::Tps, Call::Faster, 8));
    assert!((row.ratio - 1.10).abs() < 0.01, "{row:?}");
    let interval = row.interval.expect("eight pairs");
    assert!(interval.low > 1.05 && interval.high < 1.15, "{interval:?}");
    assert!(row.p < 0.01 && row.p_t.is_some_and(|p| p < 0.01), "{row:?}");
    // A shorter latency is faster.
    let latency = &comparison.rows[1];
    assert_eq!((latency.metric, latency.call), (Metric::P95Ms, Call::Faster));
    assert!(latency.interval.is_some_and(|bounds| bounds.high < 1.0), "{latency:?}");
    assert_eq!(row.p_adjusted, Some(row.p), "metrics are judged one after the other");
    let sentence = paper.verdicts.sentence().expect("a verdict");
    let english = sentence.render(Lang::En);
    assert!(english.starts_with("Read only, 8 workers: postgres is "), "{english}");
    assert!(
        english.contains(" is faster than maria (certain), by ")
            && english.contains("%; ratio of transactions per second 1."),
        "{english}"
    );
    assert!(english.ends_with(", 8 pairs."), "{english}");
    let chinese = sentence.render(Lang::Zh);
    assert!(
        chinese.contains("postgres 比 maria 更快（确定）") && chinese.ends_with("共 8 对。"),
        "{chinese}"
    );
    for lang in Lang::ALL {
        elements(&paper.html(lang));
        let labels = match lang {
            Lang::En => "| postgres (maria) |",
            Lang::Zh => "| postgres（maria） |",
        };
        assert!(paper.markdown(lang).contains(labels));
    }
}

#[test]
fn without_enough_evidence_there_is_no_verdict() {
    assert_eq!(call(&paper(paired(&around(1.10, 5)))), Call::TooFewPairs);
    assert_eq!(call(&paper(paired(&around(1.0, 8)))), Call::Equivalent);
    assert_eq!(call(&paper(paired(&around(0.9, 8)))), Call::Slower);
    let open = [0.9, 1.2, 1.1, 0.95, 1.3, 0.85].map(|ratio| (1000.0, 1000.0 * ratio));
    let open = paper(paired(&open));
    assert_eq!(call(&open), Call::Undecided);
    let sentence = open.verdicts.sentence().expect("a sentence").to_string();
    assert!(
        sentence.contains("undecided (the interval contains 1; a difference of 3.0% "),
        "{sentence}"
    );
    // A trial that did not end well makes no pair.
    let mut run = paired(&around(1.10, 6));
    run.trials[0].summary.status = TrialStatus::Interrupted;
    let cut = paper(run);
    assert_eq!((call(&cut), cut.verdicts.comparisons[0].pairs.len()), (Call::TooFewPairs, 5));
}

#[test]
fn what_was_given_up_asks_for_a_longer_time_out_not_for_pairs() {
    let mut paper = paper(paired(&around(1.0, 8)));
    let row = &mut paper.judgment.verdicts.comparisons[0].rows[0];
    (row.call, row.bound) = (Call::Undecided, "≥");
    let hint = paper.verdicts.remedy().to_string();
    assert!(hint.ends_with("raise `timeout_s`."), "{hint}");
}

#[test]
fn a_server_that_varies_is_judged_and_said_to_vary() {
    let slow = [58.0, 75.0, 42.0, 66.0, 50.0, 81.0].map(|tps| (1000.0, tps));
    let mut run = paired(&slow);
    run.header.experiments[0].gates = vec!["tps.ratio.low > 0.97".to_owned()];
    let paper = paper(run);
    assert_eq!(call(&paper), Call::Slower);
    assert_eq!(paper.verdicts.gate_result(), Some(GateResult::Broken));
    let sentence = paper.verdicts.sentence().expect("a sentence").to_string();
    assert!(
        sentence.contains("slower than maria (certain), by a factor of 16.3 (12.3 to 23.8)"),
        "{sentence}"
    );
    assert!(sentence.contains("Trials of postgres vary by "), "{sentence}");
}

#[test]
fn a_difference_that_one_system_shows_to_itself_is_said_to_be_as_small() {
    let mut run = paired(&around(1.03, 8));
    // A second name for the first target, whose trials differ by up to 5%.
    run.header.targets.push(run.header.targets[0].clone());
    run.header.targets[2].name = "maria again".to_owned();
    for (repeat, (_, tps)) in around(1.05, 8).into_iter().enumerate() {
        let number = run.trials.len() as u32 + 1;
        run.trials.push(at_rate(number, "maria again", 8, repeat as u32 + 1, 40, tps));
    }
    let facts = ComparisonFacts {
        baseline: "maria".to_owned(),
        candidates: vec!["postgres".to_owned(), "maria again".to_owned()],
        is_aa: true,
        ..ComparisonFacts::default()
    };
    comparing(&mut run, facts);
    let paper = paper(run);
    let [real, aa] = paper.verdicts.comparisons.as_slice() else {
        panic!("{:?}", paper.verdicts.comparisons)
    };
    assert!(aa.is_aa && !real.is_aa);
    let row = &real.rows[0];
    assert!(row.noise_floor.is_some_and(|floor| floor > 0.05), "{row:?}");
    assert_eq!(row.call, Call::Faster, "a label vetoes nothing");
    assert!(paper.html(Lang::En).contains("the same system (A"));
    let verdict = paper.verdicts.sentence().expect("a verdict").to_string();
    assert!(verdict.contains("postgres"), "the A/A comparison is not the headline: {verdict}");
}

#[test]
fn blocks_are_told_as_such_and_two_runs_are_compared() {
    let one_run = two_targets(&[8], 4, 12);
    assert!(
        Paper::new(&[one_run], &[])
            .verdicts
            .comparisons
            .iter()
            .all(|c| c.order == PairOrder::Blocks)
    );
    let mut two_loads = one_target(0.9);
    two_loads.header.experiments[0].options.insert("tables".to_owned(), "1".to_owned());
    let two_loads = Paper::new(&[one_target(1.0), two_loads], &[]);
    assert!(two_loads.verdicts.comparisons.is_empty(), "one name, two loads");
    let paper = Paper::new(&[one_target(1.0), one_target(0.9)], &[]);
    let [comparison] = paper.verdicts.comparisons.as_slice() else {
        panic!("{:?}", paper.verdicts.comparisons)
    };
    assert_eq!(comparison.order, PairOrder::Blocks);
    assert_eq!(
        (comparison.baseline.as_str(), comparison.candidate.as_str()),
        ("maria, run 1", "maria, run 2")
    );
    assert_eq!(comparison.rows[0].call, Call::Explained);
    let text = paper.verdicts.text(Lang::En);
    let reason = "undecided (another cause can explain it: check block-order (not interleaved";
    assert!(text.contains(reason), "{text}");
}

/// A run of six trials on one target, faster by this factor.
fn one_target(factor: f64) -> RunData {
    let trials = (1..).zip(around(factor, 6));
    let trials = trials.map(|(k, (_, tps))| at_rate(k, "maria", 8, k, 12, tps));
    run(&["maria"], trials.collect())
}

#[test]
fn what_was_run_again_is_what_is_judged_and_searches_are_not() {
    let mut run = paired(&around(1.20, 4));
    let again = paired(&around(1.0, 6)).trials;
    for (mut data, number) in again.into_iter().zip(9..) {
        data.summary.trial = number;
        data.summary.purpose = Purpose::Confirm;
        run.trials.push(data);
    }
    let confirmed = paper(run);
    let [comparison] = confirmed.verdicts.comparisons.as_slice() else { panic!("one load level") };
    assert_eq!((comparison.pairs.len(), comparison.rows[0].call), (6, Call::Equivalent));
    let mut run = paired(&around(1.20, 4));
    for data in &mut run.trials {
        data.summary.purpose = Purpose::Search;
    }
    assert!(paper(run).verdicts.comparisons.is_empty());
}

#[test]
fn a_peak_is_told_only_where_trials_prove_it() {
    let far = paper(two_targets(&[1, 4, 16, 64, 128, 256], 3, 12));
    assert_eq!(far.verdicts.scaling.len(), 2, "both targets");
    // The made-up throughput peaks at 62 workers.
    assert_eq!(far.verdicts.scaling[0].peak, Some(64.0), "{:?}", far.verdicts.scaling[0]);
    // One trial a level proves nothing.
    let once = paper(two_targets(&[1, 4, 16, 64, 128, 256], 1, 12));
    assert_eq!(once.verdicts.scaling[0].peak, None);
    let near = paper(two_targets(&[1, 2, 4, 8], 1, 12));
    assert!(near.verdicts.scaling.iter().all(|row| row.peak.is_none()));
    assert!(
        near.verdicts.scaling[0].words.to_string().contains("no peak is proven up to 8 workers")
    );
    assert!(
        paper(two_targets(&[1, 2, 4], 1, 12)).verdicts.scaling.is_empty(),
        "three levels are too few"
    );
}

#[test]
fn a_stall_is_told_with_what_the_server_did_then() {
    let mut run = paired_at(8, 40, &around(1.0, 1));
    for row in &mut run.trials[0].series {
        if row.begins_s == 20.0 || row.begins_s == 21.0 {
            row.committed /= 10;
        }
    }
    let events = [(1, 21.4, "checkpoint"), (1, 35.0, "later"), (2, 21.0, "other")];
    let events = events.map(|(trial, at_s, text)| Event {
        trial: Some(trial),
        at_s: Some(at_s),
        ..Event::new(EventKind::Server, text)
    });
    run.events = events.into();
    let paper = paper(run);
    let [slow, steady] = paper.verdicts.steady.as_slice() else { panic!("two trials") };
    assert_eq!((slow.is_steady, steady.is_steady), (Some(false), Some(true)), "{steady:?}");
    let [(stall, events)] = slow.stalls.as_slice() else { panic!("{slow:?}") };
    assert_eq!((stall.from_s, stall.to_s), (20.0, 22.0));
    assert_eq!(events, &["checkpoint"]);
    let html = html_texts(&paper.html(Lang::En));
    assert!(html.contains("20 to 22 s, lowest ") && html.contains("checkpoint"));
}

#[test]
fn hostile_names_stay_text() {
    let mut run = paired(&around(1.1, 6));
    run.header.experiments[0].title = HOSTILE.to_owned();
    run.header.experiments[0].gates = vec![HOSTILE.to_owned(), "tps > 1".to_owned()];
    for data in &mut run.trials {
        if data.summary.target == "postgres" {
            data.summary.target = HOSTILE.to_owned();
        }
    }
    run.header.targets[1].name = HOSTILE.to_owned();
    let paper = paper(run);
    assert_eq!(paper.verdicts.comparisons.len(), 1);
    for lang in Lang::ALL {
        let html = paper.html(lang);
        assert!(!html.contains("<script>alert"), "markup has come through");
        elements(&html);
        assert!(!paper.markdown(lang).contains("<script>"));
    }
}

/// A search that has found 1,000 per second, twice not held it again, and confirmed 900.
fn search() -> RunData {
    use Purpose::{Confirm, Search};
    let steps = [
        (5000.0, Search, 9e3),
        (1000.0, Search, 9e3),
        (1000.0, Confirm, 30e3),
        (1000.0, Confirm, 31e3),
        (900.0, Search, 9e3),
        (900.0, Confirm, 9e3),
        (900.0, Confirm, 9.2e3),
        (900.0, Confirm, 8.9e3),
    ];
    let trials = (1..).zip(steps).map(|(number, (rate, purpose, p99_us))| {
        let mut data = at_rate(number, "maria", 8, number, 40, rate);
        let summary = &mut data.summary;
        summary.purpose = purpose;
        summary.latency.p99_us = p99_us;
        // The closed loop before it is faster than what is held under the objective.
        if number > 1 {
            summary.rate_per_s = Some(rate);
            summary.offered = Some(summary.counts.ended() + summary.in_flight);
        }
        data
    });
    let mut run = run(&["maria"], trials.collect());
    run.header.experiments[0].search =
        Some(dyno_facts::RateSearch { objective: "p99 < 20ms".to_owned(), ..Default::default() });
    run.header.experiments[0].gates = vec!["p99_ms < 20".to_owned()];
    run
}

#[test]
fn a_rate_that_was_not_held_again_is_no_result_of_a_search() {
    let judged_paper = paper(search());
    let [row] = judged_paper.key_rows()[..] else { panic!("{:?}", judged_paper.key_rows()) };
    assert_eq!((row.point.rate_per_s, row.point.repeats), (Some(900.0), 3));
    assert_eq!(judged_paper.verdicts.gates.len(), 1, "{:?}", judged_paper.verdicts.gates);
    assert_eq!(judged_paper.verdicts.gate_result(), Some(GateResult::Pass));
    // Without a rate that was held the result is missing; the closed loop is not one either.
    let mut nothing = search();
    nothing.trials.truncate(5);
    assert!(paper(nothing).key_rows().is_empty());
}

#[test]
fn three_confirmations_do_not_take_a_verdict_away() {
    let mut run = paired(&around(1.20, 8));
    for (mut data, number) in paired(&around(1.20, 3)).trials.into_iter().zip(17..) {
        data.summary.trial = number;
        data.summary.purpose = Purpose::Confirm;
        run.trials.push(data);
    }
    let paper = paper(run);
    assert_eq!((paper.verdicts.comparisons[0].pairs.len(), call(&paper)), (8, Call::Faster));
}

#[test]
fn runs_of_one_suite_may_compare_different_targets() {
    let mut noise = paired(&around(1.0, 6));
    comparing(&mut noise, comparison_facts("maria", "postgres", true));
    let mut real = paired(&around(1.10, 6));
    real.header.targets[1].name = "new".to_owned();
    for data in &mut real.trials {
        if data.summary.target == "postgres" {
            data.summary.target = "new".to_owned();
        }
    }
    comparing(&mut real, comparison_facts("maria", "new", false));
    let paper = Paper::new(&[noise, real], &[]);
    let mut comparisons = paper.verdicts.comparisons.iter();
    let second = comparisons.find(|comparison| comparison.candidate == "new");
    let comparison = second.expect("the comparison of the second run");
    assert!(!comparison.is_aa && comparison.order == PairOrder::Interleaved);
    assert!(comparison.rows[0].noise_floor.is_some(), "the first run has measured it");
}

/// The plan of a comparison of two targets.
fn comparison_facts(baseline: &str, candidate: &str, is_aa: bool) -> ComparisonFacts {
    ComparisonFacts {
        baseline: baseline.to_owned(),
        candidates: vec![candidate.to_owned()],
        is_aa,
        ..ComparisonFacts::default()
    }
}

#[test]
fn the_noise_floor_of_another_experiment_with_the_same_test_counts() {
    let floored = with_noise("sysbench oltp_read_only");
    let real = floored.verdicts.comparisons.iter().find(|c| !c.is_aa).expect("a comparison");
    assert!(real.rows[0].noise_floor.is_some_and(|floor| floor > 0.03), "{:?}", real.rows[0]);
    let other_test = with_noise("sysbench oltp_insert");
    let real = other_test.verdicts.comparisons.iter().find(|c| !c.is_aa).expect("a comparison");
    assert_eq!(real.rows[0].noise_floor, None);
}

/// The paper of a comparison in a run that has also compared a target with itself, with this test.
fn with_noise(test: &str) -> Paper {
    let mut run = paired(&around(1.02, 8));
    let mut experiment = run.header.experiments[0].clone();
    experiment.name = "noise".to_owned();
    experiment.test = test.to_owned();
    run.header.experiments.push(experiment);
    run.header.targets.push(run.header.targets[0].clone());
    run.header.targets[2].name = "maria-again".to_owned();
    let aa = ComparisonFacts {
        baseline: "maria".to_owned(),
        candidates: vec!["maria-again".to_owned()],
        is_aa: true,
        ..ComparisonFacts::default()
    };
    run.header.experiments.last_mut().expect("the noise").comparison = Some(aa);
    for (mut data, number) in paired(&around(1.04, 8)).trials.into_iter().zip(17..) {
        data.summary.trial = number;
        data.summary.experiment = "noise".to_owned();
        if data.summary.target == "postgres" {
            data.summary.target = "maria-again".to_owned();
        }
        run.trials.push(data);
    }
    paper(run)
}

#[test]
fn server_cpu_has_a_verdict_where_every_node_tells_it() {
    let mut run = paired(&around(1.0, 8));
    cost(&mut run);
    let gates =
        ["server_cpu_us.ratio.high < 1.08", "server_cpu_us.ratio < 1.02", "server_cpu_us < 500"];
    run.header.experiments[0].gates = gates.map(str::to_owned).to_vec();
    let judged_paper = paper(run.clone());
    let rows = &judged_paper.verdicts.comparisons[0].rows;
    let row = rows.iter().find(|row| row.metric == Metric::ServerCpuUs).expect("a row");
    assert_eq!((row.call, row.is_less_better), (Call::Slower, true));
    assert!((row.ratio - 1.05).abs() < 0.01, "{row:?}");
    // It comes first if throughput shows no difference, which the digest says too.
    let sentence = judged_paper.verdicts.sentence().expect("a sentence").to_string();
    assert!(
        sentence.starts_with("Read only, 8 workers: server CPU per transaction, µs, is ")
            && sentence.contains("By the metric that decides, both are equivalent within 3.0%"),
        "{sentence}"
    );
    let results: Vec<GateResult> =
        judged_paper.verdicts.gates.iter().map(|gate| gate.result).collect();
    assert_eq!(results[..2], [GateResult::Pass, GateResult::Broken]);
    assert!(results[2..].iter().all(|result| *result == GateResult::Pass));
    // A node that doesn't tell it, such as one on another machine, leaves the sum unknown.
    for trial in &mut run.trials {
        let nodes = &mut trial.summary.conditions.nodes;
        nodes.insert("n2".to_owned(), NodeConditions::default());
    }
    let unknown = paper(run);
    let rows = &unknown.verdicts.comparisons[0].rows;
    assert!(rows.iter().all(|row| row.metric != Metric::ServerCpuUs), "{rows:?}");
}

/// 5% more CPU for each transaction of the candidate.
pub(crate) fn cost(run: &mut RunData) {
    for (number, trial) in run.trials.iter_mut().enumerate() {
        let share = if trial.summary.target == "postgres" { 1.05 } else { 1.0 };
        let cpu_us = 100.0 * share * (1.0 + (number % 3) as f64 / 500.0);
        let cpu_s = cpu_us * trial.summary.counts.committed as f64 / 1e6;
        let node = NodeConditions {
            measures: [(Metric::CpuS, Some(cpu_s))].into(),
            ..NodeConditions::default()
        };
        trial.summary.conditions.nodes = [("n1".to_owned(), node)].into();
    }
}

#[test]
fn what_is_decided_comes_first_where_throughput_is_open() {
    let open = [0.9, 1.2, 1.1, 0.95, 1.3, 0.85].map(|ratio| (1000.0, 1000.0 * ratio));
    let mut run = paired(&open);
    cost(&mut run);
    let paper = paper(run);
    assert_eq!(call(&paper), Call::Undecided, "the first metric stays the first row");
    let sentence = paper.verdicts.sentence().expect("a sentence").to_string();
    assert!(
        sentence.contains("server CPU per transaction, µs, is ")
            && sentence.contains("% higher with postgres than with maria (certain)")
            && sentence.contains("it is undecided which is faster (the interval contains 1")
            && sentence.contains("ratio of transactions per second "),
        "{sentence}"
    );
    assert!(paper.html(Lang::En).contains("it is undecided which is faster"));
    let digest = paper.digest(Lang::En, 3, &[]);
    for (metric, call) in [("tps ", "  undecided"), ("server_cpu_us ", "  uses more")] {
        let row = digest.lines().find(|line| line.trim_start().starts_with(metric));
        assert!(row.is_some_and(|line| line.ends_with(call)), "{digest}");
    }
    assert!(digest.contains("undecided by the metric that decides"), "{digest}");
}

/// Sentences without the breaks of lines.
fn unwrapped(text: &str) -> String {
    text.replace("\n  ", " ")
}

/// The statement of a script that made a server slower is named, with what the others did.
#[test]
fn the_part_that_changed_most_is_named_where_the_verdict_is_decided() {
    let digest = slower_digest([101.0, 150.0, 103.0]);
    let line = "changed most: `UPDATE accounts SET b = 1;` (own.sql 2), mean latency postgres/maria 1.500 (median of the other parts 1.020)";
    assert!(unwrapped(&digest).contains(line), "{digest}");
    assert!(!slower_digest([101.0, 102.0, 101.0]).contains("changed most"), "nothing to look at");
    let undecided = paper(paired(&around(1.0, 6))).digest(Lang::En, 3, &[]);
    assert!(!undecided.contains("changed most"), "{undecided}");
}

/// The digest of a comparison with a slower server, whose statements took this long.
fn slower_digest(mean_us: [f64; 3]) -> String {
    let mut run = paired(&around(0.9, 6));
    for data in &mut run.trials {
        let texts = ["BEGIN;", "UPDATE accounts SET b = 1;", "SELECT b FROM accounts;"];
        let latencies = texts.iter().enumerate().map(|(at, text)| StatementLatency {
            script: "own.sql".to_owned(),
            number: at as u32 + 1,
            text: (*text).to_owned(),
            count: 500,
            mean_us: if data.summary.target == "postgres" { mean_us[at] } else { 100.0 },
            ..StatementLatency::default()
        });
        data.summary.statement_latencies = latencies.collect();
    }
    paper(run).digest(Lang::En, 5, &[])
}

#[test]
fn a_load_level_whose_pairs_all_failed_has_a_row() {
    let mut run = paired(&around(1.1, 6));
    for mut data in paired_at(32, 40, &around(1.1, 6)).trials {
        data.summary.trial += 12;
        if data.summary.target == "postgres" {
            data.summary.status = TrialStatus::Failed(Message::verbatim("Too many connections."));
        }
        run.trials.push(data);
    }
    let paper = paper(run);
    let [good, bad] = paper.verdicts.comparisons.as_slice() else {
        panic!("{:?}", paper.verdicts.comparisons)
    };
    assert_eq!((good.rows[0].call, good.pairs.len()), (Call::Faster, 6));
    assert_eq!((bad.rows.len(), bad.pairs_lost), (0, 6));
    let reason = "no pair counts: 6 trials failed. The first: Too many connections.";
    assert_eq!(bad.no_pair.to_string(), reason);
    for text in [paper.markdown(Lang::En), unwrapped(&paper.digest(Lang::En, 3, &[]))] {
        assert!(text.contains(reason), "{text}");
    }
    let sentence = paper.verdicts.sentence().expect("a sentence").to_string();
    assert!(sentence.contains("At 1 of them no pair of trials counts."), "{sentence}");
}

/// A run that compares until decided.
pub(crate) fn until_decided(pairs: &[(f64, f64)]) -> RunData {
    let mut run = paired(pairs);
    let facts = ComparisonFacts {
        baseline: "maria".to_owned(),
        candidates: vec!["postgres".to_owned()],
        ..ComparisonFacts::default()
    };
    comparing(&mut run, facts);
    let comparison = run.header.experiments[0].comparison.as_mut().expect("a comparison");
    comparison.stop.is_until_decided = true;
    run
}

/// Pairs continue while a gate is open.
#[test]
fn until_decided_means_the_gates_too() {
    let mut gated = until_decided(&around(0.975, 9));
    assert_eq!(call(&paper(gated.clone())), Call::Slower);
    assert_eq!(veto_of_level(&gated, "read_only", "workers=8"), None);
    gated.header.experiments[0].gates = vec!["tps.ratio.low > 0.974".to_owned()];
    let open = veto_of_level(&gated, "read_only", "workers=8");
    let open = open.expect("its bound lies inside the interval");
    assert_eq!((open.0.to_string().as_str(), open.1), ("tps.ratio.low > 0.974", true));
    gated.header.experiments[0].gates = vec!["tps.ratio.low > 0.9".to_owned()];
    assert_eq!(veto_of_level(&gated, "read_only", "workers=8"), None);
}

#[test]
fn a_server_that_was_changed_between_sessions_takes_the_verdict_of_both_away() {
    let first = until_decided(&around(1.03, 4));
    let mut changed = until_decided(&around(1.03, 5));
    changed.header.experiments[0].gates = vec!["tps.ratio.low > 0.99".to_owned()];
    changed.header.continues = continued_sessions(&first).expect("pairs that count");
    for (is_session, cost) in [(true, "4"), (false, "1")] {
        let facts = ServerFacts {
            settings: [("random_page_cost".to_owned(), cost.to_owned())].into(),
            ..ServerFacts::default()
        };
        let looks: NodeFacts = [("postgres".to_owned(), facts)].into();
        if is_session {
            changed.header.continues[0].looks.insert("postgres".to_owned(), looks);
        } else {
            changed.trials.iter_mut().for_each(|trial| trial.before = looks.clone());
        }
    }
    let changed = paper(changed);
    assert_eq!(call(&changed), Call::Explained);
    assert_eq!(changed.verdicts.gate_result(), Some(GateResult::Inconclusive));
    let reason =
        "target-changed (comparison read_only workers=8: postgres / maria: postgres by trial";
    let digest = unwrapped(&changed.digest(Lang::En, 3, &[]));
    assert!(digest.contains(reason) && digest.contains("random_page_cost was 4, is 1"), "{digest}");
}

#[test]
fn sessions_that_go_on_with_each_other_are_judged_together() {
    // Another day has another level.
    let halves: Vec<_> = around(1.03, 4).iter().map(|(a, b)| (a / 2.0, b / 2.0)).collect();
    let first = until_decided(&halves);
    assert_eq!(call(&paper(first.clone())), Call::TooFewPairs);
    let mut second = until_decided(&around(1.03, 5));
    second.header.experiments[0].gates = vec!["tps.ratio.low > 0.99".to_owned()];
    second.header.continues = continued_sessions(&first).expect("pairs that count");
    let together = paper(second.clone());
    let comparison = &together.verdicts.comparisons[0];
    assert_eq!((comparison.rows[0].call, comparison.rows[0].pairs), (Call::Faster, 9));
    assert_eq!(comparison.sessions.iter().map(|session| session.pairs).collect::<Vec<_>>(), [4, 5]);
    assert_eq!(together.verdicts.gate_result(), Some(GateResult::Pass));
    let html = together.html(Lang::En);
    assert!(html.contains("Sessions of comparisons that continued over several runs"));
    let sentence = comparison.sentence.to_string();
    assert!(sentence.contains("9 pairs. The pairs are of 2 sessions"), "{sentence}");
    assert!(!sentence.contains("The sessions differ"), "{sentence}");
    // Medians are of all sessions, as the number of pairs.
    let baseline = comparison.rows[0].baseline;
    assert!(
        baseline.min < 0.6 * baseline.median && baseline.median > 0.8 * baseline.max,
        "{baseline:?}"
    );
    // Another version of a server is reported.
    second.header.continues[0].versions.insert("maria".to_owned(), "MariaDB 10.6".to_owned());
    let unlike = paper(second);
    let sentence = unlike.verdicts.comparisons[0].sentence.to_string();
    assert!(sentence.contains("The sessions differ in machine, server versions"), "{sentence}");
    assert!(unlike.digest(Lang::En, 0, &[]).contains("The sessions differ in machine"));
    for lang in Lang::ALL {
        elements(&unlike.html(lang));
    }
    // Blocks of trials prove nothing that another session may add to.
    let blocks = two_targets(&[8], 4, 12);
    assert!(continued_sessions(&blocks).is_err_and(|why| why.contains("did not interleave")));
}
