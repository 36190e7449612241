//! Reads TOML files with described keys, and reports all faults of a file at once.
//!
//! A [`table::Table`] is read key by key. A [`key::Key`] describes a key, and [`value`] has the kinds of
//! values. What is wrong is collected in a [`report::Report`], which shows each fault with its line. Which
//! tables and keys a file has is up to the caller.
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
