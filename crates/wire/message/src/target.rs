//! Request targets (RFC 9112 section 3.2).
//!
//! Every form becomes path and query here, checked byte by byte. Nothing is decoded: the caller decodes a path
//! and removes dot segments. Bytes that senders leave raw in a path although RFC 3986 has no place for them are
//! escaped, so that both ends of the gateway read the same; what could be read in two ways is refused. A percent
//! sign that begins no escape is refused in a path. In a query all printable ASCII stays as received, such a
//! percent sign too: signatures are made over the bytes of a query. [`Target::escape_query`] is for servers that
//! refuse such a query.

use bytes::Bytes;
use http::Method;

use crate::authority::Authority;
use crate::error::TargetFault;

/// The target of a request in origin form: path and query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The path: begins with `/`, or is `*` for OPTIONS. Escapes are well-formed and kept as
    /// received; bytes that may not stand in a path are escaped. Nothing is decoded and dot
    /// segments are still there.
    pub path: Bytes,
    /// The query without its question mark, as received; only bytes beyond ASCII are escaped. `None` if there is
    /// no question mark.
    pub query: Option<Bytes>,
    /// The scheme of an absolute target, `None` for the other forms. A request for `https` on a
    /// connection without TLS is not for us (RFC 9110 section 7.4): the caller refuses it.
    pub scheme: Option<Scheme>,
}

impl Target {
    /// Makes a target of a path and a query that arrived separately, as a gateway protocol carries them, by the
    /// rules for one in a request line.
    ///
    /// # Errors
    /// [`TargetFault::Form`] if the path does not begin with `/`; [`TargetFault::Byte`] (for a raw question mark
    /// in the path too), [`TargetFault::Escape`], [`TargetFault::Fragment`].
    pub fn from_parts(path: Bytes, query: Option<Bytes>) -> Result<Self, TargetFault> {
        if path.first() != Some(&b'/') {
            return Err(TargetFault::Form);
        }
        let clean = |text: Bytes, part: Part| {
            let shape = examine(&text, part)?;
            if shape.question.is_some() {
                return Err(TargetFault::Byte);
            }
            Ok(if shape.needs_escapes {
                escape(&text, part)
            } else {
                text
            })
        };
        Ok(Self {
            path: clean(path, Part::Path)?,
            query: query.map(|query| clean(query, Part::Query)).transpose()?,
            scheme: None,
        })
    }

    /// Escapes all bytes that RFC 3986 does not allow in a query: `"<>[\]^`{|}`, and a percent sign that begins
    /// no escape.
    pub fn escape_query(&mut self) {
        if let Some(query) = &mut self.query
            && has_raw(query)
        {
            *query = escape(query, Part::StrictQuery);
        }
    }
}

/// The scheme of an absolute request target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`: HTTP without TLS.
    Http,
    /// `https`: HTTP over TLS.
    Https,
}

impl Scheme {
    /// The scheme that a word names, in any case (RFC 3986, section 3.1). `ws` and `wss` of WebSocket count as
    /// `http` and `https`, with which it begins. `None` for any other word.
    #[must_use]
    pub fn of_word(word: &[u8]) -> Option<Self> {
        let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
        if is(b"https") || is(b"wss") {
            Some(Self::Https)
        } else if is(b"http") || is(b"ws") {
            Some(Self::Http)
        } else {
            None
        }
    }
}

/// Reads a target, which is part of `head`; also returns the authority of an absolute one.
///
/// # Errors
/// [`TargetFault`] if it is malformed or in a form that `method` does not allow.
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

/// Whether `text` can be sent as the path (or query) of a request: a strict reader would neither refuse nor
/// change anything in it.
pub fn is_clean_target(text: &[u8], is_query: bool) -> bool {
    let part = if is_query { Part::Query } else { Part::Path };
    examine(text, part).is_ok_and(|shape| !shape.needs_escapes && shape.question.is_none())
}

/// Whether a query has a byte that [`Part::StrictQuery`] escapes.
fn has_raw(query: &[u8]) -> bool {
    let mut bytes = query.iter().enumerate();
    bytes.any(|(index, byte)| {
        CLASSES[usize::from(*byte)].is_escaped(Part::StrictQuery, &query[index..])
    })
}

/// Reads a target in origin form: a path and a query.
fn origin_form(head: &Bytes, text: &[u8], scheme: Option<Scheme>) -> Result<Target, TargetFault> {
    let shape = examine(text, Part::Path)?;
    let (path, query) = match shape.question {
        Some(question) => (&text[..question], Some(&text[question + 1..])),
        None => (text, None),
    };
    let to_bytes = |text, part| {
        if shape.needs_escapes {
            escape(text, part)
        } else {
            head.slice_ref(text)
        }
    };
    Ok(Target {
        path: to_bytes(path, Part::Path),
        query: query.map(|query| to_bytes(query, Part::Query)),
        scheme,
    })
}

/// Reads a target in absolute form, which has a scheme and an authority before the path.
fn absolute_form(
    head: &Bytes,
    text: &[u8],
    method: &Method,
) -> Result<(Target, Option<Authority>), TargetFault> {
    let (scheme, after_scheme) = split_scheme(text).ok_or(TargetFault::Form)?;
    let authority_len = after_scheme
        .iter()
        .position(|byte| matches!(byte, b'/' | b'?' | b'#'))
        .unwrap_or(after_scheme.len());
    let (authority_text, path) = after_scheme.split_at(authority_len);
    let authority = Authority::decode(authority_text, head)?;
    let mut target = origin_form(head, path, Some(scheme))?;
    if target.path.is_empty() {
        // RFC 9112 section 3.2.4: an OPTIONS request without a path is for the whole server.
        let whole_server = *method == Method::OPTIONS && target.query.is_none();
        target.path = Bytes::from_static(if whole_server { b"*" } else { b"/" });
    }
    Ok((target, Some(authority)))
}

