//! The compressed protocol of MySQL between packets and the socket or TLS.

use super::inbox::Inbox;
use super::transport::Layer;
use dyno_core::{DbError, DbResult};
use dyno_reactor::SocketStream;
use dyno_wire::mysql::Malformed;
use dyno_wire::mysql::compression::Frames;
use std::task::{Poll, ready};

/// A frame of the greatest length, and some room.
const INBOX_BYTES: usize = 17 << 20;

#[derive(Debug)]
pub(super) struct Packed {
    pub(super) below: Layer,
    frames: Frames,
    /// Frames as they came.
    received: Inbox,
    /// What they held, the first `taken` bytes of which are handed over.
    packets: Vec<u8>,
    taken: usize,
    /// Frames to be sent, the first `sent` bytes of which are.
    out: Vec<u8>,
    sent: usize,
}

impl Packed {
    pub(super) fn new(below: Layer, frames: Frames) -> Self {
        Packed {
            below,
            frames,
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
        let mut left = &self.out[self.sent..];
        let is_sent = self.below.try_send(socket, &mut left)?;
        self.sent = self.out.len() - left.len();
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
            match unpacked.map_err(malformed)? {
                0 => return Ok(false),
                length => self.received.consume(length),
            }
        }
        let space = inbox.space()?;
        let left = &self.packets[self.taken..];
        let count = left.len().min(space.len());
        space[..count].copy_from_slice(&left[..count]);
        inbox.received(count);
        self.taken += count;
        Ok(true)
    }
}

#[cold]
fn malformed(error: Malformed) -> DbError {
    DbError::protocol(format!("The compressed protocol is broken: {}.", error.0))
}
