//! Reads the configuration file into typed values, and reports all faults at once.
//!
//! The syntax is TOML. `docs/reference.md` lists the tables and keys; it is generated from the
//! descriptions beside their parsers. There are two sets of types: those for what the operator
//! wrote, with the places in the file, are in this crate only; those for what it means are in
//! `catamaran_proxy::config`, where every value is parsed and every default is resolved. The crates
//! that get the typed values implement what they mean.
//!
//! ```
//! let text = r#"
//!     [[listen]]
//!     address = "127.0.0.1:8080"
//!     [upstream.tomcat]
//!     [[upstream.tomcat.backend]]
//!     url = "ajp://127.0.0.1:8009"
//!     [[route]]
//!     path = "/app"
//!     upstream = "tomact"
//! "#;
//! let report = catamaran_config::parse("catamaran.toml", text).unwrap_err();
//! assert_eq!(report.faults(), 1);
//! assert!(report.to_string().contains("did you mean `tomcat`?"));
//! ```
#![forbid(unsafe_code)]

mod check;
mod file;
mod foreign;
mod include;
mod load;
mod read_files;
mod reference;
mod variables;

/// The kinds of values of this file, in addition to those of any file.
mod value {
    pub(crate) mod address;
    pub(crate) mod route;
    pub(crate) mod text;

    pub(crate) use catamaran_toml_file::value::*;
}

use catamaran_toml_file::{fill, key, report, suggest, syntax, table};
pub use check::{exposed_admin, same_address, unprotected};
pub use file::route::{TEXT_MAX, is_inert_type, is_ruled_field};
pub use file::tls::acme::{parse_acme_directory, parse_acme_name};
pub use foreign::{ForeignAnswer, ForeignDirective, Nature, foreign_answer, foreign_directives};
pub use load::{
    LoadError, LoadedFile, backend, load, load_recorded, load_text, parse, read_secret,
    trusted_issuers,
};
pub use read_files::{FileVersions, ReadFiles};
pub use reference::reference;
pub use report::{Finding, Position, Report, Severity};
pub use value::address::{
    BackendUrl, ListenError, UnixPathError, UrlError, parse_listen_address, parse_upstream_url,
};
pub use value::route::is_route_host;
pub use value::text::{AccessLogError, parse_access_log};
