//! The general options: a table for each heading, for parsing and for `--help` and the command `help`. The options
//! of the tests, of the random numbers and `--db-ps-mode` are in `dyno_sysbench::OPTIONS`.

use OptionValues::{Choice, Flag, Long, Size, Text, Whole};
use dyno_core::ErrorClass;
use dyno_core::options::{OptionRow, OptionValues};
use dyno_drivers::Secret;
use dyno_drivers::net::{TlsMode, TlsOptions};
use dyno_engine::ErrorSet;
use dyno_runner::front_end::percentiles;
use dyno_sysbench::{OPTIONS, OptionGroup, SysbenchTest, test_options};
use std::path::PathBuf;

pub(super) type Row = OptionRow<Settings>;

impl Settings {
    pub(super) fn new() -> Self {
        let mut settings = Settings::default();
        for row in rows().filter(|row| !row.default.is_empty()) {
            row.set(&mut settings, None, row.default).expect("a test sets every default");
        }
        settings.mysql_port_given = false;
        settings.mysql_ssl_given = false;
        settings
    }
}

/// Returns the rows of all general options.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    [GENERAL, RANDOM, LOG, STATISTICS, DATABASE, MYSQL, PGSQL, DYNO].into_iter().flatten()
}

/// The option with this name, in which `-` is `_`.
pub(super) fn general_option(name: &str) -> Option<&'static Row> {
    let name = dyno_sysbench::dashed(name);
    rows().find(|row| row.name == name)
}

/// Returns true if the name alone, without `=`, means something.
pub(super) fn stands_alone(row: &Row) -> bool {
    // `--mysql-ssl` is on; `--forced-shutdown` is a twentieth of the time.
    matches!(row.kind, Flag(_)) || ["mysql-ssl", "forced-shutdown"].contains(&row.name)
}

const SECONDS_MAX: u32 = 100_000_000;
/// Values with commas between them.
pub(super) const LIST: &str = "[LIST,...]";
const FILE: &str = "FILENAME";

/// A text that may be any.
const fn text(set: fn(&mut Settings, &str) -> Result<(), String>) -> OptionValues<Settings> {
    Text("a text", set)
}

fn parse_secret(value: &str) -> Option<Secret> {
    (!value.is_empty()).then(|| Secret::new(value))
}

fn parse_path(value: &str) -> Option<std::path::PathBuf> {
    (!value.is_empty()).then(|| value.into())
}

/// The parts of a list, without the empty ones.
pub(super) fn list(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|part| !part.is_empty())
}

fn parse_texts(value: &str) -> Vec<String> {
    list(value).map(str::to_owned).collect()
}

fn whole_list<N: TryFrom<u32>>(value: &str, high: u32) -> Result<Vec<N>, String> {
    let numbers = list(value).map(|part| {
        let number = part.parse().ok().filter(|number| (1..=high).contains(number))?;
        N::try_from(number).ok()
    });
    let numbers: Option<Vec<N>> = numbers.collect();
    numbers.ok_or_else(|| format!("a list of whole numbers from 1 to {high}, with commas"))
}

/// The errors of the list, which are tried again; `reconnect` is set if lost connections are among them.
fn ignored_errors(
    value: &str,
    codes: &str,
    add: impl Fn(&mut IgnoredErrors, &str) -> Option<()>,
) -> Result<IgnoredErrors, String> {
    let mut ignored = IgnoredErrors::default();
    match value {
        "all" => (ignored.retry.all, ignored.reconnect) = (true, true),
        "none" => {}
        _ => list(value)
            .try_for_each(|code| add(&mut ignored, code).ok_or(()))
            .map_err(|()| format!("all, none, or a list of {codes} with commas"))?,
    }
    if ignored.reconnect {
        ignored.retry.classes.push(ErrorClass::ConnectionLost);
    }
    Ok(ignored)
}

