//! Pairs `NAME=VALUE` with semicolons between them: cookies, their attributes, and the parameters of a path.
//!
//! The iterators are lazy, copy nothing, and look at each byte once. Names are compared exactly.

use crate::Fields;
use crate::field::unquoted;
use crate::name::COOKIE;

/// The pieces of a text, each as [`split`] returns it.
pub fn pieces(text: &[u8]) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
    text.split(|&byte| byte == b';').map(split)
}

/// The name and the value in a piece, without the blanks around either the piece or the name. The value is as it was
/// sent, with quotes and with blanks before it; `None`: the piece has no `=`.
#[must_use]
pub fn split(piece: &[u8]) -> (&[u8], Option<&[u8]>) {
    let piece = piece.trim_ascii();
    match piece.iter().position(|&byte| byte == b'=') {
        Some(equals) => (piece[..equals].trim_ascii_end(), Some(&piece[equals + 1..])),
        None => (piece, None),
    }
}

/// The pairs that have one of these names, in order, empty values included. Blanks and quotes around a value are
/// removed.
pub fn named<'a>(text: &'a [u8], names: &'a [String]) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    pieces(text).filter_map(|(name, value)| {
        let value = unquoted(value?.trim_ascii());
        let known = names.iter().find(|known| known.as_bytes() == name)?;
        Some((known.as_str(), value))
    })
}

/// The cookies of a request that have one of these names, as [`named`] yields them.
pub fn cookies<'a>(
    headers: &'a Fields,
    names: &'a [String],
) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    let lines = headers.get_all(COOKIE);
    lines.flat_map(|line| named(line, names))
}

/// The parameters (`;NAME=VALUE`) in any segment of an undecoded path that have one of these names, as [`named`]
/// yields them.
pub fn parameters<'a>(
    path: &'a [u8],
    names: &'a [String],
) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    let segments = path.split(|&byte| byte == b'/');
    segments.flat_map(|segment| {
        let semicolon = segment.iter().position(|&byte| byte == b';');
        let parameters = match semicolon {
            Some(index) => &segment[index + 1..],
            None => &[],
        };
        named(parameters, names)
    })
}

/// Removes the cookies with this name from a `Cookie` field; `None` if there is none, an empty
/// vector if no other is left. The others stay as received.
#[must_use]
pub fn without(field: &[u8], name: &str) -> Option<Vec<u8>> {
    let mut kept = Vec::with_capacity(field.len());
    let mut has_any = false;
    for piece in field.split(|&byte| byte == b';') {
        let (piece_name, value) = split(piece);
        if value.is_some() && piece_name == name.as_bytes() {
            has_any = true;
        } else if kept.is_empty() {
            kept.extend_from_slice(piece.trim_ascii_start());
        } else {
            kept.push(b';');
            kept.extend_from_slice(piece);
        }
    }
    has_any.then_some(kept)
}

#[cfg(test)]
mod tests;
