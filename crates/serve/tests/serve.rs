//! Responses to a browser, a stranger and Prometheus over the wire.

use dyno_engine::record::{Frame, MeasuredInterval, Phase};
use dyno_facts::{HostSample, RunHeader, RunStatus, TrialIdentity, TrialStart};
use dyno_serve::{BoundServer, RunningServer, Settings, Token};
use dyno_store::{Run, TrialWriter};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

const TOKEN: &str = "0123456789abcdef0123";
/// Longer than any answer takes; tests that succeed never wait for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Settings with [`TOKEN`].
fn settings(runs: &Path, listen: &str) -> Settings {
    Settings {
        runs: runs.to_owned(),
        listen: listen.parse().expect("an address"),
        token: Some(Token::own(TOKEN).expect("long enough")),
        names: Vec::new(),
    }
}

/// Serves these runs on a free port, with [`TOKEN`].
fn serve(runs: &Path) -> (SocketAddr, RunningServer) {
    let server = BoundServer::bind(settings(runs, "127.0.0.1:0")).expect("a free port");
    assert!(
        server.url().ends_with("/?token="),
        "one's own token is not repeated: {}",
        server.url()
    );
    (server.address(), server.start().expect("a thread"))
}

/// Sends a request, whose answer has not been read.
fn send(address: SocketAddr, path: &str, headers: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let request = format!("GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    stream
}

/// Status line and headers in lower case, and the body.
fn request(address: SocketAddr, path: &str, headers: &str) -> (String, String) {
    let mut text = String::new();
    send(address, path, headers).read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    (head.to_lowercase(), body.to_owned())
}

/// The headers of a request that is let in.
fn welcome(address: SocketAddr) -> String {
    format!("Host: {address}\r\nAuthorization: Bearer {TOKEN}\r\n")
}

/// The status code of an answer.
fn status(answer: &(String, String)) -> &str {
    answer.0.split(' ').nth(1).unwrap_or_default()
}

/// A trial of reads on 8 workers.
fn start() -> TrialStart {
    let identity = TrialIdentity {
        step: "reads/main/workers=8/repeat=1".to_owned(),
        experiment: "reads".to_owned(),
        target: "main".to_owned(),
        test: "oltp_read_only".to_owned(),
        workers: 8,
        repeat: 1,
        ..TrialIdentity::default()
    };
    TrialStart { identity, kinds: vec!["oltp_read_only".to_owned()], ..TrialStart::default() }
}

/// Stores an interval with ten commits of 1 ms each.
fn interval(writer: &mut TrialWriter, index: u32) {
    let mut frame = Frame::new(1, false);
    frame.kinds[0].counts.started = 10;
    frame.kinds[0].counts.committed = 10;
    (0..10).for_each(|_| frame.kinds[0].latency.record(1_000_000));
    let (begins_s, host) = (f64::from(index), HostSample::default());
    let interval =
        MeasuredInterval { phase: Phase::Measured, index, begins_s, length_s: 1.0, frame, host };
    writer.interval(&interval).expect("written");
}

/// A run without trials.
fn run(runs: &Path) -> Run {
    Run::create(runs, RunHeader::new("s", Vec::new(), 1), false).expect("a run")
}

#[test]
fn nothing_is_shown_without_the_token() {
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path()).finish(RunStatus::Complete).expect("stored");
    let (address, _running) = serve(folder.path());
    let host = format!("Host: {address}\r\n");
    for path in ["/", "/history", "/live", "/metrics", "/api/runs", "/page/main.js", "/absent"] {
        let answer = request(address, path, &host);
        assert_eq!(status(&answer), "401", "{path}");
        assert!(!answer.1.contains(TOKEN) && !answer.0.contains("set-cookie"), "{path}");
        assert_eq!(
            status(&request(address, &format!("{path}?token={TOKEN}0"), &host)),
            "401",
            "{path}"
        );
    }
    let sent_on = request(address, &format!("/history?token={TOKEN}"), &host);
    assert_eq!(status(&sent_on), "303");
    assert!(sent_on.0.contains("location: /history\r\n"), "{}", sent_on.0);
    let cookie = sent_on.0.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("one");
    assert!(cookie.contains("httponly") && cookie.contains("samesite=lax"), "{cookie}");
    let cookie = cookie.split(';').next().expect("its value");
    assert!(!cookie.contains(TOKEN), "the cookie isn't the token");
    let page = request(address, "/history", &format!("{host}Cookie: {cookie}\r\n"));
    assert_eq!(status(&page), "200");
    assert!(page.0.contains("content-security-policy: default-src 'none'"), "{}", page.0);
    for name in ["x-content-type-options", "referrer-policy", "x-frame-options", "cache-control"] {
        assert!(page.0.contains(name), "{name}");
    }
    let strange = "Host: evil.example\r\nCookie: ".to_owned() + cookie + "\r\n";
    assert_eq!(status(&request(address, "/history", &strange)), "421");
}

