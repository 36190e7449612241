//! Request targets (RFC 9112 section 3.2).
//!
//! Every form becomes path and query here, checked byte by byte. Nothing is decoded: what a path
//! means after decoding and removing dot segments is the caller's matter. Bytes that senders
//! leave raw although RFC 3986 has no place for them are escaped, so that both ends of the
//! gateway read the same; what could be read in two ways is refused. A percent sign that begins no
//! escape is refused in a path, and escaped in a query: browsers send `?q=100%` as it was typed.

use bytes::Bytes;
use http::Method;

use crate::authority::Authority;
use crate::error::TargetFault;

/// What a request is for, in origin form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The path: begins with `/`, or is `*` for OPTIONS. Escapes are well-formed and kept as
    /// received; bytes that may not stand in a path are escaped. Nothing is decoded and dot
    /// segments are still there.
    pub path: Bytes,
    /// The query without its question mark, treated like the path; a percent sign that began no
    /// escape has become `%25`.
    pub query: Option<Bytes>,
    /// The scheme of an absolute target, `None` for the other forms. A request for `https` on a
    /// connection without TLS is not for us (RFC 9110 section 7.4): the caller refuses it.
    pub scheme: Option<Scheme>,
}

impl Target {
    /// A target whose path and query arrived apart, as a gateway protocol carries them, under the
    /// rules for one that arrived in a request line.
    ///
    /// # Errors
    /// [`TargetFault::Form`] if the path does not begin with `/`; [`TargetFault::Byte`] (for a raw
    /// question mark in the path too), [`TargetFault::Escape`], [`TargetFault::Fragment`].
    pub fn from_parts(path: Bytes, query: Option<Bytes>) -> Result<Self, TargetFault> {
        if path.first() != Some(&b'/') {
            return Err(TargetFault::Form);
        }
        let clean = |text: Bytes, is_query: bool| {
            let shape = examine(&text, is_query)?;
            match (shape.question, shape.needs_escapes) {
                (Some(_), _) => Err(TargetFault::Byte),
                (None, true) => Ok(escape(&text)),
                (None, false) => Ok(text),
            }
        };
        Ok(Self {
            path: clean(path, false)?,
            query: query.map(|query| clean(query, true)).transpose()?,
            scheme: None,
        })
    }
}

/// The scheme of an absolute request target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
}

/// Reads a target, which is part of `head`; the authority is that of an absolute one.
///
/// # Errors
/// [`TargetFault`].
pub fn decode_target(
    head: &Bytes,
    text: &[u8],
    method: &Method,
) -> Result<(Target, Option<Authority>), TargetFault> {
    match text {
        [b'/', ..] => Ok((origin_form(head, text, None)?, None)),
        b"*" if method == Method::OPTIONS => Ok((
            Target {
                path: Bytes::from_static(b"*"),
                query: None,
                scheme: None,
            },
            None,
        )),
        _ => absolute_form(head, text, method),
    }
}

/// Whether `text` can be sent as path (or query) of a request: nothing in it would be refused or
/// changed by a reader as strict as ours.
pub fn is_clean_target(text: &[u8], is_query: bool) -> bool {
    examine(text, is_query)
        .is_ok_and(|shape| !shape.needs_escapes && (is_query || shape.question.is_none()))
}

