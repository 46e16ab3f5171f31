//! Writes the packets of answers. All rows of a result are equal: the first one is encoded, the others are copies with
//! another packet number.

use super::capability::{CACHE_METADATA, DEPRECATE_EOF};
use crate::sql::{Column, Plan, Rows, Statement, Value, clock_ns, write_decimal};

const CATALOG: &[u8] = b"def";
const DATABASE: &[u8] = b"sbtest";
const UTF8MB4: u16 = 45;
const BINARY: u16 = 63;
const TIMESTAMP: &[u8] = b"2024-01-01 00:00:00";
const TIMESTAMP_BINARY: &[u8] = &[4, 0xe8, 0x07, 1, 1];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Text,
    Binary,
}

pub(super) struct Answer<'a> {
    pub(super) out: &'a mut Vec<u8>,
    pub(super) sequence: &'a mut u8,
    pub(super) capabilities: u64,
    pub(super) status: u16,
}

impl Answer<'_> {
    fn begin(&mut self) -> usize {
        let start = self.out.len();
        self.out.extend_from_slice(&[0, 0, 0, *self.sequence]);
        *self.sequence = self.sequence.wrapping_add(1);
        start
    }

    fn finish(&mut self, start: usize) {
        let [a, b, c, ..] = ((self.out.len() - start - 4) as u32).to_le_bytes();
        self.out[start..start + 3].copy_from_slice(&[a, b, c]);
    }

    pub(super) fn packet(&mut self, payload: &[u8]) {
        let start = self.begin();
        self.out.extend_from_slice(payload);
        self.finish(start);
    }

    pub(super) fn ok(mut self, affected: u64) {
        let start = self.begin();
        self.out.push(0);
        lenenc(self.out, affected);
        self.out.push(0);
        self.out.extend_from_slice(&self.status.to_le_bytes());
        self.out.extend_from_slice(&[0, 0]);
        self.finish(start);
    }

    pub(super) fn error(mut self, code: u16, state: &[u8; 5], message: &str) {
        let start = self.begin();
        self.out.push(0xff);
        self.out.extend_from_slice(&code.to_le_bytes());
        self.out.push(b'#');
        self.out.extend_from_slice(state);
        self.out.extend_from_slice(message.as_bytes());
        self.finish(start);
    }

    /// The end of rows: an OK packet that begins with 0xfe, or an EOF packet.
    pub(super) fn end_of_rows(&mut self) {
        let [low, high] = self.status.to_le_bytes();
        if self.capabilities & DEPRECATE_EOF != 0 {
            self.packet(&[0xfe, 0, 0, low, high, 0, 0]);
        } else {
            self.packet(&[0xfe, 0, 0, low, high]);
        }
    }

    /// EOF between columns and rows, for older clients.
    fn end_of_columns(&mut self) {
        if self.capabilities & DEPRECATE_EOF == 0 {
            self.end_of_rows();
        }
    }

    pub(super) fn infile(mut self, name: &[u8]) {
        let start = self.begin();
        self.out.push(0xfb);
        self.out.extend_from_slice(name);
        self.finish(start);
    }

    pub(super) fn prepared(mut self, id: u32, statement: &Statement) {
        let plan = &statement.plan;
        let (columns, params) = (plan.columns.len() as u16, plan.params.len() as u16);
        let start = self.begin();
        self.out.push(0);
        self.out.extend_from_slice(&id.to_le_bytes());
        self.out.extend_from_slice(&columns.to_le_bytes());
        self.out.extend_from_slice(&params.to_le_bytes());
        self.out.extend_from_slice(&[0, 0, 0]);
        self.finish(start);
        for _ in 0..params {
            self.definition(b"?", b"", Value::Text(b""));
        }
        if params > 0 {
            self.end_of_columns();
        }
        for column in &plan.columns {
            self.column(&statement.sql, plan, column);
        }
        if columns > 0 {
            self.end_of_columns();
        }
    }

    /// A result set. Without `with_columns`, clients that cache definitions get none.
    pub(super) fn result(
        mut self,
        sql: &[u8],
        plan: &Plan,
        rows: u64,
        encoding: Encoding,
        with_columns: bool,
    ) {
        let caches = self.capabilities & CACHE_METADATA != 0;
        let with_columns = with_columns || !caches;
        let start = self.begin();
        lenenc(self.out, plan.columns.len() as u64);
        if caches {
            self.out.push(u8::from(with_columns));
        }
        self.finish(start);
        if with_columns {
            for column in &plan.columns {
                self.column(sql, plan, column);
            }
        }
        self.end_of_columns();
        match plan.rows {
            Rows::Variables(pattern) => {
                for (name, value) in plan.variables(sql, pattern) {
                    let start = self.begin();
                    if encoding == Encoding::Binary {
                        self.out.extend_from_slice(&[0; 2]);
                    }
                    bytes(self.out, name.as_bytes());
                    bytes(self.out, value.as_bytes());
                    self.finish(start);
                }
            }
            _ if rows > 0 => {
                let first = self.out.len();
                self.row(encoding, sql, &plan.columns);
                let end = self.out.len();
                for _ in 1..rows {
                    let copy = self.out.len();
                    self.out.extend_from_within(first..end);
                    self.out[copy + 3] = *self.sequence;
                    *self.sequence = self.sequence.wrapping_add(1);
                }
            }
            _ => {}
        }
        self.end_of_rows();
    }

    fn column(&mut self, sql: &[u8], plan: &Plan, column: &Column) {
        self.definition(column.name.of(sql), plan.table.of(sql), column.value);
    }

    fn definition(&mut self, name: &[u8], table: &[u8], value: Value) {
        let (kind, collation, length, flags): (u8, u16, u32, u16) = match value {
            Value::Null => (6, BINARY, 0, 0x80),
            Value::Bool(_) => (1, BINARY, 1, 0x80),
            Value::Int(_) => (3, BINARY, 11, 0x81),
            Value::Big(_) | Value::Clock => (8, BINARY, 21, 0x81),
            Value::Sum(_) => (246, BINARY, 33, 0x80),
            Value::Decimal(..) => (246, BINARY, 14, 0x80),
            Value::Char(text) => (254, UTF8MB4, 4 * (text.len() as u32 + 1), 1),
            Value::Text(_) | Value::Literal(_) => (253, UTF8MB4, 1020, 0),
            Value::Timestamp => (7, BINARY, 19, 0x80),
        };
        let start = self.begin();
        for text in [CATALOG, DATABASE, table, table, name, name] {
            bytes(self.out, text);
        }
        self.out.push(0x0c);
        self.out.extend_from_slice(&collation.to_le_bytes());
        self.out.extend_from_slice(&length.to_le_bytes());
        self.out.push(kind);
        self.out.extend_from_slice(&flags.to_le_bytes());
        let decimals = if let Value::Decimal(_, digits) = value { digits } else { 0 };
        self.out.extend_from_slice(&[decimals, 0, 0]);
        self.finish(start);
    }

    fn row(&mut self, encoding: Encoding, sql: &[u8], columns: &[Column]) {
        let start = self.begin();
        let bitmap = self.out.len() + 1;
        if encoding == Encoding::Binary {
            let length = (columns.len() + 2).div_ceil(8);
            self.out.resize(bitmap + length, 0);
        }
        for (index, column) in columns.iter().enumerate() {
            match encoding {
                Encoding::Text => write_text(self.out, sql, column.value),
                Encoding::Binary if column.value == Value::Null => {
                    self.out[bitmap + (index + 2) / 8] |= 1 << ((index + 2) % 8);
                }
                Encoding::Binary => write_binary(self.out, sql, column.value),
            }
        }
        self.finish(start);
    }
}

