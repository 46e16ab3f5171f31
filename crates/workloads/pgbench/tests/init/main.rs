//! Initialization: the statements of the real pgbench, and real databases.

mod errors;
mod golden;
mod resume;
mod sqlite;
mod support;
