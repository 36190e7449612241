//! Files of keys in TOML: what a key may be, how a table is read, and how all faults are shown at once.
//!
//! A [`table::Table`] is read key by key ([`key::Key`], whose [`value`] is of some kind) and collects what is
//! wrong in a [`report::Report`], which shows each fault with its line. Which keys and tables a file has is its
//! reader's affair.
//!
//! ```
//! use catamaran_toml_file::report::Report;
//! use catamaran_toml_file::syntax::parsed;
//!
//! let text = "workers = two";
//! let mut report = Report::new("x.toml", text);
//! assert!(parsed(text, 0, &mut report).is_none());
//! assert!(report.to_string().starts_with("x.toml:1:11: fault: syntax: "));
//! ```
#![forbid(unsafe_code)]

pub mod derived;
pub mod key;
pub mod report;
mod sources;
pub mod suggest;
pub mod syntax;
pub mod table;
pub mod value;
