//! What papers say of TPC-H.

use crate::support::{elements, golden};
use crate::synthetic::tpch::{published, tpch};
use crate::synthetic::{HOSTILE, Own, own_mut};
use dyno_facts::{TrialStatus, Verdict};
use dyno_report::{Check, Lang, Paper, TpchSection, TpchTable};
use dyno_store::RunData;
use dyno_tpch::facts::{PlanFacts, QueryOutcome, TpchFacts};

fn check<'a>(paper: &'a Paper, id: &str) -> &'a Check {
    paper.checks.iter().find(|check| check.id == id).expect("the check exists")
}

fn section(paper: &Paper, experiment: usize) -> &TpchSection {
    paper.experiments[experiment].tpch.as_ref().expect("a section")
}

/// The table of the target with two degrees.
fn postgres(paper: &Paper) -> &TpchTable {
    let tables = &section(paper, 0).tables;
    tables.iter().find(|table| table.target == "postgres").expect("a table")
}

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
    golden("tpch.md", &paper.markdown(Lang::En));
    let table = postgres(&paper);
    let degrees: Vec<u32> = table.degrees.iter().map(|column| column.degree).collect();
    assert_eq!((degrees.as_slice(), table.degrees[0].repeats), ([0, 2].as_slice(), 3));
    let times = |degree: u32, query: u8| -> Vec<f64> {
        let mut times: Vec<f64> = run
            .trials
            .iter()
            .map(|trial| &trial.summary)
            .filter(|trial| trial.experiment == "queries" && trial.target == "postgres")
            .filter_map(|trial| trial.own::<TpchFacts>())
            .filter(|facts| facts.degree.asked == degree)
            .flat_map(|facts| &facts.queries)
            .filter(|facts| facts.query == query)
            .map(|facts| facts.seconds)
            .collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let (serial, parallel) = (times(0, 9), times(2, 9));
    let row = &table.queries[8];
    let seconds = row.cells[1].seconds.expect("a time");
    assert_eq!([seconds.min, seconds.median, seconds.max], parallel[..]);
    let speedup = row.cells[1].speedup.expect("a speed-up");
    assert_eq!(speedup.median, serial[1] / parallel[1]);
    assert_eq!((speedup.min, speedup.max), (serial[0] / parallel[2], serial[2] / parallel[0]));
    assert!(speedup.bound.is_none() && row.cells[0].speedup.is_none());
    assert_eq!((row.rows, row.answer), (Some((63, 63)), Some(Verdict::Passed)));

    let [theirs] = section(&paper, 0).published.as_slice() else { panic!("one table") };
    assert_eq!((theirs.degrees.as_slice(), theirs.scale), ([0, 16].as_slice(), Some(100.0)));
    assert_eq!(
        (theirs.seconds[0].as_slice(), theirs.speedups[3]),
        ([Some(1092.0), Some(1092.0)].as_slice(), Some(4.0))
    );
    assert!(section(&paper, 1).published.is_empty());
    let text = paper.markdown(Lang::En);
    assert_eq!(text.matches(&format!("Left out: maria, degree=2: {skipped}")).count(), 1);
    assert_eq!(text.matches("Source: A vendor's white paper").count(), 1, "in the section alone");
    assert!(paper.key_rows().is_empty() && paper.comparisons.is_empty(), "nothing per second");
}

#[test]
fn html_is_well_formed_and_has_the_charts() {
    let paper = Paper::new(&[tpch()], &published());
    let html = paper.html(Lang::En).expect("rendered");
    if let Some(folder) = std::env::var_os("DYNO_PAPERS") {
        let chinese = paper.html(Lang::Zh).expect("rendered");
        for (name, text) in [("tpch.html", &html), ("tpch.zh.html", &chinese)] {
            std::fs::write(std::path::Path::new(&folder).join(name), text).expect("written");
        }
    }
    let elements = elements(&html);
    let count = |name: &str| elements.iter().filter(|element| *element == name).count();
    // The topology, times of four tables, speed-ups of the one with two degrees.
    assert_eq!(count("svg"), 1 + 4 + 1);
    assert_eq!(count("table"), count("caption"), "every table says what it shows");
    assert!(!html.contains("NaN") && !html.contains(">inf"), "a number has run away");
    assert!(html.contains("<a href=\"plans/1-q05.json\">trial 1</a>"));
    for generic in ["Transactions<br>per s", "Accounting:", "p95"] {
        assert!(!html.contains(generic), "{generic} says nothing of queries");
    }
    assert_eq!(html.matches("class=\"beyond\"").count(), 2 + 1, "two given up, and the legend");
}

