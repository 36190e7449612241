//! Makes the report from the workers' records, with the warnings that follow from it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use catamaran_stats::{LittlesLaw, PERCENTILES, WarmUp as Steadiness, is_quotable};

use super::{descriptors, doubt, measured_from};
use crate::board::Board;
use crate::clock::NEVER;
use crate::pace::Level;
use crate::plan::{self, Pace, Plan, Protocol, Samples};
use crate::record::silence::{self, Span};
use crate::report::{
    AbCounts, Ending, FailureKind, Failures, Generator, Latencies, NamedFacts, Report, Requests,
    Sample, SecondFacts, Server, Silence, Thread, ThreadShare, Times, WarmUp, Warning,
    WarningWeight,
};
use crate::stream::Address;
use crate::timeline::Timeline;
use crate::worker::Outcome;

/// Makes the report of a run from what its workers returned.
pub(super) fn assemble(
    board: &Board,
    outcomes: &[Outcome],
    descriptors: Option<u64>,
    began: SystemTime,
) -> Report {
    let plan = &board.plan;
    let mut whole = Outcome::sum(outcomes, plan);
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
    let silent = silences(outcomes, &whole, from, span_end);
    let law = whole.law();
    let timeline = timeline(outcomes);
    let began = began + Duration::from_nanos(from);
    let mut report = Report {
        ending,
        started_at: began.duration_since(UNIX_EPOCH).unwrap_or_default(),
        elapsed: Duration::from_nanos(elapsed),
        drain: Duration::from_nanos(end.saturating_sub(span_end)),
        warm_up: warm_up(board, from, whole.warm_up_requests),
        threads: board.lines.len(),
        concurrency: plan.pace.connections().get(),
        concurrency_reached: usize::try_from(whole.open_max).unwrap_or(usize::MAX),
        streams_reached: whole.streams_max,
        server: server(board),
        failure_reasons: board.reasons(),
        connections: whole.connections,
        generator: generator(outcomes, &whole, descriptors),
        silences: silent.spans,
        silence_min: silent.min,
        longest_silence: silent.longest,
        replay: plan.replay.as_ref().map(|replay| replay.facts.clone()),
        subject: plan.subject.clone(),
        ..of_record(board, whole, &timeline, elapsed)
    };
    report.timeline = timeline;
    let doubts = Doubts {
        law,
        silent: silent.share,
        standstills: &silent.own,
        steady: board.steady.get().copied(),
    };
    report.warnings = warnings(&report, plan, &doubts);
    report.conclude();
    report
}

/// The parts of the report that come from the record of all threads, over `elapsed` nanoseconds.
fn of_record(board: &Board, whole: Outcome, timeline: &Timeline, elapsed: u64) -> Report {
    let plan = &board.plan;
    let record = whole.record;
    let mut latency = Latencies {
        connect: record.connect.into(),
        first_byte: record.first_byte.into(),
        processing: record.processing.into(),
        total: record.total.into(),
        per_request_connects: record.without_connect,
        ..Latencies::default()
    };
    if let Some(open) = record.open {
        latency.corrected = Some(open.corrected.into());
        latency.lateness = Some(Times::from(open.lateness));
        latency.waits = Some(open.waits);
    }
    Report {
        requests: record.counts,
        ab: with_refused_connects(record.ab, &record.failures, has_tls(board)),
        failures: record.failures,
        statuses: statuses(&record.statuses[..]),
        operations: speaks_memcached(plan).then_some(record.operations),
        in_span: record.in_span,
        bytes: record.bytes,
        unfinished: whole.unfinished,
        latency,
        by_name: by_name(board, record.by_name),
        seconds: seconds(&record.seconds.into_list(elapsed), timeline),
        samples: first_samples(record.samples, plan.samples),
        ..Report::default()
    }
}

/// The counts of each second, with the latencies of the timeline where its slices are not longer than a second.
fn seconds(seconds: &[crate::record::Second], timeline: &Timeline) -> Vec<SecondFacts> {
    let coarse = timeline.coarser(SECOND);
    let slices = if coarse.length == SECOND {
        &coarse.slices[..]
    } else {
        &[]
    };
    let numbered = seconds.iter().enumerate();
    numbered
        .map(|(index, second)| SecondFacts::of(second, slices.get(index)))
        .collect()
}

