//! The page alongside a real run: what it tells while SQLite is measured, what it tells of a run that was
//! killed, and what it refuses.

use dyno_testkit::{RunningDyno, Scratch, dyno, dyno_command, only_run};
use rustix::process::Signal;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than any answer takes; tests that succeed never wait for it.
const PATIENCE: Duration = Duration::from_secs(120);

/// A suite that runs for minutes unless it is stopped.
pub(crate) const SUITE: &str = r#"
[suite]
name = "watched"
title = "A run that is watched"

[target.main]
url = "sqlite:{run}/data.db"

[[experiment]]
name = "reads"
title = "Point selects"
workload = "sysbench"
test = "oltp_point_select"
options = { tables = 1, table_size = 1000 }
workers = [1]
warmup_s = 0
duration_s = 120
interval_s = 0.2
repeats = 2
"#;

/// Address and token of the page, from what dyno has said.
pub(crate) fn page(said: &str) -> Option<(String, String)> {
    let url = said.split_whitespace().find(|word| word.starts_with("http://"))?;
    let (address, token) = url.strip_prefix("http://")?.split_once("/?token=")?;
    Some((address.to_owned(), token.to_owned()))
}

fn send((address, token): &(String, String), path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("sent");
    stream
}

fn get(page: &(String, String), path: &str) -> String {
    let mut text = String::new();
    send(page, path).read_to_string(&mut text).expect("an answer");
    text
}

/// Names and data of server-sent events, until `is_enough` of them or the end.
fn listen(
    page: &(String, String),
    mut is_enough: impl FnMut(&[(String, serde_json::Value)]) -> bool,
) -> Vec<(String, serde_json::Value)> {
    let mut events = Vec::new();
    let mut name = String::new();
    for line in BufReader::new(send(page, "/live")).lines() {
        let line = line.expect("the stream goes on");
        if let Some(event) = line.strip_prefix("event: ") {
            name = event.to_owned();
        } else if let Some(data) = line.strip_prefix("data: ") {
            events.push((name.clone(), serde_json::from_str(data).expect("JSON")));
        }
        if is_enough(&events) {
            break;
        }
    }
    events
}

fn rows(events: &[(String, serde_json::Value)]) -> usize {
    let count_rows = |(name, data): &(String, serde_json::Value)| match name.as_str() {
        "state" => data["rows"].as_array().map_or(0, Vec::len),
        "rows" => data.as_array().map_or(0, Vec::len),
        _ => 0,
    };
    events.iter().map(count_rows).sum()
}

fn start_watched(scratch: &Scratch) -> (RunningDyno, (String, String)) {
    fs::write(scratch.file("watched.toml"), SUITE).expect("written");
    let mut run = RunningDyno::start(scratch.path(), &["run", "watched.toml", "--serve"]);
    run.wait_until("the page's address", |run| page(&run.stderr()).is_some());
    let page = page(&run.stderr()).expect("an address");
    (run, page)
}

#[test]
fn a_run_is_watched_from_any_moment_to_its_end() {
    let scratch = Scratch::new();
    let (mut run, page) = start_watched(&scratch);
    assert!(page.0.starts_with("127.0.0.1:"), "only this machine: {}", page.0);
    let early = listen(&page, |events| rows(events) >= 3);
    assert_eq!(early[0].0, "state");
    let late = listen(&page, |events| !events.is_empty());
    let state = &late[0].1;
    assert!(rows(&late) >= 3, "who comes late is told what was measured before");
    assert_eq!(state["run"]["title"], "A run that is watched");
    assert_eq!(state["run"]["status"], "running");
    assert_eq!(state["trials"][0]["experiment"], "reads");
    assert_eq!(state["progress"]["doing"], "trial");
    let left_s = state["progress"]["remaining_s"].as_f64().expect("a guess");
    assert!((120.0..=245.0).contains(&left_s), "two trials of 120 s are left: {left_s}");
    let first = state["rows"][0].as_array().expect("a row");
    let names = state["columns"].as_array().expect("names");
    assert_eq!(first.len(), names.len());
    let tps = names.iter().position(|name| name == "tps").and_then(|at| first[at].as_f64());
    assert!(tps.is_some_and(|tps| tps > 0.0), "{state}");
    let metrics = get(&page, "/metrics");
    assert!(metrics.contains("dyno_run_running 1"), "{metrics}");
    assert!(metrics.contains("test=\"oltp_point_select\""), "{metrics}");

    // Its end is told to whoever listens.
    let (sender, hears) = std::sync::mpsc::channel();
    let listener = std::thread::spawn(move || {
        listen(&page, |_| {
            let _ = sender.send(());
            false
        })
    });
    hears.recv().expect("it hears the run");
    run.signal(Signal::INT);
    let output = run.end();
    assert_eq!(output.code, 130, "{output}");
    let events = listener.join().expect("it heard the end");
    assert_eq!(events.last().map(|(name, _)| name.as_str()), Some("goodbye"));
    let statuses: Vec<&serde_json::Value> =
        events.iter().filter(|(name, _)| name == "run").map(|(_, run)| &run["status"]).collect();
    assert_eq!(statuses.last().copied(), Some(&"interrupted".into()), "{statuses:?}");
}