#[test]
fn what_was_given_up_or_failed_is_never_a_plain_time() {
    let paper = Paper::new(&[tpch()], &published());
    let maria = &section(&paper, 0).tables[0];
    let (slow, broken) = (&maria.queries[17].cells[0], &maria.queries[16].cells[0]);
    assert_eq!((slow.timed_out, slow.executions, maria.queries[17].rows), (2, 2, None));
    assert_eq!((broken.failed, broken.executions), (1, 1));
    let column = &maria.degrees[0];
    assert_eq!(
        (column.repeats, column.totals, column.penalised.as_slice()),
        (2, 1, [18, 21].as_slice())
    );
    assert_eq!(
        column.answers.words,
        "19 of 22 correct; wrong: Q11; without an answer: Q18 and Q21"
    );
    assert_eq!(section(&paper, 0).failures.len(), 5);
    let text = paper.markdown(Lang::En);
    assert!(text.contains("| Q18 | – | – | ≥ 60.0 (**given up, 2 of 2**) |"), "{text}");
    assert!(text.contains("| 6 | maria | 0 | Q17 | 0 | failed: Out of memory"), "{text}");

    let given_up = |degree: u32| {
        changed(move |_, facts| {
            if facts.degree.asked == degree {
                (facts.queries[0].outcome, facts.queries[0].seconds) =
                    (QueryOutcome::TimedOut, 60.0);
            }
        })
    };
    let bound = |paper: &Paper| {
        let table = postgres(paper);
        (
            table.queries[0].cells[1].speedup.expect("one").bound,
            table.degrees[1].total_speedup.expect("one").bound,
        )
    };
    assert_eq!(bound(&given_up(0)), (Some("at least"), Some("at least")));
    assert_eq!(bound(&given_up(2)), (Some("at most"), Some("at most")));
    let both = changed(|_, facts| facts.queries[0].outcome = QueryOutcome::TimedOut);
    assert!(postgres(&both).queries[0].cells[1].speedup.is_none());
    let failed = changed(|trial, facts| {
        if trial == 2 {
            facts.queries[0].outcome = QueryOutcome::Failed("gone".to_owned());
        }
    });
    assert!(postgres(&failed).queries[0].cells[1].speedup.is_none());
}

/// Where a check found what.
fn found(paper: &Paper, id: &str) -> Vec<String> {
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
        ("tpch-plans-by-degree", vec!["experiment queries: all but Q16 and Q22 on postgres"]),
        ("tpch-once", vec!["experiment spec: one trial: postgres at degree 2"]),
        ("tpch-refreshed", vec!["trial 10: 1 pair applied since the load"]),
        ("tpch-streams", vec!["trial 10: 1 pair of refresh functions for 2 streams"]),
        ("tpch-cache-unknown", vec!["trial 3: warm, not proven", "trial 6: warm, not proven"]),
    ];
    for (id, lines) in expected {
        assert_eq!(found(&usual, id), lines, "{id}");
    }
    assert_eq!(found(&usual, "tpch-load-differs").len(), 1, "one target has no foreign keys");
    assert_eq!(found(&usual, "tpch-unlike-published").len(), 1);
    for id in [
        "tpch-not-compared",
        "tpch-degree",
        "tpch-cache-failed",
        "tpch-cache-mixed",
        "tpch-unlike",
        "tpch-power",
        "tpch-degree-unknown",
        "tpch-short",
        "errors",
        "errors-1",
        "data",
        "short-window",
        "littles-law",
    ] {
        assert!(found(&usual, id).is_empty(), "{id}: {:?}", found(&usual, id));
    }
}

