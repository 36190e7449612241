//! Runs the long test with Payara, after it has installed what that needs and built the binary.
//!
//! It is no part of `ci`: Payara is a download of 90 MB. The end-to-end tests check what it found by scripted
//! containers.

use std::path::Path;

use crate::needs;
use crate::step::{Steps, cargo};
use crate::test::{self, BINARY};

/// Installs Java and Apache, fetches Payara, builds the binary unless [`BINARY`] names one, and runs the test.
pub(crate) fn run(steps: &mut Steps, root: &Path) -> anyhow::Result<()> {
    steps.run("install what the run needs", || {
        needs::install(&needs::of_tests())?;
        needs::fetch_payara()
    })?;
    let binary = test::binary(steps, root)?;
    let siege = ["run", "--quiet", "--package", "catamaran-nights"];
    steps.run("requests to Payara", || {
        cargo(root, &siege)
            .args(&["--bin", "siege", "--", "payara"])
            .env(BINARY, &binary)
            .finish()
    })
}
