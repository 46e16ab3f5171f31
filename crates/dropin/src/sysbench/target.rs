//! From the connection options to a target. `--paper`: the command line as a suite.

use super::command_line::{CommandLine, Script};
use super::options::{DbDriver, IgnoredErrors, Settings};
use super::parse_sweep;
use dyno_core::{Dialect, ErrorClass};
use dyno_drivers::net::{Address, Hosts, TlsMode, TlsOptions};
use dyno_drivers::target::Spellings;
use dyno_drivers::{Secret, TargetUrl};
use dyno_engine::{ErrorPolicy, ErrorSet};
use dyno_runner::failure::Failure;
use dyno_runner::front_end::{LevelSuite, refusal};
use dyno_runner::output;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Sockets of MySQL servers by default.
const MYSQL_SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
];

const MYSQL_SPELLINGS: Spellings = &[
    ("tls=verify-full", "--mysql-ssl=VERIFY_IDENTITY"),
    ("tls=verify-ca", "--mysql-ssl=VERIFY_CA"),
    ("tls=require", "--mysql-ssl=REQUIRED"),
    ("tls=prefer", "--mysql-ssl=PREFERRED"),
    ("tls=disable", "--mysql-ssl=DISABLED"),
    ("cert=FILE and key=FILE", "--mysql-ssl-cert=FILE and --mysql-ssl-key=FILE"),
    ("ca=FILE", "--mysql-ssl-ca=FILE"),
    ("allow_cleartext=true", "--mysql-allow-cleartext=on"),
    ("user and password", "user and password (--mysql-user, --mysql-password)"),
    ("in the URL or in ~/.my.cnf", "with --mysql-password"),
    (" in the URL", ""),
];

const PGSQL_SPELLINGS: Spellings = &[
    ("tls=", "--pgsql-sslmode="),
    ("name and password", "name and password (--pgsql-user, --pgsql-password)"),
    ("ca=FILE", "--pgsql-sslrootcert=FILE"),
    ("allow_cleartext=true", "--pgsql-allow-cleartext=on"),
    (" in the URL", ""),
];

/// The target that the options describe. Passwords that were not given are taken from
/// `environment`.
pub(super) fn target(
    settings: &Settings,
    environment: impl Fn(&str) -> Option<String>,
) -> TargetUrl {
    // A server that does not answer is given up when the time of --thread-init-timeout is over.
    let seconds = settings.thread_init_timeout_s.to_string();
    let mut options = BTreeMap::from([("connect_timeout_s".to_owned(), seconds)]);
    let mut set_if = |condition: bool, name: &str, value: &str| {
        if condition {
            options.insert(name.to_owned(), value.to_owned());
        }
    };
    let (dialect, server, variable, spellings) = match settings.db_driver {
        DbDriver::Mysql => {
            // As sysbench's client library does.
            set_if(true, "get_server_public_key", "true");
            set_if(settings.mysql_compression, "compression", "zlib");
            let key = &settings.mysql_server_public_key;
            set_if(!key.is_empty(), "server_public_key", key);
            (Dialect::Mysql, &settings.mysql, "MYSQL_PWD", MYSQL_SPELLINGS)
        }
        DbDriver::Pgsql => {
            let encoding = environment("PGCLIENTENCODING").unwrap_or_default();
            set_if(!encoding.is_empty(), "set.client_encoding", &encoding);
            (Dialect::Postgres, &settings.pgsql, "PGPASSWORD", PGSQL_SPELLINGS)
        }
        DbDriver::Sqlite => {
            return TargetUrl {
                dialect: Dialect::Sqlite,
                hosts: Hosts(Vec::new()),
                user: None,
                password: None,
                database: Some(settings.sqlite_db.to_string_lossy().into_owned()),
                tls: TlsOptions::default(),
                options: BTreeMap::new(),
                spellings: &[],
            };
        }
    };
    set_if(server.allow_cleartext, "allow_cleartext", "true");
    TargetUrl {
        dialect,
        hosts: Hosts(addresses(settings, Path::exists)),
        user: Some(server.user.clone()),
        password: server.password.clone().or_else(|| environment(variable).map(Secret::new)),
        database: Some(server.db.clone()).filter(|name| !name.is_empty()),
        tls: tls_options(settings, Path::exists),
        options,
        spellings,
    }
}

