//! Texts that are put into a header, a log or a packet: names, the pseudonym, secrets,
//! networks and so on.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use catamaran_proxy::config::FieldName;
use catamaran_proxy::config::{AccessLogTarget, HashBy, HostName, SentHost, SyslogAddress};
use http::HeaderValue;
use ipnet::IpNet;

use super::address::{UnixPathError, host_and_port, is_label, unix_path};
use crate::value::Syntax;

/// Why a text is not a valid value of its key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TextError {
    /// The text is not a valid name.
    #[error("must be 1 to {NAME_MAX} letters, digits, `-`, `_` or `.`")]
    Name,
    /// The text is not a valid name of a backend.
    #[error("must be 1 to {LABEL_MAX} printable ASCII characters without spaces or quotes")]
    Label,
    /// The text is not the name of a user or of a group.
    #[error("must be 1 to {MEMBER_MAX} bytes without a colon or control characters")]
    Member,
    /// The text is not a token.
    #[error("must be a token (RFC 9110, section 5.6.2) of 1 to {NAME_MAX} characters")]
    Token,
    /// The text is not the name of a field with an underscore or another odd sign.
    #[error(
        "must be a field's name (RFC 9110, section 5.1) with an underscore in it, or another sign than letters, digits and `-`"
    )]
    Underscored,
    /// The text is an empty secret.
    #[error("is empty; leave it out when the connector has no secret")]
    SecretEmpty,
    /// The text is a secret that would not reach the connector unchanged.
    #[error(
        "has a control character, or is longer than {SECRET_MAX} bytes; use printable characters"
    )]
    Secret,
    /// The text is neither an address nor a network.
    #[error("has `{0}`, which is no IP address or network such as 10.0.0.0/8")]
    Network(String),
    /// The text is a network in whose address bits after the prefix are set.
    #[error("has `{0}`, an address within a network; write {1} for the network")]
    NetworkBits(String, IpNet),
    /// The text is not a field that may carry a request's id.
    #[error(
        "must be the name of a field such as X-Request-Id: `Request-Id`, `Correlation-Id` or one of `X-`"
    )]
    RequestId,
    /// The text is not a separator.
    #[error("must be one printable ASCII character other than a space and any of `\"%,/;=\\`")]
    Separator,
    /// The text does not say which part of a request to hash.
    #[error("must be \"address\", \"path\", \"cookie:NAME\", \"header:NAME\" or \"query:NAME\"")]
    HashBy,
    /// The text does not say what makes requests one key of a limit.
    #[error("must be \"client\", \"user\", \"host\", \"header:NAME\" or \"all\"")]
    LimitBy,
    /// The text is not the target of a probe.
    #[error(
        "must begin with `/` and be at most {TARGET_MAX} printable ASCII characters without `#`"
    )]
    Target,
    /// The text is not a host.
    #[error("must be a host name or address, with or without a port")]
    Host,
    /// The text is not a text that a probe can look for.
    #[error("must be 1 to {TARGET_MAX} bytes")]
    ProbeBody,
    /// The text is too long to be the answer of a route.
    #[error("is longer than 64 KiB; serve a file by `files`")]
    Answer,
    /// The text is neither a status nor a range of statuses.
    #[error(
        "must be a status such as \"200\", a class such as \"2xx\" or a range such as \"200-399\", from 100 to 599"
    )]
    Statuses,
    /// The text is not a cookie with a value.
    #[error("must be NAME=VALUE, in printable ASCII characters without spaces and any of `\",;\\`")]
    Cookie,
    /// The text is not the path of a cookie.
    #[error(
        "must begin with `/` and be at most {COOKIE_PATH_MAX} printable ASCII characters without `;`"
    )]
    CookiePath,
    /// The text is not a host name.
    #[error("must be a host name without a port, such as front-1.example.org")]
    AdminHost,
    /// The text is not a set of file permissions.
    #[error("must be permissions in octal digits, such as \"0600\"")]
    Mode,
    /// The text is not a value of Strict-Transport-Security.
    #[error(
        "must be `max-age=SECONDS`, followed by `; includeSubDomains` or `; preload` if you want them"
    )]
    Hsts,
    /// The text does not say which host to send to a backend.
    #[error(
        "must be \"client\", \"backend\", or a host such as \"app.internal\" or \"app.internal:8080\""
    )]
    SentHost,
    /// The text is an empty path.
    #[error("is empty; write a path")]
    PathEmpty,
}

