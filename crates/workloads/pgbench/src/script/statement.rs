//! SQL statements and the variables in them.

use super::scanner::{continues_name, starts_name};
use super::sql::Piece;
use super::{Names, QueryMode, ScriptError};
use dyno_core::{Dialect, text_from_bytes};

/// References to variables that a statement may have where they become parameters.
const MOST_REFERENCES: usize = 255;
/// What reports show of a statement.
const FIRST_LINE_BYTES: usize = 127;

/// A statement, or several joined by `\;`, sent as one command.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    /// As the script has it, in any encoding.
    pub(crate) text: Vec<u8>,
    pub(crate) references: Vec<Reference>,
    pub(crate) store: Option<Store>,
    /// True for several statements in one.
    pub(crate) is_chain: bool,
    /// True for COPY from or to the client, which isn't supported.
    pub(crate) is_copy: bool,
}

/// A variable in the text of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The bytes of the text that name it, colon included.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) variable: u32,
    /// It stands in a literal, a quoted name or a comment.
    pub(crate) is_quoted: bool,
}

/// `\gset` and `\aset`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Store {
    pub(crate) prefix: String,
    /// Exactly one row of the last result; else the last row of each.
    pub(crate) is_gset: bool,
}

impl Store {
    pub(crate) fn command(&self) -> &'static str {
        if self.is_gset { "gset" } else { "aset" }
    }
}

/// COPY whose rows would come from the client or go to it.
fn is_copy(text: &str) -> bool {
    let mut words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let is_client =
        |word: &str| word.eq_ignore_ascii_case("stdin") || word.eq_ignore_ascii_case("stdout");
    words.next().is_some_and(|word| word.eq_ignore_ascii_case("copy")) && words.any(is_client)
}

/// The text with a `?` for each byte that is not UTF-8: most other encodings have a byte for each letter, by which the
/// server's positions count.
pub(crate) fn shown_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

impl Statement {
    /// The statement of a piece from byte `skipped` on.
    pub(crate) fn new(
        piece: &Piece,
        skipped: usize,
        mode: QueryMode,
        names: &mut Names,
        error: impl Fn(String) -> ScriptError,
    ) -> Result<Self, ScriptError> {
        let text = &piece.text[skipped..];
        let is_quoted =
            |at: usize| piece.quoted.iter().any(|range| range.contains(&(at + skipped)));
        let mut references = Vec::new();
        let mut at = 0;
        while let Some(colon) = text[at..].iter().position(|&byte| byte == b':') {
            at += colon;
            if text.get(at + 1).is_some_and(|&byte| starts_name(byte)) {
                let name = text[at + 1..].iter().take_while(|&&byte| continues_name(byte));
                let end = at + 1 + name.count();
                let variable = names.number(&text_from_bytes(&text[at + 1..end]));
                references.push(Reference { start: at, end, variable, is_quoted: is_quoted(at) });
                at = end;
            } else {
                at += text[at..].iter().take_while(|&&byte| byte == b':').count();
            }
        }
        if mode != QueryMode::Simple && references.len() > MOST_REFERENCES {
            return Err(error(format!(
                "statement has too many arguments (maximum is {MOST_REFERENCES}): {}",
                shown_text(text)
            )));
        }
        let (is_chain, is_copy) = (piece.is_chain, is_copy(&shown_text(text)));
        Ok(Statement { text: text.to_vec(), references, store: None, is_chain, is_copy })
    }

    /// True when nothing but its success matters.
    pub(crate) fn is_plain(&self) -> bool {
        self.store.is_none() && !self.is_chain && !self.is_copy
    }

    pub(crate) fn first_line(&self) -> String {
        let text = shown_text(&self.text);
        let mut length = text.len().min(FIRST_LINE_BYTES);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        let line = &text[..length];
        line.split(['\n', '\r']).next().unwrap_or_default().to_owned()
    }

    /// Turns references into parameters: the text with the dialect's placeholders, whose order is
    /// that of the references kept. PostgreSQL gets one for every reference, even in literals, as
    /// pgbench does; elsewhere what is quoted stays as it is.
    pub(crate) fn parameterize(&mut self, dialect: Dialect) {
        if dialect != Dialect::Postgres {
            self.references.retain(|reference| !reference.is_quoted);
        }
        let mut text = Vec::with_capacity(self.text.len());
        let mut done = 0;
        for (number, reference) in self.references.iter_mut().enumerate() {
            text.extend_from_slice(&self.text[done..reference.start]);
            done = reference.end;
            reference.start = text.len();
            let mut placeholder = String::new();
            dialect.push_placeholder(&mut placeholder, number + 1);
            text.extend_from_slice(placeholder.as_bytes());
            reference.end = text.len();
        }
        text.extend_from_slice(&self.text[done..]);
        self.text = text;
    }
}
