//! Media types, and patterns of them.

/// The media type in a value of `Content-Type`, without its parameters.
#[must_use]
pub fn essence(content_type: &[u8]) -> &[u8] {
    let first = content_type.split(|&byte| byte == b';').next();
    first.unwrap_or_default().trim_ascii()
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

    /// How specific the pattern is: one type is more than several, a longer text more than a shorter one.
    #[must_use]
    pub fn precedence(&self) -> (bool, usize) {
        let tail = self.tail.as_deref();
        (tail.is_none(), self.head.len() + tail.map_or(0, str::len))
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

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_type_is_more_specific_than_patterns_and_a_long_pattern_than_a_short_one() {
        let precedence = |text: &str| MediaPattern::parse(text).unwrap().precedence();
        let ordered = ["text/*", "image/*", "application/*+json", "a/b"];
        assert!(ordered.map(precedence).is_sorted());
    }
}
