//! The values of keys of routes: hosts, paths, suffixes and patterns, targets of redirects, and fields.
//!
//! The front compares patterns with a normalised request. A pattern that no normalised request can equal is
//! a fault here, because its route would never match.

use catamaran_proxy::config::FieldName;
use catamaran_proxy::config::{
    Exclusion, KnownNames, PathExpression, Placeholder, SameSite, Template, TemplateError,
};
use http::Method;

use super::address::is_label;

/// Why a text is not a host that a route can match.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HostError {
    /// The text is only `*`.
    #[error("is `*`; leave `host` out to match any host")]
    Any,
    /// The text has a wildcard that is not the first label.
    #[error("has a wildcard that is not its whole first label; write *.example.org")]
    Wildcard,
    /// The text is a URL.
    #[error("is a URL; write \"{host}\"{}", scheme_hint(scheme))]
    Url {
        /// The scheme of the URL: `http` or `https`.
        scheme: String,
        /// The host in the URL.
        host: String,
    },
    /// The text has a path after the host.
    #[error("has a path; write \"{0}\", and the path as `path`")]
    Path(String),
    /// The text has a port.
    #[error("has a port; remove it, since a route matches the host alone")]
    Port,
    /// The text has characters outside ASCII.
    #[error("is not ASCII; write its xn-- form")]
    NotAscii,
    /// The text is wrong in another way.
    #[error("is not a host name; write one such as www.example.org, *.example.org or 10.0.0.1")]
    Syntax,
}

fn scheme_hint(scheme: &str) -> &'static str {
    match scheme {
        "https" => ", and scheme = \"https\" if clients of http are to be left out",
        _ => "",
    }
}

/// Whether this text can be a `host` of a route: a name, an address, or `*.` and a name.
pub fn is_route_host(text: &str) -> bool {
    parse_host(text).is_ok()
}

/// Parses a host such as `www.example.org`, `*.example.org`, `10.0.0.1` or `[::1]`.
pub(crate) fn parse_host(text: &str) -> Result<String, HostError> {
    if !text.is_ascii() {
        return Err(HostError::NotAscii);
    }
    if text == "*" {
        return Err(HostError::Any);
    }
    let host = text.to_ascii_lowercase();
    if let Some((scheme, after)) = host.split_once("://") {
        let name = after.split(['/', '?', ':']).next().unwrap_or_default();
        if !name.split('.').all(is_label) {
            return Err(HostError::Syntax);
        }
        return Err(HostError::Url {
            scheme: scheme.to_owned(),
            host: name.to_owned(),
        });
    }
    if let Some((name, _)) = host.split_once('/')
        && name.split('.').all(is_label)
    {
        return Err(HostError::Path(name.to_owned()));
    }
    let bracketed = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    if let Some(ipv6) = bracketed {
        let address: std::net::Ipv6Addr = ipv6.parse().map_err(|_| HostError::Syntax)?;
        return Ok(format!("[{address}]"));
    }
    let name = host.strip_prefix("*.").unwrap_or(&host);
    if name.contains('*') {
        return Err(HostError::Wildcard);
    }
    if name.contains(':') {
        return Err(HostError::Port);
    }
    // A closing dot makes an empty label: the host of a request is compared without it.
    if name.len() > 253 || !name.split('.').all(is_label) {
        return Err(HostError::Syntax);
    }
    Ok(host)
}

