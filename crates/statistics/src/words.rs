//! The syntax of gates and objectives.

use crate::gate::{Mistake, Relation};

pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// `gate` or `objective`.
    kind: &'static str,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str, kind: &'static str) -> Reader<'a> {
        Reader { text, at: 0, kind }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(crate) fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// A mistake at a byte offset.
    pub(crate) fn mistake(&self, at: usize, message: String, hint: impl Into<String>) -> Mistake {
        let column = self.text[..at].chars().count() + 1;
        Mistake { kind: self.kind, text: self.text.to_owned(), column, message, hint: hint.into() }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Letters, digits and underscores; may be empty.
    pub(crate) fn word(&mut self) -> &'a str {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let rest = self.rest();
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    pub(crate) fn has(&mut self, sign: &str) -> bool {
        let is_next = self.rest().starts_with(sign);
        if is_next {
            self.at += sign.len();
        }
        is_next
    }

    pub(crate) fn relation(&mut self) -> Result<Relation, Mistake> {
        self.skip_blanks();
        Relation::ALL.into_iter().find(|relation| self.has(relation.name())).ok_or_else(|| {
            let message = format!("A comparison was expected{}.", self.found());
            self.mistake(self.at, message, "Comparisons are <, <=, > and >=.")
        })
    }

    /// A number and the unit behind it, which may be empty.
    pub(crate) fn number(&mut self) -> Result<(f64, &'a str), Mistake> {
        self.skip_blanks();
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == '-' || c == '+';
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        let Ok(number) = rest[..end].parse::<f64>() else {
            let message = format!("A number was expected{}.", self.found());
            let example = if self.kind == "gate" { "tps.ratio.low > 0.97" } else { "p99 < 20ms" };
            return Err(self.mistake(self.at, message, format!("An example: `{example}`.")));
        };
        self.at += end;
        self.skip_blanks();
        let unit = if self.has("%") { "%" } else { self.word() };
        Ok((number, unit))
    }

    pub(crate) fn end(&mut self) -> Result<(), Mistake> {
        self.skip_blanks();
        if self.rest().is_empty() {
            return Ok(());
        }
        let message = format!("Nothing was expected any more{}.", self.found());
        let hint = format!("One comparison is one {}; write several as a list.", self.kind);
        Err(self.mistake(self.at, message, hint))
    }

    fn found(&self) -> String {
        match self.rest().split_whitespace().next() {
            Some(word) => format!(", but `{word}` was found"),
            None => ", but the text ends here".to_owned(),
        }
    }
}
