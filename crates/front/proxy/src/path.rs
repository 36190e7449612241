//! Normalises a request's path, once for both matching and forwarding.
//!
//! The backend gets the path that a route matched, and a path that a servlet container might read differently is
//! refused. The steps, in order: escapes of unreserved characters are decoded (RFC 3986, section
//! 6.2.2.2); other escapes stay as received and are never decoded, so `%252e` stays as it is; slashes
//! are merged; dot segments are resolved. Refused are escaped control characters, a path that climbs
//! above the root, and hidden dot segments: with parameters (`..;x`) or behind an escaped slash or
//! backslash (`..%2f`).
//!
//! Routes are compared with another form, which is never forwarded ([`compared`]): each segment loses its
//! `;parameters` and every escape is decoded, as a container does before it maps a request. In that form an
//! escaped slash, backslash, percent sign or semicolon is an ordinary character. Some containers take an escaped
//! slash or backslash for a separator, so a path with one has further [readings](NormalPath::readings).

pub(crate) mod captured;

use bytes::Bytes;
use captured::Captures;
use http::StatusCode;
use thiserror::Error;

/// A normalised path, in the form to forward and in the form to compare with routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NormalPath {
    /// The path to forward. It begins with `/`, or is `*`.
    pub(crate) forward: Bytes,
    /// The [`compared`] form of the client's path, with which routes are compared; `None` if it equals `forward`.
    route: Option<Bytes>,
    /// The normalised path of the client; `None` if it is forwarded.
    asked: Option<Bytes>,
    /// The texts that the route's expression captured in the compared form.
    captured: Captures,
}

impl NormalPath {
    /// The [`compared`] form with which routes are compared: the path without its parameters, decoded.
    pub(crate) fn route(&self) -> &[u8] {
        self.route.as_ref().unwrap_or(&self.forward)
    }

    /// The decoded path with its parameters, for comparison: with escaped slashes as [`ESCAPED_SLASH`] and, if there
    /// are any, also as slashes. Empty if the path has no parameters. Must be called before [`Self::forward_as`].
    pub(crate) fn with_parameters(&self) -> impl Iterator<Item = Vec<u8>> {
        let mut form = None;
        let mut with_slashes = None;
        if self.forward.contains(&b';') {
            let path = decoded(&self.forward);
            if path.contains(&ESCAPED_SLASH) {
                with_slashes = Some(separate(&path, &[ESCAPED_SLASH]));
            }
            form = Some(path);
        }
        form.into_iter().chain(with_slashes)
    }

    /// Replaces the path to forward. Routes are still compared with the form of the client's path.
    pub(crate) fn forward_as(&mut self, path: Bytes) {
        let sent = std::mem::replace(&mut self.forward, path);
        self.route.get_or_insert_with(|| sent.clone());
        self.asked.get_or_insert(sent);
    }

    /// The normalised path of the client, whatever is forwarded.
    pub(crate) fn asked(&self) -> &Bytes {
        self.asked.as_ref().unwrap_or(&self.forward)
    }

    /// The texts that the expression of the path's route captured; none before [`Self::capture`].
    pub(crate) fn captured(&self) -> &Captures {
        &self.captured
    }

    /// Keeps the texts that `captured` finds in the [`compared`] form.
    pub(crate) fn capture(&mut self, captured: impl FnOnce(&Bytes) -> Captures) {
        self.captured = captured(self.route.as_ref().unwrap_or(&self.forward));
    }

    /// Further forms of the path, for containers that take escaped slashes, escaped backslashes or both for
    /// separators. Empty for a path without them.
    pub(crate) fn readings(&self) -> impl Iterator<Item = Vec<u8>> {
        // If there is no `route`, the path has no escapes.
        let form = self.route.as_deref().unwrap_or_default();
        let separators: [&[u8]; 3] = [&[ESCAPED_SLASH], b"\\", &[ESCAPED_SLASH, b'\\']];
        separators
            .into_iter()
            .filter(|separators| separators.iter().all(|byte| form.contains(byte)))
            .map(|separators| separate(form, separators))
    }
}

