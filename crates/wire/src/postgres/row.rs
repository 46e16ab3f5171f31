//! Rows, read in place.
//!
//! Rows in the binary format of PostgreSQL's `COPY ... FROM STDIN (FORMAT binary)`.

use super::frame::MessageReader;
use super::types::{PostgresColumn, ValueFormat};
use super::{Read, WireError, types};
use dyno_core::{AnswerRow, RowSource, RowWriter};

/// Place of a value in the body of its row.
#[derive(Clone, Copy, Debug)]
pub struct CellSpot {
    start: u32,
    /// -1 for NULL.
    len: i32,
}

/// A row in the receive buffer. Made by [`data_row`].
#[derive(Clone, Copy, Debug)]
pub struct DataRow<'a> {
    body: &'a [u8],
    columns: &'a [PostgresColumn],
    cells: &'a [CellSpot],
}

/// Reads DataRow. `cells` is scratch space that the caller keeps from row to row.
#[inline]
pub fn data_row<'a>(
    body: &'a [u8],
    columns: &'a [PostgresColumn],
    cells: &'a mut Vec<CellSpot>,
) -> Read<DataRow<'a>> {
    let mut reader = MessageReader::new(body);
    if usize::from(reader.u16()?) != columns.len() {
        return Err(WireError("a row has not as many values as were announced"));
    }
    cells.clear();
    let mut start = 2;
    for _ in columns {
        let len = reader.i32()?;
        start += 4;
        cells.push(CellSpot { start, len });
        match usize::try_from(len) {
            Ok(bytes) => {
                reader.take_bytes(bytes)?;
                start += len as u32;
            }
            Err(_) if len == -1 => {}
            Err(_) => return Err(WireError("a value of a row has a negative length")),
        }
    }
    reader.end()?;
    Ok(DataRow { body, columns, cells })
}

/// A value in one of the two formats.
enum Value<'a> {
    Int(i64),
    Text(&'a [u8]),
}

impl<'a> DataRow<'a> {
    /// The bytes of a cell as received; `None` for NULL.
    #[inline]
    fn raw(&self, column: usize) -> Option<&'a [u8]> {
        let cell = self.cells.get(column)?;
        let start = cell.start as usize;
        self.body.get(start..start + usize::try_from(cell.len).ok()?)
    }

    /// `None` for NULL and for a binary value of a wrong length.
    #[inline]
    fn value(&self, column: usize) -> Option<Value<'a>> {
        let raw = self.raw(column)?;
        let PostgresColumn { type_oid, format } = *self.columns.get(column)?;
        if format == ValueFormat::Text {
            return Some(Value::Text(raw));
        }
        Some(match type_oid {
            types::INT4 => Value::Int(i32::from_be_bytes(raw.try_into().ok()?).into()),
            types::INT8 => Value::Int(i64::from_be_bytes(raw.try_into().ok()?)),
            types::INT2 => Value::Int(i16::from_be_bytes(raw.try_into().ok()?).into()),
            types::OID => Value::Int(u32::from_be_bytes(raw.try_into().ok()?).into()),
            _ => Value::Text(raw),
        })
    }
}

impl AnswerRow for DataRow<'_> {
    fn columns(&self) -> usize {
        self.columns.len()
    }

    /// True also for a missing column.
    fn is_null(&self, column: usize) -> bool {
        self.raw(column).is_none()
    }

    fn int(&self, column: usize) -> Option<i64> {
        match self.value(column)? {
            Value::Int(value) => Some(value),
            Value::Text(text) => str::from_utf8(text).ok()?.trim().parse().ok(),
        }
    }

    fn double(&self, column: usize) -> Option<f64> {
        match self.value(column)? {
            Value::Int(value) => Some(value as f64),
            Value::Text(text) => str::from_utf8(text).ok()?.trim().parse().ok(),
        }
    }

    fn bytes(&self, column: usize) -> Option<&[u8]> {
        match self.value(column)? {
            Value::Text(text) => Some(text),
            Value::Int(_) => None,
        }
    }

    fn string(&self, column: usize) -> Option<String> {
        Some(match self.value(column)? {
            Value::Int(value) => value.to_string(),
            Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        })
    }
}

