//! The client role: what a web server does.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, StatusCode};

use crate::{BodyError, BodyLength, Fault, PacketSize, RequestError};

/// One request's head, borrowed from the caller.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method; those without a code of their own travel as a stored method.
    pub method: &'a Method,
    /// The client's protocol, such as `HTTP/1.1`.
    pub protocol: &'a str,
    /// The path, without query; starts with `/`, or is `*` for OPTIONS.
    pub path: &'a [u8],
    /// The query without its `?`, if there is one.
    pub query: Option<&'a [u8]>,
    /// The client's address.
    pub remote_addr: &'a str,
    /// The client's host name, if it was looked up.
    pub remote_host: Option<&'a str>,
    /// The name of the server as the client sees it.
    pub server_name: &'a str,
    /// The port of the server as the client sees it.
    pub server_port: u16,
    /// Whether the client came over TLS.
    pub is_ssl: bool,
    /// End-to-end fields. Content-Length and Transfer-Encoding in it are ignored: `body` rules.
    pub headers: &'a HeaderMap,
    /// How long the body is.
    pub body: BodyLength,
    /// For an unknown length: announce `Transfer-Encoding: chunked`, which Undertow needs.
    pub announce_chunked: bool,
    /// Attributes besides query and stored method, which the encoder writes itself.
    pub attributes: &'a [Attribute<'a>],
}

/// One attribute of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribute<'a> {
    /// The authenticated user.
    RemoteUser(&'a [u8]),
    /// How the user was authenticated.
    AuthType(&'a [u8]),
    /// The route of the chosen backend.
    JvmRoute(&'a [u8]),
    /// The client's certificate, PEM.
    SslCert(&'a [u8]),
    /// The TLS cipher.
    SslCipher(&'a [u8]),
    /// The TLS session id, hex.
    SslSession(&'a [u8]),
    /// The key size in bits.
    SslKeySize(u16),
    /// The shared secret.
    Secret(&'a [u8]),
    /// A named attribute.
    Request {
        /// Its name.
        name: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
}

/// Settings of the client role.
#[derive(Clone, Copy, Debug)]
pub struct ClientConfig {
    /// Size of the packets sent.
    pub packet_size: PacketSize,
    /// Size of the packets accepted from the container.
    pub reply_packet_size: PacketSize,
    /// Most header fields in a request; default 100.
    pub fields_max: usize,
    /// Most header fields in a response; default 200.
    pub response_fields_max: usize,
    /// 1xx heads accepted before the final one; default 0.
    pub interim_max: u8,
    /// GET_BODY_CHUNKs after the body's end that are answered before it is a fault; default 8.
    pub surplus_asks_max: u8,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            packet_size: PacketSize::DEFAULT,
            reply_packet_size: PacketSize::DEFAULT,
            fields_max: 100,
            response_fields_max: 200,
            interim_max: 0,
            surplus_asks_max: 8,
        }
    }
}

/// The client's end of one connection.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
}

impl Client {
    /// A fresh, idle connection.
    pub fn new(config: ClientConfig) -> Self {
        Self { config }
    }

    /// Appends the head of `request` to `out`.
    ///
    /// # Errors
    /// [`RequestError`]; nothing is written then.
    pub fn send_request(
        &mut self,
        request: &Request<'_>,
        out: &mut BytesMut,
    ) -> Result<(), RequestError> {
        let _ = (request, out, &mut self.config);
        Err(RequestError::Busy)
    }

    /// Body bytes that may be sent now, in one packet.
    pub fn body_credit(&self) -> usize {
        0
    }

    /// Starts one DATA packet of `len` body bytes, which the caller writes next.
    pub fn begin_data(&mut self, len: usize, out: &mut BytesMut) {
        let _ = (len, out, &mut self.config);
    }

    /// Sends `data` as one DATA packet.
    pub fn send_data(&mut self, data: &[u8], out: &mut BytesMut) {
        self.begin_data(data.len(), out);
        out.extend_from_slice(data);
    }

    /// Says that the body ended.
    ///
    /// # Errors
    /// [`BodyError::Short`].
    pub fn finish_body(&mut self, out: &mut BytesMut) -> Result<(), BodyError> {
        let _ = (out, &mut self.config);
        Ok(())
    }

    /// Appends a CPING.
    pub fn send_ping(&mut self, out: &mut BytesMut) {
        let _ = (out, &mut self.config);
    }

    /// Takes the next event from `input`; `None` asks for more bytes.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn receive(
        &mut self,
        input: &mut BytesMut,
        out: &mut BytesMut,
    ) -> Result<Option<ClientEvent>, Fault> {
        let _ = (input, out, &mut self.config);
        Ok(None)
    }

    /// The peer closed.
    ///
    /// # Errors
    /// [`Fault::Eof`] in the middle of an exchange.
    pub fn receive_eof(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// Whether no exchange is open.
    pub fn is_idle(&self) -> bool {
        true
    }

    /// Whether the connection may serve another exchange.
    pub fn can_reuse(&self) -> bool {
        true
    }
}

/// What the container said.
#[derive(Debug)]
pub enum ClientEvent {
    /// A 1xx head.
    Interim(ResponseHead),
    /// The response's head.
    Head(ResponseHead),
    /// Bytes of the response's body.
    Body(Bytes),
    /// The container flushed.
    Flush,
    /// The container asks for body bytes: see [`Client::body_credit`].
    BodyWanted,
    /// The response is complete.
    End,
    /// The answer to a CPING.
    Pong,
}

/// The head of a response.
#[derive(Clone, Debug)]
pub struct ResponseHead {
    /// The status.
    pub status: StatusCode,
    /// The reason phrase, if it says more than the status.
    pub reason: Option<Bytes>,
    /// End-to-end fields, without Content-Length.
    pub headers: HeaderMap,
    /// The announced length.
    pub content_length: Option<u64>,
}
