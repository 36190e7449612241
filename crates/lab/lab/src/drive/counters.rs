//! The counters of the kernel over a run.

use std::collections::BTreeMap;
use std::time::Duration;

use catamaran_gauge::{
    BpfFault, Bytes, Call, Counts, Group, Segments, Stops, Syscalls, Withheld, cpu, memory,
    network, process, system, withheld,
};
use catamaran_tier::{Process, Space};

use super::DriveFault;
use super::stage::{RunningServer, Stage};
use crate::experiment::{CountPlan, Experiment, Holder, Load};
use crate::facts::{MachineFacts, ShareFacts};
use crate::gate::REQUESTS;
use crate::measure::{BYTES, CallCounts, SYSCALLS, UPSTREAM};
use crate::strace::{ProcessTrace, Trace, Traces, table_of};

/// The kernel's counters of a run. They can be read several times; a difference of two readings is the count in
/// between.
pub(super) struct Counters<'a> {
    stage: &'a Stage,
    servers: &'a [RunningServer],
    syscalls: Option<Syscalls>,
    /// For each server whose bytes are measured, its name and its counter.
    bytes: Vec<(String, Bytes)>,
    /// For each of several servers, its name and the counter of requests that reach it.
    asked: Vec<(String, Segments)>,
    /// The hops that are measured: server, port name, and port numbers.
    hops: Vec<(String, String, Vec<u16>)>,
    counted: Vec<String>,
    /// Why a measure cannot be counted, by the first part of its name.
    uncounted: BTreeMap<String, String>,
    /// Whether each process is counted by itself, with times.
    is_traced: bool,
    /// Whether the bytes of disks are read, process by process.
    reads_disks: bool,
}

/// The values of all counters at one moment, or their increase between two.
#[derive(Debug, Default)]
pub(super) struct CounterReading {
    /// The CPU time of each server, by name.
    pub(super) cpu: BTreeMap<String, Duration>,
    /// Bytes that each server's processes have read from disks and written to them, by name; empty if the experiment
    /// does not measure them.
    pub(super) disks: BTreeMap<String, u64>,
    /// CPU time of all of the run: servers and load.
    all: Duration,
    /// The CPU time of spinners, which take the part of a core that servers leave.
    spun: Duration,
    /// How often quotas have stopped each server, by name.
    stops: BTreeMap<String, Stops>,
    /// The CPU time of the lab itself.
    own: Duration,
    cores: Vec<system::Core>,
    /// The number of connections and handshakes that were dropped because a queue was full.
    overflows: u64,
    /// The number of connections opened in the space, by any process.
    pub(super) opened: u64,
    /// How often quotas were used up, and how many processes were killed because memory ran out.
    withheld: Withheld,
    /// The number of local ports in TIME_WAIT.
    time_wait: u64,
    /// The number of connections that have ended in TIME_WAIT.
    pub(super) waited: u64,
    /// The number of local ports that clients may use; `None` if unknown.
    local_ports: Option<u64>,
    /// The system calls of each server, by name.
    pub(super) calls: CallsByServer,
    /// The bytes of each hop, both ways, by server and port.
    bytes: BTreeMap<(String, String), u64>,
    /// The number of segments with data that have reached each server.
    asked: BTreeMap<String, u64>,
    /// Why a measure was not counted, by the first part of its name.
    uncounted: BTreeMap<String, String>,
}

impl<'a> Counters<'a> {
    /// Whether the kernel allows at least one of the counters that the experiment needs.
    pub(super) fn are_granted(experiment: &Experiment, stage: &'a Stage) -> bool {
        let tried = Self::begin(experiment, stage, true);
        tried.syscalls.is_some() || !tried.bytes.is_empty()
    }

