//! The messages, each with a borrowed decode and an appending encode.
//!
//! `decode` takes a whole payload, code byte included, and yields views into it; nothing is
//! allocated and no count from the wire is trusted. Encoding appends whole packets to the caller's
//! buffer. Names are those of the AJP13 reference. The private module `exchange` decides what may
//! be sent when.

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

/// A reader for the bytes after the code byte of `payload`, which must be `code`.
fn open(payload: &[u8], code: u8) -> Result<Reader<'_>, DecodeError> {
    let mut reader = Reader::new(payload);
    match reader.u8()? {
        found if found == code => Ok(reader),
        found => Err(DecodeError::Code(found)),
    }
}
