//! Columns and values of a row, read in place.

use std::fmt::{Display, Write};

use dyno_core::{AnswerRow, KeptColumn, RowSource, RowWriter};

use super::packet::{HEADER_BYTES, PacketHeader, PacketReader, TextValue};
use super::{Malformed, Scanned};
use crate::text_rows::Names;
use crate::text_rows::{push_double, push_int};

/// Column and parameter types of the protocol (`MYSQL_TYPE_...`).
pub mod column_type {
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    /// Text: a length and bytes, as for all types without a name here.
    pub const VAR_STRING: u8 = 253;
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definitions {
    pub columns: Vec<MysqlColumn>,
    /// Only if wanted.
    pub names: Names,
}

impl Definitions {
    /// Removes all columns, keeping the memory.
    pub fn clear(&mut self) {
        self.columns.clear();
        self.names.clear();
    }

    /// Adds the column of a definition packet, and its name if wanted.
    pub fn push(&mut self, payload: &[u8], is_named: bool) -> Scanned<()> {
        let (column, name) = MysqlColumn::parse(payload)?;
        self.columns.push(column);
        if is_named {
            self.names.push(name);
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MysqlColumn {
    pub column_type: u8,
    pub unsigned: bool,
    /// Digits after the point, 31 if not fixed.
    pub decimals: u8,
    /// Numbers as text have at least this number of characters, zeros before them (ZEROFILL).
    pub zero_width: u8,
}

impl MysqlColumn {
    /// Reads a column definition packet; returns the column's name too.
    pub fn parse(payload: &[u8]) -> Scanned<(Self, &[u8])> {
        let mut reader = PacketReader::new(payload);
        // Catalog, schema, table, original table.
        for _ in 0..4 {
            reader.lenenc_bytes()?;
        }
        let name = reader.lenenc_bytes()?;
        let _original_name = reader.lenenc_bytes()?;
        let mut fixed = PacketReader::new(reader.lenenc_bytes()?);
        let _charset = fixed.u16()?;
        let display_width = fixed.u32()?;
        let column_type = fixed.u8()?;
        let flags = fixed.u16()?;
        let decimals = fixed.u8()?;
        let zero_width = match column_type {
            _ if flags & 0x40 != 0 => u8::try_from(display_width).unwrap_or(u8::MAX),
            column_type::YEAR => 4,
            _ => 0,
        };
        Ok((MysqlColumn { column_type, unsigned: flags & 0x20 != 0, decimals, zero_width }, name))
    }

    /// For rows that are read later.
    pub(super) fn to_kept(self) -> KeptColumn {
        [self.column_type, u8::from(self.unsigned), self.decimals, self.zero_width]
    }

    fn from_kept([column_type, unsigned, decimals, zero_width]: KeptColumn) -> Self {
        MysqlColumn { column_type, unsigned: unsigned != 0, decimals, zero_width }
    }
}

/// The place of a value in a row's payload; NULL has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellSpan {
    start: u32,
    end: u32,
}

const NULL: CellSpan = CellSpan { start: u32::MAX, end: u32::MAX };

impl CellSpan {
    fn last_read(payload: &[u8], rest: &PacketReader<'_>, length: usize) -> CellSpan {
        // Payloads are far below 4 GiB: see MAX_PAYLOAD_BYTES.
        let end = (payload.len() - rest.rest().len()) as u32;
        CellSpan { start: end - length as u32, end }
    }
}

/// Finds the values of a row of the text protocol.
pub fn scan_text_row(payload: &[u8], columns: usize, spans: &mut Vec<CellSpan>) -> Scanned<()> {
    let mut reader = PacketReader::new(payload);
    spans.clear();
    for _ in 0..columns {
        spans.push(match reader.text_value()? {
            TextValue::Null => NULL,
            TextValue::Bytes(bytes) => CellSpan::last_read(payload, &reader, bytes.len()),
        });
    }
    end_of_row(&reader)
}

/// Finds the values of a row of the binary protocol.
pub fn scan_binary_row(
    payload: &[u8],
    columns: &[MysqlColumn],
    spans: &mut Vec<CellSpan>,
) -> Scanned<()> {
    spans.clear();
    each_binary_value(payload, columns.len(), columns.iter().copied(), |_, span| spans.push(span))
}

/// Hands on each column of a row of the binary protocol with the place of its value.
#[inline]
fn each_binary_value(
    payload: &[u8],
    count: usize,
    columns: impl Iterator<Item = MysqlColumn>,
    mut hand_on: impl FnMut(MysqlColumn, CellSpan),
) -> Scanned<()> {
    let mut reader = PacketReader::new(payload);
    if reader.u8()? != 0 {
        return Err(Malformed("a binary row starts with another byte than 0"));
    }
    // The first two bits are reserved.
    let nulls = reader.bytes((count + 9) / 8)?;
    for (number, column) in columns.enumerate() {
        let bit = number + 2;
        if nulls[bit / 8] & (1 << (bit % 8)) != 0 || column.column_type == column_type::NULL {
            hand_on(column, NULL);
            continue;
        }
        let length = match column.column_type {
            column_type::TINY => 1,
            column_type::SHORT | column_type::YEAR => 2,
            column_type::LONG | column_type::INT24 | column_type::FLOAT => 4,
            column_type::LONGLONG | column_type::DOUBLE => 8,
            column_type::DATE
            | column_type::TIME
            | column_type::DATETIME
            | column_type::TIMESTAMP => usize::from(reader.u8()?),
            _ => {
                let length = reader.lenenc()?;
                usize::try_from(length).unwrap_or(usize::MAX)
            }
        };
        reader.bytes(length)?;
        hand_on(column, CellSpan::last_read(payload, &reader, length));
    }
    end_of_row(&reader)
}

/// A row of several packets as it is kept, in one piece: with its own header, which no packet has.
pub(super) fn kept_joined_row(row: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(JOINED_HEADER.len() + size_of::<u64>() + row.len());
    joined.extend_from_slice(&JOINED_HEADER);
    joined.extend_from_slice(&(row.len() as u64).to_le_bytes());
    joined.extend_from_slice(row);
    joined
}

/// Header of a packet that continues in the next one.
const JOINED_HEADER: [u8; HEADER_BYTES] = [0xff, 0xff, 0xff, 0];

/// The first of rows that are kept as packets, and the bytes that it has with its header.
fn first_kept_row(rows: &[u8]) -> Option<(&[u8], usize)> {
    let (header, rest) = rows.split_first_chunk::<HEADER_BYTES>()?;
    let (length, header_bytes) = if *header == JOINED_HEADER {
        let length = rest.first_chunk::<{ size_of::<u64>() }>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        (length, HEADER_BYTES + size_of::<u64>())
    } else {
        (PacketHeader::read(header)?.length, HEADER_BYTES)
    };
    let end = header_bytes.checked_add(length)?;
    Some((rows.get(header_bytes..end)?, end))
}

/// A [`dyno_core::ReadKeptRow`].
pub(super) fn read_kept_text_row(
    rows: &[u8],
    columns: &[KeptColumn],
    hand_on: &mut dyn FnMut(usize, Option<&[u8]>),
) -> Option<usize> {
    let (row, taken) = first_kept_row(rows)?;
    let mut reader = PacketReader::new(row);
    for number in 0..columns.len() {
        match reader.text_value().ok()? {
            TextValue::Null => hand_on(number, None),
            TextValue::Bytes(bytes) => hand_on(number, Some(bytes)),
        }
    }
    reader.rest().is_empty().then_some(taken)
}

/// A [`dyno_core::ReadKeptRow`].
pub(super) fn read_kept_binary_row(
    rows: &[u8],
    columns: &[KeptColumn],
    hand_on: &mut dyn FnMut(usize, Option<&[u8]>),
) -> Option<usize> {
    let (row, taken) = first_kept_row(rows)?;
    let mut number = 0;
    let kept_columns = columns.iter().copied().map(MysqlColumn::from_kept);
    let read = each_binary_value(row, columns.len(), kept_columns, |column, span| {
        let value = BinaryRow { payload: row, spans: &[span], columns: &[column] };
        match value.bytes(0) {
            Some(bytes) => hand_on(number, Some(bytes)),
            None => hand_on(number, value.string(0).as_deref().map(str::as_bytes)),
        }
        number += 1;
    });
    read.ok().map(|()| taken)
}

fn end_of_row(reader: &PacketReader<'_>) -> Scanned<()> {
    if reader.rest().is_empty() {
        Ok(())
    } else {
        Err(Malformed("a row has more bytes than its columns"))
    }
}

#[derive(Debug)]
pub struct TextRow<'a> {
    pub payload: &'a [u8],
    pub spans: &'a [CellSpan],
}

#[derive(Debug)]
pub struct BinaryRow<'a> {
    pub payload: &'a [u8],
    pub spans: &'a [CellSpan],
    pub columns: &'a [MysqlColumn],
}

fn cell_bytes<'a>(payload: &'a [u8], spans: &[CellSpan], column: usize) -> Option<&'a [u8]> {
    let span = spans.get(column)?;
    payload.get(span.start as usize..span.end as usize)
}

