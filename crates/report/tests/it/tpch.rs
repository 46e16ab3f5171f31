//! Papers about TPC-H.

use crate::support::{
    ReadCell, ReadTable, count, count_bars, elements, english, find_table, golden, table,
};
use crate::synthetic::tpch::{published, tpch};
use crate::synthetic::{HOSTILE, Own, own_mut};
use dyno_facts::{CheckVerdict, TrialStatus};
use dyno_report::blocks::{Block, Cell, CellValue, PaperTable};
use dyno_report::{Check, Lang, Paper, Spread};
use dyno_store::RunData;
use dyno_tpch::facts::{PlanFacts, QueryOutcome, TpchFacts};

/// The check with this id; panics if there is none.
fn check<'a>(paper: &'a Paper, id: &str) -> &'a Check {
    paper.checks.iter().find(|check| check.id == id).expect("the check exists")
}

/// The tables of the 22 queries.
fn seconds(paper: &Paper) -> Vec<PaperTable> {
    let tables = paper.blocks(Lang::En).into_iter();
    let tables = tables.filter_map(|block| match block {
        Block::Table(table) => Some(table),
        _ => None,
    });
    tables.filter(|table| english(&table.caption).starts_with("Seconds of each query")).collect()
}

/// The table of the target with two degrees.
fn postgres(paper: &Paper) -> PaperTable {
    let mut tables = seconds(paper).into_iter();
    tables.find(|table| table.cell("Q1", "2, times as fast as 0").is_some()).expect("a table")
}

/// The cell of a row below a column; panics if there is none.
fn cell<'a>(table: &'a PaperTable, row: &str, column: &str) -> &'a Cell {
    table.cell(row, column).unwrap_or_else(|| panic!("{row}, {column}: {table:?}"))
}

/// The facts of the trial at this place in the run, to be changed.
fn facts(run: &mut RunData, trial: usize) -> Own<'_, TpchFacts> {
    own_mut(&mut run.trials[trial].summary)
}

/// The paper of the run after a change to the facts of every trial.
fn changed(change: impl Fn(u32, &mut TpchFacts)) -> Paper {
    let mut run = tpch();
    for trial in &mut run.trials {
        change(trial.summary.trial, &mut own_mut(&mut trial.summary));
    }
    Paper::new(&[run], &published())
}

#[test]
fn a_paper_has_every_degree_its_speed_up_and_the_published_seconds() {
    let mut run = tpch();
    let skipped = "MariaDB executes each query in one thread: it has no parallel query.";
    run.header.skipped.insert("queries/maria/degree=2/repeat=1".to_owned(), skipped.into());
    run.header.skipped.insert("queries/maria/degree=2/repeat=2".to_owned(), skipped.into());
    let paper = Paper::new(&[run.clone()], &published());
    golden("tpch.md", &crate::support::recorded(paper.clone()).markdown(Lang::En));
    let table = postgres(&paper);
    let [serial, parallel] = [0, 2].map(|degree| {
        let mut times: Vec<f64> = run
            .trials
            .iter()
            .map(|trial| &trial.summary)
            .filter(|trial| trial.experiment == "queries" && trial.target == "postgres")
            .filter_map(|trial| trial.own::<TpchFacts>())
            .filter(|facts| facts.degree.asked == degree)
            .flat_map(|facts| &facts.queries)
            .filter(|facts| facts.query == 9)
            .map(|facts| facts.seconds)
            .collect();
        times.sort_by(f64::total_cmp);
        times
    });
    let [low, median, high] = parallel[..] else { panic!("three trials") };
    let spread = Spread { min: low, median, max: high };
    assert_eq!(cell(&table, "Q9", "degree 2").value, CellValue::Spread(spread));
    let speedup = cell(&table, "Q9", "2, times as fast as 0");
    let (min, max) = (serial[0] / high, serial[2] / low);
    let spread = Spread { min, median: serial[1] / median, max };
    assert_eq!((&speedup.value, speedup.bound), (&CellValue::Spread(spread), ""));
    assert_eq!(cell(&table, "Q9", "Rows").value, CellValue::Range([63.0; 2]));
    assert_eq!(cell(&table, "Q9", "Answer").english(), "correct");

    for (query, column, figure) in [
        ("Q1", "s, degree 0", 1092.0),
        ("Q1", "s, degree 16", 1092.0),
        ("Q4", "16, times as fast as 0", 4.0),
    ] {
        assert_eq!(cell(&table, query, column).number(), Some(figure), "{query}, {column}");
    }
    let power_table = seconds(&paper).swap_remove(2);
    assert!(
        power_table.cell("Q1", "s, degree 0").is_none(),
        "only the queries have published ones"
    );
    let text = paper.markdown(Lang::En);
    assert_eq!(text.matches(&format!("Left out: maria, degree=2: {skipped}")).count(), 1);
    assert_eq!(text.matches("Source: A vendor's white paper").count(), 1, "in the section alone");
    assert!(paper.key_rows().is_empty() && paper.comparisons().is_empty(), "nothing per second");
}

