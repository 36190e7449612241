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
        unit.apply(&self.read(&path)?);
        let mut drop_ins = Vec::new();
        for folder in FOLDERS {
            let drop_in_folder = self.root.join(folder).join(format!("{name}.d"));
            let entries = std::fs::read_dir(drop_in_folder).into_iter().flatten();
            drop_ins.extend(entries.flatten().map(|entry| entry.path()));
        }
        drop_ins.retain(|path| {
            path.extension()
                .is_some_and(|extension| extension == "conf")
        });
        // systemd applies them in the order of their names, whatever their folder.
        drop_ins.sort_by(|left, right| left.file_name().cmp(&right.file_name()));
        for path in drop_ins {
            unit.apply(&std::fs::read_to_string(path).unwrap_or_default());
        }
        Some(unit)
    }
}

impl Unit {
    /// Applies the settings of a file, which replace earlier ones.
    fn apply(&mut self, text: &str) {
        let lines = text.lines().map(str::trim);
        for (key, value) in lines.filter_map(|line| line.split_once('=')) {
            match key.trim() {
                "LimitNOFILE" => {
                    // `soft:hard`, or one number for both.
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
        let digits = word.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let seconds_a_unit = match &word[digits.len()..] {
            "" | "s" | "sec" => 1,
            "m" | "min" => 60,
            "h" | "hr" => 3600,
            _ => return None,
        };
        seconds += digits.parse::<u64>().ok()?.checked_mul(seconds_a_unit)?;
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
