//! Drivers for MySQL, PostgreSQL, embedded SQLite, and a simulated one for tests of the engine.
//!
//! - [`Database`]: the driver of a target.
//! - [`target`]: URLs, passwords.
//! - [`net`]: addresses, sockets, TLS, receive buffers.
//! - [`mysql`], [`postgres`], [`sqlite`], [`sim`]: one driver each.
//! - [`dry`]: sends nothing.
//! - [`route`]: one driver for all nodes of a target.

mod database;
mod disclosure;
pub mod dry;
mod endless;
pub mod mysql;
pub mod net;
pub mod postgres;
mod queue;
pub mod route;
pub mod sim;
pub mod sqlite;
pub mod target;
#[cfg(test)]
mod tests;

pub use database::Database;
pub use disclosure::has_used_fetched_key;
pub use target::{Secret, TargetUrl};
