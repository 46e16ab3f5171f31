//! The cost of scripts by themselves, without driver and server: ns of CPU per transaction.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

#[path = "../tests/sink/mod.rs"]
mod sink;

use dyno_core::{Dialect, Rng, Tally, Workload};
use dyno_pgbench::run::{PgBench, PgbenchOptions};
use dyno_pgbench::script::{QueryMode, Script, builtins};
use dyno_reactor::block_on;
use rustix::time::{ClockId, clock_gettime};
use sink::Sink;

const TRANSACTIONS: u32 = 300_000;

fn main() {
    let select = "SELECT 1;\n";
    let texts = [
        ("one statement", ""),
        ("+ 10 random", "\\set a random(1, 100000 * :scale)\n"),
        ("+ 10 random_gaussian", "\\set a random_gaussian(1, 1000000, 10.0)\n"),
        ("+ 10 additions", "\\set a :scale + 1\n"),
    ]
    .map(|(name, line)| (name.to_owned(), format!("{}{select}", line.repeat(10))));
    let builtins = builtins().iter().map(|one| (one.name.to_owned(), one.text.to_owned()));
    for (name, text) in texts.into_iter().chain(builtins) {
        for mode in QueryMode::ALL {
            println!("{name:>22} {:>9} {:7.0} ns", mode.name(), cost_ns(&text, mode));
        }
    }
}

fn cost_ns(text: &str, mode: QueryMode) -> f64 {
    let script = Script::parse(text.as_bytes(), "file", mode).expect("a good script");
    let options = PgbenchOptions::new(vec![(script, 1)], mode, 1);
    let silent = Box::new(|_: dyno_pgbench::run::Talk<'_>| {});
    let test = PgBench::new(options, Dialect::Postgres, silent).expect("good options");
    block_on(async {
        let mut session = Sink::new(Dialect::Postgres);
        let rng = Rng::new(1, "worker", 0);
        let mut client = test.open(&mut session, 0, 1, rng).await.expect("a client");
        let begin = cpu_ns();
        for _ in 0..TRANSACTIONS {
            let mut tally = Tally::default();
            let outcome = test.run(&mut client, &mut session, 0, 0, &mut tally).await;
            outcome.expect("a transaction");
        }
        (cpu_ns() - begin) as f64 / f64::from(TRANSACTIONS)
    })
    .expect("a loop")
}

/// CPU time of this thread.
fn cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
