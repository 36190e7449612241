//! Makes all rounds of an experiment. Each round has every cell once, in random order; the next one
//! has them in the reverse order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use catamaran_stats::{blocks, looks};

use crate::drive::{DriveFault, Driver, RunFiles, RunRequest, Stages};
use crate::experiment::{Experiment, Level, OriginalRun, ROUNDS_MAX};
use crate::gate::GateFinding;
use crate::run::{ATTEMPTS, MemoryCount, Run, RunKey, ServerRecord, attempts};
use crate::store::{Store, StoreFault};
use crate::{claim, screen};

/// An event in the making of rounds, for showing the progress.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A run of a cell begins.
    Begins {
        /// The round, counted from 1.
        round: usize,
        /// The number of rounds.
        rounds: usize,
        /// The run's place in the round, counted from 1.
        place: usize,
        /// The number of runs in the round.
        cells: usize,
        /// The number of the cell, counted from 0.
        cell: usize,
    },
    /// A start of a duel begins, with all cells.
    Duels {
        /// The start, counted from 1.
        round: usize,
        /// The most starts that will be made.
        rounds: usize,
    },
    /// The screen has ended; these cells take part in the further rounds.
    Screened(&'a [usize]),
    /// A published run begins, with the source's own values.
    Publishes(&'a OriginalRun),
    /// A run begins that measures the capacity of a cell.
    Calibrates {
        /// The number of the cell.
        cell: usize,
        /// The number of all cells.
        cells: usize,
    },
    /// A run of a cell has ended.
    Ended(&'a Run),
    /// All claims are decided after this number of rounds, so no more are made.
    Decided(usize),
}

/// The runs that were made, in this call and before.
#[derive(Debug)]
pub struct Rounds {
    /// All runs, void ones included.
    pub runs: Vec<Run>,
    /// Whether all rounds were made.
    pub is_complete: bool,
}

/// Why the rounds ended with a fault.
#[derive(Debug, thiserror::Error)]
pub enum RoundsFault {
    /// A run could not be made.
    #[error("{cell}: {fault}")]
    Drive {
        /// The levels of the cell.
        cell: String,
        /// The fault of the run.
        fault: DriveFault,
    },
    /// A run could not be stored.
    #[error(transparent)]
    Store(#[from] StoreFault),
}

/// The rounds to make, and what earlier calls have made already.
pub struct RoundsRequest<'a> {
    /// The experiment whose rounds are made.
    pub experiment: &'a Experiment,
    /// The programs and paths that runs need.
    pub driver: &'a Driver,
    /// Set to true when a signal asks for the end.
    pub stop: &'a AtomicBool,
    /// The runs of whole rounds that earlier calls have made, void ones included.
    pub done: Vec<Run>,
    /// For each number of clients, the requests per second of the slowest cell; empty if not measured yet.
    pub capacity: BTreeMap<u64, f64>,
    /// The names of published runs that earlier calls have made.
    pub published: Vec<String>,
    /// The records of servers in the runs that earlier calls have made.
    pub servers: Vec<ServerRecord>,
}

/// Makes the rounds of an experiment that are not made yet. Each run is stored before the next one
/// begins; `tell` is called with each event.
///
/// # Errors
/// A run cannot be made or stored. Runs stored before stay stored.
pub fn run(
    request: RoundsRequest<'_>,
    store: &mut Store,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Rounds, RoundsFault> {
    let experiment = request.experiment;
    let orders = orders(experiment);
    let screen_rounds = experiment.screened();
    let rounds = experiment.rounds_to_make();
    let looks = looks::looks(experiment.rounds);
    let rounds_done = request.done.iter().map(|run| run.round + 1).max();
    let mut round = rounds_done.unwrap_or(0);
    let mut maker = RoundMaker {
        // Only the first runs of a result are counted.
        unserved: request.done.is_empty().then_some(0),
        made: request.done,
        capacity: request.capacity,
        stages: Stages::default(),
        driver: request.driver,
        experiment,
        stop: request.stop,
        store,
        tell,
        published: request.published,
        servers: request.servers,
    };
    // Each step returns false if a signal has asked for the end.
    let mut is_complete = maker.publish()? && maker.calibrate()?;
    while is_complete && round < rounds {
        let cells = screen::cells(experiment, round, &maker.made);
        if round == screen_rounds && screen_rounds > 0 {
            (maker.tell)(Event::Screened(&cells));
        }
        let mut order = orders[round].clone();
        order.retain(|cell| cells.contains(cell));
        is_complete = maker.round(round, rounds, &order)?;
        round += 1;
        let is_look = round < rounds && looks.contains(&round.saturating_sub(screen_rounds));
        if is_complete && is_look && claim::is_decided(experiment, &maker.made) {
            maker.store.keep_end(experiment, round - screen_rounds)?;
            (maker.tell)(Event::Decided(round));
            break;
        }
    }
    Ok(Rounds {
        runs: maker.made,
        is_complete,
    })
}

/// The order of all cells in each round; a round after a screen has only some of them. With `nest`,
/// cells that share servers follow each other.
fn orders(experiment: &Experiment) -> Vec<Vec<usize>> {
    let rounds = experiment.screened() + ROUNDS_MAX;
    let mut orders = blocks::mirrored(experiment.cells.len(), rounds, experiment.seed);
    if experiment.nest.is_empty() {
        return orders;
    }
    let nested_levels = |cell: usize| -> Vec<&Level> {
        let names = experiment.nest.iter();
        names.map(|name| &experiment.cells[cell][name]).collect()
    };
    // Every second round is the reverse of the one before it.
    for pair in orders.chunks_mut(2) {
        pair[0] = grouped(&pair[0], nested_levels);
        let reverse = pair[0].iter().rev().copied().collect();
        if let Some(second) = pair.get_mut(1) {
            *second = reverse;
        }
    }
    orders
}

/// Sorts cells into groups with the same `key`, one group after the other. Groups and the cells within a group stay in
/// the order in which they come first.
fn grouped<K: PartialEq>(cells: &[usize], key: impl Fn(usize) -> K) -> Vec<usize> {
    let mut groups: Vec<(K, Vec<usize>)> = Vec::new();
    for &cell in cells {
        let key_of_cell = key(cell);
        match groups.iter_mut().find(|(key, _)| *key == key_of_cell) {
            Some((_, members)) => members.push(cell),
            None => groups.push((key_of_cell, vec![cell])),
        }
    }
    groups.into_iter().flat_map(|(_, cells)| cells).collect()
}

/// The state of making rounds.
struct RoundMaker<'a> {
    experiment: &'a Experiment,
    driver: &'a Driver,
    stop: &'a AtomicBool,
    store: &'a mut Store,
    tell: &'a mut dyn FnMut(Event<'_>),
    stages: Stages,
    capacity: BTreeMap<u64, f64>,
    made: Vec<Run>,
    /// The number of runs in which servers did not serve; `None` once any server has served.
    unserved: Option<usize>,
    /// The names of published runs whose output is stored.
    published: Vec<String>,
    /// The records of all servers so far.
    servers: Vec<ServerRecord>,
}

impl RoundMaker<'_> {
    /// Makes the published runs that are not part of rounds, except those made before. Returns
    /// `false` if a signal has asked for the end.
    fn publish(&mut self) -> Result<bool, RoundsFault> {
        let mut runs: Vec<&OriginalRun> = self.experiment.as_published.iter().collect();
        runs.retain(|run| !run.is_every_round);
        let is_stored = |run: &&&OriginalRun| self.published.contains(&run.name);
        let stored = runs.iter().take_while(is_stored).count();
        let first = first_to_publish(&runs, stored);
        for (number, run) in runs.into_iter().enumerate().skip(first) {
            if !run.is_again {
                self.stages.clear();
            }
            (self.tell)(Event::Publishes(run));
            let stages = &mut self.stages;
            let result = self
                .driver
                .as_published(self.experiment, run, stages, self.stop);
            let text = match result {
                Ok(printed) => printed,
                Err(DriveFault::Interrupted) => return Ok(false),
                Err(fault) => {
                    // Only faults of servers are a result of the run.
                    let Some(fired) = fault.of_run() else {
                        let cell = format!("as published, {}", run.name);
                        return Err(RoundsFault::Drive { cell, fault });
                    };
                    self.stages.clear();
                    format!("No run: {}", fired.words)
                }
            };
            if number >= stored {
                self.store.published(run, &text)?;
            }
        }
        self.stages.clear();
        Ok(true)
    }

    /// Measures the capacity, and stores it, if loads at shares of it are needed: for each number of clients, the
    /// throughput of the slowest cell that serves. Returns `false` if a signal has asked for the end.
    fn calibrate(&mut self) -> Result<bool, RoundsFault> {
        if self.experiment.shares().is_empty() || !self.capacity.is_empty() {
            return Ok(true);
        }
        let cells = self.experiment.cells.len();
        for cell in 0..cells {
            for _ in 0..ATTEMPTS {
                (self.tell)(Event::Calibrates { cell, cells });
                // Such a run is not stored, so that its place and its attempt do not matter.
                let (place, attempt) = (0, 0);
                let at = RunKey { cell, round: 0 };
                let Some((run, _)) = self.once(at, place, attempt)? else {
                    return Ok(false);
                };
                (self.tell)(Event::Ended(&run));
                // A cell without a rate has servers that did not serve.
                let Some(&rate) = run.measures.get("throughput") else {
                    self.stages.clear();
                    continue;
                };
                if let Some(clients) = run.facts.clients {
                    let least = self.capacity.entry(clients).or_insert(rate);
                    *least = least.min(rate);
                }
                break;
            }
        }
        // These servers have served a span more than others, so they are stopped.
        self.stages.clear();
        self.store.capacity(&self.capacity)?;
        Ok(true)
    }

    /// Makes one round, with the cells in `order`; `false`: a signal has asked for the end.
    fn round(&mut self, round: usize, rounds: usize, order: &[usize]) -> Result<bool, RoundsFault> {
        if self.experiment.is_duel {
            (self.tell)(Event::Duels {
                round: round + 1,
                rounds,
            });
            return self.duel(round, order);
        }
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

    /// Makes one start of a duel, with the cells in `order`; `false`: a signal has asked for the end. A void run is not
    /// repeated, since the next start replaces it.
    fn duel(&mut self, round: usize, order: &[usize]) -> Result<bool, RoundsFault> {
        let request = |(place, cell): (usize, &usize)| RunRequest {
            at: RunKey { cell: *cell, round },
            place,
            attempt: 0,
            capacity: &self.capacity,
            stop: self.stop,
        };
        let requests: Vec<RunRequest<'_>> = order.iter().enumerate().map(request).collect();
        let result = self
            .driver
            .duel(self.experiment, &mut self.stages, &requests);
        let runs = match result {
            Ok(runs) => {
                self.unserved = None;
                runs
            }
            Err(DriveFault::Interrupted) => return Ok(false),
            Err(fault) => {
                self.stages.clear();
                let cell = "a start of all cells".to_owned();
                let fired = void(&mut self.unserved, cell, fault)?;
                let unmeasured = |request| {
                    let run = unmeasured_run(self.experiment, request, fired.clone());
                    (run, RunFiles::default())
                };
                requests.iter().map(unmeasured).collect()
            }
        };
        for (run, files) in runs {
            self.keep(&run, &files)?;
            (self.tell)(Event::Ended(&run));
            self.made.push(run);
        }
        Ok(true)
    }

    /// Runs a cell until it has a valid run, at most as often as [`attempts`] returns. Returns
    /// `false` if a signal has asked for the end.
    fn cell(&mut self, at: RunKey, place: usize) -> Result<bool, RoundsFault> {
        for attempt in 0..attempts(&self.made, at) {
            let Some((run, files)) = self.once(at, place, attempt)? else {
                return Ok(false);
            };
            let is_valid = run.is_valid();
            self.keep(&run, &files)?;
            if is_valid {
                self.keep_printed(&files)?;
            }
            (self.tell)(Event::Ended(&run));
            self.made.push(run);
            if is_valid {
                break;
            }
            // The servers are stopped, since they may be the cause.
            self.stages.clear();
        }
        Ok(true)
    }

    /// Stores a run, and the records of servers that no earlier run had.
    fn keep(&mut self, run: &Run, files: &RunFiles) -> Result<(), StoreFault> {
        self.store.add(run, files)?;
        let known = self.servers.len();
        for server in &files.servers {
            let mut servers = self.servers.iter();
            if !servers.any(|it| it.name == server.name && it.target == server.target) {
                self.servers.push(server.clone());
            }
        }
        if self.servers.len() > known {
            self.store.servers(&self.servers)?;
        }
        Ok(())
    }

    /// Stores the outputs of published runs that the first valid run has made.
    fn keep_printed(&mut self, files: &RunFiles) -> Result<(), RoundsFault> {
        for (name, text) in &files.printed {
            if self.published.contains(name) {
                continue;
            }
            let mut runs = self.experiment.as_published.iter();
            if let Some(run) = runs.find(|run| run.name == *name) {
                self.store.published(run, text)?;
                self.published.push(name.clone());
            }
        }
        Ok(())
    }

    /// Makes one run, at its place in the round; `None` if a signal has asked for the end. If a
    /// server did not serve or ended during the load, the run is void; if no server has ever served
    /// in [`UNSERVED_MAX`] runs, the fault is returned.
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
                let cell = self.experiment.label(at.cell);
                let fired = void(&mut self.unserved, cell, fault)?;
                let run = unmeasured_run(self.experiment, &request, fired);
                Ok(Some((run, RunFiles::default())))
            }
        }
    }
}

