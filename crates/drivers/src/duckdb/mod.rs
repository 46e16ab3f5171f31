//! Embedded DuckDB, behind the cargo feature `duckdb`.
//!
//! A DuckDB file belongs to one process, and inside it to one instance: all drivers of a file share that one, and its
//! sessions are connections to it. Settings are the instance's: `set.NAME` keys of the URL and global settings of a
//! session hold for all of them until the last driver and session are gone.
//!
//! Its dialect is PostgreSQL's; its product is `DuckDB`. Its catalogue and EXPLAIN differ, and existing tables can't
//! get keys.

mod bulk;
mod error;
mod row;
mod session;

#[cfg(test)]
mod tests;

pub use session::DuckdbSession;

use crate::target::TargetUrl;
use duckdb::{Config, Connection};
use dyno_core::{Capabilities, DbResult, Dialect, Driver, PlanForm};
use error::{opening, translate};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Open files of this process: a file opened twice would have two writers.
static OPEN: Mutex<BTreeMap<PathBuf, Weak<Instance>>> = Mutex::new(BTreeMap::new());

/// One open file, with a connection that makes others.
#[derive(Debug)]
struct Instance(Mutex<Connection>);

#[derive(Clone, Debug)]
pub struct DuckdbDriver {
    instance: Arc<Instance>,
}

impl DuckdbDriver {
    /// Opens the file, creates it where it is missing, and sets the URL's variables.
    pub fn new(target: &TargetUrl) -> DbResult<Self> {
        let path = PathBuf::from(target.database.clone().unwrap_or_default());
        let instance = shared(&path)?;
        for (name, value) in target.session_variables() {
            // The name was checked when the URL was read.
            let set = format!("SET {name} = '{}'", value.replace('\'', "''"));
            locked(&instance.0).execute_batch(&set).map_err(translate)?;
        }
        Ok(DuckdbDriver { instance })
    }
}

/// The open instance of a file, or a new one.
fn shared(path: &Path) -> DbResult<Arc<Instance>> {
    let mut open = locked(&OPEN);
    // A path without a file has no other name either.
    let name = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if let Some(instance) = open.get(&name).and_then(Weak::upgrade) {
        return Ok(instance);
    }
    // Extensions would be fetched from the internet; none is needed.
    let connection = Config::default()
        .with("autoinstall_known_extensions", "false")
        .and_then(|config| Connection::open_with_flags(path, config))
        .map_err(|error| opening(path, error))?;
    let instance = Arc::new(Instance(Mutex::new(connection)));
    let name = path.canonicalize().unwrap_or(name);
    open.retain(|_, instance| instance.strong_count() > 0);
    open.insert(name, Arc::downgrade(&instance));
    Ok(instance)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No panic leaves these data half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// DuckDB lacks parts of PostgreSQL's SQL and all of its system views.
const CAPABILITIES: Capabilities = Capabilities {
    small_transactions: false,
    server_views: false,
    adds_foreign_keys: false,
    settings: Some("SELECT name, value FROM duckdb_settings()"),
    checkpoint: Some("CHECKPOINT"),
    file_bytes: Some("SELECT used_blocks * block_size FROM pragma_database_size()"),
    explain_executed: &["explain (analyze, format json)", "explain analyze"],
    // A key such as `analyzed_plan` and the plan.
    plan_form: PlanForm::LastColumn,
    ..Capabilities::POSTGRES
};

impl Driver for DuckdbDriver {
    type Session = DuckdbSession;

    async fn connect(&self, _number: u32) -> DbResult<DuckdbSession> {
        let connection = locked(&self.instance.0).try_clone();
        let open = connection.and_then(|connection| {
            let version = connection.version()?;
            Ok(DuckdbSession::new(connection, Arc::clone(&self.instance), version))
        });
        open.map_err(translate)
    }

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }

    fn blocks(&self) -> bool {
        true
    }
}
