//! Accepts from one socket, until its listener drains, and ends its connections.
//!
//! The task owns the connections it accepted. When its listener drains, it accepts for a grace
//! period, because clients do not know of the drain yet. Then the kernel is told to begin no further
//! handshakes, connections whose handshake had begun are accepted, and only then is the socket
//! closed. A socket that another process took over is dropped at once: its queue lives on in that
//! process, and the grace can be longer. Connections may finish their exchanges until `drain_timeout`
//! is over.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet, yield_now};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::client::ClientConnection;
use crate::counters::{Culprit, Reason};
use crate::limits::Limit;
use crate::listener::descriptors::{Shortage, shortage};
use crate::listener::drain::Ending;
use crate::listener::{Acceptor, Incoming, Listener};
use crate::serve::{self, proxied};
use crate::worker::Worker;

pub(crate) struct Accepting {
    worker: Arc<Worker>,
    listener: Arc<Listener>,
    /// The socket; `None` after it was dropped.
    acceptor: Option<Arc<Acceptor>>,
    connections: JoinSet<()>,
    /// When a failure to accept was last logged.
    warned: Option<Instant>,
}

impl Accepting {
    pub(crate) fn new(
        worker: Arc<Worker>,
        listener: Arc<Listener>,
        acceptor: Arc<Acceptor>,
    ) -> Self {
        Self {
            worker,
            listener,
            acceptor: Some(acceptor),
            connections: JoinSet::new(),
            warned: None,
        }
    }

    /// Accepts until the listener drains, then waits for its connections to end, at most `drain_timeout`.
    pub(crate) async fn run(mut self) {
        let listener = Arc::clone(&self.listener);
        let mut ending = Ending::Closed;
        self.accept_until(async { ending = listener.drain().begun().await })
            .await;
        let limit = self.worker.site().server.drain_timeout;
        let began = Instant::now();
        match ending {
            Ending::HandedOver => {
                self.acceptor = None;
                listener.release();
                let grace = GRACE_HANDED_OVER.min(limit / 4);
                if self.finish_by(began + grace).await {
                    // Without `end_grace`, which would end the grace of other workers' connections, too.
                    return;
                }
            }
            Ending::Closed => {
                let grace = GRACE.min(limit / 4);
                self.accept_until(sleep_until(began + grace)).await;
                listener.refuse_more();
                let handshakes = HANDSHAKES.min(limit / 4);
                self.accept_until(sleep_until(began + grace + handshakes))
                    .await;
                self.empty_queue();
                self.acceptor = None;
                listener.release();
            }
        }
        listener.drain().end_grace();
        self.worker.deadlines().wake_all();
        // Tunnels last as long as exchanges may, and are then closed in order.
        let farewell = FAREWELL.min(limit / 8);
        if self.finish_by(began + limit - farewell).await {
            return;
        }
        listener.drain().end_tunnels();
        self.worker.deadlines().wake_all();
        if !self.finish_by(began + limit).await {
            tracing::warn!(
                worker = self.worker.index(),
                connections = self.connections.len(),
                "`drain_timeout` has passed; connections are cut"
            );
        }
    }

    /// Accepts and serves connections until `end` is ready.
    async fn accept_until(&mut self, end: impl Future<Output = ()>) {
        let mut end = pin!(end);
        let mut accepted_at_once = 0;
        loop {
            if accepted_at_once == ACCEPTS_AT_ONCE {
                accepted_at_once = 0;
                yield_now().await;
            }
            accepted_at_once += 1;
            let accepted = tokio::select! {
                biased;
                () = &mut end => return,
                accepted = accept(self.acceptor.as_deref()) => accepted,
                Some(ended) = self.connections.join_next() => {
                    self.note_panic(&ended);
                    continue;
                }
            };
            match accepted {
                Ok(incoming) => self.serve(incoming),
                Err(error) => self.handle_failure(&error).await,
            }
        }
    }

    /// Waits until the last connection of this task is closed, at most until `end`. `false`: some are open.
    async fn finish_by(&mut self, end: Instant) -> bool {
        let finish = async {
            while let Some(ended) = self.connections.join_next().await {
                self.note_panic(&ended);
            }
        };
        timeout_at(end, finish).await.is_ok()
    }

    /// Accepts every connection that is in the kernel's queue.
    fn empty_queue(&mut self) {
        let Some(acceptor) = self.acceptor.clone() else {
            return;
        };
        while let Ok(incoming) = acceptor.try_accept() {
            self.serve(incoming);
        }
    }