    /// Begins to count. What the kernel refuses is left out, as is everything by BPF if the
    /// experiment excludes it. Calls and bytes are counted if `is_counting`.
    pub(super) fn begin(experiment: &Experiment, stage: &'a Stage, is_counting: bool) -> Self {
        let has_bpf = !experiment.is_without_bpf;
        let servers = &stage.servers[..];
        let mut uncounted = BTreeMap::new();
        let mut refused = |base: &str, fault: String| {
            uncounted.insert(base.to_owned(), fault);
        };
        let nothing = CountPlan::default();
        let counted = if is_counting {
            &experiment.measure
        } else {
            &nothing
        };
        let of_interest = stage.named(&counted.syscalls);
        let groups: Vec<&Group> = of_interest
            .filter_map(|server| server.process.group())
            .collect();
        let count = if experiment.is_traced {
            Syscalls::count_in_detail
        } else {
            Syscalls::count
        };
        let count = || by_bpf(has_bpf, || count(&groups));
        let syscalls = (!groups.is_empty()).then(count).transpose();
        let syscalls = syscalls.unwrap_or_else(|fault| {
            refused(SYSCALLS, fault);
            None
        });
        let mut hops = Vec::new();
        for (name, port) in &counted.bytes {
            let server = servers.iter().find(|server| server.record.name == *name);
            if let Some(server) = server {
                hops.push((name.clone(), port.clone(), ports(&server.process, port)));
            }
        }
        let mut bytes = Vec::new();
        for server in servers {
            let of_server = hops.iter().filter(|(name, ..)| *name == server.record.name);
            let ports: Vec<u16> = of_server.flat_map(|(_, _, ports)| ports.clone()).collect();
            let Some(group) = server.process.group().filter(|_| !ports.is_empty()) else {
                continue;
            };
            match by_bpf(has_bpf, || Bytes::count(group, &ports)) {
                Ok(counter) => bytes.push((server.record.name.clone(), counter)),
                Err(fault) => refused(BYTES, fault),
            }
        }
        let asked = if is_counting && servers.len() > 1 {
            asked(servers, has_bpf)
        } else {
            Ok(Vec::new())
        };
        let asked = asked.unwrap_or_else(|fault| {
            refused(REQUESTS, fault);
            Vec::new()
        });
        Self {
            stage,
            servers,
            syscalls,
            bytes,
            asked,
            hops,
            counted: counted.syscalls.clone(),
            uncounted,
            is_traced: experiment.is_traced,
            reads_disks: experiment.is_published,
        }
    }

    /// Reads all counters now.
    pub(super) fn read(&self) -> Result<CounterReading, DriveFault> {
        let group = |group: &Group| {
            let cpu = group.cpu().map_err(|fault| DriveFault::Count {
                what: "CPU time",
                why: fault.to_string(),
            })?;
            Ok::<Duration, DriveFault>(cpu.total())
        };
        let network = network::of(self.stage.space.anchor()).ok();
        let mut reading = CounterReading {
            uncounted: self.uncounted.clone(),
            own: cpu::of_this_process(),
            cores: system::cores().unwrap_or_default(),
            overflows: network.as_ref().map_or(0, |it| it.counters.overflows()),
            opened: network
                .as_ref()
                .map_or(0, |it| it.counters.of("Tcp.ActiveOpens")),
            waited: network.as_ref().map_or(0, |it| it.counters.time_waits()),
            withheld: withheld(),
            disks: self.disks(),
            time_wait: network.map_or(0, |it| it.sockets.time_wait),
            local_ports: local_ports(&self.stage.space),
            all: self
                .stage
                .space
                .group()
                .map(group)
                .transpose()?
                .unwrap_or_default(),
            ..CounterReading::default()
        };
        for server in self.servers {
            let name = &server.record.name;
            let Some(of_server) = server.process.group() else {
                continue;
            };
            reading.cpu.insert(name.clone(), group(of_server)?);
            if let Ok(Some(stops)) = of_server.stops() {
                reading.stops.insert(name.clone(), stops);
            }
            if let Some(syscalls) = self
                .syscalls
                .as_ref()
                .filter(|_| self.counted.contains(name))
            {
                let counts = syscalls.of(of_server).map_err(calls_fault)?;
                reading.calls.insert(name.clone(), counts);
            }
        }
        for spinner in self.stage.spinners.values() {
            let spun = spinner.task.group().map(group).transpose()?;
            reading.spun += spun.unwrap_or_default();
        }
        for (name, port, numbers) in &self.hops {
            let counter = self.bytes.iter().find(|(server, _)| server == name);
            let Some((_, counter)) = counter else {
                continue;
            };
            let mut sum = 0;
            for number in numbers {
                let hop = counter.of(*number).map_err(bytes_fault)?;
                sum += hop.received.bytes + hop.sent.bytes;
            }
            reading.bytes.insert((name.clone(), port.clone()), sum);
        }
        for (name, segments) in &self.asked {
            let received = segments.received().map_err(bytes_fault)?;
            reading.asked.insert(name.clone(), received);
        }
        Ok(reading)
    }

