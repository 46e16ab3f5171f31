//! `dyno sysbench` as a script sees it: arguments in, text and exit codes out.

mod command_line;
mod encoding;
mod lua;
mod lua_failures;
mod lua_threads;
mod mariadb;
mod null_server;
mod postgres;
mod sqlite;
pub(crate) mod support;
