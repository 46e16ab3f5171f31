//! The receive buffer of one connection.

use dyno_core::DbError;

/// Size of a fresh buffer: a thousand idle connections take 4 MiB.
const FIRST_BYTES: usize = 4 * 1024;
/// Full receives alone grow the buffer up to this size; beyond it only a message that does not
/// fit makes it grow.
const STREAMING_BYTES: usize = 64 * 1024;

/// Bytes received and not yet consumed, in one contiguous piece.
///
/// The buffer grows only by doubling, and only when it is full: what a peer claims about the
/// length of a message is never allocated before the bytes have arrived.
#[derive(Clone, Debug)]
pub struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    limit: usize,
    grow: bool,
}

impl Inbox {
    /// An empty inbox whose longest message may have `limit` bytes (at least 4 KiB).
    pub fn new(limit: usize) -> Self {
        Inbox {
            bytes: vec![0; FIRST_BYTES],
            start: 0,
            end: 0,
            limit: limit.max(FIRST_BYTES),
            grow: false,
        }
    }

    /// What has been received and not been consumed.
    #[inline]
    pub fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Drops the first `count` bytes of [`Inbox::filled`].
    ///
    /// # Panics
    /// When fewer bytes are there.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.end - self.start, "more consumed than received");
        self.start += count;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Says that the message at the front has `total` bytes, so that a hostile length is refused
    /// before its bytes arrive. Growing follows the bytes that come, not the claim.
    ///
    /// # Errors
    /// Protocol, when `total` is beyond the limit.
    pub fn reserve(&mut self, total: usize) -> Result<(), DbError> {
        if total > self.limit {
            return Err(self.too_long(total));
        }
        if self.start + total > self.bytes.len() {
            self.move_to_front();
        }
        Ok(())
    }

    /// Room for at least one more byte. Grows or moves what is there if needed.
    ///
    /// # Errors
    /// Protocol, when the message at the front has filled the buffer up to the limit.
    pub(super) fn space(&mut self) -> Result<&mut [u8], DbError> {
        let size = self.bytes.len();
        // A receive into the last few bytes would cost a system call and fetch nearly nothing.
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
        // A full receive means that more is waiting: fewer, larger receives are cheaper.
        self.grow |= self.end == self.bytes.len() && self.bytes.len() < STREAMING_BYTES;
    }

    #[cold]
    fn make_space(&mut self) -> Result<(), DbError> {
        let grow = std::mem::take(&mut self.grow);
        let held = self.end - self.start;
        let size = self.bytes.len();
        self.move_to_front();
        if grow || held > size / 2 {
            let larger = (size * 2).min(self.limit);
            self.bytes.resize(larger, 0);
        }
        if self.end == self.bytes.len() {
            return Err(self.too_long(held + 1));
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
        .with_hint("check that the URL's scheme and port belong to the same kind of server")
    }
}
