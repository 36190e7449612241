//! The machine on which an experiment ran: kernel, processors, memory.

use std::fs;

use serde::{Deserialize, Serialize};

/// The machine on which an experiment ran, and the build of catamaran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The version of the kernel.
    pub kernel: String,
    /// The model name of the processors.
    pub processor: String,
    /// The number of cores.
    pub cores: usize,
    /// The main memory in MiB.
    pub memory_mib: u64,
    /// The name of the system's distribution.
    pub system: String,
    /// The time at which the experiment began, in Unix time.
    pub started_at_s: u64,
    /// The version of catamaran.
    pub catamaran: String,
    /// The cargo profile of our own binary: `dist`, `release`, `dev` or another; empty in results
    /// older than this field.
    #[serde(default)]
    pub build: String,
    /// The checksum of our own binary's file; empty if it cannot be read.
    #[serde(default)]
    pub binary: String,
}

impl Host {
    /// This machine. `now` is in Unix time; `build` is the profile of this binary. Strings that
    /// cannot be read are empty.
    #[must_use]
    pub fn read(now: u64, build: &str) -> Self {
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
            build: build.to_owned(),
            binary: binary(),
        }
    }

    /// A warning if the binary was not built with the profile of published figures; `None` if it
    /// was, or that is not known.
    #[must_use]
    pub fn slow_build(&self) -> Option<String> {
        slow_build(&self.build)
    }

    /// The first part that differs from `other`, with both values: rounds that began there cannot
    /// be continued here. `None`: they are the same.
    #[must_use]
    pub fn differs_from(&self, other: &Self) -> Option<String> {
        let memory = [self, other].map(|host| host.memory_mib.to_string());
        let cores = [self, other].map(|host| host.cores.to_string());
        let parts = [
            ("kernel", &self.kernel, &other.kernel),
            ("processor", &self.processor, &other.processor),
            ("cores", &cores[0], &cores[1]),
            ("memory", &memory[0], &memory[1]),
            ("system", &self.system, &other.system),
            ("binary of catamaran", &self.binary, &other.binary),
        ];
        let (name, before, now) = parts.iter().find(|(_, before, now)| before != now)?;
        Some(format!("its {name} was {before} and is {now} now"))
    }
}

/// A warning if `build` is not the profile of published figures; `None` if it is, or is empty.
pub(crate) fn slow_build(build: &str) -> Option<String> {
    let is_slow = !build.is_empty() && build != PUBLISHED;
    is_slow.then(|| {
        format!(
            "This is a {build} build of catamaran, which is slower than a dist build; publish and \
             compare figures of `cargo build --profile dist` only."
        )
    })
}

/// The checksum of this program's file (FNV-1a), which distinguishes builds.
fn binary() -> String {
    let bytes = fs::read("/proc/self/exe").unwrap_or_default();
    if bytes.is_empty() {
        return String::new();
    }
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// The text after `name` at the beginning of a line, up to `end`; empty if there is no such line.
fn value(text: &str, name: &str, end: char) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.unwrap_or_default().trim();
    value.split(end).next().unwrap_or_default().to_owned()
}

/// The profile with which packages are built and published figures are measured.
const PUBLISHED: &str = "dist";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_cores_and_a_kernel() {
        let host = Host::read(7, "dist");
        assert!(
            host.cores > 0 && host.memory_mib > 0 && !host.kernel.is_empty(),
            "{host:?}"
        );
    }

    #[test]
    fn another_binary_or_kernel_does_not_go_on() {
        let host = Host::read(7, "dist");
        assert_eq!(host.differs_from(&Host::read(9, "dist")), None);
        let other = Host {
            binary: "0".to_owned(),
            ..host.clone()
        };
        let said = host.differs_from(&other).unwrap();
        assert!(said.starts_with("its binary of catamaran was "), "{said}");
    }

    #[test]
    fn a_build_that_is_not_published_is_named() {
        assert_eq!(Host::read(7, "dist").slow_build(), None);
        assert_eq!(Host::default().slow_build(), None);
        let said = Host::read(7, "release").slow_build().unwrap();
        assert!(said.starts_with("This is a release build "), "{said}");
    }

    #[test]
    fn values_of_lines() {
        assert_eq!(value("a\nMemTotal:   24 kB\n", "MemTotal:", ' '), "24");
        assert_eq!(value("model name\t: X 3\n", "model name", '\n'), ": X 3");
        assert_eq!(value("", "model name", '\n'), "");
    }
}
