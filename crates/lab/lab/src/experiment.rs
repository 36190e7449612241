//! Experiments as data: which factors vary, which servers are started, what load is driven, what is
//! claimed.
//!
//! A file is read whole and all its faults are found at once, each with its line. Addresses are known
//! only when servers run: what a cell's templates make of them is asked for then ([`Experiment::server`],
//! [`Experiment::load`]). That they render in every cell is checked when the file is read.

mod asked;
mod cells;
mod check;
mod choice;
mod claims;
mod core_share;
mod duel;
mod file;
mod lines;
mod link;
mod load;
mod published;
mod read;
mod restart;
mod screen;
mod template;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use catamaran_stats::looks;
pub(crate) use check::{PreparedServer, check_server, prepare};
pub use choice::ChoiceFault;
pub use claims::{Case, Claim, Contrast, PublishedRatio};
pub(crate) use core_share::left;
pub use core_share::{CoreShare, Holder};
pub(crate) use duel::{BLOCK, COUNTED};
pub use file::{Expectation, Selection};
pub use load::{Act, Crowd, CrowdKind, HttpVersion, Load};
pub(crate) use restart::OWN;
pub use screen::{Keep, Screen};
use serde::{Deserialize, Serialize};
pub use template::Addresses;

use crate::facts::Expect;
use crate::measure::Measure;

/// A level of a factor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Level {
    /// Such as `prefork`.
    Text(String),
    /// Such as 100.
    Count(i64),
    /// Such as `true`.
    Flag(bool),
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Count(count) => write!(f, "{count}"),
            Self::Flag(flag) => write!(f, "{flag}"),
        }
    }
}

/// The form in which a file is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Whether its `[quick]` applies: the short form.
    pub is_quick: bool,
    /// Whether it is the published form of one of our experiments, which is a file of its own.
    pub is_published: bool,
    /// Whether all cells are up at once, and measured in blocks in turn, also if the file does not say so.
    pub is_duel: bool,
    /// Modules of servers that are at hand: levels that need others are left out.
    pub modules: Vec<String>,
}

impl From<bool> for Form {
    fn from(is_quick: bool) -> Self {
        Self {
            is_quick,
            ..Self::default()
        }
    }
}

/// Levels by the names of their factors.
pub type Levels = BTreeMap<String, Level>;

/// A factor: what differs between cells, such as the server or the number of clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// Its levels, in the file's order.
    pub levels: Vec<Level>,
}

/// An experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The name by which `lab run` takes it.
    pub name: String,
    /// The question that it is to answer.
    pub question: String,
    /// Who published figures on it; empty if nobody did.
    pub source: String,
    /// The factors, in the file's order.
    pub factors: Vec<Factor>,
    /// All combinations of levels that are measured.
    pub cells: Vec<Levels>,
    /// The cell that the others are set beside.
    pub control: usize,
    /// Servers, backmost first.
    servers: Vec<file::ServerKeys>,
    core_share: Option<file::CoreShareKeys>,
    load: file::LoadKeys,
    beside: Vec<file::BesideKeys>,
    action: Vec<file::ActionKeys>,
    /// Factors whose levels keep their servers through a round.
    pub nest: Vec<String>,
    /// Sysctls of the run's network, by name.
    pub sysctl: BTreeMap<String, String>,
    /// Gates that are off.
    pub gates_off: Vec<String>,
    /// Gates that only forbid claims on times, and make no run of it void.
    pub gates_of_times: Vec<String>,
    expect: file::ExpectKeys,
    /// The counters beside time and CPU time.
    pub measure: CountPlan,
    /// Rounds that are planned, after those of a screen: the last look.
    pub rounds: usize,
    /// The rounds after which a look found each claim decided, so that no more were made; without those of a screen.
    pub decided_after: Option<usize>,
    /// A first pass over many cells.
    pub screen: Option<Screen>,
    /// The seed of the orders of cells.
    pub seed: u64,
    /// The claims.
    pub claims: Vec<Claim>,
    /// The published figures.
    pub published: Vec<PublishedRun>,
    /// Published runs that are made once as they were.
    pub as_published: Vec<OriginalRun>,
    /// Whether `[quick]` has replaced keys.
    pub is_quick: bool,
    /// Whether it has the cells and claims of the source alone.
    pub is_published: bool,
    /// Whether all cells are up at once, and measured in blocks in turn.
    pub is_duel: bool,
    /// Modules of servers that it has levels for.
    pub modules: Vec<String>,
    /// All modules that the file has levels for.
    pub known_modules: Vec<String>,
    /// Whether two binaries of ours are a factor.
    pub is_against: bool,
    /// Whether the time of system calls is taken, and each process counted by itself.
    pub is_traced: bool,
    /// Whether BPF is not used: the kernel does not count system calls and bytes then, as where it refuses.
    pub is_without_bpf: bool,
    /// The file as it was read.
    pub text: String,
}

