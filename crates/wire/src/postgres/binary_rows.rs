//! Rows in the binary format of PostgreSQL's `COPY ... FROM STDIN (FORMAT binary)`.

use dyno_core::{RowSource, RowWriter};

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
