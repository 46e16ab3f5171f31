//! Rows in PostgreSQL's binary format, on which the server spends a third less than on text: mostly dates and decimals.

use super::sums::{WIDEST, days, hundredths, kinds};
use crate::schema::{SchemaTable, Type};
use dyno_core::{AdminSession, Dialect, RowSource, RowWriter, Session};
use dyno_load::query::answer;

/// Days from 1970-01-01 to 2000-01-01, with which PostgreSQL's days begin.
const EPOCH_DAYS: i64 = 10_957;

/// Whether the server takes a table's rows so: none of those that only speak PostgreSQL's protocol is asked to, and the
/// columns must have the types of a load, as values of other types look otherwise.
pub(super) async fn is_taken(session: &mut AdminSession<'_>, table: SchemaTable) -> bool {
    if session.dialect() != Dialect::Postgres || session.product().name != "PostgreSQL" {
        return false;
    }
    let sql = format!(
        "SELECT string_agg(t.typname, ' ' ORDER BY a.attnum) FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid \
         WHERE a.attrelid = '{}'::regclass AND a.attnum > 0 AND NOT a.attisdropped AND version() LIKE 'PostgreSQL 1_.%'",
        table.name()
    );
    // Without an answer text does; a lost connection shows with the next statement.
    answer(session, &sql).await.is_ok_and(|found| found.single() == Some(types(table).as_str()))
}

fn types(table: SchemaTable) -> String {
    let names = table.columns().iter().map(|(_, kind)| match kind {
        Type::Key => "int8",
        Type::Int => "int4",
        Type::Decimal => "numeric",
        Type::Date => "date",
        Type::Char(_) => "bpchar",
        Type::Varchar(_) => "varchar",
    });
    names.collect::<Vec<_>>().join(" ")
}

pub(super) fn copy_sql(table: SchemaTable, columns: &[&str]) -> String {
    format!("COPY {} ({}) FROM STDIN (FORMAT binary)", table.name(), columns.join(", "))
}

pub(super) struct Binary<'a> {
    rows: &'a mut dyn RowSource,
    kinds: [Type; WIDEST],
}

impl<'a> Binary<'a> {
    pub(super) fn new(table: SchemaTable, rows: &'a mut dyn RowSource) -> Self {
        Binary { rows, kinds: kinds(table) }
    }
}

impl RowSource for Binary<'_> {
    fn is_binary(&self) -> bool {
        true
    }

    #[inline]
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        self.rows.next_row(&mut Values { out, kinds: &self.kinds, column: 0 })
    }

    fn restart(&mut self) {
        self.rows.restart();
    }
}

/// Passes one row on, each value in the form of its column's type.
struct Values<'a> {
    out: &'a mut dyn RowWriter,
    kinds: &'a [Type; WIDEST],
    column: usize,
}

impl Values<'_> {
    #[inline]
    fn kind(&mut self) -> Type {
        // The remainder spares a check: no table has more columns.
        let kind = self.kinds[self.column % WIDEST];
        self.column += 1;
        kind
    }

    #[inline]
    fn decimal(&mut self, hundredths: i64) {
        let (bytes, length) = numeric(hundredths);
        self.out.text(&bytes[..length]);
    }
}

impl RowWriter for Values<'_> {
    #[inline]
    fn int(&mut self, value: i64) {
        match self.kind() {
            Type::Decimal => self.decimal(value * 100),
            // Sizes, quantities and numbers of lines: all below 10,000.
            Type::Int => self.out.text(&(value as i32).to_be_bytes()),
            _ => self.out.int(value),
        }
    }

    #[inline]
    fn double(&mut self, value: f64) {
        match self.kind() {
            Type::Decimal => self.decimal((value * 100.0).round() as i64),
            _ => self.out.double(value),
        }
    }

    #[inline]
    fn text(&mut self, value: &[u8]) {
        match self.kind() {
            Type::Decimal => self.decimal(hundredths(value)),
            Type::Date => self.out.text(&((days(value) - EPOCH_DAYS) as i32).to_be_bytes()),
            _ => self.out.text(value),
        }
    }

    #[inline]
    fn null(&mut self) {
        self.kind();
        self.out.null();
    }
}

/// Digits of base 10,000 before the point: a `decimal(15,2)` has 13 decimal ones.
const WHOLE: usize = 4;

/// A decimal with two places: its numbers of digits, weight of the first one, sign, places, and digits of base 10,000.
#[inline]
fn numeric(hundredths: i64) -> ([u8; 8 + 2 * (WHOLE + 1)], usize) {
    let sign: u16 = if hundredths < 0 { 0x4000 } else { 0 };
    let (mut whole, part) = (hundredths.unsigned_abs() / 100, hundredths.unsigned_abs() % 100);
    let mut bytes = [0; 8 + 2 * (WHOLE + 1)];
    let mut digits = [0_u16; WHOLE];
    let mut count = 0;
    while whole > 0 && count < WHOLE {
        digits[count] = (whole % 10_000) as u16;
        whole /= 10_000;
        count += 1;
    }
    let mut put = |place: usize, value: u16| {
        bytes[2 * place..2 * place + 2].copy_from_slice(&value.to_be_bytes());
    };
    put(0, count as u16 + 1);
    put(1, (count as u16).wrapping_sub(1));
    put(2, sign);
    put(3, 2);
    for (place, digit) in digits[..count].iter().rev().enumerate() {
        put(4 + place, *digit);
    }
    put(4 + count, part as u16 * 100);
    (bytes, 2 * (5 + count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(hundredths: i64) -> Vec<i16> {
        let (bytes, length) = numeric(hundredths);
        let words = bytes[..length].chunks_exact(2);
        words.map(|word| i16::from_be_bytes([word[0], word[1]])).collect()
    }

    #[test]
    fn decimals_are_written_as_the_server_receives_them() {
        assert_eq!(words(1_234), [2, 0, 0, 2, 12, 3_400]);
        assert_eq!(words(-123_456_789), [3, 1, 0x4000, 2, 123, 4_567, 8_900]);
        assert_eq!(words(7), [1, -1, 0, 2, 700]);
        assert_eq!(words(0), [1, -1, 0, 2, 0]);
        assert_eq!(words(99_999_999_999_999), [4, 2, 0, 2, 9_999, 9_999, 9_999, 9_900]);
        assert_eq!(words(1_000_000), [3, 1, 0, 2, 1, 0, 0]);
    }
}
