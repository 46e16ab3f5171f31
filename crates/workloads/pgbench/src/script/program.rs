//! Expressions in a compact form and their evaluation: values, their text, functions and operators.

use crate::random::{self, PgRng};
use dyno_core::push_int;
use dyno_wire::text_rows::push_double_15g;

const MOST_ARGUMENTS: usize = 16;

/// One step on a stack of values. Jumps count from the step after them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    Push(ScriptValue),
    /// Pushes the value of a variable.
    Load(u32),
    /// Pushes a random number between both, drawn as the function `random` does.
    RandomBetween(i64, i64),
    /// Replaces as many values by what the function makes of them.
    Call(Function, u32),
    /// Jumps when the left operand of AND, on top, decides; else removes it.
    And(u32),
    /// Jumps when the left operand of OR, on top, decides; else removes it.
    Or(u32),
    /// Checks that the right operand of AND or OR, on top, is a truth value or NULL.
    Truth,
    /// Removes a condition and jumps unless it is true.
    Unless(u32),
    Jump(u32),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Program {
    pub(crate) ops: Vec<Op>,
}

/// A client's variables and random numbers for an evaluation.
pub(crate) trait Scope {
    /// Pushes the value of a variable, or says why it has none; the empty text when that is not
    /// explained.
    fn load(&mut self, variable: u32, stack: &mut Vec<ScriptValue>) -> Result<(), String>;
    /// The client's random stream.
    fn rng(&mut self) -> &mut PgRng;
    /// Prints the argument of `debug()`.
    fn debug(&mut self, value: ScriptValue);
}

impl Program {
    /// Computes beforehand what does not depend on the client; `constant` gives variables that nothing assigns to.
    pub(crate) fn fold(&mut self, constant: impl Fn(u32) -> Option<i64>) {
        // Jumps count steps.
        if self
            .ops
            .iter()
            .any(|op| matches!(op, Op::And(_) | Op::Or(_) | Op::Unless(_) | Op::Jump(_)))
        {
            return;
        }
        let mut folded = Vec::with_capacity(self.ops.len());
        for op in self.ops.drain(..) {
            let value = if let Op::Load(number) = op { constant(number) } else { None };
            folded.push(value.map_or(op, |value| Op::Push(ScriptValue::Int(value))));
            let [
                ..,
                Op::Push(ScriptValue::Int(left)),
                Op::Push(ScriptValue::Int(right)),
                Op::Call(function, 2),
            ] = folded[..]
            else {
                continue;
            };
            let folded_op = match function {
                Function::Random => {
                    random_span(left, right).map(|_| Op::RandomBetween(left, right))
                }
                _ => eval_arithmetic(function, left, right)
                    .map(|value| Op::Push(ScriptValue::Int(value))),
            };
            if let Some(folded_op) = folded_op {
                folded.truncate(folded.len() - 3);
                folded.push(folded_op);
            }
        }
        self.ops = folded;
    }

    /// Evaluates with an empty `stack`, which only lends its memory.
    ///
    /// # Errors
    /// pgbench's message; empty if it has none.
    #[inline]
    pub(crate) fn evaluate<S: Scope>(
        &self,
        stack: &mut Vec<ScriptValue>,
        scope: &mut S,
    ) -> Result<ScriptValue, String> {
        stack.clear();
        let mut at = 0;
        while let Some(op) = self.ops.get(at) {
            at += 1;
            match *op {
                Op::Push(ref value) => stack.push(*value),
                Op::Load(variable) => scope.load(variable, stack)?,
                Op::RandomBetween(first, last) => {
                    stack.push(ScriptValue::Int(scope.rng().random(first, last)));
                }
                Op::Call(function, count) => {
                    if let [.., ScriptValue::Int(left), ScriptValue::Int(right)] = stack[..]
                        && count == 2
                        && let Some(value) = eval_int_fast_path(function, left, right, scope)
                    {
                        stack.pop();
                        if let Some(top) = stack.last_mut() {
                            *top = ScriptValue::Int(value);
                        }
                        continue;
                    }
                    let first = stack.len().saturating_sub(count as usize);
                    let value = call_function(function, &stack[first..], scope)?;
                    stack.truncate(first);
                    stack.push(value);
                }
                Op::And(jump) => {
                    if stack_top(stack) == ScriptValue::Null || !to_bool(stack_top(stack))? {
                        at += jump as usize;
                    } else {
                        stack.pop();
                    }
                }
                Op::Or(jump) => {
                    if stack_top(stack) == ScriptValue::Null || to_bool(stack_top(stack))? {
                        at += jump as usize;
                    } else {
                        stack.pop();
                    }
                }
                Op::Truth => {
                    if stack_top(stack) != ScriptValue::Null {
                        to_bool(stack_top(stack))?;
                    }
                }
                Op::Unless(jump) => {
                    if !is_true(stack_top(stack)) {
                        at += jump as usize;
                    }
                    stack.pop();
                }
                Op::Jump(jump) => at += jump as usize,
            }
        }
        Ok(stack_top(stack))
    }
}

