//! Whether a repetition confirms what was published.
//!
//! What was published is a sentence with a direction: one side has more, or less, of something. It is compared with our
//! interval of 95 %, not with our size: the size of a single run refutes nothing. If there is no interval, because
//! servers were started too seldom or a gate forbids the claim, the caller reports [`Finding::Undecided`].

/// The result of comparing a repetition with a published sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The repetition confirms the sentence.
    Holds,
    /// The repetition contradicts the sentence.
    DoesNotHold,
    /// The repetition neither confirms nor contradicts the sentence.
    Undecided,
}

/// Compares a published direction with our interval, `low` to `high`, of the ratio. `is_more`: the ratio was said to be
/// above 1.
///
/// The sentence does not hold if the interval lies on the other side of 1, or within [`MARGIN`] of 1: such a small
/// difference counts as none.
#[must_use]
pub fn of_direction(is_more: bool, [low, high]: [f64; 2]) -> Finding {
    let is_within_margin = low * MARGIN > 1.0 && high < MARGIN;
    let (is_above, is_below) = (low > 1.0, high < 1.0);
    let (is_as_said, is_opposite) = if is_more {
        (is_above, is_below)
    } else {
        (is_below, is_above)
    };
    if is_within_margin || is_opposite {
        Finding::DoesNotHold
    } else if is_as_said {
        Finding::Holds
    } else {
        Finding::Undecided
    }
}

/// Whether two counts, of bytes or calls per request, are the same: they may differ by [`COUNT_MARGIN`], because counts
/// do not depend on a clock.
#[must_use]
pub fn is_same_count(published: f64, ours: f64) -> bool {
    ours / COUNT_MARGIN <= published && published <= ours * COUNT_MARGIN
}

/// Ratios that differ by no more than this factor are the same.
pub const MARGIN: f64 = 1.05;

/// Counts that differ by no more than this factor are the same.
pub const COUNT_MARGIN: f64 = 1.01;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_does_not_hold_on_the_other_side_or_without_a_difference() {
        for (is_more, low, high, expected) in [
            (true, 1.02, 1.4, Finding::Holds),
            (true, 0.7, 0.9, Finding::DoesNotHold),
            (true, 0.98, 1.02, Finding::DoesNotHold),
            (true, 0.9, 1.4, Finding::Undecided),
            (false, 0.71, 0.72, Finding::Holds),
            (false, 1.002, 1.003, Finding::DoesNotHold),
            (false, 0.977, 0.993, Finding::DoesNotHold),
        ] {
            assert_eq!(
                of_direction(is_more, [low, high]),
                expected,
                "{low}..{high}"
            );
        }
    }

    #[test]
    fn a_count_is_the_same_within_a_hundredth() {
        assert!(is_same_count(143.0, 143.0) && is_same_count(0.0, 0.0));
        assert!(is_same_count(1.019_27, 1.021_77));
        assert!(!is_same_count(487.1, 598.0) && !is_same_count(37.55, 21.9));
    }
}
