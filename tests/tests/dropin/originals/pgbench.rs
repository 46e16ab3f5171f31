//! `pgbench` and `dyno pgbench`.

use super::table::{CommandLine, compare};
use crate::pgbench::support::{original, ours};
use dyno_testkit::{Postgres, Scratch, server_or_skip, skipped};
use std::process::Command;

/// The connection of one program, by the environment: command lines stay as they are.
fn connect(mut command: Command, line: &CommandLine, pg: &Postgres, database: &str) -> Command {
    if line.server == "pg" {
        command.env("PGHOST", "127.0.0.1").env("PGPORT", pg.port.to_string());
        command.env("PGUSER", "postgres").env("PGDATABASE", database);
    }
    command.args(&line.words);
    command
}

#[test]
fn pgbench_says_the_same() {
    let folder = Scratch::new();
    if original(folder.path(), &[]).is_none() {
        skipped("pgbench_says_the_same", "pgbench 15 is not installed");
        return;
    }
    let pg = server_or_skip!(Postgres, "pgbench_says_the_same");
    for database in ["sbtest_a", "sbtest_b"] {
        pg.sql(&format!("CREATE DATABASE {database}")).expect("a database");
    }
    for (name, text) in [("one.sql", "SELECT 1;\n"), ("two.sql", "\\set x 1\nSELECT :x;\n")] {
        std::fs::write(folder.file(name), text).expect("a script");
    }
    let their_command = |line: &CommandLine| {
        let command = original(folder.path(), &[]).expect("it is installed");
        connect(command, line, &pg, "sbtest_a")
    };
    let our_command = |line: &CommandLine| connect(ours(folder.path(), &[]), line, &pg, "sbtest_b");
    compare(include_str!("pgbench.txt"), "pgbench", their_command, our_command);
}
