//! Statements are prepared when they are first used, under the original's names: scripts get the answers from a real
//! PostgreSQL that pgbench 15 and 18 get.

use super::support::{finish, later_original, original, ours};
use dyno_testkit::{Postgres, ProcessOutput, Scratch, skipped};
use std::path::Path;
use std::process::Command;

struct Script {
    name: &'static str,
    /// Creates what the script needs, before each run.
    tables: &'static str,
    text: &'static str,
}

const SCRIPTS: [Script; 10] = [
    Script {
        name: "search_path",
        tables: "DROP SCHEMA IF EXISTS sc CASCADE; DROP TABLE IF EXISTS public.tm; CREATE SCHEMA sc; \
                 CREATE TABLE public.tm (v date, n int); CREATE TABLE sc.tm (v timestamp, n int); \
                 INSERT INTO public.tm VALUES ('2020-01-01 12:00', 1), ('2020-01-01', 2); \
                 INSERT INTO sc.tm VALUES ('2020-01-01 12:00', 1), ('2020-01-01', 2)",
        text: "SELECT '2020-01-01 12:00' AS v \\gset\n\
               SELECT set_config('search_path', 'sc,public', false);\n\
               SELECT count(*) AS n FROM tm WHERE v = :v \\gset\n\\set x debug(:n)\n",
    },
    Script {
        name: "other_columns",
        tables: "DROP TABLE IF EXISTS cp; CREATE TABLE cp (a text)",
        text: "DROP TABLE IF EXISTS cp;\nCREATE TABLE cp (a int, b int);\n\
               INSERT INTO cp VALUES (1, 2);\nSELECT * FROM cp \\gset\n\\set x debug(:b)\n",
    },
    Script {
        name: "changed_result",
        tables: "DROP TABLE IF EXISTS ct; CREATE TABLE ct (a int)",
        text: "SELECT * FROM ct;\nALTER TABLE ct ADD COLUMN b int;\nSELECT * FROM ct;\n",
    },
    Script {
        name: "temporary_table",
        tables: "",
        text: "CREATE TEMPORARY TABLE IF NOT EXISTS late (a int);\nINSERT INTO late VALUES (1);\n\
               SELECT count(*) AS n FROM late \\gset\n\\set x debug(:n)\n\
               \\startpipeline\nSELECT a FROM late;\nDELETE FROM late;\n\\endpipeline\n",
    },
    Script {
        name: "alter_table",
        tables: "DROP TABLE IF EXISTS al; CREATE TABLE al (a int); INSERT INTO al VALUES (1)",
        text: "ALTER TABLE al ADD COLUMN IF NOT EXISTS c int DEFAULT 7;\n\
               SELECT * FROM al \\gset\n\\set x debug(:c)\n",
    },
    Script {
        name: "own_prepare",
        tables: "",
        text: "PREPARE d1 AS SELECT 5 AS five;\nPREPARE dyno_1 AS SELECT 6;\nEXECUTE d1 \\gset\n\
               DEALLOCATE d1;\nDEALLOCATE dyno_1;\n\\set x debug(:five)\n",
    },
    Script {
        name: "names",
        tables: "",
        text: "SELECT 1;\n\\if false\nSELECT * FROM nowhere;\n\\endif\n\
               \\startpipeline\nSELECT 2;\nSELECT 3;\n\\endpipeline\n\
               DO $$BEGIN RAISE NOTICE '%', \
               (SELECT array_agg(name ORDER BY name) FROM pg_prepared_statements); END$$;\n",
    },
    Script {
        name: "digits",
        tables: "",
        text: "SET extra_float_digits = 0;\nSELECT 0.1::float4::float8 AS f \\gset\n\
               SELECT octet_length(:f::text) AS n \\gset\n\\set x debug(:n)\n",
    },
    Script { name: "missing", tables: "", text: "SELECT 1;\nSELECT * FROM nowhere;\n" },
    Script { name: "quoted_parameter", tables: "", text: "\\set x 1\nSELECT ':x';\n" },
];

/// Outcome of a run: exit code, lines of standard error in any order (the original prints notices at once), the
/// transactions.
pub(super) fn outcome(output: &ProcessOutput) -> (i32, Vec<String>, Option<String>) {
    let is_shared = |line: &&str| {
        !line.starts_with("pgbench: hint: ") && !line.contains(" clients stopped after an error")
    };
    let mut lines: Vec<_> = output.stderr.lines().filter(is_shared).map(str::to_owned).collect();
    lines.sort();
    let processed = output.stdout.lines().find(|line| line.contains("actually processed"));
    (output.code, lines, processed.map(str::to_owned))
}

/// Runs the script on its tables; the outcome, and the errors in the server's log.
fn run(server: &Postgres, script: &Script, mut command: Command) -> (ProcessOutput, usize) {
    if !script.tables.is_empty() {
        server.sbtest(script.tables).expect("tables");
    }
    let count_errors = || server.server.log().matches("ERROR:").count();
    let before = count_errors();
    command.env("PGHOST", &server.socket_folder).env("PGPORT", server.port.to_string());
    let output = finish(command.env("PGUSER", "postgres").env("PGDATABASE", "sbtest"));
    (output, count_errors() - before)
}

pub(super) type MakeCommand = fn(&Path, &[&str]) -> Option<Command>;

#[test]
fn scripts_get_the_answers_that_they_get_in_the_original() {
    let name = "scripts_get_the_answers_that_they_get_in_the_original";
    let mut compared = 0;
    for server in [Postgres::start(), Postgres::start_fetched()] {
        match server {
            Ok(server) => compared += compare_scripts(&server),
            Err(why) => skipped(name, &why),
        }
    }
    if compared == 0 {
        skipped(name, "neither pgbench 15 nor 18 is there");
    }
}

/// Runs each script in each mode by dyno and by each original that is there; the number of comparisons.
fn compare_scripts(server: &Postgres) -> u32 {
    let folder = Scratch::new();
    let originals: [MakeCommand; 2] = [original, later_original];
    let mut compared = 0;
    for script in &SCRIPTS {
        std::fs::write(folder.file("s.sql"), script.text).expect("a script");
        for arguments in ["-M simple", "-M extended", "-M prepared", "-M prepared -C"] {
            let words: Vec<&str> =
                ["-n", "-t", "2", "-f", "s.sql"].into_iter().chain(arguments.split(' ')).collect();
            let (got, errors) = run(server, script, ours(folder.path(), &words));
            for make in originals {
                let Some(command) = make(folder.path(), &words) else { continue };
                let (expected, expected_errors) = run(server, script, command);
                let (script, outputs) = (script.name, (got.to_string(), expected.to_string()));
                assert_eq!(outcome(&got), outcome(&expected), "{script} {arguments}: {outputs:?}");
                assert!(errors <= expected_errors, "{script} {arguments}: {errors} in the log");
                compared += 1;
            }
        }
    }
    compared
}
