//! The keeper of a backend that failed: a task that probes the backend until it is up again.
//!
//! A probe is a dial, followed by a CPING for AJP13. A client's request is never used as a probe.
//! A backend has at most one keeper, and a keeper makes one probe at a time, so that a backend
//! that restarts is not flooded with probes. The task runs on the event loop of the worker that
//! noticed the failure. It ends when the backend is up, when nothing refers to the backend any
//! more, or when its event loop ends. In the last case [`Backend::sweep`] of another worker
//! starts a new one.

use std::sync::{Arc, Weak};

use catamaran_balance::health::{Cause, Outcome, Standing, Task};
use tokio::time::{Instant, sleep};

use crate::backend::{Backend, ping};
use crate::config::Protocol;
use crate::connection::Connection;
use crate::dial::dial;
use crate::error::{Culprit, LeaseError};

impl Backend {
    /// The share of its weight that the backend gets now, in percent: 100 if it is well, less while
    /// it ramps up after it was out, 0 while it must not be picked.
    #[must_use]
    pub fn share(&self) -> u8 {
        self.health().share()
    }

    /// Notes that requests find no other backend, which shortens the wait for the next probe.
    pub fn want(&self) {
        self.health().want();
    }

    /// Whether it is suspect, so that others are preferred.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        self.health().is_suspect()
    }

    /// Notes that an exchange with this backend failed after its request was sent. The request may be
    /// the cause, so the backend is not put out; one probe finds out. To be called within an event
    /// loop.
    pub fn verify(self: &Arc<Self>) {
        if self.settings().eject && self.health().verify() {
            self.keep();
        }
    }

    /// Notes that no byte of the backend arrived for `suspect_after` while an exchange awaits its
    /// answer. The backend becomes suspect, and is asked CPING if its protocol has it. To be called
    /// within an event loop.
    pub fn note_silence(self: &Arc<Self>) {
        if !self.is_suspect() && self.settings().eject && self.health().silent() {
            let (upstream, backend) = (self.upstream(), &self.settings().name);
            tracing::debug!(
                upstream,
                backend,
                "backend is suspect: nothing is heard of it"
            );
            self.keep();
        }
    }

    /// Notes a failed dial that began at `began`.
    pub(crate) fn note_failed_dial(self: &Arc<Self>, error: &LeaseError, began: Instant) {
        if !self.settings().eject || error.culprit() != Culprit::Backend {
            return;
        }
        if let LeaseError::DialTimeout { .. } | LeaseError::Ping = error {
            // A burst of clients can fill a backlog or occupy all threads, and a SYN can get lost, so
            // a probe decides.
            return self.verify();
        }
        if self.health().connect_failed(began) {
            self.note_ejection(Cause::Unreachable);
        }
        self.keep();
    }

    /// Starts a keeper if the backend needs one and has none.
    pub(crate) fn keep(self: &Arc<Self>) {
        if self.health().needs_keeper() {
            tokio::spawn(keep(Keeper(Arc::downgrade(self))));
        }
    }

    fn note_ejection(&self, cause: Cause) {
        let closed = self.close_unused();
        let (upstream, backend) = (self.upstream(), &self.settings().name);
        let cause = match cause {
            Cause::Unreachable => "it cannot be connected to",
            Cause::Unwell => "it does not answer CPING",
        };
        tracing::warn!(upstream, backend, closed, "backend is out: {cause}");
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
        // A backend that is configured without CPING may not support it.
        let may_ask = config.ajp.ping_after_idle.is_some() || config.ajp.ping_fresh;
        if config.protocol == Protocol::Http || !may_ask {
            return Outcome::Connected;
        }
        // This one connection is beyond the cap: a backend may be silent because all connections are
        // in use.
        let mut conn = Connection::new(stream, config, None);
        match ping(&mut conn, config).await {
            true => Outcome::Answered,
            false => Outcome::Silent { excused: true },
        }
    }

    /// Notes the outcome of a probe. Silence does not put a backend out that is alone in its
    /// upstream.
    fn conclude(&self, outcome: Outcome) -> Outcome {
        let group = self.group();
        let _deciding = group.as_ref().map(|group| group.decide());
        let outcome = match outcome {
            Outcome::Silent { .. } => Outcome::Silent {
                excused: group
                    .as_ref()
                    .is_none_or(|it| it.excuses(self, self.is_saturated())),
            },
            other => other,
        };
        self.health().probed(outcome);
        outcome
    }

    /// Logs what a probe changed. `told` is whether it was logged that the backend is suspect;
    /// returns whether it is logged now.
    fn tell(&self, before: Standing, outcome: Outcome, told: bool) -> bool {
        let (upstream, backend) = (self.upstream(), &self.settings().name);
        match (before, self.health().standing()) {
            (Standing::Out(_), Standing::Out(_)) => {}
            (_, Standing::Out(cause)) => self.note_ejection(cause),
            (Standing::Out(_), Standing::Up(_)) => {
                tracing::info!(upstream, backend, "backend is back");
            }
            (_, Standing::Suspect) if told => return true,
            (_, Standing::Suspect) if outcome == Outcome::Connected => {
                tracing::info!(
                    upstream,
                    backend,
                    "backend is suspect: a request awaits its answer and nothing is heard; others \
                     are preferred"
                );
                return true;
            }
            (_, Standing::Suspect) => {
                tracing::warn!(
                    upstream,
                    backend,
                    "backend is suspect: it does not answer CPING; others are preferred. It is not \
                     out, since its requests fill `connections_max` or `unwell_max` would be exceeded"
                );
                return true;
            }
            (_, Standing::Up(_)) if told => {
                tracing::info!(upstream, backend, "backend is not suspect any more");
            }
            (_, Standing::Up(_)) => tracing::debug!(upstream, backend, ?outcome, "probed"),
        }
        false
    }
}

/// Marks the backend as kept until the value is dropped, so that another keeper can start if this
/// task is cancelled.
struct Keeper(Weak<Backend>);

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(backend) = self.0.upgrade() {
            backend.health().resign();
        }
    }
}

async fn keep(mut keeper: Keeper) {
    let mut told = false;
    loop {
        let Some(backend) = keeper.0.upgrade() else {
            return;
        };
        match backend.health().next(backend.in_flight() > 0) {
            Task::Wait(time) => {
                drop(backend);
                sleep(time).await;
            }
            Task::Probe => {
                let before = backend.health().standing();
                let outcome = backend.probe().await;
                let outcome = backend.conclude(outcome);
                told = backend.tell(before, outcome, told);
            }
            Task::Rest => {
                // Released already. There may be another keeper by now, which must stay.
                keeper.0 = Weak::new();
                if told {
                    let (upstream, backend) = (backend.upstream(), &backend.settings().name);
                    tracing::info!(upstream, backend, "backend is not suspect any more");
                }
                return;
            }
        }
    }
}
