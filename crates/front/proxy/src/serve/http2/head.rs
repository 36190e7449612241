//! The head of a request, from what the `h2` crate decoded.
//!
//! The crate refuses what is malformed by the rules of HTTP/2. Here are the rules of HTTP that it does
//! not know, and those in which it is more lenient than our reader of HTTP/1.1: both give the same
//! [`RequestHead`] or refuse for the same reason.

use bytes::Bytes;
use catamaran_http1::{Fault, Limits};
use catamaran_message::field::is_token_text;
use catamaran_message::name::{CONTENT_LENGTH, EXPECT, HOST, UPGRADE};
use catamaran_message::{
    Authority, BodyLength, Fields, RequestHead, Scheme, decode_target, field, host,
};
use catamaran_upstream::Culprit;
use h2::ext::Protocol;
use http::request::Parts;
use http::{Method, StatusCode};

use crate::exchange::failure::Failure;

/// Why a request is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The request is answered with an error.
    Answer(Failure),
    /// The request is malformed (RFC 9113, section 8.1.1): its stream is reset, for the reason with this token.
    Reset(&'static str),
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        answer(fault.status(), fault.token())
    }
}

fn answer(status: StatusCode, token: &'static str) -> Refusal {
    Refusal::Answer(Failure::new(Culprit::Client, status, token))
}

/// Reads a head; `ended` if no body follows.
pub(crate) fn read(
    parts: Parts,
    ended: bool,
    limits: &Limits,
) -> Result<Box<RequestHead>, Refusal> {
    let (method, uri) = (parts.method, parts.uri);
    let mut headers = Fields::from(&parts.headers);
    // Clients split the field for the sake of compression (RFC 9113, section 8.2.3): the one that it was counts.
    headers.join_cookies();
    check_fields(&headers, limits)?;
    let protocol = parts.extensions.get::<Protocol>();
    if method == Method::CONNECT && protocol.is_none() {
        return Err(Fault::Connect.into());
    }
    if method.as_str().len() > METHOD_MAX {
        return Err(Fault::Method.into());
    }
    let own_scheme = uri.scheme_str().map(|word| {
        let unknown = || answer(StatusCode::MISDIRECTED_REQUEST, "scheme-mismatch");
        Scheme::of_word(word.as_bytes()).ok_or_else(unknown)
    });
    let scheme = own_scheme.transpose()?;
    let text = uri.path_and_query().map_or("", |target| target.as_str());
    if text.len() > limits.target_bytes {
        return Err(Fault::TargetTooLong.into());
    }
    let is_whole_server = text == "*" && method == Method::OPTIONS;
    if !text.starts_with('/') && !is_whole_server {
        return Err(Fault::TargetForm.into());
    }
    let text = Bytes::copy_from_slice(text.as_bytes());
    let (mut target, _) = decode_target(&text, &text, &method).map_err(Fault::from)?;
    target.scheme = scheme;
    let named = uri.authority().map(|authority| authority.as_str());
    let authority = authority(named, &headers)?;
    let body = match content_length(&mut headers)? {
        // What follows belongs to the tunnel.
        Some(_) if protocol.is_some() => return Err(Refusal::Reset("h2-content-length")),
        None if protocol.is_some() => BodyLength::Known(0),
        Some(length) => BodyLength::Known(length),
        None if ended => BodyLength::Known(0),
        None => BodyLength::Unknown,
    };
    if let Some(protocol) = protocol {
        headers.insert(UPGRADE, upgrade(protocol.as_str())?);
    }
    let expect_continue = expects_continue(&headers)? && body != BodyLength::Known(0) && !ended;
    Ok(Box::new(RequestHead {
        method,
        target,
        version: parts.version,
        headers,
        authority: Some(authority),
        body,
        expect_continue,
    }))
}

/// The protocol of an extended CONNECT as HTTP/1.1 names it: a token (RFC 8441, section 4).
fn upgrade(protocol: &str) -> Result<&str, Refusal> {
    let is_token = is_token_text(protocol.as_bytes());
    is_token
        .then_some(protocol)
        .ok_or(Refusal::Reset("h2-pseudo"))
}

/// Checks the limits of fields, and that no value begins or ends with white space, which the crate lets pass.
fn check_fields(headers: &Fields, limits: &Limits) -> Result<(), Refusal> {
    if headers.len() > limits.fields {
        return Err(Fault::TooManyFields.into());
    }
    for field in headers.iter() {
        let value = field.value();
        if let [b' ' | b'\t', ..] | [.., b' ' | b'\t'] = value {
            return Err(Refusal::Reset("h2-field-value"));
        }
        // As a line of HTTP/1.1 it would have a colon and a space.
        if field.name().len() + 2 + value.len() > limits.line_bytes {
            return Err(Fault::FieldTooLong.into());
        }
    }
    Ok(())
}

/// The host of the request: `:authority`, or else `Host`. If both are there they must be equal.
fn authority(named: Option<&str>, headers: &Fields) -> Result<Authority, Refusal> {
    let mut hosts = headers.get_all(HOST);
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(Fault::HostDuplicate.into());
    }
    let parse = |text: &[u8]| host::read_apart(text).map_err(Fault::from);
    let host = host.map(parse).transpose()?;
    let named = named.map(|named| parse(named.as_bytes())).transpose()?;
    match (named, host) {
        (Some(named), Some(host)) if named != host => {
            Err(answer(StatusCode::BAD_REQUEST, "host-mismatch"))
        }
        (Some(authority), _) | (None, Some(authority)) => Ok(authority),
        (None, None) => Err(Fault::HostMissing.into()),
    }
}

/// Takes the announced length out of the fields. The crate has compared it with what came.
fn content_length(headers: &mut Fields) -> Result<Option<u64>, Refusal> {
    let Some(length) = headers.get(CONTENT_LENGTH) else {
        return Ok(None);
    };
    let is_only = headers.get_all(CONTENT_LENGTH).nth(1).is_none();
    let length = field::decimal(length).filter(|_| is_only);
    headers.remove(CONTENT_LENGTH);
    length.map(Some).ok_or(Refusal::Reset("h2-content-length"))
}

/// Whether the client waits for 100 (RFC 9110, section 10.1.1).
fn expects_continue(headers: &Fields) -> Result<bool, Refusal> {
    let mut to_continue = false;
    for value in headers.get_all(EXPECT) {
        for expectation in value.split(|byte| *byte == b',') {
            match expectation.trim_ascii() {
                [] => {}
                text if text.eq_ignore_ascii_case(b"100-continue") => to_continue = true,
                _ => return Err(Fault::Expectation.into()),
            }
        }
    }
    Ok(to_continue)
}

/// The longest method, as in HTTP/1.1.
const METHOD_MAX: usize = 32;

#[cfg(test)]
mod tests;
