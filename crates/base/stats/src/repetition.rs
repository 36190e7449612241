//! Whether a repetition bears out what was published.
//!
//! A published direction or range is held against our interval of 95 %. A published ratio is of single runs, so it is held
//! against what one more start of ours would give, [`next_start`]: an interval of a centre gets as narrow as one likes, and
//! then refutes each single run. What has no interval, because servers were started too seldom or a gate forbids the claim,
//! decides nothing: that is the caller's [`Finding::Open`].

use crate::estimate::student;
use crate::spread::Spread;

/// The result of comparing a repetition with a published figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The figure came out here, too.
    Reproduced,
    /// The figure did not come out here.
    Refuted,
    /// The repetition does not decide it.
    Open,
}

/// The ratio that one more start of servers would have with a probability of 95 %, from the ratios of those that there were:
/// Student's prediction interval of their logarithms. `None` of fewer than six, and of ratios that are not above 0.
#[must_use]
pub fn next_start(starts: &[f64]) -> Option<[f64; 2]> {
    let logs: Vec<f64> = starts.iter().map(|ratio| ratio.ln()).collect();
    if logs.len() < STARTS_MIN || logs.iter().any(|log| !log.is_finite()) {
        return None;
    }
    let spread = Spread::of(&logs)?;
    let count = logs.len() as f64;
    let reach = student(count) * spread.stddev * (1.0 + 1.0 / count).sqrt();
    Some([(spread.mean - reach).exp(), (spread.mean + reach).exp()])
}

/// A published ratio of single runs beside what one more start of ours would have, `low` to `high`; `is_decided`: our own
/// claim is.
///
/// Outside of that it is refuted. Inside it is reproduced if our claim is decided and no start is expected at 1, or none
/// farther than [`MARGIN`] from the published ratio: what holds the ratio and no difference as well decides nothing.
#[must_use]
pub fn of_ratio(published: f64, [low, high]: [f64; 2], is_decided: bool) -> Finding {
    if published < low || published > high {
        return Finding::Refuted;
    }
    let is_near = low * MARGIN >= published && high <= published * MARGIN;
    let excludes_none = low > 1.0 || high < 1.0;
    if is_decided && (is_near || excludes_none) {
        Finding::Reproduced
    } else {
        Finding::Open
    }
}

/// What several cases of one sentence come to: the weakest of their findings. They must agree.
#[must_use]
pub fn weakest(findings: &[Finding]) -> Finding {
    match findings {
        [first, others @ ..] if others.iter().all(|it| it == first) => *first,
        _ => Finding::Open,
    }
}

/// A published range of ratios beside the interval `low` to `high` of ours: reproduced if it holds the whole interval,
/// refuted if it holds nothing of it.
#[must_use]
pub fn of_range([from, to]: [f64; 2], [low, high]: [f64; 2]) -> Finding {
    match (low >= from && high <= to, high < from || low > to) {
        (true, _) => Finding::Reproduced,
        (_, true) => Finding::Refuted,
        _ => Finding::Open,
    }
}

/// A published direction beside the interval `low` to `high` of ours; `is_more`: the ratio is said to be above 1.
///
/// An interval on the other side of 1 refutes it, and so does one that lies within [`MARGIN`] of 1.
#[must_use]
pub fn of_direction(is_more: bool, [low, high]: [f64; 2]) -> Finding {
    let is_said = if is_more { low > 1.0 } else { high < 1.0 };
    let is_against = if is_more { high < 1.0 } else { low > 1.0 };
    let is_none = low * MARGIN > 1.0 && high < MARGIN;
    match (is_said, is_against || is_none) {
        (true, _) => Finding::Reproduced,
        (_, true) => Finding::Refuted,
        _ => Finding::Open,
    }
}

/// A published count beside ours from `low` to `high`, of bytes or calls for a request: a count has no noise of a clock,
/// so it is reproduced within [`COUNT_MARGIN`] and refuted beyond.
#[must_use]
pub fn of_count(published: f64, [low, high]: [f64; 2]) -> Finding {
    if low / COUNT_MARGIN <= published && published <= high * COUNT_MARGIN {
        Finding::Reproduced
    } else {
        Finding::Refuted
    }
}

/// The fewest starts that tell how far one is from another.
const STARTS_MIN: usize = 6;

/// Ratios that differ by no more than this factor are the same.
pub const MARGIN: f64 = 1.05;

