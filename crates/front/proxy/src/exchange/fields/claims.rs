//! The names of fields that claim who the client is, or which certificate it has shown.
//!
//! Names are compared by their letters and digits only: CGI, PHP and some frameworks read `X.Forwarded.For` and
//! `x_forwarded_for` as `X-Forwarded-For`.

use arrayvec::ArrayVec;
use catamaran_message::field::begins;
use catamaran_message::{NameRef, Traits};

/// Whether a field claims who the client is, or tells its certificate or its TLS.
pub(crate) fn is_claim(name: NameRef<'_>) -> bool {
    match name {
        NameRef::Known(id) => id.traits().has_any(Traits::CLAIM),
        NameRef::Other(text) => fold(text).is_some_and(|folded| {
            is_identity(&folded) || tells_certificate(&folded) || begins(text, WEBSPHERE)
        }),
    }
}

/// Whether a field tells the certificate that the client has shown, or its TLS.
pub(crate) fn is_certificate_claim(name: NameRef<'_>) -> bool {
    match name {
        NameRef::Known(id) => id.traits().has_any(Traits::CERTIFICATE),
        NameRef::Other(text) => fold(text).is_some_and(|folded| tells_certificate(&folded)),
    }
}

/// Whether some applications read a field as a claim (see [`is_claim`]) although its name is spelled otherwise. A proxy
/// that writes `X-Forwarded-For` itself may pass on its client's `X.Forwarded.For`.
pub(crate) fn is_disguised(name: NameRef<'_>) -> bool {
    match name {
        // Known names are spelled as the table has them.
        NameRef::Known(_) => false,
        NameRef::Other(text) => is_claim(name) && !is_spelt(text),
    }
}

/// Whether a name has another sign than letters, digits and `-`. CGI and some containers take every such sign for `-`, so
/// `X_Real_IP` and `X.Real.IP` could be read as `X-Real-IP`. No name of the table has one; those of WebSphere's plugin begin
/// with one.
pub(crate) fn has_odd_sign(name: &[u8]) -> bool {
    !has_one_separator(name, b'-')
}

/// Whether a claim's name is spelled as proxies write it: with one kind of separator.
fn is_spelt(name: &[u8]) -> bool {
    let is_underscored = UNDERSCORED.iter().any(|beginning| begins(name, beginning));
    let separator = if is_underscored { b'_' } else { b'-' };
    has_one_separator(name, separator)
}

/// Whether a name, without the dollar of WebSphere's plugin, has letters, digits and this separator alone.
fn has_one_separator(name: &[u8], separator: u8) -> bool {
    let without_dollar = match name {
        [b'$', letters @ ..] if begins(name, WEBSPHERE) => letters,
        _ => name,
    };
    let mut bytes = without_dollar.iter();
    bytes.all(|byte| byte.is_ascii_alphanumeric() || *byte == separator)
}

/// Whether some applications read two names as the same: their letters and digits are equal.
pub(crate) fn are_alike(one: NameRef<'_>, other: NameRef<'_>) -> bool {
    letters(one.as_bytes()).eq(letters(other.as_bytes()))
}

fn is_identity(folded: &[u8]) -> bool {
    let mut prefixes = IDENTITY_PREFIXES.iter();
    IDENTITIES.contains(&folded) || prefixes.any(|prefix| folded.starts_with(prefix))
}

fn tells_certificate(folded: &[u8]) -> bool {
    let mut prefixes = CERTIFICATE_PREFIXES.iter();
    CERTIFICATES.contains(&folded) || prefixes.any(|prefix| folded.starts_with(prefix))
}

/// The letters and digits of a name, in lower case, up to [`FOLDED_MAX`]; `None` if no claim begins like it.
fn fold(name: &[u8]) -> Option<ArrayVec<u8, FOLDED_MAX>> {
    // By two letters, since nearly every request has fields that begin with `c`, `s` or `x`.
    let [first, second] = *name.first_chunk()?;
    let beginning = [first.to_ascii_lowercase(), second.to_ascii_lowercase()];
    let is_beginning_of_claim = matches!(
        &beginning,
        b"cl" | b"ce" | b"fo" | b"pr" | b"ss" | b"tr" | b"wl" | [b'x', _]
    );
    // Another sign is left out, so that the letters behind it may be those of a claim.
    let has_other_sign = !first.is_ascii_alphanumeric() || !second.is_ascii_alphanumeric();
    (is_beginning_of_claim || has_other_sign).then(|| letters(name).take(FOLDED_MAX).collect())
}

