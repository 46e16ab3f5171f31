//! Reads a TOML table key by key, collecting what is wrong instead of stopping at the first.
//!
//! Each accessor registers the key it asks for, so the known keys are listed nowhere else: what
//! remains when the reader is finished is unknown.
//!
//! Faults of a suite, their places and their remedies.

use crate::suite::WithSpan;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use dyno_core::offer::WorkloadOffer;
use dyno_core::{in_one_line, nearest};
use dyno_facts::mask_line;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(crate) type Value<'t> = &'t Spanned<DeValue<'t>>;

pub(crate) struct Sheet<'s> {
    pub(crate) source: &'s Source,
    pub(crate) offers: &'s [WorkloadOffer],
    problems: RefCell<Vec<(usize, Problem)>>,
}

impl<'s> Sheet<'s> {
    pub(crate) fn new(source: &'s Source, offers: &'s [WorkloadOffer]) -> Self {
        Sheet { source, offers, problems: RefCell::default() }
    }

    /// Notes that something is wrong there; the hint may be empty.
    pub(crate) fn report(&self, span: &Span, message: impl Into<String>, hint: impl Into<String>) {
        let hint = Some(hint.into()).filter(|hint| !hint.is_empty());
        let problem = Problem::new(message).maybe_hint(hint).at(self.source, span);
        self.problems.borrow_mut().push((span.start, problem));
    }

    /// Notes that what is written there doesn't exist, with the nearest that does.
    pub(crate) fn report_unknown(
        &self,
        written: &WithSpan<String>,
        (what, all): (&str, &str),
        known: &[&str],
    ) {
        let message = format!("There is no {what} `{}`.", short(&written.value));
        self.report(&written.span, message, hint_of_known(&written.value, all, known));
    }

    pub(crate) fn into_problems(self) -> Vec<Problem> {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(|(start, _)| *start);
        problems.into_iter().map(|(_, problem)| problem).collect()
    }
}

pub(crate) struct Reader<'s, 't> {
    pub(crate) sheet: &'t Sheet<'s>,
    /// Name of the table in messages, such as `[suite]`.
    pub(crate) name: String,
    pub(crate) span: Span,
    entries: BTreeMap<&'t str, (Span, Value<'t>)>,
    known_keys: Vec<&'static str>,
}

impl<'s, 't> Reader<'s, 't> {
    pub(crate) fn new(
        sheet: &'t Sheet<'s>,
        name: impl Into<String>,
        span: Span,
        table: &'t DeTable<'t>,
    ) -> Self {
        let entries =
            table.iter().map(|(key, value)| (key.get_ref().as_ref(), (key.span(), value)));
        Reader {
            sheet,
            name: name.into(),
            span,
            entries: entries.collect(),
            known_keys: Vec::new(),
        }
    }

    /// The table in `value`, or a note that it is none.
    pub(crate) fn from_value(
        sheet: &'t Sheet<'s>,
        name: impl Into<String>,
        span: Span,
        value: Value<'t>,
    ) -> Option<Self> {
        let name = name.into();
        match value.get_ref() {
            DeValue::Table(table) => Some(Reader::new(sheet, name, span, table)),
            other => {
                let description = describe_value(other);
                sheet.report(
                    &value.span(),
                    format!("{name} must be a table, but is {description}."),
                    "",
                );
                None
            }
        }
    }

    /// Notes that something is wrong at `span`; the hint may be empty.
    pub(crate) fn report(&self, span: &Span, message: impl Into<String>, hint: impl Into<String>) {
        self.sheet.report(span, message, hint);
    }

    pub(crate) fn take_entry(&mut self, key: &'static str) -> Option<(Span, Value<'t>)> {
        self.known_keys.push(key);
        self.entries.remove(key)
    }

    /// Takes a key that is a table; reports any other value.
    pub(crate) fn table(&mut self, key: &'static str) -> Option<Reader<'s, 't>> {
        let (span, value) = self.take_entry(key)?;
        Reader::from_value(self.sheet, format!("`{key}`"), span, value)
    }

    pub(crate) fn report_missing(&self, key: &str, hint: &str) {
        self.report(&self.span, format!("{} has no `{key}`.", self.name), hint);
    }

    /// Returns true while the key is there and has not been taken.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// The place of a key that has not been taken.
    pub(crate) fn key_span(&self, key: &str) -> Option<Span> {
        self.entries.get(key).map(|(span, _)| span.clone())
    }

    /// Notes that the key is missing, unless it is there.
    pub(crate) fn require(&self, key: &str, hint: &str) {
        if !self.has(key) {
            self.report_missing(key, hint);
        }
    }

    /// Notes each key that excludes another one that is there: the first two words of a row, and why.
    pub(crate) fn refuse_both(&self, rows: &[(&str, &str, &str)]) {
        for (key, other, hint) in rows {
            if let (true, Some(span)) = (self.has(key), self.key_span(other)) {
                let message = format!("{} has both `{key}` and `{other}`.", self.name);
                self.report(&span, message, format!("{hint} Leave one of them out."));
            }
        }
    }

