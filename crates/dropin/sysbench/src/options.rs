//! The general options: one table for parsing and for help.
//!
//! The options of the tests, of the random numbers and `--db-ps-mode` are in
//! `dyno_sysbench::OPTIONS`.

use super::settings::{DbDriver, ForcedShutdown, IgnoredErrors, MysqlSsl, ReportFormat, Settings};
use super::values::{list, size, switch, whole, whole_list, word};
use dyno_drivers::Secret;
use dyno_drivers::net::TlsMode;
use dyno_runner::percentiles::percentiles;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `on` or `off`; `--name` alone is `on`.
    Switch,
    /// A number; an empty value leaves the default.
    Number,
    /// A number with a unit; an empty value leaves the default.
    Size,
    Text,
    /// Texts with commas between them.
    List,
    File,
}

/// The heading under which help lists an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    General,
    Random,
    Log,
    Statistics,
    Database,
    Mysql,
    Pgsql,
    /// What sysbench 1.0.20 does not have.
    Dyno,
}

pub(super) struct GeneralOption {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) default: &'static str,
    pub(super) help: &'static str,
    pub(super) group: Group,
    /// The error says what the value must be.
    pub(super) set: fn(&mut Settings, &str) -> Result<(), String>,
}

impl GeneralOption {
    /// True when an empty value means something of its own instead of the default.
    pub(super) fn takes_empty(&self) -> bool {
        !matches!(self.kind, Kind::Number | Kind::Size)
    }

    /// True when the name alone, without `=`, means something.
    pub(super) fn stands_alone(&self) -> bool {
        // `--mysql-ssl` is on; `--forced-shutdown` is a twentieth of the time.
        self.kind == Kind::Switch || ["mysql-ssl", "forced-shutdown"].contains(&self.name)
    }
}

impl Settings {
    pub(super) fn new() -> Self {
        let mut settings = Settings::default();
        for option in OPTIONS.iter().filter(|option| !option.default.is_empty()) {
            (option.set)(&mut settings, option.default)
                .expect("a test sets every default of the table");
        }
        settings.mysql.port_given = false;
        settings
    }
}

const THREADS_MAX: u64 = 100_000;
const SECONDS_MAX: u64 = 100_000_000;

fn secret(value: &str) -> Option<Secret> {
    (!value.is_empty()).then(|| Secret::new(value))
}

fn path(value: &str) -> Option<std::path::PathBuf> {
    (!value.is_empty()).then(|| value.into())
}

fn texts(value: &str) -> Vec<String> {
    list(value).map(str::to_owned).collect()
}

fn compressions(value: &str) -> Result<String, String> {
    let is_known = |name: &str| ["zlib", "zstd", "uncompressed"].contains(&name);
    match texts(value) {
        names if !names.is_empty() && names.iter().all(|name| is_known(name)) => {
            Ok(names.join(","))
        }
        _ => Err("zlib, zstd or uncompressed, or several of them with commas".to_owned()),
    }
}

/// A list in words, of each driver.
fn all_or_none(value: &str) -> Option<IgnoredErrors> {
    match value {
        "all" => Some(IgnoredErrors::All),
        "none" | "" => Some(IgnoredErrors::None),
        _ => None,
    }
}

fn mysql_errors(value: &str) -> Result<IgnoredErrors, String> {
    if let Some(ignored) = all_or_none(value) {
        return Ok(ignored);
    }
    whole_list::<u32>(value, 1, 65_535)
        .map(|codes| IgnoredErrors::Codes(codes.iter().map(u32::to_string).collect()))
        .map_err(|_| "all, none, or a list of MySQL's error numbers with commas".to_owned())
}

fn pgsql_errors(value: &str) -> Result<IgnoredErrors, String> {
    if let Some(ignored) = all_or_none(value) {
        return Ok(ignored);
    }
    let is_state =
        |code: &str| code.len() == 5 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let codes = texts(value);
    if codes.iter().all(|code| is_state(code)) {
        return Ok(IgnoredErrors::Codes(codes));
    }
    Err("all, none, or a list of SQLSTATEs (five letters or digits) with commas".to_owned())
}

macro_rules! option {
    ($group:ident $kind:ident $name:literal [$default:literal] $help:literal,
     |$settings:ident, $value:ident| $set:expr) => {
        GeneralOption {
            name: $name,
            kind: Kind::$kind,
            default: $default,
            help: $help,
            group: Group::$group,
            set: |$settings: &mut Settings, $value: &str| {
                $set;
                Ok(())
            },
        }
    };
}

