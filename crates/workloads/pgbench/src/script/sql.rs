//! Where SQL statements end: psql's rules for quotes, comments, parentheses and backslashes.

use super::scanner::{Scanner, continues_name};
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A semicolon, which belongs to the statement.
    Semicolon,
    /// A backslash, which is passed: a meta command follows.
    Backslash,
    Text,
}

/// A piece of a script up to a semicolon or backslash.
#[derive(Clone, Debug, Default)]
pub(crate) struct Piece {
    pub(crate) text: Vec<u8>,
    /// Literals, quoted names and comments within `text`.
    pub(crate) quoted: Vec<Range<usize>>,
    /// True when it has a forced semicolon.
    pub(crate) is_chain: bool,
}

/// What reaches from one statement to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct SqlLexer {
    parentheses: usize,
    /// BEGINs and CASEs open within the body of a function.
    bodies: usize,
    identifiers: usize,
    /// First letters of the first four words, where these can begin CREATE FUNCTION.
    letters: [u8; 4],
}

impl SqlLexer {
    /// Reads up to the end of a statement.
    pub(crate) fn piece(&mut self, scanner: &mut Scanner<'_>) -> (Piece, End) {
        let mut piece = Piece::default();
        loop {
            let rest = scanner.rest();
            let Some(&first) = rest.first() else { return (piece, End::Text) };
            match first {
                b'\\' => match rest.get(1) {
                    Some(&forced @ (b';' | b':')) => {
                        piece.text.push(forced);
                        scanner.advance(2);
                        if forced == b';' {
                            self.identifiers = 0;
                            piece.is_chain = true;
                        }
                    }
                    _ => {
                        scanner.advance(1);
                        return (piece, End::Backslash);
                    }
                },
                b';' => {
                    piece.text.push(first);
                    scanner.advance(1);
                    if self.parentheses == 0 && self.bodies == 0 {
                        self.identifiers = 0;
                        return (piece, End::Semicolon);
                    }
                }
                _ => self.token(&mut piece, scanner, rest, first),
            }
        }
    }

    fn token(&mut self, piece: &mut Piece, scanner: &mut Scanner<'_>, rest: &[u8], first: u8) {
        let (length, is_quoted) = match first {
            b' ' | b'\t' | b'\n' | b'\r' | b'\x0c' => {
                if piece.text.is_empty() {
                    return scanner.advance(1);
                }
                (1, false)
            }
            b'-' if rest.starts_with(b"--") => {
                let length = rest.iter().take_while(|&&byte| !matches!(byte, b'\n' | b'\r'));
                let length = length.count();
                if piece.text.is_empty() {
                    return scanner.advance(length);
                }
                (length, true)
            }
            b'/' if rest.starts_with(b"/*") => (block_comment(rest), true),
            b'\'' => (literal(rest, 0, false), true),
            b'"' => (quoted_name(rest), true),
            b':' if let Some(length) = variable_test(rest) => {
                piece.text.extend_from_slice(b"FALSE");
                return scanner.advance(length);
            }
            b'$' => match dollar_quoted(rest) {
                Some(length) => (length, true),
                None => (1, false),
            },
            b'e' | b'E' if rest.get(1) == Some(&b'\'') => (literal(rest, 1, true), true),
            b'(' => {
                self.parentheses += 1;
                (1, false)
            }
            b')' => {
                self.parentheses = self.parentheses.saturating_sub(1);
                (1, false)
            }
            _ if starts_identifier(first) => {
                let is_part =
                    |byte: u8| starts_identifier(byte) || byte.is_ascii_digit() || byte == b'$';
                let length = rest.iter().take_while(|&&byte| is_part(byte)).count();
                self.identifier(&rest[..length]);
                (length, false)
            }
            _ => (1, false),
        };
        let start = piece.text.len();
        piece.text.extend_from_slice(&rest[..length]);
        if is_quoted {
            piece.quoted.push(start..start + length);
        }
        scanner.advance(length);
    }

