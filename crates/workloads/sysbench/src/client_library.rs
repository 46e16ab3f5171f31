//! Numbers that errors have in sysbench's client libraries, where no server has given them one.

use dyno_core::{Cause, DbError};
use std::borrow::Cow;

/// What the client library of PostgreSQL calls the result of a statement that failed.
pub const PGRES_FATAL_ERROR: u32 = 7;

/// What the client library of MySQL answers when a connection is lost within a statement.
const LOST: (u32, &str) = (2013, "HY000");

/// Number, SQLSTATE and message of an error of a statement in the client library of MySQL. The library gives no reason
/// where a connection was lost: it is added.
pub fn mysql_error(error: &DbError) -> (u32, &str, Cow<'_, str>) {
    let ((lost, state), message) = (LOST, error.message());
    match (error.cause(), error.errno()) {
        (Cause::Lost, 0) => {
            (lost, state, format!("Lost connection to server during query: {message}").into())
        }
        (Cause::Protocol, 0) => (lost, state, message.into()),
        (_, errno) => (errno, error.sqlstate(), message.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_number_of_a_server_is_a_lost_connection() {
        let lost = DbError::lost("gone");
        let message = "Lost connection to server during query: gone".into();
        assert_eq!(mysql_error(&lost), (2013, "HY000", message));
        let broken = DbError::protocol("an answer is too long");
        assert_eq!(mysql_error(&broken), (2013, "HY000", "an answer is too long".into()));
        let killed = DbError::closed(1927, *b"70100", "killed");
        assert_eq!(mysql_error(&killed), (1927, "70100", "killed".into()));
    }
}