#[test]
fn html_is_well_formed_and_has_the_charts() {
    let paper = Paper::new(&[tpch()], &published());
    let html = paper.html(Lang::En);
    if let Some(folder) = std::env::var_os("DYNO_PAPERS") {
        let chinese = paper.html(Lang::Zh);
        for (name, text) in [("tpch.html", &html), ("tpch.zh.html", &chinese)] {
            std::fs::write(std::path::Path::new(&folder).join(name), text).expect("written");
        }
    }
    let elements = elements(&html);
    // The chart of page one; times of four tables, speed-ups of the one with two degrees.
    assert_eq!(count(&elements, "svg"), 1 + 4 + 1);
    assert_eq!(
        count(&elements, "table"),
        count(&elements, "caption"),
        "every table says what it shows"
    );
    assert!(!html.contains("NaN") && !html.contains(">inf"), "a number has run away");
    assert!(html.contains("<a href=\"plans/1-q05.json\">trial 1</a>"));
    for generic in ["Transactions<br>per s", "Accounting:", "p95"] {
        assert!(!html.contains(generic), "{generic} says nothing of queries");
    }
    assert_eq!(
        html.matches("class=\"beyond\"").count(),
        2 * 3,
        "two given up, and the legend, also on page one"
    );
}

#[test]
fn what_was_given_up_or_failed_is_never_a_plain_time() {
    let paper = Paper::new(&[tpch()], &published());
    let maria = &seconds(&paper)[0];
    let (slow, broken) = (cell(maria, "Q18", "degree 0"), cell(maria, "Q17", "degree 0"));
    assert_eq!((slow.bound, english(&slow.below[0]).as_str()), ("≥", "given up, 2 of 2"));
    assert_eq!((broken.bound, english(&broken.below[0]).as_str()), ("", "1 failed"));
    assert_eq!(cell(maria, "Q18", "Rows").value, CellValue::Missing);
    let degrees = table(&paper, "Requested and reached");
    let total = cell(&degrees, "maria (failed)", "Total s");
    let below: Vec<String> = total.below.iter().map(|line| english(line)).collect();
    assert_eq!(below, ["with 2 given up", "1 of 2 trials"]);
    assert_eq!(
        cell(&degrees, "maria (failed)", "Answers").english(),
        "19 of 22 correct; wrong: Q11; without an answer: Q18 and Q21"
    );
    assert_eq!(table(&paper, "Queries without an answer").rows.len(), 5);
    let text = paper.markdown(Lang::En);
    assert!(text.contains("| Q18 | – | – | ≥ 60.0 (**given up, 2 of 2**) |"), "{text}");
    assert!(text.contains("| 6 | maria | 0 | Q17 | 0 | failed: Out of memory"), "{text}");

    assert_eq!(speedup_bounds(&given_up_at(0)), ["≥", "≥"]);
    assert_eq!(speedup_bounds(&given_up_at(2)), ["≤", "≤"]);
    let timed_out = changed(|_, facts| facts.queries[0].outcome = QueryOutcome::TimedOut);
    assert_eq!(q1_speedup(&timed_out), Cell { value: CellValue::Missing, ..Cell::default() });
    let failed = changed(|trial, facts| {
        if trial == 2 {
            facts.queries[0].outcome = QueryOutcome::Failed("gone".to_owned());
        }
    });
    assert_eq!(q1_speedup(&failed).value, CellValue::Missing);
}

/// The speed-up of Q1.
fn q1_speedup(paper: &Paper) -> Cell {
    cell(&postgres(paper), "Q1", "2, times as fast as 0").clone()
}

/// The bounds of the speed-up of Q1 and of all queries.
fn speedup_bounds(paper: &Paper) -> [&'static str; 2] {
    let table = postgres(paper);
    ["Q1", "Total"].map(|row| cell(&table, row, "2, times as fast as 0").bound)
}

