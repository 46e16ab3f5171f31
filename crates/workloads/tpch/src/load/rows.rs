//! Rows on their way into a table: added up column by column, and on PostgreSQL in its binary format, on which the
//! server spends a third less than on text (mostly dates and decimals).
//!
//! Numbers and days add up as they are (money as hundredths), texts by their lengths. A row that is missing, doubled,
//! cut short or shifted by a column changes a sum; when all is loaded, the database is requested the same sums.

use super::steps::TpchStep;
use crate::generate::TpchRows;
use crate::schema::{SchemaTable, Type};
use crate::state::CompletedPiece;
use dyno_core::{AdminSession, Dialect, RowSource, RowWriter};
use dyno_load::query::{answer, whole};
use dyno_load::{LoadError, while_doing};

/// Most columns of a table.
const WIDEST: usize = 16;
/// Days from 1970-01-01 to 2000-01-01, with which PostgreSQL's days begin.
const EPOCH_DAYS: i64 = 10_957;

/// The rows of one piece, whose sums fit 64 bits.
pub(super) struct SentRows {
    rows: TpchRows,
    is_binary: bool,
    sums: [i64; WIDEST],
    kinds: [Type; WIDEST],
    columns: usize,
}

impl SentRows {
    pub(super) fn new(table: SchemaTable, rows: TpchRows, is_binary: bool) -> Self {
        let columns = table.columns();
        let kinds = std::array::from_fn(|at| columns.get(at).map_or(Type::Int, |column| column.1));
        SentRows { rows, is_binary, sums: [0; WIDEST], kinds, columns: columns.len() }
    }

    /// The sums as they are kept in the database between loads.
    pub(super) fn sums_text(&self) -> String {
        let sums: Vec<String> = self.sums[..self.columns].iter().map(i64::to_string).collect();
        sums.join(" ")
    }
}

impl RowSource for SentRows {
    fn is_binary(&self) -> bool {
        self.is_binary
    }

    #[inline]
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        let (sums, kinds, is_binary) = (&mut self.sums, &self.kinds, self.is_binary);
        self.rows.next_row(&mut SummingWriter { out, sums, kinds, is_binary, column: 0 })
    }

    fn restart(&mut self) {
        self.rows.restart();
        self.sums = [0; WIDEST];
    }
}

/// Adds the values of one row and passes them on.
struct SummingWriter<'a> {
    out: &'a mut dyn RowWriter,
    sums: &'a mut [i64; WIDEST],
    kinds: &'a [Type; WIDEST],
    is_binary: bool,
    column: usize,
}

impl SummingWriter<'_> {
    #[inline]
    fn write_value(&mut self, amount: impl Fn(Type) -> i64, write: impl Fn(&mut dyn RowWriter)) {
        // The remainder spares a check: no table has more columns.
        let column = self.column % WIDEST;
        self.column += 1;
        let kind = self.kinds[column];
        let amount = amount(kind);
        self.sums[column] += amount;
        match kind {
            Type::Decimal if self.is_binary => {
                let (bytes, length) = numeric(amount);
                self.out.text(&bytes[..length]);
            }
            // Sizes, quantities and numbers of lines: all below 10,000.
            Type::Int if self.is_binary => self.out.text(&(amount as i32).to_be_bytes()),
            Type::Date if self.is_binary => {
                self.out.text(&((amount - EPOCH_DAYS) as i32).to_be_bytes());
            }
            _ => write(self.out),
        }
    }
}