    /// The bytes of disks of each server, if they are read.
    fn disks(&self) -> BTreeMap<String, u64> {
        let read = self.servers.iter().filter(|_| self.reads_disks);
        let of_server = |server: &RunningServer| {
            let processes = server.process.group()?.processes().ok()?;
            Some((server.record.name.clone(), process::disk_bytes(&processes)))
        };
        read.filter_map(of_server).collect()
    }

    /// The system calls of servers in the time of the reading `spent`. Those of single processes are counted from the
    /// beginning of counting, which is just before.
    pub(super) fn traces(&self, spent: &CounterReading) -> Result<Traces, DriveFault> {
        let mut traces = Traces::new();
        for (name, counts) in &spent.calls {
            let mut trace = Trace {
                all: table_of(counts, self.is_traced),
                ..Trace::default()
            };
            let server = self.servers.iter().find(|it| it.record.name == *name);
            let group = server.and_then(|server| server.process.group());
            if let Some((syscalls, group)) = self.syscalls.as_ref().zip(group) {
                let processes = syscalls.of_processes(group).map_err(calls_fault)?;
                let process = |(id, counts): (u32, Counts)| ProcessTrace {
                    id,
                    name: process::name(id).unwrap_or_default(),
                    calls: table_of(&counts, true),
                };
                trace.processes = processes.into_iter().map(process).collect();
            }
            traces.insert(name.clone(), trace);
        }
        Ok(traces)
    }
}

impl CounterReading {
    /// The increase of each counter since `before`.
    pub(super) fn since(mut self, before: &Self) -> Self {
        self.waited = self.waited.saturating_sub(before.waited);
        self.all = self.all.saturating_sub(before.all);
        self.own = self.own.saturating_sub(before.own);
        self.spun = self.spun.saturating_sub(before.spun);
        for (name, stops) in &mut self.stops {
            let before = before.stops.get(name).copied().unwrap_or_default();
            stops.periods = stops.periods.saturating_sub(before.periods);
            stops.stopped = stops.stopped.saturating_sub(before.stopped);
        }
        self.overflows = self.overflows.saturating_sub(before.overflows);
        self.opened = self.opened.saturating_sub(before.opened);
        self.withheld = Withheld {
            throttled: self
                .withheld
                .throttled
                .saturating_sub(before.withheld.throttled),
            oom_kills: self
                .withheld
                .oom_kills
                .saturating_sub(before.withheld.oom_kills),
        };
        for (name, cpu) in &mut self.cpu {
            *cpu = cpu.saturating_sub(before.cpu.get(name).copied().unwrap_or_default());
        }
        for (name, bytes) in &mut self.disks {
            *bytes = bytes.saturating_sub(before.disks.get(name).copied().unwrap_or(0));
        }
        for (name, counts) in &mut self.calls {
            if let Some(before) = before.calls.get(name) {
                *counts = counts.clone() - before;
            }
        }
        for (hop, bytes) in &mut self.bytes {
            *bytes = bytes.saturating_sub(before.bytes.get(hop).copied().unwrap_or(0));
        }
        for (name, count) in &mut self.asked {
            *count = count.saturating_sub(before.asked.get(name).copied().unwrap_or(0));
        }
        let cores = self.cores.iter().zip(&before.cores);
        self.cores = cores.map(|(after, before)| *after - *before).collect();
        self
    }