fn timeline(outcomes: &[Outcome]) -> Timeline {
    let mut timeline = Timeline::new();
    for outcome in outcomes {
        timeline.add(&outcome.record.timeline.clone().finish());
    }
    timeline
}

fn server(board: &Board) -> Server {
    let first = board.first.get();
    Server {
        addresses: addresses(board),
        software: first.and_then(|first| first.server.clone()),
        first_status: first.map(|first| first.status),
        document_bytes: first.map(|first| first.body_bytes),
        tls: board.tls.get().cloned(),
        first_head: first.map_or_else(Vec::new, |first| first.head.clone()),
    }
}

fn generator(outcomes: &[Outcome], whole: &Outcome, descriptors: Option<u64>) -> Generator {
    Generator {
        cpu_s: whole.usage.cpu.as_secs_f64(),
        threads: outcomes
            .iter()
            .map(|outcome| outcome.usage.into())
            .collect(),
        open_files_max: descriptors,
        ..Generator::default()
    }
}

/// The facts about a warm-up that lasted until `from` and began `requests` requests.
fn warm_up(board: &Board, from: u64, requests: u64) -> WarmUp {
    let duration = match board.plan.warm_up {
        plan::WarmUp::None => Duration::ZERO,
        _ => Duration::from_nanos(from),
    };
    WarmUp::new(duration, requests, board.steady.get().copied())
}

fn speaks_memcached(plan: &Plan) -> bool {
    let mut targets = plan.targets.iter();
    targets.any(|target| matches!(target.endpoint.protocol, Protocol::Memcached(_)))
}

fn has_tls(board: &Board) -> bool {
    board.tls_targets.iter().any(Option::is_some)
}

/// Adds refused connects to the counts of ab. ab learns of one by reading (over TLS in OpenSSL) and
/// counts an exception; then it reads once more, from the connection of the next request, which is
/// refused by then too. Handshakes that fail are in none of its counts.
fn with_refused_connects(counts: AbCounts, failures: &Failures, has_tls: bool) -> AbCounts {
    // Two refused connects are one exception.
    let exceptions = failures.of(FailureKind::Refused).div_ceil(2);
    let reads = if has_tls { 0 } else { 2 * exceptions };
    AbCounts {
        receive: counts.receive + reads,
        exceptions: counts.exceptions + exceptions,
        ..counts
    }
}

/// The spans of the measured time without a response.
struct Silent {
    /// The silences of the run: see [`Report::silences`].
    spans: Vec<Silence>,
    /// The least length of a silence: see [`Report::silence_min`].
    min: Duration,
    /// The longest span without a response: see [`Report::longest_silence`].
    longest: Option<Silence>,
    /// The share of the threads' time without a response, from 0 to 1.
    share: f64,
    /// For each thread, the spans in which the thread itself stood still.
    own: Vec<Vec<Span>>,
}

/// Finds the spans of the measured time in which no thread received a response.
fn silences(outcomes: &[Outcome], whole: &Outcome, from: u64, to: u64) -> Silent {
    let measured = to.saturating_sub(from).max(1) as f64;
    let median = u64::try_from(whole.record.total.median().as_nanos()).unwrap_or(NEVER);
    let min = silence::threshold(median, whole.busy as f64 / measured);
    let recorded = outcomes.iter().map(|outcome| &outcome.record.silences);
    let own = recorded.clone().map(|silences| silences.standstills(to));
    let threads: Vec<Vec<Span>> = recorded.map(|silences| silences.until(to)).collect();
    let lengths = threads.iter().flatten().map(|(begin, end)| end - begin);
    let silent_time: u64 = lengths.filter(|length| *length >= min).sum();
    let since_origin = |time: u64| Duration::from_nanos(time.saturating_sub(from));
    let silence = |(begin, end): Span| Silence {
        from: since_origin(begin),
        to: since_origin(end),
    };
    let common = silence::common(&threads);
    let longest = common
        .iter()
        .copied()
        .max_by_key(|(begin, end)| end - begin);
    let long_enough = common.into_iter().filter(|(begin, end)| end - begin >= min);
    Silent {
        spans: long_enough.map(silence).collect(),
        min: Duration::from_nanos(min),
        longest: longest.map(silence),
        share: silent_time as f64 / (measured * threads.len().max(1) as f64),
        own: own.collect(),
    }
}

