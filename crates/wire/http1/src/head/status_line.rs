//! Status lines (RFC 9112 section 4), in both directions.

use bytes::{Bytes, BytesMut};
use http::{StatusCode, Version};

use crate::error::Fault;
use crate::head::request_line;
use crate::syntax::is_value_text;

/// A status line as received.
#[derive(Debug)]
pub(crate) struct StatusLine {
    pub(crate) version: Version,
    pub(crate) status: StatusCode,
    pub(crate) reason: Option<Bytes>,
}

/// Decodes the status line, which is the first `len` bytes of `head`. The space after the status may be missing if
/// there is no reason, as many servers leave it out.
pub(crate) fn decode(head: &Bytes, len: usize) -> Result<StatusLine, Fault> {
    let line = &head[..len];
    let (Some(version_text), Some(b' '), Some(digits)) =
        (line.get(..8), line.get(8), line.get(9..12))
    else {
        return Err(Fault::StatusLine);
    };
    let Some(Ok(version)) = request_line::version(version_text) else {
        return Err(Fault::StatusLine);
    };
    let status = StatusCode::from_bytes(digits).map_err(|_| Fault::StatusLine)?;
    let reason = match &line[12..] {
        [] | [b' '] => None,
        [b' ', reason @ ..] if is_value_text(reason) => Some(head.slice_ref(reason)),
        _ => return Err(Fault::StatusLine),
    };
    Ok(StatusLine {
        version,
        status,
        reason,
    })
}

/// Writes a status line. A reason with forbidden characters is replaced by the standard one.
pub(crate) fn write(status: StatusCode, reason: Option<&[u8]>, out: &mut BytesMut) {
    let valid_reason = reason.filter(|reason| is_value_text(reason));
    if valid_reason.is_none()
        && let Some(line) = standard(status.as_u16())
    {
        return out.extend_from_slice(line);
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.extend_from_slice(b" ");
    out.extend_from_slice(valid_reason.unwrap_or_default());
    out.extend_from_slice(b"\r\n");
}

/// Defines the standard status lines as constants, ready to be copied.
macro_rules! standard_lines {
    ($($code:literal $reason:literal)*) => {
        /// The whole status line with the standard reason phrase; `None` for an unknown status.
        const fn standard(status: u16) -> Option<&'static [u8]> {
            match status {
                $($code => {
                    Some(concat!("HTTP/1.1 ", $code, " ", $reason, "\r\n").as_bytes())
                })*
                _ => None,
            }
        }
    };
}

standard_lines! {
    100 "Continue"
    102 "Processing"
    103 "Early Hints"
    200 "OK"
    201 "Created"
    202 "Accepted"
    203 "Non-Authoritative Information"
    204 "No Content"
    205 "Reset Content"
    206 "Partial Content"
    207 "Multi-Status"
    208 "Already Reported"
    226 "IM Used"
    300 "Multiple Choices"
    301 "Moved Permanently"
    302 "Found"
    303 "See Other"
    304 "Not Modified"
    305 "Use Proxy"
    307 "Temporary Redirect"
    308 "Permanent Redirect"
    400 "Bad Request"
    401 "Unauthorized"
    402 "Payment Required"
    403 "Forbidden"
    404 "Not Found"
    405 "Method Not Allowed"
    406 "Not Acceptable"
    407 "Proxy Authentication Required"
    408 "Request Timeout"
    409 "Conflict"
    410 "Gone"
    411 "Length Required"
    412 "Precondition Failed"
    413 "Content Too Large"
    414 "URI Too Long"
    415 "Unsupported Media Type"
    416 "Range Not Satisfiable"
    417 "Expectation Failed"
    421 "Misdirected Request"
    422 "Unprocessable Content"
    423 "Locked"
    424 "Failed Dependency"
    425 "Too Early"
    426 "Upgrade Required"
    428 "Precondition Required"
    429 "Too Many Requests"
    431 "Request Header Fields Too Large"
    451 "Unavailable For Legal Reasons"
    500 "Internal Server Error"
    501 "Not Implemented"
    502 "Bad Gateway"
    503 "Service Unavailable"
    504 "Gateway Timeout"
    505 "HTTP Version Not Supported"
    506 "Variant Also Negotiates"
    507 "Insufficient Storage"
    508 "Loop Detected"
    511 "Network Authentication Required"
}
