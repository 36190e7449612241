//! The report, made from the workers' records, and the warnings that follow from it.

use std::time::{Duration, SystemTime};

use catamaran_stats::{Histogram, LittlesLaw, PERCENTILES, WarmUp as Verdict, is_quotable};

use super::{descriptors, doubt, measured_from};
use crate::board::Board;
use crate::clock::NEVER;
use crate::gate::invalidates;
use crate::pace::Level;
use crate::plan::{Pace, Plan, Protocol, Samples, WarmUp};
use crate::record::silence::{self, Silences, Span};
use crate::record::{Record, merge_connections};
use crate::report::{
    AbCounts, ByName, ConnectionCounts, Counts, Ending, FailureKind, Failures, Latency, Report,
    Sample, Silence, Unfinished, WarmUpReport, Warning,
};
use crate::stream::Address;
use crate::timeline::Timeline;
use crate::worker::Outcome;

/// Puts the report together.
pub(super) fn assemble(
    board: &Board,
    outcomes: Vec<Outcome>,
    descriptors: Option<u64>,
    began: SystemTime,
) -> Report {
    let plan = &board.plan;
    let mut whole = Whole::new(plan);
    for outcome in &outcomes {
        whole.add(outcome);
    }
    let ended = whole.ended;
    let from = measured_from(board, ended);
    let ending = match board.ending() {
        Some(ending) => ending,
        None if board.is_stopped() => Ending::Stopped,
        // An open loop may end a little before its time, when nothing more is due.
        None if whole.has_done_all(plan) => Ending::Requests,
        None => Ending::Duration,
    };
    whole.count_lookup_failure(&ending);
    let (span_end, end) = whole.ends(&ending);
    let elapsed = span_end.saturating_sub(from);
    let silent = whole.silences(from, span_end);
    let law = whole.law();
    let record = whole.record;
    let (corrected, lateness, waits) = record.open.map_or((None, None, None), |open| {
        (Some(open.corrected), Some(open.lateness), Some(open.waits))
    });
    let mut report = Report {
        ending,
        started_at: began + Duration::from_nanos(from),
        elapsed: Duration::from_nanos(elapsed),
        drain: Duration::from_nanos(end.saturating_sub(span_end)),
        warm_up: warm_up(board, from, whole.warm_up_requests),
        threads: board.lines.len(),
        concurrency: plan.pace.connections().get(),
        concurrency_reached: usize::try_from(whole.open_max).unwrap_or(usize::MAX),
        streams_reached: whole.streams_max,
        addresses: addresses(board),
        first: board.first.get().cloned(),
        tls: board.tls.get().cloned(),
        counts: record.counts,
        ab: as_ab(record.ab, &record.failures, has_tls(board)),
        failures: record.failures,
        reasons: board.reasons(),
        statuses: statuses(&record.statuses[..]),
        operations: speaks_memcached(plan).then_some(record.operations),
        in_span: record.in_span,
        bytes: record.bytes,
        connections: whole.connections,
        unfinished: whole.unfinished,
        latency: Latency {
            connect: record.connect,
            first_byte: record.first_byte,
            processing: record.processing,
            total: record.total,
            corrected,
            lateness,
            waits,
            per_request_connects: record.without_connect,
        },
        by_name: by_name(board, record.by_name),
        silences: silent.spans,
        silence_min: silent.min,
        longest_silence: silent.longest,
        seconds: record.seconds.into_list(elapsed),
        timeline: whole.timeline,
        generator: outcomes.iter().map(|outcome| outcome.usage).collect(),
        samples: first_samples(record.samples, plan.samples),
        descriptors,
        warnings: Vec::new(),
    };
    report.warnings = warnings(&report, plan, law, silent.share);
    report
}

/// The warm-up before `from`, in which so many requests began.
fn warm_up(board: &Board, from: u64, requests: u64) -> WarmUpReport {
    WarmUpReport {
        duration: match board.plan.warm_up {
            WarmUp::None => Duration::ZERO,
            _ => Duration::from_nanos(from),
        },
        requests,
        verdict: board.steady.get().copied(),
    }
}

fn speaks_memcached(plan: &Plan) -> bool {
    let mut targets = plan.targets.iter();
    targets.any(|target| matches!(target.endpoint.protocol, Protocol::Memcached(_)))
}

fn has_tls(board: &Board) -> bool {
    board.tls_targets.iter().any(Option::is_some)
}

/// Adds refused connects to what ab counts. It learns of one by reading, over TLS in OpenSSL, and then
/// looks at the socket's error: it counts an exception, and reads once more, from the connection of the
/// next request, which is refused by then. Handshakes that fail are in none of its counts.
fn as_ab(counts: AbCounts, failures: &Failures, has_tls: bool) -> AbCounts {
    let events = failures.of(FailureKind::Refused).div_ceil(2);
    AbCounts {
        receive: counts.receive + if has_tls { 0 } else { 2 * events },
        exceptions: counts.exceptions + events,
        ..counts
    }
}

