//! Which responses a route compresses on their way to the client.

use catamaran_coding::Coding;

/// Which responses are compressed, and how: the keys of `[[route]]` in `docs/reference.md` that begin with `compress`,
/// which has their meaning, default and the directives of other servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressConfig {
    /// The codings, the preferred first; at least one.
    pub codings: Vec<Coding>,
    /// Media types of responses that are compressed.
    pub types: Vec<MediaPattern>,
    /// Bytes: responses that announce fewer are not compressed.
    pub min: u64,
}

impl CompressConfig {
    /// These codings with every default.
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

/// Media types: one, or all whose names begin and end alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaPattern {
    /// In lower case.
    head: String,
    /// What follows the asterisk, if there is one.
    tail: Option<String>,
}

impl MediaPattern {
    /// Reads `text/html`, `text/*`, `application/*+json`. `None` if it is neither a type nor a pattern of
    /// subtypes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, subtype) = text.split_once('/')?;
        let is_token = |part: &str| part.bytes().all(is_token);
        if kind.is_empty() || !is_token(kind) || subtype.is_empty() {
            return None;
        }
        let lower = text.to_ascii_lowercase();
        let Some((front, tail)) = subtype.split_once('*') else {
            return is_token(subtype).then_some(Self {
                head: lower,
                tail: None,
            });
        };
        (is_token(front) && is_token(tail)).then(|| Self {
            head: lower[..kind.len() + 1 + front.len()].to_owned(),
            tail: Some(tail.to_ascii_lowercase()),
        })
    }

    /// Whether a type without parameters is one of these.
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

/// RFC 9110, section 5.6.2; the asterisk, which is one, means something else here.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'+-.^_`|~".contains(&byte)
}

/// Types that gain much, and are not compressed by themselves.
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
