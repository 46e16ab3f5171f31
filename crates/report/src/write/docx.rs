//! Blocks as a document of Office Open XML (ECMA-376): the parts of a `.docx`, for those who edit a paper further.
//!
//! It is written here and not by a crate: what a paper needs of the format is paragraphs, runs, tables and pictures,
//! and the same paper has to give the same bytes.

use super::{alone::alone, coded, each, ends, groups, kept, logo_of, set, shown, told};
use crate::blocks::{
    Block, Cell, CellValue, Cover, Drawing, Look, PaperTable, Span, Style, TableColumn, TextLine,
};
use crate::evidence::Paper;
use crate::format::NumberFormat;
use crate::svg::{escape, letters};
use crate::templates::Templates;
use crate::text::Lang;
use crate::write::ChartFile;
use std::fmt::Write;

/// A part of the document.
#[derive(Clone, Debug, PartialEq)]
pub struct DocxFile {
    /// Its path in the archive.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// A chart as PNG, with its size in pixels of the screen.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    pub png: Vec<u8>,
    pub width: f64,
    pub height: f64,
}

/// English Metric Units of a pixel, and of the width between the margins of A4.
const PIXEL: f64 = 9525.0;
const PAGE: f64 = 6_120_000.0;
/// The most that logos may have, in pixels.
const LOGO: (f64, f64) = (190.0, 48.0);

const NAMESPACES: &str = "xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\" xmlns:r=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships\" xmlns:wp=\"http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing\" xmlns:a=\"http://schemas.openxmlformats.org/drawingml/2006/main\" xmlns:pic=\"http://schemas.openxmlformats.org/drawingml/2006/picture\"";
const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n";
const STYLES: &str = include_str!("../../templates/styles.xml");

impl Paper {
    /// The pictures of the document in their order: the logo, and charts without captions, which are text there.
    pub fn docx_charts(&self, templates: &Templates, lang: Lang) -> Vec<ChartFile> {
        let style = self.standalone_style(templates);
        let bare = |drawing: &Drawing| {
            let bare = Drawing { caption: String::new(), note: String::new(), ..drawing.clone() };
            alone(&bare, String::new(), &style)
        };
        let mut charts = Vec::new();
        let blocks = self.blocks(templates, lang);
        each(&blocks, &mut |block| match block {
            Block::Cover(cover) => {
                let is_drawn = cover.logo.starts_with("data:image/svg");
                charts.extend(is_drawn.then(|| drawn_logo(&cover.logo)));
                charts.extend(cover.chart.as_ref().map(bare));
            }
            Block::Figures { figures, .. } => charts.extend(figures.iter().map(bare)),
            _ => {}
        });
        charts
    }

    /// The parts of the document; `pictures` are its charts in their order, none where they can't be had.
    pub fn docx_with(
        &self,
        templates: &Templates,
        lang: Lang,
        pictures: &[Picture],
    ) -> Vec<DocxFile> {
        let logo = png_logo(&self.texts.logo).into_iter();
        let pictures: Vec<Picture> = logo.chain(pictures.iter().cloned()).collect();
        let mut docx = Docx { out: String::new(), lang, pictures: &pictures, drawn: 0 };
        docx.blocks(&self.blocks(templates, lang));
        let body = docx.out;
        let document = format!(
            "{HEAD}<w:document {NAMESPACES}><w:body>{body}<w:sectPr><w:pgSz w:w=\"11906\" w:h=\"16838\"/><w:pgMar w:top=\"1134\" w:right=\"1134\" w:bottom=\"1134\" w:left=\"1134\" w:header=\"567\" w:footer=\"567\" w:gutter=\"0\"/></w:sectPr></w:body></w:document>"
        );
        let code = if lang == Lang::Zh { "zh-CN" } else { "en-GB" };
        let who = self.texts.authors.join(", ");
        let (title, who) = (escape(&self.title.render(lang)), escape(&who));
        let core = format!(
            "{HEAD}<cp:coreProperties xmlns:cp=\"http://schemas.openxmlformats.org/package/2006/metadata/core-properties\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>{title}</dc:title><dc:creator>{who}</dc:creator><dc:language>{code}</dc:language></cp:coreProperties>"
        );
        let media = (1..=docx.drawn).map(|number| {
            format!("<Relationship Id=\"p{number}\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/image\" Target=\"media/{number}.png\"/>")
        });
        let relations = relations(&format!(
            "<Relationship Id=\"styles\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles\" Target=\"styles.xml\"/>{}",
            media.collect::<String>()
        ));
        let part =
            |name: &str, text: String| DocxFile { name: name.to_owned(), bytes: text.into_bytes() };
        let mut parts = vec![
            part("[Content_Types].xml", content_types()),
            part("_rels/.rels", root_relations()),
            part("docProps/core.xml", core),
            part("word/document.xml", document),
            part("word/_rels/document.xml.rels", relations),
            part("word/styles.xml", STYLES.replace("{{ lang }}", code)),
        ];
        let media = pictures.iter().take(docx.drawn).zip(1..);
        parts.extend(media.map(|(picture, number)| DocxFile {
            name: format!("word/media/{number}.png"),
            bytes: picture.png.clone(),
        }));
        parts
    }
}

