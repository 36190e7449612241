//! Decodes a request head and validates it as a whole.

use catamaran_message::{Authority, BodyLength, RequestHead, Traits, decode_target, host, name};
use http::Version;

use crate::body::FramingFields;
use crate::error::Fault;
use crate::head::persistence::Persistence;
use crate::head::request_line;
use crate::head::scan::RawHead;
use crate::limits::Limits;
use crate::syntax::list;

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
    let (target, target_authority) = decode_target(&raw.bytes, line.target, &line.method)?;
    head.headers.keep(raw.bytes.clone());
    let mut found = RequestFacts::default();
    for field in head.headers.iter() {
        match field.id() {
            Some(name::HOST) => {
                let authority = host::read(field.value(), &raw.bytes)?;
                if found.host.replace(authority).is_some() {
                    return Err(Fault::HostDuplicate);
                }
            }
            Some(name::CONTENT_LENGTH) => found.framing.take_content_length(field.value())?,
            Some(name::TRANSFER_ENCODING) => found.framing.take_transfer_encoding(field.value())?,
            Some(name::CONNECTION) => found.persistence.take(field.value()),
            Some(name::EXPECT) => found.expectations.take(field.value()),
            _ => {}
        }
    }
    head.headers.remove_all(Traits::FRAMING);
    let version = line.version;
    if found.host.is_none() && version != Version::HTTP_10 {
        return Err(Fault::HostMissing);
    }
    let body = found.framing.request_length(version)?;
    head.expect_continue = found.expectations.judge(version, body)?;
    head.method = line.method;
    head.target = target;
    head.version = version;
    // An absolute target overrides Host (RFC 9112 section 3.2.2).
    head.authority = target_authority.or(found.host);
    head.body = body;
    Ok(found.persistence.allows_next(version))
}

#[derive(Default)]
struct RequestFacts {
    host: Option<Authority>,
    framing: FramingFields,
    persistence: Persistence,
    expectations: Expectations,
}

/// The expectations in the Expect fields (RFC 9110 section 10.1.1).
#[derive(Clone, Copy, Default)]
struct Expectations {
    to_continue: bool,
    others: bool,
}

impl Expectations {
    fn take(&mut self, value: &[u8]) {
        for expectation in list(value).filter(|expectation| !expectation.is_empty()) {
            let is_continue = expectation.eq_ignore_ascii_case(b"100-continue");
            self.to_continue |= is_continue;
            self.others |= !is_continue;
        }
    }

    /// Whether the client waits for 100 (Continue); never with HTTP/1.0, which has no expectations.
    ///
    /// # Errors
    /// An expectation other than `100-continue`.
    fn judge(self, version: Version, body: BodyLength) -> Result<bool, Fault> {
        if version == Version::HTTP_10 {
            return Ok(false);
        }
        if self.others {
            return Err(Fault::Expectation);
        }
        Ok(self.to_continue && body != BodyLength::Known(0))
    }
}
