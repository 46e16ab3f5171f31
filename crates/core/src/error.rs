//! What a database or the way to it answered instead of a result.

use std::fmt;

/// Why a transaction failed, in the classes that a report counts apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorClass {
    /// SQLSTATE 40001 that is not a deadlock: the transaction must be run again.
    Serialization,
    /// The server chose this transaction as a deadlock victim.
    Deadlock,
    /// A lock was not granted in time (MySQL 1205, PostgreSQL 55P03, SQLite BUSY).
    LockTimeout,
    /// The connection is gone; whether an unanswered commit happened is unknown.
    ConnectionLost,
    /// SQLSTATE class 23: duplicate key, foreign key, check, not null.
    Constraint,
    /// Everything else.
    Other,
}

impl ErrorClass {
    /// All classes, in the order in which reports list them.
    pub const ALL: [ErrorClass; 6] = [
        ErrorClass::Serialization,
        ErrorClass::Deadlock,
        ErrorClass::LockTimeout,
        ErrorClass::ConnectionLost,
        ErrorClass::Constraint,
        ErrorClass::Other,
    ];

    /// The name used in files and reports, such as `lock_timeout`.
    pub fn name(self) -> &'static str {
        match self {
            ErrorClass::Serialization => "serialization",
            ErrorClass::Deadlock => "deadlock",
            ErrorClass::LockTimeout => "lock_timeout",
            ErrorClass::ConnectionLost => "connection_lost",
            ErrorClass::Constraint => "constraint",
            ErrorClass::Other => "other",
        }
    }
}

/// Which part refused: decides the remedy and the drop-in front ends' wording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The server could not be reached: refused, no route, no such host or socket.
    Unreachable,
    /// The server was reached and refused the log-in (password, database, TLS, too many connections).
    Rejected,
    /// The server answered a statement with an error.
    Server,
    /// The connection broke, or the server ended it.
    Lost,
    /// The peer sent what the protocol does not allow, or a limit of dyno was passed.
    Protocol,
    /// The workload itself can't go on: an expression of a script failed. No server was asked.
    Workload,
}

/// dyno's own SQLSTATE for a connection that broke while the server said nothing.
const LOST: [u8; 5] = *b"08006";

/// An error of a session: small, boxed, allocated only when something went wrong.
#[derive(Clone, PartialEq, Eq)]
pub struct DbError(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    class: ErrorClass,
    cause: Cause,
    errno: u32,
    sqlstate: [u8; 5],
    message: String,
    detail: Option<String>,
    hint: Option<String>,
}

impl DbError {
    /// An error that a server sent. `errno` is MySQL's or SQLite's number, 0 where there is none;
    /// `sqlstate` is `*b"00000"` where there is none.
    pub fn server(
        class: ErrorClass,
        errno: u32,
        sqlstate: [u8; 5],
        message: impl Into<String>,
    ) -> Self {
        Self::new(Cause::Server, class, errno, sqlstate, message)
    }

    /// The connection broke after it had been established.
    pub fn lost(message: impl Into<String>) -> Self {
        Self::closed(0, LOST, message)
    }

    /// The server ended an established connection and sent a reason, with codes as for [`DbError::server`].
    pub fn closed(errno: u32, sqlstate: [u8; 5], message: impl Into<String>) -> Self {
        Self::new(Cause::Lost, ErrorClass::ConnectionLost, errno, sqlstate, message)
    }

