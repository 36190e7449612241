//! A worker: one thread with one event loop, serving the connections it accepted.
//!
//! Workers share nothing on the hot path but atomics and the immutable site. A worker is given
//! sockets to accept from while it runs; for each it has one task, which owns the connections
//! accepted there. It ends when a drain has begun and all of these tasks have ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::accept::Accepting;
use crate::access_log::AccessLog;
use crate::addresses::{Addresses, Counted};
use crate::client::{self, ClientConn};
use crate::counters::{Counters, Culprit, OpenConnection, Reason};
use crate::descriptors::Reserve;
use crate::drain::Drain;
use crate::forwarded::is_trusted;
use crate::id::{RequestId, RequestIds};
use crate::listener::{Acceptor, Incoming, Listener};
use crate::serve;
use crate::site::Site;
use crate::watch::{Tick, Watch};

/// What all workers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) site: ArcSwap<Site>,
    pub(crate) access_log: AccessLog,
    pub(crate) counters: Counters,
    pub(crate) addresses: Addresses,
    pub(crate) reserve: Reserve,
    /// The whole front's end; each listener has a drain of its own, which begins with this one.
    pub(crate) drain: Drain,
}

#[derive(Debug)]
pub(crate) struct Worker {
    index: usize,
    ids: RequestIds,
    watch: Arc<Watch>,
    /// Clients that have been idle since this tick or an earlier one are closed.
    shed_before: AtomicU64,
    shared: Arc<Shared>,
}

/// What a connection holds of the limits on their number, until dropped.
#[derive(Debug)]
pub(crate) struct Places {
    _open: OpenConnection,
    _of_address: Option<Counted>,
}

/// A socket that a worker is to accept from.
pub(crate) type Assignment = (Arc<Listener>, Arc<Acceptor>);

impl Worker {
    pub(crate) fn new(index: usize, shared: Arc<Shared>) -> Self {
        Self {
            index,
            ids: RequestIds::new(),
            watch: Watch::new(),
            shed_before: AtomicU64::new(0),
            shared,
        }
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn next_id(&self) -> RequestId {
        self.ids.next()
    }

    /// The site of this moment.
    pub(crate) fn site(&self) -> Arc<Site> {
        self.shared.site.load_full()
    }

    pub(crate) fn access_log(&self) -> &AccessLog {
        &self.shared.access_log
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    pub(crate) fn reserve(&self) -> &Reserve {
        &self.shared.reserve
    }

    /// Whether a client that has been idle since then must make room for others.
    pub(crate) fn sheds(&self, since: Tick) -> bool {
        u64::from(since) < self.shed_before.load(Ordering::Relaxed)
    }

    /// Closes the clients that have been idle for [`SHED_IDLE`].
    pub(crate) fn shed_idle(&self) {
        let before = u64::from(self.watch.now().before(SHED_IDLE));
        self.shed_before.store(before, Ordering::Relaxed);
        self.watch.wake_all();
    }

    /// Makes every connection look at its listener's drain.
    pub(crate) fn wake_all(&self) {
        self.watch.wake_all();
    }

    /// Accepts and serves until the drain is over.
    pub(crate) async fn run(self: Arc<Self>, mut assignments: mpsc::Receiver<Vec<Assignment>>) {
        let mut ticking = JoinSet::new();
        ticking.spawn(Arc::clone(&self.watch).run());
        let mut accepting = JoinSet::new();
        let mut sweep = interval(SWEEP_PERIOD);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                Some(assigned) = assignments.recv() => {
                    for (listener, acceptor) in assigned {
                        let task = Accepting::new(Arc::clone(&self), listener, acceptor);
                        accepting.spawn(task.run());
                    }
                }
                _ = self.shared.drain.begun() => break,
                _ = sweep.tick() => {
                    self.site().sweep(self.index);
                    client::trim();
                }
                // A listener that a reload removed.
                Some(_) = accepting.join_next() => {}
            }
        }
        while accepting.join_next().await.is_some() {}
    }

    /// Serves one accepted connection, if it is admitted.
    pub(crate) fn serve(
        self: &Arc<Self>,
        listener: Arc<Listener>,
        incoming: Incoming,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        match self.admit(&incoming) {
            Ok(places) => {
                let client = ClientConn::new(incoming, listener, &self.watch, places);
                Some(serve::serve(Arc::clone(self), client))
            }
            Err(token) => {
                self.refuse(&incoming, token);
                None
            }
        }
    }

    /// Counts a connection in, or says why it is not admitted.
    fn admit(&self, incoming: &Incoming) -> Result<Places, &'static str> {
        let site = self.site();
        let open = self.shared.counters.connect(site.server.connections_max);
        let open = open.ok_or("connections-max")?;
        let ip = incoming.remote.ip();
        let max = site
            .server
            .connections_per_address
            .filter(|_| incoming.is_tcp() && !is_trusted(&site.server.trusted_proxies, ip));
        let of_address = match max {
            Some(max) => {
                let place = self.shared.addresses.connect(ip, max.get());
                Some(place.ok_or("connections-per-address")?)
            }
            None => None,
        };
        Ok(Places {
            _open: open,
            _of_address: of_address,
        })
    }

    fn refuse(&self, incoming: &Incoming, token: &'static str) {
        let reason = Reason::new(Culprit::Front, token);
        self.counters().reason(reason);
        tracing::debug!(remote = %incoming.remote, %reason, "connection refused");
    }
}

/// How often unused backend connections are looked after.
const SWEEP_PERIOD: Duration = Duration::from_secs(1);

/// An idle client of this age makes room when descriptors run out: long enough that whoever just
/// connected, or is about to send the next of several requests, is spared.
const SHED_IDLE: Duration = Duration::from_secs(1);