/// Parses the name of an upstream.
pub(crate) fn parse_name(text: &str) -> Result<String, TextError> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    check(text, NAME_MAX, good, TextError::Name)
}

/// Parses the name of a backend. More characters are allowed than in other names, because
/// the default is a URL.
pub(crate) fn parse_label(text: &str) -> Result<String, TextError> {
    let good = |byte: u8| byte.is_ascii_graphic() && !b"\"'\\".contains(&byte);
    check(text, LABEL_MAX, good, TextError::Label)
}

/// Parses the name of a user or of a group, as it stands in a file of `htpasswd` or of groups.
pub(crate) fn parse_member(text: &str) -> Result<String, TextError> {
    let is_odd = |letter: char| letter.is_control() || letter == ':';
    let fits = (1..=MEMBER_MAX).contains(&text.len());
    if fits && !text.contains(is_odd) {
        Ok(text.to_owned())
    } else {
        Err(TextError::Member)
    }
}

/// Parses a token: the pseudonym in `Via`, or the name of a cookie or of a path parameter.
pub(crate) fn parse_token(text: &str) -> Result<String, TextError> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    check(text, NAME_MAX, good, TextError::Token)
}

/// Parses the name of a protocol in `Upgrade`, and converts it to lower case.
pub(crate) fn parse_protocol(text: &str) -> Result<String, TextError> {
    parse_token(text).map(|token| token.to_ascii_lowercase())
}

/// Parses the name of a field that carries a request's id.
pub(crate) fn parse_request_id(text: &str) -> Result<FieldName, TextError> {
    let name = FieldName::parse(text.as_bytes()).ok_or(TextError::RequestId)?;
    let lower = name.as_str().to_ascii_lowercase();
    let beginnings = ["x-", "request-id", "correlation-id"];
    let is_id = beginnings
        .iter()
        .any(|beginning| lower.starts_with(beginning));
    // The front itself writes X-Forwarded-*.
    if !is_id || lower.starts_with("x-forwarded") {
        return Err(TextError::RequestId);
    }
    Ok(name)
}

/// Parses the name of a field with an underscore, or another sign than letters, digits and `-`, and converts it to lower
/// case.
pub(crate) fn parse_underscored(text: &str) -> Result<String, TextError> {
    let token = parse_token(text).map_err(|_| TextError::Underscored)?;
    let is_odd = |it: char| !it.is_ascii_alphanumeric() && it != '-';
    let name = Some(token.to_ascii_lowercase()).filter(|it| it.contains(is_odd));
    name.ok_or(TextError::Underscored)
}

/// Parses the secret of an AJP connector.
pub(crate) fn parse_secret(text: &str) -> Result<String, TextError> {
    if text.is_empty() {
        return Err(TextError::SecretEmpty);
    }
    check(
        text,
        SECRET_MAX,
        |byte| !byte.is_ascii_control(),
        TextError::Secret,
    )
}

/// Parses which part of a request is hashed to choose a backend.
pub(crate) fn parse_hash_by(text: &str) -> Result<HashBy, TextError> {
    let by = match text.split_once(':') {
        None if text == "address" => Some(HashBy::Address),
        None if text == "path" => Some(HashBy::Path),
        Some(("cookie", name)) => parse_token(name).ok().map(HashBy::Cookie),
        Some(("header", name)) => parse_token(name)
            .ok()
            .and_then(|name| FieldName::parse(name.as_bytes()))
            .map(HashBy::Header),
        Some(("query", name)) => {
            let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"&=#+".contains(&byte);
            let name = check(name, NAME_MAX, is_plain, TextError::HashBy);
            name.ok().map(HashBy::Query)
        }
        _ => None,
    };
    by.ok_or(TextError::HashBy)
}

