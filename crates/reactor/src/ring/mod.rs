//! Sockets on io_uring: receives that stay with the kernel, sends that go out with the wait.
//!
//! A loop with a ring makes one system call a round: it submits what its tasks have given to send, and waits for what
//! arrives. A server that is woken by a send then can't take the CPU from the loop in the middle of the round.
//!
//! Memory that the kernel may read or write, and until when:
//! - `SocketSlot::unsent` while a submission lasts. These sends carry MSG_DONTWAIT, so the kernel ends them before the
//!   submission returns, whether they could send or not; tasks, which alone add bytes, run before and after.
//! - `SocketSlot::waiting` from the submission of a waiting send until its completion. Nothing touches it in between.
//! - [`Buffers`] as long as a multishot receive is with the kernel.
//!
//! `in_kernel` counts the last two; memory is freed only when it is 0, and leaked if it never is.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};
use std::task::Poll;

use dyno_core::Nanos;
use io_uring::squeue::{Entry, Flags};
use io_uring::types::{BufRingEntry, Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, Submitter, cqueue, opcode};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, send, shutdown};

use crate::event_loop::ReadyTasks;
use crate::timers::monotonic_now;

/// Submissions that fit without an extra system call.
const SUBMISSIONS: u32 = 512;
/// Completions that fit; the kernel keeps those beyond.
const COMPLETIONS: u32 = 4096;
/// Sockets that the kernel finds by index, without counting references per call; fewer where the limit of open files
/// (`ulimit -n`) is lower.
const FILES: [u32; 3] = [2048, 1024, 256];

/// A completion's origin: the upper half of its user data; the lower one is the slot's key.
const RECEIVE: u64 = 0;
const SEND: u64 = 1;
const WAITING_SEND: u64 = 2;
const ASIDE: u64 = 3;

/// The end of a wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waited {
    /// When the kernel returned.
    pub(crate) woke: Nanos,
    /// Receives that have completed.
    pub(crate) answers: u32,
    /// The loop's epoll descriptor has events.
    pub(crate) epoll_is_ready: bool,
}

pub(crate) struct Ring {
    uring: ManuallyDrop<IoUring>,
    buffers: ManuallyDrop<Buffers>,
    slots: ManuallyDrop<Vec<SocketSlot>>,
    free: Vec<u32>,
    files: u32,
    to_arm: Vec<u32>,
    to_pause: Vec<u32>,
    to_send: Vec<u32>,
    to_send_rest: Vec<u32>,
    /// Slots whose unsent bytes are in the submission queue.
    submitted: Vec<u32>,
    /// Slots that may hold a buffer of the kernel's.
    holding: Vec<u32>,
    /// A poll of the loop's epoll is with the kernel.
    watches_epoll: bool,
    /// Requests that use memory of this loop.
    in_kernel: usize,
    /// A submission has failed: entries that point at freed memory may be left.
    is_broken: bool,
}

impl Ring {
    /// Fails where the kernel (before 6.1), a limit of locked memory or a container forbids it.
    pub(crate) fn new(tasks: usize) -> io::Result<Self> {
        let uring = build_ring(true).or_else(|_| build_ring(false))?;
        let mut counts = FILES.into_iter();
        let files = counts.find(|&files| uring.submitter().register_files_sparse(files).is_ok());
        let files = files.unwrap_or(0);
        let buffers = Buffers::register(&uring.submitter(), tasks)?;
        Ok(Ring {
            uring: ManuallyDrop::new(uring),
            buffers: ManuallyDrop::new(buffers),
            slots: ManuallyDrop::new(Vec::with_capacity(tasks)),
            free: Vec::with_capacity(tasks),
            files,
            to_arm: Vec::with_capacity(tasks),
            to_pause: Vec::new(),
            to_send: Vec::with_capacity(tasks),
            to_send_rest: Vec::new(),
            submitted: Vec::with_capacity(tasks),
            holding: Vec::with_capacity(tasks),
            watches_epoll: false,
            in_kernel: 0,
            is_broken: false,
        })
    }

    /// Gives a socket a slot; returns its key.
    pub(crate) fn register(&mut self, fd: BorrowedFd<'_>, waiter: u32) -> io::Result<u32> {
        let key = self.free.pop().unwrap_or_else(|| {
            self.slots.push(SocketSlot::default());
            (self.slots.len() - 1) as u32
        });
        if key < self.files
            && let Err(error) = self.uring.submitter().register_files_update(key, &[fd.as_raw_fd()])
        {
            self.free.push(key);
            return Err(error);
        }
        self.slots[key as usize].open(fd.as_raw_fd(), waiter);
        self.to_arm.push(key);
        Ok(key)
    }

