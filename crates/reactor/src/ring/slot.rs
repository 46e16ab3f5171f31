//! One socket of a ring: what has arrived and not been taken, what was given and not been sent.

use super::buffers::{BUFFER_BYTES, Buffers};
use io_uring::cqueue;
use rustix::io::Errno;
use std::os::fd::RawFd;

/// Bytes of one socket that may wait to be sent; more are refused until these are gone.
const UNSENT_LIMIT_BYTES: usize = 64 * 1024;
/// Bytes of one socket that may wait to be taken; then the ring stops receiving until they are.
const LANDED_LIMIT_BYTES: usize = 256 * 1024;
/// Larger buffers are freed as soon as they are empty.
const KEEP_BYTES: usize = 16 * 1024;

/// What a completion calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Nothing,
    /// A new multishot receive.
    Arm,
    /// The end of the multishot receive: too much has landed.
    Pause,
    /// A send that waits for the peer.
    SendRest,
    /// A send of what has gathered meanwhile.
    SendMore,
}

/// What a look at what has arrived came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek<T> {
    /// Nothing has arrived.
    Nothing,
    Taken(T),
    /// What has arrived has to be received.
    Refused,
}

#[derive(Debug, Default)]
pub(super) struct SocketSlot {
    pub(super) waiter: u32,
    pub(super) fd: RawFd,
    /// A multishot receive is with the kernel.
    pub(super) is_armed: bool,
    /// Its owner is gone; completions are only counted.
    pub(super) is_closing: bool,
    /// In the list of slots with unsent bytes.
    pub(super) is_listed: bool,
    /// A send that waits for the peer is listed or with the kernel.
    pub(super) is_sending: bool,
    is_paused: bool,
    /// Its owner waits until it may give more.
    pub(super) wants_room: bool,
    /// What has arrived last and lies in the kernel's buffer still: its number and bytes. Empty after each round.
    held: Option<(u16, usize)>,
    /// What has arrived before.
    landed: Vec<u8>,
    /// How many of them the owner has.
    taken: usize,
    received_end: Option<Result<(), Errno>>,
    /// Given by the owner; the kernel reads them only while a submission lasts.
    unsent: Vec<u8>,
    /// Of a send that waits for the peer: the kernel may read them at any time, so they don't move.
    waiting: Vec<u8>,
    send_error: Option<Errno>,
}

impl SocketSlot {
    /// For a new owner.
    pub(super) fn open(&mut self, fd: RawFd, waiter: u32) {
        *self = SocketSlot { waiter, fd, ..SocketSlot::default() };
    }

    pub(super) fn is_readable(&self) -> bool {
        self.held.is_some() || self.taken < self.landed.len() || self.received_end.is_some()
    }

    /// Notes that the owner waits, when there is no room.
    pub(super) fn is_writable(&mut self) -> bool {
        self.wants_room = self.unsent.len() >= UNSENT_LIMIT_BYTES && self.send_error.is_none();
        !self.wants_room
    }

