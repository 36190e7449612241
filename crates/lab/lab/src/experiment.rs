//! Experiments as data: which factors vary, which servers are started, what load is driven, what is
//! claimed.
//!
//! A file is read whole, and all its faults are reported at once, each with its line. Addresses are known only while
//! servers run, so templates are rendered for one cell at a time ([`Experiment::server`], [`Experiment::load`]).
//! Reading a file checks that they render in every cell.

mod asked;
mod cells;
mod check;
mod choice;
mod claims;
mod core_share;
mod duel;
mod era;
mod file;
mod layout;
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
pub(crate) use core_share::thousandths_left;
pub use core_share::{CoreShare, Holder};
pub(crate) use duel::{BLOCK, COUNTED};
pub(crate) use era::are_alike_but_for_era;
pub use era::{ERA, Eras, THEN, is_old_software};
pub use file::{Expectation, Selection};
pub use layout::{CoreUse, Layout};
pub use load::{Act, Crowd, CrowdKind, HttpVersion, Load};
pub(crate) use restart::OWN;
pub use screen::{Keep, Screen};
use serde::{Deserialize, Serialize};
pub use template::Addresses;

use crate::facts::Expect;
use crate::measure::Measure;

/// A level of a factor: one of the values that the factor takes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Level {
    /// A text, such as `prefork`.
    Text(String),
    /// A whole number, such as 100.
    Count(i64),
    /// `true` or `false`.
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

/// The form in which an experiment's file is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Whether the short form is read: values of `[quick]` replace others.
    pub is_quick: bool,
    /// Whether the published form is read, which is another file of the same experiment: only the cells and claims of
    /// the source.
    pub is_published: bool,
    /// Whether the experiment is made a duel, even if its file does not say so: all cells are up at once, and are
    /// measured in turn in short blocks.
    pub is_duel: bool,
    /// The modules of servers that this machine has; levels that need other modules are left out.
    pub modules: Vec<String>,
    /// Which eras the form has, if the file has both.
    pub eras: Eras,
}

impl From<bool> for Form {
    fn from(is_quick: bool) -> Self {
        Self {
            is_quick,
            ..Self::default()
        }
    }
}

/// One level for each of several factors, by the factor's name.
pub type Levels = BTreeMap<String, Level>;

/// A factor: what differs between cells, such as the server or the number of clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// The factor's name.
    pub name: String,
    /// The factor's levels, in the file's order.
    pub levels: Vec<Level>,
}

/// An experiment, as read from its file.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The name by which `lab run` takes it.
    pub name: String,
    /// The question that the experiment is to answer.
    pub question: String,
    /// The publication that the experiment repeats; empty if there is none.
    pub source: String,
    /// The factors, in the file's order.
    pub factors: Vec<Factor>,
    /// All combinations of levels that are measured.
    pub cells: Vec<Levels>,
    /// The number of the cell with which the others are compared.
    pub control: usize,
    /// The servers, the backmost first.
    servers: Vec<file::ServerKeys>,
    core_share: Option<file::CoreShareKeys>,
    /// Which programs share a core, and what was the limit in the source; `None`: the file does not say.
    pub layout: Option<Layout>,
    load: file::LoadKeys,
    beside: Vec<file::BesideKeys>,
    action: Vec<file::ActionKeys>,
    /// Factors by which cells share servers: within a round, cells with the same levels of these factors use the same
    /// servers. Empty: each cell has its own.
    pub nest: Vec<String>,
    /// Sysctls of the run's network, by name.
    pub sysctl: BTreeMap<String, String>,
    /// The names of gates that are not checked.
    pub gates_off: Vec<String>,
    /// The names of gates that forbid only claims on times, and do not make a run void.
    pub gates_of_times: Vec<String>,
    expect: file::ExpectKeys,
    /// What is counted besides times and CPU time.
    pub measure: CountPlan,
    /// The number of planned rounds, without those of a screen. The last look at the claims is after them.
    pub rounds: usize,
    /// The number of rounds after which all claims were decided, so that the remaining ones were not made; without
    /// those of a screen. `None`: that did not happen.
    pub decided_after: Option<usize>,
    /// A first pass over many cells, which chooses the cells of the rounds; `None`: there is none.
    pub screen: Option<Screen>,
    /// The seed of the random orders of cells.
    pub seed: u64,
    /// The claims, each with its cases.
    pub claims: Vec<Claim>,
    /// The published figures that ours are compared with.
    pub published: Vec<PublishedRun>,
    /// Published runs that are repeated with the source's own values.
    pub as_published: Vec<OriginalRun>,
    /// Whether this is the short form: `[quick]` has replaced values.
    pub is_quick: bool,
    /// Whether this is the published form: only the cells and claims of the source.
    pub is_published: bool,
    /// Whether this is a duel: all cells are up at once, and are measured in turn in short blocks.
    pub is_duel: bool,
    /// The modules of servers that this machine has, whose levels are part of the experiment.
    pub modules: Vec<String>,
    /// All modules that levels of the file need, software of published tests included.
    pub known_modules: Vec<String>,
    /// Whether servers of published tests run on a JDK that the user has named.
    pub has_own_jdk: bool,
    /// Whether two builds of our own program are a factor: see [`Experiment::against`].
    pub is_against: bool,
    /// Whether system calls are also timed, and counted for each process by itself.
    pub is_traced: bool,
    /// Whether BPF is not used. System calls and bytes are then not counted by the kernel, as on a machine that forbids
    /// BPF.
    pub is_without_bpf: bool,
    /// The text of the file.
    pub text: String,
}

