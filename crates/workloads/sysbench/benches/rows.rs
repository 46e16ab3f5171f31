//! What it costs to make the rows of a load: `cargo bench -p dyno-sysbench`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::Sink;
use dyno_core::{Dialect, Unobserved};
use dyno_sysbench::{Distribution, Options, Test, prepare};
use std::time::Instant;

const ROWS: u32 = 4_000_000;

fn main() {
    for distribution in [Distribution::Uniform, Distribution::Special] {
        let mut options = Options { table_size: ROWS, ..Options::new(Test::ReadWrite) };
        options.random.distribution = distribution;
        let start = Instant::now();
        let report = prepare(&Sink(Dialect::Mysql), &options, 1, 1, &Unobserved)
            .expect("nothing can fail here");
        let nanoseconds = start.elapsed().as_nanos() as f64 / report.rows_loaded as f64;
        println!("{}: {nanoseconds:.0} ns per row", distribution.name());
    }
}
