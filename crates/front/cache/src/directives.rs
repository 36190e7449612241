//! Parses directives of `Cache-Control` and of fields for certain caches (RFC 9111, section 5.2; RFC
//! 9213).
//!
//! If a directive is given twice, the first counts. A number that is too large becomes [`SECONDS_MAX`]; a
//! value that is not a number becomes 0, so that a malformed response is never fresh.

use catamaran_message::field::unquoted;
use catamaran_message::name::{CACHE_CONTROL, PRAGMA};
use catamaran_message::{FieldName, Fields};
use sfv::{BareItem, Dictionary, ListEntry, Parser};

/// The directives of one message that a shared cache needs to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// Whether the message has `no-store`: nothing of it may be stored.
    pub no_store: bool,
    /// Whether the message has `no-cache`, in a response also with names of fields: it must be validated
    /// before each use.
    pub no_cache: bool,
    /// Whether the message has `private`, also with names of fields: no shared cache may store it.
    pub private: bool,
    /// Whether the message has `public`: it may be stored for all clients.
    pub public: bool,
    /// Whether the message has `must-revalidate`: it must not be used stale.
    pub must_revalidate: bool,
    /// Whether the message has `proxy-revalidate`: a shared cache must not use it stale.
    pub proxy_revalidate: bool,
    /// Whether the message has `must-understand`: it may be stored only if its status is known.
    pub must_understand: bool,
    /// Whether the message has `only-if-cached`: the client wants no request to the backend.
    pub only_if_cached: bool,
    /// The seconds of `max-age`; `None`: the message does not have it.
    pub max_age: Option<u32>,
    /// The seconds of `s-maxage`, which replaces `max-age` in shared caches; `None`: the message does not
    /// have it.
    pub s_maxage: Option<u32>,
    /// The seconds of `stale-while-revalidate` (RFC 5861); `None`: the message does not have it.
    pub stale_while_revalidate: Option<u32>,
    /// The seconds of `stale-if-error` (RFC 5861); `None`: the message does not have it.
    pub stale_if_error: Option<u32>,
    /// The seconds of `min-fresh`; `None`: the message does not have it.
    pub min_fresh: Option<u32>,
    /// The seconds of `max-stale`, `u32::MAX` if it has no number; `None`: the message does not have it.
    pub max_stale: Option<u32>,
}

impl Directives {
    /// The directives of the field `Cache-Control`; `None` if there is no such field.
    #[must_use]
    pub fn of(headers: &Fields) -> Option<Self> {
        let mut directives = Self::default();
        for element in headers.get_all(CACHE_CONTROL).flat_map(elements) {
            directives.add(element);
        }
        headers.contains(CACHE_CONTROL).then_some(directives)
    }

    /// Parses the directives of a request: of `Cache-Control`, or else of `Pragma`.
    #[must_use]
    pub fn of_request(headers: &Fields) -> Self {
        if let Some(directives) = Self::of(headers) {
            return directives;
        }
        let mut pragmas = headers.get_all(PRAGMA).flat_map(elements);
        Self {
            no_cache: pragmas.any(|it| it.eq_ignore_ascii_case(b"no-cache")),
            ..Self::default()
        }
    }

    /// Parses the directives of a field for certain caches only (RFC 9213), which is a dictionary. `None`
    /// if there is no such field, or if it is malformed and so ignored.
    #[must_use]
    pub fn targeted(headers: &Fields, name: &FieldName) -> Option<Self> {
        let lines: Vec<&[u8]> = headers.get_all(name).collect();
        let dictionary: Dictionary = Parser::new(&lines.join(&b", "[..])).parse().ok()?;
        let mut directives = Self::default();
        for (key, entry) in &dictionary {
            let ListEntry::Item(item) = entry else {
                continue;
            };
            let seconds = match &item.bare_item {
                // `no-store=?0` says that the directive does not apply.
                BareItem::Boolean(false) => continue,
                BareItem::Integer(number) => {
                    let within = i64::from(*number).clamp(0, SECONDS_MAX.into());
                    Some(u32::try_from(within).unwrap_or(0))
                }
                _ => None,
            };
            directives.set(key.as_str().as_bytes(), seconds);
        }
        (!dictionary.is_empty()).then_some(directives)
    }

    /// Sets the directive that an element of `Cache-Control` has.
    fn add(&mut self, element: &[u8]) {
        // White space around the equals sign is not allowed: such a name is none that is known.
        match element.iter().position(|byte| *byte == b'=') {
            Some(equals) => {
                let (name, value) = (&element[..equals], &element[equals + 1..]);
                self.set(name, Some(seconds(value)));
            }
            None => self.set(element, None),
        }
    }

