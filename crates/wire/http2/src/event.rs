//! What is received on a connection, in either role.

use bytes::{Bytes, BytesMut};
use catamaran_message::Fields;

use crate::conn::{Connection, Received};
use crate::error::{Code, StreamFault};

/// What was received. `H` is the head that the peer sends. Streams are told by their numbers.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<H> {
    /// A message begins. A response may begin several times, with interim heads first.
    Head {
        /// Its stream.
        stream: u32,
        /// Its head.
        head: Box<H>,
        /// Nothing follows.
        ends: bool,
    },
    /// A request that is to be answered with [`StreamFault::status`].
    Refused {
        /// Its stream, which is open for the answer.
        stream: u32,
        /// What is wrong with it.
        fault: StreamFault,
        /// Nothing follows.
        ends: bool,
    },
    /// A piece of a body, which may be empty if it ends. [`Connection::credit`] takes note that it was taken.
    Body {
        /// Its stream.
        stream: u32,
        /// Its bytes.
        data: Bytes,
        /// Nothing follows.
        ends: bool,
    },
    /// The fields behind a body, which end it.
    Trailers {
        /// Their stream.
        stream: u32,
        /// The fields.
        fields: Fields,
    },
    /// The peer has given a stream up. To a client [`Code::REFUSED_STREAM`] is proof that its request was not
    /// looked at; [`Code::NO_ERROR`] behind a response says that no more of the request's body is needed.
    Reset {
        /// The stream.
        stream: u32,
        /// Why.
        code: Code,
    },
    /// The codec has given a stream up, which [`Self::Head`] may have told of before. To a client
    /// [`StreamFault::NotProcessed`] is proof that its request was not looked at.
    Failed {
        /// The stream.
        stream: u32,
        /// What is wrong with it.
        fault: StreamFault,
    },
    /// More may be sent on a stream, or with the number 0 on all of them.
    Window {
        /// The stream, or 0.
        stream: u32,
    },
    /// The peer opens or takes no further streams. Requests that it has not looked at fail next.
    GoAway {
        /// Why.
        code: Code,
    },
    /// The answer to [`Connection::ping`].
    Pong,
}

impl<H> Event<H> {
    /// What a frame came to; `begin` reads a block that is a head.
    pub(crate) fn new(
        received: Received,
        connection: &mut Connection,
        out: &mut BytesMut,
        begin: impl FnOnce(&mut Connection, u32, bool, &mut BytesMut) -> Self,
    ) -> Self {
        match received {
            Received::Block {
                id,
                is_trailers,
                ends,
            } if !is_trailers => begin(connection, id, ends, out),
            Received::Block { id, .. } => Self::trailers(connection, id, out),
            Received::Data { id, data, ends } => Self::Body {
                stream: id,
                data,
                ends,
            },
            Received::Reset { id, code } => Self::Reset { stream: id, code },
            Received::Refused { id, fault } => Self::Failed { stream: id, fault },
            Received::Window { id } => Self::Window { stream: id },
            Received::GoAway { code } => Self::GoAway { code },
            Received::Pong => Self::Pong,
        }
    }

    fn trailers(connection: &mut Connection, id: u32, out: &mut BytesMut) -> Self {
        let block = &mut connection.block;
        match block.check(&connection.limits) {
            Ok(()) if !block.has_pseudo_but(&[]) => Self::Trailers {
                stream: id,
                fields: std::mem::take(&mut block.fields),
            },
            Ok(()) => Self::fail(connection, id, StreamFault::Pseudo, out),
            Err(fault) => Self::fail(connection, id, fault, out),
        }
    }

    /// Resets a stream for what is wrong with it.
    pub(crate) fn fail(
        connection: &mut Connection,
        id: u32,
        fault: StreamFault,
        out: &mut BytesMut,
    ) -> Self {
        connection.refuse(id, fault, out);
        Self::Failed { stream: id, fault }
    }
}
