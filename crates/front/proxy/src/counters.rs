//! The front's counters, and the reasons under which refusals and failures are counted.
//!
//! Each worker has its own counters; a snapshot sums them up. Each refusal and failure is counted
//! under its [`Reason`], which the access log shows as well.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::SystemTime;

pub use catamaran_balance::affinity::Outcome;
use catamaran_coding::Coding;
use catamaran_tls::{Facts, Version as TlsVersion};
use catamaran_transport::{Count, PerWorker};
pub use catamaran_upstream::Culprit;
use http::StatusCode;

use crate::lock::lock;

/// The reason why a request or connection was refused or failed: the culprit, and a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason {
    culprit: Culprit,
    token: &'static str,
}

impl Reason {
    pub(crate) fn new(culprit: Culprit, token: &'static str) -> Self {
        Self { culprit, token }
    }

    /// Whether the client, or its request, is to blame.
    pub(crate) fn is_client(self) -> bool {
        self.culprit == Culprit::Client
    }

    /// The party to blame: the client, the backend or the front.
    #[must_use]
    pub fn culprit(self) -> Culprit {
        self.culprit
    }

    /// The failure in one word.
    #[must_use]
    pub fn token(self) -> &'static str {
        self.token
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.culprit, self.token)
    }
}

/// All counters of the front.
#[derive(Debug)]
pub(crate) struct Counters {
    workers: PerWorker<WorkerCounters>,
    /// The reasons counted by threads that are not workers.
    others: Reasons,
    reloads_applied: AtomicU64,
    reloads_refused: AtomicU64,
    last_reload: Mutex<LastReload>,
    certificates_renewed: AtomicU64,
    certificates_refused: AtomicU64,
}

/// The last reload; before the first one, the start counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastReload {
    /// The time at which the reload was asked for.
    pub at: SystemTime,
    /// The time at which the configuration in force was put in force.
    pub applied_at: SystemTime,
    /// Whether the configuration was put in force; `false`: it was refused.
    pub applied: bool,
}

impl LastReload {
    fn at_start(at: SystemTime) -> Self {
        Self {
            at,
            applied_at: at,
            applied: true,
        }
    }

    fn note(&mut self, applied: bool, at: SystemTime) {
        let applied_at = if applied { at } else { self.applied_at };
        *self = Self {
            at,
            applied_at,
            applied,
        };
    }
}

impl Default for LastReload {
    fn default() -> Self {
        Self::at_start(SystemTime::UNIX_EPOCH)
    }
}

/// The counters of one worker, which only its own thread changes.
#[derive(Debug, Default)]
pub(crate) struct WorkerCounters {
    accepted: Count,
    requests: Count,
    /// Responses by the first digit of the status; 0 counts exchanges that ended without a status.
    responses: [Count; 10],
    retries: Count,
    /// Successful handshakes: full ones of TLS 1.2 and 1.3, then resumed ones of TLS 1.2 and 1.3.
    handshakes: [Count; 4],
    /// TLS handshakes under way now.
    handshakes_open: Count,
    /// Tunnels open now; the next field counts their bytes, from clients and to clients.
    tunnels_open: Count,
    tunnel_bytes: [Count; 2],
    /// Connections of HTTP/2 open now; the next field counts their open streams.
    h2_connections: Count,
    h2_streams: Count,
    /// Requests for files by result, in the order of [`FileResult::ALL`].
    files: [Count; FileResult::ALL.len()],
    /// Files that are being sent now.
    files_open: Count,
    /// Bytes of memory that files and their names take now.
    files_bytes: Count,
    file_thread_reads: Count,
    /// Responses that were compressed, in the order of [`Coding::ALL`]; the next field counts the
    /// bytes of their bodies before and after compression.
    compressed: [Count; Coding::ALL.len()],
    compressed_bytes: [Count; 2],
    /// Requests of upstreams with sticky sessions by outcome, in the order of [`Outcome::ALL`].
    sticky: [Count; Outcome::ALL.len()],
    reasons: Reasons,
}

