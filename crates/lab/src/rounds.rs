//! Rounds: each has every cell once, in random order; the next one is its mirror.

use std::sync::atomic::{AtomicBool, Ordering};

use catamaran_stats::blocks;

use crate::claim;
use crate::drive::{DriveFault, Driver, Left};
use crate::experiment::{Experiment, ROUNDS_MAX};
use crate::gate::Fired;
use crate::run::Run;

/// What somebody who waits is told.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A run begins.
    Begins {
        /// The round, counted from 1.
        round: usize,
        /// Of so many.
        rounds: usize,
        /// The run's place in it, counted from 1.
        place: usize,
        /// The cell.
        cell: usize,
    },
    /// A run has ended.
    Ended(&'a Run),
    /// Intervals are still wide: there will be so many rounds.
    Extended(usize),
}

/// How rounds ended.
#[derive(Debug)]
pub struct Rounds {
    /// All runs, void ones included.
    pub runs: Vec<Run>,
    /// Whether all rounds were made.
    pub is_complete: bool,
}

/// Why rounds ended early.
#[derive(Debug, thiserror::Error)]
pub enum RoundsFault {
    /// A run could not be made.
    #[error("{cell}: {fault}")]
    Drive {
        /// The cell's levels.
        cell: String,
        /// Why.
        fault: DriveFault,
    },
    /// What was measured could not be kept.
    #[error(transparent)]
    Store(#[from] crate::store::StoreFault),
}

/// What is asked for.
pub struct Asked<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// What makes runs.
    pub driver: &'a Driver,
    /// Becomes true when a signal asks for the end.
    pub stop: &'a AtomicBool,
}

/// Makes the rounds of an experiment. Each run is given to `keep`, with what it has left, before the
/// next one begins; `tell` hears what happens.
///
/// # Errors
/// A run that cannot be made, or kept. Runs that were kept stay kept.
pub fn run(
    asked: &Asked<'_>,
    keep: &mut dyn FnMut(&Run, &Left) -> Result<(), RoundsFault>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Rounds, RoundsFault> {
    let experiment = asked.experiment;
    let orders = blocks::mirrored(experiment.cells.len(), ROUNDS_MAX, experiment.seed);
    let mut made = Vec::new();
    let mut rounds = experiment.rounds;
    let mut round = 0;
    while round < rounds {
        for (place, &cell) in orders[round].iter().enumerate() {
            tell(Event::Begins {
                round: round + 1,
                rounds,
                place: place + 1,
                cell,
            });
            if !cell_of_round(asked, (round, place, cell), &mut made, keep, tell)? {
                return Ok(Rounds {
                    runs: made,
                    is_complete: false,
                });
            }
        }
        round += 1;
        if round == rounds && rounds < ROUNDS_MAX && is_wide(experiment, &made) {
            rounds = ROUNDS_MAX;
            tell(Event::Extended(rounds));
        }
    }
    Ok(Rounds {
        runs: made,
        is_complete: true,
    })
}

/// Runs a cell until it is valid, at most [`ATTEMPTS`] times. Whether it may go on.
fn cell_of_round(
    asked: &Asked<'_>,
    (round, place, cell): (usize, usize, usize),
    made: &mut Vec<Run>,
    keep: &mut dyn FnMut(&Run, &Left) -> Result<(), RoundsFault>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<bool, RoundsFault> {
    for attempt in 0..ATTEMPTS {
        if asked.stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let (mut run, left) = match asked.driver.run(asked.experiment, cell, asked.stop) {
            Ok(made) => made,
            Err(DriveFault::Interrupted) => return Ok(false),
            Err(fault) => {
                let cell = asked.experiment.label(cell);
                return Err(RoundsFault::Drive { cell, fault });
            }
        };
        (run.round, run.place, run.attempt) = (round, place, attempt);
        keep(&run, &left)?;
        tell(Event::Ended(&run));
        let is_valid = run.is_valid();
        made.push(run);
        if is_valid {
            break;
        }
    }
    Ok(true)
}

/// Whether the intervals of the first claim's measure are wider than the file wants.
fn is_wide(experiment: &Experiment, runs: &[Run]) -> bool {
    let Some(wanted) = experiment.half_width else {
        return false;
    };
    // Without an interval more rounds do not help.
    claim::half_width(experiment, runs).is_some_and(|width| width > wanted)
}

/// The gates that made runs void, each once.
#[must_use]
pub fn void_reasons(run: &Run) -> Vec<&Fired> {
    let void = |fired: &&Fired| fired.effect == crate::gate::Effect::Void;
    run.gates.iter().filter(void).collect()
}

/// A void run is repeated at most twice.
const ATTEMPTS: usize = 3;
