//! sysbench's words, and where they go: everything to stdout but complaints about the command line. Errors of
//! a database are printed as the drivers of sysbench print them.

use super::options::DbDriver;
use dyno_core::{Address, Cause, DbError, ErrorOrigin};
use dyno_drivers::postgres::libpq_connection_failure;
use dyno_runner::front_end::SweepLevel;
use dyno_runner::output::StreamWriter;
use dyno_sysbench::{PGRES_FATAL_ERROR, mysql_error};
use std::fmt::Display;
use std::io::Write;

/// Error number of MySQL's client library if a server can't be reached.
const UNREACHABLE: u32 = 2002;

/// Name that sysbench gives an error of a client library that is not one of executing a statement.
const API_ERROR: &str = "SQL API error";

/// The place of an error, as sysbench names its functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    ThreadInit,
    ThreadRun,
    Command,
}

impl Place {
    /// Returns the function that sysbench names in an error of this place.
    pub(super) fn function(self) -> &'static str {
        match self {
            Place::ThreadInit => "thread_init",
            Place::ThreadRun => "thread_run",
            Place::Command => "sysbench.cmdline.call_command",
        }
    }
}

/// The message of MariaDB's client library where a server can't be reached.
fn mysql_message(error: &DbError) -> String {
    match (error.origin, &error.address) {
        (ErrorOrigin::System(errno), Some(Address::Tcp { host, .. })) => {
            format!("Can't connect to server on '{host}' ({errno})")
        }
        (ErrorOrigin::System(errno), Some(Address::Unix(path))) => {
            let path = path.display();
            format!("Can't connect to local server through socket '{path}' ({errno})")
        }
        _ => error.message().to_owned(),
    }
}

/// The lines after `FATAL: ` for the error of a statement.
fn lines_of_statement(error: &DbError, place: Place, driver: DbDriver) -> Vec<String> {
    let (errno, state, message) = match driver {
        DbDriver::Mysql => mysql_error(error),
        DbDriver::Pgsql | DbDriver::Sqlite => {
            (error.errno(), error.sqlstate(), error.message().into())
        }
    };
    let function = place.function();
    if driver != DbDriver::Sqlite && place == Place::ThreadInit && error.statement.is_some() {
        let mut lines = lines_of_prepare(errno, state, &message, driver);
        lines.push(format!("`{function}' function failed: {API_ERROR}"));
        return lines;
    }
    let query_lines =
        error.statement.as_deref().map(|sql| lines_with_query(sql, errno, &message, driver));
    let mut lines = query_lines.unwrap_or_default();
    lines.push(format!(
        "`{function}' function failed: SQL error, errno = {errno}, state = '{state}': {message}"
    ));
    lines
}

/// The lines that come first where a client library could not prepare a statement.
fn lines_of_prepare(errno: u32, state: &str, message: &str, driver: DbDriver) -> Vec<String> {
    if driver != DbDriver::Pgsql {
        let error = format!("MySQL error: {errno} \"{message}\"");
        return vec!["mysql_stmt_prepare() failed".to_owned(), error];
    }
    // What no server has said has no severity.
    let severity = if state.starts_with("08") { "" } else { "ERROR:  " };
    // The client library ends its messages with their own line.
    vec![format!("PQprepare() failed: {severity}{message}\n")]
}

/// The lines that have the text of a statement, which come first.
fn lines_with_query(sql: &str, errno: u32, message: &str, driver: DbDriver) -> Vec<String> {
    // A statement has parameters only if it was prepared.
    let is_prepared = sql.contains('?') || sql.contains("$1");
    match driver {
        DbDriver::Mysql => {
            let call = if is_prepared { "mysql_stmt_execute()" } else { "mysql_drv_query()" };
            vec![format!("{call} returned error {errno} ({message}) for query '{sql}'")]
        }
        DbDriver::Pgsql => {
            let call = if is_prepared { "PQexecPrepared()" } else { "PQexec()" };
            // The original leaves out a prepared one.
            vec![
                format!("{call} failed: {PGRES_FATAL_ERROR} {message}"),
                format!("failed query was: {sql}"),
            ]
        }
        DbDriver::Sqlite => vec![format!("failed query was: {sql}")],
    }
}

