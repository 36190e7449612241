//! The server role: requests come in on streams, responses go out.

use bytes::BytesMut;
use catamaran_message::{BodyLength, Fields, RequestHead, Response};
use http::StatusCode;

use crate::block::ReceivedBlock;
use crate::conn::{Connection, Role};
use crate::encode;
use crate::error::{Fault, SendError, StreamFault};
use crate::event::Event;
use crate::hpack::{Decoder, Encoder, LineName, Pseudo};
use crate::limits::Limits;
use crate::request;
use crate::settings::Config;
use crate::streams::Half;

/// One connection as its server sees it. Streams are told by their numbers.
#[derive(Debug)]
pub struct Server {
    /// What both roles share.
    pub connection: Connection,
    /// The memory of a head that is not needed any more.
    spare: Option<Box<RequestHead>>,
}

impl Server {
    /// A fresh connection; its settings are written.
    pub fn new(limits: Limits, config: Config, out: &mut BytesMut) -> Self {
        Self {
            connection: Connection::new(Role::Server, limits, config, out),
            spare: None,
        }
    }

    /// Takes the next event out of `input`; `None` means: more bytes, please. What the protocol answers by itself
    /// (settings, PING, resets) is written to `out`.
    ///
    /// # Errors
    /// A [`Fault`] is final: say so with [`Connection::go_away`], then close. Further calls return it again.
    pub fn receive(
        &mut self,
        input: &mut BytesMut,
        out: &mut BytesMut,
    ) -> Result<Option<Event<RequestHead>>, Fault> {
        let Some(received) = self.connection.receive(input, out)? else {
            return Ok(None);
        };
        let head = &mut self.spare;
        let begin = |connection: &mut Connection, id, ends, out: &mut BytesMut| {
            begin(connection, id, ends, head, out)
        };
        Ok(Some(Event::new(received, &mut self.connection, out, begin)))
    }

    /// Takes back a head that is not needed any more, for the next one to use its memory.
    pub fn recycle(&mut self, mut head: Box<RequestHead>) {
        head.clear();
        self.spare = Some(head);
    }

    /// Writes an interim response (1xx but 101).
    ///
    /// # Errors
    /// See [`SendError`]; nothing was written.
    pub fn send_interim(
        &mut self,
        stream: u32,
        status: StatusCode,
        headers: &Fields,
        out: &mut BytesMut,
    ) -> Result<(), SendError> {
        self.awaited(stream)?;
        if !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(SendError::Status);
        }
        encode::response(
            &mut self.connection,
            stream,
            status,
            headers,
            None,
            false,
            out,
        );
        Ok(())
    }

    /// Writes the final head of a response. `ends`: nothing follows it. A response to HEAD, 204 and 304 have no
    /// body, whatever their head announces. Returns whether nothing follows.
    ///
    /// # Errors
    /// See [`SendError`]; nothing was written.
    pub fn send_head(
        &mut self,
        stream: u32,
        head: &Response<'_>,
        ends: bool,
        out: &mut BytesMut,
    ) -> Result<bool, SendError> {
        let is_head = self.awaited(stream)?;
        if head.status.is_informational() {
            return Err(SendError::Status);
        }
        let has_none = head.status == StatusCode::NO_CONTENT;
        let is_bodiless = is_head || has_none || head.status == StatusCode::NOT_MODIFIED;
        let length = match head.body {
            BodyLength::Known(length) if !has_none => Some(length),
            BodyLength::Known(_) | BodyLength::Unknown => None,
        };
        if ends && !is_bodiless && length.is_some_and(|length| length > 0) {
            return Err(SendError::Length);
        }
        let ends = ends || is_bodiless || length == Some(0);
        encode::response(
            &mut self.connection,
            stream,
            head.status,
            head.headers,
            length,
            ends,
            out,
        );
        if let Some(it) = self.connection.streams.get(stream) {
            it.outbound = Half::Body;
            it.unsent = length;
        }
        if ends {
            self.connection.end_outbound(stream, out);
        }
        Ok(ends)
    }

    /// Whether the request of a stream whose response has not begun is HEAD.
    fn awaited(&mut self, stream: u32) -> Result<bool, SendError> {
        let open = self.connection.streams.get(stream);
        let awaited = open.filter(|it| it.outbound == Half::Awaited);
        awaited.map(|it| it.is_head).ok_or(SendError::OutOfTurn)
    }
}

/// Reads the head of a request as a server that receives these fields, pseudo-fields first. `ends`: no body follows.
/// `takes_tunnels`: extended CONNECT is allowed (RFC 8441).
///
/// # Errors
/// The server ends the connection. Within `Ok`: what is wrong with the request alone.
pub fn read_request<'f>(
    fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
    ends: bool,
    takes_tunnels: bool,
    limits: &Limits,
) -> Result<Result<Box<RequestHead>, StreamFault>, Fault> {
    let mut bytes = BytesMut::new();
    let mut encoder = Encoder::default();
    let mut compressed = encoder.block(&mut bytes);
    for (name, value) in fields {
        compressed.field(LineName::read(name), value);
    }
    let mut block = ReceivedBlock::default();
    block.read(&mut Decoder::default(), &bytes, limits)?;
    let mut head = Box::new(RequestHead::empty());
    let read = request::read(&mut block, ends, takes_tunnels, limits, &mut head);
    Ok(read.map(|_| head))
}

/// Reads the block as the head of a request.
fn begin(
    connection: &mut Connection,
    id: u32,
    ends: bool,
    spare: &mut Option<Box<RequestHead>>,
    out: &mut BytesMut,
) -> Event<RequestHead> {
    let mut head = spare
        .take()
        .unwrap_or_else(|| Box::new(RequestHead::empty()));
    let (takes_tunnels, limits) = (connection.takes_tunnels(), connection.limits);
    let is_head = connection.block.pseudo(Pseudo::Method) == Some(b"HEAD");
    if let Some(stream) = connection.streams.get(id) {
        stream.is_head = is_head;
    }
    let read = request::read(
        &mut connection.block,
        ends,
        takes_tunnels,
        &limits,
        &mut head,
    );
    match (read, connection.streams.get(id)) {
        (Ok(missing), Some(stream)) => {
            stream.missing = missing;
            Event::Head {
                stream: id,
                head,
                ends,
            }
        }
        (Err(fault), Some(_)) if fault.status().is_some() => Event::Refused {
            stream: id,
            fault,
            ends,
        },
        (Err(fault), _) => Event::fail(connection, id, fault, out),
        (Ok(_), None) => Event::fail(connection, id, StreamFault::AfterEnd, out),
    }
}