    /// The owner closes `fd` now. What it gave to send is tried once more, as closing a socket would.
    pub(crate) fn deregister(&mut self, key: u32, fd: BorrowedFd<'_>) {
        let slot = &mut self.slots[key as usize];
        slot.is_closing = true;
        slot.land_held(&mut self.buffers);
        if !slot.sendable().is_empty() {
            let _ = send(fd, slot.sendable(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
        // Ends what is with the kernel, which holds the socket open beyond its descriptor.
        let _ = shutdown(fd, Shutdown::Both);
        self.release(key);
    }

    #[inline]
    pub(crate) fn is_readable(&mut self, key: u32, waiter: u32) -> bool {
        let slot = &mut self.slots[key as usize];
        slot.waiter = waiter;
        slot.is_readable()
    }

    #[inline]
    pub(crate) fn is_writable(&mut self, key: u32, waiter: u32) -> bool {
        let slot = &mut self.slots[key as usize];
        slot.waiter = waiter;
        slot.is_writable()
    }

    pub(crate) fn has_unsent(&self, key: u32) -> bool {
        let slot = &self.slots[key as usize];
        slot.is_listed || slot.send_error.is_some()
    }

    #[inline]
    pub(crate) fn poll_recv(
        &mut self,
        key: u32,
        into: &mut [u8],
        waiter: u32,
    ) -> Poll<Result<usize, Errno>> {
        self.slots[key as usize].waiter = waiter;
        self.try_recv(key, into).transpose().map_or(Poll::Pending, Poll::Ready)
    }

    /// [`SocketStream::peek`](crate::SocketStream::peek), for a task that waits if there is nothing.
    #[inline]
    pub(crate) fn peek<T>(
        &mut self,
        key: u32,
        waiter: u32,
        read: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Peek<T> {
        let slot = &mut self.slots[key as usize];
        slot.waiter = waiter;
        slot.peek(&mut self.buffers, read)
    }

    #[inline]
    pub(crate) fn try_recv(&mut self, key: u32, into: &mut [u8]) -> Result<Option<usize>, Errno> {
        let (taken, next) = self.slots[key as usize].copy_received(into, &mut self.buffers);
        if next == Next::Arm {
            self.to_arm.push(key);
        }
        taken
    }

    #[inline]
    pub(crate) fn try_send(&mut self, key: u32, bytes: &[u8]) -> Result<Option<usize>, Errno> {
        let accepted = self.slots[key as usize].enqueue(bytes);
        self.list(key);
        accepted
    }

    /// Like [`Ring::try_send`], for all of `bytes` or nothing: true, and others in their place, or false. `waiter` waits
    /// for what comes then.
    #[inline]
    pub(crate) fn try_exchange(&mut self, key: u32, bytes: &mut Vec<u8>, waiter: u32) -> bool {
        let slot = &mut self.slots[key as usize];
        slot.waiter = waiter;
        let is_queued = slot.exchange(bytes);
        if is_queued {
            self.list(key);
        }
        is_queued
    }

    /// The next round sends what is unsent.
    #[inline]
    fn list(&mut self, key: u32) {
        let slot = &mut self.slots[key as usize];
        if !slot.is_listed {
            slot.is_listed = true;
            self.to_send.push(key);
        }
    }

    /// Sends what was given and waits until something arrives or the time is over, and makes the tasks concerned ready;
    /// `None` waits for ever.
    pub(crate) fn wait(
        &mut self,
        timeout: Option<Nanos>,
        epoll: BorrowedFd<'_>,
        ready: &mut ReadyTasks,
    ) -> io::Result<Waited> {
        self.is_broken = true;
        let waited = self.run_round(timeout, epoll, ready)?;
        self.is_broken = false;
        Ok(waited)
    }

    fn run_round(
        &mut self,
        timeout: Option<Nanos>,
        epoll: BorrowedFd<'_>,
        ready: &mut ReadyTasks,
    ) -> io::Result<Waited> {
        // Idle sessions must not keep the buffers that others need.
        if self.buffers.are_held() {
            for &key in &self.holding {
                self.slots[key as usize].land_held(&mut self.buffers);
            }
        }
        self.holding.clear();
        self.buffers.publish();
        self.queue_receives(epoll)?;
        let waits_for_room = self.queue_sends()?;
        let mut waited = Waited::default();
        // Sends that succeed end no wait.
        let mut remaining_wait = if waits_for_room { Some(0) } else { timeout };
        loop {
            enter(&self.uring, remaining_wait)?;
            waited.woke = monotonic_now();
            self.reap(&mut waited, ready);
            if self.uring.submission().is_empty() {
                break;
            }
            remaining_wait = Some(0);
        }
        for key in self.submitted.drain(..) {
            let slot = &mut self.slots[key as usize];
            if slot.submitted() {
                ready.wake(slot.waiter);
            }
        }
        Ok(waited)
    }

    fn queue_receives(&mut self, epoll: BorrowedFd<'_>) -> io::Result<()> {
        if !self.watches_epoll {
            self.watches_epoll = true;
            let poll = opcode::PollAdd::new(Fd(epoll.as_raw_fd()), u32::from(PollFlags::IN.bits()));
            self.push(poll.multi(true).build().user_data(user_data(ASIDE, 0)))?;
        }
        while let Some(key) = self.to_arm.pop() {
            let slot = &mut self.slots[key as usize];
            if slot.is_closing || slot.is_armed {
                continue;
            }
            slot.is_armed = true;
            let (fd, data) = (Fd(slot.fd), user_data(RECEIVE, key));
            let entry = if key < self.files {
                opcode::RecvMulti::new(Fixed(key), GROUP).build()
            } else {
                opcode::RecvMulti::new(fd, GROUP).build()
            };
            self.in_kernel += 1;
            self.push(entry.user_data(data))?;
        }
        while let Some(key) = self.to_pause.pop() {
            let receive = user_data(RECEIVE, key);
            self.push(opcode::AsyncCancel::new(receive).build().user_data(user_data(ASIDE, 1)))?;
        }
        Ok(())
    }

    /// Returns true if the owner of one of them waits for the room that it leaves.
    fn queue_sends(&mut self) -> io::Result<bool> {
        while let Some(key) = self.to_send_rest.pop() {
            let slot = &mut self.slots[key as usize];
            if slot.is_closing {
                slot.is_sending = false;
                self.release(key);
                continue;
            }
            let entry = send_entry(key, self.files, slot, slot.waiting(), SendFlags::NOSIGNAL);
            self.in_kernel += 1;
            self.push(entry.user_data(user_data(WAITING_SEND, key)))?;
        }
        self.queue_listed()
    }

    /// The sends of the tasks, in the order in which these gave them.
    #[expect(unsafe_code, reason = "the kernel reads what the entry points at")]
    fn queue_listed(&mut self) -> io::Result<bool> {
        let Ring { uring, slots, to_send, submitted, files, .. } = self;
        let (mut waits_for_room, mut closed) = (false, Vec::new());
        let mut queue = uring.submission();
        for &key in to_send.iter() {
            let slot = &mut slots[key as usize];
            slot.is_listed = false;
            if slot.is_closing {
                closed.push(key);
            } else if !slot.sendable().is_empty() {
                waits_for_room |= slot.wants_room;
                let at_once = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                let entry = send_entry(key, *files, slot, slot.sendable(), at_once);
                let entry = entry.flags(Flags::SKIP_SUCCESS).user_data(user_data(SEND, key));
                // SAFETY: as in `push`.
                while unsafe { queue.push(&entry) }.is_err() {
                    drop(queue);
                    enter(uring, Some(0))?;
                    queue = uring.submission();
                }
                submitted.push(key);
            }
        }
        drop(queue);
        to_send.clear();
        closed.into_iter().for_each(|key| self.release(key));
        Ok(waits_for_room)
    }

    /// Queues an entry, after sending the others if the queue is full.
    #[expect(unsafe_code, reason = "the kernel reads what the entry points at")]
    fn push(&mut self, entry: Entry) -> io::Result<()> {
        // SAFETY: entries point at nothing, or at bytes of a slot that stay as long as this file's head says.
        while unsafe { self.uring.submission().push(&entry) }.is_err() {
            // Full: the entries so far go first. Their completions stay in the queue until the loop reaps.
            enter(&self.uring, Some(0))?;
        }
        Ok(())
    }

    /// Takes all completions and wakes their tasks.
    fn reap(&mut self, waited: &mut Waited, ready: &mut ReadyTasks) {
        let mut released = Vec::new();
        for completion in self.uring.completion() {
            let (data, result, flags) =
                (completion.user_data(), completion.result(), completion.flags());
            let key = data as u32;
            if data >> 32 == ASIDE {
                if data == user_data(ASIDE, 0) {
                    waited.epoll_is_ready = true;
                    self.watches_epoll = cqueue::more(flags);
                }
                continue;
            }
            let slot = &mut self.slots[key as usize];
            let next = match data >> 32 {
                RECEIVE => {
                    waited.answers += 1;
                    self.holding.push(key);
                    slot.received(result, flags, &mut self.buffers)
                }
                SEND => slot.fell_short(result),
                _ => slot.sent_rest(result),
            };
            let ends = data >> 32 != SEND && !cqueue::more(flags);
            self.in_kernel -= usize::from(ends);
            if slot.is_closing {
                released.push(key);
                continue;
            }
            ready.wake(slot.waiter);
            match next {
                Next::Nothing => {}
                Next::Arm => self.to_arm.push(key),
                Next::Pause => self.to_pause.push(key),
                Next::SendRest => self.to_send_rest.push(key),
                Next::SendMore if slot.is_listed => {}
                Next::SendMore => {
                    slot.is_listed = true;
                    self.to_send.push(key);
                }
            }
        }
        released.into_iter().for_each(|key| self.release(key));
    }

    /// Makes a closing slot free when nothing of it is with the kernel. Several completions of one round ask for it.
    fn release(&mut self, key: u32) {
        let slot = &mut self.slots[key as usize];
        if !slot.is_closing || slot.is_armed || slot.is_sending || slot.is_listed {
            return;
        }
        slot.open(-1, 0);
        if key < self.files {
            // The kernel's reference is the last one to a socket whose descriptor is closed.
            let _ = self.uring.submitter().register_files_update(key, &[-1]);
        }
        self.free.push(key);
    }
}

impl Drop for Ring {
    #[expect(unsafe_code, reason = "memory is freed only when the kernel has no use for it")]
    fn drop(&mut self) {
        for _ in 0..20 {
            if self.is_broken
                || self.in_kernel == 0
                || enter(&self.uring, Some(50_000_000)).is_err()
            {
                break;
            }
            self.reap(&mut Waited::default(), &mut ReadyTasks::new(0));
        }
        // SAFETY: dropped once, here. With requests left over, buffers and slots are leaked instead.
        unsafe {
            ManuallyDrop::drop(&mut self.uring);
            if self.in_kernel == 0 && !self.is_broken {
                ManuallyDrop::drop(&mut self.buffers);
                ManuallyDrop::drop(&mut self.slots);
            }
        }
    }
}

fn build_ring(without_array: bool) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder.setup_single_issuer().setup_defer_taskrun().setup_cqsize(COMPLETIONS).setup_clamp();
    if without_array {
        builder.setup_no_sqarray();
    }
    builder.build(SUBMISSIONS)
}

/// Submits what is queued, and waits for one completion, at most as long.
fn enter(uring: &IoUring, timeout: Option<Nanos>) -> io::Result<()> {
    let timespec = timeout
        .map(|span| Timespec::new().sec(span / 1_000_000_000).nsec((span % 1_000_000_000) as u32));
    let mut args = SubmitArgs::new();
    if let Some(timespec) = &timespec {
        args = args.timespec(timespec);
    }
    match uring.submitter().submit_with_args(1, &args) {
        Ok(_) => Ok(()),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN) => Ok(()),
            _ => Err(io::Error::other(format!("io_uring does not wait for events: {error}"))),
        },
    }
}

/// Sends what the slot `key` holds of `bytes`; the first `files` slots are known to the kernel.
#[inline]
fn send_entry(key: u32, files: u32, slot: &SocketSlot, bytes: &[u8], flags: SendFlags) -> Entry {
    let (start, len) = (bytes.as_ptr(), bytes.len() as u32);
    // A short send counts as failed, so that it completes visibly.
    let flags = (flags.bits() | RecvFlags::WAITALL.bits()) as i32;
    if key < files {
        opcode::Send::new(Fixed(key), start, len).flags(flags).build()
    } else {
        opcode::Send::new(Fd(slot.fd), start, len).flags(flags).build()
    }
}

fn user_data(kind: u64, key: u32) -> u64 {
    kind << 32 | u64::from(key)
}

/// Bytes of one buffer. An answer that is longer takes several.
const BUFFER_BYTES: usize = 2048;
/// Alignment that the kernel wants for the entries.
const PAGE_BYTES: usize = 4096;
/// The only group of a ring.
const GROUP: u16 = 0;

/// Buffers of equal size, and the entries by which the kernel gets them, one after the other.
struct Buffers {
    entries: NonNull<BufRingEntry>,
    bytes: NonNull<u8>,
    /// A power of two.
    count: u16,
    tail: u16,
    /// The entries that the kernel doesn't own.
    held: u16,
}

impl Buffers {
    /// At least `wanted` buffers, with their entries, known to the kernel from now on.
    #[expect(unsafe_code, reason = "the kernel learns where the entries are")]
    fn register(submitter: &Submitter<'_>, wanted: usize) -> io::Result<Self> {
        let count = wanted.next_power_of_two().clamp(16, 256) as u16;
        let mut buffers = Buffers {
            entries: allocate(Self::entries_layout(count)).cast(),
            bytes: allocate(Self::bytes_layout(count)),
            count,
            tail: 0,
            held: count,
        };
        // SAFETY: the entries are page-aligned, `count` long, and freed only with the ring gone: see `Ring`'s drop.
        unsafe {
            submitter.register_buf_ring_with_flags(
                buffers.entries.as_ptr() as u64,
                count,
                GROUP,
                0,
            )?;
        }
        for id in 0..count {
            buffers.recycle(id);
        }
        buffers.publish();
        Ok(buffers)
    }

