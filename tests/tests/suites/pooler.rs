//! A PgBouncer between dyno and PostgreSQL.

use dyno_testkit::{
    PgBouncer, Postgres, ProcessOutput, Scratch, dyno, only_run, server_or_skip, skipped,
    wait_until,
};
use std::path::Path;

/// Runs pgbench's select-only with statements of this mode.
fn suite(folder: &Path, mode: &str, url: &str) -> ProcessOutput {
    let text = format!(
        "[suite]\nname = \"pooled\"\n\n[target.main]\nurl = \"{url}\"\n\n[[experiment]]\nname = \"e\"\n\
         workload = \"pgbench\"\ntest = \"select-only\"\nworkers = [4]\nwarmup_s = 0\nduration_s = 1\n\
         options = {{ scale = 1, mode = \"{mode}\" }}\n"
    );
    std::fs::write(folder.join("pooled.toml"), text).expect("the suite can be written");
    dyno(folder, &["run", "pooled.toml"])
}

fn transport(folder: &Path) -> Option<String> {
    let run = only_run(&folder.join("dyno-runs")).expect("a run");
    let data = dyno_store::read(&run).expect("it can be read");
    data.trials[0].summary.conditions.nodes["main"].transport.clone()
}

/// Sessions that hold dyno's lock of a run.
fn locks(server: &Postgres) -> String {
    server.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").expect("locks")
}

#[test]
fn a_pool_by_transactions_is_said_and_left_without_a_lock() {
    let test = "a_pool_by_transactions_is_said_and_left_without_a_lock";
    let server = server_or_skip!(Postgres, test);
    let pooler = match PgBouncer::before(&server, "transaction") {
        Ok(pooler) => pooler,
        Err(why) => return skipped(test, &why),
    };
    let simple = Scratch::new();
    let output = suite(simple.path(), "simple", &pooler.url());
    assert_eq!(output.code, 0, "{output}");
    let message = "no lock keeps other runs away from its tables: a pooler in between gives";
    assert!(output.stderr.contains(message), "{output}");
    assert_eq!(transport(simple.path()).as_deref(), Some("pooler, tcp"));
    // PgBouncer 1.21 and later can keep prepared statements, if it is set up for that; here it is not.
    let prepared = Scratch::new();
    let output = suite(prepared.path(), "prepared", &pooler.url());
    assert_ne!(output.code, 0, "{output}");
    assert!(output.stderr.contains("prepared statement"), "{output}");
    assert!(output.stderr.contains("is a pooler in between"), "{output}");
    assert_eq!(locks(&server).trim(), "0");
    let bench = ["bench", &pooler.url(), "--budget", "1m", "--yes"];
    let output = dyno(prepared.path(), &bench);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("Nothing was done: a is a pooler that gives"), "{output}");
}

#[test]
fn a_pool_by_statements_is_refused_before_anything_is_made() {
    let test = "a_pool_by_statements_is_refused_before_anything_is_made";
    let server = server_or_skip!(Postgres, test);
    let pooler = match PgBouncer::before(&server, "statement") {
        Ok(pooler) => pooler,
        Err(why) => return skipped(test, &why),
    };
    let scratch = Scratch::new();
    let output = dyno(scratch.path(), &["bench", &pooler.url(), "--budget", "1m", "--yes"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("Nothing was done: a is a pooler that gives"), "{output}");
    let output = dyno(scratch.path(), &["pgbench", "-i", &pooler.url()]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("pgbench: hint: is a pooler in between"), "{output}");
}

#[test]
fn a_pool_by_sessions_is_locked_like_a_server_and_named() {
    let test = "a_pool_by_sessions_is_locked_like_a_server_and_named";
    let server = server_or_skip!(Postgres, test);
    let pooler = match PgBouncer::before(&server, "session") {
        Ok(pooler) => pooler,
        Err(why) => return skipped(test, &why),
    };
    let scratch = Scratch::new();
    let output = suite(scratch.path(), "prepared", &pooler.url());
    assert_eq!(output.code, 0, "{output}");
    assert!(!output.stderr.contains("no lock keeps"), "{output}");
    assert_eq!(transport(scratch.path()).as_deref(), Some("pooler, tcp"));
    // The session went back to the pool without it (DISCARD ALL).
    wait_until("the lock's end", || locks(&server).trim() == "0");
}
