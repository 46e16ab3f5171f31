//! Loads and targets of people's own: statements, scripts, plans that are only shown, `dyno bench`.

use dyno_facts::{RunStatus, TrialStatus};
use dyno_testkit::{
    MariaDb, Postgres, ProcessOutput, RunningDyno, Scratch, dyno, only_run, server_or_skip,
};
use rustix::process::Signal;
use std::fs;

const SUITE: &str = r#"
[suite]
name = "own"
[[experiment]]
name = "script"
workload = "lua"
script = "own.lua"
options = { rows = 50 }
workers = 2
events = 100
[[experiment]]
name = "mix"
statements = ["SELECT n FROM own WHERE id = :id @9", "UPDATE own SET n = n + 1 WHERE id = :id"]
parameters = { rows = 50, id = "uniform(1, rows)" }
workers = 2
events = 200
[[experiment]]
name = "pgbench"
workload = "pgbench"
test = "script"
options = { scripts = "own.sql" }
prepare = false
cleanup = false
workers = 1
events = 50
"#;

const SCRIPT: &str = r#"
sysbench.cmdline.options = { rows = {"rows", 10} }
function prepare()
   local con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE own (id INTEGER PRIMARY KEY, n INT)")
   for i = 1, sysbench.opt.rows do con:query("INSERT INTO own VALUES (" .. i .. ", 0)") end
end
function thread_init() con = sysbench.sql.driver():connect() end
function event()
   con:query("SELECT n FROM own WHERE id = " .. sysbench.rand.uniform(1, sysbench.opt.rows))
end
"#;

#[test]
fn scripts_and_plain_statements_stand_in_one_suite() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    for (name, text) in
        [("own.toml", SUITE), ("own.lua", SCRIPT), ("own.sql", "SELECT count(*) FROM own;\n")]
    {
        fs::write(folder.join(name), text).expect("a file");
    }
    let run = ["run", "own.toml", "--target", "mine=sqlite:{run}/own.db"];
    let plan = dyno(folder, &[&run[..], &["--plan"]].concat());
    assert_eq!(plan.code, 0, "{plan}");
    assert!(plan.stdout.contains("2 workers, 200 transactions, repeat 1"), "{plan}");
    let long = dyno(folder, &["run", "own.toml", run[2], run[3], "--budget", "0.01s", "--plan"]);
    assert_eq!(long.code, 2, "as the run: {long}");
    assert!(long.stdout.contains("2 workers, 100 transactions"), "{long}");
    assert!(long.stderr.contains("at its smallest"), "{long}");
    assert!(!folder.join("dyno-runs").exists(), "nothing is executed");
    let output = dyno(folder, &run);
    assert_eq!(output.code, 0, "{output}");
    let path = only_run(&folder.join("dyno-runs")).expect("a run");
    let data = dyno_store::read(&path).expect("a run");
    assert_eq!(data.status(), RunStatus::Complete);
    let commits: Vec<u64> =
        data.trials.iter().map(|trial| trial.summary.counts.committed).collect();
    assert_eq!(commits, [100, 200, 50]);
    assert!(data.trials.iter().all(|trial| trial.summary.status == TrialStatus::Complete));
    let paper = fs::read_to_string(path.join("paper.html")).expect("a paper");
    assert!(paper.contains("sysbench.cmdline.options"), "the script stands in the paper");
}

