//! Parses URLs, by ab's rules and by our own.
//!
//! ab needs a slash after the host and knows two schemes. We have `http`, `https`, `ajp`,
//! `memcached` and these protocols over Unix sockets: `http+unix:/run/app.sock:/path`, with the
//! path after a colon as in nginx, or `http+unix://%2Frun%2Fapp.sock/path`.

use std::path::PathBuf;

use catamaran_load::plan::Transport;

use crate::refusal::Refusal;

/// The protocol that a URL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    Http,
    Https,
    Ajp,
    Memcached,
}

/// The parts of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) scheme: Scheme,
    pub(crate) transport: Transport,
    /// The host as the report prints it: without brackets; for a Unix socket, its path.
    pub(crate) hostname: String,
    /// The port; 0 for Unix sockets.
    pub(crate) port: u16,
    /// The value of the Host field: with brackets, and with the port unless it is the scheme's default.
    pub(crate) authority: String,
    /// The credentials `user:password` for Basic authorization; `None` if the URL has none.
    pub(crate) user: Option<String>,
    /// The path with the query.
    pub(crate) path: String,
    /// The URL as the user gave it.
    pub(crate) text: String,
}

/// Parses a URL as ab does: everything up to the first slash is host and port, even if it is not valid.
pub(crate) fn parse_as_ab(text: &str) -> Result<Url, Refusal> {
    let refuse = || refusal(text, "ab wants [http[s]://]hostname[:port]/path");
    // A scheme without anything after it is taken for a host.
    let (scheme, address) = match text.split_once("://") {
        Some(("http", address)) if !address.is_empty() => (Scheme::Http, address),
        Some(("https", address)) if !address.is_empty() => (Scheme::Https, address),
        _ => (Scheme::Http, text),
    };
    let slash = address.find('/').ok_or_else(refuse)?;
    let (authority, path) = address.split_at(slash);
    let (host, port) = host_and_port(authority).ok_or_else(refuse)?;
    Ok(tcp_url(scheme, host, port, path, text))
}

/// Splits `host:port` as APR does: only digits at the very end are a port.
fn host_and_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = if let Some(after_bracket) = authority.strip_prefix('[') {
        let (host, after_host) = after_bracket.split_once(']')?;
        match after_host.strip_prefix(':') {
            Some(digits) => (host, Some(parse_port(digits)?)),
            None if after_host.is_empty() => (host, None),
            None => return None,
        }
    } else {
        match authority.rsplit_once(':') {
            Some((host, digits)) if !digits.is_empty() && all_digits(digits) => {
                (host, Some(parse_port(digits)?))
            }
            _ => (authority, None),
        }
    };
    (!host.is_empty()).then_some((host, port))
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses a port, 1 to 65535.
fn parse_port(digits: &str) -> Option<u16> {
    // `parse` would accept a sign.
    if !all_digits(digits) {
        return None;
    }
    let port = digits.parse().ok()?;
    (port > 0).then_some(port)
}

/// Makes a URL reached over TCP. `host` is without brackets; `text` is the URL as given, for messages.
fn tcp_url(scheme: Scheme, host: &str, port: Option<u16>, path: &str, text: &str) -> Url {
    let port = port.unwrap_or_else(|| scheme.default_port());
    let bracketed = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    // A scheme's default port is left out. AJP13's port always is: a Host field has the port at which browsers reach
    // the web server.
    let authority = if scheme == Scheme::Ajp || port == scheme.default_port() {
        bracketed
    } else {
        format!("{bracketed}:{port}")
    };
    Url {
        scheme,
        transport: Transport::Tcp {
            host: host.to_owned(),
            port,
        },
        hostname: host.to_owned(),
        port,
        authority,
        user: None,
        path: path.to_owned(),
        text: text.to_owned(),
    }
}

impl Scheme {
    fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
            Self::Ajp => 8009,
            Self::Memcached => 11_211,
        }
    }
}

/// The bytes of `text` outside placeholders such as `{{rand 1 6}}`, which may contain spaces.
fn outside_braces(text: &str) -> impl Iterator<Item = u8> {
    // The first piece (number 0) is before any placeholder; each other one begins inside of one.
    let pieces = text.split("{{").enumerate();
    let outside = pieces.map(|(number, piece)| match piece.split_once("}}") {
        Some((_, after)) if number > 0 => after,
        _ => piece,
    });
    outside.flat_map(str::bytes)
}

