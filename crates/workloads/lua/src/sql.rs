//! Texts of prepared statements.

use crate::prepared::Literal;
use dyno_core::{Dialect, Param, SqlRules};
use std::fmt::Display;
use std::io::Write as _;

/// The number of a statement's placeholders, and the statement: with those of its dialect where the server prepares it.
pub(crate) fn with_placeholders(
    sql: &[u8],
    rules: SqlRules,
    is_prepared: bool,
) -> (Vec<u8>, usize) {
    let parts = Parts::new(sql, rules);
    if !is_prepared || rules.dialect != Dialect::Postgres {
        return (sql.to_vec(), parts.count() - 1);
    }
    let mut text = Vec::with_capacity(sql.len());
    let mut placeholders = 0;
    for (index, part) in parts.enumerate() {
        if index > 0 {
            push(&mut text, format_args!("${index}"));
        }
        text.extend_from_slice(part);
        placeholders = index;
    }
    (text, placeholders)
}

/// The parts of a statement before, between and after its `?`, which count only outside of quotes and comments.
struct Parts<'a> {
    rest: Option<&'a [u8]>,
    rules: SqlRules,
}

impl<'a> Parts<'a> {
    fn new(sql: &'a [u8], rules: SqlRules) -> Self {
        Parts { rest: Some(sql), rules }
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let sql = self.rest.take()?;
        let mut at = 0;
        while at < sql.len() {
            if sql[at] == b'?' {
                self.rest = Some(&sql[at + 1..]);
                return Some(&sql[..at]);
            }
            (_, at) = self.rules.part_at(sql, at);
        }
        Some(sql)
    }
}

/// Appends the statement with values instead of its placeholders, for `--db-ps-mode=disable`.
pub(crate) fn substitute<'a>(
    out: &mut Vec<u8>,
    sql: &[u8],
    mut values: impl Iterator<Item = Literal<'a>>,
    rules: SqlRules,
) {
    for (index, part) in Parts::new(sql, rules).enumerate() {
        if index > 0 {
            push_literal(rules, out, values.next());
        }
        out.extend_from_slice(part);
    }
}

fn push_literal(rules: SqlRules, out: &mut Vec<u8>, value: Option<Literal<'_>>) {
    let missing = Literal { param: Param::Null, unsigned: None };
    let Literal { param, unsigned } = value.unwrap_or(missing);
    if let Some(number) = unsigned
        && rules.dialect != Dialect::Sqlite
    {
        // SQLite would make a real number of it. There `param` has what a prepared statement is given.
        return push(out, number);
    }
    match param {
        Param::Int(number) => push_number(rules, out, number < 0, number),
        // With an exponent, or MySQL takes it for an exact number, which has fewer digits.
        Param::Double(number) if number.is_finite() => {
            push_number(rules, out, number.is_sign_negative(), format_args!("{number:e}"));
        }
        // As PostgreSQL writes it. The others have no such numbers, and refuse the statement.
        Param::Double(number) => push(out, format_args!("'{number}'::float8")),
        Param::Text(text) => push_text(rules, out, text),
        Param::Null => out.extend_from_slice(b"NULL"),
    }
}

/// A minus after another one would begin a comment; on MySQL only one with a blank behind it does.
fn push_number(rules: SqlRules, out: &mut Vec<u8>, is_negative: bool, number: impl Display) {
    if is_negative && out.ends_with(b"-") && rules.dialect != Dialect::Mysql {
        out.push(b' ');
    }
    push(out, number);
}

