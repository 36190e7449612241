//! The rules of CORS: pages of which origins may read responses and send requests.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use catamaran_message::FieldName;
use http::Method;

/// The pages of other origins that may use a route: the table `[route.cors]` in `docs/reference.md`, which has the
/// meaning, unit and default of each key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorsConfig {
    /// The origins whose pages may read responses; at least one.
    pub origins: Vec<OriginPattern>,
    /// The methods that a preflight is granted.
    pub methods: Vec<Method>,
    /// The fields of requests that a preflight is granted.
    pub headers: Vec<FieldName>,
    /// The fields of responses that scripts may read, besides those that they always may.
    pub expose: Vec<FieldName>,
    /// Whether requests may have cookies, client certificates and `Authorization`.
    pub credentials: bool,
    /// How long browsers may remember the answer to a preflight.
    pub max_age: Duration,
}

impl CorsConfig {
    /// Whether the pages of all origins may read responses, so that these do not depend on the origin.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.origins.contains(&OriginPattern::Any)
    }

    /// Whether pages of this origin, the value of `Origin`, may read responses.
    #[must_use]
    pub fn allows(&self, origin: &[u8]) -> bool {
        self.origins.iter().any(|pattern| pattern.matches(origin))
    }
}

/// The origins that one text of the key `origins` allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginPattern {
    /// Every origin: `*`.
    Any,
    /// This origin, as browsers write it.
    Exact(String),
    /// The origins of all names below a domain.
    Below {
        /// The scheme with its `://`, such as `https://`.
        scheme: String,
        /// The domain with the dot before it, such as `.example.org`.
        domain: String,
        /// The port with its colon, or nothing.
        port: String,
    },
}

impl OriginPattern {
    /// Reads an origin such as `https://app.example.org`, `https://*.example.org` or `*`. Letters become small ones, as
    /// browsers write origins (RFC 6454, section 6.2).
    ///
    /// # Errors
    /// No browser sends such an origin, or it is `null`, which many unrelated pages have.
    pub fn parse(text: &str) -> Result<Self, OriginError> {
        if text == "*" {
            return Ok(Self::Any);
        }
        if text.eq_ignore_ascii_case("null") {
            return Err(OriginError::Null);
        }
        if !text.is_ascii() {
            return Err(OriginError::NotAscii);
        }
        let lower = text.to_ascii_lowercase();
        let (scheme, rest) = lower.split_once("://").ok_or(OriginError::Syntax)?;
        if !is_scheme(scheme) {
            return Err(OriginError::Syntax);
        }
        let Some((host, port)) = split_port(rest) else {
            // Without its path the text may be an origin; if so, the message shows it.
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let authority = &rest[..end];
            return Err(match split_port(authority) {
                Some(_) => OriginError::Path(format!("{scheme}://{authority}")),
                None => OriginError::Syntax,
            });
        };
        if [("http", ":80"), ("https", ":443")].contains(&(scheme, port)) {
            return Err(OriginError::DefaultPort(format!("{scheme}://{host}")));
        }
        let Some(domain) = host.strip_prefix('*') else {
            let host = exact_host(host)?;
            return Ok(Self::Exact(format!("{scheme}://{host}{port}")));
        };
        let name = domain.strip_prefix('.').ok_or(OriginError::Wildcard)?;
        if name.contains('*') {
            return Err(OriginError::Wildcard);
        }
        if !is_name(name.as_bytes()) || is_address(name) {
            return Err(OriginError::Syntax);
        }
        if !name.contains('.') {
            return Err(OriginError::Wide(name.to_owned()));
        }
        Ok(Self::Below {
            scheme: format!("{scheme}://"),
            domain: domain.to_owned(),
            port: port.to_owned(),
        })
    }

    /// Whether this origin, the value of `Origin`, is one of them. Accepts any bytes.
    #[must_use]
    pub fn matches(&self, origin: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(text) => origin == text.as_bytes(),
            Self::Below {
                scheme,
                domain,
                port,
            } => {
                let authority = origin.strip_prefix(scheme.as_bytes());
                let host = authority.and_then(|authority| authority.strip_suffix(port.as_bytes()));
                // A port that the pattern does not have is no part of a name either.
                host.is_some_and(|host| host.ends_with(domain.as_bytes()) && is_name(host))
            }
        }
    }
}

