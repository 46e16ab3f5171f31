//! Texts alongside the plan: `[paper]`, what the publisher of a paper says, which decides nothing that is executed; the
//! logo that it names; and the scripts that an experiment names. A plan holds the files of both, so that a stored run
//! can be continued and printed without them.

use crate::reader::{Problem, Reader, Sheet, Source, SuiteError, short};
use crate::suite::{
    BUNDLED_PREFIX, OptionEntry, Suite, SuiteExperiment, SuiteTarget, WithSpan, bundled_scripts,
};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use dyno_facts::{BothTexts, CONTRAST_MIN, Color, PaperTexts, ScriptFacts, TargetTexts, WHITE};
use sha2::{Digest, Sha256};
use std::path::{Component, Path};

/// A logo is part of every paper, and of `run.json`.
const LOGO_BYTES_MAX: u64 = 64 << 10;
/// A longer script is refused: it is some other file.
const SCRIPT_BYTES_MAX: u64 = 1 << 20;

/// The texts, and the names of targets with their places.
#[derive(Default)]
pub(crate) struct Publication {
    pub(crate) texts: PaperTexts,
    names: Vec<WithSpan<String>>,
}

/// Reads a file that has the keys of `[paper]`, for a paper whose suite has none or others.
///
/// # Errors
/// The publisher's texts, or an error with its place.
pub fn publication(file: &str, text: &str) -> Result<PaperTexts, SuiteError> {
    let source = Source { file: file.to_string(), text: text.to_string() };
    let root = source.parse()?;
    let sheet = Sheet::new(&source, &[]);
    let read = read_publication(Reader::new(&sheet, "The file", 0..0, root.get_ref()));
    let problems = sheet.into_problems();
    if problems.is_empty() { Ok(read.texts) } else { Err(SuiteError { problems }) }
}

pub(crate) fn read_publication(mut table: Reader<'_, '_>) -> Publication {
    let sheet = table.sheet;
    let mut texts = PaperTexts {
        title: read_bilingual(&mut table, "title", "title_zh"),
        subtitle: read_bilingual(&mut table, "subtitle", "subtitle_zh"),
        organization: read_bilingual(&mut table, "organization", "organization_zh"),
        preface: read_bilingual(&mut table, "preface", "preface_zh"),
        introduction: read_bilingual(&mut table, "introduction", "introduction_zh"),
        conclusions: read_bilingual(&mut table, "conclusions", "conclusions_zh"),
        legal: read_bilingual(&mut table, "legal", "legal_zh"),
        ..PaperTexts::default()
    };
    texts.date = table.trimmed("date");
    if let Some(written) = table.text("logo") {
        match read_logo(&sheet.source.file, &written.value) {
            Ok(data) => texts.logo = data,
            Err((message, hint)) => sheet.report(&written.span, message, hint),
        }
    }
    texts.authors = WithSpan::values(table.texts("authors").unwrap_or_default());
    let mut names = table.texts("order").unwrap_or_default();
    texts.order = WithSpan::values(names.clone());
    let targets = table.take_entry("target");
    let targets =
        targets.and_then(|(at, value)| Reader::from_value(sheet, "[paper.target]", at, value));
    for (name, span, value) in targets.into_iter().flat_map(Reader::into_entries) {
        let title = format!("[paper.target.{}]", short(name));
        if let Some(table) = Reader::from_value(sheet, title, span.clone(), value) {
            texts.targets.insert(name.to_owned(), read_target_texts(table));
            names.push(WithSpan { value: name.to_owned(), span });
        }
    }
    table.finish(&[("authors", "author"), ("organization", "organization")], |_, known| known);
    Publication { texts, names }
}

fn read_bilingual(table: &mut Reader<'_, '_>, en: &'static str, zh: &'static str) -> BothTexts {
    BothTexts { en: table.trimmed(en), zh: table.trimmed(zh) }
}

/// A color that can be read on white.
fn color(table: &mut Reader<'_, '_>) -> String {
    let Some(written) = table.text("color") else { return String::new() };
    let value = &written.value;
    let Some(color) = Color::parse(value) else {
        let message = format!("`{}` is not a color.", short(value));
        table.report(&written.span, message, "Write it as `#0068a8`.");
        return String::new();
    };
    let contrast = color.contrast(WHITE);
    if contrast < CONTRAST_MIN {
        let message = format!(
            "The contrast of the color {value} to white is {contrast:.1} : 1; names in charts need {CONTRAST_MIN} : 1."
        );
        table.report(&written.span, message, "Choose a darker color.");
    }
    color.hex()
}

/// Reads `[paper.target.NAME]`: the name, the class and the color that a paper gives a target. Problems go to the
/// sheet.
fn read_target_texts(mut table: Reader<'_, '_>) -> TargetTexts {
    let texts = TargetTexts {
        name: read_bilingual(&mut table, "name", "name_zh"),
        class: table.text("class").map(|text| text.value),
        vcpu: table.number("vcpu", 0.01..=100_000.0),
        memory_gib: table.number("memory_gib", 0.01..=1_000_000.0),
        color: color(&mut table),
    };
    table.finish(&[("name", "title"), ("color", "color")], |_, known| known);
    texts
}

