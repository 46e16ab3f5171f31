//! Errors of DuckDB, which have no numbers, only a kind in front of each message.

use duckdb::Error;
use dyno_core::{DbError, ErrorClass};
use std::path::Path;

fn message(error: Error) -> String {
    match error {
        Error::DuckDBFailure(_, Some(message)) => message,
        other => other.to_string(),
    }
}

#[cold]
pub(super) fn translate(error: Error) -> DbError {
    let message = message(error);
    let (class, sqlstate) = if message.starts_with("Constraint Error") {
        (ErrorClass::Constraint, *b"23000")
    } else if message.starts_with("INTERRUPT Error") {
        (ErrorClass::Other, *b"57014")
    } else if message.starts_with("Transaction") && message.contains("onflict") {
        (ErrorClass::Serialization, *b"40001")
    } else {
        (ErrorClass::Other, *b"00000")
    };
    let is_full = message.contains("No space left on device");
    let lacks_memory = message.starts_with("Out of Memory Error");
    let error = DbError::server(class, 0, sqlstate, message);
    if is_full {
        error.with_hint("the disk is full")
    } else if lacks_memory {
        error.with_hint("raise the limit in the URL: ?set.memory_limit=8GB")
    } else {
        error
    }
}

#[cold]
pub(super) fn opening(path: &Path, error: Error) -> DbError {
    let (place, message) = (path.display(), message(error));
    let cant = |what: &str| format!("The DuckDB file {place} {what}: {message}");
    if message.contains("Could not set lock") {
        DbError::unreachable(cant("is open in another program"))
            .with_hint("DuckDB lets one program write to a file: close the other one")
    } else if message.contains("not a valid DuckDB database file") {
        DbError::rejected(0, *b"00000", format!("The file {place} is no DuckDB database."))
            .with_hint("name another file; a missing one is created")
    } else {
        DbError::unreachable(cant("can't be opened"))
            .with_hint("the folder must exist, and this user must be allowed to write there")
    }
}
