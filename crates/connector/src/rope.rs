//! A queue of bytes that owns large pieces as they are and joins small ones.
//!
//! What waits between two ends of the connector is one of these: responses on their way to a socket
//! ([`Output`](crate::output::Output)), bodies between a connection and an application
//! (`pipe`). Joining small pieces bounds the memory by the bytes queued: a slice may hold a buffer
//! many times its size.

use std::{collections::VecDeque, io::IoSlice};

use bytes::{Buf, Bytes, BytesMut};

/// Bytes in order.
#[derive(Debug, Default)]
pub(crate) struct Rope {
    /// Complete pieces, before `tail`.
    queue: VecDeque<Bytes>,
    /// The bytes in `queue`.
    queued: usize,
    tail: BytesMut,
}

/// Up to this length copying is cheaper than another slice in a vectored write.
const COPY_MAX: usize = 2048;

impl Rope {
    /// The place where bytes may be appended by copying.
    pub(crate) fn tail(&mut self) -> &mut BytesMut {
        &mut self.tail
    }

    /// Appends bytes: few are copied, many queued as they are.
    pub(crate) fn push(&mut self, data: Bytes) {
        if data.len() <= COPY_MAX {
            self.tail.extend_from_slice(&data);
            return;
        }
        self.close_tail();
        self.queued += data.len();
        self.queue.push_back(data);
    }

    /// Takes at most `len` bytes off the front; none only if `len` is 0 or there are none.
    pub(crate) fn pop(&mut self, len: usize) -> Bytes {
        if self.queue.is_empty() {
            self.close_tail();
        }
        let piece = match self.queue.front_mut() {
            None => return Bytes::new(),
            Some(front) if front.len() > len => front.split_to(len),
            Some(_) => self.queue.pop_front().unwrap_or_default(),
        };
        self.queued -= piece.len();
        piece
    }

    /// Bytes in it.
    pub(crate) fn len(&self) -> usize {
        self.queued + self.tail.len()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all bytes.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.queued = 0;
        self.tail.clear();
    }

    /// The bytes, if they are in one piece.
    pub(crate) fn only_slice(&self) -> Option<&[u8]> {
        match (self.queue.front(), self.queue.len(), self.tail.is_empty()) {
            (None, _, false) => Some(&self.tail),
            (Some(piece), 1, true) => Some(piece),
            _ => None,
        }
    }

    /// The pieces in order, as far as they fit; returns the part of `slices` in use.
    pub(crate) fn slices<'a, 'b>(&'a self, slices: &'b mut [IoSlice<'a>]) -> &'b [IoSlice<'a>] {
        let mut count = 0;
        let tail = (!self.tail.is_empty()).then_some(&self.tail[..]);
        let pieces = self.queue.iter().map(|piece| &piece[..]).chain(tail);
        for (place, piece) in slices.iter_mut().zip(pieces) {
            *place = IoSlice::new(piece);
            count += 1;
        }
        &slices[..count]
    }

    /// Drops the first `len` bytes.
    pub(crate) fn advance(&mut self, mut len: usize) {
        debug_assert!(len <= self.len(), "only what is there can be dropped");
        while let Some(front) = self.queue.front_mut() {
            if len < front.len() {
                front.advance(len);
                self.queued -= len;
                return;
            }
            len -= front.len();
            self.queued -= front.len();
            self.queue.pop_front();
        }
        if len >= self.tail.len() {
            self.tail.clear();
        } else {
            self.tail.advance(len);
        }
    }

    fn close_tail(&mut self) {
        if !self.tail.is_empty() {
            let piece = self.tail.split().freeze();
            self.queued += piece.len();
            self.queue.push_back(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of many lengths, framed by single bytes, and all of it in one.
    fn filled() -> (Rope, Vec<u8>) {
        let mut rope = Rope::default();
        let mut expected = Vec::new();
        let lengths = [3, 5000, 1, COPY_MAX, COPY_MAX + 1, 0, 9000, 12];
        for (index, len) in (0u8..100).zip(lengths.into_iter().cycle()) {
            let data = vec![index; len];
            rope.tail().extend_from_slice(b"<");
            rope.push(data.clone().into());
            expected.push(b'<');
            expected.extend(data);
        }
        assert_eq!(rope.len(), expected.len());
        (rope, expected)
    }

    #[test]
    fn order_survives_copies_slices_and_short_writes() {
        for step in [1, 7, 3000, 1_000_000] {
            let (mut rope, expected) = filled();
            let mut written = Vec::new();
            while !rope.is_empty() {
                let mut slices = [IoSlice::new(&[]); 8];
                let slices = rope.slices(&mut slices).iter();
                let taken = slices.flat_map(|slice| slice.iter().copied()).take(step);
                let before = written.len();
                written.extend(taken);
                rope.advance(written.len() - before);
            }
            assert!(written == expected, "in steps of {step}");
        }
    }

    #[test]
    fn pieces_of_any_size_come_off_in_order() {
        for size in [1, 7, 3000, 1_000_000] {
            let (mut rope, expected) = filled();
            let mut taken = Vec::new();
            while !rope.is_empty() {
                let piece = rope.pop(size);
                assert!((1..=size).contains(&piece.len()));
                taken.extend_from_slice(&piece);
            }
            assert!(taken == expected, "in pieces of {size}");
            assert_eq!(rope.pop(size), Bytes::new());
        }
    }

    #[test]
    fn one_piece_is_told_from_several() {
        let large = Bytes::from(vec![b'x'; COPY_MAX + 1]);
        let mut rope = Rope::default();
        assert_eq!(rope.only_slice(), None);
        rope.push(Bytes::from_static(b"small"));
        assert_eq!(rope.only_slice(), Some(&b"small"[..]));
        rope.push(large.clone());
        assert_eq!(rope.only_slice(), None);
        rope.advance(b"small".len());
        assert_eq!(rope.only_slice(), Some(&large[..]));
        rope.tail().extend_from_slice(b"end");
        assert_eq!(rope.only_slice(), None);
    }

    #[test]
    fn a_large_piece_is_not_copied_and_small_ones_are_joined() {
        let large = Bytes::from(vec![b'x'; COPY_MAX + 1]);
        let mut rope = Rope::default();
        rope.push(Bytes::from_static(b"a"));
        rope.push(Bytes::from_static(b"b"));
        rope.push(large.clone());
        assert_eq!(rope.pop(usize::MAX), "ab");
        assert_eq!(rope.pop(usize::MAX).as_ptr(), large.as_ptr());
    }
}
