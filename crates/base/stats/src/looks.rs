//! Levels for looking at an experiment before it is over.
//!
//! A test at 5 % after every few pairs, which stops at the first difference, finds one in a fifth of all experiments
//! that have none. So the 5 % are divided among the looks: up to each look, the square of its share of the planned
//! pairs may be used, little at first and most at the end (Lan and DeMets 1983, with a power function). The level of
//! each look follows numerically from the distribution of a sum of independent normal values, because looks at the same
//! pairs mostly agree (Armitage, McPherson and Rowe 1969). The tests simulate how often true and false differences are
//! found at these levels.

/// The number of pairs at the first look.
pub const FIRST: usize = 8;

/// The number of pairs between two looks.
pub const STEP: usize = 4;

/// The largest number of pairs that can be planned.
pub const PLANNED_MAX: usize = 60;

/// The looks at an experiment of `planned` pairs: after 8, 12, 16, …, and at the end.
#[must_use]
pub fn looks(planned: usize) -> Vec<usize> {
    let mut looks: Vec<usize> = (FIRST..planned).step_by(STEP).collect();
    looks.push(planned);
    looks
}

/// The level of the last of several looks.
#[derive(Clone, Debug, PartialEq)]
pub struct SpentLevel {
    /// Pairs of two probabilities, from high to low: that of a false finding at any of the looks, and the level of the
    /// last look for it. Empty for a single look, whose level is the probability itself.
    levels: Vec<[f64; 2]>,
}

impl SpentLevel {
    /// The level of an experiment that is looked at once, at its end.
    #[must_use]
    pub fn of_one_look() -> Self {
        Self { levels: Vec::new() }
    }

    /// The level of the look at `pairs` of `planned` pairs, after the looks that precede it.
    #[must_use]
    pub fn at(pairs: usize, planned: usize) -> Self {
        let mut looks: Vec<usize> = looks(planned);
        looks.retain(|look| *look < pairs);
        if looks.is_empty() && pairs >= planned {
            return Self::of_one_look();
        }
        looks.push(pairs);
        let pairs_max = planned.max(pairs) as f64;
        let shares: Vec<f64> = looks.iter().map(|look| *look as f64 / pairs_max).collect();
        let mut levels = Vec::new();
        for halvings in 0..LEVELS {
            let all = LEVEL_MAX * 0.5_f64.powi(halvings);
            levels.push([all, level_of_last(&shares, all)]);
        }
        Self { levels }
    }

    /// The level of this look, if all looks together may report a false difference with the probability `all`.
    #[must_use]
    pub fn level(&self, all: f64) -> f64 {
        self.between(all, [0, 1])
    }

    /// The p value of all looks together, if the last look alone has the p value `p`.
    #[must_use]
    pub fn p_value(&self, p: f64) -> f64 {
        self.between(p, [1, 0]).min(1.0)
    }

    /// Looks up `value` in the column `from` and returns the value of the column `to`: interpolated by the logarithms
    /// between two rows, and proportional to the nearest row beyond the first and the last.
    fn between(&self, value: f64, [from, to]: [usize; 2]) -> f64 {
        let (Some(first), Some(last)) = (self.levels.first(), self.levels.last()) else {
            return value;
        };
        let proportional = |row: &[f64; 2]| value * row[to] / row[from];
        if value >= first[from] {
            return proportional(first);
        }
        // The rows are from high to low.
        let mut pairs = self.levels.windows(2);
        let Some([high, low]) = pairs.find(|pair| value >= pair[1][from]) else {
            return proportional(last);
        };
        let place = (value / low[from]).ln() / (high[from] / low[from]).ln();
        low[to] * (high[to] / low[to]).powf(place)
    }
}

