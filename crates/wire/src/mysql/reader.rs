//! Reading fields from the payload of one packet.

use super::{Malformed, Scanned};

/// A cursor over a payload. Every read is checked; the length that a peer claims is only compared with the present
/// bytes.
#[derive(Clone, Copy, Debug)]
pub struct PacketReader<'a> {
    rest: &'a [u8],
}

/// A value of a text row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextValue<'a> {
    Null,
    Bytes(&'a [u8]),
}

const SHORT: Malformed = Malformed("a packet ends before its last field");

impl<'a> PacketReader<'a> {
    #[inline]
    pub fn new(payload: &'a [u8]) -> Self {
        PacketReader { rest: payload }
    }

    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub fn bytes(&mut self, count: usize) -> Scanned<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or(SHORT)?;
        self.rest = rest;
        Ok(head)
    }

    #[inline]
    pub fn array<const N: usize>(&mut self) -> Scanned<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(SHORT)?;
        self.rest = rest;
        Ok(*head)
    }

    #[inline]
    pub fn u8(&mut self) -> Scanned<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub fn u16(&mut self) -> Scanned<u16> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub fn u32(&mut self) -> Scanned<u32> {
        self.array().map(u32::from_le_bytes)
    }

    #[inline]
    pub fn u64(&mut self) -> Scanned<u64> {
        self.array().map(u64::from_le_bytes)
    }

    #[inline]
    pub fn lenenc(&mut self) -> Scanned<u64> {
        match self.u8()? {
            small @ 0..=0xfa => Ok(u64::from(small)),
            0xfc => self.u16().map(u64::from),
            0xfd => self.array::<3>().map(|[a, b, c]| u64::from(u32::from_le_bytes([a, b, c, 0]))),
            0xfe => self.u64(),
            _ => Err(Malformed("a length starts with a byte that no length can start with")),
        }
    }

    #[inline]
    pub fn lenenc_bytes(&mut self) -> Scanned<&'a [u8]> {
        let length = self.lenenc()?;
        self.bytes(usize::try_from(length).map_err(|_| SHORT)?)
    }

    /// A value of a text row: NULL or bytes preceded by their length.
    #[inline]
    pub fn text_value(&mut self) -> Scanned<TextValue<'a>> {
        if let Some((0xfb, rest)) = self.rest.split_first() {
            self.rest = rest;
            return Ok(TextValue::Null);
        }
        self.lenenc_bytes().map(TextValue::Bytes)
    }

    /// Bytes up to a NUL, which is read too.
    pub fn until_nul(&mut self) -> Scanned<&'a [u8]> {
        let end = self
            .rest
            .iter()
            .position(|&byte| byte == 0)
            .ok_or(Malformed("a text lacks its terminating NUL"))?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = &rest[1..];
        Ok(text)
    }
}

#[inline]
pub fn push_lenenc(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    match value {
        0..=0xfa => out.push(bytes[0]),
        0xfb..=0xffff => out.extend_from_slice(&[0xfc, bytes[0], bytes[1]]),
        0x1_0000..=0xff_ffff => out.extend_from_slice(&[0xfd, bytes[0], bytes[1], bytes[2]]),
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}

#[inline]
pub fn push_lenenc_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_lenenc(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lengths_read_back_and_tolerate_truncation(value: u64, shift in 0..64_u32) {
            let value = value >> shift;
            let mut out = Vec::new();
            push_lenenc(&mut out, value);
            let mut reader = PacketReader::new(&out);
            prop_assert_eq!(reader.lenenc(), Ok(value));
            prop_assert!(reader.rest().is_empty());
            for end in 0..out.len() {
                prop_assert!(PacketReader::new(&out[..end]).lenenc().is_err());
            }
        }

        #[test]
        fn claimed_lengths_beyond_the_packet_are_errors(claim in 4_u64.., tail in any::<[u8; 3]>()) {
            let mut out = Vec::new();
            push_lenenc(&mut out, claim);
            out.extend_from_slice(&tail);
            prop_assert!(PacketReader::new(&out).lenenc_bytes().is_err());
            prop_assert!(PacketReader::new(&out).text_value().is_err());
        }
    }

    #[test]
    fn null_and_error_prefixes_are_no_lengths() {
        assert!(PacketReader::new(&[0xfb]).lenenc().is_err());
        assert!(PacketReader::new(&[0xff, 0, 0]).lenenc().is_err());
        assert_eq!(PacketReader::new(&[0xfb]).text_value(), Ok(TextValue::Null));
        assert!(PacketReader::new(b"no end").until_nul().is_err());
    }
}
