//! Runs the long test with WildFly members that announce themselves, after it has installed what that needs and built
//! the binary.
//!
//! It is no part of `ci`: WildFly is a download of 260 MB, and the run takes minutes. The end-to-end tests play
//! recordings of its announcements.

use std::path::Path;

use crate::needs;
use crate::step::{Steps, cargo};
use crate::test::{self, BINARY};

/// Installs Java, fetches WildFly, builds the binary unless [`BINARY`] names one, and runs the test.
pub(crate) fn run(steps: &mut Steps, root: &Path) -> anyhow::Result<()> {
    steps.run("install what the run needs", || {
        needs::install(&needs::of_tests())?;
        needs::fetch_wildfly()
    })?;
    let binary = test::binary(steps, root)?;
    let example = ["run", "--quiet", "--package", "catamaran-nights"];
    steps.run("two nodes of WildFly come and go", || {
        cargo(root, &example)
            .args(&["--bin", "wildfly_members"])
            .env(BINARY, &binary)
            .finish()
    })
}
