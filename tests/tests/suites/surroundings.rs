//! Facts of a run folder about the surroundings of its trials: the load generator, the nodes before and
//! after, what they did meanwhile. On real servers.

use dyno_facts::Message;
use dyno_testkit::{
    MariaDb, Postgres, RunningDyno, Scratch, dyno, only_run, server_or_skip, wait_until,
};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes a suite with one experiment.
fn suite(folder: &Path, head: &str, url: &str, test: &str, load: &str) {
    let text = format!(
        "[suite]\nname = \"surroundings\"\n{head}\n[target.main]\nurl = \"{url}\"\n\n\
         [[experiment]]\nname = \"load\"\nworkload = \"sysbench\"\ntest = \"{test}\"\n\
         options = {{ tables = 2, table_size = 1000 }}\n{load}\n"
    );
    fs::write(folder.join("surroundings.toml"), text).expect("the suite can be written");
}

fn run_to_end(folder: &Path) -> PathBuf {
    let output = dyno(folder, &["run", "surroundings.toml"]);
    // Findings of a short run on a busy machine are not failures.
    output.assert_judged();
    only_run(&folder.join("dyno-runs")).expect("there is a run")
}

fn json(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn conditions(run: &Path) -> Value {
    json(&run.join("trials/1.json"))["conditions"].take()
}

fn node(run: &Path) -> Value {
    conditions(run)["nodes"]["main"].take()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn share(value: &Value) -> f64 {
    let share = number(value);
    assert!((0.0..=1.0).contains(&share), "{share} is no share");
    share
}

/// Lines of what the nodes said.
fn lines(run: &Path) -> Vec<String> {
    let text = fs::read_to_string(run.join("trials/1.nodes.csv")).unwrap_or_default();
    text.lines().skip(1).map(str::to_owned).collect()
}

/// Facts of the server, in sentences.
fn server_messages(run: &Path) -> Vec<String> {
    let text = fs::read_to_string(run.join("events.jsonl")).expect("there are events");
    let events = text.lines().map(|line| serde_json::from_str(line).expect("whole lines of JSON"));
    let server = events.filter(|event: &Value| event["kind"] == "server");
    let parse_message = |event: Value| serde_json::from_value::<Message>(event["text"].clone());
    server.map(|event| parse_message(event).expect("a message").to_string()).collect()
}

/// Starts a run and waits until a node has spoken three times in it.
fn start_sampled(folder: &Path) -> (RunningDyno, PathBuf) {
    let mut running = RunningDyno::start(folder, &["run", "surroundings.toml"]);
    running.wait_until("samples", |_| {
        only_run(&folder.join("dyno-runs")).is_some_and(|run| lines(&run).len() >= 3)
    });
    (running, only_run(&folder.join("dyno-runs")).expect("there is a run"))
}

/// Commits of all intervals, warm-up among them.
fn client_commits(run: &Path) -> f64 {
    let text = fs::read_to_string(run.join("trials/1.csv")).expect("there is a series");
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    let column = header.split(',').position(|name| name == "committed").expect("a column");
    lines.filter_map(|line| line.split(',').nth(column)?.parse::<f64>().ok()).sum()
}

/// The server counted what was acknowledged, and little alongside: `extra` for connecting, preparing and
/// what was in flight at the end.
fn commits_agree(run: &Path, extra: f64) {
    let (server, client) = (number(&node(run)["commits"]), client_commits(run));
    assert!(client > 100.0, "{client}");
    assert!(server >= client && server <= client + extra, "{server} and {client}");
}

#[test]
fn postgres_tells_its_state_and_its_checkpoints() {
    let server = server_or_skip!(Postgres, "postgres_tells_its_state_and_its_checkpoints");
    let scratch = Scratch::new();
    let folder = scratch.path();
    let load = "workers = [4]\nwarmup_s = 1\nduration_s = 8";
    suite(folder, "", &server.url(), "oltp_read_write", load);
    let (mut running, run) = start_sampled(folder);
    server.sql("CHECKPOINT").expect("a checkpoint");
    let output = running.end();
    output.assert_judged();

    let node = node(&run);
    assert!(number(&node["round_trip_us"]) > 0.0);
    assert_eq!((&node["isolation"], &node["transport"]), (&"READ COMMITTED".into(), &"tcp".into()));
    assert_eq!(
        (&node["acknowledged_by"]["local"]["en"], &node["replicas"]),
        (&"local".into(), &Value::Array(Vec::new()))
    );
    assert_eq!(number(&node["cache_bytes"]), f64::from(128 << 20));
    assert!(number(&node["data_bytes"]) > 1e6 && share(&node["hit_share"]) > 0.5);
    assert!(number(&node["checkpoints"]) >= 1.0, "{node:#}");
    assert_eq!(number(&node["checkpoint_interval_s"]), 300.0);
    assert!(share(&node["checkpoint_age_share"]) < 0.5);
    assert_eq!(node["schema_checksum"].as_str().map(str::len), Some(16));
    assert!(number(&node["growth_share"]).abs() < 1.0 && number(&node["purge_backlog"]) >= 0.0);
    assert!(share(&node["cpu_share"]) > 0.0, "it runs on this machine");
    // Four sessions prepare nine statements for each of two tables.
    commits_agree(&run, 4.0 * (9.0 * 2.0 + 20.0));
    let messages = server_messages(&run);
    assert!(messages.iter().any(|text| text == "A checkpoint ended."), "{messages:?}");
    // Warm-up and window, each second.
    assert!(lines(&run).len() >= 9, "{:?}", lines(&run));

    let generator = conditions(&run)["generator"].take();
    assert!(number(&generator["hiccup_max_us"]) >= number(&generator["hiccup_p999_us"]));
    assert!(number(&generator["run_delay_s"]) >= 0.0);
    let environment = json(&run.join("run.json"))["environment"]["machine"].take();
    assert!(environment["virtualization"].is_string(), "{environment:#}");
}

#[test]
fn an_account_that_may_see_little_still_runs() {
    let server = server_or_skip!(Postgres, "an_account_that_may_see_little_still_runs");
    server.sbtest("CREATE ROLE poor LOGIN; GRANT ALL ON SCHEMA public TO poor").expect("a role");
    server.sbtest("REVOKE ALL ON FUNCTION pg_control_checkpoint() FROM PUBLIC").expect("revoked");
    let scratch = Scratch::new();
    let url = server.url().replace("//postgres@", "//poor@");
    suite(scratch.path(), "", &url, "oltp_point_select", "workers = [2]\nduration_s = 2");
    let run = run_to_end(scratch.path());
    let node = node(&run);
    assert_eq!(node["checkpoint_age_share"], Value::Null, "{node:#}");
    // A node that a loaded machine kept from answering has no commits that can be trusted.
    if node["down"].is_null() {
        assert!(number(&node["commits"]) > 0.0, "{node:#}");
    }
    let before = json(&run.join("server/1-before.json"))["main"]["not_readable"].take();
    let listed = before.as_array().expect("a list");
    assert!(listed.iter().any(|it| it.to_string().contains("last checkpoint")), "{before:#}");
    assert!(lines(&run).len() >= 2);
}

#[test]
fn mariadb_tells_its_replica_and_its_log() {
    let name = "mariadb_tells_its_replica_and_its_log";
    let primary = [
        "--log-bin=b",
        "--server-id=1",
        "--rpl-semi-sync-master-enabled=ON",
        "--innodb-flush-log-at-trx-commit=2",
    ];
    let replica = ["--server-id=2", "--rpl-semi-sync-slave-enabled=ON"];
    let (main, copy) = match (MariaDb::start_with(&primary), MariaDb::start_with(&replica)) {
        (Ok(main), Ok(copy)) => (main, copy),
        (Err(why), _) | (_, Err(why)) => return dyno_testkit::skipped(name, &why),
    };
    main.sql("CREATE USER repl@'%' IDENTIFIED BY 'repl'").expect("a user");
    main.sql("GRANT REPLICATION SLAVE ON *.* TO repl@'%'").expect("granted");
    // What comes later is replicated; `sbtest` is there on both.
    let position = main.sql("SHOW MASTER STATUS").expect("a position");
    let position: Vec<&str> = position.split_whitespace().collect();
    copy.sql(&format!(
        "CHANGE MASTER TO master_host='127.0.0.1', master_port={}, master_user='repl', \
         master_password='repl', master_log_file='{}', master_log_pos={}; START SLAVE",
        main.port, position[0], position[1]
    ))
    .expect("a replica");
    let count = "SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'";
    wait_until("the replica", || main.sql(count).is_ok_and(|text| text.trim().ends_with('1')));

    let scratch = Scratch::new();
    let load = "workers = [4]\nwarmup_s = 1\nduration_s = 4";
    suite(scratch.path(), "", &main.url(), "oltp_read_write", load);
    let run = run_to_end(scratch.path());
    let node = node(&run);
    assert_eq!(node["acknowledged_by"]["copies"]["en"], "1 semi-sync replica");
    let replicas = node["replicas"].as_array().expect("a list");
    assert_eq!((replicas.len(), &replicas[0]["mode"]), (1, &"semi-sync".into()), "{node:#}");
    assert_eq!(
        (&node["isolation"], &node["query_cache"]),
        (&"REPEATABLE-READ".into(), &false.into())
    );
    assert_eq!(number(&node["cache_bytes"]), f64::from(128 << 20));
    assert!(share(&node["hit_share"]) > 0.5 && share(&node["checkpoint_age_share"]) < 1.0);
    assert_eq!(node["schema_checksum"].as_str().map(str::len), Some(16));
    assert_eq!(node["table_rows"].as_object().map(serde_json::Map::len), Some(2), "{node:#}");
    assert!(number(&node["statements"]) > number(&node["commits"]));
    commits_agree(&run, 4.0);
    assert!((number(&node["commits"]) - number(&node["client_commits"])).abs() <= 4.0, "{node:#}");
    assert!(lines(&run).len() >= 5, "{:?}", lines(&run));
}

#[test]
fn a_restart_is_told_and_sampling_goes_on() {
    let mut server = server_or_skip!(MariaDb, "a_restart_is_told_and_sampling_goes_on");
    let scratch = Scratch::new();
    suite(scratch.path(), "", &server.url(), "oltp_read_only", "workers = [2]\nduration_s = 600");
    let (mut running, run) = start_sampled(scratch.path());
    server.kill();
    server.restart().expect("restarted");
    running.wait_until("the news", |_| {
        server_messages(&run).iter().any(|text| text == "The server was restarted.")
    });
    let before = lines(&run).len();
    running.wait_until("more samples", |_| lines(&run).len() > before);
    // However long a busy machine took.
    running.signal(Signal::TERM);
    running.end();
    let messages = server_messages(&run);
    assert!(
        messages.iter().any(|text| text.starts_with("The server's activity could not be read: ")),
        "{messages:?}"
    );
}

#[test]
fn sampling_can_be_left_off() {
    let server = server_or_skip!(Postgres, "sampling_can_be_left_off");
    let scratch = Scratch::new();
    let load = "workers = [2]\nduration_s = 2";
    suite(scratch.path(), "sample_servers = false", &server.url(), "oltp_point_select", load);
    let run = run_to_end(scratch.path());
    assert_eq!(lines(&run), Vec::<String>::new());
    let node = node(&run);
    assert!(share(&node["hit_share"]) > 0.0, "from before to after");
    commits_agree(&run, 2.0 * (9.0 * 2.0 + 20.0));
}

#[test]
fn an_embedded_database_has_no_server_to_ask() {
    let scratch = Scratch::new();
    suite(
        scratch.path(),
        "",
        "sqlite:{run}/a.db",
        "oltp_read_only",
        "workers = [2]\nduration_s = 2",
    );
    let run = run_to_end(scratch.path());
    let node = node(&run);
    assert_eq!((&node["transport"], &node["round_trip_us"]), (&"embedded".into(), &Value::Null));
    assert!(number(&node["data_bytes"]) > 1e5 && number(&node["cache_bytes"]) > 0.0, "{node:#}");
    assert_eq!(node["commits"], Value::Null);
    assert_eq!(lines(&run), Vec::<String>::new());
}

/// CPU of the only node of a run of so many single reads, whose number of processes doesn't matter.
fn server_cpu(url: &str, names: &[&str]) {
    let scratch = Scratch::new();
    // So many statements take some ticks of the kernel's clock on any machine.
    let load = "workers = [4]\nevents = 30000";
    suite(scratch.path(), "", url, "oltp_point_select", load);
    let run = run_to_end(scratch.path());
    let node = node(&run);
    let process_names = node["cpu_of"].as_str().unwrap_or_default();
    assert!(names.iter().any(|name| process_names.starts_with(name)), "{node:#}");
    let (cpu_s, window_s) =
        (number(&node["cpu_s"]), number(&json(&run.join("trials/1.json"))["window_s"]));
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    assert!(cpu_s >= 0.1 && cpu_s <= (window_s + 2.0) * cores, "{cpu_s} s in {window_s} s");
}

#[test]
fn the_cpu_of_all_processes_of_a_server_is_counted() {
    let name = "the_cpu_of_all_processes_of_a_server_is_counted";
    server_cpu(&server_or_skip!(Postgres, name).url(), &["postgres"]);
    server_cpu(&server_or_skip!(MariaDb, name).url(), &["mariadbd", "mysqld"]);
}
