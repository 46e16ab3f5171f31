//! Texts of prepared statements.

use dyno_core::{Dialect, Param};
use std::fmt::Write as _;

/// The parts of a statement before, between and after its `?`, which count only outside of quotes.
fn parts(sql: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut quote) = (Vec::new(), 0, None);
    for (at, byte) in sql.bytes().enumerate() {
        match (quote, byte) {
            (None, b'\'' | b'"' | b'`') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            (None, b'?') => {
                parts.push(&sql[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&sql[begin..]);
    parts
}

/// The statement with the placeholders of its dialect, and their number.
pub(crate) fn with_placeholders(sql: &str, dialect: Dialect) -> (String, usize) {
    let parts = parts(sql);
    if dialect != Dialect::Postgres {
        return (sql.to_owned(), parts.len() - 1);
    }
    let mut text = parts[0].to_owned();
    for (index, part) in parts.iter().enumerate().skip(1) {
        let _ = write!(text, "${index}{part}");
    }
    (text, parts.len() - 1)
}

/// The statement with values in place of its placeholders, for `--db-ps-mode=disable`.
pub(crate) fn substituted(sql: &str, values: &[Param<'_>]) -> String {
    let parts = parts(sql);
    let mut text = parts[0].to_owned();
    for (index, part) in parts.iter().enumerate().skip(1) {
        match values.get(index - 1) {
            Some(Param::Int(number)) => push_number(&mut text, &number.to_string()),
            // With an exponent, or MySQL takes it for an exact number, which has fewer digits.
            Some(Param::Double(number)) if number.is_finite() => {
                push_number(&mut text, &format!("{number:e}"));
            }
            // As PostgreSQL writes it. The others have no such numbers, and refuse the statement.
            Some(Param::Double(number)) => {
                let _ = write!(text, "'{number}'::float8");
            }
            Some(Param::Text(value)) => {
                let value = String::from_utf8_lossy(value).replace('\'', "''");
                text.extend(["'", &value, "'"]);
            }
            Some(Param::Null) | None => text.push_str("NULL"),
        }
        text.push_str(part);
    }
    text
}

/// A minus after another one would begin a comment.
fn push_number(text: &mut String, number: &str) {
    if number.starts_with('-') && text.ends_with('-') {
        text.push(' ');
    }
    text.push_str(number);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_those_outside_of_quotes() {
        let sql = "SELECT '?', \"?\" FROM t WHERE a=? AND b=?";
        assert_eq!(with_placeholders(sql, Dialect::Mysql), (sql.to_owned(), 2));
        let postgres = "SELECT '?', \"?\" FROM t WHERE a=$1 AND b=$2";
        assert_eq!(with_placeholders(sql, Dialect::Postgres), (postgres.to_owned(), 2));
        let values = [Param::Int(-5), Param::Text(b"it's")];
        let text = "SELECT '?', \"?\" FROM t WHERE a=-5 AND b='it''s'";
        assert_eq!(substituted(sql, &values), text);
    }

    #[test]
    fn numbers_stay_what_they_are_as_text() {
        let text = |value: Param<'_>| substituted("?", &[value]);
        for (number, expected) in [
            (1e300, "1e300"),
            (-1e-300, "-1e-300"),
            (0.1, "1e-1"),
            (9_223_372_036_854_775_808.0, "9.223372036854776e18"),
            (f64::NEG_INFINITY, "'-inf'::float8"),
            (f64::NAN, "'NaN'::float8"),
        ] {
            assert_eq!(text(Param::Double(number)), expected);
        }
        assert_eq!(text(Param::Int(i64::MIN)), "-9223372036854775808");
        let values = [Param::Int(-5), Param::Double(-0.5)];
        assert_eq!(substituted("SELECT 1-?, 2 -?", &values), "SELECT 1- -5, 2 - -5e-1");
    }
}
