//! One backend and its connections: who gets which, and when a new one is opened.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tokio::time::{Instant, timeout};

use crate::cap::{Cap, Grant, Permit, Place, QueueFull};
use crate::config::BackendConfig;
use crate::conn::Conn;
use crate::dial::dial;
use crate::drops::Drops;
use crate::error::LeaseError;
use crate::health::SharedHealth;
use crate::lease::Lease;
use crate::pool::Pool;

/// A backend: its configuration, a pool for each worker, and one cap over all of them. Shared by
/// all workers.
#[derive(Debug)]
pub struct Backend {
    config: BackendConfig,
    cap: Arc<Cap<Box<Conn>>>,
    pools: Box<[Pool<Box<Conn>>]>,
    in_flight: AtomicUsize,
    dialled: AtomicU64,
    reused: AtomicU64,
    stale: AtomicU64,
    drops: Drops,
    health: SharedHealth,
    /// No configuration names it any more.
    retired: AtomicBool,
}

/// Whether an exchange may have a pooled connection, which the backend may just be closing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Yes, if it was quiet when the event loop last looked: the request may be sent again.
    Any,
    /// If it is quiet at this moment, which costs a system call, and the backend was not lately
    /// found to close connections that were idle for so short a time: the request must not run
    /// twice.
    Lasting,
    /// No: one has just failed, and another may be as stale.
    Never,
}

/// What a backend's connections did and are doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackendCounts {
    /// Exchanges in flight, those waiting for a connection included.
    pub in_flight: usize,
    /// Open connections, unused ones included.
    pub open: usize,
    /// Unused connections.
    pub idle: usize,
    /// Exchanges waiting for a connection.
    pub waiting: usize,
    /// Connections dialled since the start.
    pub dialled: u64,
    /// Leases served by a pooled connection since the start.
    pub reused: u64,
    /// Pooled connections found closed, loud or silent to CPING since the start.
    pub stale: u64,
    /// The share of its weight it gets now, in percent; 0 while it is left out.
    pub share: u8,
    /// Times it was left out since the start.
    pub ejections: u64,
    /// Probes it answered since the start.
    pub probes_answered: u64,
    /// Probes it did not answer since the start.
    pub probes_failed: u64,
}

/// Counts an exchange as in flight until dropped.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Backend>);

