//! The MySQL client protocol, for MySQL, MariaDB and everything that speaks like them.
//!
//! Nothing here does I/O. Commands are appended to a buffer of the caller; answers are scanned
//! where they were received. The references are "MySQL Internals: Client/Server Protocol" and the
//! "Clients & Utilities: Protocol" pages of MariaDB's knowledge base.
//!
//! - [`packet`]: packets and their sequence numbers, splitting and joining at 16 MiB.
//! - [`handshake`], [`auth`], [`rsa`]: greeting, log-in, passwords.
//! - [`command`], [`statement`]: what the client sends.
//! - [`Answer`]: the scanner of what the server answers; [`row`]: the values in it.
//! - [`error`]: error packets and the classes they are counted in.
//! - [`insert`]: rows as the text of a multi-row `INSERT`.

pub mod answer;
pub mod auth;
pub mod command;
pub mod error;
pub mod handshake;
pub mod insert;
pub mod packet;
pub mod reader;
pub mod row;
pub mod rsa;
pub mod statement;

pub use answer::{Answer, AnswerStep, Encoding};
pub use error::ServerError;
pub use handshake::CapabilityFlags;
pub use row::Definitions;
pub use statement::{PrepareAnswer, Prepared};

use std::fmt;

/// The peer sent what the protocol does not allow; says what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

pub type Scanned<T> = Result<T, Malformed>;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server broke the MySQL protocol: {}", self.0)
    }
}

impl std::error::Error for Malformed {}
