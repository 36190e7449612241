//! Files of a directory as responses.
//!
//! A request passes through these steps, each a module: its path becomes a [`FileName`], or is refused;
//! [`Directory::search`] opens the file beneath the directory, whatever links and renames do meanwhile;
//! [`FileResponse::new`] decides what is sent of it (conditions, ranges, codings); a [`FileBody`] reads it.
//! A [`FileTable`] remembers what was found for a second, small bodies with it; [`TagWork`] makes tags of content.
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
mod table;
mod tags;
mod threads;

pub use body::{FileBody, FileBodyError, FilePart, FilePiece};
pub use config::{EtagRule, FilesConfig, Links};
pub use directory::{Directory, FileQuery, FindError, Finding};
pub use found::{Found, FoundFile, KeptBody};
pub use name::{FileName, NameFault};
pub use open::{Access, OpenError};
pub use response::{FileResponse, FileSending};
pub use table::{FileTable, TableLimits};
pub use tags::TagWork;
pub use threads::{FileThreads, ThreadsBusy, Waiter};
