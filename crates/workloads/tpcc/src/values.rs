//! Random values (clauses 2.1.6 and 4.3.2), and values as text without the formatting machinery: decimal numbers,
//! points in time, short strings.

use dyno_core::{AnswerRow, Dialect, LONGEST_INT, Param, Rng, RowWriter, write_int};
use std::time::{SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;

/// The streams of a load: each depends on the seed, a purpose and a place only, so that rows are the
/// same whoever makes them when.
pub(crate) fn stream(seed: u64, purpose: &str, warehouse: u32, district: u32) -> Rng {
    Rng::new(seed, purpose, u64::from(warehouse) << 8 | u64::from(district))
}

/// NURand(A, x, y): the non-uniform distribution of clause 2.1.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NuRand {
    /// Governs the skew: 255, 1023 or 8191.
    pub a: u64,
    pub low: u64,
    pub high: u64,
    /// Shifts the values; in 0..=a.
    pub c: u64,
}

impl NuRand {
    /// Draws a value in `low..=high`.
    #[inline]
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        let mixed = rng.uniform(0, self.a) | rng.uniform(self.low, self.high);
        (mixed + self.c) % (self.high - self.low + 1) + self.low
    }

    /// Exact probability of each value of `low..=high`: the distribution of a bitwise OR of two
    /// independent numbers is their product over subsets of bits.
    pub fn probabilities(&self) -> Vec<f64> {
        let bits = 64 - (self.a | self.high).leading_zeros();
        let size = 1_usize << bits;
        let mut a_weights = vec![0.0; size];
        a_weights[..=self.a as usize].fill(1.0 / (self.a + 1) as f64);
        let mut range_weights = vec![0.0; size];
        let values = self.high - self.low + 1;
        range_weights[self.low as usize..=self.high as usize].fill(1.0 / values as f64);
        sum_over_subsets(&mut a_weights, bits, |sum, part| sum + part);
        sum_over_subsets(&mut range_weights, bits, |sum, part| sum + part);
        let mut mixed: Vec<f64> =
            a_weights.iter().zip(&range_weights).map(|(a, b)| a * b).collect();
        sum_over_subsets(&mut mixed, bits, |sum, part| sum - part);
        let mut probabilities = vec![0.0; values as usize];
        for (number, probability) in mixed.into_iter().enumerate() {
            probabilities[((number as u64 + self.c) % values) as usize] += probability;
        }
        probabilities
    }
}

fn sum_over_subsets(values: &mut [f64], bits: u32, combine: impl Fn(f64, f64) -> f64) {
    for bit in 0..bits {
        for number in 0..values.len() {
            if number >> bit & 1 == 1 {
                values[number] = combine(values[number], values[number & !(1 << bit)]);
            }
        }
    }
}

/// The run-time constants C of NURand, one for each field (clause 2.1.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// For C_LAST; in 0..=255.
    pub c_last: u64,
    /// For C_ID; in 0..=1023.
    pub c_id: u64,
    /// For OL_I_ID; in 0..=8191.
    pub i_id: u64,
}

impl Constants {
    pub fn for_load(rng: &mut Rng) -> Self {
        Constants {
            c_last: rng.uniform(0, 255),
            c_id: rng.uniform(0, 1_023),
            i_id: rng.uniform(0, 8_191),
        }
    }

    /// The constants of a run on data that was loaded with `c_last_of_load` (clause 2.1.6.1).
    pub fn for_run(c_last_of_load: u64, rng: &mut Rng) -> Self {
        loop {
            let constants = Constants::for_load(rng);
            if is_c_last_allowed(c_last_of_load, constants.c_last) {
                return constants;
            }
        }
    }

    /// The distribution of customers' numbers.
    pub fn customer(&self) -> NuRand {
        NuRand { a: 1_023, low: 1, high: u64::from(crate::CUSTOMERS), c: self.c_id }
    }