/// The result of a request for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileResult {
    /// The worker still had the file in its table.
    Hit,
    /// The file was opened on the event loop, without waiting for the disk.
    Open,
    /// The file was opened on a thread, because that had to wait for the disk.
    Thread,
    /// There is no such file, or it is not one that is served.
    Missing,
    /// The file could not be read, or the client left meanwhile.
    Failed,
}

impl FileResult {
    /// All results, in the order of counters and metrics.
    pub const ALL: [Self; 5] = [
        Self::Hit,
        Self::Open,
        Self::Thread,
        Self::Missing,
        Self::Failed,
    ];

    /// The name of the result in logs and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Open => "open",
            Self::Thread => "thread",
            Self::Missing => "missing",
            Self::Failed => "failed",
        }
    }
}

/// The number of times that each reason was counted. Its lock is rarely taken: only when something
/// goes wrong.
#[derive(Debug, Default)]
struct Reasons(Mutex<BTreeMap<Reason, u64>>);

/// The front's counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountersSnapshot {
    /// Connections accepted since the start.
    pub accepted: u64,
    /// Connections open now.
    pub open: usize,
    /// Requests whose head was understood, since the start.
    pub requests: u64,
    /// Responses by the first digit of their status; 0 counts exchanges that ended without one.
    pub responses: [u64; 10],
    /// Attempts after a first failed one.
    pub retries: u64,
    /// Requests to upstreams that keep sessions, by the outcome for the session.
    pub sticky: BTreeMap<Outcome, u64>,
    /// Reloads that put a configuration in force.
    pub reloads_applied: u64,
    /// Reloads that were refused because the configuration had faults.
    pub reloads_refused: u64,
    /// The last reload, applied or refused.
    pub last_reload: LastReload,
    /// Changes of certificate files that were put in force.
    pub certificates_renewed: u64,
    /// Changes of certificate files that were refused because of faults.
    pub certificates_refused: u64,
    /// Handshakes that succeeded: full ones of TLS 1.2 and 1.3, then resumed ones of TLS 1.2 and
    /// 1.3.
    pub handshakes: [u64; 4],
    /// Handshakes of TLS under way now.
    pub handshakes_open: u64,
    /// Tunnels open now.
    pub tunnels_open: u64,
    /// Bytes that tunnels moved: from clients, then to clients.
    pub tunnel_bytes: [u64; 2],
    /// Connections of HTTP/2 that are open now.
    pub h2_connections: u64,
    /// Streams of HTTP/2 that are open now. One that the client reset counts until its exchange with the backend is
    /// over.
    pub h2_streams: u64,
    /// Requests for files, in the order of [`FileResult::ALL`].
    pub files: [u64; FileResult::ALL.len()],
    /// Files that are being sent now.
    pub files_open: u64,
    /// Bytes of memory that files and their names take now.
    pub files_bytes: u64,
    /// Pieces of files that a thread had to read.
    pub file_thread_reads: u64,
    /// Responses that were compressed, in the order of [`Coding::ALL`].
    pub compressed: [u64; Coding::ALL.len()],
    /// Bytes of the bodies of compressed responses: before, then after compression.
    pub compressed_bytes: [u64; 2],
    /// Refusals and failures by reason, such as `client:bare-lf`.
    pub reasons: BTreeMap<Reason, u64>,
}

