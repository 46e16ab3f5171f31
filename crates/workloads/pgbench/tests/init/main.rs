//! Initialization: the statements of the real pgbench, and real databases.

mod errors;
mod golden;
mod mariadb;
mod postgres;
mod recorder;
mod resume;
mod sqlite;
mod support;