/// Where no answer came.
struct Silent {
    /// As [`Report::silences`].
    spans: Vec<Silence>,
    /// As [`Report::silence_min`].
    min: Duration,
    /// As [`Report::longest_silence`].
    longest: Option<Silence>,
    /// The share of the threads' time in which they had none, 0 to 1.
    share: f64,
}

/// All workers together.
struct Whole {
    record: Record,
    timeline: Timeline,
    /// Those of each thread.
    silences: Vec<Silences>,
    connections: ConnectionCounts,
    unfinished: Unfinished,
    warm_up_requests: u64,
    open_max: u64,
    streams_max: usize,
    busy: u128,
    expected_busy: u128,
    ended: u64,
    /// When the planned time was over; 0: nothing was planned.
    span_end: u64,
}

impl Whole {
    fn new(plan: &Plan) -> Self {
        Self {
            record: Record::new(matches!(plan.pace, Pace::Open { .. }), 0, 0, NEVER),
            timeline: Timeline::new(),
            silences: Vec::new(),
            connections: ConnectionCounts::default(),
            unfinished: Unfinished {
                hung: 0,
                cut: 0,
                unsent: 0,
                ages: Histogram::new(),
            },
            warm_up_requests: 0,
            open_max: 0,
            streams_max: 0,
            busy: 0,
            expected_busy: 0,
            ended: 0,
            span_end: 0,
        }
    }

    fn add(&mut self, outcome: &Outcome) {
        self.record.merge(&outcome.record);
        self.silences.push(outcome.record.silences.clone());
        self.timeline.add(&outcome.record.timeline.clone().finish());
        merge_connections(&mut self.connections, &outcome.connections);
        self.unfinished.hung += outcome.unfinished.hung;
        self.unfinished.cut += outcome.unfinished.cut;
        self.unfinished.unsent += outcome.unfinished.unsent;
        self.unfinished.ages.merge(&outcome.unfinished.ages);
        self.warm_up_requests += outcome.warm_up_requests;
        self.open_max += outcome.open_max;
        self.streams_max = self.streams_max.max(outcome.streams_max);
        self.busy += outcome.busy;
        self.expected_busy += outcome.expected_busy;
        self.ended = self.ended.max(outcome.ended);
        self.span_end = self.span_end.max(outcome.span_end.unwrap_or(0));
    }

    /// Where no thread had an answer within the measured span.
    fn silences(&self, from: u64, to: u64) -> Silent {
        let span = to.saturating_sub(from).max(1) as f64;
        let median = u64::try_from(self.record.total.median().as_nanos()).unwrap_or(NEVER);
        let min = silence::threshold(median, self.busy as f64 / span);
        let threads: Vec<Vec<Span>> = self.silences.iter().map(|it| it.until(to)).collect();
        let long = threads.iter().flatten().map(|(from, to)| to - from);
        let sum: u64 = long.filter(|length| *length >= min).sum();
        let since = |at: u64| Duration::from_nanos(at.saturating_sub(from));
        let silence = |(from, to): Span| Silence {
            from: since(from),
            to: since(to),
        };
        let common = silence::common(&threads);
        let longest = common.iter().copied().max_by_key(|(from, to)| to - from);
        let spans = common.into_iter().filter(|(from, to)| to - from >= min);
        Silent {
            spans: spans.map(silence).collect(),
            min: Duration::from_nanos(min),
            longest: longest.map(silence),
            share: sum as f64 / (span * threads.len().max(1) as f64),
        }
    }

    fn law(&self) -> LittlesLaw {
        LittlesLaw {
            expected_s: self.expected_busy as f64 / 1e9,
            busy_s: self.busy as f64 / 1e9,
        }
    }

    /// Whether as many requests began as there were to be, and came to an end.
    fn has_done_all(&self, plan: &Plan) -> bool {
        let wanted = plan.stop.requests;
        let has_begun = wanted.is_some_and(|wanted| self.record.counts.started >= wanted.get());
        has_begun && self.unfinished.total() == 0
    }

    /// When the measured span ended, and when the drain behind it did.
    fn ends(&self, ending: &Ending) -> (u64, u64) {
        let end = match ending {
            Ending::Requests => self.record.last_end,
            // What hung was waited for until all workers had given up.
            Ending::Duration if self.unfinished.hung > 0 => self.ended.max(self.span_end),
            Ending::Duration => self.record.last_end.max(self.span_end),
            _ => self.ended,
        };
        match self.span_end {
            0 => (end, end),
            span_end => (span_end.min(end), end),
        }
    }

