//! Rows as tab-separated text with backslash escapes, for MySQL's `LOAD DATA` and PostgreSQL's `COPY ... FROM STDIN`.
//!
//! Numbers as decimal text: integers two digits at a time, doubles in two forms.
//!
//! Constant bytes of messages.

use dyno_core::{ColumnNames, LONGEST_INT, RowSource, RowWriter, text_from_bytes, write_int};

/// Appends rows to a buffer of the caller: columns are separated by tabs, rows end with a newline,
/// NULL is `\N`, and tab, newline, carriage return and backslash inside text are escaped.
#[derive(Debug)]
pub struct TextRows<'a> {
    out: &'a mut Vec<u8>,
    row_start: usize,
}

impl<'a> TextRows<'a> {
    /// `out` may already hold a header or earlier rows.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        let row_start = out.len();
        TextRows { out, row_start }
    }

    #[inline]
    pub fn end_row(&mut self) {
        // Every column has written its separator; the last one becomes the end of the row.
        match self.out[self.row_start..].last_mut() {
            Some(separator) => *separator = b'\n',
            None => self.out.push(b'\n'),
        }
        self.row_start = self.out.len();
    }

    /// Appends whole rows until the buffer holds at least `limit_bytes`. Returns false when the source has no more.
    #[inline]
    pub fn fill(&mut self, rows: &mut dyn RowSource, limit_bytes: usize) -> bool {
        while self.out.len() < limit_bytes {
            if !rows.next_row(self) {
                return false;
            }
            self.end_row();
        }
        true
    }
}

impl RowWriter for TextRows<'_> {
    #[inline]
    fn int(&mut self, value: i64) {
        push_int(self.out, value);
        self.out.push(b'\t');
    }

    #[inline]
    fn double(&mut self, value: f64) {
        push_double(self.out, value);
        self.out.push(b'\t');
    }

    #[inline]
    fn text(&mut self, value: &[u8]) {
        self.out.reserve(value.len() + 1);
        if needs_escape(value) {
            push_escaped(self.out, value);
        } else {
            self.out.extend_from_slice(value);
        }
        self.out.push(b'\t');
    }

    #[inline]
    fn null(&mut self) {
        self.out.extend_from_slice(b"\\N\t");
    }
}

/// Returns true if something may need an escape. Counts all control characters up to the carriage return as special,
/// which is rarely wrong and cheap.
#[inline]
fn needs_escape(value: &[u8]) -> bool {
    let (chunks, rest) = value.as_chunks::<32>();
    chunks.iter().any(|chunk| has_special(chunk)) | has_special(rest)
}

/// Without short circuits, so that the compiler can vectorize it.
#[inline]
fn has_special(bytes: &[u8]) -> bool {
    bytes.iter().fold(false, |found, &byte| found | (byte <= b'\r') | (byte == b'\\'))
}

