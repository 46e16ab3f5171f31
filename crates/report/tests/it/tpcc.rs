//! Papers about TPC-C.

use crate::support::{count, count_bars, elements, golden, number, table};
use crate::synthetic::tpcc::{editions, published, tpcc};
use crate::synthetic::{HOSTILE, own_mut};
use dyno_facts::{CheckVerdict, Message, NodeConditions, TrialStatus};
use dyno_report::{Check, Lang, Level, Paper, SpotKind};
use dyno_store::RunData;
use dyno_tpcc::facts::TpccFacts;

/// The check with this id; panics if there is none.
fn check<'a>(paper: &'a Paper, id: &str) -> &'a Check {
    paper.checks.iter().find(|check| check.id == id).expect("the check exists")
}

/// The paper of the run after a change to the facts of its first trial.
fn changed(change: impl Fn(&mut TpccFacts)) -> Paper {
    let mut run = tpcc();
    change(&mut own_mut(&mut run.trials[0].summary));
    Paper::new(&[run], &[])
}

#[test]
fn a_paper_has_the_headline_the_evidence_and_the_published_rows() {
    let paper = Paper::new(&[tpcc()], &published());
    golden("tpcc.md", &crate::support::recorded(paper.clone()).markdown(Lang::En));
    let experiment = &paper.experiments[0];
    let point = &experiment.points[0];
    let (_, tpmc) = point.main.expect("tpmC");
    let terminals = point.level.as_ref().and_then(|level| level.terminals);
    assert_eq!((point.repeats, terminals, point.is_paced), (2, Some(10), false));
    let completed = [0, 1].map(|trial: usize| {
        let orders = &paper.trials[trial].summary.kinds[0].counts;
        (orders.committed + orders.rolled_back) as f64
    });
    // Twelve seconds: five times as many a minute.
    assert_eq!([tpmc.max, tpmc.min], completed.map(|count| count * 5.0));
    let levels = table(&paper, "tpmC: New-Orders completed per minute");
    let acknowledged = number(&levels, "standard", "Acknowledged per minute").expect("a figure");
    assert!(acknowledged < tpmc.median && acknowledged > 0.98 * tpmc.median, "{acknowledged}");
    let per_warehouse = number(&levels, "standard", "tpmC per warehouse");
    assert_eq!(per_warehouse, Some(tpmc.median / 2.0));
    let mix = table(&paper, "The mix");
    assert_eq!(number(&mix, "New-Order", "Unknown outcome"), Some(3.0));
    let text = paper.markdown(Lang::En);
    assert!(text.contains("per warehouse does not apply"), "{text}");
    assert!(paper.experiments[1].points[0].is_paced);
    assert!(text.contains("2 warehouses must reach 18 tpmC"), "{text}");
    let hurried = changed(|facts| facts.tpmc_limit = Some(51.44)).markdown(Lang::En);
    assert!(hurried.contains("not those of the specification"), "{hurried}");
    assert!(hurried.contains("\n- Keying and think"), "{hurried}");

    let comparisons = paper.comparisons();
    let [comparison] = comparisons.as_slice() else { panic!("one table") };
    let [row] = comparison.rows.as_slice() else { panic!("the other row was not measured") };
    let (_, measured) = experiment.points[1].main.expect("tpmC");
    let (point, pair) = (row.first.point.expect("a counterpart"), row.pairs[0].expect("a figure"));
    let setup = &point.level.as_ref().expect("its level").setup;
    assert_eq!((comparison.load.to_string().as_str(), point.load()), ("Terminals", 1000.0));
    assert_eq!(pair.measured(), Some(measured));
    assert_eq!(pair.ratio(), Some(measured.median / 65_735.14));
    assert!(setup.to_string().contains("as BenchmarkSQL 5.0 does it"), "{setup}");
}

