//! Work of users on each of their servers: MySQL 9.7, MariaDB 11.8 and PostgreSQL 18. Statements, login methods,
//! bulk loads, cancels and sysbench's whole way on them stand in `tests/databases`.

use dyno_core::Cause;
use dyno_facts::TrialStatus;
use dyno_testkit::{
    Certificates, MariaDb, MySql, Postgres, RunningDyno, Scratch, dyno, only_run, query_url,
    skipped, wait_until,
};
use std::fs;

/// The differences of the servers.
struct UsedServer {
    scheme: &'static str,
    port: u16,
    /// Users: one who may do all, and one who may not write where the server is read-only.
    users: [&'static str; 2],
    /// Certificates of servers with TLS.
    certificates: Option<Certificates>,
    /// Beginning of its version.
    version: &'static str,
    isolation: &'static str,
    setting: (&'static str, &'static str),
    /// The sessions of others on the database.
    sessions: &'static str,
    kill: fn(&str) -> String,
    read_only: ReadOnly,
}

/// Statements that make a server read-only and take that back, and one that shows it.
struct ReadOnly {
    on: &'static [&'static str],
    off: &'static [&'static str],
    shown: (&'static str, &'static str),
}

const MYSQL_READ_ONLY: ReadOnly = ReadOnly {
    on: &[
        "CREATE USER plain@'%'",
        "GRANT ALL ON sbtest.* TO plain@'%'",
        "SET GLOBAL read_only = ON",
    ],
    off: &["SET GLOBAL read_only = OFF"],
    shown: ("SELECT @@global.read_only", "1"),
};

const POSTGRES_READ_ONLY: ReadOnly = ReadOnly {
    on: &["ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"],
    off: &["ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()"],
    shown: ("SHOW default_transaction_read_only", "on"),
};

impl UsedServer {
    fn mysql(port: u16, certificates: Certificates) -> Self {
        UsedServer {
            scheme: "mysql",
            port,
            users: ["root", "plain"],
            certificates: Some(certificates),
            version: "9.7.",
            isolation: "REPEATABLE-READ",
            setting: ("innodb_flush_log_at_trx_commit", "2"),
            sessions: "SELECT id FROM information_schema.processlist \
                       WHERE db = 'sbtest' AND id <> connection_id()",
            kill: |id| format!("KILL {id}"),
            read_only: MYSQL_READ_ONLY,
        }
    }

    fn postgres(port: u16, certificates: Option<Certificates>) -> Self {
        UsedServer {
            scheme: "postgres",
            port,
            users: ["postgres"; 2],
            certificates,
            version: "",
            isolation: "READ COMMITTED",
            setting: ("fsync", "off"),
            sessions: "SELECT pid FROM pg_stat_activity WHERE datname = 'sbtest' \
                       AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
            kill: |id| format!("SELECT pg_terminate_backend({id})"),
            read_only: POSTGRES_READ_ONLY,
        }
    }

    fn url_for(&self, user: &str) -> String {
        format!("{}://{user}@127.0.0.1:{}/sbtest", self.scheme, self.port)
    }

    fn url(&self) -> String {
        self.url_for(self.users[0])
    }

    /// The first column of an answer.
    fn sql(&self, sql: &str) -> Vec<String> {
        let answer = query_url(&self.url(), sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        answer.rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect()
    }
}

fn everything(server: &UsedServer) {
    a_suite_knows_the_server(server);
    another_certificate_is_refused(server);
    pgbench_goes_its_way_until_its_sessions_are_killed(server);
    a_read_only_server_is_named(server);
}

/// Loads, runs, checks and cleans up; settings, isolation and log-in are what they are.
fn a_suite_knows_the_server(server: &UsedServer) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let proven = server.certificates.as_ref();
    let options = proven.map(|proven| format!("?tls=verify-full&ca={}", proven.ca()));
    let text = format!(
        "[suite]\nname = \"matrix\"\n\n[target.main]\nurl = \"{}{}\"\n\n[[experiment]]\nname = \"e\"\n\
         workload = \"sysbench\"\ntest = \"oltp_read_write\"\nworkers = [2]\nwarmup_s = 0\n\
         duration_s = 1\noptions = {{ tables = 2, table_size = 1000 }}\n",
        server.url(),
        options.unwrap_or_default()
    );
    fs::write(folder.join("matrix.toml"), text).expect("the suite can be written");
    let output = dyno(folder, &["run", "matrix.toml"]);
    assert_eq!(output.code, 0, "{output}");
    assert!(!output.to_string().contains("no lock keeps other runs away"), "{output}");
    let run = only_run(&folder.join("dyno-runs")).expect("a run");
    let data = dyno_store::read(&run).expect("it can be read");
    let trial = &data.trials[0];
    assert_eq!(trial.summary.status, TrialStatus::Complete);
    let before = &trial.before["main"];
    assert!(before.version.starts_with(server.version), "{}", before.version);
    assert!(before.not_readable.is_empty(), "{:?}", before.not_readable);
    let (name, value) = server.setting;
    assert_eq!(before.settings.get(name).map(String::as_str), Some(value));
    let node = &trial.summary.conditions.nodes["main"];
    assert_eq!(node.isolation.as_deref(), Some(server.isolation));
    let log_in = before.log_in.as_ref().expect("a log-in");
    assert_eq!((log_in.tls.is_some(), log_in.is_verified), (proven.is_some(), proven.is_some()));
    let tables = "SELECT count(*) FROM information_schema.tables WHERE table_name LIKE 'sbtest%'";
    assert_eq!(server.sql(tables), ["0"], "they were dropped");
}

