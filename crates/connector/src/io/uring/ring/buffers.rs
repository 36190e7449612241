//! Memory that the kernel picks from when bytes arrive: a ring of buffers of one size.
//!
//! A buffer belongs to the kernel from [`Buffers::give`] until a completion names it, and to us from
//! then until it is given again. [`Chunk`] is that right for one buffer and the bytes in it: it
//! cannot be copied, and whoever takes the bytes gives it up. Nothing here is ever lent for longer
//! than a copy, so an idle connection holds no buffer.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
    io,
    ptr::NonNull,
    slice,
    sync::atomic::{AtomicU16, Ordering::Release},
};

use bytes::BytesMut;
use io_uring::{IoUring, types::BufRingEntry};

/// Buffers, registered with a ring.
#[derive(Debug)]
pub(super) struct Buffers {
    /// What the kernel reads to find a buffer: [`COUNT`] entries, page-aligned.
    entries: NonNull<BufRingEntry>,
    /// The buffers themselves, one behind the other.
    storage: NonNull<u8>,
    /// Buffers ever given, modulo 2^16: where the next one is entered.
    tail: u16,
}

/// Received bytes, still in the buffer that the kernel put them in.
#[derive(Debug)]
#[must_use = "a chunk that is dropped is a buffer lost"]
pub(in super::super) struct Chunk {
    index: u16,
    len: usize,
}

/// The number under which the kernel knows the ring of buffers.
pub(super) const GROUP: u16 = 0;
/// Buffers; a power of two. Receives that find none are begun again, so this bounds memory and not
/// connections.
pub(super) const COUNT: u16 = 512;
/// Room in one buffer: a request's head fits, and the two megabytes of a worker remain in the
/// caches of most processors.
pub(super) const SIZE: usize = 4096;
const ENTRIES: Layout = layout(COUNT as usize * size_of::<BufRingEntry>());
const STORAGE: Layout = layout(COUNT as usize * SIZE);

const fn layout(size: usize) -> Layout {
    match Layout::from_size_align(size, 4096) {
        Ok(layout) => layout,
        Err(_) => panic!("a page is a valid alignment"),
    }
}

impl Buffers {
    /// Makes buffers known to `ring` and gives it all of them.
    pub(super) fn register(ring: &IoUring) -> io::Result<Self> {
        let mut buffers = Self {
            entries: allocate(ENTRIES).cast(),
            storage: allocate(STORAGE),
            tail: 0,
        };
        let address = buffers.entries.as_ptr() as u64;
        // SAFETY: the entries are page-aligned, zeroed and COUNT in number. They are freed when
        // `buffers` is dropped: here if this fails, else by `Ring`, which unregisters them first.
        unsafe {
            ring.submitter()
                .register_buf_ring_with_flags(address, COUNT, GROUP, 0)?;
        }
        for index in 0..COUNT {
            buffers.give(index);
        }
        Ok(buffers)
    }

    /// Appends what is in a buffer to `to`, and gives the buffer back to the kernel.
    pub(super) fn take(&mut self, chunk: Chunk, to: &mut BytesMut) {
        // SAFETY: the buffer lies within the storage, as `Chunk::new` has checked. It is ours: the
        // kernel, which has written these bytes, does not touch it before the `give` below, and
        // there is no second `Chunk` of it. The storage was zeroed, so all of it is initialised.
        let bytes = unsafe { slice::from_raw_parts(self.address(chunk.index), chunk.len) };
        to.extend_from_slice(bytes);
        self.give(chunk.index);
    }

    /// Gives a buffer back without looking at it.
    pub(super) fn discard(&mut self, chunk: Chunk) {
        self.give(chunk.index);
    }

    fn give(&mut self, index: u16) {
        let place = usize::from(self.tail % COUNT);
        // SAFETY: `place` is one of the COUNT entries, and no reference to it exists elsewhere. The
        // kernel reads an entry only when the tail has moved past it, which it does below; it has
        // consumed the one that stood here, for there are as many entries as buffers, and the
        // buffer of this one is not in the ring.
        let entry = unsafe { &mut *self.entries.as_ptr().add(place) };
        entry.set_addr(self.address(index) as u64);
        entry.set_len(SIZE as u32);
        entry.set_bid(index);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail is a field of the first entry that no setter above touches, aligned for
        // its type and written by nobody else; the kernel reads it, hence the atomic store, which
        // also publishes the entry.
        unsafe {
            let tail = BufRingEntry::tail(self.entries.as_ptr());
            AtomicU16::from_ptr(tail.cast_mut()).store(self.tail, Release);
        }
    }

    fn address(&self, index: u16) -> *mut u8 {
        // SAFETY: `index` is less than COUNT wherever it comes from, so this stays in the storage.
        unsafe { self.storage.as_ptr().add(usize::from(index) * SIZE) }
    }
}

impl Chunk {
    /// The right to a buffer that a completion has just named.
    pub(super) fn new(index: u16, len: usize) -> Self {
        assert!(
            index < COUNT && len <= SIZE,
            "the kernel names buffers it was given, and fills no more than their size"
        );
        Self { index, len }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: both were allocated with these layouts in `register`. The kernel knows of neither
        // any more: see there.
        unsafe {
            dealloc(self.entries.as_ptr().cast(), ENTRIES);
            dealloc(self.storage.as_ptr(), STORAGE);
        }
    }
}

fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: no layout here is of size 0.
    let memory = unsafe { alloc_zeroed(layout) };
    NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
}
