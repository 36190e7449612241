//! Two nodes of WildFly join a front by themselves, serve, suspend, leave and come back. Each step is judged; the
//! program exits with 1 if one fails.
//!
//! ```text
//! cargo xtask wildfly-members
//! ```
//!
//! The front, with its listener for nodes, is at 10.77.0.1. `node1` at 10.77.0.2 is reached over AJP13, `node2` at
//! 10.77.0.3 over HTTP/1.1. Each is in a network namespace of its own; one bridge connects them. They learn of the
//! front only by its multicast. It takes some six minutes, at most [`MINUTES_MAX`], and needs root. Times in the
//! transcript are not judged, because the machine may do other work, too.
//!
//! WildFly must have been fetched, which the command does. The binary is that of `CATAMARAN_BIN`, else the newest in
//! the target directory.

#![expect(clippy::print_stdout, reason = "its output is the transcript")]

mod hostile;
mod network;
mod node;
mod standing;
mod story;
mod transcript;
mod visitor;

use std::process::ExitCode;

use catamaran_nights::namespaces;

fn main() -> ExitCode {
    namespaces::main(MINUTES_MAX, || story::run().map(|verdict| verdict.print()))
}

const MINUTES_MAX: u32 = 25;