fn mysql_errors(value: &str) -> Result<IgnoredErrors, String> {
    // Numbers of the client library for lost connections ask for new ones.
    const LOST: [u32; 4] = [2006, 2011, 2013, 2055];
    ignored_errors(value, "MySQL's error numbers", |ignored, code| {
        let number = code.parse().ok().filter(|number| (1..=65_535).contains(number))?;
        ignored.reconnect |= LOST.contains(&number);
        ignored.retry.errnos.push(number);
        Some(())
    })
}

fn pgsql_errors(value: &str) -> Result<IgnoredErrors, String> {
    ignored_errors(value, "SQLSTATEs (five letters or digits)", |ignored, code| {
        let is_state = code.len() == 5 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
        ignored.reconnect |= code.starts_with("08");
        ignored.retry.sqlstates.push(code.to_owned());
        is_state.then_some(())
    })
}

/// All but `--config-file` and the deprecated names, which the reader of the command line handles itself.
#[rustfmt::skip]
pub(super) const GENERAL: &[Row] = &[
    Row::new("threads", "1", Whole(1, 100_000, |s, n| s.threads = n), "Workers; each has its own connection"),
    Row::new("events", "0", Long(|s, n| s.events = n), "Stop after this many transactions; 0 means no limit"),
    Row::new("time", "10", Whole(0, SECONDS_MAX, |s, n| s.time_s = n.into()),
        "Stop after this many seconds; 0 means no limit"),
    Row::new("forced-shutdown", "off", text(|s, v| { s.forced_shutdown = forced_shutdown(v)?; Ok(()) }),
        "How long transactions may continue after --time before they are cut off: seconds, a \
        percentage of --time, or off; a cut ends with exit code 2"),
    Row::new("thread-stack-size", "64K", Size(|_, _| {}),
        "Accepted for old scripts; workers don't need a stack"),
    Row::new("rate", "0", Whole(0, 1_000_000_000, |s, n| s.rate_per_s = n.into()),
        "Transactions per second to start, whatever the answers; latency counts from the due \
        time; 0 is as fast as answers come"),
    Row::new("report-interval", "0", Whole(0, SECONDS_MAX, |s, n| s.report_interval_s = n.into()),
        "Print a line of statistics every N seconds; 0 prints none"),
    Row::new("report-checkpoints", "", text(|s, v| { s.report_checkpoints_s = whole_list(v, SECONDS_MAX)?; Ok(()) }),
        "Print a full report and restart the counts at these times, in seconds from the start").with_metavariable(LIST),
    Row::new("debug", "off", Flag(|s, on| s.debug = on), "Print more about what happens"),
    Row::new("validate", "off", Flag(|s, on| s.validate = on),
        "Accepted for old scripts; the database tests have \
        nothing to validate"),
    Row::new("help", "off", Flag(|s, on| s.help = on), "Print this help and exit"),
    Row::new("version", "off", Flag(|s, on| s.version = on), "Print the version and exit"),
];

#[rustfmt::skip]
pub(super) const RANDOM: &[Row] = &[
    Row::new("rand-seed", "0", Long(|s, n| s.rand_seed = n),
        "Seed of all random numbers of prepare and run; 0 is the current time for run, and \
        always the same rows for prepare"),
];

#[rustfmt::skip]
pub(super) const LOG: &[Row] = &[
    Row::new("verbosity", "3", Whole(0, 5, |s, n| s.verbosity = n as u8),
        "How much is printed, from 0 (fatal errors only) to 5"),
];

#[rustfmt::skip]
pub(super) const STATISTICS: &[Row] = &[
    Row::new("percentile", "95", Whole(0, 100, |s, n| s.percentile = n),
        "Percentile of the latency to print, from 1 to 100; 0 prints none"),
    Row::new("histogram", "off", Flag(|s, on| s.histogram = on), "Print a histogram of the latency"),
];

#[rustfmt::skip]
pub(super) const DATABASE: &[Row] = &[
    Row::new("db-driver", "mysql", Choice(&["mysql", "pgsql", "sqlite"], |s, at| s.db_driver = DbDriver::ALL[at]),
        "Kind of database: mysql, pgsql or sqlite"),
    Row::new("db-debug", "off", Flag(|_, _| {}), "Accepted for old scripts; without effect"),
];

