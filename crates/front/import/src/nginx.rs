//! nginx: its servers, upstreams and locations.

mod answer;
mod backends;
mod certificates;
mod conditions;
mod cookies;
mod default_scheme;
mod expires;
mod fields;
mod files;
mod guards;
mod jumps;
mod leaps;
mod limits;
mod listen;
pub(crate) mod location;
mod logs;
mod maps;
mod methods;
mod names;
mod nested;
mod pages;
mod referers;
mod request_tests;
mod reverse;
mod rewrite;
mod server;
mod sign_on;
mod slashes;
mod splits;
pub(crate) mod tree;
mod upstream;
mod variables;

pub(crate) use server::convert;
