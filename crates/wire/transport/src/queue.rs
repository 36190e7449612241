//! A queue of bytes that keeps large slices as they are and joins small ones.
//!
//! It holds bytes until they can be moved on: to a socket, between two connections, or between a
//! connection and an application. Small slices are joined, because a slice of a few bytes may hold a
//! whole buffer; so the memory is bounded by the bytes queued. The user of a queue limits its length.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes, BytesMut};

/// A queue of bytes in order.
#[derive(Debug, Default)]
pub struct ByteQueue {
    /// Complete slices, which come before `tail`.
    slices: VecDeque<Bytes>,
    /// The number of bytes in `slices`.
    queued: usize,
    tail: BytesMut,
}

impl ByteQueue {
    /// The buffer in which bytes may be appended by copying.
    pub fn tail(&mut self) -> &mut BytesMut {
        &mut self.tail
    }

    /// Appends bytes: few are copied, many queued as they are.
    pub fn push(&mut self, data: Bytes) {
        if data.len() <= COPY_MAX {
            self.tail.extend_from_slice(&data);
            return;
        }
        self.close_tail();
        self.queued += data.len();
        self.slices.push_back(data);
    }

    /// Takes at most `max` bytes off the front: a part of one slice, or all of it. `None` only if
    /// `max` is 0 or the queue is empty.
    pub fn pop(&mut self, max: usize) -> Option<Bytes> {
        if self.slices.is_empty() {
            let len = self.tail.len();
            // The whole tail is taken if most of its memory is in use: splitting it would cost more than it saves.
            if 0 < len && len <= max && self.tail.capacity() < 2 * len {
                return Some(std::mem::take(&mut self.tail).freeze());
            }
            self.close_tail();
        }
        if max == 0 {
            return None;
        }
        let front = self.slices.front_mut()?;
        let piece = if front.len() > max {
            front.split_to(max)
        } else {
            self.slices.pop_front()?
        };
        self.queued -= piece.len();
        Some(piece)
    }

    /// The bytes from `offset` to the end of the slice that they are in, without removing them.
    /// `None` at the end.
    pub fn at(&mut self, mut offset: usize) -> Option<Bytes> {
        if self.queued <= offset && offset < self.len() {
            self.close_tail();
        }
        for slice in &self.slices {
            if offset < slice.len() {
                return Some(slice.slice(offset..));
            }
            offset -= slice.len();
        }
        None
    }

