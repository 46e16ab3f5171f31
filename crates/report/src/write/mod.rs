//! Blocks in their forms. Each writer is a function over blocks and knows nothing of what they say. CSV and JSON are
//! for programs; charts are also written as separate files.

mod html;
pub(crate) mod pipeline;
mod text;

pub(crate) use html::html;
pub(crate) use text::{markdown, terminal};

use crate::ReportError;
use crate::blocks::*;
use crate::evidence::{Check, GateRow, PairedComparison, Paper};
use crate::format::{DASH, NumberFormat};
use crate::svg::{escape, letters, svg_size};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use dyno_core::{harmless, is_command};
use dyno_facts::format::wrap;
use dyno_facts::{Lang, Message, RunHeader, SCHEMA_VERSION, say, text_table};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Kind (`png` or `svg`) and bytes of a logo that is a `data:` URL.
pub(crate) fn decode_logo(url: &str) -> Option<(&'static str, Vec<u8>)> {
    let (kind, data) = match url.strip_prefix("data:image/png;base64,") {
        Some(data) => ("png", data),
        None => ("svg", url.strip_prefix("data:image/svg+xml;base64,")?),
    };
    Some((kind, BASE64_STANDARD.decode(data).ok()?))
}

/// The name of the file of a logo, alongside a paper that can't hold it.
fn logo_name(url: &str) -> Option<String> {
    decode_logo(url).map(|(kind, _)| format!("logo.{kind}"))
}

/// A text where lines break, but not between a number and what it counts.
fn render_unbroken(text: &Message, lang: Lang) -> String {
    keep_numbers_with_words(&text.line(lang))
}

/// A text whose numbers keep together with the words behind them.
fn keep_numbers_with_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut word = "";
    for part in text.split_inclusive(' ') {
        let is_word = part.starts_with(char::is_alphabetic);
        if is_word && is_number(word) && out.ends_with(' ') {
            out.pop();
            out.push('\u{a0}');
        }
        out.push_str(part);
        word = part;
    }
    out
}

/// Digits, perhaps with a sign, separators, or a bracket or a quote before them.
fn is_number(word: &str) -> bool {
    let word = word.trim_end();
    word.ends_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || !c.is_alphanumeric() && c != '`')
}

/// A sentence in parts: every other one, from the second on, is code.
fn coded(text: &str) -> Vec<&str> {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len() % 2 == 1 { parts } else { vec![text] }
}

/// The content of a cell, behind its bound.
fn cell_line(cell: &Cell, format: NumberFormat) -> TextLine {
    let mut line = match &cell.value {
        CellValue::Covered | CellValue::Blank => return TextLine::new(),
        CellValue::Missing => return vec![Span::plain(DASH)],
        CellValue::Text(line) => line.clone(),
        CellValue::Number(number) => vec![Span::plain(format.show(*number))],
        CellValue::Spread(spread) => vec![Span::plain(format.show(spread.median))],
        CellValue::Range(ends) => match ends.map(|end| format.show(end)) {
            [low, high] if low == high => vec![Span::plain(low)],
            [low, high] => vec![Span::plain(format!("{low}{DASH}{high}"))],
        },
        CellValue::Notes(notes) => {
            separated(notes.iter().map(|(level, number)| note(*level, *number)), " ")
        }
    };
    if !cell.bound.is_empty() {
        line.insert(0, Span::plain(format!("{}\u{a0}", cell.bound)));
    }
    line
}

/// The lines below it: of several trials the lowest and the highest, then small print.
fn lines_below(cell: &Cell, format: NumberFormat) -> Vec<TextLine> {
    let mut lines = cell.below.clone();
    if let CellValue::Spread(Spread { min, max, .. }) = cell.value {
        let ends = format!("{}{DASH}{}", format.show(min), format.show(max));
        lines.insert(0, vec![Span::plain(ends)]);
    }
    lines
}

