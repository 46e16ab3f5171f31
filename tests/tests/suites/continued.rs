//! `dyno run --continue RUN`: a comparison until decided over several runs.

use dyno_store::RunData;
use dyno_testkit::{Ran, RunningDyno, Scratch, dyno, only_run};
use rustix::process::Signal;
use std::fs;
use std::path::Path;

fn suite(folder: &Path, file: &str, name: &str) {
    let text = format!(
        "[suite]\nname = \"{name}\"\nretry_starved = 0\n[target.old]\nurl = \"sqlite:old.db\"\n[target.new]\n\
         url = \"sqlite:new.db\"\n[[experiment]]\nname = \"e\"\nworkload = \"sysbench\"\n\
         test = \"oltp_point_select\"\noptions = {{ tables = 1, table_size = 1000 }}\n\
         workers = 1\nduration_s = 0.4\n"
    );
    fs::write(folder.join(file), text).expect("a suite can be written");
}

const COMPARE: [&str; 6] = ["s.toml", "--dir", "runs", "--compare", "old", "new"];

fn run(folder: &Path, more: &[&str]) -> Ran {
    dyno(folder, &[&["run"], &COMPARE[..], more].concat())
}

/// The name of the newest run.
fn newest(folder: &Path) -> String {
    let entries = dyno_store::list(&folder.join("runs")).expect("runs");
    let began = |entry: &dyno_store::RunEntry| {
        entry.header.as_ref().map(|header| header.started_at.clone()).unwrap_or_default()
    };
    let newest = entries.iter().max_by_key(|entry| (began(entry), entry.path.clone()));
    let path = &newest.expect("a run").path;
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

fn data(folder: &Path, name: &str) -> RunData {
    dyno_store::read(&folder.join("runs").join(name)).expect("a run")
}

/// The pairs of each session, and of the verdict, by the paper of a run.
fn pairs(folder: &Path, name: &str) -> (Vec<u64>, u64) {
    let paper = fs::read_to_string(folder.join("runs").join(name).join("paper.json"));
    let paper: serde_json::Value = serde_json::from_str(&paper.expect("a paper")).expect("JSON");
    let verdict = &paper["verdicts"][0];
    let sessions = verdict["sessions"].as_array().expect("sessions");
    let of = |value: &serde_json::Value| value["pairs"].as_u64().expect("pairs");
    (sessions.iter().map(of).collect(), of(&verdict["rows"][0]))
}

fn refused(ran: &Ran, why: &str) {
    assert_eq!(ran.code, 2, "{}", ran.all());
    assert!(ran.stderr.contains(why), "{why}: {}", ran.all());
}

/// A measurement until decided ends as it was decided, or with 3.
fn is_judged(ran: &Ran) {
    let undecided = ran.stderr.contains("are undecided");
    let slower = ran.stderr.contains("A regression is proven");
    let code = if slower {
        5
    } else if undecided {
        3
    } else {
        0
    };
    assert_eq!(ran.code, code, "{}", ran.all());
}

#[test]
fn an_interrupted_comparison_goes_on_in_other_runs_and_they_are_judged_together() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "s.toml", "s");
    suite(folder, "t.toml", "t");
    let begin = [&["run"], &COMPARE[..], &["--until-decided", "--pairs", "100..200"]].concat();
    let mut running = RunningDyno::start(folder, &begin);
    let fifth = |folder: &Path| {
        only_run(&folder.join("runs")).is_some_and(|path| path.join("trials/5.json").exists())
    };
    running.wait_until("five trials", |_| fifth(folder));
    let first = newest(folder);
    let go_on = ["--until-decided", "--pairs", "2..3", "--continue"];
    refused(&run(folder, &[&go_on[..], &[&first]].concat()), "is still being written");
    running.signal(Signal::INT);
    assert_eq!(running.end().code, 130);

    // What is not the same comparison is refused before anything is touched.
    let to = |more: &[&str]| run(folder, &[&["--continue", &first][..], more].concat());
    refused(&to(&["--pairs", "6..9"]), "this command does not compare `e` until decided");
    let wider = to(&["--until-decided", "--equivalence", "5%"]);
    refused(&wider, "`equivalence` of its experiment `e` was none, not 0.05.");
    let elsewhere = to(&["--until-decided", "--target", "new=sqlite:other.db"]);
    refused(&elsewhere, "`url` of its target `new` was");
    let other = ["run", "t.toml", "--dir", "runs", "--compare", "old", "new", "--until-decided"];
    let other = dyno(folder, &[&other[..], &["--continue", &first]].concat());
    refused(&other, "its suite was \"s\", not \"t\".");
    refused(&run(folder, &["--until-decided", "--continue", "9"]), "There is no run `9`");
    assert_eq!(newest(folder), first, "no folder was made");

    let ran = run(folder, &[&go_on[..], &[&first]].concat());
    is_judged(&ran);
    let second = newest(folder);
    let own = data(folder, &second);
    assert_eq!(own.header.continues.len(), 1);
    assert_eq!(own.header.continues[0].folder, first);
    assert_ne!(own.header.seed, data(folder, &first).header.seed, "its orders are its own");
    let (sessions, all) = pairs(folder, &second);
    assert_eq!((sessions.len(), all), (2, sessions.iter().sum()));
    assert!(sessions[0] >= 2 && (1..=3).contains(&sessions[1]), "{sessions:?}");
    assert!(ran.stdout.contains("The pairs are of 2 sessions"), "{}", ran.all());

    // A continued run may be continued.
    let ran = run(folder, &[&go_on[..], &[&second]].concat());
    is_judged(&ran);
    let third = newest(folder);
    let (chain, all) = pairs(folder, &third);
    assert_eq!((&chain[..2], all), (&sessions[..], chain.iter().sum()));
    let compared = dyno(folder, &["compare", &third, "--dir", "runs"]);
    assert!(compared.stdout.contains(&format!("{all} pairs")), "{}", compared.all());
}