/// Why a path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum PathFault {
    #[error("the path climbs above the root")]
    AboveRoot,
    #[error("the path has an escaped control character")]
    EscapedControl,
    #[error("the path has a hidden dot segment, such as `..;` or `..%2f`")]
    HiddenDots,
    #[error("the path has a malformed percent escape")]
    Escape,
    #[error("an escaped slash or backslash decides which route the path matches")]
    Ambiguous,
    #[error("the path is too long to be compared with expressions")]
    Long,
}

impl PathFault {
    /// The status of the answer to the client.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Long => StatusCode::URI_TOO_LONG,
            Self::AboveRoot
            | Self::EscapedControl
            | Self::HiddenDots
            | Self::Escape
            | Self::Ambiguous => StatusCode::BAD_REQUEST,
        }
    }

    /// The fault as a token, for logs and counters.
    pub(crate) fn token(self) -> &'static str {
        match self {
            Self::AboveRoot => "path-above-root",
            Self::EscapedControl => "path-escaped-control",
            Self::HiddenDots => "path-hidden-dots",
            Self::Escape => "path-escape",
            Self::Ambiguous => "path-ambiguous",
            Self::Long => "path-long",
        }
    }
}

/// Normalises an origin-form path; `*` stays as it is.
pub(crate) fn normalise(path: &Bytes) -> Result<NormalPath, PathFault> {
    if is_normal(path) {
        return Ok(NormalPath {
            forward: path.clone(),
            route: None,
            asked: None,
            captured: Captures::default(),
        });
    }
    let decoded = decode_unreserved(path)?;
    let forward: Bytes = resolve(&decoded)?.into();
    let route = Some(compared(&forward)).filter(|route| *route != forward);
    Ok(NormalPath {
        forward,
        route,
        asked: None,
        captured: Captures::default(),
    })
}

/// Whether the path is already normal, which is the common case and needs no copy.
fn is_normal(path: &[u8]) -> bool {
    let has_special = path.iter().any(|byte| matches!(byte, b'%' | b';' | b'\\'));
    !has_special && !path.windows(2).any(|pair| pair == b"//" || pair == b"/.")
}

/// Decodes escapes of unreserved characters and refuses those of control characters.
fn decode_unreserved(path: &[u8]) -> Result<Vec<u8>, PathFault> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let (value, after) = escaped(tail).ok_or(PathFault::Escape)?;
        rest = after;
        match value {
            0..=0x1f | 0x7f => return Err(PathFault::EscapedControl),
            value if is_unreserved(value) => decoded.push(value),
            _ => decoded.extend([b'%', tail[0], tail[1]]),
        }
    }
    Ok(decoded)
}

/// Merges adjacent slashes and resolves dot segments.
fn resolve(path: &[u8]) -> Result<Vec<u8>, PathFault> {
    let Some(path) = path.strip_prefix(b"/") else {
        return Ok(path.to_vec());
    };
    let mut resolved: Vec<u8> = Vec::with_capacity(path.len() + 1);
    let mut segments = path.split(|&byte| byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            b"" | b"." if is_last => resolved.push(b'/'),
            b"" | b"." => {}
            b".." => {
                let parent = resolved.iter().rposition(|&byte| byte == b'/');
                resolved.truncate(parent.ok_or(PathFault::AboveRoot)?);
                if is_last {
                    resolved.push(b'/');
                }
            }
            _ if hides_dots(segment) => return Err(PathFault::HiddenDots),
            _ => {
                resolved.push(b'/');
                resolved.extend_from_slice(segment);
            }
        }
    }
    Ok(resolved)
}

