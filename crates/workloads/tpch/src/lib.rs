//! TPC-H on PostgreSQL, the MySQL protocol and SQLite: rows, queries, parameters, answers.
//!
//! Clause numbers are those of TPC-H 2.17.3. The folder's README names sources, versions and every
//! deviation. Nothing made with this is a TPC result.

pub mod check;
pub mod degree;
pub mod facts;
mod family;
pub mod generate;
pub mod load;
pub mod metrics;
pub mod options;
mod paper;
pub mod parameters;
mod plans;
pub mod queries;
pub mod refresh;
pub mod run;
pub mod schema;
pub mod state;
pub mod warm;

pub use family::FAMILY;
pub use paper::PAPER;

dyno_facts::catalog!();
