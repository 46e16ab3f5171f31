//! Rows as lines of text.

use crate::schema::Table;
use dyno_core::{RowSource, RowWriter};
use dyno_wire::decimal::{push_double, push_int};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// As dbgen writes it: `|` behind every column.
    #[default]
    Tbl,
    /// Columns parted by commas and quoted where they hold one (RFC 4180, but lines end with a newline
    /// alone); the names of the columns are the first line.
    Csv,
}

impl Format {
    /// The end of a file's name.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Tbl => "tbl",
            Format::Csv => "csv",
        }
    }

    pub(super) fn header(self, table: Table, columns: usize) -> String {
        match self {
            Format::Tbl => String::new(),
            Format::Csv => {
                let names = table.columns().iter().take(columns).map(|(name, _)| *name);
                names.collect::<Vec<_>>().join(",") + "\n"
            }
        }
    }

    /// Appends rows until the buffer holds `limit_bytes`; counts them. Returns false when there are
    /// no more.
    pub fn fill(
        self,
        rows: &mut impl RowSource,
        out: &mut Vec<u8>,
        limit_bytes: usize,
        count: &mut u64,
    ) -> bool {
        match self {
            Format::Tbl => fill(rows, &mut Tbl(out), limit_bytes, count),
            Format::Csv => fill(rows, &mut Csv(out), limit_bytes, count),
        }
    }
}

trait Lines: RowWriter {
    fn length(&self) -> usize;
    fn end_row(&mut self);
}

fn fill<L: Lines>(
    rows: &mut impl RowSource,
    lines: &mut L,
    limit_bytes: usize,
    count: &mut u64,
) -> bool {
    while lines.length() < limit_bytes {
        if !rows.next_row(lines) {
            return false;
        }
        lines.end_row();
        *count += 1;
    }
    true
}

struct Tbl<'a>(&'a mut Vec<u8>);

impl RowWriter for Tbl<'_> {
    #[inline]
    fn int(&mut self, value: i64) {
        push_int(self.0, value);
        self.0.push(b'|');
    }

    #[inline]
    fn double(&mut self, value: f64) {
        push_double(self.0, value);
        self.0.push(b'|');
    }

    #[inline]
    fn text(&mut self, value: &[u8]) {
        self.0.reserve(value.len() + 1);
        self.0.extend_from_slice(value);
        self.0.push(b'|');
    }

    #[inline]
    fn null(&mut self) {
        self.0.push(b'|');
    }
}

impl Lines for Tbl<'_> {
    #[inline]
    fn length(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn end_row(&mut self) {
        self.0.push(b'\n');
    }
}

struct Csv<'a>(&'a mut Vec<u8>);

impl RowWriter for Csv<'_> {
    #[inline]
    fn int(&mut self, value: i64) {
        push_int(self.0, value);
        self.0.push(b',');
    }

    #[inline]
    fn double(&mut self, value: f64) {
        push_double(self.0, value);
        self.0.push(b',');
    }

    #[inline]
    fn text(&mut self, value: &[u8]) {
        // There are no quotes and no newlines in TPC-H's text.
        if value.contains(&b',') {
            self.0.push(b'"');
            self.0.extend_from_slice(value);
            self.0.push(b'"');
        } else {
            self.0.extend_from_slice(value);
        }
        self.0.push(b',');
    }

    #[inline]
    fn null(&mut self) {
        self.0.push(b',');
    }
}

impl Lines for Csv<'_> {
    #[inline]
    fn length(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn end_row(&mut self) {
        // Every column has written a comma; the last one becomes the end of the row.
        if let Some(last) = self.0.last_mut() {
            *last = b'\n';
        }
    }
}