    /// Serves an accepted connection, if it is admitted.
    fn serve(&mut self, incoming: Incoming) {
        let worker = &self.worker;
        worker.counters().accepted();
        if self.listener.config().proxy_protocol {
            return self.serve_proxied(incoming);
        }
        let (site, config) = (worker.site(), self.listener.config());
        let admitted = match worker.admission().admit(&site, &config, &incoming) {
            Ok(admitted) => admitted,
            Err(limit) => {
                tracing::debug!(remote = %incoming.remote, ?limit, "connection refused");
                return worker.turn_away(limit);
            }
        };
        let listener = Arc::clone(&self.listener);
        let profile = listener.tls().map(|profile| profile.current());
        let mut client = ClientConnection::new(incoming, listener, admitted);
        if let Some(profile) = profile {
            client = match client.expect_tls(profile) {
                Ok(client) => client,
                Err(error) => {
                    tracing::error!(%error, "cannot begin TLS");
                    return worker.count(Reason::new(Culprit::Front, "tls-handshake"));
                }
            };
        }
        let serving = serve::serve(Arc::clone(worker), client);
        // tokio rounds a task up to a multiple of 128 bytes, and the allocator that to its next
        // power of two; with a box of its own the future takes no more than it needs.
        self.connections.spawn(Box::pin(serving));
    }

    /// Serves an accepted connection that must begin with a PROXY protocol header, if the peer may send one
    /// and it is admitted.
    fn serve_proxied(&mut self, incoming: Incoming) {
        let worker = &self.worker;
        if !proxied::is_believed(&self.listener, &incoming) {
            let reason = Reason::new(Culprit::Client, "proxy-untrusted");
            let log = worker.failure_log();
            if log.is_news(reason.token(), worker.deadlines().now()) {
                tracing::info!(
                    remote = %incoming.remote, %reason,
                    "the peer is not in `proxy_protocol_from`: connection closed; further ones are only counted"
                );
            }
            return worker.count(reason);
        }
        match worker.admission().admit_unknown(&worker.site().server) {
            Ok(admitted) => {
                let (worker, listener) = (Arc::clone(worker), Arc::clone(&self.listener));
                let serving = proxied::serve(worker, listener, incoming, admitted);
                self.connections.spawn(Box::pin(serving));
            }
            Err(limit) => worker.turn_away(limit),
        }
    }

    /// Handles an error of accepting. If the system lacks descriptors, idle clients and cached files are closed; if
    /// that does not help, the client is refused.
    async fn handle_failure(&mut self, error: &io::Error) {
        let Some(lacking) = shortage(error) else {
            // Only that client's connection failed: it was gone before it was accepted.
            let reason = Reason::new(Culprit::Client, "accept-failed");
            self.worker.count(reason);
            tracing::debug!(%error, "cannot accept a connection");
            return;
        };
        self.warn(error);
        let out_of_descriptors = lacking == Shortage::Descriptors;
        if out_of_descriptors {
            self.worker.shed_idle();
            self.worker.files().table().close_all();
        }
        // A pause, so that this loop does not spin, and connections can end meanwhile.
        sleep(SHORTAGE_PAUSE).await;
        if !out_of_descriptors {
            return self.worker.turn_away(Limit::Memory);
        }
        let Some(acceptor) = &self.acceptor else {
            return;
        };
        // The reserve is a descriptor that is given up for a moment, to accept a client and close it at once.
        let reserve = self.worker.admission().reserve();
        reserve.refill();
        match acceptor.try_accept() {
            Ok(incoming) => self.serve(incoming),
            // A client that is left in the queue would wait until a timeout of its own.
            Err(error) if shortage(&error) == Some(Shortage::Descriptors) => {
                reserve.refuse_one(acceptor);
                self.worker.turn_away(Limit::Descriptors);
            }
            Err(_) => {}
        }
    }

    fn warn(&mut self, error: &io::Error) {
        let now = Instant::now();
        if self.warned.is_none_or(|last| now >= last + WARN_PERIOD) {
            self.warned = Some(now);
            tracing::warn!(
                %error,
                "cannot accept connections; raise the limit of open files or lower `connections_max`"
            );
        }
    }

    /// Counts and logs a panic of a connection's task, which ends only that connection.
    fn note_panic(&self, ended: &Result<(), JoinError>) {
        if let Err(error) = ended
            && error.is_panic()
        {
            self.worker.count(Reason::new(Culprit::Front, "panic"));
            tracing::error!(%error, "a connection's task panicked");
        }
    }
}

async fn accept(acceptor: Option<&Acceptor>) -> io::Result<Incoming> {
    match acceptor {
        Some(acceptor) => acceptor.accept().await,
        None => std::future::pending().await,
    }
}

/// How many connections are accepted before the event loop serves the others again.
const ACCEPTS_AT_ONCE: usize = 4;

/// How long before `drain_timeout` tunnels are closed; at most an eighth of it.
const FAREWELL: Duration = Duration::from_millis(500);

/// How long a drain leaves idle clients open, and accepts new ones; at most a quarter of `drain_timeout`. It
/// is longer than the round trip of a request.
const GRACE: Duration = Duration::from_millis(500);

/// How long idle clients stay open after another process took the listener over; at most a quarter of
/// `drain_timeout`. Most send another request in this time, and are closed with its response, so that no
/// request crosses the close. New clients do not wait: the new process serves them.
const GRACE_HANDED_OVER: Duration = Duration::from_secs(5);

/// How long handshakes that have begun may take before the socket is closed.
const HANDSHAKES: Duration = Duration::from_millis(100);

/// How long accepting pauses when the system lacks descriptors or memory.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(10);

/// How often a lasting shortage is logged.
const WARN_PERIOD: Duration = Duration::from_secs(5);