/// The paper of a run whose first query was given up at this degree.
fn given_up_at(degree: u32) -> Paper {
    changed(move |_, facts| {
        if facts.degree.asked == degree {
            (facts.queries[0].outcome, facts.queries[0].seconds) = (QueryOutcome::TimedOut, 60.0);
        }
    })
}

/// Places and evidence of a check's findings.
fn findings(paper: &Paper, id: &str) -> Vec<String> {
    check(paper, id).findings.iter().map(|f| format!("{}: {}", f.place.text(), f.value)).collect()
}

#[test]
fn every_rule_finds_what_it_looks_for_and_nothing_else() {
    let usual = Paper::new(&[tpch()], &published());
    let expected = [
        ("tpch-answers", vec!["trial 3: Q11 wrong", "trial 6: Q11 wrong"]),
        ("tpch-failed", vec!["trial 6: Q17"]),
        (
            "tpch-timeouts",
            vec!["trial 3: Q18 and Q21 after 60 s", "trial 6: Q18 and Q21 after 60 s"],
        ),
        ("tpch-plans", vec!["experiment queries: Q5 on postgres at degree 2"]),
        ("tpch-refreshed", vec!["trial 10: 1 pair applied since the load"]),
        ("tpch-streams", vec!["trial 10: 1 pair of refresh functions for 2 streams"]),
        ("tpch-cache-unknown", vec!["trial 3: warm, not proven", "trial 6: warm, not proven"]),
    ];
    for (id, lines) in expected {
        assert_eq!(findings(&usual, id), lines, "{id}");
    }
    assert_eq!(findings(&usual, "tpch-load-differs").len(), 1, "one target has no foreign keys");
    for id in [
        "tpch-not-compared",
        "tpch-degree",
        "tpch-cache-failed",
        "tpch-cache-mixed",
        "tpch-unlike",
        "tpch-power",
        "errors",
        "errors-1",
        "data",
        "short-window",
        "littles-law",
    ] {
        assert!(findings(&usual, id).is_empty(), "{id}: {:?}", findings(&usual, id));
    }
}

#[test]
fn rules_find_what_was_changed() {
    assert_eq!(
        changed_findings("tpch-not-compared", &|facts| facts.queries[3].answer = None),
        ["trial 1: Q4"]
    );
    assert_eq!(
        changed_findings("tpch-degree", &|facts| {
            facts.degree.got = Some(3);
            facts.degree.remark = Some("Plans had up to 3 workers.".into());
        }),
        ["trial 1: Plans had up to 3 workers."]
    );
    let off_by_one = changed_findings("tpch-degree", &|facts| facts.degree.got = Some(1));
    assert!(off_by_one.is_empty(), "some products mean off by 1");
    let few_workers = changed_findings("tpch-degree", &|facts| {
        (facts.degree.asked, facts.degree.got) = (16, Some(2));
    });
    assert_eq!(few_workers, ["trial 1: asked 16, got 2"]);
    let none = changed_findings("tpch-degree", &|facts| {
        (facts.degree.asked, facts.degree.rule) = (4, String::new());
    });
    assert_eq!(none, ["trial 1: asked 4, and the product has no degree"]);
    assert_eq!(
        changed_findings("tpch-cache-failed", &|facts| facts.cache.verdict =
            Some(CheckVerdict::Failed))
        .len(),
        1
    );
    assert_eq!(
        changed_findings("tpch-cache-mixed", &|facts| facts.cache.state = "cold".to_owned()).len(),
        1
    );
    let scale = changed_findings("tpch-unlike", &|facts| facts.scale = 0.1);
    assert_eq!(scale, ["experiment queries: scale factor: maria 1, postgres 0.1, 1"]);
    let mut run = tpch();
    facts(&mut run, 8).queries.swap(3, 4);
    facts(&mut run, 8).refreshes.pop();
    let power = findings(&Paper::new(&[run], &[]), "tpch-power");
    assert_eq!(
        power,
        ["trial 9: the queries ran in another order; refresh function 2 did not run after them"]
    );
}

/// The findings of a check after a change to the facts of the first trial.
fn changed_findings(id: &str, change: &dyn Fn(&mut TpchFacts)) -> Vec<String> {
    let mut run = tpch();
    change(&mut facts(&mut run, 0));
    findings(&Paper::new(&[run], &published()), id)
}