/// Comes before the first row: signature, no flags, no extension.
pub const HEADER: [u8; 19] = *b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Comes after the last row: a number of columns that no row has.
pub const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();
const NULL: [u8; 4] = (-1_i32).to_be_bytes();

/// Appends rows to a buffer of the caller. A whole number is a `bigint`, a text is the value of any type as the server
/// receives it.
#[derive(Debug)]
pub struct BinaryRows<'a> {
    out: &'a mut Vec<u8>,
    columns: u16,
}

impl<'a> BinaryRows<'a> {
    /// `out` may already hold a header or earlier rows.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        BinaryRows { out, columns: 0 }
    }

    /// Appends whole rows until the buffer holds at least `limit_bytes`. Returns false when the source has no more.
    #[inline]
    pub fn fill(&mut self, rows: &mut dyn RowSource, limit_bytes: usize) -> bool {
        while self.out.len() < limit_bytes {
            let start = self.out.len();
            self.out.extend_from_slice(&[0; 2]);
            self.columns = 0;
            if !rows.next_row(self) {
                self.out.truncate(start);
                return false;
            }
            self.out[start..start + 2].copy_from_slice(&self.columns.to_be_bytes());
        }
        true
    }
}

impl RowWriter for BinaryRows<'_> {
    #[inline]
    fn int(&mut self, value: i64) {
        self.text(&value.to_be_bytes());
    }

    #[inline]
    fn double(&mut self, value: f64) {
        self.text(&value.to_be_bytes());
    }

    #[inline]
    fn text(&mut self, value: &[u8]) {
        self.columns += 1;
        self.out.reserve(size_of::<u32>() + value.len());
        self.out.extend_from_slice(&(value.len() as u32).to_be_bytes());
        self.out.extend_from_slice(value);
    }

    #[inline]
    fn null(&mut self) {
        self.columns += 1;
        self.out.extend_from_slice(&NULL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn column(type_oid: u32) -> PostgresColumn {
        PostgresColumn { type_oid, format: ValueFormat::for_result(type_oid) }
    }

    fn row_body(values: &[Option<&[u8]>]) -> Vec<u8> {
        let mut body = (values.len() as u16).to_be_bytes().to_vec();
        for value in values {
            match value {
                Some(bytes) => {
                    body.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
                    body.extend_from_slice(bytes);
                }
                None => body.extend_from_slice(&(-1_i32).to_be_bytes()),
            }
        }
        body
    }

    #[test]
    fn decodes_every_binary_type_that_is_asked_for() {
        type Case<'a> = (u32, &'a [u8], Option<i64>, Option<f64>, Option<&'a [u8]>, &'a str);
        let cases: [Case<'_>; 8] = [
            (types::INT2, &[0xff, 0xfe], Some(-2), Some(-2.0), None, "-2"),
            (types::INT4, &[0, 0, 1, 0], Some(256), Some(256.0), None, "256"),
            (
                types::INT8,
                &i64::MIN.to_be_bytes(),
                Some(i64::MIN),
                Some(-(2_f64.powi(63))),
                None,
                "-9223372036854775808",
            ),
            (types::OID, &[0xff; 4], Some(0xffff_ffff), Some(4_294_967_295.0), None, "4294967295"),
            (16, b"t", None, None, Some(b"t"), "t"),
            (types::FLOAT8, b"1e+20", None, Some(1e20), Some(b"1e+20"), "1e+20"),
            (types::VARCHAR, b"12", Some(12), Some(12.0), Some(b"12"), "12"),
            (1700, b"12.50", None, Some(12.5), Some(b"12.50"), "12.50"),
        ];
        for (oid, raw, int, double, bytes, string) in cases {
            let (body, columns, mut cells) = (row_body(&[Some(raw)]), [column(oid)], Vec::new());
            let row = data_row(&body, &columns, &mut cells).unwrap();
            assert_eq!((row.int(0), row.double(0), row.bytes(0)), (int, double, bytes), "{oid}");
            assert_eq!(row.string(0).as_deref(), Some(string), "{oid}");
            assert!(!row.is_null(0));
        }
    }

    #[test]
    fn null_and_missing_columns_are_none() {
        let (body, columns, mut cells) = (row_body(&[None]), [column(types::INT4)], Vec::new());
        let row = data_row(&body, &columns, &mut cells).unwrap();
        assert_eq!(row.columns(), 1);
        for index in [0, 1, usize::MAX] {
            assert!(row.is_null(index));
            assert_eq!((row.int(index), row.double(index), row.bytes(index)), (None, None, None));
            assert_eq!(row.string(index), None);
        }
    }

    #[test]
    fn a_binary_value_of_the_wrong_length_is_none() {
        let columns = [column(types::INT4), column(types::INT8)];
        let (body, mut cells) = (row_body(&[Some(&[1, 2]), Some(&[])]), Vec::new());
        let row = data_row(&body, &columns, &mut cells).unwrap();
        assert_eq!((row.int(0), row.string(0), row.string(1)), (None, None, None));
    }

    #[test]
    fn refuses_rows_that_do_not_add_up() {
        let columns = [column(types::TEXT), column(types::TEXT)];
        let body = row_body(&[Some(b"ab"), Some(b"c")]);
        let mut cells = Vec::new();
        assert!(data_row(&body, &columns, &mut cells).is_ok());
        for end in 0..body.len() {
            assert!(data_row(&body[..end], &columns, &mut cells).is_err(), "cut at {end}");
        }
        assert!(data_row(&[body.clone(), vec![0]].concat(), &columns, &mut cells).is_err());
        assert!(data_row(&body, &columns[..1], &mut cells).is_err());
        for len in [-2_i32, i32::MIN, i32::MAX] {
            let mut hostile = body.clone();
            hostile[2..6].copy_from_slice(&len.to_be_bytes());
            assert!(data_row(&hostile, &columns, &mut cells).is_err(), "{len}");
        }
    }

    proptest! {
        #[test]
        fn values_read_back(values in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..30)), 0..12)) {
            let columns = vec![column(types::TEXT); values.len()];
            let body = row_body(&values.iter().map(Option::as_deref).collect::<Vec<_>>());
            let mut cells = Vec::new();
            let row = data_row(&body, &columns, &mut cells).unwrap();
            for (index, value) in values.iter().enumerate() {
                prop_assert_eq!(row.bytes(index), value.as_deref());
            }
        }

        #[test]
        fn arbitrary_bodies_never_panic(body in prop::collection::vec(any::<u8>(), 0..60), oid in prop::sample::select(vec![16_u32, 18, 20, 21, 23, 25, 26, 700, 701, 1700])) {
            let mut cells = Vec::new();
            for count in 0..4 {
                let columns = vec![column(oid); count];
                if let Ok(row) = data_row(&body, &columns, &mut cells) {
                    for index in 0..=count {
                        let _ = (row.int(index), row.double(index), row.bytes(index).map(<[u8]>::len));
                        let _ = row.string(index);
                    }
                }
            }
        }
    }

    struct Two(u8);

    impl RowSource for Two {
        fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
            self.0 += 1;
            match self.0 {
                1 => {
                    out.int(-2);
                    out.text(b"a\t");
                }
                2 => out.null(),
                _ => return false,
            }
            true
        }

        fn restart(&mut self) {
            self.0 = 0;
        }
    }

    #[test]
    fn writes_rows_as_documented() {
        let mut out = HEADER.to_vec();
        assert!(!BinaryRows::new(&mut out).fill(&mut Two(0), 1_000));
        let first = b"\0\x02\0\0\0\x08\xff\xff\xff\xff\xff\xff\xff\xfe\0\0\0\x02a\t";
        let second = b"\0\x01\xff\xff\xff\xff";
        assert_eq!(out, [&HEADER[..], first, second].concat());
    }

    #[test]
    fn fills_to_the_limit_with_whole_rows() {
        let (mut out, mut rows) = (Vec::new(), Two(0));
        assert!(BinaryRows::new(&mut out).fill(&mut rows, 1));
        assert_eq!(out.len(), 2 + 4 + 8 + 4 + 2);
    }
}