    /// The distribution of items.
    pub fn item(&self) -> NuRand {
        NuRand { a: 8_191, low: 1, high: u64::from(crate::ITEMS), c: self.i_id }
    }

    pub fn last_name(&self) -> NuRand {
        NuRand { a: 255, low: 0, high: 999, c: self.c_last }
    }
}

/// Returns true if a run may use C_LAST's constant `run` on data loaded with `load` (clause 2.1.6.1): the
/// distance is in 65..=119 and neither 96 nor 112.
pub fn is_c_last_allowed(load: u64, run: u64) -> bool {
    let distance = load.abs_diff(run);
    (65..=119).contains(&distance) && distance != 96 && distance != 112
}

pub(crate) const LETTERS: &[u8; 62] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
pub(crate) const CAPITALS: &[u8; 26] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
pub(crate) const DIGITS: &[u8; 10] = b"0123456789";

/// Fills `text` with letters of an alphabet: of digits, an n-string of its length (clause 4.3.2.2). A random word is a
/// fraction of 64 bits; each multiplication by the size of the alphabet moves one letter in front of the point.
#[inline]
pub(crate) fn fill<const N: usize>(text: &mut [u8], alphabet: &[u8; N], rng: &mut Rng) {
    /// Letters that one word gives: 62^8 uses 48 of its bits, which leaves the last letter
    /// uniform to one part in 1,000.
    const PER_WORD: usize = 8;
    for part in text.chunks_mut(PER_WORD) {
        let mut fraction = rng.next_u64();
        for letter in part {
            let product = u128::from(fraction) * N as u128;
            *letter = alphabet[(product >> 64) as usize];
            fraction = product as u64;
        }
    }
}

/// An a-string: random letters and digits, of uniform random length (clause 4.3.2.2).
#[inline]
pub(crate) fn letters<const N: usize>(text: &mut Short<N>, low: u64, high: u64, rng: &mut Rng) {
    let length = rng.uniform(low, high) as usize;
    fill(text.fill(length), LETTERS, rng);
}

/// The data of items and stock: an a-string of 26 to 50, of which a tenth holds `ORIGINAL` at a
/// random place (clause 4.3.3.1).
#[inline]
pub(crate) fn original_data(text: &mut Short<50>, rng: &mut Rng) {
    const MARK: &[u8] = b"ORIGINAL";
    letters(text, 26, 50, rng);
    if rng.uniform(1, 10) == 1 {
        let length = text.get().len();
        let at = rng.uniform(0, (length - MARK.len()) as u64) as usize;
        text.fill(length)[at..at + MARK.len()].copy_from_slice(MARK);
    }
}

/// A zip code: four random digits and `11111` (clause 4.3.2.7).
pub(crate) fn zip(rng: &mut Rng) -> [u8; 9] {
    let mut zip = *b"000011111";
    fill(&mut zip[..4], DIGITS, rng);
    zip
}

pub(crate) const LAST_NAME_BYTES: usize = 16;

/// The last name of a number in 0..=999: a syllable for each of its three digits (clause 4.3.2.3).
#[inline]
pub(crate) fn last_name(number: u64) -> Short<LAST_NAME_BYTES> {
    const SYLLABLES: [&[u8]; 10] =
        [b"BAR", b"OUGHT", b"ABLE", b"PRI", b"PRES", b"ESE", b"ANTI", b"CALLY", b"ATION", b"EING"];
    let mut name = Short::default();
    for digit in [number / 100 % 10, number / 10 % 10, number % 10] {
        name.push(SYLLABLES[digit as usize]);
    }
    name
}

/// Brings a list into a random order (Fisher-Yates).
pub(crate) fn shuffle<T>(list: &mut [T], rng: &mut Rng) {
    for last in (1..list.len()).rev() {
        list.swap(last, rng.uniform(0, last as u64) as usize);
    }
}

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

    pub(crate) fn push_int(&mut self, value: i64) {
        let mut text = [0; LONGEST_INT];
        let at = write_int(&mut text, value);
        self.push(&text[at..]);
    }

    /// Appends a number of hundredths with a point: `-12.05`.
    pub(crate) fn push_cents(&mut self, cents: i64) {
        let number = Decimal::new(cents, 2);
        self.push(number.text());
    }

    /// The text without unused bytes.
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

