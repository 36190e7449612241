//! Updates a stored response by a 304 (RFC 9111, section 3.2).

use catamaran_message::name::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG};
use catamaran_message::{Field, Fields};

/// Replaces stored fields by those of a 304, except for fields that describe the stored body.
pub fn update(stored: &mut Fields, update: &Fields) {
    let describes_body = |field: Field<'_>| {
        let names = [CONTENT_LENGTH, CONTENT_ENCODING, CONTENT_RANGE];
        names.iter().any(|name| field.is(*name))
    };
    // All are removed first, since a field may have several lines.
    for field in update.iter().filter(|field| !describes_body(*field)) {
        stored.remove(field.name_ref());
    }
    for field in update.iter().filter(|field| !describes_body(*field)) {
        stored.append(field.name_ref(), field.value());
    }
}

/// Whether a 304 may be about a stored response with this `ETag`: the `ETag` of the 304 must be equal or
/// missing.
#[must_use]
pub fn is_about(update: &Fields, etag: Option<&[u8]>) -> bool {
    match (update.get(ETAG), etag) {
        (None, _) => true,
        (Some(named), Some(etag)) => opaque(named) == opaque(etag),
        (Some(_), None) => false,
    }
}

/// An entity tag without the prefix `W/` of weak tags.
fn opaque(tag: &[u8]) -> &[u8] {
    let trimmed = tag.trim_ascii();
    trimmed.strip_prefix(b"W/").unwrap_or(trimmed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_replaced_as_a_whole() {
        let mut stored = Fields::from_iter([
            ("a", "1"),
            ("a", "2"),
            ("b", "3"),
            ("content-encoding", "gzip"),
        ]);
        let fields = Fields::from_iter([
            ("A", "4"),
            ("c", "5"),
            ("c", "6"),
            ("content-encoding", "br"),
        ]);
        update(&mut stored, &fields);
        let merged = [
            ("b", "3"),
            ("content-encoding", "gzip"),
            ("a", "4"),
            ("c", "5"),
            ("c", "6"),
        ];
        assert_eq!(stored, Fields::from_iter(merged));
    }

    #[test]
    fn a_304_names_its_response() {
        let update = Fields::from_iter([(ETAG, "W/\"a\"")]);
        assert!(is_about(&update, Some(b"\"a\"")));
        assert!(!is_about(&update, Some(b"\"b\"")));
        assert!(!is_about(&update, None));
        assert!(is_about(&Fields::new(), None));
    }
}