/// Parses the path and query that a probe asks for.
pub(crate) fn parse_target(text: &str) -> Result<String, TextError> {
    let good = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
    let checked = check(text, TARGET_MAX, good, TextError::Target)?;
    let target = Some(checked).filter(|target| target.starts_with('/'));
    target.ok_or(TextError::Target)
}

/// Parses the `Host` that a probe sends.
pub(crate) fn parse_host_field(text: &str) -> Result<String, TextError> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:[]".contains(&byte);
    check(text, LABEL_MAX, good, TextError::Host)
}

/// Parses the text that a probe looks for in a body.
pub(crate) fn parse_probe_body(text: &str) -> Result<String, TextError> {
    check(text, TARGET_MAX, |_| true, TextError::ProbeBody)
}

/// Parses a status, a class of statuses such as `2xx`, or a range of statuses.
pub(crate) fn parse_statuses(text: &str) -> Result<RangeInclusive<u16>, TextError> {
    if text.len() == 3
        && let Some(class) = text.strip_suffix("xx")
    {
        let first = parse_status(&format!("{class}00"))?;
        return Ok(first..=first + 99);
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = parse_status(first)?..=parse_status(last)?;
    if range.is_empty() {
        return Err(TextError::Statuses);
    }
    Ok(range)
}

/// Parses three digits from 100 to 599.
fn parse_status(text: &str) -> Result<u16, TextError> {
    let is_number = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(status) if is_number && (100..=599).contains(&status) => Ok(status),
        _ => Err(TextError::Statuses),
    }
}

/// Parses a host name by which clients may call the admin listener, and converts it to
/// lower case.
pub(crate) fn parse_admin_host(text: &str) -> Result<String, TextError> {
    let fits = text.len() <= 253 && text.split('.').all(is_label);
    fits.then(|| text.to_ascii_lowercase())
        .ok_or(TextError::AdminHost)
}

/// Parses the permissions of a file, in octal digits.
pub(crate) fn parse_mode(text: &str) -> Result<u32, TextError> {
    let digits =
        (3..=4).contains(&text.len()) && text.bytes().all(|it| (b'0'..=b'7').contains(&it));
    let mode = u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| digits && *mode <= 0o777);
    mode.ok_or(TextError::Mode)
}

/// Parses the character that separates a session id from its route.
pub(crate) fn parse_separator(text: &str) -> Result<u8, TextError> {
    match text.as_bytes() {
        [byte] if byte.is_ascii_graphic() && !b"\"%,/;=\\".contains(byte) => Ok(*byte),
        _ => Err(TextError::Separator),
    }
}

/// Parses the `Path` of a cookie.
pub(crate) fn parse_cookie_path(text: &str) -> Result<String, TextError> {
    let good = |byte: u8| byte.is_ascii_graphic() && byte != b';';
    let checked = check(text, COOKIE_PATH_MAX, good, TextError::CookiePath)?;
    let path = Some(checked).filter(|path| path.starts_with('/'));
    path.ok_or(TextError::CookiePath)
}

/// The type of the value of a key that names a file.
pub(crate) type FilePath = Syntax<PathBuf, TextError>;

/// The value of a key that names a file; `what` describes it with an example.
pub(crate) const fn file_path(what: &'static str) -> FilePath {
    Syntax {
        what,
        parse: parse_file_path,
    }
}

/// Parses the path of a file. A relative path is kept as it is: it will start from the
/// directory of the configuration file.
fn parse_file_path(text: &str) -> Result<PathBuf, TextError> {
    let empty = text.is_empty() || text.contains('\0');
    if empty {
        Err(TextError::PathEmpty)
    } else {
        Ok(PathBuf::from(text))
    }
}

