//! Initialization: the statements of the real pgbench, and real databases.

mod errors;
mod golden;
mod mariadb;
mod postgres;
mod resume;
mod sqlite;
mod support;
