//! The request that an explanation is asked for, and the connection that it is assumed to come by.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use bytes::BytesMut;
use catamaran_http1::{Fault, Server, ServerEvent};
use catamaran_http2::{StreamFault, read_request};
use catamaran_message::RequestHead;
use catamaran_tls::{Facts, Profile, Session};
use http::StatusCode;

use crate::client::http2::{session, websocket};
use crate::config::{ListenAddress, ListenerConfig, Protocols};
use crate::exchange::failure::Failure;
use crate::peer::PeerFacts;
use crate::serve::http2::failure;
use crate::site::Site;

/// A request to be explained, as an operator describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// The URL: `http://HOST/PATH`, `https://HOST/PATH`, or `/PATH` for a client that asks for
    /// `localhost`.
    pub url: String,
    /// The request's method; empty: GET.
    pub method: String,
    /// Further header fields, each as `Name: value`. Over HTTP/2 `:protocol: NAME` goes with CONNECT.
    pub headers: Vec<String>,
    /// The address that the connection comes from, with or without a port; empty is 127.0.0.1. On a
    /// listener with `proxy_protocol` it is the address that the proxy's header gives.
    pub from: String,
    /// The listener that accepts the connection, by its name or its address; empty is the one that fits
    /// the URL best.
    pub listen: String,
    /// Whether the client has shown a certificate that was verified, if the listener speaks TLS.
    pub client_certificate: bool,
    /// The answer of the route's sign-on to be supposed: its status, and fields as `,NAME=VALUE`; empty: a 2xx without
    /// fields.
    pub auth: String,
    /// Whether the client speaks HTTP/2; `false` has no effect on a listener that speaks HTTP/2 only.
    pub http2: bool,
}

/// The request of a question, the listener that accepts it and the facts of its connection.
pub(super) struct SupposedRequest<'l> {
    request: Request,
    pub(super) listener: &'l ListenerConfig,
    pub(super) peer: PeerFacts,
}

/// A request as its client would send it.
enum Request {
    /// The bytes of an HTTP/1.1 head.
    Http1(String),
    /// The fields, those of the request line first.
    Http2(Vec<(String, String)>),
}

/// Why a request cannot be read: the status, the token and the sentence of the refusal.
pub(super) struct Unreadable {
    pub(super) status: StatusCode,
    pub(super) token: &'static str,
    pub(super) text: String,
}

impl Unreadable {
    fn failed(failure: Failure) -> Self {
        let token = failure.reason.token();
        Self {
            status: failure.status,
            token,
            text: format!("it is no request: {token}"),
        }
    }

    /// An error for a malformed HTTP/2 request, whose stream is reset (RFC 9113, section 8.1.1).
    fn reset(token: &'static str) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            token,
            text: format!("it is no request of HTTP/2, and its stream is reset: {token}"),
        }
    }
}

impl From<catamaran_http2::Fault> for Unreadable {
    fn from(fault: catamaran_http2::Fault) -> Self {
        let token = fault.token();
        Self {
            status: StatusCode::BAD_REQUEST,
            token,
            text: format!("it is no request of HTTP/2, and its connection is closed: {token}"),
        }
    }
}

impl From<StreamFault> for Unreadable {
    fn from(fault: StreamFault) -> Self {
        match fault.status() {
            Some(_) => Self::failed(failure(fault)),
            None => Self::reset(fault.token()),
        }
    }
}

impl From<Fault> for Unreadable {
    fn from(fault: Fault) -> Self {
        Self {
            status: fault.status(),
            token: fault.token(),
            text: format!("it is no request: {fault}"),
        }
    }
}

impl<'l> SupposedRequest<'l> {
    /// Builds the request and its connection from a question. The listener is the one that the question
    /// names; without a name it is the first that has the URL's port and scheme, or else the first with
    /// its scheme, or else the first. `profile` returns the TLS profile of a listener.
    pub(super) fn new(
        listeners: &'l [ListenerConfig],
        question: &Question,
        profile: impl FnOnce(&ListenerConfig) -> Option<Arc<Profile>>,
    ) -> Result<Self, String> {
        let url = Url::read(&question.url)?;
        let port = url.port();
        let (listener, secure) = match &question.listen[..] {
            "" => (
                best_fitting(listeners, &url).ok_or("there is no listener")?,
                url.secure,
            ),
            name_or_address => {
                let listener = lookup(listeners, name_or_address)?;
                (listener, listener.is_secure())
            }
        };
        let session = || Session {
            facts: tls_facts(question, &url.host()),
            profile: profile(listener),
        };
        Ok(Self {
            request: request(question, listener, &url, secure)?,
            listener,
            peer: PeerFacts {
                remote: address(&question.from)?,
                local: local(&listener.address, port),
                secure,
                tls: (secure && listener.tls.is_some()).then(|| Arc::new(session())),
            },
        })
    }

