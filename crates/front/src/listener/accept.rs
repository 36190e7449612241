//! Accepting from one socket, and the end of it.
//!
//! The task owns the connections it accepted. When its listener drains it goes on for a grace
//! period, so that nobody is turned away who has not had a chance to learn of it; then the kernel
//! is told to begin no further connection, what had begun is accepted, and only then is the socket
//! closed. A socket that another process took over is let go of at once: its queue lives on there,
//! and the grace can be longer. Connections may finish their exchanges until `drain_timeout` is over.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet, yield_now};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::client::{ClientConnection, serve};
use crate::listener::descriptors::{Shortage, shortage};
use crate::listener::drain::Ending;
use crate::listener::{Acceptor, Incoming, Listener};
use crate::worker::Worker;
use crate::worker::counters::{Culprit, Reason};

pub(crate) struct Accepting {
    worker: Arc<Worker>,
    listener: Arc<Listener>,
    /// `None` once it is let go of.
    acceptor: Option<Arc<Acceptor>>,
    connections: JoinSet<()>,
    /// When the operator was last told of a failure.
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

    /// Accepts until the listener drains, and sees its connections out.
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
                if timeout_at(began + grace, self.finish()).await.is_ok() {
                    // The grace of other workers' connections is not over for that.
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
        if timeout_at(began + limit, self.finish()).await.is_err() {
            tracing::warn!(
                worker = self.worker.index(),
                connections = self.connections.len(),
                "the drain's time is over; connections are cut"
            );
        }
    }

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

    /// Waits until the last connection is closed.
    async fn finish(&mut self) {
        while let Some(ended) = self.connections.join_next().await {
            self.note_panic(&ended);
        }
    }

    /// Accepts whoever the kernel has accepted on our behalf.
    fn empty_queue(&mut self) {
        while let Some(Ok(incoming)) = self.acceptor.as_ref().map(|it| it.try_accept()) {
            self.serve(incoming);
        }
    }

    /// Serves an accepted connection, if it is admitted.
    fn serve(&mut self, incoming: Incoming) {
        let worker = &self.worker;
        worker.counters().accepted();
        let admitted = match worker.admission().admit(&worker.site().server, &incoming) {
            Ok(admitted) => admitted,
            Err(token) => {
                tracing::debug!(remote = %incoming.remote, token, "connection refused");
                self.count_refusal(token);
                return;
            }
        };
        let listener = Arc::clone(&self.listener);
        let client = ClientConnection::new(incoming, listener, admitted);
        let serving = serve::serve(Arc::clone(worker), client);
        // tokio rounds a task up to a multiple of 128 bytes, and the allocator that to its next
        // power of two; with a box of its own the future takes no more than it needs.
        self.connections.spawn(Box::pin(serving));
    }

    async fn handle_failure(&mut self, error: &io::Error) {
        let Some(shortage) = shortage(error) else {
            // That one client's connection, gone before it was accepted.
            let reason = Reason::new(Culprit::Client, "accept-failed");
            self.worker.count(reason);
            tracing::debug!(%error, "cannot accept a connection");
            return;
        };
        self.warn(error);
        let out_of_descriptors = shortage == Shortage::Descriptors;
        if out_of_descriptors {
            self.worker.shed_idle();
        }
        // Not to spin, and for those who make room to do so.
        sleep(SHORTAGE_PAUSE).await;
        if !out_of_descriptors {
            self.count_refusal("accept-failed");
            return;
        }
        let Some(acceptor) = &self.acceptor else {
            return;
        };
        match acceptor.try_accept() {
            Ok(incoming) => self.serve(incoming),
            // Leaving it in the queue would have it wait for a timeout of its own.
            Err(error) if shortage_of_descriptors(&error) => {
                self.worker.admission().reserve().refuse_one(acceptor);
                self.count_refusal("descriptors-exhausted");
            }
            Err(_) => {}
        }
    }

    fn count_refusal(&self, token: &'static str) {
        let reason = Reason::new(Culprit::Front, token);
        self.worker.count(reason);
    }

    fn warn(&mut self, error: &io::Error) {
        let now = Instant::now();
        if self.warned.is_none_or(|at| now >= at + WARN_PERIOD) {
            self.warned = Some(now);
            tracing::warn!(
                %error,
                "cannot accept connections; raise the limit of open files or lower `connections_max`"
            );
        }
    }

    /// A panic costs its own connection and nothing else, but must not pass unseen.
    fn note_panic(&self, ended: &Result<(), JoinError>) {
        if let Err(error) = ended
            && error.is_panic()
        {
            self.count_refusal("panic");
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

fn shortage_of_descriptors(error: &io::Error) -> bool {
    shortage(error) == Some(Shortage::Descriptors)
}

/// How many connections are accepted before the event loop looks at the others again.
const ACCEPTS_AT_ONCE: usize = 4;

/// How long a drain leaves clients between requests, and accepts new ones. Longer than a request
/// and its acknowledgement are on their way across the world; a quarter of `drain_timeout` at most.
const GRACE: Duration = Duration::from_millis(500);

/// How long an upgrade leaves clients between requests: most send another one in this time, and are
/// closed with its response. No request can cross that, as it can a close out of the blue. Nobody
/// waits for the old process meanwhile; a quarter of `drain_timeout` at most.
const GRACE_HANDED_OVER: Duration = Duration::from_secs(5);

/// How long handshakes that had begun may take before the socket is closed.
const HANDSHAKES: Duration = Duration::from_millis(100);

/// How long accepting rests when the system is short of something.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(10);

/// How often the operator is told of a shortage that lasts.
const WARN_PERIOD: Duration = Duration::from_secs(5);