fn parse_text<T: std::str::FromStr>(bytes: &[u8]) -> Option<T> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

impl AnswerRow for TextRow<'_> {
    fn columns(&self) -> usize {
        self.spans.len()
    }

    fn is_null(&self, column: usize) -> bool {
        self.bytes(column).is_none()
    }

    fn int(&self, column: usize) -> Option<i64> {
        parse_text(self.bytes(column)?)
    }

    fn double(&self, column: usize) -> Option<f64> {
        parse_text(self.bytes(column)?)
    }

    fn bytes(&self, column: usize) -> Option<&[u8]> {
        cell_bytes(self.payload, self.spans, column)
    }

    fn string(&self, column: usize) -> Option<String> {
        self.bytes(column).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

/// A binary value, decoded by its type.
enum Decoded<'a> {
    Signed(i64),
    Unsigned(u64),
    Float(f32),
    Double(f64),
    Date(&'a [u8]),
    Time(&'a [u8]),
    Text(&'a [u8]),
}

fn sign_extend(bytes: &[u8], unsigned: bool) -> i64 {
    let negative = !unsigned && bytes.last().is_some_and(|&top| top & 0x80 != 0);
    let mut wide = if negative { [0xff; 8] } else { [0; 8] };
    wide[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(wide)
}

impl<'a> BinaryRow<'a> {
    /// Decodes a cell by its column's type; `None` for NULL.
    fn decode(&self, column: usize) -> Option<Decoded<'a>> {
        let bytes = cell_bytes(self.payload, self.spans, column)?;
        let definition = self.columns.get(column)?;
        Some(match definition.column_type {
            column_type::LONGLONG if definition.unsigned => {
                Decoded::Unsigned(u64::from_le_bytes(*bytes.first_chunk()?))
            }
            column_type::LONGLONG
            | column_type::LONG
            | column_type::INT24
            | column_type::SHORT
            | column_type::TINY => Decoded::Signed(sign_extend(bytes, definition.unsigned)),
            column_type::YEAR => Decoded::Signed(sign_extend(bytes, true)),
            column_type::FLOAT => Decoded::Float(f32::from_le_bytes(*bytes.first_chunk()?)),
            column_type::DOUBLE => Decoded::Double(f64::from_le_bytes(*bytes.first_chunk()?)),
            column_type::DATE | column_type::DATETIME | column_type::TIMESTAMP => {
                Decoded::Date(bytes)
            }
            column_type::TIME => Decoded::Time(bytes),
            _ => Decoded::Text(bytes),
        })
    }
}

impl AnswerRow for BinaryRow<'_> {
    fn columns(&self) -> usize {
        self.spans.len()
    }

    fn is_null(&self, column: usize) -> bool {
        cell_bytes(self.payload, self.spans, column).is_none()
    }

    fn int(&self, column: usize) -> Option<i64> {
        match self.decode(column)? {
            Decoded::Signed(value) => Some(value),
            Decoded::Unsigned(value) => i64::try_from(value).ok(),
            Decoded::Text(text) => parse_text(text),
            _ => None,
        }
    }

    fn double(&self, column: usize) -> Option<f64> {
        match self.decode(column)? {
            Decoded::Signed(value) => Some(value as f64),
            Decoded::Unsigned(value) => Some(value as f64),
            Decoded::Float(value) => Some(f64::from(value)),
            Decoded::Double(value) => Some(value),
            Decoded::Text(text) => parse_text(text),
            Decoded::Date(_) | Decoded::Time(_) => None,
        }
    }

    fn bytes(&self, column: usize) -> Option<&[u8]> {
        match self.decode(column)? {
            Decoded::Text(text) => Some(text),
            _ => None,
        }
    }

    fn string(&self, column: usize) -> Option<String> {
        let definition = *self.columns.get(column)?;
        Some(match self.decode(column)? {
            Decoded::Signed(value) => zero_filled(value, definition),
            Decoded::Unsigned(value) => zero_filled(value, definition),
            Decoded::Float(value) => number_text(f64::from(value), six_digits(value), definition),
            Decoded::Double(value) => number_text(value, value, definition),
            Decoded::Date(bytes) => date_text(bytes, definition),
            Decoded::Time(bytes) => time_text(bytes, definition),
            Decoded::Text(text) => String::from_utf8_lossy(text).into_owned(),
        })
    }
}

fn zero_filled(number: impl Display, column: MysqlColumn) -> String {
    match usize::from(column.zero_width) {
        0 => number.to_string(),
        width => format!("{number:0>width$}"),
    }
}

/// The digits of a FLOAT that texts of it have: FLT_DIG of C.
fn six_digits(value: f32) -> f64 {
    format!("{value:.5e}").parse().unwrap_or_else(|_| f64::from(value))
}

/// A FLOAT or DOUBLE in the form of the server and of its client library: with its fixed decimals, or `free` of them.
fn number_text(value: f64, free: f64, column: MysqlColumn) -> String {
    // 31 means "not fixed".
    if column.decimals < 31 {
        let text = format!("{value:.*}", usize::from(column.decimals));
        return zero_filled(text, column);
    }
    let size = free.abs();
    if size != 0.0 && !(1e-15..1e15).contains(&size) {
        return zero_filled(format!("{free:e}"), column);
    }
    zero_filled(free, column)
}

fn push_fraction(out: &mut String, micros: Option<&[u8]>, decimals: u8) {
    let digits = usize::from(decimals.min(6));
    if digits == 0 {
        return;
    }
    let micros = micros.and_then(|bytes| bytes.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b));
    let text = format!("{micros:06}");
    let _ = write!(out, ".{}", text.get(..digits).unwrap_or(&text));
}

fn date_text(bytes: &[u8], column: MysqlColumn) -> String {
    let [year_low, year_high, month, day, hour, minute, second] = first_bytes::<7>(bytes);
    let year = u16::from_le_bytes([year_low, year_high]);
    let mut out = format!("{year:04}-{month:02}-{day:02}");
    if column.column_type != column_type::DATE {
        let _ = write!(out, " {hour:02}:{minute:02}:{second:02}");
        push_fraction(&mut out, bytes.get(7..), column.decimals);
    }
    out
}

fn time_text(bytes: &[u8], column: MysqlColumn) -> String {
    let [is_negative, days @ .., hour, minute, second] = first_bytes::<8>(bytes);
    let hours = u64::from(u32::from_le_bytes(days)) * 24 + u64::from(hour);
    let sign = if is_negative == 1 { "-" } else { "" };
    let mut out = format!("{sign}{hours:02}:{minute:02}:{second:02}");
    push_fraction(&mut out, bytes.get(8..), column.decimals);
    out
}

/// Returns the first bytes; missing ones are 0.
fn first_bytes<const N: usize>(bytes: &[u8]) -> [u8; N] {
    std::array::from_fn(|index| bytes.get(index).copied().unwrap_or(0))
}

/// Appends text as a quoted literal. `backslash_escapes` is false under the SQL mode NO_BACKSLASH_ESCAPES.
pub fn push_literal(out: &mut Vec<u8>, text: &[u8], backslash_escapes: bool) {
    out.push(b'\'');
    for &byte in text {
        match byte {
            b'\'' => out.push(b'\''),
            b'\\' if backslash_escapes => out.push(b'\\'),
            _ => {}
        }
        out.push(byte);
    }
    out.push(b'\'');
}

/// Appends rows in parentheses, separated by commas, to a buffer that ends with `VALUES `.
#[derive(Debug)]
pub struct InsertRows<'a> {
    out: &'a mut Vec<u8>,
    head: usize,
    backslash_escapes: bool,
}

