//! Simulated duels: two tiers that are up at once, measured in blocks in turn, and what is found of a planted difference.
//!
//! A block's CPU time of a request has four parts of noise: what the start of either tier has brought, what the machine does
//! to neighbouring blocks alike, what a block has of its own, and blocks that other work has hit.

use crate::blocks::mirrored;
use crate::looks::{SpentLevel, looks};
use crate::signed_rank;
use crate::simulation::normal;

/// The deviations of a machine, as logarithms.
#[derive(Clone, Copy, Debug)]
struct DuelNoise {
    /// Of what the machine does to all blocks, the next one being nearly as dear.
    machine: f64,
    /// Of what a block of 300 ms has of its own.
    block: f64,
    /// By how much other work makes one block in twenty dearer.
    hit: f64,
}

/// What became of simulated duels.
#[derive(Clone, Copy, Debug, Default)]
struct DuelRates {
    /// The share that found a difference with starts as the sample.
    by_starts: f64,
    /// The same with pairs of blocks as the sample.
    by_blocks: f64,
    /// The mean number of starts until then, or until the end.
    starts: f64,
}

/// The logarithms of the ratios of a start's pairs of blocks, on a tier that takes `shift` more than the other.
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

/// [`TIMES`] simulated duels of up to [`PLANNED`] starts.
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
        // As many blocks as can be ranked in a test's time.
        let blocks = starts[..BLOCKS_OF].concat();
        found.by_blocks += if signed_rank::p_value(&blocks) <= 0.05 {
            part
        } else {
            0.0
        };
    }
    found
}

/// 500 simulated duels of up to 40 starts with 16 pairs of blocks each. Of two equal tiers 5 % at most are expected to be told
/// apart (more than 7.5 % are as rare as one in 200). With pairs of blocks as the sample it is a third of them where the
/// machine is quiet, because what a start has brought is in all of its blocks.
#[test]
fn equal_tiers_are_rarely_told_apart() {
    let (busy, quiet) = (found(0.0, BUSY), found(0.0, QUIET));
    println!("busy {busy:.3?}, quiet {quiet:.3?}");
    assert!(busy.by_starts <= 0.075 && quiet.by_starts <= 0.075);
    assert!(quiet.by_blocks > 0.25, "{quiet:?}");
}

/// A planted 3 % is found in nearly all of them: beside other work after some 20 starts, which is five minutes of 15 s each.
#[test]
fn three_per_cent_are_found() {
    let shift = 1.03_f64.ln();
    let (busy, quiet) = (found(shift, BUSY), found(shift, QUIET));
    println!("busy {busy:.3?}, quiet {quiet:.3?}");
    assert!(busy.by_starts > 0.97 && busy.starts < 26.0, "{busy:?}");
    assert!(quiet.by_starts > 0.99 && quiet.starts < busy.starts);
}

/// As measured of nginx beside other work, in spans of 300 ms.
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

/// The deviation of what a start of a tier brings, as measured of nginx in spans of a second.
const OF_START: f64 = 0.009;

/// How much of the machine's part a block shares with the one before it.
const KEPT: f64 = 0.7;

const PAIRS: usize = 16;
const PLANNED: usize = 40;

/// The starts whose blocks are taken for a sample.
const BLOCKS_OF: usize = 4;

const TIMES: u64 = 500;