    /// The number of bytes in the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queued + self.tail.len()
    }

    /// Whether the queue has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all bytes.
    pub fn clear(&mut self) {
        self.slices.clear();
        self.queued = 0;
        self.tail.clear();
    }

    /// Takes the memory of the tail, with any bytes in it.
    pub(crate) fn take_tail(&mut self) -> BytesMut {
        std::mem::take(&mut self.tail)
    }

    /// The size of the tail's memory in bytes.
    pub(crate) fn tail_capacity(&self) -> usize {
        self.tail.capacity()
    }

    /// Frees the list of slices, which must be empty.
    pub(crate) fn release_slices(&mut self) {
        debug_assert!(self.slices.is_empty(), "only an empty queue is released");
        if self.slices.capacity() > 0 {
            self.slices = VecDeque::new();
        }
    }

    /// The bytes of the queue, if they are in one piece.
    #[must_use]
    pub fn only_slice(&self) -> Option<&[u8]> {
        if self.slices.is_empty() && !self.tail.is_empty() {
            return Some(&self.tail);
        }
        if self.slices.len() == 1 && self.tail.is_empty() {
            return self.slices.front().map(|piece| &piece[..]);
        }
        None
    }

    /// The pieces in order, as many as `slices` has room for; returns the slices in use.
    pub fn slices<'a, 'b>(&'a self, slices: &'b mut [IoSlice<'a>]) -> &'b [IoSlice<'a>] {
        let mut count = 0;
        let tail = (!self.tail.is_empty()).then_some(&self.tail[..]);
        let pieces = self.slices.iter().map(|piece| &piece[..]).chain(tail);
        for (place, piece) in slices.iter_mut().zip(pieces) {
            *place = IoSlice::new(piece);
            count += 1;
        }
        &slices[..count]
    }

    /// Drops the first `len` bytes.
    pub fn advance(&mut self, mut len: usize) {
        debug_assert!(len <= self.len(), "only what is there can be dropped");
        while let Some(front) = self.slices.front_mut() {
            if len < front.len() {
                front.advance(len);
                self.queued -= len;
                return;
            }
            len -= front.len();
            self.queued -= front.len();
            self.slices.pop_front();
        }
        if len >= self.tail.len() {
            self.tail.clear();
        } else {
            self.tail.advance(len);
        }
    }

    /// Makes the bytes of the tail a complete slice.
    fn close_tail(&mut self) {
        if !self.tail.is_empty() {
            let piece = self.tail.split().freeze();
            self.queued += piece.len();
            self.slices.push_back(piece);
        }
    }
}

/// The length up to which copying is cheaper than another slice in a vectored write.
pub(crate) const COPY_MAX: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue with pieces of many lengths, framed by single bytes, and its content in one piece.
    fn filled() -> (ByteQueue, Vec<u8>) {
        let mut queue = ByteQueue::default();
        let mut expected = Vec::new();
        let lengths = [3, 5000, 1, COPY_MAX, COPY_MAX + 1, 0, 9000, 12];
        for (index, len) in (0u8..100).zip(lengths.into_iter().cycle()) {
            let data = vec![index; len];
            queue.tail().extend_from_slice(b"<");
            queue.push(data.clone().into());
            expected.push(b'<');
            expected.extend(data);
        }
        assert_eq!(queue.len(), expected.len());
        (queue, expected)
    }

    #[test]
    fn order_survives_copies_slices_and_short_writes() {
        for step in [1, 7, 3000, 1_000_000] {
            let (mut queue, expected) = filled();
            let mut written = Vec::new();
            while !queue.is_empty() {
                let mut slices = [IoSlice::new(&[]); 8];
                let slices = queue.slices(&mut slices).iter();
                let taken = slices.flat_map(|slice| slice.iter().copied()).take(step);
                let before = written.len();
                written.extend(taken);
                queue.advance(written.len() - before);
            }
            assert!(written == expected, "in steps of {step}");
        }
    }

    #[test]
    fn pieces_of_any_size_come_off_in_order() {
        for size in [1, 7, 3000, 1_000_000] {
            let (mut queue, expected) = filled();
            let mut taken = Vec::new();
            while let Some(piece) = queue.pop(size) {
                assert!((1..=size).contains(&piece.len()));
                taken.extend_from_slice(&piece);
            }
            assert!(taken == expected, "in pieces of {size}");
            assert!(queue.is_empty());
        }
    }

    #[test]
    fn bytes_can_be_looked_at_and_stay() {
        let (mut queue, expected) = filled();
        let mut seen = Vec::new();
        while let Some(piece) = queue.at(seen.len()) {
            assert!(!piece.is_empty());
            seen.extend_from_slice(&piece);
        }
        assert!(seen == expected);
        assert_eq!(queue.len(), expected.len());
        assert_eq!(
            queue.at(seen.len() - 1).as_deref(),
            expected.last_chunk::<1>().map(|last| &last[..])
        );
    }

    #[test]
    fn one_piece_is_told_from_several() {
        let large = Bytes::from(vec![b'x'; COPY_MAX + 1]);
        let mut queue = ByteQueue::default();
        assert_eq!(queue.only_slice(), None);
        queue.push(Bytes::from_static(b"small"));
        assert_eq!(queue.only_slice(), Some(&b"small"[..]));
        queue.push(large.clone());
        assert_eq!(queue.only_slice(), None);
        queue.advance(b"small".len());
        assert_eq!(queue.only_slice(), Some(&large[..]));
        queue.tail().extend_from_slice(b"end");
        assert_eq!(queue.only_slice(), None);
    }

    #[test]
    fn a_large_piece_is_not_copied_and_small_ones_are_joined() {
        let large = Bytes::from(vec![b'x'; COPY_MAX + 1]);
        let mut queue = ByteQueue::default();
        queue.push(Bytes::from_static(b"a"));
        queue.push(Bytes::from_static(b"b"));
        queue.push(large.clone());
        assert_eq!(queue.pop(0), None, "nothing was asked for");
        assert_eq!(queue.pop(usize::MAX).as_deref(), Some(&b"ab"[..]));
        let popped = queue.pop(usize::MAX).expect("the large one");
        assert_eq!(popped.as_ptr(), large.as_ptr());
        assert_eq!(queue.pop(usize::MAX), None);
    }

    #[test]
    fn tiny_slices_are_joined_before_they_come_off() {
        let mut queue = ByteQueue::default();
        (0..100_000).for_each(|_| queue.push(Bytes::from_static(b"x")));
        assert!(queue.slices.len() < 50, "{}", queue.slices.len());
        assert_eq!(queue.len(), 100_000);
    }

    #[test]
    fn nothing_is_left_after_clear() {
        let mut queue = ByteQueue::default();
        queue.push(Bytes::from_static(b"x"));
        queue.push(Bytes::from(vec![b'x'; COPY_MAX + 1]));
        queue.clear();
        assert_eq!((queue.pop(1), queue.len()), (None, 0));
    }
}
