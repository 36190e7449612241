//! The answer to an experiment's question, from the verdicts on its claims: the surest and largest first.

use std::cmp::Ordering;

use crate::claim::{Outcome, Verdict, can_only_suggest, number};
use crate::experiment::{Expectation, Levels, label};
use crate::measure::CPU;

/// The answer in a few sentences: the claims that are shown, then those suggested, or why there are
/// none, and the number of open ones. Claims on `subject`, the levels that a source is about, come
/// first.
#[must_use]
pub fn answer(claims: &[Outcome], subject: Option<&Levels>) -> String {
    if claims.is_empty() {
        return "Nothing was claimed.".to_owned();
    }
    let shown = ClaimPhrase::of(claims, subject, |verdict| {
        matches!(verdict, Verdict::Differs | Verdict::DiffersLittle)
    });
    let suggested = ClaimPhrase::of(claims, subject, |verdict| verdict == Verdict::Suggests);
    let mut sentences = Vec::new();
    if !shown.is_empty() {
        sentences.push(list("Shown", &shown));
    }
    if !suggested.is_empty() && shown.len() < TOLD_MAX {
        let first = suggested[0].cases[0];
        let (starts, claims) = (first.sample(), first.question);
        let head = if can_only_suggest(starts, claims) {
            format!(
                "Suggested, since {starts} starts cannot show one of {claims} claims on a measure"
            )
        } else {
            "Suggested".to_owned()
        };
        sentences.push(list(&head, &suggested));
    }
    if sentences.is_empty() && !claims.iter().any(Outcome::is_decided) {
        return none_is_decided(claims);
    }
    sentences.push(counts(claims));
    sentences.join(" ")
}

/// A claim in the answer, with its cases, the one farthest from 1 first.
struct ClaimPhrase<'a> {
    cases: Vec<&'a Outcome>,
}

impl<'a> ClaimPhrase<'a> {
    /// The claims with a case whose verdict `is_wanted` accepts: those about the subject first,
    /// then the farthest from 1.
    fn of(
        claims: &'a [Outcome],
        subject: Option<&Levels>,
        is_wanted: impl Fn(Verdict) -> bool,
    ) -> Vec<Self> {
        let mut phrases: Vec<Self> = Vec::new();
        for case in claims.iter().filter(|claim| is_wanted(claim.verdict)) {
            match phrases.iter_mut().find(|phrase| phrase.has_claim_of(case)) {
                Some(phrase) => phrase.cases.push(case),
                None => phrases.push(Self { cases: vec![case] }),
            }
        }
        for phrase in &mut phrases {
            let cases = &mut phrase.cases;
            cases.sort_by(|one, other| order_of_cases(one, other, subject));
        }
        phrases.sort_by(|one, other| order_of_cases(one.cases[0], other.cases[0], subject));
        phrases
    }

    /// Whether `case` belongs to the same claim and is on the same side of 1.
    fn has_claim_of(&self, case: &Outcome) -> bool {
        let first = self.cases[0];
        first.says == case.says && is_above(first) == is_above(case)
    }

    /// The claim with the ratios of its cases, in words; “against” if the ratio is on the other side of 1 than
    /// expected.
    fn words(&self) -> String {
        let first = self.cases[0];
        let figures = self.cases.iter().take(CASES_MAX).map(|case| {
            let mut words = figure(case);
            if !case.each.is_empty() {
                words += &format!(" at {}", label(&case.each));
            }
            words
        });
        let mut figures = figures.collect::<Vec<_>>().join(", ");
        if let more @ 1.. = self.cases.len().saturating_sub(CASES_MAX) {
            figures += &format!(" and {more} more");
        }
        if is_against(first) {
            format!("against “{}” {figures}", first.says)
        } else {
            format!("{} {figures}", first.says)
        }
    }
}

/// The order of two cases: one of the subject comes first, then one on CPU time, then the one farther from 1.
fn order_of_cases(one: &Outcome, other: &Outcome, subject: Option<&Levels>) -> Ordering {
    let has_other_levels = |case: &Outcome| {
        let Some(subject) = subject else {
            return false;
        };
        let mut each = case.each.iter();
        each.any(|(name, level)| subject.get(name) != Some(level))
    };
    let by_subject = has_other_levels(one).cmp(&has_other_levels(other));
    let is_not_on_cpu = |case: &Outcome| case.measure.base() != CPU;
    let by_measure = is_not_on_cpu(one).cmp(&is_not_on_cpu(other));
    by_subject
        .then(by_measure)
        .then_with(|| farther(one, other))
}

