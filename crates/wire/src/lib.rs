//! Sans-I/O codecs of the MySQL and PostgreSQL protocols.

pub mod decimal;
mod fixed_bytes;
pub mod mysql;
pub mod names;
pub mod postgres;
mod server_text;
pub mod text_rows;

pub use server_text::{SERVER_TEXT_BYTES, server_text, sqlstate};
