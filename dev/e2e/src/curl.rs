//! curl, as a client that is not part of this project.

use std::process::Command;

/// curl with options by which it prints only the response and its errors, and gives up after a minute. The caller
/// adds options and URLs.
#[must_use]
pub fn curl() -> Command {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--max-time", "60"]);
    curl
}
