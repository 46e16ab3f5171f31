//! Counts and checks the rows of a bulk load while they arrive, in pieces of any size.

use crate::sql::{Format, Load};

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

pub(crate) struct BulkRows {
    pub(crate) rows: u64,
    columns: u32,
    skip: u64,
    reader: Reader,
}

enum Reader {
    Text(Text),
    Binary(Binary),
}

struct Text {
    field: u8,
    line: u8,
    escape: u8,
    quote: u8,
    /// Fields that ended in this row.
    fields: u32,
    /// Bytes of this row.
    bytes: u64,
    escaped: bool,
    quoted: bool,
    /// Whether `\.` in a row of its own ends the data: so in COPY, not in LOAD DATA.
    has_end_mark: bool,
    /// 1: the row began with a backslash, 2: with `\.`, 3: the end mark came.
    end_mark: u8,
}

/// The part of the binary format that the next bytes belong to.
#[derive(Clone, Copy)]
enum Expect {
    Header,
    Extension,
    FieldCount,
    FieldLength,
    Field,
    Nothing,
}

struct Binary {
    expect: Expect,
    /// Bytes of a fixed part, which may come in pieces.
    part: [u8; 19],
    filled: usize,
    /// Bytes left of a part that is only skipped.
    skip: u32,
    fields: u32,
}

impl BulkRows {
    pub(crate) fn new(load: &Load) -> Self {
        let reader = match load.format {
            Format::Text { field, line, escape, quote } => Reader::Text(Text {
                field,
                line,
                escape,
                quote,
                fields: 0,
                bytes: 0,
                escaped: false,
                quoted: false,
                has_end_mark: load.file.is_empty(),
                end_mark: 0,
            }),
            Format::Binary => Reader::Binary(Binary {
                expect: Expect::Header,
                part: [0; 19],
                filled: 0,
                skip: 0,
                fields: 0,
            }),
        };
        BulkRows { rows: 0, columns: load.columns, skip: load.skip, reader }
    }

    pub(crate) fn feed(&mut self, data: &[u8]) -> Result<(), String> {
        let mut counted = Counted { rows: &mut self.rows, columns: &mut self.columns };
        match &mut self.reader {
            Reader::Text(text) => text.feed(data, &mut self.skip, &mut counted),
            Reader::Binary(binary) => binary.feed(data, &mut counted),
        }
    }

    /// After the last byte: a row without its line end counts, a torn one is an error.
    pub(crate) fn finish(&mut self) -> Result<(), String> {
        let mut counted = Counted { rows: &mut self.rows, columns: &mut self.columns };
        match &mut self.reader {
            Reader::Text(text) if text.escaped || text.quoted => {
                Err(format!("the data end inside row {}", self.rows + 1))
            }
            Reader::Text(text) if text.bytes == 2 && text.end_mark == 2 => Ok(()),
            Reader::Text(text) if text.bytes > 0 && self.skip == 0 => counted.row(text.fields + 1),
            Reader::Binary(binary) if !matches!(binary.expect, Expect::Nothing) => {
                Err(format!("the binary data end without a trailer after row {}", self.rows))
            }
            _ => Ok(()),
        }
    }
}

struct Counted<'a> {
    rows: &'a mut u64,
    columns: &'a mut u32,
}

impl Counted<'_> {
    fn row(&mut self, fields: u32) -> Result<(), String> {
        if *self.columns == 0 {
            *self.columns = fields;
        }
        *self.rows += 1;
        if fields == *self.columns {
            return Ok(());
        }
        Err(format!("row {} has {fields} fields, expected are {}", self.rows, self.columns))
    }
}

impl Text {
    fn feed(
        &mut self,
        data: &[u8],
        skip: &mut u64,
        counted: &mut Counted<'_>,
    ) -> Result<(), String> {
        let Text { field, line, escape, quote, .. } = *self;
        for &byte in data {
            if self.end_mark == 3 {
                return Err(format!("data follow the end mark after row {}", counted.rows));
            }
            let first = self.bytes == 0;
            self.bytes += 1;
            if self.escaped {
                self.escaped = false;
                self.end_mark = if self.end_mark == 1 && byte == b'.' { 2 } else { 0 };
            } else if byte == escape && escape != 0 {
                self.escaped = true;
                self.end_mark = u8::from(first && self.has_end_mark);
            } else if byte == quote && quote != 0 {
                // A doubled quote inside a field closes and opens it again: same result.
                self.quoted = !self.quoted;
            } else if self.quoted {
            } else if byte == field {
                self.fields += 1;
            } else if byte == line {
                if self.end_mark == 2 && self.bytes == 3 {
                    self.end_mark = 3;
                } else if *skip > 0 {
                    *skip -= 1;
                } else {
                    counted.row(self.fields + 1)?;
                }
                self.fields = 0;
                self.bytes = 0;
            }
        }
        Ok(())
    }
}

impl Binary {
    fn feed(&mut self, mut data: &[u8], counted: &mut Counted<'_>) -> Result<(), String> {
        while !data.is_empty() {
            if self.skip > 0 {
                let taken = data.len().min(self.skip as usize);
                data = &data[taken..];
                self.skip -= taken as u32;
                if self.skip > 0 {
                    return Ok(());
                }
                self.next_field();
                continue;
            }
            let wanted = match self.expect {
                Expect::Header => 19,
                Expect::FieldCount => 2,
                Expect::FieldLength => 4,
                Expect::Extension | Expect::Field => 0,
                Expect::Nothing => {
                    return Err(format!("data follow the trailer after row {}", counted.rows));
                }
            };
            let taken = data.len().min(wanted - self.filled);
            self.part[self.filled..self.filled + taken].copy_from_slice(&data[..taken]);
            self.filled += taken;
            data = &data[taken..];
            if self.filled < wanted {
                return Ok(());
            }
            self.filled = 0;
            self.part(counted)?;
        }
        Ok(())
    }