impl Counters {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            workers: PerWorker::new(workers, |_| WorkerCounters::default()),
            others: Reasons::default(),
            reloads_applied: AtomicU64::new(0),
            reloads_refused: AtomicU64::new(0),
            last_reload: Mutex::new(LastReload::at_start(SystemTime::now())),
            certificates_renewed: AtomicU64::new(0),
            certificates_refused: AtomicU64::new(0),
        }
    }

    /// The counters of the worker with this index. Only its own thread may change them.
    pub(crate) fn of(&self, worker: usize) -> &WorkerCounters {
        &self.workers[worker]
    }

    /// The number of workers.
    pub(crate) fn workers(&self) -> usize {
        self.workers.iter().count()
    }

    pub(crate) fn reload(&self, applied: bool) {
        let counter = if applied {
            &self.reloads_applied
        } else {
            &self.reloads_refused
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.lock_last_reload().note(applied, SystemTime::now());
    }

    fn lock_last_reload(&self) -> MutexGuard<'_, LastReload> {
        lock(&self.last_reload)
    }

    /// Counts a change of certificate files. `applied`: the new files were put in force; else they
    /// were refused.
    pub(crate) fn certificates_renewed(&self, applied: bool) {
        let counter = if applied {
            &self.certificates_renewed
        } else {
            &self.certificates_refused
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a refusal or a failure on a thread that is not a worker.
    pub(crate) fn reason(&self, reason: Reason) {
        self.others.add(reason);
    }

    /// Sums up all workers. `open` is the number of client connections that are open now.
    pub(crate) fn snapshot(&self, open: usize) -> CountersSnapshot {
        let mut sum = CountersSnapshot {
            open,
            reloads_applied: self.reloads_applied.load(Ordering::Relaxed),
            reloads_refused: self.reloads_refused.load(Ordering::Relaxed),
            last_reload: *self.lock_last_reload(),
            certificates_renewed: self.certificates_renewed.load(Ordering::Relaxed),
            certificates_refused: self.certificates_refused.load(Ordering::Relaxed),
            reasons: self.others.lock().clone(),
            ..CountersSnapshot::default()
        };
        for worker in self.workers.iter() {
            worker.add_to(&mut sum);
        }
        sum
    }
}

impl WorkerCounters {
    /// Counts an accepted connection, whether it is admitted or not.
    pub(crate) fn accepted(&self) {
        self.accepted.increment();
    }

    pub(crate) fn request(&self) {
        self.requests.increment();
    }

    pub(crate) fn response(&self, status: Option<StatusCode>) {
        // 0 stands for no response.
        let digit = status.map_or(0, |status| usize::from(status.as_u16() / 100));
        if let Some(counter) = self.responses.get(digit) {
            counter.increment();
        }
    }

    pub(crate) fn sticky(&self, outcome: Outcome) {
        increment_of(&outcome, &Outcome::ALL, &self.sticky);
    }

    /// Counts a TLS handshake that succeeded.
    pub(crate) fn handshake(&self, facts: &Facts) {
        let is_tls13 = usize::from(facts.version == TlsVersion::Tls13);
        let is_resumed = usize::from(facts.resumed);
        // The order is that of `CountersSnapshot::handshakes`.
        self.handshakes[2 * is_resumed + is_tls13].increment();
    }

    /// Counts a TLS handshake as under way, until the guard is dropped.
    pub(crate) fn count_handshake(&self) -> OpenGuard<'_> {
        self.handshakes_open.increment();
        OpenGuard(&self.handshakes_open)
    }

    /// Counts a tunnel as open, until the guard is dropped.
    pub(crate) fn count_tunnel(&self) -> OpenGuard<'_> {
        self.tunnels_open.increment();
        OpenGuard(&self.tunnels_open)
    }

    /// Counts bytes that went through a tunnel.
    pub(crate) fn tunnelled(&self, from_client: usize, to_client: usize) {
        self.tunnel_bytes[0].add(from_client as u64);
        self.tunnel_bytes[1].add(to_client as u64);
    }

    /// The number of open connections of HTTP/2, which the caller changes.
    pub(crate) fn h2_connections(&self) -> &Count {
        &self.h2_connections
    }

    /// Counts a stream of HTTP/2 as open, until the guard is dropped.
    pub(crate) fn count_h2_stream(&self) -> OpenGuard<'_> {
        self.h2_streams.increment();
        OpenGuard(&self.h2_streams)
    }

    /// Counts the result of a request for a file.
    pub(crate) fn file(&self, result: FileResult) {
        increment_of(&result, &FileResult::ALL, &self.files);
    }

    /// Counts a file as being sent, until the guard is dropped.
    pub(crate) fn count_file(&self) -> OpenGuard<'_> {
        self.files_open.increment();
        OpenGuard(&self.files_open)
    }

    /// Sets the bytes of memory that files and their names take now.
    pub(crate) fn file_bytes(&self, bytes: u64) {
        self.files_bytes.set(bytes);
    }

    /// Counts pieces of files that a thread had to read because they were not in memory.
    pub(crate) fn file_thread_reads(&self, pieces: u64) {
        self.file_thread_reads.add(pieces);
    }

    /// Counts a compressed response, with the bytes of its body before and after compression.
    pub(crate) fn compressed(&self, coding: Coding, before: u64, after: u64) {
        increment_of(&coding, &Coding::ALL, &self.compressed);
        self.compressed_bytes[0].add(before);
        self.compressed_bytes[1].add(after);
    }

    pub(crate) fn retry(&self) {
        self.retries.increment();
    }

    pub(crate) fn reason(&self, reason: Reason) {
        self.reasons.add(reason);
    }

    /// Adds the counts of this worker to `sum`.
    fn add_to(&self, sum: &mut CountersSnapshot) {
        sum.accepted += self.accepted.read();
        sum.requests += self.requests.read();
        add_each(&mut sum.responses, &self.responses);
        sum.retries += self.retries.read();
        add_each(&mut sum.handshakes, &self.handshakes);
        sum.handshakes_open += self.handshakes_open.read();
        sum.tunnels_open += self.tunnels_open.read();
        add_each(&mut sum.tunnel_bytes, &self.tunnel_bytes);
        sum.h2_connections += self.h2_connections.read();
        sum.h2_streams += self.h2_streams.read();
        add_each(&mut sum.files, &self.files);
        sum.files_open += self.files_open.read();
        sum.files_bytes += self.files_bytes.read();
        sum.file_thread_reads += self.file_thread_reads.read();
        add_each(&mut sum.compressed, &self.compressed);
        add_each(&mut sum.compressed_bytes, &self.compressed_bytes);
        for (outcome, count) in Outcome::ALL.iter().zip(&self.sticky) {
            *sum.sticky.entry(*outcome).or_default() += count.read();
        }
        for (reason, count) in self.reasons.lock().iter() {
            *sum.reasons.entry(*reason).or_default() += count;
        }
    }
}

