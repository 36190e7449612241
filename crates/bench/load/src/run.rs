//! Makes a run: prepares it, starts its threads, follows its progress and ends it.

mod assemble;
mod descriptors;
mod doubt;

use std::net::ToSocketAddrs;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};
use std::{io, thread};

use catamaran_stats::Slice;

use crate::board::Board;
use crate::clock::{NEVER, after};
use crate::plan::{Plan, PlanFault, Target, Transport};
use crate::prepare::prepare;
use crate::report::{Ending, FailureKind, FatalError, Operations, Report};
use crate::stop::Budget;
use crate::stream::Address;
use crate::tls::TlsTarget;
use crate::worker::{Outcome, Part, Worker};

/// The counts of a run so far, for showing its progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The time since the run began; once measuring has begun, the time since then.
    pub elapsed: Duration,
    /// Whether the run is warming up. The counts then are those of the warm-up, up to 50 ms old;
    /// they start anew with measuring.
    pub is_warm_up: bool,
    /// The number of requests begun.
    pub started: u64,
    /// The number of requests that were answered in full.
    pub completed: u64,
    /// The number of requests that failed.
    pub failed: u64,
    /// The number of requests in flight now.
    pub in_flight: u64,
    /// The number of bytes received.
    pub received: u64,
    /// The sum of the raw latencies of completed requests, in nanoseconds. The mean of an interval
    /// is the difference of two sums divided by that of two `completed`.
    pub latency_sum: u64,
    /// The longest raw latency of completed requests so far, in nanoseconds.
    pub latency_max: u64,
    /// The number of requests that are due and wait for a connection.
    pub waiting: u64,
    /// The numbers of responses by the first digit of their status, from 1 on; up to a second old.
    pub statuses: [u64; 5],
    /// The results of operations on memcached; up to a second old.
    pub operations: Operations,
    /// The median and the 99th percentile of the latencies of about the last second, counted in an open loop from when
    /// requests were due; `None` without responses, and while warming up.
    pub recent: Option<[Duration; 2]>,
}

/// Ends a run from another thread, as upon ctrl-C.
#[derive(Clone, Debug)]
pub struct Stopper {
    stop: Arc<AtomicBool>,
}

impl Stopper {
    /// Ends the run within 50 ms; requests in flight are counted as cut. The report is made as usual.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }
}

/// A run that has begun. Dropping this does not stop the run, but its report is lost: stop it first.
#[derive(Debug)]
pub struct RunHandle {
    board: Arc<Board>,
    receiver: Receiver<Outcome>,
    outcomes: Vec<Outcome>,
    /// The number of workers that have not finished yet.
    missing: usize,
    descriptors: Option<u64>,
    began: SystemTime,
}

/// Begins a run: checks the plan, resolves names and starts the threads. The caller raises the
/// limit of open files before.
///
/// # Errors
/// [`PlanFault`]: the plan is not valid, and nothing was sent. Later failures are in the report.
pub fn start(plan: Plan) -> Result<RunHandle, PlanFault> {
    plan.check()?;
    let targets = prepare(&plan)?;
    let tls_targets = tls_targets(&plan)?;
    let descriptors = descriptors::limit();
    let connections = plan.pace.connections().get();
    let threads = plan.threads.get().min(connections);
    let endpoints = plan.targets.iter().map(|target| &target.endpoint);
    let looked_up: Result<Vec<_>, _> = endpoints
        .map(|endpoint| look_up(&endpoint.transport))
        .collect();
    let (addresses, failure) = match looked_up {
        Ok(addresses) => (addresses, None),
        Err(failure) => (Vec::new(), Some(failure)),
    };
    let budget = Arc::new(Budget::new(plan.stop.requests.map(Into::into), threads));
    let board = Arc::new(Board::new(plan, targets, addresses, tls_targets, threads));
    let began = SystemTime::now();
    let (sender, receiver) = sync_channel(threads);
    let mut missing = 0;
    if let Some(failure) = failure {
        board.end(Ending::Failure(failure));
    } else {
        missing = start_workers(&board, &parts(connections, threads), &budget, &sender);
    }
    Ok(RunHandle {
        board,
        receiver,
        outcomes: Vec::with_capacity(threads),
        missing,
        descriptors,
        began,
    })
}

