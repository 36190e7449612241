//! Decides which requests a stored response answers, by the fields that its `Vary` names (RFC 9111, section 4.1).
//!
//! The caller supplies the request's fields ([`RequestFields`]). The lines of a field are joined, and white space
//! around commas is ignored, so that different spellings of a list are equal.

use catamaran_message::name::{ACCEPT_ENCODING, ACCEPT_LANGUAGE, VARY};
use catamaran_message::{FieldName, Fields, NameRef};

use crate::directives::elements;

/// The values that a request had in the fields on which its response depends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    names: Box<[FieldName]>,
    /// The value of each name, followed by a line feed; a missing field is a NUL.
    values: Box<[u8]>,
}

/// Why a response cannot be stored because of its `Vary`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VaryFault {
    /// `Vary` is `*`: the response depends on more than the request's fields.
    Any,
    /// `Vary` names too many fields, or one with an invalid name.
    Many,
}

/// Gives access to the fields of a request.
pub trait RequestFields {
    /// Calls `line` with each line of a field, in order.
    fn lines(&self, name: &FieldName, line: &mut dyn FnMut(&[u8]));
}

impl RequestFields for Fields {
    fn lines(&self, name: &FieldName, line: &mut dyn FnMut(&[u8])) {
        self.get_all(name).for_each(line);
    }
}

/// The names in a response's `Vary`, without duplicates.
///
/// # Errors
/// Why the response cannot be stored.
pub fn names(headers: &Fields) -> Result<Vec<FieldName>, VaryFault> {
    let mut names: Vec<FieldName> = Vec::new();
    for element in headers.get_all(VARY).flat_map(elements) {
        if element == b"*" {
            return Err(VaryFault::Any);
        }
        let name = FieldName::parse(element).ok_or(VaryFault::Many)?;
        if names.contains(&name) {
            continue;
        }
        if names.len() == NAMES_MAX {
            return Err(VaryFault::Many);
        }
        names.push(name);
    }
    Ok(names)
}

impl Selection {
    /// The values that a request has in the fields with these names.
    #[must_use]
    pub fn new(names: Vec<FieldName>, request: &dyn RequestFields) -> Self {
        Self {
            values: values(&names, request).into(),
            names: names.into(),
        }
    }

    /// Whether another request has the same values in these fields.
    #[must_use]
    pub fn matches(&self, request: &dyn RequestFields) -> bool {
        self.names.is_empty() || values(&self.names, request)[..] == *self.values
    }

    /// The names of the fields on which the response depends.
    #[must_use]
    pub fn names(&self) -> &[FieldName] {
        &self.names
    }

    /// The values of the fields, in the form of [`values`].
    #[must_use]
    pub fn values(&self) -> &[u8] {
        &self.values
    }

    /// The bytes of memory that the selection takes beyond its own size.
    #[must_use]
    pub fn weight(&self) -> usize {
        let weigh = |name: &FieldName| size_of_val(name) + name.as_str().len();
        self.names.iter().map(weigh).sum::<usize>() + self.values.len()
    }
}

/// The values of some fields of a request: each joined, and followed by a line feed; NUL for a missing field.
#[must_use]
pub fn values(names: &[FieldName], request: &dyn RequestFields) -> Vec<u8> {
    let mut values = Vec::new();
    for name in names {
        let value_start = values.len();
        let mut is_present = false;
        request.lines(name, &mut |line| {
            is_present = true;
            let line_start = values.len();
            for element in elements(line) {
                if values.len() > value_start {
                    values.push(b',');
                }
                values.extend_from_slice(element);
            }
            // Browsers write language tags in different ways.
            if NameRef::from(name).is(ACCEPT_LANGUAGE) {
                let mut appended = values.split_off(line_start);
                appended.make_ascii_lowercase();
                appended.retain(|byte| *byte != b' ');
                values.extend(appended);
            }
        });
        if !is_present {
            values.push(0);
        }
        values.push(b'\n');
    }
    values
}