/// Splits `http://` or `https://` from the text after it; `None` for anything else.
fn split_scheme(text: &[u8]) -> Option<(Scheme, &[u8])> {
    for (scheme, prefix) in [
        (Scheme::Http, &b"http://"[..]),
        (Scheme::Https, b"https://"),
    ] {
        if let Some((start, rest)) = text.split_at_checked(prefix.len())
            && start.eq_ignore_ascii_case(prefix)
        {
            return Some((scheme, rest));
        }
    }
    None
}

/// The kind of a text in a request target, which decides which bytes are allowed or escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    /// A query as it is passed on, with raw printable bytes.
    Query,
    /// A query strictly by RFC 3986.
    StrictQuery,
}

struct Shape {
    /// The offset of the question mark; `None` if there is none.
    question: Option<usize>,
    needs_escapes: bool,
}

/// Checks each byte of a target. `part` is the part with which `text` begins.
fn examine(text: &[u8], mut part: Part) -> Result<Shape, TargetFault> {
    let mut shape = Shape {
        question: None,
        needs_escapes: false,
    };
    let is_special = |(_, class): &(usize, Class)| *class != Class::Plain;
    let classes = text.iter().map(|byte| CLASSES[usize::from(*byte)]);
    for (index, class) in classes.enumerate().filter(is_special) {
        match class {
            Class::Question if part == Part::Path => {
                part = Part::Query;
                shape.question = Some(index);
            }
            Class::Percent if part == Part::Path && !is_escape(&text[index..]) => {
                return Err(TargetFault::Escape);
            }
            // Some servers take it for a slash; browsers send it raw in queries.
            Class::Backslash if part == Part::Path => return Err(TargetFault::Byte),
            Class::Hash => return Err(TargetFault::Fragment),
            Class::Forbidden => return Err(TargetFault::Byte),
            _ => shape.needs_escapes |= class.is_escaped(part, &text[index..]),
        }
    }
    Ok(shape)
}

/// `text` with those bytes percent-encoded that are not allowed in `part`.
fn escape(text: &[u8], part: Part) -> Bytes {
    let mut escaped = Vec::with_capacity(text.len() + 16);
    for (index, &byte) in text.iter().enumerate() {
        if CLASSES[usize::from(byte)].is_escaped(part, &text[index..]) {
            let digit = |value: u8| b"0123456789ABCDEF"[usize::from(value)];
            escaped.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 0xf)]);
        } else {
            escaped.push(byte);
        }
    }
    escaped.into()
}

/// Whether a text that begins with a percent sign begins with a valid escape.
const fn is_escape(text: &[u8]) -> bool {
    matches!(text, [_, a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit())
}

/// The class of a byte in a path or query.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Allowed as it is (RFC 3986 `pchar` and `/`).
    Plain,
    Question,
    Percent,
    Hash,
    Backslash,
    /// Printable, but not allowed by RFC 3986; escaped.
    Raw,
    /// Beyond ASCII; escaped.
    BeyondAscii,
    /// Control characters and space; refused.
    Forbidden,
}

impl Class {
    /// Whether a byte of this class, the first of `rest`, has to be escaped in `part`.
    fn is_escaped(self, part: Part, rest: &[u8]) -> bool {
        match self {
            Self::BeyondAscii => true,
            Self::Raw => part != Part::Query,
            Self::Backslash => part == Part::StrictQuery,
            Self::Percent => part == Part::StrictQuery && !is_escape(rest),
            Self::Plain | Self::Question | Self::Hash | Self::Forbidden => false,
        }
    }
}

static CLASSES: [Class; 256] = {
    let mut table = [Class::BeyondAscii; 256];
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
            b'!'..=b'~' => Class::Raw,
            _ => Class::BeyondAscii,
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
        let escaped = (Bytes::from("/%C3%A9"), Some(Bytes::from("a?\\%2f%C3%A9")));
        assert_eq!(parts("/\u{e9}", Some("a?\\%2f\u{e9}")), Ok(escaped));
        for query in ["%", "q=100%", "%zz%2", "\"<>[\\]^`{|}", "?/%25"] {
            let expected = (Bytes::from("/"), Some(Bytes::from(query)));
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
            ("/", Some("a b"), TargetFault::Byte),
            ("/", Some("a\n"), TargetFault::Byte),
            ("/", Some("\x7f"), TargetFault::Byte),
        ] {
            assert_eq!(parts(path, query), Err(fault), "{path} {query:?}");
        }
    }

    #[test]
    fn a_query_is_escaped_on_request() {
        for (query, expected) in [
            ("a=b&c=%20", "a=b&c=%20"),
            ("a?b/c", "a?b/c"),
            ("%", "%25"),
            ("q=100%", "q=100%25"),
            ("%zz%2", "%25zz%252"),
            ("%%41%4", "%25%41%254"),
            ("%25", "%25"),
            ("\"<>[\\]^`{|}", "%22%3C%3E%5B%5C%5D%5E%60%7B%7C%7D"),
        ] {
            let path = Bytes::from_static(b"/");
            let mut target = Target::from_parts(path, Some(Bytes::from(query))).expect("a target");
            target.escape_query();
            assert_eq!(target.query, Some(Bytes::from(expected)), "{query}");
        }
    }
}