/// All general options but `--config-file` and the deprecated names, which the reader of the
/// command line handles itself, in sysbench's order.
pub(super) const OPTIONS: &[GeneralOption] = &[
    option!(General Number "threads" ["1"] "Workers; each has a connection of its own",
        |s, v| s.threads = whole(v, 1, THREADS_MAX)?),
    option!(General Number "events" ["0"] "Stop after this many transactions; 0 is no limit",
        |s, v| s.events = whole(v, 0, u64::MAX)?),
    option!(General Number "time" ["10"] "Stop after this many seconds; 0 is no limit",
        |s, v| s.time_s = whole(v, 0, SECONDS_MAX)?),
    option!(General Text "forced-shutdown" ["off"]
        "How long transactions may go on after --time before they are cut off: seconds, a \
         percentage of --time, or off; a cut ends with exit code 2",
        |s, v| s.forced_shutdown = ForcedShutdown::parse(v)?),
    option!(General Size "thread-stack-size" ["64K"]
        "Accepted for old scripts; workers need no stack of their own",
        |_s, v| size(v)?),
    option!(General Number "rate" ["0"]
        "Transactions per second to start, whatever the answers; latency counts from the due \
         time; 0 is as fast as answers come",
        |s, v| s.rate_per_s = whole(v, 0, 1_000_000_000)?),
    option!(General Number "report-interval" ["0"]
        "Print a line of statistics every so many seconds; 0 prints none",
        |s, v| s.report_interval_s = whole(v, 0, SECONDS_MAX)?),
    option!(General List "report-checkpoints" [""]
        "Print a full report and start counting anew at these times, in seconds from the start",
        |s, v| s.report_checkpoints_s = whole_list(v, 1, SECONDS_MAX)?),
    option!(General Switch "debug" ["off"] "Print more about what goes on",
        |s, v| s.debug = switch(v)?),
    option!(General Switch "validate" ["off"] "Accepted for old scripts; the database tests have \
         nothing to validate",
        |s, v| s.validate = switch(v)?),
    option!(General Switch "help" ["off"] "Print this help and exit",
        |s, v| s.help = switch(v)?),
    option!(General Switch "version" ["off"] "Print the version and exit",
        |s, v| s.version = switch(v)?),
    option!(Random Number "rand-seed" ["0"]
        "Seed of all random numbers of prepare and run; 0 is the current time for run, and \
         always the same rows for prepare",
        |s, v| s.rand_seed = whole(v, 0, u64::MAX)?),
    option!(Log Number "verbosity" ["3"] "How much is printed, from 0 (fatal errors only) to 5",
        |s, v| s.verbosity = whole(v, 0, 5)?),
    option!(Statistics Number "percentile" ["95"]
        "Percentile of the latency to print, from 1 to 100; 0 prints none",
        |s, v| s.percentile = whole(v, 0, 100)?),
    option!(Statistics Switch "histogram" ["off"] "Print a histogram of the latency",
        |s, v| s.histogram = switch(v)?),
    option!(Database Text "db-driver" ["mysql"] "Kind of database: mysql, pgsql or sqlite",
        |s, v| s.db_driver = word(v, &DbDriver::NAMES)?),
    option!(Database Switch "db-debug" ["off"] "Accepted for old scripts; without effect",
        |_s, v| switch(v)?),
    option!(Mysql List "mysql-host" ["localhost"] "Hosts of the servers",
        |s, v| s.mysql.hosts = texts(v)),
    option!(Mysql List "mysql-port" ["3306"] "Ports of the servers",
    |s, v| {
        s.mysql.ports = whole_list(v, 1, 65_535)?;
        s.mysql.port_given = true;
    }),
    option!(Mysql List "mysql-socket" [""] "Unix sockets of the servers, instead of host and port",
        |s, v| s.mysql.sockets = list(v).map(Into::into).collect()),
    option!(Mysql Text "mysql-user" ["sbtest"] "User", |s, v| s.mysql.user = v.to_owned()),
    option!(Mysql Text "mysql-password" [""]
        "Password; without it the environment variable MYSQL_PWD is used",
        |s, v| s.mysql.password = secret(v)),
    option!(Mysql Text "mysql-db" ["sbtest"] "Database", |s, v| s.mysql.db = v.to_owned()),
    option!(Mysql Text "mysql-ssl" ["off"]
        "TLS: on (with client-key.pem, client-cert.pem and cacert.pem of the working directory, \
         where they exist), off, DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY",
        |s, v| s.mysql.ssl = MysqlSsl::parse(v)?),
    option!(Mysql File "mysql-ssl-key" [""] "The client's private key, PEM",
        |s, v| s.mysql.ssl_key = path(v)),
    option!(Mysql File "mysql-ssl-cert" [""] "The client's certificate, PEM",
        |s, v| s.mysql.ssl_cert = path(v)),
    option!(Mysql File "mysql-ssl-ca" [""] "Certificates of the trusted authorities, PEM",
        |s, v| s.mysql.ssl_ca = path(v)),
    option!(Mysql Text "mysql-ssl-cipher" [""] "Known from sysbench; must be left empty",
    |_s, v| if !v.is_empty() {
        return Err("left out: dyno chooses the cipher itself".to_owned());
    }),
    option!(Mysql Switch "mysql-compression" ["off"] "Compress the protocol",
        |s, v| s.mysql.compression = switch(v)?),
    option!(Mysql List "mysql-compression-algorithms" ["zlib"]
        "With --mysql-compression: zlib, zstd (of MySQL only) and uncompressed, of which the first is taken that the \
         server has",
        |s, v| s.mysql.compression_algorithms = compressions(v)?),
    option!(Mysql Switch "mysql-debug" ["off"] "Accepted for old scripts; without effect",
        |_s, v| switch(v)?),
    option!(Mysql List "mysql-ignore-errors" ["1213,1020,1205"]
        "Errors after which a transaction is tried again, by number, all or none; \
         with 2006, 2011, 2013 or 2055 among them, lost connections are made again",
        |s, v| s.mysql.ignore_errors = mysql_errors(v)?),
    option!(Mysql Switch "mysql-dry-run" ["off"]
        "Of a built-in test's run: make and count the statements, but send nothing and connect to no server",
        |s, v| s.mysql.dry_run = switch(v)?),
    option!(Pgsql List "pgsql-host" ["localhost"]
        "Hosts of the servers; a path is the folder of a unix socket",
        |s, v| s.pgsql.hosts = texts(v)),
    option!(Pgsql List "pgsql-port" ["5432"] "Ports of the servers",
        |s, v| s.pgsql.ports = whole_list(v, 1, 65_535)?),
    option!(Pgsql Text "pgsql-user" ["sbtest"] "User", |s, v| s.pgsql.user = v.to_owned()),
    option!(Pgsql Text "pgsql-password" [""]
        "Password; without it the environment variable PGPASSWORD is used",
        |s, v| s.pgsql.password = secret(v)),
    option!(Pgsql Text "pgsql-db" ["sbtest"] "Database", |s, v| s.pgsql.db = v.to_owned()),
    option!(Pgsql Text "pgsql-sslmode" ["prefer"]
        "TLS: disable, allow, prefer, require, verify-ca or verify-full",
        |s, v| s.pgsql.sslmode = word(v, &TlsMode::ALL.map(|mode| (mode.name(), mode)))?),
    option!(Dyno Number "warmup-time" ["0"] "Run for so many seconds before measuring",
        |s, v| s.warmup_s = whole(v, 0, SECONDS_MAX)?),
    option!(Dyno List "percentiles" [""]
        "More percentiles of the latency, such as 50,95,99.9: a line each in the report",
        |s, v| s.percentiles = percentiles(v)?),
    option!(Dyno File "json" [""]
        "Write the result as JSON to this file; - is stdout, and all other output goes to stderr",
        |s, v| s.json = path(v)),
    option!(Dyno Switch "paper" ["off"]
        "Run each number of --threads as `dyno run` does, checks and looks at the server included, and write a paper of \
         them into a folder below dyno-runs",
        |s, v| s.paper = switch(v)?),
    option!(Dyno Switch "errors" ["off"]
        "Print the errors by kind and the work they wasted after the report",
        |s, v| s.errors = switch(v)?),
    option!(Dyno Text "report-format" ["default"]
        "Shape of the lines of --report-interval: default, or csv (time, threads, tps, qps, \
         reads, writes, others, latency in ms, errors, reconnects; rates per second)",
        |s, v| s.report_format =
            word(v, &[("default", ReportFormat::Default), ("csv", ReportFormat::Csv)])?),
    option!(Dyno Number "loops" ["0"] "Event loops (system threads) that drive the workers; 0 is \
         one per core. A script that blocks (os.execute, long computations) stops its loop: give more",
        |s, v| s.loops = whole(v, 0, 4_096)?),
    option!(Dyno Number "thread-init-timeout" ["30"]
        "Seconds for connecting and preparing all workers; passing them ends with exit code 2",
        |s, v| s.thread_init_timeout_s = whole(v, 1, 3_600)?),
    option!(Dyno Size "lua-memory" ["256M"]
        "Most memory that the Lua state of one worker may use, for scripts of one's own",
        |s, v| s.lua_memory = size(v)?),
    option!(Dyno List "pgsql-ignore-errors" ["40P01,23505,40001"]
        "Errors after which a transaction is rolled back and tried again, by SQLSTATE, all or none; \
         with a state of class 08 among them, lost connections are made again",
        |s, v| s.pgsql.ignore_errors = pgsql_errors(v)?),
    option!(Dyno File "mysql-server-public-key" [""]
        "The server's RSA key, PEM: without TLS, passwords are sent under it instead of a key that the server sends",
        |s, v| s.mysql.server_public_key = v.to_owned()),
    option!(Dyno Switch "mysql-allow-cleartext" ["off"]
        "Send the password in clear text without TLS, to a server that asks for it",
        |s, v| s.mysql.allow_cleartext = switch(v)?),
    option!(Dyno Switch "pgsql-allow-cleartext" ["off"]
        "Send the password in clear text without TLS, to a server that asks for it",
        |s, v| s.pgsql.allow_cleartext = switch(v)?),
    option!(Dyno File "pgsql-sslrootcert" [""] "Certificates of the trusted authorities, PEM",
        |s, v| s.pgsql.ssl_root_cert = path(v)),
    option!(Dyno File "sqlite-db" ["sbtest.db"] "File of the SQLite database",
        |s, v| s.sqlite_db = path(v).ok_or("the name of a file")?),
];