/// The level of the last look, if all looks together may report a false difference with the probability `all`. `shares`
/// are the looks' shares of the planned pairs.
fn level_of_last(shares: &[f64], all: f64) -> f64 {
    let mut spent = 0.0;
    let mut bound = 0.0;
    let mut last_density: Option<SumDensity> = None;
    let mut last_share = 0.0;
    for share in shares {
        // What the looks so far have not spent of what may be spent up to this one.
        let to_spend = all * share.powi(2) - spent;
        spent += to_spend;
        // The standard deviation of what the pairs since the last look add to the sum.
        let step = (share - last_share).sqrt();
        let probability_beyond = |bound: f64| match &last_density {
            None => two_sided(bound / step),
            Some(density) => density.beyond(bound, step),
        };
        bound = bisected(to_spend, &probability_beyond);
        let density_at = |sum: f64| match &last_density {
            None => normal_density(sum / step) / step,
            Some(density) => density.after(sum, step),
        };
        let density = SumDensity::within(bound, density_at);
        last_density = Some(density);
        last_share = *share;
    }
    two_sided(bound / last_share.sqrt())
}

/// The density of a sum of normal values that was within its bounds at each look so far.
struct SumDensity {
    /// Equidistant sums, each with its density times its weight in Simpson's rule.
    points: Vec<[f64; 2]>,
}

impl SumDensity {
    /// The density at equidistant sums from -`bound` to `bound`.
    fn within(bound: f64, density: impl Fn(f64) -> f64) -> Self {
        let width = 2.0 * bound / (POINTS - 1) as f64;
        let mut points = Vec::with_capacity(POINTS);
        for number in 0..POINTS {
            let sum = -bound + width * number as f64;
            // Simpson's rule weights the points 1, 4, 2, 4, …, 2, 4, 1.
            let is_end = number == 0 || number == POINTS - 1;
            let weight = match number % 2 {
                _ if is_end => 1.0,
                1 => 4.0,
                _ => 2.0,
            };
            points.push([sum, density(sum) * weight * width / 3.0]);
        }
        Self { points }
    }

    /// The density of `sum` after a further normal value with the standard deviation `step` was added.
    fn after(&self, sum: f64, step: f64) -> f64 {
        let density = |before: f64| normal_density((sum - before) / step) / step;
        let points = self.points.iter();
        points.map(|[before, part]| part * density(*before)).sum()
    }

    /// The probability that the sum lies beyond `bound`, on either side, after such a value was added.
    fn beyond(&self, bound: f64, step: f64) -> f64 {
        let one_sided = |distance: f64| two_sided_of(distance / step) / 2.0;
        let either = |before: f64| one_sided(bound - before) + one_sided(bound + before);
        let points = self.points.iter();
        points.map(|[before, part]| part * either(*before)).sum()
    }
}

