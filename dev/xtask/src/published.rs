//! `docs/published.md`: the five published tests, claim by claim, beside our committed results.
//!
//! What the sources say stands in `crates/lab/lab/published`: the texts of ab and strace as they were printed, and a file for
//! each source with its other numbers and its claims. This module holds each claim against the committed result that
//! answers it. The rules of the verdicts are those of `catamaran_stats::repetition`.

mod evidence;
mod expression;
mod page;
mod source;
mod text;

use std::path::Path;

use self::evidence::{Answer, answer};
use self::source::Claim;
use crate::figures::LabResult;

/// A published claim with the answer of our results.
struct Judged<'a> {
    claim: &'a Claim,
    answer: Answer,
}

/// The page.
///
/// # Errors
///
/// A file of a source that cannot be read or names what is not there, and a committed result without the claim, cell or
/// measure that is to answer.
pub(crate) fn page(root: &Path, results: &[(String, LabResult)]) -> anyhow::Result<String> {
    let sources = source::load(&root.join(FOLDER))?;
    let mut judged = Vec::new();
    for source in &sources {
        let each = source.claims.iter().map(|claim| {
            let answer = answer(source, claim, results)?;
            Ok(Judged { claim, answer })
        });
        judged.push((source, each.collect::<anyhow::Result<Vec<_>>>()?));
    }
    page::write(&judged, results)
}

const FOLDER: &str = "crates/lab/lab/published";

#[cfg(test)]
mod tests;
