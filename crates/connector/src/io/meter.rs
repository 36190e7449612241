//! Counts a connection in the gauges of the status view by its `Conn`'s actions, and measures the
//! duration of requests.
//!
//! Only here do drivers change the gauges of the status view. An exchange that never waits changes
//! them twice, which costs four relaxed adds.

use std::sync::Arc;
use std::time::Instant;

use super::now;
use crate::conn::{Action, WaitClass};
use crate::counters::{Counters, Stage};

/// A connection's share of the gauges, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Meter {
    counters: Arc<Counters>,
    stage: Stage,
    /// Whether to measure the duration of requests.
    timed: bool,
    /// When the request under way began; `None` if there is none.
    began: Option<Instant>,
}

impl Meter {
    /// Counts a connection that was just accepted. With `timed`, the duration of its requests is measured.
    pub(super) fn new(counters: Arc<Counters>, timed: bool) -> Self {
        let stage = Stage::Accepting;
        counters.enter(stage);
        Self {
            counters,
            stage,
            timed,
            began: None,
        }
    }

    pub(super) fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Updates the gauges for the action that a connection returned.
    pub(super) fn see(&mut self, action: &Action) {
        let stage = match action {
            Action::Read(WaitClass::FirstByte) => Stage::Accepting,
            Action::Read(WaitClass::NextRequest) => Stage::KeepAlive,
            Action::Read(_) => Stage::Reading,
            Action::Write | Action::Close(_) | Action::Park { write: true, .. } => Stage::Writing,
            Action::Serve(_) | Action::Wait(_) | Action::Park { .. } => Stage::Serving,
        };
        if stage != self.stage {
            self.counters.leave(self.stage);
            self.counters.enter(stage);
            self.stage = stage;
        }
        if self.timed {
            self.keep_time(action);
        }
    }

    /// Measures from the action that serves a request to the first one that shows that the exchange is over.
    fn keep_time(&mut self, action: &Action) {
        let ends_exchange = matches!(
            action,
            Action::Read(WaitClass::FirstByte | WaitClass::NextRequest | WaitClass::Head)
                | Action::Serve(_)
                | Action::Close(_)
        );
        if ends_exchange && let Some(began) = self.began.take() {
            self.counters
                .answered(now().saturating_duration_since(began));
        }
        if matches!(action, Action::Serve(_)) {
            self.began = Some(now());
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.counters.leave(self.stage);
    }
}