/// The counters beside time and CPU time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountPlan {
    /// Servers whose system calls are counted.
    pub syscalls: Vec<String>,
    /// Server and port whose bytes are counted.
    pub bytes: Vec<(String, String)>,
    /// Servers whose memory is read.
    pub memory: Vec<String>,
    /// Java virtual machines whose heap and collections are read.
    pub jvm: Vec<String>,
}

/// A published figure: of a run, or of two.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRun {
    /// The levels that it had; none of a ratio.
    pub cell: Levels,
    /// Whether it was the only run or the best of several.
    pub how: Selection,
    /// The name of its text, or what its table is about.
    pub name: String,
    /// The row of its table; empty of a text.
    pub says: String,
    /// The published figure.
    pub figures: PublishedFigure,
    /// A conclusion that it does not support besides those that gates name.
    pub note: Option<String>,
    /// The requests that the process answered, for a table of system calls.
    pub requests: Option<u64>,
}

/// A published figure: of a run, or of two.
#[derive(Clone, Debug, PartialEq)]
pub enum PublishedFigure {
    /// The output of a program.
    Text(&'static str),
    /// Requests a second.
    Rate {
        /// On average; `None`: the source does not say.
        mean: Option<f64>,
        /// The interval of the seconds' rates, as the source gives it.
        interval: Option<[f64; 2]>,
    },
    /// A ratio of throughputs.
    Ratio {
        /// `None`: the source has an interval alone.
        ratio: Option<f64>,
        /// The lowest and the highest ratio.
        interval: Option<[f64; 2]>,
        /// Our cells, the one that is divided first; `None` if one of them is not run.
        cells: Option<[usize; 2]>,
        /// The claim that tests this ratio here.
        claim: Option<String>,
    },
}

/// A published run that is made once with the source's own values.
#[derive(Clone, Debug)]
pub struct OriginalRun {
    /// The name of its text, or what it was.
    pub name: String,
    /// The published output.
    pub text: String,
    /// The levels whose servers it has.
    pub cell: Levels,
    /// Clients at once.
    pub clients: u64,
    /// The number of requests.
    pub requests: u64,
    /// Whether connections are kept.
    pub keep_alive: bool,
    /// Whether it goes on with the servers of the run before it.
    pub is_again: bool,
    /// Whether each round makes it, on servers that have just been started, and once more when they are warm.
    pub is_every_round: bool,
    /// The ways in which it differs from the published run.
    pub deviations: Vec<String>,
    set: BTreeMap<String, BTreeMap<String, Level>>,
}

/// A server of a cell, its templates rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellServer {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub target: String,
    /// Its settings.
    pub set: Vec<(String, String)>,
    /// The core that it is bound to.
    pub core: Option<usize>,
    /// The part of the core that it may have; all of it if `None`.
    pub core_share: Option<CoreShare>,
    /// The rounds for which its process lives; 0: one run, `usize::MAX`: to the end.
    pub rounds: usize,
}

/// The fewest rounds from which anything can be concluded.
pub const ROUNDS_MIN: usize = 6;

/// The most rounds that can be planned.
pub const ROUNDS_MAX: usize = looks::PLANNED_MAX;

/// A level as one word of text: `mpm=prefork keep=on`.
#[must_use]
pub fn label(levels: &Levels) -> String {
    let words: Vec<String> = levels
        .iter()
        .map(|(name, level)| format!("{name}={level}"))
        .collect();
    words.join(" ")
}

impl Experiment {
    /// The levels of what the source was about; `None` if nothing is repeated.
    #[must_use]
    pub fn subject(&self) -> Option<&Levels> {
        let control = self.cells.get(self.control);
        control.filter(|_| !self.source.is_empty())
    }

    /// Whether cells that share levels share servers within a round.
    pub(crate) fn is_nested(&self) -> bool {
        !self.nest.is_empty()
    }

    /// Whether any server outlives a round.
    pub(crate) fn outlives_rounds(&self) -> bool {
        let by_round = |server: &file::ServerKeys| server.restart == file::Restart::Round;
        !self.servers.iter().all(by_round)
    }

    /// Whether system calls and bytes are counted in a span of their own, since counting takes CPU time. A short form
    /// has no time for that, without BPF nothing would be counted in it, and a duel always has a span for it.
    #[must_use]
    pub fn counts_apart(&self) -> bool {
        let CountPlan {
            syscalls, bytes, ..
        } = &self.measure;
        let is_any = !syscalls.is_empty() || !bytes.is_empty();
        is_any && !self.is_quick && !self.is_without_bpf && !self.is_duel
    }

