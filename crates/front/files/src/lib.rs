//! Serves files of a directory as responses.
//!
//! A request passes through these steps, each a module: its path becomes a [`FileName`], or is refused;
//! [`Directory::search`] opens the file beneath the directory, however links and renames change meanwhile;
//! [`FileResponse::new`] decides which bytes are sent (conditions, ranges, codings); a [`FileBody`] reads them. A
//! [`FileTable`] keeps what was found for a second, and small bodies; [`TagWork`] makes entity tags of content.
//!
//! The event loop calls with [`Access::Cached`], which never waits for a disk: if the kernel does not have the
//! data in memory, the call is repeated on a thread ([`FileThreads`]). Nothing here knows connections or the
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
