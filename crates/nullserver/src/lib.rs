//! A null server: it answers the MySQL and the PostgreSQL protocol with canned rows, so that only the cost of a load
//! generator itself shows. It checks every byte of every request; a request against the protocol is answered with an
//! error, closes its connection and is counted, so a benchmark can prove that it did not win by sending less.
//!
//! The code shares nothing with dyno's own codecs: each tests the other.

mod bulk;
mod connection;
mod counters;
mod mysql;
mod postgres;
mod protocol;
mod server;
mod sql;

pub use counters::{Counters, ProtocolCounters};
pub use server::{Config, Handle, PostgresAuth, Report, start};
