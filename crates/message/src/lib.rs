//! The vocabulary of HTTP messages, for every protocol that carries them.
//!
//! The codecs (`catamaran-ajp`, `catamaran-http1`) hand these types to their callers and take them
//! back, so that a head that arrived over one protocol leaves over another without a conversion.
//! Methods, fields and statuses are those of the `http` crate. This crate reads and writes no bytes
//! of a connection.
#![forbid(unsafe_code)]

mod body;
pub mod field;
mod response;

pub use body::BodyLength;
pub use response::{Response, ResponseHead};