/// The lines for an error of a script, which has number and message of its statement's. If a statement could not be
/// prepared, the original has these only in separate lines.
pub(super) fn lines_of_script(
    function: Option<&str>,
    error: &str,
    statement: Option<&str>,
    driver: DbDriver,
) -> Vec<String> {
    let (mut lines, said) = match (codes(error, API_ERROR), codes(error, "SQL error"), statement) {
        (Some((place, errno, state, message)), _, Some(_)) => {
            (lines_of_prepare(errno, state, message, driver), format!("{place}{API_ERROR}"))
        }
        (None, Some((_, errno, _, message)), Some(sql)) => {
            (lines_with_query(sql, errno, message, driver), error.to_owned())
        }
        _ => (Vec::new(), error.to_owned()),
    };
    lines.push(match function {
        Some(function) => format!("`{function}' function failed: {said}"),
        None => said,
    });
    lines
}

/// The words before an error of this kind, its number, its state and its message.
fn codes<'a>(error: &'a str, kind: &str) -> Option<(&'a str, u32, &'a str, &'a str)> {
    let (place, codes) = error.split_once(kind)?;
    let (errno, rest) = codes.strip_prefix(", errno = ")?.split_once(", state = '")?;
    let (state, message) = rest.split_once("': ")?;
    Some((place, errno.parse().ok()?, state, message))
}

/// The remedy for a script that has failed.
pub(super) fn remedy_of_script(error: &str) -> Option<&'static str> {
    if error.contains("not enough memory") {
        return Some("--lua-memory bounds the memory of each worker's Lua state: raise it");
    }
    error.starts_with("thread_run() has ended with sysbench.error.RESTART_EVENT").then_some(
        "call event() by pcall() in thread_run(), and again after an error whose errcode is \
         RESTART_EVENT; without a thread_run() of the script's own dyno does so",
    )
}

/// The lines after `FATAL: ` for an error.
fn lines(error: &DbError, place: Place, driver: DbDriver) -> Vec<String> {
    if error.cause() == Cause::Workload {
        let function = Some(place.function());
        return lines_of_script(function, error.message(), error.statement.as_deref(), driver);
    }
    if !error.is_connect() {
        return lines_of_statement(error, place, driver);
    }
    // The place in a script is the context.
    let place_in_script = error.context.as_deref().unwrap_or_default();
    let function = place.function();
    let failed =
        format!("`{function}' function failed: {place_in_script}connection creation failed");
    match driver {
        DbDriver::Mysql => {
            let server = match &error.address {
                Some(Address::Tcp { host, port }) => format!(" on host '{host}', port {port}"),
                Some(Address::Unix(path)) => format!(" on socket '{}'", path.display()),
                None => String::new(),
            };
            let errno = if error.errno() == 0 { UNREACHABLE } else { error.errno() };
            vec![
                format!("unable to connect to MySQL server{server}, aborting..."),
                format!("error {errno}: {}", mysql_message(error)),
                failed,
            ]
        }
        DbDriver::Pgsql => {
            let message =
                libpq_connection_failure(error).unwrap_or_else(|| error.message().to_owned());
            vec![
                // The client library ends its messages with their own line.
                format!("Connection to database failed: {message}\n"),
                failed,
            ]
        }
        DbDriver::Sqlite => vec![format!("unable to open the database: {}", error.message())],
    }
}

/// Prints the `FATAL:` lines of an error and, if one is known, the remedy.
pub(super) fn print(console: &mut Console, error: &DbError, place: Place, driver: DbDriver) {
    for line in lines(error, place, driver) {
        console.fatal(line);
    }
    if let Some(detail) = &error.detail {
        console.fatal(detail);
    }
    if let (Cause::Workload, Some(trace)) = (error.cause(), &error.context) {
        console.complain(trace);
    }
    if place == Place::ThreadInit {
        console.fatal("Thread initialization failed!");
    }
    if let Some(hint) = remedy(error, driver).or(error.hint()).or(error.pooler_hint()) {
        console.hint(hint);
    }
}

