//! The invariants of the code base that neither rustc nor clippy can see.
//!
//! Each check is a function from plain data (a source file, a dependency graph, a text) to
//! problems, and has a test that makes it fail. A problem names the place, what is wrong, and what
//! to do. The rules themselves are written down in ARCHITECTURE.md and CONTRIBUTING.md.

mod arrows;
mod closed;
mod code;
mod drawing;
mod imports;
mod layers;
mod named_tests;
pub(crate) mod names;
mod order;
mod project;
mod shape;
pub(crate) mod source;

use std::path::Path;
use std::{fmt, fs};

use anyhow::bail;

use crate::graph::Graph;
use crate::step::say;
use crate::{figures, fuzz};

/// A rule that is violated at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    /// The place: a path with a line if possible, or a crate.
    place: String,
    what: String,
}

impl Problem {
    fn new(place: impl fmt::Display, what: impl Into<String>) -> Self {
        Self {
            place: place.to_string(),
            what: what.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Checks all rules, and prints every problem.
///
/// # Errors
/// There is a problem.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let sources = source::load(root)?;
    let graph = Graph::load(root)?;
    let mut problems = arrows::check(&graph);
    problems.extend(drawing::check(root, &graph)?);
    problems.extend(layers::check(root, &sources)?);
    for source in &sources {
        problems.extend(shape::check(source));
        problems.extend(closed::check(source));
        problems.extend(code::check(source));
        problems.extend(imports::check(source));
        problems.extend(order::check(source));
    }
    problems.extend(shape::check_allowances(&sources));
    problems.extend(code::check_forbidden_unsafe(&sources));
    problems.extend(names::check(&sources));
    problems.extend(project::check(root)?);
    let security = fs::read_to_string(root.join("docs/security.md")).unwrap_or_default();
    problems.extend(named_tests::check(&security, &sources));
    for page in figures::stale(root)? {
        let what = "has figures that no committed result has: run `cargo xtask figures`";
        problems.push(Problem::new(page, what));
    }
    for line in figures::untraced(root)? {
        let what = format!("has a figure outside the table of committed results: {line:?}");
        problems.push(Problem::new("README.md", what));
    }
    if let Err(error) = fuzz::check_lock(root) {
        problems.push(Problem::new("dev/fuzz/Cargo.lock", format!("{error:#}")));
    }
    for problem in &problems {
        say(&format!("error: {problem}"));
    }
    if !problems.is_empty() {
        bail!("{} problems", problems.len());
    }
    say(&format!("{} source files are tidy", sources.len()));
    Ok(())
}
