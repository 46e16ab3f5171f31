//! Blocks as the body of a page: well-formed XML too, which the theme of the PDF reads.

use super::*;
use std::collections::HashSet;

/// The body: cover, table of contents, and everything else within `<main>`; in print drawings are texts.
pub(crate) fn html(blocks: &[Block], lang: Lang, is_print: bool) -> String {
    let mut out = Html { out: String::new(), lang, is_print, ids: HashSet::new() };
    for block in blocks {
        if let Block::Cover(cover) = block {
            out.write_cover(cover);
            out.write_contents(cover, blocks);
        }
    }
    out.out.push_str("<main>\n");
    out.write_blocks(blocks);
    out.out.push_str("</main>\n");
    out.out
}

struct Html<'a> {
    out: String,
    lang: Lang,
    is_print: bool,
    /// The anchors so far: each names one place.
    ids: HashSet<&'a str>,
}

impl<'a> Html<'a> {
    fn write_blocks(&mut self, blocks: &'a [Block]) {
        blocks.iter().for_each(|block| self.write_block(block));
    }

    fn write_block(&mut self, block: &'a Block) {
        match block {
            Block::Cover(_) => {}
            Block::Heading(heading) => self.write_heading(heading),
            Block::Paragraph { style, text } => {
                let class = class_attribute(style.class());
                self.put(&format!("<p{class}>"));
                self.write_line(text);
                self.put("</p>\n");
            }
            Block::List { style, items } => self.write_list(style.class(), items),
            Block::Terms { terms } => {
                self.put("<dl class=\"terms\">\n");
                for term in terms {
                    let (word, meaning) = (self.escaped(&term.0), self.escaped(&term.1));
                    self.put(&format!("  <dt>{word}</dt><dd>{meaning}</dd>\n"));
                }
                self.put("</dl>\n");
            }
            Block::Table(table) => self.write_table(table),
            Block::Figures { figures, is_grid } => self.write_figures(figures, *is_grid),
            Block::Details { summary, is_open, blocks, .. } => {
                self.put(if *is_open {
                    "<details open=\"\"><summary>"
                } else {
                    "<details><summary>"
                });
                self.write_line(summary);
                self.put("</summary>\n");
                self.write_blocks(blocks);
                self.put("</details>\n");
            }
            Block::Code { text } => {
                let lines: Vec<String> = text.lines().map(escape).collect();
                self.put(&format!("<pre>{}</pre>\n", lines.join("\n")));
            }
        }
    }

    /// Appends markup unchanged.
    fn put(&mut self, markup: &str) {
        self.out.push_str(markup);
    }

    /// A text in the language of the page, as markup.
    fn escaped(&self, text: &Message) -> String {
        escape(&render_unbroken(text, self.lang))
    }

    fn write_cover(&mut self, cover: &Cover) {
        let (kicker, title) = (self.escaped(&cover.kicker), self.escaped(&cover.title));
        self.put("<header>\n");
        if !cover.logo.is_empty() {
            let logo = escape(&cover.logo);
            self.put(&format!("  <img class=\"logo\" src=\"{logo}\" alt=\"\"/>\n"));
        }
        self.put(&format!("  <p class=\"kicker\">{kicker}</p>\n  <h1>{title}</h1>\n"));
        for (class, words) in cover.lines() {
            let words = self.escaped(words);
            self.put(&format!("  <p class=\"{class}\">{words}</p>\n"));
        }
        if !cover.answers.is_empty() {
            self.put("  <ul class=\"verdict\">\n");
            for answer in &cover.answers {
                let answer = self.escaped(answer);
                self.put(&format!("    <li>{answer}</li>\n"));
            }
            self.put("  </ul>\n");
        }
        if let Some(chart) = &cover.chart {
            self.write_figures(std::slice::from_ref(chart), false);
        }
        self.put("  <dl class=\"facts\">\n");
        for fact in &cover.facts {
            let name = self.escaped(&fact.name);
            self.put(&format!("    <div><dt>{name}</dt><dd>"));
            self.write_line(&fact.value);
            for below in &fact.below {
                let below = self.escaped(below);
                self.put(&format!("<small>{below}</small>"));
            }
            self.put("</dd></div>\n");
        }
        let warnings = &cover.warnings;
        let (title, verdict) = (self.escaped(&warnings.title), self.escaped(&warnings.verdict));
        self.put(&format!("  </dl>\n  <section class=\"quoting\" aria-label=\"{title}\">\n  <p><strong>{title}</strong> {verdict}</p>\n"));
        self.write_list("", &warnings.items);
        self.put("  </section>\n</header>\n");
    }