fn push_text(rules: SqlRules, out: &mut Vec<u8>, text: &[u8]) {
    let has_escapes = match rules.dialect {
        Dialect::Mysql => rules.has_backslash_escapes,
        // `standard_conforming_strings` does not change this form.
        Dialect::Postgres if text.contains(&b'\\') => {
            out.extend_from_slice(b" E");
            true
        }
        // A quoted text ends at a zero byte there, and a statement must be UTF-8.
        Dialect::Sqlite if text.contains(&0) || std::str::from_utf8(text).is_err() => {
            out.extend_from_slice(b"CAST(X'");
            text.iter().for_each(|byte| push(out, format_args!("{byte:02X}")));
            return out.extend_from_slice(b"' AS TEXT)");
        }
        Dialect::Postgres | Dialect::Sqlite => false,
    };
    out.push(b'\'');
    for &byte in text {
        if byte == b'\'' || has_escapes && byte == b'\\' {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'\'');
}

/// Appends a value as text.
fn push(out: &mut Vec<u8>, value: impl Display) {
    // Writing to memory can't fail.
    let _ = write!(out, "{value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const MYSQL: SqlRules = SqlRules { dialect: Dialect::Mysql, has_backslash_escapes: true };
    const WITHOUT_ESCAPES: SqlRules = SqlRules { has_backslash_escapes: false, ..MYSQL };
    const POSTGRES: SqlRules =
        SqlRules { dialect: Dialect::Postgres, has_backslash_escapes: false };
    const SQLITE: SqlRules = SqlRules { dialect: Dialect::Sqlite, ..POSTGRES };

    fn substituted(sql: &str, values: &[Param<'_>], rules: SqlRules) -> Vec<u8> {
        let mut out = Vec::new();
        let literals = values.iter().map(|&param| Literal { param, unsigned: None });
        substitute(&mut out, sql.as_bytes(), literals, rules);
        out
    }

    #[test]
    fn placeholders_are_those_outside_of_quotes() {
        let sql = "SELECT '?', \"?\" FROM t WHERE a=? AND b=?";
        let [mysql, marked] =
            [MYSQL, POSTGRES].map(|rules| with_placeholders(sql.as_bytes(), rules, true));
        assert_eq!(mysql, (sql.as_bytes().to_vec(), 2));
        let postgres = b"SELECT '?', \"?\" FROM t WHERE a=$1 AND b=$2";
        assert_eq!(with_placeholders(sql.as_bytes(), POSTGRES, false), mysql);
        assert_eq!(marked, (postgres.to_vec(), 2));
        let values = [Param::Int(-5), Param::Text(b"it's")];
        let text = b"SELECT '?', \"?\" FROM t WHERE a=-5 AND b='it''s'";
        assert_eq!(substituted(sql, &values, MYSQL), text);
        assert_eq!(substituted("SELECT ?, ?", &[Param::Int(1)], MYSQL), b"SELECT 1, NULL");
    }

    #[test]
    fn placeholders_are_none_within_comments() {
        for (sql, expected) in [
            ("SELECT ? /* why? */, ?", [2, 2, 2]),
            ("SELECT /*+ hint? */ ?", [1, 1, 1]),
            ("SELECT ? -- it's really?\n, ?", [2, 2, 2]),
            ("SELECT ? --", [1, 1, 1]),
            ("SELECT ? /* ?", [1, 1, 1]),
            ("SELECT 5--?", [1, 0, 0]),
            ("SELECT 5---?, ?", [2, 0, 0]),
            ("SELECT 5 # ?", [0, 1, 1]),
            ("SELECT /*! ? */, /*M! ? */", [2, 0, 0]),
            ("SELECT /* /* ? */ ? */ ?", [2, 1, 2]),
            ("SELECT '/*', ?, '--', ?, `#`", [2, 2, 2]),
        ] {
            let counts = [MYSQL, POSTGRES, SQLITE]
                .map(|rules| with_placeholders(sql.as_bytes(), rules, true).1);
            assert_eq!(counts, expected, "{sql}");
        }
        let quoted = b"SELECT $$it's ?$$, $a$ $$ ? $a$, a$1, ?";
        assert_eq!(with_placeholders(quoted, POSTGRES, false).1, 1);
        let marked = with_placeholders(b"SELECT ? /* why? */, ? -- x?", POSTGRES, true);
        assert_eq!(marked, (b"SELECT $1 /* why? */, $2 -- x?".to_vec(), 2));
    }

    #[test]
    fn a_backslash_hides_a_quote_where_there_are_escapes() {
        let escaped = r"SELECT '\'?', ?";
        assert_eq!(with_number(1, escaped, MYSQL), br"SELECT '\'?', 1");
        assert_eq!(with_placeholders(escaped.as_bytes(), MYSQL, true).1, 1);
        assert_eq!(with_number(-5, "SELECT 5--? WHERE 1", MYSQL), b"SELECT 5---5 WHERE 1");
        assert_eq!(with_number(-5, "SELECT 5-?", POSTGRES), b"SELECT 5- -5");
        assert_eq!(with_number(1, "SELECT `\\`, ?", MYSQL), br"SELECT `\`, 1");
        let escape = r"SELECT a LIKE 'x' ESCAPE '\', ?";
        for rules in [WITHOUT_ESCAPES, POSTGRES, SQLITE] {
            assert_eq!(with_number(1, escape, rules), br"SELECT a LIKE 'x' ESCAPE '\', 1");
            assert_eq!(with_placeholders(escape.as_bytes(), rules, true).1, 1);
        }
        assert_eq!(with_number(1, r"SELECT E'\'?', ?", POSTGRES), br"SELECT E'\'?', 1");
        assert_eq!(with_number(1, r"SELECT date'\', ?", POSTGRES), br"SELECT date'\', 1");
    }

    /// The statement with a number for its placeholder.
    fn with_number(number: i64, sql: &str, rules: SqlRules) -> Vec<u8> {
        substituted(sql, &[Param::Int(number)], rules)
    }

    #[test]
    fn numbers_stay_what_they_are_as_text() {
        for (number, expected) in [
            (1e300, "1e300"),
            (-1e-300, "-1e-300"),
            (0.1, "1e-1"),
            (9_223_372_036_854_775_808.0, "9.223372036854776e18"),
            (f64::NEG_INFINITY, "'-inf'::float8"),
            (f64::NAN, "'NaN'::float8"),
        ] {
            assert_eq!(literal_text(Param::Double(number)), expected);
        }
        assert_eq!(literal_text(Param::Int(i64::MIN)), "-9223372036854775808");
        let values = [Param::Int(-5), Param::Double(-0.5)];
        let minus = substituted("SELECT 1-?, 2 -?", &values, POSTGRES);
        assert_eq!(minus, b"SELECT 1- -5, 2 - -5e-1");
    }

    fn literal_text(value: Param<'_>) -> String {
        String::from_utf8(substituted("?", &[value], POSTGRES)).expect("digits")
    }

    #[test]
    fn integers_beyond_63_bits_are_not_negative_where_there_are_such() {
        for (rules, expected) in [
            (MYSQL, &b"18446744073709551615"[..]),
            (POSTGRES, &b"18446744073709551615"[..]),
            (SQLITE, &b"-1"[..]),
        ] {
            let mut out = Vec::new();
            let literal = Literal { param: Param::Int(-1), unsigned: Some(u64::MAX) };
            substitute(&mut out, b"?", [literal].into_iter(), rules);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn texts_are_quoted_as_each_dialect_reads_them() {
        let odd = b"a\\b'c\"d\ne";
        assert_eq!(quote_text(odd, MYSQL), b"'a\\\\b''c\"d\ne'");
        assert_eq!(quote_text(odd, WITHOUT_ESCAPES), b"'a\\b''c\"d\ne'");
        assert_eq!(quote_text(odd, POSTGRES), b" E'a\\\\b''c\"d\ne'");
        assert_eq!(quote_text(odd, SQLITE), b"'a\\b''c\"d\ne'");
        assert_eq!(quote_text(b"it's", POSTGRES), b"'it''s'");
        for bytes in [&b"\0x"[..], b"\xe4x"] {
            let as_it_is = [&b"'"[..], bytes, b"'"].concat();
            for rules in [MYSQL, WITHOUT_ESCAPES, POSTGRES] {
                assert_eq!(quote_text(bytes, rules), as_it_is);
            }
        }
        assert_eq!(quote_text(b"\0x'", SQLITE), b"CAST(X'007827' AS TEXT)");
        assert_eq!(quote_text(b"\xe4x", SQLITE), b"CAST(X'E478' AS TEXT)");
    }

    fn quote_text(text: &[u8], rules: SqlRules) -> Vec<u8> {
        substituted("?", &[Param::Text(text)], rules)
    }
}
