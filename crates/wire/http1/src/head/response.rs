//! Decodes a response head and validates it as a whole.

use catamaran_message::{Fields, Id, ResponseHead, Traits, name};
use http::{StatusCode, Version};

use crate::body::{Decoder, FramingFields};
use crate::error::Fault;
use crate::head::persistence::Persistence;
use crate::head::scan::RawHead;
use crate::head::status_line;
use crate::syntax::list;

/// What a response head implies for the body and the connection.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(crate) decoder: Decoder,
    pub(crate) keep_alive: bool,
}

/// Facts of a request on which the reading of its response depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestTraits<'a> {
    /// Whether the request was a HEAD.
    pub(crate) is_head: bool,
    /// The protocol that the request asked to change to; `None`: to none.
    pub(crate) upgrade: Option<&'a [u8]>,
}

/// Checks a complete response head, whose fields are in `head`, and fills in the rest of `head`.
pub(crate) fn decode(
    raw: &RawHead,
    asked: RequestTraits<'_>,
    head: &mut ResponseHead,
) -> Result<Rest, Fault> {
    let line = status_line::decode(&raw.bytes, raw.start_line)?;
    let status = line.status;
    let headers = &mut head.headers;
    headers.keep(raw.bytes.clone());
    let found = ResponseFacts::in_fields(headers)?;
    let upgrade = match status {
        StatusCode::SWITCHING_PROTOCOLS => {
            Some(found.upgraded(headers, asked.upgrade, line.version)?)
        }
        _ => None,
    };
    if found.nominates {
        headers.mark_nominated(&[]);
    }
    headers.remove_all(
        Traits::HOP_BY_HOP
            .with(Traits::FRAMING)
            .with(Traits::NOMINATED),
    );
    // It is for us, and not for our clients.
    headers.remove(name::PROXY_AUTHENTICATE);
    // Of these the first one counts.
    for (count, id) in [
        (found.locations, name::LOCATION),
        (found.content_types, name::CONTENT_TYPE),
    ] {
        if count > 1 {
            keep_first(headers, id);
        }
    }
    head.status = status;
    head.reason = line.reason;
    if let Some(upgrade) = upgrade {
        headers.insert(name::UPGRADE, upgrade);
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
    head.content_length = announced.filter(|_| !has_no_framing);
    Ok(Rest {
        decoder,
        keep_alive: found.persistence.allows_next(line.version)
            && !may_send_more
            && !ends_with_stream,
    })
}

#[derive(Default)]
struct ResponseFacts {
    framing: FramingFields,
    persistence: Persistence,
    locations: usize,
    content_types: usize,
    /// Whether a Connection field names other fields.
    nominates: bool,
}

impl ResponseFacts {
    fn in_fields(headers: &Fields) -> Result<Self, Fault> {
        let mut found = Self::default();
        for field in headers.iter() {
            match field.id() {
                Some(name::CONTENT_LENGTH) => found.framing.take_content_length(field.value())?,
                Some(name::TRANSFER_ENCODING) => {
                    found.framing.take_transfer_encoding(field.value())?;
                }
                Some(name::CONNECTION) => {
                    found.persistence.take(field.value());
                    found.nominates |= !list(field.value()).all(is_plain_option);
                }
                Some(name::LOCATION) => found.locations += 1,
                Some(name::CONTENT_TYPE) => found.content_types += 1,
                _ => {}
            }
        }
        Ok(found)
    }

    /// Checks a 101: its Upgrade field must name the protocol that was asked for and no other, and
    /// it must not announce a body (RFC 9110 section 7.8).
    fn upgraded(
        &self,
        headers: &Fields,
        asked: Option<&[u8]>,
        version: Version,
    ) -> Result<Vec<u8>, Fault> {
        let is_upgrade = |option: &[u8]| option.eq_ignore_ascii_case(b"upgrade");
        let named = headers
            .get_all(name::CONNECTION)
            .any(|value| list(value).any(is_upgrade));
        let framed = self.framing.announces_body();
        let upgrades: Vec<&[u8]> = headers.get_all(name::UPGRADE).collect();
        match (asked, &upgrades[..]) {
            (Some(asked), [only])
                if named
                    && !framed
                    && version == Version::HTTP_11
                    && only.eq_ignore_ascii_case(asked) =>
            {
                Ok(only.to_vec())
            }
            _ => Err(Fault::Upgraded),
        }
    }
}

fn keep_first(headers: &mut Fields, id: Id) {
    let mut is_behind = false;
    headers.retain(|field| field.id() != Some(id) || !std::mem::replace(&mut is_behind, true));
}

fn is_plain_option(option: &[u8]) -> bool {
    option.eq_ignore_ascii_case(b"close") || option.eq_ignore_ascii_case(b"keep-alive")
}
