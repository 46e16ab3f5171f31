//! Tables: columns that know how their numbers are shown, and rows of cells.

use super::{Cell, IntoLine, Span};
use crate::format::NumberFormat;
use crate::text::Message;
use dyno_facts::statistics::Metric;
use serde::Serialize;

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
    /// What links to it lead to; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub anchor: String,
    /// `weak`, `theirs`, `part`, `grey` or nothing.
    #[serde(skip)]
    pub class: &'static str,
}

impl PaperTable {
    fn push_column(&mut self, column: TableColumn, cells: Vec<Cell>) {
        for (row, cell) in self.rows.iter_mut().zip(cells) {
            row.cells.push(cell);
        }
        self.columns.push(column);
    }
}

/// A table that is made column by column: title and cell stand side by side.
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

    /// A column; texts stand left, numbers right.
    pub fn col<C: Into<Cell>>(
        mut self,
        title: impl Into<Message>,
        format: NumberFormat,
        cell: impl Fn(R) -> C,
    ) -> Self {
        let cells = self.rows.iter().map(|row| cell(*row).into()).collect();
        let group = self.group.clone();
        let column = TableColumn { title: title.into(), format, group, ..TableColumn::default() };
        self.table.push_column(column, cells);
        self
    }

    /// A column for each metric.
    pub fn metrics<C: Into<Cell>>(
        self,
        metrics: impl IntoIterator<Item = Metric>,
        cell: impl Fn(R, Metric) -> C,
    ) -> Self {
        metrics.into_iter().fold(self, |table, metric| {
            table.col(metric.title(), NumberFormat::Short, |row| cell(row, metric))
        })
    }

    /// A column of texts.
    pub fn text<C: Into<Cell>>(self, title: impl Into<Message>, cell: impl Fn(R) -> C) -> Self {
        self.col(title, NumberFormat::Text, cell)
    }

    /// How the cells of the last column look.
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

    pub fn when(self, is_so: bool, columns: impl FnOnce(Self) -> Self) -> Self {
        if is_so { columns(self) } else { self }
    }

    /// Columns below a title that they share.
    pub fn group(mut self, title: impl Into<Message>, columns: impl FnOnce(Self) -> Self) -> Self {
        self.group = title.into();
        let mut made = columns(self);
        made.group = Message::default();
        made
    }

    /// The look of the table: `text`, `queries` or `published`.
    pub fn look(mut self, class: &'static str) -> Self {
        self.table.class = class;
        self
    }

    /// Anchors and looks of rows.
    pub fn each(mut self, change: impl Fn(R, &mut TableRow)) -> Self {
        for (row, made) in self.rows.iter().zip(&mut self.table.rows) {
            change(*row, made);
        }
        self
    }

    /// So many of the last rows sum up the others.
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