impl Outcome {
    /// The figures of clients for Little's law: the time in which they should have been busy, and were.
    fn law(&self) -> LittlesLaw {
        LittlesLaw {
            expected_s: self.expected_busy as f64 / 1e9,
            busy_s: self.busy as f64 / 1e9,
        }
    }

    /// Whether the number of requests in the plan has begun and ended.
    fn has_done_all(&self, plan: &Plan) -> bool {
        let Some(requests) = plan.stop.requests else {
            return false;
        };
        self.record.counts.started >= requests.get() && self.unfinished.total() == 0
    }

    /// The end of the measured span, and the end of the drain after it.
    fn ends(&self, ending: &Ending) -> (u64, u64) {
        let planned = self.span_end.unwrap_or(0);
        let end = match ending {
            Ending::Requests => self.record.last_end,
            // What hung was waited for until all workers had given up.
            Ending::Duration if self.unfinished.hung > 0 => self.ended.max(planned),
            Ending::Duration => self.record.last_end.max(planned),
            _ => self.ended,
        };
        // Without a planned end the span lasts as long as the run.
        let span_end = if planned == 0 { end } else { planned.min(end) };
        (span_end, end)
    }

    /// Counts one failed request if the run ended because its address could not be resolved.
    fn count_lookup_failure(&mut self, ending: &Ending) {
        if let Ending::Failure(fatal) = ending
            && fatal.kind == FailureKind::Name
        {
            self.record.counts = Requests {
                started: 1,
                failed: 1,
                ..Requests::default()
            };
            self.record.failures.add(FailureKind::Name);
            self.record.ab.connect += 1;
        }
    }
}

fn by_name(board: &Board, record: crate::record::ByName) -> Vec<NamedFacts> {
    let names = board.names.list.iter().zip(record.list);
    names
        .map(|(name, counts)| NamedFacts {
            name: name.clone(),
            completed: counts.completed,
            non_2xx: counts.non_2xx,
            failed: counts.failed,
            unfinished: counts.unfinished,
            latency: counts.latency.into(),
        })
        .collect()
}

/// The first samples of the whole run, from those that each thread kept.
fn first_samples(mut samples: Vec<Sample>, limit: Samples) -> Vec<Sample> {
    if let Samples::First(max) = limit {
        samples.sort_by_key(|sample| sample.start + sample.total);
        samples.truncate(max.get());
    }
    samples
}