#[test]
fn a_run_with_one_pair_or_a_fixed_number_is_not_continued() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "s.toml", "s");
    let ran = run(folder, &["--until-decided", "--pairs", "1"]);
    assert_eq!(ran.code, 3, "{}", ran.all());
    assert!(ran.stderr.contains("1 of 1 comparisons are undecided."), "{}", ran.all());
    let one = newest(folder);
    let ran = run(folder, &["--until-decided", "--continue", &one]);
    refused(&ran, &format!("{one} has no two complete pairs, so there is nothing to continue."));
    assert_eq!(run(folder, &["--pairs", "2"]).code, 3);
    let fixed = newest(folder);
    let ran = run(folder, &["--until-decided", "--continue", &fixed]);
    refused(&ran, &format!("{fixed} can't be continued: it does not compare `e` until decided."));
}

#[test]
fn half_a_pair_is_made_again_as_a_whole() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "s.toml", "s");
    let begin = [&["run"], &COMPARE[..], &["--pairs", "2"]].concat();
    let mut running = RunningDyno::start(folder, &begin);
    let second = |folder: &Path| {
        let trials = only_run(&folder.join("runs")).map(|path| path.join("trials"));
        trials.is_some_and(|path| path.join("1.json").exists() && path.join("2.csv").exists())
    };
    running.wait_until("the second trial of the pair", |_| second(folder));
    running.signal(Signal::KILL);
    running.end();
    let ran = dyno(folder, &begin);
    assert!(ran.stderr.contains("Going on with"), "{}", ran.all());
    let run = data(folder, &newest(folder));
    let set_aside: Vec<u32> = run.header.set_aside.iter().copied().collect();
    assert_eq!(set_aside, [1], "{}", ran.all());
    let complete =
        |trial: &&dyno_store::TrialData| trial.summary.status == dyno_facts::TrialStatus::Complete;
    let repeats: Vec<u32> =
        run.trials.iter().filter(complete).map(|trial| trial.summary.repeat).collect();
    assert_eq!(repeats, [1, 1, 1, 2, 2]);
    let paper = fs::read_to_string(run.path.join("paper.json")).expect("a paper");
    let paper: serde_json::Value = serde_json::from_str(&paper).expect("JSON");
    assert_eq!(paper["verdicts"][0]["order"], "interleaved", "{}", paper["verdicts"][0]);
    assert!(
        ran.stderr.contains("made-again") || ran.stdout.contains("made-again"),
        "{}",
        ran.all()
    );
}
