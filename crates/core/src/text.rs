//! Text for each statement.

use std::ops::RangeInclusive;

use crate::{DbError, DbResult};

/// Characters of the longest integer.
pub const LONGEST_INT: usize = 20;

const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Writes `value` in decimal at the end of `text`, which has room for [`LONGEST_INT`] characters; returns its start.
/// The standard formatter is several times as slow, which shows in millions of rows.
#[inline]
pub fn write_int(text: &mut [u8], value: i64) -> usize {
    let (mut at, mut rest) = (text.len(), value.unsigned_abs());
    // Single bytes, because copying a slice of two bytes calls memmove.
    while rest >= 100 {
        let pair = (rest % 100) as usize * 2;
        rest /= 100;
        at -= 2;
        [text[at], text[at + 1]] = [PAIRS[pair], PAIRS[pair + 1]];
    }
    if rest >= 10 {
        let pair = rest as usize * 2;
        at -= 2;
        [text[at], text[at + 1]] = [PAIRS[pair], PAIRS[pair + 1]];
    } else {
        at -= 1;
        text[at] = b'0' + rest as u8;
    }
    if value < 0 {
        at -= 1;
        text[at] = b'-';
    }
    at
}

/// Appends an integer in decimal.
#[inline]
pub fn push_int(out: &mut String, value: i64) {
    let mut text = [0; LONGEST_INT];
    let at = write_int(&mut text, value);
    out.push_str(std::str::from_utf8(&text[at..]).unwrap_or_default());
}

/// Private letters that represent the bytes from 0x80 on, if these are not UTF-8.
const BYTE_LETTERS: RangeInclusive<u32> = 0x0010_ff80..=0x0010_ffff;

/// UTF-8 for bytes in any encoding: [`text_to_bytes`] gives them back.
pub fn text_from_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        let invalid = chunk.invalid().iter().map(|&byte| BYTE_LETTERS.start() | u32::from(byte));
        text.extend(invalid.filter_map(char::from_u32));
    }
    text
}

/// The bytes that [`text_from_bytes`] was given.
pub fn text_to_bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for letter in text.chars() {
        if BYTE_LETTERS.contains(&u32::from(letter)) {
            bytes.push(u32::from(letter) as u8);
        } else {
            bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    bytes
}

/// The text of a statement for a database that takes UTF-8 only.
pub fn utf8_statement(sql: &[u8]) -> DbResult<&str> {
    std::str::from_utf8(sql).map_err(|_| {
        DbError::workload(
            "the text of a statement for this database must be UTF-8: bind other bytes as parameters",
        )
    })
}

/// Two lower-case hexadecimal digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// `1 warehouse`, `2 warehouses`: a count with its noun, whose plural ends with an s.
pub fn counted(count: impl Into<u64>, noun: &str) -> String {
    match count.into() {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

/// Makes an enum whose variants have names for people: `ALL` has them in their order, `name` says one.
#[macro_export]
macro_rules! named {
    ($(#[$attribute:meta])* $vis:vis enum $Enum:ident {
        $($(#[$of_variant:meta])* $Variant:ident = $name:literal,)+
    }) => {
        $(#[$attribute])*
        $vis enum $Enum {
            $($(#[$of_variant])* $Variant),+
        }

        impl $Enum {
            $vis const ALL: [$Enum; [$($name),+].len()] = [$($Enum::$Variant),+];

            $vis const fn name(self) -> &'static str {
                match self {
                    $($Enum::$Variant => $name),+
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_in_decimal() {
        for value in [0, 7, 10, 99, 100, 101, 1_000, 12_345, -1, -10, i64::MAX, i64::MIN] {
            let mut text = String::new();
            push_int(&mut text, value);
            assert_eq!(text, value.to_string());
        }
    }

    #[test]
    fn bytes_in_any_encoding_come_back() {
        for bytes in [&b"a\xe9b\xff"[..], "\u{e9}\u{20ac}".as_bytes(), b"\xe2\x82", b""] {
            assert_eq!(text_to_bytes(&text_from_bytes(bytes)), bytes);
        }
        assert_eq!(text_from_bytes("\u{e9}".as_bytes()), "\u{e9}");
        assert_ne!(text_from_bytes(b"\xe8"), text_from_bytes(b"\xe9"));
    }
}