/// The address of each target; `None` for a Unix socket or a name that was not found.
fn addresses(board: &Board) -> Vec<Option<String>> {
    let mut addresses: Vec<_> = board
        .addresses
        .iter()
        .map(|address| match address {
            Address::Tcp(address) => Some(address.to_string()),
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

/// Figures for warnings that are not in the report.
struct Doubts<'a> {
    law: LittlesLaw,
    /// The share of the threads' time without a response, from 0 to 1.
    silent: f64,
    /// For each thread, the spans in which the thread itself stood still.
    standstills: &'a [Vec<Span>],
    /// Whether the run was steady after the warm-up; `None`: not examined.
    steady: Option<Steadiness>,
}

/// All warnings about a run: reasons to distrust its figures.
fn warnings(report: &Report, plan: &Plan, doubts: &Doubts<'_>) -> Vec<Warning> {
    let Doubts {
        law,
        silent,
        standstills,
        steady,
    } = *doubts;
    let mut warnings = Vec::new();
    warn_of_answers(report, plan, &mut warnings);
    warn_of_generator(report, plan, &mut warnings);
    warn_of_statistics(report, steady, &mut warnings);
    warn_of_idle_clients(report, plan, law, &mut warnings);
    warnings.extend(doubt::stood_still(standstills, report.elapsed));
    if matches!(plan.pace, Pace::Closed { .. }) && plan.stages.is_empty() {
        let lengths = standstills.iter().flatten().map(|(from, to)| to - from);
        let longest_standstill = Duration::from_nanos(lengths.max().unwrap_or(0));
        let total = &report.latency.total.histogram;
        warnings.extend(doubt::stalled(total, silent, longest_standstill));
    }
    warnings.extend(doubt::silent(&report.silences, report.elapsed));
    // What makes the figures invalid comes first.
    warnings.sort_by_key(|warning| warning.weight() != WarningWeight::Invalid);
    warnings
}

/// Adds warnings about the server's responses.
fn warn_of_answers(report: &Report, plan: &Plan, warnings: &mut Vec<Warning>) {
    let Requests {
        completed: of,
        non_2xx,
        kept_alive: kept,
        ..
    } = report.requests;
    if non_2xx > 0 {
        warnings.push(Warning::NonSuccess { count: non_2xx, of });
    }
    if let Some(operations) = &report.operations
        && operations.misses as f64 > operations.gets() as f64 * MISSES_MAX
    {
        let (count, of) = (operations.misses, operations.gets());
        warnings.push(Warning::Misses { count, of });
    }
    // The plan's own limit of requests per connection closes some connections, so a small share is no reason to warn.
    let closed = (of - kept) as f64;
    if plan.connections.keep_alive && closed > of as f64 * CLOSED_MAX {
        warnings.push(Warning::KeepAliveRefused { kept, of });
    }
    let changed = report.requests.other_length;
    if changed > 0 {
        warnings.push(Warning::BodyLengthChanged { count: changed, of });
    }
    let count = report.requests.failed - report.failures.of(FailureKind::BodyLength);
    if count > 0 {
        let of = report.requests.started;
        warnings.push(Warning::Failed { count, of });
    }
    let oldest = report.unfinished.ages.max();
    if report.unfinished.hung > 0 {
        let count = report.unfinished.hung;
        warnings.push(Warning::Hung { count, oldest });
    }
    if report.connections.resent > 0 {
        let count = report.connections.resent;
        warnings.push(Warning::Resent { count });
    }
    if report.unfinished.unsent > 0 {
        let (count, of) = (report.unfinished.unsent, report.requests.started);
        warnings.push(Warning::Unsent { count, of });
    }
}

/// The number of threads whose `share` of the time is above `limit`, with the largest share; `None` if no
/// thread's is.
fn threads_above(
    threads: &[Thread],
    limit: f64,
    share: fn(&Thread) -> f64,
) -> Option<(ThreadShare, f64)> {
    let shares = threads.iter().map(share);
    let above: Vec<f64> = shares.filter(|share| *share > limit).collect();
    let largest = above.iter().copied().reduce(f64::max)?;
    let thread_share = ThreadShare {
        count: above.len(),
        of: threads.len(),
    };
    Some((thread_share, largest))
}

/// Adds warnings about the load generator itself.
fn warn_of_generator(report: &Report, plan: &Plan, warnings: &mut Vec<Warning>) {
    let threads = &report.generator.threads;
    // A thread that spins has time left.
    if let Some((threads, busy)) =
        threads_above(threads, BUSY_MAX, |usage| usage.busy - usage.spun())
    {
        warnings.push(Warning::GeneratorSaturated { threads, busy });
    }
    if let Some((threads, starved)) = threads_above(threads, STARVED_MAX, Thread::starved) {
        warnings.push(Warning::GeneratorStarved { threads, starved });
    }
    if let Some(lateness) = &report.latency.lateness {
        let (lateness, corrected) = (&lateness.histogram, report.latency.censored());
        if let Some(p99) = doubt::late(lateness, corrected) {
            warnings.push(Warning::GeneratorLate { p99 });
        }
        warnings.extend(doubt::late_median(lateness, corrected));
    }
    warnings.extend(missed_rate(report, plan));
    warnings.extend(too_few_connections(report, plan));
    let needed = descriptors::needed(report.concurrency);
    if let Some(limit) = report.generator.open_files_max
        && limit < needed
    {
        warnings.push(Warning::DescriptorLimit { limit, needed });
    }
}

/// The warning that fewer requests of an open loop were sent than were due.
fn missed_rate(report: &Report, plan: &Plan) -> Option<Warning> {
    let Pace::Open { per_second, .. } = plan.pace else {
        return None;
    };
    let seconds = report.elapsed.as_secs_f64();
    let due = match &plan.replay {
        Some(replay) => replay.due_within(report.elapsed) as f64,
        None => Level::new(per_second, &plan.stages).area(seconds),
    };
    let sent = report.in_span.sent as f64;
    // Poisson counts vary by their square root; three times that is more than chance.
    let is_missed = sent < due * RATE_MIN - 3.0 * due.sqrt();
    is_missed.then(|| Warning::RateMissed {
        asked: due / seconds.max(f64::MIN_POSITIVE),
        sent: sent / seconds.max(f64::MIN_POSITIVE),
    })
}

/// The warning that requests of an open loop waited for a connection; `None` if a connect has
/// failed, since its pause makes requests wait.
fn too_few_connections(report: &Report, plan: &Plan) -> Option<Warning> {
    let per_second = open_rate(plan)?;
    if report.failures.iter().any(|(kind, _)| kind.is_connect()) {
        return None;
    }
    let waiting = doubt::ConnectionWaits {
        waits: report.latency.waits.as_ref()?,
        corrected: report.latency.censored(),
        total: &report.latency.total.histogram,
        started: report.requests.started,
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

/// The highest rate of an open loop, in requests per second; `None` for a closed loop.
fn open_rate(plan: &Plan) -> Option<f64> {
    match plan.pace {
        Pace::Open { per_second, .. } => Some(Level::new(per_second, &plan.stages).highest()),
        Pace::Closed { .. } => None,
    }
}

/// Adds warnings about figures for which there are too few responses.
fn warn_of_statistics(report: &Report, steady: Option<Steadiness>, warnings: &mut Vec<Warning>) {
    let samples = report.latency.total.histogram.count();
    let highest_first = PERCENTILES.iter().rev();
    let mut quotable = highest_first.filter(|percentile| is_quotable(**percentile, samples));
    let percentile_max = quotable.next().copied().unwrap_or(0.0);
    if samples > 0 && percentile_max < PERCENTILE_WANTED {
        warnings.push(Warning::FewSamples {
            samples,
            percentile_max,
        });
    }
    if let Some(steady) = steady
        && steady != Steadiness::Steady
    {
        warnings.push(Warning::NotSteady(steady));
    }
    if samples > 0 && report.elapsed < Duration::from_secs(1) {
        warnings.push(Warning::Short);
    }
}

/// Adds a warning if clients of a closed loop were idle. It applies with one request at a time,
/// since only then a client is either busy or idle, and without pauses or stages.
fn warn_of_idle_clients(
    report: &Report,
    plan: &Plan,
    law: LittlesLaw,
    warnings: &mut Vec<Warning>,
) {
    let is_closed = matches!(plan.pace, Pace::Closed { .. });
    let is_plain = plan.stages.is_empty() && plan.connections.pipeline.get() == 1;
    // After a connect that failed a client pauses.
    let has_paused = report.failures.iter().any(|(kind, _)| kind.is_connect());
    let has_enough = report.latency.total.histogram.count() >= LAW_SAMPLES_MIN;
    if is_closed && is_plain && !has_paused && has_enough && !law.holds() {
        warnings.push(Warning::LittlesLaw {
            clients: report.concurrency,
            idle: law.idle(),
        });
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// The largest share of its time that a thread may be busy without a warning: above it, it cannot be exact.
const BUSY_MAX: f64 = 0.95;

/// The largest share of its time that a thread may wait for a CPU without a warning.
const STARVED_MAX: f64 = 0.1;

/// The largest share of responses that may close a kept connection without a warning. Servers that
/// keep connections close each after 100 requests or more.
const CLOSED_MAX: f64 = 0.01;

/// The largest share of gets that may find nothing without a warning.
const MISSES_MAX: f64 = 0.1;

/// The least share of the plan's rate that must be sent; below it there is a warning.
const RATE_MIN: f64 = 0.98;

/// The percentile that a run should have enough responses for; else there is a warning.
const PERCENTILE_WANTED: f64 = 99.0;

/// The least number of responses for Little's law: below it, the begin and the end of a run weigh too much.
const LAW_SAMPLES_MIN: u64 = 1000;
