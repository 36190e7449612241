//! httpd: its servers and virtual hosts, with mod_jk, mod_proxy, mod_alias and the modules that
//! restrict access.

mod access;
mod fields;
mod files;
mod host;
mod jk;
mod listen;
pub(crate) mod modules;
mod names;
mod pages;
mod processing;
pub(crate) mod proxy;
mod redirect;
mod section;
mod senders;
pub(crate) mod tree;
mod usual;

pub(crate) use host::convert;