fn origin_form(head: &Bytes, text: &[u8], scheme: Option<Scheme>) -> Result<Target, TargetFault> {
    let shape = examine(text, false)?;
    let (path, query) = match shape.question {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let own = |part| {
        if shape.needs_escapes {
            escape(part)
        } else {
            head.slice_ref(part)
        }
    };
    Ok(Target {
        path: own(path),
        query: query.map(own),
        scheme,
    })
}

fn absolute_form(
    head: &Bytes,
    text: &[u8],
    method: &Method,
) -> Result<(Target, Option<Authority>), TargetFault> {
    let (scheme, rest) = split_scheme(text).ok_or(TargetFault::Form)?;
    let authority_len = rest
        .iter()
        .position(|byte| matches!(byte, b'/' | b'?' | b'#'))
        .unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(authority_len);
    let authority = Authority::decode(authority, head)?;
    let mut target = origin_form(head, rest, Some(scheme))?;
    if target.path.is_empty() {
        // RFC 9112 section 3.2.4: an OPTIONS request without a path is for the whole server.
        let whole_server = *method == Method::OPTIONS && target.query.is_none();
        target.path = Bytes::from_static(if whole_server { b"*" } else { b"/" });
    }
    Ok((target, Some(authority)))
}

/// The scheme, and what follows its slashes.
fn split_scheme(text: &[u8]) -> Option<(Scheme, &[u8])> {
    [
        (Scheme::Http, &b"http://"[..]),
        (Scheme::Https, b"https://"),
    ]
    .into_iter()
    .find_map(|(scheme, prefix)| {
        let (start, rest) = text.split_at_checked(prefix.len())?;
        start.eq_ignore_ascii_case(prefix).then_some((scheme, rest))
    })
}

struct Shape {
    /// Where the query begins.
    question: Option<usize>,
    needs_escapes: bool,
}

fn examine(text: &[u8], mut in_query: bool) -> Result<Shape, TargetFault> {
    let mut shape = Shape {
        question: None,
        needs_escapes: false,
    };
    let is_special = |(_, class): &(usize, Class)| *class != Class::Plain;
    let classes = text.iter().map(|byte| CLASSES[usize::from(*byte)]);
    for (at, class) in classes.enumerate().filter(is_special) {
        match class {
            Class::Plain => {}
            Class::Question if in_query => {}
            Class::Question => {
                in_query = true;
                shape.question = Some(at);
            }
            Class::Percent if is_escape(&text[at..]) => {}
            Class::Percent if in_query => shape.needs_escapes = true,
            Class::Percent => return Err(TargetFault::Escape),
            Class::Escape => shape.needs_escapes = true,
            // Browsers send it raw in queries; in a path some servers take it for a slash.
            Class::Backslash if in_query => shape.needs_escapes = true,
            Class::Hash => return Err(TargetFault::Fragment),
            Class::Backslash | Class::Forbidden => return Err(TargetFault::Byte),
        }
    }
    Ok(shape)
}

fn escape(text: &[u8]) -> Bytes {
    let mut escaped = Vec::with_capacity(text.len() + 16);
    for (at, &byte) in text.iter().enumerate() {
        match CLASSES[usize::from(byte)] {
            Class::Percent if is_escape(&text[at..]) => escaped.push(byte),
            Class::Escape | Class::Backslash | Class::Percent => {
                let digit = |value: u8| b"0123456789ABCDEF"[usize::from(value)];
                escaped.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 0xf)]);
            }
            _ => escaped.push(byte),
        }
    }
    escaped.into()
}

/// Whether what begins with a percent sign is a whole escape.
const fn is_escape(text: &[u8]) -> bool {
    matches!(text, [_, a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit())
}

/// What a byte is in a path or query.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Stands for itself (RFC 3986 `pchar` and `/`).
    Plain,
    Question,
    Percent,
    Hash,
    Backslash,
    /// Has no place there, but is harmless escaped.
    Escape,
    /// Controls and space.
    Forbidden,
}

static CLASSES: [Class; 256] = {
    let mut table = [Class::Escape; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' => Class::Plain,
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' => {
                Class::Plain
            }
            b':' | b'@' | b'/' => Class::Plain,
            b'?' => Class::Question,
            b'%' => Class::Percent,
            b'#' => Class::Hash,
            b'\\' => Class::Backslash,
            0..=b' ' | 0x7f => Class::Forbidden,
            _ => Class::Escape,
        };
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_obey_the_rules_of_a_request_line() {
        let parts = |path: &'static str, query: Option<&'static str>| {
            let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
            Target::from_parts(bytes(path), query.map(bytes)).map(|target| {
                assert_eq!(target.scheme, None);
                (target.path, target.query)
            })
        };
        let escaped = (Bytes::from("/%C3%A9"), Some(Bytes::from("a?%5C%2f")));
        assert_eq!(parts("/\u{e9}", Some("a?\\%2f")), Ok(escaped));
        for (query, expected) in [
            ("%", "%25"),
            ("q=100%", "q=100%25"),
            ("%zz%2", "%25zz%252"),
            ("%%41%4", "%25%41%254"),
            ("%25", "%25"),
        ] {
            let expected = (Bytes::from("/"), Some(Bytes::from(expected)));
            assert_eq!(parts("/", Some(query)), Ok(expected), "{query}");
        }
        for (path, query, fault) in [
            ("", None, TargetFault::Form),
            ("*", None, TargetFault::Form),
            ("/a?b", None, TargetFault::Byte),
            ("/a b", None, TargetFault::Byte),
            ("/a\\b", None, TargetFault::Byte),
            ("/%0", None, TargetFault::Escape),
            ("/", Some("#"), TargetFault::Fragment),
        ] {
            assert_eq!(parts(path, query), Err(fault), "{path} {query:?}");
        }
    }
}
