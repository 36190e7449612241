//! The counters of the kernel over a run.

use std::collections::BTreeMap;
use std::time::Duration;

use catamaran_gauge::{
    BpfFault, Bytes, Counts, Group, Segments, Stops, Syscalls, Withheld, cpu, memory, network,
    process, system, withheld,
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
    requests: Vec<(String, Segments)>,
    /// The hops whose bytes are measured.
    hops: Vec<Hop>,
    /// The names of the servers whose system calls are counted.
    counted: Vec<String>,
    /// Why a measure cannot be counted, by the first part of its name.
    uncounted: BTreeMap<String, String>,
    /// Whether each process is counted by itself, with times.
    is_traced: bool,
    /// Whether the bytes of disks are read, process by process.
    reads_disks: bool,
}

/// A port of a server, between the server and what connects to it.
struct Hop {
    server: String,
    /// The name of the port.
    port: String,
    /// The numbers of the port; several if the server listens on several addresses.
    numbers: Vec<u16>,
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
    /// The number of segments with data that have reached each server, about one for each request.
    segments: BTreeMap<String, u64>,
    /// Why a measure was not counted, by the first part of its name.
    uncounted: BTreeMap<String, String>,
}

impl<'a> Counters<'a> {
    /// Whether the kernel allows at least one of the counters that the experiment needs.
    pub(super) fn are_granted(experiment: &Experiment, stage: &'a Stage) -> bool {
        let counters = Self::begin(experiment, stage, true);
        counters.syscalls.is_some() || !counters.bytes.is_empty()
    }

    /// Begins to count. What the kernel refuses is left out, as is everything by BPF if the
    /// experiment excludes it. Calls and bytes are counted if `is_counting`.
    pub(super) fn begin(experiment: &Experiment, stage: &'a Stage, is_counting: bool) -> Self {
        let has_bpf = !experiment.is_without_bpf;
        let servers = &stage.servers[..];
        let mut uncounted = BTreeMap::new();
        let nothing = CountPlan::default();
        let plan = if is_counting {
            &experiment.measure
        } else {
            &nothing
        };
        let syscalls = syscall_counter(experiment, stage, &plan.syscalls);
        let syscalls = or_uncounted(syscalls, SYSCALLS, &mut uncounted);
        let mut hops = Vec::new();
        for (name, port) in &plan.bytes {
            if let Some(server) = servers.iter().find(|server| server.record.name == *name) {
                hops.push(Hop {
                    server: name.clone(),
                    port: port.clone(),
                    numbers: ports(&server.process, port),
                });
            }
        }
        let mut bytes = Vec::new();
        for server in servers {
            let counter = byte_counter(server, &hops, has_bpf);
            if let Some(counter) = or_uncounted(counter, BYTES, &mut uncounted) {
                bytes.push((server.record.name.clone(), counter));
            }
        }
        let mut requests = Vec::new();
        if is_counting && servers.len() > 1 {
            let counters = request_counters(servers, has_bpf);
            requests = or_uncounted(counters, REQUESTS, &mut uncounted);
        }
        Self {
            stage,
            servers,
            syscalls,
            bytes,
            requests,
            hops,
            counted: plan.syscalls.clone(),
            uncounted,
            is_traced: experiment.is_traced,
            reads_disks: experiment.is_published,
        }
    }

