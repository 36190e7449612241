//! A worker: one thread with one event loop, serving the connections it accepted.
//!
//! Workers share nothing on the hot path but atomics and the immutable site. Every task of a
//! worker is owned by the set of connections in [`Worker::run`]; a drain lets them finish until
//! its deadline and then drops them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use catamaran_upstream::Stream;
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::access_log::AccessLog;
use crate::client::ClientConn;
use crate::config::ListenerConfig;
use crate::counters::{Counters, Culprit, Reason};
use crate::drain::Drain;
use crate::forwarded::{Peer, is_trusted};
use crate::id::{RequestId, RequestIds};
use crate::listener::Sockets;
use crate::serve;
use crate::site::Site;
use crate::watch::Watch;

/// What all workers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) site: Arc<Site>,
    pub(crate) access_log: AccessLog,
    pub(crate) counters: Counters,
    pub(crate) drain: Drain,
    pub(crate) connections_max: usize,
    pub(crate) drain_timeout: Duration,
}

#[derive(Debug)]
pub(crate) struct Worker {
    index: usize,
    ids: RequestIds,
    watch: Arc<Watch>,
    shared: Arc<Shared>,
}

/// One worker's socket of one listener.
#[derive(Debug)]
pub(crate) enum Acceptor {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Worker {
    pub(crate) fn new(index: usize, shared: Arc<Shared>) -> Self {
        Self {
            index,
            ids: RequestIds::new(),
            watch: Watch::new(),
            shared,
        }
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn next_id(&self) -> RequestId {
        self.ids.next()
    }

    pub(crate) fn site(&self) -> Arc<Site> {
        Arc::clone(&self.shared.site)
    }

    pub(crate) fn access_log(&self) -> &AccessLog {
        &self.shared.access_log
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.shared.drain.has_begun()
    }

    /// Accepts and serves until the drain is over.
    pub(crate) async fn run(self: Arc<Self>, acceptors: Vec<(Acceptor, Arc<ListenerConfig>)>) {
        let mut ticking = JoinSet::new();
        ticking.spawn(Arc::clone(&self.watch).run());
        let mut accepting = JoinSet::new();
        for (acceptor, listener) in acceptors {
            accepting.spawn(accept(Arc::clone(&self), acceptor, listener));
        }
        let mut sweep = interval(SWEEP_PERIOD);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.shared.drain.begun() => break,
                _ = sweep.tick() => self.shared.site.sweep(self.index),
            }
        }
        self.watch.wake_all();
        // Each acceptor stops by itself and hands over the connections it still serves.
        let finish = async {
            while let Some(accepted) = accepting.join_next().await {
                if let Ok(mut connections) = accepted {
                    while connections.join_next().await.is_some() {}
                }
            }
        };
        if timeout(self.shared.drain_timeout, finish).await.is_err() {
            tracing::warn!(
                worker = self.index,
                connections = self.shared.counters.open(),
                "the drain's time is over; connections are cut"
            );
        }
    }

    /// Serves one accepted connection.
    async fn serve(
        self: Arc<Self>,
        listener: Arc<ListenerConfig>,
        stream: Stream,
        remote: SocketAddr,
        local: SocketAddr,
    ) {
        let Some(_open) = self.shared.counters.connect(self.shared.connections_max) else {
            let reason = Reason::new(Culprit::Front, "connections-max");
            self.shared.counters.reason(reason);
            tracing::debug!(%remote, %reason, "connection refused");
            return;
        };
        let trusted = is_trusted(&self.shared.site.trusted_proxies, remote.ip());
        let peer = Peer {
            address: remote,
            trusted,
        };
        let watched = self.watch.join_current().await;
        let client = ClientConn::new(stream, listener.limits, (peer, local), watched);
        serve::serve(&self, &listener, client).await;
    }
}

/// Accepts until the drain begins; gives back the connections still served.
async fn accept(
    worker: Arc<Worker>,
    acceptor: Acceptor,
    listener: Arc<ListenerConfig>,
) -> JoinSet<()> {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = worker.shared.drain.begun() => return connections,
            accepted = acceptor.accept() => accepted,
            Some(ended) = connections.join_next() => {
                note_panic(&worker, &ended);
                continue;
            }
        };
        match accepted {
            Ok((stream, remote, local)) => {
                let worker = Arc::clone(&worker);
                connections.spawn(worker.serve(Arc::clone(&listener), stream, remote, local));
            }
            Err(error) => {
                worker
                    .shared
                    .counters
                    .reason(Reason::new(Culprit::Front, "accept-failed"));
                tracing::warn!(%error, "cannot accept a connection");
                // Most likely out of file descriptors: do not spin until some are free.
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// A panic costs its own connection and nothing else, but must not pass unseen.
fn note_panic(worker: &Worker, ended: &Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        worker
            .shared
            .counters
            .reason(Reason::new(Culprit::Front, "panic"));
        tracing::error!(%error, "a connection's task panicked");
    }
}

impl Acceptor {
    /// Takes a worker's socket of each listener into the present event loop.
    pub(crate) fn adopt(sockets: Sockets) -> io::Result<Vec<Self>> {
        match sockets {
            Sockets::Tcp(all) => all
                .into_iter()
                .map(|it| TcpListener::from_std(it).map(Self::Tcp))
                .collect(),
            Sockets::Unix(all) => all
                .into_iter()
                .map(|it| UnixListener::from_std(it).map(Self::Unix))
                .collect(),
        }
    }

    async fn accept(&self) -> io::Result<(Stream, SocketAddr, SocketAddr)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, remote) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let local = stream.local_addr()?;
                Ok((Stream::Tcp(stream), remote, local))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                Ok((Stream::Unix(stream), nowhere, nowhere))
            }
        }
    }
}

/// How often unused backend connections are looked after.
const SWEEP_PERIOD: Duration = Duration::from_secs(1);

/// How long accepting rests after a failure.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