/// Parses a URL by our rules: the path may be missing, credentials and a fragment are allowed.
pub(crate) fn parse(text: &str) -> Result<Url, Refusal> {
    if outside_braces(text).any(|byte| byte <= b' ' || byte == 0x7f) {
        return Err(refusal(
            text,
            "spaces and control characters must be escaped",
        ));
    }
    let address = text.split('#').next().unwrap_or_default();
    if let Some(rest) = address.strip_prefix("http+unix:") {
        return unix(Scheme::Http, rest, text);
    }
    if let Some(rest) = address.strip_prefix("ajp+unix:") {
        return unix(Scheme::Ajp, rest, text);
    }
    if let Some(rest) = address.strip_prefix("memcached+unix:") {
        return check_memcached(unix(Scheme::Memcached, rest, text)?);
    }
    let (scheme, after_scheme) = match address.split_once("://") {
        Some(("http", rest)) => (Scheme::Http, rest),
        Some(("https", rest)) => (Scheme::Https, rest),
        Some(("ajp", rest)) => (Scheme::Ajp, rest),
        Some(("memcached", rest)) => (Scheme::Memcached, rest),
        Some(_) => {
            let known = "the scheme is none of http, https, ajp, memcached, http+unix, ajp+unix and \
                         memcached+unix";
            return Err(refusal(text, known));
        }
        None => (Scheme::Http, address),
    };
    let path_start = after_scheme.find(['/', '?']).unwrap_or(after_scheme.len());
    let (user_and_host, path) = after_scheme.split_at(path_start);
    let (user, authority) = match user_and_host.rsplit_once('@') {
        Some((user, authority)) => (Some(user), authority),
        None => (None, user_and_host),
    };
    if authority.is_empty() {
        return Err(refusal(text, "it has no host"));
    }
    let (host, port) = match host_and_port(authority) {
        // A colon in a host without brackets is the rest of a malformed port, or of an IPv6 address.
        Some((host, port)) if authority.starts_with('[') || !host.contains(':') => (host, port),
        _ => {
            return Err(refusal(
                text,
                "host and port must be HOST, HOST:PORT or [ADDRESS]:PORT, the port from 1 to 65535",
            ));
        }
    };
    let mut url = tcp_url(scheme, host, port, &with_slash(path), text);
    url.user = user.map(str::to_owned);
    match scheme {
        Scheme::Memcached => check_memcached(url),
        _ => Ok(url),
    }
}

/// Refuses the parts of a URL that memcached does not have.
fn check_memcached(url: Url) -> Result<Url, Refusal> {
    if url.path != "/" {
        return Err(refusal(
            &url.text,
            "memcached has keys and no paths: see --keys",
        ));
    }
    if url.user.is_some() {
        return Err(refusal(
            &url.text,
            "memcached is spoken without a user: SASL needs the binary protocol",
        ));
    }
    Ok(url)
}

fn with_slash(path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    }
}

/// Parses a URL of a Unix socket; `rest` is the text after the scheme and its colon.
fn unix(scheme: Scheme, rest: &str, text: &str) -> Result<Url, Refusal> {
    let (socket, path) = match rest.strip_prefix("//") {
        // The socket is written as a host: `//%2Frun%2Fapp.sock/path`.
        Some(address) if !address.starts_with('/') => {
            let end = address.find(['/', '?']).unwrap_or(address.len());
            let (escaped, path) = address.split_at(end);
            let socket = unescape(escaped)
                .ok_or_else(|| refusal(text, "the socket's path has a malformed escape"))?;
            (socket, path)
        }
        // The path follows after a colon: `/run/app.sock:/path`.
        _ => {
            let (slashed, path) = match rest.find(":/") {
                Some(colon) => (&rest[..colon], &rest[colon + 1..]),
                None => (rest, ""),
            };
            // `http+unix:///run/app.sock` is the same as with one slash.
            let socket = slashed.strip_prefix("//").unwrap_or(slashed);
            (socket.to_owned(), path)
        }
    };
    if !socket.starts_with('/') {
        return Err(refusal(text, "it needs the absolute path of a socket"));
    }
    Ok(Url {
        scheme,
        transport: Transport::Unix(PathBuf::from(&socket)),
        hostname: socket,
        port: 0,
        authority: "localhost".to_owned(),
        user: None,
        path: with_slash(path),
        text: text.to_owned(),
    })
}