    /// Notes each key without the one that it needs: the first two words of a row, and what to do.
    pub(crate) fn refuse_alone(&self, rows: &[(&str, &str, &str)]) {
        for (key, needed, hint) in rows {
            if let (false, Some(span)) = (self.has(needed), self.key_span(key)) {
                let message = format!("{} has `{key}` without `{needed}`.", self.name);
                self.report(&span, message, *hint);
            }
        }
    }

    pub(crate) fn required_text(
        &mut self,
        key: &'static str,
        hint: &str,
    ) -> Option<WithSpan<String>> {
        self.require(key, hint);
        self.text(key)
    }

    /// All entries with their spans, in the order of the file: for tables whose keys are names.
    pub(crate) fn into_entries(self) -> Vec<(&'t str, Span, Value<'t>)> {
        let mut entries: Vec<_> =
            self.entries.into_iter().map(|(key, (span, value))| (key, span, value)).collect();
        entries.sort_by_key(|(_, span, _)| span.start);
        entries
    }

    /// Notes every key that no one asked for. `synonyms` are words of other tools; `otherwise` makes
    /// the hint when no known key is near, from the key and the list of known ones.
    pub(crate) fn finish(self, synonyms: Synonyms, otherwise: impl Fn(&str, String) -> String) {
        for (key, (span, _)) in &self.entries {
            let plain = key.replace('-', "_");
            let near = known_key(&plain, synonyms)
                .or_else(|| nearest(key, self.known_keys.iter().copied()));
            let hint = match near {
                Some(name) => format!("Did you mean `{name}`?"),
                None => otherwise(&plain, format!("Known keys: {}.", self.known_keys.join(", "))),
            };
            let message = format!("{} has an unknown key `{}`.", self.name, short(key));
            self.sheet.report(span, message, hint);
        }
    }

    /// A text that is not empty.
    pub(crate) fn text(&mut self, key: &'static str) -> Option<WithSpan<String>> {
        let (_, value) = self.take_entry(key)?;
        self.item_text(key, value)
    }

    /// A text without white space around it; empty if there is none.
    pub(crate) fn trimmed(&mut self, key: &'static str) -> String {
        self.text(key).map(|text| text.value.trim().to_owned()).unwrap_or_default()
    }

    /// A value that may be written in several ways; `wanted` names them.
    pub(crate) fn parsed<T>(
        &mut self,
        key: &'static str,
        wanted: &str,
        parse: impl Fn(&DeValue<'_>) -> Option<T>,
    ) -> Option<T> {
        let (_, value) = self.take_entry(key)?;
        parse(value.get_ref()).or_else(|| self.report_wrong(key, wanted, value))
    }

    /// True or false.
    pub(crate) fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.parsed(key, "true or false", |value| value.as_bool())
    }

    pub(crate) fn whole_number(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let (_, value) = self.take_entry(key)?;
        self.item_whole(key, value, &range).map(|written| written.value)
    }