/// Why a text names no origin.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// The text is `null`.
    #[error(
        "is `null`, which stands for every sandboxed page and every local file; name the origins of your pages"
    )]
    Null,
    /// The text has characters outside ASCII.
    #[error("is not ASCII; write its xn-- form")]
    NotAscii,
    /// The text has a path after the host.
    #[error("has a `/` behind the host, and an origin ends there; write \"{0}\"")]
    Path(String),
    /// The text has the default port of its scheme, which browsers leave out.
    #[error("has the port that browsers leave out; write \"{0}\"")]
    DefaultPort(String),
    /// The text has a wildcard that is not the first label.
    #[error("has a wildcard that is not its whole first label; write https://*.example.org")]
    Wildcard,
    /// The text has a wildcard before a single label.
    #[error("has a wildcard for all of `{0}`; name a domain, such as https://*.example.org")]
    Wide(String),
    /// The text is wrong in another way.
    #[error(
        "must be a scheme and a host, such as \"https://app.example.org\", \"https://*.example.org\" or \
         \"http://localhost:3000\""
    )]
    Syntax,
}

/// Whether a text is a scheme in lower case (RFC 3986, section 3.1).
fn is_scheme(text: &str) -> bool {
    let is_good =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_lowercase()) && text.bytes().all(is_good)
}

/// Splits a host from the port behind it, which keeps its colon; `None` if it is no port as browsers write it.
fn split_port(text: &str) -> Option<(&str, &str)> {
    let host_end = match text.rfind(']') {
        // The colons within the brackets belong to an IPv6 address.
        Some(bracket) => bracket + 1,
        None => text.find([':', '/', '?', '#']).unwrap_or(text.len()),
    };
    let (host, port) = text.split_at(host_end);
    let Some(digits) = port.strip_prefix(':') else {
        return port.is_empty().then_some((host, port));
    };
    let number: u16 = digits.parse().ok()?;
    // `parse` also takes a sign and leading zeros.
    (number > 0 && number.to_string() == digits).then_some((host, port))
}

/// A host without a wildcard, as browsers write it.
fn exact_host(host: &str) -> Result<String, OriginError> {
    let literal = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    if let Some(literal) = literal {
        let address: Ipv6Addr = literal.parse().map_err(|_| OriginError::Syntax)?;
        return Ok(format!("[{address}]"));
    }
    if host.contains('*') {
        return Err(OriginError::Wildcard);
    }
    // A host that browsers read as an address must be one.
    if !is_name(host.as_bytes()) || is_address(host) && host.parse::<Ipv4Addr>().is_err() {
        return Err(OriginError::Syntax);
    }
    Ok(host.to_owned())
}

/// Whether a text is a host name in lower case, or an IPv4 address. An underscore is allowed, as names of containers
/// have it.
fn is_name(text: &[u8]) -> bool {
    let is_allowed =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(byte);
    let is_label = |label: &[u8]| {
        let has_outer_hyphen = label.starts_with(b"-") || label.ends_with(b"-");
        (1..=63).contains(&label.len()) && !has_outer_hyphen && label.iter().all(is_allowed)
    };
    text.len() <= 253 && text.split(|&byte| byte == b'.').all(is_label)
}

