//! Sessions of PostgreSQL on a real server.

mod allocations;
mod later_version;
mod scripts;
mod statements;
