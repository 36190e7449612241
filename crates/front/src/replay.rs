//! A request's body kept in memory, so that it can be sent a second time.
//!
//! Only the beginning of a body is worth keeping: once more than [`BYTES_MAX`] of it were received,
//! the body is let go of and the request cannot be repeated. The pieces share the memory they were
//! received in.

use bytes::Bytes;

#[derive(Debug, Default)]
pub(crate) struct Replay {
    pieces: Vec<Bytes>,
    bytes: usize,
    /// Something received is not here.
    incomplete: bool,
}

impl Replay {
    /// Keeps a piece just received, if there is room.
    pub(crate) fn keep(&mut self, piece: &Bytes) {
        if self.incomplete {
            return;
        }
        self.bytes += piece.len();
        if self.bytes > BYTES_MAX {
            self.incomplete = true;
            self.pieces = Vec::new();
            return;
        }
        self.pieces.push(piece.clone());
    }

    /// The piece of this index, in the order of their coming.
    pub(crate) fn piece(&self, index: usize) -> Option<Bytes> {
        self.pieces.get(index).cloned()
    }

    /// Whether everything received so far can be sent again.
    pub(crate) fn has_all(&self, received: u64) -> bool {
        received == 0 || (!self.incomplete && self.bytes as u64 == received)
    }
}

/// The longest body that is kept.
const BYTES_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_back_in_order() {
        let mut replay = Replay::default();
        replay.keep(&Bytes::from_static(b"he"));
        replay.keep(&Bytes::from_static(b"llo"));
        let pieces: Vec<_> = (0..).map_while(|index| replay.piece(index)).collect();
        assert_eq!(pieces.concat(), b"hello");
        assert!(replay.has_all(5) && !replay.has_all(6));
    }

    #[test]
    fn too_long_a_body_is_let_go_of() {
        let mut replay = Replay::default();
        let piece = Bytes::from(vec![0; BYTES_MAX]);
        replay.keep(&piece);
        assert!(replay.has_all(BYTES_MAX as u64));
        replay.keep(&Bytes::from_static(b"x"));
        assert!(!replay.has_all(BYTES_MAX as u64 + 1));
        assert_eq!(replay.piece(0), None);
    }
}
