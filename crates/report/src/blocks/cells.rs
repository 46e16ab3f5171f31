//! What stands in a line of text or in a cell of a table.

use super::{IntoLine, Level, Spread, TextLine};
use crate::text::Message;
use serde::Serialize;

/// A stretch of text.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Span {
    pub text: Message,
    #[serde(skip_serializing_if = "Look::is_plain")]
    pub look: Look,
    /// Where it leads: `#anchor`, or a file beside the paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// How a stretch of text looks.
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
    /// A count on the cover.
    Count,
    /// The number of a check, in the colour of its level.
    Note(Level),
    /// A sample of a chart's colour: `warm`, `error` or `gap`.
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
    pub fn plain(text: impl Into<Message>) -> Span {
        Span::of(text, Look::Plain)
    }

    pub fn of(text: impl Into<Message>, look: Look) -> Span {
        Span { text: text.into(), look, to: None }
    }
}

pub fn code(text: impl Into<Message>) -> Span {
    Span::of(text, Look::Code)
}

/// A sentence in which code stands between backticks.
pub fn coded(text: impl Into<Message>) -> Span {
    Span::of(text, Look::Coded)
}

pub fn emphasis(text: impl Into<Message>) -> Span {
    Span::of(text, Look::Emphasis)
}

pub fn strong(text: impl Into<Message>) -> Span {
    Span::of(text, Look::Strong)
}

pub fn bad(text: impl Into<Message>) -> Span {
    Span::of(text, Look::Bad)
}

pub fn link(text: impl Into<Message>, to: impl Into<String>) -> Span {
    Span { text: text.into(), look: Look::Plain, to: Some(to.into()) }
}

/// Texts below each other.
pub fn lines<T: Into<IntoLine>>(texts: impl IntoIterator<Item = T>) -> TextLine {
    let mut line = TextLine::new();
    for text in texts {
        let IntoLine(own) = text.into();
        if !line.is_empty() && !own.is_empty() {
            line.push(Span::of("", Look::Break));
        }
        line.extend(own);
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
    /// How it looks, beside its column.
    #[serde(skip)]
    pub class: &'static str,
    /// Columns that it reaches over, 1 where this is 0.
    #[serde(skip)]
    pub columns: usize,
    /// Rows that it reaches over, 1 where this is 0.
    #[serde(skip)]
    pub rows: usize,
}

/// What stands in a cell. Numbers are shown as their column says.
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

    /// The same where the condition holds.
    pub fn with_if(self, is_so: bool, below: impl FnOnce() -> TextLine) -> Cell {
        if is_so { self.with(below()) } else { self }
    }

    pub fn class(mut self, class: &'static str) -> Cell {
        self.class = class;
        self
    }

    /// `≥` or `≤` before it, unless nothing is known.
    pub fn bound(mut self, bound: &'static str) -> Cell {
        self.bound = bound;
        self
    }

    /// Over so many columns; those after the first must be [`CellValue::Covered`].
    pub fn over(mut self, columns: usize) -> Cell {
        self.columns = columns;
        self
    }

    /// Over so many rows; those after the first must be [`CellValue::Covered`].
    pub fn down(mut self, rows: usize) -> Cell {
        self.rows = rows;
        self
    }

    pub fn covered() -> Cell {
        Cell { value: CellValue::Covered, ..Cell::default() }
    }

    pub fn missing() -> Cell {
        Cell { value: CellValue::Missing, ..Cell::default() }
    }

    pub fn blank() -> Cell {
        Cell::default()
    }
}

/// A number, its range only where several trials made it.
pub fn spread(spread: Spread, repeats: usize) -> Cell {
    let value = match repeats > 1 {
        true => CellValue::Spread(spread),
        false => CellValue::Number(spread.median),
    };
    Cell { value, ..Cell::default() }
}

/// A number, its range only where there is one.
pub fn number(spread_or_one: Spread) -> Cell {
    spread(spread_or_one, if spread_or_one.min == spread_or_one.max { 1 } else { 2 })
}

macro_rules! texts {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Cell {
            fn from(text: $kind) -> Cell {
                let IntoLine(line) = IntoLine::from(text);
                let value = if line.is_empty() { CellValue::Blank } else { CellValue::Text(line) };
                Cell { value, ..Cell::default() }
            }
        }
    )*};
}

texts!(&str, String, &String, Message, &Message, Span, TextLine);

macro_rules! numbers {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Cell {
            fn from(number: $kind) -> Cell {
                Cell { value: CellValue::Number(number as f64), ..Cell::default() }
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