#[inline]
fn stack_top(stack: &[ScriptValue]) -> ScriptValue {
    stack.last().copied().unwrap_or(ScriptValue::Null)
}

/// Returns true if a condition holds: numbers do unless they are zero, NULL doesn't.
pub(crate) fn is_true(value: ScriptValue) -> bool {
    match value {
        ScriptValue::Null => false,
        ScriptValue::Bool(value) => value,
        ScriptValue::Int(value) => value != 0,
        ScriptValue::Double(value) => value != 0.0,
    }
}

fn to_bool(value: ScriptValue) -> Result<bool, String> {
    match value {
        ScriptValue::Bool(value) => Ok(value),
        other => Err(cannot_coerce(other, "boolean")),
    }
}

#[cold]
fn cannot_coerce(value: ScriptValue, to: &str) -> String {
    format!("cannot coerce {} to {to}", value.type_name())
}

/// Rounds half to even.
#[inline]
fn to_int(value: ScriptValue) -> Result<i64, String> {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    match value {
        ScriptValue::Int(value) => Ok(value),
        ScriptValue::Double(value) => {
            let rounded = value.round_ties_even();
            if (-BEYOND..BEYOND).contains(&rounded) {
                Ok(rounded as i64)
            } else {
                Err(format!("double to int overflow for {}", format_fixed(rounded)))
            }
        }
        other => Err(cannot_coerce(other, "int")),
    }
}

#[inline]
fn to_double(value: ScriptValue) -> Result<f64, String> {
    match value {
        ScriptValue::Int(value) => Ok(value as f64),
        ScriptValue::Double(value) => Ok(value),
        other => Err(cannot_coerce(other, "double")),
    }
}

/// Text of C's `%f`.
fn format_fixed(value: f64) -> String {
    if value.is_finite() {
        return format!("{value:.6}");
    }
    let mut text = String::new();
    ScriptValue::Double(value).push_text(&mut text);
    text
}

/// The usual operations of scripts on integers, without errors.
#[inline]
fn eval_int_fast_path<S: Scope>(
    function: Function,
    left: i64,
    right: i64,
    scope: &mut S,
) -> Option<i64> {
    match function {
        Function::Random => random_span(left, right).map(|_| scope.rng().random(left, right)),
        _ => eval_arithmetic(function, left, right),
    }
}

#[inline]
fn eval_arithmetic(function: Function, left: i64, right: i64) -> Option<i64> {
    match function {
        Function::Add => left.checked_add(right),
        Function::Subtract => left.checked_sub(right),
        Function::Multiply => left.checked_mul(right),
        _ => None,
    }
}

/// Distance of the bounds of a random number; `None` if they are not right.
#[inline]
fn random_span(first: i64, last: i64) -> Option<i64> {
    last.checked_sub(first).filter(|span| (0..i64::MAX).contains(span))
}

