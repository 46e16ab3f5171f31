//! Blocks as Markdown. Drawings are images where they are files beside it; what is too long for a text is left out.

use super::{coded, ends, logo_name, shown, told, whole_title, with_below};
use crate::blocks::{
    Block, Cell, CellValue, Cover, Drawing, Look, PaperTable, Span, Style, TableColumn, TextLine,
};
use crate::text::Lang;
use dyno_core::{harmless, is_command};
use dyno_facts::say;

/// The way to the file of a drawing; `None` where it has none.
pub(crate) type ImageOf<'a> = &'a dyn Fn(&Drawing) -> Option<String>;

/// Blocks as text with tables.
pub(crate) fn markdown(blocks: &[Block], lang: Lang, image: ImageOf<'_>) -> String {
    let mut out = String::new();
    write(&mut out, blocks, lang, image);
    out
}

fn images<'a>(
    out: &mut String,
    drawings: impl IntoIterator<Item = &'a Drawing>,
    image: ImageOf<'_>,
) {
    for drawing in drawings {
        if let Some(way) = image(drawing) {
            *out += &format!("![{}]({way})\n\n", escaped(&drawing.caption));
        }
    }
}

fn write(out: &mut String, blocks: &[Block], lang: Lang, image: ImageOf<'_>) {
    for block in blocks {
        match block {
            Block::Cover(cover) => {
                cover_page(out, cover, lang);
                images(out, &cover.chart, image);
            }
            Block::Heading(heading) => {
                let marks = "#".repeat(heading.level.into());
                let number = match heading.number.as_str() {
                    "" => String::new(),
                    number => format!("{number} "),
                };
                *out += &format!("{marks} {number}{}\n\n", escaped(&told(&heading.title, lang)));
            }
            Block::Paragraph { text, .. } => *out += &format!("{}\n\n", line(text, lang)),
            Block::List { style: Style::Fine, items } => {
                let items: Vec<String> = items.iter().map(|item| line(item, lang)).collect();
                *out += &format!("{}\n\n", items.join(" "));
            }
            Block::List { items, .. } => {
                items.iter().for_each(|item| *out += &format!("- {}\n", line(item, lang)));
                out.push('\n');
            }
            Block::Terms { terms } => {
                for (word, meaning) in terms {
                    let (word, meaning) = (told(word, lang), told(meaning, lang));
                    *out += &format!("- **{}**: {}\n", escaped(&word), escaped(&meaning));
                }
                out.push('\n');
            }
            Block::Table(of) => table(out, of, lang),
            Block::Figures { figures, .. } => images(out, figures, image),
            Block::Details { summary, is_bulky: true, .. } => {
                let left_out = say!(left_out_of_this_form, what = line(summary, lang));
                *out += &format!("{}\n\n", told(&left_out, lang));
            }
            Block::Details { summary, blocks, .. } => {
                *out += &format!("{}\n\n", line(summary, lang));
                write(out, blocks, lang, image);
            }
            Block::Code { text } => {
                harmless(text).lines().for_each(|line| *out += &format!("    {line}\n"));
                out.push('\n');
            }
        }
    }
}

fn cover_page(out: &mut String, cover: &Cover, lang: Lang) {
    let text = |text| escaped(&told(text, lang));
    if let Some(file) = logo_name(&cover.logo) {
        *out += &format!("![]({file})\n\n");
    }
    *out += &format!("# {}\n\n", text(&cover.title));
    for words in [&cover.subtitle, &cover.byline].into_iter().filter(|words| !words.is_empty()) {
        *out += &format!("{}\n\n", text(words));
    }
    for words in [&cover.banner, &cover.answer].into_iter().filter(|words| !words.is_empty()) {
        *out += &format!("**{}**\n\n", text(words));
    }
    // Another sign than that of the facts: two lists with one sign would be one.
    cover.answers.iter().for_each(|answer| *out += &format!("* {}\n", text(answer)));
    if !cover.answers.is_empty() {
        out.push('\n');
    }
    for fact in &cover.facts {
        let mut value = line(&fact.value, lang);
        for below in fact.below.iter().map(&text) {
            value = format!("{value}; {below}");
        }
        *out += &format!("- {}: {value}\n", text(&fact.name));
    }
    let warnings = &cover.warnings;
    *out += &format!("\n**{}** {}\n\n", text(&warnings.title), text(&warnings.verdict));
    warnings.items.iter().for_each(|item| *out += &format!("- {}\n", noted(item, lang)));
    out.push('\n');
}

/// A line whose numbers of checks stand apart from its words.
fn noted(line: &TextLine, lang: Lang) -> String {
    let part = |one: &Span| match one.look {
        Look::Note(_) => format!("{} ", span(one, lang)),
        _ => span(one, lang),
    };
    line.iter().map(part).collect()
}

fn table(out: &mut String, table: &PaperTable, lang: Lang) {
    *out += &format!("{}\n\n|", line(&table.caption, lang));
    for place in 0..table.columns.len() {
        *out += &format!(" {} |", escaped(&whole_title(&table.columns, place, lang)));
    }
    *out += "\n|";
    for (place, column) in table.columns.iter().enumerate() {
        let is_right = column.format.is_right() && place > 0;
        *out += if is_right { "--:|" } else { "---|" };
    }
    out.push('\n');
    for row in &table.rows {
        out.push('|');
        for (cell, column) in row.cells.iter().zip(&table.columns) {
            *out += &format!(" {} |", content(cell, column, lang));
        }
        out.push('\n');
    }
    out.push('\n');
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
    if let CellValue::Spread(spread) = &cell.value {
        let ends = ends(spread, column.format);
        text = format!("{text} ({ends})");
    }
    if !cell.bound.is_empty() && !text.is_empty() && cell.value != CellValue::Missing {
        text = format!("{} {text}", cell.bound);
    }
    let below: Vec<String> = cell.below.iter().map(|below| line(below, lang)).collect();
    with_below(text, &below, lang)
}

fn line(line: &TextLine, lang: Lang) -> String {
    line.iter().map(|one| span(one, lang)).collect()
}

fn span(span: &Span, lang: Lang) -> String {
    let text = told(&span.text, lang);
    match span.look {
        Look::Break => "; ".to_owned(),
        Look::Swatch(_) => String::new(),
        Look::Code => code(&text),
        Look::Coded => {
            let parts = coded(&text).into_iter().enumerate();
            parts
                .map(|(place, part)| if place % 2 == 0 { escaped(part) } else { code(part) })
                .collect()
        }
        Look::Strong | Look::Bad | Look::Caveat => format!("**{}**", escaped(&text)),
        Look::Plain | Look::Emphasis | Look::Count | Look::Note(_) => escaped(&text),
    }
}

/// A text as code, also in a cell; as plain text where it might be taken for markup.
fn code(text: &str) -> String {
    if text.contains(['`', '<', '&']) {
        return escaped(text);
    }
    let plain = |c: char| if is_command(c) { ' ' } else { c };
    let text: String = text.replace('|', "\\|").chars().map(plain).collect();
    format!("`{text}`")
}

/// A text that Markdown shows as it is.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '#' => escaped.extend(['\\', c]),
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            c if is_command(c) => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
