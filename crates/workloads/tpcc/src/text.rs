//! Values as text without the formatting machinery: decimal numbers, points in time, short strings.

use dyno_core::{AnswerRow, Dialect, Param, RowWriter};
use std::time::{SystemTime, UNIX_EPOCH};

/// Text of at most `N` bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Short<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Default for Short<N> {
    fn default() -> Self {
        Short { bytes: [0; N], length: 0 }
    }
}

impl<const N: usize> Short<N> {
    /// Replaces the text; what does not fit is cut off.
    #[inline]
    pub(crate) fn set(&mut self, text: &[u8]) {
        self.length = 0;
        self.push(text);
    }

    /// Appends text; what does not fit is cut off.
    #[inline]
    pub(crate) fn push(&mut self, text: &[u8]) {
        let room = N - self.length;
        let text = &text[..text.len().min(room)];
        self.bytes[self.length..self.length + text.len()].copy_from_slice(text);
        self.length += text.len();
    }

    /// Appends an integer in decimal.
    pub(crate) fn push_int(&mut self, value: i64) {
        let mut digits = [0_u8; 20];
        if value < 0 {
            self.push(b"-");
        }
        let start = write_digits(&mut digits, value.unsigned_abs());
        self.push(&digits[start..]);
    }

    /// Appends a number of hundredths with a point: `-12.05`.
    pub(crate) fn push_cents(&mut self, cents: i64) {
        let number = Decimal::new(cents, 2);
        self.push(number.text());
    }

    /// The text as bytes.
    #[inline]
    pub(crate) fn get(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Room for a text of this length, to be filled.
    #[inline]
    pub(crate) fn fill(&mut self, length: usize) -> &mut [u8] {
        self.length = length.min(N);
        &mut self.bytes[..self.length]
    }
}

/// Writes decimal digits at the end of `digits`; returns where they start.
#[inline]
fn write_digits(digits: &mut [u8], mut value: u64) -> usize {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return at;
        }
    }
}

/// A decimal number for a statement or a row: an integer and how many of its digits stand behind
/// the point. SQLite has no decimal numbers: there the integer itself is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal {
    scaled: i64,
    text: [u8; 24],
    start: usize,
}

impl Decimal {
    #[inline]
    pub(crate) fn new(scaled: i64, decimals: u32) -> Self {
        let mut text = [0; 24];
        let mut at = text.len();
        let mut rest = scaled.unsigned_abs();
        for _ in 0..decimals {
            at -= 1;
            text[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        if decimals > 0 {
            at -= 1;
            text[at] = b'.';
        }
        at = write_digits(&mut text[..at], rest);
        if scaled < 0 {
            at -= 1;
            text[at] = b'-';
        }
        Decimal { scaled, text, start: at }
    }

    #[inline]
    pub(crate) fn cents(cents: i64) -> Self {
        Decimal::new(cents, 2)
    }

    #[inline]
    pub(crate) fn text(&self) -> &[u8] {
        &self.text[self.start..]
    }

    /// As a parameter of a statement of this dialect.
    #[inline]
    pub(crate) fn param(&self, dialect: Dialect) -> Param<'_> {
        if dialect == Dialect::Sqlite { Param::Int(self.scaled) } else { Param::Text(self.text()) }
    }

    /// As a column of a loaded row.
    #[inline]
    pub(crate) fn write(&self, dialect: Dialect, out: &mut dyn RowWriter) {
        if dialect == Dialect::Sqlite { out.int(self.scaled) } else { out.text(self.text()) }
    }
}

/// The integer behind a decimal number of an answer, with as many digits behind the point as asked.
/// `None` for NULL and for what is no such number.
#[inline]
pub(crate) fn read_scaled<R: AnswerRow>(
    row: &R,
    column: usize,
    decimals: u32,
    dialect: Dialect,
) -> Option<i64> {
    if dialect == Dialect::Sqlite {
        return row.int(column);
    }
    match row.bytes(column) {
        Some(text) => parse_scaled(text, decimals),
        // A sum of nothing may come as an integer.
        None => row.int(column).map(|whole| whole * 10_i64.pow(decimals)),
    }
}

/// Reads `-12.3400` as an integer of `decimals` places. Further places must be zeros.
pub(crate) fn parse_scaled(text: &[u8], decimals: u32) -> Option<i64> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        digits => (1, digits),
    };
    let mut value = 0_i64;
    let mut places = None;
    for &byte in digits {
        match (byte, places) {
            (b'.', None) => places = Some(0),
            (b'0', Some(count)) if count == decimals => {}
            (b'0'..=b'9', count) if count.is_none_or(|count| count < decimals) => {
                value = value.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?;
                places = count.map(|count| count + 1);
            }
            _ => return None,
        }
    }
    if digits.is_empty() {
        return None;
    }
    let missing = decimals - places.unwrap_or(0);
    value.checked_mul(10_i64.pow(missing)).map(|value| sign * value)
}

