//! Blocks in their forms. Each writer is a function over blocks and knows nothing of what they say.

mod alone;
mod csv;
mod html;
mod json;
mod markdown;
mod terminal;
mod typst;

pub use alone::ChartFile;
pub(crate) use alone::named_drawings;
pub(crate) use html::html;
pub use json::schema;
pub(crate) use markdown::markdown;
pub(crate) use terminal::terminal;
pub(crate) use typst::{quoted, typst};

use crate::blocks::{Block, Cell, CellValue, Look, Span, Spread, TableColumn};
use crate::evidence::Paper;
use crate::format::{DASH, NumberFormat};
use crate::text::{Lang, Message};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// Kind (`png` or `svg`) and bytes of a logo that is a `data:` URL.
fn logo_of(url: &str) -> Option<(&'static str, Vec<u8>)> {
    let (kind, data) = match url.strip_prefix("data:image/png;base64,") {
        Some(data) => ("png", data),
        None => ("svg", url.strip_prefix("data:image/svg+xml;base64,")?),
    };
    Some((kind, BASE64_STANDARD.decode(data).ok()?))
}

/// The name of the file of a logo, beside a paper that can't hold it.
fn logo_name(url: &str) -> Option<String> {
    logo_of(url).map(|(kind, _)| format!("logo.{kind}"))
}

impl Paper {
    /// The publisher's logo as the file that the Markdown shows.
    pub fn logo(&self) -> Option<(String, Vec<u8>)> {
        Some((logo_name(&self.texts.logo)?, logo_of(&self.texts.logo)?.1))
    }
}

/// What stands in a cell, and in brackets what stands below it where there is one line only.
fn with_below(text: String, below: &[String], lang: Lang) -> String {
    let [open, between, close] = match lang {
        Lang::En => [" (", "; ", ")"],
        Lang::Zh => ["（", "；", "）"],
    };
    match below.is_empty() {
        true => text,
        false => format!("{text}{open}{}{close}", below.join(between)).trim_start().to_owned(),
    }
}

/// A text as a writer puts it down.
fn told(text: &Message, lang: Lang) -> String {
    text.line(lang)
}

/// The same where lines break: none breaks between a number and what it counts.
fn set(text: &Message, lang: Lang) -> String {
    kept(&told(text, lang))
}

/// A text whose numbers keep together with the words behind them.
fn kept(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut word = "";
    for part in text.split_inclusive(' ') {
        let begins = part.starts_with(|c: char| c.is_alphabetic() || c == '%');
        if begins && is_number(word) && out.ends_with(' ') {
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
    let is_part = |c: char| c.is_ascii_digit() || !c.is_alphanumeric() && c != '`';
    word.ends_with(|c: char| c.is_ascii_digit()) && word.chars().all(is_part)
}

/// A sentence in parts: every other one, from the second on, is code.
fn coded(text: &str) -> Vec<&str> {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len() % 2 == 1 { parts } else { vec![text] }
}

/// What a cell shows as text; `None` where it holds spans.
fn shown(cell: &Cell, format: NumberFormat) -> Option<String> {
    Some(match &cell.value {
        CellValue::Covered | CellValue::Blank => String::new(),
        CellValue::Missing => DASH.to_owned(),
        CellValue::Number(number) => format.show(*number),
        CellValue::Spread(spread) => format.show(spread.median),
        CellValue::Range(ends) => range(*ends, format),
        CellValue::Text(_) | CellValue::Notes(_) => return None,
    })
}

/// The lowest and the highest of several trials.
fn ends(spread: &Spread, format: NumberFormat) -> String {
    format!("{}{DASH}{}", format.show(spread.min), format.show(spread.max))
}

/// Both ends; one where they are the same.
fn range([low, high]: [f64; 2], format: NumberFormat) -> String {
    match (format.show(low), format.show(high)) {
        (low, high) if low == high => low,
        (low, high) => format!("{low}{DASH}{high}"),
    }
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

/// The title of a column where no titles stand above others: the first of a group names it.
fn whole_title(columns: &[TableColumn], place: usize, lang: Lang) -> String {
    let column = &columns[place];
    let title = told(&column.title, lang);
    let is_first = place == 0 || columns[place - 1].group != column.group;
    let below = told(&column.below, lang);
    let title = if below.is_empty() { title } else { format!("{title} ({below})") };
    match column.group.is_empty() || !is_first {
        true => title,
        false => format!("{}: {title}", told(&column.group, lang)),
    }
}

/// Where a span stands in a text without looks.
fn bare(span: &Span, lang: Lang, between: &str) -> String {
    match span.look {
        Look::Break => between.to_owned(),
        Look::Coded => told(&span.text, lang).replace('`', ""),
        Look::Swatch(_) => String::new(),
        _ => told(&span.text, lang),
    }
}

/// Calls `look` with every block, those in details too.
fn each<'a>(blocks: &'a [Block], look: &mut dyn FnMut(&'a Block)) {
    for block in blocks {
        look(block);
        if let Block::Details { blocks, .. } = block {
            each(blocks, look);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_together_with_what_they_count() {
        for (text, wanted) in [
            ("with 8 workers", "with 8~workers"),
            ("(1,000 warehouses, 24 % more)", "(1,000~warehouses, 24~% more)"),
            ("2.1–2.3 times", "2.1–2.3~times"),
            ("8 个线程", "8~个线程"),
            ("3 (of 4)", "3 (of 4)"),
            ("Q1 is, 8. Next 9, then v1 is", "Q1 is, 8. Next 9, then v1 is"),
            ("`--tables 10` is", "`--tables 10` is"),
            (" 7 ", " 7 "),
        ] {
            assert_eq!(kept(text).replace('\u{a0}', "~"), wanted);
        }
    }
}
