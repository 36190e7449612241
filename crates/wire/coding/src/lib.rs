//! Content codings of bodies (RFC 9110, section 8.4.1).
//!
//! [`AcceptedCodings`] are the codings that a client accepts. [`Encoder`] codes a body piece by piece, and [`code`]
//! one that is completely there. [`CodedBodies`] are the codings of a body that is kept. This crate uses no
//! connection or clock, and does not decide which bodies are coded.

#![forbid(unsafe_code)]

mod accept;
mod encoder;
mod kept;

pub use accept::{AcceptedCodings, Coding};
pub use encoder::{Encoder, EncoderFault, StreamCoding, code};
pub use kept::CodedBodies;
