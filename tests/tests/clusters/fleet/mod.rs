//! Several load generators: `dyno generator`, and `dyno run --nats --generators`.

use dyno_testkit::{
    MariaDb, Nats, ProcessOutput, RunningDyno, Scratch, commits, dyno, dyno_command,
    english_in_chinese_paper, only_run, server_or_skip, wait_until,
};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

mod credentials;
mod frozen;
mod namespaces;
mod scripts;
mod secrets;
mod spread;
mod storm;

/// Load generators, each in its own folder, and the folder of the coordinator.
struct Stage {
    scratch: Scratch,
    nats: String,
    generators: Vec<RunningDyno>,
}

impl Stage {
    fn new(nats: &str, names: &[&str]) -> Self {
        let mut stage =
            Stage { scratch: Scratch::new(), nats: nats.to_owned(), generators: Vec::new() };
        names.iter().for_each(|name| stage.add(name));
        stage
    }

    /// One more load generator, once it listens.
    fn add(&mut self, name: &str) {
        self.add_with(name, &[]);
    }

    /// One more load generator with more arguments, once it listens.
    fn add_with(&mut self, name: &str, more: &[&str]) {
        let folder = self.scratch.file(name);
        fs::create_dir_all(&folder).expect("made");
        let arguments = [&["generator", "--nats", &self.nats, "--name", name], more].concat();
        let mut generator = RunningDyno::start(&folder, &arguments);
        generator.wait_until("a load generator", |generator| {
            generator.stderr().contains("waiting for work")
        });
        self.generators.push(generator);
    }

    fn suite(&self, text: &str) -> String {
        let file = self.scratch.file("suite.toml");
        fs::write(&file, text).expect("written");
        file.display().to_string()
    }

    /// The arguments of `dyno run` with a fleet.
    fn arguments(&self, suite: &str, url: &str, more: &[&str]) -> Vec<String> {
        let count = self.generators.len().to_string();
        let target = format!("main={url}");
        let fixed =
            ["run", suite, "--target", &target, "--nats", &self.nats, "--generators", &count];
        fixed.iter().chain(more).map(|&argument| argument.to_owned()).collect()
    }

    fn start(&self, suite: &str, url: &str, more: &[&str]) -> RunningDyno {
        let arguments = self.arguments(suite, url, more);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        RunningDyno::start(self.scratch.path(), &arguments)
    }

    fn run(&self, suite: &str, url: &str, more: &[&str]) -> ProcessOutput {
        self.start(suite, url, more).end()
    }

    fn only_run(&self) -> PathBuf {
        only_run(&self.scratch.file("dyno-runs")).expect("there is a run")
    }
}