/// Parses the host name that the front sends to a backend: `client`, `backend`, or a name.
pub(crate) fn parse_sent_host(text: &str) -> Result<SentHost, TextError> {
    match text {
        "client" => Ok(SentHost::Client),
        "backend" => Ok(SentHost::Backend),
        text => HostName::new(text)
            .map(SentHost::Named)
            .ok_or(TextError::SentHost),
    }
}

/// Parses the host that a route has backends get.
pub(crate) fn parse_forward_host(text: &str) -> Result<HostName, TextError> {
    HostName::new(text).ok_or(TextError::Host)
}

/// Parses a value of Strict-Transport-Security (RFC 6797, section 6.1). It has `max-age` exactly once.
pub(crate) fn parse_hsts(text: &str) -> Result<HeaderValue, TextError> {
    let text = text.trim();
    let mut ages = 0;
    for directive in text.split(';') {
        let directive = directive.trim().to_ascii_lowercase();
        let is_valid = if let Some(seconds) = directive.strip_prefix("max-age=") {
            ages += 1;
            // Digits alone: Rust's parser would take a `+` as well.
            seconds.parse::<u32>().is_ok() && seconds.bytes().all(|byte| byte.is_ascii_digit())
        } else {
            matches!(directive.as_str(), "includesubdomains" | "preload")
        };
        if !is_valid {
            return Err(TextError::Hsts);
        }
    }
    if ages != 1 {
        return Err(TextError::Hsts);
    }
    HeaderValue::from_str(text).map_err(|_| TextError::Hsts)
}

/// Parses where the access log goes: a path, `-` for standard output, `off`, or a syslog server as `unix:PATH` or
/// `udp:HOST:PORT`.
///
/// # Errors
/// The text is empty, or what follows `unix:` or `udp:` is not the address of a server.
pub fn parse_access_log(text: &str) -> Result<AccessLogTarget, AccessLogError> {
    Ok(match text {
        "off" => AccessLogTarget::Off,
        "-" => AccessLogTarget::Stdout,
        path => match parse_syslog(path) {
            Some(address) => AccessLogTarget::Syslog(address?),
            None => {
                let path = parse_file_path(path).map_err(|_| AccessLogError::Empty)?;
                AccessLogTarget::File(path)
            }
        },
    })
}

/// Parses the address of a syslog server; `None`: the text is none of its forms.
fn parse_syslog(text: &str) -> Option<Result<SyslogAddress, AccessLogError>> {
    if let Some(path) = text.strip_prefix("unix:") {
        let path = unix_path(path).map_err(AccessLogError::Unix);
        return Some(path.map(SyslogAddress::Unix));
    }
    let server = host_and_port(text.strip_prefix("udp:")?);
    let server = server.ok_or(AccessLogError::Udp);
    Some(server.map(|(host, port)| SyslogAddress::Udp { host, port }))
}

/// Why a text does not say where the access log goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessLogError {
    /// The text is empty.
    #[error(
        "is empty; write a path, \"-\" for standard output, \"off\", or a syslog server such as \"unix:/dev/log\""
    )]
    Empty,
    /// What follows `unix:` is not the path of a socket.
    #[error(transparent)]
    Unix(#[from] UnixPathError),
    /// What follows `udp:` is not a host with a port.
    #[error(
        "needs a host and a port behind `udp:`, such as \"udp:log.example.org:514\" or \"udp:[2001:db8::1]:514\""
    )]
    Udp,
}

/// Parses a network; a single address is the network that contains only itself.
pub(crate) fn parse_network(text: &str) -> Result<IpNet, TextError> {
    if let Ok(address) = text.parse::<std::net::IpAddr>() {
        return Ok(IpNet::from(address));
    }
    let network: IpNet = text
        .parse()
        .map_err(|_| TextError::Network(text.to_owned()))?;
    if network.addr() == network.network() {
        return Ok(network);
    }
    Err(TextError::NetworkBits(text.to_owned(), network.trunc()))
}

