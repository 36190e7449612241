//! Content codings of bodies (RFC 9110, section 8.4.1).
//!
//! [`AcceptedCodings`] says which codings a client takes. [`Encoder`] codes a body piece by piece, and [`code`] one
//! of which all bytes are there. [`CodedBodies`] are codings of a body that is kept.
//! Nothing here knows a connection, a clock, or which bodies are to be coded.

#![forbid(unsafe_code)]

mod accept;
mod encoder;
mod kept;

pub use accept::{AcceptedCodings, Coding};
pub use encoder::{Encoder, EncoderFault, StreamCoding, code};
pub use kept::CodedBodies;
