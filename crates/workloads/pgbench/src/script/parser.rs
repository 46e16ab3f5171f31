//! The text of a script: how meta commands are cut from it, words and tokens, and the grammar of expressions.

use dyno_core::{SqlPart, SqlRules};

use super::program::{Function, Op, Program, ScriptValue, find, parse_double};

/// Expressions within expressions, such as parentheses. The stack of a thread bears many more.
const DEEPEST: usize = 200;

/// Reason why an expression can't be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParseError {
    pub(crate) message: &'static str,
    pub(crate) more: Option<String>,
    /// Bytes of the script up to the end of the token concerned.
    pub(crate) end: usize,
}

/// Precedence of an operator. The right operand of a left-associative one needs the next stronger.
type Power = u8;
const LOWEST: Power = 0;
const OR: Power = 1;
const AND: Power = 2;
const IS: Power = 4;
const COMPARISON: Power = 5;
const BITS: Power = 6;
const SUM: Power = 7;
const PRODUCT: Power = 8;
const HIGHEST: Power = 10;

/// The binary operators; AND and OR are not functions, because they may leave out their right operand.
const OPERATORS: [(&str, Power, Option<Function>); 19] = [
    ("OR", OR, None),
    ("AND", AND, None),
    ("<", COMPARISON, Some(Function::Less)),
    (">", COMPARISON, Some(Function::Less)),
    ("=", COMPARISON, Some(Function::Equal)),
    ("<=", COMPARISON, Some(Function::LessOrEqual)),
    (">=", COMPARISON, Some(Function::LessOrEqual)),
    ("<>", COMPARISON, Some(Function::NotEqual)),
    ("!=", COMPARISON, Some(Function::NotEqual)),
    ("|", BITS, Some(Function::BitOr)),
    ("#", BITS, Some(Function::BitXor)),
    ("&", BITS, Some(Function::BitAnd)),
    ("<<", BITS, Some(Function::ShiftLeft)),
    (">>", BITS, Some(Function::ShiftRight)),
    ("+", SUM, Some(Function::Add)),
    ("-", SUM, Some(Function::Subtract)),
    ("*", PRODUCT, Some(Function::Multiply)),
    ("/", PRODUCT, Some(Function::Divide)),
    ("%", PRODUCT, Some(Function::Modulo)),
];

/// Compiles the expression that fills the rest of the scanner's line. `variable` numbers the
/// variables by their names.
pub(crate) fn parse<'a>(
    scanner: &mut Scanner<'a>,
    variable: &mut dyn FnMut(&'a [u8]) -> u32,
) -> Result<Program, ParseError> {
    let mut parser = Parser { scanner, token: Token::End, ops: Vec::new(), variable, depth: 0 };
    let parsed = parser.parse_whole();
    let ops = parser.ops;
    // The original reads the line to its end to show it, and complains of what it meets there.
    parsed.map(|()| Program { ops }).map_err(|error| scanner.skip_line().unwrap_or(error))
}

struct Parser<'p, 'a> {
    scanner: &'p mut Scanner<'a>,
    token: Token<'a>,
    ops: Vec<Op>,
    variable: &'p mut dyn FnMut(&'a [u8]) -> u32,
    depth: usize,
}

