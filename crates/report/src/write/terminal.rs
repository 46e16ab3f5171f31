//! Blocks as plain text for a terminal.

use super::{bare, ends, shown, told, whole_title, with_below};
use crate::blocks::{Block, Cell, CellValue, PaperTable, TableColumn, TextLine};
use crate::text::Lang;
use dyno_facts::text_table;

/// Blocks without drawings, as wide as their tables are.
pub(crate) fn terminal(blocks: &[Block], lang: Lang) -> String {
    let mut out = String::new();
    for block in blocks {
        match block {
            Block::Cover(cover) => {
                out += &format!("{}\n", told(&cover.title, lang));
                if !cover.answer.is_empty() {
                    out += &format!("{}\n", told(&cover.answer, lang));
                }
                cover.answers.iter().for_each(|own| out += &format!("- {}\n", told(own, lang)));
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
    format!("\n{}\n{}", line(&table.caption, lang), text_table(&titles, &rows, is_right))
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
    with_below(text, &below, lang)
}