/// A point in time, in milliseconds since the begin of 1970, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

/// Length of a point in time as text.
pub(crate) const TIMESTAMP_BYTES: usize = 23;

impl Timestamp {
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(since.as_millis() as i64)
    }

    /// `2026-11-22 00:30:00.123`, what all dialects read. UTC; years 0 to 9999.
    pub(crate) fn text(self) -> [u8; TIMESTAMP_BYTES] {
        let (days, ms) = (self.0.div_euclid(86_400_000), self.0.rem_euclid(86_400_000));
        let (year, month, day) = civil(days);
        let mut text = *b"0000-00-00 00:00:00.000";
        let mut put = |at: usize, width: usize, value: i64| {
            let mut rest = value;
            for place in (at..at + width).rev() {
                text[place] = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
        };
        put(0, 4, year);
        put(5, 2, month);
        put(8, 2, day);
        put(11, 2, ms / 3_600_000);
        put(14, 2, ms / 60_000 % 60);
        put(17, 2, ms / 1_000 % 60);
        put(20, 3, ms % 1_000);
        text
    }
}

/// Year, month and day of a day since 1970-01-01 in the Gregorian calendar. Counts in eras of 400
/// years that begin in March, so that the leap day is the last one of a year.
fn civil(days: i64) -> (i64, i64, i64) {
    const DAYS_PER_ERA: i64 = 146_097;
    let shifted = days + 719_468;
    let era = shifted.div_euclid(DAYS_PER_ERA);
    let day_of_era = shifted.rem_euclid(DAYS_PER_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_written_and_read() {
        let cases = [
            (0, 2, "0.00"),
            (-1_000, 2, "-10.00"),
            (5, 2, "0.05"),
            (1_999, 4, "0.1999"),
            (-7, 0, "-7"),
        ];
        for (scaled, decimals, text) in cases {
            assert_eq!(Decimal::new(scaled, decimals).text(), text.as_bytes());
            assert_eq!(parse_scaled(text.as_bytes(), decimals), Some(scaled), "{text}");
        }
        assert_eq!(parse_scaled(b"12", 2), Some(1_200));
        assert_eq!(parse_scaled(b"12.5", 2), Some(1_250));
        assert_eq!(parse_scaled(b"12.500000", 2), Some(1_250));
        for wrong in ["", "-", "x", "1.234", "1..2", "99999999999999999999"] {
            assert_eq!(parse_scaled(wrong.as_bytes(), 2), None, "{wrong}");
        }
    }

    #[test]
    fn points_in_time_are_written() {
        let cases = [
            (0, "1970-01-01 00:00:00.000"),
            (951_782_399_999, "2000-02-28 23:59:59.999"),
            (951_868_800_000, "2000-03-01 00:00:00.000"),
            (1_709_164_800_000, "2024-02-29 00:00:00.000"),
            (1_795_305_045_678, "2026-11-21 23:50:45.678"),
        ];
        for (ms, text) in cases {
            assert_eq!(std::str::from_utf8(&Timestamp(ms).text()).unwrap(), text);
        }
    }

    #[test]
    fn short_texts_are_cut_at_their_limit() {
        let mut text = Short::<10>::default();
        text.set(b"abc");
        text.push_int(-42);
        text.push_cents(123);
        assert_eq!(text.get(), b"abc-421.23");
        text.push(b"more");
        assert_eq!(text.get(), b"abc-421.23");
    }
}
