//! Numbers that errors have in sysbench's client libraries, where no server has given them one.

use dyno_core::{Cause, DbError};

/// What the client library of PostgreSQL calls the result of a statement that failed.
pub const PGRES_FATAL_ERROR: u32 = 7;

/// What the client library of MySQL answers when a connection is lost within a statement.
const LOST: (u32, &str) = (2013, "HY000");

/// Number and SQLSTATE of an error of a statement in the client library of MySQL.
pub fn mysql_codes(error: &DbError) -> (u32, &str) {
    match (error.cause(), error.errno()) {
        (Cause::Lost | Cause::Protocol, 0) => LOST,
        (_, errno) => (errno, error.sqlstate()),
    }
}

/// The message of an error of a statement. That a connection was lost begins as in the client library of MySQL, which
/// gives no reason.
pub fn mysql_message(error: &DbError) -> String {
    match (error.cause(), error.errno()) {
        (Cause::Lost, 0) => format!("Lost connection to server during query: {}", error.message()),
        _ => error.message().to_owned(),
    }
}
