//! Read and write buffers, lent to connections while they move bytes.
//!
//! An idle connection holds no buffer. A busy one takes a buffer from its thread's [`FreeList`] and
//! returns it when the bytes were moved. A buffer whose memory is still in use elsewhere is lent
//! again only afterwards.

use std::cell::RefCell;
use std::collections::VecDeque;

use bytes::BytesMut;

use crate::free_list::FreeList;

thread_local! {
    static FREE: RefCell<FreeList<BytesMut>> = const { RefCell::new(FreeList::new()) };

    /// Buffers whose memory was still in use when they came back, the oldest first: a response over
    /// HTTP/2 is written after the backend's connection is idle.
    static SHARED: RefCell<VecDeque<BytesMut>> = const { RefCell::new(VecDeque::new()) };
}

/// An empty buffer with room for at least [`SIZE`] bytes.
#[must_use]
pub fn take() -> BytesMut {
    let used = FREE.with_borrow_mut(FreeList::take);
    used.or_else(take_shared)
        .unwrap_or_else(|| BytesMut::with_capacity(SIZE))
}

/// The oldest of the buffers that came back in use, if it is free now.
fn take_shared() -> Option<BytesMut> {
    SHARED.with_borrow_mut(|shared| {
        let oldest = shared.front_mut()?;
        if renew(oldest) {
            shared.pop_front()
        } else {
            None
        }
    })
}

/// Makes room in `buffer` for a read of `size` bytes or not much less: few large reads cost less than
/// many small ones. A buffer of the common size is lent, a larger one is allocated.
pub fn make_room(buffer: &mut BytesMut, size: usize) {
    let room = buffer.capacity() - buffer.len();
    if room >= size / 2 {
        return;
    }
    if buffer.capacity() == 0 && size <= SIZE {
        *buffer = take();
    } else {
        buffer.reserve(size);
    }
}

/// Takes a buffer back and discards its content. A buffer of an uncommon size is freed instead.
pub fn give(mut buffer: BytesMut) {
    if renew(&mut buffer) {
        return FREE.with_borrow_mut(|list| list.give(buffer));
    }
    // Its capacity is what is left of its memory, the rest of which is in use.
    if buffer.capacity() < SIZE {
        SHARED.with_borrow_mut(|shared| {
            if shared.len() == SHARED_MAX {
                shared.pop_front();
            }
            shared.push_back(buffer);
        });
    }
}

/// Empties a buffer. Returns `false` if it is not worth keeping: it has grown for a long body, or its
/// memory is still in use by a head or a body.
pub fn renew(buffer: &mut BytesMut) -> bool {
    buffer.clear();
    buffer.try_reclaim(SIZE) && buffer.capacity() < 2 * SIZE
}

/// Frees the buffers of this thread that were not needed since the last call.
pub fn trim() {
    FREE.with_borrow_mut(FreeList::trim);
    SHARED.with_borrow_mut(VecDeque::clear);
}

/// The common size of a buffer in bytes: enough for a head, or for a whole small response.
pub const SIZE: usize = 8 * 1024;

/// The most buffers kept whose memory is still in use: those of the responses written in one turn.
const SHARED_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_empty_and_whole() {
        let mut buffer = take();
        buffer.extend_from_slice(b"GET / HTTP/1.1");
        let head = buffer.split_to(14).freeze();
        let start = head.as_ptr();
        drop(head);
        give(buffer);
        let again = take();
        assert!(again.is_empty() && again.capacity() >= SIZE);
        assert_eq!(again.as_ptr(), start, "the same memory");
    }

    #[test]
    fn a_buffer_that_was_handed_out_whole_makes_way_for_one_of_the_size_wanted() {
        let mut buffer = BytesMut::new();
        for size in [SIZE, 8 * SIZE] {
            make_room(&mut buffer, size);
            assert!(buffer.capacity() >= size, "{size}");
            buffer.resize(buffer.capacity(), b'x');
            drop(buffer.split());
        }
    }

    #[test]
    fn a_shared_buffer_is_not_taken_back() {
        let mut buffer = take();
        buffer.extend_from_slice(b"secret");
        let kept = buffer.split_to(6).freeze();
        give(buffer);
        let other = take();
        assert_ne!(other.as_ptr(), kept.as_ptr());
        assert_eq!(&kept[..], b"secret");
    }

    #[test]
    fn a_shared_buffer_is_lent_again_once_it_is_not_shared() {
        let mut buffer = take();
        buffer.extend_from_slice(b"secret");
        let kept = buffer.split_to(6).freeze();
        let start = kept.as_ptr();
        give(buffer);
        assert_ne!(take().as_ptr(), start);
        drop(kept);
        let again = take();
        assert_eq!(again.as_ptr(), start);
        assert!(again.is_empty() && again.capacity() >= SIZE);
        give(take());
        trim();
        trim();
        assert!(SHARED.with_borrow(VecDeque::is_empty));
    }
}