/// Why a text is not a path that a route can match.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    /// The text does not begin with a slash.
    #[error("must begin with `/`; write \"/{0}\"")]
    Relative(String),
    /// The text is a regular expression, as nginx and httpd have it.
    #[error(
        "is a regular expression; write it as `regex`, without the `~` of nginx, and `(?i)` before it for `~*`"
    )]
    Regex,
    /// The text has a wildcard.
    #[error(
        "has a `*`, which is no wildcard here; remove it: `path` matches everything below it, `suffix` every path \
         that ends so, and `pattern` has wildcards"
    )]
    Wildcard,
    /// The text has an empty segment, or one that is `.` or `..`.
    #[error(
        "has a segment that is empty, `.` or `..`; remove it, since the front resolves these in every request"
    )]
    Segment,
    /// The text has a character that no path can contain.
    #[error("has the character {0:?}; percent-encode it, as every request does")]
    Character(char),
    /// The text has an incomplete escape, or one that a normalised path never has.
    #[error(
        "has a `%` that begins no escape of a path: write two hexadecimal digits after it; write letters, \
         digits, `-`, `.`, `_` and `~` plainly; control characters are refused"
    )]
    Escape,
}

/// Parses a path such as `/` or `/app`.
pub(crate) fn parse_path(text: &str) -> Result<String, PathError> {
    if text.starts_with(['~', '^']) {
        return Err(PathError::Regex);
    }
    if !text.starts_with('/') {
        return Err(PathError::Relative(text.to_owned()));
    }
    check_characters(text)?;
    let after_slash = &text[1..];
    let inner = after_slash.strip_suffix('/').unwrap_or(after_slash);
    let is_bad = |segment: &str| matches!(segment, "" | "." | "..");
    // The empty path between the slashes of `//` is no root.
    if (!inner.is_empty() && inner.split('/').any(is_bad)) || text == "//" {
        return Err(PathError::Segment);
    }
    Ok(text.to_owned())
}

/// Parses what replaces a path: a path, which may have groups of the route's expression such as `{id}`. Only
/// [`parse_new_path`] knows which groups there are.
pub(crate) fn parse_rewrite(text: &str) -> Result<String, PathError> {
    if text.contains(['{', '}']) {
        return Ok(text.to_owned());
    }
    parse_path(text)
}

/// Why a text is not a path with groups of the route's expression.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NewPathError {
    /// The text is not a path, even with something in the place of its groups.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The text has a group that the expression does not have.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

/// Parses a whole path such as `/items/{id}`, with groups of the route's expression.
pub(crate) fn parse_new_path(
    text: &str,
    expression: &PathExpression,
) -> Result<Template, NewPathError> {
    let template = Template::parse_with(text, KnownNames::NONE, Some(expression))?;
    parse_path(&template.sample())?;
    Ok(template)
}

/// Why a text is not a method.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MethodError {
    /// The text has a character that no method has.
    #[error("is no method; write one such as GET or PROPFIND")]
    Syntax,
    /// The text has small letters. No registered method has any, and methods are compared letter by letter.
    #[error("has small letters, and methods are compared letter by letter; write \"{0}\"")]
    Case(String),
    /// The front answers requests with this method itself.
    #[error("is answered by the front itself, without a route; remove it")]
    Own,
}

/// Parses a method such as `GET`.
pub(crate) fn parse_method(text: &str) -> Result<Method, MethodError> {
    if text.contains(|c: char| c.is_ascii_lowercase()) {
        return Err(MethodError::Case(text.to_ascii_uppercase()));
    }
    match Method::from_bytes(text.as_bytes()) {
        Ok(Method::TRACE | Method::CONNECT) => Err(MethodError::Own),
        Ok(method) => Ok(method),
        Err(_) => Err(MethodError::Syntax),
    }
}

/// Why a text is not a suffix that a route can match.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SuffixError {
    /// The text is empty.
    #[error("is empty; leave it out to match any path")]
    Empty,
    /// The text has a slash.
    #[error("has a `/`; a suffix is the end of the last segment, such as \".jsp\"")]
    Slash,
    /// The text has something that no path can contain.
    #[error(transparent)]
    Path(#[from] PathError),
}

/// Parses a suffix such as `.jsp`.
pub(crate) fn parse_suffix(text: &str) -> Result<String, SuffixError> {
    if text.is_empty() {
        return Err(SuffixError::Empty);
    }
    if text.contains('/') {
        return Err(SuffixError::Slash);
    }
    check_characters(text)?;
    Ok(text.to_owned())
}