#[test]
fn html_is_well_formed_and_has_the_charts() {
    let paper = Paper::new(&[tpcc()], &published());
    let html = paper.html(Lang::En);
    if let Some(folder) = std::env::var_os("DYNO_PAPERS") {
        let chinese = paper.html(Lang::Zh);
        for (name, text) in [("tpcc.html", &html), ("tpcc.zh.html", &chinese)] {
            std::fs::write(std::path::Path::new(&folder).join(name), text).expect("written");
        }
    }
    let elements = elements(&html);
    // Per trial tpmC over time, throughput and latency. tpmC over time of the only trial of an experiment, the chart of page one, latency against tpmC, tpmC and latency
    // against terminals.
    assert_eq!(count(&elements, "svg"), 4 * 3 + 1 + 1 + 5);
    assert_eq!(
        count(&elements, "table"),
        count(&elements, "caption"),
        "every table says what it shows"
    );
    assert!(!html.contains("NaN") && !html.contains(">inf"), "a number has run away");
    assert!(html.contains("New-Orders per minute (tpmC)"));
    assert_eq!(html.matches("<strong class=\"bad\">EXCEEDED</strong>").count(), 3);
    assert_eq!(
        html.matches("data-name=\"most that keying and think times allow\"").count(),
        2,
        "line and legend"
    );
}

#[test]
fn what_was_not_made_is_said() {
    let mut run = tpcc();
    for trial in &mut run.trials {
        trial.series.iter_mut().for_each(|row| row.committed_by_kind.clear());
        trial.summary.checks.clear();
        let mut facts = own_mut::<TpccFacts>(&mut trial.summary);
        facts.conditions.clear();
        facts.audit.clear();
    }
    let paper = Paper::new(&[run], &[]);
    let text = paper.markdown(Lang::En);
    for said in [
        "Consistency conditions: not made, ",
        "| Books: what was acknowledged, by district, against the database | not made: ",
        "| Ledger: every acknowledged order is found | not made: ",
        "Audit of trial 5 on other: not made, ",
    ] {
        assert!(text.contains(said), "{said}");
    }
    let html = paper.html(Lang::En);
    elements(&html);
    assert!(html.contains("tpmC over time is not drawn: "));
    for id in ["tpcc-audit-not-made", "tpcc-conditions-not-made"] {
        assert_eq!(check(&paper, id).findings.len(), 5, "{id}");
    }
}

#[test]
fn what_was_left_out_for_one_reason_is_said_once() {
    let mut run = tpcc();
    let reason = "The option checks has left them out.";
    for trial in &mut run.trials {
        for line in &mut own_mut::<TpccFacts>(&mut trial.summary).conditions {
            let state = line.before.as_mut().expect("a state");
            (state.verdict, state.evidence) = (CheckVerdict::NotMade, reason.into());
        }
    }
    let text = Paper::new(&[run], &[]).markdown(Lang::En);
    assert_eq!(text.matches(reason).count(), 1);
    assert!(text.contains(&format!("Before: not made: {reason}")));
    assert!(text.contains("of the warehouse's districts. | not made | passed |"), "{text}");
}

#[test]
fn hostile_words_stay_text() {
    let mut run = tpcc();
    for trial in &mut run.trials {
        for kind in &mut trial.summary.kinds[1..] {
            kind.name = HOSTILE.into();
        }
        let mut facts = own_mut::<TpccFacts>(&mut trial.summary);
        facts.profile = HOSTILE.to_owned();
        facts.isolation = Some(HOSTILE.to_owned());
        for line in &mut facts.conditions {
            (line.id, line.rule) = (HOSTILE.to_owned(), HOSTILE.into());
        }
        for line in &mut facts.audit {
            (line.name, line.observed) = (HOSTILE.into(), HOSTILE.into());
        }
        drop(facts);
        for check in &mut trial.summary.checks {
            check.evidence = HOSTILE.into();
        }
    }
    let paper = Paper::new(&[run], &[]);
    let html = paper.html(Lang::En);
    assert!(!html.contains("<script>alert") && html.contains("&lt;script&gt;alert"));
    assert_eq!(elements(&html).iter().filter(|element| *element == "script").count(), 1);
    let markdown = paper.markdown(Lang::En);
    assert!(!markdown.contains("<script>"));
    let rows: Vec<&str> = markdown.lines().filter(|line| line.starts_with('|')).collect();
    for pair in rows.windows(2).filter(|pair| pair[1].starts_with("|---")) {
        assert_eq!(count_bars(pair[0]), count_bars(pair[1]), "{}", pair[0]);
    }
    for line in rows.iter().filter(|line| line.starts_with("| &lt;script")) {
        assert!(count_bars(line) >= 5, "{line}");
    }
}

