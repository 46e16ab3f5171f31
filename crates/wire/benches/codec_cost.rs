//! Costs of the codecs: `cargo bench -p dyno-wire --bench codec_cost`.

use dyno_core::{AnswerRow, Discard, Param, ParamType, RowWriter, Rows};
use dyno_wire::Names;
use dyno_wire::mysql::row::{MysqlColumn, column_type};
use dyno_wire::mysql::{Answer, Definitions, Encoding, Prepared};
use dyno_wire::postgres::backend::row_description;
use dyno_wire::postgres::frontend::{Execution, execute_once};
use dyno_wire::text_rows::{TextRows, push_double_15g};
use std::hint::black_box;
use std::time::Instant;

/// Short, so that some rounds are not interrupted.
const ROUND: u32 = 20_000;

/// Looks at the first value of each row.
struct First(usize);

impl Rows for First {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        self.0 += row.bytes(0).map_or(0, <[u8]>::len);
    }
}

/// The answer to a point select of sysbench with cached metadata, and with column definitions.
fn answer(cached: bool) -> Vec<u8> {
    let row = [&[0, 0, 119][..], &[b'x'; 119]].concat();
    let column =
        b"\x03def\x06sbtest\x07sbtest1\x07sbtest1\x01c\x01c\x0c\x2d\0\xe0\x01\0\0\xfe\x01\0\0\0\0";
    let mut bytes = Vec::new();
    let head: &[u8] = if cached { &[1, 0] } else { &[1] };
    let columns: &[&[u8]] = if cached { &[] } else { &[column] };
    let end: &[u8] = &[0xfe, 0, 0, 2, 0, 0, 0];
    let packets = [&[head][..], columns, &[&row, end]].concat();
    for (number, payload) in packets.into_iter().enumerate() {
        bytes.extend_from_slice(&(payload.len() as u32 | (number as u32 + 1) << 24).to_le_bytes());
        bytes.extend_from_slice(payload);
    }
    bytes
}

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
    mysql();
    postgres();
}

fn mysql() {
    let mut statement = Prepared::new(1, &[ParamType::Int], Definitions::default());
    let mut out = Vec::with_capacity(512);
    measure("encode an execution with one integer", |round| {
        out.clear();
        let _ = black_box(statement.encode(&[Param::Int(i64::from(round))], &mut out));
        black_box(&out);
    });
    let column = MysqlColumn {
        column_type: column_type::VAR_STRING,
        unsigned: false,
        decimals: 0,
        zero_width: 0,
    };
    let mut definitions = Definitions { columns: vec![column], ..Definitions::default() };
    for (name, cached) in [("with cached columns", true), ("with column definitions", false)] {
        let bytes = answer(cached);
        let mut scanner = Answer::new(true, cached);
        measure(&format!("scan a row {name}, counted"), |_| {
            scanner.begin(Encoding::Binary, 1);
            let _ = black_box(scanner.scan(black_box(&bytes), &mut definitions, &mut Discard));
        });
        measure(&format!("scan a row {name}, read"), |_| {
            let mut first = First(0);
            scanner.begin(Encoding::Binary, 1);
            let _ = black_box(scanner.scan(black_box(&bytes), &mut definitions, &mut first));
            black_box(first.0);
        });
    }
    let (c, pad) = ([b'7'; 119], [b'8'; 59]);
    let mut text = Vec::with_capacity(1 << 16);
    measure("write a sysbench row as text", |round| {
        if text.len() > 60_000 {
            text.clear();
        }
        let mut rows = TextRows::new(&mut text);
        rows.int(i64::from(round));
        rows.int(i64::from(round) * 77);
        rows.text(black_box(&c));
        rows.text(black_box(&pad));
        rows.end_row();
    });
}

fn postgres() {
    let mut out = Vec::with_capacity(512);
    for (name, kind) in [("binary", ParamType::Int), ("text", ParamType::Inferred)] {
        let execution = Execution::new("P_0", &[kind], &[]).expect("a good name");
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
