//! Decodes a response head and validates it as a whole.

use catamaran_message::ResponseHead;
use catamaran_message::field::remove_nominated;
use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderName, HeaderValue, StatusCode, Version};

use crate::body::{Decoder, FramingFields};
use crate::error::Fault;
use crate::head::encode::is_connection_field;
use crate::head::fields::{self, Persistence, Verdict};
use crate::head::scan::RawHead;
use crate::head::status_line;
use crate::syntax::list;

/// What follows from a response head for the connection.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(crate) decoder: Decoder,
    pub(crate) keep_alive: bool,
}

/// What of a request its response is read by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestTraits<'a> {
    /// It was a HEAD.
    pub(crate) is_head: bool,
    /// The protocol that it asked to change to.
    pub(crate) upgrade: Option<&'a [u8]>,
}

/// Reads a complete response head into `head`, which is empty.
pub(crate) fn decode(
    raw: &RawHead,
    asked: RequestTraits<'_>,
    head: &mut ResponseHead,
) -> Result<Rest, Fault> {
    let line = status_line::decode(&raw.bytes, raw.start_line)?;
    let status = line.status;
    let mut found = Found::default();
    fields::decode(raw, &mut head.headers, |name, text| found.judge(name, text))?;
    for value in &found.nominations {
        remove_nominated(&mut head.headers, value);
    }
    if status == StatusCode::SWITCHING_PROTOCOLS {
        let upgrade = found.upgraded(asked.upgrade, line.version)?;
        head.headers.insert(UPGRADE, upgrade);
        head.status = status;
        head.reason = line.reason;
        head.content_length = None;
        return Ok(Rest {
            decoder: Decoder::UntilClose,
            keep_alive: false,
        });
    }
    let to_head = asked.is_head;
    let has_no_framing = status.is_informational() || status == StatusCode::NO_CONTENT;
    let bodiless = to_head || has_no_framing || status == StatusCode::NOT_MODIFIED;
    let (announced, decoder) = found.framing.response_length(line.version, bodiless)?;
    // A server that announces a body where none can be may well send it, and later than we look.
    let may_send_more = status == StatusCode::NO_CONTENT && found.framing.announces_body();
    let ends_with_stream = matches!(decoder, Decoder::UntilClose);
    head.status = status;
    head.reason = line.reason;
    head.content_length = announced.filter(|_| !has_no_framing);
    Ok(Rest {
        decoder,
        keep_alive: found.persistence.allows_next(line.version)
            && !may_send_more
            && !ends_with_stream,
    })
}

#[derive(Default)]
struct Found {
    framing: FramingFields,
    persistence: Persistence,
    has_location: bool,
    has_content_type: bool,
    /// Connection fields that name others.
    nominations: Vec<HeaderValue>,
    /// Upgrade fields.
    upgrades: Vec<HeaderValue>,
}

impl Found {
    fn judge(&mut self, name: &HeaderName, text: &[u8]) -> Result<Verdict, Fault> {
        if *name == CONTENT_LENGTH {
            self.framing.take_content_length(text)?;
        } else if *name == TRANSFER_ENCODING {
            self.framing.take_transfer_encoding(text)?;
        } else if *name == CONNECTION {
            self.persistence.take(text);
            if !list(text).all(is_plain_option) {
                self.nominations.push(copy(text)?);
            }
        } else if *name == LOCATION {
            return Ok(keep_first(&mut self.has_location));
        } else if *name == CONTENT_TYPE {
            return Ok(keep_first(&mut self.has_content_type));
        } else if !is_connection_field(name) && name.as_str() != "proxy-authenticate" {
            return Ok(Verdict::Keep);
        } else if *name == UPGRADE {
            self.upgrades.push(copy(text)?);
        }
        Ok(Verdict::Drop)
    }

    /// The Upgrade field of a 101, which must name the protocol that was asked for and no other, and
    /// announce no body (RFC 9110 section 7.8).
    fn upgraded(&self, asked: Option<&[u8]>, version: Version) -> Result<HeaderValue, Fault> {
        let options = |value: &HeaderValue| {
            list(value.as_bytes()).any(|option| option.eq_ignore_ascii_case(b"upgrade"))
        };
        let named = self.nominations.iter().any(options);
        let framed = self.framing.announces_body();
        match (asked, &self.upgrades[..]) {
            (Some(asked), [only])
                if named
                    && !framed
                    && version == Version::HTTP_11
                    && only.as_bytes().eq_ignore_ascii_case(asked) =>
            {
                Ok(only.clone())
            }
            _ => Err(Fault::Upgraded),
        }
    }
}

/// The value, of a field that does not stay in the map.
fn copy(text: &[u8]) -> Result<HeaderValue, Fault> {
    HeaderValue::from_bytes(text).map_err(|_| Fault::FieldValue)
}

/// Of fields that may stand only once the first one counts.
fn keep_first(seen: &mut bool) -> Verdict {
    if std::mem::replace(seen, true) {
        Verdict::Drop
    } else {
        Verdict::Keep
    }
}

fn is_plain_option(option: &[u8]) -> bool {
    option.eq_ignore_ascii_case(b"close") || option.eq_ignore_ascii_case(b"keep-alive")
}
