//! The durable ledger: a file that knows every order whose commit was sent, and which of them the
//! database has acknowledged. After a crash or a failover [`settle`](crate::settle) holds it against
//! the database.
//!
//! Lines of text, only ever appended, each by one write:
//! - `dyno-tpcc-ledger 1`: what this is.
//! - `run MS WAREHOUSES C_LAST SEED TARGET`: a run begins, on a database with so many warehouses
//!   and this constant of C_LAST, by which it is known again. MS is the time since 1970.
//! - `before W D O`: the district's next order number before the run.
//! - `begun`: orders follow.
//! - `s W D O C L`: the commit of order O of district D of warehouse W, of customer C with L lines,
//!   is about to be sent.
//! - `a W D O C L`: it was acknowledged. `r W D O C L`: it was refused, so it did not happen.
//! - `end MS`: the run has ended.
//!
//! An order that was sent, and neither acknowledged nor refused, has an unknown outcome. Customer
//! and lines tell it from another order that has been given the same number later.

mod read;
mod write;

pub use read::{Recorded, read};
pub use write::LedgerFile;

use dyno_runner::failure::Failure;
use std::io;
use std::path::Path;

const FIRST_LINE: &str = "dyno-tpcc-ledger 1";
/// How all versions of the first line begin.
const FIRST_WORD: &str = "dyno-tpcc-ledger ";
/// What is put behind a line that a crash has cut off, when a ledger is continued.
const TORN: &str = " torn";

/// An order as its commit was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LedgerOrder {
    /// O_ID.
    pub number: u32,
    /// O_C_ID.
    pub customer: u16,
    /// O_OL_CNT.
    pub lines: u8,
}

/// What happened to an order's commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Sent,
    Acknowledged,
    Refused,
}

impl Step {
    fn letter(self) -> &'static [u8] {
        match self {
            Step::Sent => b"s ",
            Step::Acknowledged => b"a ",
            Step::Refused => b"r ",
        }
    }
}

/// What the system said about the file of a ledger.
fn io_failure(path: &Path, what: &str, error: &io::Error) -> Failure {
    Failure::new(format!("The ledger {} {what}: {error}.", path.display()))
}

#[cfg(test)]
mod tests;