#[test]
fn statements_run_on_pgbench_tables_of_any_scale() {
    let server = server_or_skip!(Postgres, "statements_run_on_pgbench_tables_of_any_scale");
    let scratch = Scratch::new();
    let folder = scratch.path();
    let port = server.port.to_string();
    let place = ["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "sbtest"];
    let loaded = dyno(folder, &[&["pgbench", "-i", "-s", "2"], &place[..]].concat());
    assert_eq!(loaded.code, 0, "{loaded}");
    let suite = "[suite]\nname = \"mix\"\n[[experiment]]\nname = \"mix\"\nstatements = [\"SELECT abalance FROM \
                 pgbench_accounts WHERE aid = :id\"]\nparameters = { id = \"uniform(1, 200000)\" }\nworkers = 1\n\
                 events = 20\n";
    fs::write(folder.join("mix.toml"), suite).expect("a file");
    let target = format!("mine={}", server.url());
    let output = dyno(folder, &["run", "mix.toml", "--target", &target]);
    assert_eq!(output.code, 0, "{output}");
}

#[test]
fn a_bench_does_nothing_before_it_is_allowed_to() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let unconfirmed = dyno(folder, &["bench", "sqlite:own.db"]);
    assert_eq!(unconfirmed.code, 1, "{unconfirmed}");
    let rehearsal = "it is a rehearsal, with smaller data and shorter windows than the suite's: its figures \
                     aren't results.\nBegin? [y/N]";
    for message in ["these tables are created, and dropped in the end: sbtest1", rehearsal] {
        assert!(unconfirmed.stderr.contains(message), "{unconfirmed}");
    }
    let short = dyno(folder, &["bench", "sqlite:own.db", "--budget", "5s", "--yes"]);
    assert!(short.stderr.contains("more than the budget of 5 s"), "{short}");
    assert!(short.stderr.contains("s` at least.\n"), "{short}");
    assert!(!short.stderr.contains("--plan"), "{short}");
    // A table that it would need.
    let prepare = ["sysbench", "--db-driver=sqlite", "--sqlite-db=own.db", "--table-size=10"];
    let prepared = dyno(folder, &[&prepare[..], &["oltp_read_only", "prepare"]].concat());
    assert_eq!(prepared.code, 0, "{prepared}");
    let conflicting = dyno(folder, &["bench", "sqlite:own.db", "--yes"]);
    assert_eq!(conflicting.code, 1, "{conflicting}");
    assert!(conflicting.stderr.contains("the names that are needed: sbtest1."), "{conflicting}");
    assert!(!folder.join("dyno-runs").exists());
}

/// Says where its tables are, and `--remove` drops them and no others.
#[test]
fn an_interrupted_bench_leaves_no_table_unsaid() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let prepare = ["sysbench", "--db-driver=sqlite", "--sqlite-db=own.db", "--tables=12"];
    let prepare = [&prepare[..], &["--table-size=10", "oltp_read_only", "prepare"]].concat();
    let bench = ["bench", "sqlite:own.db", "--yes", "--budget", "60s"];
    let mut running = RunningDyno::start(folder, &bench);
    running.wait_until("a trial has begun", |it| it.stderr().contains("16 workers"));
    running.signal(Signal::INT);
    let output = running.end();
    assert_eq!(output.code, 130, "{output}");
    let leftovers_message = "has left tables on sqlite:own.db: sbtest1";
    assert!(
        output.stderr.contains(leftovers_message) && output.stderr.contains("--remove"),
        "{output}"
    );
    // Another command of another size meets them, and says whose they are.
    let another = dyno(folder, &["bench", "sqlite:own.db", "--yes", "--budget", "90s"]);
    assert_eq!(another.code, 1, "{another}");
    assert!(another.stderr.contains(leftovers_message), "{another}");
    let unconfirmed = dyno(folder, &["bench", "sqlite:own.db", "--remove"]);
    assert_eq!(unconfirmed.code, 1, "{unconfirmed}");
    let removed = dyno(folder, &["bench", "sqlite:own.db", "--remove", "--yes"]);
    assert_eq!(removed.code, 0, "{removed}");
    let message = "These tables are dropped on sqlite:own.db: sbtest1";
    assert!(removed.stderr.contains(message), "{removed}");
    // All tables can be made again: none is left. Now they are somebody else's.
    let prepared = dyno(folder, &prepare);
    assert_eq!(prepared.code, 0, "{prepared}");
    let again = dyno(folder, &["bench", "sqlite:own.db", "--remove"]);
    assert_eq!(again.code, 0, "{again}");
    assert!(again.stderr.contains("No interrupted run has left tables there."), "{again}");
    let run = [&prepare[..5], &["--events=1", "oltp_read_only", "run"]].concat();
    let run = dyno(folder, &run);
    assert_eq!(run.code, 0, "they are still there: {run}");
}

#[test]
fn a_list_of_threads_ends_with_one_table() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let run_sysbench = |words: &[&str]| {
        let database = ["sysbench", "--db-driver=sqlite", "--sqlite-db=own.db", "--table-size=50"];
        dyno(folder, &[&database[..], words].concat())
    };
    assert_eq!(run_sysbench(&["oltp_point_select", "prepare"]).code, 0);
    let swept =
        run_sysbench(&["--threads=1,2", "--events=50", "--time=0", "oltp_point_select", "run"]);
    assert_eq!(swept.code, 0, "{swept}");
    for threads in ["Number of threads: 1", "Number of threads: 2"] {
        assert!(swept.stdout.contains(threads), "{swept}");
    }
    let table: Vec<&str> = swept.stdout.lines().rev().take(3).map(str::trim).collect();
    assert!(table[2].starts_with("threads") && table[0].starts_with("2 "), "{swept}");
    let json =
        run_sysbench(&["--threads=1,2", "--events=5", "--json=x.json", "oltp_point_select", "run"]);
    assert_eq!(json.code, 1, "{json}");
    assert!(!folder.join("x.json").exists(), "{json}");
}

