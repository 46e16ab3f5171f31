//! Blocks as calls of the functions that the document's theme defines. How they look is the theme's
//! business; what they say and their order are the paper's.

use super::{cell_line, coded, groups, joined, kept, lines_below, set};
use crate::blocks::{
    Block, CellValue, Cover, Drawing, Look, PaperTable, Span, TableColumn, TableRow, TextLine,
};
use dyno_core::is_command;
use dyno_facts::Lang;
use std::collections::HashSet;

/// Longer words get places where a line may break.
const LONGEST_WORD: usize = 20;

/// Blocks as markup.
pub(crate) fn typst(blocks: &[Block], lang: Lang) -> String {
    let mut writer =
        Typst { out: String::new(), lang, anchors: anchors(blocks), set: HashSet::new() };
    writer.blocks(blocks);
    writer.out
}

/// The names of headings and rows, those in details too.
fn anchors(blocks: &[Block]) -> HashSet<&str> {
    let own = blocks.iter().flat_map(|block| match block {
        Block::Heading(heading) => HashSet::from([heading.anchor.as_str()]),
        Block::Table(table) => table.rows.iter().map(|row| row.anchor.as_str()).collect(),
        Block::Details { blocks, .. } => anchors(blocks),
        _ => HashSet::new(),
    });
    own.filter(|name| !name.is_empty()).collect()
}

struct Typst<'a> {
    out: String,
    lang: Lang,
    /// Names that can be referred to.
    anchors: HashSet<&'a str>,
    /// Those of them that have their place already: a name stands for one place.
    set: HashSet<&'a str>,
}

impl<'a> Typst<'a> {
    fn blocks(&mut self, blocks: &'a [Block]) {
        blocks.iter().for_each(|block| self.block(block));
    }

    fn block(&mut self, block: &'a Block) {
        match block {
            Block::Cover(cover) => self.cover(cover),
            Block::Heading(heading) => {
                let name = if self.set.insert(&heading.anchor) { &heading.anchor } else { "" };
                // The contents name sections and what a paper lists below them.
                let outlined = heading.level == 2 || heading.is_listed;
                let (level, name) = (heading.level, quoted(name));
                self.put(&format!("\n#title-of-level({level}, {name}, outlined: {outlined})["));
                if !heading.number.is_empty() {
                    self.put(&format!("{} ", markup(&heading.number)));
                }
                let title = markup(&set(&heading.title, self.lang));
                self.put(&format!("{title}]\n"));
            }
            Block::Paragraph { style, text } => self.paragraph(style.class(), text),
            Block::List { style, items } => {
                self.put(&format!("\n#items({}, false", quoted(style.class())));
                for item in items {
                    self.put(", ");
                    self.bracketed(item);
                }
                self.put(")\n");
            }
            Block::Terms { terms } => {
                self.put("\n#terms-of(\"\"");
                for term in terms {
                    let [word, meaning] = [&term.0, &term.1].map(|it| markup(&set(it, self.lang)));
                    self.put(&format!(", (\"dt\", [{word}]), (\"dd\", [{meaning}])"));
                }
                self.put(")\n");
            }
            Block::Table(table) => self.table(table),
            Block::Figures { figures, is_grid: false } => {
                figures.iter().for_each(|figure| self.figure(figure));
            }
            Block::Figures { figures, is_grid: true } => {
                let columns = if figures.len() == 1 { 1 } else { 2 };
                self.put(&format!("\n#side-by-side({columns}"));
                for figure in figures {
                    self.put(", [");
                    self.figure(figure);
                    self.put("]");
                }
                self.put(")\n");
            }
            Block::Details { summary, blocks, .. } => {
                self.put("\n#details(\"\")[\n#details-title");
                self.bracketed(summary);
                self.put("\n");
                self.blocks(blocks);
                self.put("]\n");
            }
            Block::Code { text } => self.put(&format!("\n#listing({})\n", quoted(text))),
        }
    }

    fn put(&mut self, markup: &str) {
        self.out.push_str(markup);
    }

    fn paragraph(&mut self, class: &str, text: &TextLine) {
        self.put(&format!("\n#paragraph({})", quoted(class)));
        self.bracketed(text);
        self.put("\n");
    }