impl<'a> Parser<'_, 'a> {
    fn parse_whole(&mut self) -> Result<(), ParseError> {
        self.advance()?;
        self.parse_expression(LOWEST)?;
        self.expect(Token::End)
    }

    /// Reads the next token.
    fn advance(&mut self) -> Result<(), ParseError> {
        self.token = self.scanner.token()?;
        Ok(())
    }

    /// Fails at the end of the current token.
    fn fail<T>(&self, message: &'static str, more: Option<String>) -> Result<T, ParseError> {
        Err(ParseError { message, more, end: self.scanner.offset() })
    }

    fn syntax_error<T>(&self) -> Result<T, ParseError> {
        self.fail("syntax error", None)
    }

    /// Takes this token. The end of the command is taken without looking further.
    fn expect(&mut self, token: Token<'_>) -> Result<(), ParseError> {
        if self.token != token {
            return self.syntax_error();
        }
        if token == Token::End { Ok(()) } else { self.advance() }
    }

    /// Consumes the token if it is the current one; returns whether it was.
    fn accept(&mut self, token: Token<'_>) -> Result<bool, ParseError> {
        let is_accepted = self.token == token;
        if is_accepted {
            self.advance()?;
        }
        Ok(is_accepted)
    }

    fn parse_expression(&mut self, weakest: Power) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.fail("the expression is nested too deeply", None);
        }
        let start = self.ops.len();
        self.parse_operand()?;
        let mut is_comparison = false;
        loop {
            if self.postfix(weakest)? {
                is_comparison = false;
                continue;
            }
            let (Token::Sign(text) | Token::Word(text)) = self.token else { break };
            let operator = OPERATORS.iter().find(|(known, ..)| *known == text);
            let Some(&(_, power, function)) = operator.filter(|(_, power, _)| *power >= weakest)
            else {
                break;
            };
            if power == COMPARISON && is_comparison {
                return self.syntax_error();
            }
            self.advance()?;
            self.binary(start, text, power, function)?;
            is_comparison = power == COMPARISON;
        }
        self.depth -= 1;
        Ok(())
    }

    /// The right operand and the operation; the left operand's steps begin at `start`.
    fn binary(
        &mut self,
        start: usize,
        operator: &str,
        power: Power,
        function: Option<Function>,
    ) -> Result<(), ParseError> {
        let middle = self.ops.len();
        let Some(function) = function else {
            self.ops.push(Op::Truth);
            self.parse_expression(power + 1)?;
            self.ops.push(Op::Truth);
            let jump = (self.ops.len() - middle - 1) as u32;
            self.ops[middle] = if power == AND { Op::And(jump) } else { Op::Or(jump) };
            return Ok(());
        };
        self.parse_expression(power + 1)?;
        // `a > b` is evaluated as `b < a`: b's random numbers are drawn first.
        if matches!(operator, ">" | ">=") {
            self.ops[start..].rotate_left(middle - start);
        }
        self.push_call(function, 2);
        Ok(())
    }

    fn push_call(&mut self, function: Function, count: usize) {
        self.ops.push(Op::Call(function, count as u32));
    }

    /// Adds an operation that pushes a constant.
    fn push(&mut self, value: ScriptValue) {
        self.ops.push(Op::Push(value));
    }

    /// IS, ISNULL and NOTNULL after an operand. They may follow each other.
    fn postfix(&mut self, weakest: Power) -> Result<bool, ParseError> {
        let Token::Word(word @ ("IS" | "ISNULL" | "NOTNULL")) = self.token else {
            return Ok(false);
        };
        if IS < weakest {
            return Ok(false);
        }
        self.advance()?;
        let mut is_not = word == "NOTNULL";
        let mut value = ScriptValue::Null;
        if word == "IS" {
            is_not = self.accept(Token::Word("NOT"))?;
            value = match self.constant_value() {
                Some(value @ (ScriptValue::Null | ScriptValue::Bool(_))) => value,
                _ => return self.syntax_error(),
            };
            self.advance()?;
        }
        self.push(value);
        self.push_call(Function::Is, 2);
        if is_not {
            self.push_call(Function::Not, 1);
        }
        Ok(true)
    }

    fn parse_operand(&mut self) -> Result<(), ParseError> {
        if let Some(value) = self.constant_value() {
            self.push(value);
            return self.advance();
        }
        match self.token {
            Token::Variable(name) => {
                let number = (self.variable)(name);
                self.ops.push(Op::Load(number));
                self.advance()
            }
            Token::Name(name) => self.parse_function(name),
            Token::Word("CASE") => self.parse_case(),
            Token::Word("NOT") => {
                self.advance()?;
                self.parse_expression(IS)?;
                self.push_call(Function::Not, 1);
                Ok(())
            }
            Token::Sign("(") => {
                self.advance()?;
                self.parse_expression(LOWEST)?;
                self.expect(Token::Sign(")"))
            }
            Token::Sign("+") => {
                self.advance()?;
                self.parse_expression(HIGHEST)
            }
            Token::Sign("-") => self.parse_negation(),
            Token::Sign("~") => {
                self.advance()?;
                self.parse_expression(SUM)?;
                self.push(ScriptValue::Int(-1));
                self.push_call(Function::BitXor, 2);
                Ok(())
            }
            _ => self.syntax_error(),
        }
    }

    fn constant_value(&self) -> Option<ScriptValue> {
        Some(match self.token {
            Token::Int(value) => ScriptValue::Int(value),
            Token::Double(value) => ScriptValue::Double(value),
            Token::Word("NULL") => ScriptValue::Null,
            Token::Word("TRUE") => ScriptValue::Bool(true),
            Token::Word("FALSE") => ScriptValue::Bool(false),
            _ => return None,
        })
    }

    fn parse_negation(&mut self) -> Result<(), ParseError> {
        self.advance()?;
        if self.token == Token::BeyondInt {
            self.push(ScriptValue::Int(i64::MIN));
            return self.advance();
        }
        self.push(ScriptValue::Int(0));
        self.parse_expression(HIGHEST)?;
        self.push_call(Function::Subtract, 2);
        Ok(())
    }

    fn parse_function(&mut self, name: &[u8]) -> Result<(), ParseError> {
        let Some((name, function, least, most)) = find(name) else {
            let name = String::from_utf8_lossy(name).into_owned();
            return self.fail("unexpected function name", Some(name));
        };
        self.advance()?;
        self.expect(Token::Sign("("))?;
        let mut count = 0;
        // The first argument may be missing even if there is a second one.
        if !matches!(self.token, Token::Sign("," | ")")) {
            self.parse_expression(LOWEST)?;
            count += 1;
        }
        while self.accept(Token::Sign(","))? {
            self.parse_expression(LOWEST)?;
            count += 1;
        }
        if self.token != Token::Sign(")") {
            return self.syntax_error();
        }
        if count == 0 && most == usize::MAX {
            return self.fail("at least one argument expected", Some(name.to_owned()));
        }
        if count == least && most == least + 1 {
            let seed = (self.variable)(b"default_seed");
            self.ops.push(Op::Load(seed));
            count += 1;
        }
        if count > most || count < most && most != usize::MAX {
            return self.fail("unexpected number of arguments", Some(name.to_owned()));
        }
        self.push_call(function, count);
        self.advance()
    }

    fn parse_case(&mut self) -> Result<(), ParseError> {
        self.advance()?;
        if self.token != Token::Word("WHEN") {
            return self.syntax_error();
        }
        let mut ends = Vec::new();
        while self.accept(Token::Word("WHEN"))? {
            self.parse_expression(LOWEST)?;
            self.expect(Token::Word("THEN"))?;
            let unless = self.ops.len();
            self.ops.push(Op::Unless(0));
            self.parse_expression(LOWEST)?;
            ends.push(self.ops.len());
            self.ops.push(Op::Jump(0));
            self.ops[unless] = Op::Unless((self.ops.len() - unless - 1) as u32);
        }
        if self.accept(Token::Word("ELSE"))? {
            self.parse_expression(LOWEST)?;
        } else {
            self.push(ScriptValue::Null);
        }
        for end in ends {
            self.ops[end] = Op::Jump((self.ops.len() - end - 1) as u32);
        }
        self.expect(Token::Word("END"))
    }
}

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

