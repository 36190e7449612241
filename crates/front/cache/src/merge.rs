//! What a 304 changes of a stored response (RFC 9111, section 3.2).

use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, HeaderValue,
};

/// Takes over the fields of a 304, each as a whole, but those that describe the stored body.
pub fn update(stored: &mut HeaderMap, update: &HeaderMap) {
    for name in update.keys().filter(|name| !describes_body(name)) {
        stored.remove(name);
        for value in update.get_all(name) {
            // A map that is full is one that no codec would have made.
            drop(stored.try_append(name, value.clone()));
        }
    }
}

fn describes_body(name: &HeaderName) -> bool {
    [CONTENT_LENGTH, CONTENT_ENCODING, CONTENT_RANGE].contains(name)
}

/// Whether a 304 may be about a stored response with this `ETag`: it names no other.
#[must_use]
pub fn is_about(update: &HeaderMap, etag: Option<&HeaderValue>) -> bool {
    match (update.get(ETAG), etag) {
        (None, _) => true,
        (Some(named), Some(etag)) => opaque(named) == opaque(etag),
        (Some(_), None) => false,
    }
}

/// The tag without its mark of weakness.
fn opaque(tag: &HeaderValue) -> &[u8] {
    let tag = tag.as_bytes().trim_ascii();
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_replaced_as_a_whole() {
        let mut stored = HeaderMap::new();
        for (name, value) in [
            ("a", "1"),
            ("a", "2"),
            ("b", "3"),
            ("content-encoding", "gzip"),
        ] {
            stored.append(name, HeaderValue::from_static(value));
        }
        let mut fields = HeaderMap::new();
        for (name, value) in [
            ("a", "4"),
            ("c", "5"),
            ("c", "6"),
            ("content-encoding", "br"),
        ] {
            fields.append(name, HeaderValue::from_static(value));
        }
        update(&mut stored, &fields);
        let all = |name: &str| -> Vec<_> { stored.get_all(name).iter().cloned().collect() };
        assert_eq!(all("a"), ["4"]);
        assert_eq!(all("b"), ["3"]);
        assert_eq!(all("c"), ["5", "6"]);
        assert_eq!(all("content-encoding"), ["gzip"]);
    }

    #[test]
    fn a_304_names_its_response() {
        let tag = |text| HeaderValue::from_static(text);
        let update = HeaderMap::from_iter([(ETAG, tag("W/\"a\""))]);
        assert!(is_about(&update, Some(&tag("\"a\""))));
        assert!(!is_about(&update, Some(&tag("\"b\""))));
        assert!(!is_about(&update, None));
        assert!(is_about(&HeaderMap::new(), None));
    }
}
