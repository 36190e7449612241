//! Rounds: each has every cell once, in random order; the next one is its mirror.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use catamaran_stats::blocks;

use crate::drive::{DriveFault, Driver, RunFiles, RunRequest, Stages};
use crate::experiment::{Experiment, OriginalRun, ROUNDS_MAX};
use crate::gate::GateFinding;
use crate::run::{ATTEMPTS, MemoryCount, Run, RunKey, ServerRecord, attempts};
use crate::store::{Store, StoreFault};
use crate::{claim, screen};

/// The progress of rounds, for somebody who waits.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A run begins.
    Begins {
        /// The round, counted from 1.
        round: usize,
        /// The number of rounds.
        rounds: usize,
        /// The run's place in it, counted from 1.
        place: usize,
        /// The number of runs in the round.
        cells: usize,
        /// The cell.
        cell: usize,
    },
    /// The screen is over: these cells go on.
    Screened(&'a [usize]),
    /// A published run begins, as it was.
    Publishes(&'a OriginalRun),
    /// A run begins that finds out what a cell can do.
    Calibrates {
        /// The cell.
        cell: usize,
        /// The number of cells.
        cells: usize,
    },
    /// A run has ended.
    Ended(&'a Run),
    /// Intervals are still wide, so there are more rounds: this many in all.
    Extended(usize),
}

/// The runs of all rounds.
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
    /// A run could not be stored.
    #[error(transparent)]
    Store(#[from] StoreFault),
}

/// The rounds to be made.
pub struct RoundsRequest<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// The programs and paths with which runs are made.
    pub driver: &'a Driver,
    /// Becomes true when a signal asks for the end.
    pub stop: &'a AtomicBool,
    /// Runs of whole rounds that were made before, void ones included.
    pub done: Vec<Run>,
    /// By number of clients: the requests per second of the slowest cell, if that is known already.
    pub capacity: BTreeMap<u64, f64>,
    /// The names of the published runs that were made before.
    pub published: Vec<String>,
    /// The servers of the runs that were made before.
    pub servers: Vec<ServerRecord>,
}

/// Makes the rounds of an experiment that were not made before. Each run is in the store before the next one begins; `tell`
/// hears what happens.
///
/// # Errors
/// A run that cannot be made, or kept. Runs that were kept stay kept.
pub fn run(
    asked: RoundsRequest<'_>,
    store: &mut Store,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Rounds, RoundsFault> {
    let experiment = asked.experiment;
    let orders = orders(experiment);
    let screened = experiment.screened();
    let mut rounds = experiment.rounds_in_all();
    let mut round = asked
        .done
        .iter()
        .map(|run| run.round + 1)
        .max()
        .unwrap_or(0);
    let mut making = RoundMaker {
        unserved: asked.done.is_empty().then_some(0),
        made: asked.done,
        capacity: asked.capacity,
        stages: Stages::default(),
        driver: asked.driver,
        experiment,
        stop: asked.stop,
        store,
        tell,
        published: asked.published,
        servers: asked.servers,
    };
    let mut is_complete = making.publish()? && making.calibrate()?;
    while is_complete && round < rounds {
        let cells = screen::cells(experiment, round, &making.made);
        if round == screened && screened > 0 {
            (making.tell)(Event::Screened(&cells));
        }
        let order: Vec<usize> = orders[round]
            .iter()
            .copied()
            .filter(|cell| cells.contains(cell))
            .collect();
        is_complete = making.round(round, rounds, &order)?;
        round += 1;
        let is_last = round == rounds && rounds < screened + ROUNDS_MAX;
        if is_complete && is_last && is_wide(experiment, &making.made) {
            rounds = screened + ROUNDS_MAX;
            // They are made even if this is interrupted.
            making.store.keep_form(experiment, ROUNDS_MAX)?;
            (making.tell)(Event::Extended(rounds));
        }
    }
    Ok(Rounds {
        runs: making.made,
        is_complete,
    })
}

/// The order of all cells in each round, of which a round has a part if there is a screen; with `nest`, cells that share servers stand together.
fn orders(experiment: &Experiment) -> Vec<Vec<usize>> {
    let rounds = experiment.screened() + ROUNDS_MAX;
    let mut orders = blocks::mirrored(experiment.cells.len(), rounds, experiment.seed);
    let group = |cell: usize| -> Vec<String> {
        let names = experiment.nest.iter();
        names
            .map(|name| experiment.cells[cell][name].to_string())
            .collect()
    };
    for pair in orders.chunks_mut(2) {
        let mut first: Vec<Vec<String>> = Vec::new();
        for &cell in &pair[0] {
            if !first.contains(&group(cell)) {
                first.push(group(cell));
            }
        }
        pair[0].sort_by_key(|cell| first.iter().position(|known| *known == group(*cell)));
        let mirror = pair[0].iter().rev().copied().collect();
        if let Some(second) = pair.get_mut(1) {
            *second = mirror;
        }
    }
    orders
}

/// Rounds that are being made.
struct RoundMaker<'a> {
    experiment: &'a Experiment,
    driver: &'a Driver,
    stop: &'a AtomicBool,
    store: &'a mut Store,
    tell: &'a mut dyn FnMut(Event<'_>),
    stages: Stages,
    capacity: BTreeMap<u64, f64>,
    made: Vec<Run>,
    /// The number of runs in which servers did not serve; `None` once any served.
    unserved: Option<usize>,
    /// The names of published runs whose text was kept.
    published: Vec<String>,
    /// All servers so far.
    servers: Vec<ServerRecord>,
}

