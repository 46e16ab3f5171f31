//! Blocks as text: Markdown, and plain text for a terminal. In Markdown drawings are images if they are files
//! next to it; what is too long for a text is left out.

use super::*;

/// The path to the file of a drawing; `None` if it has none.
pub(crate) type ImagePath<'a> = &'a dyn Fn(&Drawing) -> Option<String>;

/// Blocks as text with tables.
pub(crate) fn markdown(blocks: &[Block], lang: Lang, image: ImagePath<'_>) -> String {
    let mut out = String::new();
    write_blocks(&mut out, blocks, lang, image);
    out
}

fn write_images<'a>(
    out: &mut String,
    drawings: impl IntoIterator<Item = &'a Drawing>,
    image: ImagePath<'_>,
) {
    for drawing in drawings {
        if let Some(path) = image(drawing) {
            *out += &format!("![{}]({path})\n\n", escaped(&drawing.caption));
        }
    }
}

fn write_blocks(out: &mut String, blocks: &[Block], lang: Lang, image: ImagePath<'_>) {
    for block in blocks {
        match block {
            Block::Cover(cover) => {
                write_cover(out, cover, lang);
                write_images(out, &cover.chart, image);
            }
            Block::Heading(heading) => {
                let marks = "#".repeat(heading.level.into());
                let number = match heading.number.as_str() {
                    "" => String::new(),
                    number => format!("{number} "),
                };
                *out += &format!("{marks} {number}{}\n\n", markdown_text(&heading.title, lang));
            }
            Block::Paragraph { text, .. } => *out += &format!("{}\n\n", markdown_line(text, lang)),
            Block::List { style: Style::Fine, items } => {
                let items: Vec<String> =
                    items.iter().map(|item| markdown_line(item, lang)).collect();
                *out += &format!("{}\n\n", items.join(" "));
            }
            Block::List { items, .. } => {
                items.iter().for_each(|item| *out += &format!("- {}\n", markdown_line(item, lang)));
                out.push('\n');
            }
            Block::Terms { terms } => {
                for (word, meaning) in terms {
                    let (word, meaning) = (word.line(lang), meaning.line(lang));
                    *out += &format!("- **{}**: {}\n", escaped(&word), escaped(&meaning));
                }
                out.push('\n');
            }
            Block::Table(table) => write_table(out, table, lang),
            Block::Figures { figures, .. } => write_images(out, figures, image),
            Block::Details { summary, is_bulky: true, .. } => {
                let left_out = say!(left_out_of_this_form, what = markdown_line(summary, lang));
                *out += &format!("{}\n\n", left_out.line(lang));
            }
            Block::Details { summary, blocks, .. } => {
                *out += &format!("{}\n\n", markdown_line(summary, lang));
                write_blocks(out, blocks, lang, image);
            }
            Block::Code { text } => {
                harmless(text).lines().for_each(|line| *out += &format!("    {line}\n"));
                out.push('\n');
            }
        }
    }
}

fn write_cover(out: &mut String, cover: &Cover, lang: Lang) {
    if let Some(file) = logo_name(&cover.logo) {
        *out += &format!("![]({file})\n\n");
    }
    *out += &format!("# {}\n\n", markdown_text(&cover.title, lang));
    for words in [&cover.subtitle, &cover.byline].into_iter().filter(|words| !words.is_empty()) {
        *out += &format!("{}\n\n", markdown_text(words, lang));
    }
    for words in [&cover.banner, &cover.answer].into_iter().filter(|words| !words.is_empty()) {
        *out += &format!("**{}**\n\n", markdown_text(words, lang));
    }
    // Another sign than that of the facts: two lists with one sign would be one.
    cover.answers.iter().for_each(|answer| *out += &format!("* {}\n", markdown_text(answer, lang)));
    if !cover.answers.is_empty() {
        out.push('\n');
    }
    for fact in &cover.facts {
        let mut value = markdown_line(&fact.value, lang);
        for below in &fact.below {
            value = format!("{value}; {}", markdown_text(below, lang));
        }
        *out += &format!("- {}: {value}\n", markdown_text(&fact.name, lang));
    }
    let warnings = &cover.warnings;
    let [title, verdict] =
        [&warnings.title, &warnings.verdict].map(|text| markdown_text(text, lang));
    *out += &format!("\n**{title}** {verdict}\n\n");
    for item in &warnings.items {
        *out += &format!("- {}\n", markdown_line_with_notes(item, lang));
    }
    out.push('\n');
}

/// A message in one line, escaped for Markdown.
fn markdown_text(text: &Message, lang: Lang) -> String {
    escaped(&text.line(lang))
}

/// A line whose numbers of checks are set apart from its words.
fn markdown_line_with_notes(line: &TextLine, lang: Lang) -> String {
    let parts = line.iter().map(|span| match span.look {
        Look::Note(_) => format!("{} ", markdown_span(span, lang)),
        _ => markdown_span(span, lang),
    });
    parts.collect()
}