#[cold]
fn push_escaped(out: &mut Vec<u8>, value: &[u8]) {
    for &byte in value {
        let letter = match byte {
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\\' => b'\\',
            plain => {
                out.push(plain);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
}

/// Appends `value` in decimal.
#[inline]
pub fn push_int(out: &mut Vec<u8>, value: i64) {
    let mut text = [0; LONGEST_INT];
    let at = write_int(&mut text, value);
    out.extend_from_slice(&text[at..]);
}

/// Appends the shortest decimal text that reads back as the same number.
pub fn push_double(out: &mut Vec<u8>, value: f64) {
    use std::io::Write;
    // Writing into a Vec cannot fail.
    let _ = write!(out, "{value:?}");
}

/// Appends the number in the form of C's `%.15g`, as pgbench does: 15 significant digits without zeros at the end, with
/// an exponent below 1e-4 and from 1e+15 on. Others are PostgreSQL's `NaN`, `Infinity`, `-Infinity`.
pub fn push_double_15g(out: &mut Vec<u8>, value: f64) {
    use std::io::Write;
    const DIGITS: i32 = 15;
    if !value.is_finite() {
        let text: &[u8] = match value {
            f64::INFINITY => b"Infinity",
            f64::NEG_INFINITY => b"-Infinity",
            _ => b"NaN",
        };
        return out.extend_from_slice(text);
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    // `d.dddddddddddddde-308` at the longest.
    let mut buffer = [0_u8; 32];
    let mut unwritten = &mut buffer[..];
    let _ = write!(unwritten, "{:.14e}", value.abs());
    let unused = unwritten.len();
    let text = &buffer[..buffer.len() - unused];
    let at = text.iter().position(|&byte| byte == b'e').unwrap_or(text.len());
    let exponent: i32 = std::str::from_utf8(&text[(at + 1).min(text.len())..])
        .ok()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0);
    let mut digits = [b'0'; DIGITS as usize];
    for (digit, &byte) in digits.iter_mut().zip(text[..at].iter().filter(|&&byte| byte != b'.')) {
        *digit = byte;
    }
    let significant = digits.iter().rposition(|&digit| digit != b'0').map_or(1, |last| last + 1);
    if (-4..DIGITS).contains(&exponent) {
        push_fixed(out, &digits, significant, exponent);
    } else {
        push_point(out, &digits[..significant], 1);
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        if exponent.abs() < 10 {
            out.push(b'0');
        }
        push_int(out, exponent.unsigned_abs().into());
    }
}

/// Appends digits, the first of which is worth 10^`exponent`.
fn push_fixed(out: &mut Vec<u8>, digits: &[u8], significant: usize, exponent: i32) {
    match usize::try_from(exponent) {
        Ok(exponent) => push_point(out, &digits[..significant.max(exponent + 1)], exponent + 1),
        Err(_) => {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + exponent.unsigned_abs() as usize - 1, b'0');
            out.extend_from_slice(&digits[..significant]);
        }
    }
}

/// Appends digits with a point after the first `whole`, if any follow.
fn push_point(out: &mut Vec<u8>, digits: &[u8], whole: usize) {
    let (whole, fraction) = digits.split_at(whole.min(digits.len()));
    out.extend_from_slice(whole);
    if !fraction.is_empty() {
        out.push(b'.');
        out.extend_from_slice(fraction);
    }
}

/// At least the length of most pieces.
const BLOCK_BYTES: usize = 32;

/// Bytes that are the same in every message. A few are copied as a block of constant size: no call to copy them.
#[derive(Clone, Debug)]
pub(crate) struct FixedBytes {
    /// The bytes, and zeros behind them; all zeros if they are longer.
    pub(crate) block: [u8; BLOCK_BYTES],
    pub(crate) bytes: Box<[u8]>,
}

impl FixedBytes {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let mut block = [0; BLOCK_BYTES];
        if let Some(start) = block.get_mut(..bytes.len()) {
            start.copy_from_slice(&bytes);
        }
        FixedBytes { block, bytes: bytes.into() }
    }

    /// Appends the bytes, short ones as a whole block.
    #[inline]
    pub(crate) fn push(&self, out: &mut Vec<u8>) {
        if self.bytes.len() > BLOCK_BYTES {
            return out.extend_from_slice(&self.bytes);
        }
        let end = out.len() + self.bytes.len();
        out.extend_from_slice(&self.block);
        out.truncate(end);
    }
}

/// The longest text of a server that is shown or kept; the rest is cut off.
pub const SERVER_TEXT_BYTES: usize = 4 << 10;

/// The text, in UTF-8 whatever the server sent, with `...` instead of what is cut off.
pub fn server_text(bytes: &[u8]) -> String {
    match bytes.get(..SERVER_TEXT_BYTES) {
        Some(start) if bytes.len() > SERVER_TEXT_BYTES => {
            let start = &start[..SERVER_TEXT_BYTES - 3];
            // A letter that the cut went through is left out.
            let cut = start.utf8_chunks().last().is_some_and(|last| !last.invalid().is_empty());
            let text = String::from_utf8_lossy(start);
            let text = if cut { text.trim_end_matches('\u{fffd}') } else { &text };
            format!("{text}...")
        }
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// A SQLSTATE: five of `0-9A-Z`. Anything else is none.
pub fn sqlstate(bytes: &[u8]) -> Option<[u8; 5]> {
    let state = <[u8; 5]>::try_from(bytes).ok()?;
    state.iter().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase()).then_some(state)
}

/// Names of columns in one reused buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    text: String,
    ends: Vec<usize>,
}

impl Names {
    /// Removes all names, keeping the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// Adds the name of the next column: as [`text_from_bytes`] has it, unless it is longer than any name.
    pub fn push(&mut self, name: &[u8]) {
        match std::str::from_utf8(name) {
            _ if name.len() > SERVER_TEXT_BYTES => self.text.push_str(&server_text(name)),
            Ok(text) => self.text.push_str(text),
            Err(_) => self.text.push_str(&text_from_bytes(name)),
        }
        self.ends.push(self.text.len());
    }
}

impl ColumnNames for Names {
    fn count(&self) -> usize {
        self.ends.len()
    }

    fn name(&self, column: usize) -> &str {
        let start = match column.checked_sub(1) {
            Some(before) => self.ends.get(before).copied(),
            None => Some(0),
        };
        let range = start.zip(self.ends.get(column).copied());
        range.and_then(|(start, end)| self.text.get(start..end)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn writes_rows_as_documented() {
        let mut out = b"head".to_vec();
        let mut rows = TextRows::new(&mut out);
        rows.int(-42);
        rows.text(b"a\tb\\c\nd\re");
        rows.null();
        rows.double(1.5);
        rows.end_row();
        rows.end_row();
        rows.text(b"");
        rows.end_row();
        assert_eq!(out, b"head-42\ta\\tb\\\\c\\nd\\re\t\\N\t1.5\n\n\n");
    }

    struct Numbers(i64, i64);

    impl RowSource for Numbers {
        fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
            if self.0 == self.1 {
                return false;
            }
            self.0 += 1;
            out.int(self.0);
            true
        }

        fn restart(&mut self) {
            self.0 = 0;
        }
    }

    #[test]
    fn fills_to_the_limit_with_whole_rows() {
        let mut out = Vec::new();
        let mut source = Numbers(0, 5);
        assert!(TextRows::new(&mut out).fill(&mut source, 5));
        assert_eq!(out, b"1\n2\n3\n");
        assert!(!TextRows::new(&mut out).fill(&mut source, 100));
        assert_eq!(out, b"1\n2\n3\n4\n5\n");
    }

    /// The text of a COPY without its escapes.
    fn unescape(text: &[u8]) -> Vec<u8> {
        let mut bytes = text.iter();
        let mut plain = Vec::new();
        while let Some(&byte) = bytes.next() {
            plain.push(match byte {
                b'\\' => match bytes.next() {
                    Some(b't') => b'\t',
                    Some(b'n') => b'\n',
                    Some(b'r') => b'\r',
                    Some(b'\\') => b'\\',
                    other => panic!("unknown escape {other:?}"),
                },
                byte => byte,
            });
        }
        plain
    }

    proptest! {
        #[test]
        fn any_text_reads_back(
            mut text in prop::collection::vec(any::<u8>(), 0..150),
            special in prop::option::of((any::<prop::sample::Index>(), 0..4_usize)),
        ) {
            if let Some((at, which)) = special && !text.is_empty() {
                let at = at.index(text.len());
                text[at] = b"\t\n\r\\"[which];
            }
            let mut out = Vec::new();
            let mut rows = TextRows::new(&mut out);
            rows.text(&text);
            rows.int(7);
            rows.end_row();
            let line = out.strip_suffix(b"\t7\n").unwrap();
            prop_assert!(!line.iter().any(|&byte| matches!(byte, b'\t' | b'\n' | b'\r')));
            prop_assert_eq!(unescape(line), text);
        }
    }

    #[test]
    fn fifteen_digits_are_printed_as_c_does() {
        // Right-hand sides printed by `printf '%.15g'` of coreutils and pgbench's debug().
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (-12.5, "-12.5"),
            (1.0 / 3.0, "0.333333333333333"),
            (2.0 / 3.0, "0.666666666666667"),
            (0.0001, "0.0001"),
            (0.00012345, "0.00012345"),
            (0.00001, "1e-05"),
            (123_456_789_012_345.0, "123456789012345"),
            (999_999_999_999_999.0, "999999999999999"),
            (999_999_999_999_999.9, "1e+15"),
            (1e15, "1e+15"),
            (1e14, "100000000000000"),
            (-1.5e300, "-1.5e+300"),
            (5e-324, "4.94065645841247e-324"),
            (f64::MAX, "1.79769313486232e+308"),
            (100.25, "100.25"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            let mut out = Vec::new();
            push_double_15g(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }

    proptest! {
        #[test]
        fn integers_read_back(value: i64, shift in 0..64_u32) {
            for value in [value >> shift, i64::MIN, i64::MAX, 0, -1, 9, 10, 99, 100] {
                let mut out = Vec::new();
                push_int(&mut out, value);
                prop_assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
            }
        }

        #[test]
        fn fifteen_digits_read_back_as_near(value: f64) {
            let mut out = Vec::new();
            push_double_15g(&mut out, value);
            let text = String::from_utf8(out).unwrap();
            let read: f64 = text.parse().unwrap();
            prop_assert!((read - value).abs() <= value.abs() * 5.1e-15 || !value.is_finite() || read.is_infinite());
            prop_assert!(text.len() <= 23, "{text}");
            // The standard library's 15 digits are the reference for the digits themselves.
            if value.is_finite() {
                let expected: f64 = format!("{value:.14e}").parse().unwrap();
                prop_assert_eq!(read, expected);
            }
        }

        #[test]
        fn whole_numbers_of_fifteen_digits_are_printed_as_such(value in -999_999_999_999_999_i64..=999_999_999_999_999) {
            let mut out = Vec::new();
            push_double_15g(&mut out, value as f64);
            prop_assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }

        #[test]
        fn doubles_read_back(value: f64) {
            let mut out = Vec::new();
            push_double(&mut out, value);
            let text = String::from_utf8(out).unwrap();
            prop_assert!(text.parse::<f64>().unwrap() == value || value.is_nan());
        }
    }

    #[test]
    fn pieces_of_any_length_are_appended_whole() {
        for len in [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 100] {
            let bytes: Vec<u8> = (1..=len as u8).collect();
            let mut out = b"before".to_vec();
            FixedBytes::new(bytes.clone()).push(&mut out);
            assert_eq!(out, [&b"before"[..], &bytes].concat());
        }
    }

    #[test]
    fn long_texts_are_cut_between_letters() {
        assert_eq!(server_text("né\u{e9}".as_bytes()), "né\u{e9}");
        assert_eq!(server_text(&[b'x'; SERVER_TEXT_BYTES]).len(), SERVER_TEXT_BYTES);
        for length in [SERVER_TEXT_BYTES + 1, 1 << 20] {
            let text = server_text(&vec![b'x'; length]);
            assert_eq!(text.len(), SERVER_TEXT_BYTES);
            assert!(text.ends_with("x..."), "{length}");
        }
        // Two bytes a letter: the cut falls into one.
        let text = server_text("\u{e9}".repeat(SERVER_TEXT_BYTES).as_bytes());
        assert!(text.ends_with("\u{e9}...") && text.len() == SERVER_TEXT_BYTES - 1);
    }
    #[test]
    fn a_sqlstate_is_five_digits_and_capitals() {
        assert_eq!(sqlstate(b"40P01"), Some(*b"40P01"));
        for wrong in [&b"40p01"[..], b"4000", b"400011", b"4\x1b[2J", b"40 01", b"4000\xe9", b""] {
            assert_eq!(sqlstate(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn bytes_outside_of_utf_8_stay_distinct() {
        let mut names = Names::default();
        names.push(b"a\xffb");
        let name = text_from_bytes(b"a\xffb");
        assert_eq!((names.name(0), names.name(1), names.count()), (name.as_str(), "", 1));
        names.clear();
        assert_eq!((names.count(), names.name(0)), (0, ""));
    }

    proptest! {
        #[test]
        fn names_read_back(names in prop::collection::vec(".{0,9}", 0..9)) {
            let mut stored = Names::default();
            names.iter().for_each(|name| stored.push(name.as_bytes()));
            prop_assert_eq!(stored.count(), names.len());
            for (column, name) in names.iter().enumerate() {
                prop_assert_eq!(stored.name(column), name);
            }
            prop_assert_eq!(stored.name(names.len()), "");
        }
    }
}