/// Names must be those of targets; without any readable target the real problem has been reported already.
pub(crate) fn check_targets(sheet: &Sheet<'_>, publication: &Publication, targets: &[SuiteTarget]) {
    let names: Vec<&str> = targets.iter().map(|target| target.name.value.as_str()).collect();
    for name in &publication.names {
        if !names.is_empty() && !names.contains(&name.value.as_str()) {
            sheet.report_unknown(name, ("target", "Targets of this file"), &names);
        }
    }
}

/// A file alongside `file`; why it can't be taken completes the sentence "The file ...".
fn read_beside(file: &str, name: &str, bytes_max: u64) -> Result<Vec<u8>, String> {
    let path = Path::new(file).parent().unwrap_or(Path::new("")).join(name);
    // The size first: reading a huge file to refuse it would take long.
    let size = std::fs::metadata(&path).map_err(|error| unreadable(&path, &error))?.len();
    if size > bytes_max {
        return Err(format!("{} has {size} bytes, more than {bytes_max}.", path.display()));
    }
    std::fs::read(&path).map_err(|error| unreadable(&path, &error))
}

/// Completes the sentence "The file ...".
fn unreadable(path: &Path, error: &std::io::Error) -> String {
    format!("{} can't be read: {error}.", path.display())
}

/// The logo as a `data:` URL; what is wrong comes with a remedy.
fn read_logo(file: &str, name: &str) -> Result<String, (String, String)> {
    let encoded = encode_logo(file, name);
    encoded.map_err(|reason| {
        let max_kib = LOGO_BYTES_MAX >> 10;
        let remedy = format!(
            "Name a PNG or an SVG of at most {max_kib} KiB next to the file that names it."
        );
        (reason, remedy)
    })
}

fn encode_logo(file: &str, name: &str) -> Result<String, String> {
    if file.starts_with(BUNDLED_PREFIX) {
        return Err("A bundled suite has no logo.".to_owned());
    }
    let bytes =
        read_beside(file, name, LOGO_BYTES_MAX).map_err(|reason| format!("The logo {reason}"))?;
    let kind = image_kind(&bytes).map_err(|reason| format!("The logo {name} {reason}."))?;
    Ok(format!("data:image/{kind};base64,{}", BASE64_STANDARD.encode(&bytes)))
}

fn image_kind(bytes: &[u8]) -> Result<&'static str, &'static str> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Ok("png");
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "is neither a PNG nor an SVG")?;
    if !text.contains("<svg") || !text.contains("http://www.w3.org/2000/svg") {
        return Err("is neither a PNG nor an SVG");
    }
    // A paper works offline, and shows what it holds.
    let text = text.to_ascii_lowercase();
    let active = ["<script", "<foreignobject", "href=\"http", "href='http", "url(http", "@import"];
    if active.iter().any(|part| text.contains(part)) {
        return Err("refers to other files or has scripts");
    }
    Ok("svg+xml")
}

pub(crate) fn read_scripts(
    suite: &Suite,
    experiment: &SuiteExperiment,
) -> Result<Vec<ScriptFacts>, SuiteError> {
    let options = experiment.options.iter();
    let entries: Vec<&OptionEntry> =
        options.filter(|entry| entry.name.starts_with("scripts.")).collect();
    let test = &experiment.test;
    let takes_scripts = test.value == "script";
    match entries.first() {
        None if takes_scripts => {
            let message = "The test `script` has no scripts.";
            let hint = "Add `scripts = [\"my.sql\"]` to the options: files in the suite's folder.";
            let problem = Problem::new(message).hint(hint);
            return Err(problem.at(&suite.text, &test.span).into());
        }
        Some(first) if !takes_scripts => {
            let message = format!("The test `{}` takes no scripts.", test.value);
            let problem = Problem::new(message).hint("Write `test = \"script\"`.");
            return Err(problem.at(&suite.text, &first.key_span).into());
        }
        _ => {}
    }
    let mut scripts = Vec::new();
    for entry in &entries {
        let script = read_script(suite, &entry.value);
        scripts.push(script.map_err(|problem| problem.at(&suite.text, &entry.value_span))?);
    }
    if let (Some(first), true) = (entries.first(), scripts.iter().all(|script| script.weight == 0))
    {
        let problem = Problem::new("No script has a weight above 0, so nothing would run.")
            .hint("Write `FILE@WEIGHT`; without `@` the weight is 1.");
        return Err(problem.at(&suite.text, &first.value_span).into());
    }
    Ok(scripts)
}