fn write_table(out: &mut String, table: &PaperTable, lang: Lang) {
    *out += &format!("{}\n\n|", markdown_line(&table.caption, lang));
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
            let text = cell_text(cell, column.format, lang, |line| markdown_line(line, lang));
            *out += &format!(" {text} |");
        }
        out.push('\n');
    }
    out.push('\n');
}

fn markdown_line(line: &TextLine, lang: Lang) -> String {
    line.iter().map(|span| markdown_span(span, lang)).collect()
}

fn markdown_span(span: &Span, lang: Lang) -> String {
    let text = span.text.line(lang);
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
        Look::Plain | Look::Emphasis | Look::Note(_) => escaped(&text),
    }
}

/// A text as code, also in a cell; as plain text if it might be taken for markup.
fn code(text: &str) -> String {
    if text.contains(['`', '<', '&']) {
        return escaped(text);
    }
    format!("`{}`", text.replace('|', "\\|").replace(is_command, " "))
}

/// A text that Markdown shows unchanged.
pub(super) fn escaped(text: &str) -> String {
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

/// Blocks without drawings, as wide as their tables are.
pub(crate) fn terminal(blocks: &[Block], lang: Lang) -> String {
    let mut out = String::new();
    for block in blocks {
        match block {
            Block::Cover(cover) => {
                out += &format!("{}\n", cover.title.line(lang));
                if !cover.answer.is_empty() {
                    out += &format!("{}\n", cover.answer.line(lang));
                }
                for answer in &cover.answers {
                    out += &format!("- {}\n", answer.line(lang));
                }
            }
            Block::Heading(heading) => out += &format!("\n{}\n", heading.title.line(lang)),
            Block::Paragraph { text, .. } => out += &format!("{}\n", plain_line(text, lang)),
            Block::List { items, .. } => {
                items.iter().for_each(|item| out += &format!("- {}\n", plain_line(item, lang)));
            }
            Block::Terms { terms } => {
                for (word, meaning) in terms {
                    out += &format!("{}: {}\n", word.line(lang), meaning.line(lang));
                }
            }
            Block::Table(table) => out += &plain_table(table, lang),
            Block::Figures { .. } | Block::Details { is_bulky: true, .. } => {}
            // Details that a page shows on demand only are too long for a screen.
            Block::Details { summary, is_open, blocks, .. } => {
                let inner = if *is_open { terminal(blocks, lang) } else { String::new() };
                out += &format!("\n{}\n{inner}", plain_line(summary, lang));
            }
            Block::Code { text } => text.lines().for_each(|line| out += &format!("  {line}\n")),
        }
    }
    out
}

fn plain_line(line: &TextLine, lang: Lang) -> String {
    line.iter().map(|span| bare(span, lang, "; ")).collect()
}

fn plain_table(table: &PaperTable, lang: Lang) -> String {
    let titles: Vec<String> =
        (0..table.columns.len()).map(|place| whole_title(&table.columns, place, lang)).collect();
    let rows = table.rows.iter().map(|row| {
        let cells = row.cells.iter().zip(&table.columns).map(|(cell, column)| {
            cell_text(cell, column.format, lang, |line| plain_line(line, lang))
        });
        cells.collect::<Vec<String>>()
    });
    let text = text_table(&titles, &rows.collect::<Vec<_>>(), |place| {
        place > 0 && table.columns[place].format.is_right()
    });
    format!("\n{}\n{text}", plain_line(&table.caption, lang))
}

/// The text of a cell, and in brackets the one below it; `line` writes spans.
fn cell_text(
    cell: &Cell,
    format: NumberFormat,
    lang: Lang,
    line: impl Fn(&TextLine) -> String,
) -> String {
    let text = line(&cell_line(cell, format)).replace('\u{a0}', " ");
    let below: Vec<String> = lines_below(cell, format).iter().map(line).collect();
    let [open, between, close] = match lang {
        Lang::En => [" (", "; ", ")"],
        Lang::Zh => ["（", "；", "）"],
    };
    if below.is_empty() {
        text
    } else {
        format!("{text}{open}{}{close}", below.join(between)).trim_start().to_owned()
    }
}

/// The title of a column in a form without titles above others: the first column of a group names the group.
fn whole_title(columns: &[TableColumn], place: usize, lang: Lang) -> String {
    let column = &columns[place];
    let title = column.title.line(lang);
    let is_first = place == 0 || columns[place - 1].group != column.group;
    let below = column.below.line(lang);
    let title = if below.is_empty() { title } else { format!("{title} ({below})") };
    if column.group.is_empty() || !is_first {
        title
    } else {
        format!("{}: {title}", column.group.line(lang))
    }
}