#[test]
fn a_script_in_a_suite_commits_itself_what_an_attempt_has_left_open() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let script = "local tries = 0\n\
                  function prepare()\n\
                  sysbench.sql.driver():connect():query('CREATE TABLE own (n INT)')\nend\n\
                  function thread_init() con = sysbench.sql.driver():connect() end\n\
                  function sysbench.hooks.before_restart_event() con:query('COMMIT') end\n\
                  function event()\n  tries = tries + 1\n  con:query('BEGIN')\n\
                  if tries == 2 then error({errcode = sysbench.error.RESTART_EVENT}) end\n\
                  con:query('COMMIT')\nend";
    let suite = "[suite]\nname = \"own\"\n[[experiment]]\nname = \"script\"\nworkload = \"lua\"\n\
                 script = \"own.lua\"\nworkers = 1\nevents = 5\n";
    fs::write(folder.join("own.lua"), script).expect("a file");
    fs::write(folder.join("own.toml"), suite).expect("a file");
    let output = dyno(folder, &["run", "own.toml", "--target", "mine=sqlite:{run}/own.db"]);
    assert_eq!(output.code, 0, "{output}");
}

#[test]
fn a_script_that_lua_does_not_understand_is_refused_before_anything_is_done() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let suite = "[suite]\nname = \"own\"\n[[experiment]]\nname = \"script\"\nworkload = \"lua\"\n\
                 script = \"own.lua\"\nworkers = 1\nevents = 5\n";
    fs::write(folder.join("own.lua"), "local n = 1\nfunction event( n = = end\n").expect("a file");
    fs::write(folder.join("own.toml"), suite).expect("a file");
    let run = ["run", "own.toml", "--target", "mine=sqlite:own.db"];
    for output in [dyno(folder, &run), dyno(folder, &[&run[..], &["--plan"]].concat())] {
        assert_eq!(output.code, 2, "{output}");
        assert!(output.stderr.contains("own.lua:2: ") && output.stdout.is_empty(), "{output}");
    }
    assert!(!folder.join("own.db").exists() && !folder.join("dyno-runs").exists());
}

#[test]
fn a_list_of_threads_or_clients_leaves_a_paper() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let run_dyno = |words: &[&str]| dyno(folder, words);
    let database = ["sysbench", "--db-driver=sqlite", "--sqlite-db=own.db", "--table-size=50"];
    let run_sysbench = |words: &[&str]| run_dyno(&[&database[..], words].concat());
    assert_eq!(run_sysbench(&["oltp_point_select", "prepare"]).code, 0);
    let swept = run_sysbench(&["--threads=1,2", "--time=1", "oltp_point_select", "run", "--paper"]);
    assert_eq!(swept.code, 0, "{swept}");
    for threads in [" 1 ", " 2 "] {
        let is_level = |line: &str| line.starts_with("oltp_point_select") && line.contains(threads);
        assert!(swept.stdout.lines().any(is_level), "{swept}");
    }
    assert_levels(&folder.join("dyno-runs"), "oltp_point_select");
    let run = run_sysbench(&["--events=1", "oltp_point_select", "run"]);
    assert_eq!(run.code, 0, "the tables are still there: {run}");

    fs::write(folder.join("own.lua"), "function event() sysbench.sql.driver() end")
        .expect("a file");
    fs::remove_dir_all(folder.join("dyno-runs")).expect("removed");
    let swept = run_sysbench(&["--threads=1,2", "--time=1", "own.lua", "run", "--paper"]);
    assert_eq!(swept.code, 0, "{swept}");
    assert_levels(&folder.join("dyno-runs"), "own.lua");

    let initialized = run_dyno(&["pgbench", "-i", "-q", "sqlite:bank.db"]);
    assert_eq!(initialized.code, 0, "{initialized}");
    fs::write(folder.join("own.sql"), "SELECT :n + 1;").expect("a file");
    let scripts = ["-b", "select-only@2", "-f", "own.sql", "-D", "n=4"];
    let pgbench = ["pgbench", "-n", "-T", "1", "-c", "1,2", "--paper", "sqlite:bank.db"];
    fs::remove_dir_all(folder.join("dyno-runs")).expect("removed");
    let swept = run_dyno(&[&pgbench[..], &scripts].concat());
    assert_eq!(swept.code, 0, "{swept}");
    let paper = assert_levels(&folder.join("dyno-runs"), "script");
    assert!(paper.contains("SELECT :n + 1;"), "the text of the script");
    let without_time = run_dyno(&["pgbench", "-c", "1,2", "--paper", "sqlite:bank.db"]);
    assert_eq!(without_time.code, 1, "{without_time}");
    assert!(without_time.stderr.contains("--paper needs the length of a run"), "{without_time}");
}

