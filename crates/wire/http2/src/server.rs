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

/// The server's end of one connection. Streams are named by their numbers.
#[derive(Debug)]
pub struct Server {
    /// The state and the functions that both roles share.
    pub connection: Connection,
}

impl Server {
    /// The state of a new connection. Writes the settings to `out`.
    pub fn new(limits: Limits, config: Config, out: &mut BytesMut) -> Self {
        Self {
            connection: Connection::new(Role::Server, limits, config, out),
        }
    }

    /// Takes the next event out of `input`; `None` if it needs more bytes. Answers that the protocol demands (settings,
    /// PING, resets) are written to `out`. A request is read into the head that `empty_head` returns, so that the
    /// memory of an earlier head can be used.
    ///
    /// # Errors
    /// A [`Fault`] is final: send it with [`Connection::go_away`], then close the connection. Further calls return it
    /// again.
    pub fn receive(
        &mut self,
        input: &mut BytesMut,
        out: &mut BytesMut,
        empty_head: impl FnOnce() -> Box<RequestHead>,
    ) -> Result<Option<Event<RequestHead>>, Fault> {
        let Some(received) = self.connection.receive(input, out)? else {
            return Ok(None);
        };
        let connection = &mut self.connection;
        Ok(Some(received.read(|id, ends| {
            begin(connection, id, ends, empty_head(), out)
        })))
    }

    /// Writes an interim response (1xx except 101).
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

    /// Writes the final head of a response. `ends`: the response ends with it. A response to HEAD, a 204 and a 304 have
    /// no body, whatever their heads announce. Returns whether the response ends with its head.
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
        let is_no_content = head.status == StatusCode::NO_CONTENT;
        let is_bodiless = is_head || is_no_content || head.status == StatusCode::NOT_MODIFIED;
        let length = match head.body {
            // A 204 must not announce a length (RFC 9110, section 8.6).
            BodyLength::Known(length) if !is_no_content => Some(length),
            BodyLength::Known(_) | BodyLength::Unknown => None,
        };
        if ends && !is_bodiless && length.is_some_and(|length| length > 0) {
            return Err(SendError::Length);
        }
        let ends_with_head = ends || is_bodiless || length == Some(0);
        encode::response(
            &mut self.connection,
            stream,
            head.status,
            head.headers,
            length,
            ends_with_head,
            out,
        );
        if let Some(open) = self.connection.streams.get(stream) {
            open.outbound = Half::Body;
            open.unsent = length;
        }
        if ends_with_head {
            self.connection.end_outbound(stream, out);
        }
        Ok(ends_with_head)
    }

    /// Whether the request of this stream is HEAD.
    ///
    /// # Errors
    /// The stream does not wait for the head of a response.
    fn awaited(&mut self, stream: u32) -> Result<bool, SendError> {
        match self.connection.streams.get(stream) {
            Some(open) if open.outbound == Half::Awaited => Ok(open.is_head),
            _ => Err(SendError::OutOfTurn),
        }
    }
}

/// Reads the head of a request from a list of fields, as a server reads one that it receives; pseudo-fields come first.
/// `ends`: the request has no body. `takes_tunnels`: extended CONNECT is allowed (RFC 8441).
///
/// # Errors
/// A [`Fault`] with which the server would end the connection. Within `Ok`: a fault of this request alone.
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

/// Reads the block that was received last as the head of a request.
fn begin(
    connection: &mut Connection,
    id: u32,
    ends: bool,
    mut head: Box<RequestHead>,
    out: &mut BytesMut,
) -> Event<RequestHead> {
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
    let Some(stream) = connection.streams.get(id) else {
        let fault = read.err().unwrap_or(StreamFault::AfterEnd);
        return connection.fail(id, fault, out);
    };
    match read {
        Ok(missing) => {
            stream.missing = missing;
            Event::Head {
                stream: id,
                head,
                ends,
            }
        }
        Err(fault) if fault.status().is_some() => Event::Refused {
            stream: id,
            fault,
            ends,
        },
        Err(fault) => connection.fail(id, fault, out),
    }
}
