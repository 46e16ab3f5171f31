//! `sysbench` and `dyno sysbench`.

use super::table::{CommandLine, compare};
use crate::sysbench::support::command;
use dyno_testkit::{MariaDb, Postgres, Scratch, peer, server_or_skip, skipped};
use std::process::Command;

/// Connection options for the databases of one program.
fn options(line: &CommandLine, my: &MariaDb, pg: &Postgres, database: &str) -> Vec<String> {
    let text = match line.server.as_str() {
        "my" => format!(
            "--mysql-host=127.0.0.1 --mysql-port={} --mysql-user=root --mysql-db={database}",
            my.port
        ),
        "pg" => format!(
            "--db-driver=pgsql --pgsql-host=127.0.0.1 --pgsql-port={} --pgsql-user=postgres \
             --pgsql-db={database}",
            pg.port
        ),
        _ => return line.words.clone(),
    };
    text.split(' ').map(str::to_owned).chain(line.words.iter().cloned()).collect()
}

#[test]
fn sysbench_says_the_same() {
    let Some(original) = peer("sysbench") else {
        skipped("sysbench_says_the_same", "sysbench is not installed");
        return;
    };
    let my = server_or_skip!(MariaDb, "sysbench_says_the_same");
    let pg = server_or_skip!(Postgres, "sysbench_says_the_same");
    for database in ["sbtest_a", "sbtest_b"] {
        my.sql(&format!("CREATE DATABASE {database}")).expect("a database");
        pg.sql(&format!("CREATE DATABASE {database}")).expect("a database");
    }
    let user = "CREATE USER tls@'127.0.0.1' REQUIRE SSL; GRANT ALL ON *.* TO tls@'127.0.0.1'";
    my.sql(user).expect("a user");
    let folder = Scratch::new();
    let their_command = |line: &CommandLine| {
        let mut command = Command::new(&original);
        command.current_dir(folder.path()).args(options(line, &my, &pg, "sbtest_a"));
        command
    };
    let our_command = |line: &CommandLine| {
        let mut command = command(folder.path(), &[]);
        command.args(options(line, &my, &pg, "sbtest_b"));
        command
    };
    compare(include_str!("sysbench.txt"), "sysbench", their_command, our_command);
}
