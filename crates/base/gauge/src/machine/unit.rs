//! The systemd unit that runs a server, read from its files, so that systemd need not be
//! running.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Machine;

/// The settings of a unit, drop-ins included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// The file of the unit.
    pub path: PathBuf,
    /// The hard limit of open files (`LimitNOFILE`); `None` if the unit sets none.
    pub open_files: Option<u64>,
    /// `TimeoutStopSec`; if it is `None`, systemd waits 90 seconds.
    pub stop_timeout: Option<Duration>,
}

impl Machine {
    /// Reads the unit of that name, such as `catamaran.service`; `None` if none is
    /// installed.
    #[must_use]
    pub fn unit(&self, name: &str) -> Option<Unit> {
        let mut files = FOLDERS.iter().map(|folder| Path::new(folder).join(name));
        let path = files.find(|path| self.root.join(path).is_file())?;
        let mut unit = Unit {
            path: Path::new("/").join(&path),
            ..Unit::default()
        };
        unit.take(&self.read(&path)?);
        let mut parts = Vec::new();
        for folder in FOLDERS {
            let folder = self.root.join(folder).join(format!("{name}.d"));
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            parts.extend(entries.map(|entry| entry.path()));
        }
        parts.retain(|path| path.extension().is_some_and(|it| it == "conf"));
        parts.sort_by(|one, other| one.file_name().cmp(&other.file_name()));
        for part in parts {
            unit.take(&std::fs::read_to_string(part).unwrap_or_default());
        }
        Some(unit)
    }
}

impl Unit {
    fn take(&mut self, text: &str) {
        let lines = text.lines().map(str::trim);
        for (key, value) in lines.filter_map(|line| line.split_once('=')) {
            match key.trim() {
                "LimitNOFILE" => {
                    let hard = value.rsplit(':').next().unwrap_or(value).trim();
                    self.open_files = match hard {
                        "infinity" => Some(u64::MAX),
                        _ => hard.parse().ok(),
                    };
                }
                "TimeoutStopSec" => self.stop_timeout = duration(value.trim()),
                _ => {}
            }
        }
    }
}

/// Reads a duration as in systemd.time(7), of which units use numbers of seconds, minutes
/// and hours.
fn duration(text: &str) -> Option<Duration> {
    if matches!(text, "infinity" | "0") {
        return Some(Duration::MAX);
    }
    let mut seconds = 0;
    for word in text.split_whitespace() {
        let digits = word.trim_end_matches(|it: char| it.is_ascii_alphabetic());
        let unit = match &word[digits.len()..] {
            "" | "s" | "sec" => 1,
            "m" | "min" => 60,
            "h" | "hr" => 3600,
            _ => return None,
        };
        seconds += digits.parse::<u64>().ok()?.checked_mul(unit)?;
    }
    Some(Duration::from_secs(seconds))
}

const FOLDERS: &[&str] = &[
    "etc/systemd/system",
    "run/systemd/system",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
];