/// Why a text is not a pattern that a route can match.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatternError {
    /// The text begins in such a way that it can match no path.
    #[error("must begin with `/` or `*`, because every path begins with a slash")]
    Start,
    /// The text is longer than any sensible path.
    #[error("is longer than {PATTERN_MAX} characters; shorten it")]
    Long,
    /// The text has an escape that would be taken for a wildcard.
    #[error(
        "has an escaped `*` or `?`; remove it, since a pattern cannot tell it from the wildcard"
    )]
    Wildcard,
    /// The text has something that no path can contain.
    #[error(transparent)]
    Path(#[from] PathError),
}

/// Parses a pattern such as `/app*/x?.do`.
pub(crate) fn parse_pattern(text: &str) -> Result<String, PatternError> {
    if !text.starts_with(['/', '*']) {
        return Err(PatternError::Start);
    }
    if text.len() > PATTERN_MAX {
        return Err(PatternError::Long);
    }
    let lower = text.to_ascii_lowercase();
    if lower.contains("%2a") || lower.contains("%3f") {
        return Err(PatternError::Wildcard);
    }
    // The wildcards are replaced by ordinary characters for the check.
    let plain = text.replace(['*', '?'], "x");
    check_characters(&plain)?;
    let is_bad = |segment: &str| matches!(segment, "." | "..");
    if text.split('/').any(is_bad) || text.contains("//") {
        return Err(PathError::Segment.into());
    }
    Ok(text.to_owned())
}

/// Parses a path or pattern that a route excludes, so that other routes get it.
pub(crate) fn parse_exclusion(text: &str) -> Result<Exclusion, PatternError> {
    if text.contains(['*', '?']) {
        return parse_pattern(text).map(Exclusion::Pattern);
    }
    Ok(Exclusion::Prefix(parse_path(text)?))
}

/// Parses a host by which the application calls itself; it cannot have a wildcard.
pub(crate) fn parse_internal_host(text: &str) -> Result<String, HostError> {
    match parse_host(text) {
        Ok(host) if host.starts_with('*') => Err(HostError::Wildcard),
        host => host,
    }
}

/// Why a text is not a target to which clients can be redirected.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RedirectError {
    /// The text is neither a path nor a URL.
    #[error("must begin with `/`, `http://`, `https://` or `{{scheme}}://`")]
    Start,
    /// The URL has no host.
    #[error("has no host behind its `://`")]
    Host,
    /// The text has a character that no URL can contain.
    #[error("has the character {0:?}, which a URL may not contain; percent-encode it")]
    Character(char),
    /// A group of the route's expression stands for the host.
    #[error("has what the client sent as its host; write the host, or `{{host}}`")]
    CapturedHost,
    /// The text has a slash before this placeholder, which begins with one itself.
    #[error("has a slash before `{{{0}}}`, which begins with one itself; remove the slash")]
    Slashes(&'static str),
    /// The placeholders of the text are not valid.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

/// Parses the target of a redirect. Its placeholders are not checked; [`parse_location`] does that.
pub(crate) fn parse_redirect(text: &str) -> Result<String, RedirectError> {
    let schemes = ["http://", "https://", "{scheme}://"];
    match schemes.iter().find_map(|scheme| text.strip_prefix(scheme)) {
        Some(authority) if authority.is_empty() || authority.starts_with(['/', '?', '#']) => {
            return Err(RedirectError::Host);
        }
        None if !text.starts_with('/') && !text.starts_with("{path") => {
            return Err(RedirectError::Start);
        }
        Some(_) | None => {}
    }
    let is_bad = |c: &char| !c.is_ascii_graphic() || "\"<>\\^`|".contains(*c);
    if let Some(bad) = text.chars().find(is_bad) {
        return Err(RedirectError::Character(bad));
    }
    // These placeholders begin with a slash themselves.
    for (beginning, name) in [("/{path}", "path"), ("/{path_query}", "path")] {
        if text.starts_with(beginning) {
            return Err(RedirectError::Slashes(name));
        }
    }
    if text.contains("/{rest}") || text.contains("/{rest_query}") {
        return Err(RedirectError::Slashes("rest"));
    }
    Ok(text.to_owned())
}

/// Parses the placeholders of a redirect, which may be groups of the route's expression.
pub(crate) fn parse_location(
    text: &str,
    expression: Option<&PathExpression>,
) -> Result<Template, RedirectError> {
    let template = Template::parse_with(text, Placeholder::OF_REDIRECTS, expression)?;
    if template.begins_with_capture() {
        return Err(RedirectError::Start);
    }
    if template.has_captured_host() {
        return Err(RedirectError::CapturedHost);
    }
    Ok(template)
}

/// Why a text is no part of a URL in a response.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UrlTextError {
    /// The text is empty, so that every URL would begin with it.
    #[error("is empty, and every URL begins so; write what stands before the part that stays")]
    Empty,
    /// The text has a character that no URL can contain.
    #[error("has the character {0:?}, which a URL may not contain; percent-encode it")]
    Character(char),
}

