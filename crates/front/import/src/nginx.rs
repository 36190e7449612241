//! nginx: its servers, upstreams and locations.

mod files;
mod listen;
pub(crate) mod location;
mod pages;
mod rewrite;
mod server;
pub(crate) mod tree;
mod upstream;

pub(crate) use server::convert;
