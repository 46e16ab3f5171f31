//! Rows as tab-separated text with backslash escapes, for MySQL's `LOAD DATA` and PostgreSQL's `COPY ... FROM STDIN`.

use crate::decimal::{push_double, push_int};
use dyno_core::{RowSource, RowWriter};

/// Appends rows to a buffer of the caller: columns are separated by tabs, rows end with a newline,
/// NULL is `\N`, and tab, newline, carriage return and backslash inside text are escaped.
#[derive(Debug)]
pub struct TextRows<'a> {
    out: &'a mut Vec<u8>,
    row_start: usize,
}

impl<'a> TextRows<'a> {
    /// `out` may already hold a header or earlier rows.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        let row_start = out.len();
        TextRows { out, row_start }
    }

    #[inline]
    pub fn end_row(&mut self) {
        // Every column has written its separator; the last one becomes the end of the row.
        match self.out[self.row_start..].last_mut() {
            Some(separator) => *separator = b'\n',
            None => self.out.push(b'\n'),
        }
        self.row_start = self.out.len();
    }

    /// Appends whole rows until the buffer holds at least `limit_bytes`. Returns false when the source has no more.
    #[inline]
    pub fn fill(&mut self, rows: &mut dyn RowSource, limit_bytes: usize) -> bool {
        while self.out.len() < limit_bytes {
            if !rows.next_row(self) {
                return false;
            }
            self.end_row();
        }
        true
    }
}

impl RowWriter for TextRows<'_> {
    #[inline]
    fn int(&mut self, value: i64) {
        push_int(self.out, value);
        self.out.push(b'\t');
    }

    #[inline]
    fn double(&mut self, value: f64) {
        push_double(self.out, value);
        self.out.push(b'\t');
    }

    #[inline]
    fn text(&mut self, value: &[u8]) {
        self.out.reserve(value.len() + 1);
        if needs_escape(value) {
            push_escaped(self.out, value);
        } else {
            self.out.extend_from_slice(value);
        }
        self.out.push(b'\t');
    }

    #[inline]
    fn null(&mut self) {
        self.out.extend_from_slice(b"\\N\t");
    }
}

/// True when something may need an escape. Counts all control characters up to the carriage return as special, which is
/// rarely wrong and cheap.
#[inline]
fn needs_escape(value: &[u8]) -> bool {
    // Without short circuits, so that the compiler can vectorize it.
    let special = |byte: u8| (byte <= b'\r') | (byte == b'\\');
    let any = |bytes: &[u8]| bytes.iter().fold(false, |found, &byte| found | special(byte));
    let (chunks, rest) = value.as_chunks::<32>();
    chunks.iter().any(|chunk| any(chunk)) | any(rest)
}

#[cold]
fn push_escaped(out: &mut Vec<u8>, value: &[u8]) {
    for &byte in value {
        let letter = match byte {
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\\' => b'\\',
            plain => {
                out.push(plain);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn writes_rows_as_documented() {
        let mut out = b"head".to_vec();
        let mut rows = TextRows::new(&mut out);
        rows.int(-42);
        rows.text(b"a\tb\\c\nd\re");
        rows.null();
        rows.double(1.5);
        rows.end_row();
        rows.end_row();
        rows.text(b"");
        rows.end_row();
        assert_eq!(out, b"head-42\ta\\tb\\\\c\\nd\\re\t\\N\t1.5\n\n\n");
    }

    struct Numbers(i64, i64);

    impl RowSource for Numbers {
        fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
            if self.0 == self.1 {
                return false;
            }
            self.0 += 1;
            out.int(self.0);
            true
        }

        fn restart(&mut self) {
            self.0 = 0;
        }
    }

    #[test]
    fn fills_to_the_limit_with_whole_rows() {
        let mut out = Vec::new();
        let mut source = Numbers(0, 5);
        assert!(TextRows::new(&mut out).fill(&mut source, 5));
        assert_eq!(out, b"1\n2\n3\n");
        assert!(!TextRows::new(&mut out).fill(&mut source, 100));
        assert_eq!(out, b"1\n2\n3\n4\n5\n");
    }

    fn unescape(text: &[u8]) -> Vec<u8> {
        let mut bytes = text.iter();
        let mut plain = Vec::new();
        while let Some(&byte) = bytes.next() {
            plain.push(match byte {
                b'\\' => match bytes.next() {
                    Some(b't') => b'\t',
                    Some(b'n') => b'\n',
                    Some(b'r') => b'\r',
                    Some(b'\\') => b'\\',
                    other => panic!("unknown escape {other:?}"),
                },
                byte => byte,
            });
        }
        plain
    }

    proptest! {
        #[test]
        fn any_text_reads_back(
            mut text in prop::collection::vec(any::<u8>(), 0..150),
            special in prop::option::of((any::<prop::sample::Index>(), 0..4_usize)),
        ) {
            if let Some((at, which)) = special && !text.is_empty() {
                let at = at.index(text.len());
                text[at] = b"\t\n\r\\"[which];
            }
            let mut out = Vec::new();
            let mut rows = TextRows::new(&mut out);
            rows.text(&text);
            rows.int(7);
            rows.end_row();
            let line = out.strip_suffix(b"\t7\n").unwrap();
            prop_assert!(!line.iter().any(|&byte| matches!(byte, b'\t' | b'\n' | b'\r')));
            prop_assert_eq!(unescape(line), text);
        }
    }
}