/// A decimal number for a statement or a row: an integer, and its text with a number of decimals.
/// SQLite has no decimal numbers: there the integer itself is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal {
    scaled: i64,
    text: Short<24>,
}

impl Decimal {
    #[inline]
    pub(crate) fn new(scaled: i64, decimals: u32) -> Self {
        let mut text = Short::default();
        if scaled < 0 {
            text.push(b"-");
        }
        let (number, one) = (scaled.unsigned_abs(), 10_u64.pow(decimals));
        text.push_int((number / one) as i64);
        if decimals > 0 {
            // A one before the decimals keeps their zeros, and makes room for the point.
            let point = text.length;
            text.push_int((one + number % one) as i64);
            text.bytes[point] = b'.';
        }
        Decimal { scaled, text }
    }

    /// An amount with two decimals.
    #[inline]
    pub(crate) fn cents(cents: i64) -> Self {
        Decimal::new(cents, 2)
    }

    /// The number in decimal notation, such as `-12.05`.
    #[inline]
    pub(crate) fn text(&self) -> &[u8] {
        self.text.get()
    }

    /// The number as a parameter of a statement of this dialect.
    #[inline]
    pub(crate) fn param(&self, dialect: Dialect) -> Param<'_> {
        if dialect == Dialect::Sqlite { Param::Int(self.scaled) } else { Param::Text(self.text()) }
    }

    /// Writes the number as a value of a row.
    #[inline]
    pub(crate) fn write(&self, dialect: Dialect, out: &mut dyn RowWriter) {
        if dialect == Dialect::Sqlite { out.int(self.scaled) } else { out.text(self.text()) }
    }
}