/// `FILE` or `FILE@WEIGHT`.
fn read_script(suite: &Suite, written: &str) -> Result<ScriptFacts, Problem> {
    let (name, weight) = written.rsplit_once('@').unwrap_or((written, "1"));
    let weight = weight.parse().map_err(|_| {
        Problem::new(format!("`{weight}` is not a weight."))
            .hint("Write `FILE@WEIGHT`, the weight being a whole number from 0 on.")
    })?;
    if let Some((_, text)) = suite.script_texts.iter().find(|(given, _)| given == name) {
        let (name, text, sha256) = (name.to_owned(), text.clone(), sha256_hex(text));
        return Ok(ScriptFacts { name, weight, text, sha256 });
    }
    let mut components = Path::new(name).components();
    let is_inside = components.all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if name.is_empty() || !is_inside {
        let problem = Problem::new(format!("The script `{name}` is not in the suite's folder."));
        return Err(problem.hint(
            "Put the file next to the suite, or into a folder next to it, and write its relative path.",
        ));
    }
    let text = read_script_text(&suite.text.file, name)?;
    Ok(ScriptFacts { name: name.to_owned(), weight, sha256: sha256_hex(&text), text })
}

fn sha256_hex(text: &str) -> String {
    dyno_core::hex(&Sha256::digest(text.as_bytes()))
}

fn read_script_text(suite_file: &str, name: &str) -> Result<String, Problem> {
    if suite_file.starts_with(BUNDLED_PREFIX) {
        let script = bundled_scripts().iter().find(|(bundled, _)| *bundled == name);
        return script.map(|(_, text)| (*text).to_owned()).ok_or_else(|| {
            let names: Vec<&str> = bundled_scripts().iter().map(|(name, _)| *name).collect();
            Problem::new(format!("The script `{name}` is not bundled."))
                .hint(format!("Bundled scripts: {}.", names.join(", ")))
        });
    }
    let text = read_beside(suite_file, name, SCRIPT_BYTES_MAX).and_then(|bytes| {
        String::from_utf8(bytes).map_err(|error| format!("{name} can't be read: {error}."))
    });
    text.map_err(|reason| {
        let hint = "Scripts are searched in the folder of the suite.";
        Problem::new(format!("The script {reason}")).hint(hint)
    })
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

    fn read_colors(a: &str, b: &str) -> Result<PaperTexts, String> {
        let text = format!("[target.a]\ncolor = \"{a}\"\n[target.b]\ncolor = \"{b}\"\n");
        publication("p.toml", &text).map_err(|error| error.to_string())
    }

    #[test]
    fn colors_must_be_legible() {
        let read = read_colors("#0068A8", "#c00000").expect("they are right");
        assert_eq!(read.targets["a"].color, "#0068a8");
        for (a, b, why) in [
            ("blue", "#c00000", "`blue` is not a color"),
            ("#0068a8", "#ffcc00", "contrast of the color #ffcc00 to white is 1.5 : 1"),
        ] {
            let error = read_colors(a, b).expect_err(why);
            assert!(error.contains(why) && error.contains("p.toml:"), "{error}");
        }
    }

    #[test]
    fn an_unknown_key_has_its_place() {
        let error = publication("p.toml", "organisation = \"X\"\n").expect_err("it is wrong");
        let text = error.to_string();
        assert!(text.contains("organisation") && text.contains("organization"), "{text}");
    }

    const SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 2 1\"><path d=\"M0,0h2v1z\"/></svg>";

    fn read_written_logo(name: &str, bytes: &[u8]) -> Result<String, (String, String)> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(name), bytes).expect("written");
        read_logo(&folder.path().join("paper.toml").to_string_lossy(), name)
    }

    #[test]
    fn png_and_svg_become_data_urls() {
        let png = read_written_logo("a.png", b"\x89PNG\r\n\x1a\nrest").expect("a PNG");
        assert!(png.starts_with("data:image/png;base64,iVBORw0KGgpyZXN0"), "{png}");
        let svg = read_written_logo("a.svg", SVG.as_bytes()).expect("an SVG");
        assert!(svg.starts_with("data:image/svg+xml;base64,PHN2Zy"), "{svg}");
    }

    #[test]
    fn other_files_and_large_ones_are_refused_with_a_remedy() {
        let active = SVG.replace("<path", "<script>alert(1)</script><path");
        let linked = SVG.replace("<path", "<image href=\"https://example.org/x.png\"/><path");
        let large = vec![b' '; (LOGO_BYTES_MAX + 1) as usize];
        for (bytes, why) in [
            (b"GIF89a".as_slice(), "neither"),
            (active.as_bytes(), "scripts"),
            (linked.as_bytes(), "refers to other files"),
            (&large, "65537 bytes"),
        ] {
            let (message, hint) = read_written_logo("logo.x", bytes).expect_err("refused");
            assert!(message.contains(why) && hint.contains("64 KiB"), "{message} {hint}");
        }
        assert!(
            read_logo("nowhere/paper.toml", "logo.svg")
                .expect_err("missing")
                .0
                .contains("can't be read")
        );
    }
}
