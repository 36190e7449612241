//! Paths that are served over TLS only: plain HTTP requests for them are redirected.
//!
//! A plain request for such a path is redirected to the same path over `https`; the application does
//! not see it. An application may normalise a path before it uses it, so the comparison does, too:
//! escapes are decoded, `;parameters` removed, empty and dot segments resolved. Another application
//! resolves nothing, so a path is redirected as well if it is below a listed prefix at any step of
//! the resolution (`/admin/../x`).

use std::num::NonZeroU16;
use std::str::FromStr;

use catamaran_message::name::LOCATION;
use http::StatusCode;

use crate::handler::{Request, Response};

/// Path prefixes, compared by whole segments: `/admin` covers `/admin` and `/admin/x`, not
/// `/administrator`; `/` covers everything. Default: none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfidentialPaths(Vec<Vec<Vec<u8>>>);

/// The error of an entry of [`ConfidentialPaths`] that is not a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no path: it has to begin with `/`")]
pub struct ConfidentialPathError(String);

impl ConfidentialPaths {
    /// Whether `path`, as the client wrote it, may lead below one of these prefixes.
    #[must_use]
    pub fn contains(&self, path: &[u8]) -> bool {
        if self.0.is_empty() {
            // The usual case, in which the path need not be resolved.
            return false;
        }
        let mut is_covered = false;
        resolve(path, |resolved| {
            is_covered |= self.0.iter().any(|prefix| resolved.starts_with(prefix));
        });
        is_covered
    }
}

impl FromStr for ConfidentialPaths {
    type Err = ConfidentialPathError;

    /// Parses paths separated by commas. `/admin/*`, as servlet containers write it, means `/admin`.
    fn from_str(list: &str) -> Result<Self, Self::Err> {
        let mut paths = Vec::new();
        for path in list.split(',').map(str::trim) {
            if !path.starts_with('/') {
                return Err(ConfidentialPathError(path.to_owned()));
            }
            let prefix = path.strip_suffix("/*").unwrap_or(path);
            // Only the whole path counts here, not its steps.
            paths.push(resolve(prefix.as_bytes(), |_| {}));
        }
        Ok(Self(paths))
    }
}

/// The response that redirects a plain request to `https` on `port`: 302, as Tomcat sends it.
pub(crate) fn redirect(request: &Request, port: NonZeroU16) -> Response {
    match location(request, port) {
        Some(location) => {
            Response::text(StatusCode::FOUND, "use https\n").with_header(LOCATION, location)
        }
        // A front may claim any server name; this one is not a host to which a client could be redirected.
        None => Response::text(StatusCode::FORBIDDEN, "use https\n"),
    }
}

/// The URL that a plain request is redirected to; `None` if its server name is not a host.
fn location(request: &Request, port: NonZeroU16) -> Option<Vec<u8>> {
    let host = &request.origin.server_name;
    if !is_host(host) {
        return None;
    }
    let mut location = b"https://".to_vec();
    // An IPv6 address that stands for a missing Host has no brackets yet.
    if host.contains(&b':') && !host.starts_with(b"[") {
        location.push(b'[');
        location.extend_from_slice(host);
        location.push(b']');
    } else {
        location.extend_from_slice(host);
    }
    // 443 is the default of `https`.
    if port.get() != 443 {
        location.extend_from_slice(format!(":{port}").as_bytes());
    }
    // `OPTIONS *` is redirected to the root.
    let has_path = request.path.starts_with(b"/");
    location.extend_from_slice(if has_path { &request.path } else { b"/" });
    if let Some(query) = &request.query {
        location.push(b'?');
        location.extend_from_slice(query);
    }
    Some(location)
}

/// Whether the text has only characters of host names and addresses, so that it cannot end the URL's host early.
fn is_host(text: &[u8]) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(byte);
    !text.is_empty() && text.iter().all(is_allowed)
}

/// The segments of a path, decoded and resolved. Calls `on_step` with the segments resolved so far: first with none
/// and then after each segment.
fn resolve(path: &[u8], mut on_step: impl FnMut(&[Vec<u8>])) -> Vec<Vec<u8>> {
    let mut resolved: Vec<Vec<u8>> = Vec::new();
    on_step(&resolved);
    for segment in path.split(|byte| *byte == b'/') {
        let without_parameters = segment.split(|byte| *byte == b';').next();
        let decoded = decode(without_parameters.unwrap_or_default());
        // An application that decodes a path before it splits it takes an escaped slash for a separator.
        for piece in decoded.split(|byte| matches!(byte, b'/' | b'\\')) {
            match piece {
                b"" | b"." => continue,
                b".." => {
                    resolved.pop();
                }
                name => resolved.push(name.to_vec()),
            }
            on_step(&resolved);
        }
    }
    resolved
}

/// Decodes percent escapes; a `%` without two hexadecimal digits stands for itself.
fn decode(segment: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(segment.len());
    let mut undecoded = segment;
    while let [first, tail @ ..] = undecoded {
        if let [b'%', high, low, after_escape @ ..] = undecoded
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            decoded.push(high << 4 | low);
            undecoded = after_escape;
        } else {
            decoded.push(*first);
            undecoded = tail;
        }
    }
    decoded
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_compared_by_segments_in_any_disguise() {
        let paths: ConfidentialPaths = "/admin, /a/b/*".parse().unwrap();
        let disguises = [
            "/admin",
            "/admin/",
            "/admin/x",
            "//admin",
            "/./admin",
            "/x/../admin",
            "/admin;v=1/x",
            "/%61dmin",
            "/x/%2e%2e/admin",
            "/x%2f..%2fadmin",
            "/x\\..\\admin",
            "/../admin",
            "/a/b",
            "/a/b/c",
            // As it was written, below the prefix.
            "/admin/../x",
            "/admin/..%2fx",
            "/admin/%2e%2e/x",
            "/admin;v=1/../../x",
            "/a/b/../c",
        ];
        for path in disguises {
            assert!(paths.contains(path.as_bytes()), "{path}");
        }
        for path in [
            "/",
            "/administrator",
            "/a",
            "/a/c",
            "/x/admin",
            "/%2561dmin",
            "*",
        ] {
            assert!(!paths.contains(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn the_root_covers_everything_and_an_empty_list_nothing() {
        let all: ConfidentialPaths = "/*".parse().unwrap();
        assert!(all.contains(b"/") && all.contains(b"/x") && all.contains(b"*"));
        assert!(!ConfidentialPaths::default().contains(b"/"));
        let error = "admin".parse::<ConfidentialPaths>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"admin\" is no path: it has to begin with `/`"
        );
    }
}
