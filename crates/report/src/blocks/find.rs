//! Tables by what stands in them: for readers of papers that are programs.

use super::{Block, Cell, CellValue, Look, PaperTable, Span, TableRow};
use crate::text::Lang;

impl PaperTable {
    /// The first table whose English caption begins with these words, those in details too.
    pub fn find<'a>(blocks: &'a [Block], caption: &str) -> Option<&'a PaperTable> {
        blocks.iter().find_map(|block| match block {
            Block::Table(table) if english(&table.caption).starts_with(caption) => Some(table),
            Block::Details { blocks, .. } => PaperTable::find(blocks, caption),
            _ => None,
        })
    }

    /// The first row that has a cell with this text.
    pub fn row(&self, text: &str) -> Option<&TableRow> {
        self.rows.iter().find(|row| row.cells.iter().any(|cell| cell.english() == text))
    }

    /// The cell of that row below the first column with this title.
    pub fn cell(&self, row: &str, column: &str) -> Option<&Cell> {
        let place = self.columns.iter().position(|known| known.title == column)?;
        self.row(row)?.cells.get(place)
    }
}

impl Cell {
    /// Its number as it was measured; of several trials the median.
    pub fn number(&self) -> Option<f64> {
        match self.value {
            CellValue::Number(number) => Some(number),
            CellValue::Spread(spread) => Some(spread.median),
            _ => None,
        }
    }

    /// Its English; empty where it is a number.
    pub fn english(&self) -> String {
        match &self.value {
            CellValue::Text(line) => english(line),
            _ => String::new(),
        }
    }
}

/// The English of a line without looks.
pub fn english(line: &[Span]) -> String {
    let text = |span: &Span| match span.look {
        Look::Break => "\n".to_owned(),
        _ => span.text.render(Lang::En),
    };
    line.iter().map(text).collect()
}
