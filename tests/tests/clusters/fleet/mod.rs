//! Several load generators: `dyno generator`, and `dyno run --nats --generators`.

use dyno_testkit::{
    MariaDb, Nats, Ran, RunningDyno, Scratch, commits, dyno, dyno_command,
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

    fn run(&self, suite: &str, url: &str, more: &[&str]) -> Ran {
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
    let ran = stage.run(&stage.suite(READS), &server.url(), &[]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    let after = executed(&server);
    let run = stage.only_run();
    let trial = json(&run.join("trials/1.json"));
    let members = members(&trial);
    let field = |field: &str| -> Vec<String> {
        members.iter().map(|member| member[field].to_string()).collect()
    };
    assert_eq!(field("name"), ["\"a\"", "\"b\"", "\"c\""]);
    assert_eq!(field("workers"), ["2", "2", "1"]);
    // What the load generators say adds up to the trial, and to what the server has counted.
    let statements = sum(members, "statements");
    assert_eq!(Some(sum(members, "committed")), trial["counts"]["committed"].as_u64());
    assert_eq!(trial["latency"]["count"].as_u64(), Some(sum(members, "committed")));
    let of_server = after - before;
    let allowed = (of_server / 1000).max(5);
    assert!(
        statements <= of_server && of_server - statements <= allowed,
        "{statements} of {of_server}"
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
    let left = english_in_chinese_paper(stage.scratch.path(), &run);
    assert_eq!(left, Vec::<String>::new());
    for generator in &stage.generators {
        let shown = fs::read(format!("/proc/{}/cmdline", generator.process())).expect("it runs");
        assert!(!String::from_utf8_lossy(&shown).contains("geheim"));
        assert!(generator.stderr().contains("of 5 workers"), "{}", generator.stderr());
    }
    let stored = fs::read_to_string(run.join("run.json")).expect("read");
    assert!(!(stored + &ran.all()).contains("geheim"));
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
    let ran = stage.run(&stage.suite(TPCC), &server.url(), &[]);
    assert_eq!(ran.code, 0, "{}", ran.all());
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
    let words = |words: &[&str]| dyno(folder, &[words, &["--nats", &stage.nats]].concat());
    let listed = words(&["fleet", "ls"]).good();
    let line = listed.stdout.lines().find(|line| line.starts_with("a ")).expect("a line");
    assert!(line.contains("nobody") && line.contains(" ms ago"), "{line}");
    let _ = dyno(folder, &["fleet", "key", "other.key"]).good();
    let refused = words(&["fleet", "ls", "--wait=1", "--fleet-key=other.key"]);
    assert_eq!(refused.code, 1, "{}", refused.all());
    assert!(refused.stderr.contains("No load generator of the fleet `default` answers"));
    let suite = stage.suite(READS);
    let open = ["run", &suite, "--target=main=mysql://h/d", "--insecure", "--wait=1"];
    let alone = words(&open);
    assert_eq!(alone.code, 1, "{}", alone.all());
    assert!(alone.stderr.contains("warning: --insecure: this fleet has no key"), "{}", alone.all());
    assert!(alone.stderr.contains("Only 0 of 1 load generators"), "{}", alone.all());
    let given = |name: &str, value: &str| {
        let mut command = dyno_command(folder);
        command.args(["generator", "--nats", &stage.nats, "--name=b"]).env(name, value);
        let ran = command.output().expect("it runs");
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    let (code, said) = given("DYNO_FLEET_KEY", "");
    assert!(code == Some(2) && said.contains("A fleet needs a key"), "{said}");
    let (code, said) = given("DYNO_PASSWORD_MAIN", "geheim");
    assert!(
        code == Some(2) && said.contains("There is a password in DYNO_PASSWORD_MAIN"),
        "{said}"
    );
    assert!(!said.contains("geheim"));
    let heard = stage.generators[0].stderr();
    assert!(heard.contains("Somebody asks without this fleet's key"), "{heard}");
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
    let lost = |name: &str| {
        format!(
            "The load generator {name} was lost in the trial; what it had reported until then is counted."
        )
    };
    run.wait_until("the loss of both", |run| {
        ["b", "d"].iter().all(|name| run.stderr().contains(&lost(name)))
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
    let ran = run.end();
    assert_eq!(ran.code, 130, "{}", ran.all());

    let first = json(&path.join("trials/1.json"));
    let status = first["status"]["failed"].to_string();
    assert!(["b", "d"].iter().all(|name| status.contains(&lost(name))), "{}", first["status"]);
    let of_first = members(&first);
    let names = |members: &[Value], lost: bool| -> Vec<String> {
        let of = members.iter().filter(|member| member["lost"].is_null() != lost);
        of.filter_map(|member| Some(member["name"].as_str()?.to_owned())).collect()
    };
    assert_eq!(
        (names(of_first, true), names(of_first, false)),
        (owned(["b", "d"]), owned(["a", "c"]))
    );
    // Nothing is counted twice, nothing that was reported is left out, and nothing that came too late is in.
    let committed = first["counts"]["committed"].as_u64().expect("a count");
    assert_eq!(sum(of_first, "committed"), committed);
    assert_eq!(commits(&path, 1).iter().sum::<u64>(), committed);
    for gone in [1, 3] {
        assert!(of_first[gone]["committed"].as_u64() > Some(0), "{}", of_first[gone]);
        assert!(number(&of_first[gone]["to_s"]) < number(&of_first[0]["to_s"]), "{of_first:?}");
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
    let intervals = |least: usize| {
        let runs = runs.clone();
        move |_: &RunningDyno| only_run(&runs).is_some_and(|run| commits(&run, 1).len() >= least)
    };
    run.wait_until("two intervals", intervals(2));
    nats.kill();
    nats.launch();
    let before = commits(&only_run(&runs).expect("there is a run"), 1).len();
    run.wait_until("intervals after the loss", intervals(before + 3));
    // Others get nothing of load generators that work.
    let other = Scratch::new();
    let mut busy =
        RunningDyno::start(other.path(), &refs(&stage.arguments(&suite, &server.url(), &[])));
    busy.wait_until("a refusal", |busy| busy.stderr().contains("is busy with the run"));
    busy.signal(Signal::INT);
    let ran = busy.end();
    assert!(
        ran.stderr.contains("error: Stopped before there were enough load generators."),
        "{}",
        ran.all()
    );
    assert!(!other.file("dyno-runs").exists());
    run.signal(Signal::INT);
    let ran = run.end();
    assert_eq!(ran.code, 130, "{}", ran.all());
    let path = stage.only_run();
    let trial = json(&path.join("trials/1.json"));
    assert_eq!(trial["status"], "interrupted", "{}", ran.all());
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
    let ran = run("main=sqlite:a.db", &nowhere);
    assert_eq!(ran.code, 2, "{}", ran.all());
    assert!(ran.stderr.contains("main is an embedded database"), "{}", ran.all());
    let ran = run("main=mysql://root@127.0.0.1:1/x", &nowhere);
    assert_eq!(ran.code, 1, "{}", ran.all());
    assert!(ran.stderr.contains("NATS can't be reached at 127.0.0.1:"), "{}", ran.all());
    assert!(!ran.all().contains("geheim"), "{}", ran.all());
    let ran = dyno_testkit::dyno(scratch.path(), &["generator"]);
    assert_eq!(ran.code, 2, "{}", ran.all());
    let ran = dyno_testkit::dyno(scratch.path(), &["run", &suite, "--generators", "2"]);
    assert_eq!(ran.code, 2, "{}", ran.all());
    assert!(!scratch.file("dyno-runs").exists());
    let script = scratch.file("a.sql");
    fs::write(&script, "\\SetShell n echo 1\nSELECT :n;\n").expect("written");
    let text = READS
        .replace("sysbench", "pgbench")
        .replace("oltp_point_select", "script")
        .replace("{ tables = 2, table_size = 1000 }", "{ scripts = \"a.sql\" }");
    fs::write(scratch.file("suite.toml"), text).expect("written");
    let ran = run("main=postgres://root@127.0.0.1:1/x", &nowhere);
    assert!(ran.stderr.contains("execute no commands"), "{}", ran.all());
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
    let ran =
        dyno_testkit::dyno(scratch.path(), &["generator", "--nats", &stage.nats, "--name", "a"]);
    assert_eq!(ran.code, 1, "{}", ran.all());
    assert!(ran.stderr.contains("has a load generator `a` already"), "{}", ran.all());
    // Another fleet is another matter.
    let arguments = ["generator", "--nats", &stage.nats, "--name", "a", "--fleet", "other"];
    let mut other = RunningDyno::start(scratch.path(), &arguments);
    other.wait_until("the other fleet", |other| other.stderr().contains("of the fleet other"));
    other.signal(Signal::TERM);
    wait_until("its end", || other.end().code == 0);
}
