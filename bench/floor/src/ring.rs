//! The loop on io_uring: receives that stay with the kernel, sends that go out with the wait.
#![expect(unsafe_code, reason = "the kernel is told where requests and buffers are")]

use crate::Run;
use crate::connection::Connection;
use io_uring::types::{BufRingEntry, Fixed};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::fd::AsRawFd as _;
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
        (0..BUFFERS).for_each(|id| buffers.give(id));
        buffers.publish();
        Ok(buffers)
    }

    #[inline]
    fn filled(&self, id: u16, len: usize) -> &[u8] {
        let start = usize::from(id) * BUFFER_BYTES;
        &self.bytes[start..start + len]
    }

    #[inline]
    fn give(&mut self, id: u16) {
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

pub(crate) fn run(connections: &mut [Connection], run: &mut Run) -> io::Result<()> {
    let mut ring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_cqsize(4096)
        .build(2048)?;
    let files: Vec<_> = connections.iter().map(|one| one.fd().as_raw_fd()).collect();
    ring.submitter().register_files(&files)?;
    let mut buffers = Buffers::register(&ring)?;
    for (key, connection) in connections.iter_mut().enumerate() {
        connection.renew(Instant::now());
        push(&mut ring, receive(key))?;
        push(&mut ring, ask(key, connection))?;
    }
    let mut next = Vec::with_capacity(2 * connections.len());
    loop {
        ring.submit_and_wait(1)?;
        for completion in ring.completion() {
            let key = completion.user_data() as u32 as usize;
            let (result, flags) = (completion.result(), completion.flags());
            if result < 0 && result != -rustix::io::Errno::NOBUFS.raw_os_error() {
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
                let is_complete = connection.is_complete(buffers.filled(id, result as usize));
                buffers.give(id);
                if is_complete {
                    if !run.answered(connection) {
                        return Ok(());
                    }
                    next.push(ask(key, connection));
                }
            }
            if !cqueue::more(flags) {
                next.push(receive(key));
            }
        }
        buffers.publish();
        for entry in next.drain(..) {
            push(&mut ring, entry)?;
        }
    }
}

fn receive(key: usize) -> squeue::Entry {
    opcode::RecvMulti::new(Fixed(key as u32), 0).build().user_data(key as u64)
}

/// A completion comes only of a send that failed.
fn ask(key: usize, connection: &Connection) -> squeue::Entry {
    let request = connection.request();
    opcode::Send::new(Fixed(key as u32), request.as_ptr(), request.len() as u32)
        .build()
        .flags(squeue::Flags::SKIP_SUCCESS)
        .user_data(key as u64 | SEND)
}

fn push(ring: &mut IoUring, entry: squeue::Entry) -> io::Result<()> {
    // SAFETY: a request stays where it is, and is not changed before its answer has come: the server has read it then.
    while unsafe { ring.submission().push(&entry) }.is_err() {
        ring.submit()?;
    }
    Ok(())
}