/// A remedy in terms of this command line, which says more than what the driver knows.
fn remedy(error: &DbError, driver: DbDriver) -> Option<&'static str> {
    if error.cause() == Cause::Workload {
        return remedy_of_script(error.message());
    }
    Some(match (error.cause(), error.errno(), error.sqlstate()) {
        (Cause::Unreachable, ..) if driver != DbDriver::Sqlite => {
            "is the server running? Options: --mysql-host, --mysql-port, --mysql-socket, --pgsql-host, --pgsql-port"
        }
        (_, 1044 | 1049, _) | (_, _, "3D000") => {
            "create the database first and GRANT the user access to it, or name another one with --mysql-db or --pgsql-db"
        }
        (_, 1040 | 1203 | 1226, _) | (_, _, "53300") => {
            "use fewer --threads, or raise the limit on the server: max_connections, max_user_connections or the user's own"
        }
        (_, 1146, _) | (_, _, "42P01") => "run the command prepare with the same options first",
        (_, _, "26000" | "42P05") => {
            "is a pooler in between that gives the server's sessions to other clients (PgBouncer's pool_mode = \
             transaction)? Name the server itself, or add --db-ps-mode=disable"
        }
        (Cause::Lost, ..) if driver == DbDriver::Mysql && error.hint().is_none() => {
            "with --mysql-ignore-errors=1213,1020,1205,2013 lost connections are reopened"
        }
        _ => return None,
    })
}

/// Importance of a line; `--verbosity` prints up to one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Fatal = 0,
    Warning = 2,
    Notice = 3,
    Info = 4,
    Debug = 5,
}

/// Prints what the chosen verbosity lets through.
pub(super) struct Console {
    verbosity: u8,
    out: Box<dyn Write + Send>,
    talk: Box<dyn Write + Send>,
    /// Figures of a run, for a sweep.
    pub(super) measured: Option<SweepLevel>,
}

impl Console {
    /// Writes sysbench's output to stdout, or to stderr when stdout is kept for data.
    pub(super) fn new(verbosity: u8, stdout_is_data: bool) -> Self {
        let out: Box<dyn Write + Send> =
            Box::new(if stdout_is_data { StreamWriter::Talk } else { StreamWriter::Data });
        Console { verbosity, out, talk: Box::new(StreamWriter::Talk), measured: None }
    }

    /// Returns true if lines of this level are printed.
    pub(super) fn prints(&self, level: Level) -> bool {
        level as u8 <= self.verbosity
    }

    /// Writes text unchanged. A reader that has gone away must not end a measurement, so errors of
    /// the output are passed over.
    pub(super) fn text(&mut self, level: Level, text: impl Display) {
        if self.prints(level) {
            let _ = write!(self.out, "{text}");
            let _ = self.out.flush();
        }
    }

    /// Prints a line of level notice.
    pub(super) fn notice(&mut self, line: impl Display) {
        self.text(Level::Notice, format_args!("{line}\n"));
    }

    /// Prints a line of level info.
    pub(super) fn info(&mut self, line: impl Display) {
        self.text(Level::Info, format_args!("{line}\n"));
    }

    /// A line of `--debug`.
    pub(super) fn debug(&mut self, line: impl Display) {
        self.text(Level::Debug, format_args!("DEBUG: {line}\n"));
    }

    /// Prints a line of level warning.
    pub(super) fn warning(&mut self, line: impl Display) {
        self.text(Level::Warning, format_args!("WARNING: {line}\n"));
    }

    /// Prints a line of level fatal.
    pub(super) fn fatal(&mut self, line: impl Display) {
        self.text(Level::Fatal, format_args!("FATAL: {line}\n"));
    }

    /// Writes text of dyno's own, which the original doesn't say, to stderr.
    pub(super) fn talk(&mut self, level: Level, text: impl Display) {
        if self.prints(level) {
            let _ = write!(self.talk, "{text}");
        }
    }

    /// A complaint about the command line, on stderr.
    pub(super) fn complain(&mut self, line: impl Display) {
        let _ = writeln!(self.talk, "{line}");
    }

