//! Simulated duels: two tiers that run at once are measured in alternating blocks, and a difference was planted.
//!
//! The CPU time per request of a block has four parts of noise: one of each start of a tier, one of the machine, which
//! neighbouring blocks share, one of the block itself, and one of blocks that other work has hit.

use crate::blocks::mirrored;
use crate::looks::{SpentLevel, looks};
use crate::signed_rank;
use crate::simulation::normal;

/// The standard deviations of the parts of the noise, as logarithms of ratios.
#[derive(Clone, Copy, Debug)]
struct DuelNoise {
    /// The machine's part, which neighbouring blocks mostly share.
    machine: f64,
    /// The part of a block of 300 ms itself.
    block: f64,
    /// The amount by which other work increases one block in twenty.
    hit: f64,
}

/// The results of simulated duels.
#[derive(Clone, Copy, Debug, Default)]
struct DuelRates {
    /// The share of duels that found a difference, if each start is one value of the sample.
    by_starts: f64,
    /// The same, if each pair of blocks is one value of the sample.
    by_blocks: f64,
    /// The mean number of starts until the difference was found, or until the duel ended without one.
    starts: f64,
}

/// The pairs of blocks of one start, as logarithms of ratios; the first tier takes `shift` more than the second.
fn pairs(random: &mut fastrand::Rng, shift: f64, noise: DuelNoise) -> Vec<f64> {
    let of_start = [0, 1].map(|_| OF_START * normal(random));
    let mut machine = noise.machine * normal(random);
    let orders = mirrored(2, PAIRS, random.u64(..));
    let pair = |order: Vec<usize>| {
        let mut values = [0.0; 2];
        for tier in order {
            let fresh = noise.machine * normal(random);
            machine = KEPT * machine + (1.0 - KEPT * KEPT).sqrt() * fresh;
            let own = noise.block * normal(random);
            let hit = if random.u8(0..20) == 0 {
                noise.hit
            } else {
                0.0
            };
            values[tier] = of_start[tier] + machine + own + hit;
        }
        shift + values[0] - values[1]
    };
    orders.into_iter().map(pair).collect()
}

/// Simulates [`TIMES`] duels of up to [`PLANNED`] starts each.
fn found(shift: f64, noise: DuelNoise) -> DuelRates {
    let planned = looks(PLANNED);
    let level = |look: &usize| SpentLevel::at(*look, PLANNED).level(0.05);
    let levels: Vec<f64> = planned.iter().map(level).collect();
    let mut found = DuelRates::default();
    let part = 1.0 / TIMES as f64;
    for seed in 0..TIMES {
        let mut random = fastrand::Rng::with_seed(seed);
        let starts: Vec<Vec<f64>> = (0..PLANNED)
            .map(|_| pairs(&mut random, shift, noise))
            .collect();
        let ratio = |pairs: &Vec<f64>| signed_rank::estimate(pairs);
        let sample: Vec<f64> = starts.iter().filter_map(ratio).collect();
        let is_shown =
            |(look, level): (&usize, &f64)| signed_rank::p_value(&sample[..*look]) <= *level;
        let first = planned.iter().zip(&levels).position(is_shown);
        found.by_starts += first.map_or(0.0, |_| part);
        found.starts += first.map_or(PLANNED, |look| planned[look]) as f64 * part;
        // Only so many blocks can be ranked in the time of a test.
        let blocks = starts[..BLOCKS_OF].concat();
        found.by_blocks += if signed_rank::p_value(&blocks) <= 0.05 {
            part
        } else {
            0.0
        };
    }
    found
}

/// 500 simulated duels of up to 40 starts with 16 pairs of blocks each. Of duels between equal tiers at most 5 % should
/// find a difference (more than 7.5 % happen once in 200 times). If pairs of blocks are the sample, on a quiet machine
/// a third of them do, because all blocks of a start share that start's noise.
#[test]
fn equal_tiers_are_rarely_told_apart() {
    let (busy, quiet) = (found(0.0, BUSY), found(0.0, QUIET));
    println!("busy {busy:.3?}, quiet {quiet:.3?}");
    assert!(busy.by_starts <= 0.075 && quiet.by_starts <= 0.075);
    assert!(quiet.by_blocks > 0.25, "{quiet:?}");
}

/// A planted difference of 3 % is found in nearly all duels: beside other work after some 20 starts, which take five
/// minutes at 15 s each.
#[test]
fn three_per_cent_are_found() {
    let shift = 1.03_f64.ln();
    let (busy, quiet) = (found(shift, BUSY), found(shift, QUIET));
    println!("busy {busy:.3?}, quiet {quiet:.3?}");
    assert!(busy.by_starts > 0.97 && busy.starts < 26.0, "{busy:?}");
    assert!(quiet.by_starts > 0.99 && quiet.starts < busy.starts);
}

/// The noise of nginx beside other work, as measured in spans of 300 ms.
const BUSY: DuelNoise = DuelNoise {
    machine: 0.10,
    block: 0.06,
    hit: 0.2,
};

const QUIET: DuelNoise = DuelNoise {
    machine: 0.01,
    block: 0.016,
    hit: 0.0,
};

/// The standard deviation of a start's noise, as measured of nginx in spans of a second.
const OF_START: f64 = 0.009;

/// The correlation of the machine's part between neighbouring blocks.
const KEPT: f64 = 0.7;

const PAIRS: usize = 16;
const PLANNED: usize = 40;

/// The number of starts whose blocks are the sample of `by_blocks`.
const BLOCKS_OF: usize = 4;

const TIMES: u64 = 500;
