//! The ends of quotations and comments in SQL.

use crate::Dialect;

/// The dialect and the setting by which a server reads quotations.
#[derive(Clone, Copy, Debug)]
pub struct SqlRules {
    pub dialect: Dialect,
    /// State that a session of MySQL reports; on other servers a backslash is an ordinary letter.
    pub has_backslash_escapes: bool,
}

/// A part of a text of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlPart {
    /// A text or a name in quotes.
    Quotation,
    Comment,
    /// A single byte, or the begin of a comment that MySQL executes.
    Other,
}

impl SqlRules {
    /// The part that begins at `at`, and its end: that of the text if it isn't closed.
    #[inline]
    pub fn part_at(self, sql: &[u8], at: usize) -> (SqlPart, usize) {
        let (is_mysql, is_postgres) =
            (self.dialect == Dialect::Mysql, self.dialect == Dialect::Postgres);
        let remaining = &sql[at..];
        let (part, length) = match remaining {
            [b'`', ..] if is_postgres => (SqlPart::Other, 1),
            [quote @ (b'\'' | b'"' | b'`'), ..] => {
                let has_escapes = match self.dialect {
                    Dialect::Mysql => *quote != b'`' && self.has_backslash_escapes,
                    Dialect::Postgres => *quote == b'\'' && ends_with_e(&sql[..at]),
                    Dialect::Sqlite => false,
                };
                let length = quotation(remaining, has_escapes, has_escapes && is_postgres);
                (SqlPart::Quotation, length)
            }
            [b'/', b'*', b'!', ..] | [b'/', b'*', b'M', b'!', ..] if is_mysql => {
                (SqlPart::Other, 2)
            }
            [b'/', b'*', ..] => (SqlPart::Comment, block_comment(remaining, is_postgres)),
            // There `5--1` is a difference.
            [b'-', b'-', next, ..]
                if is_mysql && !next.is_ascii_whitespace() && !next.is_ascii_control() =>
            {
                (SqlPart::Other, 1)
            }
            [b'-', b'-', ..] => (SqlPart::Comment, line(remaining, is_postgres)),
            [b'#', ..] if is_mysql => (SqlPart::Comment, line(remaining, false)),
            [b'$', ..] if is_postgres => match dollar_quotation(&sql[..at], remaining) {
                Some(length) => (SqlPart::Quotation, length),
                None => (SqlPart::Other, 1),
            },
            _ => (SqlPart::Other, 1),
        };
        (part, at + length)
    }
}

/// The length of a quotation; that of the text if it has no end. A doubled quote ends one and begins another, with the same
/// result, unless escapes of PostgreSQL hold in what continues it.
fn quotation(text: &[u8], has_escapes: bool, continues: bool) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' if has_escapes => at += 2,
            byte if *byte == text[0] => {
                at += 1;
                let Some(gap) = continuation(&text[at..]).filter(|_| continues) else { return at };
                at += gap + 1;
            }
            _ => at += 1,
        }
    }
    text.len()
}

/// The length of the text between two parts of a quotation of PostgreSQL: none for a doubled quote, else blanks and
/// comments with the end of a line among them.
fn continuation(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += match &text[at..] {
            [b'\'', ..] => break,
            [b'-', b'-', ..] => line(&text[at..], true),
            [byte, ..] if byte.is_ascii_whitespace() => 1,
            _ => return None,
        };
    }
    (at == 0 || text[..at].iter().any(|byte| matches!(byte, b'\n' | b'\r'))).then_some(at)
}

/// The length of PostgreSQL's `$tag$...$tag$`; `None` if none begins here.
fn dollar_quotation(before: &[u8], text: &[u8]) -> Option<usize> {
    let tag = text[1..].iter().take_while(|byte| is_name(byte) && **byte != b'$').count();
    let begins = text.get(tag + 1) == Some(&b'$')
        && !text[1].is_ascii_digit()
        && !before.last().is_some_and(is_name);
    let (quote, rest) = text.split_at_checked(tag + 2).filter(|_| begins)?;
    let end = rest.windows(quote.len()).position(|part| part == quote);
    Some(end.map_or(text.len(), |end| quote.len() + end + quote.len()))
}

/// Returns true before the quotation of PostgreSQL's `E'...'`.
fn ends_with_e(before: &[u8]) -> bool {
    match before {
        [.., last, b'e' | b'E'] => !is_name(last),
        _ => matches!(before, [b'e' | b'E']),
    }
}

fn is_name(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

fn block_comment(text: &[u8], nests: bool) -> usize {
    let (mut at, mut depth) = (2, 1);
    while depth > 0 && at < text.len() {
        at += match text[at..] {
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            [b'/', b'*', ..] if nests => {
                depth += 1;
                2
            }
            _ => 1,
        };
    }
    at
}

/// The length of a line without its end, which is also a carriage return on PostgreSQL.
fn line(text: &[u8], is_postgres: bool) -> usize {
    let end = text.iter().position(|byte| *byte == b'\n' || is_postgres && *byte == b'\r');
    end.unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(sql: &str, dialect: Dialect) -> (SqlPart, &str) {
        let rules = SqlRules { dialect, has_backslash_escapes: false };
        let (part, end) = rules.part_at(sql.as_bytes(), usize::from(sql.starts_with('E')));
        (part, &sql[..end])
    }

    #[test]
    fn a_backtick_quotes_nothing_on_postgresql() {
        assert_eq!(first("`; x", Dialect::Postgres), (SqlPart::Other, "`"));
        for dialect in [Dialect::Mysql, Dialect::Sqlite] {
            assert_eq!(first("`a;` x", dialect), (SqlPart::Quotation, "`a;`"));
            assert_eq!(first("`; x", dialect), (SqlPart::Quotation, "`; x"));
        }
    }

    #[test]
    fn escapes_hold_in_all_parts_of_a_quotation_of_postgresql() {
        for quotation in [
            r"E'a\';'",
            r"E'a''b\';'",
            "E'a'\n'b\\';'",
            "E'a' -- it's\r\n -- more\n\t'b\\';'",
            r"E'a\",
            "E'a'\n'b\\';",
        ] {
            let part = (SqlPart::Quotation, quotation);
            assert_eq!(first(quotation, Dialect::Postgres), part);
            let text = format!("{quotation}; 'x'");
            if quotation.ends_with("'") {
                assert_eq!(first(&text, Dialect::Postgres), part);
            }
        }
        for text in ["E'a' 'b'", "E'a' -- no", "E'a' /* \n */ 'b'", "E'a'\n;'b'"] {
            assert_eq!(first(text, Dialect::Postgres), (SqlPart::Quotation, "E'a'"));
        }
    }

    #[test]
    fn a_carriage_return_ends_a_comment_on_postgresql() {
        assert_eq!(first("-- a\rb", Dialect::Postgres), (SqlPart::Comment, "-- a"));
        assert_eq!(first("-- a\rb\n", Dialect::Mysql), (SqlPart::Comment, "-- a\rb"));
    }
}