#[test]
fn rules_find_what_was_changed() {
    let changed = |id: &str, change: &dyn Fn(&mut TpchFacts)| {
        let mut run = tpch();
        change(&mut facts(&mut run, 0));
        found(&Paper::new(&[run], &published()), id)
    };
    assert_eq!(
        changed("tpch-not-compared", &|facts| facts.queries[3].answer = None),
        ["trial 1: Q4"]
    );
    assert_eq!(changed("tpch-short", &|facts| facts.queries[3].seconds = 0.004), ["trial 1: Q4"]);
    assert_eq!(
        changed("tpch-degree", &|facts| {
            facts.degree.got = Some(3);
            facts.degree.remark = Some("Plans had up to 3 workers.".into());
        }),
        ["trial 1: Plans had up to 3 workers."]
    );
    let off_by_one = |facts: &mut TpchFacts| facts.degree.got = Some(1);
    assert!(changed("tpch-degree", &off_by_one).is_empty(), "some products mean off by 1");
    let asked = |got: Option<u32>| {
        move |facts: &mut TpchFacts| (facts.degree.asked, facts.degree.got) = (16, got)
    };
    assert_eq!(changed("tpch-degree", &asked(Some(2))), ["trial 1: asked 16, got 2"]);
    assert_eq!(
        changed("tpch-degree-unknown", &asked(None)),
        ["trial 1: asked 16, got an unknown number"]
    );
    let none = |facts: &mut TpchFacts| {
        (facts.degree.asked, facts.degree.rule) = (4, String::new());
    };
    assert_eq!(changed("tpch-degree", &none), ["trial 1: asked 4, and the product has no degree"]);
    assert_eq!(
        changed("tpch-cache-failed", &|facts| facts.cache.verdict = Some(Verdict::Failed)).len(),
        1
    );
    assert_eq!(
        changed("tpch-cache-mixed", &|facts| facts.cache.state = "cold".to_owned()).len(),
        1
    );
    let scale = changed("tpch-unlike", &|facts| facts.scale = 0.1);
    assert_eq!(scale, ["experiment queries: scale factor: postgres 0.1, 1, maria 1"]);
    let mut run = tpch();
    facts(&mut run, 8).queries.swap(3, 4);
    facts(&mut run, 8).refreshes.pop();
    let power = found(&Paper::new(&[run], &[]), "tpch-power");
    assert_eq!(
        power,
        ["trial 9: the queries ran in another order; refresh function 2 did not run after them"]
    );
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
    elements(&paper.html(Lang::En).expect("rendered"));
    let table = postgres(&paper);
    assert_eq!(table.degrees[0].answers.right, 4);
    assert!(table.queries[4].cells[0].seconds.is_none() && table.degrees[0].total_s.is_none());
    assert_eq!(check(&paper, "cut-off").findings[0].value, "5 queries executed");
    let text = paper.markdown(Lang::En);
    assert!(text.contains("no total at degree 0, as not all queries ended"), "{text}");
    assert!(text.contains("How and when the data were loaded is not known."));
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
    let html = paper.html(Lang::En).expect("rendered");
    assert!(!html.contains("<script>alert") && !html.contains("javascript:"));
    assert_eq!(elements(&html).iter().filter(|element| *element == "script").count(), 1);
    let markdown = paper.markdown(Lang::En);
    assert!(!markdown.contains("<script>") && !markdown.contains("javascript:"));
    let widths = |line: &str| line.replace("\\|", "").matches('|').count();
    let rows: Vec<&str> = markdown.lines().filter(|line| line.starts_with('|')).collect();
    for pair in rows.windows(2).filter(|pair| pair[1].starts_with("|---")) {
        assert_eq!(widths(pair[0]), widths(pair[1]), "{}", pair[0]);
    }
}

#[test]
fn of_several_runs_plans_are_named_and_not_linked() {
    let mut second = tpch();
    second.path = "dyno-runs/another".into();
    let paper = Paper::new(&[tpch(), second], &[]);
    let html = paper.html(Lang::En).expect("rendered");
    elements(&html);
    assert!(!html.contains("href=\"plans/") && html.contains("trial 2/1"));
    assert_eq!(section(&paper, 0).tables.len(), 4, "two targets of two runs");
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
    elements(&paper.html(Lang::En).expect("rendered"));
    let section = section(&paper, 1);
    assert_eq!((section.tables.len(), section.caches.len(), section.refreshes.len()), (0, 0, 2));
    let text = paper.markdown(Lang::En);
    assert!(text.contains("| 9 | postgres | 2 | 1 | RF1 | 7,500 | 0.800 | well |"), "{text}");
    assert!(!text.contains("| Q1 |"), "{text}");
}
