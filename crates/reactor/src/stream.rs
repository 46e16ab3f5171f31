//! Connected sockets: bytes in, bytes out, without blocking.
//!
//! File descriptors that a task waits for.

use std::future::poll_fn;
use std::os::fd::{AsFd, BorrowedFd};
use std::str::FromStr;
use std::sync::OnceLock;
use std::task::Poll;
use std::{fmt, io};

use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::event_loop::with_state;
use crate::ring::{Peek, Ring};

/// A connected, non-blocking stream socket of the loop of this thread.
#[derive(Debug)]
pub struct SocketStream(Backend);

#[derive(Debug)]
enum Backend {
    Epoll(EventSource<OwnedFd>),
    Ring { socket: OwnedFd, key: u32 },
}

impl SocketStream {
    /// Takes a socket that is connected and non-blocking. The loop must have a real clock.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        let on_ring = with_state(|state| {
            state.ring().map(|(ring, task)| ring.register(socket.as_fd(), task)).transpose()
        })?;
        Ok(SocketStream(match on_ring {
            Some(key) => Backend::Ring { socket, key },
            None => Backend::Epoll(EventSource::new(socket)?),
        }))
    }

    /// Receives into `into`, which must not be empty: the number of bytes, 0 at the end of the stream, `None` when
    /// nothing has arrived.
    #[inline]
    pub fn try_recv(&self, into: &mut [u8]) -> Result<Option<usize>, Errno> {
        match &self.0 {
            Backend::Ring { key, .. } => with_ring(|ring, _| ring.try_recv(*key, into)),
            Backend::Epoll(source) => {
                let capacity = into.len();
                match retry_on_intr(|| recv(source.fd(), &mut *into, RecvFlags::empty())) {
                    Ok((_, count)) => {
                        // The end of the stream is an edge that comes once.
                        if count == capacity {
                            source.filled();
                        } else if count > 0 {
                            source.not_readable();
                        }
                        Ok(Some(count))
                    }
                    Err(Errno::AGAIN) => {
                        source.not_readable();
                        Ok(None)
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Takes bytes from the front of `bytes`, to be sent by the next wait at the latest: how many, or `None` when the
    /// send queue is full. A failure may be reported by a later call, or as the end of what is received.
    #[inline]
    pub fn try_send(&self, bytes: &[u8]) -> Result<Option<usize>, Errno> {
        match &self.0 {
            Backend::Ring { key, .. } => with_ring(|ring, _| ring.try_send(*key, bytes)),
            Backend::Epoll(source) => {
                match retry_on_intr(|| send(source.fd(), bytes, SendFlags::NOSIGNAL)) {
                    Ok(count) => Ok(Some(count)),
                    Err(Errno::AGAIN) => {
                        source.not_writable();
                        Ok(None)
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Returns true if bytes that were taken are not sent, also because they can't be.
    pub fn has_unsent(&self) -> bool {
        match &self.0 {
            Backend::Ring { key, .. } => with_ring(|ring, _| ring.has_unsent(*key)),
            // It takes nothing that it can't send.
            Backend::Epoll(_) => false,
        }
    }

    /// Returns true if [`SocketStream::try_exchange`] may take something.
    #[inline]
    pub fn is_on_ring(&self) -> bool {
        matches!(self.0, Backend::Ring { .. })
    }

    /// Like [`SocketStream::try_send`], for all of `bytes` without a copy: true, and anything in their place, or false
    /// and nothing is taken. True says as well that nothing has arrived that was not taken, and the task is woken when
    /// something does.
    #[inline]
    pub fn try_exchange(&self, bytes: &mut Vec<u8>) -> bool {
        match &self.0 {
            Backend::Ring { key, .. } => {
                with_ring(|ring, task| ring.try_exchange(*key, bytes, task))
            }
            Backend::Epoll(_) => false,
        }
    }

    /// Lets `read` see what has arrived, in place and in one piece. If it returns something, all of that counts as
    /// received; a copy is spared. After [`Peek::Nothing`] the task is woken when something comes.
    #[inline]
    pub fn peek<T>(&self, read: impl FnOnce(&[u8]) -> Option<T>) -> Peek<T> {
        match &self.0 {
            Backend::Ring { key, .. } => with_ring(|ring, task| ring.peek(*key, task, read)),
            Backend::Epoll(_) => Peek::Refused,
        }
    }

    /// Like [`SocketStream::try_recv`], and waits while nothing has arrived.
    #[inline]
    pub fn poll_recv(&self, into: &mut [u8]) -> Poll<Result<usize, Errno>> {
        match &self.0 {
            Backend::Ring { key, .. } => with_ring(|ring, task| ring.poll_recv(*key, into, task)),
            Backend::Epoll(source) => loop {
                if source.poll_readable().is_pending() {
                    return Poll::Pending;
                }
                if let Some(received) = self.try_recv(into).transpose() {
                    return Poll::Ready(received);
                }
            },
        }
    }

    /// Waits until [`SocketStream::try_recv`] may have something.
    pub async fn readable(&self) {
        poll_fn(|_| self.poll_readable()).await;
    }

    /// Like [`SocketStream::readable`].
    pub fn poll_readable(&self) -> Poll<()> {
        match &self.0 {
            Backend::Epoll(source) => source.poll_readable(),
            Backend::Ring { key, .. } => {
                ready_or_pending(with_ring(|ring, task| ring.is_readable(*key, task)))
            }
        }
    }

    /// Waits until [`SocketStream::try_send`] may take something.
    pub async fn writable(&self) {
        poll_fn(|_| self.poll_writable()).await;
    }

    /// Like [`SocketStream::writable`].
    pub fn poll_writable(&self) -> Poll<()> {
        match &self.0 {
            Backend::Epoll(source) => source.poll_writable(),
            Backend::Ring { key, .. } => {
                ready_or_pending(with_ring(|ring, task| ring.is_writable(*key, task)))
            }
        }
    }

    /// Waits for one of both.
    pub async fn either(&self) {
        match &self.0 {
            Backend::Epoll(source) => source.either().await,
            Backend::Ring { key, .. } => {
                poll_fn(|_| {
                    ready_or_pending(with_ring(|ring, task| {
                        // Both, so that a wish for room is noted in any case.
                        ring.is_writable(*key, task) | ring.is_readable(*key, task)
                    }))
                })
                .await;
            }
        }
    }

    /// The descriptor of the socket.
    pub fn fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Backend::Epoll(source) => source.fd(),
            Backend::Ring { socket, .. } => socket.as_fd(),
        }
    }
}

#[inline]
fn with_ring<R>(f: impl FnOnce(&mut crate::ring::Ring, u32) -> R) -> R {
    with_state(|state| {
        let (ring, task) = state.ring().expect("a stream stays with the loop that made it");
        f(ring, task)
    })
}

impl Drop for SocketStream {
    fn drop(&mut self) {
        if let Backend::Ring { socket, key } = &self.0 {
            with_ring(|ring, _| ring.deregister(*key, socket.as_fd()));
        }
    }
}

/// A non-blocking file descriptor registered with the loop of this thread, edge-triggered.
///
/// The owner tries the system call first or waits. After a call that would have blocked or was cut short it calls
/// [`EventSource::not_readable`] or [`EventSource::not_writable`], and the next wait lasts until the kernel reports a
/// new edge.
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

    /// The watched object.
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
        let flags = epoll::EventFlags::IN
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::HUP
            | epoll::EventFlags::ERR;
        with_state(|state| state.poll_flag(self.key, flags))
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
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT;
        poll_fn(|_| with_state(|state| state.poll_flag(self.key, flags))).await;
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

    /// The descriptor of the watched object.
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

/// Backend of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// A system call per receive and per send, and one per wait.
    #[default]
    Epoll,
    /// One system call per wait, which sends and receives for all sockets. Linux 6.1 or newer; containers often
    /// forbid it.
    Uring,
}

impl Io {
    /// Checks that this thread could make a loop of this kind now.
    pub fn probe(self) -> io::Result<()> {
        match self {
            Io::Epoll => Ok(()),
            Io::Uring => Ring::new(1).map(drop),
        }
    }
}

/// The user's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoChoice {
    /// io_uring if it is available.
    #[default]
    Auto,
    Only(Io),
}

impl IoChoice {
    /// The wish of the environment, in `DYNO_IO`.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn from_environment() -> Result<Option<Self>, String> {
        let Ok(text) = std::env::var("DYNO_IO") else { return Ok(None) };
        text.parse().map(Some).map_err(|why| format!("DYNO_IO: {why}."))
    }
}

impl FromStr for IoChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(IoChoice::Auto),
            "uring" => Ok(IoChoice::Only(Io::Uring)),
            "epoll" => Ok(IoChoice::Only(Io::Epoll)),
            _ => Err(format!("`{text}` is not one of auto, uring, epoll")),
        }
    }
}

/// Tasks up to which a loop is better off with epoll. Few answers arrive together, so a ring saves few system calls.
/// And a send that returns through the scheduler hands its core to the server's thread, whose answer then wakes no
/// other core: two loops with a worker each had 1.1 to 1.3 times the queries of rings (`bench/tried.md`).
const FEW_TASKS: u32 = 2;

/// The I/O backend of the loops of this process.
#[derive(Debug)]
pub struct ChosenIo {
    pub io: Io,
    /// The user wants no other.
    is_forced: bool,
    /// Reason why it is not io_uring, if that was wanted.
    pub refusal: Option<String>,
}

impl ChosenIo {
    /// The way of a loop of `tasks` tasks with a socket each.
    pub fn for_tasks(&self, tasks: u32) -> Io {
        if self.is_forced || tasks > FEW_TASKS { self.io } else { Io::Epoll }
    }
}

/// For example `io_uring`, `epoll (io_uring: Operation not permitted (os error 1))`.
impl fmt::Display for ChosenIo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.io, &self.refusal) {
            (Io::Uring, _) => f.write_str("io_uring"),
            (Io::Epoll, None) => f.write_str("epoll"),
            (Io::Epoll, Some(why)) => write!(f, "epoll (io_uring: {why})"),
        }
    }
}

