//! Requests for HTTP/2: the head as `h2` takes it, cloned for each stream.

use bytes::Bytes;
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderName, Method, Request, Uri, Version};

use super::{PreparedRequest, header_map, is_idempotent};
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
    let mut headers = header_map(request)?;
    for name in NOT_CARRIED {
        headers.remove(name);
    }
    let body = request.body.clone();
    let announced = |header: &plan::Header| header.name.eq_ignore_ascii_case("content-length");
    if request.headers.iter().any(announced) {
        headers.insert(http::header::CONTENT_LENGTH, body.len().into());
    }
    let host = headers.remove(http::header::HOST);
    let authority = host.ok_or("HTTP/2 needs a Host field, which becomes the authority")?;
    let authority = authority.to_str().unwrap_or_default();
    let path: PathAndQuery = request.target.parse().map_err(|_| {
        let target = &request.target;
        format!("`{target}` is no path that HTTP/2 can carry")
    })?;
    let uri = Uri::builder()
        .scheme(if is_tls { Scheme::HTTPS } else { Scheme::HTTP })
        .authority(authority)
        .path_and_query(path)
        .build()
        .map_err(|_| format!("`{authority}` is no host and port"))?;
    let to_head = method == Method::HEAD;
    let mut head = Request::new(());
    *head.method_mut() = method;
    *head.uri_mut() = uri;
    *head.version_mut() = Version::HTTP_2;
    *head.headers_mut() = headers;
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

/// Fields of a connection, which HTTP/2 forbids (RFC 9113, section 8.2.2), besides those that
/// [`header_map`] leaves out.
const NOT_CARRIED: [HeaderName; 1] = [http::header::UPGRADE];

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
        let names: Vec<_> = head.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["x-odd", "content-length"]);
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
