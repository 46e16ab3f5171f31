//! Finds whole messages in received bytes.
//!
//! Reads fields of a message body.

use super::{Read, WireError};

/// The longest body: PostgreSQL allocates no more.
pub const BODY_LIMIT_BYTES: usize = 1 << 30;

/// The longest body of messages that can't be long, as in libpq.
const SHORT_BODY_LIMIT_BYTES: usize = 30_000;

/// Bytes of the tag and the length field.
pub const HEADER_BYTES: usize = 5;

/// First letter of each backend message.
pub mod tag {
    pub const AUTHENTICATION: u8 = b'R';
    pub const BACKEND_KEY: u8 = b'K';
    pub const BIND_COMPLETE: u8 = b'2';
    pub const CLOSE_COMPLETE: u8 = b'3';
    pub const COMMAND_COMPLETE: u8 = b'C';
    pub const COPY_DATA: u8 = b'd';
    pub const COPY_DONE: u8 = b'c';
    pub const COPY_IN: u8 = b'G';
    pub const COPY_OUT: u8 = b'H';
    pub const DATA_ROW: u8 = b'D';
    pub const EMPTY_QUERY: u8 = b'I';
    pub const ERROR: u8 = b'E';
    pub const NEGOTIATE: u8 = b'v';
    pub const NO_DATA: u8 = b'n';
    pub const NOTICE: u8 = b'N';
    pub const NOTIFICATION: u8 = b'A';
    pub const PARAMETER_DESCRIPTION: u8 = b't';
    pub const PARAMETER_STATUS: u8 = b'S';
    pub const PARSE_COMPLETE: u8 = b'1';
    pub const READY: u8 = b'Z';
    pub const ROW_DESCRIPTION: u8 = b'T';
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    pub tag: u8,
    /// Length of the body; at most [`BODY_LIMIT_BYTES`].
    pub body_len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageFrame<'a> {
    pub tag: u8,
    pub body: &'a [u8],
}

impl MessageFrame<'_> {
    #[inline]
    pub fn wire_len(&self) -> usize {
        HEADER_BYTES + self.body.len()
    }
}

/// The header at the start of `received`, if complete.
#[inline]
pub fn header(received: &[u8]) -> Read<Option<MessageHeader>> {
    let Some(&[tag, a, b, c, d]) = received.first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    // The length counts itself. A negative one becomes huge here and is refused below.
    let len = u32::from_be_bytes([a, b, c, d]) as usize;
    let body_len = len.wrapping_sub(4);
    if body_len > SHORT_BODY_LIMIT_BYTES && (body_len > BODY_LIMIT_BYTES || !may_be_long(tag)) {
        return Err(WireError("a message of the server states an impossible length"));
    }
    Ok(Some(MessageHeader { tag, body_len }))
}

/// The message at the start of `received`, if complete.
#[inline]
pub fn next_frame(received: &[u8]) -> Read<Option<MessageFrame<'_>>> {
    let Some(MessageHeader { tag, body_len }) = header(received)? else {
        return Ok(None);
    };
    let body = received.get(HEADER_BYTES..HEADER_BYTES + body_len);
    Ok(body.map(|body| MessageFrame { tag, body }))
}

#[cold]
fn may_be_long(tag: u8) -> bool {
    matches!(
        tag,
        tag::ROW_DESCRIPTION
            | tag::DATA_ROW
            | tag::COPY_DATA
            | tag::ERROR
            | tag::NOTICE
            | tag::NOTIFICATION
            | tag::PARAMETER_DESCRIPTION
    )
}

pub(super) struct MessageReader<'a> {
    rest: &'a [u8],
}

const TRUNCATED: WireError = WireError("a message of the server ends in the middle of a field");

impl<'a> MessageReader<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        MessageReader { rest: body }
    }

    #[inline]
    pub(super) fn take_bytes(&mut self, count: usize) -> Read<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads bytes of a constant number.
    #[inline]
    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads one byte.
    pub(super) fn u8(&mut self) -> Read<u8> {
        Ok(self.array::<1>()?[0])
    }

    /// Reads two bytes, the highest first.
    #[inline]
    pub(super) fn u16(&mut self) -> Read<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// Reads four bytes, the highest first.
    #[inline]
    pub(super) fn u32(&mut self) -> Read<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// Reads a signed number of four bytes.
    #[inline]
    pub(super) fn i32(&mut self) -> Read<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// The bytes up to the next zero byte, which is taken too.
    pub(super) fn zero_terminated(&mut self) -> Read<&'a [u8]> {
        let end = self.rest.iter().position(|&byte| byte == 0);
        let end = end.ok_or(WireError("a text of the server has no end"))?;
        let text = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Ok(text)
    }

    /// Takes all bytes that have not been read.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// The body must have been read to its end.
    #[inline]
    pub(super) fn end(&self) -> Read<()> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(WireError("a message of the server is longer than its contents"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refuses_lengths_that_cannot_be() {
        for len in [0_u32, 3, 0x8000_0000, 0xffff_ffff, (BODY_LIMIT_BYTES + 5) as u32] {
            let mut bytes = vec![tag::DATA_ROW];
            bytes.extend_from_slice(&len.to_be_bytes());
            assert!(next_frame(&bytes).is_err(), "{len:#x}");
        }
        assert!(header(b"Z\0\x01\0\0").is_err(), "ReadyForQuery can't have 64 KiB");
        assert!(header(b"D\0\x01\0\0").unwrap().is_some());
    }

    proptest! {
        #[test]
        fn a_split_at_any_byte_only_delays(
            bodies in prop::collection::vec(
                (prop::sample::select(b"DZCSNE".to_vec()), prop::collection::vec(any::<u8>(), 0..40)),
                1..6,
            ),
        ) {
            let mut stream = Vec::new();
            for (tag, body) in &bodies {
                stream.push(*tag);
                stream.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
                stream.extend_from_slice(body);
            }
            for split in 0..=stream.len() {
                let (mut found, mut at) = (Vec::new(), 0);
                for end in [split, stream.len()] {
                    while let Some(frame) = next_frame(&stream[at..end]).unwrap() {
                        found.push((frame.tag, frame.body.to_vec()));
                        at += frame.wire_len();
                    }
                }
                prop_assert_eq!(&found, &bodies);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(Some(frame)) = next_frame(&bytes) {
                prop_assert!(frame.wire_len() <= bytes.len());
            }
        }
    }
}
