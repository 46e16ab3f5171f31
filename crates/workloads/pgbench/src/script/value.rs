//! Values of expressions and their text.

use dyno_core::push_int;
use std::fmt::Write;

/// What an expression is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScriptValue {
    /// SQL NULL.
    Null,
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A double-precision number.
    Double(f64),
}

impl ScriptValue {
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            ScriptValue::Null => "null",
            ScriptValue::Bool(_) => "boolean",
            ScriptValue::Int(_) => "int",
            ScriptValue::Double(_) => "double",
        }
    }

    /// Appends the text that replaces a variable in SQL.
    pub(crate) fn push_text(self, out: &mut String) {
        match self {
            ScriptValue::Null => out.push_str("NULL"),
            ScriptValue::Bool(true) => out.push_str("true"),
            ScriptValue::Bool(false) => out.push_str("false"),
            ScriptValue::Int(value) => push_int(out, value),
            ScriptValue::Double(value) => push_double(out, value),
        }
    }

    /// What `debug()` says: type and value.
    pub(crate) fn described(self) -> String {
        let mut text = self.type_name().to_owned();
        if self != ScriptValue::Null {
            text.push(' ');
            self.push_text(&mut text);
        }
        text
    }
}

/// Appends a number as C's `%.15g` does.
pub(crate) fn push_double(out: &mut String, value: f64) {
    const DIGITS: usize = 15;
    if value.is_nan() {
        return out.push_str("NaN");
    }
    if value.is_infinite() {
        return out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    if value == 0.0 {
        return out.push_str(if value.is_sign_negative() { "-0" } else { "0" });
    }
    // d.dddddddddddddde-7, from which digits and exponent are taken.
    let start = out.len();
    let _ = write!(out, "{:.14e}", value.abs());
    let mut digits = [b'0'; DIGITS];
    let written = out[start..].bytes();
    let mantissa = written.clone().take_while(|&byte| byte != b'e').filter(|&byte| byte != b'.');
    for (slot, byte) in digits.iter_mut().zip(mantissa) {
        *slot = byte;
    }
    let exponent: i32 =
        out[start..].split_once('e').and_then(|(_, text)| text.parse().ok()).unwrap_or(0);
    out.truncate(start);
    if value < 0.0 {
        out.push('-');
    }
    let significant = digits.iter().rposition(|&digit| digit != b'0').map_or(1, |last| last + 1);
    let digits = std::str::from_utf8(&digits[..significant]).unwrap_or_default();
    if (-4..DIGITS as i32).contains(&exponent) {
        push_fixed(out, digits, exponent);
    } else {
        out.push_str(&digits[..1]);
        if significant > 1 {
            out.push('.');
            out.push_str(&digits[1..]);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
    }
}

/// Digits with the first one worth 10^`exponent`, without an exponent.
fn push_fixed(out: &mut String, digits: &str, exponent: i32) {
    if exponent < 0 {
        out.push_str("0.");
        for _ in 1..-exponent {
            out.push('0');
        }
        return out.push_str(digits);
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        out.push_str(digits);
        for _ in digits.len()..whole {
            out.push('0');
        }
    } else {
        out.push_str(&digits[..whole]);
        out.push('.');
        out.push_str(&digits[whole..]);
    }
}

/// Why a text has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoValue {
    /// The empty text has none, which is not explained.
    Empty,
    /// Digits of an integer that is too large.
    OutOfRange,
    /// Anything else.
    Malformed,
}

/// The value of a text that a variable was given from outside.
pub(crate) fn parse_value(text: &str) -> Result<ScriptValue, NoValue> {
    if text.is_empty() {
        return Err(NoValue::Empty);
    }
    let is_prefix_of =
        |word: &str| word.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text));
    let is = |word: &str| word.eq_ignore_ascii_case(text);
    if is("null") {
        return Ok(ScriptValue::Null);
    }
    // "o" alone could be either.
    if is_prefix_of("true") || is_prefix_of("yes") || is("on") {
        return Ok(ScriptValue::Bool(true));
    }
    if is_prefix_of("false") || is_prefix_of("no") || is("off") || is("of") {
        return Ok(ScriptValue::Bool(false));
    }
    let number = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let unsigned = number.strip_prefix(['+', '-']).unwrap_or(number);
    if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.parse().map(ScriptValue::Int).map_err(|_| NoValue::OutOfRange);
    }
    parse_double(number).map(ScriptValue::Double).ok_or(NoValue::Malformed)
}

