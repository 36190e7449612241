//! The protocols on a connection, for the worker: turns the bytes that are received into [`Step`]s.
//!
//! The plan chooses one of three protocols. None of them stores received bytes. The sockets are in
//! [`stream`](crate::stream).

use bytes::BytesMut;
use catamaran_ajp as ajp;
use catamaran_http1 as http1;
use catamaran_message::name::SET_COOKIE;
use catamaran_message::{ResponseHead, Traits};

use crate::memcached::{self, Outcome};
use crate::prepare::{Codec, PreparedRequest};
use crate::report::FailureKind;

/// The client's side of one connection, for HTTP/1.x, AJP13 or memcached.
#[derive(Debug)]
pub(crate) enum Client {
    Http(http1::Skimmer),
    Ajp {
        client: Box<ajp::Client>,
        /// The number of bytes sent so far of the body that the server must ask for.
        rest_sent: usize,
    },
    Memcached(Box<memcached::Client>),
}

/// One step of a response: what [`Client::receive`] has found in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// An interim (1xx) head; its length in bytes.
    Interim(u64),
    /// The final head of the response.
    Head {
        status: u16,
        bytes: u64,
        /// Whether the head announced the body's length, or that there is no body.
        has_length: bool,
    },
    /// A number of bytes of the body.
    Body(u64),
    /// The response is complete.
    End,
}

/// The last heads that a worker has received for one request of the plan.
#[derive(Debug, Default)]
pub(crate) struct LastHeads {
    http: http1::KnownHead,
    ajp: ajp::client::KnownHead,
    /// The head of an HTTP/2 response, written as HTTP/1.1 would.
    http2: Option<Vec<u8>>,
}

impl Client {
    pub(crate) fn new(codec: Codec) -> Self {
        match codec {
            Codec::Ajp => Self::Ajp {
                client: Box::new(ajp::Client::new(ajp::ClientConfig::default())),
                rest_sent: 0,
            },
            // HTTP/2 has a connection of its own kind.
            Codec::Http1 | Codec::Http2 => Self::Http(http1::Skimmer::new(LIMITS)),
            Codec::Memcached(dialect) => Self::Memcached(Box::new(memcached::Client::new(dialect))),
        }
    }

    /// Announces that the next response is to `request`, which was or is being sent.
    pub(crate) fn expect(&mut self, request: &PreparedRequest) {
        match self {
            Self::Http(skimmer) => skimmer.expect(request.to_head),
            Self::Ajp { client, rest_sent } => {
                let Some(prepared) = &request.ajp else {
                    return debug_assert!(false, "prepared for another protocol");
                };
                // The codec's state after the head and the first part of the body, which are sent as prepared bytes.
                client.as_mut().clone_from(&prepared.client);
                *rest_sent = 0;
            }
            Self::Memcached(client) => {
                if let Some(sent) = request.memcached {
                    client.expect(sent);
                }
            }
        }
    }

    /// Takes the next step out of `input`; `None`: more bytes are needed after those left in `input`. Bytes that must
    /// be sent in reply are appended to `own.out`. The body's bytes are passed to `sink`.
    pub(crate) fn receive(
        &mut self,
        input: &mut &[u8],
        known: &mut LastHeads,
        own: OwnSide<'_>,
        mut sink: impl FnMut(&[u8]),
    ) -> Result<Option<Step>, FailureKind> {
        let OwnSide { request, out } = own;
        match self {
            Self::Http(skimmer) => {
                let skimmed = skimmer
                    .receive_into(input, &mut known.http, &mut sink)
                    .map_err(http_failure)?;
                Ok(skimmed.map(http_step))
            }
            Self::Ajp { client, rest_sent } => {
                // The codec takes one packet a call and does not hand out the data in it.
                let packet = *input;
                let skimmed = client
                    .skim(input, &mut known.ajp, out)
                    .map_err(ajp_failure)?;
                match skimmed {
                    Some(ajp::client::AjpSkim::BodyWanted) => {
                        send_rest(client, request, rest_sent, out);
                    }
                    Some(ajp::client::AjpSkim::Body(len)) if len > 0 => {
                        // The data follows the head of the packet.
                        sink(&packet[CHUNK_BYTES..CHUNK_BYTES + len]);
                    }
                    _ => {}
                }
                Ok(skimmed.map(ajp_step))
            }
            Self::Memcached(client) => client.receive(input),
        }
    }