impl RunHandle {
    /// A handle that can end the run early. It is cheap to clone, and any thread may use it.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            stop: self.board.stop_flag(),
        }
    }

    /// The counts of the run so far.
    pub fn progress(&self) -> Progress {
        let (now, from) = (self.board.clock.now(), self.board.measure_from());
        let is_warm_up = now < from;
        let mut progress = Progress {
            elapsed: Duration::from_nanos(if is_warm_up { now } else { now - from }),
            is_warm_up,
            ..Progress::default()
        };
        let mut recent = Slice::default();
        for line in &self.board.lines {
            progress.started += line.started.load(Relaxed);
            progress.completed += line.completed.load(Relaxed);
            progress.failed += line.failed.load(Relaxed);
            progress.in_flight += line.in_flight.load(Relaxed);
            progress.received += line.received.load(Relaxed);
            progress.latency_sum += line.latency_sum.load(Relaxed);
            progress.latency_max = progress.latency_max.max(line.latency_max.load(Relaxed));
            progress.waiting += line.waiting.load(Relaxed);
            for (sum, count) in progress.statuses.iter_mut().zip(&line.statuses) {
                *sum += count.load(Relaxed);
            }
            let [hits, misses, stored] = &line.operations;
            progress.operations.hits += hits.load(Relaxed);
            progress.operations.misses += misses.load(Relaxed);
            progress.operations.stored += stored.load(Relaxed);
            recent.add(&line.recent.lock().unwrap_or_else(PoisonError::into_inner));
        }
        if recent.count() > 0 {
            let percentile = |percent| Duration::from_micros(recent.percentile_micros(percent));
            progress.recent = Some([percentile(50.0), percentile(99.0)]);
        }
        progress
    }

    /// Waits for the end of the run, at most for `timeout`; `true` if it has ended. Used between
    /// updates of the progress.
    pub fn wait(&mut self, timeout: Duration) -> bool {
        let until = after(self.board.clock.now(), Some(timeout));
        while self.missing > 0 {
            let left = until.saturating_sub(self.board.clock.now());
            match self.receiver.recv_timeout(Duration::from_nanos(left)) {
                Ok(outcome) => self.take(outcome),
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => self.missing = 0,
            }
        }
        true
    }

    /// Waits for the end of the run, and returns the report.
    pub fn finish(mut self) -> Report {
        while self.missing > 0 {
            match self.receiver.recv() {
                Ok(outcome) => self.take(outcome),
                Err(_) => self.missing = 0,
            }
        }
        assemble::assemble(&self.board, &self.outcomes, self.descriptors, self.began)
    }

    fn take(&mut self, outcome: Outcome) {
        self.outcomes.push(outcome);
        self.missing -= 1;
    }
}

/// The TLS configurations of the targets; `None` for those without TLS.
fn tls_targets(plan: &Plan) -> Result<Vec<Option<TlsTarget>>, PlanFault> {
    let mut tls_targets = Vec::with_capacity(plan.targets.len());
    for Target { endpoint, .. } in &plan.targets {
        tls_targets.push(match &endpoint.tls {
            Some(options) => Some(TlsTarget::new(options, endpoint).map_err(PlanFault::Tls)?),
            None => None,
        });
    }
    Ok(tls_targets)
}

/// Divides the connections among the threads as evenly as possible.
fn parts(connections: usize, threads: usize) -> Vec<Part> {
    let mut parts = Vec::with_capacity(threads);
    let mut first = 0;
    for index in 0..threads {
        // The first threads have one connection more if the number cannot be divided evenly.
        let count = connections / threads + usize::from(index < connections % threads);
        parts.push(Part {
            index,
            first,
            connections: count,
        });
        first += count;
    }
    parts
}

/// Starts a thread for each part; returns how many have started. An error ends the run.
fn start_workers(
    board: &Arc<Board>,
    parts: &[Part],
    budget: &Arc<Budget>,
    sender: &SyncSender<Outcome>,
) -> usize {
    // All workers are made before the first one begins, so that each has its requests and its
    // descriptors before connections take them.
    let set_up = |part: &Part| Worker::new(board, *part, budget.share(part.connections));
    let workers: Vec<Worker> = match parts.iter().map(set_up).collect::<io::Result<_>>() {
        Ok(workers) => workers,
        Err(error) => {
            board.end(Ending::Failure(no_thread(&error)));
            return 0;
        }
    };
    let mut started = 0;
    for worker in workers {
        match spawn(worker, sender.clone()) {
            Ok(()) => started += 1,
            Err(error) => board.end(Ending::Failure(no_thread(&error))),
        }
    }
    started
}

/// Starts a thread that runs `worker` and sends its outcome.
fn spawn(worker: Worker, sender: SyncSender<Outcome>) -> io::Result<()> {
    let thread = thread::Builder::new().name("load".to_owned());
    thread.spawn(move || {
        // The receiver is only gone if nobody wants to know.
        let _ = sender.send(worker.run());
    })?;
    Ok(())
}

/// The failure that ends a run if a thread cannot be set up; it counts as a lack of descriptors.
fn no_thread(error: &io::Error) -> FatalError {
    FatalError {
        kind: FailureKind::Descriptors,
        errno: error.raw_os_error(),
        message: format!("a thread cannot be set up: {error}"),
    }
}

/// Resolves the address of a transport, once; a name's first address is used, as in ab.
fn look_up(transport: &Transport) -> Result<Address, FatalError> {
    let (host, port) = match transport {
        Transport::Unix(path) => return Ok(Address::Unix(path.clone())),
        Transport::Tcp { host, port } => (host, *port),
    };
    let failure = |message: String| FatalError {
        kind: FailureKind::Name,
        errno: None,
        message: format!("{host}: {message}"),
    };
    let mut addresses = (host.as_str(), port)
        .to_socket_addrs()
        .map_err(|error| failure(error.to_string()))?;
    match addresses.next() {
        Some(first) => Ok(Address::Tcp(first)),
        None => Err(failure("it has no address".to_owned())),
    }
}

/// The beginning of the measured time; its end, `ended`, if measuring never began.
fn measured_from(board: &Board, ended: u64) -> u64 {
    match board.measure_from() {
        NEVER => ended,
        from => from.min(ended),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_divided_without_rest() {
        for (connections, threads) in [(1, 1), (5, 2), (100, 3), (7, 7)] {
            let parts = parts(connections, threads);
            let mut next = 0;
            for part in &parts {
                assert_eq!(part.first, next);
                assert!(part.connections > 0);
                next += part.connections;
            }
            assert_eq!(next, connections);
        }
    }

    #[test]
    fn a_name_that_is_not_there_is_told() {
        let transport = Transport::Tcp {
            host: "no-such-host.invalid".to_owned(),
            port: 80,
        };
        let failure = look_up(&transport).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Name);
        assert!(failure.message.starts_with("no-such-host.invalid: "));
    }
}
