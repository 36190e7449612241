//! How each figure is measured on this machine, and why not in a better way.

use std::time::Duration;

use crate::bytes::Bytes;
use crate::group::{Group, GroupFault};
use crate::limited::CpuLimit;
use crate::syscalls::Syscalls;

/// The way one kind of figure is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// What is measured.
    pub what: &'static str,
    /// By what.
    pub by: &'static str,
    /// Why not by something better; `None` if this is the best.
    pub why: Option<String>,
}

/// System calls, as the way to count them is called.
pub const CALLS: &str = "system calls";
/// Bytes, likewise.
pub const BYTES: &str = "bytes of each hop";

/// Declared parts of a core, likewise.
pub const SHARES: &str = "parts of a core";

/// Tries to hold an empty group called `name` to a part of a core; it is gone afterwards.
#[must_use]
pub fn shares(name: &str) -> Way {
    let quota = CpuLimit::Quota {
        time: Duration::from_millis(5),
        period: Duration::from_millis(10),
    };
    let held = Group::create(name).and_then(|mut group| group.limit(quota));
    let why = held.err().map(|fault| fault.to_string());
    way(SHARES, why, ["quota of the cgroup", "nothing"])
}

/// Tries each collector on an empty group called `name`, which is gone afterwards. Changes nothing.
#[must_use]
pub fn ways(name: &str) -> Vec<Way> {
    let group = Group::create(name);
    let fault = group.as_ref().err().map(GroupFault::to_string);
    let cpu = way(
        "CPU time",
        fault.clone(),
        [
            "cgroup, exact to the microsecond",
            "/proc of the tree of processes, in ticks of 10 ms",
        ],
    );
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
            CALLS,
            calls,
            ["BPF at sys_enter", "strace, in a span of its own"],
        ),
        way(
            BYTES,
            bytes,
            [
                "BPF on the packets of the group",
                "the load generator's own count, for the client's hop only",
            ],
        ),
    ]
}

fn way(what: &'static str, why: Option<String>, [best, next]: [&'static str; 2]) -> Way {
    let by = if why.is_none() { best } else { next };
    Way { what, by, why }
}
