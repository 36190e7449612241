//! Recognises requests for a tunnel: for another protocol, such as WebSocket, instead of a response.

use std::time::Duration;

use catamaran_message::name::{CONNECTION, UPGRADE};
use catamaran_message::{BodyLength, RequestHead};
use catamaran_upstream::Tunnel;
use http::Method;

use crate::version;

/// A tunnel that a request asks for and its route allows.
#[derive(Debug)]
pub(crate) struct TunnelRequest<'a> {
    /// The protocol, as the route names it.
    pub(crate) token: &'a str,
    /// How long the tunnel may be silent before it is closed.
    pub(crate) idle: Duration,
    /// The backend's end of the tunnel; `None` until the backend has agreed and the client has been told.
    pub(crate) opened: Option<Tunnel>,
}

/// The protocol of `allowed` that a request asks to change to; `None`: none. Such a request is a GET of
/// HTTP/1.1 without a body that names only this protocol, or an extended CONNECT of HTTP/2 (RFC 8441),
/// whose head has the protocol as `Upgrade`. Other requests of HTTP/1.1 are served as if they did not ask
/// (RFC 9110, section 7.8).
pub(crate) fn asked<'a>(allowed: &'a [String], head: &RequestHead) -> Option<&'a str> {
    if allowed.is_empty() || !(is_extended_connect(head) || is_upgrade(head)) {
        return None;
    }
    let elements = head.headers.elements(UPGRADE);
    let mut protocols = elements.filter(|protocol| !protocol.is_empty());
    let token = protocols.next()?;
    if protocols.next().is_some() {
        return None;
    }
    let mut allowed = allowed.iter().map(String::as_str);
    allowed.find(|protocol| protocol.as_bytes().eq_ignore_ascii_case(token))
}

/// The method by which routes and limits are chosen: GET for a tunnel over HTTP/2, which HTTP/1.1 asks for with GET.
pub(crate) fn method_for_routes(head: &RequestHead) -> &Method {
    if is_extended_connect(head) {
        &Method::GET
    } else {
        &head.method
    }
}

/// Whether the request is an extended CONNECT (RFC 8441); a CONNECT without a protocol was refused
/// before.
pub(crate) fn is_extended_connect(head: &RequestHead) -> bool {
    version::has_streams(head.version) && head.method == Method::CONNECT
}

/// Whether a request of HTTP/1.1 asks for another protocol, in the form that a tunnel needs.
fn is_upgrade(head: &RequestHead) -> bool {
    let mut options = head.headers.elements(CONNECTION);
    head.method == Method::GET
        && version::has_upgrade(head.version)
        && head.body == BodyLength::Known(0)
        && options.any(|option| option.eq_ignore_ascii_case(b"upgrade"))
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use catamaran_http1::{Limits as HttpLimits, Server, ServerEvent};

    use super::*;

    fn token(head: &str) -> Option<String> {
        let mut input = BytesMut::from(head.as_bytes());
        let Some(ServerEvent::Head(head)) = Server::new(HttpLimits::request())
            .receive(&mut input)
            .unwrap()
        else {
            panic!("a head");
        };
        let allowed = ["websocket".to_owned(), "other".to_owned()];
        asked(&allowed, &head).map(str::to_owned)
    }

    #[test]
    fn only_a_bodiless_get_with_one_allowed_token_asks() {
        let good = "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\n\
                    Upgrade: WebSocket\r\n\r\n";
        assert_eq!(token(good).as_deref(), Some("websocket"));
        for (from, to) in [
            ("WebSocket", "h2c"),
            ("WebSocket", "websocket, other"),
            ("Upgrade: WebSocket", "Upgrade: websocket\r\nUpgrade: other"),
            ("WebSocket", ""),
            ("Upgrade: WebSocket\r\n", ""),
            ("keep-alive, Upgrade", "keep-alive"),
            ("GET", "POST"),
            ("Host", "Content-Length: 3\r\nHost"),
            ("Host", "Transfer-Encoding: chunked\r\nHost"),
        ] {
            assert_eq!(token(&good.replace(from, to)), None, "{from} -> {to}");
        }
        let old = "GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
        assert_eq!(token(old), None);
    }
}