/// The `Accept-Encoding` to send to the backend: the codings in `offered` that the client accepts, in the order
/// of `offered`. The spellings of all browsers become the same, so that they share a stored response. `None` if
/// the client accepts none of the codings.
#[must_use]
pub fn accepted_codings(headers: &Fields, offered: &[String]) -> Option<String> {
    // Whether the client accepts each coding, and all that it does not name (`*`); `None`: it does not say.
    let mut by_name = vec![None; offered.len()];
    let mut by_star = None;
    for element in headers.get_all(ACCEPT_ENCODING).flat_map(elements) {
        let mut parts = element.split(|byte| *byte == b';');
        let name = parts.next().unwrap_or_default().trim_ascii();
        let is_named = |coding: &String| name.eq_ignore_ascii_case(coding.as_bytes());
        let accepts = match offered.iter().position(is_named) {
            Some(index) => &mut by_name[index],
            None if name == b"*" => &mut by_star,
            None => continue,
        };
        *accepts = Some(parts.all(|part| !is_zero(part.trim_ascii())));
    }
    let mut accepted = String::new();
    for (coding, own) in offered.iter().zip(by_name) {
        if own.or(by_star).unwrap_or(false) {
            let separator = if accepted.is_empty() { "" } else { ", " };
            accepted.extend([separator, coding]);
        }
    }
    Some(accepted).filter(|accepted| !accepted.is_empty())
}

/// Whether a parameter is the weight 0, such as `q=0`.
fn is_zero(parameter: &[u8]) -> bool {
    let [b'q' | b'Q', rest @ ..] = parameter else {
        return false;
    };
    let value = rest.trim_ascii_start().strip_prefix(b"=");
    let weight = value.unwrap_or_default().trim_ascii();
    weight.starts_with(b"0") && weight.iter().all(|byte| matches!(byte, b'0' | b'.'))
}

/// The most fields that a response may depend on, since every request would have to compare them.
pub const NAMES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(name: &'static str, lines: &[&'static str]) -> Fields {
        Fields::from_iter(lines.iter().map(|line| (name, *line)))
    }

    #[test]
    fn names_are_listed_once() {
        let names = names(&lines_of("vary", &["Foo, bar", "FOO,, baz"])).unwrap();
        let names: Vec<_> = names.iter().map(FieldName::as_str).collect();
        assert_eq!(names, ["Foo", "bar", "baz"]);
    }

    #[test]
    fn what_cannot_be_told_apart_is_a_fault() {
        assert_eq!(names(&lines_of("vary", &["foo, *"])), Err(VaryFault::Any));
        assert_eq!(names(&lines_of("vary", &["*"])), Err(VaryFault::Any));
        assert_eq!(names(&lines_of("vary", &["a b"])), Err(VaryFault::Many));
        let bomb = (0..10_000).map(|at| format!("x{at},")).collect::<String>();
        let mut headers = Fields::new();
        headers.insert("vary", bomb);
        assert_eq!(names(&headers), Err(VaryFault::Many));
    }

    #[test]
    fn spellings_of_a_list_are_one() {
        let matches = |name: &'static str, one: &[&'static str], other: &[&'static str]| {
            let names = vec![FieldName::parse(name.as_bytes()).unwrap()];
            Selection::new(names, &lines_of(name, one)).matches(&lines_of(name, other))
        };
        assert!(matches("foo", &["1, 2"], &["1 ,2"]));
        assert!(matches("foo", &["1, 2"], &["1", "2"]));
        assert!(matches("foo", &[], &[]));
        assert!(matches(
            "accept-language",
            &["EN-us;q=0.5"],
            &["en-US; q=0.5"]
        ));
        assert!(!matches("foo", &["1"], &["2"]));
        assert!(!matches("foo", &["a"], &["A"]));
        assert!(!matches("foo", &["1, 2"], &["2, 1"]));
        assert!(!matches("foo", &[""], &[]));
        assert!(!matches("foo", &["1"], &[]));
    }

    #[test]
    fn codings_are_those_that_the_client_takes_in_our_order() {
        let offered = ["br".to_owned(), "gzip".to_owned()];
        for (lines, expected) in [
            (&["gzip, deflate, br, zstd"][..], Some("br, gzip")),
            (&["GZIP;q=1.0, *;q=0"], Some("gzip")),
            (&["gzip;q=0, br"], Some("br")),
            (&["gzip; q=0.000"], None),
            (&["gzip;q=0.001"], Some("gzip")),
            (&["*"], Some("br, gzip")),
            (&["identity"], None),
            (&[], None),
        ] {
            let headers = lines_of("accept-encoding", lines);
            let given = accepted_codings(&headers, &offered);
            assert_eq!(given.as_deref(), expected, "{lines:?}");
        }
    }
}
