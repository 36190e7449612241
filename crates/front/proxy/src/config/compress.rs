//! The rules by which a route compresses responses.

use catamaran_coding::Coding;
use catamaran_message::{MediaPattern, essence};

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
        let name = essence(content_type);
        self.types.iter().any(|pattern| pattern.matches(name))
    }
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
}