/// Looks whether the only run has a trial at one and at two workers, and a paper of them; gives its text.
fn assert_levels(runs: &std::path::Path, title: &str) -> String {
    let path = only_run(runs).expect("a run");
    let run = dyno_store::read(&path).expect("a run");
    let workers: Vec<u32> = run.trials.iter().map(|trial| trial.summary.identity.workers).collect();
    assert_eq!(workers, [1, 2]);
    assert_eq!(run.header.status, RunStatus::Complete);
    assert!(path.join("paper.json").is_file());
    let paper = fs::read_to_string(path.join("paper.html")).expect("a paper");
    assert!(paper.contains(title), "{title}");
    paper
}

/// `dyno bench` of a URL that can't be benched: it ends before it has made anything.
fn run_refused_bench(url: &str) -> ProcessOutput {
    let scratch = Scratch::new();
    let output = dyno(scratch.path(), &["bench", url, "--yes"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(!scratch.file("dyno-runs").exists(), "{output}");
    output
}

#[test]
fn a_bench_finds_out_what_mariadb_lacks_before_it_begins() {
    let server = server_or_skip!(MariaDb, "a_bench_finds_out_what_mariadb_lacks_before_it_begins");
    let assert_limited = |setting: &str, message: &str| {
        server.sql(&format!("SET GLOBAL {setting}")).expect("set");
        let output = run_refused_bench(&server.url());
        assert!(output.stderr.contains(message), "{setting}: {output}");
    };
    assert_limited("max_prepared_stmt_count = 0", "takes 0 more prepared statements");
    server.sql("SET GLOBAL max_prepared_stmt_count = 16382").expect("set");
    assert_limited("max_connections = 11", "more sessions");
}

#[test]
fn a_bench_finds_out_what_postgres_lacks_before_it_begins() {
    let server =
        server_or_skip!(Postgres, "a_bench_finds_out_what_postgres_lacks_before_it_begins");
    server.sql("CREATE ROLE reader LOGIN PASSWORD 'r' CONNECTION LIMIT 30").expect("a user");
    server.sbtest("REVOKE CREATE ON SCHEMA public FROM PUBLIC").expect("revoked");
    let url = server.url().replace("postgres@", "reader:r@");
    let output = run_refused_bench(&url);
    assert!(output.stderr.contains("may create no tables in its schema"), "{output}");
    server.sbtest("GRANT CREATE ON SCHEMA public TO reader").expect("granted");
    server.sql("ALTER ROLE reader CONNECTION LIMIT 3").expect("limited");
    let output = run_refused_bench(&url);
    assert!(output.stderr.contains("takes 3 more sessions"), "{output}");
}

#[test]
fn statements_beyond_ascii_need_sessions_in_utf_8() {
    let server = server_or_skip!(Postgres, "statements_beyond_ascii_need_sessions_in_utf_8");
    let scratch = Scratch::new();
    server.sql("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1'").expect("a database");
    // In another encoding it would have two letters.
    let suite = "[suite]\nname = \"letters\"\n[[experiment]]\nname = \"letters\"\nworkers = 1\n\
                 events = 20\nstatements = [\"SELECT 1 / (2 - length('\u{e4}'))\"]\n";
    fs::write(scratch.file("letters.toml"), suite).expect("a suite");
    let latin = server.url().replace("/sbtest", "/latin");
    let run_on = |target: &str| {
        dyno(scratch.path(), &["run", "letters.toml", "--target", &format!("mine={target}")])
    };
    let refusal = run_on(&latin);
    assert_ne!(refusal.code, 0, "{refusal}");
    let words = "the encoding of the sessions is LATIN1";
    assert!(refusal.to_string().contains(words), "{refusal}");
    assert!(refusal.to_string().contains("set.client_encoding=UTF8"), "{refusal}");
    for target in [format!("{latin}?set.client_encoding=UTF8"), server.url()] {
        let output = run_on(&target);
        assert_eq!(output.code, 0, "{output}");
    }
}