#[test]
fn the_page_asks_nobody_else_for_anything() {
    let folder = tempfile::tempdir().expect("a folder");
    let (address, _running) = serve(folder.path());
    let html = request(address, "/", &welcome(address)).1;
    let mut parts = vec!["style.css".to_owned(), "main.js".to_owned()];
    let mut count = 0;
    assert!(html.contains("/page/style.css") && html.contains("/page/main.js"), "{html}");
    while let Some(part) = parts.pop() {
        let answer = request(address, &format!("/page/{part}"), &welcome(address));
        assert_eq!(status(&answer), "200", "{part}");
        count += 1;
        let foreign = answer.1.replace("http://www.w3.org/2000/svg", "");
        assert!(!foreign.contains("://"), "{part}");
        let imports = answer.1.lines().filter(|line| line.starts_with("import "));
        let names = imports.filter_map(|line| line.split("\"./").nth(1)?.split('"').next());
        parts.extend(names.map(str::to_owned));
        assert!(count < 50, "imports go round in circles");
        parts.retain(|part| part != "main.js");
    }
    assert!(count >= 7 && !html.contains("://"), "{count}");
}

#[test]
fn no_file_outside_of_run_folders_is_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path().join("runs");
    let run = run(&runs);
    let name = run.path().file_name().expect("a name").to_string_lossy().into_owned();
    std::fs::write(folder.path().join("secret.json"), "secret").expect("written");
    std::fs::write(runs.join("secret.json"), "secret").expect("written");
    std::fs::write(run.path().join("data.db"), "secret").expect("written");
    let (address, _running) = serve(&runs);
    let header = request(address, &format!("/runs/{name}/run.json"), &welcome(address));
    assert_eq!(status(&header), "200");
    assert!(header.1.contains("\"suite\": \"s\""), "{}", header.1);
    let bad = [
        format!("/runs/{name}/../secret.json"),
        format!("/runs/{name}/%2e%2e/secret.json"),
        format!("/runs/{name}/..%2fsecret.json"),
        format!("/runs/{name}/%2fetc%2fpasswd"),
        format!("/runs/{name}/data.db"),
        format!("/runs/{name}/"),
        "/runs/../../secret.json".to_owned(),
        "/runs/..%2f/secret.json".to_owned(),
        "/runs/%2e%2e/secret.json".to_owned(),
        "/runs/./secret.json".to_owned(),
        format!("/runs/..%2fruns%2f{name}/run.json"),
        "/page/..%2f..%2fCargo.toml".to_owned(),
        "/paper?runs=..".to_owned(),
        format!("/paper?runs={name},..%2f"),
    ];
    for path in bad {
        let answer = request(address, &path, &welcome(address));
        assert_eq!(status(&answer), "404", "{path}");
        assert!(!answer.1.contains("secret"), "{path}");
    }
}

/// Reads server-sent events until `is_enough` of the names and data that came.
fn listen(
    stream: TcpStream,
    is_enough: impl Fn(&[(String, String)]) -> bool,
) -> Vec<(String, String)> {
    let mut events: Vec<(String, String)> = Vec::new();
    let mut name = String::new();
    for line in BufReader::new(stream).lines() {
        let line = line.expect("the stream continues");
        if let Some(event) = line.strip_prefix("event: ") {
            name = event.to_owned();
        } else if let Some(data) = line.strip_prefix("data: ") {
            events.push((name.clone(), data.to_owned()));
        }
        if is_enough(&events) {
            return events;
        }
    }
    events
}

