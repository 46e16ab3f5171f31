//! Numbers as decimal text: integers two digits at a time, doubles in two forms.

const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Appends `value` in decimal. The standard formatter is several times as slow, which shows in millions of rows.
#[inline]
pub fn push_int(out: &mut Vec<u8>, value: i64) {
    let mut text = [0; LONGEST_INT];
    let at = write_int(&mut text, value);
    out.extend_from_slice(&text[at..]);
}

#[inline]
pub fn push_uint(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0; LONGEST_INT];
    let at = write_uint(&mut digits, value);
    out.extend_from_slice(&digits[at..]);
}

/// Characters of the longest integer.
pub(crate) const LONGEST_INT: usize = 20;

/// Writes `value` in decimal at the end of `text`, which has room for [`LONGEST_INT`] characters; returns its start.
#[inline]
pub(crate) fn write_int(text: &mut [u8], value: i64) -> usize {
    let mut at = write_uint(text, value.unsigned_abs());
    if value < 0 {
        at -= 1;
        text[at] = b'-';
    }
    at
}

// Single bytes, because copying a slice of two bytes calls memmove.
#[inline]
fn write_uint(digits: &mut [u8], mut value: u64) -> usize {
    let mut at = digits.len();
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        [digits[at], digits[at + 1]] = [PAIRS[pair], PAIRS[pair + 1]];
    }
    if value >= 10 {
        let pair = value as usize * 2;
        at -= 2;
        [digits[at], digits[at + 1]] = [PAIRS[pair], PAIRS[pair + 1]];
    } else {
        at -= 1;
        digits[at] = b'0' + value as u8;
    }
    at
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
    let mut rest = &mut buffer[..];
    let _ = write!(rest, "{:.14e}", value.abs());
    let left = rest.len();
    let text = &buffer[..buffer.len() - left];
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
        push_uint(out, u64::from(exponent.unsigned_abs()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
                let wanted: f64 = format!("{value:.14e}").parse().unwrap();
                prop_assert_eq!(read, wanted);
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
}