#[rustfmt::skip]
pub(super) const MYSQL: &[Row] = &[
    Row::new("mysql-host", "localhost", text(|s, v| { s.mysql.hosts = parse_texts(v); Ok(()) }),
        "Hosts of the servers").with_metavariable(LIST),
    Row::new("mysql-port", "3306", text(|s, v| {
        s.mysql.ports = whole_list(v, 65_535)?;
        s.mysql_port_given = true;
        Ok(())
    }),
        "Ports of the servers").with_metavariable(LIST),
    Row::new("mysql-socket", "", text(|s, v| { s.mysql_sockets = list(v).map(Into::into).collect(); Ok(()) }),
        "Unix sockets of the servers, instead of host and port").with_metavariable(LIST),
    Row::new("mysql-user", "sbtest", text(|s, v| { s.mysql.user = v.to_owned(); Ok(()) }), "User"),
    Row::new("mysql-password", "", text(|s, v| { s.mysql.password = parse_secret(v); Ok(()) }),
        "Password; without it the environment variable MYSQL_PWD is used"),
    Row::new("mysql-db", "sbtest", text(|s, v| { s.mysql.db = v.to_owned(); Ok(()) }), "Database"),
    Row::new("mysql-ssl", "off", text(|s, v| {
        (s.mysql.tls.mode, s.mysql_ssl_here) = mysql_ssl(v)?;
        s.mysql_ssl_given = true;
        Ok(())
    }),
        "TLS: on (with client-key.pem, client-cert.pem and cacert.pem of the working directory, \
        if they exist), off, DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY"),
    Row::new("mysql-ssl-key", "", text(|s, v| { s.mysql.tls.key = parse_path(v); Ok(()) }),
        "The client's private key, PEM").with_metavariable(FILE),
    Row::new("mysql-ssl-cert", "", text(|s, v| { s.mysql.tls.cert = parse_path(v); Ok(()) }),
        "The client's certificate, PEM").with_metavariable(FILE),
    Row::new("mysql-ssl-ca", "", text(|s, v| { s.mysql.tls.ca = parse_path(v); Ok(()) }),
        "Certificates of the trusted authorities, PEM").with_metavariable(FILE),
    Row::new("mysql-ssl-cipher", "", text(|_, v| match v {
        "" => Ok(()),
        _ => Err("left out: dyno chooses the cipher itself".to_owned()),
    }),
        "Known from sysbench; must be left empty"),
    Row::new("mysql-compression", "off", Flag(|s, on| s.mysql_compression = on), "Compress the protocol"),
    Row::new("mysql-compression-algorithms", "zlib", text(|_, v| match v {
        "zlib" => Ok(()),
        _ => Err("zlib, by which alone dyno compresses".to_owned()),
    }),
        "With --mysql-compression: zlib"),
    Row::new("mysql-debug", "off", Flag(|_, _| {}), "Accepted for old scripts; without effect"),
    Row::new("mysql-ignore-errors", "1213,1020,1205", text(|s, v| { s.mysql.ignore_errors = mysql_errors(v)?; Ok(()) }),
        "Errors after which a transaction is tried again, by number, all or none; \
        with 2006, 2011, 2013 or 2055 among them, lost connections are reopened").with_metavariable(LIST),
    Row::new("mysql-dry-run", "off", Flag(|s, on| s.mysql_dry_run = on),
        "Of a built-in test's run: make and count the statements, but send nothing and connect to no server"),
];

