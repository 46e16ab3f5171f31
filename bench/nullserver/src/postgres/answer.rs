//! Writes the messages of answers. All rows of a result are equal: the first one is encoded, the others are copies.

use super::extended::oid;
use crate::answers::{Column, Value, clock_ns};
use std::io::Write as _;

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

/// AuthenticationOk.
pub(super) fn authenticated(out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'R', 0, 0, 0, 8, 0, 0, 0, 0]);
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

/// ParameterDescription.
pub(super) fn parameters(out: &mut Vec<u8>, types: &[u32]) {
    let start = begin(out, b't');
    out.extend_from_slice(&(types.len() as u16).to_be_bytes());
    for &kind in types {
        out.extend_from_slice(&kind.to_be_bytes());
    }
    finish(out, start);
}

/// RowDescription; bit n of `formats`: column n is binary.
pub(super) fn row_description(out: &mut Vec<u8>, columns: &[Column], formats: u64) {
    let start = begin(out, b'T');
    out.extend_from_slice(&(columns.len() as u16).to_be_bytes());
    for (index, column) in columns.iter().enumerate() {
        let (kind, length): (u32, i16) = match column.value {
            Value::Int(_) => (oid::INT4, 4),
            Value::Big(_) | Value::Clock => (oid::INT8, 8),
            Value::Decimal(_) => (oid::NUMERIC, -1),
            Value::Null | Value::Text(_) => (oid::TEXT, -1),
        };
        out.extend_from_slice(column.name.as_bytes());
        out.extend_from_slice(&[0; 7]);
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&(-1i32).to_be_bytes());
        out.extend_from_slice(&[0, (formats >> index & 1) as u8]);
    }
    finish(out, start);
}

pub(super) fn rows(out: &mut Vec<u8>, columns: &[Column], formats: u64, count: u64) {
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
        match (&column.value, formats >> index & 1) {
            (Value::Int(value), 1) => out.extend(value.to_be_bytes()),
            (Value::Big(value), 1) => out.extend(value.to_be_bytes()),
            (Value::Clock, 1) => out.extend(clock_ns().to_be_bytes()),
            (value, _) => write_text(out, value),
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

fn write_text(out: &mut Vec<u8>, value: &Value) {
    // Writing to a Vec cannot fail.
    let _ = match value {
        Value::Null => Ok(()),
        Value::Int(value) => write!(out, "{value}"),
        Value::Big(value) => write!(out, "{value}"),
        Value::Decimal(text) => out.write_all(text.as_bytes()),
        Value::Text(text) => out.write_all(text),
        Value::Clock => write!(out, "{}", clock_ns()),
    };
}

/// CommandComplete; `rows` were written, returned or copied.
pub(super) fn complete(out: &mut Vec<u8>, tag: &str, rows: u64) {
    let start = begin(out, b'C');
    out.extend_from_slice(tag.as_bytes());
    if tag.ends_with(' ') {
        // Writing to a Vec cannot fail.
        let _ = write!(out, "{rows}");
    }
    out.push(0);
    finish(out, start);
}

/// CopyInResponse: rows as text, of as many columns as the first one has.
pub(super) fn copy_in(out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'G', 0, 0, 0, 7, 0, 0, 0]);
}
