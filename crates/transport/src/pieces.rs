//! A body's bytes between two connections: received, and not handed over yet.
//!
//! Pieces stay what they are, slices of the buffer that they were read into. Only small neighbours
//! are joined, so that the list of a body that comes in tiny chunks stays short, and does not keep a
//! buffer for every few bytes. How much may be held is decided by whoever fills it.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Bytes of a body, in order.
#[derive(Debug, Default)]
pub struct Pieces {
    queue: VecDeque<Bytes>,
    /// The bytes in `queue`.
    len: usize,
}

impl Pieces {
    /// Appends some bytes.
    pub fn push(&mut self, piece: Bytes) {
        self.len += piece.len();
        match self.queue.back_mut() {
            Some(last) if last.len() + piece.len() <= JOINED_MAX => {
                let mut joined = BytesMut::from(std::mem::take(last));
                joined.extend_from_slice(&piece);
                *last = joined.freeze();
            }
            _ => self.queue.push_back(piece),
        }
    }

    /// Takes at most `max` bytes off the front: some of one piece, or all of it. `None` only if
    /// `max` is 0 or there are none.
    pub fn pop(&mut self, max: usize) -> Option<Bytes> {
        let front = self.queue.front_mut().filter(|_| max > 0)?;
        let piece = match front.len() > max {
            true => front.split_to(max),
            false => self.queue.pop_front()?,
        };
        self.len -= piece.len();
        Some(piece)
    }

    /// Bytes in all pieces.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Drops all bytes.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Up to this length copying is cheaper than a piece more.
const JOINED_MAX: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_order_whatever_they_are_cut_into() {
        let lengths = [1, 5000, 3, 4, 2040, 2, 2048, 1, 9000];
        for max in [1, 7, 3000, 100_000] {
            let mut pieces = Pieces::default();
            let mut expected = Vec::new();
            for (index, len) in lengths.into_iter().enumerate() {
                let data = vec![index as u8; len];
                expected.extend_from_slice(&data);
                pieces.push(data.into());
                assert_eq!(pieces.len(), expected.len());
            }
            let taken: Vec<_> = std::iter::from_fn(|| pieces.pop(max)).collect();
            assert!(taken.iter().all(|piece| (1..=max).contains(&piece.len())));
            assert!(taken.concat() == expected, "{max}");
            assert!(pieces.is_empty());
        }
    }

    #[test]
    fn large_pieces_are_not_copied() {
        let data = Bytes::from(vec![b'x'; 10_000]);
        let mut pieces = Pieces::default();
        pieces.push(data.slice(..6000));
        pieces.push(data.slice(6000..));
        let starts: Vec<_> = std::iter::from_fn(|| pieces.pop(usize::MAX))
            .map(|piece| piece.as_ptr())
            .collect();
        assert_eq!(starts, [data[..].as_ptr(), data[6000..].as_ptr()]);
    }

    #[test]
    fn tiny_pieces_make_a_short_list() {
        let mut pieces = Pieces::default();
        (0..100_000).for_each(|_| pieces.push(Bytes::from_static(b"x")));
        assert!(pieces.queue.len() < 50, "{}", pieces.queue.len());
    }

    #[test]
    fn nothing_is_taken_of_nothing_or_where_nothing_may_be() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.pop(1), None);
        pieces.push(Bytes::from_static(b"x"));
        assert_eq!(pieces.pop(0), None);
        pieces.clear();
        assert_eq!((pieces.pop(1), pieces.len()), (None, 0));
    }
}
