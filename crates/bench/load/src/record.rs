//! The figures that a worker records while it runs, and how the workers' records are merged.
//!
//! A record has a fixed size (except one entry per second, and the samples kept), belongs to one
//! thread, and is merged when the run is over. So there are no locks, and percentiles are only
//! taken from merged histograms.

mod by_name;
pub(crate) mod silence;

use std::num::NonZeroU32;
use std::time::Duration;

use catamaran_stats::{CensoredLatencies, Histogram};

pub(crate) use self::by_name::{ByName, Names};
use self::silence::Silences;
use crate::memcached::Outcome;
use crate::report::{
    AbCounts, Bytes, Connections, FailureKind, Failures, InSpan, Operations, Requests, Sample,
};
use crate::timeline::TimelineRecorder;

/// One request in flight, and its times, counts and result so far. Times are of the run's clock; 0: not yet known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flight {
    /// The request's place in the plan.
    pub(crate) place: u32,
    /// The key of the request's bytes in `FilledRequests`, plus one, if they were made for this request only.
    pub(crate) filled: Option<NonZeroU32>,
    /// The time at which the request was due.
    pub(crate) due: u64,
    /// The time at which the request's connect began, or on a kept connection the time at which it was written.
    pub(crate) begun: u64,
    /// The time at which the request's last byte was written; 0: not yet.
    pub(crate) sent: u64,
    /// The time at which the first byte of the response was read; 0: not yet.
    pub(crate) first_byte: u64,
    /// The duration of the request's connect; 0 on a reused connection.
    pub(crate) connect: u64,
    /// Bytes received for the request: in all, of the head, and of the body.
    pub(crate) received: u64,
    pub(crate) head: u64,
    pub(crate) body: u64,
    /// The checksum (CRC-32C) of the body, if bodies are compared.
    pub(crate) body_crc: u32,
    /// Bytes of the request's body that were sent.
    pub(crate) sent_body: u64,
    /// The status of the response; 0: no head was received yet.
    pub(crate) status: u16,
    /// Whether the response's head announced the length of the body.
    pub(crate) has_length: bool,
    /// Whether the request is sent again, because the server had closed its first connection.
    pub(crate) retried: bool,
    /// Whether the request counts as measured; requests of the warm-up do not.
    pub(crate) counted: bool,
    /// The result of an operation on memcached; `None` for other protocols, which have a status.
    pub(crate) outcome: Option<Outcome>,
}

impl Flight {
    /// Whether the response is a success: a status from 200 to 299, or any result of memcached.
    pub(crate) fn is_success(&self) -> bool {
        self.outcome.is_some() || (200..300).contains(&self.status)
    }

    /// The time from the request's last byte to the response's first; zero if the response came before.
    fn wait(&self) -> u64 {
        match self.sent {
            0 => 0,
            sent => self.first_byte.saturating_sub(sent),
        }
    }
}

/// All measurements of one thread.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) counts: Requests,
    pub(crate) ab: AbCounts,
    pub(crate) failures: Failures,
    pub(crate) statuses: Box<[u64; STATUSES]>,
    /// The counts of memcached's results; zeros for other protocols.
    pub(crate) operations: Operations,
    pub(crate) bytes: Bytes,
    pub(crate) in_span: InSpan,
    pub(crate) connect: Histogram,
    pub(crate) first_byte: Histogram,
    pub(crate) processing: Histogram,
    pub(crate) total: Histogram,
    /// The measurements of an open loop; `None` for a closed loop.
    pub(crate) open: Option<OpenRecord>,
    /// The counts by name; empty, unless requests have names.
    pub(crate) by_name: ByName,
    pub(crate) without_connect: u64,
    pub(crate) silences: Silences,
    pub(crate) seconds: Seconds,
    pub(crate) timeline: TimelineRecorder,
    pub(crate) samples: Vec<Sample>,
    samples_max: usize,
    /// The time at which the last request ended, with success or not.
    pub(crate) last_end: u64,
    /// The time at which measuring began.
    origin: u64,
    /// The end of the planned time; later responses belong to the drain.
    span_end: u64,
}

/// The measurements that only an open loop has.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenRecord {
    pub(crate) corrected: CensoredLatencies,
    pub(crate) lateness: Histogram,
    /// How long requests waited for a connection, without the requests that did not wait.
    pub(crate) waits: Histogram,
}

