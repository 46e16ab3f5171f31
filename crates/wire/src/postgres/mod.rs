//! The PostgreSQL frontend/backend protocol, version 3.0, without I/O.
//!
//! Source: the chapter "Frontend/Backend Protocol" of the PostgreSQL documentation (15 to 18). [`frontend`] appends
//! messages to the caller's buffer; [`frame`] finds messages in received bytes, [`backend`] and [`row`] read their
//! bodies in place. Every reader answers truncated, oversized and contradictory input with a [`WireError`]; none panics
//! or allocates by a length that the peer merely claims.

pub mod backend;
pub mod frame;
pub mod frontend;
pub mod row;
pub mod scram;
pub mod types;

pub use scram::md5_password;

use std::fmt;

/// A fault of a message: a sentence without the full stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireError(pub &'static str);

pub type Read<T> = Result<T, WireError>;

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for WireError {}
