//! What the kernel has withheld from the cgroups of this process: CPU time by a quota, and memory by
//! killing. The limits of a container are such groups, whichever version of cgroups has them.

use std::fs;
use std::path::PathBuf;

use crate::group::value;

/// Totals since the groups were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Withheld {
    /// The periods in which the quota was used up (`nr_throttled`).
    pub throttled: u64,
    /// The processes of the whole machine that were killed for want of memory.
    pub oom_kills: u64,
}

/// Reads the totals so far; what cannot be read counts as zero.
#[must_use]
pub fn withheld() -> Withheld {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let throttled = cpu_stats(&groups).into_iter().filter_map(|path| {
        let text = fs::read_to_string(path).ok()?;
        value(&text, "nr_throttled")
    });
    let machine = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    Withheld {
        throttled: throttled.max().unwrap_or(0),
        oom_kills: value(&machine, "oom_kill").unwrap_or(0),
    }
}

/// The paths of the files that may have the quota's counters, found from the lines of
/// `/proc/self/cgroup`.
fn cpu_stats(groups: &str) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let path = path.trim_start_matches('/');
        let is_cpu = controllers.split(',').any(|name| name == "cpu");
        let roots: &[&str] = match controllers {
            "" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
            _ if is_cpu => &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"],
            _ => continue,
        };
        for root in roots {
            paths.push(PathBuf::from(root).join(path).join("cpu.stat"));
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_groups_are_known() {
        let found = cpu_stats("4:memory:/a\n1:cpu,cpuacct:/box\n0::/user/1\nodd\n");
        let names: Vec<String> = found
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        assert_eq!(
            names,
            [
                "/sys/fs/cgroup/cpu/box/cpu.stat",
                "/sys/fs/cgroup/cpu,cpuacct/box/cpu.stat",
                "/sys/fs/cgroup/user/1/cpu.stat",
                "/sys/fs/cgroup/unified/user/1/cpu.stat",
            ]
        );
    }

    #[test]
    fn counters_are_read_by_their_name() {
        let text = "nr_periods 5\nnr_throttled 3\nnr_throttled_usec 9\nbad\n";
        assert_eq!(value(text, "nr_throttled"), Some(3));
        assert_eq!(value(text, "oom_kill"), None);
        assert_eq!(value("oom_kill many", "oom_kill"), None);
    }

    #[test]
    fn counters_never_fall() {
        let (first, second) = (withheld(), withheld());
        assert!(second.oom_kills >= first.oom_kills && second.throttled >= first.throttled);
    }
}