/// The number of the published run with which making them begins, if the first `stored` of `runs` are stored. A run
/// that continues with the servers of another one needs that one to be made again, even if it is stored.
fn first_to_publish(runs: &[&OriginalRun], stored: usize) -> usize {
    let mut first = stored;
    while first > 0 && runs.get(first).is_some_and(|run| run.is_again) {
        first -= 1;
    }
    first
}

/// The gate that makes a run void because of this fault. Returns the fault itself if it is not one of a server, or if
/// no server has served in [`UNSERVED_MAX`] runs; `unserved` counts these.
fn void(
    unserved: &mut Option<usize>,
    cell: String,
    fault: DriveFault,
) -> Result<GateFinding, RoundsFault> {
    if let Some(count) = unserved {
        *count += 1;
        if *count >= UNSERVED_MAX {
            return Err(RoundsFault::Drive { cell, fault });
        }
    }
    let fired = fault.of_run();
    fired.ok_or(RoundsFault::Drive { cell, fault })
}

/// A run that failed before anything was measured. It has only the finding that makes it void, and the time of the
/// failure.
fn unmeasured_run(experiment: &Experiment, request: &RunRequest<'_>, fired: GateFinding) -> Run {
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

/// The findings that made the run void, each gate once.
#[must_use]
pub fn void_reasons(run: &Run) -> Vec<&GateFinding> {
    let void = |fired: &&GateFinding| fired.effect == crate::gate::Effect::Void;
    run.gates.iter().filter(void).collect()
}

/// If servers have not served in any of the first runs, the rounds end with a fault after this number of runs.
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