    fn write_list(&mut self, class: &str, items: &[TextLine]) {
        if items.is_empty() {
            return;
        }
        self.put(&format!("<ul{}>\n", class_attribute(class)));
        for item in items {
            self.put("  <li>");
            self.write_line(item);
            self.put("</li>\n");
        }
        self.put("</ul>\n");
    }

    /// Links to the headings that are listed, those of chapters below their section.
    fn write_contents(&mut self, cover: &Cover, blocks: &[Block]) {
        let label = escape(&cover.contents.line(self.lang));
        self.put(&format!("<nav aria-label=\"{label}\">\n  <ol>\n"));
        for block in blocks {
            let Block::Heading(heading) = block else { continue };
            if heading.is_listed {
                let class = class_attribute(if heading.level > 2 { "below" } else { "" });
                let (anchor, title) = (escape(&heading.anchor), self.numbered_title(heading));
                self.put(&format!("    <li{class}><a href=\"#{anchor}\">{title}</a></li>\n"));
            }
        }
        self.put("  </ol>\n</nav>\n");
    }

    /// The attribute of the first place with this anchor.
    fn id_attribute(&mut self, anchor: &'a str) -> String {
        if !anchor.is_empty() && self.ids.insert(anchor) {
            format!(" id=\"{}\"", escape(anchor))
        } else {
            String::new()
        }
    }

    fn numbered_title(&self, heading: &Heading) -> String {
        let title = self.escaped(&heading.title);
        match heading.number.as_str() {
            "" => title,
            number => format!("{number} {title}"),
        }
    }

    fn write_heading(&mut self, heading: &'a Heading) {
        let (level, title) = (heading.level, self.numbered_title(heading));
        let id = self.id_attribute(&heading.anchor);
        self.put(&format!("<h{level}{id}>{title}</h{level}>\n"));
    }

    fn write_line(&mut self, line: &TextLine) {
        let mut was_note = false;
        for span in line {
            let is_note = matches!(span.look, Look::Note(_));
            if was_note && is_note {
                self.put(" ");
            }
            self.write_span(span);
            was_note = is_note;
        }
    }

    fn write_span(&mut self, span: &Span) {
        let text = span.text.line(self.lang);
        let plain = escape(&keep_numbers_with_words(&text));
        let markup = match span.look {
            Look::Break => "<br/>".to_owned(),
            Look::Plain => plain.clone(),
            Look::Coded => {
                let parts = coded(&text).into_iter().enumerate();
                let tagged = parts.map(|(place, part)| match place % 2 {
                    0 => escape(&keep_numbers_with_words(part)),
                    _ => format!("<code>{}</code>", escape(part)),
                });
                tagged.collect()
            }
            Look::Code => format!("<code>{}</code>", escape(&text)),
            Look::Emphasis => format!("<em>{plain}</em>"),
            Look::Strong => format!("<strong>{plain}</strong>"),
            Look::Bad => format!("<strong class=\"bad\">{plain}</strong>"),
            Look::Caveat => format!("<strong class=\"caveat\">{plain}</strong>"),
            Look::Note(level) => format!("<span class=\"note {level:?}\">{plain}</span>"),
            Look::Swatch(name) => format!("<span class=\"key {name}\"></span>"),
        };
        match (&span.to, span.look) {
            (Some(to), Look::Note(level)) => {
                let to = escape(to);
                self.put(&format!("<a class=\"note {level:?}\" href=\"{to}\">{plain}</a>"));
            }
            (Some(to), _) => {
                self.put(&format!("<a href=\"{}\">{markup}</a>", escape(&link_target(to))));
            }
            (None, _) => self.put(&markup),
        }
    }

