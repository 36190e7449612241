//! Where an experiment ran: kernel, processors, memory, limits.

use std::fs;

use serde::{Deserialize, Serialize};

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The kernel's version.
    pub kernel: String,
    /// What the processors call themselves.
    pub processor: String,
    /// How many there are.
    pub cores: usize,
    /// Main memory in MiB.
    pub memory_mib: u64,
    /// The distribution.
    pub system: String,
    /// When the experiment began, in Unix time.
    pub started_at_s: u64,
    /// Our own version.
    pub catamaran: String,
}

impl Host {
    /// This machine at `now`, in Unix time. What cannot be read is empty.
    #[must_use]
    pub fn read(now: u64) -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = text("/proc/cpuinfo");
        let release = text("/etc/os-release");
        let memory = text("/proc/meminfo");
        let kib = value(&memory, "MemTotal:", ' ').parse::<u64>().unwrap_or(0);
        Self {
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            processor: value(&cpuinfo, "model name", '\n')
                .trim_start_matches(':')
                .trim()
                .to_owned(),
            cores: cpuinfo
                .lines()
                .filter(|line| line.starts_with("processor"))
                .count(),
            memory_mib: kib / 1024,
            system: value(&release, "PRETTY_NAME=", '\n')
                .trim_matches('"')
                .to_owned(),
            started_at_s: now,
            catamaran: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// What follows `name` on its line, up to `end`.
fn value(text: &str, name: &str, end: char) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.unwrap_or_default().trim();
    value.split(end).next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_cores_and_a_kernel() {
        let host = Host::read(7);
        assert!(
            host.cores > 0 && host.memory_mib > 0 && !host.kernel.is_empty(),
            "{host:?}"
        );
    }

    #[test]
    fn values_of_lines() {
        assert_eq!(value("a\nMemTotal:   24 kB\n", "MemTotal:", ' '), "24");
        assert_eq!(value("model name\t: X 3\n", "model name", '\n'), ": X 3");
        assert_eq!(value("", "model name", '\n'), "");
    }
}
