//! Runs the program `bad_day`, after it has installed what that needs and built the binary.
//!
//! It is no part of `ci`, because it takes minutes. It shows how the front fares beside nginx and HAProxy.

use std::path::Path;

use crate::needs;
use crate::step::{Steps, cargo};
use crate::test::{self, BINARY};

/// Installs the servers, builds the binary unless [`BINARY`] names one, and runs the program of the bad day.
pub(crate) fn run(steps: &mut Steps, root: &Path) -> anyhow::Result<()> {
    steps.run("install what the run needs", || {
        needs::install(&needs::of_tests())
    })?;
    let binary = test::binary(steps, root)?;
    let example = ["run", "--quiet", "--package", "catamaran-nights"];
    steps.run("a bad day", || {
        cargo(root, &example)
            .args(&["--bin", "bad_day"])
            .env(BINARY, &binary)
            .finish()
    })
}
