//! What the PostgreSQL codec costs: `cargo run --release -p dyno-wire --example postgres_codec_cost`.

use dyno_core::{Param, ParamType};
use dyno_wire::decimal::push_double_15g;
use dyno_wire::names::Names;
use dyno_wire::postgres::backend::row_description;
use dyno_wire::postgres::frontend::{Execution, execute_once};
use std::hint::black_box;
use std::time::Instant;

/// Short, so that some rounds are not interrupted.
const ROUND: u32 = 20_000;

#[expect(clippy::print_stdout, reason = "an example tells its results")]
fn measure(what: &str, mut work: impl FnMut(u32)) {
    let best = (0..500)
        .map(|_| {
            let begin = Instant::now();
            (0..ROUND).for_each(&mut work);
            begin.elapsed().as_nanos() as f64 / f64::from(ROUND)
        })
        .fold(f64::MAX, f64::min);
    println!("{what}: {best:.1} ns");
}

fn main() {
    let mut out = Vec::with_capacity(512);
    for (name, kind) in [("binary", ParamType::Int), ("text", ParamType::Inferred)] {
        let execution = Execution::new("P_0", &[kind], &[], true).expect("a good name");
        measure(&format!("encode an execution with one integer in {name}"), |round| {
            out.clear();
            let id = Param::Int(i64::from(round) * 7_919);
            let _ = black_box(execution.encode(&mut out, &[id]));
            black_box(&out);
        });
    }
    measure("encode a one-time execution with one integer", |round| {
        out.clear();
        let sql = "SELECT abalance FROM pgbench_accounts WHERE aid = $1;";
        let _ = black_box(execute_once(&mut out, sql, &[Param::Int(i64::from(round))]));
        black_box(&out);
    });
    measure("format a double with 15 digits", |round| {
        out.clear();
        push_double_15g(&mut out, f64::from(round) / 7.0);
        black_box(&out);
    });
    let body = b"\0\x01abalance\0\0\0\x40\0\0\x03\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
    let (mut columns, mut names) = (Vec::new(), Names::default());
    measure("read the description of one column", |_| {
        let _ = black_box(row_description(black_box(body), &mut columns, None));
    });
    measure("read it with its name", |_| {
        let _ = black_box(row_description(black_box(body), &mut columns, Some(&mut names)));
    });
}
