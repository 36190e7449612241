//! Writes the client's certificate and TLS into fields of a request, for backends that speak HTTP.
//!
//! AJP13 has fields of its own for the same facts. [`crate::exchange::fields::forwarded`] decides who is
//! believed, and [`crate::exchange::fields::claims`] lists the fields that claim such facts.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use catamaran_message::Fields;
use catamaran_message::name::{CLIENT_CERT, CLIENT_CERT_CHAIN};
use catamaran_tls::Facts;

use crate::config::ClientCertFields;
use crate::path::{self, is_unreserved};

/// Writes the facts about the client's TLS in the form `form`, replacing fields of the same names. `chain`: the
/// certificates of the issuers are written, too.
pub(crate) fn announce(form: ClientCertFields, facts: &Facts, chain: bool, headers: &mut Fields) {
    let mut put = |name: &str, value: &[u8]| headers.insert(name, value);
    let certificates = &facts.client_chain;
    match form {
        ClientCertFields::Off => {}
        ClientCertFields::Rfc9440 => {
            let Some((leaf, issuers)) = certificates.split_first() else {
                return;
            };
            put(CLIENT_CERT.spelling(), byte_sequence(leaf).as_bytes());
            if chain && !issuers.is_empty() {
                let list: Vec<String> = issuers.iter().map(|der| byte_sequence(der)).collect();
                put(CLIENT_CERT_CHAIN.spelling(), list.join(", ").as_bytes());
            }
        }
        ClientCertFields::Tomcat => {
            // If a proxy ended the client's TLS, the cipher or the size of its key may be unknown.
            if !facts.cipher.is_empty() {
                put(SSL_CIPHER, facts.cipher.as_bytes());
            }
            if facts.key_bits > 0 {
                put(SSL_CIPHER_USEKEYSIZE, facts.key_bits.to_string().as_bytes());
            }
            // SSLValve reads one certificate and ignores what follows.
            if let Some(pem) = facts.client_certificate(false) {
                put(SSL_CLIENT_ESCAPED_CERT, &escape(pem));
            }
        }
    }
}

/// A byte sequence of structured fields (RFC 8941, section 3.3.5): Base64 between colons.
fn byte_sequence(der: &[u8]) -> String {
    format!(":{}:", STANDARD.encode(der))
}

/// Percent-encodes all but the unreserved characters of RFC 3986, as nginx does in `$ssl_client_escaped_cert`.
fn escape(text: &str) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len() * 5 / 4);
    for byte in text.bytes() {
        if is_unreserved(byte) {
            escaped.push(byte);
        } else {
            escaped.extend(path::escape(byte));
        }
    }
    escaped
}

const SSL_CLIENT_ESCAPED_CERT: &str = "ssl_client_escaped_cert";
const SSL_CIPHER: &str = "ssl_cipher";
const SSL_CIPHER_USEKEYSIZE: &str = "ssl_cipher_usekeysize";

#[cfg(test)]
mod tests {
    use catamaran_message::Field;

    use super::*;

    #[test]
    fn a_cipher_is_told_without_the_size_of_its_key_if_that_is_not_known() {
        for (cipher, expected) in [
            (
                Some("ECDHE-RSA-AES128-GCM-SHA256"),
                &[SSL_CIPHER, SSL_CIPHER_USEKEYSIZE][..],
            ),
            (Some("AEAD-OTHER"), &[SSL_CIPHER]),
            (None, &[]),
        ] {
            let facts = Facts::told("TLSv1.2", cipher.map(str::to_owned), None).expect("a version");
            let mut headers = Fields::new();
            announce(ClientCertFields::Tomcat, &facts, false, &mut headers);
            let told: Vec<String> = headers.iter().map(Field::lower_name).collect();
            assert_eq!(told, expected, "{cipher:?}");
        }
    }

    #[test]
    fn pem_is_escaped_as_nginx_does() {
        let escaped = "-----BEGIN%20A%2B%2F%3D%0A";
        assert_eq!(escape("-----BEGIN A+/=\n"), escaped.as_bytes());
    }
}
