//! File descriptors that a task waits for.

use crate::event_loop::with_state;
use rustix::event::epoll;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::Poll;

/// A non-blocking file descriptor registered with the loop of this thread, edge-triggered.
///
/// The owner tries the system call first or waits. After a call that would have blocked or was cut short it calls
/// [`EventSource::not_readable`] or [`EventSource::not_writable`], and the next wait lasts until the kernel reports a new edge.
#[derive(Debug)]
pub struct EventSource<T: AsFd> {
    io: T,
    key: u32,
}

impl<T: AsFd> EventSource<T> {
    /// Registers `io`, which must be non-blocking, with this thread's loop, which must have a real clock.
    pub fn new(io: T) -> io::Result<Self> {
        let key = with_state(|state| state.register(io.as_fd()))?;
        Ok(EventSource { io, key })
    }

    #[inline]
    pub fn io(&self) -> &T {
        &self.io
    }

    /// Waits until the kernel has reported the descriptor readable (or closed, or failed).
    #[inline]
    pub async fn readable(&self) {
        poll_fn(|_| self.poll_readable()).await;
    }

    #[inline]
    pub(crate) fn poll_readable(&self) -> Poll<()> {
        // The edge of a closing peer comes once, perhaps with its last bytes: it must outlive `not_readable`, or the
        // wait for the end of the stream would never end.
        let wanted = epoll::EventFlags::IN
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::HUP
            | epoll::EventFlags::ERR;
        with_state(|state| state.poll_flag(self.key, wanted))
    }

    /// Waits until the kernel has reported the descriptor writable (or closed, or failed).
    #[inline]
    pub async fn writable(&self) {
        poll_fn(|_| self.poll_writable()).await;
    }

    pub(crate) fn poll_writable(&self) -> Poll<()> {
        with_state(|state| state.poll_flag(self.key, epoll::EventFlags::OUT))
    }

    /// Waits until the descriptor is readable or writable.
    pub async fn either(&self) {
        let both = epoll::EventFlags::IN | epoll::EventFlags::OUT;
        poll_fn(|_| with_state(|state| state.poll_flag(self.key, both))).await;
    }

    /// The receive queue is empty.
    #[inline]
    pub fn not_readable(&self) {
        with_state(|state| state.clear_readable(self.key));
    }

    /// A receive has filled its buffer: more may wait.
    pub(crate) fn filled(&self) {
        with_state(|state| state.filled(self.key));
    }

    /// The send queue is full.
    pub fn not_writable(&self) {
        with_state(|state| state.clear_writable(self.key, self.io.as_fd()));
    }

    #[inline]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

impl<T: AsFd> Drop for EventSource<T> {
    fn drop(&mut self) {
        with_state(|state| state.deregister(self.key, self.io.as_fd()));
    }
}

pub(crate) fn ready_or_pending(ready: bool) -> Poll<()> {
    if ready { Poll::Ready(()) } else { Poll::Pending }
}
