//! nginx: its servers, upstreams and locations.

mod answer;
mod backends;
mod fields;
mod files;
mod listen;
pub(crate) mod location;
mod nested;
mod pages;
mod rewrite;
mod server;
pub(crate) mod tree;
mod upstream;
mod variables;

pub(crate) use server::convert;
