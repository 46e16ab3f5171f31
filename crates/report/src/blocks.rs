//! A paper as blocks: what it says and shows, before a writer gives it a form.

pub use dyno_judge::evidence::{Level, Spread};

use crate::format::NumberFormat;
use dyno_facts::Message;
use dyno_facts::statistics::Metric;
use serde::Serialize;

/// Spans in a line of text.
pub type TextLine = Vec<Span>;

/// A part of a paper.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// The page above the first section.
    Cover(Box<Cover>),
    Heading(Heading),
    Paragraph {
        style: Style,
        text: TextLine,
    },
    List {
        style: Style,
        items: Vec<TextLine>,
    },
    /// Words with their meanings.
    Terms {
        /// Word and meaning.
        terms: Vec<(Message, Message)>,
    },
    Table(PaperTable),
    /// Figures; several stand alongside each other where there is room.
    Figures {
        figures: Vec<Drawing>,
        /// Set if small figures stand alongside each other.
        is_grid: bool,
    },
    /// Blocks that a page shows on demand.
    Details {
        summary: TextLine,
        /// Set if it is open from the start.
        is_open: bool,
        /// Set if it is too long for a text.
        is_bulky: bool,
        blocks: Vec<Block>,
    },
    /// Text as it stands: a command, a script, a plan.
    Code {
        text: String,
    },
}

/// Page one.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Cover {
    /// The publisher's, as a `data:` URL; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub logo: String,
    /// The kind of this document.
    pub kicker: Message,
    pub title: Message,
    /// Below the title; may be empty.
    #[serde(skip_serializing_if = "Message::is_empty")]
    pub subtitle: Message,
    /// Authors and date of the measurement.
    pub byline: Message,
    /// Across the page where the suite was shrunk: such figures are a rehearsal.
    #[serde(skip_serializing_if = "Message::is_empty")]
    pub banner: Message,
    /// The answer in a sentence or two, or the head of a list; empty if the list needs none.
    pub answer: Message,
    /// The answer line by line, if it is longer than a sentence or two.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Message>,
    /// The chart that carries it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart: Option<Drawing>,
    /// Systems, data against memory, load, durability.
    pub facts: Vec<Fact>,
    pub warnings: CoverWarnings,
    /// Heads the table of contents.
    pub contents: Message,
}

impl Cover {
    /// The lines below the title, each with its class; empty ones are left out.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&'static str, &Message)> {
        let lines = [
            ("subtitle", &self.subtitle),
            ("byline", &self.byline),
            ("banner", &self.banner),
            ("verdict", &self.answer),
        ];
        lines.into_iter().filter(|(_, words)| !words.is_empty())
    }
}

/// Warnings before a figure is quoted.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CoverWarnings {
    pub title: Message,
    /// Number of findings that forbid and qualify.
    pub verdict: Message,
    /// Findings that forbid a figure, then those that qualify one.
    pub items: Vec<TextLine>,
}

/// A name and its value.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Fact {
    pub name: Message,
    pub value: TextLine,
    /// Small print below it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<Message>,
}

#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Heading {
    /// 2 for sections, 3 to 5 below them.
    pub level: u8,
    /// For example `6.1`; may be empty.
    pub number: String,
    pub title: Message,
    /// The target of links to it; may be empty.
    pub anchor: String,
    /// Set if the table of contents names it.
    pub is_listed: bool,
}

/// Look of a paragraph or a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    #[default]
    Plain,
    /// The whole in a paragraph.
    Lead,
    /// Small print.
    Fine,
    /// A note that a reader must know before anything else.
    Disclosure,
}

impl Style {
    /// The class of pages and of the theme of the PDF.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Style::Plain => "",
            Style::Lead => "lead",
            Style::Fine => "fine",
            Style::Disclosure => "disclosure",
        }
    }
}

/// Drawings with what is written around them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Drawing {
    pub caption: String,
    /// Reading instructions; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The names of lines, and the classes that say how they are drawn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub legend: Vec<(String, String)>,
    /// As SVG.
    #[serde(skip)]
    pub svgs: Vec<String>,
    /// Drawings half as wide, two side by side in the short edition; empty if they need the whole width.
    #[serde(skip)]
    pub halves: Vec<String>,
}

