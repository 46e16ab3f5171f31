//! The sysbench OLTP family, native: the tests of sysbench 1.0.20 and the `oltp.lua` family of 0.5,
//! on the MySQL protocol, PostgreSQL and SQLite.
//!
//! - [`SysbenchOptions`]: the options of a test; [`SysbenchOptions::from_pairs`] reads a command line, [`OPTIONS`]
//!   describes every option for help.
//! - [`prepare`], [`prewarm`], [`cleanup`]: the data; [`check`] looks at it before a run.
//! - [`Sysbench`]: the test as a [`dyno_core::Workload`].
//!
//! The folder's README names the source, the version and every deviation.

mod bulk_insert;
pub mod check;
mod distribution;
mod family;
mod load;
mod oltp;
mod options;
mod rows;
mod schema;
mod statements;
mod workload;

pub use distribution::{Era, KeyDistribution, RandomOptions, Sampler, Zipf};
pub use dyno_load::catalog::tables as existing_tables;
pub use family::{DRIVE_ON, DUPLICATE_KEY, FAMILY, PAPER};
pub use load::{CHUNK_ROWS, PrepareReport, prepare};
pub use load::{cleanup, prepare_with_statistics, prewarm};
pub use options::{
    EngineTransactions, OFFER, OPTIONS, OptionGroup, SysbenchOptions, SysbenchTest, dashed,
    find_option, test_options,
};
pub use options::{PGRES_FATAL_ERROR, mysql_error};
pub use workload::{Sysbench, SysbenchWorker};
