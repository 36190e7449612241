//! Decodes a request head and validates it as a whole.

use catamaran_message::{Authority, BodyLength, Host, RequestHead, decode_target};
use http::Version;
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING};

use crate::body::FramingFields;
use crate::error::Fault;
use crate::head::fields::{self, Persistence, Verdict};
use crate::head::request_line;
use crate::head::scan::RawHead;
use crate::limits::Limits;
use crate::syntax::list;

/// Reads a complete request head into `head`, which is empty. Whether version and Connection field
/// allow another request after this one.
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
    let mut found = Found::default();
    fields::decode(raw, &mut head.headers, |name, text| {
        if *name == HOST {
            let Host { authority, value } = Host::read(text, &raw.bytes)?;
            if found.host.replace(authority).is_some() {
                return Err(Fault::HostDuplicate);
            }
            return Ok(value.map_or(Verdict::Keep, Verdict::KeepAs));
        } else if *name == CONTENT_LENGTH {
            found.framing.take_content_length(text)?;
            return Ok(Verdict::Drop);
        } else if *name == TRANSFER_ENCODING {
            found.framing.take_transfer_encoding(text)?;
            return Ok(Verdict::Drop);
        } else if *name == CONNECTION {
            found.persistence.take(text);
        } else if *name == EXPECT {
            found.expectations.take(text);
        }
        Ok(Verdict::Keep)
    })?;
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
struct Found {
    host: Option<Authority>,
    framing: FramingFields,
    persistence: Persistence,
    expectations: Expectations,
}

/// The Expect fields (RFC 9110 section 10.1.1).
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

    /// Whether the client waits for 100. HTTP/1.0 has no expectations.
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
