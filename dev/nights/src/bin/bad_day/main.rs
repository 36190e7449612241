//! A bad day of an operator, before real Tomcats: the name server dies, one Tomcat hangs, is killed, comes back with
//! another secret, the disk of the logs is full, clients take all connections, and an expired certificate is
//! installed. nginx and HAProxy get the same events as the front. The program prints how many requests failed at each
//! server, and what `catamaran status` reported within 5 s. It exits with 1 if a criterion is not met.
//!
//! ```text
//! cargo xtask bad-day
//! ```
//!
//! It needs root, Tomcat, nginx, HAProxy and curl (`cargo xtask needs`), and takes five and a half minutes, at most
//! [`MINUTES_MAX`]. The network, mounts and processes are its own. The binary is that of `CATAMARAN_BIN`, else the newest
//! in the target directory.

#![expect(clippy::print_stdout, reason = "its output is the report")]

#[path = "../siege/client.rs"]
#[expect(
    dead_code,
    reason = "a module of the sieges, of which this needs the kept connection"
)]
mod client;
mod event;
mod servers;
mod stage;
mod story;
mod visitors;

use std::process::ExitCode;

use catamaran_nights::namespaces;

fn main() -> ExitCode {
    namespaces::main(MINUTES_MAX, || story::run().map(|verdict| verdict.print()))
}

const MINUTES_MAX: u32 = 12;
