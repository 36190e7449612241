//! The definitions of all measures, with the functions that compute them.

use std::time::Duration;

use catamaran_gauge::Counts;

use super::evidence::{AbFigures, Evidence, MeasureValues};
use super::{
    BYTES, Better, CAPACITY, CPU, ERRORS, FAILED, LONGEST_SILENCE, MEMORY, MeasureKind,
    MeasureRecord, ReportTable, SILENCES, SYSCALLS, Scope, Spoiler, THROUGHPUT,
};
use crate::facts::SilenceFacts;
use crate::sample::Sample;

/// All measures, in the order in which the tables of reports have them.
pub(super) static MEASURES: &[MeasureRecord] = &[
    MeasureRecord {
        words: ["has", "throughput"],
        better: Better::More,
        read: |it| whole(Some(it.document.throughput.requests_per_s)),
        ..time(THROUGHPUT, MeasureKind::Rate, "req/s")
    },
    MeasureRecord {
        words: ["has", "capacity per core"],
        spoiler: Spoiler::Machine,
        better: Better::More,
        read: |it| whole(capacity(it)),
        ..time(CAPACITY, MeasureKind::Rate, "req/s per core")
    },
    MeasureRecord {
        words: ["has", "median latency"],
        has_shares: true,
        read: |it| whole(percentile(it, 50.0, it.document.latency.total.p50_us)),
        ..time("p50", MeasureKind::Time, "ms")
    },
    MeasureRecord {
        words: ["has", "p90"],
        has_shares: true,
        read: |it| whole(percentile(it, 90.0, it.document.latency.total.p90_us)),
        ..time("p90", MeasureKind::Time, "ms")
    },
    MeasureRecord {
        words: ["has", "p99"],
        has_shares: true,
        read: |it| whole(percentile(it, 99.0, it.document.latency.total.p99_us)),
        ..time("p99", MeasureKind::Time, "ms")
    },
    MeasureRecord {
        words: ["takes", "CPU"],
        spoiler: Spoiler::Machine,
        has_shares: true,
        scope: Scope::Servers,
        read: cpu,
        ..cost(CPU, MeasureKind::Time, "µs/req")
    },
    MeasureRecord {
        words: ["has", "longest span without an answer"],
        read: |it| whole(SilenceFacts::of(it.document).map(|it| it.longest_ms)),
        ..time(LONGEST_SILENCE, MeasureKind::Time, "ms")
    },
    MeasureRecord {
        words: ["has", "spans without an answer"],
        is_mostly_zero: true,
        read: |it| whole(SilenceFacts::of(it.document).map(|it| it.count as f64)),
        ..time(SILENCES, MeasureKind::Count, "spans")
    },
    MeasureRecord {
        words: ["has", "variation of throughput"],
        has_shares: true,
        read: |it| whole(variation(it)),
        ..time("variation", MeasureKind::Share, "")
    },
    MeasureRecord {
        words: ["has", "failed requests"],
        spoiler: Spoiler::Nothing,
        is_mostly_zero: true,
        read: |it| whole(Some(it.failed as f64)),
        ..time(FAILED, MeasureKind::Count, "requests")
    },
    MeasureRecord {
        words: ["has", "requests without a 2xx"],
        spoiler: Spoiler::Nothing,
        is_mostly_zero: true,
        read: |it| whole(Some(it.errors as f64)),
        ..time(ERRORS, MeasureKind::Count, "requests")
    },
    MeasureRecord {
        words: ["has", "actions"],
        spoiler: Spoiler::Nothing,
        better: Better::More,
        read: |it| whole((it.acted > 0).then_some(it.acted as f64)),
        ..time("acted", MeasureKind::Count, "times")
    },
    MeasureRecord {
        words: ["has", "throughput in the first second"],
        better: Better::More,
        is_cold: true,
        read: |it| whole(it.first),
        ..time("first", MeasureKind::Rate, "req/s")
    },
    MeasureRecord {
        words: ["spends", "time on connecting"],
        read: |it| whole(connecting(it)),
        ..time("connect", MeasureKind::Time, "µs/req")
    },
    MeasureRecord {
        words: ["has", "longest request of a first run"],
        is_cold: true,
        read: |it| whole(published(it, "ab1").longest_ms),
        ..time("ab1.longest", MeasureKind::Time, "ms")
    },
    MeasureRecord {
        words: ["has", "throughput in a first run"],
        better: Better::More,
        is_cold: true,
        read: |it| whole(published(it, "ab1").throughput),
        ..time("ab1.throughput", MeasureKind::Rate, "req/s")
    },
    MeasureRecord {
        words: ["has", "longest request of a second run"],
        is_cold: true,
        read: |it| whole(published(it, "ab2").longest_ms),
        ..time("ab2.longest", MeasureKind::Time, "ms")
    },
    MeasureRecord {
        words: ["has", "throughput in a second run"],
        better: Better::More,
        is_cold: true,
        read: |it| whole(published(it, "ab2").throughput),
        ..time("ab2.throughput", MeasureKind::Rate, "req/s")
    },
    MeasureRecord {
        words: ["has", "longest request of a settled run"],
        read: |it| whole(published(it, "ab").longest_ms),
        ..time("ab.longest", MeasureKind::Time, "ms")
    },
    MeasureRecord {
        words: ["has", "throughput in a settled run"],
        better: Better::More,
        read: |it| whole(published(it, "ab").throughput),
        ..time("ab.throughput", MeasureKind::Rate, "req/s")
    },
    MeasureRecord {
        words: ["makes", "system calls"],
        scope: Scope::Servers,
        read: syscalls,
        ..cost(SYSCALLS, MeasureKind::Count, "calls/req")
    },
    MeasureRecord {
        words: ["uses", "memory"],
        scope: Scope::Servers,
        read: memory,
        ..cost(MEMORY, MeasureKind::Count, "MiB")
    },
    MeasureRecord {
        words: ["uses", "memory per client beside the load"],
        scope: Scope::Servers,
        read: held,
        ..cost("held", MeasureKind::Count, "B/client")
    },
    MeasureRecord {
        words: ["uses", "heap"],
        scope: Scope::Server,
        read: heap,
        ..cost("heap", MeasureKind::Count, "MiB")
    },
    MeasureRecord {
        words: ["spends", "garbage collection time"],
        spoiler: Spoiler::Machine,
        scope: Scope::Server,
        read: collecting,
        ..cost("collecting", MeasureKind::Share, "%")
    },
    // These are figures of the whole machine, so no claim is on them.
    MeasureRecord {
        words: ["leaves", "free memory"],
        spoiler: Spoiler::Machine,
        better: Better::More,
        of_servers: Some(MEMORY),
        read: |it| whole(free(it)),
        ..cost("free", MeasureKind::Count, "MiB")
    },
    MeasureRecord {
        words: ["makes", "transfers of disks"],
        spoiler: Spoiler::Machine,
        of_servers: Some("io"),
        read: |it| whole(disk(it)),
        ..cost("disk", MeasureKind::Rate, "transfers/s")
    },
    MeasureRecord {
        words: ["moves", "bytes from and to disks"],
        scope: Scope::Servers,
        read: io,
        ..cost("io", MeasureKind::Count, "B/req")
    },
    MeasureRecord {
        words: ["moves", "bytes"],
        scope: Scope::Hop,
        read: |it| {
            it.bytes
                .iter()
                .map(|(hop, bytes)| (Some(hop.clone()), *bytes))
                .collect()
        },
        ..hop(BYTES, "B/req")
    },
    MeasureRecord {
        words: ["opens", "connections"],
        read: |it| whole(it.by_request(it.opened as f64)),
        ..hop("sockets", "per req")
    },
    MeasureRecord {
        words: ["leaves", "ports in TIME_WAIT"],
        read: |it| whole(it.by_request(it.waited as f64)),
        ..hop("time_wait", "per req")
    },
];