impl RowWriter for SummingWriter<'_> {
    #[inline]
    fn int(&mut self, value: i64) {
        self.write_value(
            |kind| if kind == Type::Decimal { value * 100 } else { value },
            |out| out.int(value),
        );
    }

    #[inline]
    fn double(&mut self, value: f64) {
        self.write_value(|_| (value * 100.0).round() as i64, |out| out.double(value));
    }

    #[inline]
    fn text(&mut self, value: &[u8]) {
        self.write_value(
            |kind| match kind {
                Type::Decimal => hundredths(value),
                Type::Date => days(value),
                _ => value.len() as i64,
            },
            |out| out.text(value),
        );
    }

    #[inline]
    fn null(&mut self) {
        self.column += 1;
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
    let mut put_word = |place: usize, value: u16| {
        bytes[2 * place..2 * place + 2].copy_from_slice(&value.to_be_bytes());
    };
    put_word(0, count as u16 + 1);
    put_word(1, (count as u16).wrapping_sub(1));
    put_word(2, sign);
    put_word(3, 2);
    for (place, digit) in digits[..count].iter().rev().enumerate() {
        put_word(4 + place, *digit);
    }
    put_word(4 + count, part as u16 * 100);
    (bytes, 2 * (5 + count))
}

/// `-12.34` as -1234: a number that dyno itself has written with two decimals, or none.
#[inline]
fn hundredths(text: &[u8]) -> i64 {
    let (digits, is_negative) = match text {
        [b'-', digits @ ..] => (digits, true),
        digits => (digits, false),
    };
    let value = match digits {
        [whole @ .., b'.', tens, ones] => parse_digits(whole) * 100 + parse_digits(&[*tens, *ones]),
        whole => parse_digits(whole) * 100,
    };
    if is_negative { -value } else { value }
}

#[inline]
fn parse_digits(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit.wrapping_sub(b'0')))
}

/// Days from 1970-01-01 to `1992-01-01`.
#[inline]
fn days(text: &[u8]) -> i64 {
    let &[y1, y2, y3, y4, _, m1, m2, _, d1, d2] = text else { return 0 };
    let year = parse_digits(&[y1, y2, y3, y4]);
    let (month, day) = (parse_digits(&[m1, m2]), parse_digits(&[d1, d2]));
    // Years begin with March: the leap day is the last one then.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before_1970 = 719_468;
    let year_days = 365 * year + year / 4 - year / 100 + year / 400;
    year_days + (153 * month + 2) / 5 + day - 1 - before_1970
}

/// A sum of money as the database writes it, in hundredths.
fn sum_of_money(text: &str) -> Option<i128> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "00"));
    if whole.is_empty() || decimals.len() != 2 {
        return None;
    }
    format!("{whole}{decimals}").parse().ok()
}

/// Adds the sums of a piece to the column sums of a table's rows.
fn add_up(sums: &mut [i128], piece: &str) {
    for (sum, number) in sums.iter_mut().zip(piece.split(' ')) {
        *sum += number.parse::<i128>().unwrap_or(0);
    }
}

/// The statement that counts and adds up what is stored.
fn sums_query(table: SchemaTable, dialect: Dialect) -> String {
    let sums = table.columns().iter().map(|&(name, kind)| match (kind, dialect) {
        (Type::Key | Type::Int, _) => format!("sum({name})"),
        (Type::Decimal, Dialect::Sqlite) => format!("sum(cast(round({name} * 100) as integer))"),
        (Type::Decimal, _) => format!("sum({name})"),
        (Type::Date, Dialect::Postgres) => format!("sum({name} - date '1970-01-01')"),
        (Type::Date, Dialect::Mysql) => format!("sum(datediff({name}, '1970-01-01'))"),
        (Type::Date, Dialect::Sqlite) => {
            format!("sum(cast(julianday({name}) - 2440587.5 as integer))")
        }
        (_, Dialect::Mysql) => format!("sum(char_length({name}))"),
        (_, Dialect::Postgres | Dialect::Sqlite) => format!("sum(length({name}))"),
    });
    let sums: Vec<String> = sums.collect();
    format!("SELECT count(*), {} FROM {}", sums.join(", "), table.name())
}

