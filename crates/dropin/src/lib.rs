//! The drop-in front ends: the command lines and the output of other programs, a folder each. They have their options in
//! tables ([`dyno_core::options`]) and drive through what the crates of their workloads have compiled.

pub mod benchmarksql;
pub mod pgbench;
pub mod sysbench;

use std::time::{SystemTime, UNIX_EPOCH};

/// The current time, which is never 0.
fn time_as_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |since| since.as_nanos() as u64).max(1)
}
