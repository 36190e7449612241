//! Requests for HTTP/2, ready for the codec, which compresses each for its connection.

use bytes::{Bytes, BytesMut};
use catamaran_http2::{Client, SendError};
use catamaran_message::name::HOST;
use catamaran_message::{
    BodyLength, Fields, Request, Scheme, Target, decode_target, is_sendable_host,
};
use http::Method;

use super::{PreparedRequest, fields};
use crate::plan;

/// The parts of a prepared request that only HTTP/2 needs.
#[derive(Debug)]
pub(crate) struct PreparedHttp2 {
    method: Method,
    scheme: Scheme,
    host: Bytes,
    target: Target,
    fields: Fields,
    pub(crate) body: Bytes,
}

/// Prepares a request; `is_tls`: over TLS, which decides the scheme that it names.
///
/// # Errors
/// Why HTTP/2 cannot carry it.
pub(super) fn encode(
    request: &plan::Request,
    is_tls: bool,
    number: usize,
) -> Result<PreparedRequest, String> {
    let method = Method::from_bytes(request.method.as_bytes())
        .ok()
        .filter(|method| *method != Method::CONNECT)
        .ok_or_else(|| format!("`{}` is no method that HTTP/2 can carry", request.method))?;
    let fields = fields(request)?;
    let Some(host) = fields.get(HOST) else {
        return Err("HTTP/2 needs a Host field, which becomes the authority".to_owned());
    };
    if !is_sendable_host(host) {
        return Err(format!(
            "`{}` is no host and port",
            String::from_utf8_lossy(host)
        ));
    }
    let text = Bytes::copy_from_slice(request.target.as_bytes());
    // A target with an authority of its own is refused: the Host field has it.
    let Ok((target, None)) = decode_target(&text, &text, &method) else {
        return Err(format!(
            "`{}` is no path that HTTP/2 can carry",
            request.target
        ));
    };
    let prepared = PreparedHttp2 {
        method,
        scheme: if is_tls { Scheme::Https } else { Scheme::Http },
        host: Bytes::copy_from_slice(host),
        target,
        fields,
        body: request.body.clone(),
    };
    Ok(PreparedRequest {
        http2: Some(prepared),
        ..PreparedRequest::new(number, &request.method, Vec::new(), request.body.len())
    })
}

impl PreparedHttp2 {
    /// Writes its head to `out`, as that of the client's next stream, whose number it gives.
    ///
    /// # Errors
    /// See [`SendError`].
    pub(crate) fn send(&self, client: &mut Client, out: &mut BytesMut) -> Result<u32, SendError> {
        let request = Request {
            method: &self.method,
            path: &self.target.path,
            query: self.target.query.as_deref(),
            host: &self.host,
            headers: &self.fields,
            body: BodyLength::Known(self.body.len() as u64),
        };
        client.send_request(&request, self.scheme, out)
    }
}

#[cfg(test)]
mod tests {
    use catamaran_http2::{Config, Event, Limits, Server};
    use catamaran_message::RequestHead;

    use super::*;
    use crate::plan::HttpVersion;

    /// The head as a server reads it.
    fn received(request: &plan::Request) -> Box<RequestHead> {
        let prepared = encode(request, true, 0).unwrap().http2.unwrap();
        let mut wire = BytesMut::new();
        let mut client = Client::new(Limits::response(), Config::default(), &mut wire);
        assert_eq!(prepared.send(&mut client, &mut wire), Ok(1));
        let mut out = BytesMut::new();
        let mut server = Server::new(Limits::request(), Config::default(), &mut out);
        match server.receive(&mut wire, &mut out, || Box::new(RequestHead::empty())) {
            Ok(Some(Event::Head { head, .. })) => head,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_host_becomes_the_authority_and_the_connections_fields_go() {
        let request = plan::Request {
            method: "POST".to_owned(),
            body: Bytes::from_static(b"a=b"),
            ..plan::Request::get("/x|y?y=z|", HttpVersion::Http11)
                .header("Connection", "close")
                .header("Upgrade", "h2c")
                .header("HOST", "shop.example:8443")
                .header("Content-length", "4")
                .header("X-Odd", "v")
        };
        let head = received(&request);
        assert_eq!(head.method, Method::POST);
        assert_eq!(head.target.scheme, Some(Scheme::Https));
        let authority = head.authority.unwrap().to_bytes();
        assert_eq!(authority, "shop.example:8443");
        assert_eq!(head.target.path, "/x%7Cy");
        assert_eq!(head.target.query.as_deref(), Some(&b"y=z|"[..]));
        assert_eq!(head.body, BodyLength::Known(3));
        let names: Vec<_> = head
            .headers
            .iter()
            .map(|field| field.lower_name())
            .collect();
        assert_eq!(names, ["x-odd"]);
    }

    #[test]
    fn what_http2_cannot_carry_is_named() {
        let get = |target: &str| plan::Request::get(target, HttpVersion::Http11);
        let connect = plan::Request {
            method: "CONNECT".to_owned(),
            ..get("/")
        };
        for (request, expected) in [
            (connect, "`CONNECT` is no method"),
            (get("/"), "needs a Host"),
            (get("x").header("Host", "h"), "`x` is no path"),
            (get("/%zz").header("Host", "h"), "`/%zz` is no path"),
            (
                get("http://h/").header("Host", "h"),
                "`http://h/` is no path",
            ),
            (get("/").header("Host", "a b"), "`a b` is no host"),
        ] {
            let fault = encode(&request, true, 0).unwrap_err();
            assert!(fault.contains(expected), "{fault}");
        }
    }
}
