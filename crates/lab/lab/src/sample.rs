//! What was read of the machine and the servers in each second of a run: lines of `samples.jsonl`.
//!
//! Values are counters since the machine or the server started, or levels. A rate is the difference of two neighbours.

use std::collections::BTreeMap;

use catamaran_gauge::network::Interface;
use catamaran_gauge::system::{Disk, Memory};
use serde::{Deserialize, Serialize};

/// One moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// Unix time.
    pub time_s: f64,
    /// CPU time of each core in seconds.
    pub cores: Vec<CoreSample>,
    /// Main memory in bytes.
    pub memory: Memory,
    /// The memory of TCP's buffers, in bytes.
    pub tcp_bytes: u64,
    /// Interfaces of the run's network, by name.
    pub interfaces: BTreeMap<String, Interface>,
    /// Disks, by name.
    pub disks: BTreeMap<String, Disk>,
    /// CPU time of each server in seconds.
    pub servers: BTreeMap<String, f64>,
    /// Java virtual machines, by server.
    pub jvms: BTreeMap<String, JvmSample>,
}

/// A core's times in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreSample {
    /// Outside the kernel.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
    /// Waiting for a disk.
    pub wait: f64,
    /// Taken by a hypervisor.
    pub steal: f64,
    /// All.
    pub total: f64,
}

/// A Java virtual machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JvmSample {
    /// Bytes of the heap in use.
    pub heap: u64,
    /// Collections so far.
    pub collections: u64,
    /// The seconds they took.
    pub collecting_s: f64,
    /// The seconds of CPU time that its compilers have taken.
    pub compiling_s: f64,
}

impl Sample {
    /// The seconds of all cores since `before`, of one kind.
    pub(crate) fn cores_since(&self, before: &Self, of: fn(&CoreSample) -> f64) -> f64 {
        let sum = |sample: &Self| sample.cores.iter().map(of).sum::<f64>();
        (sum(self) - sum(before)).max(0.0)
    }
}
