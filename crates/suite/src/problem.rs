//! What is wrong with a suite, where, and what to do about it.

use std::fmt;

use dyno_core::nearest;

use crate::source::{Source, Span};

/// A place in a suite file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as it was named by the user, or `bundled:NAME.toml`.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The line, with passwords masked.
    pub text: String,
    /// How many characters from `column` on are meant; at least 1.
    pub length: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        // Control characters would move the cursor; a tab has no fixed width.
        let shown: String =
            self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let cells = |from: usize, count: usize| -> usize {
            self.text.chars().skip(from).take(count).map(cells_of).sum()
        };
        let before = " ".repeat(cells(0, self.column - 1));
        let marks = "^".repeat(cells(self.column - 1, self.length).max(1));
        writeln!(f, "{gutter}--> {}:{}:{}", self.file, self.line, self.column)?;
        writeln!(f, "{gutter} |")?;
        writeln!(f, "{number} | {}", shown.trim_end())?;
        write!(f, "{gutter} | {before}{marks}")
    }
}

/// Terminal cells of a character: 2 for Chinese, Japanese and Korean ones, or the marks would
/// stand under the wrong word.
fn cells_of(c: char) -> usize {
    match u32::from(c) {
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff => 2,
        0xfe30..=0xfe6f | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// One thing that is wrong. Its `Display` form has several lines: the message, the place with the
/// line underlined, and a `hint:` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// A full sentence.
    pub message: String,
    /// Where, if it is in a file.
    pub place: Option<Place>,
    /// A remedy, if one is known.
    pub hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Problem { message: message.into(), place: None, hint: None }
    }

    /// Says where it is, unless the text is no file that somebody has written.
    pub(crate) fn at(mut self, source: &Source, span: &Span) -> Self {
        self.place = (!source.file.is_empty()).then(|| source.place(span));
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(place) = &self.place {
            write!(f, "\n{place}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

/// All that is wrong with a suite, in the order of the file. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteError {
    /// The problems; a command-line program prints each after its own `error: `.
    pub problems: Vec<Problem>,
}

impl From<Problem> for SuiteError {
    fn from(problem: Problem) -> Self {
        SuiteError { problems: vec![problem] }
    }
}

impl fmt::Display for SuiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for SuiteError {}

/// `Did you mean ...?`, or the list of all that is known.
pub(crate) fn hint_of_known(written: &str, what: &str, known: &[&str]) -> String {
    match nearest(written, known.iter().copied()) {
        Some(name) => format!("Did you mean `{name}`?"),
        None => format!("{what}: {}.", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_under_wide_characters() {
        let source = Source { file: "a.toml".into(), text: "标题 = 5\nb = 1\n".into() };
        let shown = source.place(&(9..10)).to_string();
        assert_eq!(shown, " --> a.toml:1:6\n  |\n1 | 标题 = 5\n  |        ^");
        assert_eq!(source.place(&(900..901)).line, 3);
    }
}
