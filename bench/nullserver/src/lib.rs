//! A null server: it answers the MySQL and the PostgreSQL protocol with canned rows, so that only the cost of a load
//! generator itself shows. It checks every byte of every request; a request against the protocol is answered with an
//! error, closes its connection and is counted, so a benchmark can prove that it did not win by sending less.
//!
//! # Canned answers
//!
//! The server understands no SQL. A statement is reduced to its shape: lower case, `?` instead of literals and
//! parameters, no needless blanks. `answers.txt` has the queries of `dyno calibrate`, of `bench/compare` and of tests,
//! with the columns and the one row that is repeated in their answer; the longest canned shape that a statement begins
//! with answers it. All others are answered by their first word: writes with the rows that they list, the rest with OK.
//! A query without a canned answer is an error to its client and is counted.
//!
//! So the answer is the same whatever the values are, with one exception that TPC-C cannot do without: an item beyond
//! the last one is not found. Any password is right. A bulk load is counted row by row.
//!
//! The code shares nothing with dyno's own codecs: each tests the other.

mod answers;
mod bulk;
mod connection;
mod counters;
mod mysql;
mod postgres;
mod protocol;
mod server;

pub use counters::{Counters, ProtocolCounters};
pub use server::{Config, Handle, Report, start};
