//! What everything that runs TPC-C needs around a run: what has to be right before it, what is checked
//! before and after it, and what is told of it.

mod checks;
mod facts;
mod preflight;

pub use checks::{Before, is_missing, look_after, look_before, not_made};
pub use facts::{Crew, facts, tpmc_limit};
pub use preflight::{Found, Need, PreflightError, ledger_failure, preflight};
