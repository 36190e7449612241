//! Says how each figure is measured on this machine, and why not in a better way, as one [`Check`]
//! for each figure.

use std::time::Duration;

use crate::bytes::Bytes;
use crate::group::{Group, GroupFault};
use crate::limited::CpuLimit;
use crate::machine::Check;
use crate::syscalls::Syscalls;

/// Checks whether CPU time can be limited, by trying it on an empty group called `name`, which is
/// removed afterwards.
#[must_use]
pub fn shares(name: &str) -> Check {
    let quota = CpuLimit::Quota {
        time: Duration::from_millis(5),
        period: Duration::from_millis(10),
    };
    let held = Group::create(name).and_then(|mut group| group.limit(quota));
    let why = held.err().map(|fault| fault.to_string());
    way(
        "parts of a core (`core_share`)",
        why,
        ["quota of the cgroup", "nothing"],
    )
}

/// Checks each way of measuring on an empty group called `name`, which is removed afterwards. Nothing
/// is changed.
#[must_use]
pub fn ways(name: &str) -> Vec<Check> {
    let group = Group::create(name);
    let fault = group.as_ref().err().map(GroupFault::to_string);
    let cpu = way(
        "CPU time",
        fault.clone(),
        [
            "cgroup, exact to the microsecond",
            "/proc of the tree of processes, in ticks of 10 ms",
        ],
    )
    .by("run it as root");
    let counted = |count: &dyn Fn(&Group) -> Option<String>| match &group {
        Ok(group) => count(group),
        Err(_) => fault.clone(),
    };
    let calls = counted(&|group| {
        Syscalls::count(&[group])
            .err()
            .map(|fault| fault.to_string())
    });
    let bytes = counted(&|group| {
        Bytes::count(group, &[])
            .err()
            .map(|fault| fault.to_string())
    });
    vec![
        cpu,
        way(
            "system calls",
            calls,
            ["BPF at sys_enter", "strace, in a span of its own"],
        ),
        way(
            "bytes of each hop",
            bytes,
            [
                "BPF on the packets of the group",
                "the load generator's own count, for the client's hop only",
            ],
        ),
    ]
}

/// A check of one figure: if there is a reason `why` the best way is not available, it is short and
/// names the next way.
fn way(what: &'static str, why: Option<String>, [best, next]: [&'static str; 2]) -> Check {
    match why {
        None => Check::of(true, what, best, ""),
        Some(why) => Check::of(false, what, next, why),
    }
}
