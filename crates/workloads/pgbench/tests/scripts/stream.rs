//! The statements that reach a server, with their values, against those of the installed pgbench.

use crate::support::{Case, Original, run};
use dyno_pgbench::script::{QueryMode, builtins};

/// Every kind of statement, with everything that a script can do between them.
const MIXED: &[u8] = b"-- a comment that is left out
\\set a random(1, 100)
\\set b random_gaussian(1, 100, 2.5) / 7.0
\\set c :a > 50
\\set n null
/* kept */ SELECT :a::int, :b, 'c' AS quoted; -- behind
SELECT 1 AS one, 'x' AS two -- within
  , 3 AS three \\gset p_
\\if :p_one = 1 and :c
SELECT :p_three::int + :a, $$ ; $$, :c::bool, :n::text;
\\elif :a < 25
SELECT 'low', :a;
\\else
SELECT \"a\".x FROM (SELECT 'a;b' AS x) AS \"a\" WHERE :a = :a;
\\endif
BEGIN;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)
  VALUES (:a, :client_id, hashint8(:default_seed), :scale, CURRENT_TIMESTAMP);
ROLLBACK;
SELECT E'it\\'s', 'and '
 'so'
";

/// Statements that can't go with parameters.
const SIMPLE: &[u8] = b"\\set a random(1, 100)
\\set b random(1, 100) / 3.0
SELECT :a AS x \\; SELECT ':b :nobody' AS y, :b AS z \\; SELECT 1 WHERE false \\aset
SELECT :x, ':y', :z, :a::text::int, 'a:b', $$ :a ':n' $$
\\; SELECT 2
;;
END";

const PIPELINE: &[u8] = b"\\set a random(1, 100)
\\startpipeline
SELECT :a, :undefined::int IS NULL;
\\set a :a + 1
INSERT INTO pgbench_history (tid, bid, aid, delta) VALUES (:a, 1, 1, 1);
SELECT count(*) FROM pgbench_branches;
\\endpipeline
SELECT :a;
";

/// The statements in the server's log that belong to the script, without the names
/// of prepared statements.
fn statements(log: &str) -> Vec<String> {
    let mut statements: Vec<String> = Vec::new();
    let mut is_ours = false;
    for line in log.lines() {
        let Some((_, message)) = line.split_once("LOG:  ").or_else(|| line.split_once("DETAIL:  "))
        else {
            // The next lines of a statement begin with a tab.
            if is_ours && line.starts_with('\t') {
                statements.last_mut().unwrap().push_str(line);
            }
            continue;
        };
        if message.starts_with("parameters: ") {
            statements.push(message.to_owned());
            continue;
        }
        let text = message.strip_prefix("statement: ").or_else(|| {
            let (_, text) = message.strip_prefix("execute ")?.split_once(": ")?;
            Some(text)
        });
        is_ours = text.is_some_and(|text| {
            !text.starts_with("select count(*) from pgbench_branches")
                && !text.starts_with("select o.n, p.partstrat")
        });
        if let (true, Some(text)) = (is_ours, text) {
            statements.push(text.to_owned());
        }
    }
    statements
}

fn compare(original: &Original, case: &Case) -> usize {
    let begin = original.server.server.log().len();
    let theirs = original.run(case);
    let notice = "WARNING:  there is no transaction in progress";
    assert!(theirs.lines().all(|line| line == notice), "pgbench runs the script: {theirs}");
    let middle = original.server.server.log().len();
    assert_eq!(run(&original.driver(), case), theirs);
    let log = original.server.server.log();
    let (theirs, ours) = (statements(&log[begin..middle]), statements(&log[middle..]));
    assert_eq!(ours, theirs, "{:?}", case.mode);
    theirs.len()
}

#[test]
fn servers_receive_the_same_statements_and_values() {
    let options =
        ["-c", "fsync=off", "-c", "log_statement=all", "-c", "log_parameter_max_length=-1"];
    let Some(original) = Original::start("statements against pgbench", &options) else { return };
    let mut count = 0;
    for mode in QueryMode::ALL {
        for builtin in builtins() {
            let mut case = Case::new(builtin.text.as_bytes());
            (case.mode, case.transactions, case.seed) = (mode, 20, 4711);
            count += compare(&original, &case);
        }
        for (name, text) in [
            ("read-only", include_str!("../../../../../suites/pgbench/read-only.sql")),
            ("read-write", include_str!("../../../../../suites/pgbench/read-write.sql")),
        ] {
            let mut case = Case::new(text.as_bytes());
            (case.mode, case.transactions, case.seed) = (mode, 20, 4712);
            case.defines.push(("range".to_owned(), "100000".to_owned()));
            assert!(compare(&original, &case) >= 20, "{name}");
        }
        let mut case = Case::new(MIXED);
        (case.mode, case.transactions) = (mode, 20);
        count += compare(&original, &case);
        let mut case = Case::new(if mode == QueryMode::Simple { SIMPLE } else { PIPELINE });
        (case.mode, case.transactions) = (mode, 20);
        count += compare(&original, &case);
    }
    assert!(count > 1_000, "{count} statements were compared");
}