    /// The bytes that a completion has put into buffer `id`.
    #[expect(unsafe_code, reason = "the kernel has written them")]
    fn filled(&self, id: u16, len: usize) -> &[u8] {
        assert!(id < self.count && len <= BUFFER_BYTES, "the kernel names a buffer that is none");
        // SAFETY: within the allocation, which was zeroed; a buffer named by a completion is not the kernel's until it
        // is given back, for which `&mut self` is needed.
        unsafe {
            std::slice::from_raw_parts(self.bytes.as_ptr().add(usize::from(id) * BUFFER_BYTES), len)
        }
    }

    /// Gives buffer `id` back; the kernel sees it from [`Buffers::publish`] on.
    #[expect(unsafe_code, reason = "entries are shared with the kernel")]
    fn recycle(&mut self, id: u16) {
        assert!(id < self.count, "the kernel names a buffer that is none");
        let at = usize::from(self.tail & (self.count - 1));
        // SAFETY: `at` and `id` are below `count`. The kernel reads only entries between its head and the published
        // tail, and this one is not among them: no more than `count` buffers are given at a time. The fields are
        // written one by one, because the last field of the first entry is the tail.
        unsafe {
            let entry = &mut *self.entries.as_ptr().add(at);
            entry.set_addr(self.bytes.as_ptr().add(usize::from(id) * BUFFER_BYTES) as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(id);
        }
        self.tail = self.tail.wrapping_add(1);
        self.held -= 1;
    }

    /// A completion names a buffer, which is not the kernel's until it is given back.
    #[inline]
    fn count_held(&mut self) {
        self.held += 1;
    }

    /// Returns true if buffers are left that have not been given back.
    #[inline]
    fn are_held(&self) -> bool {
        self.held > 0
    }

    /// Shows the kernel the buffers that were added.
    #[expect(unsafe_code, reason = "the tail is shared with the kernel")]
    fn publish(&self) {
        // SAFETY: the tail lies in the first entry, is aligned and lives as long as the entries. No one but this
        // thread writes it; the kernel reads it.
        let tail = unsafe { &*BufRingEntry::tail(self.entries.as_ptr()).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }

    fn entries_layout(count: u16) -> Layout {
        let bytes = usize::from(count) * size_of::<BufRingEntry>();
        Layout::from_size_align(bytes, PAGE_BYTES).expect("a layout of a few pages")
    }

    fn bytes_layout(count: u16) -> Layout {
        let bytes = usize::from(count) * BUFFER_BYTES;
        Layout::from_size_align(bytes, PAGE_BYTES).expect("a layout of a few pages")
    }
}

/// Zeroed memory; aborts if there is none.
#[expect(unsafe_code, reason = "aligned to a page")]
fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: no layout here has a size of 0.
    let memory = unsafe { alloc_zeroed(layout) };
    NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
}

impl Drop for Buffers {
    #[expect(unsafe_code, reason = "allocated by hand")]
    fn drop(&mut self) {
        // SAFETY: allocated with these layouts in `register`; the kernel no longer knows them: see `Ring`'s drop.
        unsafe {
            dealloc(self.entries.as_ptr().cast(), Self::entries_layout(self.count));
            dealloc(self.bytes.as_ptr(), Self::bytes_layout(self.count));
        }
    }
}

/// Bytes of one socket that may wait to be sent; more are refused until these are gone.
const UNSENT_LIMIT_BYTES: usize = 64 * 1024;
/// Bytes of one socket that may wait to be taken; then the ring stops receiving until they are.
const LANDED_LIMIT_BYTES: usize = 256 * 1024;
/// Larger buffers are freed as soon as they are empty.
const KEEP_BYTES: usize = 16 * 1024;

/// The step that a completion calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
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

/// Result of a look at data that have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek<T> {
    /// Nothing has arrived.
    Nothing,
    Taken(T),
    /// Data that have arrived must be received.
    Refused,
}

#[derive(Debug, Default)]
struct SocketSlot {
    waiter: u32,
    fd: RawFd,
    /// A multishot receive is with the kernel.
    is_armed: bool,
    /// Its owner is gone; completions are only counted.
    is_closing: bool,
    /// Set if it is in the list of slots with unsent bytes.
    is_listed: bool,
    /// A send that waits for the peer is listed or with the kernel.
    is_sending: bool,
    is_paused: bool,
    /// Its owner waits until it may give more.
    wants_room: bool,
    /// The number and bytes of the buffer that arrived last and is still the kernel's. Empty after each round.
    held: Option<(u16, usize)>,
    /// Data that arrived earlier.
    landed: Vec<u8>,
    /// Number of them that the owner has.
    taken: usize,
    received_end: Option<Result<(), Errno>>,
    /// Given by the owner; the kernel reads them only while a submission lasts.
    unsent: Vec<u8>,
    /// Bytes of a send that waits for the peer: the kernel may read them at any time, so they don't move.
    waiting: Vec<u8>,
    send_error: Option<Errno>,
}

impl SocketSlot {
    /// For a new owner.
    fn open(&mut self, fd: RawFd, waiter: u32) {
        *self = SocketSlot { waiter, fd, ..SocketSlot::default() };
    }

