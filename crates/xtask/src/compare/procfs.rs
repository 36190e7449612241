//! What Linux says of processes and cores in `/proc`: CPU time and memory.
//!
//! A front is a tree of processes. Its CPU time counts everything below its root, children that
//! have ended included, so that no model of processes and threads gets anything for free.

use std::collections::HashMap;
use std::fs;
use std::ops::Sub;

use anyhow::Context;

/// CPU time of a tree of processes, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cpu {
    pub(super) user: f64,
    pub(super) system: f64,
}

impl Cpu {
    pub(super) fn total(self) -> f64 {
        self.user + self.system
    }
}

impl Sub for Cpu {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            user: self.user - earlier.user,
            system: self.system - earlier.system,
        }
    }
}

/// Memory that belongs to a tree of processes alone, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    /// `RssAnon`: anonymous pages that are resident, such as heaps and stacks.
    pub(super) anonymous: f64,
    /// `Private_Dirty`: written pages that no other process shares.
    pub(super) private_dirty: f64,
}

/// How long a core has been busy and how long it has been there, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Core {
    pub(super) busy: f64,
    pub(super) total: f64,
}

/// A line of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stat {
    parent: u32,
    user_ticks: u64,
    system_ticks: u64,
}

/// The CPU time that `root` and all below it have used so far.
pub(super) fn cpu(root: u32) -> anyhow::Result<Cpu> {
    let (mut user, mut system) = (0, 0);
    for (_, stat) in tree(root)? {
        user += stat.user_ticks;
        system += stat.system_ticks;
    }
    Ok(Cpu {
        user: seconds(user),
        system: seconds(system),
    })
}

/// The memory that `root` and all below it have now.
pub(super) fn memory(root: u32) -> anyhow::Result<Memory> {
    let mut memory = Memory::default();
    for (pid, _) in tree(root)? {
        let bytes = |file: &str, name: &str| -> anyhow::Result<f64> {
            let path = format!("/proc/{pid}/{file}");
            let text = fs::read_to_string(&path).with_context(|| path.clone())?;
            kilobytes(&text, name).with_context(|| format!("{name} in {path}"))
        };
        let found = bytes("status", "RssAnon:")
            .and_then(|anonymous| Ok((anonymous, bytes("smaps_rollup", "Private_Dirty:")?)));
        match found {
            Ok((anonymous, private_dirty)) => {
                memory.anonymous += anonymous;
                memory.private_dirty += private_dirty;
            }
            Err(error) if pid == root => return Err(error),
            // A child that has ended since it was listed has no memory any more.
            Err(_) => {}
        }
    }
    Ok(memory)
}

/// How many threads `root` and all below it have now.
pub(super) fn threads(root: u32) -> anyhow::Result<usize> {
    let of = |(pid, _)| fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    Ok(tree(root)?.into_iter().map(of).sum())
}

/// The process `root` and all below it.
pub(super) fn pids(root: u32) -> anyhow::Result<Vec<u32>> {
    Ok(tree(root)?.into_iter().map(|(pid, _)| pid).collect())
}

/// What every core has done so far.
pub(super) fn cores() -> anyhow::Result<Vec<Core>> {
    let text = fs::read_to_string("/proc/stat").context("/proc/stat")?;
    Ok(parse_cores(&text))
}

fn tree(root: u32) -> anyhow::Result<Vec<(u32, Stat)>> {
    let mut all = HashMap::new();
    for entry in fs::read_dir("/proc").context("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // A process may end between being listed and being read.
        let line = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if let Some(stat) = parse_stat(&line) {
            all.insert(pid, stat);
        }
    }
    let above = |pid: &u32| all.get(pid).map(|stat: &Stat| stat.parent);
    let belongs = |pid: u32| std::iter::successors(Some(pid), above).any(|pid| pid == root);
    let tree = all.iter().filter(|(pid, _)| belongs(**pid));
    Ok(tree.map(|(pid, stat)| (*pid, *stat)).collect())
}

/// proc(5): the second field is the program's name in parentheses and may hold anything, these
/// included. The ticks of children that have ended are added to those of the process.
fn parse_stat(line: &str) -> Option<Stat> {
    let (_, rest) = line.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        user_ticks: ticks(11)? + ticks(13)?,
        system_ticks: ticks(12)? + ticks(14)?,
    })
}

/// proc(5): user, nice, system, idle, iowait, irq, softirq, steal, and two that user and nice
/// contain already.
fn parse_cores(text: &str) -> Vec<Core> {
    let mut cores = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        if !name.starts_with("cpu") || name == "cpu" {
            continue;
        }
        let ticks: Vec<u64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
        let total: u64 = ticks.iter().sum();
        let idle: u64 = ticks.iter().skip(3).take(2).sum();
        cores.push(Core {
            busy: seconds(total - idle),
            total: seconds(total),
        });
    }
    cores
}

fn kilobytes(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    let number: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(number * 1024.0)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "ticks of a run stay far below 2^52"
)]
fn seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_parentheses_and_spaces() {
        let line = "42 (a ) S 1 (b) S 7 42 42 0 -1 4194560 9 9 0 0 100 20 3 4 20 0 1 0 5 6 7";
        let expected = Stat {
            parent: 7,
            user_ticks: 103,
            system_ticks: 24,
        };
        assert_eq!(parse_stat(line), Some(expected));
        assert_eq!(parse_stat("42 (a) S 1"), None);
    }

    #[test]
    fn waiting_is_not_busy() {
        let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 0 20 50 10 1 2 7 3 3\nintr 5\n";
        let cores = parse_cores(text);
        assert_eq!(cores.len(), 1);
        assert_eq!(cores[0].busy * 10.0, cores[0].total * 4.0);
    }

    #[test]
    fn memory_is_read_by_name() {
        let text = "Rss:  900 kB\nPrivate_Dirty:      12 kB\n";
        assert_eq!(kilobytes(text, "Private_Dirty:"), Some(12.0 * 1024.0));
        assert_eq!(kilobytes(text, "RssAnon:"), None);
    }

    #[test]
    fn this_process_has_itself_in_its_tree() {
        let own = std::process::id();
        assert!(pids(own).unwrap().contains(&own));
        assert!(memory(own).unwrap().anonymous > 0.0);
        assert!(!cores().unwrap().is_empty());
    }
}
