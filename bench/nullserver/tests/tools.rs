//! The real sysbench, pgbench, mysql and psql against the null server: what they count is what it counts.

use dyno_nullserver::{Config, Handle, ProtocolCounters, start};
use dyno_testkit::skipped;
use std::path::PathBuf;
use std::process::Command;

/// Runs a tool, or says why not.
fn run(command: &mut Command) -> Option<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            skipped(&name, "not installed");
            return None;
        }
        Err(error) => panic!("{name}: {error}"),
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {text}{errors}");
    Some(text)
}

/// A server on Unix sockets in its own folder, which goes with it.
struct Server {
    handle: Handle,
    folder: PathBuf,
}

impl Server {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("dyno-null-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("folder");
        let handle = start(Config {
            mysql_port: Some(0),
            mysql_socket: Some(folder.join("mysql.sock")),
            postgres_port: Some(0),
            postgres_socket_dir: Some(folder.clone()),
            ..Config::default()
        });
        Server { handle: handle.expect("start"), folder }
    }

    fn sysbench(&self, driver: &str, script: &str, options: &[&str]) -> Option<String> {
        let mut command = Command::new("sysbench");
        command.args([script, "--threads=2"]).args(options);
        if driver == "mysql" {
            command.arg(format!("--mysql-socket={}", self.folder.join("mysql.sock").display()));
        } else {
            let port = self.handle.config.postgres_port.expect("a port");
            command.arg("--db-driver=pgsql").arg(format!("--pgsql-port={port}"));
            command.arg(format!("--pgsql-host={}", self.folder.display()));
        }
        run(&mut command)
    }

    fn pgbench(&self, program: &str, arguments: &[&str]) -> Option<String> {
        let port = self.handle.config.postgres_port.expect("a port").to_string();
        let mut command = Command::new(program);
        command.args(arguments).env("PGHOST", &self.folder).env("PGPORT", port);
        command.env("PGUSER", "tester").env("PGDATABASE", "db").env_remove("PGPASSWORD");
        run(&mut command)
    }

    fn stop(self) -> dyno_nullserver::Counters {
        let report = self.handle.stop().expect("stop");
        std::fs::remove_dir_all(&self.folder).expect("folder");
        assert_eq!(report.violations, Vec::<String>::new());
        report.counters
    }
}

fn prepare_and_run(driver: &str) -> Option<ProtocolCounters> {
    let server = Server::new(driver);
    let tables = ["--tables=2", "--table_size=3000"];
    server.sysbench(driver, "oltp_read_write", &[&tables[..], &["prepare"]].concat())?;
    let events = ["--events=500", "--time=0", "run"];
    let text = server.sysbench(driver, "oltp_read_write", &[&tables[..], &events].concat())?;
    assert!(text.contains("total:                           10000"), "{text}");
    let text = server.sysbench(driver, "oltp_point_select", &events)?;
    assert!(text.contains("queries:                             500 "), "{text}");
    let counters = server.stop();
    Some(if driver == "mysql" { counters.mysql } else { counters.postgres })
}

#[test]
fn sysbench_on_mysql() {
    let Some(counters) = prepare_and_run("mysql") else { return };
    assert_eq!((counters.rows_inserted, counters.ddl), (6_500, 4));
    assert_eq!((counters.execute, counters.select), (10_500, 14 * 500 + 500));
    assert_eq!(
        (counters.update, counters.delete, counters.begin, counters.commit),
        (1_000, 500, 500, 500)
    );
}

#[test]
fn sysbench_on_postgres() {
    let Some(counters) = prepare_and_run("pgsql") else { return };
    assert_eq!((counters.rows_inserted, counters.ddl), (6_500, 4));
    assert_eq!(counters.select, 14 * 500 + 500);
    assert_eq!(
        (counters.update, counters.delete, counters.begin, counters.commit),
        (1_000, 500, 500, 500)
    );
}

#[test]
fn sysbench_without_prepared_statements() {
    let server = Server::new("text");
    let options = ["--db-ps-mode=disable", "--events=300", "--time=0", "run"];
    for driver in ["mysql", "pgsql"] {
        if server.sysbench(driver, "oltp_read_write", &options).is_none() {
            return;
        }
    }
    let counters = server.stop();
    for counters in [counters.mysql, counters.postgres] {
        assert_eq!((counters.query, counters.execute, counters.statements()), (6_000, 0, 6_000));
    }
    // A point select has one row, a range 100 of them, a sum one.
    assert_eq!(counters.mysql.rows_sent, 300 * (10 + 3 * 100 + 1));
}

