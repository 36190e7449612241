//! Heads of messages: reading and writing them.
//!
//! The types of heads are those of `catamaran-message`. The submodules read and write one part of a head each.
//! Lines are read as they arrive ([`scan`]) into ranges of the receive buffer; the head as a whole is checked once
//! all of it is there.

pub(crate) mod encode;
pub(crate) mod persistence;
pub(crate) mod request;
pub(crate) mod request_line;
pub(crate) mod response;
pub(crate) mod scan;
pub(crate) mod status_line;
mod words;
