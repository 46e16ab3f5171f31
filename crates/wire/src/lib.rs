//! Sans-I/O codecs of the MySQL and PostgreSQL protocols.

pub mod decimal;
pub mod mysql;
pub mod names;
pub mod postgres;
pub mod text_rows;