#[test]
fn an_interrupted_pass_has_a_paper() {
    let mut run = tpch();
    run.trials.truncate(1);
    run.trials[0].summary.status = TrialStatus::Interrupted;
    let mut pass = facts(&mut run, 0);
    pass.queries.truncate(5);
    pass.queries[4].outcome = QueryOutcome::Interrupted;
    (pass.metrics, pass.load) = (None, None);
    drop(pass);
    let paper = Paper::new(&[run], &published());
    elements(&paper.html(Lang::En));
    let queries = &seconds(&paper)[0];
    let answers =
        cell(&table(&paper, "Requested and reached"), "postgres (interrupted)", "Answers")
            .english();
    assert!(answers.starts_with("4 of 22 correct"), "{answers}");
    assert_eq!(cell(queries, "Q5", "degree 0").english(), "interrupted");
    assert_eq!(cell(queries, "Total", "degree 0").value, CellValue::Missing);
    assert_eq!(check(&paper, "cut-off").findings[0].value, "5 queries executed");
    let text = paper.markdown(Lang::En);
    assert!(text.contains("no total without parallel workers, as not all queries ended"), "{text}");
    assert!(text.contains("It is not known how and when the data were loaded."));
}

#[test]
fn hostile_words_stay_text() {
    let mut run = tpch();
    for trial in &mut run.trials {
        let mut facts = own_mut::<TpchFacts>(&mut trial.summary);
        facts.parameters = HOSTILE.into();
        facts.degree.statements = vec![HOSTILE.to_owned()];
        facts.degree.remark = Some(HOSTILE.into());
        facts.cache.evidence = vec![HOSTILE.into()];
        facts.rewrites = vec![HOSTILE.into()];
        facts.queries[0].outcome = QueryOutcome::Failed(HOSTILE.to_owned());
        facts.queries[1].plan =
            Some(PlanFacts { file: format!("javascript:{HOSTILE}"), ..PlanFacts::default() });
        facts.queries[2].answer.as_mut().expect("an answer").differences = vec![HOSTILE.into()];
    }
    let paper = Paper::new(&[run], &published());
    let html = paper.html(Lang::En);
    assert!(!html.contains("<script>alert") && !html.contains("javascript:"));
    assert_eq!(elements(&html).iter().filter(|element| *element == "script").count(), 1);
    let markdown = paper.markdown(Lang::En);
    assert!(!markdown.contains("<script>") && !markdown.contains("javascript:"));
    let rows: Vec<&str> = markdown.lines().filter(|line| line.starts_with('|')).collect();
    for pair in rows.windows(2).filter(|pair| pair[1].starts_with("|---")) {
        assert_eq!(count_bars(pair[0]), count_bars(pair[1]), "{}", pair[0]);
    }
}

#[test]
fn plans_of_several_runs_are_named_and_not_linked() {
    let mut second = tpch();
    second.path = "dyno-runs/another".into();
    let paper = Paper::new(&[tpch(), second], &[]);
    let html = paper.html(Lang::En);
    elements(&html);
    assert!(!html.contains("href=\"plans/") && html.contains("trial 2/1"));
    assert_eq!(seconds(&paper).len(), 4 + 4, "two targets, and two tests, of two runs");
}

#[test]
fn refresh_functions_alone_have_a_paper_without_queries() {
    let mut run = tpch();
    run.trials.retain(|trial| trial.summary.trial == 9);
    let mut alone = facts(&mut run, 0);
    alone.test = "refresh".to_owned();
    alone.queries.clear();
    alone.metrics = None;
    drop(alone);
    let paper = Paper::new(&[run], &[]);
    elements(&paper.html(Lang::En));
    let blocks = paper.blocks(Lang::En);
    for caption in ["Seconds of each query", "Contents of the caches"] {
        assert!(find_table(&blocks, caption).is_none(), "{caption}");
    }
    assert_eq!(table(&paper, "Refresh functions").rows.len(), 2);
    let text = paper.markdown(Lang::En);
    assert!(text.contains("| 9 | postgres | 2 | 1 | RF1 | 7,500 | 0.800 | well |"), "{text}");
    assert!(!text.contains("| Q1 |"), "{text}");
}

#[test]
fn a_pass_over_queries_is_no_load_of_single_statements() {
    let mut run = tpch();
    for trial in &mut run.trials {
        (trial.summary.tps, trial.summary.qps) = (0.5, 0.5);
        trial.summary.latency.p50_us = 1_000.0;
    }
    assert!(check(&Paper::new(&[run], &[]), "single-statement").lines.is_empty());
}
