//! Compares our front, nginx and httpd as servers of files.
//!
//! ```text
//! cargo run -p catamaran-nights --bin files -- answers > docs/files-answers.md
//! cargo run --release -p catamaran-nights --bin files -- cold [SECONDS]
//! ```
//!
//! `answers` sends the requests of the tests to each server, and prints the page about the differences; it fails at a
//! difference without a reason. `cold` measures small pages while a file is read from a slow disk: it needs root and
//! a controller of block devices (cgroup v1 `blkio`, or v2 `io`), and prints what is missing. Both need nginx and
//! httpd (`cargo xtask needs`). The binary is that of `CATAMARAN_BIN`, else the newest in the target directory.

#![expect(clippy::print_stdout, reason = "its output is the page")]

mod answers;
mod cold;
mod reasons;
mod server;
mod throttle;

use std::time::Duration;

use anyhow::bail;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("answers"), None) => answers::page(),
        (Some("cold"), None) => cold::table(Duration::from_secs(5)),
        (Some("cold"), Some(seconds)) => cold::table(Duration::from_secs(seconds.parse()?)),
        _ => bail!("usage: files answers | files cold [SECONDS]"),
    }
}