fn json(path: &Path) -> Value {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

fn members(trial: &Value) -> &Vec<Value> {
    trial["conditions"]["members"].as_array().expect("a fleet made the load")
}

fn sum(members: &[Value], field: &str) -> u64 {
    members.iter().map(|member| member[field].as_u64().unwrap_or(0)).sum()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

const READS: &str = r#"
[suite]
name = "fleet"
title = "Fleet"
sample_servers = false
retry_starved = 0
[target.main]
[[experiment]]
name = "reads"
title = "Reads"
workload = "sysbench"
test = "oltp_point_select"
options = { tables = 2, table_size = 1000 }
workers = [5]
duration_s = 3
"#;

#[test]
fn three_load_generators_make_the_load_of_one() {
    let server = server_or_skip!(MariaDb, "fleet");
    let nats = match Nats::start_with("127.0.0.1", &["--user", "u", "--pass", "geheim"]) {
        Ok(nats) => nats,
        Err(why) => return dyno_testkit::skipped("fleet", &why),
    };
    let stage = Stage::new(&nats.url("u:geheim@"), &["c", "a", "b"]);
    let before = executed(&server);
    let output = stage.run(&stage.suite(READS), &server.url(), &[]);
    assert_eq!(output.code, 0, "{output}");
    let after = executed(&server);
    let run = stage.only_run();
    let trial = json(&run.join("trials/1.json"));
    let members = members(&trial);
    let field_texts = |field: &str| -> Vec<String> {
        members.iter().map(|member| member[field].to_string()).collect()
    };
    assert_eq!(field_texts("name"), ["\"a\"", "\"b\"", "\"c\""]);
    assert_eq!(field_texts("workers"), ["2", "2", "1"]);
    // What the load generators say adds up to the trial, and to what the server has counted.
    let statements = sum(members, "statements");
    assert_eq!(Some(sum(members, "committed")), trial["counts"]["committed"].as_u64());
    assert_eq!(trial["latency"]["count"].as_u64(), Some(sum(members, "committed")));
    let server_statements = after - before;
    let allowed = (server_statements / 1000).max(5);
    assert!(
        statements <= server_statements && server_statements - statements <= allowed,
        "{statements} of {server_statements}"
    );
    assert_eq!(commits(&run, 1).iter().sum::<u64>(), sum(members, "committed"));
    for member in members {
        let bound = number(&member["clock_bound_ms"]);
        assert!((0.0..1000.0).contains(&bound), "{member}");
        let late_ms = number(&member["late_ms"]);
        assert!(late_ms >= -0.001, "{member}");
        let from_ms = number(&member["from_s"]).abs() * 1e3;
        assert!(from_ms <= late_ms + 2.0 * bound + 0.001, "{member}");
        assert!(member["cpu_s"].as_f64().is_some() && member["host_load"].is_object(), "{member}");
    }
    let header = json(&run.join("run.json"));
    assert_eq!(header["fleet"].as_array().map(Vec::len), Some(3), "{}", header["fleet"]);
    let english = english_in_chinese_paper(stage.scratch.path(), &run);
    assert_eq!(english, Vec::<String>::new());
    for generator in &stage.generators {
        let command_line =
            fs::read(format!("/proc/{}/cmdline", generator.process())).expect("it runs");
        assert!(!String::from_utf8_lossy(&command_line).contains("geheim"));
        assert!(generator.stderr().contains("of 5 workers"), "{}", generator.stderr());
    }
    let stored = fs::read_to_string(run.join("run.json")).expect("read");
    assert!(!(stored + &output.to_string()).contains("geheim"));
}

/// Prepared statements that a server has executed: only the load has any.
fn executed(server: &MariaDb) -> u64 {
    let answer = server.sql("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'").expect("it answers");
    answer.split_whitespace().last().and_then(|number| number.parse().ok()).expect("a number")
}

const TPCC: &str = r#"
[suite]
name = "orders"
title = "Orders"
sample_servers = false
[target.main]
[[experiment]]
name = "tpcc"
title = "TPC-C"
workload = "tpcc"
test = "bmsql-5.0"
options = { warehouses = 1 }
workers = [4]
duration_s = 4
"#;

#[test]
fn the_ledgers_of_all_load_generators_are_checked() {
    let server = server_or_skip!(MariaDb, "fleet of TPC-C");
    let nats = server_or_skip!(Nats, "fleet of TPC-C");
    let stage = Stage::new(&nats.url(""), &["a", "b"]);
    let output = stage.run(&stage.suite(TPCC), &server.url(), &[]);
    assert_eq!(output.code, 0, "{output}");
    let trial = json(&stage.only_run().join("trials/1.json"));
    let members = members(&trial);
    assert_eq!(Some(sum(members, "committed")), trial["counts"]["committed"].as_u64());
    assert!(members.iter().all(|member| member["committed"].as_u64() > Some(0)), "{members:?}");
    let checks = trial["checks"].as_array().expect("the data were checked");
    assert!(!checks.is_empty());
    for check in checks {
        assert_eq!(check["verdict"], "passed", "{check}");
    }
}

#[test]
fn without_the_key_nobody_answers_and_passwords_need_addresses() {
    let nats = server_or_skip!(Nats, "the key of a fleet");
    let stage = Stage::new(&nats.url(""), &["a"]);
    let folder = stage.scratch.path();
    let run_words = |words: &[&str]| dyno(folder, &[words, &["--nats", &stage.nats]].concat());
    let listed = run_words(&["fleet", "ls"]).good();
    let line = listed.stdout.lines().find(|line| line.starts_with("a ")).expect("a line");
    assert!(line.contains("nobody") && line.contains(" ms ago"), "{line}");
    let _ = dyno(folder, &["fleet", "key", "other.key"]).good();
    let foreign_key = run_words(&["fleet", "ls", "--wait=1", "--fleet-key=other.key"]);
    assert_eq!(foreign_key.code, 1, "{foreign_key}");
    assert!(foreign_key.stderr.contains("No load generator of the fleet `default` answers"));
    let suite = stage.suite(READS);
    let open = ["run", &suite, "--target=main=mysql://h/d", "--insecure", "--wait=1"];
    let alone = run_words(&open);
    assert_eq!(alone.code, 1, "{alone}");
    assert!(alone.stderr.contains("warning: --insecure: this fleet has no key"), "{alone}");
    assert!(alone.stderr.contains("Only 0 of 1 load generators"), "{alone}");
    let run_with_variable = |name: &str, value: &str| {
        let mut command = dyno_command(folder);
        command.args(["generator", "--nats", &stage.nats, "--name=b"]).env(name, value);
        let output = command.output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, stderr) = run_with_variable("DYNO_FLEET_KEY", "");
    assert!(code == Some(2) && stderr.contains("A fleet needs a key"), "{stderr}");
    let (code, stderr) = run_with_variable("DYNO_PASSWORD_MAIN", "geheim");
    assert!(
        code == Some(2) && stderr.contains("There is a password in DYNO_PASSWORD_MAIN"),
        "{stderr}"
    );
    assert!(!stderr.contains("geheim"));
    let stderr = stage.generators[0].stderr();
    assert!(stderr.contains("Somebody asks without this fleet's key"), "{stderr}");
}

const TWICE: &str = r#"
[suite]
name = "loss"
title = "Loss"
sample_servers = false
retry_starved = 0
[target.main]
[[experiment]]
name = "reads"
title = "Reads"
workload = "sysbench"
test = "oltp_point_select"
options = { tables = 1, table_size = 1000 }
workers = [6]
duration_s = 16
repeats = 2
"#;

#[test]
fn load_generators_that_die_or_hang_fail_the_trial_and_the_others_go_on() {
    let server = server_or_skip!(MariaDb, "lost load generators");
    let nats = server_or_skip!(Nats, "lost load generators");
    let mut stage = Stage::new(&nats.url(""), &["a", "b", "c", "d"]);
    let suite = stage.suite(TWICE);
    let mut run = stage.start(&suite, &server.url(), &[]);
    let runs = stage.scratch.file("dyno-runs");
    run.wait_until("two intervals", |_| {
        only_run(&runs).is_some_and(|run| commits(&run, 1).len() >= 2)
    });
    stage.generators[1].signal(Signal::KILL);
    stage.generators[3].signal(Signal::STOP);
    let loss_message = |name: &str| {
        format!(
            "The load generator {name} was lost in the trial; what it had reported until then is counted."
        )
    };
    run.wait_until("the loss of both", |run| {
        ["b", "d"].iter().all(|name| run.stderr().contains(&loss_message(name)))
    });
    // What hung continues alongside the others: it finds that it isn't wanted any more.
    stage.generators[3].signal(Signal::CONT);
    stage.generators[3].wait_until("its end", |it| it.stderr().contains("tx/s"));
    assert!(sessions(&server) <= 3, "those of a and c");
    // A run that is stopped keeps what it has, and the next trial shows who is left.
    let path = only_run(&runs).expect("there is a run");
    run.wait_until("the second trial", |_| commits(&path, 2).len() >= 2);
    assert_eq!(sessions(&server), 6);
    run.signal(Signal::INT);
    let output = run.end();
    assert_eq!(output.code, 130, "{output}");

    let first = json(&path.join("trials/1.json"));
    let status = first["status"]["failed"].to_string();
    assert!(
        ["b", "d"].iter().all(|name| status.contains(&loss_message(name))),
        "{}",
        first["status"]
    );
    let first_members = members(&first);
    let names = |members: &[Value], is_lost: bool| -> Vec<String> {
        let matching = members.iter().filter(|member| member["lost"].is_null() != is_lost);
        matching.filter_map(|member| Some(member["name"].as_str()?.to_owned())).collect()
    };
    assert_eq!(
        (names(first_members, true), names(first_members, false)),
        (owned(["b", "d"]), owned(["a", "c"]))
    );
    // Nothing is counted twice, nothing that was reported is left out, and nothing that came too late is in.
    let committed = first["counts"]["committed"].as_u64().expect("a count");
    assert_eq!(sum(first_members, "committed"), committed);
    assert_eq!(commits(&path, 1).iter().sum::<u64>(), committed);
    for gone in [1, 3] {
        assert!(first_members[gone]["committed"].as_u64() > Some(0), "{}", first_members[gone]);
        assert!(
            number(&first_members[gone]["to_s"]) < number(&first_members[0]["to_s"]),
            "{first_members:?}"
        );
    }

    let second = json(&path.join("trials/2.json"));
    assert_eq!(names(members(&second), false), ["a", "c"]);
    assert_eq!(second["workers"], 6);
    for generator in [0, 2, 3] {
        stage.generators[generator].wait_until("the end of the run", |generator| {
            generator.stderr().contains("The run has ended; waiting for the next one.")
        });
    }
}

fn owned(names: [&str; 2]) -> Vec<String> {
    names.map(str::to_owned).into()
}

/// Sessions that make load.
fn sessions(server: &MariaDb) -> u32 {
    // The run holds its lock in its own session.
    let name = "CONCAT('dyno:', LEFT(SHA2('sbtest:sysbench', 256), 32))";
    let lock = format!("COALESCE(IS_USED_LOCK({name}), 0)");
    let list = "information_schema.processlist";
    let sql = &format!("SELECT COUNT(*) FROM {list} WHERE db = 'sbtest' AND id <> {lock}");
    let answer = server.sql(sql).expect("it answers");
    answer.split_whitespace().last().and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn a_run_survives_a_loss_of_nats_and_is_stopped_as_others_are() {
    let server = server_or_skip!(MariaDb, "NATS lost");
    let mut nats = server_or_skip!(Nats, "NATS lost");
    let mut stage = Stage::new(&nats.url(""), &["a", "b"]);
    let suite = stage.suite(&TWICE.replace("duration_s = 16", "duration_s = 600"));
    let mut run = stage.start(&suite, &server.url(), &[]);
    let runs = stage.scratch.file("dyno-runs");
    let has_intervals = |least: usize| {
        let runs = runs.clone();
        move |_: &RunningDyno| only_run(&runs).is_some_and(|run| commits(&run, 1).len() >= least)
    };
    run.wait_until("two intervals", has_intervals(2));
    nats.kill();
    nats.launch();
    let before = commits(&only_run(&runs).expect("there is a run"), 1).len();
    run.wait_until("intervals after the loss", has_intervals(before + 3));
    // Others get nothing of load generators that work.
    let other_scratch = Scratch::new();
    let mut busy = RunningDyno::start(
        other_scratch.path(),
        &refs(&stage.arguments(&suite, &server.url(), &[])),
    );
    busy.wait_until("a refusal", |busy| busy.stderr().contains("is busy with the run"));
    busy.signal(Signal::INT);
    let output = busy.end();
    assert!(
        output.stderr.contains("error: Stopped before there were enough load generators."),
        "{output}"
    );
    assert!(!other_scratch.file("dyno-runs").exists());
    run.signal(Signal::INT);
    let output = run.end();
    assert_eq!(output.code, 130, "{output}");
    let path = stage.only_run();
    let trial = json(&path.join("trials/1.json"));
    assert_eq!(trial["status"], "interrupted", "{output}");
    let members = members(&trial);
    assert!(members.iter().all(|member| member["lost"].is_null()), "{members:?}");
    assert_eq!(commits(&path, 1).iter().sum::<u64>(), sum(members, "committed"));
    // A load generator that is stopped says so and leaves.
    let mut last = stage.generators.remove(0);
    last.signal(Signal::INT);
    assert_eq!(last.end().code, 0);
}

fn refs(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

#[test]
fn what_load_generators_must_not_or_can_not_do_is_refused_at_once() {
    let scratch = Scratch::new();
    let suite = scratch.file("suite.toml");
    fs::write(&suite, READS).expect("written");
    let suite = suite.display().to_string();
    let run = |target: &str, nats: &str| {
        dyno_testkit::dyno(
            scratch.path(),
            &["run", &suite, "--target", target, "--nats", nats, "--generators", "2"],
        )
    };
    let nowhere = format!("nats://u:geheim@127.0.0.1:{}", dyno_testkit_port());
    let output = run("main=sqlite:a.db", &nowhere);
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains("main is an embedded database"), "{output}");
    let output = run("main=mysql://root@127.0.0.1:1/x", &nowhere);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("NATS can't be reached at 127.0.0.1:"), "{output}");
    assert!(!output.to_string().contains("geheim"), "{output}");
    let output = dyno_testkit::dyno(scratch.path(), &["generator"]);
    assert_eq!(output.code, 2, "{output}");
    let output = dyno_testkit::dyno(scratch.path(), &["run", &suite, "--generators", "2"]);
    assert_eq!(output.code, 2, "{output}");
    assert!(!scratch.file("dyno-runs").exists());
    let script = scratch.file("a.sql");
    fs::write(&script, "\\SetShell n echo 1\nSELECT :n;\n").expect("written");
    let text = READS
        .replace("sysbench", "pgbench")
        .replace("oltp_point_select", "script")
        .replace("{ tables = 2, table_size = 1000 }", "{ scripts = \"a.sql\" }");
    fs::write(scratch.file("suite.toml"), text).expect("written");
    let output = run("main=postgres://root@127.0.0.1:1/x", &nowhere);
    assert!(output.stderr.contains("execute no commands"), "{output}");
}

/// A port at which no one listens.
fn dyno_testkit_port() -> u16 {
    dyno_testkit::free_port()
}

#[test]
fn names_are_unique_in_a_fleet() {
    let nats = server_or_skip!(Nats, "names");
    let stage = Stage::new(&nats.url(""), &["a"]);
    let scratch = Scratch::new();
    let output =
        dyno_testkit::dyno(scratch.path(), &["generator", "--nats", &stage.nats, "--name", "a"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("has a load generator `a` already"), "{output}");
    // Another fleet is another matter.
    let arguments = ["generator", "--nats", &stage.nats, "--name", "a", "--fleet", "other"];
    let mut other_generator = RunningDyno::start(scratch.path(), &arguments);
    other_generator.wait_until("the other fleet", |generator| {
        generator.stderr().contains("of the fleet other")
    });
    other_generator.signal(Signal::TERM);
    wait_until("its end", || other_generator.end().code == 0);
}
