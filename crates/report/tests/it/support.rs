//! Golden files, and the elements of a page.

use dyno_report::blocks::{Block, Cell, CellValue, Look, PaperTable, Span, TableRow};
use dyno_report::{Lang, Paper};
use std::fs;
use std::path::Path;

/// The English of a line without looks.
pub(crate) fn english(line: &[Span]) -> String {
    let texts = line.iter().map(|span| match span.look {
        Look::Break => "\n".to_owned(),
        _ => span.text.render(Lang::En),
    });
    texts.collect()
}

/// Numbers and texts of a table, by its row and column.
pub(crate) trait ReadCell {
    /// Its number as it was measured; of several trials the median.
    fn number(&self) -> Option<f64>;
    /// Its English; empty if it is a number.
    fn english(&self) -> String;
}

impl ReadCell for Cell {
    fn number(&self) -> Option<f64> {
        match self.value {
            CellValue::Number(number) => Some(number),
            CellValue::Spread(spread) => Some(spread.median),
            _ => None,
        }
    }

    fn english(&self) -> String {
        match &self.value {
            CellValue::Text(line) => english(line),
            _ => String::new(),
        }
    }
}

/// Reads tables by their English.
pub(crate) trait ReadTable {
    /// The first row that has a cell with this text.
    fn row(&self, text: &str) -> Option<&TableRow>;
    /// The cell of that row below the first column with this title.
    fn cell(&self, row: &str, column: &str) -> Option<&Cell>;
}

impl ReadTable for PaperTable {
    fn row(&self, text: &str) -> Option<&TableRow> {
        self.rows.iter().find(|row| row.cells.iter().any(|cell| cell.english() == text))
    }

    fn cell(&self, row: &str, column: &str) -> Option<&Cell> {
        let place = self.columns.iter().position(|known| known.title == column)?;
        self.row(row)?.cells.get(place)
    }
}

/// The first table whose English caption begins with these words, those in details too.
pub(crate) fn find_table<'a>(blocks: &'a [Block], caption: &str) -> Option<&'a PaperTable> {
    blocks.iter().find_map(|block| match block {
        Block::Table(table) if english(&table.caption).starts_with(caption) => Some(table),
        Block::Details { blocks, .. } => find_table(blocks, caption),
        _ => None,
    })
}

/// The table of a paper whose caption begins so.
pub(crate) fn table(paper: &Paper, caption: &str) -> PaperTable {
    let blocks = paper.blocks(Lang::En);
    find_table(&blocks, caption)
        .unwrap_or_else(|| panic!("no table begins with {caption:?}"))
        .clone()
}

/// A number of a table, as it was measured.
pub(crate) fn number(table: &PaperTable, row: &str, column: &str) -> Option<f64> {
    table.cell(row, column).unwrap_or_else(|| panic!("{row}, {column}: {table:?}")).number()
}

/// The paper as golden files have it: of the checks that found nothing only these. `checks.md` and
/// `checks.zh.md` in `doc/src/reference` list all, so that another check changes those two and no other.
pub(crate) fn recorded(mut paper: Paper) -> Paper {
    const FOUND_NOTHING: [&str; 2] = ["rate-missed", "generator-loop"];
    let checks = &mut paper.judgment.checks;
    checks.retain(|check| !check.findings.is_empty() || FOUND_NOTHING.contains(&check.id));
    checks.iter_mut().zip(1..).for_each(|(check, number)| check.number = number);
    paper
}

/// Compares with a golden file; `DYNO_BLESS=1` writes it again.
pub(crate) fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("DYNO_BLESS").is_some() {
        fs::write(&path, text).expect("written");
    }
    let expected = fs::read_to_string(&path).expect("the golden file exists");
    let mut lines = text.lines().zip(expected.lines()).enumerate();
    let first = lines.find(|(_, (actual, expected))| actual != expected);
    assert!(text == expected, "{name} differs, first in {first:?}; DYNO_BLESS=1 updates it");
}

/// The elements of an HTML text, with the tags balanced; panics if they are not.
pub(crate) fn elements(html: &str) -> Vec<String> {
    const VOID: [&str; 4] = ["meta", "br", "link", "!DOCTYPE"];
    let mut open: Vec<String> = Vec::new();
    let mut names = Vec::new();
    let mut rest = html;
    while let Some(begin) = rest.find('<') {
        let tag = &rest[begin + 1..];
        let end = tag.find('>').expect("a tag ends");
        let (tag, after) = (&tag[..end], &tag[end + 1..]);
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes in <{tag}>");
        rest = after;
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().expect("a name");
        if tag.starts_with('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "</{name}> closes what was opened last");
            continue;
        }
        names.push(name.to_owned());
        if VOID.contains(&name) || tag.ends_with('/') {
            continue;
        }
        open.push(name.to_owned());
        if matches!(name, "script" | "style") {
            let close = format!("</{name}>");
            rest = &rest[rest.find(&close).expect("it is closed")..];
        }
    }
    assert_eq!(open, Vec::<String>::new(), "everything is closed");
    names
}

/// The number of elements with this name, of those that [`elements`] returns.
pub(crate) fn count(elements: &[String], name: &str) -> usize {
    elements.iter().filter(|element| *element == name).count()
}

/// The bars between the cells of a row in Markdown, without those that are escaped.
pub(crate) fn count_bars(row: &str) -> usize {
    row.replace("\\|", "").matches('|').count()
}

/// The words of a page: its text and the attributes that are read aloud or shown; no code, no styles.
pub(crate) fn html_texts(html: &str) -> String {
    const SILENT: [&str; 4] = ["script", "style", "code", "pre"];
    const SPOKEN: [&str; 4] = ["aria-label=\"", "data-name=\"", "title=\"", "alt=\""];
    let mut text = String::new();
    let mut rest = html;
    while let Some(begin) = rest.find('<') {
        text += &rest[..begin];
        text.push('\n');
        let Some(end) = rest[begin..].find('>') else { break };
        let tag = &rest[begin + 1..begin + end];
        for attribute in SPOKEN {
            let value = tag.split(attribute).nth(1).and_then(|after| after.split('"').next());
            text.extend(value.into_iter().flat_map(|value| [value, "\n"]));
        }
        rest = &rest[begin + end + 1..];
        let name = tag.split([' ', '\n']).next().unwrap_or_default();
        if SILENT.contains(&name) {
            let close = format!("</{name}>");
            rest = rest.split_once(close.as_str()).map_or("", |(_, after)| after);
        }
    }
    text += rest;
    // Numbers keep together with what they count.
    text = text.replace('\u{a0}', " ");
    for (entity, letter) in [("&#x27;", "'"), ("&#x2f;", "/"), ("&quot;", "\""), ("&amp;", "&")] {
        text = text.replace(entity, letter);
    }
    text
}
