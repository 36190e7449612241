//! The fields of requests and responses: which of them the front forwards, changes, or writes.

pub(crate) mod attributes;
pub(crate) mod body;
pub(crate) mod certificate;
pub(crate) mod claims;
pub(crate) mod clean;
mod cookie_flags;
pub(crate) mod forwarded;
pub(crate) mod own;
pub(crate) mod passage;
mod reverse;