    /// Prints a remedy, which sysbench doesn't have.
    pub(super) fn hint(&mut self, remedy: impl Display) {
        let _ = writeln!(self.talk, "hint: {remedy}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::ErrorClass;

    #[test]
    fn a_failed_connection_names_its_server_in_the_originals_words() {
        let tcp = Address::Tcp { host: "b".to_owned(), port: 2 };
        let denied = DbError::login(1045, *b"28000", "Access denied for user 'sbtest'").at(&tcp);
        assert_eq!(
            lines(&denied, Place::ThreadInit, DbDriver::Mysql),
            [
                "unable to connect to MySQL server on host 'b', port 2, aborting...",
                "error 1045: Access denied for user 'sbtest'",
                "`thread_init' function failed: connection creation failed",
            ]
        );
        let refusal = DbError::not_connected(tcp, 111);
        assert_eq!(
            lines(&refusal, Place::Command, DbDriver::Mysql)[1],
            "error 2002: Can't connect to server on 'b' (111)"
        );
        assert!(lines(&refusal, Place::Command, DbDriver::Pgsql)[0].starts_with(
            "Connection to database failed: connection to server at \"b\", port 2 failed: \
                 Connection refused\n\tIs the server running"
        ));
        let missing = DbError::not_connected(Address::Unix("/s".into()), 2);
        assert_eq!(
            lines(&missing, Place::Command, DbDriver::Mysql)[..2],
            [
                "unable to connect to MySQL server on socket '/s', aborting...",
                "error 2002: Can't connect to local server through socket '/s' (2)",
            ]
        );
        let unknown = DbError::unreachable("The host name x could not be looked up.");
        assert_eq!(
            lines(&unknown, Place::Command, DbDriver::Mysql)[0],
            "unable to connect to MySQL server, aborting..."
        );
    }

    #[test]
    fn an_error_of_a_statement_has_number_and_state() {
        let error = DbError::server(ErrorClass::Other, 1146, *b"42S02", "Table 'x' doesn't exist");
        assert_eq!(
            lines(&error, Place::ThreadRun, DbDriver::Mysql),
            ["`thread_run' function failed: SQL error, errno = 1146, state = '42S02': \
              Table 'x' doesn't exist"]
        );
        let sql = "UPDATE x SET k=k+1 WHERE id=?";
        let statement_lines =
            lines(&error.clone().with_statement(sql), Place::ThreadRun, DbDriver::Mysql);
        assert_eq!(
            statement_lines[0],
            "mysql_stmt_execute() returned error 1146 (Table 'x' doesn't exist) for query \
             'UPDATE x SET k=k+1 WHERE id=?'"
        );
        let script = DbError::workload(
            "my.lua:3: SQL error, errno = 1146, state = '42S02': Table 'x' doesn't exist",
        );
        assert_eq!(lines(&script, Place::ThreadRun, DbDriver::Mysql).len(), 1);
        let script_error = script.with_statement(sql);
        let script_lines = lines(&script_error, Place::ThreadRun, DbDriver::Mysql);
        assert_eq!((&script_lines[0], script_lines.len()), (&statement_lines[0], 2));
        assert!(script_lines[1].starts_with("`thread_run' function failed: my.lua:3: SQL error"));
        let prepared = DbError::workload(
            "my.lua:3: SQL API error, errno = 1146, state = '42S02': Table 'x' doesn't exist",
        );
        assert_eq!(
            lines(&prepared.with_statement(sql), Place::ThreadRun, DbDriver::Mysql),
            [
                "mysql_stmt_prepare() failed",
                "MySQL error: 1146 \"Table 'x' doesn't exist\"",
                "`thread_run' function failed: my.lua:3: SQL API error",
            ]
        );
        let function = "`thread_init' function failed: my.lua:3: SQL API error";
        for (end, message) in [
            ("'42P01': no x", "PQprepare() failed: ERROR:  no x\n"),
            ("'08006': gone", "PQprepare() failed: gone\n"),
        ] {
            let text = format!("my.lua:3: SQL API error, errno = 0, state = {end}");
            let libpq_error = DbError::workload(&text).with_statement(sql);
            let libpq_lines = lines(&libpq_error, Place::ThreadInit, DbDriver::Pgsql);
            assert_eq!(libpq_lines, [message, function]);
        }
        let lost_lines = lines(&DbError::lost("gone"), Place::ThreadRun, DbDriver::Mysql);
        assert!(lost_lines[0].ends_with("SQL error, errno = 2013, state = 'HY000': Lost connection to server during query: gone"), "{lost_lines:?}");
        let remedy = remedy(&error, DbDriver::Mysql);
        assert_eq!(remedy, Some("run the command prepare with the same options first"));
        let short = DbError::workload("my.lua:3: not enough memory");
        let remedy = super::remedy(&short, DbDriver::Mysql).unwrap_or_default();
        assert!(remedy.starts_with("--lua-memory"), "{remedy}");
    }
}
