//! Types that all other crates of dyno share. No I/O, no dependencies.
//!
//! - [`Driver`] and [`Session`]: a protocol, and one open connection; [`AdminDriver`] and [`AdminSession`] if nothing is measured.
//! - [`Workload`]: the code of transactions.
//! - [`Outcome`], [`ErrorClass`], [`DbError`]: the end of an attempt. [`Error`]: of what is not measured.
//! - [`Tally`]: statements and rows of an attempt.
//! - [`Rng`]: one random stream per worker and purpose.
//! - [`ShardRule`], [`ShardMap`], [`Shards`]: what is behind an endpoint, and which rows lie where.
//! - [`offer`], [`options`]: tests and options of workloads, as tables.
//! - [`NodeSight`]: how a node looks to who waits for it.
//! - [`named`]: enums whose variants have names.
//! - [`is_command`], [`harmless`], [`in_one_line`]: texts of others, which nothing must obey.
//! - [`nearest`]: the known name closest to a misspelt one.

mod admin;
mod capabilities;
mod error;
pub mod offer;
pub mod options;
mod outcome;
mod rng;
mod session;
mod shards;
mod sql;
mod target;
mod text;
mod workload;

pub use admin::{AdminDriver, AdminSession};
pub use capabilities::{Capabilities, PlanForm};
pub use capabilities::{NodeHealth, NodeSight};
pub use error::{Cause, DbError, DbResult, ErrorClass, ErrorOrigin, ErrorParts};
pub use error::{Context, Error, ErrorKind};
pub use error::{harmless, harmless_json, in_one_line, is_command};
pub use options::{is_like_password, nearest};
pub use outcome::{Outcome, StatementKind, Tally};
pub use outcome::{Param, ParamType};
pub use rng::Rng;
pub use session::{
    AnswerRow, AnswerTable, BulkFallback, BulkMethod, BulkReport, ColumnNames, Discard, Driver,
    Executed, FlightAnswers, Interrupter, KeptColumn, ReadKeptRow, RowSource, RowWriter, Rows,
    Session, SessionProof, SessionTls, Statement,
};
pub use shards::{ShardMap, ShardNode, ShardRule, Shards};
pub use sql::{SqlPart, SqlRules};
pub use target::Address;
pub use target::{Dialect, Product, is_shardingsphere};
pub use text::{
    LONGEST_INT, counted, hex, push_int, text_from_bytes, text_to_bytes, utf8_statement, write_int,
};
pub use workload::StatementTable;
pub use workload::{
    DeferredTransaction, EndedTransaction, TerminalPlan, TransactionId, TransactionKind, WorkerId,
    Workload,
};

/// A point or a length of time, on the monotonic clock of the machine or the virtual clock of a simulated loop.
pub type Nanos = u64;

pub const SECOND: Nanos = 1_000_000_000;
pub const MILLISECOND: Nanos = 1_000_000;