/// What is counted besides times and CPU time; all names are those of servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountPlan {
    /// Servers whose system calls are counted.
    pub syscalls: Vec<String>,
    /// Servers with the name of one of their ports, whose bytes are counted.
    pub bytes: Vec<(String, String)>,
    /// Servers whose allocated memory is read.
    pub memory: Vec<String>,
    /// Servers that are Java virtual machines, whose heap and collections are read.
    pub jvm: Vec<String>,
}

/// A published figure, with where it was published.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRun {
    /// The levels of the published run; empty for a ratio.
    pub cell: Levels,
    /// How the published run was selected: the only one, or the best of several.
    pub how: Selection,
    /// The name of the published text, or the subject of the published table.
    pub name: String,
    /// The row of the published table in words; empty for a text.
    pub says: String,
    /// The published figure.
    pub figures: PublishedFigure,
    /// A conclusion that the figure does not support, in addition to those that gates find; `None`: there is none.
    pub note: Option<String>,
    /// For a table of system calls, the number of requests that the process answered.
    pub requests: Option<u64>,
}

/// A published figure of one run, or the ratio of two.
#[derive(Clone, Debug, PartialEq)]
pub enum PublishedFigure {
    /// The output of a load generator or of `strace -c`.
    Text(&'static str),
    /// A throughput in requests per second.
    Rate {
        /// The mean; `None`: the source does not give one.
        mean: Option<f64>,
        /// The lowest and the highest rate of a second, as the source gives them.
        interval: Option<[f64; 2]>,
    },
    /// A ratio of two throughputs.
    Ratio {
        /// The ratio; `None`: the source gives only an interval.
        ratio: Option<f64>,
        /// The lowest and the highest ratio; `None`: the source gives only one.
        interval: Option<[f64; 2]>,
        /// The numbers of our cells with these levels, the numerator's first; `None` if we do not run one of them.
        cells: Option<[usize; 2]>,
        /// The claim that tests this ratio, in its words; `None`: there is none.
        claim: Option<String>,
    },
}

/// A published run that is repeated with the source's own values.
#[derive(Clone, Debug)]
pub struct OriginalRun {
    /// The name of the published text, or a description of the run.
    pub name: String,
    /// The published output of ab.
    pub text: String,
    /// The levels of the cell on whose servers the run is made.
    pub cell: Levels,
    /// The number of clients.
    pub clients: u64,
    /// The number of requests.
    pub requests: u64,
    /// Whether connections are kept alive.
    pub keep_alive: bool,
    /// Whether the run continues with the servers of the published run before it; else its servers are started for it.
    pub is_again: bool,
    /// Whether each round repeats the run: on servers that have just been started, and once more when they are warm.
    pub is_every_round: bool,
    /// The ways in which the repeated run differs from the published one.
    pub deviations: Vec<String>,
    set: BTreeMap<String, BTreeMap<String, Level>>,
}

/// A server of one cell: its keys of the file with all templates rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellServer {
    /// The server's name in the experiment.
    pub name: String,
    /// The kind of server: the name of its target.
    pub target: String,
    /// The settings of the target: name and value.
    pub set: Vec<(String, String)>,
    /// The core that the server is pinned to; `None`: any core.
    pub core: Option<usize>,
    /// The part of the core that the server may have; `None`: all of it.
    pub core_share: Option<CoreShare>,
    /// The number of rounds after which the server is started anew; 0: for each run, `usize::MAX`: never.
    pub rounds: usize,
}

/// The fewest rounds from which anything can be concluded.
pub const ROUNDS_MIN: usize = 6;

/// The most rounds that can be planned.
pub const ROUNDS_MAX: usize = looks::PLANNED_MAX;

/// Levels in one line: `keep=on mpm=prefork`.
#[must_use]
pub fn label(levels: &Levels) -> String {
    let words = levels.iter().map(|(name, level)| format!("{name}={level}"));
    words.collect::<Vec<_>>().join(" ")
}

impl Experiment {
    /// The levels that the source is about, which are those of the control; `None` if the experiment repeats no
    /// publication.
    #[must_use]
    pub fn subject(&self) -> Option<&Levels> {
        if self.source.is_empty() {
            return None;
        }
        self.cells.get(self.control)
    }

    /// Whether cells that share levels share servers within a round.
    pub(crate) fn is_nested(&self) -> bool {
        !self.nest.is_empty()
    }

    /// Whether any server runs for more than one round.
    pub(crate) fn outlives_rounds(&self) -> bool {
        let mut servers = self.servers.iter();
        servers.any(|server| server.restart != file::Restart::Round)
    }