#[rustfmt::skip]
pub(super) const PGSQL: &[Row] = &[
    Row::new("pgsql-host", "localhost", text(|s, v| { s.pgsql.hosts = parse_texts(v); Ok(()) }),
        "Hosts of the servers; a path is the folder of a unix socket").with_metavariable(LIST),
    Row::new("pgsql-port", "5432", text(|s, v| { s.pgsql.ports = whole_list(v, 65_535)?; Ok(()) }),
        "Ports of the servers").with_metavariable(LIST),
    Row::new("pgsql-user", "sbtest", text(|s, v| { s.pgsql.user = v.to_owned(); Ok(()) }), "User"),
    Row::new("pgsql-password", "", text(|s, v| { s.pgsql.password = parse_secret(v); Ok(()) }),
        "Password; without it the environment variable PGPASSWORD is used"),
    Row::new("pgsql-db", "sbtest", text(|s, v| { s.pgsql.db = v.to_owned(); Ok(()) }), "Database"),
    Row::new("pgsql-sslmode", "prefer", Choice(&["disable", "allow", "prefer", "require", "verify-ca", "verify-full"], |s, at| {
        s.pgsql.tls.mode = TlsMode::ALL[at];
    }),
        "TLS: disable, allow, prefer, require, verify-ca or verify-full"),
];

/// Options that sysbench 1.0.20 does not have.
#[rustfmt::skip]
pub(super) const DYNO: &[Row] = &[
    Row::new("warmup-time", "0", Whole(0, SECONDS_MAX, |s, n| s.warmup_s = n.into()),
        "Run for this many seconds before measuring"),
    Row::new("percentiles", "", text(|s, v| { s.percentiles = percentiles(v)?; Ok(()) }),
        "More percentiles of the latency, such as 50,95,99.9: a line each in the report").with_metavariable(LIST),
    Row::new("json", "", text(|s, v| { s.json = parse_path(v); Ok(()) }),
        "Write the result as JSON to this file; - is stdout, and all other output goes to stderr").with_metavariable(FILE),
    Row::new("paper", "off", Flag(|s, on| s.paper = on),
        "Run each number of --threads as `dyno run` does, checks and looks at the server included, and write a paper of \
        them into a folder below dyno-runs"),
    Row::new("errors", "off", Flag(|s, on| s.errors = on),
        "Print the errors by kind and the work they wasted after the report"),
    Row::new("report-format", "default", Choice(&["default", "csv"], |s, at| s.reports_csv = at == 1),
        "Shape of the lines of --report-interval: default, or csv (time, threads, tps, qps, \
        reads, writes, others, latency in ms, errors, reconnects; rates per second)"),
    Row::new("loops", "0", Whole(0, 4_096, |s, n| s.loops = n),
        "Event loops (system threads) that drive the workers; 0 is \
        one per core. A script that blocks (os.execute, long computations) stops its loop: give more"),
    Row::new("thread-init-timeout", "30", Whole(1, 3_600, |s, n| s.thread_init_timeout_s = n.into()),
        "Seconds for connecting and preparing all workers; passing them ends with exit code 2"),
    Row::new("lua-memory", "0", Size(|s, bytes| s.lua_memory = bytes),
        "Most memory that the Lua state of one worker may use, for scripts of one's own; 0 means no limit"),
    Row::new("pgsql-ignore-errors", "40P01,23505,40001", text(|s, v| { s.pgsql.ignore_errors = pgsql_errors(v)?; Ok(()) }),
        "Errors after which a transaction is rolled back and tried again, by SQLSTATE, all or none; \
        with a state of class 08 among them, lost connections are reopened").with_metavariable(LIST),
    Row::new("mysql-server-public-key", "", text(|s, v| { s.mysql_server_public_key = v.to_owned(); Ok(()) }),
        "The server's RSA key, PEM: without TLS, passwords are sent under it instead of a key that the server sends").with_metavariable(FILE),
    Row::new("mysql-allow-cleartext", "off", Flag(|s, on| s.mysql.allow_cleartext = on),
        "Send the password in clear text without TLS, to a server that asks for it"),
    Row::new("pgsql-allow-cleartext", "off", Flag(|s, on| s.pgsql.allow_cleartext = on),
        "Send the password in clear text without TLS, to a server that asks for it"),
    Row::new("pgsql-sslrootcert", "", text(|s, v| { s.pgsql.tls.ca = parse_path(v); Ok(()) }),
        "Certificates of the trusted authorities, PEM").with_metavariable(FILE),
    Row::new("sqlite-db", "sbtest.db", text(|s, v| { s.sqlite_db = parse_path(v).ok_or("the name of a file")?; Ok(()) }),
        "File of the SQLite database").with_metavariable(FILE),
];

