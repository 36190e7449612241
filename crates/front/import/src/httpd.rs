//! httpd: its servers and virtual hosts, with mod_jk, mod_proxy, mod_alias and the modules that
//! restrict access.

mod access;
mod certificate_user;
mod connection;
mod cookies;
mod expires;
mod expressions;
mod fields;
mod files;
mod host;
mod jk;
mod listen;
mod logs;
pub(crate) mod modules;
mod names;
mod order;
mod pages;
mod processing;
pub(crate) mod proxy;
mod question_marks;
mod redirect;
mod section;
mod senders;
mod sign_on;
mod slashes;
pub(crate) mod tree;
mod tunnel;
mod usual;
mod variables;
mod verification;

pub(crate) use host::convert;
