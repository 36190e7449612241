//! What reports of any form say of claims, and of what was published.

use crate::claim::{Outcome, Verdict, can_only_suggest, number};
use crate::experiment::label;
use crate::gate::Fired;
use crate::result::ResultDocument;

/// The levels of its case in words; empty if it has one case alone.
pub(super) fn case(claim: &Outcome) -> String {
    label(&claim.each)
}

/// A claim and its case.
pub(super) fn named(claim: &Outcome) -> String {
    match case(claim) {
        none if none.is_empty() => claim.says.clone(),
        case => format!("{} ({case})", claim.says),
    }
}

/// Ratio and interval.
pub(super) fn ratio(claim: &Outcome) -> String {
    match (claim.ratio, claim.low, claim.high) {
        (Some(ratio), Some(low), Some(high)) => {
            format!("{} [{}..{}]", number(ratio), number(low), number(high))
        }
        _ => String::new(),
    }
}

/// The published ratio.
pub(super) fn published(claim: &Outcome) -> String {
    claim.published.map_or_else(String::new, number)
}

/// Gates that the sentence has not named yet.
pub(super) fn gates(claim: &Outcome) -> impl Iterator<Item = &Fired> {
    let is_new = |fired: &&Fired| !claim.sentence.contains(&fired.words);
    claim.gates.iter().filter(is_new)
}

/// What is to be known of all claims together; empty if there is nothing.
pub(super) fn remark(result: &ResultDocument) -> String {
    let suggested = result
        .claims
        .iter()
        .filter(|claim| claim.verdict == Verdict::Suggests);
    let starts = suggested.map(Outcome::sample).max();
    let claims = result.claims.len();
    match starts {
        Some(starts) if can_only_suggest(starts, claims) => format!(
            "“Suggests”: the interval excludes 1, but among {claims} claims chance alone may do that in \
             {starts} starts of servers. More of them can show it."
        ),
        _ => String::new(),
    }
}

/// What none of the published figures can carry, if there are several.
pub(super) fn shared(result: &ResultDocument) -> Vec<&Fired> {
    let [first, others @ ..] = &result.published[..] else {
        return Vec::new();
    };
    if others.is_empty() {
        return Vec::new();
    }
    let is_shared = |fired: &&Fired| others.iter().all(|run| run.found.contains(fired));
    first.found.iter().filter(is_shared).collect()
}
