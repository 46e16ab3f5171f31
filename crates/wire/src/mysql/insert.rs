//! Rows as the text of `INSERT ... VALUES (...), (...)`, and literals.

use crate::text_rows::{push_double, push_int};
use dyno_core::{RowSource, RowWriter};

/// Appends text as a quoted literal. `backslash_escapes` is false under the SQL mode NO_BACKSLASH_ESCAPES.
pub fn push_literal(out: &mut Vec<u8>, text: &[u8], backslash_escapes: bool) {
    out.push(b'\'');
    for &byte in text {
        match byte {
            b'\'' => out.push(b'\''),
            b'\\' if backslash_escapes => out.push(b'\\'),
            _ => {}
        }
        out.push(byte);
    }
    out.push(b'\'');
}

/// Appends rows in parentheses, separated by commas, to a buffer that ends with `VALUES `.
#[derive(Debug)]
pub struct InsertRows<'a> {
    out: &'a mut Vec<u8>,
    head: usize,
    backslash_escapes: bool,
}

impl<'a> InsertRows<'a> {
    /// Appends behind the head of the statement in `out`.
    pub fn new(out: &'a mut Vec<u8>, backslash_escapes: bool) -> Self {
        let head = out.len();
        InsertRows { out, head, backslash_escapes }
    }

    /// Appends whole rows until the buffer holds at least `limit_bytes`. Returns their number, and false when the
    /// source has no more.
    pub fn fill(&mut self, rows: &mut dyn RowSource, limit_bytes: usize) -> (u64, bool) {
        let mut count = 0;
        while self.out.len() < limit_bytes {
            let start = self.out.len();
            self.out.extend_from_slice(if start == self.head { b"(" } else { b",(" });
            if !rows.next_row(self) {
                self.out.truncate(start);
                return (count, false);
            }
            count += 1;
            // Every column has written its comma; the last one becomes the end of the row.
            match self.out.last_mut() {
                Some(comma @ b',') => *comma = b')',
                _ => self.out.push(b')'),
            }
        }
        (count, true)
    }
}

impl RowWriter for InsertRows<'_> {
    fn int(&mut self, value: i64) {
        push_int(self.out, value);
        self.out.push(b',');
    }

    fn double(&mut self, value: f64) {
        push_double(self.out, value);
        self.out.push(b',');
    }

    fn text(&mut self, value: &[u8]) {
        push_literal(self.out, value, self.backslash_escapes);
        self.out.push(b',');
    }

    fn null(&mut self) {
        self.out.extend_from_slice(b"NULL,");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Three(u8);

    impl RowSource for Three {
        fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
            if self.0 == 3 {
                return false;
            }
            self.0 += 1;
            out.int(i64::from(self.0));
            out.text(b"it's a \\");
            out.null();
            out.double(0.25);
            true
        }

        fn restart(&mut self) {
            self.0 = 0;
        }
    }

    #[test]
    fn writes_whole_rows_up_to_the_limit() {
        let mut out = b"VALUES ".to_vec();
        let mut source = Three(0);
        assert_eq!(InsertRows::new(&mut out, true).fill(&mut source, 10), (1, true));
        assert_eq!(out, br"VALUES (1,'it''s a \\',NULL,0.25)");
        out.truncate(7);
        assert_eq!(InsertRows::new(&mut out, false).fill(&mut source, 1000), (2, false));
        assert_eq!(out, br"VALUES (2,'it''s a \',NULL,0.25),(3,'it''s a \',NULL,0.25)");
        out.truncate(7);
        assert_eq!(InsertRows::new(&mut out, true).fill(&mut source, 1000), (0, false));
        assert_eq!(out, b"VALUES ");
    }
}
