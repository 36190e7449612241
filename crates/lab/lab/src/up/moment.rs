//! What a tier stands at in one moment, and what it has done between two.

use std::collections::BTreeMap;

use catamaran_gauge::{Syscalls, cpu, memory, network};

use super::topology::Hop;
use crate::drive::{RunningServer, Sample, Stage, Traffic};

/// Counters and levels at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct TierMoment {
    pub(crate) sample: Sample,
    pub(crate) servers: BTreeMap<String, ServerMoment>,
    /// Connections that were opened so far; `None` in a network that others share.
    pub(crate) opened: Option<u64>,
    /// Connections of each hop.
    pub(crate) hops: Vec<u64>,
    pub(crate) traffic: Traffic,
}

/// A server's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ServerMoment {
    /// CPU time in seconds.
    pub(crate) user: f64,
    pub(crate) system: f64,
    /// What it has allocated, in bytes.
    pub(crate) memory: Option<u64>,
    /// System calls so far.
    pub(crate) calls: Option<u64>,
}

impl TierMoment {
    /// What cannot be read is left out.
    pub(crate) fn read(
        stage: &Stage,
        hops: &[Hop],
        syscalls: Option<&Syscalls>,
        traffic: Traffic,
    ) -> Self {
        let anchor = stage.space.anchor();
        let established = network::established(anchor).unwrap_or_default();
        let at = |port: &u16| established.get(port).copied().unwrap_or(0);
        let namespace = stage.space.namespace();
        let own = namespace.and_then(|_| network::of(anchor).ok());
        let server =
            |it: &RunningServer| (it.record.name.clone(), ServerMoment::read(it, syscalls));
        Self {
            sample: Sample::read(stage),
            servers: stage.servers.iter().map(server).collect(),
            opened: own.map(|own| own.counters.of("Tcp.ActiveOpens")),
            hops: hops
                .iter()
                .map(|hop| hop.ports.iter().map(at).sum())
                .collect(),
            traffic,
        }
    }
}

impl ServerMoment {
    fn read(server: &RunningServer, syscalls: Option<&Syscalls>) -> Self {
        let process = &server.process;
        let group = process.group();
        let used = match group {
            Some(group) => group.cpu().ok(),
            None => cpu::of_tree(process.id()).ok(),
        };
        let used = used.unwrap_or_default();
        let calls = group
            .zip(syscalls)
            .and_then(|(group, calls)| calls.of(group).ok());
        let shares = memory::shares(&process.processes()).ok();
        Self {
            user: used.user.as_secs_f64(),
            system: used.system.as_secs_f64(),
            memory: shares.map(|shares| shares.anonymous),
            calls: calls.map(|counts| counts.total()),
        }
    }
}

/// What was done between two moments, for each second of them, and levels at the second one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Point {
    /// Requests a second, if a load is driven.
    pub(crate) rate: Option<f64>,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    /// All requests that have failed.
    pub(crate) failed: u64,
    /// Cores that are busy outside the kernel, in it, and waiting for a disk.
    pub(crate) user: f64,
    pub(crate) system: f64,
    pub(crate) wait: f64,
    /// Bytes of memory that are to be had.
    pub(crate) available: f64,
    /// Bytes a second over all interfaces of the network.
    pub(crate) network: f64,
    /// Bytes a second from and to all disks.
    pub(crate) read: f64,
    pub(crate) written: f64,
    /// Connections opened a second.
    pub(crate) opened: Option<f64>,
    pub(crate) servers: BTreeMap<String, ServerPoint>,
    /// Connections of each hop.
    pub(crate) hops: Vec<u64>,
}

/// A server in a [`Point`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ServerPoint {
    /// Cores that it keeps busy.
    pub(crate) user: f64,
    pub(crate) system: f64,
    /// Bytes.
    pub(crate) memory: Option<f64>,
    pub(crate) heap: Option<f64>,
    /// System calls a second, where they are counted.
    pub(crate) calls: Option<f64>,
}