pub(super) const DEPRECATED: [(&str, &str); 4] = [
    ("tx-rate", "rate"),
    ("max-requests", "events"),
    ("max-time", "time"),
    ("num-threads", "threads"),
];

/// Reads `off`, seconds, or a percentage, which is true then; empty is a twentieth of the time.
fn forced_shutdown(value: &str) -> Result<Option<(u64, bool)>, String> {
    let (digits, high, is_percentage) = match (value, value.strip_suffix('%')) {
        ("off", _) => return Ok(None),
        ("", _) => return Ok(Some((5, true))),
        (_, Some(percent)) => (percent, 1_000_000, true),
        (_, None) => (value, 1_000_000_000, false),
    };
    match digits.parse::<u64>() {
        Ok(number) if number <= high => Ok(Some((number, is_percentage))),
        _ => Err("off, a number of seconds, or a percentage of --time".to_owned()),
    }
}

dyno_core::named! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(super) enum DbDriver {
        #[default]
        Mysql = "mysql",
        Pgsql = "pgsql",
        Sqlite = "sqlite",
    }
}

/// TLS as `--mysql-ssl` of 1.0 or of the master branch names it; true for 1.0's `on`.
fn mysql_ssl(value: &str) -> Result<(TlsMode, bool), String> {
    let mode = match value.to_ascii_uppercase().as_str() {
        "DISABLED" | "OFF" | "FALSE" | "0" => TlsMode::Disable,
        "PREFERRED" => TlsMode::Prefer,
        "REQUIRED" => TlsMode::Require,
        "VERIFY_CA" => TlsMode::VerifyCa,
        "VERIFY_IDENTITY" => TlsMode::VerifyFull,
        "" | "ON" | "TRUE" | "1" => return Ok((TlsMode::Prefer, true)),
        _ => {
            let words = "on, off, DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY";
            return Err(words.to_owned());
        }
    };
    Ok((mode, false))
}

/// The errors after which a transaction is tried again.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct IgnoredErrors {
    pub(super) retry: ErrorSet,
    /// Lost connections are reopened.
    pub(super) reconnect: bool,
}

/// The options of a driver for servers.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerSettings {
    pub(super) hosts: Vec<String>,
    pub(super) ports: Vec<u16>,
    pub(super) user: String,
    pub(super) password: Option<Secret>,
    pub(super) db: String,
    pub(super) tls: TlsOptions,
    pub(super) allow_cleartext: bool,
    pub(super) ignore_errors: IgnoredErrors,
}