    /// Lets `read` see what has arrived where it lies; it is taken if `read` returns something.
    #[inline]
    pub(super) fn look<T>(
        &mut self,
        buffers: &mut Buffers,
        read: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Peek<T> {
        let Some((id, len)) = self.held else { return self.look_at_landed(read) };
        let Some(read) = read(buffers.filled(id, len)) else { return Peek::Refused };
        self.held = None;
        buffers.give(id);
        Peek::Taken(read)
    }

    /// The same for what takes several buffers of the kernel.
    #[inline(never)]
    fn look_at_landed<T>(&mut self, read: impl FnOnce(&[u8]) -> Option<T>) -> Peek<T> {
        if !self.is_readable() {
            return Peek::Nothing;
        }
        let there = &self.landed[self.taken..];
        // A flood is received: that ends its pause.
        if there.is_empty() || self.is_paused {
            return Peek::Refused;
        }
        let Some(read) = read(there) else { return Peek::Refused };
        empty(&mut self.landed);
        self.taken = 0;
        Peek::Taken(read)
    }

    /// Copies what has landed. `Ok(Some(0))` at the end of the stream, `Ok(None)` when nothing is there; `Next::Arm`
    /// when receiving has to go on.
    #[inline]
    pub(super) fn take(
        &mut self,
        into: &mut [u8],
        buffers: &mut Buffers,
    ) -> (Result<Option<usize>, Errno>, Next) {
        if let Some((id, len)) = self.held
            && len <= into.len()
        {
            self.held = None;
            into[..len].copy_from_slice(buffers.filled(id, len));
            buffers.give(id);
            return (Ok(Some(len)), Next::Nothing);
        }
        self.take_landed(into, buffers)
    }

    fn take_landed(
        &mut self,
        into: &mut [u8],
        buffers: &mut Buffers,
    ) -> (Result<Option<usize>, Errno>, Next) {
        self.settle(buffers);
        let there = &self.landed[self.taken..];
        if there.is_empty() {
            let end = self.received_end.map_or(Ok(None), |end| end.map(|()| Some(0)));
            return (end, Next::Nothing);
        }
        let count = there.len().min(into.len());
        into[..count].copy_from_slice(&there[..count]);
        self.taken += count;
        let mut next = Next::Nothing;
        if self.taken == self.landed.len() {
            empty(&mut self.landed);
            self.taken = 0;
            if std::mem::take(&mut self.is_paused) && self.received_end.is_none() && !self.is_armed
            {
                next = Next::Arm;
            }
        }
        (Ok(Some(count)), next)
    }

    /// Gives the kernel its buffer back; what is in it lands.
    pub(super) fn settle(&mut self, buffers: &mut Buffers) {
        if let Some((id, len)) = self.held.take() {
            self.landed.extend_from_slice(buffers.filled(id, len));
            buffers.give(id);
        }
    }

    /// Accepts all of `bytes` by exchanging buffers; false when others wait or there are too many, or when something has
    /// arrived that the owner has not taken.
    #[inline]
    pub(super) fn exchange(&mut self, bytes: &mut Vec<u8>) -> bool {
        let is_free = self.unsent.is_empty()
            && self.send_error.is_none()
            && bytes.len() <= UNSENT_LIMIT_BYTES
            && !self.is_readable();
        if is_free {
            std::mem::swap(&mut self.unsent, bytes);
        }
        is_free
    }

    /// Accepts as many bytes as there is room for; `None` when there is none.
    pub(super) fn give(&mut self, bytes: &[u8]) -> Result<Option<usize>, Errno> {
        if let Some(error) = self.send_error {
            return Err(error);
        }
        let room = UNSENT_LIMIT_BYTES.saturating_sub(self.unsent.len());
        let count = room.min(bytes.len());
        self.unsent.extend_from_slice(&bytes[..count]);
        Ok((count > 0 || bytes.is_empty()).then_some(count))
    }

    /// What a submission may send now.
    pub(super) fn sendable(&self) -> &[u8] {
        if self.is_sending { &[] } else { &self.unsent }
    }

    /// What a waiting send sends.
    pub(super) fn waiting(&self) -> &[u8] {
        &self.waiting
    }

    /// A submission has sent all, or [`SocketSlot::fell_short`] has kept the rest. True when the owner waits for room.
    pub(super) fn submitted(&mut self) -> bool {
        empty(&mut self.unsent);
        std::mem::take(&mut self.wants_room)
    }

    /// The send of a submission could not send all at once.
    pub(super) fn fell_short(&mut self, result: i32) -> Next {
        match outcome(result) {
            Ok(_) | Err(Errno::AGAIN) => {
                let sent = usize::try_from(result).unwrap_or(0);
                self.waiting.extend_from_slice(&self.unsent[sent..]);
                self.unsent.clear();
                self.is_sending = !self.waiting.is_empty();
                if self.is_sending { Next::SendRest } else { Next::Nothing }
            }
            Err(error) => self.fail_sends(error),
        }
    }

    /// A waiting send has ended.
    pub(super) fn sent_rest(&mut self, result: i32) -> Next {
        match outcome(result) {
            _ if self.is_closing => {
                self.is_sending = false;
                Next::Nothing
            }
            Ok(sent) if sent < self.waiting.len() => {
                self.waiting.drain(..sent);
                Next::SendRest
            }
            Ok(_) => {
                self.is_sending = false;
                empty(&mut self.waiting);
                if self.unsent.is_empty() { Next::Nothing } else { Next::SendMore }
            }
            Err(Errno::INTR | Errno::AGAIN) => Next::SendRest,
            Err(error) => self.fail_sends(error),
        }
    }

    fn fail_sends(&mut self, error: Errno) -> Next {
        self.is_sending = false;
        self.send_error = Some(error);
        self.waiting.clear();
        self.unsent.clear();
        Next::Nothing
    }

    /// A completion of the multishot receive. Its buffer is held until it is taken, [`SocketSlot::settle`] at the latest.
    pub(super) fn received(&mut self, result: i32, flags: u32, buffers: &mut Buffers) -> Next {
        if let Some(id) = cqueue::buffer_select(flags) {
            buffers.hold();
            // At the first bytes, so that no later answer in two pieces is the first to allocate.
            if self.landed.capacity() == 0 {
                self.landed.reserve(BUFFER_BYTES);
            }
            if self.held.is_some() {
                self.settle(buffers);
            }
            if self.is_closing || result <= 0 {
                buffers.give(id);
            } else {
                self.held = Some((id, result as usize));
                if !self.landed.is_empty() {
                    self.settle(buffers);
                }
            }
        }
        self.is_armed = cqueue::more(flags);
        match outcome(result) {
            Ok(0) => self.received_end = Some(Ok(())),
            // The buffers were all in use, a flood has been stopped, or a signal came.
            Ok(_) | Err(Errno::NOBUFS | Errno::CANCELED | Errno::INTR | Errno::AGAIN) => {}
            Err(error) => self.received_end = Some(Err(error)),
        }
        if self.received_end.is_some() || self.is_closing {
            return Next::Nothing;
        }
        if self.landed.len() >= LANDED_LIMIT_BYTES && !self.is_paused {
            self.is_paused = true;
            return if self.is_armed { Next::Pause } else { Next::Nothing };
        }
        if self.is_armed || self.is_paused { Next::Nothing } else { Next::Arm }
    }
}

fn outcome(result: i32) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result))
}

fn empty(bytes: &mut Vec<u8>) {
    if bytes.capacity() > KEEP_BYTES {
        *bytes = Vec::new();
    } else {
        bytes.clear();
    }
}
