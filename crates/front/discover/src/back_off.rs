//! Pauses between questions to a source: longer after failures, and never the same for all fronts.

use std::time::Duration;

/// How long to wait after this number of failures in a row.
pub(crate) fn back_off(failures: u32) -> Duration {
    // The first pause is `PAUSE_MIN`; each further failure doubles it, five times at most.
    let factor = 1_u32 << failures.saturating_sub(1).min(5);
    (PAUSE_MIN * factor).min(PAUSE_MAX)
}

/// Varies a pause by up to a tenth, so that fronts that were started together do not ask together. `random` is
/// from 0 to 1.
pub(crate) fn spread(pause: Duration, random: f64) -> Duration {
    pause.mul_f64(0.9 + 0.2 * random)
}

const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_spread_and_grow_after_failures() {
        let seconds = Duration::from_secs;
        assert_eq!(spread(seconds(100), 0.0), seconds(90));
        assert_eq!(spread(seconds(100), 1.0), seconds(110));
        let pauses: Vec<u64> = (1..8).map(|it| back_off(it).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(back_off(u32::MAX), seconds(30));
    }
}
