//! What a run asks of the tables before it begins.

use super::options::PartitionMethod;
use dyno_core::{DbError, Session};
use std::fmt;

/// What the tables say about themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// Rows of `pgbench_branches`.
    pub scale: i64,
    /// Partitions of `pgbench_accounts`, 0 when it has none.
    pub partitions: u32,
    /// How it is partitioned, if it is by a method that pgbench knows.
    pub partition_method: Option<PartitionMethod>,
}

/// Why the tables say nothing.
#[derive(Debug)]
pub enum TableInfoError {
    /// `could not count number of branches: ...`
    Count(DbError),
    /// `no pgbench_accounts table found in search_path`
    NoAccounts,
}

impl TableInfoError {
    /// pgbench's remedy, where it has one.
    pub fn hint(&self, database: &str) -> Option<String> {
        let _ = database;
        None
    }
}

impl fmt::Display for TableInfoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableInfoError::Count(error) => {
                write!(f, "could not count number of branches: {error}")
            }
            TableInfoError::NoAccounts => {
                f.write_str("no pgbench_accounts table found in search_path")
            }
        }
    }
}

impl std::error::Error for TableInfoError {}

/// Counts the branches and reads how accounts are partitioned.
///
/// # Errors
/// See [`TableInfoError`].
pub async fn table_info<S: Session>(session: &mut S) -> Result<TableInfo, TableInfoError> {
    let _ = session;
    Err(TableInfoError::NoAccounts)
}

/// What pgbench does to the tables before a run without `-n`: vacuums branches and tellers and
/// empties the history. Returns the errors, which pgbench prints and ignores.
pub async fn vacuum_before_run<S: Session>(session: &mut S) -> Vec<DbError> {
    let _ = session;
    Vec::new()
}

/// What `-v` adds: vacuums and analyzes the accounts. Returns the errors, to be ignored.
pub async fn vacuum_accounts<S: Session>(session: &mut S) -> Vec<DbError> {
    let _ = session;
    Vec::new()
}