    /// Takes a complete fixed part.
    fn part(&mut self, counted: &mut Counted<'_>) -> Result<(), String> {
        let [a, b, c, d, ..] = self.part;
        match self.expect {
            Expect::Header => {
                let [.., e0, e1, e2, e3] = self.part;
                if !self.part.starts_with(SIGNATURE) {
                    return Err("the binary data do not begin with PGCOPY's signature".to_owned());
                }
                self.skip = u32::from_be_bytes([e0, e1, e2, e3]);
                self.expect = if self.skip > 0 { Expect::Extension } else { Expect::FieldCount };
            }
            Expect::FieldCount => match i16::from_be_bytes([a, b]) {
                -1 => self.expect = Expect::Nothing,
                count if count > 0 => {
                    self.fields = count as u32;
                    counted.row(self.fields)?;
                    self.expect = Expect::FieldLength;
                }
                count => return Err(format!("row {} has {count} fields", *counted.rows + 1)),
            },
            Expect::FieldLength => match i32::from_be_bytes([a, b, c, d]) {
                -1 | 0 => self.next_field(),
                length if length > 0 => {
                    self.skip = length as u32;
                    self.expect = Expect::Field;
                }
                length => {
                    return Err(format!("row {} has a field of length {length}", counted.rows));
                }
            },
            Expect::Extension | Expect::Field | Expect::Nothing => {}
        }
        Ok(())
    }

    /// Goes on after a skipped part or an empty field.
    fn next_field(&mut self) {
        if matches!(self.expect, Expect::Extension) {
            self.expect = Expect::FieldCount;
            return;
        }
        self.fields -= 1;
        self.expect = if self.fields == 0 { Expect::FieldCount } else { Expect::FieldLength };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{Dialect, Plan, parse};

    fn rows_of(sql: &str, dialect: Dialect, data: &[u8], piece: usize) -> Result<u64, String> {
        let mut plan = Plan::default();
        parse(sql.as_bytes(), 0, dialect, &mut plan)?;
        let mut bulk = BulkRows::new(&plan.load.expect("a load"));
        for part in data.chunks(piece) {
            bulk.feed(part)?;
        }
        bulk.finish()?;
        Ok(bulk.rows)
    }

    fn check(sql: &str, data: &[u8], expected: Result<u64, &str>) {
        let mysql = sql.starts_with("LOAD");
        let dialect = if mysql { Dialect::Mysql } else { Dialect::Postgres };
        for piece in [1, 2, 3, 7, 4096] {
            let found = rows_of(sql, dialect, data, piece);
            assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|e| *e));
        }
    }

    const LOAD: &str = "LOAD DATA LOCAL INFILE 'x' INTO TABLE sbtest1 (k, c, pad)";
    const COPY: &str = "COPY pgbench_branches FROM STDIN";

    #[test]
    fn text_rows_are_counted_by_their_unescaped_delimiters() {
        check(LOAD, b"1\ta\tb\n2\ta\\\tx\tb\\\nc\n", Ok(2));
        check(LOAD, b"1\ta\tb\n2\ta\tb", Ok(2));
        check(LOAD, b"", Ok(0));
        check(LOAD, b"1\ta\tb\n2\ta\n", Err("row 2 has 2 fields, expected are 3"));
        check(LOAD, b"1\ta\tb\n2\ta\tb\\", Err("the data end inside row 2"));
    }

    #[test]
    fn load_data_obeys_its_field_options() {
        let sql = "LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ',' ENCLOSED BY \
                   '\"' LINES TERMINATED BY '\\r' IGNORE 1 LINES (a, b)";
        check(sql, b"head\r1,\"x,\r\"\r\"\"\"\",2\r", Ok(2));
    }

    #[test]
    fn copy_ends_at_its_mark() {
        check(COPY, b"1\t0\t\\N\n2\t0\t\\N\n\\.\n", Ok(2));
        check(COPY, b"1\t0\t\\N\n\\.\nx", Err("data follow the end mark after row 1"));
        check("COPY t (a, b) FROM STDIN (FORMAT csv)", b"\"a\nb\",c\nd,\"\"\"\"\n", Ok(2));
        check("COPY t (a) FROM STDIN", b"\\.x\n\\.", Ok(1));
        check("LOAD DATA LOCAL INFILE 'x' INTO TABLE t (a)", b"\\.\n\\.\n", Ok(2));
    }

    #[test]
    fn binary_copy_is_walked_field_by_field() {
        let sql = "COPY t (a, b) FROM STDIN WITH (FORMAT binary)";
        let mut data = SIGNATURE.to_vec();
        data.extend_from_slice(&[0; 8]);
        for _ in 0..3 {
            data.extend_from_slice(&[0, 2, 0, 0, 0, 4, 1, 2, 3, 4, 255, 255, 255, 255]);
        }
        check(sql, &data, Err("the binary data end without a trailer after row 3"));
        data.extend_from_slice(&[255, 255]);
        check(sql, &data, Ok(3));
        data.push(0);
        check(sql, &data, Err("data follow the trailer after row 3"));
        check(sql, &[7; 30], Err("the binary data do not begin with PGCOPY's signature"));
    }
}
