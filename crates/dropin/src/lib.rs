//! The drop-in front ends: the command lines and the output of other programs, a folder each. They have their options in
//! tables ([`dyno_core::options`]) and drive through what the crates of their workloads have compiled.

pub mod benchmarksql;
pub mod pgbench;
pub mod sysbench;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::time::{SystemTime, UNIX_EPOCH};

/// The current time, which is never 0.
fn time_as_seed() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    since_epoch.map_or(1, |since| since.as_nanos() as u64).max(1)
}

/// Reads an argument that takes one of several words.
pub fn choice<T: Copy + Send + Sync + 'static, const N: usize>(
    table: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let words = PossibleValuesParser::new(table.map(|(word, _)| word));
    words.try_map(move |given| {
        let chosen = table.iter().find(|(word, _)| *word == given);
        chosen.map(|(_, value)| *value).ok_or("an unknown word")
    })
}
