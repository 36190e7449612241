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

/// The headline of a report: the first published ratio that is about the source's subject. `None` if there is none.
pub(super) fn headline(result: &ResultDocument) -> Option<Headline<'_>> {
    let subject = result.subject()?;
    let is_of_subject = |claim: &&Outcome| {
        let mut each = claim.each.iter();
        each.all(|(name, level)| subject.get(name) == Some(level))
    };
    let published = || result.claims.iter().filter(|it| it.published.is_some());
    let claim = published()
        .find(is_of_subject)
        .or_else(|| published().next());
    if let Some(claim) = claim {
        return of_claim(claim);
    }
    let rows = result.published.iter();
    let (row, published) = rows.filter_map(|row| Some((row, row.ratio?))).next()?;
    Some(Headline {
        // The words after the figure, which the headline shows itself.
        says: row
            .says
            .split_once(", ")
            .map_or(&*row.says, |(_, it)| it)
            .to_owned(),
        published,
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
