//! For black-box tests: the binary under test, and real servers on free ports, in temporary folders, as an unprivileged
//! user, stopped and removed when the test ends.

mod binary;
mod certificates;
mod chinese;
mod counting;
mod fetched;
mod mariadb;
mod mysql;
mod nats;
mod network;
mod own_network;
mod pgbouncer;
mod postgres;
mod prepared;
mod recorded_row;
mod running;
mod scratch;
mod server;
pub mod sim;
mod sql;
mod transcript;

pub use binary::{ProcessOutput, dyno, dyno_command, dyno_path, is_ignored, peer};
pub use certificates::Certificates;
pub use chinese::english_in_chinese_paper;
pub use counting::{Counting, allocations};
pub use mariadb::MariaDb;
pub use mysql::MySql;
pub use nats::Nats;
pub use network::Network;
pub use own_network::{ELSEWHERE, is_in_own_network};
pub use pgbouncer::PgBouncer;
pub use postgres::Postgres;
pub use recorded_row::RecordedRow;
pub use running::{RunningDyno, commits, is_stored, only_run, wait_until};
pub use scratch::Scratch;
pub use server::{TestServer, free_port};
pub use sql::{number, query_url, target, with_session};
pub use transcript::{Headings, Transcript};

/// Reports that this machine can't execute a test, or its part `test`. `./test` counts the test by the name in front.
#[expect(clippy::print_stderr, reason = "a test that was left out must say so")]
pub fn skipped(test: &str, why: &str) {
    let thread = std::thread::current();
    // libtest calls the thread of a test by its path, unless there is one thread for all.
    let path = thread.name().filter(|name| *name != "main").unwrap_or(test);
    let is_whole_test = path.rsplit("::").next() == Some(test);
    let part = if is_whole_test { String::new() } else { format!("{test}: ") };
    let line = format!("skipped: {path}: {part}{why}\n");
    // In one write: other tests print, too.
    eprint!("{line}");
}

/// The server, or a `return` from the test with a line that says why it was left out.
#[macro_export]
macro_rules! server_or_skip {
    ($server:ty, $test:expr) => {
        match <$server>::start() {
            Ok(server) => server,
            Err(why) => {
                $crate::skipped($test, &why);
                return;
            }
        }
    };
}