fn another_certificate_is_refused(server: &UsedServer) {
    let Some(certificates) = &server.certificates else { return };
    let other_ca = certificates.file("other.pem").display().to_string();
    let url = format!("{}?tls=verify-full&ca={other_ca}", server.url());
    assert_eq!(query_url(&url, "SELECT 1").expect_err("another CA").cause(), Cause::Tls);
}

fn pgbench_goes_its_way_until_its_sessions_are_killed(server: &UsedServer) {
    let scratch = Scratch::new();
    let url = server.url();
    let run_pgbench = |words: &str| {
        let arguments = ["pgbench", "--target", &url].into_iter().chain(words.split(' '));
        dyno(scratch.path(), &arguments.collect::<Vec<_>>()).good()
    };
    run_pgbench("-i -q");
    let balanced = run_pgbench("-c 2 -t 20 -M prepared --check-balances");
    assert!(balanced.stderr.contains("balances agree"), "{balanced}");
    let endless = ["pgbench", "--target", &url, "-c", "2", "-T", "60", "-P", "1"];
    let mut running = RunningDyno::start(scratch.path(), &endless);
    running.wait_until("a report", |running| running.stderr().contains("progress: "));
    for id in server.sql(server.sessions) {
        // It may have ended by itself.
        let _ = query_url(&url, &(server.kill)(&id));
    }
    let output = running.end();
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains("2 of 2 clients stopped after an error"), "{output}");
    run_pgbench("-i -I d");
}

fn a_read_only_server_is_named(server: &UsedServer) {
    let ReadOnly { on, off, shown: (shown, value) } = server.read_only;
    on.iter().for_each(|sql| drop(server.sql(sql)));
    wait_until("a read-only server", || server.sql(shown) == [value]);
    let (user, port) = (server.users[1], server.port);
    let driver = if server.scheme == "mysql" { "mysql" } else { "pgsql" };
    let prepare = format!(
        "sysbench --db-driver={driver} --{driver}-host=127.0.0.1 --{driver}-port={port} \
         --{driver}-user={user} --{driver}-db=sbtest --table-size=10 oltp_insert prepare"
    );
    let bench = format!("bench {} --yes", server.url_for(user));
    for line in [prepare, bench] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let output = dyno(Scratch::new().path(), &words);
        assert!([1, 2].contains(&output.code), "{line}: {output}");
        assert!(output.to_string().contains("read-only"), "{line}: {output}");
    }
    off.iter().for_each(|sql| drop(server.sql(sql)));
}

/// The server's options for its certificates.
fn mysql_options(certificates: &Certificates) -> [String; 3] {
    [("ssl-ca", "ca.pem"), ("ssl-cert", "server.pem"), ("ssl-key", "server.key")]
        .map(|(option, name)| format!("--{option}={}", certificates.file(name).display()))
}

#[test]
fn mysql_9_7_is_used() {
    let started = Certificates::make().and_then(|certificates| {
        let options = mysql_options(&certificates);
        let server = MySql::start_with(&options.each_ref().map(String::as_str))?;
        Ok((server, certificates))
    });
    match started {
        Ok((server, certificates)) => everything(&UsedServer::mysql(server.port, certificates)),
        Err(why) => skipped("mysql_9_7_is_used", &why),
    }
}

#[test]
fn mariadb_11_8_is_used() {
    let started = Certificates::make().and_then(|certificates| {
        let options = mysql_options(&certificates);
        let server = MariaDb::start_fetched_with(&options.each_ref().map(String::as_str))?;
        Ok((server, certificates))
    });
    match started {
        Ok((server, certificates)) => everything(&UsedServer {
            version: "11.8.",
            setting: ("innodb_flush_log_at_trx_commit", "1"),
            ..UsedServer::mysql(server.port, certificates)
        }),
        Err(why) => skipped("mariadb_11_8_is_used", &why),
    }
}

/// Was built without TLS.
#[test]
fn postgres_18_is_used() {
    match Postgres::start_fetched() {
        Ok(server) => {
            everything(&UsedServer { version: "18.", ..UsedServer::postgres(server.port, None) })
        }
        Err(why) => skipped("postgres_18_is_used", &why),
    }
}

#[test]
fn postgres_is_used_by_tls() {
    let started = Certificates::make().and_then(|certificates| {
        let certificate_path = |name: &str| certificates.file(name).display().to_string();
        let tls_settings = [
            format!("ssl_cert_file={}", certificate_path("server.pem")),
            format!("ssl_key_file={}", certificate_path("own.key")),
        ];
        let [cert, key] = tls_settings.each_ref().map(String::as_str);
        let options = ["-c", "fsync=off", "-c", "ssl=on", "-c", cert, "-c", key];
        Ok((Postgres::start_with(&options)?, certificates))
    });
    match started {
        Ok((server, certificates)) => {
            everything(&UsedServer::postgres(server.port, Some(certificates)));
        }
        Err(why) => skipped("postgres_is_used_by_tls", &why),
    }
}
