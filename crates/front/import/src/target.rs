//! The URLs of backends in `ProxyPass`, `proxy_pass` and rewrites.

use crate::plan::Keys;
use crate::toml_text::quoted;

/// A backend's URL, split into the parts that a route needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Scheme, host and port; or scheme and socket.
    pub(crate) url: String,
    /// The path after the host, with its slash; empty for `/`.
    pub(crate) path: String,
    /// The host without its port.
    pub(crate) host: String,
    /// Whether the scheme is that of WebSocket.
    pub(crate) is_tunnel: bool,
    /// The keys that the backend needs.
    pub(crate) keys: Keys,
}

impl Target {
    /// Reads a URL; `None` if the front cannot reach it.
    pub(crate) fn new(text: &str) -> Option<Self> {
        if let Some(socket_and_url) = text.strip_prefix("unix:") {
            return Self::of_socket(socket_and_url);
        }
        let (scheme, behind) = text.split_once("://")?;
        let (authority, path) = behind.split_once('/').unwrap_or((behind, ""));
        let (own_scheme, default_port, is_tunnel) = match scheme.to_ascii_lowercase().as_str() {
            "ajp" => ("ajp", 8009, false),
            "http" => ("http", 80, false),
            "https" => ("https", 443, false),
            "ws" => ("http", 80, true),
            "wss" => ("https", 443, true),
            _ => return None,
        };
        let (url, host) = match authority.rsplit_once(':') {
            Some((host, port)) if port.parse::<u16>().is_ok() => {
                (format!("{own_scheme}://{authority}"), host)
            }
            _ => (
                format!("{own_scheme}://{authority}:{default_port}"),
                authority,
            ),
        };
        let target = Self::checked(url, path, host)?;
        Some(Self {
            is_tunnel,
            ..target
        })
    }

    /// Reads what follows `unix:`: the path of a socket, and a URL after `|`, whose scheme and path count.
    fn of_socket(socket_and_url: &str) -> Option<Self> {
        let (socket, url) = socket_and_url.split_once('|')?;
        // httpd also takes a URL without a host, such as `http:`.
        let (scheme_text, behind) = url.split_once("://").unwrap_or((url, ""));
        let scheme = scheme_text.trim_end_matches(':');
        if !matches!(scheme, "http" | "ajp") {
            return None;
        }
        let path = behind.split_once('/').map_or("", |(_, path)| path);
        Self::checked(format!("{scheme}+unix:{socket}"), path, "localhost")
    }

    /// A URL with the keys that its backend needs; `None` if the front cannot have it.
    fn checked(url: String, path: &str, host: &str) -> Option<Self> {
        catamaran_config::parse_upstream_url(&url).ok()?;
        // A backend has no query, and `$` stands for a variable of the source.
        if path.contains(['?', '#', '$']) {
            return None;
        }
        let mut keys = Keys::new();
        if url.starts_with("https://") {
            // httpd and nginx verify no certificate unless they are told to.
            keys.insert("verify".to_owned(), quoted("off"));
        }
        Some(Self {
            url,
            path: if path.is_empty() {
                String::new()
            } else {
                format!("/{path}")
            },
            host: host.to_owned(),
            is_tunnel: false,
            keys,
        })
    }
}

/// Whether the key `host` of an upstream takes this for a keyword, and for no host.
pub(crate) fn is_host_keyword(text: &str) -> bool {
    matches!(text, "client" | OWN_HOST)
}

/// Value of `host` that gives each backend its own name as `Host`.
pub(crate) const OWN_HOST: &str = "backend";

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
