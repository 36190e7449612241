//! The keeper of a backend in trouble: a task that probes it until it is well.
//!
//! A probe is a dial, and for AJP13 a CPING on top; no client's request is ever used for it. A
//! backend has at most one keeper and a keeper one probe at a time, so that whatever comes back is
//! not run down by a herd. The task belongs to the event loop of the worker that noticed the
//! trouble; it ends when the backend is up, when nobody holds the backend any more, or with its
//! loop, and then another worker's [`Backend::sweep`] begins a new one.

use std::sync::{Arc, Weak};

use catamaran_balance::health::{Outcome, Task};
use tokio::time::{Instant, sleep};

use crate::backend::{Backend, ping};
use crate::config::Protocol;
use crate::conn::Conn;
use crate::dial::dial;
use crate::error::{Culprit, LeaseError};

impl Backend {
    /// The share of its weight that the backend is to get now, in percent: 100 if it is well, less
    /// while it ramps up after an ejection, 0 while it must not be picked.
    #[must_use]
    pub fn share(&self) -> u8 {
        self.health().share()
    }

    /// Says that requests find no other backend, so that a back-off is cut short.
    pub fn want(&self) {
        self.health().want();
    }

    /// Says that an exchange with this backend failed after its request was sent. That may be the
    /// doing of the request, so it does not put the backend out; one probe finds out whether it
    /// should be. To be called within an event loop.
    pub fn suspect(self: &Arc<Self>) {
        if self.settings().eject && self.health().suspect() {
            self.keep();
        }
    }

    /// Takes note of a dial, begun at `began`, that failed.
    pub(crate) fn note_failed_dial(self: &Arc<Self>, error: &LeaseError, began: Instant) {
        if !self.settings().eject || error.culprit() != Culprit::Backend {
            return;
        }
        if let LeaseError::DialTimeout { .. } = error {
            // A burst of clients can fill a backlog, and a SYN can get lost: a probe tells.
            return self.suspect();
        }
        if self.health().connect_failed(began) {
            self.note_ejection();
        }
        self.keep();
    }

    /// Sees to it that somebody looks after the backend if it is in trouble.
    pub(crate) fn keep(self: &Arc<Self>) {
        if self.health().needs_keeper() {
            tokio::spawn(keep(Keeper(Arc::downgrade(self))));
        }
    }

    fn note_ejection(&self) {
        let closed = self.close_unused();
        let (upstream, backend) = (self.upstream(), &self.settings().name);
        tracing::warn!(
            upstream,
            backend,
            closed,
            "backend is out: it cannot be connected to"
        );
    }

    async fn probe(&self) -> Outcome {
        let config = &*self.settings();
        let stream = match dial(&config.address, config.connect_timeout).await {
            Ok(stream) => stream,
            Err(error) if error.culprit() == Culprit::Backend => return Outcome::Failed,
            Err(error) => {
                let (upstream, backend) = (self.upstream(), &config.name);
                tracing::warn!(upstream, backend, %error, "cannot probe");
                return Outcome::NotMade;
            }
        };
        // Who never wants to be asked CPING may not know it.
        if config.protocol == Protocol::Http || config.ajp.ping_after_idle.is_none() {
            return Outcome::Answered;
        }
        // Beyond the cap, by this one connection: a backend may be silent because all are in use.
        let mut conn = Conn::new(stream, config, None);
        match ping(&mut conn, config).await {
            true => Outcome::Answered,
            false => Outcome::Failed,
        }
    }
}

/// Keeps the backend until the value is dropped, so that a task that is cut leaves no orphan.
struct Keeper(Weak<Backend>);

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(backend) = self.0.upgrade() {
            backend.health().resign();
        }
    }
}

async fn keep(mut keeper: Keeper) {
    loop {
        let Some(backend) = keeper.0.upgrade() else {
            return;
        };
        match backend.health().next() {
            Task::Wait(time) => {
                drop(backend);
                sleep(time).await;
            }
            Task::Probe => {
                let before = backend.share();
                let outcome = backend.probe().await;
                backend.health().probed(outcome);
                let (upstream, name) = (backend.upstream(), &backend.settings().name);
                match (before, backend.share()) {
                    (1.., 0) => backend.note_ejection(),
                    (0, 1..) => tracing::info!(upstream, backend = name, "backend is back"),
                    _ => tracing::debug!(upstream, backend = name, ?outcome, "probed"),
                }
            }
            Task::Rest => {
                // Released already; by now there may be another keeper, who must not be deposed.
                keeper.0 = Weak::new();
                return;
            }
        }
    }
}
