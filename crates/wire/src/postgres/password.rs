//! Small helpers of authentication.

use md5::{Digest, Md5};
use std::fmt::Write;

/// What answers a request for an md5 password: `md5` and 32 hexadecimal digits.
pub fn md5_password(user: &str, password: &str, salt: [u8; 4]) -> String {
    let inner = hex(&Md5::new().chain_update(password).chain_update(user).finalize());
    format!("md5{}", hex(&Md5::new().chain_update(inner).chain_update(salt).finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 with padding (RFC 4648, section 4).
pub(super) fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, &byte| word << 8 | u32::from(byte))
            << (8 * (3 - chunk.len()));
        for position in 0..4 {
            if position <= chunk.len() {
                let letter = ALPHABET[(word >> (18 - 6 * position)) as usize & 63];
                text.push(char::from(letter));
            } else {
                text.push('=');
            }
        }
    }
    text
}

/// Reads base64 with padding; `None` for anything else.
pub(super) fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in digits.chunks(4) {
        let mut word = 0_u32;
        for letter in chunk {
            let digit = ALPHABET.iter().position(|known| known == letter)?;
            word = word << 6 | digit as u32;
        }
        let whole = chunk.len() * 6 / 8;
        word <<= 6 * (4 - chunk.len());
        bytes.extend_from_slice(&word.to_be_bytes()[1..=whole]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn md5_answers_as_libpq_does() {
        // md5(md5('secret' || 'bob') || '\x01020304') as PostgreSQL's own md5() computes it.
        assert_eq!(
            md5_password("bob", "secret", [1, 2, 3, 4]),
            "md5f21dfe33ff3a9e03dbc3e008251fe5cc"
        );
    }

    #[test]
    fn base64_of_rfc_4648() {
        for (plain, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(plain.as_bytes()), text);
            assert_eq!(from_base64(text.as_bytes()).as_deref(), Some(plain.as_bytes()));
        }
        for wrong in ["Z", "Zg=", "Z===", "Zm9*", "=Zm9", "===="] {
            assert_eq!(from_base64(wrong.as_bytes()), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn base64_reads_back(bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            prop_assert_eq!(from_base64(base64(&bytes).as_bytes()), Some(bytes));
        }

        #[test]
        fn arbitrary_base64_never_panics(text in prop::collection::vec(any::<u8>(), 0..50)) {
            let _ = from_base64(&text);
        }
    }
}
