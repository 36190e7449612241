//! Tunnels: bytes of another protocol, such as WebSocket, between a client and a backend.
//!
//! A tunnel begins when a backend answers 101 to a request for a tunnel, on a route that allows it.
//! Until then it is an exchange like any other. From then on bytes are passed both ways unchanged. One
//! task moves both ways; each buffers a few socket writes at most, and nothing while it is idle. When
//! one side closes its sending side, the front tells the other, which must close within [`HALF_CLOSED`].

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use catamaran_upstream::{Culprit, Error as UpstreamError, Tunnel as Backend};
use thiserror::Error;

use crate::client::{BodyPart, ClientError};
use crate::counters::Reason;
use crate::deadlines::Tick;
use crate::exchange::downstream::Downstream;
use crate::exchange::failure::Causes;
use crate::exchange::scene::Scene;
use crate::exchange::state::Exchange;

/// Why a tunnel ended before both sides had closed.
#[derive(Debug, Error)]
pub(crate) enum TunnelError {
    #[error("nothing moved for too long")]
    Idle,
    #[error("the client took nothing for too long")]
    WriteTimeout,
    #[error("the backend took nothing for too long")]
    BackendTimeout,
    #[error("the {0} did not close after the other side had")]
    HalfClosed(Culprit),
    #[error("the front ends")]
    Drained,
    #[error(transparent)]
    Client(ClientError),
    #[error(transparent)]
    Backend(UpstreamError),
}

impl TunnelError {
    /// The reason to count and log.
    pub(crate) fn reason(&self) -> Reason {
        use Culprit::{Backend, Client, Front};
        let (culprit, token) = match self {
            Self::Idle => (Client, "tunnel-idle"),
            Self::WriteTimeout => (Client, "write-timeout"),
            Self::BackendTimeout => (Backend, "idle-body-timeout"),
            Self::HalfClosed(culprit) => (*culprit, "tunnel-half-closed"),
            Self::Drained => (Front, "drained"),
            Self::Client(ClientError::Reset) => (Client, "client-reset"),
            Self::Client(_) => (Client, "gone"),
            Self::Backend(error) => (Backend, error.token()),
        };
        Reason::new(culprit, token)
    }

    /// Whether the side that is left must see a failure instead of an orderly end.
    pub(crate) fn is_failure(&self) -> bool {
        matches!(
            self,
            Self::WriteTimeout | Self::BackendTimeout | Self::Client(_) | Self::Backend(_)
        )
    }
}

/// The state of one direction of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Open,
    /// The sender has closed; bytes that came before must still be written.
    Ending,
    Ended,
}

/// The time limits of a tunnel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) idle: Duration,
    /// The longest time that the backend may refuse to take bytes.
    pub(crate) backend: Duration,
}

/// A tunnel between a client and a backend.
pub(crate) struct Tunnel<'a, 'c> {
    scene: Scene<'a>,
    down: &'a mut Downstream<'c>,
    backend: &'a mut Backend,
    limits: Limits,
    /// Counts the bytes received from the client, for the log.
    received: &'a mut u64,
    upload: Way,
    download: Way,
    /// The time at which bytes last moved, either way.
    moved: Tick,
    /// The time at which the client last took bytes or had none to take; the next field is the same for
    /// the backend.
    client_took: Tick,
    backend_took: Tick,
    /// The time at which the first side closed; `None`: both are open.
    half_closed: Option<Tick>,
}

impl<'a, 'c> Tunnel<'a, 'c> {
    pub(crate) fn new(
        scene: Scene<'a>,
        down: &'a mut Downstream<'c>,
        backend: &'a mut Backend,
        limits: Limits,
        received: &'a mut u64,
    ) -> Self {
        let now = scene.now();
        Self {
            scene,
            down,
            backend,
            limits,
            received,
            upload: Way::Open,
            download: Way::Open,
            moved: now,
            client_took: now,
            backend_took: now,
            half_closed: None,
        }
    }

    /// Runs until both sides have closed.
    ///
    /// # Cancel safety
    /// Bytes may be lost: both connections must be closed.
    pub(crate) async fn run(&mut self) -> Result<(), TunnelError> {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// Moves bytes both ways as long as any move; then frees buffers and waits for sockets and timeouts.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TunnelError>> {
        loop {
            let moved = self.poll_upload(cx)? | self.poll_download(cx)?;
            if self.upload == Way::Ended && self.download == Way::Ended {
                return Poll::Ready(Ok(()));
            }
            if !moved {
                self.down.poll_broken(cx).map_err(TunnelError::Client)?;
                self.down.release_input();
                self.backend.release();
                return self.poll_deadlines();
            }
            self.moved = self.scene.now();
        }
    }

