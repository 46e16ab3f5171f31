//! Reads fields of a message body.

use super::{Read, WireError};

pub(super) struct MessageReader<'a> {
    rest: &'a [u8],
}

const TRUNCATED: WireError = WireError("a message of the server ends in the middle of a field");

impl<'a> MessageReader<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        MessageReader { rest: body }
    }

    #[inline]
    pub(super) fn take(&mut self, count: usize) -> Read<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Read<u8> {
        Ok(self.array::<1>()?[0])
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Read<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Read<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }

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