/// Blocks that are put together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blocks(pub(crate) Vec<Block>);

impl Blocks {
    /// Adds a heading. With an anchor it may be linked to, and headings of sections and of their numbered parts are
    /// listed in the table of contents.
    pub fn heading(&mut self, level: u8, number: &str, title: impl Into<Message>, anchor: &str) {
        let is_part = level == 2 || level == 3 && !number.is_empty();
        let (number, title, anchor) = (number.to_owned(), title.into(), anchor.to_owned());
        let is_listed = is_part && !anchor.is_empty();
        self.0.push(Block::Heading(Heading { level, number, title, anchor, is_listed }));
    }

    /// Adds a paragraph in the plain style, unless the text is empty.
    pub fn paragraph(&mut self, text: impl Into<IntoLine>) {
        self.styled(Style::Plain, text);
    }

    /// Adds a paragraph in small print, unless the text is empty.
    pub fn fine(&mut self, text: impl Into<IntoLine>) {
        self.styled(Style::Fine, text);
    }

    /// Adds a paragraph in this style, unless the text is empty.
    pub fn styled(&mut self, style: Style, text: impl Into<IntoLine>) {
        let IntoLine(text) = text.into();
        if !text.is_empty() {
            self.0.push(Block::Paragraph { style, text });
        }
    }

    /// Adds a list in this style, unless it has no items.
    pub fn list(&mut self, style: Style, items: Vec<TextLine>) {
        if !items.is_empty() {
            self.0.push(Block::List { style, items });
        }
    }

    /// Adds a table, unless it has no rows.
    pub fn table(&mut self, table: impl Into<PaperTable>) {
        let table = table.into();
        if !table.rows.is_empty() {
            self.0.push(Block::Table(table));
        }
    }

    /// Adds preformatted text, such as a command or a script.
    pub fn code(&mut self, text: impl Into<String>) {
        self.0.push(Block::Code { text: text.into() });
    }

    /// Adds blocks that a page folds away below their summary; `is_open` shows them from the start.
    pub fn details(&mut self, summary: impl Into<IntoLine>, is_open: bool, inner: Blocks) {
        let IntoLine(summary) = summary.into();
        let blocks = inner.0;
        self.0.push(Block::Details { summary, is_open, is_bulky: false, blocks });
    }

    /// The last of these details is too long for a text.
    pub fn bulky(&mut self) {
        if let Some(Block::Details { is_bulky, .. }) = self.0.last_mut() {
            *is_bulky = true;
        }
    }

    /// Adds figures as wide as the page, unless there are none.
    pub fn figures(&mut self, figures: impl IntoIterator<Item = Drawing>) {
        let figures: Vec<Drawing> = figures.into_iter().collect();
        if !figures.is_empty() {
            self.0.push(Block::Figures { figures, is_grid: false });
        }
    }

    /// Adds small figures, side by side if there is room.
    pub fn grid(&mut self, figures: Vec<Drawing>) {
        if !figures.is_empty() {
            self.0.push(Block::Figures { figures, is_grid: true });
        }
    }
}

impl Extend<Block> for Blocks {
    fn extend<T: IntoIterator<Item = Block>>(&mut self, blocks: T) {
        self.0.extend(blocks);
    }
}

impl IntoIterator for Blocks {
    type Item = Block;
    type IntoIter = std::vec::IntoIter<Block>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Anything that can become a line: a text, a span, spans.
pub struct IntoLine(pub(crate) TextLine);

impl From<Span> for IntoLine {
    fn from(span: Span) -> IntoLine {
        IntoLine(vec![span])
    }
}

impl From<TextLine> for IntoLine {
    fn from(line: TextLine) -> IntoLine {
        IntoLine(line)
    }
}

/// A stretch of text.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Span {
    pub text: Message,
    #[serde(skip_serializing_if = "Look::is_plain")]
    pub look: Look,
    /// Target of the link: `#anchor`, or a file next to the paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// Look of a stretch of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    #[default]
    Plain,
    /// A sentence in which code stands between backticks.
    Coded,
    Code,
    Emphasis,
    Strong,
    /// Strong: something is wrong.
    Bad,
    /// Strong: something is worth a caveat.
    Caveat,
    /// The number of a check, in the color of its level.
    Note(Level),
    /// A sample of a chart's color: `warm`, `error` or `gap`.
    Swatch(&'static str),
    /// A new line begins; there is no text.
    Break,
}

impl Look {
    fn is_plain(&self) -> bool {
        *self == Look::Plain
    }
}

impl Span {
    /// A span that looks like the text around it.
    pub fn plain(text: impl Into<Message>) -> Span {
        Span::new(text, Look::Plain)
    }

