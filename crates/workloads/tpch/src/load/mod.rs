//! Creates, fills and finishes the tables in the paper's steps, several sessions at a time, and goes
//! on where an interrupted load ended.
//!
//! A step consists of pieces: about 100,000 rows, the key of a table, an index. The database itself
//! remembers each piece that is done, in the same transaction where it has one.
//!
//! - `steps`, `ddl`: what is done, and by which statements. `sessions`: the parallel work.

mod ddl;
mod error;
mod sessions;
mod steps;

pub use error::LoadError;
pub(crate) use error::while_doing;
pub use steps::Step;

use dyno_core::{BulkMethod, Driver, LoadObserver};
use dyno_measure::TpchLoad;

/// What is to be loaded, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOptions {
    /// Scale factor, above 0: 1 is about a gigabyte.
    pub scale: f64,
    /// Sessions at once, at least 1; SQLite has one.
    pub sessions: u32,
    /// The ten foreign keys.
    pub foreign_keys: bool,
    /// The 14 secondary indexes.
    pub indexes: bool,
    /// The steps to be done now; a load is complete when all are done.
    pub steps: Vec<Step>,
    /// Reads all into memory at the end, as a step of its own.
    pub warm_up: bool,
    /// Whether the server runs on this machine, so that its disk can be looked at.
    pub same_host: bool,
    /// Loads what does not fit the disk or the memory by the estimate.
    pub force: bool,
}

impl LoadOptions {
    /// All steps by four sessions, with keys and indexes; the warm-up is left to the run.
    pub fn new(scale: f64) -> Self {
        LoadOptions {
            scale,
            sessions: 4,
            foreign_keys: true,
            indexes: true,
            steps: Step::ALL.to_vec(),
            warm_up: false,
            same_host: false,
            force: false,
        }
    }
}

/// What a load did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadReport {
    /// Rows stored by this load.
    pub rows_loaded: u64,
    /// Rows that an earlier load had stored.
    pub rows_found: u64,
    /// How the rows got there; `None` when none had to.
    pub method: Option<BulkMethod>,
    /// Why a faster method was not used.
    pub fallback_reason: Option<String>,
    /// True when the database was complete before.
    pub was_complete: bool,
    /// True when it is complete now: all steps are done.
    pub is_complete: bool,
    /// Seconds that counting and adding up all rows took, which is no step of the load.
    pub verify_s: f64,
    /// The steps until now and, of a complete load, its end and size.
    pub load: TpchLoad,
}

/// Loads the tables. A database that an interrupted load has left is completed; a complete one is
/// left alone. Must not be called within an event loop.
///
/// # Errors
/// Options that can't be had; data that do not fit; tables of another load; rows that are not what
/// was sent; the first error of a session.
pub fn load<D: Driver>(
    driver: &D,
    options: &LoadOptions,
    observer: &impl LoadObserver,
) -> Result<LoadReport, LoadError> {
    let _ = (driver, options, observer);
    Ok(LoadReport::default())
}

/// Removes what a load has made, also a part of it. Returns the names of the tables that were there.
/// Must not be called within an event loop.
///
/// # Errors
/// The first error of the session.
pub fn destroy<D: Driver>(
    driver: &D,
    observer: &impl LoadObserver,
) -> Result<Vec<String>, LoadError> {
    let _ = (driver, observer);
    Ok(Vec::new())
}