    /// A run without an address has one failed request: the one that could not be sent.
    fn count_lookup_failure(&mut self, ending: &Ending) {
        if let Ending::Failure(fatal) = ending
            && fatal.kind == FailureKind::Name
        {
            self.record.counts = Counts {
                started: 1,
                failed: 1,
                ..Counts::default()
            };
            self.record.failures.add(FailureKind::Name);
            self.record.ab.connect += 1;
        }
    }
}

fn by_name(board: &Board, record: crate::record::ByName) -> Vec<ByName> {
    let names = board.names.list.iter().zip(record.list);
    names
        .map(|(name, named)| ByName {
            name: name.clone(),
            completed: named.completed,
            non_2xx: named.non_2xx,
            failed: named.failed,
            unfinished: named.unfinished,
            latency: named.latency,
        })
        .collect()
}

/// Of what each thread kept, the first ones of the whole run.
fn first_samples(mut samples: Vec<Sample>, wanted: Samples) -> Vec<Sample> {
    if let Samples::First(max) = wanted {
        samples.sort_by_key(|sample| sample.start + sample.total);
        samples.truncate(max.get());
    }
    samples
}

fn addresses(board: &Board) -> Vec<Option<std::net::SocketAddr>> {
    let mut addresses: Vec<_> = board
        .addresses
        .iter()
        .map(|address| match address {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) => None,
        })
        .collect();
    addresses.resize(board.targets.len(), None);
    addresses
}

fn statuses(counts: &[u64]) -> std::collections::BTreeMap<u16, u64> {
    let numbered = (100_u16..).zip(counts.iter().copied());
    numbered.filter(|(_, count)| *count > 0).collect()
}

/// What would fool a reader who is not told.
fn warnings(report: &Report, plan: &Plan, law: LittlesLaw, silent: f64) -> Vec<Warning> {
    let mut found = Vec::new();
    warn_of_answers(report, plan, &mut found);
    warn_of_generator(report, plan, &mut found);
    warn_of_statistics(report, &mut found);
    warn_of_idle_clients(report, plan, law, &mut found);
    if matches!(plan.pace, Pace::Closed { .. }) && plan.stages.is_empty() {
        found.extend(doubt::stalled(&report.latency.total, silent));
    }
    found.extend(doubt::silent(&report.silences, report.elapsed));
    // What makes the figures invalid comes first.
    found.sort_by_key(|warning| !invalidates(warning));
    found
}

/// What the server did.
fn warn_of_answers(report: &Report, plan: &Plan, found: &mut Vec<Warning>) {
    let Counts {
        completed: of,
        non_2xx,
        kept_alive: kept,
        ..
    } = report.counts;
    if non_2xx > 0 {
        found.push(Warning::NonSuccess { count: non_2xx, of });
    }
    if let Some(operations) = &report.operations
        && operations.misses as f64 > operations.gets() as f64 * MISSES_MAX
    {
        let (count, of) = (operations.misses, operations.gets());
        found.push(Warning::Misses { count, of });
    }
    // The last answer of each connection with a limit of ours is not the server's doing.
    let closed = (of - kept) as f64;
    if plan.connections.keep_alive && closed > of as f64 * CLOSED_MAX {
        found.push(Warning::KeepAliveRefused { kept, of });
    }
    let changed = report.counts.other_length;
    if changed > 0 {
        found.push(Warning::BodyLengthChanged { count: changed, of });
    }
    let count = report.counts.failed - report.failures.of(FailureKind::BodyLength);
    if count > 0 {
        let of = report.counts.started;
        found.push(Warning::Failed { count, of });
    }
    let oldest = report.unfinished.ages.max();
    if report.unfinished.hung > 0 {
        let count = report.unfinished.hung;
        found.push(Warning::Hung { count, oldest });
    }
    if report.connections.resent > 0 {
        let count = report.connections.resent;
        found.push(Warning::Resent { count });
    }
    if report.unfinished.unsent > 0 {
        let (count, of) = (report.unfinished.unsent, report.counts.started);
        found.push(Warning::Unsent { count, of });
    }
}

