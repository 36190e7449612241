//! The client role: requests go out, responses come in.
//!
//! One exchange at a time, never pipelined. Request and response bodies are independent: a
//! response may be complete before its request is.

use bytes::{Bytes, BytesMut};
use catamaran_message::{BodyLength, Request, ResponseHead, is_clean_target, is_sendable_host};
use http::{Method, StatusCode};

use crate::body::{Encoder, Piece};
use crate::conn::{Conn, Role};
use crate::error::{BodyError, Fault, RequestError};
use crate::head::encode::{self, Announcement, ConnectionOption};
use crate::head::response::{self, RequestTraits, Rest};
use crate::limits::Limits;

/// The client's end of one connection.
#[derive(Debug)]
pub struct Client {
    conn: Conn,
    /// Whether the current request is HEAD.
    is_head: bool,
    /// The protocol that the current request asks to change to.
    upgrade: Option<Box<[u8]>>,
    /// Whether an interim response to the current request has arrived.
    is_begun: bool,
    /// The head that is being received, or an empty one whose memory the next head uses.
    spare: Option<Box<ResponseHead>>,
}

/// An event that [`Client::receive`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// An interim response (1xx), before the final one. The caller has to limit their number and the time
    /// they take.
    Interim(Box<ResponseHead>),
    /// The final response begins.
    Head(Box<ResponseHead>),
    /// A piece of the response's body, never empty.
    Body(Bytes),
    /// The server changes to the protocol that [`Client::send_upgrade`] asked for; Upgrade is among the
    /// fields. The bytes of that protocol follow as [`Self::Body`], up to [`Self::End`];
    /// [`Client::send_data`] sends bytes of it.
    Upgraded(Box<ResponseHead>),
    /// The response is complete; comes once after every [`Self::Head`].
    End,
}

impl Client {
    /// The state of a new connection.
    pub fn new(limits: Limits) -> Self {
        let conn = Conn::new(Role::Client, limits);
        Self {
            conn,
            is_head: false,
            upgrade: None,
            is_begun: false,
            spare: None,
        }
    }

    /// Writes a request head, as HTTP/1.1 in origin form. No body, `Known(0)`, is announced as
    /// `Content-Length: 0` unless the method is one that usually has none (RFC 9110 section 8.6).
    /// Host, Content-Length, Transfer-Encoding, Connection, Keep-Alive, Proxy-Connection, TE, Trailer,
    /// Upgrade, HTTP2-Settings and Expect in its fields are not written.
    ///
    /// # Errors
    /// See [`RequestError`]; nothing was written.
    pub fn send_request(
        &mut self,
        request: &Request<'_>,
        out: &mut BytesMut,
    ) -> Result<(), RequestError> {
        let connection = if self.conn.is_persistent() {
            ConnectionOption::Nothing
        } else {
            ConnectionOption::Close
        };
        self.upgrade = None;
        self.begin(request, connection, out)
    }

    /// As [`Self::send_request`], for a request without a body that asks the server to change to the
    /// protocol `token` (RFC 9110 section 7.8).
    ///
    /// # Errors
    /// See [`RequestError`]; nothing was written. A request with a body is [`RequestError::OutOfTurn`].
    pub fn send_upgrade(
        &mut self,
        request: &Request<'_>,
        token: &[u8],
        out: &mut BytesMut,
    ) -> Result<(), RequestError> {
        if request.body != BodyLength::Known(0) {
            return Err(RequestError::OutOfTurn);
        }
        self.upgrade = Some(token.into());
        self.begin(request, ConnectionOption::Upgrade(token), out)
    }

    fn begin(
        &mut self,
        request: &Request<'_>,
        connection: ConnectionOption<'_>,
        out: &mut BytesMut,
    ) -> Result<(), RequestError> {
        if !self.conn.may_begin() {
            return Err(RequestError::OutOfTurn);
        }
        check(request)?;
        let (announcement, encoder) = framing(request);
        encode::begin_request(request, out);
        encode::end_head(announcement, connection, out);
        self.is_head = *request.method == Method::HEAD;
        self.is_begun = false;
        self.conn.expect_head();
        self.conn.begin_outbound(encoder);
        if encoder == Encoder::Length(0) {
            let ended = self.conn.end_outbound(out);
            debug_assert_eq!(ended, Ok(()), "an empty body can always end");
        }
        Ok(())
    }

    /// Begins a piece of `len` body bytes. Returns how many of them the caller must write to the connection
    /// next, before [`finish_data`](Self::finish_data): all, or only as many as Content-Length still
    /// allows.
    #[must_use = "exactly that many bytes have to follow"]
    pub fn begin_data(&mut self, len: usize, out: &mut BytesMut) -> usize {
        self.conn.begin_data(len, out)
    }

    /// Finishes the piece that [`begin_data`](Self::begin_data) began.
    pub fn finish_data(&mut self, out: &mut BytesMut) {
        self.conn.finish_data(out);
    }

    /// Writes a piece of the body: begins it, copies `data`, and finishes it.
    pub fn send_data(&mut self, data: &[u8], out: &mut BytesMut) {
        self.conn.send_data(data, out);
    }