pub(super) const DEPRECATED: [(&str, &str); 4] = [
    ("tx-rate", "rate"),
    ("max-requests", "events"),
    ("max-time", "time"),
    ("num-threads", "threads"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_of_the_table_can_be_set() {
        let settings = Settings::new();
        assert_eq!((settings.threads, settings.time_s, settings.percentile), (1, 10, 95));
        assert_eq!(settings.mysql.ports, [3306]);
        assert_eq!(settings.mysql.hosts, ["localhost"]);
        assert!(!settings.mysql.port_given);
        assert_eq!(
            settings.mysql.ignore_errors,
            IgnoredErrors::Codes(vec!["1213".into(), "1020".into(), "1205".into()])
        );
        assert_eq!(settings.pgsql.sslmode, TlsMode::Prefer);
    }

    #[test]
    fn names_are_unique_and_written_with_dashes() {
        for (index, option) in OPTIONS.iter().enumerate() {
            assert!(!option.name.contains('_'), "{}", option.name);
            assert!(OPTIONS[index + 1..].iter().all(|other| other.name != option.name));
        }
        let known = |name| OPTIONS.iter().any(|option| option.name == name);
        assert!(DEPRECATED.iter().all(|(_, new)| known(*new)));
    }

    #[test]
    fn what_dyno_cannot_do_is_refused_and_not_passed_over() {
        let set = |name: &str, value: &str| {
            let option = OPTIONS.iter().find(|option| option.name == name).expect(name);
            (option.set)(&mut Settings::new(), value)
        };
        assert_eq!(set("mysql-compression-algorithms", "zstd,uncompressed"), Ok(()));
        assert!(set("mysql-compression-algorithms", "lz4").is_err());
        assert!(set("mysql-compression-algorithms", "").is_err());
        assert!(set("mysql-ssl-cipher", "AES128-SHA").is_err());
        assert!(set("mysql-ignore-errors", "1213,x").is_err());
        assert_eq!(set("pgsql-ignore-errors", "40001,57P01"), Ok(()));
        assert!(set("pgsql-ignore-errors", "1213").is_err());
    }
}