    /// Reads the request's head as the listener would, with its limits.
    pub(super) fn read(self, site: &Site) -> Result<Box<RequestHead>, Unreadable> {
        let limits = self.listener.limits;
        match self.request {
            Request::Http1(head) => {
                let mut server = Server::new(limits);
                match server.receive(&mut BytesMut::from(head.as_bytes()))? {
                    Some(ServerEvent::Head(head)) => Ok(head),
                    // Not expected: a whole head yields a request or a fault.
                    _ => Err(Fault::RequestLine.into()),
                }
            }
            Request::Http2(fields) => {
                let value_of = |wanted: &str| {
                    let found = fields.iter().find(|(name, _)| name == wanted);
                    found.map(|(_, value)| &value[..])
                };
                let is_tunnel = value_of(":protocol").is_some();
                let has_no_body = value_of("content-length").is_none_or(|length| length == "0");
                let ends = !is_tunnel && has_no_body;
                let bytes = fields
                    .iter()
                    .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
                let has_tunnels = site.routes.has_tunnels();
                let mut head = read_request(bytes, ends, has_tunnels, &session::limits(&limits))??;
                if is_tunnel {
                    websocket::suppose_key(&mut head.headers);
                }
                Ok(head)
            }
        }
    }
}

/// The first listener that has the URL's port and scheme, or else its scheme, or else the first.
fn best_fitting<'l>(listeners: &'l [ListenerConfig], url: &Url<'_>) -> Option<&'l ListenerConfig> {
    let port = url.port();
    let has_port =
        |it: &ListenerConfig| matches!(&it.address, ListenAddress::Tcp(tcp) if tcp.port() == port);
    let has_scheme = |it: &ListenerConfig| it.is_secure() == url.secure;
    let mut all = listeners.iter();
    all.find(|it| has_port(it) && has_scheme(it))
        .or_else(|| listeners.iter().find(|it| has_scheme(it)))
        .or_else(|| listeners.first())
}

/// The listener that has this name or address.
fn lookup<'l>(listeners: &'l [ListenerConfig], text: &str) -> Result<&'l ListenerConfig, String> {
    let unix_path = text.strip_prefix("unix:").map(Path::new);
    for listener in listeners {
        let is_meant = listener.name.as_deref() == Some(text)
            || match &listener.address {
                ListenAddress::Tcp(address) => text.parse() == Ok(*address),
                ListenAddress::Unix(path) => unix_path == Some(path),
            };
        if is_meant {
            return Ok(listener);
        }
    }
    let labels: Vec<String> = listeners.iter().map(ListenerConfig::label).collect();
    let list = labels.join(", ");
    Err(format!("there is no listener {text:?}; there are {list}"))
}

/// The parts of a URL, unchanged, except for the fragment, which is cut off.
struct Url<'u> {
    secure: bool,
    /// Host and port; `None`: the URL is only a path.
    authority: Option<&'u str>,
    /// Path and query, without the fragment.
    target: &'u str,
}

impl<'u> Url<'u> {
    /// Reads a URL of the scheme `http` or `https`, or a path. The error says what is wrong.
    fn read(text: &'u str) -> Result<Self, String> {
        let wrong = |what: &str| Err(format!("the URL {text:?} {what}"));
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return wrong("has blanks or characters that are not ASCII; escape them as %20");
        }
        // Clients do not send the fragment.
        let text_sent = text.split('#').next().unwrap_or_default();
        let (secure, rest) = if let Some(rest) = strip(text_sent, "http://") {
            (false, rest)
        } else if let Some(rest) = strip(text_sent, "https://") {
            (true, rest)
        } else if text_sent.starts_with('/') || text_sent == "*" {
            return Ok(Self {
                secure: false,
                authority: None,
                target: text_sent,
            });
        } else {
            return wrong("is neither http://HOST/PATH nor https://HOST/PATH nor /PATH");
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.is_empty() {
            return wrong("has no host");
        }
        if authority.contains('@') {
            return wrong("has a user, which a client sends as `Authorization`: use a header");
        }
        Ok(Self {
            secure,
            authority: Some(authority),
            target,
        })
    }

    /// The host in lower case, without the port.
    fn host(&self) -> String {
        let authority = self.authority.unwrap_or(HOST);
        let host = match authority.rsplit_once(':') {
            // A colon before `]` is part of an IPv6 address.
            Some((host, port)) if !port.contains(']') => host,
            _ => authority,
        };
        host.to_ascii_lowercase()
    }

    fn port(&self) -> u16 {
        let port = self
            .authority
            .and_then(|it| it.rsplit_once(':')?.1.parse().ok());
        port.unwrap_or(if self.secure { 443 } else { 80 })
    }
}

/// The text after a prefix whose case does not matter; `None`: the text does not begin with it.
fn strip<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn method(question: &Question) -> Result<&str, String> {
    match &question.method[..] {
        "" => Ok("GET"),
        method if method.contains(|it: char| it.is_ascii_control() || it == ' ') => {
            Err(format!("there is no method {method:?}"))
        }
        method => Ok(method),
    }
}

