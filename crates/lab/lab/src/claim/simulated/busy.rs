//! A machine on which another program takes a share of the servers' core: what the gate `unsteady` notices there.
//!
//! The other program computes for a second or two, and pauses for as long. While it computes, the servers have half of
//! their core, and a request costs 8 % more. A cold server costs 30 % more than a warm one. Which of the two the rate
//! of a third shows cannot be told; the CPU time of a request tells it.

use std::collections::BTreeMap;

use catamaran_stats::looks::SpentLevel;

use super::{ClaimSides, VALUES, hash, normal};
use crate::facts::{Facts, MachineFacts};
use crate::measure::{CPU, THROUGHPUT};
use crate::run::Run;

/// When the first of the two sides is dearer.
#[derive(Clone, Copy, Debug)]
enum Dearer {
    Never,
    /// In the first third of each span.
    InFirstThird,
    /// From the beginning on, for another time in each run, 0 to 3.4 s of 5 s: the start took longer or shorter.
    AtFirst,
    /// From another moment on in each run, 0.6 to 4.4 s after its beginning.
    Later,
}

impl Dearer {
    /// Whether the value with this index is dearer. `seed` is that of the run.
    fn is_at(self, value: usize, seed: u64) -> bool {
        let drawn = |from: usize, choices: u64| from + (hash(&(seed, "place")) % choices) as usize;
        match self {
            Self::Never => false,
            Self::InFirstThird => value < VALUES / 3,
            Self::AtFirst => value < drawn(0, 18),
            Self::Later => value >= drawn(3, 20),
        }
    }
}

/// A run beside the other program. Its seed is that of the experiment, the cell and the round.
fn run(cell: usize, round: usize, seed: u64, dearer: Dearer) -> Run {
    let seed = hash(&(seed, cell, round));
    let mut is_beside = hash(&(seed, "begins")).is_multiple_of(2);
    let (mut cpu, mut rate) = (Vec::new(), Vec::new());
    for value in 0..VALUES {
        // It changes after eight values in the mean.
        is_beside ^= hash(&(seed, "changes", value)).is_multiple_of(8);
        let level = if dearer.is_at(value, seed) { 1.3 } else { 1.0 };
        let (share, caches) = if is_beside { (0.5, 1.08) } else { (0.0, 1.0) };
        let noise = |what: &str, size: f64| (size * normal((seed, what, value as u64))).exp();
        let cost = level * caches * noise("cpu", 0.02);
        cpu.push(cost);
        rate.push((1.0 - share) / cost * noise("rate", 0.03));
    }
    let mut run = Run {
        cell,
        round,
        thirds: BTreeMap::from(
            [(CPU, &cpu), (THROUGHPUT, &rate)]
                .map(|(name, values)| (name.to_owned(), thirds(values))),
        ),
        ..Run::default()
    };
    run.facts.clients = Some(20);
    run.facts.machine = Some(MachineFacts {
        server_core: Some(0.99),
        ..MachineFacts::default()
    });
    run
}

/// The means of the thirds of a span.
fn thirds(values: &[f64]) -> [f64; 3] {
    let (first, last) = (VALUES / 3, 2 * VALUES / 3);
    let thirds = [&values[..first], &values[first..last], &values[last..]];
    thirds.map(|third| third.iter().sum::<f64>() / third.len() as f64)
}

/// How many of [`TIMES`] claims on a measure are refused. `is_blind`: by the thirds of the measure alone.
fn refused(measure: &str, rounds: usize, dearer: Dearer, is_blind: bool) -> usize {
    let sides = ClaimSides::on(measure);
    let cells = sides.cells();
    let is_refused = |seed: &u64| {
        let mut runs = Vec::new();
        for round in 0..rounds {
            for (number, cell) in cells.iter().enumerate() {
                let dearer = if number == 0 { dearer } else { Dearer::Never };
                let mut run = run(*cell, round, *seed, dearer);
                if is_blind {
                    run.thirds.retain(|name, _| name == measure);
                    run.facts = Facts::default();
                }
                runs.push(run);
            }
        }
        sides.is_refused(&runs, rounds, &SpentLevel::of_one_look())
    };
    (0..TIMES).filter(is_refused).count()
}

/// Where nothing moves but the other program, at most 5 of 100 claims are expected to be refused. A level that is dearer
/// for a part of the span is noticed: in CPU time always, and in throughput, whose thirds alone notice it rarely.
#[test]
fn simulated_levels_beside_another_program_are_told_from_it() {
    for rounds in [6, 12, 20] {
        for measure in [CPU, THROUGHPUT] {
            let of = |dearer: Dearer| {
                [true, false].map(|is_blind| refused(measure, rounds, dearer, is_blind))
            };
            let steady = of(Dearer::Never);
            let [in_third, at_first, later] =
                [Dearer::InFirstThird, Dearer::AtFirst, Dearer::Later].map(of);
            let known = format!(
                "{rounds} {measure}: steady {steady:?}, first third {in_third:?}, at first {at_first:?}, later {later:?}"
            );
            println!("{known} of {TIMES}");
            // More than 12 are as rare as one in 700, if 5 are expected.
            assert!(steady[1] <= 12, "{known}");
            for dearer in [in_third, at_first, later] {
                assert!(dearer[1] >= 70, "{known}");
            }
        }
    }
}

/// Experiments for each number of rounds. All seeds are fixed.
const TIMES: u64 = 100;
