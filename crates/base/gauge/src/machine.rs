//! Checks what a machine allows a long-running server: one result for each limit, and warnings of settings that do
//! harm.
//!
//! All files are read below a root directory, so that tests can provide their own. Nothing is changed: each [`Check`]
//! has the command that would change the setting. What the server needs is passed as an argument; this module knows no
//! configuration.

mod cgroup;
mod cores;
mod folklore;
mod network;
mod unit;

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use rustix::process::{Resource, getrlimit};
pub use unit::Unit;

/// The verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The limit suffices.
    Enough,
    /// The limit does not suffice.
    Short,
    /// Nothing depends on the value, but it is worth knowing.
    Note,
    /// The setting is one that old pages recommend, but it does not help or does harm.
    Folklore,
}

impl Verdict {
    /// The verdict in one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Enough => "ok",
            Self::Short => "short",
            Self::Note => "note",
            Self::Folklore => "folklore",
        }
    }
}

/// The result of looking at one limit or setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The limit or setting that was checked, by the system's name.
    pub what: String,
    /// The value found.
    pub value: String,
    /// What is needed, with the configuration keys that ask for it; otherwise what to know about the setting.
    pub needed: String,
    /// The command that changes it; empty if nothing has to be changed.
    pub command: String,
    /// Whether the value suffices.
    pub verdict: Verdict,
}

impl Check {
    /// A check with this verdict and without a command.
    #[must_use]
    pub fn new(
        verdict: Verdict,
        what: impl Into<String>,
        value: impl ToString,
        needed: impl Into<String>,
    ) -> Self {
        Self {
            what: what.into(),
            value: value.to_string(),
            needed: needed.into(),
            command: String::new(),
            verdict,
        }
    }

    /// A check whose verdict is [`Verdict::Enough`] if `suffices`, and [`Verdict::Short`] otherwise.
    #[must_use]
    pub fn of(
        suffices: bool,
        what: impl Into<String>,
        value: impl ToString,
        needed: impl Into<String>,
    ) -> Self {
        let verdict = if suffices {
            Verdict::Enough
        } else {
            Verdict::Short
        };
        Self::new(verdict, what, value, needed)
    }

    /// Whether the verdict is [`Verdict::Short`].
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.verdict == Verdict::Short
    }

    /// Adds the command that changes the setting, unless the verdict is [`Verdict::Enough`].
    #[must_use]
    pub fn by(mut self, command: impl Into<String>) -> Self {
        if self.verdict != Verdict::Enough {
            self.command = command.into();
        }
        self
    }
}

/// The check as one line.
impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<8} {} = {}",
            self.verdict.word(),
            self.what,
            self.value
        )?;
        if !self.needed.is_empty() {
            write!(f, " ({})", self.needed)?;
        }
        if !self.command.is_empty() {
            write!(f, ": {}", self.command)?;
        }
        Ok(())
    }
}

/// The limits of the machine that a server needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerDemand {
    /// The most connections of clients.
    pub clients: u64,
    /// The most connections to backends.
    pub backends: u64,
    /// The most open files: both kinds of connections, logs and listeners.
    pub files: u64,
    /// The most handshakes and connections that wait at a listener to be accepted.
    pub burst: u64,
    /// The addresses of backends, each with the most connections that it may have.
    pub dials: Vec<(String, u64)>,
    /// The number of threads that serve requests.
    pub workers: u64,
    /// The memory needed, in bytes.
    pub memory: u64,
}

/// A machine, as described by the files of its kernel.
#[derive(Clone, Debug)]
pub struct Machine {
    root: PathBuf,
}

impl Machine {
    /// The machine that this process runs on.
    #[must_use]
    pub fn here() -> Self {
        Self::below("/")
    }