    /// Moves bytes from the client to the backend. `true` if any moved.
    fn poll_upload(&mut self, cx: &mut Context<'_>) -> Result<bool, TunnelError> {
        let mut moved = false;
        while self.upload == Way::Open && !self.backend.is_full() {
            match self.down.poll_body(cx) {
                Poll::Pending => break,
                Poll::Ready(Err(error)) => return Err(TunnelError::Client(error)),
                Poll::Ready(Ok(BodyPart::Data(data))) => {
                    *self.received += data.len() as u64;
                    self.scene.worker.counters().tunnelled(data.len(), 0);
                    self.backend.send(data);
                }
                Poll::Ready(Ok(BodyPart::End)) => {
                    self.upload = Way::Ending;
                    self.note_half_closed();
                }
            }
            moved = true;
        }
        let waiting = self.backend.unwritten();
        if waiting == 0 {
            // The backend's time to take bytes begins with the next ones.
            self.backend_took = self.scene.now();
        } else {
            let written = self.backend.poll_write(cx);
            if self.backend.unwritten() < waiting {
                self.backend_took = self.scene.now();
                moved = true;
            }
            if let Poll::Ready(Err(error)) = written {
                return Err(TunnelError::Backend(error));
            }
        }
        if self.upload == Way::Ending
            && self.backend.unwritten() == 0
            && let Poll::Ready(finished) = self.backend.poll_finish(cx)
        {
            finished.map_err(TunnelError::Backend)?;
            self.upload = Way::Ended;
        }
        Ok(moved)
    }

    /// Moves bytes from the backend to the client. `true` if any moved.
    fn poll_download(&mut self, cx: &mut Context<'_>) -> Result<bool, TunnelError> {
        let mut moved = false;
        while self.download == Way::Open && !self.down.is_full() {
            match self.backend.poll_receive(cx) {
                Poll::Pending => break,
                Poll::Ready(Err(error)) => return Err(TunnelError::Backend(error)),
                Poll::Ready(Ok(Some(data))) => {
                    self.scene.worker.counters().tunnelled(0, data.len());
                    self.down.send_data(data);
                }
                Poll::Ready(Ok(None)) => {
                    self.download = Way::Ending;
                    self.note_half_closed();
                }
            }
            moved = true;
        }
        let waiting = self.down.unwritten();
        if waiting == 0 {
            self.client_took = self.scene.now();
        } else {
            let written = self.down.poll_write(cx);
            if self.down.unwritten() < waiting {
                self.client_took = self.scene.now();
                moved = true;
            }
            if let Poll::Ready(Err(error)) = written {
                return Err(TunnelError::Client(error));
            }
        }
        if self.download == Way::Ending
            && self.down.unwritten() == 0
            && let Poll::Ready(finished) = self.down.poll_finish(cx)
        {
            finished.map_err(TunnelError::Client)?;
            self.download = Way::Ended;
        }
        Ok(moved)
    }

    /// Notes the time at which the first side closed, from which the other has [`HALF_CLOSED`] left.
    fn note_half_closed(&mut self) {
        let now = self.scene.now();
        self.half_closed = self.half_closed.or(Some(now));
    }

    /// Waits for the earliest deadline, because nothing moves.
    fn poll_deadlines(&mut self) -> Poll<Result<(), TunnelError>> {
        if self.down.must_end_tunnel() {
            return Poll::Ready(Err(TunnelError::Drained));
        }
        let patience = self.scene.listener.write_timeout;
        let client_silent_since = self.down.silent_since(self.client_took, patience);
        let mut first = (self.moved + self.limits.idle, TunnelError::Idle);
        let mut consider = |ends: Tick, error| {
            if ends < first.0 {
                first = (ends, error);
            }
        };
        if self.down.unwritten() > 0 {
            consider(client_silent_since + patience, TunnelError::WriteTimeout);
        }
        if self.backend.unwritten() > 0 {
            let ends = self.backend_took + self.limits.backend;
            consider(ends, TunnelError::BackendTimeout);
        }
        if let Some(since) = self.half_closed {
            // The side that has not closed yet.
            let late = match self.upload {
                Way::Open => Culprit::Client,
                Way::Ending | Way::Ended => Culprit::Backend,
            };
            consider(since + HALF_CLOSED, TunnelError::HalfClosed(late));
        }
        let (ends, error) = first;
        if self.scene.now() >= ends {
            return Poll::Ready(Err(error));
        }
        self.scene.deadline.set(ends);
        Poll::Pending
    }
}

/// Moves bytes both ways until both sides have closed, or one has failed.
pub(crate) async fn run(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    mut backend: Backend,
    idle: Duration,
) {
    detach(exchange);
    let worker = exchange.scene.worker;
    let _open = worker.counters().count_tunnel();
    let limits = Limits {
        idle,
        backend: match exchange.attempts.member {
            Some(member) => member.settings.idle_body_timeout,
            None => idle,
        },
    };
    let received = &mut exchange.progress.received;
    let ended = Tunnel::new(exchange.scene, down, &mut backend, limits, received)
        .run()
        .await;
    let error = ended.err();
    if let Some(error) = &error {
        let reason = error.reason();
        exchange.note_reason(reason);
        tracing::debug!(request = %exchange.id, %reason, "{}", Causes(error));
    }
    if error.is_some_and(|error| error.is_failure()) {
        down.fail_tunnel();
        return;
    }
    // Begins the orderly end towards the client, and does not wait for it.
    poll_fn(|cx| Poll::Ready(down.poll_finish(cx).is_ready())).await;
    backend.close().await;
}

/// Frees the memory of the request's head, which a tunnel would keep for hours.
fn detach(exchange: &mut Exchange<'_>) {
    exchange.decided.passage = None;
    exchange.decided.cors = None;
    if let Some(logged) = &mut exchange.logged {
        logged.detach();
    }
    if let Some(id) = &mut exchange.decided.given_id {
        *id = Bytes::copy_from_slice(id);
    }
}

/// The time that the other side of a tunnel has to close after the first has closed.
const HALF_CLOSED: Duration = Duration::from_secs(30);
