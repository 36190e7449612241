//! One exchange with a backend, sans-IO: bytes in, [`Event`]s out, over AJP13 or HTTP/1.1.
//!
//! Of the modules that move bytes only this one knows which of the two protocols a backend speaks. It owns no
//! socket and no input buffer: what it sends is appended to an [`Output`], what it receives is taken off the front
//! of a buffer. `connection` moves the bytes and decides what a broken connection means.

use arrayvec::ArrayVec;
use bytes::{Bytes, BytesMut};
use catamaran_ajp as ajp;
use catamaran_balance::Activation;
use catamaran_http1 as http1;
use catamaran_message::{BodyLength, Request, ResponseHead};
use catamaran_tls::Facts;
use catamaran_transport::{ByteQueue, HIGH_WATER, Output};

use crate::client_facts::ClientFacts;
use crate::config::{BackendConfig, Protocol};
use crate::error::{Error, PingFailure, RequestError};

/// An event of the backend's response.
#[derive(Debug)]
pub enum Event {
    /// The head of an interim response (1xx); the final response follows.
    Interim(Box<ResponseHead>),
    /// The head of the final response; boxed to keep events small.
    Head(Box<ResponseHead>),
    /// Some bytes of the response's body, never empty.
    Body(Bytes),
    /// The backend wants the bytes that it has sent so far to reach the client now.
    Flush,
    /// The backend asks for more of the request's body; `Lease::body_credit` says how much.
    BodyWanted,
    /// The backend changes to the protocol that was asked for. All later bytes belong to that protocol, in both
    /// directions.
    Upgraded(Box<ResponseHead>),
    /// The response is complete, and no event follows.
    End,
}

/// The codec of one connection, which carries one exchange after the other.
#[derive(Debug)]
pub(crate) enum Wire {
    Ajp(ajp::Client),
    Http(http1::Client),
}

impl Wire {
    pub(crate) fn new(config: &BackendConfig) -> Self {
        match config.protocol {
            Protocol::Ajp => Self::Ajp(ajp_client(config)),
            Protocol::Http => Self::Http(http1::Client::new(http1::Limits::response())),
        }
    }

    /// Begins an exchange: encodes the request's head.
    pub(crate) fn send_request(
        &mut self,
        request: &Request<'_>,
        facts: &ClientFacts<'_>,
        config: &BackendConfig,
        out: &mut Output,
    ) -> Result<(), RequestError> {
        let out = out.staging();
        match self {
            Self::Ajp(client) => send_ajp(client, request, facts, config, out)?,
            Self::Http(client) => {
                client.send_request(request, out)?;
                if request.body == BodyLength::Known(0) {
                    // Tells the codec that nothing more follows; it cannot be short of nothing.
                    client.finish_body(out).ok();
                }
            }
        }
        Ok(())
    }

    /// The codec of a connection for a tunnel, which always speaks HTTP/1.1.
    pub(crate) fn for_tunnel() -> Self {
        Self::Http(http1::Client::new(http1::Limits::response()))
    }

    /// Begins an exchange that asks the backend to change to the protocol `token`. AJP13 cannot ask that: such tunnels
    /// have a connection over HTTP/1.1.
    pub(crate) fn send_upgrade(
        &mut self,
        request: &Request<'_>,
        token: &[u8],
        out: &mut Output,
    ) -> Result<(), RequestError> {
        match self {
            Self::Ajp(_) => Err(http1::RequestError::OutOfTurn.into()),
            Self::Http(client) => Ok(client.send_upgrade(request, token, out.staging())?),
        }
    }

    /// Whether the framing of the current response says where it ends.
    pub(crate) fn is_framed(&self) -> bool {
        match self {
            Self::Ajp(_) => true,
            Self::Http(client) => client.is_framed(),
        }
    }

    /// How many bytes of the request's body the backend wants now, up to a limit.
    pub(crate) fn body_credit(&self) -> usize {
        match self {
            Self::Ajp(client) => client.body_wanted().min(HIGH_WATER),
            Self::Http(_) => HIGH_WATER,
        }
    }

