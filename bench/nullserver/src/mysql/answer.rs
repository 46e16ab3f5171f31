//! Writes the packets of answers. All rows of a result are equal: the first one is encoded, the others are copies with
//! another packet number.

use super::capability::{CACHE_METADATA, DEPRECATE_EOF};
use crate::answers::{Column, Statement, Value, clock_ns};
use std::io::Write as _;

const DATABASE: &str = "sbtest";
const TABLE: &str = "sbtest1";
const UTF8MB4: u16 = 45;
const BINARY: u16 = 63;

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
        let (columns, params) = (statement.columns().len() as u16, statement.params);
        let start = self.begin();
        self.out.push(0);
        self.out.extend_from_slice(&id.to_le_bytes());
        self.out.extend_from_slice(&columns.to_le_bytes());
        self.out.extend_from_slice(&params.to_le_bytes());
        self.out.extend_from_slice(&[0, 0, 0]);
        self.finish(start);
        for _ in 0..params {
            self.definition("?", &Value::Text(Box::default()));
        }
        if params > 0 {
            self.end_of_columns();
        }
        for column in statement.columns() {
            self.definition(column.name, &column.value);
        }
        if columns > 0 {
            self.end_of_columns();
        }
    }

    /// A result set. Without `with_columns`, clients that cache definitions get none.
    pub(super) fn result(
        mut self,
        columns: &[Column],
        rows: u64,
        encoding: Encoding,
        with_columns: bool,
    ) {
        let caches = self.capabilities & CACHE_METADATA != 0;
        let with_columns = with_columns || !caches;
        let start = self.begin();
        lenenc(self.out, columns.len() as u64);
        if caches {
            self.out.push(u8::from(with_columns));
        }
        self.finish(start);
        if with_columns {
            for column in columns {
                self.definition(column.name, &column.value);
            }
        }
        self.end_of_columns();
        if rows > 0 {
            let first = self.out.len();
            self.row(encoding, columns);
            let end = self.out.len();
            for _ in 1..rows {
                let copy = self.out.len();
                self.out.extend_from_within(first..end);
                self.out[copy + 3] = *self.sequence;
                *self.sequence = self.sequence.wrapping_add(1);
            }
        }
        self.end_of_rows();
    }

    fn definition(&mut self, name: &str, value: &Value) {
        let (kind, collation, length, flags): (u8, u16, u32, u16) = match value {
            Value::Null => (6, BINARY, 0, 0x80),
            Value::Int(_) => (3, BINARY, 11, 0x81),
            Value::Big(_) | Value::Clock => (8, BINARY, 21, 0x81),
            Value::Decimal(_) => (246, BINARY, 14, 0x80),
            Value::Text(_) => (253, UTF8MB4, 1020, 0),
        };
        let start = self.begin();
        for text in ["def", DATABASE, TABLE, TABLE, name, name] {
            bytes(self.out, text.as_bytes());
        }
        self.out.push(0x0c);
        self.out.extend_from_slice(&collation.to_le_bytes());
        self.out.extend_from_slice(&length.to_le_bytes());
        self.out.push(kind);
        self.out.extend_from_slice(&flags.to_le_bytes());
        let decimals = match value {
            Value::Decimal(text) => text.rsplit('.').next().map_or(0, str::len) as u8,
            _ => 0,
        };
        self.out.extend_from_slice(&[decimals, 0, 0]);
        self.finish(start);
    }

    fn row(&mut self, encoding: Encoding, columns: &[Column]) {
        let start = self.begin();
        let bitmap = self.out.len() + 1;
        if encoding == Encoding::Binary {
            let length = (columns.len() + 2).div_ceil(8);
            self.out.resize(bitmap + length, 0);
        }
        for (index, column) in columns.iter().enumerate() {
            match (encoding, &column.value) {
                (Encoding::Binary, Value::Null) => {
                    self.out[bitmap + (index + 2) / 8] |= 1 << ((index + 2) % 8);
                }
                (Encoding::Binary, Value::Int(value)) => self.out.extend(value.to_le_bytes()),
                (Encoding::Binary, Value::Big(value)) => self.out.extend(value.to_le_bytes()),
                (Encoding::Binary, Value::Clock) => self.out.extend(clock_ns().to_le_bytes()),
                // DECIMAL and texts are length-encoded text in either encoding.
                (_, value) => write_text(self.out, value),
            }
        }
        self.finish(start);
    }
}

fn write_text(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.push(0xfb),
        Value::Int(value) => integer(out, (*value).into()),
        Value::Big(value) => integer(out, *value),
        Value::Decimal(text) => bytes(out, text.as_bytes()),
        Value::Text(text) => bytes(out, text),
        Value::Clock => integer(out, clock_ns()),
    }
}

/// A number as length-encoded text.
fn integer(out: &mut Vec<u8>, value: i64) {
    let start = out.len();
    out.push(0);
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{value}");
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
