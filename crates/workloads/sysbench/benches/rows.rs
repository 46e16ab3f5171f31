//! The cost of making the rows of a load: `cargo bench -p dyno-sysbench`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::Sink;
use dyno_core::Dialect;
use dyno_core::Driver;
use dyno_load::Unobserved;
use dyno_sysbench::{KeyDistribution, SysbenchOptions, SysbenchTest, prepare};
use rustix::time::{ClockId, clock_gettime};

const ROWS: u32 = 4_000_000;

/// CPU time of this process in nanoseconds: elapsed time would measure the machine's other work.
fn cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn main() {
    for distribution in [KeyDistribution::Uniform, KeyDistribution::Special] {
        let mut options =
            SysbenchOptions { table_size: ROWS, ..SysbenchOptions::new(SysbenchTest::ReadWrite) };
        options.random.distribution = distribution;
        let start = cpu_ns();
        let report = prepare(&Sink(Dialect::Mysql).admin(), &options, 1, 1, &Unobserved)
            .expect("nothing can fail here");
        let nanoseconds = (cpu_ns() - start) as f64 / report.rows.rows_loaded as f64;
        println!("{}: {nanoseconds:.0} ns of CPU per row", distribution.name());
    }
}
