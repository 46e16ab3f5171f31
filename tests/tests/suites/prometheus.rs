//! A real Prometheus scrapes the page of a run that is executed: its rules hold, and every query of the dashboard is
//! one.

use crate::serve::{SUITE, page};
use dyno_testkit::{RunningDyno, Scratch, free_port, peer, skipped, wait_until};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Killed at the end of its life.
struct Prometheus {
    child: Child,
    port: u16,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository")
}

/// Path to which `./test` has unpacked it, or at which it is installed.
fn program(name: &str) -> Option<PathBuf> {
    let fetched = root().join("target/prometheus/usr/bin").join(name);
    if fetched.is_file() { Some(fetched) } else { peer(name).map(PathBuf::from) }
}

impl Prometheus {
    fn start(program: &Path, folder: &Path, page: &str, token: &str) -> Self {
        fs::write(folder.join("token"), token).expect("written");
        let config = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [{}]\nscrape_configs:\n\
             - job_name: dyno\n  authorization: {{ credentials_file: {} }}\n  static_configs: [{{ targets: ['{page}'] }}]\n",
            root().join("deploy/prometheus/dyno.rules.yml").display(),
            folder.join("token").display()
        );
        fs::write(folder.join("prometheus.yml"), config).expect("written");
        let port = free_port();
        let child = Command::new(program)
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("tsdb").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Prometheus { child: child.expect("it can be started"), port }
    }

    fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
    }

    /// The number of series that a query finds; an error of the query is one of the test.
    fn query(&self, query: &str) -> usize {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let answer = self.get(&format!("/api/v1/query?query={encoded}")).expect("an answer");
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        answer["data"]["result"].as_array().map_or(0, Vec::len)
    }
}

fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("expr").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|field| expressions(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        _ => {}
    }
}

#[test]
fn a_real_prometheus_scrapes_a_run_and_knows_every_query_of_the_dashboard() {
    let name = "a_real_prometheus_scrapes_a_run_and_knows_every_query_of_the_dashboard";
    let (Some(prometheus), Some(promtool)) = (program("prometheus"), program("promtool")) else {
        return skipped(name, "Prometheus is not installed");
    };
    let rules = root().join("deploy/prometheus");
    let run_promtool = |words: &[&str]| {
        let output = Command::new(&promtool).args(words).current_dir(&rules).output();
        let output = output.expect("it can be run");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stdout));
    };
    run_promtool(&["check", "rules", "dyno.rules.yml"]);
    run_promtool(&["test", "rules", "dyno.test.yml"]);

    let scratch = Scratch::new();
    let folder = scratch.path();
    fs::write(folder.join("watched.toml"), SUITE).expect("a suite");
    let mut running = RunningDyno::start(folder, &["run", "watched.toml", "--serve"]);
    running.wait_until("the page", |running| page(&running.stderr()).is_some());
    let (address, token) = page(&running.stderr()).expect("it was said");
    let server = Prometheus::start(&prometheus, folder, &address, &token);
    wait_until("Prometheus", || server.get("/api/v1/status/buildinfo").is_some());
    wait_until("a running trial", || server.query("dyno_trial_info{status=\"running\"}") == 1);
    assert_eq!(server.query("up{job=\"dyno\"} == 1"), 1);
    // Rates need two scrapes.
    let commits = "rate(dyno_transactions_total{outcome=\"committed\"}[1m]) > 0";
    wait_until("commits", || server.query(commits) > 0);

    let dashboard = fs::read_to_string(root().join("deploy/grafana/dyno.json")).expect("a file");
    let mut queries = Vec::new();
    expressions(&serde_json::from_str(&dashboard).expect("JSON"), &mut queries);
    assert!(queries.len() > 10, "{queries:?}");
    // An embedded database has no sessions to be looked at, and no replicas.
    let is_about_nodes = |query: &String| query.contains("dyno_node_");
    for query in queries {
        let count = server.query(&query.replace("$instance", ".*"));
        assert!(count > 0 || is_about_nodes(&query), "nothing is found by {query}");
    }
    let answer = server.get("/api/v1/rules").expect("rules");
    let rules = answer["data"]["groups"][0]["rules"].as_array().expect("a list");
    assert!(rules.len() >= 7, "{answer}");
    for rule in rules {
        let state = (&rule["health"], &rule["state"]);
        assert!(matches!(state.0.as_str(), Some("ok" | "unknown")), "{rule}");
        assert_ne!(state.1, "firing", "{rule}");
    }
}
