//! The encodings of sessions are those that the original's client libraries choose, and texts are bytes.

use super::support::command;
use dyno_testkit::{MariaDb, Postgres, ProcessOutput, Scratch, peer, server_or_skip, skipped};
use std::process::Command;

fn printed_lines(output: &ProcessOutput) -> Vec<String> {
    output.stdout.lines().filter(|line| line.starts_with("say")).map(str::to_owned).collect()
}

/// Runs the script in both programs; what it said in ours.
fn lines_of_both(
    folder: &Scratch,
    original: &str,
    connection: &[&str],
    encoding: &str,
) -> Vec<String> {
    let words = ["--events=1", "--time=0", "./bytes.lua", "run"];
    let run = |command: &mut Command| {
        let output = ProcessOutput::capture(command.args(words).env("PGCLIENTENCODING", encoding));
        assert_eq!(output.code, 0, "{output}");
        printed_lines(&output)
    };
    let ours = run(&mut command(folder.path(), connection));
    let theirs = run(Command::new(original).current_dir(folder.path()).args(connection));
    assert_eq!(ours, theirs, "{encoding}");
    ours
}

#[test]
fn sessions_have_the_encoding_of_the_original() {
    let name = "sessions_have_the_encoding_of_the_original";
    let Some(original) = peer("sysbench") else {
        return skipped(name, "sysbench is not installed");
    };
    let postgres = server_or_skip!(Postgres, name);
    let mariadb = server_or_skip!(MariaDb, name);
    let folder = Scratch::new();
    postgres.sql("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1'").expect("a database");
    let script = r#"
function event()
   local con = sysbench.sql.driver():connect()
   local row = con:query_row("SELECT 'caf\233'")
   local statement = con:prepare("SELECT octet_length('caf\233')::text, '\233'")
   local length, letter = unpack(statement:execute():fetch_row(), 1, 2)
   print("say", con:query_row("SHOW client_encoding"), row:byte(4), length, letter:byte())
end
"#;
    std::fs::write(folder.file("bytes.lua"), script).expect("a script");
    let (host, port) = (postgres.socket_folder.display(), postgres.port);
    let (host, port) = (format!("--pgsql-host={host}"), format!("--pgsql-port={port}"));
    for (database, encoding, length) in
        [("--pgsql-db=latin", "", 4), ("--pgsql-db=sbtest", "latin1", 5)]
    {
        let to = ["--db-driver=pgsql", &host, &port, "--pgsql-user=postgres", database];
        let lines = lines_of_both(&folder, &original, &to, encoding);
        assert_eq!(lines, [format!("say\tLATIN1\t233\t{length}\t233")]);
    }
    let script = r#"
function event()
   local con = sysbench.sql.driver():connect()
   print("say", con:query_row("SELECT CONCAT_WS(' ', @@character_set_client, " ..
      "@@character_set_connection, @@character_set_results, @@collation_connection)"))
end
"#;
    std::fs::write(folder.file("bytes.lua"), script).expect("a script");
    let socket = format!("--mysql-socket={}", mariadb.socket.display());
    lines_of_both(&folder, &original, &[&socket, "--mysql-user=root"], "");
}
