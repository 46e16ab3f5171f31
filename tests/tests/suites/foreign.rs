//! Servers and run folders of others, whose texts command terminals and forge lines: nothing of that is printed, also
//! where a pipe reads it.

use crate::compare::{store, trial_on};
use crate::silent::{log_in_to_mysql, log_in_to_postgres};
use dyno_core::is_command;
use dyno_facts::ExperimentFacts;
use dyno_testkit::{ProcessOutput, Scratch, dyno};
use serde_json::Value;
use std::fs;
use std::io::{Read, Result, Write};
use std::net::{TcpListener, TcpStream};

/// A title, colors, a cleared screen, a turned direction, and a line that looks like one of dyno's.
const OBEYED: &str =
    "no\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{2066}\u{2028}x\r\nOK: everything passed\n";
const FORGED: &str = "OK: everything passed";

/// The text got as far as that.
fn says_it(words: &str, output: &ProcessOutput) {
    assert!(output.to_string().contains(FORGED), "{words} does not say it: {output}");
}

/// Nothing of what was printed is obeyed.
fn commands_nothing(words: &str, output: &ProcessOutput) {
    let texts = [output.stdout.as_str(), output.stderr.as_str()].concat();
    let obeyed = texts.chars().find(|c| is_command(*c) && !matches!(c, '\n' | '\t'));
    assert_eq!(obeyed, None, "{words}: {output:?}");
}

/// And no line of it looks like one of dyno's own.
fn forges_nothing(words: &str, output: &ProcessOutput) {
    commands_nothing(words, output);
    let mut lines = output.stdout.lines().chain(output.stderr.lines());
    assert!(!lines.any(|line| line.starts_with(FORGED)), "{words}: {output}");
}

type LogIn = fn(&mut TcpStream) -> Result<()>;

/// Takes log-ins, and answers everything with an error of this text; its port.
fn refusing_server(scheme: &str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let (log_in, refusal): (LogIn, Vec<u8>) = match scheme {
        "mysql" => {
            let body = [&b"\xff\x28\x04#42000"[..], OBEYED.as_bytes()].concat();
            let head = [body.len() as u8, 0, 0, 1];
            (log_in_to_mysql, [&head[..], &body].concat())
        }
        _ => {
            let body = [&b"SERROR\0C42601\0M"[..], OBEYED.as_bytes(), b"\0\0"].concat();
            let length = (body.len() as u32 + 4).to_be_bytes();
            (log_in_to_postgres, [&b"E"[..], &length, &body, b"Z\0\0\0\x05I"].concat())
        }
    };
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let refusal = refusal.clone();
            std::thread::spawn(move || {
                let mut buffer = [0; 64 << 10];
                let mut goes_on = log_in(&mut stream).is_ok();
                while goes_on {
                    goes_on = stream.read(&mut buffer).is_ok_and(|count| count > 0)
                        && stream.write_all(&refusal).is_ok();
                }
            });
        }
    });
    port
}

fn run_refused(words: &str) -> ProcessOutput {
    let folder = Scratch::new();
    let output = dyno(folder.path(), &words.split_whitespace().collect::<Vec<_>>());
    assert!(output.code > 0, "{words}: {output}");
    output
}

#[test]
fn errors_of_servers_command_no_terminal_behind_a_pipe() {
    for scheme in ["mysql", "postgres"] {
        let port = refusing_server(scheme);
        let url = format!("{scheme}://u@127.0.0.1:{port}/d");
        let driver = if scheme == "mysql" { "mysql" } else { "pgsql" };
        let sysbench_line = |command: &str| {
            format!(
                "sysbench --db-driver={driver} --{driver}-host=127.0.0.1 --{driver}-port={port} \
                 --{driver}-user=u oltp_read_write {command}"
            )
        };
        for words in
            [sysbench_line("prepare"), sysbench_line("run"), format!("pgbench -i --target {url}")]
        {
            let output = run_refused(&words);
            says_it(&words, &output);
            commands_nothing(&words, &output);
        }
        for words in [format!("check {url}"), format!("bench {url} --yes")] {
            let output = run_refused(&words);
            forges_nothing(&words, &output);
            // What PostgreSQL refuses there may only be listed as not readable.
            if scheme == "mysql" {
                says_it(&words, &output);
            }
        }
    }
}

#[test]
fn errors_of_postgres_keep_their_lines_in_pgbench() {
    let port = refusing_server("postgres");
    let output = run_refused(&format!("pgbench -i --target postgres://u@127.0.0.1:{port}/d"));
    assert!(output.stderr.contains(&format!("\n{FORGED}\n")), "{output}");
}

#[test]
fn run_folders_of_others_command_no_terminal_behind_a_pipe() {
    let folder = Scratch::new();
    for name in ["a", "b"] {
        let numbered_trial = |number: u32| trial_on(OBEYED, number, [8, number], 1000.0);
        let trials: Vec<_> = (1..=6).map(numbered_trial).collect();
        store(folder.path(), name, ExperimentFacts::default(), &trials);
        let file = folder.path().join(name).join("run.json");
        let mut run: Value = serde_json::from_slice(&fs::read(&file).expect("read")).expect("JSON");
        run["title"] = OBEYED.into();
        run["experiments"][0]["title"] = OBEYED.into();
        fs::write(&file, run.to_string()).expect("written");
    }
    for words in ["ls", "show a", "compare a b", "compare a b --long"] {
        let words = format!("{words} --dir .");
        let output = dyno(folder.path(), &words.split_whitespace().collect::<Vec<_>>());
        says_it(&words, &output);
        forges_nothing(&words, &output);
    }
}
