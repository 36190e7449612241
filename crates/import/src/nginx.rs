//! nginx: its servers, upstreams and locations.

mod location;
mod server;
pub(crate) mod tree;
mod upstream;

pub(crate) use server::convert;