    fn is_readable(&self) -> bool {
        self.held.is_some() || self.taken < self.landed.len() || self.received_end.is_some()
    }

    /// Notes that the owner waits because of a lack of room.
    fn is_writable(&mut self) -> bool {
        self.wants_room = self.unsent.len() >= UNSENT_LIMIT_BYTES && self.send_error.is_none();
        !self.wants_room
    }

    /// Lets `read` see what has arrived, in place; it is taken if `read` returns something.
    #[inline]
    fn peek<T>(&mut self, buffers: &mut Buffers, read: impl FnOnce(&[u8]) -> Option<T>) -> Peek<T> {
        let Some((id, len)) = self.held else { return self.peek_landed(read) };
        let Some(read) = read(buffers.filled(id, len)) else { return Peek::Refused };
        self.held = None;
        buffers.recycle(id);
        Peek::Taken(read)
    }

    /// Takes what lies in several buffers of the kernel.
    #[inline(never)]
    fn peek_landed<T>(&mut self, read: impl FnOnce(&[u8]) -> Option<T>) -> Peek<T> {
        if !self.is_readable() {
            return Peek::Nothing;
        }
        let unread = &self.landed[self.taken..];
        // A flood is received: that ends its pause.
        if unread.is_empty() || self.is_paused {
            return Peek::Refused;
        }
        let Some(read) = read(unread) else { return Peek::Refused };
        clear_buffer(&mut self.landed);
        self.taken = 0;
        Peek::Taken(read)
    }