    /// The facts about the machine in this reading.
    pub(super) fn machine(&self, load: &Load, servers: &[RunningServer]) -> MachineFacts {
        let all: f64 = self.cores.iter().map(|core| core.total.as_secs_f64()).sum();
        let busy: f64 = self
            .cores
            .iter()
            .map(|core| core.busy().as_secs_f64())
            .sum();
        let steal: f64 = self.cores.iter().map(|core| core.steal.as_secs_f64()).sum();
        let share = |core: usize| {
            let core = self.cores.get(core)?;
            Some(core.busy().as_secs_f64() / core.total.as_secs_f64().max(1e-9))
        };
        // A server on the load's own core, such as a backend of the tested server, is left out.
        let apart = servers
            .iter()
            .filter(|it| it.core.is_none() || it.core != load.core);
        let pinned: Option<Vec<f64>> = apart.map(|server| server.core.and_then(share)).collect();
        let experiment = self.all.as_secs_f64() + self.own.as_secs_f64();
        MachineFacts {
            load_core: load.core.and_then(share),
            server_core: pinned.and_then(|shares| shares.into_iter().reduce(f64::max)),
            foreign: ((busy - experiment) / all.max(1e-9)).max(0.0),
            steal: steal / all.max(1e-9),
            listen_overflows: self.overflows,
            throttled: self.withheld.throttled,
            oom_kills: self.withheld.oom_kills,
            ports_used: self
                .local_ports
                .map(|all| self.time_wait as f64 / all as f64),
            own_cost: Some(
                self.own.as_secs_f64() / self.all.saturating_sub(self.spun).as_secs_f64().max(1e-9),
            ),
            ..MachineFacts::default()
        }
    }

    /// The shares of a core that servers with a declared part of one have used: CPU time per
    /// request, from `requests`, times `rate` requests per second. The server in front is the
    /// tested one.
    pub(super) fn shares(
        &self,
        servers: &[RunningServer],
        requests: u64,
        rate: f64,
    ) -> BTreeMap<String, ShareFacts> {
        let of = |(place, server): (usize, &RunningServer)| {
            let name = &server.record.name;
            let share = server.core_share?;
            let cpu_us = self.cpu_us(name, requests)?;
            let stops = self.stops.get(name).copied().unwrap_or_default();
            let facts = ShareFacts {
                declared: share.of_core(),
                used: cpu_us * rate / 1e6,
                is_weight: share.by == Holder::Spinner,
                is_tested: place + 1 == servers.len(),
                periods: stops.periods,
                stopped: stops.stopped,
            };
            Some((name.clone(), facts))
        };
        servers.iter().enumerate().filter_map(of).collect()
    }

    /// The number of connections that servers opened to each other, for each of `requests`. The
    /// load and its crowd have opened `others`. `None` where no server has another one behind it.
    pub(super) fn dials(
        &self,
        servers: &[RunningServer],
        others: u64,
        requests: u64,
    ) -> Option<f64> {
        let between = self.opened.saturating_sub(others);
        (servers.len() > 1 && requests > 0).then(|| between as f64 / requests as f64)
    }

    /// The number of requests that each of several servers received for each of `requests`, by
    /// segments with data. Empty if that was not counted.
    pub(super) fn asked(&self, requests: u64) -> BTreeMap<String, f64> {
        let each = |count: &u64| *count as f64 / requests.max(1) as f64;
        let servers = self.asked.iter();
        servers
            .map(|(name, count)| (name.clone(), each(count)))
            .collect()
    }

    /// The CPU time of a server for each of `requests`, in microseconds; `None` if it was not counted.
    pub(super) fn cpu_us(&self, server: &str, requests: u64) -> Option<f64> {
        let cpu = self.cpu.get(server)?;
        Some(cpu.as_secs_f64() * 1e6 / requests.max(1) as f64)
    }

    /// Whether the experiment measures bytes that could not be counted.
    pub(super) fn lacks_bytes(&self) -> bool {
        self.uncounted.contains_key(BYTES)
    }

    /// Why measures were not counted, by the first part of their names.
    pub(super) fn uncounted(&self) -> BTreeMap<String, String> {
        self.uncounted.clone()
    }

    /// The bytes of each hop for each of `requests`: by `SERVER.PORT`, and as a sum over all hops
    /// behind the server in front.
    pub(super) fn bytes(
        &self,
        experiment: &Experiment,
        servers: &[RunningServer],
        requests: u64,
    ) -> BTreeMap<String, f64> {
        let mut hops = BTreeMap::new();
        if requests == 0 {
            return hops;
        }
        let each = |count: f64| count / requests as f64;
        let front = servers.last().map(|server| server.record.name.as_str());
        let is_behind = |name: &str| Some(name) != front;
        let mut upstream = 0.0;
        for ((name, port), bytes) in &self.bytes {
            hops.insert(format!("{name}.{port}"), each(*bytes as f64));
            if is_behind(name) {
                upstream += *bytes as f64;
            }
        }
        let is_counted = experiment.servers() > 1 && !self.lacks_bytes() && !self.bytes.is_empty();
        let mut asked_for = experiment.measure.bytes.iter();
        if is_counted && asked_for.any(|(name, _)| is_behind(name)) {
            hops.insert(UPSTREAM.to_owned(), each(upstream));
        }
        hops
    }