    pub fn new(text: impl Into<Message>, look: Look) -> Span {
        Span { text: text.into(), look, to: None }
    }
}

/// A span that is shown as code.
pub fn code(text: impl Into<Message>) -> Span {
    Span::new(text, Look::Code)
}

/// A sentence that has its code between backticks.
pub fn coded(text: impl Into<Message>) -> Span {
    Span::new(text, Look::Coded)
}

/// A span in italics; plain in Markdown.
pub fn emphasis(text: impl Into<Message>) -> Span {
    Span::new(text, Look::Emphasis)
}

/// A span in bold.
pub fn strong(text: impl Into<Message>) -> Span {
    Span::new(text, Look::Strong)
}

/// A span in bold that points out an error.
pub fn bad(text: impl Into<Message>) -> Span {
    Span::new(text, Look::Bad)
}

/// The number of a check, linked to the check.
pub(crate) fn note(level: Level, number: usize) -> Span {
    let text = format!("{level:?}{number}").into();
    Span { text, look: Look::Note(level), to: Some(format!("#check-{number}")) }
}

/// A span that links to `#anchor`, a URL, or a file next to the paper.
pub fn link(text: impl Into<Message>, to: impl Into<String>) -> Span {
    Span { text: text.into(), look: Look::Plain, to: Some(to.into()) }
}

/// Texts below each other.
pub fn lines<T: Into<IntoLine>>(texts: impl IntoIterator<Item = T>) -> TextLine {
    let mut line = TextLine::new();
    for text in texts {
        let IntoLine(spans) = text.into();
        if !line.is_empty() && !spans.is_empty() {
            line.push(Span::new("", Look::Break));
        }
        line.extend(spans);
    }
    line
}

/// Spans with a text between them.
pub fn separated(spans: impl IntoIterator<Item = Span>, between: &str) -> TextLine {
    let mut line = TextLine::new();
    for span in spans {
        if !line.is_empty() {
            line.push(Span::plain(between));
        }
        line.push(span);
    }
    line
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Cell {
    pub value: CellValue,
    /// `≥` or `≤` where the value is a bound only.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub bound: &'static str,
    /// Small print below it, line by line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<TextLine>,
    /// Look of the cell, besides its column's.
    #[serde(skip)]
    pub class: &'static str,
    /// Columns that it reaches over, 1 where this is 0.
    #[serde(skip)]
    pub columns: usize,
    /// Rows that it reaches over, 1 where this is 0.
    #[serde(skip)]
    pub rows: usize,
}

/// The content of a cell. Numbers are shown as their column says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellValue {
    /// Another cell reaches over this one.
    Covered,
    /// Nothing, on purpose.
    #[default]
    Blank,
    /// Nothing, as it is not known.
    Missing,
    Text(TextLine),
    Number(f64),
    /// A median with the lowest and the highest.
    Spread(Spread),
    /// Two ends.
    Range([f64; 2]),
    /// Numbers of checks with their levels.
    Notes(Vec<(Level, usize)>),
}

impl Cell {
    /// With small print below.
    pub fn with(mut self, below: impl Into<IntoLine>) -> Cell {
        let IntoLine(line) = below.into();
        if !line.is_empty() {
            self.below.push(line);
        }
        self
    }

    /// With small print below where the condition holds.
    pub fn with_if(self, is_so: bool, below: impl FnOnce() -> TextLine) -> Cell {
        if is_so { self.with(below()) } else { self }
    }

    /// Sets the CSS class of the cell, in addition to its column's.
    pub fn class(mut self, class: &'static str) -> Cell {
        self.class = class;
        self
    }

    /// `≥` or `≤` before it, unless nothing is known.
    pub fn bound(mut self, bound: &'static str) -> Cell {
        self.bound = bound;
        self
    }

