//! Whether memory of our servers was counted with a program's pages, which the load shares with them.

use super::{Effect, Fired};
use crate::run::MemoryCount;

/// Fires on a claim on memory that was counted as `count`, if one of its servers is the program that drives the load.
#[must_use]
pub fn check(count: MemoryCount, is_ours: bool) -> Option<Fired> {
    (is_ours && count == MemoryCount::Proportional).then(|| {
        let words = "Memory was counted as PSS: our servers run the same file as the load, so that pages of the program \
                     counted for them in part.";
        Fired::new("shared-pages", Effect::Claim, words)
    })
}