#[test]
fn other_sysbench_scripts() {
    let server = Server::new("scripts");
    let scripts = [
        "oltp_insert",
        "oltp_delete",
        "oltp_update_index",
        "select_random_points",
        "select_random_ranges",
    ];
    for script in scripts {
        let options = ["--events=100", "--time=0", "run"];
        if server.sysbench("mysql", script, &options).is_none() {
            return;
        }
    }
    let counters = server.stop().mysql;
    assert_eq!(
        (counters.insert, counters.delete, counters.update, counters.select),
        (100, 100, 100, 200)
    );
    assert_eq!(counters.rows_sent, 100 * 10 + 100);
}

#[test]
fn pgbench_in_all_its_modes() {
    let server = Server::new("pgbench");
    if server.pgbench("pgbench", &["-i", "-q", "-s", "2"]).is_none() {
        return;
    }
    for mode in ["simple", "extended", "prepared"] {
        let text = server.pgbench("pgbench", &["-M", mode, "-c", "4", "-t", "50"]);
        assert!(text.expect("installed").contains("processed: 200/200"));
        let text = server.pgbench("pgbench", &["-n", "-S", "-M", mode, "-c", "4", "-t", "100"]);
        assert!(text.expect("installed").contains("processed: 400/400"));
    }
    let counters = server.stop().postgres;
    assert_eq!(counters.rows_loaded, 200_000);
    assert_eq!(counters.update, 3 * 200 * 3);
    // Initializing and each TPC-B run begin with their own transaction, or none.
    assert_eq!((counters.begin, counters.commit), (601, 601));
    assert_eq!(counters.execute, 2 * (200 * 7 + 400));
}

#[test]
fn pgbench_pipelines() {
    let server = Server::new("pipeline");
    let script = server.folder.join("pipeline.sql");
    let select =
        "\\set aid random(1, 100000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n";
    std::fs::write(&script, format!("\\startpipeline\n{}\\endpipeline\n", select.repeat(20)))
        .expect("script");
    let file = script.to_string_lossy();
    if server
        .pgbench("pgbench", &["-n", "-M", "prepared", "-f", &file, "-c", "2", "-t", "50"])
        .is_none()
    {
        return;
    }
    assert_eq!(server.stop().postgres.execute, 2 * 50 * 20);
}

#[test]
fn real_clients_log_in_with_any_password() {
    let server = Server::new("password");
    let socket = format!("--socket={}", server.folder.join("mysql.sock").display());
    let mut mysql = Command::new("mysql");
    mysql.args([
        "--no-defaults",
        "--user=x",
        "--password=right",
        &socket,
        "-Ne",
        "SELECT VERSION()",
    ]);
    if let Some(text) = run(&mut mysql) {
        assert_eq!(text, "10.11.6-MariaDB\n");
    }
    let port = server.handle.config.postgres_port.expect("a port").to_string();
    let mut psql = Command::new("psql");
    psql.args(["-h", "127.0.0.1", "-p", &port, "-U", "x", "-Atc", "SHOW server_version", "db"]);
    if let Some(text) = run(psql.env("PGPASSWORD", "right")) {
        assert_eq!(text, "15.0\n");
    }
    server.stop();
}

#[test]
fn load_data_with_the_real_client() {
    let server = Server::new("load");
    let file = server.folder.join("rows.txt");
    std::fs::write(&file, "1\tsome text\tpad\n".repeat(50_000)).expect("rows");
    let socket = format!("--socket={}", server.folder.join("mysql.sock").display());
    let load =
        format!("LOAD DATA LOCAL INFILE '{}' INTO TABLE sbtest1 (k, c, pad)", file.display());
    let mut mysql = Command::new("mysql");
    mysql.args(["--no-defaults", "--local-infile=1", &socket, "-e", &load]);
    if run(&mut mysql).is_none() {
        return;
    }
    assert_eq!(server.stop().mysql.rows_loaded, 50_000);
}
