//! Decides whether another backend may serve an exchange whose backend was put out. Only then is the exchange given up:
//! one that cannot be repeated goes on waiting.

use http::Method;

use crate::exchange::progress::Progress;
use crate::exchange::retry::{self, Attempt, Retry, Stage};
use crate::site::Upstream;

/// The facts that decide whether another backend of the upstream may serve an exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OtherBackends<'a> {
    pub(crate) upstream: &'a Upstream,
    /// The indexes of the backends that were tried before the present one.
    pub(crate) tried: &'a [usize],
    pub(crate) method: &'a Method,
    pub(crate) attempts_left: u32,
    /// The index of the present backend.
    pub(crate) present: usize,
    /// Whether the request's session must not move to another backend.
    pub(crate) held: bool,
}

impl OtherBackends<'_> {
    /// Whether the request may be sent to another backend, and the retry budget allows it. The present backend is
    /// out, and no byte of a response has arrived.
    pub(crate) fn may_serve(&self, progress: &Progress) -> bool {
        self.may_repeat(progress, Stage::Sent)
    }

    /// Whether the request may be sent to another backend, and the retry budget allows it, after the present one
    /// answered with a status of `retry_status`.
    pub(crate) fn may_decline(&self, progress: &Progress) -> bool {
        progress.status.is_none() && self.may_repeat(progress, Stage::Declined)
    }

    /// Whether the request may be sent again after an attempt that reached this stage and was then given up.
    fn may_repeat(&self, progress: &Progress, stage: Stage) -> bool {
        let tried = [self.tried, &[self.present]].concat();
        let decision = retry::decide(&Attempt {
            stage,
            repeatable: self.upstream.repeats(self.method),
            replayable: progress.replay.has_all(progress.received),
            disconnected: false,
            given_up: true,
            dial_timed_out: false,
            reused: false,
            attempts_left: self.attempts_left,
            others: !self.held && self.upstream.has_others(&tried),
            blameless: false,
        });
        decision == Retry::Other && self.upstream.retry_budget.has_retry()
    }
}
