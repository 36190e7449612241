//! Starts the servers of a cell, keeps them as long as the experiment says, and stops them.
//!
//! Without `nest` and `restart` each run has servers of its own. With `nest`, cells of a round that
//! have the same levels of those factors use the same servers, where their settings are equal; the
//! other servers are started anew at their old addresses. In a duel the servers of all cells are up at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use catamaran_gauge::CpuLimit;
use catamaran_tier::{Job, Launch, Priority, Process, Space, Task};

use super::record::StableWords;
use super::{DriveFault, Driver, NOT_READY};
use crate::experiment::{self, Addresses, CellServer, CoreShare, Experiment, Levels, prepare};
use crate::run::{RunKey, ServerRecord};

/// The stages whose servers are kept for later runs.
#[derive(Debug, Default)]
pub struct Stages {
    alive: Vec<Stage>,
    made: usize,
    is_shared: bool,
}

/// The running servers of a cell, or of cells that share them, and their space.
#[derive(Debug)]
pub(crate) struct Stage {
    // Servers are dropped first: they must end before their space.
    pub(crate) servers: Vec<RunningServer>,
    /// Processes that take the part of a core that servers with weights leave, by core.
    pub(super) spinners: BTreeMap<usize, Spinner>,
    pub(crate) space: Space,
    pub(crate) addresses: Addresses,
    group: Levels,
    round: usize,
    /// Whether a Java virtual machine was started for the current run.
    pub(crate) is_fresh: bool,
}

/// A running server, and the record of how it was made.
#[derive(Debug)]
pub(crate) struct RunningServer {
    pub(crate) process: Process,
    pub(crate) record: ServerRecord,
    /// Replaces paths of this machine in recorded words.
    pub(super) stable: StableWords,
    pub(crate) core: Option<usize>,
    /// The part of its core that the server may have; `None`: all of it.
    pub(super) core_share: Option<CoreShare>,
    of: CellServer,
    round: usize,
    /// The time of the server's start, in µs since 1970. It tells starts apart, also those before and after `--resume`.
    started_us: u64,
    /// Whether the server was started for the current run.
    pub(super) is_new: bool,
}

/// A process that computes all the time, to use the part of a core that servers leave.
#[derive(Debug)]
pub(super) struct Spinner {
    /// The part of the core that the process takes, in thousandths.
    thousandths: u32,
    pub(super) task: Task,
}

impl Stages {
    /// Stages in the machine's own network and without cgroups, which needs no root. Figures of the
    /// network are then the whole machine's.
    pub(crate) fn shared() -> Self {
        Self {
            is_shared: true,
            ..Self::default()
        }
    }

    /// The running servers of a cell; those that do not run yet are started.
    pub(crate) fn prepare(
        &mut self,
        driver: &Driver,
        experiment: &Experiment,
        at: RunKey,
    ) -> Result<&mut Stage, DriveFault> {
        let group = group(experiment, &experiment.cells[at.cell]);
        // Stages that no later run may use are stopped.
        let outlives_rounds = experiment.outlives_rounds();
        self.alive.retain(|stage| {
            let is_of_round = stage.round == at.round;
            let is_shared_by_cells = experiment.is_nested() && stage.group == group;
            outlives_rounds || (is_of_round && (experiment.is_duel || is_shared_by_cells))
        });
        let mut stage = match self.alive.iter().position(|stage| stage.group == group) {
            Some(index) => self.alive.swap_remove(index),
            None => Stage::new(self.space(driver)?, experiment, group)?,
        };
        // If building fails, the stage is dropped: later runs could not use it.
        stage.build(driver, experiment, at)?;
        self.alive.push(stage);
        let last = self.alive.last_mut();
        Ok(last.unwrap_or_else(|| unreachable!("it was pushed")))
    }

    /// A space for a new stage.
    fn space(&mut self, driver: &Driver) -> Result<Space, DriveFault> {
        self.made += 1;
        let space = if self.is_shared {
            Space::shared()?
        } else {
            Space::isolated(&format!("{}.{}", driver.space, self.made))?
        };
        space.interrupt_by(Arc::clone(&driver.stop));
        Ok(space)
    }

    /// The stage of a cell of a duel, which [`Self::prepare`] has made.
    ///
    /// # Panics
    /// There is no such stage.
    pub(super) fn standing(&mut self, levels: &Levels) -> &mut Stage {
        let of_cell = |stage: &&mut Stage| stage.group == *levels;
        let mut alive = self.alive.iter_mut();
        alive.find(of_cell).expect("a duel prepares all its stages")
    }

    /// Stops all servers, and removes their spaces.
    pub fn clear(&mut self) {
        self.alive.clear();
    }
}

impl Stage {
    /// The time at which each server was started, in µs since 1970.
    pub(super) fn starts(&self) -> BTreeMap<String, u64> {
        let servers = self.servers.iter();
        servers
            .map(|server| (server.record.name.clone(), server.started_us))
            .collect()
    }

    /// The records of the servers.
    pub(super) fn records(&self) -> Vec<ServerRecord> {
        let servers = self.servers.iter();
        servers.map(|server| server.record.clone()).collect()
    }

