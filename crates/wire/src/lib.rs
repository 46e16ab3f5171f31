//! Sans-I/O codecs of the MySQL and PostgreSQL protocols.

pub mod mysql;
pub mod postgres;
pub mod text_rows;

pub use text_rows::{Names, SERVER_TEXT_BYTES, server_text, sqlstate};