#[test]
fn a_killed_run_is_shown_and_the_next_one_after_it() {
    let scratch = Scratch::new();
    let (mut run, beside) = start_watched(&scratch);
    listen(&beside, |events| rows(events) >= 3);
    fs::create_dir(scratch.file("server")).expect("made");
    let mut server =
        RunningDyno::start(&scratch.file("server"), &["serve", "--dir", "../dyno-runs"]);
    server.wait_until("its address", |server| page(&server.stdout()).is_some());
    let page = page(&server.stdout()).expect("an address");
    run.signal(Signal::KILL);
    let events = listen(&page, |events| {
        let is_over = |data: &serde_json::Value| data == "interrupted";
        events.iter().any(|(name, data)| match name.as_str() {
            "state" => is_over(&data["run"]["status"]),
            "run" => is_over(&data["status"]),
            _ => false,
        })
    });
    assert!(rows(&events) >= 3, "what was measured is kept");
    run.end();
    let killed = only_run(&scratch.file("dyno-runs")).expect("a run");
    let killed = killed.file_name().expect("a name").to_string_lossy().into_owned();
    let list = get(&page, "/api/runs");
    assert!(list.contains(&killed) && list.contains("\"interrupted\""), "{list}");
    assert!(get(&page, &format!("/runs/{killed}/data.db")).starts_with("HTTP/1.1 404"));

    let mut command = dyno_command(scratch.path());
    command.args(["run", "watched.toml", "--new"]).stdout(std::process::Stdio::null());
    let mut next = command.stderr(std::process::Stdio::null()).spawn().expect("dyno can be run");
    let events = listen(&page, |events| {
        events.iter().any(|(name, data)| {
            name == "state"
                && data["run"]["status"] == "running"
                && data["run"]["folder"] != *killed
        })
    });
    next.kill().expect("it runs");
    next.wait().expect("it ends");
    assert!(events.len() > 1 || events[0].1["run"]["folder"] != *killed);
}

#[test]
fn an_open_address_needs_a_token_that_stays_secret() {
    let scratch = Scratch::new();
    let open = dyno(scratch.path(), &["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(open.code, 1, "{open}");
    assert!(open.stderr.contains("needs your own token"), "{}", open.stderr);
    assert!(open.stderr.contains("hint: "), "{}", open.stderr);
    let short = dyno(scratch.path(), &["serve", "--token", "short"]);
    assert_eq!(short.code, 2, "{short}");
    let nowhere = dyno(scratch.path(), &["serve", "--listen", "nowhere"]);
    assert_eq!(nowhere.code, 2, "{nowhere}");

    let token = "a-token-that-stays-secret";
    let mut server = RunningDyno::start(scratch.path(), &["serve", "--token", token]);
    server.wait_until("its address", |server| page(&server.stdout()).is_some());
    let (address, shown) = page(&server.stdout()).expect("an address");
    assert_eq!(shown, "", "one's own token is not repeated");
    let page = (address, token.to_owned());
    let command_line =
        fs::read(format!("/proc/{}/cmdline", server.process())).expect("its arguments");
    assert!(!String::from_utf8_lossy(&command_line).contains(token), "the process list shows it");
    assert!(get(&page, "/api/runs").starts_with("HTTP/1.1 200"));
    let stranger = (page.0.clone(), "another-token-altogether".to_owned());
    assert!(get(&stranger, "/api/runs").starts_with("HTTP/1.1 401"));
    server.signal(Signal::INT);
    assert_eq!(server.end().code, 0);
}