    fn write_figures(&mut self, figures: &[Drawing], is_grid: bool) {
        if is_grid {
            let class = if figures.len() == 1 { " one" } else { "" };
            self.put(&format!("<div class=\"grid{class}\">\n"));
        }
        for figure in figures {
            self.put(&format!(
                "<figure>\n  <figcaption>{}</figcaption>\n",
                escape(&keep_numbers_with_words(&figure.caption))
            ));
            if figure.legend.len() > 1 {
                self.put("  <ul class=\"legend\">");
                for (name, class) in &figure.legend {
                    let name = escape(name);
                    self.put(&format!("<li><button type=\"button\" class=\"{class}\" data-name=\"{name}\" aria-pressed=\"true\"><i></i>{name}</button></li>"));
                }
                self.put("</ul>\n");
            }
            let label = escape(&figure.caption);
            self.put(&format!(
                "<div class=\"canvas\" tabindex=\"0\" role=\"group\" aria-label=\"{label}\">"
            ));
            for svg in &figure.svgs {
                self.put(&if self.is_print { escape(svg) } else { svg.clone() });
            }
            self.put("</div>");
            if !figure.note.is_empty() {
                self.put(&format!(
                    "\n  <p class=\"fine\">{}</p>",
                    escape(&keep_numbers_with_words(&figure.note))
                ));
            }
            self.put("\n</figure>\n");
        }
        if is_grid {
            self.put("</div>\n");
        }
    }

    fn write_table(&mut self, table: &'a PaperTable) {
        let class = class_attribute(table.class);
        let label: String =
            table.caption.iter().map(|span| super::bare(span, self.lang, " ")).collect();
        let label = escape(&label);
        self.put(&format!("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{label}\"><table{class}>\n  <caption>"));
        self.write_line(&table.caption);
        self.put("</caption>\n  <thead>");
        self.write_column_titles(&table.columns);
        self.put("</thead>\n  <tbody>\n");
        let body = table.rows.len() - table.feet.min(table.rows.len());
        table.rows[..body].iter().for_each(|row| self.write_row(row, &table.columns));
        self.put("  </tbody>\n");
        if body < table.rows.len() {
            self.put("  <tfoot>\n");
            table.rows[body..].iter().for_each(|row| self.write_row(row, &table.columns));
            self.put("  </tfoot>\n");
        }
        self.put("</table></div>\n");
    }

    fn write_column_titles(&mut self, columns: &[TableColumn]) {
        let has_groups = columns.iter().any(|column| !column.group.is_empty());
        self.put("<tr>");
        for (title, place, count) in groups(columns) {
            if title.is_empty() {
                self.write_column_title(&columns[place], has_groups);
            } else {
                let gray = if columns[place].class.contains("theirs") { " gray" } else { "" };
                let title = self.escaped(title);
                self.put(&format!(
                    "<th scope=\"colgroup\" colspan=\"{count}\" class=\"group{gray}\">{title}</th>"
                ));
            }
        }
        self.put("</tr>");
        if has_groups {
            self.put("\n    <tr>");
            for column in columns.iter().filter(|column| !column.group.is_empty()) {
                self.write_column_title(column, false);
            }
            self.put("</tr>");
        }
    }

