//! Writes the messages of answers. All rows of a result are equal: the first one is encoded, the others are copies.

use super::extended::{oid, type_of};
use crate::counters::Kind;
use crate::sql::{Column, Format, Load, Plan, Value, clock_ns, write_decimal};
use std::io::Write as _;

const TIMESTAMP: &[u8] = b"2024-01-01 00:00:00";
/// Microseconds from 2000-01-01 to 2024-01-01.
const TIMESTAMP_US: i64 = 8_766 * 86_400 * 1_000_000;

fn begin(out: &mut Vec<u8>, kind: u8) -> usize {
    out.extend_from_slice(&[kind, 0, 0, 0, 0]);
    out.len() - 4
}

fn finish(out: &mut [u8], start: usize) {
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

pub(super) fn empty(out: &mut Vec<u8>, kind: u8) {
    out.extend_from_slice(&[kind, 0, 0, 0, 4]);
}

/// ReadyForQuery.
pub(super) fn ready(out: &mut Vec<u8>, in_transaction: bool) {
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5, if in_transaction { b'T' } else { b'I' }]);
}

pub(super) fn error(out: &mut Vec<u8>, severity: &str, state: &[u8; 5], message: &str) {
    let start = begin(out, b'E');
    let fields = [
        (b'S', severity.as_bytes()),
        (b'V', severity.as_bytes()),
        (b'C', state),
        (b'M', message.as_bytes()),
    ];
    for (kind, text) in fields {
        out.push(kind);
        // A zero byte would end the field.
        out.extend(text.iter().map(|&byte| if byte == 0 { b'?' } else { byte }));
        out.push(0);
    }
    out.push(0);
    finish(out, start);
}

pub(super) fn authentication(out: &mut Vec<u8>, kind: u32, rest: &[u8]) {
    let start = begin(out, b'R');
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(rest);
    finish(out, start);
}

/// NegotiateProtocolVersion: minor version 0 and none of the options.
pub(super) fn negotiate(out: &mut Vec<u8>, options: &[&[u8]]) {
    let start = begin(out, b'v');
    out.extend_from_slice(&(3u32 << 16).to_be_bytes());
    out.extend_from_slice(&(options.len() as u32).to_be_bytes());
    for option in options {
        out.extend_from_slice(option);
        out.push(0);
    }
    finish(out, start);
}

pub(super) fn parameter(out: &mut Vec<u8>, name: &str, value: &str) {
    let start = begin(out, b'S');
    for text in [name, value] {
        out.extend_from_slice(text.as_bytes());
        out.push(0);
    }
    finish(out, start);
}

/// BackendKeyData.
pub(super) fn key(out: &mut Vec<u8>, id: u32) {
    let start = begin(out, b'K');
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&0u32.to_be_bytes());
    finish(out, start);
}

/// ParameterDescription; an open type is text, as in a real server.
pub(super) fn parameters(out: &mut Vec<u8>, types: &[u32]) {
    let start = begin(out, b't');
    out.extend_from_slice(&(types.len() as u16).to_be_bytes());
    for &kind in types {
        let kind = if kind == 0 { oid::TEXT } else { kind };
        out.extend_from_slice(&kind.to_be_bytes());
    }
    finish(out, start);
}

/// RowDescription; bit n of `formats`: column n is binary.
pub(super) fn row_description(out: &mut Vec<u8>, sql: &[u8], columns: &[Column], formats: u64) {
    let start = begin(out, b'T');
    out.extend_from_slice(&(columns.len() as u16).to_be_bytes());
    for (index, column) in columns.iter().enumerate() {
        let kind = type_of(column.value);
        let (length, modifier): (i16, i32) = match (kind, column.value) {
            (oid::BOOL, _) => (1, -1),
            (oid::INT4, _) => (4, -1),
            (oid::INT8 | oid::TIMESTAMP, _) => (8, -1),
            // The declared length and its own four bytes.
            (_, Value::Char(text)) => (-1, text.len() as i32 + 5),
            _ => (-1, -1),
        };
        out.extend_from_slice(column.name.of(sql));
        out.extend_from_slice(&[0; 7]);
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&modifier.to_be_bytes());
        out.extend_from_slice(&[0, (formats >> index & 1) as u8]);
    }
    finish(out, start);
}

pub(super) fn rows(out: &mut Vec<u8>, sql: &[u8], columns: &[Column], formats: u64, count: u64) {
    if count == 0 {
        return;
    }
    let first = out.len();
    let start = begin(out, b'D');
    out.extend_from_slice(&(columns.len() as u16).to_be_bytes());
    for (index, column) in columns.iter().enumerate() {
        if column.value == Value::Null {
            out.extend_from_slice(&(-1i32).to_be_bytes());
            continue;
        }
        let value = out.len();
        out.extend_from_slice(&[0; 4]);
        if formats >> index & 1 == 1 {
            write_binary(out, sql, column.value);
        } else {
            write_text(out, sql, column.value);
        }
        let length = (out.len() - value - 4) as u32;
        out[value..value + 4].copy_from_slice(&length.to_be_bytes());
    }
    finish(out, start);
    let end = out.len();
    for _ in 1..count {
        out.extend_from_within(first..end);
    }
}

