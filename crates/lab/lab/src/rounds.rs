//! Makes all rounds of an experiment. Each round has every cell once, in random order; the next one
//! has them in the reverse order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use catamaran_stats::{blocks, looks};

use crate::drive::{DriveFault, Driver, RunFiles, RunRequest, Stages};
use crate::experiment::{Experiment, OriginalRun, ROUNDS_MAX};
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
    asked: RoundsRequest<'_>,
    store: &mut Store,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Rounds, RoundsFault> {
    let experiment = asked.experiment;
    let orders = orders(experiment);
    let screened = experiment.screened();
    let rounds = experiment.rounds_to_make();
    let looks = looks::looks(experiment.rounds);
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
        let is_look = round < rounds && looks.contains(&round.saturating_sub(screened));
        if is_complete && is_look && claim::is_decided(experiment, &making.made) {
            making.store.keep_end(experiment, round - screened)?;
            (making.tell)(Event::Decided(round));
            break;
        }
    }
    Ok(Rounds {
        runs: making.made,
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
    let shared = |cell: usize| -> Vec<String> {
        let names = experiment.nest.iter();
        names
            .map(|name| experiment.cells[cell][name].to_string())
            .collect()
    };
    for pair in orders.chunks_mut(2) {
        pair[0] = grouped(&pair[0], shared);
        let mirror = pair[0].iter().rev().copied().collect();
        if let Some(second) = pair.get_mut(1) {
            *second = mirror;
        }
    }
    orders
}

/// Sorts cells into groups with the same `key`, one group after the other. Groups and the cells within a group stay in
/// the order in which they come first.
fn grouped<K: PartialEq>(cells: &[usize], key: impl Fn(usize) -> K) -> Vec<usize> {
    let mut groups: Vec<(K, Vec<usize>)> = Vec::new();
    for &cell in cells {
        let wanted = key(cell);
        match groups.iter_mut().find(|(known, _)| *known == wanted) {
            Some((_, members)) => members.push(cell),
            None => groups.push((wanted, vec![cell])),
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
        let runs = self.experiment.as_published.iter();
        let runs: Vec<&OriginalRun> = runs.filter(|run| !run.is_every_round).collect();
        let is_done = |run: &&&OriginalRun| self.published.contains(&run.name);
        let done = runs.iter().take_while(is_done).count();
        let mut from = done;
        // A run that continues with the servers of another one needs that one to be made again, even if it is stored.
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

    /// Measures the capacity of each cell, if loads at shares of it are needed. Returns `false` if
    /// a signal has asked for the end.
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
            // A cell without a rate has servers that did not serve.
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
        let made = self
            .driver
            .duel(self.experiment, &mut self.stages, &requests);
        let runs = match made {
            Ok(made) => {
                self.unserved = None;
                made
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
        for (run, left) in runs {
            self.keep(&run, &left)?;
            (self.tell)(Event::Ended(&run));
            self.made.push(run);
        }
        Ok(true)
    }

    /// Runs a cell until it has a valid run, at most as often as [`attempts`] returns. Returns
    /// `false` if a signal has asked for the end.
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
            // The servers are stopped, since they may be the cause.
            self.stages.clear();
        }
        Ok(true)
    }

    /// Stores a run, and the records of servers that no earlier run had.
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

    /// Stores the outputs of published runs that the first valid run has made.
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

/// The gate that makes a run void because of this fault. Returns the fault itself if it is not one of a server, or if
/// no server has served in [`UNSERVED_MAX`] runs; `unserved` counts these.
fn void(
    unserved: &mut Option<usize>,
    cell: String,
    fault: DriveFault,
) -> Result<GateFinding, RoundsFault> {
    let is_hopeless = unserved.as_mut().is_some_and(|count| {
        *count += 1;
        *count >= UNSERVED_MAX
    });
    let fired = fault.of_run().filter(|_| !is_hopeless);
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
