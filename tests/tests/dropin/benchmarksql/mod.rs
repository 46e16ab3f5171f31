//! `dyno benchmarksql` as a script sees it.

mod command_line;
mod results;
mod servers;
mod sqlite;
pub(crate) mod support;
