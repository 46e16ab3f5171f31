//! A trial that no engine drives: what its family has recorded survives the death of the process that ran it.

use dyno_facts::{
    FamilyFacts, FamilyRecord, Message, RunHeader, TrialIdentity, TrialStart, TrialStatus,
    TrialSummary,
};
use dyno_store::{Run, read};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Pass {
    degree: u32,
    queries: Vec<(u8, f64)>,
    refreshes: Vec<String>,
}

impl FamilyRecord for Pass {
    const FAMILY: &'static str = "pass";
}

/// A pass at degree 2 that has not executed anything.
fn start() -> TrialStart {
    let identity = TrialIdentity {
        step: "pass/main/degree=2/repeat=1".to_owned(),
        experiment: "pass".to_owned(),
        target: "main".to_owned(),
        test: "power".to_owned(),
        workers: 1,
        repeat: 1,
        own: Some(FamilyFacts::new(&Pass { degree: 2, ..Pass::default() })),
        ..TrialIdentity::default()
    };
    TrialStart { identity, ..TrialStart::default() }
}

/// The record of the whole pass.
fn whole() -> Pass {
    let refreshes = vec!["a \"quote\"\nand a line".to_owned()];
    Pass { degree: 2, queries: vec![(14, 0.25), (2, 0.75), (9, 1.25)], refreshes }
}

/// A run that was killed after a refresh function and three queries.
fn killed(dir: &Path) -> PathBuf {
    let mut run = Run::create(dir, RunHeader::new("pass", Vec::new(), 1), false).expect("a run");
    let path = run.path().to_owned();
    let mut writer = run.begin_trial(start()).expect("a trial");
    writer.executed("refreshes", &whole().refreshes[0]).expect("stored");
    whole().queries.iter().for_each(|query| writer.executed("queries", query).expect("stored"));
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
    assert_eq!(summary.own::<Pass>(), Some(&whole()));
    assert!(summary.notes[0].to_string().contains("was cut off"), "{:?}", summary.notes);
    // Who continues with the run stores what was found.
    let run = Run::open(&path).expect("the run again");
    assert!(!run.data().is_complete("pass/main/degree=2/repeat=1"));
    let stored = fs::read(path.join("trials/1.json")).expect("a summary");
    let stored: TrialSummary = serde_json::from_slice(&stored).expect("a summary");
    assert_eq!(stored.files.keys().collect::<Vec<_>>(), ["csv", "executed.jsonl", "hlog"]);
    assert_eq!(&TrialSummary { files: Default::default(), ..stored }, summary);
}

#[test]
fn a_kill_at_any_byte_costs_at_most_the_last_query() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = killed(dir.path());
    let file = path.join("trials/1.executed.jsonl");
    let whole_file = fs::read(&file).expect("the lines");
    let before = &whole_file[..whole_file.len() - 1];
    let last = before.iter().rposition(|&byte| byte == b'\n').expect("lines") + 1;
    for length in last..whole_file.len() {
        fs::write(&file, &whole_file[..length]).expect("written");
        let data = read(&path).expect("a run");
        assert_eq!(data.warnings, Vec::<Message>::new(), "{length}");
        let pass = data.trials[0].summary.own::<Pass>().expect("a pass");
        assert_eq!(pass.queries, whole().queries[..2], "{length}");
    }
}

#[test]
fn damage_costs_one_line() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = killed(dir.path());
    let file = path.join("trials/1.executed.jsonl");
    let lines = fs::read_to_string(&file).expect("the lines");
    fs::write(&file, format!("{{\"queries\": 5\n{{\"others\": 1}}\n{lines}")).expect("written");
    let data = read(&path).expect("a run");
    assert_eq!(data.trials[0].summary.own::<Pass>(), Some(&whole()));
    let warnings: Vec<String> = data.warnings.iter().map(Message::to_string).collect();
    let [cut, unknown] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(cut.starts_with("Line 1 of trials/1.executed.jsonl is damaged and was left out: "));
    assert!(unknown.ends_with("was left out: it belongs to no list."), "{unknown}");
}

#[test]
fn plans_are_files_of_the_run() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run =
        Run::create(dir.path(), RunHeader::new("pass", Vec::new(), 1), false).expect("a run");
    let path = run.path().to_owned();
    let writer = run.begin_trial(start()).expect("a trial");
    let name = writer.plan("q09.json", "[{\"Plan\": 1}]").expect("stored");
    assert_eq!(name, "trials/1.plans/q09.json");
    assert_eq!(fs::read_to_string(path.join(&name)).expect("the plan"), "[{\"Plan\": 1}]");
    drop(writer);
    assert_eq!(read(&path).expect("a run").trials.len(), 1, "a folder of plans isn't a trial");
}
