//! Where an experiment ran: kernel, processors, memory, limits.

use std::fs;

use serde::{Deserialize, Serialize};

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The kernel's version.
    pub kernel: String,
    /// The name of the processors' model.
    pub processor: String,
    /// The number of cores.
    pub cores: usize,
    /// Main memory in MiB.
    pub memory_mib: u64,
    /// The distribution.
    pub system: String,
    /// When the experiment began, in Unix time.
    pub started_at_s: u64,
    /// The version of catamaran.
    pub catamaran: String,
    /// The profile of cargo that our own binary was built with: `dist`, `release`, `dev` or another;
    /// empty in results that are older than this field.
    #[serde(default)]
    pub build: String,
    /// The checksum of our own binary's contents; empty if it cannot be read.
    #[serde(default)]
    pub binary: String,
}

impl Host {
    /// This machine at `now`, in Unix time, and the profile that this binary was built with. What cannot
    /// be read is empty.
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

    /// A warning beside figures of a build that is slower than the published one; `None` if it is that one, or not
    /// known.
    #[must_use]
    pub fn slow_build(&self) -> Option<String> {
        slow_build(&self.build)
    }

    /// The first part that differs, with both values: then rounds that began there cannot go on here.
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
        let differs = parts.iter().find(|(_, one, other)| one != other);
        differs.map(|(name, one, other)| format!("its {name} was {one} and is {other} now"))
    }
}

/// A warning beside figures of a slower `build`; `None` if it is the published one, or not known.
pub(crate) fn slow_build(build: &str) -> Option<String> {
    let is_slow = !build.is_empty() && build != PUBLISHED;
    is_slow.then(|| {
        format!(
            "This is a {build} build of catamaran, which is slower than a dist build; publish and \
             compare figures of `cargo build --profile dist` only."
        )
    })
}

/// A checksum of this program (FNV-1a), which tells builds apart.
fn binary() -> String {
    let bytes = fs::read("/proc/self/exe").unwrap_or_default();
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    match bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix) {
        _ if bytes.is_empty() => String::new(),
        hash => format!("{hash:016x}"),
    }
}

/// The text behind `name` on its line, up to `end`.
fn value(text: &str, name: &str, end: char) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.unwrap_or_default().trim();
    value.split(end).next().unwrap_or_default().to_owned()
}

/// The profile that packages and published figures have.
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
