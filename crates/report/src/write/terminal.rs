//! Blocks as plain text for a terminal.

use super::{bare, ends, shown, told, whole_title};
use crate::blocks::{Block, Cell, CellValue, PaperTable, TableColumn, TextLine};
use crate::text::Lang;
use unicode_width::UnicodeWidthStr;

/// Texts wider than this are broken into lines.
const WIDEST_TEXT: usize = 60;

/// Blocks without drawings, as wide as their tables are.
pub(crate) fn terminal(blocks: &[Block], lang: Lang) -> String {
    let mut out = String::new();
    for block in blocks {
        match block {
            Block::Cover(cover) => {
                out += &format!("{}\n{}\n", told(&cover.title, lang), told(&cover.verdict, lang));
            }
            Block::Heading(heading) => out += &format!("\n{}\n", told(&heading.title, lang)),
            Block::Paragraph { text, .. } => out += &format!("{}\n", line(text, lang)),
            Block::List { items, .. } => {
                items.iter().for_each(|item| out += &format!("- {}\n", line(item, lang)));
            }
            Block::Terms { terms } => {
                for (word, meaning) in terms {
                    out += &format!("{}: {}\n", told(word, lang), told(meaning, lang));
                }
            }
            Block::Table(of) => out += &table(of, lang),
            Block::Figures { .. } | Block::Details { is_bulky: true, .. } => {}
            Block::Details { summary, blocks, .. } => {
                out += &format!("\n{}\n{}", line(summary, lang), terminal(blocks, lang));
            }
            Block::Code { text } => text.lines().for_each(|line| out += &format!("  {line}\n")),
        }
    }
    out
}

fn line(line: &TextLine, lang: Lang) -> String {
    line.iter().map(|span| bare(span, lang, "; ")).collect()
}

fn table(table: &PaperTable, lang: Lang) -> String {
    let titles: Vec<String> =
        (0..table.columns.len()).map(|place| whole_title(&table.columns, place, lang)).collect();
    let row = |cells: &[Cell]| -> Vec<String> {
        let both = cells.iter().zip(&table.columns);
        both.map(|(cell, column)| content(cell, column, lang)).collect()
    };
    let rows: Vec<Vec<String>> = table.rows.iter().map(|own| row(&own.cells)).collect();
    let is_right = |place: usize| place > 0 && table.columns[place].format.is_right();
    let titles: Vec<(&str, bool)> =
        titles.iter().enumerate().map(|(place, title)| (title.as_str(), is_right(place))).collect();
    format!("\n{}\n{}", line(&table.caption, lang), grid(&titles, &rows))
}

fn content(cell: &Cell, column: &TableColumn, lang: Lang) -> String {
    let mut text = match &cell.value {
        CellValue::Text(spans) => line(spans, lang),
        CellValue::Notes(notes) => {
            let notes: Vec<String> =
                notes.iter().map(|(level, number)| format!("{level:?}{number}")).collect();
            notes.join(" ")
        }
        _ => shown(cell, column.format).unwrap_or_default(),
    };
    if !cell.bound.is_empty() && cell.value != CellValue::Missing {
        text = format!("{}{text}", cell.bound);
    }
    let ends = match &cell.value {
        CellValue::Spread(spread) => Some(ends(spread, column.format)),
        _ => None,
    };
    let below = ends.into_iter().chain(cell.below.iter().map(|below| line(below, lang)));
    let below: Vec<String> = below.collect();
    match below.is_empty() {
        true => text,
        false => format!("{text} ({})", below.join("; ")).trim_start().to_owned(),
    }
}

/// Rows below titles, in columns; `true` beside a title lets its column stand right. Long texts are broken
/// into lines.
fn grid(titles: &[(&str, bool)], rows: &[Vec<String>]) -> String {
    let heads: Vec<String> = titles.iter().map(|(title, _)| (*title).to_owned()).collect();
    let broken: Vec<Vec<Vec<String>>> = [&heads]
        .into_iter()
        .chain(rows)
        .map(|row| row.iter().map(|cell| wrapped(cell)).collect())
        .collect();
    let width = |place: usize| {
        let cells = broken.iter().filter_map(|row| row.get(place)).flatten();
        cells.map(|text| text.width()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    let mut out = String::new();
    for row in &broken {
        let height = row.iter().map(Vec::len).max().unwrap_or(0);
        for level in 0..height {
            let mut text = String::new();
            for ((cell, wide), (_, is_right)) in row.iter().zip(&widths).zip(titles) {
                let part = cell.get(level).map_or("", String::as_str);
                let room = " ".repeat(wide - part.width());
                if *is_right {
                    text += &format!("{room}{part}  ");
                } else {
                    text += &format!("{part}{room}  ");
                }
            }
            out += text.trim_end();
            out.push('\n');
        }
    }
    out
}

/// The text in lines of at most [`WIDEST_TEXT`], broken at blanks.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is one");
        if last.is_empty() || last.width() + 1 + word.width() <= WIDEST_TEXT {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_chinese_is_wide() {
        let rows = [["a", "1"], ["很长", "12345"]].map(|row| row.map(str::to_owned).to_vec());
        let text = grid(&[("name", false), ("n", true)], &rows);
        assert_eq!(text, "name      n\na         1\n很长  12345\n");
    }

    #[test]
    fn long_texts_are_broken_at_blanks() {
        let rows = [vec![format!("{} {}", "a".repeat(50), "b".repeat(20)), "1".to_owned()]];
        let text = grid(&[("text", false), ("n", true)], &rows);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[2]), (3, "b".repeat(20).as_str()));
    }
}
