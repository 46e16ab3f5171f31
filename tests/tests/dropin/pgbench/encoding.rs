//! Values and scripts are bytes: databases in other encodings than UTF-8 give the results that pgbench gives.

use super::first_use::{MakeCommand, outcome};
use super::support::{finish, later_original, original, ours};
use dyno_testkit::{Postgres, ProcessOutput, Scratch, server_or_skip, skipped};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

/// Latin-1 in the text of statements, in the name of a variable, in values that are stored and sent back, and in one of
/// the command line.
const SCRIPT: &[u8] = b"SELECT c AS v, quote_literal(c) AS q FROM t \\gset\n\
    SELECT count(*) AS n FROM t WHERE c = :q OR quote_literal(c) = :q \\gset\n\\set x debug(:n)\n\
    SELECT count(*) AS m FROM t WHERE c = 'caf\xe9' \\gset\n\\set x debug(:m)\n\
    SELECT octet_length(:w::text) AS o \\gset\n\\set x debug(:o)\n\
    SELECT 3 AS \xe9, 4 AS \xe8 \\gset\n\\set x debug(:\xe9)\n\
    DO $$BEGIN RAISE NOTICE '%', current_setting('client_encoding'); END$$;\n";

fn run(server: &Postgres, database: &str, encoding: &str, mut command: Command) -> ProcessOutput {
    command.arg(OsStr::from_bytes(b"-Dw='caf\xe9'")).env("PGUSER", "postgres");
    command.env("PGHOST", &server.socket_folder).env("PGPORT", server.port.to_string());
    finish(command.env("PGDATABASE", database).env("PGCLIENTENCODING", encoding))
}

#[test]
fn other_encodings_give_the_results_of_the_original() {
    let name = "other_encodings_give_the_results_of_the_original";
    let server = server_or_skip!(Postgres, name);
    let folder = Scratch::new();
    std::fs::write(folder.file("bytes.sql"), SCRIPT).expect("a script");
    std::fs::write(folder.file("bad.sql"), b"SELECT 'caf\xe9'::int;\n").expect("a script");
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let create = format!("CREATE DATABASE {encoding} TEMPLATE template0 ENCODING '{encoding}'");
        server.sql(&create).expect("a database");
        let table = "CREATE TABLE t (c text); INSERT INTO t VALUES (E'caf\\xe9')";
        server.in_database(&encoding.to_lowercase(), table).expect("a table");
    }
    let originals: [MakeCommand; 2] = [original, later_original];
    let mut compared = 0;
    for (database, encoding, shown) in [
        ("latin1", "", "LATIN1"),
        ("sql_ascii", "", "SQL_ASCII"),
        ("sql_ascii", "latin1", "LATIN1"),
        ("sbtest", "", "UTF8"),
    ] {
        for mode in ["simple", "extended", "prepared"] {
            let words = ["-n", "-t", "2", "-M", mode, "-f", "bytes.sql"];
            let got = run(&server, database, encoding, ours(folder.path(), &words));
            if database != "sbtest" {
                let notice = format!("NOTICE:  {shown}\n");
                assert_eq!((got.code, got.stderr.matches(&notice).count()), (0, 2), "{got}");
                assert!(got.stderr.contains("int 3\n"), "{got}");
            }
            for make in originals {
                let Some(command) = make(folder.path(), &words) else { continue };
                let expected = run(&server, database, encoding, command);
                let context = format!("{database} {mode}: {got} {expected}");
                assert_eq!(outcome(&got), outcome(&expected), "{context}");
                compared += 1;
            }
        }
        let bad = ["-n", "-t", "1", "-f", "bad.sql"];
        let output = run(&server, database, encoding, ours(folder.path(), &bad));
        assert_eq!(output.code, 2, "{output}");
        assert!(output.stderr.contains("ERROR:  invalid "), "{output}");
    }
    if compared == 0 {
        skipped(name, "neither pgbench 15 nor 18 is there");
    }
}
