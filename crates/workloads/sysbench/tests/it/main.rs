//! Tests of the whole crate on a database in memory, and against what the original sends.

mod golden;
mod load;
mod options;
mod parts;
mod stream;
mod support;