    /// The result of the last operation on memcached; `None` for other protocols. The error is a
    /// failure after which the connection can still be used.
    pub(crate) fn outcome(&self) -> Result<Option<Outcome>, FailureKind> {
        match self {
            Self::Http(_) | Self::Ajp { .. } => Ok(None),
            Self::Memcached(client) => client.outcome().map(Some),
        }
    }

    /// The server's message about the failure that [`Client::receive`] or [`Client::outcome`] has
    /// just returned; `None` if there is none.
    pub(crate) fn error_message(&self) -> Option<&str> {
        match self {
            Self::Http(_) | Self::Ajp { .. } => None,
            Self::Memcached(client) => Some(client.error_message()).filter(|text| !text.is_empty()),
        }
    }

    /// Notes that the server has closed its sending side; `has_unread`: bytes before it are not taken yet. Returns
    /// whether that completes the response.
    pub(crate) fn receive_eof(&mut self, has_unread: bool) -> bool {
        match self {
            Self::Http(skimmer) => skimmer
                .receive_eof(has_unread)
                .is_ok_and(|end| end.is_some()),
            Self::Ajp { .. } | Self::Memcached(_) => false,
        }
    }

    /// The number of bytes of the current request's body that the AJP13 server has asked for and was sent.
    pub(crate) fn rest_sent(&self) -> usize {
        match self {
            Self::Http(_) | Self::Memcached(_) => 0,
            Self::Ajp { rest_sent, .. } => *rest_sent,
        }
    }

    /// Whether another request may be sent on the connection, by its protocol's rules.
    pub(crate) fn can_reuse(&self) -> bool {
        match self {
            Self::Http(skimmer) => skimmer.is_idle(),
            Self::Ajp { client, .. } => client.can_reuse(),
            Self::Memcached(client) => client.can_reuse(),
        }
    }
}

/// The request of an exchange, and the buffer for bytes in reply, while its response is received.
pub(crate) struct OwnSide<'a> {
    pub(crate) request: &'a PreparedRequest,
    /// The buffer for bytes that the protocol must send in reply.
    pub(crate) out: &'a mut BytesMut,
}

impl LastHeads {
    /// The head of an answer over HTTP/2.
    pub(crate) fn of_http2(head: &ResponseHead) -> Self {
        let line = format!("HTTP/2 {}\r\n", head.status.as_str());
        Self {
            http2: Some(head_text(&line, head)),
            ..Self::default()
        }
    }

    /// Calls `take` with each Set-Cookie field of the last head.
    pub(crate) fn each_set_cookie(&self, codec: Codec, mut take: impl FnMut(&[u8])) {
        if codec == Codec::Ajp {
            let head = self.ajp.head().into_iter();
            let fields = head.flat_map(|head| head.headers.get_all(SET_COOKIE));
            return fields.for_each(take);
        }
        // The first line is the status line.
        for line in self.http.bytes().split(|byte| *byte == b'\n').skip(1) {
            if let Some((name, value)) = line.split_at_checked("set-cookie:".len())
                && name.eq_ignore_ascii_case(b"set-cookie:")
            {
                take(value.trim_ascii());
            }
        }
    }

    /// The last head, as HTTP would write it, and the value of its Server field.
    pub(crate) fn head(&self, codec: Codec) -> (Vec<u8>, Option<String>) {
        let bytes = if let Some(text) = &self.http2 {
            text.clone()
        } else if codec == Codec::Ajp
            && let Some(head) = self.ajp.head()
        {
            head_text(&format!("HTTP/1.1 {}\r\n", head.status), head)
        } else {
            self.http.bytes().to_vec()
        };
        let server = server_field(&bytes);
        (bytes, server)
    }
}

