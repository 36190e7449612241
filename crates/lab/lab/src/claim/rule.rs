//! The rule by which claims are decided, as docs/lab.md states it under "How a claim is decided".
//!
//! This module tests the ratios of starts, and corrects for several claims. Other modules compute the ratios and apply
//! the gates.

use std::collections::BTreeMap;

use catamaran_stats::looks::SpentLevel;
pub(super) use catamaran_stats::ratio::RatioInterval;
use catamaran_stats::ratio::RatioTest;
use catamaran_stats::{order, ratio, signed_rank};

use crate::experiment::{ERA, Level, Levels};
use crate::measure::Measure;

/// Tests the ratios of `starts`. `spent` is the part of the error probability that this look may spend; `bias` is the
/// logarithm by which the true ratio may be farther off.
pub(super) fn test(starts: &[f64], spent: &SpentLevel, bias: f64) -> RatioTest {
    ratio::test(starts, LEVEL, spent, bias)
}

/// The interval of a ratio that no claim is about, such as a change within the span; it is not corrected for several
/// looks.
pub(super) fn interval(starts: &[f64]) -> Option<RatioInterval> {
    test(starts, &SpentLevel::of_one_look(), 0.0).interval
}

/// What claims are decided together: those on the same measure, on software of the same era.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Question<'a> {
    /// The measure's name without a server.
    measure: &'a str,
    /// The level of the factor `era`; `None`: the claims compare eras, or there is no such factor.
    era: Option<&'a Level>,
}

impl<'a> Question<'a> {
    /// The question of a claim on `measure` in the case `each`.
    pub(super) fn of(measure: &'a Measure, each: &'a Levels) -> Self {
        Self {
            measure: measure.base(),
            era: each.get(ERA),
        }
    }
}

/// A case that is corrected together with the other cases of its question.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contender<'a> {
    pub(super) question: Question<'a>,
    /// Whether the source has published a ratio for this case, with the levels that the source is about.
    pub(super) is_of_source: bool,
    /// The p value: see [`RatioTest`].
    pub(super) p: f64,
}

/// Whether each case holds together with the other cases of its question. The first case of a question that the source
/// is about is its headline, and is tested first.
pub(super) fn hold(contenders: &[Contender<'_>]) -> Vec<bool> {
    let mut questions: BTreeMap<Question<'_>, Vec<usize>> = BTreeMap::new();
    for (number, contender) in contenders.iter().enumerate() {
        questions
            .entry(contender.question)
            .or_default()
            .push(number);
    }
    let mut holds = vec![false; contenders.len()];
    for numbers in questions.into_values() {
        let p_values: Vec<f64> = numbers.iter().map(|number| contenders[*number].p).collect();
        let headline = numbers
            .iter()
            .position(|number| contenders[*number].is_of_source);
        let holds_together = order::holm_with_headline(&p_values, headline, LEVEL);
        for (number, does_hold) in numbers.into_iter().zip(holds_together) {
            holds[number] = does_hold;
        }
    }
    holds
}

/// Whether each p value holds together with the others on the same measure.
pub(crate) fn hold_by_measure<'a>(p_values: impl Iterator<Item = (&'a Measure, f64)>) -> Vec<bool> {
    let contenders = p_values.map(|(measure, p)| Contender {
        question: Question {
            measure: measure.base(),
            era: None,
        },
        is_of_source: false,
        p,
    });
    hold(&contenders.collect::<Vec<_>>())
}

/// The least number of starts for an interval.
pub(super) fn starts_min(spent: &SpentLevel) -> usize {
    signed_rank::count_min(1.0 - spent.level(1.0 - LEVEL))
}

/// Whether so few starts cannot show a difference together with the other claims of a question, even if all starts
/// agree.
pub(crate) fn can_only_suggest(starts: usize, claims: usize) -> bool {
    signed_rank::p_value_min(starts) * claims as f64 > 1.0 - LEVEL
}

/// The confidence level of intervals, and of all claims of a question together.
pub(crate) const LEVEL: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_starts_may_not_suffice_for_several_claims() {
        assert!(!can_only_suggest(6, 1) && can_only_suggest(6, 2) && !can_only_suggest(12, 99));
    }

    #[test]
    fn questions_do_not_weaken_each_other() {
        let contender = |measure, is_of_source, p| Contender {
            question: Question { measure, era: None },
            is_of_source,
            p,
        };
        let all = [
            contender("cpu", false, 0.02),
            contender("throughput", false, 0.04),
            contender("cpu", true, 0.031),
            contender("memory", false, 0.04),
            contender("throughput", false, 0.04),
        ];
        assert_eq!(hold(&all), [true, false, true, true, false]);
        assert!(hold(&[]).is_empty());
        // Of three claims that would not hold together, one is on other software.
        let then = Level::Text("then".to_owned());
        let mut by_era = [contender("cpu", false, 0.02), contender("cpu", false, 0.04)];
        assert_eq!(hold(&by_era), [true, true]);
        by_era[0].p = 0.03;
        assert_eq!(hold(&by_era), [false, false]);
        by_era[0].question.era = Some(&then);
        assert_eq!(hold(&by_era), [true, true]);
    }
}
