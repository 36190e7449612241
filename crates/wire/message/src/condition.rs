//! Conditional requests (RFC 9110, section 13): whether a client's copy is still current, and whether
//! the representation has changed without its knowledge.
//!
//! Every function is pure: it compares fields of a request with the validators of the representation
//! that the request would get. A resource that does not exist has no validators: the caller answers 404,
//! whatever the conditions say.

use http::Method;

use crate::name::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE};
use crate::{Fields, Id, Traits};

/// The validators of a representation (RFC 9110, section 8.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validators<'r> {
    /// The value of `ETag` with its quotes, and with `W/` before them if it is weak. `None`, the
    /// default: there is none. A malformed one equals no tag.
    pub etag: Option<&'r [u8]>,
    /// The time of `Last-Modified`, in whole seconds since the beginning of 1970. `None`, the default:
    /// it is not known, and conditions that compare dates are ignored.
    pub modified: Option<u64>,
    /// Whether [`Self::modified`] is a strong validator: the representation certainly did not change
    /// twice within that second (RFC 9110, section 8.8.2.2). Default `false`: then no `If-Range` with a
    /// date holds.
    pub is_modified_strong: bool,
}

/// The result of evaluating the conditions of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionOutcome {
    /// Perform the method as if there were no conditions.
    Met,
    /// Answer 304 (Not Modified), with the fields that RFC 9110, section 15.4.5, names: the client has
    /// the representation.
    NotModified,
    /// Answer 412 (Precondition Failed).
    Failed,
}

/// Evaluates `If-Match`, `If-Unmodified-Since`, `If-None-Match` and `If-Modified-Since` in the order of
/// RFC 9110, section 13.2.2. `If-Range` is no precondition: [`crate::range::select`] evaluates it.
///
/// An entity tag takes precedence over a date: `If-Unmodified-Since` beside `If-Match`, and
/// `If-Modified-Since` beside `If-None-Match`, are ignored. So is a date that is malformed or one of
/// several, and `If-Modified-Since` of a method other than GET and HEAD. Several lines of tags are one
/// list. What follows a malformed tag in a line is left out: it equals no tag.
#[must_use]
pub fn evaluate(
    method: &Method,
    headers: &Fields,
    validators: &Validators<'_>,
) -> ConditionOutcome {
    if !headers.may_have(Traits::CONDITION) {
        return ConditionOutcome::Met;
    }
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let etag = validators.etag.and_then(EntityTag::parse_whole);
    let modified = validators.modified;
    if headers.contains(IF_MATCH) {
        let is_etag = |tag: EntityTag<'_>| etag.is_some_and(|etag| etag.equals_strongly(tag));
        if !lists(headers, IF_MATCH, is_etag) {
            return ConditionOutcome::Failed;
        }
    } else if let (Some(modified), Some(since)) =
        (modified, only_date(headers, IF_UNMODIFIED_SINCE))
        && modified > since
    {
        return ConditionOutcome::Failed;
    }
    if headers.contains(IF_NONE_MATCH) {
        let is_etag = |tag: EntityTag<'_>| etag.is_some_and(|etag| etag.equals_weakly(tag));
        return if !lists(headers, IF_NONE_MATCH, is_etag) {
            ConditionOutcome::Met
        } else if is_read {
            ConditionOutcome::NotModified
        } else {
            ConditionOutcome::Failed
        };
    }
    if is_read
        && let (Some(modified), Some(since)) = (modified, only_date(headers, IF_MODIFIED_SINCE))
        && modified <= since
    {
        return ConditionOutcome::NotModified;
    }
    ConditionOutcome::Met
}

/// Whether `If-Range` allows `Range` to have an effect (RFC 9110, section 13.1.5): it is absent, or
/// names exactly this representation by a strong validator.
pub(crate) fn allows_range(headers: &Fields, validators: &Validators<'_>) -> bool {
    let Some(line) = headers.only(IF_RANGE) else {
        return !headers.contains(IF_RANGE);
    };
    if let Some(tag) = EntityTag::parse_whole(line) {
        let etag = validators.etag.and_then(EntityTag::parse_whole);
        return etag.is_some_and(|etag| etag.equals_strongly(tag));
    }
    let modified = validators.modified;
    validators.is_modified_strong && modified.is_some() && date(line) == modified
}

/// Whether a field with a list of tags is `*`, or has a tag for which `is_equal` holds.
fn lists(headers: &Fields, name: Id, is_equal: impl Fn(EntityTag<'_>) -> bool) -> bool {
    headers.get_all(name).any(|line| {
        let line = line.trim_ascii();
        line == b"*" || tags(line).any(&is_equal)
    })
}

/// The tags of a list, up to the first that is malformed.
fn tags(mut list: &[u8]) -> impl Iterator<Item = EntityTag<'_>> {
    std::iter::from_fn(move || {
        // Empty elements mean nothing (RFC 9110, section 5.6.1).
        while let [b',' | b' ' | b'\t', rest @ ..] = list {
            list = rest;
        }
        let (tag, rest) = EntityTag::parse(list)?;
        list = rest.trim_ascii_start();
        // After a tag only a comma or the end may follow.
        matches!(list, [] | [b',', ..]).then_some(tag)
    })
    .fuse()
}

/// The date in a field that has only one line, in seconds since the beginning of 1970; else `None`.
fn only_date(headers: &Fields, name: Id) -> Option<u64> {
    headers.only(name).and_then(date)
}

/// A date in one of the three forms (RFC 9110, section 5.6.7), in seconds since the beginning of 1970.
fn date(value: &[u8]) -> Option<u64> {
    let time = httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()?;
    let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(since.as_secs())
}

/// An entity tag, as in `ETag` (RFC 9110, section 8.8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EntityTag<'t> {
    is_weak: bool,
    /// The tag's text with its quotes.
    opaque: &'t [u8],
}

impl<'t> EntityTag<'t> {
    /// Parses the tag at the beginning of `text`; returns it with the text after it.
    fn parse(text: &'t [u8]) -> Option<(Self, &'t [u8])> {
        let (is_weak, quoted) = match text.strip_prefix(b"W/") {
            Some(quoted) => (true, quoted),
            None => (false, text),
        };
        let inner = quoted.strip_prefix(b"\"")?;
        let end = inner.iter().position(|byte| *byte == b'"')?;
        // Visible characters and bytes above ASCII, but no spaces; a backslash escapes nothing.
        let is_allowed = |byte: &u8| *byte > b' ' && *byte != 0x7f;
        if !inner[..end].iter().all(is_allowed) {
            return None;
        }
        // Both quotes belong to the tag.
        let (opaque, rest) = quoted.split_at(end + 2);
        Some((Self { is_weak, opaque }, rest))
    }

    /// Parses `text` as one tag, apart from white space around it.
    fn parse_whole(text: &'t [u8]) -> Option<Self> {
        let (tag, rest) = Self::parse(text.trim_ascii())?;
        rest.is_empty().then_some(tag)
    }

    /// Whether both tags are equal by strong comparison: they stand for the same bytes.
    fn equals_strongly(self, other: EntityTag<'_>) -> bool {
        !self.is_weak && !other.is_weak && self.equals_weakly(other)
    }

    /// Whether both tags are equal by weak comparison: they stand for equivalent representations.
    fn equals_weakly(self, other: EntityTag<'_>) -> bool {
        self.opaque == other.opaque
    }
}

#[cfg(test)]
mod tests;