fn call_function<S: Scope>(
    function: Function,
    values: &[ScriptValue],
    scope: &mut S,
) -> Result<ScriptValue, String> {
    use ScriptValue::{Bool, Double, Int, Null};
    if values.len() > MOST_ARGUMENTS {
        return Err(format!("too many function arguments, maximum is {MOST_ARGUMENTS}"));
    }
    let has_double = values.iter().any(|value| matches!(value, Double(_)));
    Ok(match (function, values) {
        (Function::Debug, &[value]) => {
            scope.debug(value);
            value
        }
        (Function::Is, &[left, right]) => Bool(left == right),
        _ if values.contains(&Null) => Null,
        (Function::Pi, _) => Double(std::f64::consts::PI),
        (Function::Greatest | Function::Least, _) => {
            let is_greatest = function == Function::Greatest;
            if has_double {
                Double(find_extreme(values, to_double, is_greatest)?)
            } else {
                Int(find_extreme(values, to_int, is_greatest)?)
            }
        }
        (Function::Abs, &[Int(value)]) => Int(value.wrapping_abs()),
        (Function::Abs, &[value]) => Double(to_double(value)?.abs()),
        (Function::Not, &[value]) => Bool(!to_bool(value)?),
        (Function::ToInt, &[value]) => Int(to_int(value)?),
        (Function::ToDouble, &[value]) => Double(to_double(value)?),
        (Function::Exp, &[value]) => Double(to_double(value)?.exp()),
        (Function::Ln, &[value]) => Double(to_double(value)?.ln()),
        (Function::Sqrt, &[value]) => Double(to_double(value)?.sqrt()),
        (Function::Power, &[left, right]) => Double(to_double(left)?.powf(to_double(right)?)),
        (Function::HashFnv1a, &[value, seed]) => {
            Int(random::hash_fnv1a(to_int(value)?, to_int(seed)?))
        }
        (Function::HashMurmur2, &[value, seed]) => {
            Int(random::hash_murmur2(to_int(value)?, to_int(seed)?))
        }
        (Function::Permute, &[value, size, seed]) => {
            let (value, size, seed) = (to_int(value)?, to_int(size)?, to_int(seed)?);
            if size <= 0 {
                return Err("permute size parameter must be greater than zero".to_owned());
            }
            Int(random::permute(value, size, seed))
        }
        (
            Function::Random
            | Function::RandomExponential
            | Function::RandomGaussian
            | Function::RandomZipfian,
            &[low, high, ..],
        ) => {
            draw_random(function, to_int(low)?, to_int(high)?, values.get(2).copied(), scope.rng())?
        }
        (_, &[left, right]) if has_double && takes_doubles(function) => {
            apply_doubles(function, to_double(left)?, to_double(right)?)
        }
        (_, &[left, right]) => apply_ints(function, to_int(left)?, to_int(right)?)?,
        // The parser has counted.
        _ => return Err("unexpected number of arguments".to_owned()),
    })
}

/// Returns true for operators of two numbers of any kind.
#[inline]
fn takes_doubles(function: Function) -> bool {
    matches!(
        function,
        Function::Add
            | Function::Subtract
            | Function::Multiply
            | Function::Divide
            | Function::Equal
            | Function::NotEqual
            | Function::Less
            | Function::LessOrEqual
    )
}

#[inline]
fn apply_doubles(function: Function, left: f64, right: f64) -> ScriptValue {
    match function {
        Function::Add => ScriptValue::Double(left + right),
        Function::Subtract => ScriptValue::Double(left - right),
        Function::Multiply => ScriptValue::Double(left * right),
        Function::Divide => ScriptValue::Double(left / right),
        Function::Equal => ScriptValue::Bool(left == right),
        Function::NotEqual => ScriptValue::Bool(left != right),
        Function::Less => ScriptValue::Bool(left < right),
        _ => ScriptValue::Bool(left <= right),
    }
}

#[inline]
fn apply_ints(function: Function, left: i64, right: i64) -> Result<ScriptValue, String> {
    let (result, name) = match function {
        Function::Add => (left.checked_add(right), "add"),
        Function::Subtract => (left.checked_sub(right), "sub"),
        Function::Multiply => (left.checked_mul(right), "mul"),
        Function::Divide | Function::Modulo if right == 0 => {
            return Err("division by zero".to_owned());
        }
        Function::Divide => (left.checked_div(right), "div"),
        Function::Modulo => (Some(left.wrapping_rem(right)), "mod"),
        Function::BitAnd => (Some(left & right), "and"),
        Function::BitOr => (Some(left | right), "or"),
        Function::BitXor => (Some(left ^ right), "xor"),
        // As C does on the usual machines: the lowest six bits say how far.
        Function::ShiftLeft => (Some(left.wrapping_shl(right as u32)), "shift"),
        Function::ShiftRight => (Some(left.wrapping_shr(right as u32)), "shift"),
        Function::Equal => return Ok(ScriptValue::Bool(left == right)),
        Function::NotEqual => return Ok(ScriptValue::Bool(left != right)),
        Function::Less => return Ok(ScriptValue::Bool(left < right)),
        _ => return Ok(ScriptValue::Bool(left <= right)),
    };
    result.map(ScriptValue::Int).ok_or_else(|| format!("bigint {name} out of range"))
}

