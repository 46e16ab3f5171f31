//! Numbers as the C library reads them.

/// The number at the beginning of a text and what follows it, as `strtod` finds them; 0 and the
/// whole text where there is none.
pub(super) fn leading_double(text: &str) -> f64 {
    let text = text.trim_start();
    let digits = |from: usize| {
        let rest = &text.as_bytes()[from..];
        from + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let is_at =
        |at: usize, bytes: &[u8]| text.as_bytes().get(at).is_some_and(|b| bytes.contains(b));
    let signed = |at: usize| if is_at(at, b"+-") { at + 1 } else { at };
    let whole = digits(signed(0));
    let mut end = if is_at(whole, b".") { digits(whole + 1) } else { whole };
    if is_at(end, b"eE") {
        let exponent = signed(end + 1);
        if digits(exponent) > exponent {
            end = digits(exponent);
        }
    }
    text[..end].parse().unwrap_or(0.0)
}

/// The integer at the beginning of a text, as `atoi` finds it; 0 where there is none.
pub(super) fn leading_int(text: &str) -> i32 {
    let (value, _) = long(text);
    // What doesn't fit is cut, as the C library's conversion from long does.
    value.unwrap_or(i64::MAX) as i32
}

/// What `strtol` finds at the beginning of a text: the number (`None` when it is out of range)
/// and the rest.
pub(super) fn long(text: &str) -> (Option<i64>, &str) {
    let body = text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let sign = usize::from(body.starts_with(['+', '-']));
    let digits = body[sign..].bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return (Some(0), text);
    }
    let (number, rest) = body.split_at(sign + digits);
    (number.parse().ok(), rest)
}

/// An unsigned number of 64 bits as `scanf` takes it: signs and overflow included.
pub(super) fn scanned_u64(text: &str) -> Option<u64> {
    let body = text.trim_start();
    let (is_negative, digits) = match body.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, body.strip_prefix('+').unwrap_or(body)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(match digits.parse::<u64>() {
        Ok(number) if is_negative => number.wrapping_neg(),
        Ok(number) => number,
        Err(_) => u64::MAX,
    })
}

/// The whole number an option takes. `name` is as pgbench calls it in its complaints.
pub(super) fn option_int(text: &str, name: &str, min: i32, max: i32) -> Result<i32, String> {
    let (value, rest) = long(text);
    if !rest.trim_ascii_start().is_empty() {
        return Err(format!("invalid value \"{text}\" for option {name}"));
    }
    value
        .and_then(|value| i32::try_from(value).ok())
        .filter(|value| (min..=max).contains(value))
        .ok_or_else(|| format!("{name} must be in range {min}..{max}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_end_where_strtod_ends() {
        for (text, value) in [
            ("12.5ms", 12.5),
            (" +.5", 0.5),
            ("-1e3x", -1000.0),
            ("1e", 1.0),
            ("1e+", 1.0),
            ("7.", 7.0),
            ("", 0.0),
            (".", 0.0),
            ("abc", 0.0),
        ] {
            assert!((leading_double(text) - value).abs() < f64::EPSILON, "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_checked_as_pgbench_checks_them() {
        let int = |text| option_int(text, "-F/--fillfactor", 10, 100);
        assert_eq!(int(" 50 "), Ok(50));
        assert_eq!(int("+10"), Ok(10));
        let range = Err("-F/--fillfactor must be in range 10..100".to_owned());
        for text in ["9", "101", "", " ", "99999999999999999999", "-50"] {
            assert_eq!(int(text), range, "{text:?}");
        }
        for text in ["x", "5x", "1 2", "-", "0x10"] {
            let invalid = format!("invalid value \"{text}\" for option -F/--fillfactor");
            assert_eq!(int(text), Err(invalid));
        }
    }

    #[test]
    fn seeds_are_read_as_scanf_reads_them() {
        assert_eq!(scanned_u64(" 12"), Some(12));
        assert_eq!(scanned_u64("-1"), Some(u64::MAX));
        assert_eq!(scanned_u64("99999999999999999999999"), Some(u64::MAX));
        for text in ["", "x", "1x", "1 ", "--1"] {
            assert_eq!(scanned_u64(text), None, "{text:?}");
        }
        assert_eq!((leading_int("12abc"), leading_int("-3"), leading_int("x")), (12, -3, 0));
    }
}