    fn cover(&mut self, cover: &Cover) {
        let lang = self.lang;
        let text = |text| markup(&set(text, lang));
        self.put("\n#cover(\"\")[");
        if let Some((kind, bytes)) = super::logo_of(&cover.logo) {
            let data = match kind {
                "svg" => quoted(&String::from_utf8_lossy(&bytes)),
                _ => {
                    let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
                    format!("({},)", bytes.join(", "))
                }
            };
            self.put(&format!("\n#logo({}, bytes({data}))", quoted(kind)));
        }
        self.put(&format!("\n#paragraph(\"kicker\")[{}]", text(&cover.kicker)));
        self.put(&format!("\n#title-of-level(1, \"\")[{}]", text(&cover.title)));
        for (class, words) in cover.lines() {
            self.put(&format!("\n#paragraph({})[{}]", quoted(class), text(words)));
        }
        if !cover.answers.is_empty() {
            let items = cover.answers.iter().map(|answer| format!(", [{}]", text(answer)));
            self.put(&format!("\n#items(\"verdict\", false{})", items.collect::<String>()));
        }
        if let Some(chart) = &cover.chart {
            self.figure(chart);
        }
        self.put("\n#strip(");
        for fact in &cover.facts {
            self.put(&format!("([{}], [", text(&fact.name)));
            self.line(&fact.value);
            for below in &fact.below {
                self.put(&format!("#below(\"\")[{}];", text(below)));
            }
            self.put("]), ");
        }
        let (title, verdict) = (text(&cover.warnings.title), text(&cover.warnings.verdict));
        self.put(&format!(")\n#quoting([#strong[{title}] {verdict}]"));
        for item in &cover.warnings.items {
            self.put(", ");
            self.bracketed(item);
        }
        self.put(")\n]\n");
    }

    /// `[...]` with the line in it.
    fn bracketed(&mut self, line: &TextLine) {
        self.put("[");
        self.line(line);
        self.put("]");
    }

    fn line(&mut self, line: &TextLine) {
        line.iter().for_each(|span| self.span(span));
    }

    fn span(&mut self, span: &Span) {
        let text = span.text.line(self.lang);
        let plain = markup(&kept(&text));
        let note = match span.look {
            Look::Note(level) => format!("note {level:?}"),
            _ => String::new(),
        };
        if let Some(to) = &span.to {
            return self.link(to, &note, &plain);
        }
        let shown = match span.look {
            Look::Plain => plain,
            Look::Break => "#linebreak();".to_owned(),
            Look::Coded => {
                let parts = coded(&text).into_iter().enumerate();
                let marked = parts.map(|(place, part)| match place % 2 {
                    0 => markup(&kept(part)),
                    _ => format!("#code[{}];", markup(part)),
                });
                marked.collect()
            }
            Look::Code => format!("#code[{}];", markup(&text)),
            Look::Emphasis => format!("#stressed(\"\")[{plain}];"),
            Look::Strong => format!("#bold(\"\")[{plain}];"),
            Look::Bad => format!("#bold(\"bad\")[{plain}];"),
            Look::Caveat => format!("#bold(\"caveat\")[{plain}];"),
            Look::Note(_) => format!("#span({})[{plain}];", quoted(&note)),
            Look::Swatch(name) => format!("#span(\"key {name}\")[];"),
        };
        self.put(&shown);
    }

    fn link(&mut self, to: &str, class: &str, text: &str) {
        let class = quoted(class);
        let call = match to.strip_prefix('#') {
            Some(name) if self.anchors.contains(name) => {
                format!("#link-to({}, {class})[{text}];", quoted(name))
            }
            _ if to.starts_with("https://") || to.starts_with("http://") => {
                format!("#link({})[{text}];", quoted(to))
            }
            // A way to a file beside the page leads nowhere from here.
            _ => format!("#span({class})[{text}];"),
        };
        self.put(&call);
    }