    /// Spans this many columns; the cells after the first must be [`CellValue::Covered`].
    pub fn over(mut self, columns: usize) -> Cell {
        self.columns = columns;
        self
    }

    /// A cell that isn't drawn because another one reaches over it.
    pub fn covered() -> Cell {
        CellValue::Covered.into()
    }

    /// A cell with a dash: its value is not known.
    pub fn missing() -> Cell {
        CellValue::Missing.into()
    }

    /// A cell that is empty on purpose.
    pub fn blank() -> Cell {
        Cell::default()
    }
}

/// A number, with its range if several trials made it.
pub fn spread(spread: Spread, repeats: usize) -> Cell {
    if repeats > 1 { CellValue::Spread(spread).into() } else { spread.median.into() }
}

/// A number, with its range unless both ends are equal.
pub fn number(spread_or_one: Spread) -> Cell {
    spread(spread_or_one, if spread_or_one.min == spread_or_one.max { 1 } else { 2 })
}

macro_rules! texts {
    ($($kind:ty),*) => {$(
        impl From<$kind> for IntoLine {
            fn from(text: $kind) -> IntoLine {
                let text = Message::from(text);
                IntoLine(if text.is_empty() { Vec::new() } else { vec![Span::plain(text)] })
            }
        }
    )*};
}

texts!(&str, String, &String, Message, &Message);

macro_rules! lines_of {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Cell {
            fn from(text: $kind) -> Cell {
                let IntoLine(line) = IntoLine::from(text);
                if line.is_empty() { Cell::blank() } else { CellValue::Text(line).into() }
            }
        }
    )*};
}

lines_of!(&str, String, &String, Message, &Message, Span, TextLine);

macro_rules! numbers {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Cell {
            fn from(number: $kind) -> Cell {
                CellValue::Number(number as f64).into()
            }
        }
    )*};
}

numbers!(f64, u64, u32, u8, usize);

impl From<CellValue> for Cell {
    fn from(value: CellValue) -> Cell {
        Cell { value, ..Cell::default() }
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or_else(Cell::missing, Into::into)
    }
}

