//! sysbench's words for what goes wrong with a database.

use super::console::Console;
use super::settings::DbDriver;
use dyno_core::{Cause, DbError};
use dyno_drivers::Target;
use dyno_drivers::net::Address;

/// What the client library of MySQL answers when a server can't be reached.
const UNREACHABLE: u32 = 2002;

/// Where something went wrong, as sysbench names its functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    ThreadInit,
    ThreadRun,
    Command,
}

impl Place {
    fn function(self) -> &'static str {
        match self {
            Place::ThreadInit => "thread_init",
            Place::ThreadRun => "thread_run",
            Place::Command => "sysbench.cmdline.call_command",
        }
    }
}

/// The server of connection `number`.
fn address(target: &Target, number: Option<u32>) -> Option<&Address> {
    let addresses = &target.hosts.0;
    addresses.get(number? as usize % addresses.len().max(1))
}

fn is_connect(error: &DbError) -> bool {
    matches!(error.cause(), Cause::Unreachable | Cause::Rejected)
}

/// The lines after `FATAL: ` for an error of connection `number`.
fn lines(
    error: &DbError,
    place: Place,
    driver: DbDriver,
    target: &Target,
    number: Option<u32>,
) -> Vec<String> {
    if !is_connect(error) {
        return vec![format!(
            "`{}' function failed: SQL error, errno = {}, state = '{}': {}",
            place.function(),
            error.errno(),
            error.sqlstate(),
            error.message()
        )];
    }
    match driver {
        DbDriver::Mysql => {
            let server = match address(target, number) {
                Some(Address::Tcp { host, port }) => format!(" on host '{host}', port {port}"),
                Some(Address::Unix(path)) => format!(" on socket '{}'", path.display()),
                None => String::new(),
            };
            let errno = if error.errno() == 0 { UNREACHABLE } else { error.errno() };
            vec![
                format!("unable to connect to MySQL server{server}, aborting..."),
                format!("error {errno}: {}", error.message()),
                format!("`{}' function failed: connection creation failed", place.function()),
            ]
        }
        DbDriver::Pgsql => vec![
            format!("Connection to database failed: {}", error.message()),
            format!("`{}' function failed: connection creation failed", place.function()),
        ],
        DbDriver::Sqlite => vec![format!("unable to open the database: {}", error.message())],
    }
}

/// Prints the `FATAL:` lines of an error and, where one is known, the remedy.
pub(super) fn print(
    console: &mut Console,
    error: &DbError,
    place: Place,
    driver: DbDriver,
    target: &Target,
    number: Option<u32>,
) {
    for line in lines(error, place, driver, target, number) {
        console.fatal(line);
    }
    if let Some(detail) = error.detail() {
        console.fatal(detail);
    }
    if let Some(hint) = remedy(error, driver).or(error.hint()) {
        console.hint(hint);
    }
}

/// A remedy in terms of this command line, which says more than what the driver knows.
fn remedy(error: &DbError, driver: DbDriver) -> Option<&'static str> {
    let mysql = driver == DbDriver::Mysql;
    Some(match (error.cause(), error.errno(), error.sqlstate()) {
        (Cause::Unreachable, ..) if mysql => {
            "is the server running? Options: --mysql-host, --mysql-port, --mysql-socket"
        }
        (Cause::Unreachable, ..) if driver == DbDriver::Pgsql => {
            "is the server running? Options: --pgsql-host, --pgsql-port"
        }
        (_, 1045, _) => "check --mysql-user and --mysql-password",
        (_, _, "28P01" | "28000") => "check --pgsql-user and --pgsql-password",
        (_, 1049, _) => "create the database first, or name another one with --mysql-db",
        (_, _, "3D000") => "create the database first, or name another one with --pgsql-db",
        (_, 1040, _) | (_, _, "53300") => {
            "use fewer --threads, or raise max_connections on the server"
        }
        (_, 1146, _) | (_, _, "42P01") => "run the command prepare with the same options first",
        (Cause::Lost, ..) if mysql => {
            "with --mysql-ignore-errors=1213,1020,1205,2013 lost connections are made again"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::ErrorClass;

    fn fatal(error: &DbError, place: Place, url: &str, number: Option<u32>) -> Vec<String> {
        let target: Target = url.parse().expect(url);
        let driver = if url.starts_with("mysql") { DbDriver::Mysql } else { DbDriver::Pgsql };
        lines(error, place, driver, &target, number)
    }

    #[test]
    fn a_failed_connection_names_its_server_in_the_originals_words() {
        let denied =
            DbError::rejected(1045, *b"28000", "Access denied for user 'sbtest'@'localhost'");
        assert_eq!(
            fatal(&denied, Place::ThreadInit, "mysql://a:1,b:2/x", Some(3)),
            [
                "unable to connect to MySQL server on host 'b', port 2, aborting...",
                "error 1045: Access denied for user 'sbtest'@'localhost'",
                "`thread_init' function failed: connection creation failed",
            ]
        );
        let refused = DbError::unreachable("Connection refused");
        assert_eq!(
            fatal(&refused, Place::Command, "mysql:///x?socket=/s", Some(0))[..2],
            [
                "unable to connect to MySQL server on socket '/s', aborting...",
                "error 2002: Connection refused",
            ]
        );
        assert_eq!(
            fatal(&refused, Place::Command, "postgres://h/x", None)[0],
            "Connection to database failed: Connection refused"
        );
    }

    #[test]
    fn an_error_of_a_statement_has_number_and_state() {
        let error = DbError::server(ErrorClass::Other, 1146, *b"42S02", "Table 'x' doesn't exist");
        assert_eq!(
            fatal(&error, Place::ThreadRun, "mysql://h/x", None),
            ["`thread_run' function failed: SQL error, errno = 1146, state = '42S02': \
              Table 'x' doesn't exist"]
        );
        let remedy = remedy(&error, DbDriver::Mysql);
        assert_eq!(remedy, Some("run the command prepare with the same options first"));
    }
}