/// Parses a part of a URL. Its placeholders are not checked.
pub(crate) fn parse_url_text(text: &str) -> Result<String, UrlTextError> {
    match text.chars().find(|c| !c.is_ascii_graphic()) {
        Some(bad) => Err(UrlTextError::Character(bad)),
        None => Ok(text.to_owned()),
    }
}

/// A flag that the front adds to cookies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CookieFlag {
    Secure,
    HttpOnly,
    SameSite(SameSite),
}

/// The text is not a flag of cookies.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be \"Secure\", \"HttpOnly\" or \"SameSite=\" with Lax, Strict or None")]
pub(crate) struct CookieFlagError;

/// Parses a flag such as `SameSite=Lax`.
pub(crate) fn parse_cookie_flag(text: &str) -> Result<CookieFlag, CookieFlagError> {
    match text.to_ascii_lowercase().as_str() {
        "secure" => Ok(CookieFlag::Secure),
        "httponly" => Ok(CookieFlag::HttpOnly),
        "samesite=lax" => Ok(CookieFlag::SameSite(SameSite::Lax)),
        "samesite=strict" => Ok(CookieFlag::SameSite(SameSite::Strict)),
        "samesite=none" => Ok(CookieFlag::SameSite(SameSite::None)),
        _ => Err(CookieFlagError),
    }
}

/// Why a text is not the name or the value of a field.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FieldError {
    /// The text is not the name of a field.
    #[error(
        "names no field: the name of a field has letters, digits, `-` and `_` (RFC 9110, section 5.1)"
    )]
    Name,
    /// The text is not the value of a field.
    #[error("must be one line of printable characters, at most {FIELD_MAX} bytes")]
    Value,
}

/// Parses the name of a field.
pub(crate) fn parse_field_name(text: &str) -> Result<FieldName, FieldError> {
    FieldName::parse(text.as_bytes()).ok_or(FieldError::Name)
}

/// Parses the value of a field; placeholders are not checked. White space around it is removed (RFC 9110, section 5.5).
pub(crate) fn parse_field_value(text: &str) -> Result<String, FieldError> {
    let text = text.trim_matches([' ', '\t']);
    if text.len() > FIELD_MAX || text.chars().any(|c| c.is_control() && c != '\t') {
        return Err(FieldError::Value);
    }
    Ok(text.to_owned())
}

