//! The session ids in a request: values of cookies and of path parameters.
//!
//! Both iterators are lazy, copy nothing, and look at each byte once.

/// The values of the cookies in a `Cookie` field that have one of these names, in order. Names are
/// compared exactly; blanks and quotes around a value are removed. Empty values are left out.
pub fn cookies<'a>(field: &'a [u8], names: &'a [String]) -> impl Iterator<Item = &'a [u8]> {
    named(field, names).map(|(_, value)| value)
}

/// The values of [`cookies`], including empty ones.
pub fn cookies_even_empty<'a>(
    field: &'a [u8],
    names: &'a [String],
) -> impl Iterator<Item = &'a [u8]> {
    pairs_even_empty(field, names).map(|(_, value)| value)
}

/// The values of [`cookies`], each with the name of its cookie.
pub fn named<'a>(
    field: &'a [u8],
    names: &'a [String],
) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    pairs(field, names)
}

/// The values of the path parameters (`;NAME=VALUE`) that have one of these names, in any segment
/// of an undecoded path, in order. Empty values are left out.
pub fn parameters<'a>(path: &'a [u8], names: &'a [String]) -> impl Iterator<Item = &'a [u8]> {
    named_parameters(path, names).map(|(_, value)| value)
}

/// The values of [`parameters`], each with the name of its parameter.
pub fn named_parameters<'a>(
    path: &'a [u8],
    names: &'a [String],
) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    let segments = path.split(|&byte| byte == b'/');
    segments.flat_map(|segment| {
        let at = segment.iter().position(|&byte| byte == b';');
        let parameters = at.map_or(&[][..], |at| &segment[at + 1..]);
        pairs(parameters, names)
    })
}

/// Removes the cookies with this name from a `Cookie` field; `None` if there is none, an empty
/// vector if no other is left. The others stay as received.
#[must_use]
pub fn without(field: &[u8], name: &str) -> Option<Vec<u8>> {
    let is_named = |piece: &&[u8]| split(piece).is_some_and(|(it, _)| it == name.as_bytes());
    let mut pieces = field.split(|&byte| byte == b';');
    pieces.find(is_named)?;
    let mut kept = Vec::with_capacity(field.len());
    for piece in field.split(|&byte| byte == b';').filter(|it| !is_named(it)) {
        if !kept.is_empty() {
            kept.push(b';');
        }
        kept.extend_from_slice(if kept.is_empty() {
            piece.trim_ascii_start()
        } else {
            piece
        });
    }
    Some(kept)
}

/// The pairs `NAME=VALUE` that have one of these names, without those with an empty value.
fn pairs<'a>(text: &'a [u8], names: &'a [String]) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    pairs_even_empty(text, names).filter(|(_, value)| !value.is_empty())
}

fn pairs_even_empty<'a>(
    text: &'a [u8],
    names: &'a [String],
) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    let known = |name: &[u8]| names.iter().find(|it| it.as_bytes() == name);
    let pieces = text.split(|&byte| byte == b';').filter_map(split);
    pieces.filter_map(move |(name, value)| Some((known(name)?.as_str(), value)))
}

/// Splits `NAME=VALUE` into name and value, without the blanks around them and the quotes around
/// the value.
fn split(piece: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = piece.iter().position(|&byte| byte == b'=')?;
    let (name, value) = (piece[..at].trim_ascii(), piece[at + 1..].trim_ascii());
    let unquoted = value
        .strip_prefix(b"\"")
        .and_then(|it| it.strip_suffix(b"\""));
    Some((name, unquoted.unwrap_or(value)))
}