/// What we did ourselves.
fn warn_of_generator(report: &Report, plan: &Plan, found: &mut Vec<Warning>) {
    for (thread, usage) in report.generator.iter().enumerate() {
        // A thread that spins has time left.
        let busy = usage.busy() - usage.spun();
        if busy > BUSY_MAX {
            found.push(Warning::GeneratorSaturated { thread, busy });
        }
        let starved = usage.starved();
        if starved > STARVED_MAX {
            found.push(Warning::GeneratorStarved { thread, starved });
        }
    }
    if let Some(lateness) = &report.latency.lateness {
        let late = doubt::late(lateness, report.latency.corrected.as_ref());
        found.extend(late.map(|p99| Warning::GeneratorLate { p99 }));
        let corrected = report.latency.corrected.as_ref();
        found.extend(doubt::late_median(lateness, corrected));
    }
    if let Pace::Open { per_second, .. } = plan.pace {
        let seconds = report.elapsed.as_secs_f64();
        let due = match &plan.replay {
            Some(replay) => replay.due_within(report.elapsed) as f64,
            None => Level::new(per_second, &plan.stages).area(seconds),
        };
        let sent = report.in_span.sent as f64;
        // Poisson counts vary by their square root.
        if sent < due * RATE_MIN - 3.0 * due.sqrt() {
            found.push(Warning::RateMissed {
                asked: due / seconds.max(f64::MIN_POSITIVE),
                sent: sent / seconds.max(f64::MIN_POSITIVE),
            });
        }
    }
    found.extend(too_few_connections(report, plan));
    let needed = descriptors::needed(report.concurrency);
    if let Some(limit) = report.descriptors.filter(|&limit| limit < needed) {
        found.push(Warning::DescriptorLimit { limit, needed });
    }
}

/// Whether requests of an open loop waited for a connection. After a connect that failed it pauses,
/// and requests wait for that.
fn too_few_connections(report: &Report, plan: &Plan) -> Option<Warning> {
    let per_second = open_rate(plan)?;
    let has_paused = report.failures.iter().any(|(kind, _)| kind.is_connect());
    let waiting = doubt::Waiting {
        waits: report.latency.waits.as_ref().filter(|_| !has_paused)?,
        corrected: report.latency.corrected.as_ref(),
        total: &report.latency.total,
        started: report.counts.started,
        connections: report.concurrency,
        // A server may allow fewer streams than are asked for.
        streams: match report.streams_reached {
            0 => plan.connections.pipeline.get(),
            reached => u32::try_from(reached).unwrap_or(u32::MAX),
        },
        per_second,
    };
    waiting.warning()
}

/// The highest rate of an open loop.
fn open_rate(plan: &Plan) -> Option<f64> {
    match plan.pace {
        Pace::Open { per_second, .. } => Some(Level::new(per_second, &plan.stages).highest()),
        Pace::Closed { .. } => None,
    }
}

/// What the numbers carry.
fn warn_of_statistics(report: &Report, found: &mut Vec<Warning>) {
    let samples = report.latency.total.count();
    let quotable = PERCENTILES.iter().rev();
    let mut quotable = quotable.filter(|percentile| is_quotable(**percentile, samples));
    let percentile_max = quotable.next().copied().unwrap_or(0.0);
    if samples > 0 && percentile_max < PERCENTILE_WANTED {
        found.push(Warning::FewSamples {
            samples,
            percentile_max,
        });
    }
    if let Some(verdict) = report.warm_up.verdict
        && verdict != Verdict::Steady
    {
        found.push(Warning::NotSteady(verdict));
    }
    if samples > 0 && report.elapsed < Duration::from_secs(1) {
        found.push(Warning::Short);
    }
}

/// Whether clients of a closed loop sent nothing while they could have. With one request at a time,
/// since only then a client is busy or not, and without pauses and levels of ours.
fn warn_of_idle_clients(report: &Report, plan: &Plan, law: LittlesLaw, found: &mut Vec<Warning>) {
    let is_closed = matches!(plan.pace, Pace::Closed { .. });
    let is_plain = plan.stages.is_empty() && plan.connections.pipeline.get() == 1;
    // After a connect that failed a client pauses.
    let has_paused = report.failures.iter().any(|(kind, _)| kind.is_connect());
    let has_enough = report.latency.total.count() >= LAW_SAMPLES_MIN;
    if is_closed && is_plain && !has_paused && has_enough && !law.holds() {
        found.push(Warning::LittlesLaw {
            clients: report.concurrency,
            idle: law.idle(),
        });
    }
}

/// A thread that is busier than this share of its time has no time to be exact.
const BUSY_MAX: f64 = 0.95;

/// For so large a part of its time a thread may be without a CPU.
const STARVED_MAX: f64 = 0.1;

/// Servers close kept connections after so many requests, one in a hundred at most, or do not keep
/// them.
const CLOSED_MAX: f64 = 0.01;

/// Of the gets, so many may find nothing before a reader should be told.
const MISSES_MAX: f64 = 0.1;

/// The part of the asked rate that has to be reached.
const RATE_MIN: f64 = 0.98;

/// The percentile without which a reader should be told.
const PERCENTILE_WANTED: f64 = 99.0;

/// Below this many answers, begin and end of a run weigh too much for Little's law.
const LAW_SAMPLES_MIN: u64 = 1000;