    /// The server could not be reached.
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::new(Cause::Unreachable, ErrorClass::ConnectionLost, 0, *b"08001", message)
    }

    /// The server refused the log-in.
    pub fn rejected(errno: u32, sqlstate: [u8; 5], message: impl Into<String>) -> Self {
        Self::new(Cause::Rejected, ErrorClass::Other, errno, sqlstate, message)
    }

    /// The peer broke the protocol, or a limit of dyno was passed.
    pub fn protocol(message: impl Into<String>) -> Self {
        Self::new(Cause::Protocol, ErrorClass::ConnectionLost, 0, *b"08P01", message)
    }

    /// The workload itself can't go on with this worker; its session is still usable.
    pub fn workload(message: impl Into<String>) -> Self {
        Self::new(Cause::Workload, ErrorClass::Other, 0, *b"00000", message)
    }

    /// The driver has no such operation; its session is still usable.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Cause::Protocol, ErrorClass::Other, 0, *b"0A000", message)
    }

    fn new(
        cause: Cause,
        class: ErrorClass,
        errno: u32,
        sqlstate: [u8; 5],
        message: impl Into<String>,
    ) -> Self {
        DbError(Box::new(Inner {
            class,
            cause,
            errno,
            sqlstate,
            message: message.into(),
            detail: None,
            hint: None,
        }))
    }

    /// Counts the error under another class: a log-in that is refused because the server is just
    /// starting is a lost connection, a parameter of the wrong type is none.
    #[must_use]
    pub fn with_class(mut self, class: ErrorClass) -> Self {
        self.0.class = class;
        self
    }

    /// Adds the server's detail line.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds a remedy, shown after `hint:`.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The class under which the error is counted.
    pub fn class(&self) -> ErrorClass {
        self.0.class
    }

    /// Which part refused.
    pub fn cause(&self) -> Cause {
        self.0.cause
    }

    /// MySQL's or SQLite's error number, 0 where there is none.
    pub fn errno(&self) -> u32 {
        self.0.errno
    }

    /// The five letters of the SQLSTATE.
    pub fn sqlstate(&self) -> &str {
        std::str::from_utf8(&self.0.sqlstate).unwrap_or("?????")
    }

    /// The server's or system's own words, without any password.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The server's detail line, if it sent one.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// A remedy, if one is known.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// True when message and codes are a server's, false when they are dyno's own.
    pub fn is_from_server(&self) -> bool {
        match self.0.cause {
            Cause::Server | Cause::Rejected => true,
            Cause::Lost => self.0.errno != 0 || self.0.sqlstate != LOST,
            Cause::Unreachable | Cause::Protocol | Cause::Workload => false,
        }
    }

    /// True when the session can't be used any more and must be connected again.
    pub fn is_fatal(&self) -> bool {
        self.0.class == ErrorClass::ConnectionLost
    }
}

impl fmt::Debug for DbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DbError({:?}, {:?}, {self})", self.0.cause, self.0.class)
    }
}

impl fmt::Display for DbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = &self.0.message;
        // The codes stand inside the sentence.
        let open = message.strip_suffix('.').unwrap_or(message);
        match (self.0.errno, self.sqlstate()) {
            // dyno's own codes are for counting.
            (0, _) if !self.is_from_server() => f.write_str(message),
            (0, "00000") => f.write_str(message),
            (0, state) => write!(f, "{open} (SQLSTATE {state})"),
            (errno, "00000") => write!(f, "{open} (error {errno})"),
            (errno, state) => write!(f, "{open} (error {errno}, SQLSTATE {state})"),
        }
    }
}

impl std::error::Error for DbError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_stand_inside_the_sentence_and_only_where_a_server_sent_them() {
        let server = |errno, state| DbError::server(ErrorClass::Other, errno, state, "It failed.");
        let cases = [
            (server(1146, *b"42S02"), "It failed (error 1146, SQLSTATE 42S02)"),
            (server(5, *b"00000"), "It failed (error 5)"),
            (server(0, *b"00000"), "It failed."),
            (DbError::rejected(0, *b"28P01", "No"), "No (SQLSTATE 28P01)"),
            (DbError::unreachable("It can't be reached."), "It can't be reached."),
            (DbError::lost("gone"), "gone"),
            (DbError::closed(0, *b"57P01", "bye"), "bye (SQLSTATE 57P01)"),
            (DbError::closed(1927, *b"70100", "killed"), "killed (error 1927, SQLSTATE 70100)"),
        ];
        for (error, text) in cases {
            assert_eq!(error.to_string(), text);
        }
    }
}
