//! One client: receives, lets its protocol answer, sends.

use crate::protocol::{Lent, ReadResult};
use crate::{mysql, postgres};
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

/// Bytes read and thrown away after a violation, before the connection is cut: the client shall read the error.
const DISCARD_MAX: usize = 1024 * 1024;
/// A larger buffer for torn messages is freed.
const HELD_MAX: usize = 64 * 1024;

#[expect(clippy::large_enum_variant, reason = "a connection is boxed as a whole")]
pub(crate) enum Protocol {
    Mysql(mysql::Connection),
    Postgres(postgres::Connection),
}

/// State of a connection after it was served. `Blocked`: its socket takes no more bytes. `Unblocked`: it does again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionFate {
    Open,
    Blocked,
    Unblocked,
    Closed,
}

pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    pub(crate) protocol: Protocol,
    /// Received bytes without an answer.
    held: Vec<u8>,
    /// Answers that the socket did not take yet.
    unsent: Vec<u8>,
    closing: bool,
    /// After a violation: bytes that may still be thrown away.
    discard: Option<usize>,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd, protocol: Protocol) -> Self {
        Connection {
            socket,
            protocol,
            held: Vec::new(),
            unsent: Vec::new(),
            closing: false,
            discard: None,
        }
    }

    /// MySQL's server speaks first.
    pub(crate) fn greet(&mut self, lent: &mut Lent<'_>) -> ConnectionFate {
        lent.cells.connections.add(1);
        lent.out.clear();
        if let Protocol::Mysql(mysql) = &mut self.protocol {
            mysql.greet(lent);
        }
        match self.send(lent.out) {
            Ok(()) => self.fate(),
            Err(_) => ConnectionFate::Closed,
        }
    }

    /// Answers complete requests after an event.
    pub(crate) fn serve(
        &mut self,
        flags: EventFlags,
        lent: &mut Lent<'_>,
        input: &mut [u8],
    ) -> ConnectionFate {
        let was_blocked = !self.unsent.is_empty();
        match self.try_serve(flags, lent, input) {
            Err(_) | Ok(false) => ConnectionFate::Closed,
            Ok(true) => match self.fate() {
                ConnectionFate::Open if was_blocked => ConnectionFate::Unblocked,
                fate => fate,
            },
        }
    }

    fn fate(&self) -> ConnectionFate {
        if !self.unsent.is_empty() {
            ConnectionFate::Blocked
        } else if self.closing {
            ConnectionFate::Closed
        } else {
            ConnectionFate::Open
        }
    }

    /// False at the end of the connection.
    fn try_serve(
        &mut self,
        flags: EventFlags,
        lent: &mut Lent<'_>,
        input: &mut [u8],
    ) -> Result<bool, Errno> {
        if !self.unsent.is_empty() {
            let unsent = std::mem::take(&mut self.unsent);
            self.send(&unsent)?;
            if self.unsent.is_empty() && !self.held.is_empty() {
                self.answer(&[], lent)?;
            }
        }
        // Input may have come while the socket was blocked; epoll reports an edge only once.
        let hung_up = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        while self.unsent.is_empty() && !self.closing {
            let room = input.len();
            let received = match recv(&self.socket, &mut *input, RecvFlags::empty()) {
                Ok((0, _)) => return Ok(false),
                Ok((received, _)) => received,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            };
            if !self.discard_received(received) {
                self.answer(&input[..received], lent)?;
            }
            if received < room && !hung_up {
                break;
            }
        }
        Ok(true)
    }

    /// After a violation input is thrown away. Too much of it ends the connection.
    fn discard_received(&mut self, received: usize) -> bool {
        let Some(left) = self.discard else { return false };
        match left.checked_sub(received) {
            Some(left) => self.discard = Some(left),
            None => self.closing = true,
        }
        true
    }

    /// Answers all complete messages and sends the answers, together if they are small.
    fn answer(&mut self, received: &[u8], lent: &mut Lent<'_>) -> Result<(), Errno> {
        let mut buffered = std::mem::take(&mut self.held);
        let was_buffered = !buffered.is_empty();
        if was_buffered {
            buffered.extend_from_slice(received);
        }
        let mut input = if was_buffered { &buffered[..] } else { received };
        loop {
            lent.out.clear();
            let mut consumed = 0;
            let answered = match &mut self.protocol {
                Protocol::Mysql(mysql) => mysql.feed(lent, input, &mut consumed),
                Protocol::Postgres(postgres) => postgres.feed(lent, input, &mut consumed),
            };
            input = &input[consumed..];
            let next = match answered {
                Ok(next) => next,
                Err(violation) => return self.refuse(&violation, lent),
            };
            self.closing |= next == ReadResult::Close;
            if !lent.out.is_empty() {
                lent.wait();
                self.send(lent.out)?;
            }
            if next != ReadResult::Send || !self.unsent.is_empty() {
                break;
            }
        }
        if was_buffered {
            let answered = buffered.len() - input.len();
            buffered.drain(..answered);
            if buffered.capacity() <= HELD_MAX || !buffered.is_empty() {
                self.held = buffered;
            }
        } else if !input.is_empty() {
            self.held.extend_from_slice(input);
        }
        Ok(())
    }

    fn refuse(&mut self, violation: &str, lent: &mut Lent<'_>) -> Result<(), Errno> {
        lent.cells.violations.add(1);
        let name = match &mut self.protocol {
            Protocol::Mysql(mysql) => {
                mysql.refuse(violation, lent.out);
                "mysql"
            }
            Protocol::Postgres(_) => {
                postgres::refuse(violation, lent.out);
                "postgres"
            }
        };
        lent.notes.add(format!("{name}: {violation}"));
        self.send(lent.out)?;
        self.discard = Some(DISCARD_MAX);
        if self.unsent.is_empty() {
            shutdown(&self.socket, Shutdown::Write)?;
        } else {
            self.closing = true;
        }
        Ok(())
    }

    /// Sends; keeps bytes that the socket does not take.
    fn send(&mut self, mut bytes: &[u8]) -> Result<(), Errno> {
        while !bytes.is_empty() {
            match send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.unsent.extend_from_slice(bytes);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