/// The text, if it has 1 to `max` bytes that are all `good`; else `error`.
fn check(
    text: &str,
    max: usize,
    good: impl Fn(u8) -> bool,
    error: TextError,
) -> Result<String, TextError> {
    let fits = (1..=max).contains(&text.len()) && text.bytes().all(good);
    if fits {
        Ok(text.to_owned())
    } else {
        Err(error)
    }
}

/// The most bytes of the name of an upstream, which is in every line of the access log.
const NAME_MAX: usize = 64;

/// The most bytes of the name of a user, which is `htpasswd`'s limit.
const MEMBER_MAX: usize = 255;

/// The most bytes of the name of a backend: enough for the URL of the longest socket path.
const LABEL_MAX: usize = 128;

/// The most bytes of the `Path` of a cookie, which each response with the cookie repeats.
const COOKIE_PATH_MAX: usize = 256;

/// The most bytes of the target of a probe, and of the text that it looks for.
const TARGET_MAX: usize = 1024;

/// The most bytes of a secret: far less than a packet of 8192, which must have room for the
/// head of the request.
pub(crate) const SECRET_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_networks_without_host_bits() {
        for text in ["10.0.0.0/8", "::/0", "192.0.2.7/32"] {
            assert_eq!(parse_network(text).unwrap().to_string(), text);
        }
        assert_eq!(
            parse_network("192.0.2.7").unwrap().to_string(),
            "192.0.2.7/32"
        );
        let message = parse_network("10.0.0.1/8").unwrap_err().to_string();
        assert!(
            message.ends_with("write 10.0.0.0/8 for the network"),
            "{message}"
        );
        assert!(parse_network("10.0.0.0/33").is_err() && parse_network("").is_err());
    }

    #[test]
    fn takes_field_names_with_underscores() {
        assert_eq!(parse_underscored("SM_USER"), Ok("sm_user".to_owned()));
        assert_eq!(parse_underscored("Sm.User"), Ok("sm.user".to_owned()));
        for bad in ["", "SM-USER", "SM_USER:", "S M_"] {
            assert_eq!(parse_underscored(bad), Err(TextError::Underscored), "{bad}");
        }
    }

    #[test]
    fn bounds_names_and_secrets() {
        assert!(parse_name("tomcat-1.a_b").is_ok() && parse_name("a b").is_err());
        assert!(parse_name("").is_err() && parse_name(&"x".repeat(65)).is_err());
        assert!(parse_label("ajp://127.0.0.1:8009").is_ok() && parse_label("a\"b").is_err());
        assert!(parse_token("front-1").is_ok() && parse_token("a/b").is_err());
        assert!(parse_secret("pass wörd").is_ok() && parse_secret("a\nb").is_err());
        assert_eq!(
            (parse_separator("."), parse_separator("!")),
            (Ok(b'.'), Ok(b'!'))
        );
        for bad in ["", "..", " ", ";", "=", "/", "\u{e4}", "\t"] {
            assert_eq!(parse_separator(bad), Err(TextError::Separator), "{bad:?}");
        }
        assert_eq!(
            (parse_mode("0660"), parse_mode("600")),
            (Ok(0o660), Ok(0o600))
        );
        for bad in ["", "66", "0888", "7777", "+600", "06600"] {
            assert_eq!(parse_mode(bad), Err(TextError::Mode), "{bad}");
        }
        assert_eq!(
            parse_admin_host("Front-1.example"),
            Ok("front-1.example".to_owned())
        );
        for bad in ["", "a:1", "[::1]", "*.a", "a..b"] {
            assert_eq!(parse_admin_host(bad), Err(TextError::AdminHost), "{bad}");
        }
        assert!(parse_cookie_path("/app").is_ok() && parse_cookie_path("app").is_err());
        assert!(parse_cookie_path("/a;b").is_err() && parse_cookie_path("/a\r").is_err());
        assert_eq!(parse_secret(""), Err(TextError::SecretEmpty));
        assert_eq!(parse_secret(&"x".repeat(1025)), Err(TextError::Secret));
    }
}
