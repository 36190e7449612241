//! Request lines (RFC 9112 section 3): `method SP target SP version`, nothing else.

use http::{Method, Version};
use memchr::memchr;

use crate::error::Fault;
use crate::head::scan::METHOD_BYTES_MAX;

/// A request line; its target has not been checked yet.
#[derive(Debug)]
pub(crate) struct RequestLine<'a> {
    pub(crate) method: Method,
    pub(crate) target: &'a [u8],
    pub(crate) version: Version,
}

/// Splits a request line into its parts. The version is checked first, because the rest of a
/// line of another major version has no known meaning.
pub(crate) fn decode(line: &[u8]) -> Result<RequestLine<'_>, Fault> {
    let mut bytes = line.iter();
    let method_end = bytes
        .position(|&byte| byte == b' ')
        .ok_or(Fault::RequestLine)?;
    let target_at = method_end + 1;
    let target_len = memchr(b' ', &line[target_at..]).ok_or(Fault::RequestLine)?;
    let target_end = target_at + target_len;
    let version_text = &line[target_end + 1..];
    if target_len == 0 {
        return Err(Fault::RequestLine);
    }
    let version = match version(version_text) {
        Some(known) => known?,
        // More than two spaces.
        None if version_text.contains(&b' ') => return Err(Fault::RequestLine),
        None => return Err(Fault::Version),
    };
    if method_end > METHOD_BYTES_MAX {
        return Err(Fault::Method);
    }
    let method = Method::from_bytes(&line[..method_end]).map_err(|_| Fault::Method)?;
    if method == Method::CONNECT {
        return Err(Fault::Connect);
    }
    Ok(RequestLine {
        method,
        target: &line[target_at..target_end],
        version,
    })
}

/// Reads a version; `None` if it is malformed, a fault if its major version is not 1. Later minor versions are
/// understood as 1.1 (RFC 9110 section 2.5).
pub(crate) fn version(text: &[u8]) -> Option<Result<Version, Fault>> {
    let [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] = text else {
        return None;
    };
    match (major, minor) {
        (b'1', b'0') => Some(Ok(Version::HTTP_10)),
        (b'1', b'1'..=b'9') => Some(Ok(Version::HTTP_11)),
        (b'0'..=b'9', b'0'..=b'9') => Some(Err(Fault::VersionUnsupported)),
        _ => None,
    }
}
