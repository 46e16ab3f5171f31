//! What the columns of a table add up to: computed while rows are sent, and asked of the database
//! when they are stored.
//!
//! Numbers and days add up as they are (money as hundredths), texts by their lengths. A row that is
//! missing, doubled, cut short or shifted by a column changes a sum.

use crate::schema::{SchemaTable, Type};
use dyno_core::{AdminSession, Dialect, RowSource, RowWriter, Session};
use dyno_load::query::{answer, whole};
use dyno_load::{LoadError, while_doing};

/// A sum for each column, in the order of the table.
pub(crate) type Sums = Vec<i128>;

pub(super) const WIDEST: usize = 16;

/// The types of a table's columns.
pub(super) fn kinds(table: SchemaTable) -> [Type; WIDEST] {
    let mut kinds = [Type::Int; WIDEST];
    for (kind, column) in kinds.iter_mut().zip(table.columns()) {
        *kind = column.1;
    }
    kinds
}

/// Rows on their way, added up: of one piece, whose sums fit 64 bits.
pub(crate) struct Summed<R> {
    rows: R,
    pub(crate) count: u64,
    sums: [i64; WIDEST],
    kinds: [Type; WIDEST],
    columns: usize,
}

impl<R: RowSource> Summed<R> {
    pub(crate) fn new(table: SchemaTable, rows: R) -> Self {
        let columns = table.columns().len();
        Summed { rows, count: 0, sums: [0; WIDEST], kinds: kinds(table), columns }
    }

    pub(crate) fn sums(&self) -> Sums {
        self.sums[..self.columns].iter().map(|&sum| i128::from(sum)).collect()
    }
}

impl<R: RowSource> RowSource for Summed<R> {
    #[inline]
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        let (sums, kinds) = (&mut self.sums, &self.kinds);
        let more = self.rows.next_row(&mut Adding { out, sums, kinds, column: 0 });
        self.count += u64::from(more);
        more
    }

    fn restart(&mut self) {
        self.rows.restart();
        self.count = 0;
        self.sums = [0; WIDEST];
    }
}

/// Passes one row on and adds its values.
struct Adding<'a> {
    out: &'a mut dyn RowWriter,
    sums: &'a mut [i64; WIDEST],
    kinds: &'a [Type; WIDEST],
    column: usize,
}

impl Adding<'_> {
    #[inline]
    fn add(&mut self, value: impl Fn(Type) -> i64) {
        // The remainder spares a check: no table has more columns.
        let column = self.column % WIDEST;
        self.sums[column] += value(self.kinds[column]);
        self.column += 1;
    }
}

impl RowWriter for Adding<'_> {
    #[inline]
    fn int(&mut self, value: i64) {
        self.out.int(value);
        self.add(|kind| if kind == Type::Decimal { value * 100 } else { value });
    }

    #[inline]
    fn double(&mut self, value: f64) {
        self.out.double(value);
        self.add(|_| (value * 100.0).round() as i64);
    }

    #[inline]
    fn text(&mut self, value: &[u8]) {
        self.out.text(value);
        self.add(|kind| match kind {
            Type::Decimal => hundredths(value),
            Type::Date => days(value),
            _ => value.len() as i64,
        });
    }

    #[inline]
    fn null(&mut self) {
        self.out.null();
        self.add(|_| 0);
    }
}

/// `-12.34` as -1234: a number that dyno itself has written with two decimals, or none.
#[inline]
pub(super) fn hundredths(text: &[u8]) -> i64 {
    let (digits, is_negative) = match text {
        [b'-', digits @ ..] => (digits, true),
        digits => (digits, false),
    };
    let number = |digits: &[u8]| {
        digits.iter().fold(0_i64, |value, digit| value * 10 + i64::from(digit.wrapping_sub(b'0')))
    };
    let value = match digits {
        [whole @ .., b'.', tens, ones] => number(whole) * 100 + number(&[*tens, *ones]),
        whole => number(whole) * 100,
    };
    if is_negative { -value } else { value }
}

/// Days from 1970-01-01 to `1992-01-01`.
#[inline]
pub(super) fn days(text: &[u8]) -> i64 {
    let &[y1, y2, y3, y4, _, m1, m2, _, d1, d2] = text else { return 0 };
    let pair = |tens: u8, ones: u8| {
        i64::from(tens.wrapping_sub(b'0')) * 10 + i64::from(ones.wrapping_sub(b'0'))
    };
    let (year, month, day) = (pair(y1, y2) * 100 + pair(y3, y4), pair(m1, m2), pair(d1, d2));
    // Years begin with March: the leap day is the last one then.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before_1970 = 719_468;
    let of_years = 365 * year + year / 4 - year / 100 + year / 400;
    of_years + (153 * month + 2) / 5 + day - 1 - before_1970
}

/// A sum of money as the database writes it, in hundredths.
fn sum_of_money(text: &str) -> Option<i128> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "00"));
    if whole.is_empty() || decimals.len() != 2 {
        return None;
    }
    format!("{whole}{decimals}").parse().ok()
}

/// Sums as they are kept in the database between loads.
pub(crate) fn to_text(sums: &Sums) -> String {
    let sums: Vec<String> = sums.iter().map(i128::to_string).collect();
    sums.join(" ")
}

pub(crate) fn add_text(sums: &mut Sums, text: &str) {
    for (sum, number) in sums.iter_mut().zip(text.split(' ')) {
        *sum += number.parse::<i128>().unwrap_or(0);
    }
}

/// The statement that counts and adds up what is stored.
fn select(table: SchemaTable, dialect: Dialect) -> String {
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

/// Compares what is stored with what was sent.
pub(crate) async fn verify(
    session: &mut AdminSession<'_>,
    table: SchemaTable,
    rows: u64,
    sums: &Sums,
) -> Result<(), LoadError> {
    let name = table.name();
    let dialect = session.dialect();
    let answer = answer(session, &select(table, dialect)).await;
    let answer = answer.map_err(while_doing(format!("adding up table {name}")))?;
    let cells = answer.rows.into_iter().flatten().map(Option::unwrap_or_default);
    let cells: Vec<String> = cells.collect();
    let count = cells.first().and_then(|cell| cell.parse::<u64>().ok()).unwrap_or(0);
    let hint = "drop the tables and load again; look for triggers, rules and other programs that \
                write there";
    let wrong = |problem: String| LoadError::data(problem, hint);
    if count != rows {
        return Err(wrong(format!("Table {name} has {count} rows, and {rows} were sent.")));
    }
    for (index, (&sent, (column, kind))) in sums.iter().zip(table.columns()).enumerate() {
        let cell = cells.get(index + 1).map_or("", String::as_str);
        let stored = match (kind, dialect) {
            (Type::Decimal, Dialect::Mysql | Dialect::Postgres) => sum_of_money(cell),
            _ => whole(cell),
        };
        if stored != Some(sent) {
            return Err(wrong(format!(
                "The {rows} rows of table {name} are not those that were sent: column {column} adds \
                 up to {cell}, not to {sent} (money in hundredths, days from 1970, texts by length)."
            )));
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
    fn sums_are_kept_as_text() {
        let mut sums = vec![1, -2, i128::from(u64::MAX) * 3];
        let text = to_text(&sums);
        add_text(&mut sums, &text);
        assert_eq!(sums, [2, -4, i128::from(u64::MAX) * 6]);
    }
}