#[test]
fn a_failed_trial_and_one_that_was_cut_off_are_shown_as_such() {
    let mut run = tpcc();
    run.trials[2].summary.status = TrialStatus::Failed("No commit was answered.".into());
    run.trials[4].summary.status = TrialStatus::Interrupted;
    let paper = Paper::new(&[run], &[]);
    let point = &paper.experiments[0].points[1];
    assert_eq!((point.status, point.repeats), ("failed", 2));
    assert_eq!(paper.experiments[1].points[0].status, "interrupted");
    let text = paper.markdown(Lang::En);
    assert!(text.contains("| standard (failed) | 1,000 | 1,000 | 2 / 5 | bmsql-5.0 |"));
}

#[test]
fn every_rule_finds_what_it_looks_for_and_nothing_else() {
    let paper = Paper::new(&[tpcc()], &[]);
    for (id, line) in [
        ("tpcc-audit", "trial 5: remote lines: 0.00%, expected 1% (+- 0.21%)"),
        ("tpcc-conditions", "trial 4: after: C2"),
        ("tpcc-unknown", "trial 2: 3 New-Orders of unknown outcome"),
        ("tpcc-skips", "trial 5: 5.0% of 240"),
    ] {
        assert_eq!(check(&paper, id).lines, [line], "{id}");
    }
    assert_eq!(check(&paper, "tpcc-no-pauses").findings.len(), 4);
    assert_eq!(check(&paper, "tpcc-cached").findings.len(), 5);
    assert_eq!(check(&paper, "tpcc-response").findings.len(), 3);
    assert_eq!(check(&paper, "tpcc-audit").level, Level::E);
    for id in ["tpcc-unlike", "tpcc-mix", "tpcc-mean", "tpcc-above-bound", "tpcc-below-floor"] {
        assert!(check(&paper, id).findings.is_empty(), "{id}");
    }
    let too_few = changed(|facts| facts.kinds[1].least_share_percent = 60.0);
    assert_eq!(check(&too_few, "tpcc-mix").lines, ["trial 1: Payment 43.00%, at least 60%"]);
    let above = changed(|facts| facts.tpmc_limit = Some(25.72));
    assert_eq!(check(&above, "tpcc-above-bound").lines.len(), 1);
    let below = changed(|facts| (facts.tpmc_limit, facts.tpmc) = (Some(25.72), 12.0));
    assert_eq!(check(&below, "tpcc-below-floor").lines, ["trial 1: 6.00 tpmC per warehouse"]);
    let broken_before = changed(|facts| {
        let state = facts.conditions[0].before.as_mut().expect("a state");
        state.verdict = CheckVerdict::Failed;
    });
    assert_eq!(check(&broken_before, "tpcc-conditions").lines[0], "trial 1: before: C1");
    let unlooked_after = changed(|facts| {
        for state in facts.conditions.iter_mut().filter_map(|line| line.after.as_mut()) {
            state.verdict = CheckVerdict::NotMade;
        }
    });
    let not_made = &check(&unlooked_after, "tpcc-conditions-not-made").lines;
    assert!(not_made[0].to_string().starts_with("trial 1: after: all "), "{not_made:?}");
}

