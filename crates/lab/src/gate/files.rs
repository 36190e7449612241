//! Whether one process may have as many files open as the largest cell needs.

use catamaran_gauge::limits::Limit;

use super::{Effect, Fired};

/// The limit of open files among `limits`, if it is too low to begin.
#[must_use]
pub fn check(limits: &[Limit]) -> Option<Fired> {
    let files = limits.iter().find(|limit| limit.name == OPEN_FILES)?;
    (!files.suffices()).then(|| {
        let words = format!(
            "{} open files are allowed, {} are needed: {}",
            files.value, files.need, files.command
        );
        Fired::new("files", Effect::Refuse, words)
    })
}

/// As gauge names it.
const OPEN_FILES: &str = "open files";
