//! Embedded SQLite.
//!
//! The file is in WAL mode with `synchronous=NORMAL` unless the URL sets others: commits are atomic and survive a crash
//! of the program, but a power failure may lose the last ones. `synchronous=full` makes each commit durable. Foreign
//! keys are enforced, as in the other dialects. A session waits 5 seconds for a lock, or `busy_timeout_ms`, and blocks
//! its thread meanwhile.
//!
//! SQLite has one writer at a time. A transaction that reads first and writes later fails at once with error 517 when
//! another one has written in between, whatever the time limit. Workloads should therefore open transactions that write
//! with `BEGIN IMMEDIATE` on this dialect; a plain `BEGIN` stays one.

mod session;

#[cfg(test)]
mod tests;

pub use session::SqliteSession;

use crate::target::TargetUrl;
use dyno_core::{DbError, DbResult, Dialect, Driver};
use rusqlite::{Connection, OpenFlags};
use session::opening;
use std::path::PathBuf;
use std::time::Duration;

/// Default time limit for a lock.
const BUSY_TIMEOUT_MS: u64 = 5_000;

#[derive(Clone, Debug)]
pub struct SqliteDriver {
    path: PathBuf,
    busy_timeout_ms: u64,
    synchronous: String,
    journal: String,
}

impl SqliteDriver {
    /// Opens the file, creates it if it is missing, and sets its journal mode while it is unused.
    pub fn new(target: &TargetUrl) -> DbResult<Self> {
        let option = |name: &str, default: &str| {
            target.options.get(name).map_or(default, String::as_str).to_owned()
        };
        let driver = SqliteDriver {
            path: target.database.clone().unwrap_or_default().into(),
            busy_timeout_ms: target.number("busy_timeout_ms").unwrap_or(BUSY_TIMEOUT_MS),
            synchronous: option("synchronous", "normal"),
            journal: option("journal", "wal"),
        };
        driver.open()?;
        Ok(driver)
    }

    fn open(&self) -> DbResult<Connection> {
        let at = |error| opening(&self.path, &error);
        // No URI flag: the path is literal. No mutex: a session stays on one thread.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags).map_err(at)?;
        connection.busy_timeout(Duration::from_millis(self.busy_timeout_ms)).map_err(at)?;
        let journal: String = connection
            .pragma_update_and_check(None, "journal_mode", &self.journal, |row| row.get(0))
            .map_err(at)?;
        if journal != self.journal {
            return Err(DbError::rejected(
                0,
                *b"00000",
                format!(
                    "The SQLite file {} keeps journal mode {journal} instead of {}.",
                    self.path.display(),
                    self.journal
                ),
            )
            .with_hint("close other programs that use the file; network file systems refuse WAL"));
        }
        connection.pragma_update(None, "synchronous", &self.synchronous).map_err(at)?;
        connection.pragma_update(None, "foreign_keys", true).map_err(at)?;
        Ok(connection)
    }
}

impl Driver for SqliteDriver {
    type Session = SqliteSession;

    async fn connect(&self, _number: u32) -> DbResult<SqliteSession> {
        Ok(SqliteSession::new(self.open()?))
    }

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn blocks(&self) -> bool {
        true
    }
}
