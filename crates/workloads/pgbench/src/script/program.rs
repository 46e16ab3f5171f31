//! Expressions in a compact form, and their evaluation.

use super::function::Function;
use super::value::ScriptValue;
use crate::random::{self, PgRng};

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

/// What an evaluation needs of its client.
pub(crate) trait Scope {
    /// Pushes the value of a variable, or says why it has none; the empty text when that is not
    /// explained.
    fn load(&mut self, variable: u32, stack: &mut Vec<ScriptValue>) -> Result<(), String>;
    /// The client's random stream.
    fn rng(&mut self) -> &mut PgRng;
    fn debug(&mut self, value: ScriptValue);
}

impl Program {
    /// Computes beforehand what does not depend on the client; `constant` is a variable that nothing assigns to.
    pub(crate) fn fold(&mut self, constant: Option<(u32, i64)>) {
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
            folded.push(match (op, constant) {
                (Op::Load(number), Some((known, value))) if number == known => {
                    Op::Push(ScriptValue::Int(value))
                }
                _ => op,
            });
            let [
                ..,
                Op::Push(ScriptValue::Int(left)),
                Op::Push(ScriptValue::Int(right)),
                Op::Call(function, 2),
            ] = folded[..]
            else {
                continue;
            };
            let made = match function {
                Function::Random => span_of(left, right).map(|_| Op::RandomBetween(left, right)),
                _ => {
                    arithmetic(function, left, right).map(|value| Op::Push(ScriptValue::Int(value)))
                }
            };
            if let Some(made) = made {
                folded.truncate(folded.len() - 3);
                folded.push(made);
            }
        }
        self.ops = folded;
    }

    /// Evaluates with an empty `stack`, which only lends its memory.
    ///
    /// # Errors
    /// pgbench's message; empty where it has none.
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
                        && let Some(value) = of_usual_ints(function, left, right, scope)
                    {
                        stack.pop();
                        if let Some(top) = stack.last_mut() {
                            *top = ScriptValue::Int(value);
                        }
                        continue;
                    }
                    let first = stack.len().saturating_sub(count as usize);
                    let value = call(function, &stack[first..], scope)?;
                    stack.truncate(first);
                    stack.push(value);
                }
                Op::And(jump) => {
                    if top(stack) == ScriptValue::Null || !truth(top(stack))? {
                        at += jump as usize;
                    } else {
                        stack.pop();
                    }
                }
                Op::Or(jump) => {
                    if top(stack) == ScriptValue::Null || truth(top(stack))? {
                        at += jump as usize;
                    } else {
                        stack.pop();
                    }
                }
                Op::Truth => {
                    if top(stack) != ScriptValue::Null {
                        truth(top(stack))?;
                    }
                }
                Op::Unless(jump) => {
                    if !is_true(top(stack)) {
                        at += jump as usize;
                    }
                    stack.pop();
                }
                Op::Jump(jump) => at += jump as usize,
            }
        }
        Ok(top(stack))
    }
}

#[inline]
fn top(stack: &[ScriptValue]) -> ScriptValue {
    stack.last().copied().unwrap_or(ScriptValue::Null)
}

/// Whether a condition holds: numbers do unless they are zero, NULL doesn't.
pub(crate) fn is_true(value: ScriptValue) -> bool {
    match value {
        ScriptValue::Null => false,
        ScriptValue::Bool(value) => value,
        ScriptValue::Int(value) => value != 0,
        ScriptValue::Double(value) => value != 0.0,
    }
}

