//! Errors of SQLite.

use dyno_core::{DbError, ErrorClass};
use rusqlite::{Error, ErrorCode};
use std::path::Path;

/// Extended code: a transaction that has read can't write after another one has written.
const BUSY_SNAPSHOT: i32 = 517;

/// `errno` is SQLite's extended result code.
#[cold]
pub(super) fn translate(error: Error) -> DbError {
    let (failure, message) = match error {
        Error::SqliteFailure(failure, message) => (failure, message),
        Error::SqlInputError { error, msg, .. } => (error, Some(msg)),
        other => return DbError::server(ErrorClass::Other, 0, *b"00000", other.to_string()),
    };
    let (class, sqlstate) = match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => (ErrorClass::LockTimeout, *b"00000"),
        ErrorCode::ConstraintViolation => (ErrorClass::Constraint, *b"23000"),
        _ => (ErrorClass::Other, *b"00000"),
    };
    let message = message.unwrap_or_else(|| failure.to_string());
    let errno = failure.extended_code.unsigned_abs();
    let error = DbError::server(class, errno, sqlstate, message);
    match (failure.code, failure.extended_code) {
        (_, BUSY_SNAPSHOT) => error.with_hint("transactions that write should BEGIN IMMEDIATE"),
        (ErrorCode::DatabaseBusy, _) => {
            error.with_hint("raise busy_timeout_ms in the URL, or use fewer writers")
        }
        (ErrorCode::DiskFull, _) => error.with_hint("the disk is full"),
        _ => error,
    }
}

#[cold]
pub(super) fn opening(path: &Path, error: &Error) -> DbError {
    let place = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::CannotOpen) => {
            DbError::unreachable(format!("The SQLite file {place} can't be opened: {error}."))
                .with_hint("the folder must exist, and this user must be allowed to write there")
        }
        Some(ErrorCode::NotADatabase) => {
            rejected(format!("The file {place} is no SQLite database."), error)
                .with_hint("name another file; a missing one is created")
        }
        Some(ErrorCode::ReadOnly) => {
            rejected(format!("The SQLite file {place} may only be read."), error)
                .with_hint("this user must be allowed to write to the file and its folder")
        }
        _ => rejected(format!("The SQLite file {place} can't be used: {error}."), error),
    }
}

fn rejected(message: String, error: &Error) -> DbError {
    let code = error.sqlite_error().map_or(0, |failure| failure.extended_code.unsigned_abs());
    DbError::rejected(code, *b"00000", message)
}
