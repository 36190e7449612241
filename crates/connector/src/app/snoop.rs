//! `/snoop`: what the container sees of a request, as one JSON object.
//!
//! Absent values are `null`. Header fields and attributes are lists of pairs, so that order and
//! repetition show. Bytes that are no UTF-8 become replacement characters.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};
use serde_json::Value;

use crate::config::Protocol;
use crate::handler::{Body, BodyLength, Request, Response};

pub(super) fn answer(request: &Request) -> Response {
    let body = Body::Full(describe(request).into());
    Response::new(StatusCode::OK, body)
        .with_header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .with_header(CACHE_CONTROL, HeaderValue::from_static("no-store"))
        .with_header(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
}

fn describe(request: &Request) -> String {
    let Request { origin, tls, .. } = request;
    let mut json = Object::default();
    json.text(
        "connector",
        match origin.protocol {
            Protocol::Ajp => "ajp",
            Protocol::Http => "http",
        },
    );
    json.text("method", request.method.as_str());
    json.text("protocol", &request.version);
    json.text("path", &request.path);
    json.optional("query", request.query.as_deref());
    json.text("scheme", origin.scheme());
    json.raw("secure", if origin.secure { "true" } else { "false" });
    json.text("server_name", &origin.server_name);
    json.number("server_port", Some(origin.server_port));
    json.optional("remote_addr", origin.remote_addr.as_deref());
    json.optional("remote_host", origin.remote_host.as_deref());
    json.number("remote_port", origin.remote_port);
    json.optional("local_addr", origin.local_addr.as_deref());
    json.optional(
        "peer",
        origin
            .peer
            .map(|peer| peer.to_string())
            .as_deref()
            .map(str::as_bytes),
    );
    json.optional("user", request.user.as_deref());
    json.optional("auth_type", request.auth_type.as_deref());
    json.optional("route", request.route.as_deref());
    json.optional("tls_protocol", tls.protocol.as_deref());
    json.optional("tls_cipher", tls.cipher.as_deref());
    json.optional("tls_session", tls.session.as_deref());
    json.number("tls_key_size", tls.key_size);
    json.optional("tls_certificate", tls.certificate.as_deref());
    json.number(
        "content_length",
        match request.body {
            BodyLength::Known(length) => Some(length),
            BodyLength::Unknown => None,
        },
    );
    let headers = request.headers.iter();
    json.pairs(
        "headers",
        headers.map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes())),
    );
    let attributes = request.attributes.iter();
    json.pairs(
        "attributes",
        attributes.map(|(name, value)| (&name[..], &value[..])),
    );
    json.finish()
}

/// A JSON object being written, one member to a line.
#[derive(Debug, Default)]
struct Object(String);

impl Object {
    fn raw(&mut self, name: &str, value: &str) {
        self.name(name);
        self.0.push_str(value);
    }

    fn text(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.name(name);
        self.string(value.as_ref());
    }

    fn optional(&mut self, name: &str, value: Option<&[u8]>) {
        match value {
            Some(value) => self.text(name, value),
            None => self.raw(name, "null"),
        }
    }

    fn number(&mut self, name: &str, value: Option<impl ToString>) {
        match value {
            Some(value) => self.raw(name, &value.to_string()),
            None => self.raw(name, "null"),
        }
    }

    fn pairs<'a>(&mut self, name: &str, pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>) {
        self.name(name);
        let mut before = "[";
        for (key, value) in pairs {
            self.0.push_str(before);
            self.0.push('[');
            self.string(key);
            self.0.push_str(", ");
            self.string(value);
            self.0.push(']');
            before = ", ";
        }
        self.0.push_str(if before == "[" { "[]" } else { "]" });
    }

    fn name(&mut self, name: &str) {
        self.0
            .push_str(if self.0.is_empty() { "{\n  " } else { ",\n  " });
        self.string(name.as_bytes());
        self.0.push_str(": ");
    }

    fn string(&mut self, value: &[u8]) {
        let text = Value::from(String::from_utf8_lossy(value));
        self.0.push_str(&text.to_string());
    }

    fn finish(mut self) -> String {
        self.0.push_str("\n}\n");
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_valid_json_whatever_the_bytes() {
        let mut json = Object::default();
        json.text("a\"b", b"\\ \x00\n\xff\x7f");
        json.optional("none", None);
        json.number("n", Some(7));
        json.pairs("empty", std::iter::empty());
        json.pairs("pairs", [(&b"k"[..], &b"v"[..]), (b"k", b"w")].into_iter());
        let expected = "{\n  \"a\\\"b\": \"\\\\ \\u0000\\n\u{fffd}\u{7f}\",\n  \"none\": null,\n  \
                        \"n\": 7,\n  \"empty\": [],\n  \"pairs\": [[\"k\", \"v\"], [\"k\", \"w\"]]\n}\n";
        assert_eq!(json.finish(), expected);
    }
}
