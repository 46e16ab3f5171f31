//! `[paper]`: what the publisher of a paper says. It decides nothing that is executed.

use crate::logo;
use crate::problem::{Problem, Source, Span, SuiteError, hint_of_known};
use crate::reader::{Reader, Sheet, short};
use crate::suite::{SuiteTarget, WithSpan};
use dyno_facts::{BothTexts, CONTRAST_MIN, Colour, PaperTexts, TargetTexts, WHITE};
use std::collections::BTreeMap;
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
    if let Some(written) = table.text("logo") {
        match logo::read(&sheet.source.file, &written.value) {
            Ok(data) => texts.logo = data,
            Err((message, hint)) => sheet.note(&written.span, Problem::new(message).hint(hint)),
        }
    }
    texts.authors = values(table.texts("authors").unwrap_or_default());
    let mut names = table.texts("order").unwrap_or_default();
    texts.order = values(names.clone());
    let targets = table
        .take("target")
        .and_then(|(span, value)| Reader::of_value(sheet, "[paper.target]", span, value));
    for (name, span, value) in targets.into_iter().flat_map(Reader::into_entries) {
        let title = format!("[paper.target.{}]", short(name));
        if let Some(own) = Reader::of_value(sheet, title, span.clone(), value) {
            let own = target(own, &texts.targets);
            texts.targets.insert(name.to_owned(), own);
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

/// Colours that are nearer to each other look alike in thin lines: those that differ by some 60 of 441 do not.
const DISTANCE_MIN: f64 = 60.0;

/// A colour that can be read on white and told from those of `others`.
fn colour(table: &mut Reader<'_, '_>, others: &BTreeMap<String, TargetTexts>) -> String {
    let Some(written) = table.text("colour") else { return String::new() };
    let value = &written.value;
    let Some(colour) = Colour::parse(value) else {
        let message = format!("`{}` is not a colour.", short(value));
        table.note(&written.span, Problem::new(message).hint("Write it as `#0068a8`."));
        return String::new();
    };
    let contrast = colour.contrast(WHITE);
    if contrast < CONTRAST_MIN {
        let message = format!(
            "The contrast of the colour {value} to white is {contrast:.1} : 1; names in charts need {CONTRAST_MIN} : 1."
        );
        table.note(&written.span, Problem::new(message).hint("Choose a darker colour."));
    }
    let is_near = |other: &&Colour| other.distance(colour) < DISTANCE_MIN;
    let near = others.values().filter_map(|other| Colour::parse(&other.colour)).collect::<Vec<_>>();
    if let Some(other) = near.iter().find(is_near) {
        let message = format!("The colours {value} and {} can't be told apart.", other.hex());
        table.note(&written.span, Problem::new(message).hint("Choose colours of other hues."));
    }
    colour.hex()
}

fn target(mut table: Reader<'_, '_>, others: &BTreeMap<String, TargetTexts>) -> TargetTexts {
    let texts = TargetTexts {
        name: both(&mut table, "name", "name_zh"),
        class: table.text("class").map(|text| text.value),
        vcpu: table.number("vcpu", 0.01..=100_000.0),
        memory_gib: table.number("memory_gib", 0.01..=1_000_000.0),
        colour: colour(&mut table, others),
    };
    table.finish(&[("title", "name"), ("color", "colour")], |_, known| known);
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
    fn colours_must_be_legible_and_unlike() {
        let colours = |a: &str, b: &str| {
            let text = format!("[target.a]\ncolour = \"{a}\"\n[target.b]\ncolour = \"{b}\"\n");
            publication("p.toml", &text).map_err(|error| error.to_string())
        };
        let read = colours("#0068A8", "#c00000").expect("they are right");
        assert_eq!(read.targets["a"].colour, "#0068a8");
        for (a, b, why) in [
            ("blue", "#c00000", "`blue` is not a colour"),
            ("#0068a8", "#ffcc00", "contrast of the colour #ffcc00 to white is 1.5 : 1"),
            ("#0068a8", "#0070b0", "can't be told apart"),
        ] {
            let error = colours(a, b).expect_err(why);
            assert!(error.contains(why) && error.contains("p.toml:"), "{error}");
        }
    }

    #[test]
    fn an_unknown_key_has_its_place() {
        let error = publication("p.toml", "organization = \"X\"\n").expect_err("it is wrong");
        let text = error.to_string();
        assert!(text.contains("organization") && text.contains("organisation"), "{text}");
    }
}