/// The defaults for a measure of throughput or latency.
const fn time(name: &'static str, kind: MeasureKind, unit: &'static str) -> MeasureRecord {
    MeasureRecord {
        name,
        unit,
        words: ["", ""],
        kind,
        spoiler: Spoiler::Times,
        better: Better::Less,
        table: ReportTable::Times,
        has_shares: false,
        is_mostly_zero: false,
        is_cold: false,
        of_servers: None,
        scope: Scope::Run,
        read: |_| Vec::new(),
    }
}

/// The defaults for a measure of costs.
const fn cost(name: &'static str, kind: MeasureKind, unit: &'static str) -> MeasureRecord {
    MeasureRecord {
        spoiler: Spoiler::Nothing,
        table: ReportTable::Costs,
        ..time(name, kind, unit)
    }
}

/// The defaults for a measure of traffic between servers.
const fn hop(name: &'static str, unit: &'static str) -> MeasureRecord {
    MeasureRecord {
        spoiler: Spoiler::Nothing,
        table: ReportTable::Hops,
        ..time(name, MeasureKind::Count, unit)
    }
}

/// A value of the whole run, without values of single servers.
fn whole(value: Option<f64>) -> MeasureValues {
    value.map(|value| (None, value)).into_iter().collect()
}

/// The value of all servers, then those of each if there are several.
fn of_servers(
    evidence: &Evidence<'_>,
    all: f64,
    servers: impl Iterator<Item = (String, f64)>,
) -> MeasureValues {
    let mut values = vec![(None, all)];
    if evidence.has_several {
        values.extend(servers.map(|(name, value)| (Some(name), value)));
    }
    values
}