/// The bound at which the decreasing function `beyond` has the value `value`.
fn bisected(value: f64, beyond: &dyn Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, BOUND_MAX);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if beyond(middle) > value {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

fn normal_density(value: f64) -> f64 {
    (-value * value / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

/// The probability that a normal value is farther from 0 than `value`, which is not negative.
fn two_sided(value: f64) -> f64 {
    two_sided_of(value.abs())
}

/// As [`two_sided`], continued to negative values as 2 - f(-value): the complementary error function, with a relative
/// error of at most 1.2e-7 (a Chebyshev fit of Press et al.).
fn two_sided_of(value: f64) -> f64 {
    let x = value.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x);
    let fit = ERFC.iter().rev().fold(0.0, |sum, factor| sum * t + factor);
    let tail = t * (fit - x * x).exp();
    if value < 0.0 { 2.0 - tail } else { tail }
}

const ERFC: [f64; 10] = [
    -1.265_512_23,
    1.000_023_68,
    0.374_091_96,
    0.096_784_18,
    -0.186_288_06,
    0.278_868_07,
    -1.135_203_98,
    1.488_515_87,
    -0.822_152_23,
    0.170_872_77,
];

/// The number of levels computed: from 0.2 to some 1e-5, each half of the one before.
const LEVELS: i32 = 15;
const LEVEL_MAX: f64 = 0.2;

/// The number of points of a density; Simpson's rule needs an odd number.
const POINTS: usize = 81;

/// The largest bound, in standard deviations of all planned pairs together. No computed level needs a larger one.
const BOUND_MAX: f64 = 8.0;
const HALVINGS: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signed_rank;
    use crate::simulation::normal;

    #[test]
    fn looks_are_four_pairs_apart() {
        assert_eq!(looks(6), [6]);
        assert_eq!(looks(8), [8]);
        assert_eq!(looks(12), [8, 12]);
        assert_eq!(looks(18), [8, 12, 16, 18]);
        assert_eq!(looks(PLANNED_MAX).len(), 14);
    }

    #[test]
    fn the_normal_distribution_is_that_of_the_tables() {
        for (value, expected) in [
            (0.0, 1.0),
            (1.0, 0.317_310_5),
            (1.959_964, 0.05),
            (3.290_527, 0.001),
            (4.891_638, 1e-6),
        ] {
            let found = two_sided(value);
            assert!((found / expected - 1.0).abs() < 1e-5, "{value} {found}");
        }
        assert!((two_sided_of(-1.0) - 1.682_689_5).abs() < 1e-6);
    }

    /// Two looks at halves, of which each has the level 0.0294, find what is not there in 5 % together (Pocock 1977).
    #[test]
    fn levels_are_those_of_the_literature() {
        let first = two_sided(2.178);
        let density = SumDensity::within(2.178 * 0.5_f64.sqrt(), |sum| {
            normal_density(sum / 0.5_f64.sqrt()) / 0.5_f64.sqrt()
        });
        let second = density.beyond(2.178, 0.5_f64.sqrt());
        assert!((first + second - 0.05).abs() < 1e-4, "{first} {second}");
    }

    #[test]
    fn one_look_spends_nothing_before() {
        let one = SpentLevel::at(12, 12);
        let (first, last) = (SpentLevel::at(8, 12).level(0.05), one.level(0.05));
        assert!(
            (first - 0.05 * (8.0_f64 / 12.0).powi(2)).abs() < 1e-4,
            "{first}"
        );
        assert!(last > first && last < 0.05, "{last}");
        assert_eq!(SpentLevel::at(6, 6), SpentLevel::of_one_look());
        assert_eq!(SpentLevel::of_one_look().level(0.05), 0.05);
        // There and back again.
        for level in [0.3, 0.05, 0.003, 1e-7] {
            let back = one.p_value(one.level(level));
            assert!((back / level - 1.0).abs() < 1e-6, "{level} {back}");
        }
        // Rounds that were interrupted, and more than were planned.
        assert!(SpentLevel::at(10, 12).level(0.05) < last);
        assert!(SpentLevel::at(14, 12).level(0.05) < 0.05);
    }

    /// The share of simulated experiments of at most 60 pairs in which a difference was found, the mean number of pairs,
    /// and the share in which it is found if every look has 5 %.
    fn found(shift: f64) -> [f64; 3] {
        let planned = looks(PLANNED_MAX);
        let levels: Vec<f64> = planned
            .iter()
            .map(|look| SpentLevel::at(*look, PLANNED_MAX).level(0.05))
            .collect();
        let mut sums = [0.0; 3];
        for seed in 0..TIMES {
            let mut random = fastrand::Rng::with_seed(seed);
            let pairs: Vec<f64> = (0..PLANNED_MAX)
                .map(|_| shift + normal(&mut random))
                .collect();
            let p = planned
                .iter()
                .map(|look| signed_rank::p_value(&pairs[..*look]));
            let p: Vec<f64> = p.collect();
            let first = p.iter().zip(&levels).position(|(p, level)| p <= level);
            sums[0] += if first.is_some() { 1.0 } else { 0.0 };
            sums[1] += first.map_or(PLANNED_MAX, |look| planned[look]) as f64;
            sums[2] += if p.iter().any(|p| *p <= 0.05) {
                1.0
            } else {
                0.0
            };
        }
        sums.map(|sum| sum / TIMES as f64)
    }

    /// 500 simulated experiments of up to 14 looks. Without a difference 5 % at most are expected to find one (more than
    /// 7.5 % are as rare as one in 200), where 5 % at each look find one in a fifth. A difference of 4 % beside a deviation
    /// of 5 % is found in all of them, after 22 pairs in the mean.
    #[test]
    fn spent_levels_find_what_is_there_and_little_else() {
        let none = found(0.0);
        let some = found(1.04_f64.ln() / 0.05);
        println!("none {none:.3?}, some {some:.3?}");
        assert!(none[0] <= 0.075 && none[2] > 0.15, "{none:?}");
        assert!(some[0] > 0.99 && some[1] < 24.0, "{some:?}");
    }

    const TIMES: u64 = 500;
}
