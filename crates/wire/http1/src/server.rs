//! The server role: requests come in, responses go out.
//!
//! One exchange at a time: pipelined requests stay in the input until the response before them has
//! ended. The framing of a response is chosen by its length and the client's version.

use bytes::{Bytes, BytesMut};
use catamaran_message::{BodyLength, Fields, RequestHead, Response, name};
use http::{Method, StatusCode, Version};

use crate::body::{Decoder, Encoder, Piece};
use crate::conn::{Conn, Role};
use crate::error::{BodyError, Fault, ResponseError};
use crate::head::encode::{self, Announcement, ConnectionOption};
use crate::head::request;
use crate::limits::Limits;

/// The server's end of one connection.
#[derive(Debug)]
pub struct Server {
    conn: Conn,
    /// The current request, from its head until both messages have ended.
    exchange: Option<Exchange>,
    /// The head that is being received, or an empty one whose memory the next head uses.
    spare: Option<Box<RequestHead>>,
}

/// Facts of a request that its response depends on.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    is_head: bool,
    is_http10: bool,
    /// Whether the client waits for 100 (Continue), and nothing of the body has come.
    awaits_continue: bool,
}

/// An event that [`Server::receive`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// The head of a request.
    Head(Box<RequestHead>),
    /// A piece of the request's body, never empty.
    Body(Bytes),
    /// The request's body is complete; only after a head whose body was not `Known(0)`.
    BodyEnd,
}

impl Server {
    /// The state of a new connection.
    pub fn new(limits: Limits) -> Self {
        Self {
            conn: Conn::new(Role::Server, limits),
            exchange: None,
            spare: None,
        }
    }

    /// Resets the state to that of a new connection, but keeps the head that [`Self::recycle`] took.
    pub fn reset(&mut self, limits: &Limits) {
        // The connection may have ended inside a head.
        if !self.conn.can_reuse()
            && let Some(spare) = &mut self.spare
        {
            spare.clear();
        }
        self.conn = Conn::new(Role::Server, *limits);
        self.exchange = None;
    }

    /// Takes the next event out of `input`; `None` if it needs more bytes.
    ///
    /// The next request is not looked at before the response to the last one has ended, so pipelined
    /// requests stay in `input` until then.
    ///
    /// # Errors
    /// A [`Fault`] is final: answer with [`Fault::status`] if no head was sent, then close. The same
    /// fault is returned again by further calls.
    pub fn receive(&mut self, input: &mut BytesMut) -> Result<Option<ServerEvent>, Fault> {
        if self.conn.awaits_head() {
            return self.receive_head(input);
        }
        match self.conn.receive(input)? {
            None => Ok(None),
            Some(Piece::Data(data)) => {
                if let Some(exchange) = &mut self.exchange {
                    exchange.awaits_continue = false;
                }
                Ok(Some(ServerEvent::Body(data)))
            }
            Some(Piece::End) => {
                self.forget_ended();
                Ok(Some(ServerEvent::BodyEnd))
            }
        }
    }

    fn receive_head(&mut self, input: &mut BytesMut) -> Result<Option<ServerEvent>, Fault> {
        let spare = &mut self.spare;
        let head = spare.get_or_insert_with(|| Box::new(RequestHead::empty()));
        let Some(raw) = self.conn.receive_head(input, &mut head.headers)? else {
            return Ok(None);
        };
        let limits = self.conn.limits();
        let keep_alive =
            request::decode(&raw, limits, head).map_err(|fault| self.conn.fail(fault))?;
        if !keep_alive {
            self.conn.close_after();
        }
        let Some(complete) = self.spare.take() else {
            return Ok(None);
        };
        self.begin_exchange(&complete);
        Ok(Some(ServerEvent::Head(complete)))
    }

    /// Takes back a head that is not needed any more; the next one uses its memory.
    pub fn recycle(&mut self, mut head: Box<RequestHead>) {
        // While a head is being received, `spare` holds it.
        if self.spare.is_none() {
            head.clear();
            self.spare = Some(head);
        }
    }