    /// The servers whose names are in `names`.
    pub(super) fn named<'a>(
        &'a self,
        names: &'a [String],
    ) -> impl Iterator<Item = &'a RunningServer> {
        let is_named = |server: &&RunningServer| names.contains(&server.record.name);
        self.servers.iter().filter(is_named)
    }

    fn new(space: Space, experiment: &Experiment, group: Levels) -> Result<Self, DriveFault> {
        for (name, value) in &experiment.sysctl {
            space.set_sysctl(name, value)?;
        }
        Ok(Self {
            servers: Vec::new(),
            spinners: BTreeMap::new(),
            space,
            addresses: Addresses::new(),
            group,
            round: 0,
            is_fresh: true,
        })
    }

    /// Makes the stage that of the run `at`: keeps the servers that may be kept, and starts the others. Sets `servers`,
    /// `addresses`, `round` and `is_fresh`, and adjusts the spinners.
    fn build(
        &mut self,
        driver: &Driver,
        experiment: &Experiment,
        at: RunKey,
    ) -> Result<(), DriveFault> {
        let levels = &experiment.cells[at.cell];
        // Servers that are not kept are dropped one by one, before their successors are started.
        let mut before: Vec<RunningServer> = self.servers.drain(..).collect();
        self.addresses = Addresses::new();
        self.round = at.round;
        self.is_fresh = false;
        for number in 0..experiment.servers() {
            let name = experiment.server_name(number);
            let index = before.iter().position(|server| server.of.name == name);
            let known = index.map(|index| before.remove(index));
            let Some(wanted) = experiment.server(levels, number, &self.addresses)? else {
                continue;
            };
            // A server of the same round is kept only for cells that share servers.
            let kept = known.filter(|server| {
                server.of == wanted
                    && goes_on(wanted.rounds, server.round, at.round)
                    && (at.round > server.round || experiment.keeps(&wanted))
            });
            let server = match kept {
                Some(server) => RunningServer {
                    is_new: false,
                    ..server
                },
                None => {
                    let started = start(driver, &self.space, wanted, levels, at.round)?;
                    self.is_fresh |= started.process.jvm().is_some();
                    started
                }
            };
            let urls = urls(&server.process, &server.of)?;
            self.addresses.insert(server.of.name.clone(), urls);
            self.servers.push(server);
        }
        self.spin(driver)
    }

    /// Starts spinners, which take the part of a core that servers with weights leave, and ends
    /// those that are not needed.
    fn spin(&mut self, driver: &Driver) -> Result<(), DriveFault> {
        if self.space.group().is_none() {
            // Without cgroups, servers are not limited to a part of a core.
            return Ok(());
        }
        let shares = self.servers.iter().map(|it| (it.core, it.core_share));
        let left_by_core = experiment::thousandths_left(shares);
        self.spinners
            .retain(|core, spinner| left_by_core.get(core) == Some(&spinner.thousandths));
        for (core, thousandths) in left_by_core {
            if self.spinners.contains_key(&core) {
                continue;
            }
            let command = [
                &driver.catamaran.display().to_string()[..],
                "lab",
                "extra",
                "spin",
            ];
            let task = self.space.run(&Job {
                name: &format!("spinner{core}"),
                core: Some(core),
                priority: Priority::Inherited,
                limit: Some(CpuLimit::Weight(thousandths)),
                command: &command.map(str::to_owned),
            })?;
            self.spinners.insert(core, Spinner { thousandths, task });
        }
        Ok(())
    }
}

/// Whether a server that was last started in round `since` is kept in `round`, if it is started anew every `rounds`
/// rounds; 0 means for each run. If a void run forces an additional start, later starts stay at their planned rounds.
/// Otherwise the starts of one cell would be in rounds in which other cells keep their servers, and no two rounds would
/// have separate starts.
fn goes_on(rounds: usize, since: usize, round: usize) -> bool {
    rounds > 0 && since / rounds == round / rounds
}

/// The levels of a cell that decide which other cells share its servers.
fn group(experiment: &Experiment, levels: &Levels) -> Levels {
    let mut group = levels.clone();
    if experiment.is_nested() {
        group.retain(|name, _| experiment.nest.contains(name));
    }
    group
}

/// Starts a server, and records its settings, programs and versions.
fn start(
    driver: &Driver,
    space: &Space,
    server: CellServer,
    levels: &Levels,
    round: usize,
) -> Result<RunningServer, DriveFault> {
    let (target, settings) = prepare(&server)?;
    let programs = driver.programs_of(levels);
    let started_at = SystemTime::now().duration_since(UNIX_EPOCH);
    let stable = StableWords::of(space, &programs);
    let started = space.start(&Launch {
        name: &server.name,
        target: &target,
        settings: &settings,
        programs: &programs,
        core: server.core,
        limit: server.core_share.map(CoreShare::limit),
    });
    let process = started.map_err(|fault| DriveFault::of_server(NOT_READY, fault, &stable))?;
    let record = stable.record(&server, &process, &settings);
    Ok(RunningServer {
        process,
        record,
        stable,
        core: server.core,
        core_share: server.core_share,
        of: server,
        round,
        started_us: started_at.unwrap_or_default().as_micros() as u64,
        is_new: true,
    })
}

/// The URLs of a server's ports by name; several of one name are separated by spaces.
fn urls(process: &Process, server: &CellServer) -> Result<BTreeMap<String, String>, DriveFault> {
    let (target, settings) = prepare(server)?;
    let url = |port: String| {
        let urls = process.urls(&port).join(" ");
        (port, urls)
    };
    Ok(target.ports(&settings)?.into_iter().map(url).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_go_on_to_the_end_of_their_block_of_rounds() {
        for (rounds, since, round, does) in [
            (3, 0, 2, true),
            (3, 0, 3, false),
            // Started out of turn: its next start is with the others'.
            (3, 1, 2, true),
            (3, 1, 3, false),
            (1, 4, 4, true),
            (1, 4, 5, false),
            (usize::MAX, 0, 19, true),
            // For each run.
            (0, 4, 4, false),
        ] {
            assert_eq!(
                goes_on(rounds, since, round),
                does,
                "{rounds} {since} {round}"
            );
        }
    }
}
