//! The rules by which a route compresses responses.

use catamaran_coding::Coding;

/// Which responses a route compresses, and how. The keys of `[[route]]` in `docs/reference.md` that begin with
/// `compress` have the meaning, default and the directives of other servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressConfig {
    /// The codings that the front may use, the preferred first; at least one.
    pub codings: Vec<Coding>,
    /// The media types of responses that are compressed.
    pub types: Vec<MediaPattern>,
    /// The least length in bytes: a response that announces less is not compressed.
    pub min: u64,
}

impl CompressConfig {
    /// A configuration with these codings and every default.
    #[must_use]
    pub fn new(codings: Vec<Coding>) -> Self {
        Self {
            codings,
            types: TEXTS
                .iter()
                .filter_map(|text| MediaPattern::parse(text))
                .collect(),
            min: 1024,
        }
    }

    /// Whether a response with this value of `Content-Type` is compressed.
    #[must_use]
    pub fn covers(&self, content_type: &[u8]) -> bool {
        let first = content_type.split(|&byte| byte == b';').next();
        let name = first.unwrap_or_default().trim_ascii();
        self.types.iter().any(|pattern| pattern.matches(name))
    }
}

/// A pattern of media types: one type, or all types whose names begin and end in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaPattern {
    /// The text before the asterisk, or the whole type; in lower case.
    head: String,
    /// The text after the asterisk; `None`: there is no asterisk.
    tail: Option<String>,
}

impl MediaPattern {
    /// Reads a pattern such as `text/html`, `text/*` or `application/*+json`. `None` if the text is neither a type nor
    /// a pattern of subtypes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, subtype) = text.split_once('/')?;
        let (before, after) = match subtype.split_once('*') {
            Some((before, after)) => (before, Some(after)),
            None => (subtype, None),
        };
        let has_tokens = is_token(kind) && is_token(before) && is_token(after.unwrap_or_default());
        if kind.is_empty() || subtype.is_empty() || !has_tokens {
            return None;
        }
        Some(Self {
            head: format!("{kind}/{before}").to_ascii_lowercase(),
            tail: after.map(str::to_ascii_lowercase),
        })
    }

    /// Whether a media type, given without parameters, matches the pattern.
    #[must_use]
    pub fn matches(&self, name: &[u8]) -> bool {
        let head = self.head.as_bytes();
        let Some(tail) = &self.tail else {
            return name.eq_ignore_ascii_case(head);
        };
        let tail = tail.as_bytes();
        name.len() >= head.len() + tail.len()
            && name[..head.len()].eq_ignore_ascii_case(head)
            && name[name.len() - tail.len()..].eq_ignore_ascii_case(tail)
    }
}

/// Whether a text has only characters of a token (RFC 9110, section 5.6.2), except for the asterisk, which has another
/// meaning here.
fn is_token(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'+-.^_`|~".contains(&byte))
}

/// The types that are compressed by default: they gain much, and their formats are not compressed already.
const TEXTS: &[&str] = &[
    "text/*",
    "application/javascript",
    "application/json",
    "application/*+json",
    "application/xml",
    "application/*+xml",
    "application/xml-dtd",
    "application/yaml",
    "application/vnd.apple.mpegurl",
    "application/wasm",
    "image/svg+xml",
    "font/ttf",
    "font/otf",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compressed_and_what_is_compressed_is_not() {
        let config = CompressConfig::new(vec![Coding::Gzip]);
        assert_eq!(config.types.len(), TEXTS.len(), "every default is one");
        for (content_type, expected) in [
            ("text/html", true),
            ("Text/HTML; charset=UTF-8", true),
            ("text/event-stream", true),
            ("application/json", true),
            ("application/problem+json", true),
            ("application/+json", true),
            ("application/json2", false),
            ("application/xhtml+xml;q=1", true),
            ("image/svg+xml", true),
            ("image/png", false),
            ("application/octet-stream", false),
            ("application/grpc", false),
            ("video/mp4", false),
            ("text", false),
            ("", false),
        ] {
            assert_eq!(
                config.covers(content_type.as_bytes()),
                expected,
                "{content_type}"
            );
        }
    }

    #[test]
    fn patterns_are_types_or_subtypes_that_begin_and_end_alike() {
        for text in ["text/html", "text/*", "Application/Vnd.*+JSON", "font/ttf"] {
            assert!(MediaPattern::parse(text).is_some(), "{text}");
        }
        for text in [
            "", "text", "/html", "text/", "*/*", "*", "text/**", "text/a b", "a/b/c",
        ] {
            assert_eq!(MediaPattern::parse(text), None, "{text}");
        }
        let pattern = MediaPattern::parse("application/vnd.*+json").unwrap();
        assert!(pattern.matches(b"application/VND.x+json"));
        assert!(
            !pattern.matches(b"application/vnd.json"),
            "its ends do not overlap"
        );
    }
}
