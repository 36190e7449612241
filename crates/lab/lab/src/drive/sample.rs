//! Samples the machine and the servers in each second of a run.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use catamaran_gauge::{jvm, network, system};

use super::stage::Stage;
use crate::extra::now;
use crate::sample::{CoreSample, JvmSample, Sample};

/// Takes a sample each second until the sender is dropped, with one at the beginning and one at the end.
pub(super) fn watch(stage: &Stage, end: &Receiver<()>) -> Vec<Sample> {
    let start = now();
    let mut samples = vec![Sample::read(stage)];
    loop {
        // Times are counted from the start, so that the time of sampling does not add up.
        let next = SECOND * u32::try_from(samples.len()).unwrap_or(u32::MAX);
        let wait = next.saturating_sub(now().duration_since(start));
        let is_end = end.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
        samples.push(Sample::read(stage));
        if is_end {
            return samples;
        }
    }
}

impl Sample {
    /// Takes a sample; a figure that cannot be read stays empty.
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
            if let Some(Ok(jvm)) = server.process.jvm().map(jvm::JvmReader::read) {
                sample.jvms.insert(name.clone(), JvmSample::of(&jvm));
            }
        }
        sample
    }
}

impl JvmSample {
    fn of(jvm: &jvm::Jvm) -> Self {
        let collectors = jvm.collectors.iter();
        let time: Duration = collectors.clone().map(|collector| collector.took).sum();
        Self {
            heap: jvm.heap_used,
            collections: collectors.map(|collector| collector.collections).sum(),
            collecting_s: time.as_secs_f64(),
            compiling_s: jvm.compiling.unwrap_or_default().as_secs_f64(),
        }
    }
}

/// The samples as lines of JSON.
pub(super) fn lines(samples: &[Sample]) -> String {
    let line = |sample: &Sample| serde_json::to_string(sample).unwrap_or_default() + "\n";
    samples.iter().map(line).collect()
}

/// The largest part of a core that the compilers of one Java virtual machine took; `None` if there
/// are too few samples or virtual machines.
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
