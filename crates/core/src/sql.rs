//! Where quotations and comments of SQL end.

use crate::Dialect;

/// How a server reads quotations.
#[derive(Clone, Copy, Debug)]
pub struct SqlRules {
    pub dialect: Dialect,
    /// As a session of MySQL says; elsewhere a backslash stands for itself.
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
    /// The part that begins at `at`, and its end: that of the text where it isn't closed.
    #[inline]
    pub fn part_at(self, sql: &[u8], at: usize) -> (SqlPart, usize) {
        let is_mysql = self.dialect == Dialect::Mysql;
        let rest = &sql[at..];
        let (part, length) = match rest {
            [quote @ (b'\'' | b'"' | b'`'), ..] => {
                let has_escapes = match self.dialect {
                    Dialect::Mysql => *quote != b'`' && self.has_backslash_escapes,
                    Dialect::Postgres => *quote == b'\'' && ends_with_e(&sql[..at]),
                    Dialect::Sqlite => false,
                };
                (SqlPart::Quotation, quotation(rest, has_escapes).unwrap_or(rest.len()))
            }
            [b'/', b'*', b'!', ..] | [b'/', b'*', b'M', b'!', ..] if is_mysql => {
                (SqlPart::Other, 2)
            }
            [b'/', b'*', ..] => {
                (SqlPart::Comment, block_comment(rest, self.dialect == Dialect::Postgres))
            }
            // There `5--1` is a difference.
            [b'-', b'-', next, ..]
                if is_mysql && !next.is_ascii_whitespace() && !next.is_ascii_control() =>
            {
                (SqlPart::Other, 1)
            }
            [b'-', b'-', ..] => (SqlPart::Comment, line(rest)),
            [b'#', ..] if is_mysql => (SqlPart::Comment, line(rest)),
            [b'$', ..] if self.dialect == Dialect::Postgres => {
                match dollar_quotation(&sql[..at], rest) {
                    Some(length) => (SqlPart::Quotation, length),
                    None => (SqlPart::Other, 1),
                }
            }
            _ => (SqlPart::Other, 1),
        };
        (part, at + length)
    }
}

/// The length of a quotation; `None` if it has no end. A doubled quote ends one and begins another, with the same result.
fn quotation(text: &[u8], has_escapes: bool) -> Option<usize> {
    let mut at = 1;
    loop {
        match *text.get(at)? {
            b'\\' if has_escapes => at += 2,
            byte if byte == text[0] => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// The length of PostgreSQL's `$tag$...$tag$`; `None` where there is none.
fn dollar_quotation(before: &[u8], text: &[u8]) -> Option<usize> {
    let is_tag = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | 0x80..);
    let tag = text[1..].iter().take_while(|byte| is_tag(byte)).count();
    let begins = text.get(tag + 1) == Some(&b'$')
        && !text[1].is_ascii_digit()
        && !before.last().is_some_and(|byte| is_tag(byte) || *byte == b'$');
    let (quote, rest) = text.split_at_checked(tag + 2).filter(|_| begins)?;
    let end = rest.windows(quote.len()).position(|part| part == quote);
    Some(end.map_or(text.len(), |end| quote.len() + end + quote.len()))
}

/// True before the quotation of PostgreSQL's `E'...'`.
fn ends_with_e(before: &[u8]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
    match before {
        [.., last, b'e' | b'E'] => !is_name(last),
        _ => matches!(before, [b'e' | b'E']),
    }
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

fn line(text: &[u8]) -> usize {
    text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len())
}
