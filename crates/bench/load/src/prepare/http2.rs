//! Requests for HTTP/2: the head as `h2` takes it, cloned for each stream.

use bytes::Bytes;
use catamaran_message::name::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE};
use http::uri::{PathAndQuery, Scheme};
use http::{Method, Request, Uri, Version};

use super::{PreparedRequest, fields, is_idempotent};
use crate::plan;

/// What HTTP/2 needs.
#[derive(Debug)]
pub(crate) struct PreparedHttp2 {
    pub(crate) head: Request<()>,
    pub(crate) body: Bytes,
}

/// Encodes a request; `is_tls`: over TLS, which decides the scheme that it names.
///
/// # Errors
/// Why HTTP/2 cannot carry it.
pub(super) fn encode(
    request: &plan::Request,
    is_tls: bool,
    number: usize,
) -> Result<PreparedRequest, String> {
    let method = Method::from_bytes(request.method.as_bytes())
        .map_err(|_| format!("`{}` is no method", request.method))?;
    let mut fields = fields(request)?;
    let host = fields.get(HOST);
    let host = host.ok_or("HTTP/2 needs a Host field, which becomes the authority")?;
    let authority = String::from_utf8_lossy(host).into_owned();
    // Fields of a connection are forbidden (RFC 9113, section 8.2.2).
    for name in [HOST, TRANSFER_ENCODING, UPGRADE] {
        fields.remove(name);
    }
    let body = request.body.clone();
    if fields.contains(CONTENT_LENGTH) {
        fields.insert(CONTENT_LENGTH, body.len().to_string());
    }
    let path: PathAndQuery = request.target.parse().map_err(|_| {
        let target = &request.target;
        format!("`{target}` is no path that HTTP/2 can carry")
    })?;
    let uri = Uri::builder()
        .scheme(if is_tls { Scheme::HTTPS } else { Scheme::HTTP })
        .authority(&*authority)
        .path_and_query(path)
        .build()
        .map_err(|_| format!("`{authority}` is no host and port"))?;
    let to_head = method == Method::HEAD;
    let mut head = Request::new(());
    *head.method_mut() = method;
    *head.uri_mut() = uri;
    *head.version_mut() = Version::HTTP_2;
    *head.headers_mut() = fields.to_map();
    Ok(PreparedRequest {
        number,
        bytes: Vec::new(),
        body_bytes: body.len(),
        to_head,
        is_idempotent: is_idempotent(&request.method),
        ajp: None,
        memcached: None,
        maker: None,
        http2: Some(PreparedHttp2 { head, body }),
        dynamic: None,
        path: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::HttpVersion;

    fn prepared(request: &plan::Request) -> Result<PreparedHttp2, String> {
        encode(request, true, 0).map(|prepared| prepared.http2.unwrap())
    }

    #[test]
    fn the_host_becomes_the_authority_and_the_connections_fields_go() {
        let request = plan::Request {
            method: "POST".to_owned(),
            body: Bytes::from_static(b"a=b"),
            ..plan::Request::get("/x?y=z", HttpVersion::Http11)
                .header("Connection", "close")
                .header("Upgrade", "h2c")
                .header("HOST", "shop.example:8443")
                .header("Content-length", "3")
                .header("X-Odd", "v")
        };
        let PreparedHttp2 { head, body } = prepared(&request).unwrap();
        assert_eq!(head.uri(), "https://shop.example:8443/x?y=z");
        let names: Vec<_> = head.headers().keys().collect();
        assert_eq!(names, ["content-length", "x-odd"]);
        assert_eq!(head.headers()["content-length"], "3");
        assert_eq!((head.method(), &body[..]), (&Method::POST, &b"a=b"[..]));
    }

    #[test]
    fn what_http2_cannot_carry_is_named() {
        let get = |target: &str| plan::Request::get(target, HttpVersion::Http11);
        for (request, expected) in [
            (get("/"), "needs a Host"),
            (get("x").header("Host", "h"), "`x` is no path"),
            (get("/").header("Host", "a b"), "`a b` is no host"),
        ] {
            let fault = prepared(&request).unwrap_err();
            assert!(fault.contains(expected), "{fault}");
        }
    }
}