static CHOSEN: OnceLock<ChosenIo> = OnceLock::new();

fn resolve_io(choice: IoChoice) -> io::Result<ChosenIo> {
    match choice {
        IoChoice::Only(io) => io.probe().map(|()| ChosenIo { io, is_forced: true, refusal: None }),
        IoChoice::Auto => Ok(match Io::Uring.probe() {
            Ok(()) => ChosenIo { io: Io::Uring, is_forced: false, refusal: None },
            Err(error) => {
                let refusal = Some(error.to_string());
                ChosenIo { io: Io::Epoll, is_forced: false, refusal }
            }
        }),
    }
}

/// Chooses for all loops that are made from now on; the first choice of a process holds.
///
/// # Errors
/// Chooses the backend. An error is the reason why io_uring can't be used, when nothing else was wanted.
pub fn choose_io(choice: IoChoice) -> io::Result<()> {
    let _ = CHOSEN.set(resolve_io(choice)?);
    Ok(())
}

/// The chosen backend; chosen by the environment when the first loop is made, if nothing has chosen it before.
pub fn chosen_io() -> &'static ChosenIo {
    CHOSEN.get_or_init(|| {
        let choice = IoChoice::from_environment().ok().flatten().unwrap_or_default();
        // What can't be had leaves epoll.
        resolve_io(choice).unwrap_or(ChosenIo { io: Io::Epoll, is_forced: false, refusal: None })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_of_few_tasks_use_epoll_unless_the_user_wants_a_ring() {
        for (io, is_forced, few, many) in [
            (Io::Uring, false, Io::Epoll, Io::Uring),
            (Io::Uring, true, Io::Uring, Io::Uring),
            (Io::Epoll, true, Io::Epoll, Io::Epoll),
            (Io::Epoll, false, Io::Epoll, Io::Epoll),
        ] {
            let choice = ChosenIo { io, is_forced, refusal: None };
            assert_eq!([1, 2, 3, 64].map(|tasks| choice.for_tasks(tasks)), [few, few, many, many]);
        }
    }
}
