//! Sans-I/O codecs of the MySQL and PostgreSQL protocols.

pub mod decimal;
pub mod postgres;
pub mod text_rows;