    /// Handles the client's close of its sending side; `input` holds the bytes left over. Call it after
    /// `receive` has returned `None`. `Ok` means that the client closed between requests; a response may
    /// still be owed, and pipelined requests may be left in `input`.
    ///
    /// # Errors
    /// The stream ended inside a head or a body.
    pub fn receive_eof(&mut self, input: &BytesMut) -> Result<(), Fault> {
        self.conn.receive_eof(!input.is_empty()).map(|_| ())
    }

    /// Writes 100 (Continue) if the client waits for it, else nothing.
    pub fn send_continue(&mut self, out: &mut BytesMut) {
        if let Some(exchange) = &mut self.exchange
            && exchange.awaits_continue
            && self.conn.may_send_head()
        {
            exchange.awaits_continue = false;
            out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
    }

    /// Writes an interim response (1xx other than 101). Writes nothing to HTTP/1.0 clients, after the
    /// final head, or for another status.
    pub fn send_interim(&mut self, status: StatusCode, headers: &Fields, out: &mut BytesMut) {
        let understands = self.exchange.is_some_and(|exchange| !exchange.is_http10);
        let is_interim = status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS;
        if understands && is_interim && self.conn.may_send_head() {
            if let Some(exchange) = &mut self.exchange {
                exchange.awaits_continue &= status != StatusCode::CONTINUE;
            }
            encode::begin_response(status, None, headers, out);
            encode::end_head(Announcement::Nothing, ConnectionOption::Nothing, out);
        }
    }

    /// Writes the final head. Without a request (after a fault in its head, or when it took too long)
    /// this is the last message of the connection, and the head announces that.
    ///
    /// # Errors
    /// See [`ResponseError`]; nothing was written.
    pub fn send_head(
        &mut self,
        head: &Response<'_>,
        out: &mut BytesMut,
    ) -> Result<(), ResponseError> {
        if !self.conn.may_send_head() {
            return Err(ResponseError::OutOfTurn);
        }
        if head.status.is_informational() {
            return Err(ResponseError::InterimStatus);
        }
        // A client whose request was not understood is treated as an HTTP/1.0 client, and the connection closes.
        let exchange = self.exchange.unwrap_or_else(|| {
            self.conn.close();
            Exchange {
                is_head: false,
                is_http10: true,
                awaits_continue: false,
            }
        });
        let (announcement, encoder) = framing(head, exchange);
        // A client that was not told to continue may or may not send its body, so the next request could not be told
        // from it.
        if exchange.awaits_continue || encoder == Encoder::UntilClose {
            self.conn.close_after();
        }
        let connection = if !self.conn.is_persistent() {
            ConnectionOption::Close
        } else if exchange.is_http10 {
            ConnectionOption::KeepAlive
        } else {
            // HTTP/1.1 keeps connections without saying so.
            ConnectionOption::Nothing
        };
        encode::begin_response(head.status, head.reason, head.headers, out);
        encode::end_head(announcement, connection, out);
        self.conn.begin_outbound(encoder);
        Ok(())
    }

    /// Writes the head of a 101 (Switching Protocols) that changes to the protocol of its Upgrade field.
    /// The request must have asked for it, and had no body. From then on [`receive`](Self::receive)
    /// yields bytes of that protocol as [`ServerEvent::Body`], which end with the client's close, and
    /// what is sent goes out as it is.
    ///
    /// # Errors
    /// See [`ResponseError`]; nothing was written.
    pub fn send_upgrade(
        &mut self,
        head: &Response<'_>,
        out: &mut BytesMut,
    ) -> Result<(), ResponseError> {
        let asked = self.exchange.is_some_and(|exchange| !exchange.is_http10);
        if !asked || !self.conn.may_send_head() || !self.conn.is_received() {
            return Err(ResponseError::OutOfTurn);
        }
        let token = match head.headers.get(name::UPGRADE) {
            Some(token) if head.status == StatusCode::SWITCHING_PROTOCOLS => token,
            _ => return Err(ResponseError::InterimStatus),
        };
        let reason = head.reason.unwrap_or(b"Switching Protocols");
        encode::begin_response(head.status, Some(reason), head.headers, out);
        let connection = ConnectionOption::Upgrade(token);
        encode::end_head(Announcement::Nothing, connection, out);
        self.conn.open_tunnel();
        Ok(())
    }

    /// Begins a piece of `len` body bytes. Returns how many of them the caller must write to the
    /// connection next, before [`finish_data`](Self::finish_data): all, none if the response has no body
    /// (HEAD, 204, 304), or only as many as Content-Length still allows.
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

    /// Ends the response.
    ///
    /// # Errors
    /// The body is not what the head announced: cut the connection.
    pub fn send_end(&mut self, out: &mut BytesMut) -> Result<(), BodyError> {
        self.conn.end_outbound(out)?;
        self.forget_ended();
        Ok(())
    }

    /// Makes the connection close after this exchange, or after the next one if it is idle. A head that
    /// is sent later announces it.
    pub fn close_after(&mut self) {
        self.conn.close_after();
    }

    /// Whether the connection ends with the current exchange, whatever still arrives.
    pub fn is_last(&self) -> bool {
        !self.conn.is_persistent()
    }

    /// Whether no request is under way and nothing is owed. The caller must also check that its buffer
    /// is empty.
    pub fn is_idle(&self) -> bool {
        self.conn.is_idle()
    }

    /// Whether another exchange may follow: both messages ended by their framing, and both sides allow
    /// it.
    pub fn can_reuse(&self) -> bool {
        self.conn.can_reuse()
    }

    /// Whether the response under way ends with the connection and is incomplete: closing now would make
    /// it look whole, unless it is a reset.
    pub fn awaits_close(&self) -> bool {
        self.conn.awaits_close()
    }

    /// Whether the peer can tell that it has the whole response: there is no body, or as many bytes were
    /// written as the head announced. A response that ends by a last chunk or by the close is whole only
    /// after [`send_end`](Self::send_end).
    pub fn is_response_whole(&self) -> bool {
        self.conn.is_sent()
    }

    /// Whether the whole request body has arrived: the head announced none, or [`ServerEvent::BodyEnd`]
    /// was returned. Always `false` after a fault.
    pub fn request_body_done(&self) -> bool {
        self.conn.is_received()
    }

    /// Forgets the facts of the request once the exchange is over, so that they cannot affect the next
    /// one.
    fn forget_ended(&mut self) {
        if self.conn.is_idle() {
            self.exchange = None;
        }
    }

    fn begin_exchange(&mut self, head: &RequestHead) {
        self.exchange = Some(Exchange {
            is_head: head.method == Method::HEAD,
            is_http10: head.version == Version::HTTP_10,
            awaits_continue: head.expect_continue,
        });
        match head.body {
            BodyLength::Known(0) => self.conn.end_inbound(),
            length => self.conn.expect_body(Decoder::for_request(length)),
        }
    }
}

/// How a response body is announced and written.
fn framing(head: &Response<'_>, exchange: Exchange) -> (Announcement, Encoder) {
    let bodiless = exchange.is_head
        || head.status == StatusCode::NO_CONTENT
        || head.status == StatusCode::NOT_MODIFIED;
    match head.body {
        _ if head.status == StatusCode::NO_CONTENT => (Announcement::Nothing, Encoder::Discard),
        BodyLength::Known(length) if bodiless => (Announcement::Length(length), Encoder::Discard),
        BodyLength::Unknown if bodiless => (Announcement::Nothing, Encoder::Discard),
        BodyLength::Known(length) => (Announcement::Length(length), Encoder::Length(length)),
        BodyLength::Unknown if exchange.is_http10 => (Announcement::Nothing, Encoder::UntilClose),
        BodyLength::Unknown => (Announcement::Chunked, Encoder::Chunked { open: false }),
    }
}
