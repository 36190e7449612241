//! Runs the program `import_duel`, which searches for requests that pass after `catamaran import` although the old
//! server refused them.

use std::path::Path;

use crate::needs;
use crate::step::{Steps, cargo};
use crate::test::{self, BINARY};

/// Installs the servers, builds the binary unless [`BINARY`] names one, and runs with these options.
pub(crate) fn run(steps: &mut Steps, root: &Path, options: &[&str]) -> anyhow::Result<()> {
    steps.run("install what the run needs", || {
        needs::install(&needs::of_tests())
    })?;
    let binary = test::binary(steps, root)?;
    of_binary(steps, root, Path::new(&binary), options)
}

/// Runs it with a binary that is built and servers that are installed.
pub(crate) fn of_binary(
    steps: &mut Steps,
    root: &Path,
    binary: &Path,
    options: &[&str],
) -> anyhow::Result<()> {
    let duel = [
        "run",
        "--quiet",
        "--package",
        "catamaran-nights",
        "--bin",
        "import_duel",
        "--",
    ];
    steps.run("import duel", || {
        cargo(root, &duel)
            .args(options)
            .env(BINARY, binary)
            .finish()
    })
}
