//! Servers and run folders of others, whose texts command terminals and forge lines: nothing of that is printed, also
//! where a pipe reads it.

use crate::compare::{store, trial_of};
use crate::silent::{log_in_to_mysql, log_in_to_postgres};
use dyno_core::is_command;
use dyno_facts::ExperimentFacts;
use dyno_testkit::{Ran, Scratch, dyno};
use serde_json::Value;
use std::fs;
use std::io::{Read, Result, Write};
use std::net::{TcpListener, TcpStream};

/// A title, colors, a cleared screen, a turned direction, and a line that looks like one of dyno's.
const OBEYED: &str =
    "no\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{2066}\u{2028}x\r\nOK: everything passed\n";
const FORGED: &str = "OK: everything passed";

/// The text got as far as that.
fn says_it(words: &str, ran: &Ran) {
    assert!(ran.all().contains(FORGED), "{words} does not say it: {}", ran.all());
}

/// Nothing of what was printed is obeyed.
fn commands_nothing(words: &str, ran: &Ran) {
    let said = [ran.stdout.as_str(), ran.stderr.as_str()].concat();
    let obeyed = said.chars().find(|c| is_command(*c) && !matches!(c, '\n' | '\t'));
    assert_eq!(obeyed, None, "{words}: {:?}", ran.all());
}

/// And no line of it looks like one of dyno's own.
fn forges_nothing(words: &str, ran: &Ran) {
    commands_nothing(words, ran);
    let mut lines = ran.stdout.lines().chain(ran.stderr.lines());
    assert!(!lines.any(|line| line.starts_with(FORGED)), "{words}: {}", ran.all());
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
                let mut heard = [0; 64 << 10];
                let mut goes_on = log_in(&mut stream).is_ok();
                while goes_on {
                    goes_on = stream.read(&mut heard).is_ok_and(|count| count > 0)
                        && stream.write_all(&refusal).is_ok();
                }
            });
        }
    });
    port
}

fn refused(words: &str) -> Ran {
    let folder = Scratch::new();
    let ran = dyno(folder.path(), &words.split_whitespace().collect::<Vec<_>>());
    assert!(ran.code > 0, "{words}: {}", ran.all());
    ran
}

#[test]
fn errors_of_servers_command_no_terminal_behind_a_pipe() {
    for scheme in ["mysql", "postgres"] {
        let port = refusing_server(scheme);
        let url = format!("{scheme}://u@127.0.0.1:{port}/d");
        let driver = if scheme == "mysql" { "mysql" } else { "pgsql" };
        let sysbench = |command: &str| {
            format!(
                "sysbench --db-driver={driver} --{driver}-host=127.0.0.1 --{driver}-port={port} \
                 --{driver}-user=u oltp_read_write {command}"
            )
        };
        for words in [sysbench("prepare"), sysbench("run"), format!("pgbench -i --target {url}")] {
            let ran = refused(&words);
            says_it(&words, &ran);
            commands_nothing(&words, &ran);
        }
        for words in [format!("check {url}"), format!("bench {url} --yes")] {
            let ran = refused(&words);
            forges_nothing(&words, &ran);
            // What PostgreSQL refuses there may only be listed as not readable.
            if scheme == "mysql" {
                says_it(&words, &ran);
            }
        }
    }
}

#[test]
fn errors_of_postgres_keep_their_lines_in_pgbench() {
    let port = refusing_server("postgres");
    let ran = refused(&format!("pgbench -i --target postgres://u@127.0.0.1:{port}/d"));
    assert!(ran.stderr.contains(&format!("\n{FORGED}\n")), "{}", ran.all());
}

#[test]
fn run_folders_of_others_command_no_terminal_behind_a_pipe() {
    let folder = Scratch::new();
    for name in ["a", "b"] {
        let trial = |number: u32| trial_of(OBEYED, number, [8, number], 1000.0);
        let trials: Vec<_> = (1..=6).map(trial).collect();
        store(folder.path(), name, ExperimentFacts::default(), &trials);
        let file = folder.path().join(name).join("run.json");
        let mut run: Value = serde_json::from_slice(&fs::read(&file).expect("read")).expect("JSON");
        run["title"] = OBEYED.into();
        run["experiments"][0]["title"] = OBEYED.into();
        fs::write(&file, run.to_string()).expect("written");
    }
    for words in ["ls", "show a", "compare a b", "compare a b --long"] {
        let words = format!("{words} --dir .");
        let ran = dyno(folder.path(), &words.split_whitespace().collect::<Vec<_>>());
        says_it(&words, &ran);
        forges_nothing(&words, &ran);
    }
}
