//! A family that no generic file names: its suite, its option, its help, its fact, its check, its table in the paper.

use dyno_testkit::{MariaDb, Postgres, ProcessOutput, Scratch, only_run, server_or_skip};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

fn dyno(folder: &Path, arguments: &[&str]) -> ProcessOutput {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno-with-ping"));
    command.current_dir(folder).stdin(Stdio::null()).env("HOME", folder).env("NO_COLOR", "1");
    ProcessOutput::capture(command.args(arguments))
}

/// Writes a suite with these options, and runs it.
fn run(folder: &Path, url: &str, keys: &str) -> ProcessOutput {
    let suite = format!(
        "[suite]\nname = 'pings'\n[target.main]\nurl = '{url}'\n[[experiment]]\nname = 'p'\n\
         workload = 'ping'\ntest = 'one-row'\nworkers = 2\nduration_s = 1\n{keys}\n"
    );
    fs::write(folder.join("pings.toml"), suite).expect("written");
    dyno(folder, &["run", "pings.toml", "--dir", "runs"])
}

fn trial(folder: &Path) -> Value {
    let run = only_run(&folder.join("runs")).expect("there is a run");
    let text = fs::read(run.join("trials/1.json")).expect("a trial");
    serde_json::from_slice(&text).expect("JSON")
}

fn goes_the_whole_way(url: &str) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let _ = run(folder, url, "options = { number = 7 }").good();
    let trial = trial(folder);
    assert_eq!(trial["own"]["family"], "ping");
    assert_eq!(trial["own"]["facts"]["number"], 7);
    assert_eq!(trial["checks"][0]["evidence"], "0 answers were not 7.", "{}", trial["checks"]);
}

#[test]
fn its_table_is_in_the_paper() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let _ = run(folder, "sqlite:ping.db", "options = { number = 7 }").good();
    let path = only_run(&folder.join("runs")).expect("there is a run");
    let path = path.to_string_lossy();
    let _ = dyno(folder, &["paper", &path, "--format", "html,md", "--out", "p"]).good();
    let read_paper = |name: &str| fs::read_to_string(folder.join("p").join(name)).expect("written");
    let (html, markdown) = (read_paper("paper.html"), read_paper("paper.md"));
    let chapter = "6.1 Pings";
    assert!(html.contains("<caption>Answers of each trial</caption>"), "{html}");
    assert!(markdown.contains(chapter), "{markdown}");
    assert!(markdown.contains("| Trial | Number expected | Other answers |"), "{markdown}");
    assert!(markdown.contains("| 1 | 7 | 0 |"), "{markdown}");
}

#[test]
fn it_runs_on_sqlite() {
    goes_the_whole_way("sqlite:ping.db");
}

#[test]
fn it_runs_on_postgres() {
    let server = server_or_skip!(Postgres, "it_runs_on_postgres");
    goes_the_whole_way(&server.url());
}

#[test]
fn it_runs_on_mariadb() {
    let server = server_or_skip!(MariaDb, "it_runs_on_mariadb");
    goes_the_whole_way(&server.url());
}

#[test]
fn its_check_fires() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let _ = run(folder, "sqlite:ping.db", "cleanup = false").good();
    fs::remove_dir_all(folder.join("runs")).expect("removed");
    let output = run(folder, "sqlite:ping.db", "prepare = false\noptions = { number = 2 }");
    assert_eq!(output.code, 4, "{output}");
    assert!(output.stderr.contains("check number: failed: "), "{output}");
    assert!(trial(folder)["own"]["facts"]["wrong"].as_u64().is_some_and(|wrong| wrong > 0));
}

#[test]
fn its_option_is_known_by_name() {
    let scratch = Scratch::new();
    let output = run(scratch.path(), "sqlite:ping.db", "options = { nuber = 2 }");
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains("`number`"), "{output}");
    let help = dyno(scratch.path(), &["help", "ping"]).good().stdout;
    assert!(help.contains("one-row") && help.contains("each answer must have"), "{help}");
    let output = dyno(scratch.path(), &["help", "pin"]);
    assert!(output.stderr.contains("`dyno help ping`"), "{output}");
}