impl<'a> InsertRows<'a> {
    /// Appends behind the head of the statement in `out`.
    pub fn new(out: &'a mut Vec<u8>, backslash_escapes: bool) -> Self {
        let head = out.len();
        InsertRows { out, head, backslash_escapes }
    }

    /// Appends whole rows until the buffer holds at least `limit_bytes`. Returns their number, and false when the
    /// source has no more.
    pub fn fill(&mut self, rows: &mut dyn RowSource, limit_bytes: usize) -> (u64, bool) {
        let mut count = 0;
        while self.out.len() < limit_bytes {
            let start = self.out.len();
            self.out.extend_from_slice(if start == self.head { b"(" } else { b",(" });
            if !rows.next_row(self) {
                self.out.truncate(start);
                return (count, false);
            }
            count += 1;
            // Every column has written its comma; the last one becomes the end of the row.
            match self.out.last_mut() {
                Some(comma @ b',') => *comma = b')',
                _ => self.out.push(b')'),
            }
        }
        (count, true)
    }
}

impl RowWriter for InsertRows<'_> {
    fn int(&mut self, value: i64) {
        push_int(self.out, value);
        self.out.push(b',');
    }

    fn double(&mut self, value: f64) {
        push_double(self.out, value);
        self.out.push(b',');
    }

    fn text(&mut self, value: &[u8]) {
        push_literal(self.out, value, self.backslash_escapes);
        self.out.push(b',');
    }

    fn null(&mut self) {
        self.out.extend_from_slice(b"NULL,");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(column_type: u8, unsigned: bool, decimals: u8) -> MysqlColumn {
        MysqlColumn { column_type, unsigned, decimals, zero_width: 0 }
    }

    /// A binary value as a whole number, a number and a text.
    fn one(column: MysqlColumn, bytes: &[u8]) -> (Option<i64>, Option<f64>, Option<String>) {
        let mut payload = vec![0, 0];
        payload.extend_from_slice(bytes);
        let mut spans = Vec::new();
        scan_binary_row(&payload, &[column], &mut spans).unwrap();
        let row = BinaryRow { payload: &payload, spans: &spans, columns: &[column] };
        assert_eq!(row.columns(), 1);
        (row.int(0), row.double(0), row.string(0))
    }

    #[test]
    fn binary_numbers_keep_sign_and_width() {
        assert_eq!(one(column(1, false, 0), &[0xfe]), (Some(-2), Some(-2.0), some_text("-2")));
        assert_eq!(one(column(1, true, 0), &[0xfe]), (Some(254), Some(254.0), some_text("254")));
        let min = i64::MIN.to_le_bytes();
        assert_eq!(one(column(8, false, 0), &min).0, Some(i64::MIN));
        assert_eq!(one(column(8, true, 0), &[0xff; 8]).0, None);
        assert_eq!(one(column(8, true, 0), &[0xff; 8]).2, some_text("18446744073709551615"));
        let half = 0.5_f64.to_le_bytes();
        assert_eq!(one(column(5, false, 31), &half), (None, Some(0.5), some_text("0.5")));
        assert_eq!(one(column(5, false, 2), &half).2, some_text("0.50"));
        assert_eq!(one(column(4, false, 31), &0.1_f32.to_le_bytes()).2, some_text("0.1"));
        assert_eq!(
            one(column(246, false, 2), b"\x05-1.50"),
            (None, Some(-1.5), some_text("-1.50"))
        );
    }

    fn some_text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn floats_have_six_digits_as_text() {
        for (value, expected) in [
            (16_777_216.0, "16777200"),
            (1e20, "1e20"),
            (1_234_567.9, "1234570"),
            (0.1, "0.1"),
            (-3.5, "-3.5"),
            (0.0, "0"),
            (f32::MAX, "3.40282e38"),
            (1e15, "1e15"),
        ] {
            assert_eq!(float_text(value, 31), expected);
        }
        assert_eq!(float_text(16_777_216.0, 2), "16777216.00");
        let double = 16_777_216.5_f64.to_le_bytes();
        assert_eq!(one(column(column_type::DOUBLE, false, 31), &double).2.unwrap(), "16777216.5");
    }

    fn float_text(value: f32, decimals: u8) -> String {
        let bytes = value.to_le_bytes();
        one(column(column_type::FLOAT, false, decimals), &bytes).2.unwrap()
    }

    #[test]
    fn zeros_fill_numbers_up_to_the_width_of_their_column() {
        let filled = define_column(column_type::LONG, 5, 0x60, 0);
        assert_eq!(restored_text(filled, &[42, 0, 0, 0]), "00042");
        assert_eq!(restored_text(filled, &[64, 226, 1, 0]), "123456");
        assert_eq!(
            restored_text(define_column(column_type::LONGLONG, 20, 0x60, 0), &[0xff; 8]),
            u64::MAX.to_string()
        );
        assert_eq!(
            restored_text(define_column(column_type::LONG, 5, 0x20, 0), &[42, 0, 0, 0]),
            "42"
        );
        let half = 0.5_f32.to_le_bytes();
        assert_eq!(
            restored_text(define_column(column_type::FLOAT, 12, 0x60, 31), &half),
            "0000000000.5"
        );
        assert_eq!(restored_text(define_column(column_type::FLOAT, 7, 0x60, 2), &half), "0000.50");
        for flags in [0x60, 0x20] {
            assert_eq!(
                restored_text(define_column(column_type::YEAR, 4, flags, 0), &[0, 0]),
                "0000"
            );
        }
    }

    fn define_column(column_type: u8, width: u8, flags: u8, decimals: u8) -> MysqlColumn {
        // Catalog, schema, table, original table, name, original name; then what is of fixed length.
        let fixed = [12, 63, 0, width, 0, 0, 0, column_type, flags, 0, decimals, 0, 0];
        MysqlColumn::parse(&[&b"\x03def\0\0\0\x01a\0"[..], &fixed].concat()).unwrap().0
    }

    /// The text of a cell whose column was kept and restored.
    fn restored_text(column: MysqlColumn, bytes: &[u8]) -> String {
        let restored = MysqlColumn::from_kept(column.to_kept());
        assert_eq!(restored, column);
        cell_text(restored, bytes)
    }

    #[test]
    fn binary_times_print_as_the_server_does() {
        assert_eq!(cell_text(column(10, false, 0), &[4, 0xea, 7, 2, 28]), "2026-02-28");
        assert_eq!(cell_text(column(10, false, 0), &[0]), "0000-00-00");
        assert_eq!(
            cell_text(column(12, false, 0), &[7, 0xea, 7, 2, 28, 1, 2, 3]),
            "2026-02-28 01:02:03"
        );
        let micros = [11, 0xea, 7, 2, 28, 1, 2, 3, 0x40, 0xe2, 1, 0];
        assert_eq!(cell_text(column(7, false, 3), &micros), "2026-02-28 01:02:03.123");
        assert_eq!(cell_text(column(11, false, 0), &[8, 1, 1, 0, 0, 0, 2, 3, 4]), "-26:03:04");
        assert_eq!(cell_text(column(11, false, 0), &[0]), "00:00:00");
    }

    fn cell_text(column: MysqlColumn, bytes: &[u8]) -> String {
        one(column, bytes).2.unwrap()
    }

    #[test]
    fn nulls_come_from_the_bitmap() {
        let columns = [column(8, false, 0), column(253, false, 0), column(3, false, 0)];
        let payload = [0, 0b0000_1100, 7, 0, 0, 0];
        let mut spans = Vec::new();
        scan_binary_row(&payload, &columns, &mut spans).unwrap();
        let row = BinaryRow { payload: &payload, spans: &spans, columns: &columns };
        assert!(row.is_null(0) && row.is_null(1) && !row.is_null(2));
        assert_eq!((row.int(0), row.bytes(1), row.int(2)), (None, None, Some(7)));
        assert!(row.is_null(9) && row.int(9).is_none());
    }

    #[test]
    fn rows_too_short_or_too_long_are_errors() {
        let mut spans = Vec::new();
        let columns = [column(8, false, 0)];
        assert!(scan_binary_row(&[0, 0, 1, 2, 3], &columns, &mut spans).is_err());
        let kept_columns: Vec<KeptColumn> = columns.iter().map(|column| column.to_kept()).collect();
        for (rows, end) in [
            (&[5, 0, 0, 1, 0, 0, 1, 2, 3][..], None),
            (&[10, 0, 0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9][..], Some(14)),
        ] {
            assert_eq!(read_kept_binary_row(rows, &kept_columns, &mut |_, _| {}), end);
        }
        let joined = kept_joined_row(b"\x01a");
        for (rows, end) in [
            (&b"\x05\0\0\x01\x05four"[..], None),
            (&b"\x03\0\0\x01\x01ax"[..], None),
            (&b"\x02\0\0\x01\x01a\x09"[..], Some(6)),
            (&b"\x02\0\0"[..], None),
            (&b"\x02\0\0\x01\x01"[..], None),
            (&b"\xff\xff\xff\0\xff\xff\xff\xff\xff\xff\xff\xff"[..], None),
            (&joined[..], Some(14)),
        ] {
            assert_eq!(read_kept_text_row(rows, &kept_columns, &mut |_, _| {}), end);
        }
        assert!(scan_binary_row(&[0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9], &columns, &mut spans).is_err());
        assert!(scan_text_row(b"\x01a", 2, &mut spans).is_err());
        assert!(scan_text_row(b"\x01ab", 1, &mut spans).is_err());
        scan_text_row(b"\x02-7\xfb\x00", 3, &mut spans).unwrap();
        let row = TextRow { payload: b"\x02-7\xfb\x00", spans: &spans };
        assert_eq!((row.int(0), row.is_null(1)), (Some(-7), true));
        assert_eq!(row.bytes(2), Some(&b""[..]));
    }

    struct Three(u8);

    impl RowSource for Three {
        fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
            if self.0 == 3 {
                return false;
            }
            self.0 += 1;
            out.int(i64::from(self.0));
            out.text(b"it's a \\");
            out.null();
            out.double(0.25);
            true
        }

        fn restart(&mut self) {
            self.0 = 0;
        }
    }

    #[test]
    fn writes_whole_rows_up_to_the_limit() {
        let mut out = b"VALUES ".to_vec();
        let mut source = Three(0);
        assert_eq!(InsertRows::new(&mut out, true).fill(&mut source, 10), (1, true));
        assert_eq!(out, br"VALUES (1,'it''s a \\',NULL,0.25)");
        out.truncate(7);
        assert_eq!(InsertRows::new(&mut out, false).fill(&mut source, 1000), (2, false));
        assert_eq!(out, br"VALUES (2,'it''s a \',NULL,0.25),(3,'it''s a \',NULL,0.25)");
        out.truncate(7);
        assert_eq!(InsertRows::new(&mut out, true).fill(&mut source, 1000), (0, false));
        assert_eq!(out, b"VALUES ");
    }
}
