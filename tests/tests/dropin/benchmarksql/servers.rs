//! Properties files as people have them, on real servers.

use super::support::{check_closing, good, properties, run_benchmarksql};
use dyno_testkit::{MariaDb, Postgres, RunningDyno, Scratch, server_or_skip, wait_until};

/// Nothing of it can be removed before its end.
const GROW: &str = "DO $$ BEGIN FOR n IN 1..100 LOOP UPDATE bmsql_district SET d_tax = d_tax; \
                    END LOOP; END $$";

#[test]
fn the_whole_way_on_postgres() {
    let server = server_or_skip!(Postgres, "the_whole_way_on_postgres");
    let folder = Scratch::new();
    let port = server.port;
    properties(
        &folder,
        &format!(
            "db=postgres\ndriver=org.postgresql.Driver\nuser=postgres\npassword=geheim\n\
             conn=jdbc:postgresql://127.0.0.1:{port}/sbtest?reWriteBatchedInserts=true"
        ),
    );
    let build = good(&folder, &["build", "props"]);
    assert!(build.stderr.contains("by COPY"), "{}", build.stderr);
    let keys = "SELECT count(*) FROM pg_constraint WHERE contype = 'f'";
    assert_eq!(server.sbtest(keys).expect("a count").trim(), "10", "as the original");
    for _ in 0..2 {
        let run = good(&folder, &["run", "props", "--isolation", "read-committed"]);
        assert!(check_closing(&run.stdout) > 0);
        server.sbtest(GROW).expect("versions of rows");
        server.sbtest("VACUUM ANALYZE bmsql_district").expect("statistics");
        assert!(run.stderr.contains("isolation READ COMMITTED"));
        assert!(run.stderr.contains("check books: passed: "), "{}", run.stderr);
        assert!(!format!("{run:?}").contains("geheim"));
    }
    good(&folder, &["destroy", "props"]);
    let tables = "SELECT count(*) FROM pg_class WHERE relname LIKE 'bmsql%'";
    assert_eq!(server.sbtest(tables).expect("a count").trim(), "0");
}

/// The original prints a higher tpmC the more fails.
#[test]
fn a_server_that_refuses_to_write_is_no_fast_server() {
    let server = server_or_skip!(MariaDb, "a_server_that_refuses_to_write_is_no_fast_server");
    let run_sql = |text: &str| server.sql(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    run_sql("CREATE USER bmsql@'%' IDENTIFIED BY 'geheim'; GRANT ALL ON sbtest.* TO bmsql@'%'");
    let folder = Scratch::new();
    let port = server.port;
    properties(
        &folder,
        &format!(
            "db=mariadb\ndriver=org.mariadb.jdbc.Driver\nuser=bmsql\n\
             conn=jdbc:mariadb://127.0.0.1:{port}/sbtest?rewriteBatchedStatements=true"
        ),
    );
    let wrong_password = run_benchmarksql(&folder, &["build", "props", "password", "wrong"]);
    assert_eq!(wrong_password.code, 1, "{wrong_password:?}");
    good(&folder, &["build", "props", "password", "geheim"]);

    // A level of the URL stays.
    let conn = format!(
        "jdbc:mariadb://127.0.0.1:{port}/sbtest?sessionVariables=tx_isolation='REPEATABLE-READ'"
    );
    let words = ["run", "props", "runTxnsPerTerminal", "5", "password", "geheim", "conn", &conn];
    let run = good(&folder, &words);
    assert!(run.stderr.contains("isolation the server's own"), "{}", run.stderr);

    let count_orders = || {
        let sum = run_sql("SELECT sum(d_next_o_id - 3001) FROM sbtest.bmsql_district");
        sum.trim().parse::<u64>().expect("a number")
    };
    let words = ["benchmarksql", "run", "props", "runTxnsPerTerminal", "900", "password", "geheim"];
    let mut running = RunningDyno::start(folder.path(), &words);
    wait_until("orders are there", || count_orders() > 20);
    let command_line =
        std::fs::read(format!("/proc/{}/cmdline", running.process())).expect("it runs");
    assert!(!String::from_utf8_lossy(&command_line).contains("geheim"), "in the process list");
    run_sql("SET GLOBAL read_only = ON");
    let output = running.end();
    run_sql("SET GLOBAL read_only = OFF");
    assert_eq!(output.code, 1, "{output:?}");
    let count = check_closing(&output.stdout);
    assert!(count > 0 && count < 1_800, "{count}");
    assert!(output.stderr.contains("transactions failed with an error"), "{}", output.stderr);
    assert!(output.stderr.contains("read-only"), "{}", output.stderr);
    assert!(output.stderr.contains("check books: passed: "), "{}", output.stderr);
    assert!(!format!("{output:?}").contains("geheim"));
}