    /// Takes the wanted bytes of the request's body and encodes them: over AJP13 in as many packets as were asked
    /// for, which are written together, over HTTP/1.1 all of it in one chunk.
    pub(crate) fn send_body(&mut self, body: &mut ByteQueue, out: &mut Output) {
        match self {
            Self::Ajp(client) => {
                while !body.is_empty() && !out.is_full() {
                    let packet_len = client.body_credit().min(body.len());
                    if packet_len == 0 {
                        return;
                    }
                    client.begin_data(packet_len, out.staging());
                    push_bytes(body, packet_len, out);
                }
            }
            Self::Http(client) => {
                if !body.is_empty() && !out.is_full() {
                    let chunk_len = client.begin_data(body.len(), out.staging());
                    push_bytes(body, chunk_len, out);
                    client.finish_data(out.staging());
                    // What exceeds the announced length is not sent; the codec has noticed.
                    body.clear();
                }
            }
        }
    }

    /// Ends the request's body. `false`: it is shorter than announced, and the exchange must be given up.
    #[must_use]
    pub(crate) fn finish_body(&mut self, out: &mut Output) -> bool {
        match self {
            Self::Ajp(client) => client.finish_body(out.staging()).is_ok(),
            Self::Http(client) => client.finish_body(out.staging()).is_ok(),
        }
    }

    /// Decodes the next event from `input`; `None` if more bytes are needed. Answers that the protocol demands are
    /// appended to `out`.
    pub(crate) fn receive(
        &mut self,
        input: &mut BytesMut,
        out: &mut Output,
    ) -> Result<Option<Event>, Error> {
        match self {
            // An HTTP/1.1 response may end without a further byte.
            Self::Ajp(_) if input.is_empty() => Ok(None),
            Self::Ajp(client) => receive_ajp(client, input, out.staging_bare()),
            Self::Http(client) => {
                let event = client.receive(input).map_err(Error::Http)?;
                Ok(event.map(http_event))
            }
        }
    }

    /// The event for the end of the backend's stream: the end of a response that only the close ends, else an
    /// error. To be called only if the backend closed in order.
    pub(crate) fn receive_end(&mut self) -> Result<Event, Error> {
        match self {
            Self::Ajp(_) => Err(Error::Closed),
            Self::Http(client) => match client.receive_eof() {
                Ok(Some(event)) => Ok(http_event(event)),
                Ok(None) | Err(_) => Err(Error::Closed),
            },
        }
    }

    /// Takes back the memory of a head, for the next response.
    pub(crate) fn recycle(&mut self, head: Box<ResponseHead>) {
        match self {
            Self::Ajp(client) => client.recycle(head),
            Self::Http(client) => client.recycle(head),
        }
    }

    /// Whether both messages ended where their framing said and the backend allows another request.
    pub(crate) fn can_reuse(&self) -> bool {
        match self {
            Self::Ajp(client) => client.can_reuse(),
            Self::Http(client) => client.can_reuse(),
        }
    }

    /// Whether the protocol has a message that a live backend answers: AJP13's CPING.
    pub(crate) fn can_ping(&self) -> bool {
        matches!(self, Self::Ajp(_))
    }

    /// Encodes CPING. `false` if the protocol has no such message.
    pub(crate) fn send_ping(&mut self, out: &mut Output) -> bool {
        match self {
            Self::Ajp(client) => client.send_ping(out.staging()),
            Self::Http(_) => return false,
        }
        true
    }

    /// Decodes the reaction to CPING; `None`: more bytes are needed.
    pub(crate) fn receive_pong(
        &mut self,
        input: &mut BytesMut,
        out: &mut Output,
    ) -> Option<Result<(), PingFailure>> {
        let Self::Ajp(client) = self else {
            // HTTP/1.1 has no CPING, so there is nothing to wait for.
            return Some(Ok(()));
        };
        match client.receive(input, out.staging_bare()) {
            Ok(None) => None,
            Ok(Some(ajp::ClientEvent::Pong)) => Some(Ok(())),
            Err(ajp::Fault::Message(_)) => Some(Err(PingFailure::Other)),
            Ok(Some(_)) | Err(_) => Some(Err(PingFailure::Garbled)),
        }
    }
}

/// Moves the first `len` bytes of `body` to `out`.
fn push_bytes(body: &mut ByteQueue, len: usize, out: &mut Output) {
    let mut left = len;
    while let Some(piece) = body.pop(left) {
        left -= piece.len();
        out.push(piece);
    }
}

