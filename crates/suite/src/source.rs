//! The text of a file and the places in it.

use crate::problem::SuitePlace;
use dyno_facts::mask_line;

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