/// Compares two claims by the end of the interval that is nearer to 1, so that a wide interval does not come first.
fn farther(one: &Outcome, other: &Outcome) -> Ordering {
    let distance = |claim: &Outcome| match (claim.low, claim.high) {
        (Some(low), Some(high)) => low.ln().abs().min(high.ln().abs()),
        _ => 0.0,
    };
    distance(other).total_cmp(&distance(one))
}

fn is_above(claim: &Outcome) -> bool {
    claim.ratio.is_some_and(|ratio| ratio > 1.0)
}

/// Whether the ratio is on the other side of 1 than was expected.
fn is_against(claim: &Outcome) -> bool {
    match claim.expect {
        Expectation::More => !is_above(claim),
        Expectation::Less => is_above(claim),
        Expectation::Same => matches!(claim.verdict, Verdict::Differs | Verdict::Suggests),
    }
}

/// The ratio with its interval; empty if there is none.
fn figure(claim: &Outcome) -> String {
    match (claim.ratio, claim.low, claim.high) {
        (Some(ratio), Some(low), Some(high)) => {
            format!("×{} [{}..{}]", number(ratio), number(low), number(high))
        }
        _ => String::new(),
    }
}

fn list(head: &str, phrases: &[ClaimPhrase<'_>]) -> String {
    let first = phrases.iter().take(TOLD_MAX).map(ClaimPhrase::words);
    let words = first.collect::<Vec<_>>().join("; ");
    format!("{head}: {words}{}.", and_more(phrases.len()))
}

/// The words on the claims after the first ones, if there are `count` in all.
fn and_more(count: usize) -> String {
    match count.saturating_sub(TOLD_MAX) {
        0 => String::new(),
        more => format!("; and {more} more"),
    }
}

/// Why no claim is decided, for the first ones; those that a gate forbids come first.
fn none_is_decided(claims: &[Outcome]) -> String {
    let mut open: Vec<&Outcome> = claims.iter().collect();
    open.sort_by_key(|claim| claim.verdict != Verdict::NoClaim);
    let first = open.into_iter().take(TOLD_MAX).map(why_open);
    let words = first.collect::<Vec<_>>().join("; ");
    let count = claims.len();
    format!(
        "0 of {count} claims are decided: {words}{}.",
        and_more(count)
    )
}

/// An open claim: what it says, its ratio, and why it is open.
fn why_open(claim: &Outcome) -> String {
    let mut words = claim.says.clone();
    if !claim.each.is_empty() {
        words += &format!(" ({})", label(&claim.each));
    }
    let figure = figure(claim);
    if !figure.is_empty() {
        words += &format!(" {figure}");
    }
    let why = match (claim.verdict, claim.forbidden_by()) {
        (Verdict::NoClaim, Some(gate)) => format!("forbidden by `{gate}`"),
        (Verdict::TooFew, _) => format!("too few starts, {}", claim.sample()),
        (verdict, _) => verdict.word().to_owned(),
    };
    format!("{words}, {why}")
}

/// A sentence on how many claims came as expected.
fn counts(claims: &[Outcome]) -> String {
    let count = |as_expected| {
        let claims = claims.iter().map(|claim| claim.as_expected);
        claims.filter(|other| *other == as_expected).count()
    };
    let (held, failed, open) = (count(Some(true)), count(Some(false)), count(None));
    let all = claims.len();
    if open == all {
        return format!("All {all} claims are open.");
    }
    format!("Of {all} claims {held} came as expected, {failed} did not, {open} are open.")
}

/// The most claims of each kind in an answer.
const TOLD_MAX: usize = 3;

/// The most cases of a claim in an answer.
const CASES_MAX: usize = 2;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::gate::{Effect, GateFinding};
    use crate::measure::Measure;

    fn claim(says: &str, verdict: Verdict, ratio: f64, expect: Expectation) -> Outcome {
        Outcome {
            says: says.to_owned(),
            measure: Measure::parse("cpu").unwrap(),
            each: [].into(),
            ratio: Some(ratio),
            low: Some(ratio * 0.95),
            high: Some(ratio * 1.05),
            ratios: vec![ratio; 6],
            starts: vec![ratio; 6],
            p: 0.03,
            holm: false,
            question: 3,
            bias: 0.0,
            left_out: BTreeMap::new(),
            verdict,
            sentence: format!("No difference shown: {says}."),
            expect,
            as_expected: None,
            published: None,
            planted: None,
            gates: Vec::new(),
            survivors: Vec::new(),
        }
    }

    #[test]
    fn the_surest_and_largest_comes_first() {
        let mut claims = vec![
            claim("A is faster", Verdict::NotShown, 1.0, Expectation::More),
            claim("B is faster", Verdict::Suggests, 1.2, Expectation::More),
            claim("C is slower", Verdict::Suggests, 0.25, Expectation::Less),
        ];
        assert_eq!(
            answer(&claims, None),
            "Suggested, since 6 starts cannot show one of 3 claims on a measure: C is slower ×0.25 [0.24..0.26]; B is \
             faster ×1.20 [1.14..1.26]. All 3 claims are open."
        );
        claims[0].verdict = Verdict::Differs;
        claims[0].ratio = Some(0.5);
        claims[0].as_expected = Some(false);
        let told = answer(&claims, None);
        assert!(
            told.starts_with("Shown: against “A is faster” ×0.50"),
            "{told}"
        );
        assert!(
            told.ends_with("0 came as expected, 1 did not, 2 are open."),
            "{told}"
        );
    }

    #[test]
    fn cases_of_a_claim_stand_together() {
        let at = |server: &str, ratio| Outcome {
            each: serde_json::from_value(serde_json::json!({ "server": server })).unwrap(),
            ..claim("Saves CPU", Verdict::Suggests, ratio, Expectation::Less)
        };
        let told = answer(
            &[at("httpd", 0.8), at("nginx", 0.3), at("front", 2.0)],
            None,
        );
        assert!(
            told.contains(
                "Saves CPU ×0.30 [0.28..0.32] at server=nginx, ×0.80 [0.76..0.84] at server=httpd; against \
                 “Saves CPU” ×2.00"
            ),
            "{told}"
        );
    }

    #[test]
    fn what_the_source_was_about_comes_first() {
        let at = |says: &str, server: &str, ratio| Outcome {
            each: serde_json::from_value(serde_json::json!({ "server": server })).unwrap(),
            ..claim(says, Verdict::Differs, ratio, Expectation::Less)
        };
        let claims = [
            at("Saves CPU", "nginx", 0.2),
            at("Saves CPU", "prefork", 0.8),
            at("Saves memory", "nginx", 0.1),
        ];
        let subject = serde_json::json!({ "server": "prefork", "keep": "off" });
        let subject: Levels = serde_json::from_value(subject).unwrap();
        let told = answer(&claims, Some(&subject));
        assert!(
            told.starts_with("Shown: Saves CPU ×0.80 [0.76..0.84] at server=prefork, ×0.20"),
            "{told}"
        );
        assert!(answer(&claims, None).starts_with("Shown: Saves memory"));
    }

    #[test]
    fn cpu_time_comes_before_what_follows_from_it() {
        let rate = Outcome {
            measure: Measure::parse("throughput").unwrap(),
            ..claim("Is faster", Verdict::Differs, 4.0, Expectation::More)
        };
        let cpu = claim("Saves CPU", Verdict::Differs, 0.5, Expectation::Less);
        let told = answer(&[rate, cpu], None);
        assert!(told.starts_with("Shown: Saves CPU ×0.50"), "{told}");
    }

    #[test]
    fn a_difference_speaks_against_none() {
        let same = claim("Costs nothing", Verdict::Suggests, 3.0, Expectation::Same);
        assert!(
            answer(std::slice::from_ref(&same), None).contains("against “Costs nothing” ×3.00")
        );
        let little = Outcome {
            verdict: Verdict::DiffersLittle,
            ..same
        };
        assert!(answer(&[little], None).starts_with("Shown: Costs nothing ×3.00"));
    }

    #[test]
    fn if_nothing_is_shown_it_says_why() {
        let mut claims = vec![
            claim("A", Verdict::NotShown, 1.0, Expectation::More),
            claim("B", Verdict::NoClaim, 1.0, Expectation::More),
        ];
        claims[1].sentence = "No claim: others took 31 %.".to_owned();
        let gate = GateFinding::new("foreign", Effect::Machine, "others took 31 %.");
        claims[1].gates.push(gate);
        assert_eq!(
            answer(&claims, None),
            "0 of 2 claims are decided: B ×1.000 [0.95..1.05], forbidden by `foreign`; A ×1.000 [0.95..1.05], not shown."
        );
        claims.pop();
        assert!(answer(&claims, None).starts_with("0 of 1 claims are decided: A ×1.000"));
        assert_eq!(answer(&[], None), "Nothing was claimed.");
    }
}