    /// Copies what has landed. `Ok(Some(0))` at the end of the stream, `Ok(None)` when nothing is there; `Next::Arm`
    /// when receiving has to continue.
    #[inline]
    fn copy_received(
        &mut self,
        into: &mut [u8],
        buffers: &mut Buffers,
    ) -> (Result<Option<usize>, Errno>, Next) {
        if let Some((id, len)) = self.held
            && len <= into.len()
        {
            self.held = None;
            into[..len].copy_from_slice(buffers.filled(id, len));
            buffers.recycle(id);
            return (Ok(Some(len)), Next::Nothing);
        }
        self.copy_landed(into, buffers)
    }

    fn copy_landed(
        &mut self,
        into: &mut [u8],
        buffers: &mut Buffers,
    ) -> (Result<Option<usize>, Errno>, Next) {
        self.land_held(buffers);
        let unread = &self.landed[self.taken..];
        if unread.is_empty() {
            let end = self.received_end.map_or(Ok(None), |end| end.map(|()| Some(0)));
            return (end, Next::Nothing);
        }
        let count = unread.len().min(into.len());
        into[..count].copy_from_slice(&unread[..count]);
        self.taken += count;
        let mut next = Next::Nothing;
        if self.taken == self.landed.len() {
            clear_buffer(&mut self.landed);
            self.taken = 0;
            if std::mem::take(&mut self.is_paused) && self.received_end.is_none() && !self.is_armed
            {
                next = Next::Arm;
            }
        }
        (Ok(Some(count)), next)
    }