/// The letters and digits of a name, in lower case.
fn letters(name: &[u8]) -> impl Iterator<Item = u8> {
    let bytes = name.iter().filter(|byte| byte.is_ascii_alphanumeric());
    bytes.map(u8::to_ascii_lowercase)
}

/// The most letters of a name that are compared: more than any name of a claim listed here has.
const FOLDED_MAX: usize = 32;

/// Fields in which proxies and CDNs tell the client's address and scheme, besides `X-Forwarded-*`; the last two are
/// those that WebLogic and Jetty believe.
const IDENTITIES: [&[u8]; 7] = [
    b"forwarded",
    b"xrealip",
    b"xclientip",
    b"xclusterclientip",
    b"trueclientip",
    b"proxyclientip",
    b"xproxiedhttps",
];

/// The beginnings of `X-Forwarded-*`, and of the fields `WL-Proxy-*` of WebLogic's plug-ins for proxies.
const IDENTITY_PREFIXES: [&[u8]; 2] = [b"xforwarded", b"wlproxy"];

/// The beginning of the fields `$WS*` of WebSphere's plug-ins.
const WEBSPHERE: &[u8] = b"$ws";

/// The beginnings of names that are spelled with underscores, such as `SSL_CLIENT_CERT`.
const UNDERSCORED: [&[u8]; 2] = [b"ssl_", b"cert_chain_"];

/// Fields that tell a client's certificate or TLS: those of RFC 9440, those that Tomcat's SSLValve, Undertow's
/// SSLHeaderHandler and Jetty's ForwardedRequestCustomizer believe (some are among the prefixes below), and names from
/// guides for nginx and IIS.
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

/// The beginnings of names of such fields: of httpd and HAProxy (`SSL_CLIENT_`, `X-SSL-`), Keycloak for these two
/// (`CERT_CHAIN_`), nginx and its ingress (`ssl-client-`), F5 (`SSLClientCert`), Envoy, Traefik and AWS.
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
    use catamaran_message::Id;

    use super::*;

    /// Whether `is_such` accepts a name, which must not depend on its case.
    fn holds(text: &str, is_such: fn(NameRef<'_>) -> bool) -> bool {
        let (lower, upper) = (text.to_ascii_lowercase(), text.to_ascii_uppercase());
        let found = [text, &lower, &upper].map(|it| is_such(it.into()));
        assert!(found.iter().all(|it| *it == found[0]), "{text}");
        found[0]
    }

    /// The traits in the table of names must agree with the rules for names.
    #[test]
    fn names_of_the_table_are_claims_by_the_same_rules() {
        for id in Id::all() {
            let by_rule = is_claim(NameRef::Other(id.spelling().as_bytes()));
            assert_eq!(is_claim(id.into()), by_rule, "{id:?}");
            let by_rule = is_certificate_claim(NameRef::Other(id.spelling().as_bytes()));
            assert_eq!(is_certificate_claim(id.into()), by_rule, "{id:?}");
        }
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
            assert!(holds(claim, is_certificate_claim), "{claim}");
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
            assert!(holds(claim, is_claim), "{claim}");
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
            assert!(!holds(other, is_claim), "{other}");
        }
    }

    #[test]
    fn every_name_fits_and_is_found() {
        let all = IDENTITIES.into_iter().chain(IDENTITY_PREFIXES);
        let all = all.chain(CERTIFICATES).chain(CERTIFICATE_PREFIXES);
        for folded in all {
            assert!(folded.len() < FOLDED_MAX);
            let text = std::str::from_utf8(folded).expect("ASCII");
            assert!(holds(text, is_claim), "{text}");
        }
    }
}
