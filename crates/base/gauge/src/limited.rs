//! Limits the CPU time of a group with the controller `cpu`: by a quota, or by a weight.
//!
//! A quota stops the processes once they have used their time in a period, so the group gets at most its part of
//! a core. A weight divides a core among the groups that want it, and what one does not use goes to the others,
//! so the group gets at least its part.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use procfs::process::Process;

use crate::group::{GroupFault, failed, read, value};
use crate::process::fault;

/// How the CPU time of a group is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuLimit {
    /// The processes run for `time` in each `period`, and are stopped for the rest of it.
    Quota {
        /// The CPU time in each period; at least a millisecond.
        time: Duration,
        /// The length of a period: from a millisecond to a second.
        period: Duration,
    },
    /// The group's part of a core in thousandths, from 1 to 1,000, when other groups with a weight compete for
    /// it.
    Weight(u32),
}

/// How often a quota has stopped a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stops {
    /// The periods in which the group's processes ran (`nr_periods`).
    pub periods: u64,
    /// The periods in which the quota was used up (`nr_throttled`).
    pub stopped: u64,
}

/// The cgroup whose controller `cpu` limits a group.
#[derive(Debug)]
pub(crate) enum Controller {
    /// Version 2: the group's own cgroup.
    Two(PathBuf),
    /// Version 1: a cgroup of the same name in that hierarchy, and how many components the name has.
    One(PathBuf, usize),
}

/// Finds the controller for the group called `name` below `own`, the cgroup that this process is in.
///
/// # Errors
/// Neither version offers the controller.
pub(crate) fn controller(own: &Path, name: &Path) -> Result<Controller, GroupFault> {
    let controllers = fs::read_to_string(own.join("cgroup.controllers")).unwrap_or_default();
    if controllers.split_whitespace().any(|word| word == CPU) {
        return Ok(Controller::Two(own.join(name)));
    }
    let parent = own_cgroup_of_version_1()?;
    Ok(Controller::One(
        parent.join(name),
        name.components().count(),
    ))
}

/// The path of this process's cgroup of version 1 for the controller.
fn own_cgroup_of_version_1() -> Result<PathBuf, GroupFault> {
    let proc_fault = |error| failed("read", Path::new("/proc/self"), fault(error));
    let process = Process::myself().map_err(proc_fault)?;
    let mut mounts = process.mountinfo().map_err(proc_fault)?.into_iter();
    let mount =
        mounts.find(|mount| mount.fs_type == "cgroup" && mount.super_options.contains_key(CPU));
    let Some(mount) = mount else {
        return Err(GroupFault::NoCpu(
            "neither version 2 gives it to this process, nor is version 1 mounted".to_owned(),
        ));
    };
    let mut groups = process.cgroups().map_err(proc_fault)?.into_iter();
    let own = groups.find(|group| group.controllers.iter().any(|name| name == CPU));
    let below_mount = own.map(|group| group.pathname).unwrap_or_default();
    let path = mount.mount_point.join(below_mount.trim_start_matches('/'));
    if path.is_dir() {
        return Ok(path);
    }
    // The mount of a container may begin at its own group.
    Ok(mount.mount_point)
}

impl Controller {
    /// The cgroup of version 1; `None` if the controller is of version 2.
    pub(crate) fn twin(&self) -> Option<&Path> {
        match self {
            Self::Two(_) => None,
            Self::One(path, _) => Some(path),
        }
    }

    /// Makes the controller's cgroup ready, and writes the limit to its files.
    pub(crate) fn set(&self, limit: CpuLimit) -> Result<(), GroupFault> {
        match self {
            Self::Two(path) => {
                let is_group = |path: &&Path| path.join("cgroup.controllers").exists();
                let parents: Vec<&Path> = path.ancestors().skip(1).take_while(is_group).collect();
                // A group can pass on only what the group above it gives.
                for parent in parents.iter().rev() {
                    make_available_below(parent)?;
                }
            }
            Self::One(path, _) => {
                fs::create_dir_all(path)
                    .map_err(|source| failed("make the cgroup", path, source))?;
            }
        }
        for (name, text) in self.values(limit) {
            let path = self.path().join(name);
            fs::write(&path, text).map_err(|source| failed("write", &path, source))?;
        }
        Ok(())
    }

    /// The names of the files to write for this limit, with their contents.
    fn values(&self, limit: CpuLimit) -> Vec<(&'static str, String)> {
        let us = |time: Duration| time.as_micros().to_string();
        match (self, limit) {
            (Self::Two(_), CpuLimit::Quota { time, period }) => {
                vec![("cpu.max", format!("{} {}", us(time), us(period)))]
            }
            // The kernel takes 1 to 10,000.
            (Self::Two(_), CpuLimit::Weight(part)) => vec![("cpu.weight", (part * 10).to_string())],
            (Self::One(..), CpuLimit::Quota { time, period }) => vec![
                ("cpu.cfs_period_us", us(period)),
                ("cpu.cfs_quota_us", us(time)),
            ],
            // The kernel takes 2 and more.
            (Self::One(..), CpuLimit::Weight(part)) => {
                vec![("cpu.shares", (part * 10).to_string())]
            }
        }
    }

    /// How often the quota has stopped the group.
    pub(crate) fn stops(&self) -> Result<Stops, GroupFault> {
        let text = read(&self.path().join("cpu.stat"))?;
        Ok(Stops {
            periods: value(&text, "nr_periods").unwrap_or(0),
            stopped: value(&text, "nr_throttled").unwrap_or(0),
        })
    }

    /// Removes the cgroup of version 1, and those above it that were made for it and are empty.
    pub(crate) fn remove(&self) {
        if let Self::One(path, parts) = self {
            for path in path.ancestors().take(*parts) {
                // One that still has others in it stays for them.
                let _ = fs::remove_dir(path);
            }
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Two(path) | Self::One(path, _) => path,
        }
    }
}

/// Makes the controller available to the groups below `parent`.
fn make_available_below(parent: &Path) -> Result<(), GroupFault> {
    let path = parent.join("cgroup.subtree_control");
    let available = read(&path)?;
    if available.split_whitespace().any(|word| word == CPU) {
        return Ok(());
    }
    fs::write(&path, "+cpu").map_err(|source| match source.kind() {
        ErrorKind::ResourceBusy => GroupFault::NoCpu(format!(
            "{} has processes of its own, so that groups below it may not have it. Start the lab from the \
             outermost group: `echo $$ > /sys/fs/cgroup/cgroup.procs`",
            parent.display()
        )),
        _ => failed("write", &path, source),
    })
}

const CPU: &str = "cpu";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_have_their_files() {
        let quota = CpuLimit::Quota {
            time: Duration::from_millis(4),
            period: Duration::from_millis(10),
        };
        let files = |controller: Controller, limit| {
            let values = controller.values(limit).into_iter();
            let lines = values.map(|(name, text)| format!("{name} = {text}"));
            lines.collect::<Vec<_>>().join(", ")
        };
        let one = || Controller::One(PathBuf::from("/cpu/lab/front"), 2);
        let two = || Controller::Two(PathBuf::from("/unified/lab/front"));
        for (controller, limit, expected) in [
            (
                one(),
                quota,
                "cpu.cfs_period_us = 10000, cpu.cfs_quota_us = 4000",
            ),
            (two(), quota, "cpu.max = 4000 10000"),
            (one(), CpuLimit::Weight(250), "cpu.shares = 2500"),
            (two(), CpuLimit::Weight(250), "cpu.weight = 2500"),
        ] {
            assert_eq!(files(controller, limit), expected);
        }
    }
}
