//! The beginning of a report: the published ratio, our interval, and a verdict.

use super::claims;
use crate::claim::{Outcome, UNDECIDED};
use crate::experiment::{ERA, PublishedRatio, are_alike_but_for_era};
use crate::result::ResultDocument;

/// A published ratio, and our result for it.
pub(super) struct Headline<'a> {
    /// The claim with its case, in words.
    pub(super) says: String,
    pub(super) published: PublishedRatio,
    /// Our ratio between the ends of its interval: lower end, ratio, upper end. `None` if there is no interval.
    pub(super) ours: Option<[f64; 3]>,
    /// Whether the published sentence holds here, in one or two words.
    pub(super) word: &'static str,
    /// The verdict on our claim as a sentence; empty if there is no claim for it.
    sentence: &'a str,
}

/// The headlines of a report: the first claim with a published ratio that is about the source's subject, else the first
/// claim with one, in each era that it has; else the first row of a table without a claim. Empty if no ratio was
/// published.
pub(super) fn headlines(result: &ResultDocument) -> Vec<Headline<'_>> {
    let Some(subject) = result.subject() else {
        return Vec::new();
    };
    let is_of_subject = |claim: &&&Outcome| {
        let mut each = claim.each.iter();
        each.all(|(name, level)| name == ERA || subject.get(name) == Some(level))
    };
    let claims = result.claims.iter();
    let with_ratio: Vec<&Outcome> = claims.filter(|claim| claim.published.is_some()).collect();
    let of_subject = with_ratio.iter().find(is_of_subject);
    if let Some(first) = of_subject.or_else(|| with_ratio.first()) {
        let is_same = |claim: &&&Outcome| {
            claim.says == first.says
                && claim.measure == first.measure
                && are_alike_but_for_era(&claim.each, &first.each)
        };
        let in_eras = with_ratio.iter().filter(is_same);
        return in_eras.filter_map(|claim| of_claim(claim)).collect();
    }
    of_row(result).into_iter().collect()
}

/// The headline for the first published ratio that is in a table, without a claim.
fn of_row(result: &ResultDocument) -> Option<Headline<'_>> {
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
        word: UNDECIDED,
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
        word: claim.finding_word(),
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
