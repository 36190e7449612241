//! The verdict on a sentence. It depends on the direction of a ratio and on counts; sizes of ratios are only shown.

use catamaran_stats::repetition::{Finding, is_same_count, of_direction};

use super::reproduced::ThenFigure;
use super::source::{Direction, Published, Reason};

/// Whether a sentence holds by what the post's own software gives today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThenVerdict {
    Holds,
    DoesNotHold,
    /// It was run, and its result is open.
    Undecided,
    /// The software was not run for this sentence.
    NotRun,
}

/// Whether a sentence holds with today's software.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NowVerdict {
    Holds,
    DoesNotHold,
    Undecided,
    /// The sentence counts what one version does, and today's version does something else.
    OtherVersion,
}

/// The verdict on a sentence, from both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SentenceVerdict {
    HoldsThenAndNow,
    HoldsNow,
    HoldsThen,
    DoesNotHold,
    Undecided,
    NotComparable(Reason),
}

impl SentenceVerdict {
    /// The verdict on a sentence. Undecided results of today do not outweigh what was found with the software of then.
    pub(super) fn of(then: ThenVerdict, now: NowVerdict) -> Self {
        use {NowVerdict as Now, ThenVerdict as Then};
        match (then, now) {
            (Then::Holds, Now::Holds) => Self::HoldsThenAndNow,
            (Then::Holds, Now::Undecided | Now::OtherVersion) => Self::HoldsThen,
            (Then::NotRun | Then::Undecided | Then::DoesNotHold, Now::Holds) => Self::HoldsNow,
            (
                Then::Holds | Then::NotRun | Then::Undecided | Then::DoesNotHold,
                Now::DoesNotHold,
            )
            | (Then::DoesNotHold, Now::Undecided | Now::OtherVersion) => Self::DoesNotHold,
            (Then::NotRun | Then::Undecided, Now::Undecided | Now::OtherVersion) => Self::Undecided,
        }
    }
}

/// Compares the figure of the post's own software with the published one. Without a figure it was not run.
pub(super) fn of_then(published: &Published, figure: Option<ThenFigure>) -> ThenVerdict {
    let Some(figure) = figure else {
        return ThenVerdict::NotRun;
    };
    let (published_value, own_value) = (figure.published.value(), figure.ours.value());
    let holds = match published {
        Published::Ratio(_) | Published::Count(_) => {
            // The published figure has one decimal place, so a difference of half a digit is none.
            (own_value - published_value).abs() <= DIGIT / 2.0
                || is_same_count(published_value, own_value)
        }
        Published::Range([from, to]) => (*from..=*to).contains(&own_value),
        Published::Direction(side) => side.has(own_value),
    };
    if holds {
        ThenVerdict::Holds
    } else {
        ThenVerdict::DoesNotHold
    }
}

/// The verdict on a sentence by results of the post's own software: that of all of their cases if they agree.
pub(super) fn of_then_cases(cases: impl Iterator<Item = NowVerdict>) -> ThenVerdict {
    match weakest(cases) {
        NowVerdict::Holds => ThenVerdict::Holds,
        NowVerdict::DoesNotHold => ThenVerdict::DoesNotHold,
        NowVerdict::Undecided | NowVerdict::OtherVersion => ThenVerdict::Undecided,
    }
}

/// Judges by the ends of our interval whether a ratio lies on the side of 1 that the sentence says. `is_shown` says
/// whether our result remains significant together with the other claims on the measure.
pub(super) fn of_side(side: Direction, ends: [f64; 2], is_shown: bool) -> NowVerdict {
    match of_direction(side == Direction::More, ends) {
        Finding::Holds if is_shown => NowVerdict::Holds,
        Finding::DoesNotHold if is_shown => NowVerdict::DoesNotHold,
        Finding::Holds | Finding::DoesNotHold | Finding::Undecided => NowVerdict::Undecided,
    }
}

