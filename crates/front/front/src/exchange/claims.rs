//! Names of fields that say who the client is, or which certificate it showed.
//!
//! Names are compared by their letters and digits alone: CGI, PHP and some frameworks read `X.Forwarded.For` and
//! `x_forwarded_for` as `X-Forwarded-For`.

use arrayvec::ArrayVec;
use http::HeaderName;

/// Whether a field says who the client is, or what its certificate or its TLS was.
pub(crate) fn is_claim(name: &HeaderName) -> bool {
    let name = name.as_str();
    fold(name).is_some_and(|folded| {
        is_identity(&folded) || tells_certificate(&folded) || name.starts_with(WEBSPHERE)
    })
}

/// Whether a field says which certificate the client showed, or what its TLS was.
pub(crate) fn is_certificate_claim(name: &HeaderName) -> bool {
    fold(name.as_str()).is_some_and(|folded| tells_certificate(&folded))
}

/// Whether a field is read as such a claim and is not spelt like one: a proxy that writes `X-Forwarded-For` itself may
/// pass on the `X.Forwarded.For` of its client.
pub(crate) fn is_disguised(name: &HeaderName) -> bool {
    is_claim(name) && !is_spelt(name.as_str())
}

/// Whether a claim's name is spelt as those have it who write it: with one kind of separator.
fn is_spelt(name: &str) -> bool {
    let (rest, separator) = match name.strip_prefix('$') {
        Some(rest) if name.starts_with(WEBSPHERE) => (rest, b'-'),
        _ if UNDERSCORED.iter().any(|it| name.starts_with(it)) => (name, b'_'),
        _ => (name, b'-'),
    };
    let mut bytes = rest.bytes();
    bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == separator)
}

/// Whether two names are read as the same.
pub(crate) fn are_alike(one: &HeaderName, other: &HeaderName) -> bool {
    letters(one.as_str()).eq(letters(other.as_str()))
}

fn is_identity(folded: &[u8]) -> bool {
    IDENTITIES.contains(&folded) || IDENTITY_PREFIXES.iter().any(|it| folded.starts_with(it))
}

fn tells_certificate(folded: &[u8]) -> bool {
    CERTIFICATES.contains(&folded) || CERTIFICATE_PREFIXES.iter().any(|it| folded.starts_with(it))
}

/// The letters and digits of a name, as far as names here have any; `None` if it begins like none of them.
fn fold(name: &str) -> Option<ArrayVec<u8, FOLDED_MAX>> {
    // Of nearly every request some fields begin with `c`, `s` or `x`.
    let may_be_one = match name.as_bytes() {
        [b'c', b'l' | b'e', ..]
        | [b'f', b'o', ..]
        | [b'p', b'r', ..]
        | [b's', b's', ..]
        | [b't', b'r', ..]
        | [b'w', b'l', ..]
        | [b'x', ..] => true,
        [first, second, ..] => !first.is_ascii_alphanumeric() || !second.is_ascii_alphanumeric(),
        _ => false,
    };
    may_be_one.then(|| letters(name).take(FOLDED_MAX).collect())
}

fn letters(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().filter(u8::is_ascii_alphanumeric)
}

/// Longer than each of these.
const FOLDED_MAX: usize = 32;

/// Fields by which proxies and CDNs tell the client's address and scheme, besides `X-Forwarded-*`; the last
/// two are what WebLogic and Jetty believe.
const IDENTITIES: [&[u8]; 7] = [
    b"forwarded",
    b"xrealip",
    b"xclientip",
    b"xclusterclientip",
    b"trueclientip",
    b"proxyclientip",
    b"xproxiedhttps",
];

/// `X-Forwarded-*`, and what WebLogic's plug-ins for proxies tell in `WL-Proxy-*`.
const IDENTITY_PREFIXES: [&[u8]; 2] = [b"xforwarded", b"wlproxy"];

/// What WebSphere's plug-ins tell in `$WS*`.
const WEBSPHERE: &str = "$ws";

/// How names begin that are spelt with underscores, `SSL_CLIENT_CERT` for one.
const UNDERSCORED: [&str; 2] = ["ssl_", "cert_chain_"];

/// RFC 9440, what the SSLValve of Tomcat and Undertow's SSLHeaderHandler believe (of which those of the
/// certificate are among the prefixes), Jetty's ForwardedRequestCustomizer, and names that guides for
/// nginx and IIS use.
const CERTIFICATES: [&[u8]; 11] = [
    b"clientcert",
    b"clientcertchain",
    b"sslcipher",
    b"sslcipherusekeysize",
    b"sslsecureprotocol",
    b"sslsessionid",
    b"proxyauthcert",
    b"proxysslid",
    b"xclientverify",
    b"xclientdn",
    b"xarrclientcert",
];

/// Of httpd and HAProxy (`SSL_CLIENT_`, `X-SSL-`), with what Keycloak reads behind them (`CERT_CHAIN_`);
/// of nginx and its ingress (`ssl-client-`), F5 (`SSLClientCert`), Envoy, Traefik and AWS.
const CERTIFICATE_PREFIXES: [&[u8]; 9] = [
    b"sslclient",
    b"certchain",
    b"xssl",
    b"xtlsclient",
    b"xclientcert",
    b"xforwardedclientcert",
    b"xforwardedtlsclientcert",
    b"xamznmtls",
    b"xamzntls",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HeaderName {
        HeaderName::from_bytes(text.as_bytes()).expect("a name")
    }

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
            "x.client.cert",
            "s.s.l-client-verify",
            "ssl.cipher",
        ] {
            assert!(is_certificate_claim(&name(claim)), "{claim}");
        }
        for claim in [
            "x-forwarded-for",
            "x.forwarded.for",
            "x_forwarded_for",
            "xforwarded-proto",
            ".x-forwarded-for",
            "x-real.ip",
            "for.warded",
            "f.orwarded",
            "true.client-ip",
            "wl.proxy-client-ip",
            "$wsra",
        ] {
            assert!(is_claim(&name(claim)), "{claim}");
        }
        for other in [
            "client",
            "x-client",
            "ssl",
            "clear",
            "x-arr-log-id",
            "cert",
            "ssl-other",
            "proxy-authorization",
            "x-amzn-trace-id",
            "x-client-version",
            "x",
            "-",
            "ws-session",
        ] {
            assert!(!is_claim(&name(other)), "{other}");
        }
    }

    #[test]
    fn every_name_fits_and_is_found() {
        let all = IDENTITIES.into_iter().chain(IDENTITY_PREFIXES);
        let all = all.chain(CERTIFICATES).chain(CERTIFICATE_PREFIXES);
        for folded in all {
            assert!(folded.len() < FOLDED_MAX);
            let text = std::str::from_utf8(folded).expect("ASCII");
            assert!(is_claim(&name(text)), "{text}");
        }
    }
}