/// Classes that are not empty, in one.
fn join_classes(classes: &[&str]) -> String {
    classes.iter().copied().filter(|class| !class.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Rows above the columns' own titles: title, first column, number of columns.
fn groups(columns: &[TableColumn]) -> Vec<(&Message, usize, usize)> {
    let mut groups: Vec<(&Message, usize, usize)> = Vec::new();
    for (place, column) in columns.iter().enumerate() {
        match groups.last_mut() {
            Some((title, _, count)) if !column.group.is_empty() && **title == column.group => {
                *count += 1;
            }
            _ => groups.push((&column.group, place, 1)),
        }
    }
    groups
}

/// Text of a span without looks.
fn bare(span: &Span, lang: Lang, between: &str) -> String {
    match span.look {
        Look::Break => between.to_owned(),
        Look::Coded => span.text.line(lang).replace('`', ""),
        Look::Swatch(_) => String::new(),
        _ => span.text.line(lang),
    }
}

impl Paper {
    /// The publisher's logo as the file that the Markdown shows.
    pub fn logo(&self) -> Option<(String, Vec<u8>)> {
        Some((logo_name(&self.texts.logo)?, decode_logo(&self.texts.logo)?.1))
    }
}

const MARGIN: f64 = 12.0;
const LINE: f64 = 17.0;
/// About the width of a letter of captions and notes.
const LETTER: f64 = 6.6;

/// All drawings with the names of their files.
pub(crate) fn named_drawings(blocks: &[Block]) -> Vec<(&Drawing, String)> {
    let mut drawings: Vec<(&Drawing, String)> = Vec::new();
    let mut section = "cover";
    for_each_drawing(blocks, &mut section, &mut |section, drawing| {
        drawings.push((drawing, format!("{:02}-{section}", drawings.len() + 1)));
    });
    drawings
}

/// Calls `visit` with each drawing and its section.
fn for_each_drawing<'a>(
    blocks: &'a [Block],
    section: &mut &'a str,
    visit: &mut dyn FnMut(&str, &'a Drawing),
) {
    for block in blocks {
        match block {
            Block::Cover(cover) => cover.chart.iter().for_each(|chart| visit("cover", chart)),
            Block::Heading(heading) if !heading.anchor.is_empty() => *section = &heading.anchor,
            Block::Figures { figures, .. } => {
                figures.iter().for_each(|drawing| visit(section, drawing))
            }
            Block::Details { blocks, .. } => for_each_drawing(blocks, section, visit),
            _ => {}
        }
    }
}

/// A drawing in one `<svg>` that needs nothing but itself: caption, legend, its parts below each other, note.
pub(crate) fn standalone(drawing: &Drawing, style: &str) -> String {
    let sizes: Vec<(f64, f64)> = drawing.svgs.iter().map(|svg| svg_size(svg)).collect();
    let inner = sizes.iter().map(|(width, _)| *width).fold(320.0, f64::max);
    let width = inner + 2.0 * MARGIN;
    let mut body = String::new();
    let mut y = MARGIN;
    write_lines(&mut body, "name", &drawing.caption, inner, &mut y);
    if drawing.legend.len() > 1 {
        y = write_legend(&mut body, &drawing.legend, inner, y + 4.0);
    }
    y += 8.0;
    for (svg, (wide, high)) in drawing.svgs.iter().zip(&sizes) {
        let place =
            format!("<svg x=\"{MARGIN}\" y=\"{y:.1}\" width=\"{wide:.0}\" height=\"{high:.0}\"");
        body += &svg.replacen("<svg", &place, 1);
        y += high + 8.0;
    }
    write_lines(&mut body, "tick", &drawing.note, inner, &mut y);
    let height = y + MARGIN;
    let caption = escape(&drawing.caption);
    // CSS as the text of an element.
    let style = style.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\">\n\
         <title>{caption}</title>\n<style>{style}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}\n</svg>\n"
    )
}

/// A text in lines that are not wider, from `y` on.
fn write_lines(out: &mut String, class: &str, text: &str, width: f64, y: &mut f64) {
    let lines = wrap(text, (width / LETTER) as usize, "").into_iter();
    for line in lines.filter(|line| !line.is_empty()) {
        *y += LINE;
        let (line, y) = (escape(&line), *y - 4.0);
        let _ = write!(out, "<text class=\"{class}\" x=\"{MARGIN}\" y=\"{y:.1}\">{line}</text>");
    }
}

/// Writes the names of lines with samples of them; returns the `y` of their last row.
fn write_legend(out: &mut String, entries: &[(String, String)], inner: f64, top: f64) -> f64 {
    let (mut x, mut y) = (MARGIN, top + LINE);
    for (name, class) in entries {
        let wide = letters(name) as f64 * LETTER + 44.0;
        if x > MARGIN && x + wide > MARGIN + inner {
            (x, y) = (MARGIN, y + LINE);
        }
        let (color, stroke) = class.split_once(' ').unwrap_or((class, ""));
        let (middle, name) = (y - 8.0, escape(name));
        let sample = match stroke {
            "dots" => format!("<circle cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"3.2\"/>", x + 11.0),
            stroke => format!("<path class=\"line {stroke}\" d=\"M{x:.1},{middle:.1}h22\"/>"),
        };
        let _ = write!(
            out,
            "<g class=\"series {color}\">{sample}<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\">{name}</text></g>",
            x + 28.0,
            y - 4.0
        );
        x += wide;
    }
    y
}

/// Columns that identify a trial come first; the others follow in alphabetical order.
const FIRST: &str = "label run trial experiment target test workers rate_per_s repeat status adds_up tps qps window_s";

impl Paper {
    /// One row per trial, all fields of its summary; lists are JSON inside their cell.
    pub fn csv(&self) -> String {
        let trials = self.trials.iter().chain(&self.set_aside).chain(&self.stages);
        let rows = trials.map(|trial| {
            let mut row = BTreeMap::new();
            let summary = serde_json::to_value(&trial.summary).unwrap_or_default();
            flatten("", &summary, &mut row);
            row.remove("status.failed");
            let fields = [
                ("run", self.runs[trial.run - 1].folder.clone()),
                ("label", trial.label.clone()),
                ("status", trial.status.to_owned()),
                ("adds_up", trial.adds_up.to_string()),
            ];
            row.extend(fields.map(|(name, value)| (name.to_owned(), value)));
            row
        });
        let rows: Vec<BTreeMap<String, String>> = rows.collect();
        let first: Vec<&str> = FIRST.split(' ').collect();
        let names: BTreeSet<&str> =
            rows.iter().flat_map(|row| row.keys().map(String::as_str)).collect();
        let further = names.into_iter().filter(|name| !first.contains(name));
        let columns: Vec<&str> = first.iter().copied().chain(further).collect();
        let heads: Vec<String> = columns.iter().map(|column| quote(column)).collect();
        let mut text = heads.join(",") + "\n";
        for row in &rows {
            let cells = columns.iter().map(|name| row.get(*name).map(|cell| quote(cell)));
            text += &cells.map(Option::unwrap_or_default).collect::<Vec<_>>().join(",");
            text.push('\n');
        }
        text
    }
}

/// Adds the fields of a JSON value to a row of the CSV, by their paths such as `latency.p99_us`.
fn flatten(name: &str, value: &Value, row: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let name = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
                flatten(&name, value, row);
            }
        }
        Value::Null => {}
        value => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            row.insert(name.to_owned(), text);
        }
    }
}