    fn figure(&mut self, figure: &Drawing) {
        self.put("\n#drawing(\"\")[");
        self.put(&format!("\n#drawing-caption[{}]\n", markup(&kept(&figure.caption))));
        if figure.legend.len() > 1 {
            self.put("#legend(");
            for (name, class) in &figure.legend {
                self.put(&format!("({}, {}), ", quoted(name), quoted(class)));
            }
            self.put(")\n");
        }
        for svg in &figure.svgs {
            let (head, inside) = svg.split_once('>').unwrap_or((svg, "</svg>"));
            // Alone, it has to say what it is.
            let head = head.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"", 1);
            let head = quoted(&format!("{head}>"));
            let described = quoted(&figure.caption);
            self.put(&format!("#chart({head}, {}, {described})\n", quoted(inside)));
        }
        if !figure.note.is_empty() {
            self.put(&format!("#paragraph(\"fine\")[{}]\n", markup(&kept(&figure.note))));
        }
        self.put("]\n");
    }

    /// Each cell with its place, so that heads over two rows and cells over several columns need no
    /// counting later.
    fn table(&mut self, table: &'a PaperTable) {
        let has_groups = table.columns.iter().any(|column| !column.group.is_empty());
        let heads = if has_groups { 2 } else { 1 };
        let (class, columns) = (quoted(table.class), table.columns.len());
        let rows = heads + table.rows.len();
        self.put(&format!("\n#tabular({class}, {columns}, {heads}, {rows}, "));
        self.bracketed(&table.caption);
        self.put(", (\n");
        for (title, place, count) in groups(&table.columns) {
            if title.is_empty() {
                self.title(&table.columns[place], place, 0, heads);
                continue;
            }
            let title = markup(&set(title, self.lang));
            self.put(&format!("  c({place}, 0, \"group head\", [{title}], w: {count}, h: 1),\n"));
            for x in place..place + count {
                self.title(&table.columns[x], x, 1, 1);
            }
        }
        let body = table.rows.len() - table.feet.min(table.rows.len());
        for (place, row) in table.rows.iter().enumerate() {
            self.row(row, &table.columns, heads + place, place >= body);
        }
        self.put("))\n");
    }

    fn title(&mut self, column: &TableColumn, x: usize, y: usize, high: usize) {
        let right = if column.format.is_right() && x > 0 { "n " } else { "" };
        let title = markup(&set(&column.title, self.lang));
        self.put(&format!("  c({x}, {y}, \"{right}head\", [{title}"));
        if !column.below.is_empty() {
            let below = markup(&set(&column.below, self.lang));
            self.put(&format!("#below(\"\")[{below}];"));
        }
        self.put(&format!("], h: {high}),\n"));
    }

    fn row(&mut self, row: &'a TableRow, columns: &[TableColumn], y: usize, is_foot: bool) {
        let mut anchor = row.anchor.as_str();
        for (x, (cell, column)) in row.cells.iter().zip(columns).enumerate() {
            if cell.value == CellValue::Covered {
                continue;
            }
            let right = if column.format.is_right() && x > 0 { "n" } else { "" };
            let kind = match (is_foot, x) {
                (true, _) => "foot",
                (_, 0) => "first",
                _ => "",
            };
            let own = match row.class {
                "" => String::new(),
                class => format!("row-{class}"),
            };
            let class = joined(&[right, column.class, cell.class, kind, &own]);
            self.put(&format!("  c({x}, {y}, {}, [", quoted(&class)));
            if !anchor.is_empty() && self.set.insert(anchor) {
                self.put(&format!("#place-of({});", quoted(anchor)));
            }
            anchor = "";
            self.line(&cell_line(cell, column.format));
            for line in &lines_below(cell, column.format) {
                let class = if line.iter().any(|span| span.look == Look::Bad) { "bad" } else { "" };
                self.put(&format!("#below({})", quoted(class)));
                self.bracketed(line);
                self.put(";");
            }
            let (wide, high) = (cell.columns.max(1), cell.rows.max(1));
            self.put("]");
            if (wide, high) != (1, 1) {
                self.put(&format!(", w: {wide}, h: {high}"));
            }
            self.put("),\n");
        }
    }
}

/// Text as a string of the document's language.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '\\' | '"' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if is_command(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Text as markup that means nothing but itself, with places to break in long words.
fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut last = '\n';
    let mut word = Word::default();
    for (at, c) in text.char_indices() {
        if c.is_whitespace() && c != '\u{a0}' {
            if last != ' ' {
                out.push(' ');
            }
            last = ' ';
            word = Word::default();
            continue;
        }
        if word.breaks_before(&text[at..], last) {
            out.push_str("#gap;");
        }
        match c {
            c if is_command(c) => out.push(' '),
            '\\' | '#' | '$' | '*' | '_' | '`' | '<' | '>' | '@' | '=' | '-' | '+' | '/' | '~'
            | '[' | ']' | '"' | '\'' => out.extend(['\\', c]),
            // Where no letter is before it, it may number a list or be the first of three.
            '.' if !last.is_alphabetic() => out.push_str("\\."),
            c => out.push(c),
        }
        last = c;
    }
    out
}

/// A run of ASCII letters and signs, which no line breaks by itself.
#[derive(Default)]
struct Word {
    is_long: bool,
    since_break: usize,
}

impl Word {
    /// Whether a line may break before what `rest` begins with.
    fn breaks_before(&mut self, rest: &str, last: char) -> bool {
        if !rest.starts_with(|c: char| c.is_ascii()) {
            *self = Word::default();
            return false;
        }
        if self.since_break == 0 {
            let inside = rest.chars().take_while(|c| c.is_ascii() && !c.is_whitespace());
            self.is_long = inside.count() > LONGEST_WORD;
        }
        let is_sign = matches!(last, '/' | '_' | ',' | '=' | '.' | ':' | '&' | '?' | '-' | ';');
        let breaks =
            self.is_long && (self.since_break == LONGEST_WORD || is_sign && self.since_break > 3);
        self.since_break = if breaks { 1 } else { self.since_break + 1 };
        breaks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_means_nothing_but_itself() {
        assert_eq!(
            markup("a  #b\n[c] 1. d... -- //"),
            "a \\#b \\[c\\] 1\\. d.\\.\\. \\-\\- \\/\\/"
        );
        assert_eq!(quoted("a\"\\\n\u{7}"), "\"a\\\"\\\\\\n \"");
        assert_eq!(markup("short_word 1.5"), "short\\_word 1\\.5");
        assert_eq!(markup(&"a".repeat(25)), format!("{}#gap;{}", "a".repeat(20), "a".repeat(5)));
        let url = "mysql://someone@somewhere:3306/some";
        assert_eq!(markup(url).replace("#gap;", "").replace('\\', ""), url);
        assert_eq!(markup(url).matches("#gap;").count(), 3, "{}", markup(url));
        let chinese = "很长的中文句子没有空格也可以在任何地方换行的很长的中文句子abc";
        assert_eq!(markup(chinese), chinese);
    }
}
