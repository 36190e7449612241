//! The client role: requests go out on streams, responses come in.

use bytes::BytesMut;
use catamaran_message::{
    BodyLength, Request, ResponseHead, Scheme, is_clean_target, is_sendable_host,
};
use http::Method;

use crate::conn::{Connection, Role};
use crate::encode;
use crate::error::{Fault, SendError};
use crate::event::Event;
use crate::frame::MAX_31_BITS;
use crate::limits::Limits;
use crate::response;
use crate::settings::Config;
use crate::streams::Half;

/// The client's end of one connection. Streams are named by their numbers.
#[derive(Debug)]
pub struct Client {
    /// The state and the functions that both roles share.
    pub connection: Connection,
    /// The number of the next stream.
    next: u32,
}

impl Client {
    /// The state of a new connection. Writes the preface and the settings to `out`.
    pub fn new(limits: Limits, config: Config, out: &mut BytesMut) -> Self {
        Self {
            connection: Connection::new(Role::Client, limits, config, out),
            next: 1,
        }
    }

    /// Takes the next event out of `input`; `None` if it needs more bytes. Answers that the protocol demands (settings,
    /// PING, resets) are written to `out`.
    ///
    /// # Errors
    /// A [`Fault`] is final: send it with [`Connection::go_away`], then close the connection. Further calls return it
    /// again.
    pub fn receive(
        &mut self,
        input: &mut BytesMut,
        out: &mut BytesMut,
    ) -> Result<Option<Event<ResponseHead>>, Fault> {
        let Some(received) = self.connection.receive(input, out)? else {
            return Ok(None);
        };
        let connection = &mut self.connection;
        Ok(Some(
            received.read(|id, ends| begin(connection, id, ends, out)),
        ))
    }

    /// The number of streams that the server allows to be open at a time; 100 until its settings have arrived.
    pub fn streams_max(&self) -> usize {
        self.connection.peer.streams_max as usize
    }

    /// Whether no further request can be sent: the server has announced by GOAWAY that it takes none, or the stream
    /// numbers are used up.
    pub fn is_leaving(&self) -> bool {
        self.connection.peer_leaves || self.next > MAX_31_BITS
    }

    /// Writes the head of a request, and returns its stream. `ends`: the request has no body.
    ///
    /// # Errors
    /// See [`SendError`]; nothing was written.
    pub fn send_request(
        &mut self,
        request: &Request<'_>,
        scheme: Scheme,
        out: &mut BytesMut,
    ) -> Result<u32, SendError> {
        if self.is_leaving() || self.connection.streams.len() >= self.streams_max() {
            return Err(SendError::NoStream);
        }
        check(request)?;
        let stream = self.next;
        self.next += 2;
        let ends = request.body == BodyLength::Known(0);
        let length = match request.body {
            // A method that usually has no body does not announce that there is none (RFC 9110, section 8.6).
            BodyLength::Known(0) if !expects_body(request.method) => None,
            BodyLength::Known(length) => Some(length),
            BodyLength::Unknown => None,
        };
        let scheme_word: &[u8] = match scheme {
            Scheme::Http => b"http",
            Scheme::Https => b"https",
        };
        let outbound = if ends { Half::Ended } else { Half::Body };
        self.connection.open(stream, Half::Awaited, outbound);
        if let Some(opened) = self.connection.streams.get(stream) {
            opened.is_head = request.method == Method::HEAD;
            opened.unsent = length;
        }
        encode::request(
            &mut self.connection,
            stream,
            request,
            scheme_word,
            length,
            ends,
            out,
        );
        Ok(stream)
    }
}

/// Reads the block that was received last as the head of a response.
fn begin(
    connection: &mut Connection,
    id: u32,
    ends: bool,
    out: &mut BytesMut,
) -> Event<ResponseHead> {
    let stream = connection.streams.get(id);
    let is_head = stream.is_some_and(|stream| stream.is_head);
    let mut head = Box::new(ResponseHead::default());
    let limits = connection.limits;
    let missing = match response::read(&mut connection.block, ends, is_head, &limits, &mut head) {
        Ok(missing) => missing,
        Err(fault) => return connection.fail(id, fault, out),
    };
    if !head.status.is_informational() {
        if let Some(stream) = connection.streams.get(id) {
            stream.inbound = Half::Body;
            stream.missing = missing;
        }
        if ends {
            connection.end_inbound(id, out);
        }
    }
    Event::Head {
        stream: id,
        head,
        ends,
    }
}

/// Checks that the server would read the request as it is meant.
fn check(request: &Request<'_>) -> Result<(), SendError> {
    if *request.method == Method::CONNECT {
        return Err(SendError::Connect);
    }
    let is_valid_path = match request.path {
        // The whole server.
        b"*" => request.method == Method::OPTIONS && request.query.is_none(),
        path => path.first() == Some(&b'/') && is_clean_target(path, false),
    };
    let is_valid_query = match request.query {
        Some(query) => is_clean_target(query, true),
        None => true,
    };
    if !is_valid_path || !is_valid_query {
        return Err(SendError::Target);
    }
    if !is_sendable_host(request.host) {
        return Err(SendError::Host);
    }
    Ok(())
}

fn expects_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}
