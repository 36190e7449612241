//! The server role: what a container does.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, StatusCode};

use crate::{BodyLength, Fault, PacketSize, ResponseError};

/// Settings of the server role.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig {
    /// Size of the packets sent and accepted.
    pub packet_size: PacketSize,
    /// Most header fields in a request; default 100.
    pub fields_max: usize,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            packet_size: PacketSize::DEFAULT,
            fields_max: 100,
        }
    }
}

/// The container's end of one connection.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
}

impl Server {
    /// A fresh, idle connection.
    pub fn new(config: ServerConfig) -> Self {
        Self { config }
    }

    /// Takes the next event from `input`; `None` asks for more bytes. Answers CPING by itself.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn receive(
        &mut self,
        input: &mut BytesMut,
        out: &mut BytesMut,
    ) -> Result<Option<ServerEvent>, Fault> {
        let _ = (input, out, &mut self.config);
        Ok(None)
    }

    /// Whether the peer may send something now that [`Server::receive`] would take.
    pub fn expects_input(&self) -> bool {
        true
    }

    /// Asks for body bytes if there may be more and none are on their way.
    pub fn want_body(&mut self, out: &mut BytesMut) {
        let _ = (out, &mut self.config);
    }

    /// Appends the response's head.
    ///
    /// # Errors
    /// [`ResponseError`]; nothing is written then.
    pub fn send_head(
        &mut self,
        status: StatusCode,
        reason: Option<&[u8]>,
        headers: &HeaderMap,
        out: &mut BytesMut,
    ) -> Result<(), ResponseError> {
        let _ = (status, reason, headers, out, &mut self.config);
        Ok(())
    }

    /// Body bytes that one chunk may carry now; 0 when the response has no (more) body.
    pub fn chunk_room(&self) -> usize {
        0
    }

    /// Starts a chunk of `len` bytes, at most [`Server::chunk_room`]; the caller writes them next,
    /// then calls [`Server::finish_chunk`].
    pub fn begin_chunk(&mut self, len: usize, out: &mut BytesMut) {
        let _ = (len, out, &mut self.config);
    }

    /// Ends the chunk begun last.
    pub fn finish_chunk(&mut self, out: &mut BytesMut) {
        let _ = (out, &mut self.config);
    }

    /// Sends `data` in as many chunks as it needs.
    pub fn send_data(&mut self, data: &[u8], out: &mut BytesMut) {
        let _ = (data, out, &mut self.config);
    }

    /// Asks the web server to flush.
    pub fn send_flush(&mut self, out: &mut BytesMut) {
        let _ = (out, &mut self.config);
    }

    /// Makes the next [`Server::send_end`] close the connection.
    pub fn close_after(&mut self) {
        let _ = &mut self.config;
    }

    /// Ends the response. `input` is what was received and not yet consumed.
    pub fn send_end(&mut self, input: &BytesMut, out: &mut BytesMut) -> End {
        let _ = (input, out, &mut self.config);
        End::Close
    }

    /// Ends the response without waiting for what is owed: the connection closes.
    pub fn send_end_now(&mut self, out: &mut BytesMut) {
        let _ = (out, &mut self.config);
    }

    /// Answers `status` without a body and ends the connection.
    pub fn refuse(&mut self, status: StatusCode, out: &mut BytesMut) {
        let _ = (status, out, &mut self.config);
    }

    /// The peer closed.
    ///
    /// # Errors
    /// [`Fault::Eof`] in the middle of an exchange.
    pub fn receive_eof(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// Whether no exchange is open and no part of a packet was received.
    pub fn is_idle(&self) -> bool {
        true
    }
}

/// What the web server said.
#[derive(Debug)]
pub enum ServerEvent {
    /// A request's head.
    Request(Box<RequestHead>),
    /// Bytes of its body.
    Body(Bytes),
    /// The body is complete; or, after [`End::Owed`], what was owed has arrived.
    BodyEnd,
}

/// What remains to be done after [`Server::send_end`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// END_RESPONSE(1) was written: the connection is idle.
    Reuse,
    /// END_RESPONSE(0) was written: flush and close.
    Close,
    /// Nothing was written: a body packet is still on its way. Flush, receive until
    /// [`ServerEvent::BodyEnd`], then call `send_end` again; when a drain timeout passes first,
    /// call [`Server::send_end_now`].
    Owed,
}

/// The head of a request.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// The method.
    pub method: Method,
    /// The client's protocol as text, such as `HTTP/1.1`; empty if the web server sent none.
    pub protocol: Bytes,
    /// The path as received.
    pub path: Bytes,
    /// The query, without `?`.
    pub query: Option<Bytes>,
    /// The client's address.
    pub remote_addr: Option<Bytes>,
    /// The client's host name.
    pub remote_host: Option<Bytes>,
    /// The server's name; empty if the web server sent none.
    pub server_name: Bytes,
    /// The server's port.
    pub server_port: u16,
    /// Whether the client came over TLS, as the web server says.
    pub is_ssl: bool,
    /// The fields, without Content-Length and Transfer-Encoding.
    pub headers: HeaderMap,
    /// How long the body is.
    pub body: BodyLength,
    /// The attributes.
    pub attributes: Attributes,
}

/// The attributes of a request.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    /// The user the web server authenticated.
    pub remote_user: Option<Bytes>,
    /// How.
    pub auth_type: Option<Bytes>,
    /// The route.
    pub jvm_route: Option<Bytes>,
    /// The client's certificate.
    pub ssl_cert: Option<Bytes>,
    /// The TLS cipher.
    pub ssl_cipher: Option<Bytes>,
    /// The TLS session id.
    pub ssl_session: Option<Bytes>,
    /// The key size in bits.
    pub ssl_key_size: Option<u32>,
    /// The shared secret as sent; comparing it is the connector's matter.
    pub secret: Option<Bytes>,
    /// All other attributes, in order.
    pub other: Vec<(Bytes, Bytes)>,
}
