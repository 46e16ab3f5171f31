//! Tests of the whole crate on a database in memory, and against what the original sends.

mod load;
mod support;