    /// Sets one directive; `seconds` is its value, `None`: it has none.
    fn set(&mut self, name: &[u8], seconds: Option<u32>) {
        let is_named = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        for (known, flag) in [
            ("no-store", &mut self.no_store),
            ("no-cache", &mut self.no_cache),
            ("private", &mut self.private),
            ("public", &mut self.public),
            ("must-revalidate", &mut self.must_revalidate),
            ("proxy-revalidate", &mut self.proxy_revalidate),
            ("must-understand", &mut self.must_understand),
            ("only-if-cached", &mut self.only_if_cached),
        ] {
            *flag |= is_named(known);
        }
        for (known, slot) in [
            ("max-age", &mut self.max_age),
            ("s-maxage", &mut self.s_maxage),
            ("stale-while-revalidate", &mut self.stale_while_revalidate),
            ("stale-if-error", &mut self.stale_if_error),
            ("min-fresh", &mut self.min_fresh),
        ] {
            if is_named(known) {
                slot.get_or_insert_with(|| seconds.unwrap_or(0));
            }
        }
        if is_named("max-stale") {
            self.max_stale
                .get_or_insert_with(|| seconds.unwrap_or(u32::MAX));
        }
    }
}

/// The elements of a comma-separated list, without empty ones. A comma in a quoted text does not
/// separate.
pub fn elements(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    // `None` after the last element.
    let mut unread = Some(line);
    std::iter::from_fn(move || {
        loop {
            let text = unread?;
            let comma = separator(text);
            unread = comma.map(|comma| &text[comma + 1..]);
            let element = text[..comma.unwrap_or(text.len())].trim_ascii();
            if !element.is_empty() {
                return Some(element);
            }
        }
    })
}

/// The index of the first comma that is not in a quoted text.
fn separator(text: &[u8]) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.iter().position(|byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ => {}
        }
        *byte == b',' && !is_quoted
    })
}

/// Parses a number of seconds, possibly in quotes; 0 if it is not a number.
fn seconds(value: &[u8]) -> u32 {
    number(unquoted(value.trim_ascii_end())).unwrap_or(0)
}

/// Parses a number that has digits only; a greater one than [`SECONDS_MAX`] becomes [`SECONDS_MAX`].
#[must_use]
pub fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0_u32, |number, digit| {
        let digit = u32::from(digit - b'0');
        number.saturating_mul(10).saturating_add(digit)
    });
    Some(number.min(SECONDS_MAX))
}

/// The largest number of seconds; greater ones become this one (RFC 9111, section 1.2.2).
pub const SECONDS_MAX: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&'static str]) -> Directives {
        let mut headers = Fields::new();
        for line in lines {
            headers.append(CACHE_CONTROL, line);
        }
        Directives::of(&headers).unwrap()
    }

    #[test]
    fn directives_are_read_in_any_case_and_on_several_lines() {
        let read = of(&[
            "MaX-AgE=5, PUBLIC",
            ", s-maxage=\"7\" ,no-cache=\"a, max-age=9\"",
        ]);
        let expected = Directives {
            max_age: Some(5),
            s_maxage: Some(7),
            public: true,
            no_cache: true,
            ..Directives::default()
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn numbers_are_digits_and_the_first_counts() {
        for (line, expected) in [
            ("max-age=3600", Some(3600)),
            ("max-age=003600", Some(3600)),
            ("max-age=99999999999999999999", Some(SECONDS_MAX)),
            ("max-age=1, max-age=1800", Some(1)),
            ("max-age=-1", Some(0)),
            ("max-age='3600'", Some(0)),
            ("max-age=3600.5", Some(0)),
            ("max-age=a", Some(0)),
            ("max-age", Some(0)),
            ("max-age =3600", None),
            ("x=\"max-age=3600\"", None),
            ("x=\"\\\", max-age=3600\"", None),
        ] {
            assert_eq!(of(&[line]).max_age, expected, "{line}");
        }
        assert_eq!(of(&["max-stale"]).max_stale, Some(u32::MAX));
    }

    #[test]
    fn a_targeted_field_is_a_dictionary_or_nothing() {
        let name = FieldName::from_static("cdn-cache-control");
        let read =
            |line: &'static str| Directives::targeted(&Fields::from_iter([(&name, line)]), &name);
        let whole = Directives {
            max_age: Some(60),
            private: true,
            ..Directives::default()
        };
        assert_eq!(
            read("max-age=60, private, foo=(1 2), no-store=?0"),
            Some(whole)
        );
        for malformed in [
            "",
            "max-age=60, private;;",
            "max-age=60,",
            "MAX-AGE=60",
            "max-age=\"6",
        ] {
            assert_eq!(read(malformed), None, "{malformed}");
        }
        assert_eq!(read("max-age=-5").unwrap().max_age, Some(0));
        assert_eq!(Directives::targeted(&Fields::new(), &name), None);
    }

    #[test]
    fn pragma_counts_without_cache_control() {
        let mut headers = Fields::new();
        headers.insert(PRAGMA, "foo, No-Cache");
        assert!(Directives::of_request(&headers).no_cache);
        headers.insert(CACHE_CONTROL, "max-age=1");
        assert!(!Directives::of_request(&headers).no_cache);
    }
}
