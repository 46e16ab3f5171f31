//! Splits SQL into tokens without copying. Comments vanish, `/*! ... */` too: no answer depends on an engine clause.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `?` parameters, `"text"`, backslash escapes, `#` comments.
    Mysql,
    /// `$n` parameters, `"identifier"`, dollar quotes, standard strings.
    Postgres,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    pub(crate) fn of(self, sql: &[u8]) -> &[u8] {
        &sql[self.start as usize..self.end as usize]
    }

    pub(crate) fn is_empty(self) -> bool {
        self.start == self.end
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// An identifier (without its quotes), a keyword or a `@variable`.
    Word,
    Number,
    /// A string literal; the span lies inside the quotes.
    Text,
    /// A parameter, counted from 0.
    Param(u16),
    Symbol(u8),
    End,
}

/// The error says why a text is not a statement.
pub(crate) type Parsed<T> = Result<T, &'static str>;

/// Statements of more parameters are refused; both protocols count them in 16 bits.
const PARAMS_MAX: u32 = 65_535;

#[derive(Clone)]
pub(crate) struct Lexer<'a> {
    sql: &'a [u8],
    dialect: Dialect,
    pos: usize,
    pub(crate) span: Span,
    /// Parameters seen: `?` counted, or the highest `$n`.
    pub(crate) params: u16,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(sql: &'a [u8], start: usize, dialect: Dialect) -> Self {
        Lexer { sql, dialect, pos: start, span: Span::default(), params: 0 }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The offset behind the last token.
    pub(crate) fn position(&self) -> usize {
        self.pos
    }

    pub(crate) fn text(&self) -> &'a [u8] {
        self.span.of(self.sql)
    }

    fn byte(&self, at: usize) -> u8 {
        self.sql.get(at).copied().unwrap_or(0)
    }

    fn take(&mut self, start: usize, end: usize, next: usize) {
        self.span = Span { start: start as u32, end: end as u32 };
        self.pos = next;
    }

    pub(crate) fn next(&mut self) -> Parsed<Token> {
        self.skip_blanks()?;
        let start = self.pos;
        let mysql = self.dialect == Dialect::Mysql;
        let Some(&byte) = self.sql.get(start) else {
            self.take(start, start, start);
            return Ok(Token::End);
        };
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'@' | 0x80.. => self.word(byte),
            b'0'..=b'9' => Ok(self.number()),
            b'.' if self.byte(start + 1).is_ascii_digit() => Ok(self.number()),
            b'\'' => self.quoted(byte, mysql).map(|()| Token::Text),
            b'"' if mysql => self.quoted(byte, true).map(|()| Token::Text),
            b'"' => self.quoted(byte, false).map(|()| Token::Word),
            b'`' if mysql => self.quoted(byte, false).map(|()| Token::Word),
            b'?' if mysql => {
                self.take(start, start + 1, start + 1);
                self.param(u32::from(self.params) + 1)
            }
            b'$' if !mysql => self.dollar(),
            _ => {
                self.take(start, start + 1, start + 1);
                Ok(Token::Symbol(byte))
            }
        }
    }

    fn param(&mut self, number: u32) -> Parsed<Token> {
        if number == 0 || number > PARAMS_MAX {
            return Err("a parameter number must lie between 1 and 65535");
        }
        self.params = self.params.max(number as u16);
        Ok(Token::Param((number - 1) as u16))
    }

    fn word(&mut self, first: u8) -> Parsed<Token> {
        let start = self.pos;
        let variable = first == b'@';
        let mut end = start + 1;
        while matches!(self.byte(end), b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' | 0x80..)
            || variable && matches!(self.byte(end), b'@' | b'.')
        {
            end += 1;
        }
        self.take(start, end, end);
        let escape = end == start + 1 && first.eq_ignore_ascii_case(&b'e');
        if escape && self.byte(end) == b'\'' && self.dialect == Dialect::Postgres {
            return self.quoted(b'\'', true).map(|()| Token::Text);
        }
        Ok(Token::Word)
    }

    fn number(&mut self) -> Token {
        let start = self.pos;
        let mut end = start;
        while matches!(self.byte(end), b'0'..=b'9' | b'.' | b'a'..=b'f' | b'A'..=b'F' | b'x' | b'X')
            || matches!(self.byte(end), b'+' | b'-')
                && matches!(self.byte(end - 1), b'e' | b'E')
                && end > start
        {
            end += 1;
        }
        self.take(start, end, end);
        Token::Number
    }

    fn quoted(&mut self, quote: u8, backslash: bool) -> Parsed<()> {
        let start = self.pos + 1;
        let mut at = start;
        loop {
            match self.sql.get(at) {
                None => return Err("a quote is not closed"),
                Some(b'\\') if backslash => at += 2,
                Some(&byte) if byte == quote && self.byte(at + 1) == quote => at += 2,
                Some(&byte) if byte == quote => break,
                Some(_) => at += 1,
            }
        }
        self.take(start, at, at + 1);
        Ok(())
    }

    /// `$n`, or a dollar-quoted text.
    fn dollar(&mut self) -> Parsed<Token> {
        let start = self.pos;
        let mut end = start + 1;
        if self.byte(end).is_ascii_digit() {
            let mut number = 0u32;
            while self.byte(end).is_ascii_digit() {
                number = number.saturating_mul(10).saturating_add(u32::from(self.byte(end) - b'0'));
                end += 1;
            }
            self.take(start, end, end);
            return self.param(number);
        }
        while matches!(self.byte(end), b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_') {
            end += 1;
        }
        if self.byte(end) != b'$' {
            return Err("a dollar sign begins neither a parameter nor a quote");
        }
        let tag = &self.sql[start..=end];
        let body = &self.sql[end + 1..];
        let Some(length) = body.windows(tag.len()).position(|window| window == tag) else {
            return Err("a dollar quote is not closed");
        };
        self.take(end + 1, end + 1 + length, end + 1 + length + tag.len());
        Ok(Token::Text)
    }

    fn skip_blanks(&mut self) -> Parsed<()> {
        loop {
            match self.byte(self.pos) {
                b' ' | b'\t' | b'\r' | b'\n' => self.pos += 1,
                b'#' if self.dialect == Dialect::Mysql => self.skip_line(),
                b'-' if self.byte(self.pos + 1) == b'-' => self.skip_line(),
                b'/' if self.byte(self.pos + 1) == b'*' => {
                    let body = &self.sql[self.pos + 2..];
                    let Some(length) = body.windows(2).position(|window| window == b"*/") else {
                        return Err("a comment is not closed");
                    };
                    self.pos += length + 4;
                }
                _ => return Ok(()),
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.sql[self.pos..];
        self.pos += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
    }
}
