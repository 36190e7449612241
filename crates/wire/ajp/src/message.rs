//! The messages, each with a borrowed decode and an appending encode.
//!
//! `decode` takes a whole payload, code byte included, and yields views into it; nothing is
//! allocated and no count from the wire is trusted. Encoding appends whole packets to the caller's
//! buffer. Names are those of the AJP13 reference. What may be sent when is `exchange`'s
//! matter, not decided here.

pub mod body_chunk;
pub mod data;
pub mod end_response;
pub mod fields;
pub mod forward_request;
pub mod get_body_chunk;
pub mod ping;
pub mod send_headers;

use crate::error::DecodeError;
use crate::wire::Reader;

/// A reader behind the code byte of `payload`, which must be `code`.
fn open(payload: &[u8], code: u8) -> Result<Reader<'_>, DecodeError> {
    let mut reader = Reader::new(payload);
    match reader.u8()? {
        found if found == code => Ok(reader),
        found => Err(DecodeError::Code(found)),
    }
}