    fn write_column_title(&mut self, column: &TableColumn, is_high: bool) {
        let class = [
            if column.format.is_right() { "n" } else { "" },
            if column.class.contains("wrap") { "wrap" } else { "" },
            if column.class.contains("theirs") { "gray" } else { "" },
        ];
        let high = if is_high { " rowspan=\"2\"" } else { "" };
        let title = self.escaped(&column.title);
        self.put(&format!(
            "<th scope=\"col\"{high}{}>{title}",
            class_attribute(&join_classes(&class))
        ));
        if !column.below.is_empty() {
            let below = self.escaped(&column.below);
            self.put(&format!("<small>{below}</small>"));
        }
        self.put("</th>");
    }

    fn write_row(&mut self, row: &'a TableRow, columns: &[TableColumn]) {
        let id = self.id_attribute(&row.anchor);
        self.put(&format!("  <tr{id}{}>", class_attribute(row.class)));
        for (place, (cell, column)) in row.cells.iter().zip(columns).enumerate() {
            if cell.value != CellValue::Covered {
                self.write_cell(cell, column, place == 0);
            }
        }
        self.put("</tr>\n");
    }

    fn write_cell(&mut self, cell: &Cell, column: &TableColumn, is_first: bool) {
        let is_right = column.format.is_right() && !is_first;
        let marks = if matches!(cell.value, CellValue::Notes(_)) { "marks" } else { "" };
        let class =
            join_classes(&[if is_right { "n" } else { "" }, column.class, cell.class, marks]);
        let mut attributes = class_attribute(&class);
        for (name, count) in [("colspan", cell.columns), ("rowspan", cell.rows)] {
            if count > 1 {
                let _ = write!(attributes, " {name}=\"{count}\"");
            }
        }
        let tag = if is_first { "th" } else { "td" };
        let scope = if is_first { " scope=\"row\"" } else { "" };
        let _ = write!(self.out, "<{tag}{scope}{attributes}>");
        self.write_line(&cell_line(cell, column.format));
        for line in &lines_below(cell, column.format) {
            let is_bad = line.iter().any(|span| span.look == Look::Bad);
            let is_note = line.iter().any(|span| matches!(span.look, Look::Note(_)));
            let class = match (is_bad, is_note) {
                (true, _) => "bad",
                (_, true) => "marks",
                _ => "",
            };
            self.put(&format!("<small{}>", class_attribute(class)));
            self.write_line(line);
            self.put("</small>");
        }
        let _ = write!(self.out, "</{tag}>");
    }
}

fn class_attribute(class: &str) -> String {
    if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") }
}

/// An anchor or an address unchanged; a path as a relative link, of which nothing is read as a scheme, a
/// query or markup.
fn link_target(to: &str) -> String {
    if to.starts_with('#') || to.starts_with("https://") || to.starts_with("http://") {
        return to.to_owned();
    }
    let mut link = String::with_capacity(to.len());
    for byte in to.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                link.push(char::from(byte));
            }
            other => {
                let _ = write!(link, "%{other:02X}");
            }
        }
    }
    link
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks;

    fn english_page() -> Html<'static> {
        Html { out: String::new(), lang: Lang::En, is_print: false, ids: HashSet::new() }
    }

    #[test]
    fn code_in_sentences_is_marked_and_nothing_else_becomes_markup() {
        for (text, markup) in [
            ("`a < b` or `c`", "<code>a &lt; b</code> or <code>c</code>"),
            ("a ` alone <b>", "a ` alone &lt;b&gt;"),
        ] {
            let mut out = english_page();
            out.write_span(&blocks::coded(text));
            assert_eq!(out.out, markup);
        }
    }

    #[test]
    fn code_keeps_its_lines_and_nothing_that_is_obeyed() {
        let mut out = english_page();
        let code = Block::Code { text: "-- a\u{202e}<b>\nSELECT 1;\n".to_owned() };
        out.write_block(&code);
        assert_eq!(out.out, "<pre>-- a &lt;b&gt;\nSELECT 1;</pre>\n");
    }

    #[test]
    fn a_path_is_not_a_url() {
        assert_eq!(
            link_target("../a b/javascript:x?y#(z)"),
            "../a%20b/javascript%3Ax%3Fy%23%28z%29"
        );
    }
}