#[test]
fn conditions_that_hold_after_a_trial_need_no_check_before_it() {
    fn unlooked_before(facts: &mut TpccFacts) {
        for state in facts.conditions.iter_mut().filter_map(|line| line.before.as_mut()) {
            state.verdict = CheckVerdict::NotMade;
        }
    }
    assert_eq!(conditions_not_made(unlooked_before), None);
    let partly_after = conditions_not_made(|facts| {
        unlooked_before(facts);
        let mut after = facts.conditions.iter_mut().filter_map(|line| line.after.as_mut());
        after.next().expect("a state").verdict = CheckVerdict::NotMade;
    });
    assert_eq!(partly_after.expect("a caveat"), "trial 1: before: all 4; after: C1");
}

/// The line on conditions that were not checked in trial 1, after a change.
fn conditions_not_made(change: fn(&mut TpccFacts)) -> Option<Message> {
    let lines = check(&changed(change), "tpcc-conditions-not-made").lines.clone();
    lines.into_iter().find(|line| line.to_string().starts_with("trial 1: "))
}

#[test]
fn targets_that_were_run_differently_are_not_compared_in_silence() {
    assert_eq!(
        unlike_lines(Some("READ-COMMITTED"), |facts| facts.isolation = None),
        Vec::<String>::new()
    );
    assert_eq!(
        unlike_lines(Some("REPEATABLE READ"), |facts| facts.isolation = None),
        ["experiment orders: isolation: standard read committed, other repeatable read"]
    );
    assert_eq!(unlike_lines(None, |_| {}), Vec::<String>::new(), "terminals alone are a sweep");
    assert_eq!(
        unlike_lines(None, |facts| (facts.isolation, facts.warehouses) = (None, 5)),
        ["experiment orders: isolation: standard read committed, other the server's own; \
          warehouses: standard 2, other 5"]
    );
}

/// The differences between two targets, one of which has this level of isolation and is changed.
fn unlike_lines(isolation: Option<&str>, change: fn(&mut TpccFacts)) -> Vec<Message> {
    let mut run: RunData = tpcc();
    for trial in &mut run.trials[2..4] {
        trial.summary.target = "other".to_owned();
        let isolation = isolation.map(str::to_owned);
        let node = NodeConditions { isolation, ..NodeConditions::default() };
        trial.summary.conditions.nodes.insert("n1".to_owned(), node);
        change(&mut own_mut(&mut trial.summary));
    }
    check(&Paper::new(&[run], &[]), "tpcc-unlike").lines.clone()
}

#[test]
fn a_load_that_differs_from_the_published_one_is_told_beside_the_ratio() {
    let paper = Paper::new(&[tpcc()], &published());
    let unlike = check(&paper, "tpcc-unlike-published");
    assert_eq!(
        unlike.lines,
        ["experiment orders: standard and standard: 2 warehouses instead of 1,000"]
    );
    let mut alike = published();
    for row in &mut alike[0].rows {
        row.conditions.insert("warehouses".to_owned(), "2".to_owned());
    }
    assert!(check(&Paper::new(&[tpcc()], &alike), "tpcc-unlike-published").lines.is_empty());
}

#[test]
fn idle_sessions_between_pauses_are_no_finding() {
    let paper = Paper::new(&[tpcc()], &[]);
    let paced = ["littles-law", "gaps"].map(|id| {
        check(&paper, id)
            .findings
            .iter()
            .filter(|finding| finding.place == SpotKind::Trial.at("5"))
            .count()
    });
    assert_eq!(paced, [0, 0]);
    assert!(paper.markdown(Lang::En).contains("thinks"));

    // At some seven orders and payments in ten seconds one empty interval is chance, ten are not.
    let mut run = tpcc();
    run.trials[4].series[20].committed = 0;
    run.trials[4].series.iter_mut().for_each(|row| row.committed /= 3);
    assert_eq!(Paper::new(&[run.clone()], &[]).trials[4].gaps.len(), 0);
    run.trials[4].series[20..30].iter_mut().for_each(|row| row.committed = 0);
    assert_eq!(Paper::new(&[run], &[]).trials[4].gaps.len(), 1);
}

