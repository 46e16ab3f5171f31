//! TPC-C with the schema and the statements of BenchmarkSQL 5.0, on the MySQL protocol, PostgreSQL
//! and SQLite.
//!
//! - [`profile`]: what is run how: `bmsql-5.0` and `spec`, as data.
//! - [`values`]: the random values of clauses 2.1.6 and 4.3.2.
//! - [`schema`], [`load`](mod@load): tables, keys and rows, resumable and in parallel.
//! - [`Tpcc`]: the five transactions as a [`dyno_core::Workload`].
//! - [`check`]: the consistency conditions; [`settle`](mod@settle): what the database holds against
//!   what it has acknowledged; [`audit`]: what a run did against what it should have done.
//!
//! Clause numbers are those of TPC-C 5.11. The folder's README names sources, versions and every
//! deviation. What this makes is TPC-C-like: it is not comparable with published TPC results.

mod across;
pub mod audit;
pub mod check;
pub mod facts;
pub mod family;
pub mod ledger;
pub mod load;
pub mod options;
mod paper;
pub mod profile;
mod run;
pub mod schema;
pub mod settle;
pub mod values;

dyno_facts::catalog!();

pub use family::{DRIVE_ON, FAMILY};
pub use ledger::{Counted, DistrictBooks};
pub use options::{Isolation, Staff, TpccOptions};
pub use paper::PAPER;
pub use run::{Handover, LogEntry, Terminal, TerminalLog, Tpcc, TpccWorker, prepared_statements};
pub use values::Timestamp;

/// Items of the catalog, and stock rows of a warehouse (clause 1.2.1).
pub const ITEMS: u32 = 100_000;
/// Districts of a warehouse (clause 1.2.1).
pub const DISTRICTS: u32 = 10;
/// Fewest and most lines of an order (clause 2.4.1.3).
pub(crate) const LINES_MIN: usize = 5;
pub(crate) const LINES_MAX: usize = 15;
/// Customers of a district, and its orders when it is loaded (clauses 1.2.1 and 4.3.3.1).
pub const CUSTOMERS: u32 = 3_000;
/// The first order that is not delivered when a district is loaded (clause 4.3.3.1).
pub const FIRST_UNDELIVERED: u32 = 2_101;
/// Most warehouses: the numbers of the history, 30,000 a warehouse, are 32-bit integers in
/// BenchmarkSQL's schema.
pub const WAREHOUSES_MAX: u32 = 60_000;