/// All general options. `Settings::default()` of [`super::options`] fills the defaults from the
/// table that help prints; the derived one is blank.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub(super) threads: u32,
    /// 0 is not a limit.
    pub(super) events: u64,
    /// Seconds; 0 is not a limit.
    pub(super) time_s: u64,
    /// Seconds, or percent of `--time`, until a run whose time is over is cut off.
    pub(super) forced_shutdown: Option<(u64, bool)>,
    /// Transactions per second; 0 is a closed loop.
    pub(super) rate_per_s: u64,
    /// Seconds; 0 turns intermediate reports off.
    pub(super) report_interval_s: u64,
    pub(super) report_checkpoints_s: Vec<u64>,
    pub(super) debug: bool,
    pub(super) validate: bool,
    pub(super) help: bool,
    pub(super) version: bool,
    /// 0 is the current time.
    pub(super) rand_seed: u64,
    pub(super) verbosity: u8,
    /// 0 is none.
    pub(super) percentile: u32,
    pub(super) histogram: bool,
    pub(super) db_driver: DbDriver,
    pub(super) mysql: ServerSettings,
    pub(super) pgsql: ServerSettings,
    pub(super) mysql_sockets: Vec<PathBuf>,
    /// The port was given: then `localhost` does not mean the unix socket.
    pub(super) mysql_port_given: bool,
    /// `--mysql-ssl=on` of 1.0: files of the working directory are used if they exist.
    pub(super) mysql_ssl_here: bool,
    pub(super) mysql_ssl_given: bool,
    pub(super) mysql_dry_run: bool,
    pub(super) mysql_compression: bool,
    pub(super) mysql_server_public_key: String,
    pub(super) sqlite_db: PathBuf,
    pub(super) percentiles: Vec<f64>,
    /// File of the result as JSON; `-` is stdout.
    pub(super) json: Option<PathBuf>,
    pub(super) errors: bool,
    /// The run is one of a suite and leaves a paper.
    pub(super) paper: bool,
    pub(super) warmup_s: u64,
    /// 0 is as many as [`dyno_engine::default_loops`] has.
    pub(super) loops: u32,
    pub(super) thread_init_timeout_s: u64,
    /// Bytes that the Lua state of a worker may use.
    pub(super) lua_memory: u64,
    /// Lines of `--report-interval` are those of sysbench's csv reporter.
    pub(super) reports_csv: bool,
}

