//! Sans-I/O codecs of the MySQL and PostgreSQL protocols.

pub mod mysql;
pub mod postgres;
mod server_text;
pub mod text_rows;

pub use server_text::{Names, SERVER_TEXT_BYTES, server_text, sqlstate};
