//! The types of HTTP messages, for every protocol that carries them.
//!
//! The codecs (`catamaran-ajp`, `catamaran-http1`) hand these types to their callers and take them back, so
//! that a head that arrived over one protocol leaves over another without a conversion. Methods and statuses
//! are those of the `http` crate; fields are one flat list ([`Fields`]) whose names are numbers of one table
//! ([`name`]). This crate reads and writes no bytes of a connection.
//!
//! [`condition`] and [`range`] decide how to answer with a representation that the caller has: all of it, a
//! part, 304, 412 or 416.
#![forbid(unsafe_code)]

mod authority;
mod body;
pub mod condition;
mod error;
pub mod field;
mod fields;
pub mod host;
mod media;
pub mod name;
pub mod pairs;
pub mod range;
mod request;
mod response;
mod target;

pub use authority::{Authority, is_sendable_host};
pub use body::BodyLength;
pub use error::{InvalidHost, TargetFault};
pub use fields::{Field, Fields};
pub use media::{MediaPattern, essence};
pub use name::{FieldName, Id, NameRef, Traits};
pub use request::{Request, RequestHead};
pub use response::{Response, ResponseHead};
pub use target::{Scheme, Target, decode_target, is_clean_target};
