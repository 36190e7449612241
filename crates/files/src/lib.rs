//! Files of a directory as responses.
//!
//! A request passes through these steps, each a module: its path becomes a [`FileName`], or is refused;
//! [`Directory::find`] opens the file beneath the directory, whatever links and renames do meanwhile;
//! [`FileResponse::new`] decides what is sent of it (conditions, ranges, codings); a [`FileBody`] reads it.
//!
//! The event loop calls with [`Access::Cached`], which never waits for a disk: what the kernel does not
//! have in memory is asked for again on a thread ([`FileThreads`]). Nothing here knows connections or the
//! configuration file.

#![forbid(unsafe_code)]

mod body;
mod config;
mod directory;
mod found;
mod media;
mod name;
mod open;
mod response;
mod threads;

pub use body::{FileBody, FileBodyError, FilePart, FilePiece};
pub use config::{FilesConfig, Links};
pub use directory::{Directory, FileQuery, FindError};
pub use found::{Found, FoundFile};
pub use name::{FileName, NameFault};
pub use open::{Access, OpenError};
pub use response::{FileResponse, FileSending};
pub use threads::{FileThreads, ThreadsBusy};
