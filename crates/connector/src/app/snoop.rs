//! `/snoop`: what the container sees of a request, as one JSON object.
//!
//! Absent values are `null`. Header fields and attributes are lists of pairs, so that order and
//! repetition show. Each member has a line. Bytes that are no UTF-8 become replacement characters.

use bytes::Bytes;
use catamaran_message::name::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::StatusCode;
use serde_json::Value;

use crate::handler::{Body, BodyLength, Request, Response};

pub(super) fn answer(request: &Request) -> Response {
    let body = Body::Full(describe(request).into());
    Response::new(StatusCode::OK, body)
        .with_header(CONTENT_TYPE, "application/json")
        .with_header(CACHE_CONTROL, "no-store")
        .with_header(X_CONTENT_TYPE_OPTIONS, "nosniff")
}

fn describe(request: &Request) -> String {
    let lines = members(request).map(|(name, value)| format!("  \"{name}\": {value}"));
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

/// The members of the object, in the order in which they are shown.
fn members(request: &Request) -> [(&'static str, Value); 25] {
    let Request { origin, tls, .. } = request;
    let content_length = match request.body {
        BodyLength::Known(length) => Some(length),
        BodyLength::Unknown => None,
    };
    let fields = request.headers.iter();
    let headers = fields.map(|field| pair(field.lower_name().as_bytes(), field.value()));
    let given = request.attributes.iter();
    let attributes = given.map(|(name, value)| pair(name, value));
    [
        ("connector", origin.protocol.as_str().into()),
        ("method", request.method.as_str().into()),
        ("protocol", text(&request.version)),
        ("path", text(&request.path)),
        ("query", optional(request.query.as_ref())),
        ("scheme", origin.scheme().into()),
        ("secure", origin.secure.into()),
        ("server_name", text(&origin.server_name)),
        ("server_port", origin.server_port.into()),
        ("remote_addr", optional(origin.remote_addr.as_ref())),
        ("remote_host", optional(origin.remote_host.as_ref())),
        ("remote_port", origin.remote_port.into()),
        ("local_addr", optional(origin.local_addr.as_ref())),
        ("peer", origin.peer.map(|peer| peer.to_string()).into()),
        ("user", optional(request.user.as_ref())),
        ("auth_type", optional(request.auth_type.as_ref())),
        ("route", optional(request.route.as_ref())),
        ("tls_protocol", optional(tls.protocol.as_ref())),
        ("tls_cipher", optional(tls.cipher.as_ref())),
        ("tls_session", optional(tls.session.as_ref())),
        ("tls_key_size", tls.key_size.into()),
        ("tls_certificate", optional(tls.certificate.as_ref())),
        ("content_length", content_length.into()),
        ("headers", headers.collect()),
        ("attributes", attributes.collect()),
    ]
}

fn pair(name: &[u8], value: &[u8]) -> Value {
    Value::from([text(name), text(value)])
}

fn optional(value: Option<&Bytes>) -> Value {
    value.map_or(Value::Null, |value| text(value))
}

fn text(value: &[u8]) -> Value {
    Value::from(String::from_utf8_lossy(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_a_text() {
        let seen = pair(b"a\"b", b"\\ \x00\n\xff\x7f").to_string();
        assert_eq!(seen, "[\"a\\\"b\",\"\\\\ \\u0000\\n\u{fffd}\u{7f}\"]");
    }
}