/// Decodes percent-escapes (RFC 3986, section 2.1); `None` if one is malformed.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = tail;
            continue;
        }
        let (digits, after_digits) = tail.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after_digits;
    }
    String::from_utf8(bytes).ok()
}

fn refusal(url: &str, reason: &'static str) -> Refusal {
    Refusal::Url {
        url: url.to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_ab_takes_urls_apart() {
        for (text, hostname, port, authority, path) in [
            ("http://h/", "h", 80, "h", "/"),
            ("https://h/a?b", "h", 443, "h", "/a?b"),
            ("http://h:8080/", "h", 8080, "h:8080", "/"),
            ("h:81/x", "h", 81, "h:81", "/x"),
            ("http://[::1]:1/", "::1", 1, "[::1]:1", "/"),
            ("http://u:p@h:1/", "u:p@h", 1, "[u:p@h]:1", "/"),
            ("ftp://h/", "ftp:", 80, "[ftp:]", "//h/"),
            ("http://h:443/", "h", 443, "h:443", "/"),
        ] {
            let url = parse_as_ab(text).unwrap();
            let found = (
                url.hostname.as_str(),
                url.port,
                url.authority.as_str(),
                url.path.as_str(),
            );
            assert_eq!(found, (hostname, port, authority, path), "{text}");
        }
        for text in [
            "http://h",
            "h",
            "http:///",
            "http://h:0/",
            "http://h:99999/",
            "http://[::1/",
        ] {
            assert!(parse_as_ab(text).is_err(), "{text}");
        }
    }

    #[test]
    fn as_people_write_them() {
        for (text, scheme, port, authority, path) in [
            ("http://h", Scheme::Http, 80, "h", "/"),
            ("h?q=1#f", Scheme::Http, 80, "h", "/?q=1"),
            ("https://[::1]/a", Scheme::Https, 443, "[::1]", "/a"),
            ("ajp://h/a", Scheme::Ajp, 8009, "h", "/a"),
            ("ajp://h:9009", Scheme::Ajp, 9009, "h", "/"),
            ("memcached://h", Scheme::Memcached, 11_211, "h", "/"),
            (
                "memcached://[::1]:11212/",
                Scheme::Memcached,
                11_212,
                "[::1]:11212",
                "/",
            ),
        ] {
            let url = parse(text).unwrap();
            let found = (
                url.scheme,
                url.port,
                url.authority.as_str(),
                url.path.as_str(),
            );
            assert_eq!(found, (scheme, port, authority, path), "{text}");
        }
        assert_eq!(parse("http://u:p@h/").unwrap().user.as_deref(), Some("u:p"));
        for (text, reason) in [
            ("", "no host"),
            ("http://", "no host"),
            ("ftp://h/", "scheme"),
            ("http://h:x/", "PORT"),
            ("http://h:0/", "PORT"),
            ("http://::1/", "PORT"),
            ("http://h/a b", "spaces"),
            ("http+unix:run", "absolute"),
            ("http+unix://%2/", "escape"),
            ("memcached://h/key", "no paths"),
            ("memcached://u:p@h/", "SASL"),
            ("memcached+unix:/run/m.sock:/key", "no paths"),
        ] {
            let refusal = parse(text).unwrap_err().to_string();
            assert!(refusal.contains(reason), "{text}: {refusal}");
        }
    }

    #[test]
    fn sockets_have_a_path_of_their_own_and_one_to_ask_for() {
        for (text, path) in [
            ("http+unix:/run/a.sock", "/"),
            ("http+unix:/run/a.sock:/x?y", "/x?y"),
            ("http+unix:///run/a.sock", "/"),
            ("http+unix://%2Frun%2Fa.sock/x?y", "/x?y"),
            ("ajp+unix:/run/a.sock:/x", "/x"),
            ("memcached+unix:/run/a.sock", "/"),
        ] {
            let url = parse(text).unwrap();
            assert_eq!(
                url.transport,
                Transport::Unix(PathBuf::from("/run/a.sock")),
                "{text}"
            );
            assert_eq!(url.path, path, "{text}");
            assert_eq!((url.authority.as_str(), url.port), ("localhost", 0));
        }
    }
}
