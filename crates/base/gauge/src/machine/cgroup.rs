//! Checks the limits of the process's cgroup on CPU, memory and the number of processes, in both versions of cgroups.
//!
//! The tightest limit among the group and those above it counts.

use std::path::{Path, PathBuf};

use super::{Check, Machine, ServerDemand};

impl Machine {
    pub(super) fn cgroup(&self, demand: &ServerDemand) -> Vec<Check> {
        let mut checks = Vec::new();
        if let Some(cores) = self.least("cpu", |group| self.cores_of(group)) {
            let workers = demand.workers;
            let needed = format!("{workers} cores needed: `workers`");
            let value = format!("{cores:.2} cores");
            let suffices = cores + 0.005 >= f64::from(u32::try_from(workers).unwrap_or(u32::MAX));
            let command = format!(
                "CPUQuota={}% in the unit, or fewer `workers`",
                100 * workers
            );
            checks.push(Check::of(suffices, "cgroup cpu.max", value, needed).by(command));
        }
        let memory = |group: &Path| {
            let text = self.first(group, ["memory.max", "memory.limit_in_bytes"])?;
            // Version 1 has no word for "no limit", but the largest number of pages.
            text.parse().ok().filter(|bytes: &u64| *bytes < UNLIMITED)
        };
        if let Some(bytes) = self.least("memory", memory) {
            let need = demand.memory;
            let needed = format!("{need} needed: clients, backends' buffers and the program");
            let command = format!("MemoryMax={need} in the unit, or a lower `connections_max`");
            checks.push(Check::of(bytes >= need, "cgroup memory.max", bytes, needed).by(command));
        }
        let pids = |group: &Path| self.read(group.join("pids.max"))?.parse().ok();
        if let Some(threads) = self.least::<u64>("pids", pids) {
            let need = demand.workers + OTHER_THREADS;
            let needed = format!("{need} threads needed: `workers` + {OTHER_THREADS}");
            let command = format!("TasksMax={need} in the unit");
            checks.push(Check::of(threads >= need, "cgroup pids.max", threads, needed).by(command));
        }
        checks
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
                "" => PathBuf::from("sys/fs/cgroup"),
                _ if controllers.split(',').any(|it| it == controller) => {
                    Path::new("sys/fs/cgroup").join(controller)
                }
                _ => continue,
            };
            let own = mount.join(path.trim_start_matches('/'));
            let all = own.ancestors().take_while(|it| it.starts_with(&mount));
            groups.extend(all.map(Path::to_path_buf));
        }
        groups
    }

    fn cores_of(&self, group: &Path) -> Option<f64> {
        let two = self.read(group.join("cpu.max")).and_then(|text| {
            let (quota, period) = text.split_once(' ')?;
            Some((quota.to_owned(), period.to_owned()))
        });
        let one = || {
            let quota = self.read(group.join("cpu.cfs_quota_us"))?;
            Some((quota, self.read(group.join("cpu.cfs_period_us"))?))
        };
        let (quota, period) = two.or_else(one)?;
        // "max" and -1 are no limit.
        let quota = quota.parse().ok().filter(|quota: &f64| *quota > 0.0)?;
        let period = period.parse().ok().filter(|period: &f64| *period > 0.0)?;
        Some(quota / period)
    }

    fn first(&self, group: &Path, names: [&str; 2]) -> Option<String> {
        names.iter().find_map(|name| self.read(group.join(name)))
    }
}

const UNLIMITED: u64 = 1 << 62;
/// The number of threads beside the workers: the main thread, administration, logs, watches and name resolution.
const OTHER_THREADS: u64 = 16;
