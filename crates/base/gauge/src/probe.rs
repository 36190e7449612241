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
    let limited = Group::create(name).and_then(|mut group| group.limit(quota));
    let fault = limited.err().map(|fault| fault.to_string());
    way(
        "parts of a core (`core_share`)",
        fault,
        ["quota of the cgroup", "nothing"],
    )
}

/// Checks each way of measuring on an empty group called `name`, which is removed afterwards. Nothing
/// is changed.
#[must_use]
pub fn ways(name: &str) -> Vec<Check> {
    let group = Group::create(name);
    let group_fault = group.as_ref().err().map(GroupFault::to_string);
    let (calls_fault, bytes_fault) = match &group {
        Ok(group) => {
            let calls = Syscalls::count(&[group]).err();
            let bytes = Bytes::count(group, &[]).err();
            (
                calls.map(|fault| fault.to_string()),
                bytes.map(|fault| fault.to_string()),
            )
        }
        // Both need a group.
        Err(_) => (group_fault.clone(), group_fault.clone()),
    };
    vec![
        way(
            "CPU time",
            group_fault,
            [
                "cgroup, exact to the microsecond",
                "/proc of the tree of processes, in ticks of 10 ms",
            ],
        )
        .by("run it as root"),
        way(
            "system calls",
            calls_fault,
            ["BPF at sys_enter", "strace, in a span of its own"],
        ),
        way(
            "bytes of each hop",
            bytes_fault,
            [
                "BPF on the packets of the group",
                "the load generator's own count, for the client's hop only",
            ],
        ),
    ]
}

/// A check of one figure: if there is a `fault` for which the best way is not available, it is short and
/// names the next way.
fn way(what: &'static str, fault: Option<String>, [best, next]: [&'static str; 2]) -> Check {
    match fault {
        None => Check::of(true, what, best, ""),
        Some(fault) => Check::of(false, what, next, fault),
    }
}