/// Whether browsers read a host as an IPv4 address: its last label is a number.
fn is_address(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or_default();
    last.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<OriginPattern, OriginError> {
        OriginPattern::parse(text)
    }

    #[test]
    fn origins_are_compared_as_browsers_write_them() {
        for (text, origin) in [
            ("https://app.example.org", "https://app.example.org"),
            ("HTTPS://App.Example.org", "https://app.example.org"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("https://[0:0::1]:8443", "https://[::1]:8443"),
            ("https://x:80", "https://x:80"),
            ("capacitor://localhost", "capacitor://localhost"),
            ("https://*.example.org", "https://a.example.org"),
            ("https://*.example.org", "https://a.b-c.example.org"),
            ("https://*.example.org:8443", "https://a.example.org:8443"),
            ("*", "https://anything.test"),
        ] {
            let pattern = parse(text).unwrap_or_else(|error| panic!("{text} {error}"));
            assert!(pattern.matches(origin.as_bytes()), "{text}: {origin}");
        }
    }

    #[test]
    fn strange_origins_match_nothing() {
        let patterns = [
            "https://example.org",
            "https://*.example.org",
            "http://localhost:3000",
        ];
        let patterns = patterns.map(|text| parse(text).unwrap());
        for origin in [
            "",
            "null",
            "https://evil.example.org.x",
            "https://example.org.x",
            "https://evilexample.org",
            "https://.example.org",
            "https://a..example.org",
            "https://evil.test/.example.org",
            "https://evil.test#.example.org",
            "https://evil.test?.example.org",
            "https://evil.test\\.example.org",
            "https://user@a.example.org",
            "https://evil.test:80.example.org",
            "https://a.example.org:8443",
            "https://a.example.org/",
            "https://A.example.org",
            "https://-.example.org",
            "http://a.example.org",
            "https://example.org:443",
            "HTTPS://example.org",
            "https://example.org https://a.example.org",
            "https://example.org, https://a.example.org",
            "http://localhost",
            "http://localhost:30000",
        ] {
            for pattern in &patterns {
                assert!(!pattern.matches(origin.as_bytes()), "{pattern:?}: {origin}");
            }
        }
        let long = format!("https://{}.example.org", "a.".repeat(200) + "a");
        assert!(!patterns[1].matches(long.as_bytes()));
        assert!(!patterns[1].matches(b"https://\xff.example.org"));
    }

    #[test]
    fn forms_that_are_no_origin_are_refused() {
        let written = |error: &dyn Fn(String) -> OriginError, text: &str| error(text.to_owned());
        for (text, expected) in [
            ("null", OriginError::Null),
            ("NULL", OriginError::Null),
            ("https://b\u{fc}cher.example", OriginError::NotAscii),
            (
                "https://a.test/",
                written(&OriginError::Path, "https://a.test"),
            ),
            (
                "https://a.test:81/x",
                written(&OriginError::Path, "https://a.test:81"),
            ),
            (
                "https://a.test?x",
                written(&OriginError::Path, "https://a.test"),
            ),
            (
                "https://a.test:443",
                written(&OriginError::DefaultPort, "https://a.test"),
            ),
            (
                "http://a.test:80",
                written(&OriginError::DefaultPort, "http://a.test"),
            ),
            ("https://a.*.test", OriginError::Wildcard),
            ("https://*", OriginError::Wildcard),
            ("https://*a.test", OriginError::Wildcard),
            ("https://*.*.test", OriginError::Wildcard),
            ("https://*.org", written(&OriginError::Wide, "org")),
            ("https://*.0.0.1", OriginError::Syntax),
            ("", OriginError::Syntax),
            ("a.test", OriginError::Syntax),
            ("//a.test", OriginError::Syntax),
            ("://a.test", OriginError::Syntax),
            ("https://", OriginError::Syntax),
            ("https:a.test", OriginError::Syntax),
            ("1https://a.test", OriginError::Syntax),
            ("https://a test", OriginError::Syntax),
            ("https://user@a.test", OriginError::Syntax),
            ("https://a.test:", OriginError::Syntax),
            ("https://a.test:0", OriginError::Syntax),
            ("https://a.test:08443", OriginError::Syntax),
            ("https://a.test:+1", OriginError::Syntax),
            ("https://a.test:65536", OriginError::Syntax),
            ("https://a.test.", OriginError::Syntax),
            ("https://1.2.3", OriginError::Syntax),
            ("https://[::1", OriginError::Syntax),
            ("https://[x]", OriginError::Syntax),
            ("https://a.test, https://b.test", OriginError::Syntax),
        ] {
            assert_eq!(parse(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn only_a_star_opens_a_route_to_all() {
        let config = |texts: &[&str]| CorsConfig {
            origins: texts.iter().map(|text| parse(text).unwrap()).collect(),
            methods: Vec::new(),
            headers: Vec::new(),
            expose: Vec::new(),
            credentials: false,
            max_age: Duration::ZERO,
        };
        assert!(config(&["*"]).is_open() && config(&["*"]).allows(b"null"));
        let two = config(&["https://a.test", "https://b.test"]);
        assert!(!two.is_open() && two.allows(b"https://b.test") && !two.allows(b"null"));
    }
}