    /// Whether any server is never started anew, so that what its start brought stays in all rounds.
    #[must_use]
    pub fn is_never_restarted(&self) -> bool {
        let never = |server: &file::ServerKeys| server.restart == file::Restart::Never;
        self.servers.iter().any(never)
    }

    /// The published runs of a cell that each round makes, in their order.
    pub(crate) fn every_round<'a>(
        &'a self,
        levels: &'a Levels,
    ) -> impl Iterator<Item = &'a OriginalRun> {
        let runs = self.as_published.iter();
        runs.filter(move |run| run.is_every_round && run.cell == *levels)
    }

    /// Whether a server goes on from one run to the next of the same round.
    pub(crate) fn keeps(&self, server: &CellServer) -> bool {
        self.is_nested() || server.rounds > 1
    }

    /// The extra loads at a fixed rate, each as a share (above 0, below 1) of the measured capacity: the throughput
    /// of the slowest cell with as many clients. Empty: none.
    pub(crate) fn shares(&self) -> &[f64] {
        &self.load.shares
    }

    /// The name of the server `number`.
    pub(crate) fn server_name(&self, number: usize) -> &str {
        &self.servers[number].name
    }

    /// A cell's levels in the order of factors, of those factors that have several levels.
    #[must_use]
    pub fn label(&self, cell: usize) -> String {
        let varied = self.factors.iter().filter(|factor| factor.levels.len() > 1);
        let words =
            varied.map(|factor| format!("{}={}", factor.name, self.cells[cell][&factor.name]));
        words.collect::<Vec<_>>().join(" ")
    }

    /// The same experiment on two binaries of ours, as a factor: each cell twice, and claims on what
    /// the new one has changed in throughput, CPU time, latency and memory.
    #[must_use]
    pub fn against(mut self) -> Self {
        let levels = [NEW, OLD].map(|level| Level::Text(level.to_owned()));
        let with = |level: &Level| {
            let add = |cell: &Levels| {
                let mut cell = cell.clone();
                cell.insert(BINARY.to_owned(), level.clone());
                cell
            };
            self.cells.iter().map(add).collect::<Vec<_>>()
        };
        let count = self.cells.len();
        self.cells = levels.iter().flat_map(with).collect();
        self.factors.push(Factor {
            name: BINARY.to_owned(),
            levels: levels.to_vec(),
        });
        self.control += count;
        if let Some(screen) = &mut self.screen {
            for cells in [&mut screen.cells, &mut screen.then] {
                let others: Vec<usize> = cells.iter().map(|cell| cell + count).collect();
                cells.extend(others);
            }
        }
        let contrast = |cell: usize| Contrast {
            above: vec![cell],
            below: vec![cell + count],
        };
        let case = Case {
            each: Levels::new(),
            contrasts: (0..count).map(contrast).collect(),
        };
        let side = |level: &Level| Levels::from([(BINARY.to_owned(), level.clone())]);
        let claim = |name: &str| {
            let measure = Measure::parse(name).ok()?;
            Some(Claim {
                says: format!(
                    "The new binary has the old one's {}{}",
                    measure.words()[1],
                    measure.place()
                ),
                measure,
                level: side(&levels[0]),
                over: side(&levels[1]),
                expect: Expectation::Same,
                margin: MARGIN,
                published: Vec::new(),
                planted: None,
                names_reuse: false,
                cases: vec![case.clone()],
            })
        };
        self.claims = ["cpu", "throughput", "p99", "memory"]
            .into_iter()
            .filter(|name| *name != "memory" || !self.measure.memory.is_empty())
            .filter_map(claim)
            .collect();
        self.published.clear();
        self.is_against = true;
        self
    }

    /// The experiment whose only cell is that of a published run, with the source's own settings; its servers
    /// are those of the run before it if it goes on with them.
    #[must_use]
    pub fn of_published(&self, run: &OriginalRun) -> Self {
        let mut own = self.clone();
        own.cells = vec![run.cell.clone()];
        own.nest.clear();
        if run.is_again {
            own.nest.extend(run.cell.keys().cloned());
        }
        for server in &mut own.servers {
            if let Some(set) = run.set.get(&server.name) {
                server.set.extend(set.clone());
            }
        }
        own
    }

    /// The length of a cell's measured span.
    ///
    /// # Panics
    /// Never: the file was checked.
    #[must_use]
    pub fn time(&self) -> Duration {
        catamaran_units::parse_duration(&self.load.time).expect("it was checked when it was read")
    }
}

/// The level of the newer binary.
/// The factor that tells two of our binaries apart, and the level of the older one.
pub const BINARY: &str = "binary";
/// See [`BINARY`].
pub const OLD: &str = "old";
const NEW: &str = "new";

/// Differences within it are none, unless a claim says otherwise.
const MARGIN: f64 = 0.05;

#[cfg(test)]
mod tests;
