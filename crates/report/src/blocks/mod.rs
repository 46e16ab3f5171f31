//! A paper as blocks: what it says and shows, before a writer gives it a form.

mod cells;
mod find;
mod table;
mod user;

pub use cells::{Cell, CellValue, Look, Span};
pub use dyno_judge::evidence::{Level, Spread};
pub use find::english;
pub use table::{PaperTable, TableColumn, TableRow};

pub use cells::{bad, code, coded, emphasis, lines, link, number, spread, strong};
pub use table::PaperRows;
pub(crate) use user::of_markdown;

use crate::svg::Svg;
use crate::text::Message;
use serde::Serialize;

/// Spans in a line of text.
pub type TextLine = Vec<Span>;

/// A part of a paper.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// What stands above the first section.
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
    /// Figures; several stand beside each other where there is room.
    Figures {
        figures: Vec<Drawing>,
        /// True where small figures stand beside each other.
        is_grid: bool,
    },
    /// What a page shows on demand.
    Details {
        summary: TextLine,
        /// True where it is open from the start.
        is_open: bool,
        /// True where it is too long for a text.
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
    /// What kind of document this is.
    pub kicker: Message,
    pub title: Message,
    /// Below the title; may be empty.
    #[serde(skip_serializing_if = "Message::is_empty")]
    pub subtitle: Message,
    /// Who measured, and when.
    pub byline: Message,
    /// Across the page where the suite was shrunk: such figures are a rehearsal.
    #[serde(skip_serializing_if = "Message::is_empty")]
    pub banner: Message,
    /// What came out, in a sentence or two, or the head of a list; empty where the list needs none.
    pub answer: Message,
    /// What came out, line by line, where it is more than a sentence or two.
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
    /// What stands below the title, each with its class; what is empty is left out.
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

/// What is to be known before a figure is quoted.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CoverWarnings {
    pub title: Message,
    /// How many findings forbid and qualify.
    pub verdict: Message,
    /// What forbids a figure, then what qualifies one.
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
    /// Such as `6.1`; may be empty.
    pub number: String,
    pub title: Message,
    /// What links to it lead to; may be empty.
    pub anchor: String,
    /// True where the table of contents names it.
    pub is_listed: bool,
}

/// How a paragraph or a list looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    #[default]
    Plain,
    /// The whole in a paragraph.
    Lead,
    /// Small print.
    Fine,
    /// What a reader must know before anything else.
    Disclosure,
}

/// Drawings with what is written around them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Drawing {
    pub caption: String,
    /// How to read them; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The names of lines, and the classes that say how they are drawn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub legend: Vec<(String, String)>,
    /// As SVG.
    #[serde(skip)]
    pub svgs: Vec<Svg>,
    /// Drawings half as wide, two side by side in the short edition; empty where they need the whole width.
    #[serde(skip)]
    pub halves: Vec<Svg>,
}

/// Blocks that are put together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blocks(pub(crate) Vec<Block>);

impl Blocks {
    /// A section's heading: level 2, and in the table of contents.
    pub fn section(&mut self, number: &str, title: Message, anchor: &str) {
        self.0.push(Block::Heading(Heading {
            level: 2,
            number: number.to_owned(),
            title,
            anchor: anchor.to_owned(),
            is_listed: true,
        }));
    }

    /// A heading below that of a section; with an anchor it may be linked to.
    pub fn heading(&mut self, level: u8, number: &str, title: impl Into<Message>, anchor: &str) {
        self.0.push(Block::Heading(Heading {
            level,
            number: number.to_owned(),
            title: title.into(),
            anchor: anchor.to_owned(),
            is_listed: false,
        }));
    }

    /// The last heading stands in the table of contents.
    pub fn listed(&mut self) {
        if let Some(Block::Heading(heading)) = self.0.last_mut() {
            heading.is_listed = true;
        }
    }

    pub fn paragraph(&mut self, text: impl Into<IntoLine>) {
        self.styled(Style::Plain, text);
    }

    pub fn fine(&mut self, text: impl Into<IntoLine>) {
        self.styled(Style::Fine, text);
    }

    /// Nothing where there is no text.
    pub fn styled(&mut self, style: Style, text: impl Into<IntoLine>) {
        let IntoLine(text) = text.into();
        if !text.is_empty() {
            self.0.push(Block::Paragraph { style, text });
        }
    }

    pub fn list(&mut self, style: Style, items: Vec<TextLine>) {
        if !items.is_empty() {
            self.0.push(Block::List { style, items });
        }
    }

    /// Nothing where the table has no rows.
    pub fn table(&mut self, table: impl Into<PaperTable>) {
        let table = table.into();
        if !table.rows.is_empty() {
            self.0.push(Block::Table(table));
        }
    }

    pub fn code(&mut self, text: impl Into<String>) {
        self.0.push(Block::Code { text: text.into() });
    }

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

    /// The first drawing of the first block of figures.
    pub(crate) fn first_figure(self) -> Option<Drawing> {
        self.0.into_iter().find_map(|block| match block {
            Block::Figures { figures, .. } => figures.into_iter().next(),
            _ => None,
        })
    }

    /// Each as wide as the page.
    pub fn figures(&mut self, figures: impl IntoIterator<Item = Drawing>) {
        let figures: Vec<Drawing> = figures.into_iter().collect();
        if !figures.is_empty() {
            self.0.push(Block::Figures { figures, is_grid: false });
        }
    }

    /// Beside each other where there is room.
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

/// What can stand where a line is wanted: a text, a span, spans.
pub struct IntoLine(pub(crate) TextLine);

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
