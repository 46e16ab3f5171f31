//! The text of a script and how meta commands are cut from it: words and expression tokens.

use super::value::parse_double;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Token<'a> {
    /// One of the operators and punctuation marks, such as `<=` or `(`.
    Sign(&'static str),
    /// A keyword in capitals.
    Word(&'static str),
    Int(i64),
    /// 9223372036854775808, which is a number only after a minus.
    BeyondInt,
    Double(f64),
    /// The name of a variable, without its colon.
    Variable(&'a [u8]),
    Name(&'a [u8]),
    /// The end of the line or of the text.
    End,
}

/// What no token begins with, or a number that is too large: the message and the characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LexError {
    pub(crate) message: &'static str,
    pub(crate) more: String,
}

/// Longest first: the first that fits is the token.
const SIGNS: [&str; 20] = [
    "<>", "<=", ">=", "!=", "<<", ">>", "<", ">", "=", "+", "-", "*", "/", "%", "|", "&", "#", "~",
    "(", ")",
];

const WORDS: [&str; 14] = [
    "AND", "OR", "NOT", "IS", "ISNULL", "NOTNULL", "CASE", "WHEN", "THEN", "ELSE", "END", "NULL",
    "TRUE", "FALSE",
];

#[derive(Clone, Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    ended_line: bool,
    lines: (usize, u32),
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c')
}

pub(crate) fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

pub(crate) fn continues_name(byte: u8) -> bool {
    starts_name(byte) || byte.is_ascii_digit()
}

/// True for what `\set` may be given as the name of a variable.
pub(crate) fn is_variable_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.first().is_some_and(|&byte| starts_name(byte))
        && bytes.iter().all(|&byte| continues_name(byte))
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Scanner { text, at: 0, ended_line: false, lines: (0, 1) }
    }

    /// Bytes before this place.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.text.len());
    }

    /// Number of the line, from 1, on which this place is.
    pub(crate) fn line_number(&mut self) -> u32 {
        let (from, line) = self.lines;
        let newlines = self.text[from..self.at].iter().filter(|&&byte| byte == b'\n').count();
        self.lines = (self.at, line + newlines as u32);
        self.lines.1
    }

    /// The text from `start` to this place, without line ends at its end.
    pub(crate) fn line_from(&self, start: usize) -> String {
        let text = String::from_utf8_lossy(&self.text[start..self.at]);
        text.trim_end_matches(['\n', '\r']).to_owned()
    }

    /// Length of a backslash with the end of its line, at `at`.
    fn continuation(&self, at: usize) -> Option<usize> {
        match self.text.get(at..)? {
            [b'\\', b'\n', ..] => Some(2),
            [b'\\', b'\r', b'\n', ..] => Some(3),
            _ => None,
        }
    }

    /// Skips blanks and continuations. True at the end of the line, which is passed, or of the text.
    fn skip_blanks(&mut self) -> bool {
        loop {
            match self.peek() {
                None => return true,
                Some(b'\n') => {
                    self.at += 1;
                    self.ended_line = true;
                    return true;
                }
                Some(byte) if is_space(byte) => self.at += 1,
                Some(_) => match self.continuation(self.at) {
                    Some(length) => self.at += length,
                    None => return false,
                },
            }
        }
    }

    /// A command begins: its line has not ended.
    pub(crate) fn begin_command(&mut self) {
        self.ended_line = false;
    }

    /// The next word of the line and where it begins.
    pub(crate) fn word(&mut self) -> Option<(&'a [u8], usize)> {
        if self.ended_line || self.skip_blanks() {
            return None;
        }
        let start = self.at;
        let is_part = |byte: &u8| !is_space(*byte) && *byte != b'\n';
        let length = self.rest().iter().take_while(|byte| is_part(byte)).count();
        self.at += length;
        // A backslash that continues the line is no part of the word before it.
        let last = self.at - 1;
        if let Some(more) = self.continuation(last) {
            self.at = last + more;
            return Some((&self.text[start..last], start));
        }
        Some((&self.text[start..self.at], start))
    }

    /// The next token of the line. After [`Token::End`] of a line there is no other.
    pub(crate) fn token(&mut self) -> Result<Token<'a>, LexError> {
        if self.ended_line || self.skip_blanks() {
            return Ok(Token::End);
        }
        let rest = self.rest();
        let count = |from: usize, is_part: fn(u8) -> bool| {
            rest[from..].iter().take_while(|&&byte| is_part(byte)).count()
        };
        let first = rest[0];
        if first.is_ascii_digit() || (first == b'.' && rest.get(1).is_some_and(u8::is_ascii_digit))
        {
            return self.number();
        }
        if starts_name(first) {
            let name = &rest[..count(0, continues_name)];
            self.at += name.len();
            let word = WORDS.iter().find(|word| name.eq_ignore_ascii_case(word.as_bytes()));
            return Ok(word.map_or(Token::Name(name), |word| Token::Word(word)));
        }
        let length = if first == b':' { count(1, continues_name) } else { 0 };
        if length > 0 {
            self.at += 1 + length;
            return Ok(Token::Variable(&rest[1..=length]));
        }
        if first == b',' {
            self.at += 1;
            return Ok(Token::Sign(","));
        }
        if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(sign.as_bytes())) {
            self.at += sign.len();
            return Ok(Token::Sign(sign));
        }
        self.at += 1;
        let more = char::from(first).to_string();
        Err(LexError { message: "unexpected character", more })
    }

    fn number(&mut self) -> Result<Token<'a>, LexError> {
        let rest = self.rest();
        let digits =
            |from: usize| rest[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let whole = digits(0);
        let mut length = whole;
        if rest.get(length) == Some(&b'.') {
            length += 1 + digits(length + 1);
        }
        if matches!(rest.get(length), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(rest.get(length + 1), Some(b'+' | b'-')));
            let exponent = rest.get(length + 1 + sign).map_or(0, |_| digits(length + 1 + sign));
            if exponent > 0 {
                length += 1 + sign + exponent;
            }
        }
        let text = std::str::from_utf8(&rest[..length]).unwrap_or_default();
        self.at += length;
        let overflow = |message| LexError { message, more: text.to_owned() };
        if length > whole {
            let value = parse_double(text).ok_or_else(|| overflow("double constant overflow"))?;
            return Ok(Token::Double(value));
        }
        if text == "9223372036854775808" {
            return Ok(Token::BeyondInt);
        }
        text.parse().map(Token::Int).map_err(|_| overflow("bigint constant overflow"))
    }

    /// Reads to the end of the command; the last thing that is no token, and where it ends.
    pub(crate) fn skip_line(&mut self) -> Option<(LexError, usize)> {
        let mut last = None;
        loop {
            match self.token() {
                Ok(Token::End) => return last,
                Ok(_) => {}
                Err(error) => last = Some((error, self.at)),
            }
        }
    }
}