    /// A number in `range`, with or without a fraction.
    pub(crate) fn number(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Option<f64> {
        let (_, value) = self.take_entry(key)?;
        self.item_number(key, value, &range).map(|written| written.value)
    }

    /// A list of texts, or one text. Texts must differ from each other.
    pub(crate) fn texts(&mut self, key: &'static str) -> Option<Vec<WithSpan<String>>> {
        self.read_list(key, |reader, value| reader.item_text(key, value))
    }

    /// A list of whole numbers, or one. Numbers must differ from each other.
    pub(crate) fn whole_numbers(
        &mut self,
        key: &'static str,
        range: &RangeInclusive<u64>,
    ) -> Option<Vec<WithSpan<u64>>> {
        self.read_list(key, |reader, value| reader.item_whole(key, value, range))
    }

    /// A list of numbers, or one. Numbers must differ from each other.
    pub(crate) fn numbers(
        &mut self,
        key: &'static str,
        range: &RangeInclusive<f64>,
    ) -> Option<Vec<WithSpan<f64>>> {
        self.read_list(key, |reader, value| reader.item_number(key, value, range))
    }

    fn read_list<T: PartialEq + std::fmt::Display>(
        &mut self,
        key: &'static str,
        read: impl Fn(&Self, Value<'t>) -> Option<WithSpan<T>>,
    ) -> Option<Vec<WithSpan<T>>> {
        let (_, value) = self.take_entry(key)?;
        let DeValue::Array(items) = value.get_ref() else {
            return read(self, value).map(|item| vec![item]);
        };
        if items.is_empty() {
            let message = format!("`{key}` is an empty list.");
            self.report(&value.span(), message, "Leave the key out, or fill it.");
        }
        let mut list: Vec<WithSpan<T>> = Vec::new();
        for item in items.iter() {
            let Some(item) = read(self, item) else { continue };
            if list.iter().any(|other| other.value == item.value) {
                let message = format!("`{key}` lists {} twice.", item.value);
                self.report(&item.span, message, "`repeats` repeats trials.");
            }
            list.push(item);
        }
        Some(list)
    }

    fn item_text(&self, key: &str, value: Value<'t>) -> Option<WithSpan<String>> {
        match value.get_ref() {
            DeValue::String(text) if !text.trim().is_empty() => {
                Some(WithSpan { value: text.to_string(), span: value.span() })
            }
            _ => self.report_wrong(key, "a text in quotes that is not empty", value),
        }
    }

    fn item_whole(
        &self,
        key: &str,
        value: Value<'t>,
        range: &RangeInclusive<u64>,
    ) -> Option<WithSpan<u64>> {
        let number = match value.get_ref() {
            DeValue::Integer(digits) => u64::from_str_radix(digits.as_str(), digits.radix()).ok(),
            _ => None,
        };
        match number.filter(|number| range.contains(number)) {
            Some(number) => Some(WithSpan { value: number, span: value.span() }),
            None => {
                let expected = format!("a whole number from {} to {}", range.start(), range.end());
                self.report_wrong(key, &expected, value)
            }
        }
    }

    pub(crate) fn item_number(
        &self,
        key: &str,
        value: Value<'t>,
        range: &RangeInclusive<f64>,
    ) -> Option<WithSpan<f64>> {
        let number = match value.get_ref() {
            DeValue::Integer(digits) => {
                i64::from_str_radix(digits.as_str(), digits.radix()).ok().map(|n| n as f64)
            }
            DeValue::Float(digits) => digits.as_str().parse().ok(),
            _ => None,
        };
        match number.filter(|number: &f64| range.contains(number)) {
            Some(number) => Some(WithSpan { value: number, span: value.span() }),
            None => {
                let expected = format!("a number from {} to {}", range.start(), range.end());
                self.report_wrong(key, &expected, value)
            }
        }
    }

    pub(crate) fn report_wrong<T>(&self, key: &str, wanted: &str, value: Value<'t>) -> Option<T> {
        let message =
            format!("`{key}` must be {wanted}, but is {}.", describe_value(value.get_ref()));
        self.report(&value.span(), message, "");
        None
    }
}

/// Known keys, and words of other tools for them with spaces between.
pub(crate) type Synonyms = &'static [(&'static str, &'static str)];

/// The key that has the meaning of a word of another tool.
pub(crate) fn known_key(word: &str, synonyms: Synonyms) -> Option<&'static str> {
    let mut rows = synonyms.iter();
    rows.find(|(_, words)| words.split(' ').any(|known| known == word)).map(|(key, _)| *key)
}

/// Describes a value, for messages. Texts are not repeated in full: they may be long or secret.
pub(crate) fn describe_value(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) if text.trim().is_empty() => "an empty text".into(),
        DeValue::String(_) => "a text".into(),
        DeValue::Integer(digits) => match digits.radix() {
            10 => short(digits.as_str()),
            radix => format!("{} (base {radix})", short(digits.as_str())),
        },
        DeValue::Float(digits) => short(digits.as_str()),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => "a date or time".into(),
        DeValue::Array(items) if items.is_empty() => "an empty list".into(),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
    }
}

/// A name as it goes into a message: not longer than a line.
pub(crate) fn short(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_string(),
    }
}

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
    /// Number of characters from `column` on that are concerned; at least 1.
    pub length: usize,
}

impl fmt::Display for SuitePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.column - 1;
        let span = byte_offset(&self.text, start)..byte_offset(&self.text, start + self.length);
        let snippet = Snippet::source(&self.text)
            .path(&self.file)
            .line_start(self.line)
            .annotation(AnnotationKind::Primary.span(span));
        let report = [Group::with_level(Level::ERROR).element(snippet)];
        f.write_str(&Renderer::plain().render(&report))
    }
}

/// The byte at which a character begins, counted from 0; the end of the text if it has fewer.
fn byte_offset(text: &str, character: usize) -> usize {
    text.char_indices().nth(character).map_or(text.len(), |(at, _)| at)
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

    /// Adds its place, unless the text is not a file that somebody has written.
    pub(crate) fn at(mut self, source: &Source, span: &Span) -> Self {
        self.place = (!source.file.is_empty()).then(|| source.place(span));
        self
    }

    /// Adds what the user can do about it.
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
        // Stored plans are suites of others, and messages contain their names.
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
    /// Parses the text as TOML; the error has its place.
    pub(crate) fn parse(&self) -> Result<Spanned<DeTable<'_>>, Problem> {
        DeTable::parse(&self.text).map_err(|error| {
            let message = format!("This is not valid TOML: {}.", error.message());
            Problem::new(message).at(self, &error.span().unwrap_or(0..0))
        })
    }

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
        let rendered = source.place(&(9..10)).to_string();
        assert_eq!(rendered, " --> a.toml:1:6\n  |\n1 | 标题 = 5\n  |        ^");
        assert_eq!(source.place(&(900..901)).line, 3);
    }
}
