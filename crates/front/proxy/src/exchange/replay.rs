//! A request's body kept in memory, so that it can be sent a second time.
//!
//! At most [`BYTES_MAX`] of a body are kept. If more is received, the kept part is freed and the
//! request cannot be repeated. Large pieces share the memory they were received in. Small pieces are
//! joined: separately, a body in chunks of one byte would take 43 times its size.

use bytes::Bytes;
use catamaran_transport::ByteQueue;

#[derive(Debug, Default)]
pub(crate) struct Replay {
    /// The part of the body that is kept; boxed, because most requests have no body.
    body: Option<Box<ByteQueue>>,
    /// Whether a part of the body was received and not kept.
    incomplete: bool,
}

impl Replay {
    /// Keeps a piece that was just received; if there is no room for it, drops all that was kept.
    pub(crate) fn keep(&mut self, piece: &Bytes) {
        if self.incomplete {
            return;
        }
        let body = self.body.get_or_insert_default();
        if body.len() + piece.len() > BYTES_MAX {
            self.incomplete = true;
            self.body = None;
            return;
        }
        body.push(piece.clone());
    }

    /// Some of the kept body from this offset on; `None` if no more is kept.
    pub(crate) fn at(&mut self, offset: usize) -> Option<Bytes> {
        self.body.as_mut()?.at(offset)
    }

    /// Whether everything received so far can be sent again.
    pub(crate) fn has_all(&self, received: u64) -> bool {
        let kept = self.body.as_ref().map_or(0, |body| body.len() as u64);
        received == 0 || (!self.incomplete && kept == received)
    }
}

/// The most bytes of a body that are kept.
const BYTES_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_comes_back_in_order_whatever_it_was_cut_into() {
        let body: Vec<u8> = (0..60_000u32).map(|index| index as u8).collect();
        for cut in [1, 700, 2049, 60_000] {
            let mut replay = Replay::default();
            for piece in body.chunks(cut) {
                replay.keep(&Bytes::copy_from_slice(piece));
            }
            let mut again = Vec::new();
            while let Some(piece) = replay.at(again.len()) {
                again.extend_from_slice(&piece);
            }
            assert!(again == body, "{cut}");
            assert!(replay.has_all(60_000) && !replay.has_all(60_001));
        }
    }

    #[test]
    fn too_long_a_body_is_let_go_of() {
        let mut replay = Replay::default();
        let piece = Bytes::from(vec![0; BYTES_MAX]);
        replay.keep(&piece);
        assert!(replay.has_all(BYTES_MAX as u64));
        replay.keep(&Bytes::from_static(b"x"));
        assert!(!replay.has_all(BYTES_MAX as u64 + 1));
        assert_eq!(replay.at(0), None);
    }
}
