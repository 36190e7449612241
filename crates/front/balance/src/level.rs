//! Corrects weights so that members come to have their share of an amount: sessions seen, or bytes
//! moved.
//!
//! A member that has less than its share of the amount gets up to twice its weight, one that has
//! more gets down to half of it. So a member that joins is not flooded: it gets its share within
//! the time that sessions live.

use std::time::Duration;

/// The factor that corrects a member's weight, in units of 1/[`ONE`].
///
/// `target` is the amount that the member should have, `own` the one that it has.
#[must_use]
pub(crate) fn factor(target: f64, own: f64) -> u32 {
    // Small numbers are noise: with a handful of sessions weights count as they are.
    let wanted = (target + FEW) / (own + FEW);
    let scaled = (wanted.clamp(0.5, 2.0) * f64::from(ONE)).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between a half and twice ONE"
    )]
    let factor = scaled as u32;
    factor
}

/// An amount that halves in each [`HALF_LIFE`]; it is fed with a total that only grows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DecayingAmount {
    amount: f64,
    total: Option<u64>,
}

impl DecayingAmount {
    /// Adds the growth of `total` since the last call, which was `passed` ago, and returns the
    /// decayed amount. The first call only records the total from which growth counts.
    pub(crate) fn note(&mut self, total: u64, passed: Duration) -> f64 {
        let growth = self.total.map_or(0, |before| total.saturating_sub(before));
        self.total = Some(total);
        let halvings = passed.as_secs_f64() / HALF_LIFE.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a part in 2^52 is no matter")]
        let added = growth as f64;
        self.amount = self.amount * (-halvings).exp2() + added;
        self.amount
    }
}

/// The factor of a weight that is not corrected.
pub(crate) const ONE: u32 = 256;

/// Added to both amounts of the ratio, so that small amounts correct little: they are noise.
const FEW: f64 = 5.0;

/// The time in which an amount decays to half.
const HALF_LIFE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_too_little_gets_more_and_nobody_gets_all() {
        assert_eq!(factor(0.0, 0.0), ONE);
        assert_eq!(factor(3900.0, 0.0), 2 * ONE);
        assert_eq!(factor(3900.0, 5200.0), 192);
        assert_eq!(factor(0.0, 1e12), ONE / 2);
        assert_eq!(factor(2.0, 1.0), 299);
    }

    #[test]
    fn the_past_halves_in_a_minute() {
        let mut bytes = DecayingAmount::default();
        let second = Duration::from_secs(1);
        assert!(
            bytes.note(1 << 40, second) < 1.0,
            "what was before counts not"
        );
        assert!((bytes.note((1 << 40) + 1000, second) - 1000.0).abs() < 1.0);
        let later = bytes.note((1 << 40) + 1000, Duration::from_secs(60));
        assert!((later - 500.0).abs() < 1.0, "{later}");
        // A counter that begins anew takes nothing away.
        assert!((bytes.note(0, Duration::ZERO) - 500.0).abs() < 1.0);
    }
}
