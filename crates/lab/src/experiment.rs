//! Experiments as data: which factors vary, which servers are started, what load is driven, what is
//! claimed.
//!
//! A file is read whole and all its faults are found at once, each with its line. Addresses are known
//! only when servers run: what a cell's templates make of them is asked for then ([`Experiment::server`],
//! [`Experiment::load`]). That they render in every cell is checked when the file is read.

mod cells;
mod claims;
mod file;
mod lines;
mod load;
mod read;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

pub use claims::{Case, Claim, Contrast};
pub use file::{Expectation, How};
pub use load::{Idle, Load};
use serde::{Deserialize, Serialize};

use crate::gate::Expect;

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

/// Levels by the names of their factors.
pub type Levels = BTreeMap<String, Level>;

/// What is varied.
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
    /// As `lab run` calls it.
    pub name: String,
    /// What it is to answer.
    pub question: String,
    /// Who published figures on it; empty if nobody did.
    pub source: String,
    /// What is varied, in the file's order.
    pub factors: Vec<Factor>,
    /// All combinations of levels that are measured.
    pub cells: Vec<Levels>,
    /// The cell that the others are set beside.
    pub control: usize,
    /// Servers, backmost first.
    servers: Vec<file::ServerKeys>,
    load: file::LoadKeys,
    expect: file::ExpectKeys,
    /// What is counted beside time and CPU time.
    pub measure: Counted,
    /// Rounds to begin with.
    pub rounds: usize,
    /// A wider interval than this on the first claim's measure lets rounds go on to
    /// [`ROUNDS_MAX`]; half of the interval's logarithm.
    pub half_width: Option<f64>,
    /// Of the orders.
    pub seed: u64,
    /// What is claimed.
    pub claims: Vec<Claim>,
    /// What was published.
    pub published: Vec<PublishedRun>,
    /// Whether `[quick]` has replaced keys.
    pub is_quick: bool,
    /// The file as it was read.
    pub text: String,
}

/// What is counted beside time and CPU time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Servers whose system calls are counted.
    pub syscalls: Vec<String>,
    /// Server and port whose bytes are counted.
    pub bytes: Vec<(String, String)>,
    /// Servers whose memory is read.
    pub memory: Vec<String>,
}

/// A published run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedRun {
    /// The levels that it had.
    pub cell: Levels,
    /// What it was one of.
    pub how: How,
    /// The name of its text.
    pub name: String,
    /// What was printed.
    pub text: &'static str,
}

/// A server of a cell, its templates rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOf {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub target: String,
    /// Its settings.
    pub set: Vec<(String, String)>,
    /// The core that it is bound to.
    pub core: Option<usize>,
}

/// Rounds that an extension leads to.
pub const ROUNDS_MAX: usize = 20;

/// The numbers of rounds whose intervals waste the least.
pub const ROUNDS: [usize; 6] = [6, 9, 12, 15, 17, ROUNDS_MAX];

/// `rounds`, or the next number of [`ROUNDS`] above it.
#[must_use]
pub fn round_up(rounds: usize) -> usize {
    let next = ROUNDS.iter().find(|&&known| known >= rounds);
    next.copied().unwrap_or(ROUNDS_MAX)
}

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
    /// A cell's levels in the order of factors, of those factors that have several levels.
    #[must_use]
    pub fn label(&self, cell: usize) -> String {
        let varied = self.factors.iter().filter(|factor| factor.levels.len() > 1);
        let words =
            varied.map(|factor| format!("{}={}", factor.name, self.cells[cell][&factor.name]));
        words.collect::<Vec<_>>().join(" ")
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

#[cfg(test)]
mod tests;
