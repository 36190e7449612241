//! Produces a response body piece by piece from its description, [`Body`].

use std::time::Duration;

use bytes::Bytes;

use crate::handler::{Body, BodyLength};

/// The part of a response body that has not been produced yet.
#[derive(Debug, Default)]
pub(crate) enum Source {
    #[default]
    Done,
    Full(Bytes),
    Repeat {
        pattern: Bytes,
        /// The index in `pattern` of the next byte.
        offset: usize,
        left: u64,
    },
    Stream {
        chunk: Bytes,
        left: u64,
        every: Duration,
        /// Whether the pause before the next chunk is still due.
        pause: bool,
    },
    Echo {
        prefix: Bytes,
    },
}

/// The next step of sending a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Send these bytes, at most [`PIECE_MAX`].
    Data(Bytes),
    /// Send what there is, then wait this long.
    Pause(Duration),
    /// Pass on a piece of the request's body; this body ends where that does.
    Request,
    /// The body is complete.
    End,
}

/// The most bytes of a piece: enough for any AJP packet, few enough to keep the output
/// bounded.
pub(crate) const PIECE_MAX: usize = 64 * 1024;

impl Source {
    pub(crate) fn new(body: Body) -> Self {
        match body {
            Body::Full(data) => Self::Full(data),
            Body::Repeat { pattern, length } => Self::Repeat {
                pattern,
                offset: 0,
                left: length,
            },
            Body::Stream {
                chunk,
                count,
                every,
            } => Self::Stream {
                chunk,
                left: count,
                every,
                pause: false,
            },
            Body::Echo { prefix } => Self::Echo { prefix },
        }
    }

    /// The next piece of the body. [`Piece::Request`] is repeated: the caller knows where the request's body ends.
    pub(crate) fn next(&mut self) -> Piece {
        match self {
            Self::Done => Piece::End,
            Self::Full(data) if data.is_empty() => Piece::End,
            Self::Full(data) => Piece::Data(take(data)),
            Self::Repeat {
                pattern,
                offset,
                left,
            } => next_repeat(pattern, offset, left),
            Self::Stream {
                chunk,
                left,
                every,
                pause,
            } => {
                if *left == 0 {
                    return Piece::End;
                }
                if std::mem::take(pause) {
                    return Piece::Pause(*every);
                }
                *left -= 1;
                // There is no pause after the last chunk.
                *pause = *left > 0 && !every.is_zero();
                Piece::Data(chunk.clone())
            }
            Self::Echo { prefix } if prefix.is_empty() => Piece::Request,
            Self::Echo { prefix } => Piece::Data(take(prefix)),
        }
    }
}

fn take(data: &mut Bytes) -> Bytes {
    data.split_to(data.len().min(PIECE_MAX))
}

/// The next piece of a repeated pattern, from `offset` at most to the pattern's end; it shares the pattern's memory.
fn next_repeat(pattern: &Bytes, offset: &mut usize, left: &mut u64) -> Piece {
    let available = (pattern.len() - *offset).min(PIECE_MAX);
    let size = usize::try_from(*left).map_or(available, |left| left.min(available));
    if size == 0 {
        return Piece::End;
    }
    let piece = pattern.slice(*offset..*offset + size);
    *offset = (*offset + size) % pattern.len();
    *left -= size as u64;
    Piece::Data(piece)
}

impl Body {
    /// The length of the body to announce. `request` is the length of the request's body, which `Echo` sends back.
    pub(crate) fn length(&self, request: BodyLength) -> BodyLength {
        match self {
            Self::Full(data) => BodyLength::Known(data.len() as u64),
            Self::Repeat { pattern, .. } if pattern.is_empty() => BodyLength::Known(0),
            Self::Repeat { length, .. } => BodyLength::Known(*length),
            Self::Stream { .. } => BodyLength::Unknown,
            Self::Echo { prefix } => match request {
                BodyLength::Known(length) => length
                    .checked_add(prefix.len() as u64)
                    .map_or(BodyLength::Unknown, BodyLength::Known),
                BodyLength::Unknown => BodyLength::Unknown,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(body: Body) -> Vec<Piece> {
        let mut source = Source::new(body);
        let next = std::iter::from_fn(|| match source.next() {
            Piece::End => None,
            piece => Some(piece),
        });
        next.take(100).collect()
    }

    fn data(bytes: &'static str) -> Piece {
        Piece::Data(Bytes::from_static(bytes.as_bytes()))
    }

    #[test]
    fn a_pattern_is_repeated_and_cut_at_its_length() {
        let pattern = Bytes::from_static(b"abc");
        let repeat = |length| {
            pieces(Body::Repeat {
                pattern: pattern.clone(),
                length,
            })
        };
        assert_eq!(repeat(7), [data("abc"), data("abc"), data("a")]);
        assert_eq!(repeat(3), [data("abc")]);
        assert_eq!(repeat(0), []);
        assert_eq!(
            pieces(Body::Repeat {
                pattern: Bytes::new(),
                length: 5
            }),
            []
        );
    }

    #[test]
    fn a_stream_pauses_between_chunks_and_not_after_the_last() {
        let every = Duration::from_millis(5);
        let stream = |count, every| {
            pieces(Body::Stream {
                chunk: Bytes::from_static(b"x"),
                count,
                every,
            })
        };
        assert_eq!(
            stream(2, every),
            [data("x"), Piece::Pause(every), data("x")]
        );
        assert_eq!(stream(2, Duration::ZERO), [data("x"), data("x")]);
        assert_eq!(stream(0, every), []);
    }

    #[test]
    fn large_bodies_come_in_bounded_pieces() {
        let body = Bytes::from(vec![b'x'; 2 * PIECE_MAX + 1]);
        let sizes: Vec<usize> = pieces(Body::Full(body))
            .iter()
            .map(|piece| match piece {
                Piece::Data(data) => data.len(),
                _ => 0,
            })
            .collect();
        assert_eq!(sizes, [PIECE_MAX, PIECE_MAX, 1]);
    }

    #[test]
    fn an_echo_too_long_to_announce_is_of_unknown_length() {
        let echo = Body::Echo {
            prefix: Bytes::from_static(b"ab"),
        };
        assert_eq!(echo.length(BodyLength::Known(3)), BodyLength::Known(5));
        assert_eq!(
            echo.length(BodyLength::Known(u64::MAX)),
            BodyLength::Unknown
        );
        assert_eq!(echo.length(BodyLength::Unknown), BodyLength::Unknown);
    }
}
