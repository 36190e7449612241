//! Decodes a request head and validates it as a whole.

use catamaran_message::{BodyLength, RequestHead, Traits, decode_target, host, name};
use http::Version;

use crate::body::FramingFields;
use crate::error::Fault;
use crate::head::persistence::allows_next;
use crate::head::request_line;
use crate::head::scan::RawHead;
use crate::limits::Limits;

/// Checks a complete request head, whose fields are in `head`, and fills in the rest of `head`. Returns whether
/// version and Connection field allow another request after this one.
pub(crate) fn decode(
    raw: &RawHead,
    limits: &Limits,
    head: &mut RequestHead,
) -> Result<bool, Fault> {
    let line = request_line::decode(&raw.bytes[..raw.start_line])?;
    if line.target.len() > limits.target_bytes {
        return Err(Fault::TargetTooLong);
    }
    (head.target, head.authority) = decode_target(&raw.bytes, line.target, &line.method)?;
    head.headers.keep(raw.bytes.clone());
    let version = line.version;
    match head.headers.only(name::HOST) {
        Some(host) => {
            let authority = host::read(host, &raw.bytes)?;
            // An absolute target overrides Host (RFC 9112 section 3.2.2).
            head.authority.get_or_insert(authority);
        }
        None if head.headers.contains(name::HOST) => return Err(Fault::HostDuplicate),
        None if version != Version::HTTP_10 => return Err(Fault::HostMissing),
        None => {}
    }
    if head.headers.repeats_singleton() {
        return Err(Fault::FieldDuplicate);
    }
    let body = FramingFields::read(&head.headers)?.request_length(version)?;
    // HTTP/1.0 has no expectations.
    let expects_continue =
        version != Version::HTTP_10 && head.headers.expects_continue().ok_or(Fault::Expectation)?;
    let may_go_on = allows_next(&head.headers, version);
    head.headers.remove_all(Traits::FRAMING);
    head.method = line.method;
    head.version = version;
    head.body = body;
    head.expect_continue = expects_continue && body != BodyLength::Known(0);
    Ok(may_go_on)
}
