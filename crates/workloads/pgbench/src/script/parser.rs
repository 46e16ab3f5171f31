//! From tokens to programs: the grammar of expressions.

use super::function::{Arity, Function, find};
use super::program::{Op, Program};
use super::scanner::{LexError, Scanner, Token};
use super::value::ScriptValue;

/// Expressions within expressions, such as parentheses. The stack of a thread bears many more.
const DEEPEST: usize = 200;

/// Why an expression can't be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParseError {
    pub(crate) message: &'static str,
    pub(crate) more: Option<String>,
    /// Bytes of the script up to the end of the token concerned.
    pub(crate) end: usize,
}

/// How strongly an operator binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Power {
    Lowest,
    Or,
    And,
    Not,
    Is,
    Comparison,
    Bits,
    Sum,
    Product,
    Sign,
    Highest,
}

impl Power {
    /// The next stronger one: what the right operand of a left-associative operator needs.
    fn next(self) -> Power {
        match self {
            Power::Lowest => Power::Or,
            Power::Or => Power::And,
            Power::And => Power::Not,
            Power::Not => Power::Is,
            Power::Is => Power::Comparison,
            Power::Comparison => Power::Bits,
            Power::Bits => Power::Sum,
            Power::Sum => Power::Product,
            Power::Product => Power::Sign,
            Power::Sign | Power::Highest => Power::Highest,
        }
    }
}

/// Compiles the expression that fills the rest of the scanner's line. `variable` numbers the
/// variables by their names.
pub(crate) fn parse<'a>(
    scanner: &mut Scanner<'a>,
    variable: &mut dyn FnMut(&'a [u8]) -> u32,
) -> Result<Program, ParseError> {
    let mut parser = Parser { scanner, token: Token::End, ops: Vec::new(), variable, depth: 0 };
    let parsed = parser.whole();
    let ops = parser.ops;
    parsed.map(|()| Program { ops }).map_err(|error| {
        // The original reads the line to its end to show it, and complains of what it meets there.
        match scanner.skip_line() {
            Some((error, end)) => of_token(error, end),
            None => error,
        }
    })
}

fn of_token(error: LexError, end: usize) -> ParseError {
    ParseError { message: error.message, more: Some(error.more), end }
}

struct Parser<'p, 'a> {
    scanner: &'p mut Scanner<'a>,
    token: Token<'a>,
    ops: Vec<Op>,
    variable: &'p mut dyn FnMut(&'a [u8]) -> u32,
    depth: usize,
}