/// The first event, which has to be the whole state.
fn state(events: &[(String, String)]) -> serde_json::Value {
    assert_eq!(events[0].0, "state", "everything comes first");
    serde_json::from_str(&events[0].1).expect("JSON")
}

#[test]
fn a_page_that_is_opened_late_is_told_everything_and_then_the_news() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut run = run(folder.path());
    let (address, running) = serve(folder.path());
    let mut writer = run.begin_trial(start()).expect("a trial");
    (0..5).for_each(|index| interval(&mut writer, index));
    let stream = send(address, "/live", &welcome(address));
    let first = std::thread::spawn(move || {
        listen(stream, |events| events.iter().any(|(name, _)| name == "goodbye"))
    });
    let late = send(address, "/live", &welcome(address));
    let late = listen(late, |events| !events.is_empty());
    let late_state = state(&late);
    let name = late_state["run"]["folder"].as_str().expect("a name");
    let stored = request(address, &format!("/api/trial?run={name}&trial=1"), &welcome(address)).1;
    let stored: serde_json::Value = serde_json::from_str(&stored).expect("JSON");
    assert_eq!(
        stored["rows"], late_state["rows"],
        "a trial is shown alike while it runs and later"
    );
    assert_eq!(late_state["rows"].as_array().map(Vec::len), Some(5));
    assert_eq!(late_state["trials"][0]["status"], "running");
    interval(&mut writer, 5);
    let later = send(address, "/live", &welcome(address));
    let later = listen(later, |events| !events.is_empty());
    assert_eq!(state(&later)["rows"].as_array().map(Vec::len), Some(6));
    drop((writer, run));
    // The server ends; open pages get the last events.
    drop(running);
    let events = first.join().expect("it heard the end");
    let lists = events.iter().filter(|(name, _)| name == "rows");
    let lengths = lists.map(|(_, data)| serde_json::from_str::<Vec<Vec<f64>>>(data));
    let added: usize = lengths.map(|rows| rows.map_or(0, |rows| rows.len())).sum();
    let row_count = state(&events)["rows"].as_array().map_or(0, Vec::len) + added;
    assert_eq!(row_count, 6, "{events:?}");
    assert!(events.iter().any(|(name, data)| name == "run" && data.contains("interrupted")));
}

#[test]
fn prometheus_is_told_what_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let (address, _running) = serve(folder.path());
    let metrics = || request(address, "/metrics", &welcome(address));
    assert!(metrics().0.contains("content-type: text/plain; version=0.0.4"));
    let mut run = run(folder.path());
    let mut writer = run.begin_trial(start()).expect("a trial");
    (0..3).for_each(|index| interval(&mut writer, index));
    let text = metrics().1;
    let labels = "experiment=\"reads\",target=\"main\",test=\"oltp_read_only\",workers=\"8\"";
    let lines = [
        format!("dyno_transactions_total{{{labels},outcome=\"committed\"}} 30"),
        format!("dyno_latency_seconds{{{labels},quantile=\"0.99\"}} 0.001"),
        "dyno_run_running 1".to_owned(),
    ];
    for wanted in lines {
        assert!(text.lines().any(|line| line.starts_with(&wanted)), "{wanted}\n{text}");
    }
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    assert!(
        samples
            .clone()
            .all(|line| line.rsplit(' ').next().is_some_and(|n| n.parse::<f64>().is_ok()))
    );
    interval(&mut writer, 3);
    let committed = format!("dyno_transactions_total{{{labels},outcome=\"committed\"}} 40");
    assert!(metrics().1.contains(&committed));
}

