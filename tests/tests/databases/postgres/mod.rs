//! Sessions of PostgreSQL on a real server.

mod allocations;
mod scripts;
mod statements;
