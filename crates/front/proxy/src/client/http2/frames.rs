//! The heads of frames in a stream of bytes, whatever it was cut into.
//!
//! The `h2` crate reads and writes the frames. This reader only follows their lengths, because what
//! floods consist of, and how far the windows of the connection are open, the crate does not tell.

/// The head of a frame (RFC 9113, section 4.1), and the few bytes of its payload that the front reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Bytes of its payload.
    pub(crate) len: u32,
    pub(crate) kind: Kind,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    /// The error code of RST_STREAM and GOAWAY, the increment of WINDOW_UPDATE.
    pub(crate) word: u32,
    /// The first bytes of a GOAWAY's debug data, in which the `h2` crate says what is wrong.
    pub(crate) debug: [u8; DEBUG_LEN],
}

/// The kinds of frames that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Data,
    Headers,
    Reset,
    /// SETTINGS, PING, PRIORITY, and unknown frames.
    Control,
    WindowUpdate,
    Continuation,
    GoAway,
    /// PUSH_PROMISE, which the crate has rules for.
    Other,
}

impl Frame {
    /// Whether the head of a request or response ends with this HEADERS or CONTINUATION frame.
    pub(crate) fn ends_head(&self) -> bool {
        self.flags & END_HEADERS != 0
    }

    /// Whether the message ends with it.
    pub(crate) fn ends_stream(&self) -> bool {
        self.flags & END_STREAM != 0
    }
}

/// Follows one direction of a connection.
#[derive(Debug)]
pub(crate) struct Frames {
    /// The head of the present frame and the bytes of its payload that are read, of which `seen` have arrived.
    head: [u8; HEAD_LEN + PAYLOAD_LEN],
    seen: usize,
    /// Bytes to skip: the rest of the present frame, or of the preface.
    skipped: usize,
}

impl Frames {
    /// Follows a direction in which `preface` bytes precede the first frame.
    pub(crate) fn after(preface: usize) -> Self {
        Self {
            head: [0; HEAD_LEN + PAYLOAD_LEN],
            seen: 0,
            skipped: preface,
        }
    }

    /// Follows further bytes; `take` is given each frame once its head is whole.
    pub(crate) fn follow(&mut self, mut bytes: &[u8], mut take: impl FnMut(Frame)) {
        loop {
            let skipped = self.skipped.min(bytes.len());
            bytes = &bytes[skipped..];
            self.skipped -= skipped;
            if bytes.is_empty() {
                return;
            }
            let wanted = HEAD_LEN + self.payload_len();
            let taken = (wanted - self.seen).min(bytes.len());
            self.head[self.seen..self.seen + taken].copy_from_slice(&bytes[..taken]);
            self.seen += taken;
            bytes = &bytes[taken..];
            // The head may say that there is more to look at.
            if self.seen == HEAD_LEN + self.payload_len() {
                let frame = self.frame();
                self.skipped = frame.len as usize - self.payload_len();
                self.seen = 0;
                take(frame);
            }
        }
    }

    /// How many bytes of the payload are read; 0 until the head has arrived.
    fn payload_len(&self) -> usize {
        let [a, b, c, kind, ..] = self.head;
        let len = u32::from_be_bytes([0, a, b, c]) as usize;
        match kind {
            _ if self.seen < HEAD_LEN => 0,
            RST_STREAM | WINDOW_UPDATE if len == WORD_LEN => WORD_LEN,
            GOAWAY => len.min(PAYLOAD_LEN),
            _ => 0,
        }
    }

    fn frame(&self) -> Frame {
        let [a, b, c, kind, flags, s0, s1, s2, s3, payload @ ..] = self.head;
        let (seen, mut known) = (self.payload_len(), [0; PAYLOAD_LEN]);
        known[..seen].copy_from_slice(&payload[..seen]);
        let [w0, w1, w2, w3, e0, e1, e2, e3, debug @ ..] = known;
        Frame {
            len: u32::from_be_bytes([0, a, b, c]),
            kind: match kind {
                0 => Kind::Data,
                1 => Kind::Headers,
                RST_STREAM => Kind::Reset,
                5 => Kind::Other,
                GOAWAY => Kind::GoAway,
                WINDOW_UPDATE => Kind::WindowUpdate,
                9 => Kind::Continuation,
                _ => Kind::Control,
            },
            flags,
            stream: u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]),
            word: match kind {
                GOAWAY => u32::from_be_bytes([e0, e1, e2, e3]),
                _ => u32::from_be_bytes([w0, w1, w2, w3]),
            },
            debug,
        }
    }
}

const HEAD_LEN: usize = 9;
const WORD_LEN: usize = 4;
/// Of a GOAWAY: a stream, a code, and some of the words.
const PAYLOAD_LEN: usize = 8 + DEBUG_LEN;
const DEBUG_LEN: usize = 10;
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let len = u32::try_from(payload.len()).expect("short").to_be_bytes();
        let head = [len[1], len[2], len[3], kind, flags, 0x80, 0, 0, stream];
        [&head[..], payload].concat()
    }

    #[test]
    fn frames_are_found_whatever_the_stream_was_cut_into() {
        let stream = [
            b"PRI".to_vec(),
            frame(4, 0, 0, &[]),
            frame(1, 5, 1, &[7; 300]),
            frame(8, 0, 0, &[0, 0, 1, 0]),
            frame(3, 0, 1, &[0, 0, 0, 8]),
            frame(3, 0, 1, &[0; 5]),
            frame(0, 1, 3, &[]),
            frame(7, 0, 0, b"\0\0\0\x01\0\0\0\x0btoo_many_resets"),
            frame(7, 0, 0, &[0; 8]),
            frame(200, 0, 3, &[1]),
        ]
        .concat();
        let expected = [
            (0, Kind::Control, 0, 0),
            (300, Kind::Headers, 1, 0),
            (4, Kind::WindowUpdate, 0, 256),
            (4, Kind::Reset, 1, 8),
            (5, Kind::Reset, 1, 0),
            (0, Kind::Data, 3, 0),
            (23, Kind::GoAway, 0, 11),
            (8, Kind::GoAway, 0, 0),
            (1, Kind::Control, 3, 0),
        ];
        for cut in [1, 2, 8, 9, 10, 13, 100, 1000] {
            let mut frames = Frames::after(3);
            let mut found = Vec::new();
            for piece in stream.chunks(cut) {
                frames.follow(piece, |it| {
                    found.push((it.len, it.kind, it.stream, it.word));
                });
            }
            assert_eq!(found, expected, "in pieces of {cut}");
        }
    }
}