fn find_extreme<T: PartialOrd>(
    values: &[ScriptValue],
    convert: fn(ScriptValue) -> Result<T, String>,
    is_greatest: bool,
) -> Result<T, String> {
    let mut best = convert(values[0])?;
    for &value in &values[1..] {
        let value = convert(value)?;
        if if is_greatest { value > best } else { value < best } {
            best = value;
        }
    }
    Ok(best)
}

#[inline]
fn draw_random(
    function: Function,
    low: i64,
    high: i64,
    parameter: Option<ScriptValue>,
    rng: &mut PgRng,
) -> Result<ScriptValue, String> {
    use random::{MAX_ZIPFIAN, MIN_GAUSSIAN, MIN_ZIPFIAN};
    if low > high {
        return Err("empty range given to random".to_owned());
    }
    if high.checked_sub(low).and_then(|span| span.checked_add(1)).is_none() {
        return Err("random range is too large".to_owned());
    }
    let Some(parameter) = parameter else { return Ok(ScriptValue::Int(rng.random(low, high))) };
    let parameter = to_double(parameter)?;
    let problem = match function {
        Function::RandomGaussian if parameter < MIN_GAUSSIAN => {
            format!("gaussian parameter must be at least {MIN_GAUSSIAN:.6}")
        }
        Function::RandomZipfian if !(MIN_ZIPFIAN..=MAX_ZIPFIAN).contains(&parameter) => {
            format!("zipfian parameter must be in range [{MIN_ZIPFIAN:.3}, {MAX_ZIPFIAN:.0}]")
        }
        Function::RandomExponential if parameter <= 0.0 => {
            "exponential parameter must be greater than zero".to_owned()
        }
        Function::RandomGaussian => {
            return Ok(ScriptValue::Int(rng.gaussian(low, high, parameter)));
        }
        Function::RandomZipfian => return Ok(ScriptValue::Int(rng.zipfian(low, high, parameter))),
        _ => return Ok(ScriptValue::Int(rng.exponential(low, high, parameter))),
    };
    Err(format!("{problem} (not {})", format_fixed(parameter)))
}

/// A function, or an operator that evaluates all its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Abs,
    Add,
    BitAnd,
    BitOr,
    BitXor,
    Debug,
    Divide,
    ToDouble,
    Equal,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    ToInt,
    Is,
    Least,
    Less,
    LessOrEqual,
    Ln,
    Modulo,
    Multiply,
    Not,
    NotEqual,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    ShiftLeft,
    ShiftRight,
    Sqrt,
    Subtract,
}

/// Names and functions with the least and the greatest number of arguments. If one more than the least may be given,
/// that is a seed, which is the variable `default_seed` when it is left out.
const FUNCTIONS: [(&str, Function, usize, usize); 21] = [
    ("abs", Function::Abs, 1, 1),
    ("debug", Function::Debug, 1, 1),
    ("double", Function::ToDouble, 1, 1),
    ("exp", Function::Exp, 1, 1),
    ("greatest", Function::Greatest, 1, usize::MAX),
    ("hash", Function::HashMurmur2, 1, 2),
    ("hash_fnv1a", Function::HashFnv1a, 1, 2),
    ("hash_murmur2", Function::HashMurmur2, 1, 2),
    ("int", Function::ToInt, 1, 1),
    ("least", Function::Least, 1, usize::MAX),
    ("ln", Function::Ln, 1, 1),
    ("mod", Function::Modulo, 2, 2),
    ("permute", Function::Permute, 2, 3),
    ("pi", Function::Pi, 0, 0),
    ("pow", Function::Power, 2, 2),
    ("power", Function::Power, 2, 2),
    ("random", Function::Random, 2, 2),
    ("random_exponential", Function::RandomExponential, 3, 3),
    ("random_gaussian", Function::RandomGaussian, 3, 3),
    ("random_zipfian", Function::RandomZipfian, 3, 3),
    ("sqrt", Function::Sqrt, 1, 1),
];

/// The names of all functions.
pub(crate) fn function_names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.into_iter().map(|(name, ..)| name)
}

pub(crate) fn is_function_name(name: &str) -> bool {
    find(name.as_bytes()).is_some()
}

