//! `dyno run --continue RUN`: a comparison until decided over several runs.

use dyno_store::RunData;
use dyno_testkit::{ProcessOutput, RunningDyno, Scratch, dyno, only_run};
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

fn run(folder: &Path, more: &[&str]) -> ProcessOutput {
    dyno(folder, &[&["run"], &COMPARE[..], more].concat())
}

/// The name of the newest run.
fn newest_run(folder: &Path) -> String {
    let entries = dyno_store::list(&folder.join("runs")).expect("runs");
    let start_time = |entry: &dyno_store::RunEntry| {
        entry.header.as_ref().map(|header| header.started_at.clone()).unwrap_or_default()
    };
    let newest = entries.iter().max_by_key(|entry| (start_time(entry), entry.path.clone()));
    let path = &newest.expect("a run").path;
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

fn data(folder: &Path, name: &str) -> RunData {
    dyno_store::read(&folder.join("runs").join(name)).expect("a run")
}

/// The pairs of each session, and of the verdict, by the paper of a run.
fn read_pairs(folder: &Path, name: &str) -> (Vec<u64>, u64) {
    let paper = fs::read_to_string(folder.join("runs").join(name).join("paper.json"));
    let paper: serde_json::Value = serde_json::from_str(&paper.expect("a paper")).expect("JSON");
    let verdict = &paper["verdicts"][0];
    let sessions = verdict["sessions"].as_array().expect("sessions");
    let pair_count = |value: &serde_json::Value| value["pairs"].as_u64().expect("pairs");
    (sessions.iter().map(pair_count).collect(), pair_count(&verdict["rows"][0]))
}

fn assert_refused(output: &ProcessOutput, reason: &str) {
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains(reason), "{reason}: {output}");
}

/// A measurement until decided ends as it was decided, or with 3.
fn is_judged(output: &ProcessOutput) {
    let undecided = output.stderr.contains("are undecided");
    let slower = output.stderr.contains("A regression is proven");
    let code = if slower {
        5
    } else if undecided {
        3
    } else {
        0
    };
    assert_eq!(output.code, code, "{output}");
}

#[test]
fn an_interrupted_comparison_goes_on_in_other_runs_and_they_are_judged_together() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "s.toml", "s");
    suite(folder, "t.toml", "t");
    let begin = [&["run"], &COMPARE[..], &["--until-decided", "--pairs", "100..200"]].concat();
    let mut running = RunningDyno::start(folder, &begin);
    let has_fifth_trial = |folder: &Path| {
        only_run(&folder.join("runs")).is_some_and(|path| path.join("trials/5.json").exists())
    };
    running.wait_until("five trials", |_| has_fifth_trial(folder));
    let first = newest_run(folder);
    let go_on = ["--until-decided", "--pairs", "2..3", "--continue"];
    assert_refused(&run(folder, &[&go_on[..], &[&first]].concat()), "is still being written");
    running.signal(Signal::INT);
    assert_eq!(running.end().code, 130);

    // What is not the same comparison is refused before anything is touched.
    let continue_first = |more: &[&str]| run(folder, &[&["--continue", &first][..], more].concat());
    assert_refused(
        &continue_first(&["--pairs", "6..9"]),
        "this command does not compare `e` until decided",
    );
    let wider = continue_first(&["--until-decided", "--equivalence", "5%"]);
    assert_refused(&wider, "`equivalence` of its experiment `e` was none, not 0.05.");
    let elsewhere = continue_first(&["--until-decided", "--target", "new=sqlite:other.db"]);
    assert_refused(&elsewhere, "`url` of its target `new` was");
    let other_suite =
        ["run", "t.toml", "--dir", "runs", "--compare", "old", "new", "--until-decided"];
    let other_suite = dyno(folder, &[&other_suite[..], &["--continue", &first]].concat());
    assert_refused(&other_suite, "its suite was \"s\", not \"t\".");
    assert_refused(&run(folder, &["--until-decided", "--continue", "9"]), "There is no run `9`");
    assert_eq!(newest_run(folder), first, "no folder was made");

    let output = run(folder, &[&go_on[..], &[&first]].concat());
    is_judged(&output);
    let second = newest_run(folder);
    let second_run = data(folder, &second);
    assert_eq!(second_run.header.continues.len(), 1);
    assert_eq!(second_run.header.continues[0].folder, first);
    assert_ne!(second_run.header.seed, data(folder, &first).header.seed, "its orders are its own");
    let (sessions, all) = read_pairs(folder, &second);
    assert_eq!((sessions.len(), all), (2, sessions.iter().sum()));
    assert!(sessions[0] >= 2 && (1..=3).contains(&sessions[1]), "{sessions:?}");

    // A continued run may be continued.
    let output = run(folder, &[&go_on[..], &[&second]].concat());
    is_judged(&output);
    let third = newest_run(folder);
    let (chain, all) = read_pairs(folder, &third);
    assert_eq!((&chain[..2], all), (&sessions[..], chain.iter().sum()));
    let compared = dyno(folder, &["compare", &third, "--dir", "runs"]);
    assert!(compared.stdout.contains(&format!("{all} pairs")), "{compared}");
}

#[test]
fn a_run_with_one_pair_or_a_fixed_number_is_not_continued() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "s.toml", "s");
    let output = run(folder, &["--until-decided", "--pairs", "1"]);
    assert_eq!(output.code, 3, "{output}");
    assert!(output.stderr.contains("1 of 1 comparisons are undecided."), "{output}");
    let single_pair = newest_run(folder);
    let output = run(folder, &["--until-decided", "--continue", &single_pair]);
    assert_refused(
        &output,
        &format!("{single_pair} has no two complete pairs, so there is nothing to continue."),
    );
    assert_eq!(run(folder, &["--pairs", "2"]).code, 3);
    let fixed = newest_run(folder);
    let output = run(folder, &["--until-decided", "--continue", &fixed]);
    assert_refused(
        &output,
        &format!("{fixed} can't be continued: it does not compare `e` until decided."),
    );
}

#[test]
fn half_a_pair_is_made_again_as_a_whole() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "s.toml", "s");
    let begin = [&["run"], &COMPARE[..], &["--pairs", "2"]].concat();
    let mut running = RunningDyno::start(folder, &begin);
    let has_second_trial = |folder: &Path| {
        let trials = only_run(&folder.join("runs")).map(|path| path.join("trials"));
        trials.is_some_and(|path| path.join("1.json").exists() && path.join("2.csv").exists())
    };
    running.wait_until("the second trial of the pair", |_| has_second_trial(folder));
    running.signal(Signal::KILL);
    running.end();
    let output = dyno(folder, &begin);
    assert!(output.stderr.contains("Resuming "), "{output}");
    let run = data(folder, &newest_run(folder));
    let set_aside: Vec<u32> = run.header.set_aside.iter().copied().collect();
    assert_eq!(set_aside, [1], "{output}");
    let complete =
        |trial: &&dyno_store::TrialData| trial.summary.status == dyno_facts::TrialStatus::Complete;
    let repeats: Vec<u32> =
        run.trials.iter().filter(complete).map(|trial| trial.summary.repeat).collect();
    assert_eq!(repeats, [1, 1, 1, 2, 2]);
    let paper = fs::read_to_string(run.path.join("paper.json")).expect("a paper");
    let paper: serde_json::Value = serde_json::from_str(&paper).expect("JSON");
    assert_eq!(paper["verdicts"][0]["order"], "interleaved", "{}", paper["verdicts"][0]);
    assert!(output.stdout.contains("1 trial was repeated"), "{output}");
}
