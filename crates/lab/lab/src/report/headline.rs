//! What a report says first: the published claim, our interval beside it, and a verdict in a word.

use catamaran_stats::repetition::Finding;

use super::claims;
use crate::claim::Outcome;
use crate::experiment::PublishedRatio;
use crate::result::ResultDocument;

/// A published ratio beside ours.
pub(super) struct Headline<'a> {
    /// The claim with its case, in words.
    pub(super) says: String,
    pub(super) published: PublishedRatio,
    /// The lower end of our interval, the ratio, the upper end; `None` if there is no interval.
    pub(super) ours: Option<[f64; 3]>,
    pub(super) finding: Finding,
    /// The verdict on our claim as a sentence; empty if there is no such claim.
    sentence: &'a str,
}

/// The first published ratio of the source's subject; `None` if nothing was published.
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
        // Behind its figure, which stands beside it here.
        says: row
            .says
            .split_once(", ")
            .map_or(&*row.says, |(_, it)| it)
            .to_owned(),
        published,
        ours: None,
        finding: Finding::Open,
        sentence: "",
    })
}

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
    /// The verdict as a sentence, or empty if the answer begins with it.
    pub(super) fn sentence_beside(&self, answer: &str) -> &str {
        if answer.starts_with(self.sentence) {
            ""
        } else {
            self.sentence
        }
    }
}