/// Compares what is stored in a table with what the pieces of its load have sent.
pub(super) async fn verify(
    session: &mut AdminSession<'_>,
    table: SchemaTable,
    pieces: &[CompletedPiece],
) -> Result<(), LoadError> {
    let name = table.name();
    let prefix = format!("{}/{name}.", TpchStep::Load.name());
    let (mut rows, mut sums) = (0, vec![0_i128; table.columns().len()]);
    for piece in pieces.iter().filter(|piece| piece.name.starts_with(&prefix)) {
        rows += piece.rows;
        add_up(&mut sums, &piece.sums);
    }
    let dialect = session.dialect();
    let answer = answer(session, &sums_query(table, dialect)).await;
    let answer = answer.map_err(while_doing(format!("adding up table {name}")))?;
    let cells = answer.rows.into_iter().flatten().map(Option::unwrap_or_default);
    let cells: Vec<String> = cells.collect();
    let count = cells.first().and_then(|cell| cell.parse::<u64>().ok()).unwrap_or(0);
    let hint = "drop the tables and load again; look for triggers, rules and other programs that \
                write there";
    if count != rows {
        let problem = format!("Table {name} has {count} rows, and {rows} were sent.");
        return Err(LoadError::data(problem, hint));
    }
    for (index, (sent, (column, kind))) in sums.into_iter().zip(table.columns()).enumerate() {
        let cell = cells.get(index + 1).map_or("", String::as_str);
        let stored = match (kind, dialect) {
            (Type::Decimal, Dialect::Mysql | Dialect::Postgres) => sum_of_money(cell),
            _ => whole(cell),
        };
        if stored != Some(sent) {
            let problem = format!(
                "The {rows} rows of table {name} are not those that were sent: column {column} adds \
                 up to {cell}, not to {sent} (money in hundredths, days from 1970, texts by length)."
            );
            return Err(LoadError::data(problem, hint));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_count_from_1970() {
        assert_eq!(days(b"1970-01-01"), 0);
        assert_eq!(days(b"1970-03-01"), 59);
        assert_eq!(days(b"1992-01-01"), 8035);
        assert_eq!(days(b"1996-02-29"), 9555);
        assert_eq!(days(b"1998-12-31"), 10_591);
    }

    #[test]
    fn money_is_counted_in_hundredths() {
        let cases: [(&str, i64); 5] =
            [("901.00", 90_100), ("-999.99", -99_999), ("0.05", 5), ("17", 1_700), ("-0.01", -1)];
        for (text, value) in cases {
            assert_eq!(hundredths(text.as_bytes()), value, "{text}");
        }
    }

    #[test]
    fn a_sum_of_money_has_two_decimals_or_none() {
        assert_eq!(sum_of_money("-12345678901234567890.05"), Some(-1_234_567_890_123_456_789_005));
        assert_eq!(sum_of_money("17"), Some(1_700));
        assert_eq!(sum_of_money("1.5"), None);
        assert_eq!(sum_of_money(""), None);
    }

    #[test]
    fn sums_of_pieces_add_up_beyond_64_bits() {
        let mut sums = vec![1, -2, i128::from(u64::MAX) * 3];
        add_up(&mut sums, "1 -2 9223372036854775807");
        assert_eq!(sums, [2, -4, i128::from(u64::MAX) * 3 + i128::from(i64::MAX)]);
    }

    fn numeric_words(hundredths: i64) -> Vec<i16> {
        let (bytes, length) = numeric(hundredths);
        let words = bytes[..length].chunks_exact(2);
        words.map(|word| i16::from_be_bytes([word[0], word[1]])).collect()
    }

    #[test]
    fn decimals_are_written_as_the_server_receives_them() {
        assert_eq!(numeric_words(1_234), [2, 0, 0, 2, 12, 3_400]);
        assert_eq!(numeric_words(-123_456_789), [3, 1, 0x4000, 2, 123, 4_567, 8_900]);
        assert_eq!(numeric_words(7), [1, -1, 0, 2, 700]);
        assert_eq!(numeric_words(0), [1, -1, 0, 2, 0]);
        assert_eq!(numeric_words(99_999_999_999_999), [4, 2, 0, 2, 9_999, 9_999, 9_999, 9_900]);
        assert_eq!(numeric_words(1_000_000), [3, 1, 0, 2, 1, 0, 0]);
    }
}