impl<'a> Parser<'_, 'a> {
    fn whole(&mut self) -> Result<(), ParseError> {
        self.advance()?;
        self.expression(Power::Lowest)?;
        self.expect(Token::End)
    }

    fn advance(&mut self) -> Result<(), ParseError> {
        self.token =
            self.scanner.token().map_err(|error| of_token(error, self.scanner.offset()))?;
        Ok(())
    }

    fn fail<T>(&self, message: &'static str, more: Option<String>) -> Result<T, ParseError> {
        Err(ParseError { message, more, end: self.scanner.offset() })
    }

    fn unexpected<T>(&self) -> Result<T, ParseError> {
        self.fail("syntax error", None)
    }

    /// Takes this token. The end of the command is taken without looking further.
    fn expect(&mut self, token: Token<'_>) -> Result<(), ParseError> {
        if self.token != token {
            return self.unexpected();
        }
        if token == Token::End { Ok(()) } else { self.advance() }
    }

    fn takes(&mut self, token: Token<'_>) -> Result<bool, ParseError> {
        let is_it = self.token == token;
        if is_it {
            self.advance()?;
        }
        Ok(is_it)
    }

    fn expression(&mut self, weakest: Power) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.fail("the expression is nested too deeply", None);
        }
        let start = self.ops.len();
        self.operand()?;
        let mut is_comparison = false;
        loop {
            if self.postfix(weakest)? {
                is_comparison = false;
                continue;
            }
            let Some((operator, power)) = self.operator() else { break };
            if power < weakest {
                break;
            }
            if power == Power::Comparison && is_comparison {
                return self.unexpected();
            }
            self.advance()?;
            self.binary(start, operator, power)?;
            is_comparison = power == Power::Comparison;
        }
        self.depth -= 1;
        Ok(())
    }

    /// The binary operator that comes next. AND and OR are told by their words.
    fn operator(&self) -> Option<(&'static str, Power)> {
        let (Token::Sign(text) | Token::Word(text)) = self.token else { return None };
        let power = match text {
            "OR" => Power::Or,
            "AND" => Power::And,
            "<" | ">" | "=" | "<=" | ">=" | "<>" | "!=" => Power::Comparison,
            "|" | "#" | "&" | "<<" | ">>" => Power::Bits,
            "+" | "-" => Power::Sum,
            "*" | "/" | "%" => Power::Product,
            _ => return None,
        };
        Some((text, power))
    }

    /// The right operand and the operation; the left operand's steps begin at `start`.
    fn binary(&mut self, start: usize, operator: &str, power: Power) -> Result<(), ParseError> {
        let middle = self.ops.len();
        if matches!(operator, "AND" | "OR") {
            self.ops.push(Op::Truth);
            self.expression(power.next())?;
            self.ops.push(Op::Truth);
            let jump = (self.ops.len() - middle - 1) as u32;
            self.ops[middle] = if operator == "AND" { Op::And(jump) } else { Op::Or(jump) };
            return Ok(());
        }
        self.expression(power.next())?;
        // `a > b` is evaluated as `b < a`: b's random numbers are drawn first.
        if matches!(operator, ">" | ">=") {
            self.ops[start..].rotate_left(middle - start);
        }
        let function = match operator {
            "+" => Function::Add,
            "-" => Function::Subtract,
            "*" => Function::Multiply,
            "/" => Function::Divide,
            "%" => Function::Modulo,
            "<" | ">" => Function::Less,
            "<=" | ">=" => Function::LessOrEqual,
            "=" => Function::Equal,
            "|" => Function::BitOr,
            "#" => Function::BitXor,
            "&" => Function::BitAnd,
            "<<" => Function::ShiftLeft,
            ">>" => Function::ShiftRight,
            _ => Function::NotEqual,
        };
        self.call(function, 2);
        Ok(())
    }

    fn call(&mut self, function: Function, count: usize) {
        self.ops.push(Op::Call(function, count as u32));
    }

    fn push(&mut self, value: ScriptValue) {
        self.ops.push(Op::Push(value));
    }

    /// IS, ISNULL and NOTNULL after an operand. They may follow each other.
    fn postfix(&mut self, weakest: Power) -> Result<bool, ParseError> {
        let Token::Word(word @ ("IS" | "ISNULL" | "NOTNULL")) = self.token else {
            return Ok(false);
        };
        if Power::Is < weakest {
            return Ok(false);
        }
        self.advance()?;
        let mut is_not = word == "NOTNULL";
        let mut value = ScriptValue::Null;
        if word == "IS" {
            is_not = self.takes(Token::Word("NOT"))?;
            value = match self.token {
                Token::Word("NULL") => ScriptValue::Null,
                Token::Word("TRUE") => ScriptValue::Bool(true),
                Token::Word("FALSE") => ScriptValue::Bool(false),
                _ => return self.unexpected(),
            };
            self.advance()?;
        }
        self.push(value);
        self.call(Function::Is, 2);
        if is_not {
            self.call(Function::Not, 1);
        }
        Ok(true)
    }

    fn operand(&mut self) -> Result<(), ParseError> {
        match self.token {
            Token::Int(value) => self.constant(ScriptValue::Int(value)),
            Token::Double(value) => self.constant(ScriptValue::Double(value)),
            Token::Word("NULL") => self.constant(ScriptValue::Null),
            Token::Word("TRUE") => self.constant(ScriptValue::Bool(true)),
            Token::Word("FALSE") => self.constant(ScriptValue::Bool(false)),
            Token::Variable(name) => {
                let number = (self.variable)(name);
                self.ops.push(Op::Load(number));
                self.advance()
            }
            Token::Name(name) => self.function(name),
            Token::Word("CASE") => self.case(),
            Token::Word("NOT") => {
                self.advance()?;
                self.expression(Power::Is)?;
                self.call(Function::Not, 1);
                Ok(())
            }
            Token::Sign("(") => {
                self.advance()?;
                self.expression(Power::Lowest)?;
                self.expect(Token::Sign(")"))
            }
            Token::Sign("+") => {
                self.advance()?;
                self.expression(Power::Highest)
            }
            Token::Sign("-") => self.negative(),
            Token::Sign("~") => {
                self.advance()?;
                self.expression(Power::Sum)?;
                self.push(ScriptValue::Int(-1));
                self.call(Function::BitXor, 2);
                Ok(())
            }
            _ => self.unexpected(),
        }
    }

    fn constant(&mut self, value: ScriptValue) -> Result<(), ParseError> {
        self.push(value);
        self.advance()
    }

    fn negative(&mut self) -> Result<(), ParseError> {
        self.advance()?;
        if self.token == Token::BeyondInt {
            return self.constant(ScriptValue::Int(i64::MIN));
        }
        self.push(ScriptValue::Int(0));
        self.expression(Power::Highest)?;
        self.call(Function::Subtract, 2);
        Ok(())
    }

    fn function(&mut self, name: &[u8]) -> Result<(), ParseError> {
        let Some((name, function, arity)) = find(name) else {
            let name = String::from_utf8_lossy(name).into_owned();
            return self.fail("unexpected function name", Some(name));
        };
        self.advance()?;
        self.expect(Token::Sign("("))?;
        let mut count = 0;
        // The first argument may be missing even where there is a second one.
        if !matches!(self.token, Token::Sign("," | ")")) {
            self.expression(Power::Lowest)?;
            count += 1;
        }
        while self.takes(Token::Sign(","))? {
            self.expression(Power::Lowest)?;
            count += 1;
        }
        if self.token != Token::Sign(")") {
            return self.unexpected();
        }
        match arity {
            Arity::Some if count == 0 => {
                return self.fail("at least one argument expected", Some(name.to_owned()));
            }
            Arity::Seeded(least) if count == least => {
                let seed = (self.variable)(b"default_seed");
                self.ops.push(Op::Load(seed));
                count += 1;
            }
            Arity::Some => {}
            Arity::Exactly(wanted) if count == wanted => {}
            Arity::Seeded(least) if count == least + 1 => {}
            Arity::Exactly(_) | Arity::Seeded(_) => {
                return self.fail("unexpected number of arguments", Some(name.to_owned()));
            }
        }
        self.call(function, count);
        self.advance()
    }

    fn case(&mut self) -> Result<(), ParseError> {
        self.advance()?;
        if self.token != Token::Word("WHEN") {
            return self.unexpected();
        }
        let mut ends = Vec::new();
        while self.takes(Token::Word("WHEN"))? {
            self.expression(Power::Lowest)?;
            self.expect(Token::Word("THEN"))?;
            let unless = self.ops.len();
            self.ops.push(Op::Unless(0));
            self.expression(Power::Lowest)?;
            ends.push(self.ops.len());
            self.ops.push(Op::Jump(0));
            self.ops[unless] = Op::Unless((self.ops.len() - unless - 1) as u32);
        }
        if self.takes(Token::Word("ELSE"))? {
            self.expression(Power::Lowest)?;
        } else {
            self.push(ScriptValue::Null);
        }
        for end in ends {
            self.ops[end] = Op::Jump((self.ops.len() - end - 1) as u32);
        }
        self.expect(Token::Word("END"))
    }
}