    /// Gives the kernel its buffer back; what is in it lands.
    fn land_held(&mut self, buffers: &mut Buffers) {
        if let Some((id, len)) = self.held.take() {
            self.landed.extend_from_slice(buffers.filled(id, len));
            buffers.recycle(id);
        }
    }

    /// Accepts all of `bytes` by exchanging buffers; false when others wait or there are too many, or when something
    /// has arrived that the owner has not taken.
    #[inline]
    fn exchange(&mut self, bytes: &mut Vec<u8>) -> bool {
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
    fn enqueue(&mut self, bytes: &[u8]) -> Result<Option<usize>, Errno> {
        if let Some(error) = self.send_error {
            return Err(error);
        }
        let room = UNSENT_LIMIT_BYTES.saturating_sub(self.unsent.len());
        let count = room.min(bytes.len());
        self.unsent.extend_from_slice(&bytes[..count]);
        Ok((count > 0 || bytes.is_empty()).then_some(count))
    }

    /// The bytes that a submission may send now.
    fn sendable(&self) -> &[u8] {
        if self.is_sending { &[] } else { &self.unsent }
    }

    /// The bytes that a waiting send sends.
    fn waiting(&self) -> &[u8] {
        &self.waiting
    }

    /// A submission has sent all, or [`SocketSlot::fell_short`] has kept the rest. True when the owner waits for room.
    fn submitted(&mut self) -> bool {
        clear_buffer(&mut self.unsent);
        std::mem::take(&mut self.wants_room)
    }

    /// The send of a submission could not send all at once.
    fn fell_short(&mut self, result: i32) -> Next {
        match result_from_code(result) {
            Ok(_) | Err(Errno::AGAIN) => {
                let sent_bytes = usize::try_from(result).unwrap_or(0);
                self.waiting.extend_from_slice(&self.unsent[sent_bytes..]);
                self.unsent.clear();
                self.is_sending = !self.waiting.is_empty();
                if self.is_sending { Next::SendRest } else { Next::Nothing }
            }
            Err(error) => self.fail_sends(error),
        }
    }

    /// A waiting send has ended.
    fn sent_rest(&mut self, result: i32) -> Next {
        match result_from_code(result) {
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
                clear_buffer(&mut self.waiting);
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

    /// A completion of the multishot receive. Its buffer is held until it is taken, [`SocketSlot::land_held`] at the
    /// latest.
    fn received(&mut self, result: i32, flags: u32, buffers: &mut Buffers) -> Next {
        if let Some(id) = cqueue::buffer_select(flags) {
            buffers.count_held();
            // At the first bytes, so that no later answer in two pieces is the first to allocate.
            if self.landed.capacity() == 0 {
                self.landed.reserve(BUFFER_BYTES);
            }
            if self.held.is_some() {
                self.land_held(buffers);
            }
            if self.is_closing || result <= 0 {
                buffers.recycle(id);
            } else {
                self.held = Some((id, result as usize));
                if !self.landed.is_empty() {
                    self.land_held(buffers);
                }
            }
        }
        self.is_armed = cqueue::more(flags);
        match result_from_code(result) {
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

fn result_from_code(result: i32) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result))
}

fn clear_buffer(bytes: &mut Vec<u8>) {
    if bytes.capacity() > KEEP_BYTES {
        *bytes = Vec::new();
    } else {
        bytes.clear();
    }
}
