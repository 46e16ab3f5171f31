//! What is wrong with a suite, where, and what to do about it.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use dyno_core::{in_one_line, nearest};
use dyno_facts::mask_line;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuitePlace {
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

impl fmt::Display for SuitePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |column: usize| {
            self.text.char_indices().nth(column).map_or(self.text.len(), |(at, _)| at)
        };
        let span = at(self.column - 1)..at(self.column - 1 + self.length);
        let snippet = Snippet::source(&self.text)
            .path(&self.file)
            .line_start(self.line)
            .annotation(AnnotationKind::Primary.span(span));
        let report = [Group::with_level(Level::ERROR).element(snippet)];
        f.write_str(&Renderer::plain().render(&report))
    }
}

/// One thing that is wrong. Its `Display` form has several lines: the message, the place with the
/// line underlined, and a `hint:` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub message: String,
    pub place: Option<SuitePlace>,
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
        // Stored plans are suites of others, and their names stand in messages.
        f.write_str(&in_one_line(&self.message))?;
        if let Some(place) = &self.place {
            write!(f, "\n{place}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {}", in_one_line(hint))?;
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

/// Bytes `start..end` of a file's text.
pub(crate) type Span = std::ops::Range<usize>;

/// A file's name as the user gave it, and its text.
#[derive(Clone, Default)]
pub(crate) struct Source {
    pub(crate) file: String,
    pub(crate) text: String,
}

impl Source {
    /// Line, column and text of where `span` begins. Any span is accepted: what lies outside of
    /// the text is moved to its end.
    pub(crate) fn place(&self, span: &Span) -> SuitePlace {
        let start = self.boundary(span.start);
        let end = self.boundary(span.end.max(start));
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |at| start + at);
        let line = self.text[line_start..line_end].trim_end_matches('\r');
        let column = self.text[line_start..start].chars().count() + 1;
        let marked = self.text[start..end.min(line_end)].trim_end();
        SuitePlace {
            file: self.file.clone(),
            line: self.text[..start].matches('\n').count() + 1,
            column,
            text: mask_line(line),
            length: marked.chars().count().max(1),
        }
    }
}

impl Source {
    /// The last beginning of a character, or the end of the text, not after `at`.
    fn boundary(&self, at: usize) -> usize {
        let at = at.min(self.text.len());
        (0..=at).rev().find(|&at| self.text.is_char_boundary(at)).unwrap_or(0)
    }
}

impl std::fmt::Debug for Source {
    // The text can hold passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Source({:?}, {} bytes)", self.file, self.text.len())
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
