//! Heads: what the two roles exchange before a body.
//!
//! The heads are those of `catamaran-message`. Reading and writing them is in the submodules, one for
//! each part of a head. Lines are read as they arrive ([`scan`]) into ranges of the receive buffer; what they mean
//! together is judged once all of the head is there.

pub(crate) mod encode;
pub(crate) mod persistence;
pub(crate) mod request;
pub(crate) mod request_line;
pub(crate) mod response;
pub(crate) mod scan;
pub(crate) mod status_line;
mod words;