impl RoundMaker<'_> {
    /// Makes the published runs that no round makes, but for those that were made before. Whether it may go on.
    fn publish(&mut self) -> Result<bool, RoundsFault> {
        let runs = self.experiment.as_published.iter();
        let runs: Vec<&OriginalRun> = runs.filter(|run| !run.is_every_round).collect();
        let is_done = |run: &&&OriginalRun| self.published.contains(&run.name);
        let done = runs.iter().take_while(is_done).count();
        let mut from = done;
        // One that goes on with servers needs the run that started them, also if that was kept already.
        while runs.get(from).is_some_and(|run| run.is_again) && from > 0 {
            from -= 1;
        }
        for (number, run) in runs.into_iter().enumerate().skip(from) {
            if !run.is_again {
                self.stages.clear();
            }
            (self.tell)(Event::Publishes(run));
            let stages = &mut self.stages;
            let made = self
                .driver
                .as_published(self.experiment, run, stages, self.stop);
            match made {
                Ok(printed) if number >= done => self.store.published(run, &printed)?,
                Ok(_) => {}
                Err(DriveFault::Interrupted) => return Ok(false),
                Err(fault) => {
                    let Some(fired) = fault.of_run() else {
                        let cell = format!("as published, {}", run.name);
                        return Err(RoundsFault::Drive { cell, fault });
                    };
                    self.stages.clear();
                    if number >= done {
                        let words = format!("No run: {}", fired.words);
                        self.store.published(run, &words)?;
                    }
                }
            }
        }
        self.stages.clear();
        Ok(true)
    }

    /// Finds out what cells can do, if shares of that are to be driven. Whether it may go on.
    fn calibrate(&mut self) -> Result<bool, RoundsFault> {
        if self.experiment.shares().is_empty() || !self.capacity.is_empty() {
            return Ok(true);
        }
        let cells = self.experiment.cells.len();
        let mut known = BTreeSet::new();
        for cell in (0..cells).flat_map(|cell| [cell; ATTEMPTS]) {
            if known.contains(&cell) {
                continue;
            }
            (self.tell)(Event::Calibrates { cell, cells });
            let Some((run, _)) = self.once(RunKey { cell, round: 0 }, 0, 0)? else {
                return Ok(false);
            };
            (self.tell)(Event::Ended(&run));
            // Without a rate its servers did not serve.
            let Some(&rate) = run.measures.get("throughput") else {
                self.stages.clear();
                continue;
            };
            known.insert(cell);
            if let Some(clients) = run.facts.clients {
                let least = self.capacity.entry(clients).or_insert(rate);
                *least = least.min(rate);
            }
        }
        // The servers have served a span that the others have not.
        self.stages.clear();
        self.store.capacity(&self.capacity)?;
        Ok(true)
    }

    /// Whether it was made whole.
    fn round(&mut self, round: usize, rounds: usize, order: &[usize]) -> Result<bool, RoundsFault> {
        for (place, &cell) in order.iter().enumerate() {
            (self.tell)(Event::Begins {
                round: round + 1,
                rounds,
                place: place + 1,
                cells: order.len(),
                cell,
            });
            if !self.cell(RunKey { cell, round }, place)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs a cell until it is valid, at most so often as [`attempts`] says. Whether it may go on.
    fn cell(&mut self, at: RunKey, place: usize) -> Result<bool, RoundsFault> {
        for attempt in 0..attempts(&self.made, at) {
            let Some((run, left)) = self.once(at, place, attempt)? else {
                return Ok(false);
            };
            self.keep(&run, &left)?;
            if run.is_valid() {
                self.keep_printed(&left)?;
            }
            (self.tell)(Event::Ended(&run));
            let is_valid = run.is_valid();
            self.made.push(run);
            if is_valid {
                break;
            }
            // Whatever was wrong with them.
            self.stages.clear();
        }
        Ok(true)
    }

    /// Keeps a run, and servers that no run before had.
    fn keep(&mut self, run: &Run, left: &RunFiles) -> Result<(), StoreFault> {
        self.store.add(run, left)?;
        let known = self.servers.len();
        for server in &left.servers {
            let is_known = |it: &ServerRecord| it.name == server.name && it.target == server.target;
            if !self.servers.iter().any(is_known) {
                self.servers.push(server.clone());
            }
        }
        if self.servers.len() > known {
            self.store.servers(&self.servers)?;
        }
        Ok(())
    }

    /// Keeps what the published runs of the first valid run have printed.
    fn keep_printed(&mut self, left: &RunFiles) -> Result<(), RoundsFault> {
        for (name, text) in &left.printed {
            let mut runs = self.experiment.as_published.iter();
            let run = runs.find(|run| run.name == *name);
            if let Some(run) = run.filter(|_| !self.published.contains(name)) {
                self.store.published(run, text)?;
                self.published.push(name.clone());
            }
        }
        Ok(())
    }

    /// Makes one run, at its place in the round; `None` if a signal has asked for the end. A server that did not serve,
    /// or that ended with the load, makes the run void; if no server ever served in [`UNSERVED_MAX`] runs, the fault is
    /// returned.
    fn once(
        &mut self,
        at: RunKey,
        place: usize,
        attempt: usize,
    ) -> Result<Option<(Run, RunFiles)>, RoundsFault> {
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let request = RunRequest {
            at,
            place,
            attempt,
            capacity: &self.capacity,
            stop: self.stop,
        };
        let stages = &mut self.stages;
        match self.driver.run(self.experiment, stages, request) {
            Ok(made) => {
                self.unserved = None;
                Ok(Some(made))
            }
            Err(DriveFault::Interrupted) => Ok(None),
            Err(fault) => {
                let counted = self.unserved.as_mut().map(|count| {
                    *count += 1;
                    *count
                });
                let is_hopeless = counted.is_some_and(|count| count >= UNSERVED_MAX);
                match fault.of_run().filter(|_| !is_hopeless) {
                    Some(fired) => Ok(Some((
                        void(self.experiment, &request, fired),
                        RunFiles::default(),
                    ))),
                    None => {
                        let cell = self.experiment.label(at.cell);
                        Err(RoundsFault::Drive { cell, fault })
                    }
                }
            }
        }
    }
}

/// A run that failed before it had measures: all that is known is why it is void. It starts at the time of the failure.
fn void(experiment: &Experiment, request: &RunRequest<'_>, fired: GateFinding) -> Run {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Run {
        cell: request.at.cell,
        levels: experiment.cells[request.at.cell].clone(),
        round: request.at.round,
        place: request.place,
        attempt: request.attempt,
        started_at_s: now.unwrap_or_default().as_secs_f64(),
        memory: MemoryCount::Allocated,
        gates: vec![fired],
        ..Run::default()
    }
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
pub fn void_reasons(run: &Run) -> Vec<&GateFinding> {
    let void = |fired: &&GateFinding| fired.effect == crate::gate::Effect::Void;
    run.gates.iter().filter(void).collect()
}

/// If servers have not served in this many runs, and never before, the rounds end.
const UNSERVED_MAX: usize = 2 * ATTEMPTS;

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = include_str!("../fixtures/keepalive.toml");

    #[test]
    fn a_cell_that_was_never_valid_is_tried_once_a_round() {
        let run = |cell: usize, round: usize, is_valid: bool| {
            let void = GateFinding::new("not-ready", crate::gate::Effect::Void, "It ended.");
            Run {
                cell,
                round,
                gates: if is_valid { vec![] } else { vec![void] },
                ..Run::default()
            }
        };
        let runs = [
            run(0, 0, false),
            run(0, 0, false),
            run(0, 0, true),
            run(1, 0, false),
            run(0, 1, false),
            run(1, 1, false),
        ];
        for (cell, round, expected) in [
            (0, 0, 3),
            (1, 0, 3),
            (0, 2, 3),
            (1, 1, 1),
            (1, 2, 1),
            (2, 2, 3),
        ] {
            assert_eq!(
                attempts(&runs, RunKey { cell, round }),
                expected,
                "{cell} {round}"
            );
        }
    }

    #[test]
    fn cells_that_share_servers_stand_together_and_rounds_mirror() {
        let text = format!("nest = [\"mpm\"]\n{FILE}");
        let experiment = Experiment::read("k.toml", &text, false).unwrap();
        let orders = orders(&experiment);
        for pair in orders.chunks_exact(2) {
            let mut mirror = pair[1].clone();
            mirror.reverse();
            assert_eq!(pair[0], mirror);
        }
        for order in &orders {
            let mut groups: Vec<String> = Vec::new();
            for &cell in order {
                let group = experiment.cells[cell]["mpm"].to_string();
                if groups.last() != Some(&group) {
                    groups.push(group);
                }
            }
            assert_eq!(groups.len(), 3, "{groups:?}");
        }
        let firsts: Vec<usize> = orders.iter().map(|order| order[0]).collect();
        assert!(firsts.iter().any(|first| *first != firsts[0]), "{firsts:?}");
    }
}