/// The `/` to put before a target that does not begin with a path, else nothing.
fn slash(target: &str) -> &'static str {
    if target.starts_with(['/', '*']) {
        ""
    } else {
        "/"
    }
}

/// The request in the protocol that the question and the listener have in common.
fn request(
    question: &Question,
    listener: &ListenerConfig,
    url: &Url<'_>,
    secure: bool,
) -> Result<Request, String> {
    match listener.protocols {
        Protocols::Http1 if question.http2 => Err(format!(
            "the listener {} does not speak HTTP/2: see its `protocols`",
            listener.label()
        )),
        Protocols::Both if question.http2 => Ok(Request::Http2(http2(question, url, secure)?)),
        Protocols::Http2 => Ok(Request::Http2(http2(question, url, secure)?)),
        Protocols::Http1 | Protocols::Both => Ok(Request::Http1(head(question, url)?)),
    }
}

/// What is agreed on with a client that asks for this host over TLS.
fn tls_facts(question: &Question, host: &str) -> Facts {
    let mut facts = Facts::supposed(host);
    // Clients do not send addresses (RFC 6066, section 3).
    let without_brackets = host.trim_start_matches('[').trim_end_matches(']');
    if without_brackets.parse::<IpAddr>().is_ok() {
        facts.sni = None;
    }
    facts.client_sha256 = question.client_certificate.then(|| "0".repeat(64));
    facts
}

/// The fields that a client of HTTP/2 sends.
fn http2(
    question: &Question,
    url: &Url<'_>,
    secure: bool,
) -> Result<Vec<(String, String)>, String> {
    // A URL that is only a path has no scheme; then that of the connection holds.
    let is_secure = match url.authority {
        Some(_) => url.secure,
        None => secure,
    };
    let target = format!("{}{}", slash(url.target), url.target);
    let mut fields = vec![
        (":method".to_owned(), method(question)?.to_owned()),
        (
            ":scheme".to_owned(),
            if is_secure { "https" } else { "http" }.to_owned(),
        ),
        (
            ":authority".to_owned(),
            url.authority.unwrap_or(HOST).to_owned(),
        ),
        (":path".to_owned(), target),
    ];
    for line in &question.headers {
        let (name, value) = field(line)?;
        fields.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    // Clients send those of the request line first, wherever somebody has written them.
    fields.sort_by_key(|(name, _)| !name.starts_with(':'));
    Ok(fields)
}

/// Splits a line at its colon into name and value. A colon at the beginning belongs to the name.
fn field(line: &str) -> Result<(&str, &str), String> {
    let after_first = line.get(1..).unwrap_or_default();
    match after_first.find(':') {
        Some(length) if !line.contains(['\r', '\n', '\0']) => {
            let (name, value) = line.split_at(length + 1);
            Ok((name, value[1..].trim_matches([' ', '\t'])))
        }
        _ => Err(format!("{line:?} is no header; write \"Name: value\"")),
    }
}

/// Builds the head as an HTTP/1.1 client sends it.
fn head(question: &Question, url: &Url<'_>) -> Result<String, String> {
    let method = method(question)?;
    let slash = slash(url.target);
    let mut head = format!("{method} {slash}{} HTTP/1.1\r\n", url.target);
    let is_host = |line: &String| strip(line, "host:").is_some();
    // A `Host` among the question's fields is used instead of the URL's.
    if !question.headers.iter().any(is_host) {
        head += &format!("Host: {}\r\n", url.authority.unwrap_or(HOST));
    }
    for line in &question.headers {
        field(line)?;
        head += &format!("{line}\r\n");
    }
    Ok(head + "\r\n")
}

/// Parses the address that the connection comes from; empty is 127.0.0.1. Port 0, for an address
/// without one, is not sent to backends.
fn address(from: &str) -> Result<SocketAddr, String> {
    if from.is_empty() {
        return Ok((Ipv4Addr::LOCALHOST, 0).into());
    }
    if let Ok(ip) = from.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, 0));
    }
    from.parse()
        .map_err(|_| format!("{from:?} is no IP address, with or without a port"))
}

/// The address that the client connected to, if the listener is at `listener`. A port of 0 becomes
/// `url_port`.
fn local(listener: &ListenAddress, url_port: u16) -> SocketAddr {
    match listener {
        ListenAddress::Unix(_) => (Ipv4Addr::LOCALHOST, 0).into(),
        ListenAddress::Tcp(address) => {
            let ip = match address.ip() {
                IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
                ip => ip,
            };
            match address.port() {
                0 => SocketAddr::new(ip, url_port),
                port => SocketAddr::new(ip, port),
            }
        }
    }
}

/// The host of a request if the question gives only a path.
const HOST: &str = "localhost";
