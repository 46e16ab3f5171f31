//! The receive buffer of one connection.
//!
//! The compressed protocol of MySQL between packets and the socket or TLS.

use super::transport::Layer;
use dyno_core::{DbError, DbResult};
use dyno_reactor::SocketStream;
use dyno_wire::mysql::Malformed;
use dyno_wire::mysql::compression::Frames;
use std::task::{Poll, ready};

/// Size of a fresh buffer. Most answers are shorter, and a thousand connections take 1 MiB.
const FIRST_BYTES: usize = 1024;
/// Full receives grow the buffer up to this size; beyond it only a longer message does.
const STREAMING_BYTES: usize = 64 * 1024;

/// Bytes received and not yet consumed, in one contiguous piece.
///
/// The buffer only doubles, and only when it is full: it never trusts the length that a message claims.
#[derive(Clone, Debug)]
pub struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    limit: usize,
    grow: bool,
}

impl Inbox {
    /// An empty inbox for messages of at most `limit` bytes (at least 1 KiB).
    pub fn new(limit: usize) -> Self {
        Inbox {
            bytes: vec![0; FIRST_BYTES],
            start: 0,
            end: 0,
            limit: limit.max(FIRST_BYTES),
            grow: false,
        }
    }

    /// Takes longer messages from now on.
    pub fn raise_limit(&mut self, limit: usize) {
        self.limit = self.limit.max(limit);
    }

    /// Received bytes that are not consumed.
    #[inline]
    pub fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Drops the first `count` bytes of [`Inbox::filled`].
    #[inline]
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.end - self.start, "more consumed than received");
        self.start += count;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Announces the length of the message at the front, to refuse a hostile one before its bytes arrive.
    pub fn reserve(&mut self, total: usize) -> DbResult<()> {
        if total > self.limit {
            return Err(self.too_long(total));
        }
        if self.start + total > self.bytes.len() {
            self.move_to_front();
        }
        Ok(())
    }

    /// Room for at least one more byte; grows or moves the bytes if needed.
    pub(super) fn space(&mut self) -> DbResult<&mut [u8]> {
        let size = self.bytes.len();
        // A receive into the last few bytes would cost a system call for nearly nothing.
        if self.grow || size - self.end < FIRST_BYTES / 8 {
            self.make_space()?;
        }
        Ok(&mut self.bytes[self.end..])
    }

    /// Counts bytes that were received into [`Inbox::space`].
    #[inline]
    pub(super) fn received(&mut self, count: usize) {
        self.end += count;
        debug_assert!(self.end <= self.bytes.len());
        // After a full receive more bytes wait: fewer, larger receives are cheaper.
        self.grow |= self.end == self.bytes.len() && self.bytes.len() < STREAMING_BYTES;
    }

    #[cold]
    fn make_space(&mut self) -> DbResult<()> {
        let grow = std::mem::take(&mut self.grow);
        let filled_bytes = self.end - self.start;
        let size = self.bytes.len();
        self.move_to_front();
        if grow || filled_bytes > size / 2 {
            let larger = (size * 2).min(self.limit);
            self.bytes.resize(larger, 0);
        }
        if self.end == self.bytes.len() {
            return Err(self.too_long(filled_bytes + 1));
        }
        Ok(())
    }

    fn move_to_front(&mut self) {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
    }

    #[cold]
    fn too_long(&self, total: usize) -> DbError {
        DbError::protocol(format!(
            "The server sent a message of {total} bytes or more, beyond the limit of {} bytes.",
            self.limit
        ))
        .with_hint(
            "check that the scheme and the port in the URL belong to the same kind of server",
        )
    }
}

/// A frame of the greatest length, and some room.
const INBOX_BYTES: usize = 17 << 20;

#[derive(Debug)]
pub(super) struct Packed {
    pub(super) below: Layer,
    frames: Frames,
    /// Frames as they came.
    received: Inbox,
    /// Their content, of which the first `taken` bytes are handed over.
    packets: Vec<u8>,
    taken: usize,
    /// Frames to be sent, the first `sent` bytes of which are.
    out: Vec<u8>,
    sent: usize,
}

impl Packed {
    pub(super) fn new(below: Layer) -> Self {
        Packed {
            below,
            frames: Frames::default(),
            received: Inbox::new(INBOX_BYTES),
            packets: Vec::new(),
            taken: 0,
            out: Vec::new(),
            sent: 0,
        }
    }

