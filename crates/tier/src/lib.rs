//! Servers as data: a [`Target`] says what a server needs, which parameters it has, and how its files
//! and its command follow from them.
//!
//! Target files are TOML, their templates minijinja; those of this project are in `targets/`, listed by
//! [`builtin`]. Nothing here starts a process: what comes out is text. A parameter of the same name
//! means the same in every target, so that two servers can be configured alike.
//!
//! ```
//! use std::path::Path;
//! use catamaran_tier::{Place, builtin};
//!
//! let nginx = builtin("nginx").expect("it is one of ours");
//! let settings = nginx.settings(&[("workers", "2")])?;
//! let http = ("http", "127.0.0.1:8080".parse().unwrap());
//! let server = nginx.render(&settings, &Place { directory: Path::new("/tmp/one"), ports: &[http] })?;
//! assert_eq!(server.command[0], "/usr/sbin/nginx");
//! assert!(server.files[0].text.contains("listen 127.0.0.1:8080"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod fault;
mod file;
mod target;
mod template;

pub use fault::{Fault, Faults};
pub use target::{Need, Place, Server, ServerFile, Settings, Target, builtin};
