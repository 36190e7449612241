//! Bytes on their way to a socket: framing that is copied, bodies that are not.
//!
//! A codec appends heads and framing to [`Output::staging`]; large pieces of a body are queued as
//! they are and leave with the framing around them in one vectored write. It has no limit of its
//! own: whoever fills it asks [`Output::is_full`] first, which is how back-pressure arises. A
//! written output may keep its space, so drivers lend it rather than leave one with each
//! connection.

use std::{collections::VecDeque, io::IoSlice};

use bytes::{Buf, Bytes, BytesMut};

/// A queue of bytes to be written in order. One that was never appended to takes a pointer's space.
#[derive(Debug, Default)]
pub(crate) struct Output(Option<Box<Space>>);

#[derive(Debug, Default)]
struct Space {
    /// Complete slices, before `staging`.
    queue: VecDeque<Bytes>,
    /// The bytes in `queue`.
    queued: usize,
    staging: BytesMut,
}

/// Bytes that may wait to be sent before no more are produced.
pub(crate) const OUT_MARK: usize = 64 * 1024;

/// Slices in one vectored write: enough for [`OUT_MARK`] bytes twice over in AJP packets of the
/// default size.
pub(crate) const SLICES_MAX: usize = 40;

/// Up to this length copying is cheaper than another slice in a vectored write.
const COPY_MAX: usize = 2048;

impl Output {
    /// The buffer that codecs append to.
    pub(crate) fn staging(&mut self) -> &mut BytesMut {
        &mut self.0.get_or_insert_default().staging
    }

    /// Appends a body's bytes: small ones are copied, large ones queued as they are.
    pub(crate) fn push(&mut self, data: Bytes) {
        let space = self.0.get_or_insert_default();
        if data.len() <= COPY_MAX {
            space.staging.extend_from_slice(&data);
            return;
        }
        if !space.staging.is_empty() {
            let framing = space.staging.split().freeze();
            space.queued += framing.len();
            space.queue.push_back(framing);
        }
        space.queued += data.len();
        space.queue.push_back(data);
    }

    /// Bytes not yet written.
    pub(crate) fn len(&self) -> usize {
        self.0
            .as_ref()
            .map_or(0, |space| space.queued + space.staging.len())
    }

    /// Whether everything was written.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether so much is waiting that no more should be added before some of it is written.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= OUT_MARK
    }

    /// What to write next, in order, as far as it fits; returns the part of `slices` in use. It
    /// stays where it is in memory until [`advance`](Self::advance) or the next byte is appended;
    /// moving the output moves none of it.
    pub(crate) fn slices<'a, 'b>(
        &'a self,
        slices: &'b mut [IoSlice<'a>; SLICES_MAX],
    ) -> &'b [IoSlice<'a>] {
        let Some(space) = &self.0 else {
            return &[];
        };
        let mut count = 0;
        let staging = (!space.staging.is_empty()).then_some(&space.staging[..]);
        let waiting = space.queue.iter().map(|slice| &slice[..]).chain(staging);
        for (place, slice) in slices.iter_mut().zip(waiting) {
            *place = IoSlice::new(slice);
            count += 1;
        }
        &slices[..count]
    }

    /// The first `written` bytes have been written.
    pub(crate) fn advance(&mut self, written: usize) {
        debug_assert!(written <= self.len(), "only what waits can be written");
        if let Some(space) = &mut self.0 {
            space.advance(written);
        }
    }

    /// Whether this holds neither bytes nor space for any.
    pub(crate) fn is_vacant(&self) -> bool {
        self.0.is_none()
    }
}

impl Space {
    fn advance(&mut self, mut written: usize) {
        while let Some(front) = self.queue.front_mut() {
            if written < front.len() {
                front.advance(written);
                self.queued -= written;
                return;
            }
            written -= front.len();
            self.queued -= front.len();
            self.queue.pop_front();
        }
        if written >= self.staging.len() {
            self.staging.clear();
        } else {
            self.staging.advance(written);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_copies_slices_and_short_writes() {
        for step in [1, 7, 3000, 1_000_000] {
            let mut output = Output::default();
            let mut expected = Vec::new();
            let lengths = [3, 5000, 1, COPY_MAX, COPY_MAX + 1, 0, 9000, 12];
            for (index, len) in lengths.into_iter().cycle().take(100).enumerate() {
                let data = vec![b'a' + index as u8; len];
                output.staging().extend_from_slice(b"<");
                output.push(data.clone().into());
                expected.push(b'<');
                expected.extend(data);
            }
            assert_eq!(output.len(), expected.len());
            assert!(output.is_full());
            let mut written = Vec::new();
            while !output.is_empty() {
                let mut slices = [IoSlice::new(&[]); SLICES_MAX];
                let slices = output.slices(&mut slices);
                let waiting = slices.iter().flat_map(|slice| slice.iter().copied());
                let taken: Vec<u8> = waiting.take(step).collect();
                output.advance(taken.len());
                written.extend(taken);
            }
            assert!(written == expected, "in steps of {step}");
        }
    }

    #[test]
    fn a_large_piece_is_not_copied() {
        let data = Bytes::from(vec![b'x'; COPY_MAX + 1]);
        let mut output = Output::default();
        output.staging().extend_from_slice(b"<");
        output.push(data.clone());
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let slices = output.slices(&mut slices);
        assert_eq!(slices.len(), 2);
        assert_eq!(slices[1].as_ptr(), data.as_ptr());
    }

    #[test]
    fn only_an_output_never_used_is_vacant() {
        let mut output = Output::default();
        assert!(output.is_vacant());
        output.push(Bytes::from_static(b"x"));
        output.advance(1);
        assert!(output.is_empty() && !output.is_vacant());
    }
}
