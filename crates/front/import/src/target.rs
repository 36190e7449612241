//! The URLs of backends in `ProxyPass`, `proxy_pass` and rewrites.

use crate::plan::Keys;
use crate::toml_text::quoted;

/// A backend's URL, split into the parts that a route needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) path: String,
    pub(crate) host: String,
    pub(crate) is_tunnel: bool,
    pub(crate) keys: Keys,
}

impl Target {
    /// Reads a URL; `None` if the front cannot reach it.
    pub(crate) fn new(text: &str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix("unix:") {
            let (socket, url) = rest.split_once('|')?;
            let scheme = url.split("://").next()?.trim_end_matches(':');
            let scheme = matches!(scheme, "http" | "ajp").then_some(scheme)?;
            let path = url.split_once("://").and_then(|(_, it)| it.split_once('/'));
            return Self::checked(
                format!("{scheme}+unix:{socket}"),
                path.map_or("", |it| it.1),
                "localhost",
                false,
            );
        }
        let (scheme, rest) = text.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let (authority, path) = match rest.find('/') {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => (rest, ""),
        };
        let (plain, port, is_tunnel) = match scheme.as_str() {
            "ajp" => ("ajp", 8009, false),
            "http" => ("http", 80, false),
            "https" => ("https", 443, false),
            "ws" => ("http", 80, true),
            "wss" => ("https", 443, true),
            _ => return None,
        };
        let has_port = authority
            .rsplit_once(':')
            .is_some_and(|(_, it)| it.parse::<u16>().is_ok());
        let host = if has_port {
            authority.rsplit_once(':').map_or(authority, |it| it.0)
        } else {
            authority
        };
        let url = if has_port {
            format!("{plain}://{authority}")
        } else {
            format!("{plain}://{authority}:{port}")
        };
        Self::checked(url, path, host, is_tunnel)
    }

    /// A URL with the keys that its backend needs; `None` if the front cannot have it.
    fn checked(url: String, path: &str, host: &str, is_tunnel: bool) -> Option<Self> {
        let tls = url.starts_with("https://");
        let probe = if tls {
            url.replacen("https", "http", 1)
        } else {
            url.clone()
        };
        catamaran_config::parse_upstream_url(&probe).ok()?;
        let mut keys = Keys::new();
        if tls {
            // httpd and nginx verify no certificate unless they are told to.
            keys.insert("verify".to_owned(), quoted("off"));
        }
        (!path.contains(['?', '#', '$'])).then(|| Self {
            url,
            path: if path.is_empty() {
                String::new()
            } else {
                format!("/{path}")
            },
            host: host.to_owned(),
            is_tunnel,
            keys,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_backends() {
        for (text, url, path) in [
            ("ajp://a:8009/app", "ajp://a:8009", "/app"),
            ("http://a/", "http://a:80", ""),
            ("ws://a:8080/x", "http://a:8080", "/x"),
            (
                "unix:/run/x.sock|http://localhost/",
                "http+unix:/run/x.sock",
                "",
            ),
        ] {
            let target = Target::new(text).unwrap();
            assert_eq!(
                (target.url.as_str(), target.path.as_str()),
                (url, path),
                "{text}"
            );
        }
        for text in ["fcgi://a:9000/", "h2c://a/", "a:80", "unix:/x|fcgi://y"] {
            assert_eq!(Target::new(text), None, "{text}");
        }
    }
}