impl Backend {
    /// A backend for so many workers. Nothing is dialled before the first lease.
    #[must_use]
    pub fn new(config: BackendConfig, workers: usize) -> Arc<Self> {
        let pools = (0..workers)
            .map(|_| Pool::new(config.idle_timeout))
            .collect();
        Arc::new(Self {
            cap: Cap::new(config.connections_max, config.queue_max),
            pools,
            in_flight: AtomicUsize::new(0),
            health: SharedHealth::new(config.slow_start),
            dialled: AtomicU64::new(0),
            reused: AtomicU64::new(0),
            stale: AtomicU64::new(0),
            drops: Drops::default(),
            retired: AtomicBool::new(false),
            config,
        })
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &BackendConfig {
        &self.config
    }

    /// Exchanges in flight over all workers, those waiting for a connection included.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// What its connections did and are doing.
    #[must_use]
    pub fn counts(&self) -> BackendCounts {
        let health = self.health.counts();
        BackendCounts {
            in_flight: self.in_flight(),
            open: self.cap.open(),
            idle: self.pools.iter().map(Pool::len).sum(),
            waiting: self.cap.waiting(),
            dialled: self.dialled.load(Ordering::Relaxed),
            reused: self.reused.load(Ordering::Relaxed),
            stale: self.stale.load(Ordering::Relaxed),
            share: self.share(),
            ejections: health.ejections,
            probes_answered: health.probes_answered,
            probes_failed: health.probes_failed,
        }
    }

    pub(crate) fn health(&self) -> &SharedHealth {
        &self.health
    }

    /// A connection for one exchange on `worker`: a pooled one that is still quiet, if `reuse` lets
    /// it, else a fresh one, else the first that becomes free. `now` is the time, which the caller
    /// has read anyway; a coarse one will do.
    ///
    /// # Errors
    /// [`LeaseError`]; nothing was sent in any case.
    ///
    /// # Cancel safety
    /// A connection being dialled or probed is closed, and a place in the queue is left.
    pub async fn lease(
        self: &Arc<Self>,
        worker: usize,
        reuse: Reuse,
        now: Instant,
    ) -> Result<Lease, LeaseError> {
        let in_flight = InFlight::begin(self);
        match self.take_quiet(worker, reuse, now) {
            Some((conn, false)) => Ok(Lease::new(conn, in_flight, worker, true)),
            // Boxed, so that the common way stays small: it is part of every exchange's future.
            other => {
                let unproved = other.map(|(conn, _)| conn);
                Box::pin(self.lease_slowly(unproved, in_flight, worker)).await
            }
        }
    }

    /// Asks a pooled connection that was idle for long whether it is alive; opens one otherwise.
    async fn lease_slowly(
        self: &Arc<Self>,
        unproved: Option<Box<Conn>>,
        in_flight: InFlight,
        worker: usize,
    ) -> Result<Lease, LeaseError> {
        if let Some(mut conn) = unproved {
            if self.ping(&mut conn).await {
                self.reused.fetch_add(1, Ordering::Relaxed);
                return Ok(Lease::new(conn, in_flight, worker, true));
            }
            self.stale.fetch_add(1, Ordering::Relaxed);
            // The others are hardly better, and to ask each would take a `ping_timeout` each.
            self.suspect();
        }
        self.lease_fresh(in_flight, worker).await
    }

    async fn lease_fresh(
        self: &Arc<Self>,
        in_flight: InFlight,
        worker: usize,
    ) -> Result<Lease, LeaseError> {
        match self.permit(worker).await? {
            Grant::Conn(conn) => Ok(Lease::new(conn, in_flight, worker, true)),
            Grant::Permit(permit) => {
                let began = Instant::now();
                let dialled = self.dial(permit).await;
                let conn = dialled.inspect_err(|error| self.note_failed_dial(error, began))?;
                Ok(Lease::new(conn, in_flight, worker, false))
            }
        }
    }

    /// The pooled connection used last among those that are quiet, and whether it was idle for so
    /// long that it must prove to be alive first.
    fn take_quiet(&self, worker: usize, reuse: Reuse, now: Instant) -> Option<(Box<Conn>, bool)> {
        if reuse == Reuse::Never {
            return None;
        }
        loop {
            let (conn, idle) = self.pools[worker].take(now)?;
            if !conn.is_quiet(reuse) {
                self.stale.fetch_add(1, Ordering::Relaxed);
                self.drops.note(idle, now);
                continue;
            }
            if reuse == Reuse::Lasting && self.drops.threaten(idle, now) {
                // A fresh one takes its place, or the pool would grow with each such request.
                return None;
            }
            let limit = self.config.ajp.ping_after_idle;
            let must_prove = conn.can_ping() && limit.is_some_and(|limit| idle >= limit);
            if !must_prove {
                self.reused.fetch_add(1, Ordering::Relaxed);
            }
            return Some((conn, must_prove));
        }
    }

    /// Leave to open a connection, closing another worker's unused one or waiting if need be.
    async fn permit(&self, worker: usize) -> Result<Grant<Box<Conn>>, LeaseError> {
        loop {
            if let Some(permit) = self.cap.try_permit() {
                return Ok(Grant::Permit(permit));
            }
            if !self.evict_one() {
                break;
            }
        }
        let full = |QueueFull| LeaseError::QueueFull {
            connections: self.config.connections_max,
            queue: self.config.queue_max,
        };
        let granted = match self.cap.enqueue(worker).map_err(full)? {
            Place::Granted(permit) => return Ok(Grant::Permit(permit)),
            Place::Queued(granted) => granted,
        };
        let limit = self.config.queue_timeout;
        // A connection freed just before joining the queue went to its pool; take it from there.
        self.evict_one();
        match timeout(limit, granted).await {
            Ok(Ok(grant)) => Ok(grant),
            Ok(Err(_)) | Err(_) => Err(LeaseError::QueueTimeout { limit }),
        }
    }

    /// Closes an unused connection of any worker, so that its permit is free; `false` if there is
    /// none.
    fn evict_one(&self) -> bool {
        self.pools.iter().find_map(Pool::evict).is_some()
    }

    async fn dial(&self, permit: Permit<Box<Conn>>) -> Result<Box<Conn>, LeaseError> {
        let stream = dial(&self.config.address, self.config.connect_timeout).await?;
        self.dialled.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Conn::new(stream, &self.config, Some(permit))))
    }

    pub(crate) async fn ping(&self, conn: &mut Conn) -> bool {
        timeout(self.config.ajp.ping_timeout, conn.ping())
            .await
            .unwrap_or(false)
    }

    /// Takes a finished connection back, or closes it.
    pub(crate) fn restore(&self, mut conn: Box<Conn>, worker: usize, now: Instant) {
        if !conn.settle() {
            return;
        }
        if self.cap.is_awaited() {
            match self.cap.hand_over(worker, conn) {
                Some(unwanted) => conn = unwanted,
                None => return,
            }
        }
        self.pools[worker].put(conn, now);
        if self.retired.load(Ordering::SeqCst) {
            self.close_unused();
        }
    }

    /// Closes unused connections, now and as exchanges end: no further exchanges are expected.
    /// Those in flight, and those that still come, are served.
    pub fn retire(&self) {
        self.retired.store(true, Ordering::SeqCst);
        self.close_unused();
    }

    /// Closes the unused connections of all workers; says how many.
    pub(crate) fn close_unused(&self) -> usize {
        let unused = |pool| std::iter::from_fn(move || Pool::evict(pool));
        self.pools.iter().flat_map(unused).count()
    }

    /// Closes the worker's pooled connections that are too old or that the backend has closed.
    /// To be called now and then, so that a backend is not left with half-closed connections nor,
    /// when it is out, without its keeper.
    pub fn sweep(self: &Arc<Self>, worker: usize) {
        if self.share() == 0 {
            self.keep();
        }
        let closed = self.pools[worker].sweep(Instant::now(), |conn| conn.is_quiet(Reuse::Lasting));
        if closed > 0 {
            tracing::debug!(backend = %self.config.name, closed, "closed unused connections");
        }
    }
}

impl InFlight {
    fn begin(backend: &Arc<Backend>) -> Self {
        backend.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(backend))
    }

    pub(crate) fn backend(&self) -> &Arc<Backend> {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
