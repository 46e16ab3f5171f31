//! The variables of one client.

use crate::script::{NoValue, Reference, ScriptValue, parse_value, shown_text};
use dyno_core::Param;

/// A variable: a value, a text, or one made from the other when it was asked for.
#[derive(Clone, Debug, Default)]
struct Variable {
    value: Option<ScriptValue>,
    /// In any encoding.
    text: Vec<u8>,
    has_text: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Variables(Vec<Variable>);

impl Variables {
    pub(super) fn new(count: usize) -> Self {
        Variables(vec![Variable::default(); count])
    }

    #[inline]
    pub(super) fn set(&mut self, number: u32, value: ScriptValue) {
        let variable = &mut self.0[number as usize];
        variable.value = Some(value);
        variable.has_text = false;
    }

    pub(super) fn set_text(&mut self, number: u32, text: &[u8]) {
        let variable = &mut self.0[number as usize];
        variable.value = None;
        variable.text.clear();
        variable.text.extend_from_slice(text);
        variable.has_text = true;
    }

    /// The value in an expression. `name` is for messages.
    ///
    /// # Errors
    /// pgbench's message; empty where it has none.
    #[inline]
    pub(super) fn value(&mut self, number: u32, name: &str) -> Result<ScriptValue, String> {
        match self.0[number as usize].value {
            Some(value) => Ok(value),
            None => self.value_of_text(number, name),
        }
    }

    #[cold]
    fn value_of_text(&mut self, number: u32, name: &str) -> Result<ScriptValue, String> {
        let variable = &mut self.0[number as usize];
        if !variable.has_text {
            return Err(format!("undefined variable \"{name}\""));
        }
        let text = str::from_utf8(&variable.text).map_err(|_| NoValue::Malformed);
        let value = text.and_then(parse_value).map_err(|why| {
            let text = shown_text(&variable.text);
            match why {
                NoValue::Empty => String::new(),
                NoValue::OutOfRange => {
                    format!("value \"{}\" is out of range for type bigint", text.trim_start())
                }
                NoValue::Malformed => format!("malformed variable \"{name}\" value: \"{text}\""),
            }
        })?;
        variable.value = Some(value);
        Ok(value)
    }

    /// The text that replaces the variable in SQL; `None` when it is undefined.
    #[inline]
    pub(super) fn text(&mut self, number: u32) -> Option<&[u8]> {
        let variable = &mut self.0[number as usize];
        if !variable.has_text {
            let value = variable.value?;
            let mut bytes = std::mem::take(&mut variable.text);
            bytes.clear();
            // Nothing is in it but memory to be used again.
            let mut text = String::from_utf8(bytes).unwrap_or_default();
            value.push_text(&mut text);
            variable.text = text.into_bytes();
            variable.has_text = true;
        }
        Some(&variable.text)
    }

    /// An integer is sent without a text.
    #[inline]
    pub(super) fn make_text_unless_int(&mut self, number: u32) {
        if !matches!(self.0[number as usize].value, Some(ScriptValue::Int(_))) {
            self.text(number);
        }
    }

    /// The parameters of most statements: integers that have no text. False where others are among them.
    #[inline]
    pub(super) fn bind_ints(&self, references: &[Reference], params: &mut [Param<'_>]) -> bool {
        for (reference, param) in references.iter().zip(params) {
            match &self.0[reference.variable as usize] {
                Variable { value: Some(ScriptValue::Int(value)), has_text: false, .. } => {
                    *param = Param::Int(*value);
                }
                _ => return false,
            }
        }
        true
    }

    /// The variable as a parameter: its text, if there is one and `prefers_text`, else its value; NULL when undefined.
    #[inline]
    pub(super) fn param(&self, number: u32, prefers_text: bool) -> Param<'_> {
        let variable = &self.0[number as usize];
        if variable.has_text && (prefers_text || variable.value.is_none()) {
            return Param::Text(&variable.text);
        }
        match variable.value {
            Some(ScriptValue::Int(value)) => Param::Int(value),
            Some(ScriptValue::Double(value)) => Param::Double(value),
            Some(ScriptValue::Bool(value)) => Param::Int(value.into()),
            Some(ScriptValue::Null) | None => Param::Null,
        }
    }

    /// The text, if it has been asked for since the last assignment or was given.
    #[inline]
    pub(super) fn known_text(&self, number: u32) -> Option<&[u8]> {
        let variable = &self.0[number as usize];
        variable.has_text.then_some(variable.text.as_slice())
    }

    /// The value, if there is one without looking into a text.
    #[inline]
    pub(super) fn known_value(&self, number: u32) -> Option<ScriptValue> {
        self.0[number as usize].value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_values_are_made_from_each_other() {
        let mut variables = Variables::new(2);
        assert_eq!(variables.text(0), None);
        assert_eq!(variables.value(0, "x"), Err("undefined variable \"x\"".to_owned()));
        variables.set(0, ScriptValue::Double(0.5));
        assert_eq!(variables.text(0), Some(&b"0.5"[..]));
        variables.set(0, ScriptValue::Int(7));
        assert_eq!(variables.known_text(0), None);
        assert_eq!(variables.text(0), Some(&b"7"[..]));
        variables.set_text(0, b"on");
        assert_eq!(variables.known_value(0), None);
        assert_eq!(variables.value(0, "x"), Ok(ScriptValue::Bool(true)));
        assert_eq!(variables.text(0), Some(&b"on"[..]));
        variables.set_text(1, b"");
        assert_eq!(variables.value(1, "y"), Err(String::new()));
        variables.set_text(1, b"\xe9z");
        let why = "malformed variable \"y\" value: \"?z\"";
        assert_eq!(variables.value(1, "y"), Err(why.to_owned()));
    }
}
