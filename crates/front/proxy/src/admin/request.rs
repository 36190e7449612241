//! One request of an administrator: read within limits, answered, and the connection closed.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use catamaran_http1::{Fault, Limits, Server, ServerEvent};
use catamaran_message::{BodyLength, RequestHead};
use catamaran_transport::Stream;
use http::StatusCode;
use tokio::io::AsyncWriteExt;

use super::reply::Reply;
use super::sign_on::{self, Caller};
use super::{Desk, Work, access, api, health, page};
use crate::config::AdminConfig;
use crate::listener::{BoundAddress, Incoming};

/// The client that sent the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    Tcp(SocketAddr),
    /// A process of this machine that may open the socket's file. `Some`: the id of its user; `None`:
    /// it is unknown.
    Unix(Option<u32>),
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(Some(user)) => write!(f, "uid {user}"),
            Self::Unix(None) => f.write_str("a local process"),
        }
    }
}

/// A request with its body.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) head: Box<RequestHead>,
    pub(super) body: Vec<u8>,
    pub(super) peer: Peer,
    pub(super) caller: Caller,
}

impl Request {
    /// Who sends it, for the log of changes.
    pub(super) fn author(&self) -> String {
        match &self.caller {
            Caller::SignedOn(Some(user)) => format!("{user} at {}", self.peer),
            Caller::SignedOn(None) | Caller::NotAsked => self.peer.to_string(),
        }
    }
}

/// Serves one request of a connection, then closes it.
pub(super) async fn serve(
    desk: Arc<Desk>,
    bound: BoundAddress,
    incoming: Incoming,
    work: Work,
) -> io::Result<()> {
    let Incoming {
        mut stream, remote, ..
    } = incoming;
    let peer = match &stream {
        Stream::Tcp(_) | Stream::Tls(_) => Peer::Tcp(remote),
        Stream::Unix(socket) => Peer::Unix(socket.peer_cred().ok().map(|it| it.uid())),
    };
    let mut wire = AdminWire {
        server: Server::new(Limits::request()),
        input: BytesMut::new(),
        stream: &mut stream,
        unread: false,
        work,
    };
    let reply = match wire.head().await? {
        Ok(Some(head)) => answer(&desk, &bound, peer, &mut wire, head).await?,
        Ok(None) => return Ok(()),
        Err(fault) => Reply::text(fault.status(), "This is not a valid HTTP request.\n"),
    };
    wire.finish(&reply).await
}

/// The answer to a request. Its body is read only if it may go to [`api`].
async fn answer(
    desk: &Desk,
    bound: &BoundAddress,
    peer: Peer,
    wire: &mut AdminWire<'_>,
    head: Box<RequestHead>,
) -> io::Result<Reply> {
    let is_read = matches!(head.method, http::Method::GET | http::Method::HEAD);
    // Before the check of access: monitoring has no token.
    match health::answer(desk, &head) {
        Some(reply) if is_read => return Ok(reply),
        Some(_) => return Ok(Reply::method("GET, HEAD")),
        None => {}
    }
    let config = desk.config.load_full();
    if let Err(refusal) = access::check_names(&config, bound, peer, &head) {
        return Ok(refusal);
    }
    let (caller, cookies) = match sign_on::caller(desk, &config, bound, peer, &head).await {
        Ok(admitted) => admitted,
        Err(refusal) => return Ok(refusal),
    };
    let request = Request {
        head,
        body: Vec::new(),
        peer,
        caller,
    };
    let reply = answer_caller(desk, &config, bound, wire, request).await?;
    Ok(reply.cookies(&cookies))
}

/// The answer to a request whose caller is known. Its body is read here.
async fn answer_caller(
    desk: &Desk,
    config: &AdminConfig,
    bound: &BoundAddress,
    wire: &mut AdminWire<'_>,
    mut request: Request,
) -> io::Result<Reply> {
    let Request {
        head, peer, caller, ..
    } = &request;
    if let Err(refusal) = access::check(config, bound, *peer, caller, head) {
        return Ok(refusal);
    }
    let is_read = matches!(head.method, http::Method::GET | http::Method::HEAD);
    if is_read && let Some(file) = page::answer(&head.target.path) {
        return Ok(file);
    }
    request.body = match wire.body(head).await? {
        Ok(body) => body,
        Err(refusal) => return Ok(refusal),
    };
    // Meanwhile the connection is not closed to make room for another.
    wire.work.set(true);
    let reply = api::answer(desk, &request).await;
    wire.work.set(false);
    Ok(reply)
}

/// The connection of one request: the decoder, the bytes received, and the socket.
struct AdminWire<'s> {
    server: Server,
    input: BytesMut,
    stream: &'s mut Stream,
    /// Whether a part of the request may still arrive.
    unread: bool,
    work: Work,
}