/// The integer behind a decimal number of an answer, with as many digits behind the point as asked.
/// `None` for NULL and for other texts.
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
    /// The present time, in milliseconds.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(since.as_millis() as i64)
    }

    /// `2026-11-22 00:30:00.123`, what all dialects read. UTC; years 0 to 9999.
    pub(crate) fn text(self) -> [u8; TIMESTAMP_BYTES] {
        let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000);
        let at = at.unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let (year, month, day) = at.to_calendar_date();
        let (hour, minute, second, ms) = at.to_hms_milli();
        let mut text = *b"0000-00-00 00:00:00.000";
        let parts: [(usize, usize, u32); 7] = [
            (0, 4, year as u32),
            (5, 2, u8::from(month).into()),
            (8, 2, day.into()),
            (11, 2, hour.into()),
            (14, 2, minute.into()),
            (17, 2, second.into()),
            (20, 3, ms.into()),
        ];
        for (begin, width, mut remaining) in parts {
            for place in (begin..begin + width).rev() {
                text[place] = b'0' + (remaining % 10) as u8;
                remaining /= 10;
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nurand_follows_its_exact_distribution() {
        let distribution = NuRand { a: 255, low: 0, high: 999, c: 157 };
        let exact = distribution.probabilities();
        assert_eq!(exact.len(), 1_000);
        assert!((exact.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        // All pairs, counted one by one.
        let mut pairs = vec![0_u32; 1_000];
        for left in 0..=255_usize {
            for right in 0..=999_usize {
                pairs[((left | right) + 157) % 1_000] += 1;
            }
        }
        for (value, &count) in pairs.iter().enumerate() {
            assert!((exact[value] - f64::from(count) / 256_000.0).abs() < 1e-12, "{value}");
        }
        let mut rng = Rng::new(1, "nurand", 0);
        let mut counts = vec![0.0; 1_000];
        for _ in 0..1_000_000 {
            counts[distribution.sample(&mut rng) as usize] += 1.0;
        }
        let distance: f64 = counts
            .iter()
            .zip(&exact)
            .filter(|(_, p)| **p > 0.0)
            .map(|(n, p)| (n - p * 1e6).powi(2) / (p * 1e6))
            .sum();
        // 999 degrees of freedom: standard deviation 45; six of them either way.
        assert!((729.0..1_269.0).contains(&distance), "{distance}");
    }

    #[test]
    fn the_large_distribution_has_its_range_and_sum() {
        let constants = Constants { c_last: 0, c_id: 259, i_id: 7_911 };
        let exact = constants.item().probabilities();
        assert_eq!(exact.len(), 100_000);
        assert!((exact.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let mut rng = Rng::new(1, "nurand", 0);
        for _ in 0..100_000 {
            assert!((1..=100_000).contains(&constants.item().sample(&mut rng)));
            assert!((1..=3_000).contains(&constants.customer().sample(&mut rng)));
        }
    }

    #[test]
    fn the_constants_of_a_run_keep_their_distance() {
        for seed in 0..2_000 {
            let mut rng = Rng::new(seed, "c", 0);
            let load = Constants::for_load(&mut rng);
            let run = Constants::for_run(load.c_last, &mut rng);
            let distance = load.c_last.abs_diff(run.c_last);
            assert!((65..=119).contains(&distance) && distance != 96 && distance != 112);
            assert!(run.c_last <= 255 && run.c_id <= 1_023 && run.i_id <= 8_191);
        }
        for (distance, allowed) in
            [(64, false), (65, true), (96, false), (112, false), (119, true), (120, false)]
        {
            assert_eq!(is_c_last_allowed(10, 10 + distance), allowed, "{distance}");
        }
    }

    #[test]
    fn last_names_have_their_syllables() {
        for (number, name) in [(0, "BARBARBAR"), (371, "PRICALLYOUGHT"), (777, "CALLYCALLYCALLY")] {
            assert_eq!(last_name(number).get(), name.as_bytes());
        }
        assert!((0..1_000).all(|number| last_name(number).get().len() <= 15));
    }

    #[test]
    fn strings_have_their_letters_and_lengths() {
        let mut rng = Rng::new(9, "strings", 0);
        let mut text = Short::<50>::default();
        let mut lengths = [0; 51];
        let mut originals = 0;
        let mut letters = [0_u32; 256];
        for _ in 0..20_000 {
            original_data(&mut text, &mut rng);
            lengths[text.get().len()] += 1;
            originals += u32::from(text.get().windows(8).any(|part| part == b"ORIGINAL"));
            text.get().iter().for_each(|&letter| letters[usize::from(letter)] += 1);
        }
        assert!(lengths[..26].iter().all(|&count| count == 0));
        // 800 expected at each length, deviation 28; 2,000 originals, deviation 42.
        assert!(lengths[26..].iter().all(|count| (630..970).contains(count)), "{lengths:?}");
        assert!((1_750..2_250).contains(&originals), "{originals}");
        assert_eq!(letters.iter().filter(|&&count| count > 0).count(), 62);
        let zip = zip(&mut rng);
        assert!(zip[..4].iter().all(u8::is_ascii_digit) && &zip[4..] == b"11111");
    }

    #[test]
    fn a_shuffle_keeps_everything_and_moves_it_anywhere() {
        let mut rng = Rng::new(4, "shuffle", 0);
        let mut first_at = [0; 10];
        for _ in 0..10_000 {
            let mut list: Vec<usize> = (0..10).collect();
            shuffle(&mut list, &mut rng);
            first_at[list.iter().position(|&number| number == 0).unwrap()] += 1;
            list.sort_unstable();
            assert!(list.into_iter().eq(0..10));
        }
        assert!(first_at.iter().all(|count| (820..1_180).contains(count)), "{first_at:?}");
    }

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
