//! The bytes to be written to a socket: framing is copied, large slices of bodies are not.
//!
//! A codec appends heads and framing to [`Output::staging`]. Large slices of a body are queued as
//! they are, and are written with the framing around them in one vectored write. An output has no
//! limit: its user asks [`Output::is_full`] before adding more, which gives back-pressure. A
//! written output may keep its memory, so drivers lend outputs to connections.

use std::io::IoSlice;

use bytes::{Bytes, BytesMut};
use catamaran_transport::ByteQueue;

/// A queue of bytes to be written in order. It allocates memory only when bytes are first added.
#[derive(Debug, Default)]
pub(crate) struct Output(Option<Box<ByteQueue>>);

/// The number of waiting bytes at which an [`Output`] is full.
pub(crate) const OUT_MARK: usize = 64 * 1024;

/// The most slices in one vectored write: enough for twice [`OUT_MARK`] bytes in AJP packets of the
/// default size.
pub(crate) const SLICES_MAX: usize = 40;

impl Output {
    /// The buffer that codecs append to.
    pub(crate) fn staging(&mut self) -> &mut BytesMut {
        self.0.get_or_insert_default().tail()
    }

    /// Appends a body's bytes: small ones are copied, large ones queued as they are.
    pub(crate) fn push(&mut self, data: Bytes) {
        self.0.get_or_insert_default().push(data);
    }

    /// The number of bytes not yet written.
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |queue| queue.len())
    }

    /// Whether everything was written.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether as many bytes wait that no more should be added before some are written.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= OUT_MARK
    }

    /// The bytes to write, if they are in one piece, as for almost all small responses.
    pub(crate) fn only_slice(&self) -> Option<&[u8]> {
        self.0.as_ref().and_then(|queue| queue.only_slice())
    }

    /// The bytes to write next, in order, as many as `slices` has room for; returns the slices in
    /// use. They stay where they are in memory until [`advance`](Self::advance) or the next byte is
    /// appended, also if the output is moved.
    pub(crate) fn slices<'a, 'b>(
        &'a self,
        slices: &'b mut [IoSlice<'a>; SLICES_MAX],
    ) -> &'b [IoSlice<'a>] {
        self.0.as_ref().map_or(&[], |queue| queue.slices(slices))
    }

    /// Removes the first `written` bytes, which have been written.
    pub(crate) fn advance(&mut self, written: usize) {
        if let Some(queue) = &mut self.0 {
            queue.advance(written);
        }
    }

    /// Whether this holds neither bytes nor space for any.
    pub(crate) fn is_vacant(&self) -> bool {
        self.0.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_output_never_used_is_vacant() {
        let mut output = Output::default();
        assert!(output.is_vacant() && output.is_empty());
        output.push(Bytes::from_static(b"x"));
        output.advance(1);
        assert!(output.is_empty() && !output.is_vacant());
    }

    #[test]
    fn it_is_full_at_the_mark() {
        let mut output = Output::default();
        output.push(Bytes::from(vec![b'x'; OUT_MARK - 1]));
        assert!(!output.is_full());
        output.staging().extend_from_slice(b"x");
        assert!(output.is_full());
    }
}