/// Faults characters and escapes that no normalised path has.
fn check_characters(text: &str) -> Result<(), PathError> {
    if text.contains('*') {
        return Err(PathError::Wildcard);
    }
    // RFC 3986, section 3.3, less `;`: parameters are cut off before the comparison.
    let is_good = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()+,=:@/%".contains(c);
    if let Some(bad) = text.chars().find(|&c| !is_good(c)) {
        return Err(PathError::Character(bad));
    }
    // What is before the first `%` is no escape.
    for escape in text.split('%').skip(1) {
        if !escaped(escape).is_some_and(stays_escaped) {
            return Err(PathError::Escape);
        }
    }
    Ok(())
}

/// The byte for which the first two hexadecimal digits of `rest` stand.
fn escaped(rest: &str) -> Option<u8> {
    let digits = rest.get(..2)?;
    let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    hex.then(|| u8::from_str_radix(digits, 16).ok())?
}

/// Whether normalisation keeps the escape of this byte (RFC 3986, section 6.2.2.2); it refuses control
/// characters.
fn stays_escaped(byte: u8) -> bool {
    let unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    !unreserved && !byte.is_ascii_control()
}

/// The most characters of a pattern.
const PATTERN_MAX: usize = 1024;

/// The most bytes of a field's value.
const FIELD_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_hosts() {
        let url = |scheme: &str, host: &str| HostError::Url {
            scheme: scheme.to_owned(),
            host: host.to_owned(),
        };
        for (text, expected) in [
            ("www.Example.org", Ok("www.example.org")),
            ("*.example.org", Ok("*.example.org")),
            ("localhost", Ok("localhost")),
            ("10.0.0.1", Ok("10.0.0.1")),
            ("[0::1]", Ok("[::1]")),
            ("*", Err(HostError::Any)),
            ("w*.example.org", Err(HostError::Wildcard)),
            ("a.*.org", Err(HostError::Wildcard)),
            ("example.org:80", Err(HostError::Port)),
            ("exämple.org", Err(HostError::NotAscii)),
            ("", Err(HostError::Syntax)),
            ("example.org.", Err(HostError::Syntax)),
            ("a b", Err(HostError::Syntax)),
            ("http://x", Err(url("http", "x"))),
            ("https://X.org/app", Err(url("https", "x.org"))),
            ("https://x.org:8443", Err(url("https", "x.org"))),
            ("x.org/app", Err(HostError::Path("x.org".to_owned()))),
            ("[x]", Err(HostError::Syntax)),
        ] {
            assert_eq!(parse_host(text), expected.map(str::to_owned), "{text}");
        }
    }

    #[test]
    fn reads_paths() {
        for text in ["/", "/app", "/app/", "/a/b.c/~d", "/%C3%a4", "/a%20b"] {
            assert_eq!(parse_path(text), Ok(text.to_owned()));
        }
        for (text, error) in [
            ("app", PathError::Relative("app".to_owned())),
            ("", PathError::Relative(String::new())),
            ("~ ^/app", PathError::Regex),
            ("^/app", PathError::Regex),
            ("/app/*", PathError::Wildcard),
            ("//", PathError::Segment),
            ("/a//b", PathError::Segment),
            ("/a/../b", PathError::Segment),
            ("/a/.", PathError::Segment),
            ("/a b", PathError::Character(' ')),
            ("/a;b", PathError::Character(';')),
            ("/a?b", PathError::Character('?')),
            ("/ä", PathError::Character('ä')),
            ("/%", PathError::Escape),
            ("/%0a", PathError::Escape),
            ("/%+1", PathError::Escape),
            ("/%41", PathError::Escape),
            ("/%C", PathError::Escape),
        ] {
            assert_eq!(parse_path(text), Err(error), "{text}");
        }
    }

    #[test]
    fn reads_suffixes() {
        assert_eq!(parse_suffix(".jsp"), Ok(".jsp".to_owned()));
        assert_eq!(parse_suffix(""), Err(SuffixError::Empty));
        assert_eq!(parse_suffix("/x"), Err(SuffixError::Slash));
        assert_eq!(
            parse_suffix("*.jsp"),
            Err(SuffixError::Path(PathError::Wildcard))
        );
    }
}
