//! The events that the bytes of a connection contain, in either role.

use bytes::Bytes;
use catamaran_message::Fields;

use crate::error::{Code, StreamFault};

/// An event on a connection. `H` is the type of the heads that the peer sends. Streams are named by their numbers.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<H> {
    /// A head has arrived. A response may have several: interim heads come before the final one.
    Head {
        /// The stream of the message.
        stream: u32,
        /// The head.
        head: Box<H>,
        /// Whether the message ends with its head.
        ends: bool,
    },
    /// A malformed request, which the server must answer with [`StreamFault::status`].
    Refused {
        /// The stream, which is open for the answer.
        stream: u32,
        /// The fault of the request.
        fault: StreamFault,
        /// Whether the request ends with its head.
        ends: bool,
    },
    /// A piece of a body; empty only if it is the last one. Call [`crate::conn::Connection::credit`] once the bytes
    /// were processed.
    Body {
        /// The stream of the message.
        stream: u32,
        /// The bytes of the body.
        data: Bytes,
        /// Whether the message ends with this piece.
        ends: bool,
    },
    /// The trailers, with which the message ends.
    Trailers {
        /// The stream of the message.
        stream: u32,
        /// The fields.
        fields: Fields,
    },
    /// The peer has reset a stream. For a client, [`Code::REFUSED_STREAM`] proves that the server did not process the
    /// request; [`Code::NO_ERROR`] after a response means that the rest of the request's body is not needed.
    Reset {
        /// The stream.
        stream: u32,
        /// The reason that the peer gave.
        code: Code,
    },
    /// This codec has given up a stream, because of a fault of the peer. The stream may have had a [`Self::Head`]. For
    /// a client, [`StreamFault::NotProcessed`] proves that the server did not process the request.
    Failed {
        /// The stream.
        stream: u32,
        /// The fault of the peer.
        fault: StreamFault,
    },
    /// A window that was used up has room again: body bytes may be sent on this stream, or on all streams if the number
    /// is 0.
    Window {
        /// The stream; 0 stands for all.
        stream: u32,
    },
    /// The peer has announced that the connection ends: it neither opens nor takes further streams. Each request that
    /// it does not process fails with an event of its own.
    GoAway {
        /// The reason that the peer gave.
        code: Code,
    },
    /// The answer to [`crate::conn::Connection::ping`] has arrived.
    Pong,
}

/// The event that a frame yields, before the role has read its head: that is in the block that was received last.
pub(crate) type Received = Event<()>;

impl Received {
    /// The event of a block that is a head.
    pub(crate) fn block(stream: u32, ends: bool) -> Self {
        let head = Box::new(());
        Self::Head { stream, head, ends }
    }

    /// The event with its head, which `read` reads from the stream's number and whether the message ends.
    pub(crate) fn read<H>(self, read: impl FnOnce(u32, bool) -> Event<H>) -> Event<H> {
        match self {
            Self::Head { stream, ends, .. } => read(stream, ends),
            Self::Refused {
                stream,
                fault,
                ends,
            } => Event::Refused {
                stream,
                fault,
                ends,
            },
            Self::Body { stream, data, ends } => Event::Body { stream, data, ends },
            Self::Trailers { stream, fields } => Event::Trailers { stream, fields },
            Self::Reset { stream, code } => Event::Reset { stream, code },
            Self::Failed { stream, fault } => Event::Failed { stream, fault },
            Self::Window { stream } => Event::Window { stream },
            Self::GoAway { code } => Event::GoAway { code },
            Self::Pong => Event::Pong,
        }
    }
}
