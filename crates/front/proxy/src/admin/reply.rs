//! Answers of the admin listener; a fault has the form of RFC 9457.

use bytes::BytesMut;
use catamaran_admin_api::Problem;
use catamaran_http1::{BodyLength, Response, Server};
use catamaran_message::name::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, LOCATION, REFERRER_POLICY,
    RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use catamaran_message::{Fields, Id};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

/// An answer of the admin listener: status, body and fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    status: StatusCode,
    body: Vec<u8>,
    /// Boxed to keep results small.
    fields: Box<Fields>,
}

impl Reply {
    pub(super) fn new(status: StatusCode, kind: &'static str, body: impl Into<Vec<u8>>) -> Self {
        let fields = Fields::from_iter([
            (CONTENT_TYPE, kind),
            (CACHE_CONTROL, "no-store"),
            (CONTENT_SECURITY_POLICY, POLICY),
            (REFERRER_POLICY, "no-referrer"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ]);
        Self {
            status,
            body: body.into(),
            fields: Box::new(fields),
        }
    }

    pub(super) fn text(status: StatusCode, body: &str) -> Self {
        Self::new(status, "text/plain; charset=utf-8", body)
    }

    pub(super) fn json(value: &impl Serialize) -> Self {
        Self::new(StatusCode::OK, "application/json", text(value))
    }

    /// A fault, with one word for programs and a sentence for people.
    pub(super) fn problem(status: StatusCode, token: &str, detail: &str) -> Self {
        let problem = Problem {
            kind: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            token: token.to_owned(),
            detail: detail.to_owned(),
        };
        let reply = Self::new(status, "application/problem+json", text(&problem));
        match status {
            StatusCode::UNAUTHORIZED => reply.with(WWW_AUTHENTICATE, "Bearer"),
            _ => reply,
        }
    }

    /// The answer to a client that is to send a user and a password.
    pub(super) fn challenge(challenge: &HeaderValue, token: &str, detail: &str) -> Self {
        let mut reply = Self::problem(StatusCode::UNAUTHORIZED, token, detail);
        reply.fields.insert(WWW_AUTHENTICATE, challenge);
        reply
    }

    /// The answer to a client that is to sign on at `location`.
    pub(super) fn sign_in(location: &[u8]) -> Self {
        let mut reply = Self::text(StatusCode::FOUND, "Sign on first.\n");
        reply.fields.insert(LOCATION, location);
        reply
    }

    /// The answer of the service that was asked whether the client has signed on. Of its fields it has those by which a
    /// client signs on.
    pub(super) fn of_service(status: StatusCode, fields: &Fields, body: &[u8]) -> Self {
        let mut reply = Self::text(status, "");
        reply.body = body.to_vec();
        if let Some(kind) = fields.get(CONTENT_TYPE) {
            reply.fields.insert(CONTENT_TYPE, kind);
        }
        for name in [LOCATION, WWW_AUTHENTICATE, SET_COOKIE] {
            for value in fields.get_all(name) {
                reply.fields.append(name, value);
            }
        }
        reply
    }

    /// Says after how many seconds the client may ask again.
    pub(super) fn retry_after(self, seconds: u64) -> Self {
        self.with(RETRY_AFTER, &seconds.to_string())
    }

    /// Adds cookies for the client.
    pub(super) fn cookies(mut self, cookies: &Fields) -> Self {
        for cookie in cookies.iter() {
            self.fields.append(cookie.name_ref(), cookie.value());
        }
        self
    }

    /// The answer to a wrong method; `allowed` lists the right ones.
    pub(super) fn method(allowed: &'static str) -> Self {
        let detail = format!("only {allowed}");
        Self::problem(StatusCode::METHOD_NOT_ALLOWED, "method", &detail).with(ALLOW, allowed)
    }

    pub(super) fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    pub(super) fn not_found(detail: &str) -> Self {
        Self::problem(StatusCode::NOT_FOUND, "not-found", detail)
    }

    /// Adds an ETag: the version of what the answer shows.
    pub(super) fn version(self, version: &str) -> Self {
        let etag = format!("\"{version}\"");
        self.with(ETAG, &etag)
    }

    fn with(mut self, name: Id, value: &str) -> Self {
        self.fields.append(name, value);
        self
    }

    /// Appends the answer to `output`; `false` if it cannot be sent.
    pub(super) fn encode(&self, server: &mut Server, output: &mut BytesMut) -> bool {
        let head = Response {
            status: self.status,
            reason: None,
            headers: &self.fields,
            body: BodyLength::Known(self.body.len() as u64),
        };
        if server.send_head(&head, output).is_err() {
            return false;
        }
        server.send_data(&self.body, output);
        server.send_end(output).is_ok()
    }

    #[cfg(test)]
    pub(super) fn token(&self) -> String {
        let problem: Problem = serde_json::from_slice(&self.body).expect("JSON");
        problem.token
    }
}

/// A value as JSON text, with members in the order of their names, and a line end.
fn text(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("objects of the API have texts as keys");
    format!("{value}\n")
}

/// The Content-Security-Policy of every answer: the page loads scripts and styles from this listener only, and sends
/// requests to no other.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
