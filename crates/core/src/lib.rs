//! The words every other crate of dyno shares. No I/O, no dependencies.
//!
//! - [`Driver`] and [`Session`]: how a protocol is spoken, and one open connection.
//! - [`Workload`]: what is executed; its unit is the transaction.
//! - [`Outcome`], [`ErrorClass`], [`DbError`]: how an attempt ended.
//! - [`Tally`]: what an attempt did, statement by statement.
//! - [`Rng`]: one random stream per worker and purpose.
//! - [`offer`], [`options`]: what workloads offer to suites, and their options as tables.
//! - [`named`]: enums whose variants have names.
//! - [`nearest`]: the name that a misspelt one was meant to be.

mod address;
mod capabilities;
mod error;
mod named;
mod nearest;
pub mod offer;
pub mod options;
mod outcome;
mod rng;
mod session;
mod target;
mod text;
mod value;
mod workload;

pub use address::Address;
pub use capabilities::{Capabilities, PlanForm};
pub use error::{Cause, DbError, DbResult, ErrorClass, ErrorOrigin, ErrorParts};
pub use nearest::nearest;
pub use outcome::{Outcome, StatementKind, Tally};
pub use rng::Rng;
pub use session::{
    BulkFallback, BulkMethod, BulkReport, Columns, Discard, Driver, Executed, FlightAnswers,
    Interrupter, Row, RowSource, RowWriter, Rows, Session, Statement, Table,
};
pub use target::{Dialect, Product};
pub use text::push_int;
pub use value::{Param, ParamType};
pub use workload::{Ended, Errand, Plan, TransactionId, TransactionKind, WorkerId, Workload};

/// A point in time or a length of time in nanoseconds, on the monotonic clock of the machine
/// (or on the virtual clock of a simulated loop).
pub type Nanos = u64;

/// Nanoseconds in one second.
pub const SECOND: Nanos = 1_000_000_000;
/// Nanoseconds in one millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
