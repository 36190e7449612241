//! The samples of the machine and the servers in each second of a run: lines of `samples.jsonl`.
//!
//! Values are either counters since the start of the machine or server, whose rate is the
//! difference between two samples, or current levels.

use std::collections::BTreeMap;

use catamaran_gauge::network::Interface;
use catamaran_gauge::system::{Disk, Memory};
use serde::{Deserialize, Serialize};

/// The machine and the servers at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// The time of the sample in Unix time.
    pub time_s: f64,
    /// The CPU times of each core so far, in seconds.
    pub cores: Vec<CoreSample>,
    /// The machine's main memory, in bytes.
    pub memory: Memory,
    /// The memory of TCP's buffers, in bytes.
    pub tcp_bytes: u64,
    /// The interfaces of the run's network, by name.
    pub interfaces: BTreeMap<String, Interface>,
    /// The disks of the machine, by name.
    pub disks: BTreeMap<String, Disk>,
    /// The CPU time of each server in seconds, by name.
    pub servers: BTreeMap<String, f64>,
    /// The Java virtual machines, by the name of their server.
    pub jvms: BTreeMap<String, JvmSample>,
}

/// The times of a core in seconds, by use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreSample {
    /// Time in user mode, in seconds.
    pub user: f64,
    /// Time in the kernel, in seconds.
    pub system: f64,
    /// Time idle while something waited for a disk.
    pub wait: f64,
    /// Time that a hypervisor gave to something else.
    pub steal: f64,
    /// All time, idle time included.
    pub total: f64,
}

/// The state of a Java virtual machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JvmSample {
    /// The bytes of the JVM's heap in use.
    pub heap: u64,
    /// The number of collections so far.
    pub collections: u64,
    /// The time that collections took so far, in seconds.
    pub collecting_s: f64,
    /// The CPU time that the JVM's compilers have used so far, in seconds.
    pub compiling_s: f64,
}

impl Sample {
    /// The increase since `before` of one kind of time, over all cores, in seconds.
    pub(crate) fn cores_since(&self, before: &Self, time: fn(&CoreSample) -> f64) -> f64 {
        let sum = |sample: &Self| sample.cores.iter().map(time).sum::<f64>();
        (sum(self) - sum(before)).max(0.0)
    }
}
