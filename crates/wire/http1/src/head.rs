//! Heads: what the two roles exchange before a body.
//!
//! The heads are those of `catamaran-message`. Reading and writing them is in the submodules, one for
//! each part of a head. A head is decoded once all of it has arrived ([`scan`] finds its end), in one
//! pass, into slices of the receive buffer.

pub(crate) mod encode;
pub(crate) mod fields;
pub(crate) mod name;
pub(crate) mod request;
pub(crate) mod request_line;
pub(crate) mod response;
pub(crate) mod scan;
pub(crate) mod status_line;
