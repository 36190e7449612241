//! What a machine allows a server that runs for long: a line for each limit, and advice that does harm.
//!
//! Everything is read below a root, so that tests can plant it. Nothing is changed: each [`Check`] has the command that
//! would change it. What is needed is an argument; this module knows no configuration.

mod cgroup;
mod cores;
mod folklore;
mod network;
mod unit;

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use rustix::process::{Resource, getrlimit};
pub use unit::Unit;

/// Whether something suffices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Enough,
    /// It does not.
    Short,
    /// Nothing depends on it, but it is worth knowing.
    Note,
    /// A setting that old pages recommend, and that does not help or does harm.
    Folklore,
}

impl Verdict {
    /// In one word.
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

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was looked at, as the system calls it.
    pub what: String,
    /// What is there.
    pub value: String,
    /// What is needed, and which keys ask for it; or what to know of it.
    pub needed: String,
    /// What changes it; empty if nothing has to be changed.
    pub command: String,
    /// Whether it suffices.
    pub verdict: Verdict,
}

impl Check {
    /// A check with this verdict and no command.
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

    /// Enough if `suffices`, otherwise short.
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

    /// Whether it is short.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.verdict == Verdict::Short
    }

    /// With what changes it, unless there is enough.
    #[must_use]
    pub fn by(mut self, command: impl Into<String>) -> Self {
        if self.verdict != Verdict::Enough {
            self.command = command.into();
        }
        self
    }
}

/// One line.
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

/// What a front needs of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerDemand {
    /// Connections of clients.
    pub clients: u64,
    /// Connections to backends.
    pub backends: u64,
    /// Open files: connections of both kinds, logs and listeners.
    pub files: u64,
    /// Handshakes and connections that wait to be accepted, at a listener.
    pub burst: u64,
    /// Addresses of backends, each with the connections that it may have.
    pub dials: Vec<(String, u64)>,
    /// Threads that serve requests.
    pub workers: u64,
    /// Bytes of memory.
    pub memory: u64,
}

/// A machine, as the kernel's files show it.
#[derive(Clone, Debug)]
pub struct Machine {
    root: PathBuf,
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn here() -> Self {
        Self::below("/")
    }

    /// One whose files are below `root`.
    #[must_use]
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Everything that `demand` may meet. With a `unit`, its limit of open files counts instead of this process's.
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

    /// Whether a known service says that it keeps the clock right.
    #[must_use]
    pub fn is_clock_set(&self) -> bool {
        CLOCKS.iter().any(|path| self.root.join(path).exists())
    }

    /// How many files a server may open: what its unit says, or else what it inherits from this process.
    #[must_use]
    pub fn open_files(&self, unit: Option<&Unit>) -> u64 {
        let of_unit = unit.and_then(|unit| unit.open_files);
        of_unit.unwrap_or_else(|| getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX))
    }

    /// The limit that a server inherits from who starts it, and the most that any process may have. `need` files are
    /// needed, `reason` says for what.
    #[must_use]
    pub fn files(&self, need: u64, reason: &str, unit: Option<&Unit>) -> Vec<Check> {
        let needed = format!("{need} needed: {reason}");
        let of_unit = unit.and_then(|unit| Some((unit.open_files?, unit)));
        let limit = match of_unit {
            Some((files, unit)) => {
                let what = format!("LimitNOFILE of {}", unit.path.display());
                let edit = format!("systemctl edit catamaran: [Service] LimitNOFILE={need}");
                Check::of(files >= need, what, files, needed).by(edit)
            }
            None => {
                let hard = self.open_files(None);
                let raise = format!("ulimit -Hn {need} as root, or LimitNOFILE={need} in a unit");
                Check::of(hard >= need, OPEN_FILES, hard, needed).by(raise)
            }
        };
        let all = self.number("fs.nr_open").map(|value| {
            let needed = format!("{need} needed, as for open files");
            Check::of(value >= need, "fs.nr_open", value, needed)
                .by(format!("sysctl -w fs.nr_open={need}"))
        });
        std::iter::once(limit).chain(all).collect()
    }

    fn memory(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        if let Some(text) = self.read("sys/kernel/mm/transparent_hugepage/enabled") {
            let chosen = text.split(['[', ']']).nth(1).unwrap_or(&text);
            let said = "the front's allocator does not ask for them; `always` costs a JVM memory";
            checks.push(Check::new(Verdict::Note, "huge pages", chosen, said));
        }
        if let Some(swappiness) = self.number("vm.swappiness") {
            let swaps = self.read("proc/swaps").unwrap_or_default();
            let said = match swaps.lines().count() {
                0 | 1 => "there is no swap",
                _ => "pages of an idle server may go to disk",
            };
            checks.push(Check::new(Verdict::Note, "vm.swappiness", swappiness, said));
        }
        checks
    }

    /// A file's text without the space around it; `None` if it cannot be read.
    fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path)).ok()?;
        Some(text.trim().to_owned())
    }

    fn sysctl(&self, name: &str) -> Option<String> {
        self.read(Path::new("proc/sys").join(name.replace('.', "/")))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.sysctl(name)?.split_whitespace().next()?.parse().ok()
    }
}

/// What systemd-timesyncd, chrony and ntpsec leave while they run.
const CLOCKS: [&str; 4] = [
    "run/systemd/timesync/synchronized",
    "run/chrony/chronyd.pid",
    "run/ntpd.pid",
    "run/ntpsec.pid",
];
/// The limit of open files, as a check names it.
pub const OPEN_FILES: &str = "open files";
/// Listeners, logs, event queues.
pub const SPARE_FILES: u64 = 64;

#[cfg(test)]
mod tests;