    /// Reads all counters now.
    pub(super) fn read(&self) -> Result<CounterReading, DriveFault> {
        let space = &self.stage.space;
        // A space without cgroups has no group: CPU time then counts as zero.
        let mut reading = CounterReading {
            uncounted: self.uncounted.clone(),
            own: cpu::of_this_process(),
            cores: system::cores().unwrap_or_default(),
            withheld: withheld(),
            disks: self.disks(),
            local_ports: local_ports(space),
            all: space.group().map_or(Ok(Duration::ZERO), cpu_time)?,
            ..CounterReading::default()
        };
        if let Ok(network) = network::of(space.anchor()) {
            reading.overflows = network.counters.overflows();
            reading.opened = network.counters.of("Tcp.ActiveOpens");
            reading.waited = network.counters.time_waits();
            reading.time_wait = network.sockets.time_wait;
        }
        for server in self.servers {
            let name = &server.record.name;
            let Some(group) = server.process.group() else {
                continue;
            };
            reading.cpu.insert(name.clone(), cpu_time(group)?);
            if let Ok(Some(stops)) = group.stops() {
                reading.stops.insert(name.clone(), stops);
            }
            if let Some(syscalls) = &self.syscalls
                && self.counted.contains(name)
            {
                let counts = syscalls.of(group).map_err(calls_fault)?;
                reading.calls.insert(name.clone(), counts);
            }
        }
        for spinner in self.stage.spinners.values() {
            reading.spun += spinner.task.group().map_or(Ok(Duration::ZERO), cpu_time)?;
        }
        for hop in &self.hops {
            let mut counters = self.bytes.iter();
            let Some((_, counter)) = counters.find(|(server, _)| *server == hop.server) else {
                continue;
            };
            let mut sum = 0;
            for number in &hop.numbers {
                let at_port = counter.of(*number).map_err(bytes_fault)?;
                sum += at_port.received.bytes + at_port.sent.bytes;
            }
            let key = (hop.server.clone(), hop.port.clone());
            reading.bytes.insert(key, sum);
        }
        for (name, segments) in &self.requests {
            let received = segments.received().map_err(bytes_fault)?;
            reading.segments.insert(name.clone(), received);
        }
        Ok(reading)
    }

    /// The bytes that each server has read from disks and written to them so far. Empty unless the experiment asks.
    fn disks(&self) -> BTreeMap<String, u64> {
        if !self.reads_disks {
            return BTreeMap::new();
        }
        let of_server = |server: &RunningServer| {
            let processes = server.process.group()?.processes().ok()?;
            Some((server.record.name.clone(), process::disk_bytes(&processes)))
        };
        self.servers.iter().filter_map(of_server).collect()
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
            let mut servers = self.servers.iter();
            let server = servers.find(|server| server.record.name == *name);
            let group = server.and_then(|server| server.process.group());
            if let (Some(syscalls), Some(group)) = (&self.syscalls, group) {
                for (id, counts) in syscalls.of_processes(group).map_err(calls_fault)? {
                    trace.processes.push(ProcessTrace {
                        id,
                        name: process::name(id).unwrap_or_default(),
                        calls: table_of(&counts, true),
                    });
                }
            }
            traces.insert(name.clone(), trace);
        }
        Ok(traces)
    }
}

impl CounterReading {
    /// The increase of each counter since `before`. Subtractions saturate, since a counter begins anew at 0 if its
    /// process is started again.
    pub(super) fn since(mut self, before: &Self) -> Self {
        self.waited = self.waited.saturating_sub(before.waited);
        self.all = self.all.saturating_sub(before.all);
        self.own = self.own.saturating_sub(before.own);
        self.spun = self.spun.saturating_sub(before.spun);
        for (name, stops) in &mut self.stops {
            let stops_before = before.stops.get(name).copied().unwrap_or_default();
            stops.periods = stops.periods.saturating_sub(stops_before.periods);
            stops.stopped = stops.stopped.saturating_sub(stops_before.stopped);
        }
        self.overflows = self.overflows.saturating_sub(before.overflows);
        self.opened = self.opened.saturating_sub(before.opened);
        let Withheld {
            throttled,
            oom_kills,
        } = &mut self.withheld;
        *throttled = throttled.saturating_sub(before.withheld.throttled);
        *oom_kills = oom_kills.saturating_sub(before.withheld.oom_kills);
        for (name, cpu) in &mut self.cpu {
            *cpu = cpu.saturating_sub(before.cpu.get(name).copied().unwrap_or_default());
        }
        for (name, bytes) in &mut self.disks {
            *bytes = bytes.saturating_sub(before.disks.get(name).copied().unwrap_or(0));
        }
        for (name, counts) in &mut self.calls {
            if let Some(counts_before) = before.calls.get(name) {
                *counts = counts.clone() - counts_before;
            }
        }
        for (hop, bytes) in &mut self.bytes {
            *bytes = bytes.saturating_sub(before.bytes.get(hop).copied().unwrap_or(0));
        }
        for (name, count) in &mut self.segments {
            *count = count.saturating_sub(before.segments.get(name).copied().unwrap_or(0));
        }
        let cores = self.cores.iter().zip(&before.cores);
        self.cores = cores.map(|(after, before)| *after - *before).collect();
        self
    }

