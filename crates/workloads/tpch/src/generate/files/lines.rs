//! Rows as lines of text.

use crate::schema::SchemaTable;
use dyno_core::{RowSource, RowWriter};
use dyno_wire::text_rows::{push_double, push_int};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineFormat {
    /// As dbgen writes it: `|` behind every column.
    #[default]
    Tbl,
    /// Columns parted by commas and quoted where they hold one (RFC 4180, but lines end with a newline
    /// alone); the names of the columns are the first line.
    Csv,
}

impl LineFormat {
    /// The end of a file's name.
    pub fn extension(self) -> &'static str {
        match self {
            LineFormat::Tbl => "tbl",
            LineFormat::Csv => "csv",
        }
    }

    pub(super) fn header(self, table: SchemaTable, columns: usize) -> String {
        match self {
            LineFormat::Tbl => String::new(),
            LineFormat::Csv => {
                let names = table.columns().iter().take(columns).map(|(name, _)| *name);
                names.collect::<Vec<_>>().join(",") + "\n"
            }
        }
    }

    /// Appends rows until the buffer holds `limit_bytes`; counts them. Returns false when there are
    /// no more.
    pub fn fill(
        self,
        rows: &mut dyn RowSource,
        out: &mut Vec<u8>,
        limit_bytes: usize,
        count: &mut u64,
    ) -> bool {
        match self {
            LineFormat::Tbl => fill::<false>(rows, out, limit_bytes, count),
            LineFormat::Csv => fill::<true>(rows, out, limit_bytes, count),
        }
    }
}

/// Columns with `,` or `|` behind each.
struct Columns<'a, const CSV: bool>(&'a mut Vec<u8>);

impl<const CSV: bool> Columns<'_, CSV> {
    const SEPARATOR: u8 = if CSV { b',' } else { b'|' };

    #[inline]
    fn end_row(&mut self) {
        match self.0.last_mut() {
            // The last comma becomes the end of the row.
            Some(last) if CSV => *last = b'\n',
            _ => self.0.push(b'\n'),
        }
    }
}

impl<const CSV: bool> RowWriter for Columns<'_, CSV> {
    #[inline]
    fn int(&mut self, value: i64) {
        push_int(self.0, value);
        self.0.push(Self::SEPARATOR);
    }

    #[inline]
    fn double(&mut self, value: f64) {
        push_double(self.0, value);
        self.0.push(Self::SEPARATOR);
    }

    #[inline]
    fn text(&mut self, value: &[u8]) {
        self.0.reserve(value.len() + 3);
        // There are no quotes and no newlines in TPC-H's text.
        let is_quoted = CSV && value.contains(&b',');
        if is_quoted {
            self.0.push(b'"');
        }
        self.0.extend_from_slice(value);
        if is_quoted {
            self.0.push(b'"');
        }
        self.0.push(Self::SEPARATOR);
    }

    #[inline]
    fn null(&mut self) {
        self.0.push(Self::SEPARATOR);
    }
}

fn fill<const CSV: bool>(
    rows: &mut dyn RowSource,
    out: &mut Vec<u8>,
    limit_bytes: usize,
    count: &mut u64,
) -> bool {
    let mut columns = Columns::<CSV>(out);
    while columns.0.len() < limit_bytes {
        if !rows.next_row(&mut columns) {
            return false;
        }
        columns.end_row();
        *count += 1;
    }
    true
}