/// A number as C's `strtod` reads it, the whole text of it. `None` also when it is too large or
/// too small for a normal double.
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if let Some(hex) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        let value = parse_hex(hex)?;
        return Some(if text.starts_with('-') { -value } else { value });
    }
    let value: f64 = text.parse().ok()?;
    let is_named = unsigned.starts_with(['i', 'I', 'n', 'N']);
    let mantissa = unsigned.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = !mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    (is_named || is_zero || value.is_normal()).then_some(value)
}

/// Hexadecimal digits with an optional point and an optional exponent of 2.
fn parse_hex(text: &str) -> Option<f64> {
    let (mantissa, exponent) = match text.split_once(['p', 'P']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0_f64;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?.checked_mul(4)?)?;
    let value = value * 2.0_f64.powi(exponent);
    (value == 0.0 || value.is_normal()).then_some(value)
}

/// The integer at the beginning of a text, as C's `atoi` reads it; 0 when there is none. Numbers
/// that are too large stay at the limit.
pub(crate) fn leading_int(text: &str) -> i64 {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut value = 0_i64;
    for digit in digits.bytes().take_while(u8::is_ascii_digit) {
        value = value.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
    }
    if is_negative { -value } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_have_fifteen_digits() {
        let cases = [
            (1.0 / 3.0, "0.333333333333333"),
            (2.0_f64.sqrt(), "1.4142135623731"),
            (1e15, "1e+15"),
            (1e14, "100000000000000"),
            (123_456_789_012_345_678.0, "1.23456789012346e+17"),
            (0.0001, "0.0001"),
            (1e-5, "1e-05"),
            (-2.5e-300, "-2.5e-300"),
            (-0.0, "-0"),
            (999_999_999_999_999.9, "1e+15"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
            (150.0, "150"),
        ];
        for (value, text) in cases {
            let mut out = String::new();
            push_double(&mut out, value);
            assert_eq!(out, text);
        }
    }

    #[test]
    fn texts_get_the_type_they_look_like() {
        let cases = [
            ("NULL", Ok(ScriptValue::Null)),
            ("T", Ok(ScriptValue::Bool(true))),
            ("yes", Ok(ScriptValue::Bool(true))),
            ("on", Ok(ScriptValue::Bool(true))),
            ("n", Ok(ScriptValue::Bool(false))),
            ("of", Ok(ScriptValue::Bool(false))),
            ("o", Err(NoValue::Malformed)),
            ("", Err(NoValue::Empty)),
            (" +5", Ok(ScriptValue::Int(5))),
            ("5 ", Err(NoValue::Malformed)),
            ("99999999999999999999", Err(NoValue::OutOfRange)),
            ("1e400", Err(NoValue::Malformed)),
            ("1e-400", Err(NoValue::Malformed)),
            ("0e-999", Ok(ScriptValue::Double(0.0))),
            ("0x1.8p1", Ok(ScriptValue::Double(3.0))),
            ("inf", Ok(ScriptValue::Double(f64::INFINITY))),
            ("1.5x", Err(NoValue::Malformed)),
            ("é", Err(NoValue::Malformed)),
        ];
        for (text, value) in cases {
            assert_eq!(parse_value(text), value, "{text:?}");
        }
    }

    #[test]
    fn integers_of_all_sizes_are_written() {
        for value in [0, 7, 10, -1, i64::MAX, i64::MIN] {
            let mut text = String::new();
            push_int(&mut text, value);
            assert_eq!(text, value.to_string());
        }
    }
}
