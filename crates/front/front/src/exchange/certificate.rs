//! The client's certificate and TLS in fields of a request, for backends that speak HTTP/1.1.
//!
//! Over AJP13 the protocol has fields for the same facts. Which fields of others are believed is
//! decided in [`crate::exchange::forwarded`].

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use catamaran_tls::Facts;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use crate::config::ClientCertFields;

/// Whether a field says which certificate the client showed, or what its TLS was.
pub(crate) fn is_claim(name: &str) -> bool {
    match name.as_bytes() {
        // Of nearly every request some fields begin with `c`, `s` or `x-`.
        [b'c', b'l' | b'e', ..] | [b's', b's', b'l', ..] | [b'p', b'r', ..] | [b'x', b'-', ..] => {
            let starts = |prefix| name.starts_with(prefix);
            CLAIMS.contains(&name) || CLAIM_PREFIXES.into_iter().any(starts)
        }
        _ => false,
    }
}

/// Writes what is known of the client's TLS, in place of anything that was said of it.
pub(crate) fn announce(
    form: ClientCertFields,
    facts: &Facts,
    chain: bool,
    headers: &mut HeaderMap,
) {
    let mut put = |name: HeaderName, value: String| {
        // The texts are made of visible ASCII; a map that is full is one that no codec would have
        // made.
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.try_insert(name, value).ok();
        }
    };
    let certificates = &facts.client_chain;
    match form {
        ClientCertFields::Off => {}
        ClientCertFields::Rfc9440 => {
            let Some((leaf, issuers)) = certificates.split_first() else {
                return;
            };
            put(CLIENT_CERT, byte_sequence(leaf));
            if chain && !issuers.is_empty() {
                let issuers: Vec<String> = issuers.iter().map(|it| byte_sequence(it)).collect();
                put(CLIENT_CERT_CHAIN, issuers.join(", "));
            }
        }
        ClientCertFields::Tomcat => {
            put(SSL_CIPHER, facts.cipher.to_owned());
            put(SSL_CIPHER_USEKEYSIZE, facts.key_bits.to_string());
            // SSLValve reads one certificate and ignores what follows.
            if let Some(pem) = facts.client_certificate(false) {
                put(SSL_CLIENT_ESCAPED_CERT, escape(pem));
            }
        }
    }
}

/// A byte sequence of structured fields (RFC 8941, section 3.3.5).
fn byte_sequence(der: &[u8]) -> String {
    format!(":{}:", STANDARD.encode(der))
}

/// All but the unreserved characters of RFC 3986 are escaped, as nginx does in
/// `$ssl_client_escaped_cert`.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() * 5 / 4);
    for byte in text.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' => escaped.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => escaped.push(char::from(byte)),
            _ => {
                escaped.push('%');
                for digit in [byte >> 4, byte & 15] {
                    escaped.push(char::from(HEX[usize::from(digit)]));
                }
            }
        }
    }
    escaped
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

const CLIENT_CERT: HeaderName = HeaderName::from_static("client-cert");
const CLIENT_CERT_CHAIN: HeaderName = HeaderName::from_static("client-cert-chain");
const SSL_CLIENT_ESCAPED_CERT: HeaderName = HeaderName::from_static("ssl_client_escaped_cert");
const SSL_CIPHER: HeaderName = HeaderName::from_static("ssl_cipher");
const SSL_CIPHER_USEKEYSIZE: HeaderName = HeaderName::from_static("ssl_cipher_usekeysize");

/// RFC 9440, what the SSLValve of Tomcat and Undertow's SSLHeaderHandler believe (of which those of the
/// certificate are among the prefixes), Jetty's ForwardedRequestCustomizer, and names that guides for
/// nginx and IIS use.
const CLAIMS: [&str; 15] = [
    "client-cert",
    "client-cert-chain",
    "ssl_cipher",
    "ssl_cipher_usekeysize",
    "ssl_secure_protocol",
    "ssl_session_id",
    "ssl-cipher",
    "ssl-cipher-usekeysize",
    "ssl-secure-protocol",
    "ssl-session-id",
    "proxy-auth-cert",
    "proxy-ssl-id",
    "x-client-verify",
    "x-client-dn",
    "x-arr-clientcert",
];

/// Of httpd and HAProxy (`ssl_client_`, `x-ssl-`), with what Keycloak reads behind them (`cert_chain_`);
/// of nginx and its ingress (`ssl-client-`), F5 (`sslclientcert`), Envoy, Traefik and AWS.
const CLAIM_PREFIXES: [&str; 12] = [
    "ssl_client_",
    "ssl-client-",
    "sslclientcert",
    "cert_chain_",
    "x-ssl-",
    "x-tls-client-",
    "x-client-cert",
    "x-clientcert",
    "x-forwarded-client-cert",
    "x-forwarded-tls-client-cert",
    "x-amzn-mtls-",
    "x-amzn-tls-",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_of_other_fronts_are_known() {
        for claim in [
            "client-cert",
            "client-cert-chain",
            "ssl_client_escaped_cert",
            "ssl_cipher",
            "x-ssl-client-cert",
            "x-ssl-client-verify",
            "x-client-cert-dn",
            "x-forwarded-client-cert",
            "x-forwarded-tls-client-cert-info",
            "x-arr-clientcert",
            "ssl-client-cert",
            "ssl-client-verify",
            "ssl-client-subject-dn",
            "ssl-client-issuer-dn",
            "ssl_client_verify",
            "ssl_client_s_dn",
            "ssl-cipher",
            "ssl-session-id",
            "sslclientcertsubject",
            "cert_chain_0",
            "x-tls-client-subject",
            "x-client-verify",
            "x-client-dn",
            "x-amzn-mtls-clientcert-subject",
            "x-amzn-tls-version",
            "proxy-auth-cert",
            "proxy-ssl-id",
        ] {
            assert!(is_claim(claim), "{claim}");
        }
        for other in [
            "client",
            "x-ssl",
            "x-client",
            "ssl",
            "clear",
            "x-arr-log-id",
            "cert",
            "ssl-other",
            "proxy-authorization",
            "x-amzn-trace-id",
            "x-client-version",
        ] {
            assert!(!is_claim(other), "{other}");
        }
    }

    #[test]
    fn pem_is_escaped_as_nginx_does() {
        assert_eq!(escape("-----BEGIN A+/=\n"), "-----BEGIN%20A%2B%2F%3D%0A");
    }
}