/// Counts and latencies of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Second {
    /// The number of complete responses.
    pub(crate) completed: u64,
    /// The number of failed requests.
    pub(crate) failed: u64,
    /// The number of bytes received.
    pub(crate) received: u64,
    /// The sum of the raw latencies of complete responses, in nanoseconds.
    pub(crate) latency_sum: u64,
    /// The longest raw latency of complete responses, in nanoseconds.
    pub(crate) latency_max: u64,
}

/// The counts of each second since measuring began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seconds {
    list: Vec<Second>,
    /// The end of the current second, which most responses fall into: they need no division.
    end: u64,
    /// The index of the current second in `list`.
    place: usize,
}

impl Record {
    /// An empty record that keeps at most `samples_max` samples. The planned time is from `origin` to `span_end`.
    pub(crate) fn new(is_open: bool, samples_max: usize, origin: u64, span_end: u64) -> Self {
        Self {
            counts: Requests::default(),
            ab: AbCounts::default(),
            failures: Failures::default(),
            statuses: Box::new([0; STATUSES]),
            operations: Operations::default(),
            bytes: Bytes::default(),
            in_span: InSpan::default(),
            connect: Histogram::new(),
            first_byte: Histogram::new(),
            processing: Histogram::new(),
            total: Histogram::new(),
            open: is_open.then(OpenRecord::default),
            by_name: ByName::default(),
            without_connect: 0,
            silences: Silences::new(origin),
            seconds: Seconds::default(),
            timeline: TimelineRecorder::new(is_open),
            samples: Vec::new(),
            samples_max,
            last_end: origin,
            origin,
            span_end,
        }
    }

    /// Notes that a request begins at `now`.
    pub(crate) fn start(&mut self, now: u64) {
        self.counts.started += 1;
        self.in_span.sent += u64::from(now <= self.span_end);
    }

    /// Notes that a request was answered in full at `end`. `kept`: the connection can be used
    /// again. `fits`: the body was as long as expected.
    pub(crate) fn answer(&mut self, flight: &Flight, end: u64, kept: bool, fits: bool) {
        let total = end.saturating_sub(flight.begun);
        let since_due = end.saturating_sub(flight.due);
        let since_origin = end.saturating_sub(self.origin);
        self.add_bytes(flight);
        self.counts.completed += 1;
        self.counts.kept_alive += u64::from(kept);
        self.counts.without_length += u64::from(!flight.has_length);
        self.counts.non_2xx += u64::from(!flight.is_success());
        self.count_outcome(flight);
        self.last_end = self.last_end.max(end);
        if end <= self.span_end {
            self.in_span.completed += 1;
            self.in_span.received += flight.received;
        }
        record(&mut self.total, total);
        record(&mut self.processing, total.saturating_sub(flight.connect));
        record(&mut self.first_byte, flight.wait());
        self.without_connect += u64::from(flight.connect == 0);
        self.silences.answer(flight.begun, end);
        self.by_name.answer(flight, end);
        if let Some(open) = &mut self.open {
            open.corrected.record(Duration::from_nanos(since_due));
        }
        let second = self.seconds.at(since_origin);
        second.completed += 1;
        second.received += flight.received;
        second.latency_sum += total;
        second.latency_max = second.latency_max.max(total);
        self.timeline
            .answer(since_origin, flight.is_success(), total, since_due);
        if self.samples.len() < self.samples_max {
            self.keep_sample(flight, total);
        }
        if fits {
            self.counts.ok += 1;
        } else {
            self.count_failure(FailureKind::BodyLength, end);
            self.ab.length += 1;
        }
    }

    /// Notes that a request failed at `now`. `length_differs`: the part received of its body is not
    /// as long as expected, which is what ab checks.
    pub(crate) fn fail(
        &mut self,
        flight: &Flight,
        kind: FailureKind,
        now: u64,
        length_differs: bool,
    ) {
        self.add_bytes(flight);
        self.count_failure(kind, now);
        self.by_name.fail(flight, now);
        // A lack of our own, such as descriptors, is no silence of the server.
        if !kind.is_own() {
            self.silences.fail(flight.begun);
        }
        if let Some(open) = &mut self.open {
            let since_due = Duration::from_nanos(now.saturating_sub(flight.due));
            open.corrected.record_failed(since_due);
        }
        let ab = &mut self.ab;
        match kind {
            // What ab counts of these is known at the end of the run.
            FailureKind::Refused | FailureKind::Tls => {}
            kind if kind.is_connect() => {
                ab.connect += 1;
                // There is no body whose length ab could compare.
                return;
            }
            FailureKind::Reset | FailureKind::Receive => {
                ab.receive += 1;
                ab.exceptions += 1;
            }
            FailureKind::Write => ab.write += 1,
            _ => {}
        }
        ab.length += u64::from(length_differs);
    }

