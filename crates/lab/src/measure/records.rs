//! The records of all measures.

use super::{
    BYTES, Better, CAPACITY, FAILED, Kind, LONGEST_SILENCE, MEMORY, MeasureRecord, SILENCES,
    SYSCALLS, Scope, Spoiler, THROUGHPUT, Table,
};

/// All measures, in the order in which reports have those of a table.
pub(super) static MEASURES: &[MeasureRecord] = &[
    MeasureRecord {
        words: ["has", "throughput"],
        better: Better::More,
        ..time(THROUGHPUT, Kind::Rate, "req/s")
    },
    MeasureRecord {
        words: ["has", "capacity per core"],
        spoiler: Spoiler::Machine,
        better: Better::More,
        ..time(CAPACITY, Kind::Rate, "req/s per core")
    },
    MeasureRecord {
        words: ["has", "median latency"],
        has_shares: true,
        ..time("p50", Kind::Time, "ms")
    },
    MeasureRecord {
        words: ["has", "p90"],
        has_shares: true,
        ..time("p90", Kind::Time, "ms")
    },
    MeasureRecord {
        words: ["has", "p99"],
        has_shares: true,
        ..time("p99", Kind::Time, "ms")
    },
    MeasureRecord {
        words: ["takes", "CPU"],
        spoiler: Spoiler::Machine,
        has_shares: true,
        scope: Scope::Servers,
        ..cost("cpu", Kind::Time, "µs/req")
    },
    MeasureRecord {
        words: ["has", "longest span without an answer"],
        ..time(LONGEST_SILENCE, Kind::Time, "ms")
    },
    MeasureRecord {
        words: ["has", "spans without an answer"],
        is_mostly_zero: true,
        ..time(SILENCES, Kind::Count, "spans")
    },
    MeasureRecord {
        words: ["has", "variation of throughput"],
        has_shares: true,
        ..time("variation", Kind::Share, "")
    },
    MeasureRecord {
        words: ["has", "failed requests"],
        spoiler: Spoiler::Nothing,
        is_mostly_zero: true,
        ..time(FAILED, Kind::Count, "requests")
    },
    MeasureRecord {
        words: ["has", "actions"],
        spoiler: Spoiler::Nothing,
        better: Better::More,
        ..time("acted", Kind::Count, "times")
    },
    MeasureRecord {
        words: ["has", "throughput in the first second"],
        better: Better::More,
        ..time("first", Kind::Rate, "req/s")
    },
    MeasureRecord {
        words: ["has", "longest request of a first run"],
        ..time("ab1.longest", Kind::Time, "ms")
    },
    MeasureRecord {
        words: ["has", "throughput in a first run"],
        better: Better::More,
        ..time("ab1.throughput", Kind::Rate, "req/s")
    },
    MeasureRecord {
        words: ["has", "longest request of a second run"],
        ..time("ab2.longest", Kind::Time, "ms")
    },
    MeasureRecord {
        words: ["has", "throughput in a second run"],
        better: Better::More,
        ..time("ab2.throughput", Kind::Rate, "req/s")
    },
    MeasureRecord {
        words: ["has", "longest request of a settled run"],
        ..time("ab.longest", Kind::Time, "ms")
    },
    MeasureRecord {
        words: ["has", "throughput in a settled run"],
        better: Better::More,
        ..time("ab.throughput", Kind::Rate, "req/s")
    },
    MeasureRecord {
        words: ["makes", "system calls"],
        scope: Scope::Servers,
        ..cost(SYSCALLS, Kind::Count, "calls/req")
    },
    MeasureRecord {
        words: ["uses", "memory"],
        scope: Scope::Servers,
        ..cost(MEMORY, Kind::Count, "MiB")
    },
    MeasureRecord {
        words: ["uses", "memory per client beside the load"],
        scope: Scope::Servers,
        ..cost("held", Kind::Count, "B/client")
    },
    MeasureRecord {
        words: ["uses", "heap"],
        scope: Scope::Server,
        ..cost("heap", Kind::Count, "MiB")
    },
    MeasureRecord {
        words: ["spends", "garbage collection time"],
        spoiler: Spoiler::Machine,
        scope: Scope::Server,
        ..cost("collecting", Kind::Share, "%")
    },
    // Of the whole machine: other processes spoil them as they spoil CPU time.
    MeasureRecord {
        words: ["leaves", "free memory"],
        spoiler: Spoiler::Machine,
        better: Better::More,
        ..cost("free", Kind::Count, "MiB")
    },
    MeasureRecord {
        words: ["makes", "transfers of disks"],
        spoiler: Spoiler::Machine,
        ..cost("disk", Kind::Rate, "transfers/s")
    },
    MeasureRecord {
        words: ["moves", "bytes"],
        scope: Scope::Hop,
        ..hop(BYTES, "B/req")
    },
    MeasureRecord {
        words: ["opens", "connections"],
        ..hop("sockets", "per req")
    },
    MeasureRecord {
        words: ["leaves", "ports in TIME_WAIT"],
        ..hop("time_wait", "per req")
    },
];

/// All measures, for whoever has named one that there is not.
pub(super) const ALL: &str = "throughput, capacity, cpu, p50, p90, p99, memory, syscalls, bytes.SERVER.PORT, bytes.upstream, \
                              held, heap.SERVER, collecting.SERVER, sockets, time_wait, failed, first, acted, silences, \
                              longest_silence, free, disk and variation; of published runs in each round ab1, ab2 and ab, such as \
                              ab1.longest; cpu, memory, syscalls and held also of one server, such as cpu.front; p99@0.5 at half the capacity";

/// What holds of a measure of throughput or latency, unless its record says otherwise.
const fn time(name: &'static str, kind: Kind, unit: &'static str) -> MeasureRecord {
    MeasureRecord {
        name,
        unit,
        words: ["", ""],
        kind,
        spoiler: Spoiler::Times,
        better: Better::Less,
        table: Table::Times,
        has_shares: false,
        is_mostly_zero: false,
        scope: Scope::Run,
    }
}

/// The same of a cost.
const fn cost(name: &'static str, kind: Kind, unit: &'static str) -> MeasureRecord {
    MeasureRecord {
        spoiler: Spoiler::Nothing,
        table: Table::Costs,
        ..time(name, kind, unit)
    }
}

/// The same of what moves between servers.
const fn hop(name: &'static str, unit: &'static str) -> MeasureRecord {
    MeasureRecord {
        spoiler: Spoiler::Nothing,
        table: Table::Hops,
        ..time(name, Kind::Count, unit)
    }
}
