//! Checks the limits of the process's cgroup on CPU, memory and the number of processes, in both versions of cgroups.
//!
//! The tightest limit among the group and those above it counts.

use std::path::{Path, PathBuf};

use super::{Check, Machine, ServerDemand};

impl Machine {
    pub(super) fn cgroup(&self, demand: &ServerDemand) -> Vec<Check> {
        let checks = [
            self.cgroup_cores(demand.workers),
            self.cgroup_memory(demand.memory),
            self.cgroup_threads(demand.workers + OTHER_THREADS),
        ];
        checks.into_iter().flatten().collect()
    }

    fn cgroup_cores(&self, workers: u64) -> Option<Check> {
        let cores = self.least("cpu", |group| self.cores_of(group))?;
        let needed = format!("{workers} cores needed: `workers`");
        let value = format!("{cores:.2} cores");
        // A quota that is written with two decimals may be a little less than a whole core.
        let suffices = cores + 0.005 >= f64::from(u32::try_from(workers).unwrap_or(u32::MAX));
        let percent = 100 * workers;
        let command = format!("CPUQuota={percent}% in the unit, or fewer `workers`");
        Some(Check::of(suffices, "cgroup cpu.max", value, needed).by(command))
    }

    fn cgroup_memory(&self, need: u64) -> Option<Check> {
        let bytes = self.least("memory", |group| {
            let text = self.first(group, ["memory.max", "memory.limit_in_bytes"])?;
            // Version 1 has no word for "no limit", but the largest number of pages.
            text.parse().ok().filter(|bytes: &u64| *bytes < UNLIMITED)
        })?;
        let needed = format!("{need} needed: clients, backends' buffers and the program");
        let command = format!("MemoryMax={need} in the unit, or a lower `connections_max`");
        Some(Check::of(bytes >= need, "cgroup memory.max", bytes, needed).by(command))
    }

    fn cgroup_threads(&self, need: u64) -> Option<Check> {
        let threads: u64 = self.least("pids", |group| {
            self.read(group.join("pids.max"))?.parse().ok()
        })?;
        let needed = format!("{need} threads needed: `workers` + {OTHER_THREADS}");
        let command = format!("TasksMax={need} in the unit");
        Some(Check::of(threads >= need, "cgroup pids.max", threads, needed).by(command))
    }

    /// The smallest value among the process's groups for `controller`; `None`: none of them has one.
    fn least<T: PartialOrd>(
        &self,
        controller: &str,
        value: impl Fn(&Path) -> Option<T>,
    ) -> Option<T> {
        let groups = self.groups(controller);
        let values = groups.iter().filter_map(|group| value(group));
        values.reduce(|least, value| if value < least { value } else { least })
    }

    /// The directories of the group in which the process is for `controller`, and of those above it, in both versions
    /// of control groups.
    fn groups(&self, controller: &str) -> Vec<PathBuf> {
        let text = self.read("proc/self/cgroup").unwrap_or_default();
        let mut groups = Vec::new();
        for line in text.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
                continue;
            };
            let mount = match controllers {
                // Version 2 has all controllers in one hierarchy.
                "" => PathBuf::from("sys/fs/cgroup"),
                _ if controllers.split(',').any(|name| name == controller) => {
                    Path::new("sys/fs/cgroup").join(controller)
                }
                _ => continue,
            };
            let own = mount.join(path.trim_start_matches('/'));
            let own_and_above = own.ancestors().take_while(|path| path.starts_with(&mount));
            groups.extend(own_and_above.map(Path::to_path_buf));
        }
        groups
    }

    /// The cores that a group's quota allows; `None` if it has no quota.
    fn cores_of(&self, group: &Path) -> Option<f64> {
        let (quota, period) = match self.read(group.join("cpu.max")) {
            Some(text) => {
                let (quota, period) = text.split_once(' ')?;
                (quota.to_owned(), period.to_owned())
            }
            // Version 1.
            None => (
                self.read(group.join("cpu.cfs_quota_us"))?,
                self.read(group.join("cpu.cfs_period_us"))?,
            ),
        };
        // "max" and -1 are no limit.
        let quota = quota.parse().ok().filter(|quota: &f64| *quota > 0.0)?;
        let period = period.parse().ok().filter(|period: &f64| *period > 0.0)?;
        Some(quota / period)
    }

    /// The text of the first of these files that the group has.
    fn first(&self, group: &Path, names: [&str; 2]) -> Option<String> {
        names.iter().find_map(|name| self.read(group.join(name)))
    }
}

const UNLIMITED: u64 = 1 << 62;
/// The number of threads beside the workers: the main thread, administration, logs, watches and name resolution.
const OTHER_THREADS: u64 = 16;