    /// Whether the experiment measures system calls that could not be counted.
    pub(super) fn lacks_calls(&self) -> bool {
        self.uncounted.contains_key(SYSCALLS)
    }
}

/// The system calls of each server, by the server's name.
pub(super) type CallsByServer = BTreeMap<String, Counts>;

/// The number of each system call for one request, by server and call.
pub(super) fn each(counted: CallCounts<'_>) -> BTreeMap<String, BTreeMap<String, f64>> {
    let requests = counted.requests.max(1) as f64;
    let share = |(name, call): (&str, Call)| (name.to_owned(), call.calls as f64 / requests);
    let of = |counts: &Counts| counts.iter().map(share).collect();
    let servers = counted.calls.iter();
    servers
        .map(|(name, counts)| (name.clone(), of(counts)))
        .collect()
}

/// The bytes that each measured server has allocated; `None` if the experiment measures none. Pages
/// of program files are left out: load and lab share those of our servers, but no other server's.
pub(super) fn memory(
    experiment: &Experiment,
    servers: &[RunningServer],
) -> Option<BTreeMap<String, u64>> {
    let names = &experiment.measure.memory;
    let of_interest = servers.iter().filter(|it| names.contains(&it.record.name));
    let allocated = |server: &RunningServer| {
        let shares = memory::shares(&server.process.processes()).ok()?;
        Some((server.record.name.clone(), shares.anonymous))
    };
    (!names.is_empty()).then(|| of_interest.filter_map(allocated).collect())
}

/// Returns [`memory()`], or `None` if one of the servers is not new in this run: it keeps what an
/// earlier crowd has made it allocate.
pub(super) fn memory_of_new(
    experiment: &Experiment,
    servers: &[RunningServer],
) -> Option<BTreeMap<String, u64>> {
    let is_of_interest = |it: &&RunningServer| experiment.measure.memory.contains(&it.record.name);
    let are_new = servers.iter().filter(is_of_interest).all(|it| it.is_new);
    are_new.then(|| memory(experiment, servers)).flatten()
}

/// The number of ports that clients may use in the space, by `ip_local_port_range`; `None` if it cannot be read.
fn local_ports(space: &Space) -> Option<u64> {
    let range = space.sysctl("net.ipv4.ip_local_port_range").ok()?;
    let mut ends = range
        .split_whitespace()
        .map_while(|word| word.parse::<u64>().ok());
    let (from, to) = (ends.next()?, ends.next()?);
    Some(to.saturating_sub(from) + 1)
}

/// The counters of requests at all ports of each server; the error says why there are none.
fn asked(servers: &[RunningServer], has_bpf: bool) -> Result<Vec<(String, Segments)>, String> {
    let counter = |server: &RunningServer| {
        let group = server.process.group()?;
        let segments = by_bpf(has_bpf, || Segments::count(group, &server.process.ports()));
        Some(segments.map(|segments| (server.record.name.clone(), segments)))
    };
    servers.iter().filter_map(counter).collect()
}

/// Opens a counter by `count`, if BPF may be used; the error says why there is none.
fn by_bpf<T>(has_bpf: bool, count: impl FnOnce() -> Result<T, BpfFault>) -> Result<T, String> {
    if has_bpf {
        count().map_err(|fault| fault.to_string())
    } else {
        Err(ASKED_NOT_TO.to_owned())
    }
}

fn ports(process: &Process, port: &str) -> Vec<u16> {
    let urls = process.urls(port);
    let numbers = urls
        .iter()
        .filter_map(|url| url.rsplit_once(':')?.1.parse().ok());
    numbers.collect()
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn calls_fault(fault: BpfFault) -> DriveFault {
    DriveFault::Count {
        what: "system calls",
        why: fault.to_string(),
    }
}

fn bytes_fault(fault: impl std::fmt::Display) -> DriveFault {
    DriveFault::Count {
        what: "bytes",
        why: fault.to_string(),
    }
}

/// The reason given for not counting by BPF if `--no-bpf` is set.
const ASKED_NOT_TO: &str = "--no-bpf asked for that";