impl Settings {
    /// Returns true if stdout is kept free for the result as JSON.
    pub(super) fn json_to_stdout(&self) -> bool {
        self.json.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// Seconds of grace after `--time`; `None` if nothing is forced.
    pub(super) fn grace_s(&self) -> Option<u64> {
        let (number, is_percent) = self.forced_shutdown?;
        Some(if is_percent { self.time_s.saturating_mul(number) / 100 } else { number })
    }

    /// Returns true if nothing is sent to any server.
    pub(super) fn is_dry(&self) -> bool {
        self.mysql_dry_run && self.db_driver == DbDriver::Mysql
    }
}

/// One row: the option with its kind of value, and what it does.
type HelpRow = (String, String);

fn help_row<S>(name: &str, option: &OptionRow<S>) -> HelpRow {
    let option_text = match option.metavariable() {
        switch @ "on|off" => format!("--{name}[={switch}]"),
        value => format!("--{name}={value}"),
    };
    (option_text, format!("{} [{}]", option.doc, option.default))
}

/// Writes rows with their texts one below the other, under a heading.
fn write_rows(out: &mut String, heading: &str, rows: &[HelpRow]) {
    let width = rows.iter().map(|(option, _)| option.len()).max().unwrap_or(0);
    out.push_str(&format!("{heading}\n"));
    for (option, help) in rows {
        out.push_str(&format!("  {option:<width$} {help}\n"));
    }
    out.push('\n');
}

fn help_rows<S>(options: &[OptionRow<S>]) -> Vec<HelpRow> {
    options.iter().map(|option| help_row(option.name, option)).collect()
}

/// Rows of the options that all tests share but the tests' own table describes.
fn shared_rows(shared: OptionGroup) -> Vec<HelpRow> {
    let rows = OPTIONS.iter().filter(|(group, _)| *group == shared);
    rows.flat_map(|(_, rows)| help_rows(rows)).collect()
}

fn general_rows() -> Vec<HelpRow> {
    let mut rows = help_rows(GENERAL);
    rows.push((
        "--config-file=FILENAME".to_owned(),
        "Read more options from this file: a line name=value each, # before comments".to_owned(),
    ));
    for (old, new) in DEPRECATED {
        rows.push((format!("--{old}=N"), format!("Old name of --{new}")));
    }
    rows
}

const USAGE: &str = include_str!("usage.txt");

const NOTES: &str = include_str!("notes.txt");

fn test_names(legacy: bool) -> String {
    let tests = SysbenchTest::ALL.iter().filter(|test| test.is_legacy() == legacy);
    let names: Vec<&str> = tests.map(|test| test.name()).collect();
    names.join(", ")
}

/// The text of `--help`.
pub(super) fn general_help() -> String {
    let mut out = String::from(USAGE);
    let random = [shared_rows(OptionGroup::Random), help_rows(RANDOM)].concat();
    let database = [help_rows(DATABASE), shared_rows(OptionGroup::Database)].concat();
    for (heading, rows) in [
        ("General options:", general_rows()),
        ("Pseudo-Random Numbers Generator options:", random),
        ("Log options:", help_rows(LOG)),
        ("Statistics options:", help_rows(STATISTICS)),
        ("General database options:", database),
    ] {
        write_rows(&mut out, heading, &rows);
    }
    out.push_str(
        "Compiled-in database drivers:\n  mysql - MySQL and MariaDB\n  pgsql - PostgreSQL\n  \
         sqlite - SQLite, embedded\n\n",
    );
    write_rows(&mut out, "mysql options:", &help_rows(MYSQL));
    write_rows(&mut out, "pgsql options:", &help_rows(PGSQL));
    write_rows(&mut out, "Options that sysbench 1.0.20 does not have:", &help_rows(DYNO));
    let (tests, legacy) = (test_names(false), test_names(true));
    out.push_str(&format!(
        "Compiled-in tests:\n  {tests}\nTests of sysbench 0.5:\n  {legacy}\n\n{NOTES}"
    ));
    out
}

/// The text of the command `help` of a test; `None` when it has no options, as the original's
/// bulk_insert.
pub(super) fn test_help(test: SysbenchTest) -> Option<String> {
    let shared = [OptionGroup::Random, OptionGroup::Database];
    let own_options = test_options(test).filter(|(name, _)| {
        let mut rows =
            OPTIONS.iter().filter(|(group, _)| shared.contains(group)).flat_map(|(_, rows)| *rows);
        !rows.any(|row| row.name == *name)
    });
    let mut rows: Vec<HelpRow> = own_options.map(|(name, option)| help_row(name, option)).collect();
    rows.sort();
    let mut out = String::new();
    write_rows(&mut out, &format!("{} options:", test.name()), &rows);
    (!rows.is_empty()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_default_of_the_table_can_be_set() {
        let settings = Settings::new();
        assert_eq!((settings.threads, settings.time_s, settings.percentile), (1, 10, 95));
        assert_eq!(settings.mysql.ports, [3306]);
        assert_eq!(settings.mysql.hosts, ["localhost"]);
        assert!(!settings.mysql_port_given);
        assert_eq!(settings.mysql.ignore_errors.retry.errnos, [1213, 1020, 1205]);
        assert!(!settings.mysql.ignore_errors.reconnect);
        assert_eq!(settings.pgsql.tls.mode, TlsMode::Prefer);
        for (name, known) in [
            ("db-driver", DbDriver::ALL.map(DbDriver::name).to_vec()),
            ("pgsql-sslmode", TlsMode::ALL.map(TlsMode::name).to_vec()),
        ] {
            let row = general_option(name).expect(name);
            assert!(matches!(row.kind, Choice(words, _) if words == known), "{name}");
        }
    }

    #[test]
    fn names_are_unique_and_written_with_dashes() {
        let names: Vec<&str> = rows().map(|row| row.name).collect();
        assert!(names.iter().all(|name| !name.contains('_')));
        assert_eq!(BTreeSet::from_iter(&names).len(), names.len());
        assert!(DEPRECATED.iter().all(|(_, new)| general_option(new).is_some()));
    }

    fn set(name: &str, value: &str) -> Result<(), String> {
        general_option(name).expect(name).set(&mut Settings::new(), None, value)
    }

    #[test]
    fn what_dyno_cannot_do_is_refused_and_not_passed_over() {
        assert_eq!(set("mysql-compression-algorithms", "zlib"), Ok(()));
        assert!(set("mysql-compression-algorithms", "zstd").is_err());
        assert!(set("mysql-compression-algorithms", "").is_err());
        assert!(set("mysql-ssl-cipher", "AES128-SHA").is_err());
        assert!(set("mysql-ignore-errors", "1213,x").is_err());
        assert_eq!(set("pgsql-ignore-errors", "40001,57P01"), Ok(()));
        assert!(set("pgsql-ignore-errors", "1213").is_err());
    }

    /// The grace period of this value in a minute's run.
    fn grace_s(value: &str) -> Result<Option<u64>, String> {
        let forced_shutdown = forced_shutdown(value)?;
        Ok(Settings { forced_shutdown, time_s: 60, ..Settings::default() }.grace_s())
    }

    #[test]
    fn forced_shutdown_takes_seconds_percent_and_nothing() {
        assert_eq!(grace_s("off"), Ok(None));
        assert_eq!(grace_s("7"), Ok(Some(7)));
        assert_eq!(grace_s("10%"), Ok(Some(6)));
        assert_eq!(grace_s(""), Ok(Some(3)));
        assert!(grace_s("abc").is_err() && grace_s("-1").is_err() && grace_s("%").is_err());
    }

    #[test]
    fn mysql_ssl_takes_the_words_of_both_versions() {
        assert_eq!(mysql_ssl("on"), Ok((TlsMode::Prefer, true)));
        assert_eq!(mysql_ssl(""), Ok((TlsMode::Prefer, true)));
        assert_eq!(mysql_ssl("off"), Ok((TlsMode::Disable, false)));
        assert_eq!(mysql_ssl("VERIFY_CA"), Ok((TlsMode::VerifyCa, false)));
        assert_eq!(mysql_ssl("required"), Ok((TlsMode::Require, false)));
        assert!(mysql_ssl("maybe").is_err());
    }

    /// The text before the first blank of each line that describes an option.
    fn options_in(text: &str) -> Vec<&str> {
        let lines = text.lines().filter(|line| line.starts_with("  --"));
        lines.filter_map(|line| line.split_whitespace().next()).collect()
    }

    /// Option names and kinds of `sysbench --help`, 1.0.20, one a line.
    const ORIGINAL_GENERAL: &str = include_str!("../../golden/sysbench/general_options.txt");
    /// Option names and kinds of `sysbench oltp_read_write help`, 1.0.20, one a line.
    const ORIGINAL_READ_WRITE: &str =
        include_str!("../../golden/sysbench/oltp_read_write_options.txt");

    #[test]
    fn every_option_of_the_original_is_listed_with_its_kind() {
        let text = general_help();
        let ours = options_in(&text);
        // Three options take more than in 1.0.20.
        let wider = [
            ("--mysql-ssl[=on|off]", "--mysql-ssl=STRING"),
            ("--pgsql-host=STRING", "--pgsql-host=[LIST,...]"),
            ("--pgsql-port=N", "--pgsql-port=[LIST,...]"),
        ];
        for original in ORIGINAL_GENERAL.lines() {
            let wider = wider.iter().find(|(narrow, _)| *narrow == original);
            let expected = wider.map_or(original, |(_, wide)| wide);
            assert!(ours.contains(&expected), "{expected} is missing:\n{text}");
        }
        let text = test_help(SysbenchTest::ReadWrite).expect("it has options");
        let ours = options_in(&text);
        for original in ORIGINAL_READ_WRITE.lines() {
            assert!(ours.contains(&original), "{original} is missing:\n{text}");
        }
    }

    #[test]
    fn the_help_of_a_test_has_the_originals_shape() {
        let text = test_help(SysbenchTest::ReadWrite).expect("it has options");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "oltp_read_write options:");
        assert!(lines[1].starts_with("  --auto_inc[=on|off]  "), "{}", lines[1]);
        assert!(lines[1].ends_with(" [on]"), "{}", lines[1]);
        assert!(lines[1..lines.len() - 1].is_sorted());
        assert_eq!(lines[lines.len() - 1], "");
        assert!(test_help(SysbenchTest::BulkInsert).is_none());
    }
}