/// Hosts and ports in the order in which sysbench takes them: all ports of the first host, then
/// all of the next. Sockets replace both.
fn addresses(settings: &Settings, exists: impl Fn(&Path) -> bool) -> Vec<Address> {
    let is_mysql = settings.db_driver == DbDriver::Mysql;
    if is_mysql && !settings.mysql_sockets.is_empty() {
        return settings.mysql_sockets.iter().cloned().map(Address::Unix).collect();
    }
    let server = if is_mysql { &settings.mysql } else { &settings.pgsql };
    let socket = MYSQL_SOCKETS.iter().map(Path::new).find(|path| is_mysql && exists(path));
    // The client library takes the socket even when a port is given, which no one means.
    let socket = socket.filter(|_| !settings.mysql_port_given);
    let mut addresses = Vec::new();
    for host in &server.hosts {
        match socket {
            Some(socket) if host == "localhost" => addresses.push(Address::Unix(socket.to_owned())),
            _ => addresses.extend(server.ports.iter().map(|&port| {
                if host.starts_with('/') && !is_mysql {
                    Address::Unix(Path::new(host).join(format!(".s.PGSQL.{port}")))
                } else {
                    Address::Tcp { host: host.clone(), port }
                }
            })),
        }
    }
    addresses
}

fn tls_options(settings: &Settings, exists: impl Fn(&Path) -> bool) -> TlsOptions {
    if settings.db_driver == DbDriver::Pgsql {
        return settings.pgsql.tls.clone();
    }
    let mut tls = settings.mysql.tls.clone();
    let has_files = tls.ca.is_some() || tls.cert.is_some() || tls.key.is_some();
    if has_files && !settings.mysql_ssl_given {
        tls.mode = TlsMode::Require;
    }
    if settings.mysql_ssl_here {
        // The names that 1.0 looks for.
        for (file, name) in [
            (&mut tls.ca, "cacert.pem"),
            (&mut tls.cert, "client-cert.pem"),
            (&mut tls.key, "client-key.pem"),
        ] {
            if file.is_none() && exists(Path::new(name)) {
                *file = Some(PathBuf::from(name));
            }
        }
    }
    tls
}

/// The reaction to errors: as in sysbench the errors of the list are tried again without end, every
/// other one ends the run. Unlike there, a failed attempt of a built-in test is rolled back first.
pub(super) fn error_policy(settings: &Settings) -> ErrorPolicy {
    let IgnoredErrors { retry, reconnect } = match settings.db_driver {
        DbDriver::Mysql => settings.mysql.ignore_errors.clone(),
        DbDriver::Pgsql => settings.pgsql.ignore_errors.clone(),
        DbDriver::Sqlite => {
            // sysbench has no SQLite driver; a busy database is its deadlock.
            let retry = ErrorSet { classes: vec![ErrorClass::LockTimeout], ..ErrorSet::default() };
            IgnoredErrors { retry, reconnect: false }
        }
    };
    ErrorPolicy {
        retry,
        max_retries: None,
        tolerate: ErrorSet::default(),
        reconnect,
        retire: false,
        pause: 0,
        ..ErrorPolicy::resilient()
    }
}

/// Options that measure otherwise than a suite does, or write what a run folder has its own place for.
const UNSUITED: [&str; 9] = [
    "mysql-dry-run",
    "forced-shutdown",
    "report-checkpoints",
    "json",
    "loops",
    "lua-memory",
    "mysql-ignore-errors",
    "pgsql-ignore-errors",
    "debug",
];

/// The suite that the words amount to; `None` if they ask for no paper, or can't be read.
///
/// # Errors
/// The words ask for something that a run with a paper can't do.
pub(super) fn paper_of_words(words: &[String]) -> Result<Option<LevelSuite>, Failure> {
    let (mut own, mut workers) = (words.to_vec(), None);
    if let Some((at, levels)) = parse_sweep(words) {
        own[at] = format!("--threads={}", levels[0]);
        workers = Some(levels);
    }
    let Ok(line) = super::command_line::read(&own) else { return Ok(None) };
    if !line.settings.paper || line.settings.help || line.settings.version {
        return Ok(None);
    }
    let workers = workers.unwrap_or_else(|| vec![line.settings.threads]);
    build_suite(&line, workers).map(Some)
}