    /// Counts a failed connect whose request is tried again.
    pub(crate) fn fail_connect(&mut self) {
        self.ab.connect += 1;
    }

    /// Notes that `count` requests were due and failed because the backlog was full.
    pub(crate) fn refuse(&mut self, count: u64, now: u64) {
        for _ in 0..count {
            self.counts.started += 1;
            self.count_failure(FailureKind::Backlog, now);
            if let Some(open) = &mut self.open {
                open.corrected.record_failed(Duration::ZERO);
            }
        }
    }

    /// Notes that a request had no response when the run stopped waiting for it; `age` is the time since it was due.
    pub(crate) fn abandon(&mut self, age: Duration) {
        if let Some(open) = &mut self.open {
            open.corrected.record_waiting(age);
        }
    }

    /// Notes that a request of an open loop has waited for a connection for `wait` nanoseconds.
    pub(crate) fn waited(&mut self, wait: u64) {
        if let (Some(open), 1..) = (&mut self.open, wait) {
            record(&mut open.waits, wait);
        }
    }

    /// Notes that a request of an open loop was sent `lateness` nanoseconds late, though a connection was free.
    pub(crate) fn late(&mut self, lateness: u64) {
        if let Some(open) = &mut self.open {
            record(&mut open.lateness, lateness);
        }
    }

    /// The numbers of responses by the first digit of their status, from 1 on.
    pub(crate) fn status_classes(&self) -> [u64; 5] {
        let mut classes = [0; 5];
        for (class, statuses) in classes.iter_mut().zip(self.statuses.chunks(100)) {
            *class = statuses.iter().sum();
        }
        classes
    }

    /// Notes that a connection was made, after `duration` nanoseconds.
    pub(crate) fn connected(&mut self, duration: u64) {
        record(&mut self.connect, duration);
    }

    /// Adds the measurements of another thread. Silences and the timeline are left out: `run::assemble` joins those of
    /// all threads.
    pub(crate) fn merge(&mut self, other: &Self) {
        merge_counts(&mut self.counts, &other.counts);
        self.ab.connect += other.ab.connect;
        self.ab.receive += other.ab.receive;
        self.ab.length += other.ab.length;
        self.ab.exceptions += other.ab.exceptions;
        self.ab.write += other.ab.write;
        self.failures.merge(&other.failures);
        for (mine, theirs) in self.statuses.iter_mut().zip(other.statuses.iter()) {
            *mine += theirs;
        }
        self.operations.hits += other.operations.hits;
        self.operations.misses += other.operations.misses;
        self.operations.stored += other.operations.stored;
        self.bytes.received += other.bytes.received;
        self.bytes.received_heads += other.bytes.received_heads;
        self.bytes.received_bodies += other.bytes.received_bodies;
        self.bytes.sent += other.bytes.sent;
        self.bytes.sent_bodies += other.bytes.sent_bodies;
        self.in_span.sent += other.in_span.sent;
        self.in_span.completed += other.in_span.completed;
        self.in_span.received += other.in_span.received;
        self.connect.merge(&other.connect);
        self.first_byte.merge(&other.first_byte);
        self.processing.merge(&other.processing);
        self.total.merge(&other.total);
        if let (Some(mine), Some(theirs)) = (&mut self.open, &other.open) {
            mine.corrected.merge(&theirs.corrected);
            mine.lateness.merge(&theirs.lateness);
            mine.waits.merge(&theirs.waits);
        }
        self.by_name.merge(&other.by_name);
        self.without_connect += other.without_connect;
        self.seconds.merge(&other.seconds);
        self.samples.extend_from_slice(&other.samples);
        self.last_end = self.last_end.max(other.last_end);
    }