/// Whether a container that decodes slashes or drops parameters would find a dot segment inside this segment.
fn hides_dots(segment: &[u8]) -> bool {
    let mut rest = segment;
    loop {
        let mut indices = 0..rest.len();
        let separator = indices.find(|&index| separator_len(&rest[index..]) > 0);
        let part = &rest[..separator.unwrap_or(rest.len())];
        let name = part.split(|&byte| byte == b';').next().unwrap_or(part);
        // A segment that is dots alone hides nothing.
        if matches!(name, b"." | b"..") && name.len() < segment.len() {
            return true;
        }
        let Some(index) = separator else {
            return false;
        };
        rest = &rest[index + separator_len(&rest[index..])..];
    }
}

/// The length of the escaped slash, escaped backslash or backslash at the start, or 0.
fn separator_len(bytes: &[u8]) -> usize {
    match bytes {
        [b'\\', ..] => 1,
        [b'%', b'2', b'f' | b'F', ..] | [b'%', b'5', b'c' | b'C', ..] => 3,
        _ => 0,
    }
}

/// The path without the parameters of its segments (`;NAME=VALUE`).
fn strip_parameters(path: &Bytes) -> Bytes {
    if !path.contains(&b';') {
        return path.clone();
    }
    let mut stripped = Vec::with_capacity(path.len());
    let mut in_parameters = false;
    for &byte in path {
        match byte {
            b';' => in_parameters = true,
            b'/' => in_parameters = false,
            _ => {}
        }
        // A segment that was nothing but parameters leaves no second slash.
        let is_second_slash = byte == b'/' && stripped.last() == Some(&b'/');
        if !in_parameters && !is_second_slash {
            stripped.push(byte);
        }
    }
    stripped.into()
}

/// The form in which routes and paths are compared: without parameters, decoded.
///
/// An escaped slash becomes [`ESCAPED_SLASH`]. The other three that a container may keep escaped
/// need no such byte: without escapes and parameters there is no other `%` or `;`, and a backslash
/// that is not escaped is never received. So every character of the path is one byte or more of
/// the form, and no suffix can begin inside an escape.
pub(crate) fn compared(path: &Bytes) -> Bytes {
    let stripped = strip_parameters(path);
    if stripped.contains(&b'%') {
        decoded(&stripped).into()
    } else {
        stripped
    }
}

/// Decodes the escapes of a path.
fn decoded(path: &[u8]) -> Vec<u8> {
    let mut form = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, tail)) = rest.split_first() {
        let escape = escaped(tail).filter(|_| byte == b'%');
        let (value, after) = match escape {
            Some((b'/', after)) => (ESCAPED_SLASH, after),
            Some(escape) => escape,
            None => (byte, tail),
        };
        form.push(value);
        rest = after;
    }
    form
}

/// The form of a path as read by a container to which each of `separators` is a slash.
fn separate(form: &[u8], separators: &[u8]) -> Vec<u8> {
    let mut separated = Vec::with_capacity(form.len());
    for &byte in form {
        let is_separator = byte == b'/' || separators.contains(&byte);
        // Slashes are merged; dot segments that would appear here were refused.
        if !is_separator {
            separated.push(byte);
        } else if separated.last() != Some(&b'/') {
            separated.push(b'/');
        }
    }
    separated
}

/// Decodes the two hexadecimal digits at the start; returns their byte and what follows. `None`: the text does not
/// begin with two digits.
fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    let [high, low, rest @ ..] = text else {
        return None;
    };
    Some((hex(*high)? << 4 | hex(*low)?, rest))
}

/// The escape of a byte.
pub(crate) fn escape(byte: u8) -> [u8; 3] {
    let digit = |half: u8| b"0123456789ABCDEF"[usize::from(half)];
    [b'%', digit(byte >> 4), digit(byte & 15)]
}

pub(crate) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn hex(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    value.try_into().ok()
}

/// The byte for an escaped slash in a [`compared`] form. Control characters are refused in paths and in routes,
/// so this byte means nothing else.
pub(crate) const ESCAPED_SLASH: u8 = 0;

#[cfg(test)]
mod tests;