/// Sends the next part of the body that the AJP13 server asked for, in one packet.
fn send_rest(
    client: &mut ajp::Client,
    request: &PreparedRequest,
    rest_sent: &mut usize,
    out: &mut BytesMut,
) {
    let Some(prepared) = &request.ajp else { return };
    let rest = &prepared.rest[*rest_sent..];
    let len = client.body_credit().min(rest.len());
    client.send_data(&rest[..len], out);
    *rest_sent += len;
    if len == rest.len() {
        // All of an announced body was sent, so it can end.
        let ended = client.finish_body(out);
        debug_assert_eq!(ended, Ok(()), "the body is as long as announced");
    }
}

fn http_step(skimmed: http1::Http1Skim) -> Step {
    match skimmed {
        http1::Http1Skim::Interim(bytes) => Step::Interim(bytes as u64),
        http1::Http1Skim::Head(outline) => Step::Head {
            status: outline.status.as_u16(),
            bytes: outline.bytes as u64,
            has_length: outline.content_length.is_some(),
        },
        http1::Http1Skim::Body(bytes) => Step::Body(bytes as u64),
        http1::Http1Skim::End => Step::End,
    }
}

/// A response of AJP13 as a step. The packet that asks for the next body bytes has no bytes of the response.
fn ajp_step(skimmed: ajp::client::AjpSkim) -> Step {
    use ajp::client::AjpSkim;
    match skimmed {
        AjpSkim::Interim(bytes) => Step::Interim(bytes as u64),
        AjpSkim::Head(outline) => Step::Head {
            status: outline.status.as_u16(),
            bytes: outline.bytes as u64,
            has_length: outline.content_length.is_some(),
        },
        AjpSkim::Body(bytes) => Step::Body(bytes as u64),
        AjpSkim::BodyWanted => Step::Body(0),
        AjpSkim::End => Step::End,
    }
}

/// The kind of failure that a fault of HTTP/1.x is: bytes without a request, a broken body, or a broken head.
fn http_failure(fault: http1::Fault) -> FailureKind {
    use http1::Fault;
    match fault {
        Fault::Unsolicited => FailureKind::Excess,
        Fault::ChunkSize
        | Fault::ChunkSizeTooLarge
        | Fault::ChunkExtension
        | Fault::ChunkLineTooLong
        | Fault::ChunkExtensionsTooLarge
        | Fault::ChunkEnd
        | Fault::Trailer
        | Fault::TrailerTooLarge => FailureKind::BadBody,
        _ => FailureKind::BadHead,
    }
}

fn ajp_failure(fault: ajp::Fault) -> FailureKind {
    match fault {
        ajp::Fault::Unsolicited => FailureKind::Excess,
        _ => FailureKind::BadPacket,
    }
}

/// A response's head as HTTP/1.1 writes it, after the status line `line`, which ends in CRLF.
fn head_text(line: &str, head: &ResponseHead) -> Vec<u8> {
    let mut text = BytesMut::from(line.as_bytes());
    head.headers.write_lines(Traits::NONE, &mut text);
    if let Some(length) = head.content_length {
        text.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
    }
    text.extend_from_slice(b"\r\n");
    text.into()
}

/// The value of the first Server field in `head`; `None` if there is none.
fn server_field(head: &[u8]) -> Option<String> {
    // The first line is the status line.
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        if let Some((name, value)) = line.split_at_checked("server:".len())
            && name.eq_ignore_ascii_case(b"server:")
        {
            return Some(String::from_utf8_lossy(value.trim_ascii()).into_owned());
        }
    }
    None
}

/// The bytes before the data of a SEND_BODY_CHUNK: magic, length of the packet, code, length of the data.
const CHUNK_BYTES: usize = 7;

/// The limits of responses. Heads may be as large as wrk and h2load accept them, larger than a front accepts.
const LIMITS: http1::Limits = http1::Limits {
    head_bytes: 64 * 1024,
    line_bytes: 64 * 1024,
    fields: 512,
    ..http1::Limits::response()
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_field_is_found_in_any_case() {
        let head = b"HTTP/1.1 200 OK\r\nDate: x\r\nSERVER:  nginx/1.22.1 \r\n\r\n";
        assert_eq!(server_field(head).as_deref(), Some("nginx/1.22.1"));
        assert_eq!(server_field(b"HTTP/1.1 200 OK\r\nServers: x\r\n\r\n"), None);
        assert_eq!(server_field(b""), None);
    }
}