fn build_suite(line: &CommandLine, workers: Vec<u32>) -> Result<LevelSuite, Failure> {
    let settings = &line.settings;
    if line.command.as_deref() != Some("run") {
        return Err(Failure::new("--paper is for the command run").with_hint("leave it out"));
    }
    if let Some((option, _)) = line.given.iter().find(|(name, _)| UNSUITED.contains(name)) {
        let (message, hint) = refusal(&format!("--{option}"));
        return Err(Failure::new(message).with_hint(hint));
    }
    if settings.time_s == 0 && settings.events == 0 {
        let message = "--paper needs an end: both event and time limits are disabled";
        return Err(Failure::new(message).with_hint("give --time or --events"));
    }
    let mut suite = LevelSuite {
        front_end: "sysbench",
        workload: "sysbench",
        test: String::new(),
        target: target(settings, |name| std::env::var(name).ok()),
        workers,
        keys: vec![("warmup_s", settings.warmup_s.into())],
        options: line.pairs.clone(),
        scripts: Vec::new(),
        seed: Some(settings.rand_seed).filter(|seed| *seed > 0),
    };
    let limits = [
        ("duration_s", settings.time_s),
        ("events", settings.events),
        ("rate", settings.rate_per_s),
        ("interval_s", settings.report_interval_s),
        ("percentiles", settings.percentile.into()),
    ];
    suite.keys.extend(limits.iter().filter(|(_, n)| *n > 0).map(|&(key, n)| (key, n.into())));
    match &line.script {
        Script::Test(test) => suite.test = test.name().to_owned(),
        Script::Lua(path) if path != dyno_lua::STANDARD_INPUT => {
            let text = fs::read_to_string(path)
                .map_err(|error| Failure::new(format!("{path} can't be read: {error}")))?;
            if text.contains("report_intermediate") || text.contains("report_cumulative") {
                output::talk(
                    "note: --paper does not call a script's hooks for reports: the paper has the \
                     figures.",
                );
            }
            let file = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
            suite.workload = "lua";
            suite.test = file.into_owned();
            suite.keys.push(("script", format!("{path}@1").into()));
            suite.scripts.push((path.clone(), text));
            let options = line.script_options.iter().map(|(name, argument)| {
                (name.clone(), argument.clone().unwrap_or_else(|| "on".to_owned()))
            });
            suite.options = options.collect();
        }
        _ => {
            let message = "--paper needs a test of a database, or the file of a script";
            return Err(Failure::new(message).with_hint("--help lists the tests"));
        }
    }
    // A later option replaces an earlier one; a suite has each once.
    let mut options: Vec<(String, String)> = Vec::new();
    for (name, value) in suite.options {
        let name = name.replace('-', "_");
        options.retain(|(other, _)| *other != name);
        options.push((name, value));
    }
    suite.options = options;
    Ok(suite)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysbench::command_line::read;
    use dyno_core::DbError;
    use dyno_engine::Action;
    use serde_json::Value;

    fn settings(words: &[&str]) -> Settings {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        read(&words).expect("a good command line").settings
    }

    fn addresses(words: &[&str], sockets_exist: bool) -> Vec<String> {
        let addresses = super::addresses(&settings(words), |_| sockets_exist);
        addresses.iter().map(Address::to_string).collect()
    }

    #[test]
    fn ports_rotate_before_hosts_and_sockets_replace_both() {
        let hosts = addresses(&["--mysql-host=a,b", "--mysql-port=1,2"], false);
        assert_eq!(hosts, ["a:1", "a:2", "b:1", "b:2"]);
        let sockets = addresses(&["--mysql-host=a", "--mysql-socket=/x,/y"], false);
        assert_eq!(sockets, ["/x", "/y"]);
        let pgsql =
            addresses(&["--db-driver=pgsql", "--pgsql-host=a,/run", "--pgsql-port=7"], false);
        assert_eq!(pgsql, ["a:7", "/run/.s.PGSQL.7"]);
    }

    #[test]
    fn localhost_is_the_socket_unless_a_port_is_given() {
        assert_eq!(addresses(&[], true), ["/run/mysqld/mysqld.sock"]);
        assert_eq!(addresses(&[], false), ["localhost:3306"]);
        assert_eq!(addresses(&["--mysql-port=3307"], true), ["localhost:3307"]);
        assert_eq!(addresses(&["--mysql-host=127.0.0.1"], true), ["127.0.0.1:3306"]);
    }

    #[test]
    fn passwords_come_from_the_command_line_before_the_environment() {
        let cases: [(&[&str], Option<&str>); 3] = [
            (&["--mysql-password=typed"], Some("typed")),
            (&[], Some("env")),
            (&["--db-driver=pgsql"], None),
        ];
        for (words, expected) in cases {
            let target =
                target(&settings(words), |name| (name == "MYSQL_PWD").then(|| "env".to_owned()));
            let password = target.password.map(|password| password.reveal().to_owned());
            assert_eq!(password.as_deref(), expected);
        }
    }

    fn tls(words: &[&str], files_exist: bool) -> TlsOptions {
        super::tls_options(&settings(words), |_| files_exist)
    }

    #[test]
    fn tls_of_1_0_uses_the_files_of_the_working_directory_if_they_exist() {
        assert_eq!(tls(&[], true).mode, TlsMode::Disable);
        let on = tls(&["--mysql-ssl=on"], true);
        assert_eq!((on.mode, on.ca), (TlsMode::Prefer, Some("cacert.pem".into())));
        assert_eq!(tls(&["--mysql-ssl=on"], false).key, None);
        let required = tls(&["--mysql-ssl=REQUIRED", "--mysql-ssl-ca=/x.pem"], true);
        assert_eq!((required.mode, required.ca), (TlsMode::Require, Some("/x.pem".into())));
        // A file alone asks for TLS, which the original then leaves off.
        assert_eq!(tls(&["--mysql-ssl-ca=/x.pem"], true).mode, TlsMode::Require);
        assert_eq!(tls(&["--mysql-ssl-ca=/x.pem", "--mysql-ssl=off"], true).mode, TlsMode::Disable);
    }

    fn server_error(errno: u32, state: [u8; 5]) -> DbError {
        DbError::server(ErrorClass::Other, errno, state, "words")
    }

    #[test]
    fn ignored_errors_are_tried_again_and_others_end_the_run() {
        let policy = error_policy(&settings(&[]));
        assert_eq!(policy.action(&server_error(1213, *b"40001"), 1_000), Action::Retry);
        assert_eq!(policy.action(&server_error(1062, *b"23000"), 0), Action::Abort);
        assert_eq!(policy.action(&DbError::lost("gone"), 0), Action::Abort);
        let policy = error_policy(&settings(&["--mysql-ignore-errors=1062,2013"]));
        assert_eq!(policy.action(&server_error(1062, *b"23000"), 0), Action::Retry);
        assert_eq!(policy.action(&DbError::lost("gone"), 0), Action::Retry);
        let policy = error_policy(&settings(&["--db-driver=pgsql"]));
        assert_eq!(policy.action(&server_error(0, *b"40001"), 0), Action::Retry);
        assert_eq!(policy.action(&server_error(0, *b"42P01"), 0), Action::Abort);
        let policy = error_policy(&settings(&["--mysql-ignore-errors=all"]));
        assert_eq!(policy.action(&server_error(1, *b"HY000"), 0), Action::Retry);
        for nothing in ["none", ""] {
            let policy = error_policy(&settings(&[&format!("--mysql-ignore-errors={nothing}")]));
            assert_eq!(policy.action(&server_error(1213, *b"40001"), 0), Action::Abort);
            let option = format!("--pgsql-ignore-errors={nothing}");
            let policy = error_policy(&settings(&["--db-driver=pgsql", &option]));
            assert_eq!(policy.action(&server_error(0, *b"40001"), 0), Action::Abort);
        }
    }

    fn parse_paper(line: &str) -> Result<Option<LevelSuite>, Failure> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        super::paper_of_words(&words)
    }

    #[test]
    fn a_command_line_is_a_suite_of_its_levels() {
        let line = "--threads=1,2,4 --time=5 --rate=10 --table-size=7 --table_size=9 --rand-seed=3 \
                    --mysql-host=db1 --mysql-password=a/b oltp_read_only run --paper";
        let suite = parse_paper(line).expect("a suite").expect("a paper");
        assert_eq!(
            (suite.workers, suite.seed, &*suite.test),
            (vec![1, 2, 4], Some(3), "oltp_read_only")
        );
        assert_eq!(suite.options, [("table_size".to_owned(), "9".to_owned())]);
        assert!(suite.keys.contains(&("rate", Value::from(10))), "{:?}", suite.keys);
        assert!(suite.target.reveal().reveal().contains("sbtest:a%2Fb@db1:3306/sbtest"));
        assert!(parse_paper("--threads=1,2 oltp_read_only run").expect("none").is_none());
    }

    #[test]
    fn what_a_paper_has_no_place_for_is_refused() {
        for (line, said) in [
            ("--json=x oltp_read_only run --paper", "--json and --paper"),
            ("--time=0 oltp_read_only run --paper", "needs an end"),
            ("oltp_read_only prepare --paper", "command run"),
            ("cpu run --paper", "a test of a database"),
        ] {
            let failure = parse_paper(line).expect_err(line);
            assert!(failure.message.to_string().contains(said), "{line}: {}", failure.message);
        }
    }
}
