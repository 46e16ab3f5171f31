//! Drivers for MySQL, PostgreSQL and embedded SQLite.
//!
//! - [`Database`]: the driver of a target.
//! - [`target`]: URLs, passwords.
//! - [`net`]: addresses, sockets, TLS, receive buffers.
//! - [`mysql`], [`postgres`], [`sqlite`]: one driver each.
//! - [`queue`]: for drivers without a wire.
//! - [`dry`]: sends nothing.
//! - [`route`]: one driver for all nodes of a target.

mod database;
pub mod dry;
mod endless;
pub mod mysql;
pub mod net;
pub mod postgres;
pub mod queue;
pub mod route;
pub mod sqlite;
pub mod target;
#[cfg(test)]
mod tests;

pub use database::Database;
pub use database::has_used_fetched_key;
pub use target::{Secret, TargetUrl};