    /// Ends the request body. A request without a body has ended with its head: then, as after
    /// the first call, this does nothing.
    ///
    /// # Errors
    /// The body is not what the head announced: cut the connection.
    pub fn finish_body(&mut self, out: &mut BytesMut) -> Result<(), BodyError> {
        match self.conn.end_outbound(out) {
            Err(BodyError::OutOfTurn) => Ok(()),
            ended => ended,
        }
    }

    /// Takes the next event out of `input`; `None` if it needs more bytes.
    ///
    /// # Errors
    /// A [`Fault`] is final: drop the connection. The same fault is returned again by further calls.
    pub fn receive(&mut self, input: &mut BytesMut) -> Result<Option<ClientEvent>, Fault> {
        if self.conn.awaits_head() {
            return self.receive_head(input);
        }
        Ok(match self.conn.receive(input)? {
            Some(Piece::Data(data)) => Some(ClientEvent::Body(data)),
            Some(Piece::End) => Some(ClientEvent::End),
            None => None,
        })
    }

    /// Takes back a head that is not needed any more; the next one uses its memory.
    pub fn recycle(&mut self, mut head: Box<ResponseHead>) {
        // While a head is being received, `spare` holds it.
        if self.spare.is_none() {
            head.clear();
            self.spare = Some(head);
        }
    }

    /// Handles the server's close of its sending side. Call it after `receive` has returned `None`. Returns
    /// `Some(End)` for a body that ends with the connection, `None` between exchanges.
    ///
    /// # Errors
    /// The stream ended inside a head or body, or before a response.
    pub fn receive_eof(&mut self) -> Result<Option<ClientEvent>, Fault> {
        let is_end = self.conn.receive_eof(self.is_begun)?;
        Ok(is_end.then_some(ClientEvent::End))
    }

    /// Makes the connection close after this exchange, or after the next one if it is idle. A request that
    /// is sent later announces it.
    pub fn close_after(&mut self) {
        self.conn.close_after();
    }

    /// Whether the response that is being received has a framing that shows its end. If not, it ends with
    /// the connection, and a response that was cut looks complete.
    pub fn is_framed(&self) -> bool {
        self.conn.is_framed()
    }

    /// Whether no exchange is under way and nothing is owed.
    pub fn is_idle(&self) -> bool {
        self.conn.is_idle()
    }

    /// Whether another exchange may follow: both messages ended by their framing, and the server allows it.
    /// The caller must also check that its input buffer is empty.
    pub fn can_reuse(&self) -> bool {
        self.conn.can_reuse()
    }

    fn receive_head(&mut self, input: &mut BytesMut) -> Result<Option<ClientEvent>, Fault> {
        let head = self.spare.get_or_insert_default();
        let Some(raw) = self.conn.receive_head(input, &mut head.headers)? else {
            return Ok(None);
        };
        let request = RequestTraits {
            is_head: self.is_head,
            upgrade: self.upgrade.as_deref(),
        };
        let rest = response::decode(&raw, request, head).map_err(|fault| self.conn.fail(fault))?;
        let complete = self.spare.take();
        Ok(complete.map(|head| self.begin_response(head, rest)))
    }

    fn begin_response(&mut self, head: Box<ResponseHead>, rest: Rest) -> ClientEvent {
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            self.conn.open_tunnel();
            return ClientEvent::Upgraded(head);
        }
        if head.status.is_informational() {
            self.is_begun = true;
            self.conn.expect_head();
            return ClientEvent::Interim(head);
        }
        if !rest.keep_alive {
            self.conn.close_after();
        }
        self.conn.expect_body(rest.decoder);
        ClientEvent::Head(head)
    }
}

/// Checks that a strict reader would accept the request.
fn check(request: &Request<'_>) -> Result<(), RequestError> {
    if *request.method == Method::CONNECT {
        return Err(RequestError::Connect);
    }
    let is_valid_path = match request.path {
        // The whole server.
        b"*" => *request.method == Method::OPTIONS && request.query.is_none(),
        path => path.starts_with(b"/") && is_clean_target(path, false),
    };
    let is_valid_query = match request.query {
        Some(query) => is_clean_target(query, true),
        None => true,
    };
    if !is_valid_path || !is_valid_query {
        return Err(RequestError::Target);
    }
    if !is_sendable_host(request.host) {
        return Err(RequestError::Host);
    }
    Ok(())
}

/// How a request body is announced and written.
fn framing(request: &Request<'_>) -> (Announcement, Encoder) {
    const WITHOUT_BODY: [Method; 5] = [
        Method::GET,
        Method::HEAD,
        Method::OPTIONS,
        Method::TRACE,
        Method::DELETE,
    ];
    match request.body {
        BodyLength::Unknown => (Announcement::Chunked, Encoder::Chunked { open: false }),
        BodyLength::Known(0) if WITHOUT_BODY.contains(request.method) => {
            (Announcement::Nothing, Encoder::Length(0))
        }
        BodyLength::Known(length) => (Announcement::Length(length), Encoder::Length(length)),
    }
}
