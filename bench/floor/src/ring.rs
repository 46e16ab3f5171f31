//! The loop on io_uring: receives that stay with the kernel, sends that go out with the wait.
#![expect(unsafe_code, reason = "the kernel is told where requests and buffers are")]

use crate::Run;
use crate::connection::Connection;
use crate::starts::Starts;
use io_uring::types::{BufRingEntry, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::fd::AsRawFd as _;
use rustix::io::Errno;
use std::io;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Instant;

/// Connections and, above it, buffers that can be filled at a time: a power of two.
const BUFFERS: u16 = 1024;
const BUFFER_BYTES: usize = 512;
const SEND: u64 = 1 << 32;

/// Leaked: the kernel may write into them as long as the process lives.
struct Buffers {
    entries: &'static mut [BufRingEntry],
    bytes: &'static mut [u8],
    tail: u16,
}

#[repr(C, align(4096))]
struct Page([u8; 4096]);

impl Buffers {
    fn register(ring: &IoUring) -> io::Result<Self> {
        let pages = usize::from(BUFFERS) * size_of::<BufRingEntry>() / size_of::<Page>();
        let memory: &'static mut [Page] = Vec::leak((0..pages).map(|_| Page([0; 4096])).collect());
        let start = memory.as_mut_ptr().cast::<BufRingEntry>();
        // SAFETY: the pages are zeroed, aligned, never freed, and have room for so many entries; all bits are valid.
        let entries = unsafe { std::slice::from_raw_parts_mut(start, usize::from(BUFFERS)) };
        let bytes = Vec::leak(vec![0; usize::from(BUFFERS) * BUFFER_BYTES]);
        let mut buffers = Buffers { entries, bytes, tail: 0 };
        let address = buffers.entries.as_ptr() as u64;
        // SAFETY: as above: the entries are page-aligned and live for ever.
        unsafe { ring.submitter().register_buf_ring_with_flags(address, BUFFERS, 0, 0)? };
        (0..BUFFERS).for_each(|id| buffers.provide_buffer(id));
        buffers.publish();
        Ok(buffers)
    }

    #[inline]
    fn filled(&self, id: u16, len: usize) -> &[u8] {
        let start = usize::from(id) * BUFFER_BYTES;
        &self.bytes[start..start + len]
    }

    #[inline]
    fn provide_buffer(&mut self, id: u16) {
        let address = self.bytes[usize::from(id) * BUFFER_BYTES..].as_ptr() as u64;
        let entry = &mut self.entries[usize::from(self.tail & (BUFFERS - 1))];
        entry.set_addr(address);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
    }

    #[inline]
    fn publish(&self) {
        // SAFETY: the tail lies in the first entry, is aligned, and only this thread writes it.
        let tail = unsafe { &*BufRingEntry::tail(self.entries.as_ptr()).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }
}

/// A request over each connection, and the next one once that is answered.
pub(crate) fn run(connections: &mut [Connection], run: &mut Run) -> io::Result<()> {
    let mut wire = Wire::open(connections)?;
    for (key, connection) in connections.iter_mut().enumerate() {
        connection.renew(Instant::now());
        wire.push(send_entry(key, connection))?;
    }
    let mut goes_on = true;
    while goes_on {
        wire.ring.submit_and_wait(1)?;
        wire.reap(connections, |key, connection, next| {
            goes_on = run.count_answers(connection);
            next.push(send_entry(key, connection));
            goes_on
        })?;
    }
    Ok(())
}

/// Requests when they are due, each over a connection that is free: how late each was, in nanoseconds, sorted.
pub(crate) fn run_open(connections: &mut [Connection], mut plan: Starts) -> io::Result<Vec<u64>> {
    let mut wire = Wire::open(connections)?;
    let mut free: Vec<usize> = (0..connections.len()).collect();
    let mut late = Vec::with_capacity(plan.expected());
    let mut due = plan.next();
    while let Some(at) = due {
        let now = Instant::now();
        if at <= now
            && let Some(key) = free.pop()
        {
            late.push((now - at).as_nanos() as u64);
            connections[key].renew(now);
            wire.push(send_entry(key, &connections[key]))?;
            due = plan.next();
            continue;
        }
        let timeout = Timespec::from(at.saturating_duration_since(now));
        let limit = SubmitArgs::new().timespec(&timeout);
        let limit = if free.is_empty() { SubmitArgs::new() } else { limit };
        match wire.ring.submitter().submit_with_args(1, &limit) {
            Err(error) if error.raw_os_error() != Some(Errno::TIME.raw_os_error()) => {
                return Err(error);
            }
            _ => {}
        }
        wire.reap(connections, |key, _, _| {
            free.push(key);
            true
        })?;
    }
    late.sort_unstable();
    Ok(late)
}

struct Wire {
    ring: IoUring,
    buffers: Buffers,
    next: Vec<squeue::Entry>,
}

impl Wire {
    fn open(connections: &[Connection]) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_cqsize(4096)
            .build(2048)?;
        let files: Vec<_> = connections.iter().map(|one| one.fd().as_raw_fd()).collect();
        ring.submitter().register_files(&files)?;
        let buffers = Buffers::register(&ring)?;
        let mut wire = Wire { ring, buffers, next: Vec::with_capacity(2 * files.len()) };
        (0..files.len()).try_for_each(|key| wire.push(receive(key)))?;
        Ok(wire)
    }

    /// Takes what has come. `answered` hears of each complete answer, and ends this by false.
    #[inline]
    fn reap(
        &mut self,
        connections: &mut [Connection],
        mut on_answer: impl FnMut(usize, &mut Connection, &mut Vec<squeue::Entry>) -> bool,
    ) -> io::Result<()> {
        for completion in self.ring.completion() {
            let key = completion.user_data() as u32 as usize;
            let (result, flags) = (completion.result(), completion.flags());
            if result < 0 && result != -Errno::NOBUFS.raw_os_error() {
                return Err(io::Error::from_raw_os_error(-result));
            }
            if completion.user_data() & SEND != 0 {
                continue;
            }
            if result == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(id) = cqueue::buffer_select(flags) {
                let connection = &mut connections[key];
                let is_complete = connection.is_complete(self.buffers.filled(id, result as usize));
                self.buffers.provide_buffer(id);
                if is_complete && !on_answer(key, connection, &mut self.next) {
                    return Ok(());
                }
            }
            if !cqueue::more(flags) {
                self.next.push(receive(key));
            }
        }
        self.buffers.publish();
        let mut next = std::mem::take(&mut self.next);
        next.drain(..).try_for_each(|entry| self.push(entry))?;
        self.next = next;
        Ok(())
    }

    fn push(&mut self, entry: squeue::Entry) -> io::Result<()> {
        // SAFETY: a request stays where it is, and is not changed before its answer has come: the server has read it
        // then.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }
}

fn receive(key: usize) -> squeue::Entry {
    opcode::RecvMulti::new(Fixed(key as u32), 0).build().user_data(key as u64)
}

/// A completion comes only of a send that failed.
fn send_entry(key: usize, connection: &Connection) -> squeue::Entry {
    let request = connection.request();
    opcode::Send::new(Fixed(key as u32), request.as_ptr(), request.len() as u32)
        .build()
        .flags(squeue::Flags::SKIP_SUCCESS)
        .user_data(key as u64 | SEND)
}
