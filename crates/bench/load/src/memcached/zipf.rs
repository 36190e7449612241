//! Draws ranks by Zipf's law without a table, by rejection-inversion (Hörmann and Derflinger,
//! "Rejection-inversion to generate variates from monotone discrete distributions", 1996).
//!
//! The probability of rank k, from 1 to n, is proportional to 1/k^s. The area under the curve of
//! x^-s is inverted, which gives a rank that is rarely rejected, whatever n is.

use std::num::NonZeroU64;

/// Zipf's distribution over ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zipf {
    ranks: f64,
    exponent: f64,
    /// The bounds of the random area: the area up to 1.5 less the first rank's own, and the area up
    /// to the last rank's end.
    area_first: f64,
    area_last: f64,
    /// A rank closer to the inverted place than this distance is accepted at once.
    near: f64,
}

impl Zipf {
    /// The distribution over ranks 1 to `ranks`, with an exponent above zero.
    pub(super) fn new(ranks: NonZeroU64, exponent: f64) -> Self {
        let ranks = ranks.get() as f64;
        let mut zipf = Self {
            ranks,
            exponent,
            area_first: 0.0,
            area_last: 0.0,
            near: 0.0,
        };
        // The curve's height at the first rank is 1, and so is the area of its own.
        zipf.area_first = zipf.area(1.5) - 1.0;
        zipf.area_last = zipf.area(ranks + 0.5);
        zipf.near = 2.0 - zipf.place(zipf.area(2.5) - zipf.height(2.0));
        zipf
    }

    /// Draws a rank, from 1: inverts a random area, rounds the place to a rank, and draws again if it is rejected.
    pub(super) fn rank(&self, random: &mut fastrand::Rng) -> u64 {
        loop {
            let area = self.area_last + random.f64() * (self.area_first - self.area_last);
            let place = self.place(area);
            let rank = (place + 0.5).floor().clamp(1.0, self.ranks);
            // Else the area must lie in the last part of the rank's, which is as large as the rank's height.
            if rank - place <= self.near || area >= self.area(rank + 0.5) - self.height(rank) {
                return rank as u64;
            }
        }
    }

    /// The curve's height at `x`: x^-s.
    fn height(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// The area under the curve from 1 to x: (x^(1-s) - 1) / (1 - s), or ln x.
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        let power = (1.0 - self.exponent) * log;
        if power.abs() < TINY {
            log * (1.0 + power / 2.0)
        } else {
            log * power.exp_m1() / power
        }
    }

    /// The x up to which the area under the curve is `area`: the inverse of [`Self::area`].
    fn place(&self, area: f64) -> f64 {
        // Rounding may yield less than -1, where the logarithm does not exist.
        let power = (area * (1.0 - self.exponent)).max(-1.0);
        if power.abs() < TINY {
            (area * (1.0 - power / 2.0)).exp()
        } else {
            (area * power.ln_1p() / power).exp()
        }
    }
}

/// The absolute value below which a series is more exact than the quotient.
const TINY: f64 = 1e-8;

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts of 400,000 ranks are within five standard deviations of what the law says.
    #[test]
    fn ranks_are_as_often_as_the_law_says() {
        const DRAWS: u32 = 400_000;
        for exponent in [0.5, 0.99, 1.0, 1.2, 2.5] {
            let zipf = Zipf::new(NonZeroU64::new(50).unwrap(), exponent);
            let mut random = fastrand::Rng::with_seed(5);
            let mut counts = [0_u32; 50];
            for _ in 0..DRAWS {
                counts[zipf.rank(&mut random) as usize - 1] += 1;
            }
            let weight = |rank: usize| (rank as f64).powf(-exponent);
            let all: f64 = (1..=50).map(weight).sum();
            for (rank, count) in (1..).zip(counts) {
                let share = weight(rank) / all;
                let expected = f64::from(DRAWS) * share;
                let deviation = (expected * (1.0 - share)).sqrt();
                let off = (f64::from(count) - expected).abs();
                assert!(
                    off < 5.0 * deviation.max(1.0),
                    "s={exponent}, rank {rank}: {count}, {expected:.1} expected"
                );
            }
        }
    }

    #[test]
    fn one_key_and_very_many() {
        let mut random = fastrand::Rng::with_seed(1);
        let one = Zipf::new(NonZeroU64::MIN, 1.0);
        assert!((0..100).all(|_| one.rank(&mut random) == 1));
        let ranks = NonZeroU64::new(1 << 40).unwrap();
        let many = Zipf::new(ranks, 0.99);
        let drawn: Vec<u64> = (0..1000).map(|_| many.rank(&mut random)).collect();
        assert!(drawn.iter().all(|rank| (1..=ranks.get()).contains(rank)));
        assert!(drawn.contains(&1) && drawn.iter().any(|rank| *rank > 1 << 30));
    }
}