    /// Counts the response's status, or memcached's result.
    fn count_outcome(&mut self, flight: &Flight) {
        match flight.outcome {
            Some(Outcome::Hit) => self.operations.hits += 1,
            Some(Outcome::Miss) => self.operations.misses += 1,
            Some(Outcome::Stored) => self.operations.stored += 1,
            None => {
                // A status below 100 wraps around to an index without a count.
                let index = usize::from(flight.status).wrapping_sub(100);
                if let Some(count) = self.statuses.get_mut(index) {
                    *count += 1;
                }
            }
        }
    }

    fn add_bytes(&mut self, flight: &Flight) {
        self.bytes.received += flight.received;
        self.bytes.received_heads += flight.head;
        self.bytes.received_bodies += flight.body;
        self.bytes.sent_bodies += flight.sent_body;
    }

    /// Counts a request that failed at `now`: in all, by its kind, and in its second and slice of time.
    fn count_failure(&mut self, kind: FailureKind, now: u64) {
        self.counts.failed += 1;
        self.failures.add(kind);
        self.last_end = self.last_end.max(now);
        let since_origin = now.saturating_sub(self.origin);
        self.seconds.at(since_origin).failed += 1;
        self.timeline.fail(since_origin);
    }

    /// Keeps the times of an answered request.
    fn keep_sample(&mut self, flight: &Flight, total: u64) {
        self.samples.push(Sample {
            start: flight.begun.saturating_sub(self.origin),
            connect: flight.connect,
            first_byte: flight.wait(),
            total,
            status: flight.status,
        });
    }
}

fn record(histogram: &mut Histogram, nanos: u64) {
    histogram.record(Duration::from_nanos(nanos));
}

fn merge_counts(mine: &mut Requests, theirs: &Requests) {
    mine.started += theirs.started;
    mine.ok += theirs.ok;
    mine.other_length += theirs.other_length;
    mine.other_body += theirs.other_body;
    mine.failed += theirs.failed;
    mine.completed += theirs.completed;
    mine.non_2xx += theirs.non_2xx;
    mine.kept_alive += theirs.kept_alive;
    mine.without_length += theirs.without_length;
}

pub(crate) fn merge_connections(mine: &mut Connections, theirs: &Connections) {
    mine.attempted += theirs.attempted;
    mine.opened += theirs.opened;
    mine.reused += theirs.reused;
    mine.reset += theirs.reset;
    mine.closed_idle += theirs.closed_idle;
    mine.resent += theirs.resent;
    mine.unsolicited += theirs.unsolicited;
}

impl Seconds {
    /// The counts of the second that contains the time `since_origin`.
    fn at(&mut self, since_origin: u64) -> &mut Second {
        let is_current = since_origin < self.end && since_origin + SECOND >= self.end;
        if !is_current {
            let second = usize::try_from(since_origin / SECOND).unwrap_or(SECONDS_MAX);
            self.place = second.min(SECONDS_MAX);
            self.end = (self.place as u64 + 1) * SECOND;
            if self.place >= self.list.len() {
                self.list.resize(self.place + 1, Second::default());
            }
        }
        &mut self.list[self.place]
    }

    /// The counts of each second up to the one in which `elapsed` ends, or to the last counted one if that is later.
    pub(crate) fn into_list(mut self, elapsed: u64) -> Vec<Second> {
        let wanted = usize::try_from(elapsed.div_ceil(SECOND)).unwrap_or(SECONDS_MAX);
        let count = wanted.clamp(self.list.len(), SECONDS_MAX + 1);
        self.list.resize(count, Second::default());
        self.list
    }

    fn merge(&mut self, other: &Self) {
        if other.list.len() > self.list.len() {
            self.list.resize(other.list.len(), Second::default());
        }
        for (mine, theirs) in self.list.iter_mut().zip(&other.list) {
            mine.completed += theirs.completed;
            mine.failed += theirs.failed;
            mine.received += theirs.received;
            mine.latency_sum += theirs.latency_sum;
            mine.latency_max = mine.latency_max.max(theirs.latency_max);
        }
    }
}

/// The number of statuses counted: 100 to 999.
const STATUSES: usize = 900;

const SECOND: u64 = 1_000_000_000;

/// The most seconds, a day: later ones are counted into the last one.
const SECONDS_MAX: usize = 86_400;

#[cfg(test)]
mod tests;
