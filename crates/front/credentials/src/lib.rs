//! Users with hashed passwords, as `htpasswd` writes them to a file, and the Basic scheme of HTTP (RFC 7617).
//!
//! [`Users`] and [`Groups`] are read from the bytes of a file, and all faults are returned at once with their lines.
//! [`BasicCredentials`] are read from the field `Authorization`. [`Users::candidate`] gives the hash for them, of a user
//! or in place of one, so that an unknown user costs as much work as a known one. [`Successes`] remembers passwords
//! that were right, and [`HashQueue`] says whose hash waits for a thread and whose is refused. Reading files, threads,
//! random keys and the time are up to the caller: the last two are arguments.
//!
//! ```
//! use catamaran_credentials::{BasicCredentials, Users};
//!
//! // Made by: htpasswd -nbBC 4 ann secret
//! let file = b"ann:$2y$04$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e.\n";
//! let users = Users::parse(file).expect("no line has a fault");
//! let field = b"Basic YW5uOnNlY3JldA==";
//! let credentials = BasicCredentials::parse(field)?.expect("the scheme is Basic");
//! let candidate = users.candidate(credentials.user());
//! assert!(candidate.verify(credentials.password()));
//! # Ok::<(), catamaran_credentials::BasicFault>(())
//! ```
#![forbid(unsafe_code)]

mod basic;
mod groups;
mod hash;
mod hash_queue;
mod lines;
mod successes;
mod users;

pub use basic::{BasicCredentials, BasicFault, RealmFault, challenge};
pub use groups::Groups;
pub use hash::HashFault;
pub use hash_queue::{HashQueue, HashQueueRefusal};
pub use lines::{FILE_BYTES_MAX, FaultyLine, LineFault};
pub use successes::{SuccessKey, SuccessMac, Successes};
pub use users::{Candidate, Users, UsersWarning};