/// Adds each count to the sum at the same index.
fn add_each(sums: &mut [u64], counts: &[Count]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum += count.read();
    }
}

/// Increments the counter of `counted`; `counters` are in the order of `all`.
fn increment_of<T: PartialEq>(counted: &T, all: &[T], counters: &[Count]) {
    if let Some(index) = all.iter().position(|other| other == counted) {
        counters[index].increment();
    }
}

/// Counts something as open; dropping the guard ends that.
#[derive(Debug)]
pub(crate) struct OpenGuard<'c>(&'c Count);

impl Drop for OpenGuard<'_> {
    fn drop(&mut self) {
        self.0.decrement();
    }
}

impl Reasons {
    fn add(&self, reason: Reason) {
        *self.lock().entry(reason).or_default() += 1;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Reason, u64>> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_the_sum_over_workers() {
        let counters = Counters::new(2);
        let reason = Reason::new(Culprit::Front, "panic");
        for worker in [0, 1, 1] {
            let worker = counters.of(worker);
            worker.accepted();
            worker.request();
            worker.response(Some(StatusCode::NOT_FOUND));
            worker.reason(reason);
        }
        counters.of(0).retry();
        counters.of(1).response(None);
        counters.reason(reason);
        counters.reload(true);
        counters.reload(false);
        let sum = counters.snapshot(5);
        let last = sum.last_reload;
        assert!(!last.applied && last.at >= last.applied_at, "{last:?}");
        assert_eq!((sum.accepted, sum.open, sum.requests), (3, 5, 3));
        assert_eq!((sum.responses[4], sum.responses[0], sum.retries), (3, 1, 1));
        assert_eq!((sum.reloads_applied, sum.reasons[&reason]), (1, 4));
    }
}
