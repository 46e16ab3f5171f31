//! The durable ledger: a file that knows every order whose commit was sent, and which of them the
//! database has acknowledged. After a crash or a failover [`settle`](crate::settle) holds it against
//! the database.
//!
//! Lines of text, only ever appended, each by one write:
//! - `dyno-tpcc-ledger 2`: what this is.
//! - `run MS WAREHOUSES C_LAST SEED TARGET`: a run begins, on a database with so many warehouses
//!   and this constant of C_LAST, by which it is known again. MS is the time since 1970.
//! - `before W D O`: the district's next order number before the run.
//! - `begun`: orders follow.
//! - `s W D O C L`: the commit of order O of district D of warehouse W, of customer C with L lines,
//!   is about to be sent. Behind it the stock that it takes of other warehouses, `W:I` each.
//! - `a W D O C L`: it was acknowledged. `r W D O C L`: it was refused, so it did not happen.
//! - `S W D W D C CENTS`: the commit of a payment is about to be sent: warehouse and district, those of
//!   its customer, who lies on another shard, and the amount. `A` and `R` as above.
//! - `end MS`: the run has ended.
//!
//! What was sent, and neither acknowledged nor refused, has an unknown outcome. Customer
//! and lines tell it from another order that has been given the same number later.

mod read;
mod write;

pub use read::{Across, AcrossWork, Recorded, read};
pub use write::LedgerFile;

use dyno_runner::failure::Failure;
use std::io;
use std::path::Path;

const FIRST_LINE: &str = "dyno-tpcc-ledger 2";
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

/// A row of stock: S_W_ID and S_I_ID.
pub type SupplyKey = (u32, u32);

/// A payment as its commit was sent: customer and amount tell it from others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LedgerPayment {
    /// Of the customer.
    pub warehouse: u32,
    pub district: u32,
    pub customer: u32,
    pub cents: u32,
}

/// What happened to a commit.
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

    fn letter_of_payment(self) -> &'static [u8] {
        match self {
            Step::Sent => b"S ",
            Step::Acknowledged => b"A ",
            Step::Refused => b"R ",
        }
    }
}

/// What the system said about the file of a ledger.
fn io_failure(path: &Path, what: &str, error: &io::Error) -> Failure {
    Failure::new(format!("The ledger {} {what}: {error}.", path.display()))
}

#[cfg(test)]
mod tests;