/// Returns true for what `\set` may be given as the name of a variable.
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

    /// The next byte; `None` at the end.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// The bytes that have not been read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    /// The part of SQL that begins here, and its length.
    pub(crate) fn sql_part(&self, rules: SqlRules) -> (SqlPart, usize) {
        let (part, end) = rules.part_at(self.text, self.at);
        (part, end - self.at)
    }

    /// Skips this number of bytes, at most to the end.
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

    /// The next word of the line and its beginning.
    pub(crate) fn word(&mut self) -> Option<(&'a [u8], usize)> {
        if self.ended_line || self.skip_blanks() {
            return None;
        }
        let start = self.at;
        let word = self.rest().iter().take_while(|&&byte| !is_space(byte) && byte != b'\n');
        self.at += word.count();
        // A backslash that continues the line doesn't belong to the word before it.
        let last = self.at - 1;
        if let Some(more) = self.continuation(last) {
            self.at = last + more;
            return Some((&self.text[start..last], start));
        }
        Some((&self.text[start..self.at], start))
    }

    /// The next token of the line. [`Token::End`] is the last one of a line.
    pub(crate) fn token(&mut self) -> Result<Token<'a>, ParseError> {
        if self.ended_line || self.skip_blanks() {
            return Ok(Token::End);
        }
        let rest = self.rest();
        let first = rest[0];
        if first.is_ascii_digit() || (first == b'.' && rest.get(1).is_some_and(u8::is_ascii_digit))
        {
            return self.scan_number();
        }
        if starts_name(first) {
            let name = &rest[..count_name_bytes(rest)];
            self.at += name.len();
            let word = WORDS.iter().find(|word| name.eq_ignore_ascii_case(word.as_bytes()));
            return Ok(word.map_or(Token::Name(name), |word| Token::Word(word)));
        }
        let length = if first == b':' { count_name_bytes(&rest[1..]) } else { 0 };
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
        let letter = Some(char::from(first).to_string());
        Err(ParseError { message: "unexpected character", more: letter, end: self.at })
    }

    fn scan_number(&mut self) -> Result<Token<'a>, ParseError> {
        let rest = self.rest();
        let count_digits =
            |from: usize| rest[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let integer_digits = count_digits(0);
        let mut length = integer_digits;
        if rest.get(length) == Some(&b'.') {
            length += 1 + count_digits(length + 1);
        }
        if matches!(rest.get(length), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(rest.get(length + 1), Some(b'+' | b'-')));
            let exponent =
                rest.get(length + 1 + sign).map_or(0, |_| count_digits(length + 1 + sign));
            if exponent > 0 {
                length += 1 + sign + exponent;
            }
        }
        let text = std::str::from_utf8(&rest[..length]).unwrap_or_default();
        self.at += length;
        let overflow_error =
            |message| ParseError { message, more: Some(text.to_owned()), end: self.at };
        if length > integer_digits {
            let value =
                parse_double(text).ok_or_else(|| overflow_error("double constant overflow"))?;
            return Ok(Token::Double(value));
        }
        if text == "9223372036854775808" {
            return Ok(Token::BeyondInt);
        }
        text.parse().map(Token::Int).map_err(|_| overflow_error("bigint constant overflow"))
    }

    /// Reads to the end of the command; the last thing that is not a token.
    pub(crate) fn skip_line(&mut self) -> Option<ParseError> {
        let mut last = None;
        loop {
            match self.token() {
                Ok(Token::End) => return last,
                Ok(_) => {}
                Err(error) => last = Some(error),
            }
        }
    }
}

/// Returns the length of the name that begins here.
fn count_name_bytes(text: &[u8]) -> usize {
    text.iter().take_while(|&&byte| continues_name(byte)).count()
}
