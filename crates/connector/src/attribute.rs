//! Which AJP request attributes are accepted; a request with any other is refused.
//!
//! An attribute reaches the application under its own name, so a peer that may send any name can set
//! the container's internal attributes. The three `*.servlet.include.*` names let Ghostcat
//! (CVE-2020-1938) read any file; they are always refused.

use std::convert::Infallible;
use std::str::FromStr;

/// Attribute names accepted besides the [built-in ones](AllowedAttributes::allows).
///
/// Each entry is a name, or a prefix followed by `*`. Default: none. Tomcat:
/// `allowedRequestAttributesPattern` (a regular expression there).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedAttributes(Vec<Pattern>);

impl AllowedAttributes {
    /// Whether requests may carry the attribute `name`: one of the fronts' own (`AJP_REMOTE_PORT`,
    /// TLS names, IIS's certificate fields: Tomcat's list) or a configured one, never an include
    /// path.
    #[must_use]
    pub fn allows(&self, name: &[u8]) -> bool {
        if NEVER.contains(&name) {
            return false;
        }
        BUILT_IN.contains(&name) || self.0.iter().any(|pattern| pattern.matches(name))
    }
}

impl<S: AsRef<str>> FromIterator<S> for AllowedAttributes {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        let patterns = names.into_iter().map(|name| Pattern::new(name.as_ref()));
        Self(patterns.collect())
    }
}

impl FromStr for AllowedAttributes {
    type Err = Infallible;

    /// Parses names separated by commas or white space.
    fn from_str(list: &str) -> Result<Self, Infallible> {
        let separator = |c: char| c == ',' || c.is_whitespace();
        let names = list.split(separator);
        Ok(names.filter(|name| !name.is_empty()).collect())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Exact(Box<[u8]>),
    Prefix(Box<[u8]>),
}

impl Pattern {
    fn new(name: &str) -> Self {
        match name.strip_suffix('*') {
            Some(prefix) => Self::Prefix(prefix.as_bytes().into()),
            None => Self::Exact(name.as_bytes().into()),
        }
    }

    fn matches(&self, name: &[u8]) -> bool {
        match self {
            Self::Exact(exact) => **exact == *name,
            Self::Prefix(prefix) => name.starts_with(prefix),
        }
    }
}

/// The attribute with the client's port, in decimal.
pub(crate) const REMOTE_PORT: &[u8] = b"AJP_REMOTE_PORT";
/// The attribute with the address that the client connected to.
pub(crate) const LOCAL_ADDR: &[u8] = b"AJP_LOCAL_ADDR";
/// The attribute with the client's TLS version, such as `TLSv1.3`.
pub(crate) const SSL_PROTOCOL: &[u8] = b"AJP_SSL_PROTOCOL";

const NEVER: [&[u8]; 6] = [
    b"javax.servlet.include.request_uri",
    b"javax.servlet.include.path_info",
    b"javax.servlet.include.servlet_path",
    b"jakarta.servlet.include.request_uri",
    b"jakarta.servlet.include.path_info",
    b"jakarta.servlet.include.servlet_path",
];

const BUILT_IN: [&[u8]; 22] = [
    REMOTE_PORT,
    LOCAL_ADDR,
    SSL_PROTOCOL,
    b"JK_LB_ACTIVATION",
    b"CERT_ISSUER",
    b"CERT_SUBJECT",
    b"CERT_COOKIE",
    b"CERT_FLAGS",
    b"CERT_SERIALNUMBER",
    b"HTTPS_SERVER_SUBJECT",
    b"HTTPS_SERVER_ISSUER",
    b"HTTPS_KEYSIZE",
    b"HTTPS_SECRETKEYSIZE",
    b"javax.servlet.request.cipher_suite",
    b"javax.servlet.request.key_size",
    b"javax.servlet.request.ssl_session",
    b"javax.servlet.request.X509Certificate",
    b"jakarta.servlet.request.cipher_suite",
    b"jakarta.servlet.request.key_size",
    b"jakarta.servlet.request.ssl_session",
    b"jakarta.servlet.request.X509Certificate",
    b"jakarta.servlet.request.secure_protocol",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_names_need_no_configuration_and_others_do() {
        let none = AllowedAttributes::default();
        assert!(none.allows(b"AJP_REMOTE_PORT"));
        assert!(!none.allows(b"MYATTRIBUTE1"));
        let some: AllowedAttributes = "MYATTRIBUTE*, exact".parse().unwrap();
        assert!(some.allows(b"MYATTRIBUTE1"));
        assert!(some.allows(b"exact"));
        assert!(!some.allows(b"exactly"));
        assert!(!some.allows(b"MY"));
    }

    #[test]
    fn include_paths_are_refused_even_if_everything_is_allowed() {
        let all: AllowedAttributes = "*".parse().unwrap();
        assert!(all.allows(b"anything"));
        assert!(!all.allows(b"javax.servlet.include.path_info"));
        assert!(!all.allows(b"jakarta.servlet.include.request_uri"));
    }
}