fn write_text(out: &mut Vec<u8>, sql: &[u8], value: Value) {
    // Writing to a Vec cannot fail.
    let _ = match value {
        Value::Null => Ok(()),
        Value::Bool(value) => out.write_all(if value { b"t" } else { b"f" }),
        Value::Int(value) => write!(out, "{value}"),
        Value::Big(value) | Value::Sum(value) => write!(out, "{value}"),
        Value::Decimal(scaled, digits) => {
            write_decimal(out, scaled, digits);
            Ok(())
        }
        Value::Char(text) | Value::Text(text) => out.write_all(text),
        Value::Literal(span) => out.write_all(span.of(sql)),
        Value::Timestamp => out.write_all(TIMESTAMP),
        Value::Clock => write!(out, "{}", clock_ns()),
    };
}

fn write_binary(out: &mut Vec<u8>, sql: &[u8], value: Value) {
    match value {
        Value::Bool(value) => out.push(value.into()),
        Value::Int(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::Big(value) | Value::Sum(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::Timestamp => out.extend_from_slice(&TIMESTAMP_US.to_be_bytes()),
        Value::Clock => out.extend_from_slice(&clock_ns().to_be_bytes()),
        Value::Decimal(scaled, digits) => write_numeric(out, scaled, digits),
        Value::Null | Value::Char(_) | Value::Text(_) | Value::Literal(_) => {
            write_text(out, sql, value);
        }
    }
}

/// numeric in binary: digits of base 10,000, the last one behind the point.
fn write_numeric(out: &mut Vec<u8>, scaled: i64, digits: u8) {
    const BASE: u64 = 10_000;
    let one = 10_u64.pow(digits.into());
    let (mut whole, part) = (scaled.unsigned_abs() / one, scaled.unsigned_abs() % one);
    let mut groups = [0_u16; 6];
    let mut first = groups.len() - 1;
    groups[first] = (part * 10_u64.pow(4 - u32::from(digits))) as u16;
    while whole > 0 {
        first -= 1;
        groups[first] = (whole % BASE) as u16;
        whole /= BASE;
    }
    let count = (groups.len() - first) as i16;
    let sign = if scaled < 0 { 0x4000 } else { 0 };
    // The weight is the power of 10,000 of the first digit.
    for head in [count, count - 2, sign, digits.into()] {
        out.extend_from_slice(&head.to_be_bytes());
    }
    groups[first..].iter().for_each(|group| out.extend_from_slice(&group.to_be_bytes()));
}

/// CommandComplete; `rows` were affected or returned.
pub(super) fn complete(out: &mut Vec<u8>, sql: &[u8], plan: &Plan, rows: u64) {
    let start = begin(out, b'C');
    let tag: &[u8] = match plan.kind {
        Kind::Select => b"SELECT ",
        Kind::Insert => b"INSERT 0 ",
        Kind::Update => b"UPDATE ",
        Kind::Delete => b"DELETE ",
        Kind::Begin => b"BEGIN",
        Kind::Commit => b"COMMIT",
        _ => b"",
    };
    out.extend_from_slice(tag);
    match plan.kind {
        Kind::Select | Kind::Insert | Kind::Update | Kind::Delete => {
            // Writing to a Vec cannot fail.
            let _ = write!(out, "{rows}");
        }
        Kind::Begin | Kind::Commit => {}
        _ => {
            let [verb, object] = plan.tag;
            out.extend(verb.of(sql).iter().map(u8::to_ascii_uppercase));
            if !object.is_empty() {
                out.push(b' ');
                out.extend(object.of(sql).iter().map(u8::to_ascii_uppercase));
            }
        }
    }
    out.push(0);
    finish(out, start);
}

pub(super) fn copied(out: &mut Vec<u8>, rows: u64) {
    let start = begin(out, b'C');
    // Writing to a Vec cannot fail.
    let _ = write!(out, "COPY {rows}");
    out.push(0);
    finish(out, start);
}

pub(super) fn copy_in(out: &mut Vec<u8>, load: &Load) {
    let format = u8::from(load.format == Format::Binary);
    let start = begin(out, b'G');
    out.push(format);
    out.extend_from_slice(&(load.columns as u16).to_be_bytes());
    for _ in 0..load.columns {
        out.extend_from_slice(&[0, format]);
    }
    finish(out, start);
}
