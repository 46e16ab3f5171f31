//! The MySQL client protocol, for MySQL, MariaDB and others, without I/O: commands are appended to a buffer of the
//! caller, answers are scanned in place. Sources: "MySQL Internals: Client/Server Protocol" and "Clients & Utilities:
//! Protocol" in MariaDB's knowledge base.
//!
//! - [`packet`]: packets and their sequence numbers, splitting and joining at 16 MiB.
//! - [`handshake`], [`auth`]: greeting, log-in, passwords.
//! - [`compression`]: the frames in which compressed packets travel.
//! - [`statement`]: commands of the client. [`insert`]: the text of a multi-row `INSERT`.
//! - [`Answer`]: the scanner of answers; [`row`]: their values; [`error`]: error packets and their classes.

pub mod answer;
pub mod auth;
pub mod compression;
pub mod handshake;
pub mod packet;
pub mod row;
pub mod statement;

pub use answer::{Answer, AnswerStep, Encoding};
pub use handshake::CapabilityFlags;
pub use packet::ServerError;
pub use row::Definitions;
pub use statement::{PrepareAnswer, Prepared};

use std::fmt;

/// A violation of the protocol by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

pub type Scanned<T> = Result<T, Malformed>;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server broke the MySQL protocol: {}", self.0)
    }
}

impl std::error::Error for Malformed {}