/// Counts that differ by no more than this factor are the same.
pub const COUNT_MARGIN: f64 = 1.01;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::normal;

    #[test]
    fn one_more_start_is_predicted() {
        let starts = [1.0, 1.1, 1.2, 1.1, 1.0, 1.2];
        let [low, high] = next_start(&starts).unwrap();
        assert!(
            (low - 0.877).abs() < 0.01 && (high - 1.373).abs() < 0.01,
            "{low} {high}"
        );
        assert_eq!(next_start(&starts[..5]), None);
        assert_eq!(next_start(&[0.0, 1.0, 1.0, 1.0, 1.0, 1.0]), None);
    }

    /// One more start lies within the interval in 93 to 96 % of 4,000 simulations, also if one in twelve is five times as far
    /// off.
    #[test]
    fn simulated_starts_lie_where_they_were_predicted() {
        for is_spoilt in [false, true] {
            for count in [6, 12, 20] {
                let within = (0..4000).filter(|seed| {
                    let mut random = fastrand::Rng::with_seed(*seed);
                    let mut start = || {
                        let far = if is_spoilt && random.u8(0..12) == 0 {
                            5.0
                        } else {
                            1.0
                        };
                        (0.05 * far * normal(&mut random)).exp()
                    };
                    let starts: Vec<f64> = (0..count).map(|_| start()).collect();
                    let [low, high] = next_start(&starts).unwrap();
                    (low..=high).contains(&start())
                });
                let share = within.count() as f64 / 4000.0;
                println!("{count} starts, spoilt: {is_spoilt}: {share:.3}");
                assert!((0.93..=0.96).contains(&share), "{count} {share}");
            }
        }
    }

    #[test]
    fn a_ratio_outside_the_interval_is_refuted() {
        for (published, low, high, expected) in [
            (3.21, 0.93, 1.39, Finding::Refuted),
            (0.774, 0.71, 0.72, Finding::Refuted),
            (1.30, 1.20, 1.40, Finding::Reproduced),
            (1.30, 0.95, 1.40, Finding::Open),
            (1.01, 0.99, 1.02, Finding::Reproduced),
            (1.01, 0.70, 1.50, Finding::Open),
        ] {
            let finding = of_ratio(published, [low, high], true);
            assert_eq!(finding, expected, "{published}");
            // What our own claim leaves open is not reproduced.
            let open = of_ratio(published, [low, high], false);
            assert_eq!(open == Finding::Refuted, expected == Finding::Refuted);
            assert_ne!(open, Finding::Reproduced);
        }
    }

    #[test]
    fn the_weakest_case_decides() {
        use Finding::{Open, Refuted, Reproduced};
        for (cases, expected) in [
            (vec![Reproduced, Reproduced], Reproduced),
            (vec![Refuted], Refuted),
            (vec![Reproduced, Open], Open),
            (vec![Reproduced, Refuted], Open),
            (vec![], Open),
        ] {
            assert_eq!(weakest(&cases), expected, "{cases:?}");
        }
    }

    #[test]
    fn a_range_holds_the_interval_or_nothing_of_it() {
        let range = [1.1, 1.5];
        assert_eq!(of_range(range, [1.2, 1.4]), Finding::Reproduced);
        assert_eq!(of_range(range, [0.9, 1.05]), Finding::Refuted);
        assert_eq!(of_range(range, [1.77, 1.83]), Finding::Refuted);
        assert_eq!(of_range(range, [1.0, 1.2]), Finding::Open);
    }

    #[test]
    fn a_direction_is_refuted_by_the_other_side_and_by_no_difference() {
        for (is_more, low, high, expected) in [
            (true, 1.02, 1.4, Finding::Reproduced),
            (true, 0.7, 0.9, Finding::Refuted),
            (true, 0.98, 1.02, Finding::Refuted),
            (true, 0.9, 1.4, Finding::Open),
            (false, 0.71, 0.72, Finding::Reproduced),
            (false, 1.002, 1.003, Finding::Refuted),
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
        assert_eq!(of_count(143.0, [143.0, 143.0]), Finding::Reproduced);
        assert_eq!(
            of_count(1.019_27, [1.021_77, 1.021_77]),
            Finding::Reproduced
        );
        assert_eq!(of_count(487.1, [598.0, 598.0]), Finding::Refuted);
        assert_eq!(of_count(37.55, [21.0, 21.9]), Finding::Refuted);
    }
}