/// RFC 4180. A cell that a spreadsheet would take for a formula gets an apostrophe in front; of what a terminal would
/// obey it shows that it was there.
fn quote(cell: &str) -> String {
    let cell = harmless(cell);
    let is_number = cell.parse::<f64>().is_ok();
    let is_formula = !is_number && cell.starts_with(['=', '+', '-', '@']);
    let cell = if is_formula { format!("'{cell}") } else { cell.into_owned() };
    if cell.contains([',', '"', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell
    }
}

/// A paper as JSON. Numbers are as they were measured; the summary of every trial is in the run's folder.
#[derive(Serialize, schemars::JsonSchema)]
struct Document<'a> {
    schema_version: u32,
    title: &'a Message,
    runs: Vec<Header<'a>>,
    /// Every check that was made; those without findings have nothing to remark.
    checks: &'a [Check],
    /// Targets held against each other, pair by pair of trials.
    verdicts: &'a [PairedComparison],
    gates: &'a [GateRow],
    /// The sections from the cover to the glossary.
    blocks: Vec<Block>,
}

#[derive(Serialize, schemars::JsonSchema)]
struct Header<'a> {
    folder: &'a str,
    /// `run.json`.
    header: &'a RunHeader,
}

impl Paper {
    /// The findings, and the sections in English with the keys of their texts.
    ///
    /// # Errors
    /// When a number can't be stored.
    pub fn json(&self) -> Result<String, ReportError> {
        let document = Document {
            schema_version: SCHEMA_VERSION,
            title: &self.title,
            runs: self
                .runs
                .iter()
                .map(|run| Header { folder: &run.folder, header: &run.header })
                .collect(),
            checks: &self.checks,
            verdicts: &self.verdicts.comparisons,
            gates: &self.verdicts.gates,
            blocks: self.blocks(Lang::En),
        };
        to_pretty_json(&document)
    }
}

