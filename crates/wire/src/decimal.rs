//! Integers as decimal text, two digits at a time.

const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Appends `value` in decimal. The standard formatter costs several times as much, which shows
/// when millions of rows are generated.
#[inline]
pub fn push_int(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    push_uint(out, value.unsigned_abs());
}

/// Appends `value` in decimal.
// Single bytes, because copying a slice of two bytes calls memmove.
#[inline]
pub fn push_uint(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        [digits[at], digits[at + 1]] = [PAIRS[pair], PAIRS[pair + 1]];
    }
    if value >= 10 {
        let pair = value as usize * 2;
        at -= 2;
        [digits[at], digits[at + 1]] = [PAIRS[pair], PAIRS[pair + 1]];
    } else {
        at -= 1;
        digits[at] = b'0' + value as u8;
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends the shortest decimal text that reads back as the same number.
pub fn push_double(out: &mut Vec<u8>, value: f64) {
    use std::io::Write;
    // Writing into a Vec cannot fail.
    let _ = write!(out, "{value:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn integers_read_back(value: i64, shift in 0..64_u32) {
            for value in [value >> shift, i64::MIN, i64::MAX, 0, -1, 9, 10, 99, 100] {
                let mut out = Vec::new();
                push_int(&mut out, value);
                prop_assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
            }
        }

        #[test]
        fn doubles_read_back(value: f64) {
            let mut out = Vec::new();
            push_double(&mut out, value);
            let text = String::from_utf8(out).unwrap();
            prop_assert!(text.parse::<f64>().unwrap() == value || value.is_nan());
        }
    }
}
