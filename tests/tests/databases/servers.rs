//! The servers that all other black-box tests stand on.

use dyno_testkit::{MariaDb, Postgres, server_or_skip};

#[test]
fn mariadb_starts_dies_and_comes_back() {
    let mut server = server_or_skip!(MariaDb, "mariadb_starts_dies_and_comes_back");
    server.sql("CREATE TABLE sbtest.t (a INT); INSERT INTO sbtest.t VALUES (7)").unwrap();
    server.kill();
    assert!(server.sql("SELECT 1").is_err());
    server.restart().unwrap();
    assert_eq!(server.sql("SELECT a FROM sbtest.t").unwrap(), "7\n");
}

#[test]
fn postgres_starts_dies_and_comes_back() {
    let mut server = server_or_skip!(Postgres, "postgres_starts_dies_and_comes_back");
    server.sbtest("CREATE TABLE t (a int); INSERT INTO t VALUES (7)").unwrap();
    server.kill();
    assert!(server.sql("SELECT 1").is_err());
    server.restart().unwrap();
    assert_eq!(server.sbtest("SELECT a FROM t").unwrap(), "7\n");
}