fn truth(value: ScriptValue) -> Result<bool, String> {
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
fn int(value: ScriptValue) -> Result<i64, String> {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    match value {
        ScriptValue::Int(value) => Ok(value),
        ScriptValue::Double(value) => {
            let rounded = value.round_ties_even();
            if (-BEYOND..BEYOND).contains(&rounded) {
                Ok(rounded as i64)
            } else {
                Err(format!("double to int overflow for {}", fixed(rounded)))
            }
        }
        other => Err(cannot_coerce(other, "int")),
    }
}

#[inline]
fn double(value: ScriptValue) -> Result<f64, String> {
    match value {
        ScriptValue::Int(value) => Ok(value as f64),
        ScriptValue::Double(value) => Ok(value),
        other => Err(cannot_coerce(other, "double")),
    }
}

/// As C's `%f`.
fn fixed(value: f64) -> String {
    if value.is_finite() {
        return format!("{value:.6}");
    }
    let mut text = String::new();
    ScriptValue::Double(value).push_text(&mut text);
    text
}

/// What most scripts compute, if nothing is wrong with it.
#[inline]
fn of_usual_ints<S: Scope>(
    function: Function,
    left: i64,
    right: i64,
    scope: &mut S,
) -> Option<i64> {
    match function {
        Function::Random => span_of(left, right).map(|_| scope.rng().random(left, right)),
        _ => arithmetic(function, left, right),
    }
}

#[inline]
fn arithmetic(function: Function, left: i64, right: i64) -> Option<i64> {
    match function {
        Function::Add => left.checked_add(right),
        Function::Subtract => left.checked_sub(right),
        Function::Multiply => left.checked_mul(right),
        _ => None,
    }
}

/// How far apart the bounds of a random number are; `None` where they are not right.
#[inline]
fn span_of(first: i64, last: i64) -> Option<i64> {
    last.checked_sub(first).filter(|span| (0..i64::MAX).contains(span))
}

fn call<S: Scope>(
    function: Function,
    values: &[ScriptValue],
    scope: &mut S,
) -> Result<ScriptValue, String> {
    if values.len() > MOST_ARGUMENTS {
        return Err(format!("too many function arguments, maximum is {MOST_ARGUMENTS}"));
    }
    match (function, values) {
        (Function::Debug, &[value]) => {
            scope.debug(value);
            return Ok(value);
        }
        (Function::Is, &[left, right]) => return Ok(ScriptValue::Bool(left == right)),
        _ if values.iter().any(|value| matches!(value, ScriptValue::Null)) => {
            return Ok(ScriptValue::Null);
        }
        _ => {}
    }
    match (function, values) {
        (Function::Pi, _) => Ok(ScriptValue::Double(std::f64::consts::PI)),
        (Function::Greatest | Function::Least, values) => extreme(function, values),
        (_, &[value]) => of_one(function, value),
        (
            Function::Random
            | Function::RandomExponential
            | Function::RandomGaussian
            | Function::RandomZipfian,
            &[low, high, ..],
        ) => random(function, int(low)?, int(high)?, values.get(2).copied(), scope.rng()),
        (Function::Permute, &[value, size, seed]) => permute(int(value)?, int(size)?, int(seed)?),
        (_, &[left, right]) => of_two(function, left, right),
        // The parser has counted.
        _ => Err("unexpected number of arguments".to_owned()),
    }
}

fn of_one(function: Function, value: ScriptValue) -> Result<ScriptValue, String> {
    Ok(match function {
        Function::Abs => match value {
            ScriptValue::Int(value) => ScriptValue::Int(value.wrapping_abs()),
            other => ScriptValue::Double(double(other)?.abs()),
        },
        Function::Not => ScriptValue::Bool(!truth(value)?),
        Function::ToInt => ScriptValue::Int(int(value)?),
        Function::ToDouble => ScriptValue::Double(double(value)?),
        Function::Exp => ScriptValue::Double(double(value)?.exp()),
        Function::Ln => ScriptValue::Double(double(value)?.ln()),
        _ => ScriptValue::Double(double(value)?.sqrt()),
    })
}

#[inline]
fn of_two(
    function: Function,
    left: ScriptValue,
    right: ScriptValue,
) -> Result<ScriptValue, String> {
    match function {
        Function::Add
        | Function::Subtract
        | Function::Multiply
        | Function::Divide
        | Function::Equal
        | Function::NotEqual
        | Function::Less
        | Function::LessOrEqual => {
            if matches!(left, ScriptValue::Double(_)) || matches!(right, ScriptValue::Double(_)) {
                Ok(of_doubles(function, double(left)?, double(right)?))
            } else {
                of_ints(function, int(left)?, int(right)?)
            }
        }
        Function::Power => Ok(ScriptValue::Double(double(left)?.powf(double(right)?))),
        Function::HashFnv1a => Ok(ScriptValue::Int(random::hash_fnv1a(int(left)?, int(right)?))),
        Function::HashMurmur2 => {
            Ok(ScriptValue::Int(random::hash_murmur2(int(left)?, int(right)?)))
        }
        _ => of_bits(function, int(left)?, int(right)?),
    }
}

#[inline]
fn of_doubles(function: Function, left: f64, right: f64) -> ScriptValue {
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
fn of_ints(function: Function, left: i64, right: i64) -> Result<ScriptValue, String> {
    let (result, name) = match function {
        Function::Add => (left.checked_add(right), "add"),
        Function::Subtract => (left.checked_sub(right), "sub"),
        Function::Multiply => (left.checked_mul(right), "mul"),
        Function::Divide if right == 0 => return Err("division by zero".to_owned()),
        Function::Divide => (left.checked_div(right), "div"),
        Function::Equal => return Ok(ScriptValue::Bool(left == right)),
        Function::NotEqual => return Ok(ScriptValue::Bool(left != right)),
        Function::Less => return Ok(ScriptValue::Bool(left < right)),
        _ => return Ok(ScriptValue::Bool(left <= right)),
    };
    result.map(ScriptValue::Int).ok_or_else(|| format!("bigint {name} out of range"))
}

fn of_bits(function: Function, left: i64, right: i64) -> Result<ScriptValue, String> {
    Ok(ScriptValue::Int(match function {
        Function::BitAnd => left & right,
        Function::BitOr => left | right,
        Function::BitXor => left ^ right,
        // As C does on the usual machines: the lowest six bits say how far.
        Function::ShiftLeft => left.wrapping_shl(right as u32),
        Function::ShiftRight => left.wrapping_shr(right as u32),
        _ if right == 0 => return Err("division by zero".to_owned()),
        _ => left.wrapping_rem(right),
    }))
}

fn extreme(function: Function, values: &[ScriptValue]) -> Result<ScriptValue, String> {
    let wants_greatest = function == Function::Greatest;
    if values.iter().any(|value| matches!(value, ScriptValue::Double(_))) {
        let mut best = double(top(&values[..1]))?;
        for &value in &values[1..] {
            let value = double(value)?;
            if (wants_greatest && value > best) || (!wants_greatest && value < best) {
                best = value;
            }
        }
        return Ok(ScriptValue::Double(best));
    }
    let mut best = int(top(&values[..1]))?;
    for &value in &values[1..] {
        let value = int(value)?;
        best = if wants_greatest { best.max(value) } else { best.min(value) };
    }
    Ok(ScriptValue::Int(best))
}

fn permute(value: i64, size: i64, seed: i64) -> Result<ScriptValue, String> {
    if size <= 0 {
        return Err("permute size parameter must be greater than zero".to_owned());
    }
    Ok(ScriptValue::Int(random::permute(value, size, seed)))
}

#[inline]
fn random(
    function: Function,
    low: i64,
    high: i64,
    parameter: Option<ScriptValue>,
    rng: &mut PgRng,
) -> Result<ScriptValue, String> {
    if low > high {
        return Err("empty range given to random".to_owned());
    }
    if high.checked_sub(low).and_then(|span| span.checked_add(1)).is_none() {
        return Err("random range is too large".to_owned());
    }
    let Some(parameter) = parameter else { return Ok(ScriptValue::Int(rng.random(low, high))) };
    let parameter = double(parameter)?;
    let value = match function {
        Function::RandomGaussian => {
            if parameter < random::MIN_GAUSSIAN {
                let least = random::MIN_GAUSSIAN;
                let found = fixed(parameter);
                return Err(format!(
                    "gaussian parameter must be at least {least:.6} (not {found})"
                ));
            }
            rng.gaussian(low, high, parameter)
        }
        Function::RandomZipfian => {
            if !(random::MIN_ZIPFIAN..=random::MAX_ZIPFIAN).contains(&parameter) {
                let (least, most) = (random::MIN_ZIPFIAN, random::MAX_ZIPFIAN);
                let found = fixed(parameter);
                return Err(format!(
                    "zipfian parameter must be in range [{least:.3}, {most:.0}] (not {found})"
                ));
            }
            rng.zipfian(low, high, parameter)
        }
        _ => {
            if parameter <= 0.0 {
                let found = fixed(parameter);
                return Err(format!(
                    "exponential parameter must be greater than zero (not {found})"
                ));
            }
            rng.exponential(low, high, parameter)
        }
    };
    Ok(ScriptValue::Int(value))
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

    fn int(value: i64) -> Op {
        Op::Push(ScriptValue::Int(value))
    }

    #[test]
    fn what_is_folded_gives_the_same_values_and_errors() {
        let scaled = vec![
            int(1),
            int(100_000),
            Op::Load(3),
            Op::Call(Function::Multiply, 2),
            Op::Call(Function::Random, 2),
        ];
        let backwards = vec![int(7), int(2), Op::Call(Function::Random, 2)];
        let overflow = vec![int(i64::MAX), Op::Load(3), Op::Call(Function::Add, 2)];
        let jumps =
            vec![int(0), Op::Unless(1), int(2), int(3), Op::Load(3), Op::Call(Function::Add, 2)];
        let folded = [
            vec![Op::RandomBetween(1, 1_000_000)],
            backwards.clone(),
            vec![int(i64::MAX), int(10), Op::Call(Function::Add, 2)],
            jumps.clone(),
        ];
        for (ops, folded) in [scaled, backwards, overflow, jumps].into_iter().zip(folded) {
            let program = Program { ops };
            let mut quick = program.clone();
            quick.fold(Some((3, 10)));
            assert_eq!(quick.ops, folded);
            let (mut one, mut other) = (Only(PgRng::new(5)), Only(PgRng::new(5)));
            for _ in 0..3 {
                let value = program.evaluate(&mut Vec::new(), &mut one);
                assert_eq!(quick.evaluate(&mut Vec::new(), &mut other), value);
            }
        }
        let mut unknown = Program { ops: vec![Op::Load(3)] };
        unknown.fold(None);
        assert_eq!(unknown.ops, [Op::Load(3)]);
    }
}