/// Columns that know how their numbers are shown, and rows of cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PaperTable {
    pub caption: Vec<Span>,
    /// `text`, `queries`, `published` or nothing.
    #[serde(skip)]
    pub class: &'static str,
    pub columns: Vec<TableColumn>,
    pub rows: Vec<TableRow>,
    /// So many of the last rows sum up the others.
    #[serde(skip_serializing_if = "is_zero")]
    pub feet: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TableColumn {
    /// Its title, with the unit.
    pub title: Message,
    /// Small print below the title.
    #[serde(skip_serializing_if = "Message::is_empty")]
    pub below: Message,
    /// The title above those of several columns.
    #[serde(skip_serializing_if = "Message::is_empty")]
    pub group: Message,
    pub format: NumberFormat,
    #[serde(skip)]
    pub class: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TableRow {
    pub cells: Vec<Cell>,
    /// The target of links to it; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub anchor: String,
    /// `weak`, `theirs`, `part`, `gray` or nothing.
    #[serde(skip)]
    pub class: &'static str,
}

/// A table that is made column by column: each call has a title and its cells.
pub struct PaperRows<R> {
    rows: Vec<R>,
    table: PaperTable,
    group: Message,
}

impl<R: Copy> PaperRows<R> {
    pub fn new(caption: impl Into<IntoLine>, rows: impl IntoIterator<Item = R>) -> PaperRows<R> {
        let rows: Vec<R> = rows.into_iter().collect();
        let IntoLine(caption) = caption.into();
        let empty = rows.iter().map(|_| TableRow::default()).collect();
        let table = PaperTable { caption, rows: empty, ..PaperTable::default() };
        PaperRows { rows, table, group: Message::default() }
    }

    /// A column; texts are aligned left, numbers right.
    pub fn col<C: Into<Cell>>(
        mut self,
        title: impl Into<Message>,
        format: NumberFormat,
        cell: impl Fn(R) -> C,
    ) -> Self {
        for (row, table_row) in self.rows.iter().zip(&mut self.table.rows) {
            table_row.cells.push(cell(*row).into());
        }
        let (title, group) = (title.into(), self.group.clone());
        self.table.columns.push(TableColumn { title, format, group, ..TableColumn::default() });
        self
    }

    /// A column of the numbers that count most.
    pub fn strong<C: Into<Cell>>(
        self,
        title: impl Into<Message>,
        format: NumberFormat,
        cell: impl Fn(R) -> C,
    ) -> Self {
        self.col(title, format, cell).class("strong")
    }

    /// The last column is left out if no row has anything in it.
    pub fn if_any(mut self) -> Self {
        let is_empty = self.table.rows.iter().filter_map(|row| row.cells.last()).all(|cell| {
            cell.below.is_empty() && matches!(cell.value, CellValue::Missing | CellValue::Blank)
        });
        if is_empty {
            self.table.columns.pop();
            self.table.rows.iter_mut().for_each(|row| drop(row.cells.pop()));
        }
        self
    }

    /// A column for each metric that some row has.
    pub fn metrics<C: Into<Cell>>(
        self,
        metrics: impl IntoIterator<Item = Metric>,
        cell: impl Fn(R, Metric) -> C,
    ) -> Self {
        metrics.into_iter().fold(self, |table, metric| {
            table.col(metric.title(), NumberFormat::Short, |row| cell(row, metric)).if_any()
        })
    }

    /// A column of texts.
    pub fn text<C: Into<Cell>>(self, title: impl Into<Message>, cell: impl Fn(R) -> C) -> Self {
        self.col(title, NumberFormat::Text, cell)
    }

    /// Sets the look of the cells of the last column.
    pub fn class(mut self, class: &'static str) -> Self {
        if let Some(column) = self.table.columns.last_mut() {
            column.class = class;
        }
        self
    }

    /// Small print below the title of the last column.
    pub fn below(mut self, below: Message) -> Self {
        if let Some(column) = self.table.columns.last_mut() {
            column.below = below;
        }
        self
    }

    /// Adds columns if a condition holds.
    pub fn when(self, is_so: bool, columns: impl FnOnce(Self) -> Self) -> Self {
        if is_so { columns(self) } else { self }
    }

    /// Columns below a title that they share.
    pub fn group(mut self, title: impl Into<Message>, columns: impl FnOnce(Self) -> Self) -> Self {
        self.group = title.into();
        let mut table = columns(self);
        table.group = Message::default();
        table
    }

    /// The look of the table: `text`, `queries` or `published`.
    pub fn look(mut self, class: &'static str) -> Self {
        self.table.class = class;
        self
    }

    /// Merges the cells of the last column over each stretch of rows with the same key: the cell of the first row
    /// stays.
    pub fn merged(mut self, key: impl Fn(R) -> usize) -> Self {
        for (_, rows) in self.split_by_key(key) {
            let count = rows.len();
            let mut cells = rows.iter_mut().filter_map(|row| row.cells.last_mut());
            cells.next().into_iter().for_each(|first| first.rows = count);
            cells.for_each(|cell| *cell = Cell::covered());
        }
        self
    }

    /// The first row of each stretch of rows with the same key has an anchor.
    pub fn anchored(mut self, key: impl Fn(R) -> usize, anchor: impl Fn(R) -> String) -> Self {
        self.split_by_key(key).for_each(|(row, rows)| rows[0].anchor = anchor(row));
        self
    }

    fn split_by_key(
        &mut self,
        key: impl Fn(R) -> usize,
    ) -> impl Iterator<Item = (R, &mut [TableRow])> {
        let mut remaining = self.table.rows.as_mut_slice();
        self.rows.chunk_by(move |row, next| key(*row) == key(*next)).map(move |stretch| {
            let (table_rows, further) = std::mem::take(&mut remaining).split_at_mut(stretch.len());
            remaining = further;
            (stretch[0], table_rows)
        })
    }

    /// Anchors and looks of rows.
    pub fn each(mut self, change: impl Fn(R, &mut TableRow)) -> Self {
        for (row, table_row) in self.rows.iter().zip(&mut self.table.rows) {
            change(*row, table_row);
        }
        self
    }

    /// Marks the last `feet` rows as totals of the others.
    pub fn feet(mut self, feet: usize) -> Self {
        self.table.feet = feet;
        self
    }
}

impl<R> From<PaperRows<R>> for PaperTable {
    fn from(rows: PaperRows<R>) -> PaperTable {
        rows.table
    }
}