/// The requests that the server in front could answer with a second of CPU time.
fn capacity(evidence: &Evidence<'_>) -> Option<f64> {
    let cpu = evidence.cpu.get(evidence.tested?)?;
    let cpu_us = cpu.as_secs_f64() * MICROS / evidence.requests.max(1) as f64;
    (cpu_us > 0.0).then(|| MICROS / cpu_us)
}

/// A percentile in milliseconds; `None` if there were too few requests for it.
fn percentile(evidence: &Evidence<'_>, percent: f64, micros: u64) -> Option<f64> {
    let highest = evidence.document.latency.total.percentile_max?;
    (highest >= percent).then_some(micros as f64 / 1000.0)
}

/// The variation of throughput over the seconds; `None` for fewer than `SECONDS_MIN` seconds, which
/// would say next to nothing.
fn variation(evidence: &Evidence<'_>) -> Option<f64> {
    let spread = evidence.document.throughput.per_second.as_ref()?;
    (spread.seconds >= SECONDS_MIN).then_some(spread.variation)
}

/// The CPU time per request, in microseconds.
fn cpu(evidence: &Evidence<'_>) -> MeasureValues {
    let micros = |cpu: &Duration| cpu.as_secs_f64() * MICROS;
    let Some(all) = evidence.by_request(evidence.cpu.values().map(micros).sum()) else {
        return MeasureValues::new();
    };
    let servers = evidence.cpu.iter();
    let servers = servers.filter_map(|(name, cpu)| {
        let of_server = evidence.by_request(micros(cpu))?;
        Some((name.clone(), of_server))
    });
    of_servers(evidence, all, servers)
}

/// The system calls per request of the span in which they were counted.
fn syscalls(evidence: &Evidence<'_>) -> MeasureValues {
    let (calls, requests) = (evidence.calls.calls, evidence.calls.requests);
    if calls.is_empty() || requests == 0 {
        return MeasureValues::new();
    }
    let by_request = |count: u64| count as f64 / requests as f64;
    let all = by_request(calls.values().map(Counts::total).sum());
    let servers = calls.iter();
    let servers = servers.map(|(name, counts)| (name.clone(), by_request(counts.total())));
    of_servers(evidence, all, servers)
}