#[test]
fn runs_are_listed_compared_and_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut names = Vec::new();
    for _ in 0..2 {
        let mut run = run(folder.path());
        let mut writer = run.begin_trial(start()).expect("a trial");
        interval(&mut writer, 0);
        drop(writer);
        let path = run.finish(RunStatus::Interrupted).expect("stored");
        names.push(path.file_name().expect("a name").to_string_lossy().into_owned());
    }
    let (address, _running) = serve(folder.path());
    let get = |path: &str| request(address, path, &welcome(address));
    let listed: serde_json::Value = serde_json::from_str(&get("/api/runs").1).expect("JSON");
    let folders: Vec<_> =
        listed.as_array().expect("runs").iter().map(|run| &run["folder"]).collect();
    assert_eq!(folders, [&names[1], &names[0]], "the newest first");
    let joined = names.join(",");
    let compared: serde_json::Value =
        serde_json::from_str(&get(&format!("/api/compare?runs={joined}")).1).expect("JSON");
    let runs: Vec<_> =
        compared["targets"].as_array().expect("targets").iter().map(|target| &target[1]).collect();
    assert_eq!(runs, [1, 2], "each run has its target");
    let papers = ["en", "zh"].map(|lang| get(&format!("/paper?runs={joined}&lang={lang}")));
    for paper in &papers {
        assert_eq!(status(paper), "200");
        assert!(paper.0.contains("sandbox") && paper.1.contains("<svg"), "{}", paper.0);
    }
    let [english, chinese] = papers
        .map(|(_, text)| text.chars().filter(|c| ('\u{4e00}'..='\u{9fff}').contains(c)).count());
    assert!(chinese > english + 100, "{english} and {chinese} Chinese characters");
}

#[test]
fn other_machines_are_let_in_only_with_a_token_of_ones_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = Settings { token: None, ..settings(folder.path(), "0.0.0.0:0") };
    let error = BoundServer::bind(open.clone()).expect_err("no token of one's own");
    assert!(
        error.to_string().contains("other machines")
            && error.hint.as_deref().is_some_and(|hint| hint.contains("TOKEN")),
        "{error}"
    );
    let with_token = Settings { token: Token::own(TOKEN).ok(), ..open };
    let server = BoundServer::bind(with_token).expect("with a token it may");
    assert!(server.url().starts_with("http://127.0.0.1:"), "{}", server.url());
    let busy = Settings { listen: server.address(), ..settings(folder.path(), "127.0.0.1:0") };
    let error = BoundServer::bind(busy).expect_err("the port is taken");
    assert!(
        error.to_string().contains("can't listen on")
            && error.hint.as_deref().is_some_and(|hint| hint.contains("--listen"))
    );
    let local = Settings { token: None, ..settings(folder.path(), "127.0.0.1:0") };
    let servers = [BoundServer::bind(local.clone()), BoundServer::bind(local)];
    let [first, second] = servers.map(|bound| {
        let url = bound.expect("bound").url();
        url.split_once("/?token=").expect("a token").1.to_owned()
    });
    assert!(first != second && first.len() >= 16, "{first} {second}");
}

/// Silent or half-sent requests are sent away, so that others get in; strangers keep no place either.
#[test]
fn half_open_requests_starve_no_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (address, running) = serve(folder.path());
    let strangers = (0..200).map(|_| {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(b"GET / HTTP/1.1\r\nHo").expect("sent");
        stream
    });
    let strangers: Vec<TcpStream> = strangers.collect();
    assert_eq!(status(&request(address, "/metrics", &welcome(address))), "200");
    let mut first = &strangers[0];
    first.set_read_timeout(Some(PATIENCE)).expect("set");
    let mut answer = String::new();
    // Cut off: closed, or reset as it has bytes that no one read.
    let _ = first.read_to_string(&mut answer);
    assert_eq!(answer, "");
    // Kept alive by who has the token only.
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it was closed");
    assert!(answer.starts_with("HTTP/1.1 401") && answer.contains("connection: close"), "{answer}");
    drop(running);
}

/// Alert rules and the dashboard use only what `/metrics` provides.
#[test]
fn rules_and_dashboard_know_only_metrics_that_there_are() {
    let source = include_str!("../src/metrics.rs");
    let rules = include_str!("../../../deploy/prometheus/dyno.rules.yml");
    let dashboard = include_str!("../../../deploy/grafana/dyno.json");
    let _: serde_json::Value = serde_json::from_str(dashboard).expect("JSON");
    let mut count = 0;
    for text in [rules, dashboard] {
        for (at, _) in text.match_indices("dyno_") {
            let letters = text[at..].chars();
            let name: String =
                letters.take_while(|&c| c.is_ascii_lowercase() || c == '_').collect();
            assert!(source.contains(&format!("\"{name}\"")), "{name}");
            count += 1;
        }
    }
    assert!(count > 20, "{count}");
}