/// Judges by our counts whether the published count holds. `is_of_version`: it is the count of one version of the
/// software, which another version cannot refute.
pub(super) fn of_counts(published: f64, counts: &[f64], is_of_version: bool) -> NowVerdict {
    if counts.iter().all(|count| is_same_count(published, *count)) {
        NowVerdict::Holds
    } else if is_of_version {
        NowVerdict::OtherVersion
    } else {
        NowVerdict::DoesNotHold
    }
}

/// Judges by ratios of our counts whether a ratio lies on the side of 1 that the sentence says. A ratio that
/// [`is_same_count`] takes for 1 lies on neither side.
pub(super) fn of_counted_side(side: Direction, ratios: &[f64]) -> NowVerdict {
    let is_so = |ratio: &f64| !is_same_count(1.0, *ratio) && side.has(*ratio);
    if ratios.iter().all(is_so) {
        NowVerdict::Holds
    } else {
        NowVerdict::DoesNotHold
    }
}

/// The verdict on a sentence with several cases: that of all of them if they agree, else undecided.
pub(super) fn weakest(cases: impl Iterator<Item = NowVerdict>) -> NowVerdict {
    let agreed = cases
        .map(Some)
        .reduce(|one, other| one.filter(|it| Some(*it) == other));
    agreed.flatten().unwrap_or(NowVerdict::Undecided)
}

/// The last digit of counts per request that tests publish.
const DIGIT: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_judged_by_its_direction() {
        use NowVerdict::{DoesNotHold, Holds, Undecided};
        for (side, low, high, is_shown, expected) in [
            (Direction::More, 1.45, 1.64, true, Holds),
            (Direction::More, 0.75, 0.79, true, DoesNotHold),
            (Direction::More, 1.23, 1.51, false, Undecided),
            (Direction::More, 0.995, 1.15, false, Undecided),
            (Direction::Less, 0.977, 0.993, true, DoesNotHold),
            (Direction::Less, 0.999, 1.002, true, DoesNotHold),
            (Direction::Less, 0.73, 0.83, true, Holds),
        ] {
            assert_eq!(
                of_side(side, [low, high], is_shown),
                expected,
                "{low}..{high}"
            );
        }
    }

    #[test]
    fn a_count_of_another_version_refutes_nothing() {
        assert_eq!(of_counts(1891.1, &[1680.0], true), NowVerdict::OtherVersion);
        assert_eq!(of_counts(1891.1, &[1680.0], false), NowVerdict::DoesNotHold);
        assert_eq!(of_counts(143.0, &[143.0, 143.0], false), NowVerdict::Holds);
        assert_eq!(
            of_counted_side(Direction::Less, &[1.005]),
            NowVerdict::DoesNotHold
        );
    }

    #[test]
    fn then_and_now_make_one_verdict() {
        let figure = |published, ours| Some(ThenFigure::of(published, ours));
        let then = of_then(&Published::Count(1891.12), figure(1891.1, 1891.0));
        assert_eq!(then, ThenVerdict::Holds);
        assert_eq!(
            SentenceVerdict::of(then, NowVerdict::OtherVersion),
            SentenceVerdict::HoldsThen
        );
        assert_eq!(
            SentenceVerdict::of(ThenVerdict::NotRun, NowVerdict::OtherVersion),
            SentenceVerdict::Undecided
        );
        let other = of_then(&Published::Count(37.55), figure(25.0, 24.0));
        assert_eq!(other, ThenVerdict::DoesNotHold);
    }

    #[test]
    fn cases_that_disagree_decide_nothing() {
        use NowVerdict::{DoesNotHold, Holds, Undecided};
        for (cases, expected) in [
            (vec![Holds, Holds], Holds),
            (vec![DoesNotHold], DoesNotHold),
            (vec![Holds, DoesNotHold], Undecided),
            (vec![Holds, Undecided], Undecided),
            (vec![], Undecided),
        ] {
            assert_eq!(weakest(cases.iter().copied()), expected, "{cases:?}");
        }
    }
}