    /// The facts about the machine in this reading.
    pub(super) fn machine(&self, load: &Load, servers: &[RunningServer]) -> MachineFacts {
        let sum = |time: fn(&system::Core) -> Duration| {
            let cores = self.cores.iter();
            cores.map(|core| time(core).as_secs_f64()).sum::<f64>()
        };
        // The least length avoids a division by 0.
        let total = sum(|core| core.total).max(1e-9);
        let busy = sum(|core| core.busy());
        let steal = sum(|core| core.steal);
        let busy_share = |core: usize| {
            let core = self.cores.get(core)?;
            Some(core.busy().as_secs_f64() / core.total.as_secs_f64().max(1e-9))
        };
        // A server on the load's own core, such as a backend of the tested server, is left out.
        let others = servers
            .iter()
            .filter(|server| server.core.is_none() || server.core != load.core);
        // `None` if any of them is not pinned: then no core is known to be the servers'.
        let server_cores: Option<Vec<f64>> = others
            .map(|server| server.core.and_then(busy_share))
            .collect();
        let experiment = self.all.as_secs_f64() + self.own.as_secs_f64();
        let without_spinners = self.all.saturating_sub(self.spun);
        MachineFacts {
            load_core: load.core.and_then(busy_share),
            server_core: server_cores.and_then(|shares| shares.into_iter().reduce(f64::max)),
            foreign: ((busy - experiment) / total).max(0.0),
            steal: steal / total,
            listen_overflows: self.overflows,
            throttled: self.withheld.throttled,
            oom_kills: self.withheld.oom_kills,
            ports_used: self
                .local_ports
                .map(|all| self.time_wait as f64 / all as f64),
            own_cost: Some(self.own.as_secs_f64() / without_spinners.as_secs_f64().max(1e-9)),
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
        let mut shares = BTreeMap::new();
        for (number, server) in servers.iter().enumerate() {
            let name = &server.record.name;
            let (Some(share), Some(cpu_us)) = (server.core_share, self.cpu_us(name, requests))
            else {
                continue;
            };
            let stops = self.stops.get(name).copied().unwrap_or_default();
            let facts = ShareFacts {
                declared: share.of_core(),
                used: cpu_us * rate / 1e6,
                is_weight: share.by == Holder::Spinner,
                is_tested: number + 1 == servers.len(),
                periods: stops.periods,
                stopped: stops.stopped,
            };
            shares.insert(name.clone(), facts);
        }
        shares
    }

    /// The number of connections that servers opened to each other, for each of `requests`. The
    /// load and its crowd have opened `others`. `None` where no server has another one behind it.
    pub(super) fn dials(
        &self,
        servers: &[RunningServer],
        others: u64,
        requests: u64,
    ) -> Option<f64> {
        if servers.len() < 2 || requests == 0 {
            return None;
        }
        let between = self.opened.saturating_sub(others);
        Some(between as f64 / requests as f64)
    }

    /// The number of requests that each of several servers received for each of `requests`, by
    /// segments with data. Empty if that was not counted.
    pub(super) fn received(&self, requests: u64) -> BTreeMap<String, f64> {
        let mut received = BTreeMap::new();
        for (name, segments) in &self.segments {
            received.insert(name.clone(), *segments as f64 / requests.max(1) as f64);
        }
        received
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
        let by_request = |bytes: f64| bytes / requests as f64;
        let front = servers.last().map(|server| server.record.name.as_str());
        let is_behind = |name: &str| Some(name) != front;
        let mut upstream = 0.0;
        for ((name, port), bytes) in &self.bytes {
            hops.insert(format!("{name}.{port}"), by_request(*bytes as f64));
            if is_behind(name) {
                upstream += *bytes as f64;
            }
        }
        // A hop that could not be counted would be missing in the sum.
        let is_counted = experiment.servers() > 1 && !self.lacks_bytes() && !self.bytes.is_empty();
        let mut measured = experiment.measure.bytes.iter();
        if is_counted && measured.any(|(name, _)| is_behind(name)) {
            hops.insert(UPSTREAM.to_owned(), by_request(upstream));
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
pub(super) fn calls_by_request(counted: CallCounts<'_>) -> BTreeMap<String, BTreeMap<String, f64>> {
    let requests = counted.requests.max(1) as f64;
    let mut servers = BTreeMap::new();
    for (server, counts) in counted.calls {
        let calls = counts.iter();
        let by_request = calls.map(|(name, call)| (name.to_owned(), call.calls as f64 / requests));
        servers.insert(server.clone(), by_request.collect());
    }
    servers
}

/// The bytes that each measured server has allocated; `None` if the experiment measures none. Pages
/// of program files are left out: load and lab share those of our servers, but no other server's.
pub(super) fn memory(
    experiment: &Experiment,
    servers: &[RunningServer],
) -> Option<BTreeMap<String, u64>> {
    let names = &experiment.measure.memory;
    if names.is_empty() {
        return None;
    }
    let mut allocated = BTreeMap::new();
    for server in servers {
        let name = &server.record.name;
        if names.contains(name)
            && let Ok(shares) = memory::shares(&server.process.processes())
        {
            allocated.insert(name.clone(), shares.anonymous);
        }
    }
    Some(allocated)
}

/// Returns [`memory()`], or `None` if one of the servers is not new in this run: it keeps what an
/// earlier crowd has made it allocate.
pub(super) fn memory_of_new(
    experiment: &Experiment,
    servers: &[RunningServer],
) -> Option<BTreeMap<String, u64>> {
    let names = &experiment.measure.memory;
    let mut servers_of_names = servers.iter().filter(|it| names.contains(&it.record.name));
    if servers_of_names.any(|server| !server.is_new) {
        return None;
    }
    memory(experiment, servers)
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

/// The CPU time that a group has used so far.
fn cpu_time(group: &Group) -> Result<Duration, DriveFault> {
    match group.cpu() {
        Ok(cpu) => Ok(cpu.total()),
        Err(fault) => Err(DriveFault::Count {
            what: "CPU time",
            why: fault.to_string(),
        }),
    }
}

/// The counter that was opened. If the kernel refused it: an empty value; `uncounted` gets the reason for `measure`.
fn or_uncounted<T: Default>(
    opened: Result<T, String>,
    measure: &str,
    uncounted: &mut BTreeMap<String, String>,
) -> T {
    opened.unwrap_or_else(|why| {
        uncounted.insert(measure.to_owned(), why);
        T::default()
    })
}

/// The counter of the system calls of the servers called `names`; `None` if none of them has a group.
fn syscall_counter(
    experiment: &Experiment,
    stage: &Stage,
    names: &[String],
) -> Result<Option<Syscalls>, String> {
    let servers = stage.named(names);
    let groups: Vec<&Group> = servers
        .filter_map(|server| server.process.group())
        .collect();
    if groups.is_empty() {
        return Ok(None);
    }
    let count = if experiment.is_traced {
        Syscalls::count_in_detail
    } else {
        Syscalls::count
    };
    by_bpf(!experiment.is_without_bpf, || count(&groups)).map(Some)
}

/// The counter of the bytes of a server's hops; `None` if it has none.
fn byte_counter(
    server: &RunningServer,
    hops: &[Hop],
    has_bpf: bool,
) -> Result<Option<Bytes>, String> {
    let of_server = hops.iter().filter(|hop| hop.server == server.record.name);
    let ports: Vec<u16> = of_server.flat_map(|hop| hop.numbers.clone()).collect();
    match server.process.group() {
        Some(group) if !ports.is_empty() => {
            by_bpf(has_bpf, || Bytes::count(group, &ports)).map(Some)
        }
        _ => Ok(None),
    }
}

/// The counters of requests at all ports of each server; the error says why there are none.
fn request_counters(
    servers: &[RunningServer],
    has_bpf: bool,
) -> Result<Vec<(String, Segments)>, String> {
    let mut counters = Vec::new();
    for server in servers {
        if let Some(group) = server.process.group() {
            let segments = by_bpf(has_bpf, || Segments::count(group, &server.process.ports()))?;
            counters.push((server.record.name.clone(), segments));
        }
    }
    Ok(counters)
}

/// Opens a counter by `count`, if BPF may be used; the error says why there is none.
fn by_bpf<T>(has_bpf: bool, count: impl FnOnce() -> Result<T, BpfFault>) -> Result<T, String> {
    if has_bpf {
        count().map_err(|fault| fault.to_string())
    } else {
        Err(ASKED_NOT_TO.to_owned())
    }
}

/// The numbers of a process's ports of the name `port`.
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
