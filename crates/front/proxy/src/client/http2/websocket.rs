//! The key of WebSocket's handshake, which clients of HTTP/2 need not send.
//!
//! Over HTTP/1.1 the client sends a key, and the server proves by `Sec-WebSocket-Accept` that it has
//! understood the request (RFC 6455, section 4). Over HTTP/2 `:protocol` does that (RFC 8441, section
//! 5), so the front makes a key for the backend and checks the answer. A proxy such as Envoy passes on the key
//! of its own client of HTTP/1.1, and the answer to it is that client's.

use aws_lc_rs::{digest, rand};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use catamaran_message::Fields;
use catamaran_message::name::{SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};

/// The answer that the backend must give to the key of a WebSocket handshake.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Handshake {
    accept: String,
    /// Whether the key is the client's, who wants to see the answer.
    is_clients: bool,
}

impl Handshake {
    /// Makes sure that a request for a WebSocket has a key: the client's own, or else one that the front adds to its
    /// fields. `None` if the request asks for another protocol, or if the system has no random bytes; then the backend
    /// refuses.
    pub(crate) fn begin(headers: &mut Fields) -> Option<Self> {
        if !asks(headers) {
            return None;
        }
        if let Some(key) = clients_key(headers) {
            return Some(Self {
                is_clients: true,
                ..Self::of_key(key)
            });
        }
        headers.remove(SEC_WEBSOCKET_KEY);
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).ok()?;
        let key = STANDARD.encode(nonce);
        let handshake = Self::of_key(&key);
        headers.insert(SEC_WEBSOCKET_KEY, &key);
        Some(handshake)
    }

    /// The handshake for a key that the front made (RFC 6455, section 4.2.2).
    fn of_key(key: &str) -> Self {
        let algorithm = &digest::SHA1_FOR_LEGACY_USE_ONLY;
        let digest = digest::digest(algorithm, format!("{key}{SUFFIX}").as_bytes());
        Self {
            accept: STANDARD.encode(digest),
            is_clients: false,
        }
    }

    /// Whether these fields of a 101 answer the key.
    pub(crate) fn is_answered(&self, headers: &Fields) -> bool {
        headers.only(SEC_WEBSOCKET_ACCEPT) == Some(self.accept.as_bytes())
    }
}

/// Adds a placeholder for the key to the fields of a request that is only explained: each real request gets another
/// key.
pub(crate) fn suppose_key(headers: &mut Fields) {
    if asks(headers) && clients_key(headers).is_none() {
        headers.insert(SEC_WEBSOCKET_KEY, SUPPOSED_KEY);
    }
}

/// Whether a request asks for WebSocket.
fn asks(headers: &Fields) -> bool {
    let protocol = headers.get(UPGRADE).unwrap_or_default();
    protocol.eq_ignore_ascii_case(b"websocket")
}

/// The key that the client sent, if it is one.
fn clients_key(headers: &Fields) -> Option<&str> {
    let key = std::str::from_utf8(headers.only(SEC_WEBSOCKET_KEY)?).ok()?;
    let nonce = STANDARD.decode(key).ok()?;
    (nonce.len() == NONCE_LEN).then_some(key)
}

/// Removes from a 101 what a client of HTTP/2 is not to see: the answer, unless the key was its own.
pub(crate) fn clean_answer(headers: &mut Fields, handshake: Option<&Handshake>) {
    headers.remove(UPGRADE);
    if !handshake.is_some_and(|handshake| handshake.is_clients) {
        headers.remove(SEC_WEBSOCKET_ACCEPT);
    }
}

/// What an explanation shows in the place of the key.
const SUPPOSED_KEY: &str = "(made by the front)";

/// The bytes that a key stands for (RFC 6455, section 4.1).
const NONCE_LEN: usize = 16;

/// What a server appends to the key (RFC 6455, section 1.3).
const SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_that_of_the_rfc() {
        let handshake = Handshake::of_key("dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(handshake.accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let mut answer = Fields::new();
        assert!(!handshake.is_answered(&answer), "none");
        let right = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
        answer.insert(SEC_WEBSOCKET_ACCEPT, right);
        assert!(handshake.is_answered(&answer));
        answer.append(SEC_WEBSOCKET_ACCEPT, right);
        assert!(!handshake.is_answered(&answer), "two");
        answer.insert(SEC_WEBSOCKET_ACCEPT, "other");
        assert!(!handshake.is_answered(&answer), "another");
    }

    #[test]
    fn a_key_of_the_clients_stays_and_its_answer_is_passed_on() {
        let mut headers = Fields::new();
        headers.insert(UPGRADE, "websocket");
        let sent = "dGhlIHNhbXBsZSBub25jZQ==";
        headers.insert(SEC_WEBSOCKET_KEY, sent);
        let handshake = Handshake::begin(&mut headers).unwrap();
        assert_eq!(headers.text_of(SEC_WEBSOCKET_KEY), Some(sent));
        let mut answer = Fields::new();
        let right = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
        answer.insert(SEC_WEBSOCKET_ACCEPT, right);
        assert!(handshake.is_answered(&answer));
        clean_answer(&mut answer, Some(&handshake));
        assert_eq!(answer.len(), 1);
        clean_answer(&mut answer, Some(&Handshake::of_key("own")));
        assert!(answer.is_empty());
    }

    #[test]
    fn the_front_makes_the_key_if_the_client_sent_none_or_several() {
        let mut headers = Fields::new();
        headers.insert(UPGRADE, "WebSocket");
        for short in ["", "bm9uY2U=", "no key"] {
            headers.insert(SEC_WEBSOCKET_KEY, short);
            Handshake::begin(&mut headers).unwrap();
            assert_ne!(headers.text_of(SEC_WEBSOCKET_KEY), Some(short));
        }
        headers.remove(SEC_WEBSOCKET_KEY);
        let sent = "dGhlIHNhbXBsZSBub25jZQ==";
        headers.append(SEC_WEBSOCKET_KEY, sent);
        headers.append(SEC_WEBSOCKET_KEY, sent);
        let handshake = Handshake::begin(&mut headers).unwrap();
        assert_eq!(headers.get_all(SEC_WEBSOCKET_KEY).count(), 1);
        let key = headers.text_of(SEC_WEBSOCKET_KEY).unwrap();
        assert_ne!(key, sent);
        assert_eq!(STANDARD.decode(key).unwrap().len(), 16);
        assert_eq!(handshake, Handshake::of_key(key));
        headers.insert(UPGRADE, "other");
        headers.remove(SEC_WEBSOCKET_KEY);
        assert_eq!(Handshake::begin(&mut headers), None);
        assert!(!headers.contains(SEC_WEBSOCKET_KEY));
    }
}
