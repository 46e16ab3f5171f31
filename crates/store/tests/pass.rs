//! A trial that is a pass over queries: each survives the death of the process that ran it.

use dyno_facts::{
    DegreeFacts, Message, QueryFacts, QueryOutcome, RefreshFacts, RunHeader, TpchFacts,
    TrialIdentity, TrialStatus, TrialSummary,
};
use dyno_store::{Run, read};
use std::fs;
use std::path::{Path, PathBuf};

fn identity() -> TrialIdentity {
    let facts = TpchFacts {
        scale: 0.01,
        test: "power".to_owned(),
        degree: DegreeFacts { asked: 2, ..DegreeFacts::default() },
        ..TpchFacts::default()
    };
    TrialIdentity {
        step: "tpch/main/degree=2/repeat=1".to_owned(),
        experiment: "tpch".to_owned(),
        target: "main".to_owned(),
        test: "power".to_owned(),
        workers: 1,
        repeat: 1,
        tpch: Some(facts),
        ..TrialIdentity::default()
    }
}

fn query(query: u8, began_s: f64, outcome: QueryOutcome) -> QueryFacts {
    QueryFacts { query, began_s, seconds: 0.5, rows: 10, outcome, ..QueryFacts::default() }
}

fn executed() -> (Vec<RefreshFacts>, Vec<QueryFacts>) {
    let refresh =
        RefreshFacts { function: 1, pair: 1, seconds: 0.25, rows: 70, ..RefreshFacts::default() };
    let queries = vec![
        query(14, 0.25, QueryOutcome::Answered),
        query(2, 0.75, QueryOutcome::TimedOut),
        query(9, 1.25, QueryOutcome::Failed("out of memory".to_owned())),
    ];
    (vec![refresh], queries)
}

/// A run that was killed after a refresh function and three queries.
fn killed(dir: &Path) -> PathBuf {
    let mut run = Run::create(dir, RunHeader::new("tpch", Vec::new(), 1)).expect("a run");
    let path = run.path().to_owned();
    let mut writer = run.begin_trial(identity()).expect("a trial");
    let (refreshes, queries) = executed();
    writer.refresh(&refreshes[0]).expect("stored");
    queries.iter().for_each(|query| writer.query(query).expect("stored"));
    path
}

#[test]
fn what_had_ended_before_a_kill_is_in_the_summary() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = killed(dir.path());
    let data = read(&path).expect("a run");
    assert_eq!(data.warnings, Vec::<Message>::new());
    let [trial] = data.trials.as_slice() else { panic!("one trial") };
    assert!(trial.is_partial);
    let summary = &trial.summary;
    assert_eq!(summary.status, TrialStatus::Interrupted);
    let facts = summary.tpch.as_ref().expect("a pass");
    let (refreshes, queries) = executed();
    assert_eq!((facts.scale, facts.degree.asked), (0.01, 2));
    assert_eq!((&facts.refreshes, &facts.queries), (&refreshes, &queries));
    assert_eq!(facts.metrics, None, "nothing is computed from a part");
    let counts = summary.counts;
    assert_eq!((counts.started, counts.committed, counts.failed, summary.in_flight), (4, 2, 2, 0));
    assert_eq!((summary.statements.rows_read, summary.statements.rows_written), (10, 70));
    assert!((summary.window_s - 1.75).abs() < 1e-9, "{}", summary.window_s);
    assert!(summary.notes[0].to_string().contains("was cut off"), "{:?}", summary.notes);
    // Who goes on with the run stores what was found.
    let run = Run::open(&path).expect("the run again");
    assert!(!run.is_complete("tpch/main/degree=2/repeat=1"));
    let stored = fs::read(path.join("trials/1.json")).expect("a summary");
    let stored: TrialSummary = serde_json::from_slice(&stored).expect("a summary");
    assert_eq!(&stored, summary);
}

#[test]
fn a_kill_at_any_byte_costs_at_most_the_last_query() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = killed(dir.path());
    let file = path.join("trials/1.executed.jsonl");
    let whole = fs::read(&file).expect("the lines");
    let last = whole[..whole.len() - 1].iter().rposition(|&byte| byte == b'\n').expect("lines") + 1;
    for length in last..whole.len() {
        fs::write(&file, &whole[..length]).expect("written");
        let data = read(&path).expect("a run");
        assert_eq!(data.warnings, Vec::<Message>::new(), "{length}");
        let facts = data.trials[0].summary.tpch.as_ref().expect("a pass");
        assert_eq!(facts.queries, executed().1[..2], "{length}");
    }
}

#[test]
fn plans_are_files_of_the_run() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = Run::create(dir.path(), RunHeader::new("tpch", Vec::new(), 1)).expect("a run");
    let path = run.path().to_owned();
    let writer = run.begin_trial(identity()).expect("a trial");
    let name = writer.plan("q09.json", "[{\"Plan\": 1}]").expect("stored");
    assert_eq!(name, "trials/1.plans/q09.json");
    assert_eq!(fs::read_to_string(path.join(&name)).expect("the plan"), "[{\"Plan\": 1}]");
    drop(writer);
    assert_eq!(read(&path).expect("a run").trials.len(), 1, "a folder of plans is no trial");
}