/// A logo that is a PNG, as large as it may be.
fn png_logo(url: &str) -> Option<Picture> {
    let (_, png) = logo_of(url).filter(|(kind, _)| *kind == "png")?;
    // Its header has both sizes behind eight bytes of signature and eight of the chunk.
    let size = |at: usize| Some(f64::from(u32::from_be_bytes(*png.get(at..)?.first_chunk()?)));
    let (width, height) = (size(16)?.max(1.0), size(20)?.max(1.0));
    let scale = (LOGO.0 / width).min(LOGO.1 / height).min(1.0);
    Some(Picture { width: width * scale, height: height * scale, png })
}

/// A logo that is an SVG as a drawing like the charts: readers of documents know no SVG.
fn drawn_logo(url: &str) -> ChartFile {
    let (width, height) = LOGO;
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\"><image href=\"{url}\" width=\"{width}\" height=\"{height}\" preserveAspectRatio=\"xMinYMid meet\"/></svg>"
    );
    ChartFile { svg, width, height, ..ChartFile::default() }
}

fn content_types() -> String {
    let document = "application/vnd.openxmlformats-officedocument.wordprocessingml";
    format!(
        "{HEAD}<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\"><Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/><Default Extension=\"xml\" ContentType=\"application/xml\"/><Default Extension=\"png\" ContentType=\"image/png\"/><Override PartName=\"/word/document.xml\" ContentType=\"{document}.document.main+xml\"/><Override PartName=\"/word/styles.xml\" ContentType=\"{document}.styles+xml\"/><Override PartName=\"/docProps/core.xml\" ContentType=\"application/vnd.openxmlformats-package.core-properties+xml\"/></Types>"
    )
}

fn root_relations() -> String {
    relations(
        "<Relationship Id=\"document\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument\" Target=\"word/document.xml\"/><Relationship Id=\"core\" Type=\"http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties\" Target=\"docProps/core.xml\"/>",
    )
}

fn relations(inside: &str) -> String {
    format!(
        "{HEAD}<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">{inside}</Relationships>"
    )
}

struct Docx<'a> {
    out: String,
    lang: Lang,
    pictures: &'a [Picture],
    /// So many of them stand in the document already.
    drawn: usize,
}