    /// Semicolons between BEGIN and END of a function's body don't end the statement that creates
    /// it.
    fn identifier(&mut self, word: &[u8]) {
        let is = |other: &str| word.eq_ignore_ascii_case(other.as_bytes());
        if self.identifiers == 0 {
            self.letters = [0; 4];
        }
        if ["create", "function", "procedure", "or", "replace"].into_iter().any(is)
            && let Some(letter) = self.letters.get_mut(self.identifiers)
        {
            *letter = word[0].to_ascii_lowercase();
        }
        self.identifiers += 1;
        let creates =
            matches!(&self.letters, [b'c', b'f' | b'p', ..] | [b'c', b'o', b'r', b'f' | b'p']);
        if !creates || self.parentheses > 0 {
            return;
        }
        if is("begin") || (is("case") && self.bodies > 0) {
            self.bodies += 1;
        } else if is("end") {
            self.bodies = self.bodies.saturating_sub(1);
        }
    }
}

fn starts_identifier(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// The length of psql's `:{?name}` at the begin of `rest`. No variable is known when a script is read, so that pgbench
/// (all versions) puts `FALSE` in its place.
fn variable_test(rest: &[u8]) -> Option<usize> {
    const OPEN: &[u8] = b":{?";
    let name = rest.strip_prefix(OPEN)?;
    let length = name.iter().take_while(|&&byte| continues_name(byte)).count();
    (length > 0 && name.get(length) == Some(&b'}')).then_some(OPEN.len() + length + 1)
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// A string whose quote is at `open`, with its continuations on further lines.
fn literal(rest: &[u8], open: usize, has_escapes: bool) -> usize {
    let mut at = open + 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' if has_escapes => at += 2,
            b'\'' => {
                at += 1;
                if rest.get(at) == Some(&b'\'') {
                    at += 1;
                } else if let Some(more) = continuation(&rest[at..]) {
                    at += more;
                } else {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

/// Blanks and comments with a line end among them, then a quote: the string goes on.
fn continuation(rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    let mut has_line_end = false;
    loop {
        match rest.get(at)? {
            b'\'' => return has_line_end.then_some(at + 1),
            b' ' | b'\t' | b'\x0c' => at += 1,
            b'\n' | b'\r' => {
                has_line_end = true;
                at += 1;
            }
            b'-' if rest[at..].starts_with(b"--") => {
                at += rest[at..].iter().take_while(|&&byte| byte != b'\n' && byte != b'\r').count();
            }
            _ => return None,
        }
    }
}

fn quoted_name(rest: &[u8]) -> usize {
    let end = rest[1..].iter().position(|&byte| byte == b'"');
    end.map_or(rest.len(), |end| end + 2)
}

/// `$$...$$` or `$tag$...$tag$`; to the end of the text when it isn't closed.
fn dollar_quoted(rest: &[u8]) -> Option<usize> {
    let is_part = |byte: u8| starts_identifier(byte) || byte.is_ascii_digit();
    let tag = rest[1..].iter().take_while(|&&byte| is_part(byte)).count();
    if rest.get(tag + 1) != Some(&b'$') || (tag > 0 && rest[1].is_ascii_digit()) {
        return None;
    }
    let mark = &rest[..tag + 2];
    let body = &rest[mark.len()..];
    let end = body.windows(mark.len()).position(|window| window == mark);
    Some(end.map_or(rest.len(), |end| end + 2 * mark.len()))
}

/// Where leading blanks and line comments end; `None` when there is nothing else.
pub(crate) fn skip_comments(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        match rest.first()? {
            byte if byte.is_ascii_whitespace() || *byte == b'\x0b' => at += 1,
            b'-' if rest.starts_with(b"--") => {
                at += rest.iter().position(|&byte| byte == b'\n')? + 1;
            }
            _ => return Some(at),
        }
    }
}
