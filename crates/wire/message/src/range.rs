//! Byte ranges (RFC 9110, section 14): which parts of a representation a request gets.
//!
//! Every function is pure. [`select`] also evaluates `If-Range`, so that a client that resumes a
//! download never puts parts of two versions together. Evaluate the preconditions of the request
//! ([`crate::condition::evaluate`]) first: ranges apply only to a response that would be 200.

use http::Method;

use crate::Fields;
use crate::condition::{self, Validators};
use crate::field::list;
use crate::name::RANGE;

/// A range of bytes, at least one, that lies within a representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ByteRange {
    first: u64,
    last: u64,
}

impl ByteRange {
    /// The offset of the range's first byte.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The offset of the range's last byte.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The number of bytes.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.last - self.first + 1
    }

    /// The value of `Content-Range` of a part of a representation of `length` bytes, such as
    /// `bytes 0-499/1234` (RFC 9110, section 14.4).
    #[must_use]
    pub fn content_range(&self, length: u64) -> String {
        format!("bytes {}-{}/{length}", self.first, self.last)
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// The response that a request for ranges gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeSelection {
    /// The whole representation: 200 (OK).
    Whole,
    /// One part: 206 (Partial Content) with [`ByteRange::content_range`]. It may be all of it.
    Part(ByteRange),
    /// Several parts, in the order in which they were asked for, none of which overlaps another: 206
    /// (Partial Content) as `multipart/byteranges`.
    Parts(Vec<ByteRange>),
    /// None of the ranges has a byte: 416 (Range Not Satisfiable) with [`unsatisfied`].
    Unsatisfiable,
}

/// Selects the parts of a representation of `length` bytes that a request asks for.
///
/// The whole representation is the answer if the method is not GET, if there is no `Range` or several
/// lines of it, if `If-Range` does not name exactly this representation, if the unit is not `bytes`
/// (in any case), if any range is malformed or ends before it begins, if the representation is empty,
/// if more than `parts_max` ranges have bytes, or if any two of these overlap. The two last rules keep
/// a small request from causing a response of many times the representation (RFC 9110, section 14.2).
///
/// A range that goes beyond the end is cut there, one that begins beyond it is left out. A number that
/// does not fit into 64 bits counts as the largest that does. It takes at most a number of steps that
/// grows with the length of the line and with the square of `parts_max`.
#[must_use]
pub fn select(
    method: &Method,
    headers: &Fields,
    validators: &Validators<'_>,
    length: u64,
    parts_max: usize,
) -> RangeSelection {
    let Some(set) = range_set(method, headers) else {
        return RangeSelection::Whole;
    };
    if length == 0 || !condition::allows_range(headers, validators) {
        return RangeSelection::Whole;
    }
    select_from(set, length, parts_max).unwrap_or(RangeSelection::Whole)
}

/// The value of `Content-Range` of a response 416 about a representation of `length` bytes:
/// `bytes */1234` (RFC 9110, section 15.5.17).
#[must_use]
pub fn unsatisfied(length: u64) -> String {
    format!("bytes */{length}")
}

/// The text after `bytes=` in the only `Range` line of a GET; `None` if there is no such line.
fn range_set<'h>(method: &Method, headers: &'h Fields) -> Option<&'h [u8]> {
    if *method != Method::GET {
        return None;
    }
    let line = headers.only(RANGE)?.trim_ascii();
    let (unit, set) = line.split_at_checked(UNIT.len())?;
    unit.eq_ignore_ascii_case(UNIT).then_some(set)
}

/// The parts of a list of ranges; `None` if the list is to be ignored.
fn select_from(set: &[u8], length: u64, parts_max: usize) -> Option<RangeSelection> {
    let mut has_element = false;
    let mut first = None;
    // Empty while there is one range at most, so that it takes no memory.
    let mut parts: Vec<ByteRange> = Vec::new();
    // Empty elements mean nothing (RFC 9110, section 5.6.1).
    for element in list(set).filter(|element| !element.is_empty()) {
        has_element = true;
        let Some(range) = parse_range(element, length)? else {
            continue;
        };
        let Some(first_range) = first else {
            first = Some(range);
            continue;
        };
        if parts.is_empty() {
            parts.push(first_range);
        }
        if parts.len() >= parts_max || parts.iter().any(|part| part.overlaps(&range)) {
            return None;
        }
        parts.push(range);
    }
    let Some(first_range) = first else {
        return has_element.then_some(RangeSelection::Unsatisfiable);
    };
    if !parts.is_empty() {
        return Some(RangeSelection::Parts(parts));
    }
    (parts_max > 0).then_some(RangeSelection::Part(first_range))
}

/// Parses one range and cuts it to the representation: `Some(None)` if it lies outside, `None` if it
/// is malformed.
fn parse_range(element: &[u8], length: u64) -> Option<Option<ByteRange>> {
    let dash = element.iter().position(|byte| *byte == b'-')?;
    let (from, to) = (&element[..dash], &element[dash + 1..]);
    let end = length - 1;
    if from.is_empty() {
        // The last bytes of the representation.
        let suffix = number(to)?;
        let first = length.saturating_sub(suffix);
        return Some((suffix > 0).then_some(ByteRange { first, last: end }));
    }
    let first = number(from)?;
    let mut last = end;
    if !to.is_empty() {
        let stated = number(to)?;
        if stated < first {
            return None;
        }
        last = stated.min(end);
    }
    Some((first <= end).then_some(ByteRange { first, last }))
}

/// Parses a number of digits only; one that does not fit becomes the largest.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    let mut number = 0_u64;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        let digit = u64::from(byte - b'0');
        number = number.saturating_mul(10).saturating_add(digit);
    }
    Some(number)
}

/// The only unit of ranges, with the sign after it.
const UNIT: &[u8] = b"bytes=";

#[cfg(test)]
mod tests;
