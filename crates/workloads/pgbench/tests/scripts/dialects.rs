//! pgbench's scripts on the databases that pgbench doesn't know.

use crate::support::{Case, run};
use dyno_core::{Discard, Driver, Session};
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::sqlite::SqliteDriver;
use dyno_pgbench::script::QueryMode;
use dyno_reactor::block_on;
use dyno_testkit::{MariaDb, Scratch, server_or_skip};

const SCRIPT: &str = "\\set a 7\n\\set half 0.5\n\\set n null\nBEGIN;\n\
    INSERT INTO t (i, d, s, n) VALUES (:a, :half, 'some text', :n);\n\
    SELECT i, d, s, n, CURRENT_TIMESTAMP AS now FROM t WHERE i = :a \\gset\n\
    \\set x debug(:i)\n\\set x debug(:d)\n\
    UPDATE t SET i = i + :a WHERE d = :half;\nSELECT max(i) AS top FROM t WHERE i > 100 \\aset\n\
    SELECT count(*) AS rows_now, sum(i) AS total FROM t \\gset after_\n\
    \\set x debug(:after_rows_now)\n\\set x debug(:after_total * 2)\nDELETE FROM t WHERE i = :i + :a;\n\
    END;\n\\set x debug(:s)\n";

const SAID: &str = "debug(script=0,command=7): int 7
debug(script=0,command=8): double 0.5
debug(script=0,command=12): int 1
debug(script=0,command=13): int 28
pgbench: error: malformed variable \"s\" value: \"some text\"
pgbench: error: client 0 aborted in command 15 (set) of script 0; evaluation of meta-command failed
";

/// Runs a script with values of all types.
fn check<D: Driver>(driver: &D) {
    block_on(async {
        let mut session = driver.connect(0).await.unwrap();
        let table = "CREATE TABLE t (i bigint, d double, s varchar(20), n int)";
        session.query(table, &mut Discard).await.unwrap();
        session.close().await;
    })
    .unwrap();
    for mode in QueryMode::ALL {
        let mut case = Case::new(SCRIPT.as_bytes());
        case.mode = mode;
        assert_eq!(run(driver, &case), SAID, "{mode:?}");
    }
}

#[test]
fn scripts_run_on_sqlite() {
    let folder = Scratch::new();
    let url = format!("sqlite:{}", folder.file("data.db").display());
    check(&SqliteDriver::new(&url.parse().unwrap()).unwrap());
}

#[test]
fn scripts_run_on_mariadb() {
    let server = server_or_skip!(MariaDb, "scripts on MariaDB");
    check(&MysqlDriver::new(&server.url().parse().unwrap()).unwrap());
}

#[test]
fn a_pipeline_of_prepared_statements_runs_on_mariadb() {
    let server = server_or_skip!(MariaDb, "a pipeline on MariaDB");
    let text = "\\set a 7\n\\startpipeline\nSELECT :a;\nSELECT 1;\n\\syncpipeline\nSELECT :a + 1;\n\
                \\endpipeline\nSELECT :a AS b \\gset\n\\set x debug(:b)\n";
    let mut case = Case::new(text.as_bytes());
    case.mode = QueryMode::Prepared;
    let driver = MysqlDriver::new(&server.url().parse().unwrap()).unwrap();
    assert_eq!(run(&driver, &case), "debug(script=0,command=9): int 7\n");
}
