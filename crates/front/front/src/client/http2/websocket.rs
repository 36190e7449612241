//! The part of WebSocket's handshake that HTTP/2 has not, made in the client's name.
//!
//! Over HTTP/1.1 the client sends a key, and the server proves by `Sec-WebSocket-Accept` that it has
//! understood the request (RFC 6455, section 4). Over HTTP/2 `:protocol` does that (RFC 8441, section
//! 5), so the front sends the key to the backend and checks the answer.

use aws_lc_rs::{digest, rand};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use http::{HeaderMap, HeaderValue};

/// What the backend must answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Handshake {
    accept: String,
}

impl Handshake {
    /// Writes a key into the fields of a request that asks for WebSocket; `None` if it asks for
    /// another protocol, or if the system has no random bytes, without which the backend refuses.
    pub(crate) fn begin(headers: &mut HeaderMap) -> Option<Self> {
        if !asks(headers) {
            return None;
        }
        headers.remove(SEC_WEBSOCKET_KEY);
        let mut nonce = [0; 16];
        rand::fill(&mut nonce).ok()?;
        let key = STANDARD.encode(nonce);
        let handshake = Self::of_key(&key);
        headers.insert(SEC_WEBSOCKET_KEY, HeaderValue::from_str(&key).ok()?);
        Some(handshake)
    }

    fn of_key(key: &str) -> Self {
        let algorithm = &digest::SHA1_FOR_LEGACY_USE_ONLY;
        let digest = digest::digest(algorithm, format!("{key}{SUFFIX}").as_bytes());
        Self {
            accept: STANDARD.encode(digest),
        }
    }

    /// Whether these fields of a 101 answer the key.
    pub(crate) fn is_answered(&self, headers: &HeaderMap) -> bool {
        let mut answers = headers.get_all(SEC_WEBSOCKET_ACCEPT).iter();
        let (first, second) = (answers.next(), answers.next());
        first.is_some_and(|it| it.as_bytes() == self.accept.as_bytes()) && second.is_none()
    }
}

/// Writes into the fields of a request what stands for the key in explanations: each request gets another.
pub(crate) fn suppose_key(headers: &mut HeaderMap) {
    if asks(headers) {
        headers.insert(SEC_WEBSOCKET_KEY, HeaderValue::from_static(SUPPOSED_KEY));
    }
}

/// Whether a request asks for WebSocket.
fn asks(headers: &HeaderMap) -> bool {
    let protocol = headers.get(UPGRADE);
    protocol.is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Removes from a 101 what a client that sent no key is not to see.
pub(crate) fn clean_answer(headers: &mut HeaderMap) {
    headers.remove(UPGRADE);
    headers.remove(SEC_WEBSOCKET_ACCEPT);
}

/// What an explanation shows in the place of the key.
const SUPPOSED_KEY: &str = "(made by the front)";

/// What a server appends to the key (RFC 6455, section 1.3).
const SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_that_of_the_rfc() {
        let handshake = Handshake::of_key("dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(handshake.accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let mut answer = HeaderMap::new();
        assert!(!handshake.is_answered(&answer), "none");
        let right = HeaderValue::from_static("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        answer.insert(SEC_WEBSOCKET_ACCEPT, right.clone());
        assert!(handshake.is_answered(&answer));
        answer.append(SEC_WEBSOCKET_ACCEPT, right);
        assert!(!handshake.is_answered(&answer), "two");
        answer.insert(SEC_WEBSOCKET_ACCEPT, HeaderValue::from_static("other"));
        assert!(!handshake.is_answered(&answer), "another");
    }

    #[test]
    fn the_front_makes_the_key_whatever_the_client_sent() {
        let mut headers = HeaderMap::new();
        headers.insert(UPGRADE, HeaderValue::from_static("WebSocket"));
        let sent = HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ==");
        headers.append(SEC_WEBSOCKET_KEY, sent.clone());
        headers.append(SEC_WEBSOCKET_KEY, sent.clone());
        let handshake = Handshake::begin(&mut headers).unwrap();
        let mut keys = headers.get_all(SEC_WEBSOCKET_KEY).iter();
        let key = keys.next().unwrap().to_str().unwrap();
        assert_eq!(keys.next(), None);
        assert_ne!(key, sent);
        assert_eq!(STANDARD.decode(key).unwrap().len(), 16);
        assert_eq!(handshake, Handshake::of_key(key));
        headers.insert(UPGRADE, HeaderValue::from_static("other"));
        headers.remove(SEC_WEBSOCKET_KEY);
        assert_eq!(Handshake::begin(&mut headers), None);
        assert!(!headers.contains_key(SEC_WEBSOCKET_KEY));
    }
}
