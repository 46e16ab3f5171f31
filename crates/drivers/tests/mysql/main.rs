//! MySQL sessions against a real MariaDB, and against servers made for the test.

mod accounts;
mod bulk_loads;
mod fake;
mod fakes;
mod other_server;
mod scripts;
mod statements;
mod support;