impl Docx<'_> {
    fn blocks(&mut self, blocks: &[Block]) {
        blocks.iter().for_each(|block| self.block(block));
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Cover(cover) => self.cover(cover),
            Block::Heading(heading) => {
                let number = heading.number.as_str();
                let blank = if number.is_empty() { "" } else { " " };
                let title = format!("{number}{blank}{}", set(&heading.title, self.lang));
                let level = heading.level.saturating_sub(1).clamp(1, 4);
                self.words(&format!("Heading{level}"), &title);
            }
            Block::Paragraph { style, text } => self.line(style_name(*style), text),
            Block::List { items, .. } => {
                items.iter().for_each(|item| self.line("ListBullet", item));
            }
            Block::Terms { terms } => {
                for (word, meaning) in terms {
                    let (word, meaning) = (set(word, self.lang), set(meaning, self.lang));
                    let runs = run("<w:b/>", &word) + &run("", &format!("  {meaning}"));
                    self.paragraph("", &runs);
                }
            }
            Block::Table(table) => self.table(table),
            Block::Figures { figures, .. } => figures.iter().for_each(|one| self.figure(one)),
            Block::Details { summary, blocks, .. } => {
                self.line("Heading4", summary);
                self.blocks(blocks);
            }
            Block::Code { text } => {
                let lines: Vec<String> = text.lines().map(|line| run("", line)).collect();
                self.paragraph("Code", &lines.join("<w:r><w:br/></w:r>"));
            }
        }
    }

    fn paragraph(&mut self, style: &str, runs: &str) {
        let style = match style {
            "" => String::new(),
            style => format!("<w:pPr><w:pStyle w:val=\"{style}\"/></w:pPr>"),
        };
        let _ = write!(self.out, "<w:p>{style}{runs}</w:p>");
    }

    fn words(&mut self, style: &str, words: &str) {
        self.paragraph(style, &run("", words));
    }

    fn line(&mut self, style: &str, line: &TextLine) {
        let runs = self.runs(line);
        self.paragraph(style, &runs);
    }

    fn cover(&mut self, cover: &Cover) {
        let lang = self.lang;
        if !cover.logo.is_empty() {
            self.picture("");
        }
        self.words("Subtle", &set(&cover.kicker, lang));
        self.words("Title", &set(&cover.title, lang));
        for (class, words) in cover.lines() {
            let style = match class {
                "verdict" => "Lead",
                "banner" => "Banner",
                _ => "Subtle",
            };
            self.words(style, &set(words, lang));
        }
        cover.answers.iter().for_each(|answer| self.words("ListBullet", &set(answer, lang)));
        cover.chart.iter().for_each(|chart| self.figure(chart));
        for fact in &cover.facts {
            let mut runs =
                run("<w:b/>", &set(&fact.name, lang)) + &run("", "  ") + &self.runs(&fact.value);
            for below in &fact.below {
                runs += &run("<w:color w:val=\"5B6168\"/>", &format!("  {}", set(below, lang)));
            }
            self.paragraph("", &runs);
        }
        let warnings = &cover.warnings;
        let head = run("<w:b/>", &set(&warnings.title, lang));
        self.paragraph(
            "Disclosure",
            &(head + &run("", &format!("  {}", set(&warnings.verdict, lang)))),
        );
        warnings.items.iter().for_each(|item| self.line("ListBullet", item));
    }

    fn runs(&self, line: &TextLine) -> String {
        line.iter().map(|span| self.span(span)).collect()
    }

    fn span(&self, span: &Span) -> String {
        let text = told(&span.text, self.lang);
        let plain = kept(&text);
        let runs = match span.look {
            Look::Break => return "<w:r><w:br/></w:r>".to_owned(),
            Look::Swatch(_) => return String::new(),
            Look::Coded => {
                let parts = coded(&text).into_iter().enumerate();
                let looks = parts.map(|(place, part)| match place % 2 {
                    0 => run("", &kept(part)),
                    _ => run(CODE, part),
                });
                looks.collect()
            }
            Look::Plain => run("", &plain),
            Look::Code => run(CODE, &text),
            Look::Emphasis => run("<w:i/>", &plain),
            Look::Strong | Look::Count => run("<w:b/>", &plain),
            Look::Bad => run("<w:b/><w:color w:val=\"B3261E\"/>", &plain),
            Look::Caveat => run("<w:b/><w:color w:val=\"8A5A00\"/>", &plain),
            Look::Note(_) => run("<w:b/>", &format!("{text} ")),
        };
        match span.to.as_deref() {
            Some(to) if to.starts_with("https://") || to.starts_with("http://") => {
                let to = escape(&format!(" HYPERLINK \"{}\" ", to.replace('"', "%22")));
                format!("<w:fldSimple w:instr=\"{to}\">{runs}</w:fldSimple>")
            }
            _ => runs,
        }
    }

    fn figure(&mut self, figure: &Drawing) {
        self.words("Caption", &kept(&figure.caption));
        self.picture(&figure.caption);
        if !figure.note.is_empty() {
            self.words("Subtle", &kept(&figure.note));
        }
    }

    /// The next picture, if there are any.
    fn picture(&mut self, described: &str) {
        if let Some(picture) = self.pictures.get(self.drawn) {
            self.drawn += 1;
            let number = self.drawn;
            let scale = (PAGE / (picture.width * PIXEL)).min(1.0) * PIXEL;
            let (wide, high) = ((picture.width * scale) as u64, (picture.height * scale) as u64);
            let described = escape(described);
            let _ = write!(
                self.out,
                "<w:p><w:r><w:drawing><wp:inline distT=\"0\" distB=\"0\" distL=\"0\" distR=\"0\"><wp:extent cx=\"{wide}\" cy=\"{high}\"/><wp:docPr id=\"{number}\" name=\"{number}\" descr=\"{described}\"/><a:graphic><a:graphicData uri=\"http://schemas.openxmlformats.org/drawingml/2006/picture\"><pic:pic><pic:nvPicPr><pic:cNvPr id=\"{number}\" name=\"{number}\"/><pic:cNvPicPr/></pic:nvPicPr><pic:blipFill><a:blip r:embed=\"p{number}\"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill><pic:spPr><a:xfrm><a:off x=\"0\" y=\"0\"/><a:ext cx=\"{wide}\" cy=\"{high}\"/></a:xfrm><a:prstGeom prst=\"rect\"><a:avLst/></a:prstGeom></pic:spPr></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>"
            );
        }
    }

    fn table(&mut self, table: &PaperTable) {
        self.line("Caption", &table.caption);
        let columns = &table.columns;
        let grid = self.grid(table);
        let _ = write!(
            self.out,
            "<w:tbl><w:tblPr><w:tblStyle w:val=\"Figures\"/><w:tblW w:w=\"5000\" w:type=\"pct\"/></w:tblPr><w:tblGrid>{grid}</w:tblGrid>"
        );
        if columns.iter().any(|column| !column.group.is_empty()) {
            self.out += "<w:tr><w:trPr><w:tblHeader/></w:trPr>";
            for (title, _, count) in groups(columns) {
                let title = run("<w:b/>", &set(title, self.lang));
                self.cell(&title, count, "", false);
            }
            self.out += "</w:tr>";
        }
        self.out += "<w:tr><w:trPr><w:tblHeader/></w:trPr>";
        for (place, column) in columns.iter().enumerate() {
            let below = set(&column.below, self.lang);
            let mut title = run("<w:b/>", &set(&column.title, self.lang));
            if !below.is_empty() {
                title += &run("", &format!(" {below}"));
            }
            self.cell(&title, 1, "", column.format.is_right() && place > 0);
        }
        self.out += "</w:tr>";
        // What an upper cell covers is a cell of its own that goes on with it.
        let mut open: Vec<usize> = vec![0; columns.len()];
        for row in &table.rows {
            self.out += "<w:tr>";
            let mut skipped = 0;
            for (place, (cell, column)) in row.cells.iter().zip(columns).enumerate() {
                if skipped > 0 {
                    skipped -= 1;
                    continue;
                }
                let is_right = column.format.is_right() && place > 0;
                if cell.value == CellValue::Covered && open[place] > 0 {
                    open[place] -= 1;
                    self.cell("", 1, "<w:vMerge/>", is_right);
                    continue;
                }
                let (wide, high) = (cell.columns.max(1), cell.rows.max(1));
                open[place] = high - 1;
                skipped = wide - 1;
                let merge = if high > 1 { "<w:vMerge w:val=\"restart\"/>" } else { "" };
                let runs = self.content(cell, column);
                self.cell(&runs, wide, merge, is_right);
            }
            self.out += "</w:tr>";
        }
        // Between two tables there has to be a paragraph.
        self.out += "</w:tbl><w:p/>";
    }

    /// Columns as wide as their longest words need, with more for those that have much to say: not every reader fits
    /// them to their content.
    fn grid(&self, table: &PaperTable) -> String {
        // Twentieths of a point between the margins, and letters beyond which a word may be broken or a text goes on
        // in another line.
        const ROOM: f64 = 9638.0;
        const LONGEST: (usize, usize) = (16, 60);
        let weight = |place: usize| {
            let column = &table.columns[place];
            let rows = table.rows.iter().filter_map(|row| row.cells.get(place));
            let own = rows.filter(|cell| cell.columns <= 1).map(|cell| self.content(cell, column));
            let title =
                format!("{} {}", set(&column.title, self.lang), set(&column.below, self.lang));
            let (mut word, mut all) = (2, 2);
            for text in own.map(|runs| bare_text(&runs)).chain([title]) {
                let words = text.split(' ').map(letters);
                word = word.max(words.max().unwrap_or(0).min(LONGEST.0));
                all = all.max(letters(&text).min(LONGEST.1));
            }
            word as f64 + 2.0 + 0.2 * all as f64
        };
        let weights: Vec<f64> = (0..table.columns.len()).map(weight).collect();
        let sum: f64 = weights.iter().sum();
        let column = |weight: &f64| format!("<w:gridCol w:w=\"{:.0}\"/>", weight / sum * ROOM);
        weights.iter().map(column).collect()
    }

    fn cell(&mut self, runs: &str, wide: usize, merge: &str, is_right: bool) {
        let span = if wide > 1 { format!("<w:gridSpan w:val=\"{wide}\"/>") } else { String::new() };
        let side = if is_right { "<w:jc w:val=\"right\"/>" } else { "" };
        let _ = write!(
            self.out,
            "<w:tc><w:tcPr>{span}{merge}</w:tcPr><w:p><w:pPr><w:pStyle w:val=\"Cell\"/>{side}</w:pPr>{runs}</w:p></w:tc>"
        );
    }

    fn content(&self, cell: &Cell, column: &TableColumn) -> String {
        let format: NumberFormat = column.format;
        let mut runs = match (&cell.value, shown(cell, format)) {
            (CellValue::Missing | CellValue::Blank, Some(text)) => run("", &text),
            (_, Some(text)) if cell.bound.is_empty() => run("", &text),
            (_, Some(text)) => run("", &format!("{}\u{a0}{text}", cell.bound)),
            (CellValue::Text(line), None) => self.runs(line),
            (CellValue::Notes(notes), None) => {
                let notes: Vec<String> =
                    notes.iter().map(|(level, number)| format!("{level:?}{number}")).collect();
                run("<w:b/>", &notes.join(" "))
            }
            _ => String::new(),
        };
        if let CellValue::Spread(spread) = &cell.value {
            runs += &(BREAK.to_owned() + &run(SMALL, &ends(spread, format)));
        }
        for line in &cell.below {
            runs += &(BREAK.to_owned() + &self.runs(line));
        }
        runs
    }
}

const CODE: &str = "<w:rFonts w:ascii=\"Consolas\" w:hAnsi=\"Consolas\"/>";
const SMALL: &str = "<w:color w:val=\"5B6168\"/><w:sz w:val=\"14\"/>";
const BREAK: &str = "<w:r><w:br/></w:r>";

fn style_name(style: Style) -> &'static str {
    match style {
        Style::Plain => "",
        Style::Lead => "Lead",
        Style::Fine => "Subtle",
        Style::Disclosure => "Disclosure",
    }
}

/// The text of runs; a line break is a blank.
fn bare_text(runs: &str) -> String {
    let parts = runs.split('<').map(|part| match part.split_once('>') {
        Some((tag, _)) if tag.starts_with("w:br") => " ",
        Some((_, text)) => text,
        None => part,
    });
    parts.collect()
}

/// A run of text that looks alike.
fn run(properties: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let look = match properties {
        "" => String::new(),
        properties => format!("<w:rPr>{properties}</w:rPr>"),
    };
    format!("<w:r>{look}<w:t xml:space=\"preserve\">{}</w:t></w:r>", escape(text))
}