    /// A machine whose files are below `root`, for tests.
    #[must_use]
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Checks every limit that `demand` may reach. With a `unit`, the unit's limit of open files is used instead of
    /// this process's.
    #[must_use]
    pub fn examine(&self, demand: &ServerDemand, unit: Option<&Unit>) -> Vec<Check> {
        let needed =
            format!("`connections_max` + `connections_max` of all backends + {SPARE_FILES}");
        let mut checks = self.files(demand.files, &needed, unit);
        checks.extend(self.network(demand));
        checks.extend(self.cgroup(demand));
        checks.extend(self.cores(demand));
        checks.extend(self.memory());
        checks.extend(self.folklore());
        checks
    }

    /// Whether one of the known services reports that it keeps the clock right.
    #[must_use]
    pub fn is_clock_set(&self) -> bool {
        CLOCKS.iter().any(|path| self.root.join(path).exists())
    }

    /// How many files a server may open: as its unit says, or else as it inherits from this process.
    #[must_use]
    pub fn open_files(&self, unit: Option<&Unit>) -> u64 {
        let of_unit = unit.and_then(|unit| unit.open_files);
        of_unit.unwrap_or_else(|| getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX))
    }

    /// Checks the limit of open files that a server inherits from whoever starts it, and the most that any process may
    /// have.
    ///
    /// `need` is the number of files needed, and `reason` says in words what for.
    #[must_use]
    pub fn files(&self, need: u64, reason: &str, unit: Option<&Unit>) -> Vec<Check> {
        let needed = format!("{need} needed: {reason}");
        let mut checks = Vec::new();
        if let Some(unit) = unit
            && let Some(files) = unit.open_files
        {
            let what = format!("LimitNOFILE of {}", unit.path.display());
            let edit = format!("systemctl edit catamaran: [Service] LimitNOFILE={need}");
            checks.push(Check::of(files >= need, what, files, needed).by(edit));
        } else {
            let hard = self.open_files(None);
            let raise = format!("ulimit -Hn {need} as root, or LimitNOFILE={need} in a unit");
            checks.push(Check::of(hard >= need, OPEN_FILES, hard, needed).by(raise));
        }
        if let Some(value) = self.number("fs.nr_open") {
            let needed = format!("{need} needed, as for open files");
            let raise = format!("sysctl -w fs.nr_open={need}");
            checks.push(Check::of(value >= need, "fs.nr_open", value, needed).by(raise));
        }
        checks
    }

    fn memory(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        if let Some(text) = self.read("sys/kernel/mm/transparent_hugepage/enabled") {
            // The choice in force is in brackets: `always [madvise] never`.
            let chosen = text.split(['[', ']']).nth(1).unwrap_or(&text);
            let note = "the front's allocator does not ask for them; `always` costs a JVM memory";
            checks.push(Check::new(Verdict::Note, "huge pages", chosen, note));
        }
        if let Some(swappiness) = self.number("vm.swappiness") {
            let swaps = self.read("proc/swaps").unwrap_or_default();
            let note = match swaps.lines().count() {
                // The first line has the headings.
                0 | 1 => "there is no swap",
                _ => "pages of an idle server may go to disk",
            };
            checks.push(Check::new(Verdict::Note, "vm.swappiness", swappiness, note));
        }
        checks
    }

    /// The text of a file below the root, trimmed; `None` if it cannot be read.
    fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path)).ok()?;
        Some(text.trim().to_owned())
    }

    /// The text of a setting of sysctl(8).
    fn sysctl(&self, name: &str) -> Option<String> {
        self.read(Path::new("proc/sys").join(name.replace('.', "/")))
    }

    /// The first number of a setting of sysctl(8).
    fn number(&self, name: &str) -> Option<u64> {
        self.sysctl(name)?.split_whitespace().next()?.parse().ok()
    }
}

/// Files that systemd-timesyncd, chrony and ntpsec keep while they run.
const CLOCKS: [&str; 4] = [
    "run/systemd/timesync/synchronized",
    "run/chrony/chronyd.pid",
    "run/ntpd.pid",
    "run/ntpsec.pid",
];
/// The name of the check of open files.
pub const OPEN_FILES: &str = "open files";
/// Files that a server needs beside its connections, for listeners, logs and event queues.
pub const SPARE_FILES: u64 = 64;

#[cfg(test)]
mod tests;