/// The JSON Schema (2020-12) of what [`Paper::json`] writes: every field with its unit and meaning.
pub const SCHEMA: &str = include_str!("../../paper.schema.json");

fn to_pretty_json(value: &impl Serialize) -> Result<String, ReportError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| {
        ReportError::new(format!("The paper can't be written as JSON: {error}."))
    })?;
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemars::generate::SchemaSettings;

    /// `DYNO_BLESS=1` writes it again.
    #[test]
    fn the_published_schema_is_that_of_the_types() {
        // What is written, not what could be read: fields with a default are always there.
        let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let text = to_pretty_json(&generator.into_root_schema_for::<Document<'_>>()).expect("JSON");
        if std::env::var_os("DYNO_BLESS").is_some() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/paper.schema.json");
            return std::fs::write(file, text).expect("written");
        }
        let line =
            text.lines().zip(SCHEMA.lines()).find(|(generated, published)| generated != published);
        assert!(text == SCHEMA, "DYNO_BLESS=1 updates paper.schema.json: {line:?}");
    }

    #[test]
    fn numbers_keep_together_with_what_they_count() {
        for (text, wanted) in [
            ("with 8 workers", "with 8~workers"),
            ("(1,000 warehouses, 24% more)", "(1,000~warehouses, 24% more)"),
            ("2.1–2.3 times", "2.1–2.3~times"),
            ("8 个线程", "8~个线程"),
            ("3 (of 4)", "3 (of 4)"),
            ("Q1 is, 8. Next 9, then v1 is", "Q1 is, 8. Next 9, then v1 is"),
            ("`--tables 10` is", "`--tables 10` is"),
            (" 7 ", " 7 "),
        ] {
            assert_eq!(keep_numbers_with_words(text).replace('\u{a0}', "~"), wanted);
        }
    }

    #[test]
    fn a_legend_that_is_too_wide_goes_on_below() {
        let entries = [("a".repeat(20), "s0".to_owned()), ("b".repeat(20), "s1 dashed".to_owned())];
        let mut out = String::new();
        assert_eq!(write_legend(&mut out, &entries, 250.0, 0.0), 2.0 * LINE);
        assert!(out.contains("class=\"line dashed\""), "{out}");
        assert_eq!(write_legend(&mut String::new(), &entries, 800.0, 0.0), LINE);
    }

    #[test]
    fn cells_are_quoted_where_needed() {
        assert_eq!(quote("plain"), "plain");
        assert_eq!(quote("-1.5"), "-1.5");
        assert_eq!(quote("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(quote("=HYPERLINK(1)"), "'=HYPERLINK(1)");
        assert_eq!(quote("\u{1b}[2J\u{202e}a\r\nb"), "\"\u{fffd}[2J\u{fffd}a\u{fffd}\nb\"");
    }
}