impl Point {
    /// A count a second, for each request; `None` without a load or answers.
    pub(crate) fn per_request(&self, count: f64) -> Option<f64> {
        self.rate
            .filter(|rate| *rate > 0.0)
            .map(|rate| count / rate)
    }

    pub(crate) fn between(before: &TierMoment, after: &TierMoment) -> Self {
        let (one, other) = (&before.sample, &after.sample);
        let wall = (other.time_s - one.time_s).max(1e-3);
        let cores = |of| other.cores_since(one, of) / wall;
        let each = |one: u64, other: u64| other.saturating_sub(one) as f64 / wall;
        let both = |of: fn(&Sample) -> u64| each(of(one), of(other));
        let traffic = &after.traffic;
        let server = |(name, now): (&String, &ServerMoment)| {
            let was = before.servers.get(name).copied().unwrap_or_default();
            let calls = was.calls.zip(now.calls).map(|(was, now)| each(was, now));
            let point = ServerPoint {
                user: (now.user - was.user).max(0.0) / wall,
                system: (now.system - was.system).max(0.0) / wall,
                memory: now.memory.map(|bytes| bytes as f64),
                heap: other.jvms.get(name).map(|jvm| jvm.heap as f64),
                calls,
            };
            (name.clone(), point)
        };
        Self {
            rate: traffic.rate,
            p50_ms: traffic.p50_ms,
            p99_ms: traffic.p99_ms,
            failed: traffic.failed,
            user: cores(|core| core.user),
            system: cores(|core| core.system),
            wait: cores(|core| core.wait),
            available: other.memory.available as f64,
            network: both(|sample| sample.interfaces.values().map(|it| it.sent_bytes).sum()),
            read: both(|sample| sample.disks.values().map(|it| it.read_bytes).sum()),
            written: both(|sample| sample.disks.values().map(|it| it.written_bytes).sum()),
            opened: before
                .opened
                .zip(after.opened)
                .map(|(was, now)| each(was, now)),
            servers: after.servers.iter().map(server).collect(),
            hops: after.hops.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::CoreSample;

    #[test]
    fn differences_are_by_the_second_and_levels_are_the_last() {
        let moment = |seconds: f64, calls: u64, opened: u64| TierMoment {
            sample: Sample {
                time_s: 100.0 + seconds,
                cores: vec![
                    CoreSample {
                        user: seconds / 2.0,
                        ..CoreSample::default()
                    };
                    2
                ],
                ..Sample::default()
            },
            servers: BTreeMap::from([(
                "front".to_owned(),
                ServerMoment {
                    user: seconds / 4.0,
                    calls: Some(calls),
                    memory: Some(5),
                    ..ServerMoment::default()
                },
            )]),
            opened: Some(opened),
            hops: vec![7],
            traffic: Traffic {
                rate: Some(100.0),
                ..Traffic::default()
            },
        };
        let point = Point::between(&moment(0.0, 50, 1), &moment(2.0, 850, 11));
        assert!((point.user - 1.0).abs() < 1e-9, "two cores, half busy each");
        assert_eq!(
            (point.opened, point.rate, &point.hops[..]),
            (Some(5.0), Some(100.0), &[7][..])
        );
        let front = point.servers["front"];
        assert!((front.user - 0.25).abs() < 1e-9);
        assert_eq!((front.calls, front.memory), (Some(400.0), Some(5.0)));
        assert_eq!(point.per_request(400.0), Some(4.0));
        // A server that was started anew counts from zero again.
        let point = Point::between(&moment(2.0, 850, 11), &moment(3.0, 3, 11));
        assert_eq!(point.servers["front"].calls, Some(0.0));
    }

    #[test]
    fn without_a_load_there_is_no_rate() {
        let point = Point::between(&TierMoment::default(), &TierMoment::default());
        assert_eq!((point.rate, point.p50_ms, point.opened), (None, None, None));
        assert_eq!(point.per_request(1.0), None);
        let idle = Point {
            rate: Some(0.0),
            ..point
        };
        assert_eq!(idle.per_request(1.0), None);
    }
}
