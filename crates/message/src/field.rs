//! Rules for header fields that hold whichever protocol carries them.

use http::HeaderMap;

/// Empties a map. Its memory is kept for the next head, unless that is much.
pub fn clear(headers: &mut HeaderMap) {
    match headers.capacity() {
        0..=KEPT_CAPACITY_MAX => headers.clear(),
        _ => *headers = HeaderMap::new(),
    }
}

/// Most heads have fewer fields.
const KEPT_CAPACITY_MAX: usize = 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_little_memory_is_kept() {
        for (room, is_kept) in [(10, true), (1000, false)] {
            let mut headers = HeaderMap::with_capacity(room);
            headers.insert(http::header::AGE, 1.into());
            clear(&mut headers);
            assert!(headers.is_empty(), "{room}");
            assert_eq!(headers.capacity() > 0, is_kept, "{room}");
        }
    }
}