/// The allocated memory in MiB.
fn memory(evidence: &Evidence<'_>) -> MeasureValues {
    let Some(memory) = &evidence.memory else {
        return MeasureValues::new();
    };
    let mib = |bytes: u64| bytes as f64 / MIB;
    let servers = memory
        .iter()
        .map(|(name, bytes)| (name.clone(), mib(*bytes)));
    of_servers(evidence, mib(memory.values().sum()), servers)
}

/// The memory of servers divided by the clients of a crowd. The evidence has the value of all servers together under an
/// empty name.
fn held(evidence: &Evidence<'_>) -> MeasureValues {
    let server = |name: &String| Some(name.clone()).filter(|name| !name.is_empty());
    let values = evidence.held.iter();
    values.map(|(name, bytes)| (server(name), *bytes)).collect()
}

/// The highest use of each virtual machine's heap.
fn heap(evidence: &Evidence<'_>) -> MeasureValues {
    let highest = |name: &String| {
        let jvms = evidence
            .samples
            .iter()
            .filter_map(|sample| sample.jvms.get(name));
        let heap = jvms.map(|jvm| jvm.heap).max()?;
        Some((Some(name.clone()), heap as f64 / MIB))
    };
    evidence.jvms.iter().filter_map(highest).collect()
}

/// The share of time that each virtual machine's collections took, in per cent.
fn collecting(evidence: &Evidence<'_>) -> MeasureValues {
    let Some(span) = evidence.sampled_span() else {
        return MeasureValues::new();
    };
    let share = |name: &String| {
        let (before, after) = (span.first.jvms.get(name)?, span.last.jvms.get(name)?);
        let seconds = after.collecting_s - before.collecting_s;
        Some((Some(name.clone()), seconds / span.seconds * 100.0))
    };
    evidence.jvms.iter().filter_map(share).collect()
}

/// The time of all connects divided by the number of responses, in microseconds; a response on a
/// kept connection adds none.
fn connecting(evidence: &Evidence<'_>) -> Option<f64> {
    let document = evidence.document;
    let (connects, answers) = (&document.latency.connect, document.requests.completed);
    let is_known = evidence.is_published && connects.count > 0 && answers > 0;
    is_known.then(|| connects.mean_us as f64 * connects.count as f64 / answers as f64)
}

/// The mean of the machine's free memory, in MiB.
fn free(evidence: &Evidence<'_>) -> Option<f64> {
    if !evidence.is_published || evidence.samples.is_empty() {
        return None;
    }
    let samples = evidence.samples.iter();
    let sum: f64 = samples.map(|sample| sample.memory.free as f64).sum();
    Some(sum / evidence.samples.len() as f64 / MIB)
}

/// The bytes from and to disks per request.
fn io(evidence: &Evidence<'_>) -> MeasureValues {
    let disks = evidence.disks;
    let sum = disks.values().sum::<u64>() as f64;
    let Some(all) = evidence.by_request(sum) else {
        return MeasureValues::new();
    };
    // They were not measured.
    if disks.is_empty() {
        return MeasureValues::new();
    }
    let servers = disks.iter().filter_map(|(name, bytes)| {
        let of_server = evidence.by_request(*bytes as f64)?;
        Some((name.clone(), of_server))
    });
    of_servers(evidence, all, servers)
}

/// The transfers of all disks per second.
fn disk(evidence: &Evidence<'_>) -> Option<f64> {
    if !evidence.is_published {
        return None;
    }
    let span = evidence.sampled_span()?;
    let transfers = |sample: &Sample| {
        let disks = sample.disks.values();
        disks.map(|disk| disk.reads + disk.writes).sum::<u64>()
    };
    let count = transfers(span.last).saturating_sub(transfers(span.first));
    Some(count as f64 / span.seconds)
}

/// What ab printed for the published run `name`; without it, no figures.
fn published(evidence: &Evidence<'_>, name: &str) -> AbFigures {
    evidence.published.get(name).copied().unwrap_or_default()
}

const MICROS: f64 = 1e6;
const MIB: f64 = (1 << 20) as f64;

/// The least number of seconds for a variation that a claim can use.
const SECONDS_MIN: usize = 5;
