//! What the machine and the servers stand at in each second of a run: lines of `samples.jsonl`.
//!
//! All are counters from the machine's or the server's start, and levels: whoever reads them takes
//! differences of neighbours.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use catamaran_gauge::jvm;
use catamaran_gauge::network::{self, Interface};
use catamaran_gauge::system::{self, Disk, Memory};
use serde::{Deserialize, Serialize};

use super::stage::Stage;
use crate::extra::now;

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
    /// What TCP's buffers hold, in bytes.
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

/// Samples every second until the sender is gone, one at each end included.
pub(super) fn watch(stage: &Stage, end: &Receiver<()>) -> Vec<Sample> {
    let start = now();
    let mut samples = vec![Sample::read(stage)];
    loop {
        let next = SECOND * u32::try_from(samples.len()).unwrap_or(u32::MAX);
        let wait = next.saturating_sub(now().duration_since(start));
        let ended = end.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
        samples.push(Sample::read(stage));
        if ended {
            return samples;
        }
    }
}

impl Sample {
    /// The seconds of all cores since `before`, of one kind.
    pub(crate) fn cores_since(&self, before: &Self, of: fn(&CoreSample) -> f64) -> f64 {
        let sum = |sample: &Self| sample.cores.iter().map(of).sum::<f64>();
        (sum(self) - sum(before)).max(0.0)
    }

    /// What cannot be read is left out.
    pub(crate) fn read(stage: &Stage) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut sample = Self {
            time_s: now.unwrap_or_default().as_secs_f64(),
            ..Self::default()
        };
        let core = |core: &system::Core| CoreSample {
            user: core.user.as_secs_f64(),
            system: core.system.as_secs_f64(),
            wait: core.wait.as_secs_f64(),
            steal: core.steal.as_secs_f64(),
            total: core.total.as_secs_f64(),
        };
        sample.cores = system::cores()
            .unwrap_or_default()
            .iter()
            .map(core)
            .collect();
        sample.memory = system::memory().unwrap_or_default();
        if let Ok(network) = network::of(stage.space.anchor()) {
            sample.tcp_bytes = network.sockets.memory;
            sample.interfaces = network.interfaces;
        }
        sample.disks = system::disks().unwrap_or_default();
        for server in &stage.servers {
            let name = &server.record.name;
            if let Some(Ok(cpu)) = server.process.group().map(catamaran_gauge::Group::cpu) {
                let seconds = cpu.total().as_secs_f64();
                sample.servers.insert(name.clone(), seconds);
            }
            if let Some(read) = server.process.jvm().and_then(|jvm| jvm.read().ok()) {
                sample.jvms.insert(name.clone(), JvmSample::of(&read));
            }
        }
        sample
    }
}

impl JvmSample {
    fn of(read: &jvm::Jvm) -> Self {
        let took = read.collectors.iter().map(|it| it.took).sum::<Duration>();
        Self {
            heap: read.heap_used,
            collections: read.collectors.iter().map(|it| it.collections).sum(),
            collecting_s: took.as_secs_f64(),
            compiling_s: read.compiling.unwrap_or_default().as_secs_f64(),
        }
    }
}

/// One JSON text a line.
pub(super) fn lines(samples: &[Sample]) -> String {
    let line = |sample: &Sample| serde_json::to_string(sample).unwrap_or_default() + "\n";
    samples.iter().map(line).collect()
}

/// The largest part of a core that the compilers of a virtual machine took.
pub(super) fn compiling(samples: &[Sample]) -> Option<f64> {
    let (first, last) = (samples.first()?, samples.last()?);
    let wall = (last.time_s - first.time_s).max(1e-9);
    let share = |(name, after): (&String, &JvmSample)| {
        let before = first.jvms.get(name)?;
        Some((after.compiling_s - before.compiling_s) / wall)
    };
    last.jvms.iter().filter_map(share).reduce(f64::max)
}

const SECOND: Duration = Duration::from_secs(1);
