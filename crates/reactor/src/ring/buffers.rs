//! The buffers that the kernel picks from when bytes have arrived.

use io_uring::Submitter;
use io_uring::types::BufRingEntry;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

/// Bytes of one buffer. An answer that is longer takes several.
pub(super) const BUFFER_BYTES: usize = 2048;
/// Where the kernel wants the entries to begin.
const PAGE_BYTES: usize = 4096;
/// The only group of a ring.
pub(super) const GROUP: u16 = 0;

/// Buffers of equal size, and the entries by which the kernel gets them, one after the other.
pub(super) struct Buffers {
    entries: NonNull<BufRingEntry>,
    bytes: NonNull<u8>,
    /// A power of two.
    count: u16,
    tail: u16,
    /// Those that are not the kernel's.
    held: u16,
}

impl Buffers {
    /// At least `wanted` buffers, with their entries, known to the kernel from now on.
    #[expect(unsafe_code, reason = "the kernel is told where the entries are")]
    pub(super) fn register(submitter: &Submitter<'_>, wanted: usize) -> io::Result<Self> {
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
            buffers.give(id);
        }
        buffers.publish();
        Ok(buffers)
    }

    /// The bytes that a completion has put into buffer `id`.
    #[expect(unsafe_code, reason = "the kernel has written them")]
    pub(super) fn filled(&self, id: u16, len: usize) -> &[u8] {
        assert!(id < self.count && len <= BUFFER_BYTES, "the kernel names a buffer that is none");
        // SAFETY: within the allocation, which was zeroed; a buffer named by a completion is not the kernel's until it
        // is given back, for which `&mut self` is needed.
        unsafe {
            std::slice::from_raw_parts(self.bytes.as_ptr().add(usize::from(id) * BUFFER_BYTES), len)
        }
    }

    /// Gives buffer `id` back; the kernel sees it from [`Buffers::publish`] on.
    #[expect(unsafe_code, reason = "entries are shared with the kernel")]
    pub(super) fn give(&mut self, id: u16) {
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
    pub(super) fn hold(&mut self) {
        self.held += 1;
    }

    /// True when buffers are left that have not been given back.
    #[inline]
    pub(super) fn are_held(&self) -> bool {
        self.held > 0
    }

    #[expect(unsafe_code, reason = "the tail is shared with the kernel")]
    pub(super) fn publish(&self) {
        // SAFETY: the tail lies in the first entry, is aligned and lives as long as the entries. Nobody but this
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
