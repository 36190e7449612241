//! The beginning of a report: the published ratio, our interval, and a verdict.

use catamaran_stats::repetition::Finding;

use super::claims;
use crate::claim::Outcome;
use crate::experiment::PublishedRatio;
use crate::result::ResultDocument;

/// A published ratio, and our result for it.
pub(super) struct Headline<'a> {
    /// The claim with its case, in words.
    pub(super) says: String,
    pub(super) published: PublishedRatio,
    /// Our ratio between the ends of its interval: lower end, ratio, upper end. `None` if there is no interval.
    pub(super) ours: Option<[f64; 3]>,
    pub(super) finding: Finding,
    /// The verdict on our claim as a sentence; empty if there is no claim for it.
    sentence: &'a str,
}

/// The headline of a report: the first published ratio that is about the source's subject; else that of the first claim
/// with one; else that of a table's row without a claim. `None` if no ratio was published.
pub(super) fn headline(result: &ResultDocument) -> Option<Headline<'_>> {
    let subject = result.subject()?;
    let is_of_subject = |claim: &&Outcome| {
        let mut each = claim.each.iter();
        each.all(|(name, level)| subject.get(name) == Some(level))
    };
    let with_ratio = || {
        let claims = result.claims.iter();
        claims.filter(|claim| claim.published.is_some())
    };
    if let Some(claim) = with_ratio().find(is_of_subject) {
        return of_claim(claim);
    }
    if let Some(claim) = with_ratio().next() {
        return of_claim(claim);
    }
    let row = result.published.iter().find(|row| row.ratio.is_some())?;
    // The words before the comma are the figure, which the headline shows itself.
    let says = match row.says.split_once(", ") {
        Some((_, says)) => says,
        None => &row.says,
    };
    Some(Headline {
        says: says.to_owned(),
        published: row.ratio?,
        ours: None,
        finding: Finding::Undecided,
        sentence: "",
    })
}

/// The headline for a claim with a published ratio; `None` if it has none, or there is no finding on it.
fn of_claim(claim: &Outcome) -> Option<Headline<'_>> {
    let ours = match (claim.low, claim.ratio, claim.high) {
        (Some(low), Some(ratio), Some(high)) => Some([low, ratio, high]),
        _ => None,
    };
    Some(Headline {
        says: claims::named(claim),
        published: claim.published?,
        ours,
        finding: claim.finding()?,
        sentence: &claim.sentence,
    })
}

impl Headline<'_> {
    /// The verdict as a sentence; empty if `answer` begins with it already.
    pub(super) fn sentence_beside(&self, answer: &str) -> &str {
        if answer.starts_with(self.sentence) {
            ""
        } else {
            self.sentence
        }
    }
}