    /// Takes all of `rest` at the first call; true when all of it is sent.
    pub(super) fn try_send(&mut self, socket: &SocketStream, rest: &mut &[u8]) -> DbResult<bool> {
        self.frames.pack(std::mem::take(rest), &mut self.out);
        let mut unsent = &self.out[self.sent..];
        let is_sent = self.below.try_send(socket, &mut unsent)?;
        self.sent = self.out.len() - unsent.len();
        if is_sent {
            self.out.clear();
            self.sent = 0;
        }
        Ok(is_sent)
    }

    pub(super) fn poll_recv(
        &mut self,
        socket: &SocketStream,
        inbox: &mut Inbox,
    ) -> Poll<DbResult<()>> {
        while !self.hand_over(inbox)? {
            ready!(self.below.poll_recv(socket, &mut self.received))?;
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn try_recv(&mut self, socket: &SocketStream, inbox: &mut Inbox) -> DbResult<bool> {
        while !self.hand_over(inbox)? {
            if !self.below.try_recv(socket, &mut self.received)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// False while no frame is complete.
    fn hand_over(&mut self, inbox: &mut Inbox) -> DbResult<bool> {
        while self.taken == self.packets.len() {
            self.packets.clear();
            self.taken = 0;
            let unpacked = self.frames.unpack(self.received.filled(), &mut self.packets);
            match unpacked.map_err(malformed_error)? {
                0 => return Ok(false),
                length => self.received.consume(length),
            }
        }
        let space = inbox.space()?;
        let unread = &self.packets[self.taken..];
        let count = unread.len().min(space.len());
        space[..count].copy_from_slice(&unread[..count]);
        inbox.received(count);
        self.taken += count;
        Ok(true)
    }
}

#[cold]
fn malformed_error(error: Malformed) -> DbError {
    DbError::protocol(format!("The compressed protocol is broken: {}.", error.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Puts bytes into the inbox as a socket would.
    fn receive(inbox: &mut Inbox, bytes: &[u8]) -> DbResult<()> {
        let mut remaining = bytes;
        while !remaining.is_empty() {
            let space = inbox.space()?;
            let count = remaining.len().min(space.len());
            space[..count].copy_from_slice(&remaining[..count]);
            inbox.received(count);
            remaining = &remaining[count..];
        }
        Ok(())
    }

    #[test]
    fn a_claimed_length_is_checked_but_not_allocated() {
        let mut inbox = Inbox::new(1 << 30);
        receive(&mut inbox, b"head").unwrap();
        for _ in 0..100 {
            inbox.reserve(1 << 30).unwrap();
            receive(&mut inbox, b".").unwrap();
        }
        assert_eq!(inbox.bytes.len(), FIRST_BYTES);
        let error = inbox.reserve((1 << 30) + 1).unwrap_err();
        assert!(error.message().contains("1073741825 bytes"), "{error}");
        assert!(inbox.reserve(usize::MAX).is_err());
    }

    #[test]
    fn a_message_up_to_the_limit_fits_and_one_byte_more_does_not() {
        let mut inbox = Inbox::new(10_000);
        receive(&mut inbox, &[1; 9_000]).unwrap();
        inbox.consume(2_000);
        receive(&mut inbox, &[2; 3_000]).unwrap();
        assert_eq!(inbox.filled().len(), 10_000);
        assert!(inbox.space().is_err());
        inbox.consume(10_000);
        assert_eq!(inbox.space().unwrap().len(), 10_000);
    }

    #[test]
    fn streaming_grows_the_buffer_only_so_far() {
        let mut inbox = Inbox::new(1 << 30);
        for _ in 0..100 {
            let count = inbox.space().unwrap().len();
            inbox.received(count);
            inbox.consume(count);
        }
        assert_eq!(inbox.bytes.len(), STREAMING_BYTES);
    }

    proptest! {
        #[test]
        fn bytes_come_out_in_the_order_they_went_in(
            steps in prop::collection::vec((0_usize..9_000, 0_usize..9_000, 0_usize..20_000), 1..30)
        ) {
            let mut inbox = Inbox::new(1 << 20);
            let (mut written, mut read) = (0_u64, 0_u64);
            for (receives, consumes, reserves) in steps {
                let bytes: Vec<u8> = (0..receives).map(|i| (written + i as u64) as u8).collect();
                written += receives as u64;
                receive(&mut inbox, &bytes).unwrap();
                inbox.reserve(reserves).unwrap();
                prop_assert_eq!(inbox.filled().len() as u64, written - read);
                for (index, byte) in inbox.filled().iter().enumerate() {
                    prop_assert_eq!(*byte, (read + index as u64) as u8);
                }
                let count = consumes.min(inbox.filled().len());
                inbox.consume(count);
                read += count as u64;
            }
        }
    }
}