fn write_text(out: &mut Vec<u8>, sql: &[u8], value: Value) {
    match value {
        Value::Null => out.push(0xfb),
        Value::Bool(value) => decimal(out, value.into(), 0),
        Value::Int(value) => decimal(out, value.into(), 0),
        Value::Big(value) | Value::Sum(value) => decimal(out, value, 0),
        Value::Decimal(value, digits) => decimal(out, value, digits),
        Value::Char(text) | Value::Text(text) => bytes(out, text),
        Value::Literal(span) => bytes(out, span.of(sql)),
        Value::Timestamp => bytes(out, TIMESTAMP),
        Value::Clock => decimal(out, clock_ns(), 0),
    }
}

fn write_binary(out: &mut Vec<u8>, sql: &[u8], value: Value) {
    match value {
        Value::Bool(value) => out.push(value.into()),
        Value::Int(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::Big(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::Timestamp => out.extend_from_slice(TIMESTAMP_BINARY),
        Value::Clock => out.extend_from_slice(&clock_ns().to_le_bytes()),
        // DECIMAL and texts are length-encoded text in either encoding.
        other => write_text(out, sql, other),
    }
}

/// A number as length-encoded text.
fn decimal(out: &mut Vec<u8>, value: i64, digits: u8) {
    let start = out.len();
    out.push(0);
    write_decimal(out, value, digits);
    out[start] = (out.len() - start - 1) as u8;
}

fn lenenc(out: &mut Vec<u8>, value: u64) {
    let [a, b, c, ..] = value.to_le_bytes();
    match value {
        0..=250 => out.push(a),
        251..=0xffff => out.extend_from_slice(&[0xfc, a, b]),
        0x1_0000..=0xff_ffff => out.extend_from_slice(&[0xfd, a, b, c]),
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

fn bytes(out: &mut Vec<u8>, text: &[u8]) {
    lenenc(out, text.len() as u64);
    out.extend_from_slice(text);
}
