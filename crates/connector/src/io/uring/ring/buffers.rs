//! A ring of buffers of one size, from which the kernel takes one when bytes arrive.
//!
//! A buffer belongs to the kernel from when it is given until a completion names it, and to this
//! process from then until it is given again. [`Chunk`] is that right for the buffers of one
//! completion: it cannot be copied, and reading the bytes consumes it. The kernel uses buffers in the
//! order in which they were given, and they are always given in the order of their numbers; so the
//! bytes of one completion may span several neighbouring buffers (a bundle). Bytes are copied out at
//! once, so an idle connection holds no buffer.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU16;
use std::sync::atomic::Ordering::Release;
use std::{io, slice};

use bytes::BytesMut;
use io_uring::IoUring;
use io_uring::types::BufRingEntry;

/// Buffers that are registered with a ring.
#[derive(Debug)]
pub(super) struct Buffers {
    /// The kernel's list of buffers: [`COUNT`] entries, page-aligned. Each buffer always has the
    /// entry of its number.
    entries: NonNull<BufRingEntry>,
    /// The memory of the buffers, one after the other.
    storage: NonNull<u8>,
    /// The number of buffers ever given to the kernel, modulo 2^16. Modulo [`COUNT`] it is the next
    /// to be given.
    tail: u16,
    /// For each buffer, whether it is unused but waits for an earlier one before it is given to the
    /// kernel.
    returned: Box<[bool]>,
}

/// Received bytes, still in the buffers that the kernel put them in.
#[derive(Debug)]
#[must_use = "a chunk that is dropped is a buffer lost"]
pub(in super::super) struct Chunk {
    /// The number of the first buffer.
    index: u16,
    /// The number of bytes, which fill buffers from the first on without a gap.
    len: usize,
}

/// The number under which the kernel knows the ring of buffers.
pub(super) const GROUP: u16 = 0;
/// The number of buffers, a power of two. A receive that finds none is started again, so this limits
/// memory, not connections.
pub(super) const COUNT: u16 = 512;
/// The bytes of one buffer: a request's head fits, and the two megabytes of a worker stay in the
/// caches of most processors.
pub(super) const SIZE: usize = 4096;

const fn layout(size: usize) -> Layout {
    match Layout::from_size_align(size, 4096) {
        Ok(layout) => layout,
        Err(_) => panic!("a page is a valid alignment"),
    }
}

impl Buffers {
    /// Allocates all buffers, registers them with `ring`, and gives them to the kernel to receive
    /// into.
    pub(super) fn register(ring: &IoUring) -> io::Result<Self> {
        let mut buffers = Self {
            entries: allocate(ENTRIES).cast(),
            storage: allocate(STORAGE),
            tail: 0,
            returned: vec![true; usize::from(COUNT)].into_boxed_slice(),
        };
        for index in 0..COUNT {
            // SAFETY: it is one of the COUNT entries, which are zeroed, and nobody else has any
            // reference to it; the kernel does not know of it yet.
            let entry = unsafe { &mut *buffers.entries.as_ptr().add(usize::from(index)) };
            let start = usize::from(index) * SIZE;
            entry.set_addr(buffers.storage.as_ptr() as u64 + start as u64);
            entry.set_len(SIZE as u32);
            entry.set_bid(index);
        }
        let address = buffers.entries.as_ptr() as u64;
        // SAFETY: the entries are page-aligned and COUNT in number. They are freed when `buffers` is
        // dropped: here if this fails, else by `Ring`, which unregisters them first.
        unsafe {
            ring.submitter()
                .register_buf_ring_with_flags(address, COUNT, GROUP, 0)?;
        }
        buffers.give_returned();
        Ok(buffers)
    }

    /// Appends what is in a chunk to `to`, and gives its buffers back to the kernel.
    pub(super) fn take(&mut self, chunk: Chunk, to: &mut BytesMut) {
        // Neighbours in number are neighbours in memory, up to the last buffer.
        let start = usize::from(chunk.index) * SIZE;
        let until_last = chunk.len.min(STORAGE.size() - start);
        to.reserve(chunk.len);
        for (start, len) in [(start, until_last), (0, chunk.len - until_last)] {
            // SAFETY: these bytes lie within the storage and within the buffers of the chunk, which
            // are ours: the kernel, which has written the bytes, does not touch the buffers before
            // they are given below, and there is no second `Chunk` of any. The storage was zeroed,
            // so all of it is initialised.
            let bytes = unsafe { slice::from_raw_parts(self.storage.as_ptr().add(start), len) };
            to.extend_from_slice(bytes);
        }
        self.discard(chunk);
    }

    /// Gives the buffers of a chunk back without looking at them.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a chunk can be given back once"
    )]
    pub(super) fn discard(&mut self, chunk: Chunk) {
        for index in chunk.indices() {
            self.returned[index] = true;
        }
        self.give_returned();
    }

    /// Gives unused buffers to the kernel in order, up to the first that is in use.
    fn give_returned(&mut self) {
        while std::mem::take(&mut self.returned[usize::from(self.tail % COUNT)]) {
            self.tail = self.tail.wrapping_add(1);
        }
        // SAFETY: the tail is a field of the first entry that nobody else writes, aligned for its
        // type; the kernel reads it, hence the atomic store, which publishes what was written to the
        // entries before. Each entry up to there names a buffer that is not in use.
        unsafe {
            let tail = BufRingEntry::tail(self.entries.as_ptr());
            AtomicU16::from_ptr(tail.cast_mut()).store(self.tail, Release);
        }
    }
}

impl Chunk {
    /// The buffers of a completion, from the first that it names.
    pub(super) fn new(index: u16, len: usize) -> Self {
        assert!(
            index < COUNT && len > 0 && len <= SIZE * usize::from(COUNT),
            "the kernel names buffers it was given, and fills no more than their size"
        );
        Self { index, len }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn indices(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (usize::from(self.index), self.len.div_ceil(SIZE));
        (first..first + count).map(|index| index % usize::from(COUNT))
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
    let pointer = unsafe { alloc(layout) };
    let memory = NonNull::new(pointer).unwrap_or_else(|| handle_alloc_error(layout));
    // Zeroed by writing, so that the pages are allocated now: the kernel uses the buffers in turn and would soon touch
    // all of them, and the worker's memory would seem to grow with its connections. SAFETY: it was allocated just now
    // with this size.
    unsafe { memory.write_bytes(0, layout.size()) };
    memory
}

const ENTRIES: Layout = layout(COUNT as usize * size_of::<BufRingEntry>());
const STORAGE: Layout = layout(COUNT as usize * SIZE);
