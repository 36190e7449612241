//! The tags of a response, by which it can be purged: the fields `Surrogate-Key` and `Cache-Tag`.

use catamaran_message::name::{CACHE_TAG, SURROGATE_KEY};
use catamaran_message::{Fields, Id};

/// Reads the tags of a response, which are separated by spaces or commas. Returns one text with a line
/// feed after each tag; `None` if there are more tags than [`TAGS_MAX`], or more than
/// [`TAG_BYTES_MAX`] bytes.
#[must_use]
pub fn read(headers: &Fields) -> Option<Box<[u8]>> {
    let mut text = Vec::new();
    let mut count = 0;
    let lines = FIELDS.iter().flat_map(|name| headers.get_all(*name));
    let separates = |byte: &u8| matches!(byte, b' ' | b'\t' | b',');
    let tags = lines.flat_map(|line| line.split(separates));
    for tag in tags.filter(|tag| !tag.is_empty()) {
        count += 1;
        text.extend_from_slice(tag);
        text.push(b'\n');
        if count > TAGS_MAX || text.len() > TAG_BYTES_MAX {
            return None;
        }
    }
    Some(text.into())
}

/// Removes the fields with tags, which clients do not need.
pub fn remove(headers: &mut Fields) {
    for name in FIELDS {
        headers.remove(name);
    }
}

/// Whether `text`, which [`read`] returned, contains this tag.
#[must_use]
pub fn has(text: &[u8], tag: &[u8]) -> bool {
    text.split(|byte| *byte == b'\n').any(|it| it == tag) && !tag.is_empty()
}

/// The names of the fields that contain tags.
pub const FIELDS: [Id; 2] = [SURROGATE_KEY, CACHE_TAG];

/// The most tags of one response.
pub const TAGS_MAX: usize = 64;

/// The most bytes of the tags of one response, with one more byte for each tag.
pub const TAG_BYTES_MAX: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_words_and_few() {
        let mut headers = Fields::new();
        assert_eq!(read(&headers).as_deref(), Some(&b""[..]));
        headers.append("surrogate-key", "a  bc");
        headers.append("cache-tag", "d,e, ");
        let text = read(&headers).unwrap();
        assert_eq!(&*text, b"a\nbc\nd\ne\n");
        assert!(has(&text, b"bc") && has(&text, b"e"));
        assert!(!has(&text, b"b") && !has(&text, b"") && !has(&text, b"c\nd"));
        let bomb = "x ".repeat(TAGS_MAX + 1);
        headers.insert("cache-tag", bomb);
        assert_eq!(read(&headers), None);
        headers.insert("cache-tag", "y".repeat(TAG_BYTES_MAX));
        assert_eq!(read(&headers), None);
        remove(&mut headers);
        assert!(headers.is_empty());
    }
}