    /// Whether system calls and bytes are counted in a span of their own, because counting takes CPU time. There is no
    /// such span in the short form, to save time, and none without BPF, which counts them. A duel has another one,
    /// after its blocks.
    #[must_use]
    pub fn counts_apart(&self) -> bool {
        let CountPlan {
            syscalls, bytes, ..
        } = &self.measure;
        let has_counts = !syscalls.is_empty() || !bytes.is_empty();
        has_counts && !self.is_quick && !self.is_without_bpf && !self.is_duel
    }

    /// Whether any server is never started anew. Then all rounds share what its start has brought, such as where its
    /// memory lies.
    #[must_use]
    pub fn is_never_restarted(&self) -> bool {
        let never = |server: &file::ServerKeys| server.restart == file::Restart::Never;
        self.servers.iter().any(never)
    }

    /// The published runs of a cell that each round repeats, in their order.
    pub(crate) fn every_round<'a>(
        &'a self,
        levels: &'a Levels,
    ) -> impl Iterator<Item = &'a OriginalRun> {
        let runs = self.as_published.iter();
        runs.filter(move |run| run.is_every_round && run.cell == *levels)
    }

    /// Whether a later run may use the same process of a server: cells share it, or it lives for several rounds.
    pub(crate) fn keeps(&self, server: &CellServer) -> bool {
        self.is_nested() || server.rounds > 1
    }

    /// The shares of the capacity, each above 0 and below 1, at which the load is also driven by a schedule. The
    /// capacity is the throughput of the slowest cell with as many clients. Empty: there are no such loads.
    pub(crate) fn shares(&self) -> &[f64] {
        &self.load.shares
    }

    /// The name of the server with the number `number`, from 0.
    pub(crate) fn server_name(&self, number: usize) -> &str {
        &self.servers[number].name
    }

    /// The levels of a cell, in the order of the factors; factors with only one level are left out.
    #[must_use]
    pub fn label(&self, cell: usize) -> String {
        let varied = self.factors.iter().filter(|factor| factor.levels.len() > 1);
        let words =
            varied.map(|factor| format!("{}={}", factor.name, self.cells[cell][&factor.name]));
        words.collect::<Vec<_>>().join(" ")
    }

    /// The same experiment with two builds of our own program as a further factor. Each cell is there twice, and the
    /// claims are that the new build has not changed CPU time, throughput, p99 and memory.
    #[must_use]
    pub fn against(mut self) -> Self {
        let levels = [NEW, OLD].map(|level| Level::Text(level.to_owned()));
        let count = self.cells.len();
        // The cells of the old build come after all cells of the new one, in the same order.
        let mut cells = Vec::new();
        for level in &levels {
            for cell in &self.cells {
                let mut of_build = cell.clone();
                of_build.insert(BINARY.to_owned(), level.clone());
                cells.push(of_build);
            }
        }
        self.cells = cells;
        self.factors.push(Factor {
            name: BINARY.to_owned(),
            levels: levels.to_vec(),
        });
        // The control is a cell of the old build.
        self.control += count;
        // Both passes of a screen have the same cells of both builds.
        if let Some(screen) = &mut self.screen {
            for cells in [&mut screen.cells, &mut screen.then] {
                let of_old: Vec<usize> = cells.iter().map(|cell| cell + count).collect();
                cells.extend(of_old);
            }
        }
        self.claims = self.claims_on_builds(count);
        self.published.clear();
        self.is_against = true;
        self
    }

    /// The claims that the new build is as the old one, if there are `count` cells of each build.
    fn claims_on_builds(&self, count: usize) -> Vec<Claim> {
        let contrast = |cell: usize| Contrast {
            above: vec![cell],
            below: vec![cell + count],
        };
        let case = Case {
            each: Levels::new(),
            contrasts: (0..count).map(contrast).collect(),
        };
        let side = |build: &str| {
            let level = Level::Text(build.to_owned());
            Levels::from([(BINARY.to_owned(), level)])
        };
        let claim = |name: &str| {
            let measure = Measure::parse(name).ok()?;
            Some(Claim {
                says: format!(
                    "The new binary has the old one's {}{}",
                    measure.words()[1],
                    measure.place()
                ),
                measure,
                level: side(NEW),
                over: side(OLD),
                expect: Expectation::Same,
                margin: MARGIN,
                published: Vec::new(),
                planted: None,
                names_reuse: false,
                cases: vec![case.clone()],
            })
        };
        ["cpu", "throughput", "p99", "memory"]
            .into_iter()
            .filter(|name| *name != "memory" || !self.measure.memory.is_empty())
            .filter_map(claim)
            .collect()
    }

    /// The experiment with a single cell, that of a published run with the source's own settings. If the run continues
    /// with the servers of the run before it, cells share servers by all factors, so that both have the same servers.
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

/// The factor whose levels are two builds of our own program.
pub const BINARY: &str = "binary";
/// The level of [`BINARY`] for the older build.
pub const OLD: &str = "old";
const NEW: &str = "new";

/// The default margin of claims: ratios within 5 % of 1 count as no difference.
const MARGIN: f64 = 0.05;

#[cfg(test)]
mod tests;
