//! The values that a script has bound to a statement's parameters, and what the database is sent of them.

use dyno_core::{Param, ParamType};
use std::ops::Range;

/// The values of a statement's parameters.
#[derive(Debug, Default)]
pub(crate) struct BoundValues {
    list: Vec<BoundValue>,
    texts: Vec<u8>,
}

/// A parameter that becomes part of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Literal<'a> {
    pub(crate) param: Param<'a>,
    /// An integer that needs all 64 bits, and none for its sign.
    pub(crate) unsigned: Option<u64>,
}

#[derive(Debug)]
enum BoundValue {
    Null,
    Number(f64),
    /// A part of `texts`.
    Text(Range<usize>),
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Longer texts give their memory back: a bulk insert has half a megabyte.
pub(crate) const KEPT_BYTES: usize = 1 << 16;

impl BoundValues {
    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.texts.clear();
        self.texts.shrink_to(KEPT_BYTES);
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn push_null(&mut self) {
        self.list.push(BoundValue::Null);
    }

    #[inline]
    pub(crate) fn push_number(&mut self, number: f64) {
        self.list.push(BoundValue::Number(number));
    }

    #[inline]
    pub(crate) fn push_text(&mut self, text: &[u8]) {
        let begin = self.texts.len();
        self.texts.extend_from_slice(text);
        self.list.push(BoundValue::Text(begin..self.texts.len()));
    }

    /// The values as parameters of these types.
    pub(crate) fn params<'a>(
        &'a self,
        types: &'a [ParamType],
    ) -> impl Iterator<Item = Param<'a>> + 'a {
        self.list.iter().zip(types).map(|(value, kind)| match (value, kind) {
            (BoundValue::Null, _) => Param::Null,
            (BoundValue::Number(number), ParamType::Int) => Param::Int(converted(*number)),
            (BoundValue::Number(number), _) => Param::Double(*number),
            (BoundValue::Text(text), ParamType::Int) => {
                let digits = &self.texts[text.clone()];
                whole(digits).map_or(Param::Text(digits), Param::Int)
            }
            (BoundValue::Text(text), _) => Param::Text(&self.texts[text.clone()]),
        })
    }

    /// The same for a text.
    pub(crate) fn literals<'a>(
        &'a self,
        types: &'a [ParamType],
    ) -> impl Iterator<Item = Literal<'a>> + 'a {
        let numbers = self.list.iter().zip(types).map(|(value, kind)| match (value, kind) {
            (BoundValue::Number(number), ParamType::Int) => beyond_63_bits(*number),
            (BoundValue::Text(text), ParamType::Int) => unsigned(&self.texts[text.clone()]),
            _ => None,
        });
        self.params(types).zip(numbers).map(|(param, unsigned)| Literal { param, unsigned })
    }
}

/// As C converts it on x86-64: without its fraction. An unsigned number keeps its bits. NaN and what 64 bits don't hold
/// become the lowest number.
#[inline]
fn converted(number: f64) -> i64 {
    match (-TWO_TO_63..TWO_TO_63).contains(&number) {
        true => number as i64,
        false => beyond_63_bits(number).map_or(i64::MIN, |number| number as i64),
    }
}

/// The unsigned number of 64 bits that no signed one holds.
fn beyond_63_bits(number: f64) -> Option<u64> {
    (TWO_TO_63..2.0 * TWO_TO_63).contains(&number).then_some(number as u64)
}

/// A 64-bit number that has come as its digits. An unsigned one keeps its bits, as in the original.
fn whole(digits: &[u8]) -> Option<i64> {
    let signed = std::str::from_utf8(digits).ok()?.parse().ok();
    signed.or_else(|| unsigned(digits).map(|number| number as i64))
}

/// One of these that no signed number holds.
fn unsigned(digits: &[u8]) -> Option<u64> {
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    i64::try_from(number).is_err().then_some(number)
}
