//! The little language of gates and objectives.

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

    /// A mistake at a place that was read, in bytes.
    pub(crate) fn mistake(&self, at: usize, message: String, hint: String) -> Mistake {
        let column = self.text[..at].chars().count() + 1;
        Mistake { kind: self.kind, text: self.text.to_owned(), column, message, hint }
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
        let all = [
            ("<=", Relation::AtMost),
            (">=", Relation::AtLeast),
            ("<", Relation::Below),
            (">", Relation::Above),
        ];
        match all.into_iter().find(|(sign, _)| self.rest().starts_with(sign)) {
            Some((sign, relation)) => {
                self.at += sign.len();
                Ok(relation)
            }
            None => Err(self.mistake(
                self.at,
                format!("A comparison was expected{}.", self.found()),
                "Comparisons are <, <=, > and >=.".to_owned(),
            )),
        }
    }

    /// A number and the unit behind it, which may be empty.
    pub(crate) fn number(&mut self) -> Result<(f64, &'a str), Mistake> {
        self.skip_blanks();
        let from = self.at;
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == '-' || c == '+';
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        let Ok(number) = rest[..end].parse::<f64>() else {
            return Err(self.mistake(
                from,
                format!("A number was expected{}.", self.found()),
                format!("An example: `{}`.", self.example()),
            ));
        };
        self.at += end;
        self.skip_blanks();
        let unit = if self.has("%") { "%" } else { self.word() };
        Ok((number, unit))
    }

    pub(crate) fn end(&mut self) -> Result<(), Mistake> {
        self.skip_blanks();
        match self.rest().is_empty() {
            true => Ok(()),
            false => Err(self.mistake(
                self.at,
                format!("Nothing was expected any more{}.", self.found()),
                format!("One comparison is one {}; write several as a list.", self.kind),
            )),
        }
    }

    fn found(&self) -> String {
        match self.rest().split_whitespace().next() {
            Some(word) => format!(", but `{word}` was found"),
            None => ", but the text ends here".to_owned(),
        }
    }

    fn example(&self) -> &'static str {
        if self.kind == "gate" { "tps.ratio.low > 0.97" } else { "p99 < 20ms" }
    }
}