impl AdminWire<'_> {
    /// Reads the head of the request; `None` if the client left. The inner error is a fault of the request.
    async fn head(&mut self) -> io::Result<Result<Option<Box<RequestHead>>, Fault>> {
        loop {
            match self.server.receive(&mut self.input) {
                Ok(Some(ServerEvent::Head(head))) => {
                    self.unread = head.body != BodyLength::Known(0);
                    return Ok(Ok(Some(head)));
                }
                // Not before a head.
                Ok(Some(ServerEvent::Body(_) | ServerEvent::BodyEnd)) => return Ok(Ok(None)),
                Ok(None) => {}
                Err(fault) => return Ok(Err(fault)),
            }
            if self.read().await? == 0 {
                return Ok(Ok(None));
            }
        }
    }

    /// Reads the body. The inner error is the answer that refuses it.
    async fn body(&mut self, head: &RequestHead) -> io::Result<Result<Vec<u8>, Reply>> {
        let mut body = Vec::new();
        if head.body == BodyLength::Known(0) {
            return Ok(Ok(body));
        }
        if matches!(head.body, BodyLength::Known(length) if length > BODY_MAX as u64) {
            return Ok(Err(too_large()));
        }
        let mut output = BytesMut::new();
        self.server.send_continue(&mut output);
        self.stream.write_all(&output).await?;
        loop {
            match self.server.receive(&mut self.input) {
                Ok(Some(ServerEvent::Body(data))) if body.len() + data.len() > BODY_MAX => {
                    return Ok(Err(too_large()));
                }
                Ok(Some(ServerEvent::Body(data))) => body.extend_from_slice(&data),
                Ok(Some(ServerEvent::BodyEnd | ServerEvent::Head(_))) => {
                    self.unread = false;
                    return Ok(Ok(body));
                }
                Ok(None) => {
                    if self.read().await? == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(fault) => {
                    return Ok(Err(Reply::text(
                        fault.status(),
                        "This is not a valid HTTP request.\n",
                    )));
                }
            }
        }
    }

    async fn read(&mut self) -> io::Result<usize> {
        self.input.reserve(READ_MIN);
        poll_fn(|cx| self.stream.poll_read(cx, &mut self.input)).await
    }

    /// Sends the answer and closes. What the client still sends is read first, up to a limit: a close
    /// with unread bytes would reset the connection, and the answer might be lost.
    async fn finish(mut self, reply: &Reply) -> io::Result<()> {
        self.server.close_after();
        let mut output = BytesMut::new();
        if !reply.encode(&mut self.server, &mut output) {
            return Ok(());
        }
        self.stream.write_all(&output).await?;
        self.stream.shutdown().await?;
        if !self.unread {
            return Ok(());
        }
        let mut discarded = 0;
        while discarded < LINGER_MAX {
            self.input.clear();
            match self.read().await? {
                // The client has closed its side.
                0 => break,
                read => discarded += read,
            }
        }
        Ok(())
    }
}

fn too_large() -> Reply {
    let detail = format!("a body has no more than {BODY_MAX} bytes");
    Reply::problem(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", &detail)
}

/// The first value of a parameter of the query, decoded.
pub(super) fn parameter(query: Option<&[u8]>, name: &str) -> Option<String> {
    parameters(query, name).next()
}

/// All values of a parameter of the query, decoded; bytes that are not UTF-8 become U+FFFD.
pub(super) fn parameters<'q>(
    query: Option<&'q [u8]>,
    name: &'q str,
) -> impl Iterator<Item = String> + 'q {
    form_urlencoded::parse(query.unwrap_or_default())
        .filter(move |(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

/// Percent-decodes a segment of a path. `None` if an escape is malformed, or the result is not UTF-8.
fn decode(segment: &[u8]) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'%' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            if digits.starts_with('+') {
                return None; // `from_str_radix` takes a sign.
            }
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// The segments of a path, decoded; `None` if one of them cannot be decoded.
pub(super) fn segments(path: &Bytes) -> Option<Vec<String>> {
    let path = path.strip_prefix(b"/")?;
    path.split(|&byte| byte == b'/').map(decode).collect()
}

/// The most bytes that the body of a request may have.
const BODY_MAX: usize = 64 << 10;

/// The least room for each read, in bytes.
const READ_MIN: usize = 1024;

/// The most bytes that are read, and thrown away, after the answer.
const LINGER_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_once() {
        let path = Bytes::from_static(b"/api/ajp%3A%2F%2F10.0.0.1%3A8009/%2525+/");
        let expected = ["api", "ajp://10.0.0.1:8009", "%25+", ""];
        assert_eq!(segments(&path).expect("segments"), expected);
        for bad in [&b"/%"[..], b"/%4", b"/%zz", b"/%+1", b"/%ff", b"x"] {
            assert_eq!(segments(&Bytes::from_static(bad)), None);
        }
        let query = Some(&b"a=1&url=%2Fx+y%26&a=2&b"[..]);
        assert_eq!(parameter(query, "url").as_deref(), Some("/x y&"));
        assert_eq!(parameters(query, "a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(parameter(query, "b").as_deref(), Some(""));
        assert_eq!(parameter(query, "c"), None);
    }
}
