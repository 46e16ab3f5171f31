//! On a PostgreSQL of one's own.

use super::support::{command, number, report, shape};
use dyno_testkit::{Postgres, ProcessOutput, Scratch, server_or_skip};

fn run_on(hosts: &str, port: u16, arguments: &[&str]) -> ProcessOutput {
    let folder = Scratch::new();
    let (hosts, port) = (format!("--pgsql-host={hosts}"), format!("--pgsql-port={port}"));
    let connection = ["--db-driver=pgsql", &hosts, &port, "--pgsql-user=postgres"];
    ProcessOutput::capture(command(folder.path(), &connection).args(arguments))
}

#[test]
fn prepare_run_cleanup_over_a_list_of_hosts() {
    let server = server_or_skip!(Postgres, "prepare_run_cleanup_over_a_list_of_hosts");
    // One server under two names.
    let hosts = format!("127.0.0.1,{}", server.socket_folder.display());
    let test = ["--tables=2", "--table-size=500", "--threads=2", "oltp_read_write"];
    let output = run_on(&hosts, server.port, &[&test[..], &["prepare"]].concat());
    assert_eq!(output.code, 0, "{output}");
    let rows = server.sbtest("SELECT count(*) FROM sbtest2").expect("a table");
    assert_eq!(rows.trim(), "500");
    let output =
        run_on(&hosts, server.port, &[&test[..], &["--time=0", "--events=30", "run"]].concat());
    assert_eq!(output.code, 0, "{output}");
    assert_eq!(
        shape(report(&output)),
        shape(include_str!("../../../../crates/dropin/golden/sysbench/report.txt"))
    );
    assert!((number(&output, "total:") - 600.0).abs() < 0.5, "{output}");
    let output = run_on(&hosts, server.port, &[&test[..], &["cleanup"]].concat());
    assert_eq!(output.code, 0, "{output}");
}

#[test]
fn log_in_errors_name_the_way_out() {
    let server = server_or_skip!(Postgres, "log_in_errors_name_the_way_out");
    let output = run_on("127.0.0.1", server.port, &["--pgsql-db=nowhere", "oltp_insert", "run"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stdout.contains("FATAL: Connection to database failed: "), "{output}");
    assert!(output.stderr.contains("--pgsql-db"), "{output}");
    let output = run_on("127.0.0.1", server.port, &["oltp_point_select", "run"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stdout.contains("FATAL: table 'sbtest1' doesn't exist"), "{output}");
}