/// Decodes the next event of an AJP13 response; `None` if more bytes are needed.
fn receive_ajp(
    client: &mut ajp::Client,
    input: &mut BytesMut,
    out: &mut BytesMut,
) -> Result<Option<Event>, Error> {
    loop {
        let event = client.receive(input, out).map_err(Error::Ajp)?;
        return Ok(Some(match event {
            None => return Ok(None),
            Some(ajp::ClientEvent::Interim(head)) => Event::Interim(head),
            Some(ajp::ClientEvent::Head(head)) => Event::Head(head),
            Some(ajp::ClientEvent::Body(data)) => Event::Body(data),
            Some(ajp::ClientEvent::Flush) => Event::Flush,
            Some(ajp::ClientEvent::BodyWanted) => Event::BodyWanted,
            Some(ajp::ClientEvent::End) => Event::End,
            // Nothing waits for it: a CPING is awaited by `receive_pong`.
            Some(ajp::ClientEvent::Pong) => continue,
        }));
    }
}

/// Makes the front's codec for a new AJP13 connection.
pub(crate) fn ajp_client(config: &BackendConfig) -> ajp::Client {
    ajp::Client::new(ajp::ClientConfig {
        packet_size: config.ajp.packet_size,
        reply_packet_size: config.ajp.packet_size,
        ..ajp::ClientConfig::default()
    })
}

/// Encodes a request's head over AJP13, with the attributes for the client, the route and the secret.
pub(crate) fn send_ajp(
    client: &mut ajp::Client,
    request: &Request<'_>,
    facts: &ClientFacts<'_>,
    config: &BackendConfig,
    out: &mut BytesMut,
) -> Result<(), ajp::RequestError> {
    let mut attributes = ArrayVec::<_, ATTRIBUTES_MAX>::new();
    attributes.push(ajp::Attribute::LocalAddr(facts.local_ip));
    if let Some(port) = facts.remote_port {
        attributes.push(ajp::Attribute::RemotePort(port));
    }
    if let Some(route) = facts.jvm_route {
        attributes.push(ajp::Attribute::JvmRoute(route.as_bytes()));
    }
    if let Some(activation) = facts.activation {
        attributes.push(activation_attribute(activation));
    }
    if let Some(secret) = &config.ajp.secret {
        attributes.push(ajp::Attribute::Secret(secret.as_bytes()));
    }
    if let Some(tls) = facts.tls {
        attributes.extend(tls_attributes(tls, facts.certificate_chain));
    }
    let combined;
    let all_attributes = match facts.attributes {
        // The usual case needs no allocation.
        [] => &attributes[..],
        others => {
            combined = [&attributes[..], others].concat();
            &combined
        }
    };
    let ajp_facts = ajp::Facts {
        version: facts.version,
        remote_ip: facts.remote_ip,
        server_name: facts.server_name,
        server_port: facts.server_port,
        is_ssl: facts.secure,
        announce_chunked: config.ajp.announce_chunked,
        attributes: all_attributes,
    };
    client.send_request(request, &ajp_facts, out)
}

/// The attribute for an activation, with mod_jk's words for it.
fn activation_attribute(activation: Activation) -> ajp::Attribute<'static> {
    ajp::Attribute::Request {
        name: b"JK_LB_ACTIVATION",
        value: match activation {
            Activation::Active => b"ACT",
            Activation::Drain => b"DIS",
            Activation::Stopped => b"STP",
        },
    }
}

/// The attributes for TLS that mod_jk sends, but without a session id: tickets have none.
fn tls_attributes(tls: &Facts, chain: bool) -> impl Iterator<Item = ajp::Attribute<'_>> {
    let pem = tls.client_certificate(chain);
    let certificate = pem.map(|pem| ajp::Attribute::SslCert(pem.as_bytes()));
    let key_size = (tls.key_bits > 0).then_some(ajp::Attribute::SslKeySize(tls.key_bits));
    // A proxy that ended the client's TLS may not tell the cipher.
    let cipher = (!tls.cipher.is_empty()).then(|| ajp::Attribute::SslCipher(tls.cipher.as_bytes()));
    let protocol = ajp::Attribute::Request {
        name: b"AJP_SSL_PROTOCOL",
        value: tls.version.name().as_bytes(),
    };
    [cipher, key_size, Some(protocol), certificate]
        .into_iter()
        .flatten()
}

/// The event of an HTTP/1.1 response in the terms of both protocols.
fn http_event(event: http1::ClientEvent) -> Event {
    match event {
        http1::ClientEvent::Interim(head) => Event::Interim(head),
        http1::ClientEvent::Head(head) => Event::Head(head),
        http1::ClientEvent::Upgraded(head) => Event::Upgraded(head),
        http1::ClientEvent::Body(data) => Event::Body(data),
        http1::ClientEvent::End => Event::End,
    }
}

/// The most attributes: address, port, route, activation, secret, and four for TLS.
const ATTRIBUTES_MAX: usize = 9;

#[cfg(test)]
mod tests;