#[test]
fn editions_stand_in_one_table_with_what_was_published() {
    let mut published = published();
    published[0].experiment = "stand-ins".to_owned();
    let paper = Paper::new(&[editions()], &published);
    let editions = table(&paper, "Editions compared");
    assert_eq!(editions.rows.len(), 3 * 2 + 2, "two rows were published");
    let cell = |row: &str, column: &str| number(&editions, row, column);
    assert_eq!(
        ["shards-1", "shards-2", "shards-4"].map(|name| cell(name, "Shards")),
        [1.0, 2.0, 4.0].map(Some)
    );
    // A hundredth of the New-Orders is rolled back, and used CPU, too.
    assert_near(cell("shards-4", "Server CPU, µs per transaction"), 100.0);
    assert_eq!(cell("shards-1", "Across shards, %"), Some(0.0));
    assert_near(cell("shards-4", "Across shards, %"), 0.05);
    assert_eq!(cell("extra-large (published)", "Published tpmC"), Some(821_547.97));
    assert_eq!(cell("extra-large (published)", "Terminals"), Some(6_000.0));
    let work = table(&paper, "Work of each node of shards-4");
    assert_near(number(&work, "endpoint", "server CPU per transaction, µs"), 40.0);
    rows_stand_for_statements();
    for lang in Lang::ALL {
        let html = paper.html(lang);
        elements(&html);
        assert!(!html.contains("NaN") && !html.contains(">inf"), "a number has run away");
        if let Some(folder) = std::env::var_os("DYNO_PAPERS") {
            let name = format!("editions.{lang:?}.html");
            std::fs::write(std::path::Path::new(&folder).join(name), html).expect("written");
        }
    }
    let text = paper.markdown(Lang::Zh);
    assert!(text.contains("各版本规格对比"), "{text}");
}

/// Asserts that a number is known and off by less than 2%.
fn assert_near(found: Option<f64>, wanted: f64) {
    assert!(found.is_some_and(|found| (found / wanted - 1.0).abs() < 0.02), "{found:?} {wanted}");
}

/// Shards that count no statements, such as PostgreSQL's.
fn rows_stand_for_statements() {
    let mut run = editions();
    for trial in &mut run.trials {
        for node in trial.summary.conditions.nodes.values_mut() {
            node.rows_written = node.writes.take();
        }
    }
    let paper = Paper::new(&[run], &published());
    let work = table(&paper, "Work of each node of shards-4");
    let share = number(&work, "n2", "share %").expect("a share");
    assert!((share - 2.0 / 6.0).abs() < 1e-3, "{share}");
    assert!(work.columns.iter().all(|column| column.title != "Reads"));
    let text = paper.markdown(Lang::En);
    assert!(text.contains("Rows written: 17% to 33% for each node."), "{text}");
    assert!(text.contains("PostgreSQL counts statements only where"), "{text}");
}

#[test]
fn one_edition_is_compared_with_nothing() {
    let text = Paper::new(&[tpcc()], &published()).markdown(Lang::En);
    assert!(!text.contains("Editions compared"), "pauses make another load");
}

#[test]
fn an_isolation_level_is_said_of_the_experiments_that_ask_for_it() {
    let mut run = tpcc();
    let mut experiment = run.header.experiments[0].clone();
    experiment.name = "plain".to_owned();
    run.header.experiments.push(experiment);
    let mut trial = run.trials[0].clone();
    (trial.summary.trial, trial.summary.experiment) = (99, "plain".to_owned());
    own_mut::<TpccFacts>(&mut trial.summary).isolation = None;
    run.trials.push(trial);
    let text = Paper::new(&[run], &[]).markdown(Lang::En);
    let elsewhere =
        "”, as requested by the sessions; elsewhere the servers' default, REPEATABLE-READ";
    assert!(text.contains("READ COMMITTED in “") && text.contains(elsewhere), "{text}");
}
