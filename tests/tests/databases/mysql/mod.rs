//! Sessions of MySQL on a real server.

mod accounts;
mod bulk_loads;
mod compression;
mod other_server;
mod scripts;
mod statements;
mod support;