/// The row of what a script calls by this name, in any case.
pub(crate) fn find(name: &[u8]) -> Option<(&'static str, Function, usize, usize)> {
    FUNCTIONS.into_iter().find(|(known, ..)| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// The value of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScriptValue {
    /// SQL NULL.
    Null,
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A double-precision number.
    Double(f64),
}

impl ScriptValue {
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            ScriptValue::Null => "null",
            ScriptValue::Bool(_) => "boolean",
            ScriptValue::Int(_) => "int",
            ScriptValue::Double(_) => "double",
        }
    }

    /// Appends the text that replaces a variable in SQL.
    pub(crate) fn push_text(self, out: &mut String) {
        match self {
            ScriptValue::Null => out.push_str("NULL"),
            ScriptValue::Bool(true) => out.push_str("true"),
            ScriptValue::Bool(false) => out.push_str("false"),
            ScriptValue::Int(value) => push_int(out, value),
            ScriptValue::Double(value) => {
                let mut bytes = std::mem::take(out).into_bytes();
                push_double_15g(&mut bytes, value);
                // Digits and letters behind what was a text.
                *out = String::from_utf8(bytes).unwrap_or_default();
            }
        }
    }

    /// The text of `debug()`: type and value.
    pub(crate) fn described(self) -> String {
        let mut text = self.type_name().to_owned();
        if self != ScriptValue::Null {
            text.push(' ');
            self.push_text(&mut text);
        }
        text
    }
}

/// The value of a text that the variable `name` was given from outside.
///
/// # Errors
/// pgbench's message; empty for the empty text, if it has none.
pub(crate) fn parse_value(text: &str, name: &str) -> Result<ScriptValue, String> {
    if text.is_empty() {
        return Err(String::new());
    }
    let is_prefix_of =
        |word: &str| word.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text));
    if text.eq_ignore_ascii_case("null") {
        return Ok(ScriptValue::Null);
    }
    // "o" alone could be either.
    if is_prefix_of("true") || is_prefix_of("yes") || text.eq_ignore_ascii_case("on") {
        return Ok(ScriptValue::Bool(true));
    }
    let is_off = text.len() > 1 && is_prefix_of("off");
    if is_prefix_of("false") || is_prefix_of("no") || is_off {
        return Ok(ScriptValue::Bool(false));
    }
    let number = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let unsigned = number.strip_prefix(['+', '-']).unwrap_or(number);
    if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        let value = number.parse().map(ScriptValue::Int);
        return value.map_err(|_| format!("value \"{number}\" is out of range for type bigint"));
    }
    parse_double(number).map(ScriptValue::Double).ok_or_else(|| malformed(name, text))
}

/// The error of a variable whose text isn't a value.
pub(crate) fn malformed(name: &str, text: &str) -> String {
    format!("malformed variable \"{name}\" value: \"{text}\"")
}

/// A number as C's `strtod` reads it, the whole text of it. `None` also when it is too large or
/// too small for a normal double.
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if let Some(hex) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        let value = parse_hex(hex)?;
        return Some(if text.starts_with('-') { -value } else { value });
    }
    let value: f64 = text.parse().ok()?;
    let is_named = unsigned.starts_with(['i', 'I', 'n', 'N']);
    let mantissa = unsigned.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = !mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    (is_named || is_zero || value.is_normal()).then_some(value)
}

/// Hexadecimal digits with an optional point and an optional exponent of 2.
fn parse_hex(text: &str) -> Option<f64> {
    let (mantissa, exponent) = match text.split_once(['p', 'P']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0_f64;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?.checked_mul(4)?)?;
    let value = value * 2.0_f64.powi(exponent);
    (value == 0.0 || value.is_normal()).then_some(value)
}

