//! curl, a client that tests did not write.

use std::process::Command;

/// A curl that prints the response and its errors, nothing else, and gives up after a minute. The
/// caller adds options and URLs.
#[must_use]
pub fn curl() -> Command {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--max-time", "60"]);
    curl
}
