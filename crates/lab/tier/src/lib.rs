//! Servers as data: a [`Target`] describes a kind of server (its requirements, parameters, files,
//! command, readiness and end), and a [`Space`] runs servers of it.
//!
//! Target files are TOML, their templates minijinja; this project's are in `targets/`, listed by
//! [`builtin_names`]. A parameter has the same meaning in every target, so that two servers can be
//! configured alike. [`Target::render`] only makes texts; [`Space::start`] writes the files and
//! starts the server.
//!
//! ```
//! use std::path::Path;
//! use catamaran_tier::{Place, Programs, builtin};
//!
//! let nginx = builtin("nginx").expect("it is one of ours");
//! let settings = nginx.settings(&[("workers", "2")])?;
//! let port = |name: &str, number| (name.to_owned(), ([127, 0, 0, 1], number).into());
//! let ports = [port("http", 8080), port("https", 8443)];
//! let programs = Programs::new();
//! let place = Place { directory: Path::new("/tmp/one"), ports: &ports, programs: &programs };
//! let server = nginx.render(&settings, &place)?;
//! assert_eq!(server.command[0], "/usr/sbin/nginx");
//! assert!(server.files[0].text.contains("listen 127.0.0.1:8080"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod browser;
mod builtin;
mod file;
pub mod java;
pub mod needs;
mod patience;
mod process;
mod server;
mod space;
mod target;
mod task;
mod template;
pub mod then;

pub use browser::BROWSER_FIELDS;
pub use builtin::{builtin, builtin_names};
pub use file::Kind;
pub use process::{Launch, Process, StartFault};
pub use server::{Action, Need, Ready, Server, ServerFile, Signal, Stop, Way};
pub use space::{Space, SpaceFault};
pub use target::{Param, Place, Programs, Settings, Target};
pub use task::{Job, Priority, Task};
