//! `[paper]`: what the publisher of a paper says. It decides nothing that is executed.

use crate::problem::{Problem, SuiteError, hint_of_known};
use crate::reader::{Reader, Sheet, short};
use crate::source::{Source, Span};
use crate::suite::{SuiteTarget, WithSpan};
use dyno_facts::{BothTexts, PaperTexts, TargetTexts};
use toml::de::DeTable;

/// The texts, and where names of targets stand.
#[derive(Default)]
pub(crate) struct Publication {
    pub(crate) texts: PaperTexts,
    names: Vec<WithSpan<String>>,
}

/// Reads a file that has the keys of `[paper]`, for a paper whose suite has none or others.
///
/// # Errors
/// What is wrong in it, with its place.
pub fn publication(file: &str, text: &str) -> Result<PaperTexts, SuiteError> {
    let source = Source { file: file.to_string(), text: text.to_string() };
    let root = DeTable::parse(text).map_err(|error| {
        let message = format!("This is not valid TOML: {}.", error.message());
        Problem::new(message).at(&source, &error.span().unwrap_or(0..0))
    })?;
    let sheet = Sheet::new(&source, &[]);
    let read = read(Reader::new(&sheet, "The file", 0..0, root.get_ref()));
    let problems = sheet.into_problems();
    if problems.is_empty() { Ok(read.texts) } else { Err(SuiteError { problems }) }
}

pub(crate) fn read(mut table: Reader<'_, '_>) -> Publication {
    let sheet = table.sheet;
    let mut both = |en: &'static str, zh: &'static str| both(&mut table, en, zh);
    let mut texts = PaperTexts {
        title: both("title", "title_zh"),
        subtitle: both("subtitle", "subtitle_zh"),
        organisation: both("organisation", "organisation_zh"),
        preface: both("preface", "preface_zh"),
        introduction: both("introduction", "introduction_zh"),
        conclusions: both("conclusions", "conclusions_zh"),
        legal: both("legal", "legal_zh"),
        ..PaperTexts::default()
    };
    texts.date = table.trimmed("date");
    texts.authors = values(table.texts("authors").unwrap_or_default());
    let mut names = table.texts("order").unwrap_or_default();
    texts.order = values(names.clone());
    let targets = table
        .take("target")
        .and_then(|(span, value)| Reader::of_value(sheet, "[paper.target]", span, value));
    for (name, span, value) in targets.into_iter().flat_map(Reader::into_entries) {
        let title = format!("[paper.target.{}]", short(name));
        if let Some(own) = Reader::of_value(sheet, title, span.clone(), value) {
            texts.targets.insert(name.to_owned(), target(own));
            names.push(WithSpan { value: name.to_owned(), span });
        }
    }
    table.finish(&[("author", "authors"), ("organization", "organisation")], |_, known| known);
    Publication { texts, names }
}

fn values(texts: Vec<WithSpan<String>>) -> Vec<String> {
    texts.into_iter().map(|text| text.value).collect()
}

fn both(table: &mut Reader<'_, '_>, en: &'static str, zh: &'static str) -> BothTexts {
    BothTexts { en: table.trimmed(en), zh: table.trimmed(zh) }
}

fn target(mut table: Reader<'_, '_>) -> TargetTexts {
    let texts = TargetTexts {
        name: both(&mut table, "name", "name_zh"),
        class: table.text("class").map(|text| text.value),
        vcpu: table.number("vcpu", 0.01..=100_000.0),
        memory_gib: table.number("memory_gib", 0.01..=1_000_000.0),
    };
    table.finish(&[("title", "name")], |_, known| known);
    texts
}

/// Names must be those of targets; without any readable target the real problem has been said already.
pub(crate) fn check_targets(sheet: &Sheet<'_>, own: &Publication, targets: &[SuiteTarget]) {
    let known: Vec<&str> = targets.iter().map(|target| target.name.value.as_str()).collect();
    let unknown =
        |name: &&WithSpan<String>| !known.is_empty() && !known.contains(&name.value.as_str());
    for name in own.names.iter().filter(unknown) {
        let message = format!("There is no target `{}`.", short(&name.value));
        let hint = hint_of_known(&name.value, "Targets of this file", &known);
        let span: &Span = &name.span;
        sheet.note(span, Problem::new(message).hint(hint));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_publisher_names_targets_in_both_languages_and_in_an_order() {
        let text = "title = \"T\"\ntitle_zh = \"题\"\norder = [\"b\", \"a\"]\n[target.a]\nname = \"Product A\"\nvcpu = 4\n";
        let read = publication("p.toml", text).expect("it is right");
        assert_eq!((read.title.en.as_str(), read.title.zh.as_str()), ("T", "题"));
        assert_eq!(read.order, ["b", "a"]);
        let target = &read.targets["a"];
        assert_eq!((target.name.en.as_str(), target.vcpu), ("Product A", Some(4.0)));
    }

    #[test]
    fn an_unknown_key_has_its_place() {
        let error = publication("p.toml", "organization = \"X\"\n").expect_err("it is wrong");
        let text = error.to_string();
        assert!(text.contains("organization") && text.contains("organisation"), "{text}");
    }
}
