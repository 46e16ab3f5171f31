//! Counts and checks the rows of LOAD DATA and COPY while they arrive, in pieces of any size: lines of fields between
//! tabs, with backslash escapes.

use crate::protocol::Checked;

#[derive(Default)]
pub(crate) struct BulkRows {
    pub(crate) rows: u64,
    /// Fields of the first row, which all have.
    columns: u32,
    /// Fields that ended in this row.
    fields: u32,
    /// Bytes of this row.
    bytes: u64,
    is_escaped: bool,
    /// The row began with `\.`, which alone ends a COPY.
    is_end: bool,
}

impl BulkRows {
    pub(crate) fn feed(&mut self, data: &[u8]) -> Checked<()> {
        for &byte in data {
            self.bytes += 1;
            match byte {
                _ if self.is_escaped => {
                    self.is_escaped = false;
                    self.is_end |= byte == b'.' && self.bytes == 2;
                }
                b'\\' => self.is_escaped = true,
                b'\t' => self.fields += 1,
                b'\n' => self.end_row()?,
                _ => {}
            }
        }
        Ok(())
    }

    fn end_row(&mut self) -> Checked<()> {
        let fields = std::mem::take(&mut self.fields) + 1;
        let bytes = std::mem::take(&mut self.bytes);
        if std::mem::take(&mut self.is_end) && bytes <= 3 {
            return Ok(());
        }
        self.rows += 1;
        if self.rows == 1 {
            self.columns = fields;
        }
        if fields == self.columns {
            return Ok(());
        }
        Err(format!("row {} has {fields} fields, expected are {}", self.rows, self.columns))
    }

    /// After the last byte: a row without its line end counts, a torn one is an error.
    pub(crate) fn finish(&mut self) -> Checked<()> {
        match self.bytes {
            _ if self.is_escaped => Err(format!("the data end inside row {}", self.rows + 1)),
            0 => Ok(()),
            _ => self.end_row(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_by_their_unescaped_delimiters() {
        let cases: [(&[u8], Result<u64, &str>); 6] = [
            (b"1\t\\N\n\\.\n", Ok(1)),
            (b"1\ta\tb\n2\ta\\\tx\tb\\\nc\n", Ok(2)),
            (b"1\ta\tb\n2\ta\tb", Ok(2)),
            (b"", Ok(0)),
            (b"1\ta\tb\n2\ta\n", Err("row 2 has 2 fields, expected are 3")),
            (b"1\ta\tb\n2\ta\tb\\", Err("the data end inside row 2")),
        ];
        for (data, expected) in cases {
            for piece in [1, 2, 3, 4096] {
                let mut bulk = BulkRows::default();
                let fed = data.chunks(piece).try_for_each(|part| bulk.feed(part));
                let rows = fed.and_then(|()| bulk.finish()).map(|()| bulk.rows);
                assert_eq!(
                    rows.as_ref().map_err(String::as_str),
                    expected.as_ref().map_err(|e| *e)
                );
            }
        }
    }
}
