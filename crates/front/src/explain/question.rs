//! The request that somebody asks about, and the connection that it is supposed to come by.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use bytes::BytesMut;
use catamaran_http1::{Fault, Server, ServerEvent};
use catamaran_message::RequestHead;
use catamaran_tls::{Facts, Session};

use crate::config::{ListenAddress, ListenerConfig};
use crate::exchange::scene::PeerFacts;

/// A request that is to be explained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// `http://HOST/PATH`, `https://HOST/PATH`, or `/PATH` for a client that asks for `localhost`.
    pub url: String,
    /// Its method; empty is GET.
    pub method: String,
    /// Further header fields, each as `Name: value`.
    pub headers: Vec<String>,
    /// The address that the connection comes from, with or without a port; empty is 127.0.0.1.
    pub from: String,
    /// The listener that accepts the connection, by its name or its address; empty is the one that fits
    /// the URL best.
    pub listen: String,
    /// Whether the client has shown a certificate that was verified, if the listener speaks TLS.
    pub client_certificate: bool,
}

/// A request on a connection that it might have come by.
pub(super) struct Supposed<'l> {
    head: String,
    pub(super) listener: &'l ListenerConfig,
    pub(super) peer: PeerFacts,
}

impl<'l> Supposed<'l> {
    /// The listener is the one that is asked about. Without one it is the first that has the URL's port
    /// and scheme, or else the first with its scheme, or else the first.
    pub(super) fn new(
        listeners: &'l [ListenerConfig],
        question: &Question,
    ) -> Result<Self, String> {
        let url = Url::read(&question.url)?;
        let port = url.port();
        let (listener, secure) = match &question.listen[..] {
            "" => (
                fitting(listeners, &url).ok_or("there is no listener")?,
                url.secure,
            ),
            named => {
                let listener = called(listeners, named)?;
                (listener, listener.tls.is_some())
            }
        };
        let session = || {
            let mut facts = Facts::supposed(&url.host());
            facts.client_sha256 = question.client_certificate.then(|| "0".repeat(64));
            let profile = None;
            Session { facts, profile }
        };
        Ok(Self {
            head: head(question, &url)?,
            listener,
            peer: PeerFacts {
                remote: address(&question.from)?,
                local: local(&listener.address, port),
                tls: secure.then(|| Arc::new(session())),
            },
        })
    }

    /// Reads the head as the listener would.
    pub(super) fn read(&self) -> Result<Box<RequestHead>, Fault> {
        let mut server = Server::new(self.listener.limits);
        match server.receive(&mut BytesMut::from(self.head.as_bytes()))? {
            Some(ServerEvent::Head(head)) => Ok(head),
            // A head that is whole is one, or a fault.
            _ => Err(Fault::RequestLine),
        }
    }
}

/// The first listener that has the URL's port and scheme, or else its scheme, or else the first.
fn fitting<'l>(listeners: &'l [ListenerConfig], url: &Url<'_>) -> Option<&'l ListenerConfig> {
    let port = url.port();
    let by_port =
        |it: &&ListenerConfig| matches!(&it.address, ListenAddress::Tcp(at) if at.port() == port);
    let by_scheme = |it: &&ListenerConfig| it.tls.is_some() == url.secure;
    let mut both = listeners.iter().filter(by_port).filter(by_scheme);
    both.next()
        .or_else(|| listeners.iter().find(by_scheme))
        .or_else(|| listeners.first())
}

/// The listener of that name or address.
fn called<'l>(listeners: &'l [ListenerConfig], text: &str) -> Result<&'l ListenerConfig, String> {
    let is_called = |it: &&ListenerConfig| match (&it.address, text.strip_prefix("unix:")) {
        _ if it.name.as_deref() == Some(text) => true,
        (ListenAddress::Tcp(at), _) => text.parse() == Ok(*at),
        (ListenAddress::Unix(at), Some(path)) => at == Path::new(path),
        (ListenAddress::Unix(_), None) => false,
    };
    listeners.iter().find(is_called).ok_or_else(|| {
        let all: Vec<String> = listeners.iter().map(ListenerConfig::label).collect();
        format!(
            "there is no listener {text:?}; there are {}",
            all.join(", ")
        )
    })
}

/// The parts of a URL, as they stand there.
struct Url<'u> {
    secure: bool,
    /// Host and port; `None` for a path alone.
    authority: Option<&'u str>,
    /// Path and query.
    target: &'u str,
}

impl<'u> Url<'u> {
    fn read(text: &'u str) -> Result<Self, String> {
        let wrong = |what: &str| Err(format!("the URL {text:?} {what}"));
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return wrong("has blanks or characters that are not ASCII; escape them as %20");
        }
        // Clients keep it to themselves.
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

    fn host(&self) -> String {
        let authority = self.authority.unwrap_or(HOST);
        let port = authority
            .rsplit_once(':')
            .filter(|(_, port)| !port.contains(']'));
        port.map_or(authority, |(host, _)| host)
            .to_ascii_lowercase()
    }

    fn port(&self) -> u16 {
        let port = self
            .authority
            .and_then(|it| it.rsplit_once(':')?.1.parse().ok());
        port.unwrap_or(if self.secure { 443 } else { 80 })
    }
}

fn strip<'t>(text: &'t str, scheme: &str) -> Option<&'t str> {
    let start = text.get(..scheme.len())?;
    start
        .eq_ignore_ascii_case(scheme)
        .then(|| &text[scheme.len()..])
}

/// The head as the client sends it.
fn head(question: &Question, url: &Url<'_>) -> Result<String, String> {
    let method = match &question.method[..] {
        "" => "GET",
        method => method,
    };
    if method.contains(|it: char| it.is_ascii_control() || it == ' ') {
        return Err(format!("there is no method {method:?}"));
    }
    let slash = if url.target.starts_with(['/', '*']) {
        ""
    } else {
        "/"
    };
    let mut head = format!("{method} {slash}{} HTTP/1.1\r\n", url.target);
    let is_host = |line: &String| strip(line, "host:").is_some();
    match (url.authority, question.headers.iter().any(is_host)) {
        // Whoever writes it means it.
        (_, true) => {}
        (authority, false) => head += &format!("Host: {}\r\n", authority.unwrap_or(HOST)),
    }
    for line in &question.headers {
        if !line.contains(':') || line.contains(['\r', '\n', '\0']) {
            return Err(format!("{line:?} is no header; write \"Name: value\""));
        }
        head += &format!("{line}\r\n");
    }
    Ok(head + "\r\n")
}

/// Whom the connection comes from. A port of 0 is not told to backends.
fn address(from: &str) -> Result<SocketAddr, String> {
    if from.is_empty() {
        return Ok((Ipv4Addr::LOCALHOST, 0).into());
    }
    let ip = from.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 0));
    ip.or_else(|_| from.parse())
        .map_err(|_| format!("{from:?} is no IP address, with or without a port"))
}

/// The address that such a client connected to.
fn local(listener: &ListenAddress, port: u16) -> SocketAddr {
    match listener {
        ListenAddress::Unix(_) => (Ipv4Addr::LOCALHOST, 0).into(),
        ListenAddress::Tcp(at) => {
            let ip = match at.ip() {
                IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
                ip => ip,
            };
            let port = if at.port() == 0 { port } else { at.port() };
            SocketAddr::new(ip, port)
        }
    }
}

/// Whom a client asks for of which only the path is known.
const HOST: &str = "localhost";