/// The integer at the beginning of a text, as C's `atoi` reads it; 0 when there is none. Numbers
/// that are too large stay at the limit.
pub(crate) fn leading_int(text: &str) -> i64 {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut value = 0_i64;
    for digit in digits.bytes().take_while(u8::is_ascii_digit) {
        value = value.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
    }
    if is_negative { -value } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Only(PgRng);

    impl Scope for Only {
        fn load(&mut self, _variable: u32, stack: &mut Vec<ScriptValue>) -> Result<(), String> {
            stack.push(ScriptValue::Int(10));
            Ok(())
        }

        fn rng(&mut self) -> &mut PgRng {
            &mut self.0
        }

        fn debug(&mut self, _value: ScriptValue) {}
    }

    fn constant(value: i64) -> Op {
        Op::Push(ScriptValue::Int(value))
    }

    #[test]
    fn what_is_folded_gives_the_same_values_and_errors() {
        let scaled = vec![
            constant(1),
            constant(100_000),
            Op::Load(3),
            Op::Call(Function::Multiply, 2),
            Op::Call(Function::Random, 2),
        ];
        let backwards = vec![constant(7), constant(2), Op::Call(Function::Random, 2)];
        let overflow = vec![constant(i64::MAX), Op::Load(3), Op::Call(Function::Add, 2)];
        let jumps = vec![
            constant(0),
            Op::Unless(1),
            constant(2),
            constant(3),
            Op::Load(3),
            Op::Call(Function::Add, 2),
        ];
        let folded = [
            vec![Op::RandomBetween(1, 1_000_000)],
            backwards.clone(),
            vec![constant(i64::MAX), constant(10), Op::Call(Function::Add, 2)],
            jumps.clone(),
        ];
        for (ops, folded) in [scaled, backwards, overflow, jumps].into_iter().zip(folded) {
            let program = Program { ops };
            let mut quick = program.clone();
            quick.fold(|number| (number == 3).then_some(10));
            assert_eq!(quick.ops, folded);
            let (mut one, mut other) = (Only(PgRng::new(5)), Only(PgRng::new(5)));
            for _ in 0..3 {
                let value = program.evaluate(&mut Vec::new(), &mut one);
                assert_eq!(quick.evaluate(&mut Vec::new(), &mut other), value);
            }
        }
        let mut unknown = Program { ops: vec![Op::Load(3)] };
        unknown.fold(|_| None);
        assert_eq!(unknown.ops, [Op::Load(3)]);
    }

    #[test]
    fn doubles_have_fifteen_digits() {
        let cases = [
            (1.0 / 3.0, "0.333333333333333"),
            (2.0_f64.sqrt(), "1.4142135623731"),
            (1e15, "1e+15"),
            (1e14, "100000000000000"),
            (123_456_789_012_345_678.0, "1.23456789012346e+17"),
            (0.0001, "0.0001"),
            (1e-5, "1e-05"),
            (-2.5e-300, "-2.5e-300"),
            (-0.0, "-0"),
            (999_999_999_999_999.9, "1e+15"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
            (150.0, "150"),
        ];
        for (value, text) in cases {
            let mut out = String::new();
            ScriptValue::Double(value).push_text(&mut out);
            assert_eq!(out, text);
        }
    }

    #[test]
    fn texts_get_the_type_they_look_like() {
        let cases = [
            ("NULL", Some(ScriptValue::Null)),
            ("T", Some(ScriptValue::Bool(true))),
            ("yes", Some(ScriptValue::Bool(true))),
            ("on", Some(ScriptValue::Bool(true))),
            ("n", Some(ScriptValue::Bool(false))),
            ("of", Some(ScriptValue::Bool(false))),
            ("o", None),
            ("", None),
            (" +5", Some(ScriptValue::Int(5))),
            ("5 ", None),
            ("99999999999999999999", None),
            ("1e400", None),
            ("1e-400", None),
            ("0e-999", Some(ScriptValue::Double(0.0))),
            ("0x1.8p1", Some(ScriptValue::Double(3.0))),
            ("inf", Some(ScriptValue::Double(f64::INFINITY))),
            ("1.5x", None),
            ("é", None),
        ];
        for (text, value) in cases {
            assert_eq!(parse_value(text, "x").ok(), value, "{text:?}");
        }
        assert_eq!(error_message(""), "");
        assert_eq!(error_message("o"), "malformed variable \"x\" value: \"o\"");
        assert!(
            error_message(" 99999999999999999999")
                .starts_with("value \"99999999999999999999\" is out")
        );
    }

    fn error_message(text: &str) -> String {
        parse_value(text, "x").unwrap_err()
    }

    #[test]
    fn integers_of_all_sizes_are_written() {
        for value in [0, 7, 10, -1, i64::MAX, i64::MIN] {
            let mut text = String::new();
            push_int(&mut text, value);
            assert_eq!(text, value.to_string());
        }
    }
}
