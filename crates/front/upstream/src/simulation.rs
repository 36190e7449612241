//! Simulates pool, cap and queue together, in random histories under a virtual clock.
//!
//! A connection here is a number with its permit, so that the invariants can be checked after each
//! step: no connection is in two places, the cap is never exceeded, no permit is lost, and those who
//! wait are served in order. A failure names the seed of its history.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fastrand::Rng;
use tokio::time::Instant;

use crate::cap::{Cap, Grant, Permit, Place, QueuePlace};
use crate::pool::Pool;

#[derive(Debug)]
struct Connection {
    id: u64,
    worker: usize,
    /// The permit under the cap, returned when the connection is dropped.
    _permit: Permit<Self>,
}

struct World {
    cap: Arc<Cap<Connection>>,
    pools: [Pool<Connection>; WORKERS],
    now: Instant,
    next_id: u64,
    busy: Vec<Connection>,
    /// The waiting exchanges, in the order in which they joined the queue.
    waiting: VecDeque<Waiting>,
    /// How many exchanges had each outcome.
    seen: BTreeMap<&'static str, u64>,
}

struct Waiting {
    worker: usize,
    granted: QueuePlace<Connection>,
}

impl World {
    fn new() -> Self {
        Self {
            cap: Cap::new(CAP, QUEUE),
            pools: Default::default(),
            now: Instant::now(),
            next_id: 0,
            busy: Vec::new(),
            waiting: VecDeque::new(),
            seen: BTreeMap::new(),
        }
    }

    fn step(&mut self, rng: &mut Rng) {
        let worker = rng.usize(..WORKERS);
        match rng.u32(..100) {
            0..40 => self.begin(worker),
            40..75 => self.finish(rng),
            75..80 => self.break_one(rng),
            80..88 => self.leave(rng),
            88..95 => self.now += Duration::from_millis(rng.u64(..4000)),
            _ => {
                self.pools[worker].sweep(self.now, IDLE, |conn| conn.id % 7 != 0);
            }
        }
        self.take_grants();
        self.check();
    }

    /// Begins an exchange, as `Backend::lease` does.
    fn begin(&mut self, worker: usize) {
        if let Some((conn, idle)) = self.pools[worker].take(self.now, IDLE) {
            assert!(idle < IDLE && conn.worker == worker);
            return self.serve("pooled", conn);
        }
        while self.dial(worker).is_none() {
            if !self.pools.iter().any(|pool| pool.evict().is_some()) {
                return self.queue(worker);
            }
            self.note("evicted");
        }
    }

    fn dial(&mut self, worker: usize) -> Option<()> {
        let permit = self.cap.try_permit()?;
        self.open("dialled", worker, permit);
        Some(())
    }

    fn queue(&mut self, worker: usize) {
        match self.cap.enqueue(worker) {
            Ok(Place::Granted(permit)) => self.open("dialled", worker, permit),
            Ok(Place::Queued(granted)) => self.waiting.push_back(Waiting { worker, granted }),
            Err(_) => {
                assert_eq!(self.cap.waiting(), QUEUE, "refused with room in the queue");
                self.note("refused");
            }
        }
    }

    fn open(&mut self, how: &'static str, worker: usize, permit: Permit<Connection>) {
        self.next_id += 1;
        let id = self.next_id;
        self.serve(
            how,
            Connection {
                id,
                worker,
                _permit: permit,
            },
        );
    }

    fn serve(&mut self, how: &'static str, conn: Connection) {
        self.note(how);
        self.busy.push(conn);
    }

    /// Ends an exchange well, as `Backend::restore` does.
    fn finish(&mut self, rng: &mut Rng) {
        let Some(conn) = self.take_busy(rng) else {
            return;
        };
        let worker = conn.worker;
        let unwanted = if self.cap.is_awaited() {
            self.cap.hand_over(worker, conn)
        } else {
            Some(conn)
        };
        if let Some(conn) = unwanted {
            self.pools[worker].put(conn, self.now);
        }
    }

    /// Breaks a connection that is in use.
    fn break_one(&mut self, rng: &mut Rng) {
        drop(self.take_busy(rng));
    }

    /// Removes an exchange from the queue.
    fn leave(&mut self, rng: &mut Rng) {
        if !self.waiting.is_empty() {
            let left = self.waiting.remove(rng.usize(..self.waiting.len()));
            drop(left);
            self.note("left");
        }
    }

    fn take_busy(&mut self, rng: &mut Rng) -> Option<Connection> {
        (!self.busy.is_empty()).then(|| self.busy.swap_remove(rng.usize(..self.busy.len())))
    }

    fn take_grants(&mut self) {
        let mut still = VecDeque::new();
        while let Some(mut waiting) = self.waiting.pop_front() {
            let mut cx = Context::from_waker(Waker::noop());
            let Poll::Ready(grant) = Pin::new(&mut waiting.granted).poll(&mut cx) else {
                still.push_back(waiting);
                continue;
            };
            let grant = grant.expect("the cap lives as long as its queue");
            assert!(still.is_empty(), "somebody was served before his turn");
            match grant {
                Grant::Permit(permit) => self.open("granted", waiting.worker, permit),
                Grant::Connection(conn) => {
                    assert_eq!(
                        conn.worker, waiting.worker,
                        "sockets stay with their worker"
                    );
                    self.serve("handed over", conn);
                }
            }
        }
        self.waiting = still;
    }

    fn check(&self) {
        let idle: usize = self.pools.iter().map(Pool::len).sum();
        let held = self.busy.len() + idle;
        assert_eq!(
            self.cap.open(),
            held,
            "a permit for each connection, no more"
        );
        assert!(held <= CAP, "{held} connections");
        assert_eq!(self.cap.waiting(), self.waiting.len());
        assert!(self.waiting.len() <= QUEUE);
        assert!(
            self.waiting.is_empty() || idle == 0 || held == CAP,
            "somebody waits although there is room"
        );
    }

    fn note(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }
}

#[test]
fn no_history_loses_a_permit_or_serves_out_of_turn() {
    let mut seen = BTreeMap::new();
    for seed in 0..200 {
        let told = std::panic::catch_unwind(|| {
            let (mut rng, mut world) = (Rng::with_seed(seed), World::new());
            (0..500).for_each(|_| world.step(&mut rng));
            world.busy.clear();
            world.take_grants();
            world.check();
            world.seen
        });
        let told = told.unwrap_or_else(|_| panic!("the history of seed {seed}"));
        for (what, count) in told {
            *seen.entry(what).or_insert(0) += count;
        }
    }
    let outcomes: Vec<&str> = seen.keys().copied().collect();
    let all = [
        "dialled",
        "evicted",
        "granted",
        "handed over",
        "left",
        "pooled",
        "refused",
    ];
    assert_eq!(outcomes, all, "every outcome occurred: {seen:?}");
}

const WORKERS: usize = 3;
const CAP: usize = 4;
const QUEUE: usize = 5;
const IDLE: Duration = Duration::from_secs(10);
