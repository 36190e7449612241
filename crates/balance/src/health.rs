//! Whether a backend is fit to be picked: a state machine fed with outcomes and the time.
//!
//! Only failures that no client can cause put a backend out: a connection that cannot be opened, a
//! CPING without an answer. Anything that goes wrong after a request was sent may be that request's
//! doing, so it merely makes the backend [suspect](Health::suspect): one probe finds out. Probing
//! itself is the work of a keeper, of which each backend has at most one; this module tells it what
//! to do next.
//!
//! ```text
//!            suspect                    probe failed
//!      Up ───────────► Verifying ─────────────────────┐
//!      ▲ ◄──────────── probe answered                 ▼
//!      │   (Up or Verifying) connection failed ──► Ejected ──► Probing
//!      │                                              ▲  due      │ failed
//!      └──────────────── answered ────────────────────┴───────────┘
//! ```

use std::time::Duration;

/// A moment, as the time since one that the caller chose; it only has to grow.
pub type Moment = Duration;

/// The health of one backend.
#[derive(Clone, Debug, Default)]
pub struct Health {
    state: State,
    /// How long the last ejection lasted at least.
    back_off: Duration,
    /// When the backend last came back from an ejection.
    returned: Option<Moment>,
    /// When the last probe ended.
    probed: Option<Moment>,
    /// Whether a keeper looks after the backend.
    kept: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// May be picked.
    #[default]
    Up,
    /// May be picked; a probe finds out whether it should.
    Verifying,
    /// Must not be picked. It is not probed before `until`.
    Ejected { since: Moment, until: Moment },
    /// Must not be picked; a probe is under way.
    Probing,
}

/// Whether a backend may be picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Yes. It came back from an ejection at that moment, if it ever was ejected.
    Up(Option<Moment>),
    /// No.
    Out,
}

/// What a backend's keeper has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Probe the backend, and tell the outcome by [`Health::probed`].
    Probe,
    /// Ask again after this time.
    Wait(Duration),
    /// Stop: the backend is up. It has no keeper any more.
    Rest,
}

/// How a probe ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The backend answered.
    Answered,
    /// It did not.
    Failed,
    /// The probe could not be made for reasons of our own, such as too many open files. It says
    /// nothing about the backend.
    NotMade,
}

impl Health {
    /// Whether the backend may be picked.
    #[must_use]
    pub fn standing(&self) -> Standing {
        match self.state {
            State::Up | State::Verifying => Standing::Up(self.returned),
            State::Ejected { .. } | State::Probing => Standing::Out,
        }
    }

    /// A connection that was begun at `began` could not be opened, or a fresh one did not answer
    /// CPING. Puts the backend out at once; `true` if it was not before.
    ///
    /// News from before the backend's return is no news: a dial that times out may have begun while
    /// the backend was away.
    pub fn connect_failed(&mut self, began: Moment, now: Moment) -> bool {
        if self.returned.is_some_and(|returned| began < returned) {
            return false;
        }
        match self.state {
            State::Up | State::Verifying => {
                self.eject(now);
                true
            }
            State::Ejected { .. } | State::Probing => false,
        }
    }

    /// An exchange failed in a way that may or may not be the backend's fault. It is verified by a
    /// probe, at most once in [`PROBE_PERIOD`]; `true` if a probe is to be made now.
    pub fn suspect(&mut self, now: Moment) -> bool {
        let lately = self
            .probed
            .is_some_and(|probed| now < probed + PROBE_PERIOD);
        if self.state != State::Up || lately {
            return false;
        }
        self.state = State::Verifying;
        true
    }

    /// Whether somebody must begin to do what [`Self::next`] says. `true` is said once; whoever
    /// hears it is the keeper, until it is told to rest or [resigns](Self::resign).
    pub fn needs_keeper(&mut self) -> bool {
        let needed = self.state != State::Up && !self.kept;
        self.kept |= needed;
        needed
    }

    /// What the keeper has to do. `wanted` says that requests find no other backend; then the
    /// back-off is cut short to [`PROBE_PERIOD`].
    pub fn next(&mut self, now: Moment, wanted: bool) -> Task {
        match self.state {
            State::Up => {
                self.kept = false;
                Task::Rest
            }
            State::Verifying | State::Probing => Task::Probe,
            State::Ejected { since, until } => {
                let soonest = until.min(since + PROBE_PERIOD);
                let due = if wanted { soonest } else { until };
                let due = due.max(self.probed.map_or(due, |probed| probed + PROBE_PERIOD));
                match due.saturating_sub(now) {
                    Duration::ZERO => {
                        self.state = State::Probing;
                        Task::Probe
                    }
                    // Asking again after a period lets `wanted` be noticed.
                    left => Task::Wait(left.min(PROBE_PERIOD)),
                }
            }
        }
    }

    /// A probe ended.
    pub fn probed(&mut self, now: Moment, outcome: Outcome) {
        self.probed = Some(now);
        match (self.state, outcome) {
            (State::Verifying, Outcome::Answered | Outcome::NotMade) => self.state = State::Up,
            (State::Verifying, Outcome::Failed) => self.eject(now),
            (State::Probing, Outcome::Answered) => {
                self.state = State::Up;
                self.returned = Some(now);
            }
            (State::Probing, Outcome::Failed | Outcome::NotMade) => {
                self.state = State::Ejected {
                    since: now,
                    until: now + PROBE_PERIOD,
                };
            }
            // Put out by others while it was being verified: that takes its time.
            (State::Ejected { .. } | State::Up, _) => {}
        }
    }

    /// The keeper gives up its work unfinished, such as when its thread ends. Somebody else may
    /// become the keeper.
    pub fn resign(&mut self) {
        self.kept = false;
    }

    fn eject(&mut self, now: Moment) {
        let flaps = self
            .returned
            .is_some_and(|returned| now < returned + FLAP_WINDOW);
        self.back_off = if flaps {
            (self.back_off * 2).clamp(BACK_OFF_MIN, BACK_OFF_MAX)
        } else {
            BACK_OFF_MIN
        };
        self.state = State::Ejected {
            since: now,
            until: now + self.back_off,
        };
    }
}

/// The share of its weight, in percent from 10 to 100, that a backend gets `age` after its return:
/// it grows in proportion to the time until `slow_start` is over.
#[must_use]
pub fn share(age: Duration, slow_start: Duration) -> u8 {
    if age >= slow_start {
        return SHARE_FULL;
    }
    let percent = age.as_millis() * u128::from(SHARE_FULL) / slow_start.as_millis().max(1);
    let percent = u8::try_from(percent).unwrap_or(SHARE_FULL);
    percent.clamp(SHARE_MIN, SHARE_FULL)
}

/// Between two probes of one backend; also between two verifications.
pub const PROBE_PERIOD: Duration = Duration::from_secs(1);

/// How long an ejection lasts at least.
pub const BACK_OFF_MIN: Duration = Duration::from_secs(1);

/// How long an ejection lasts at most, before the first probe.
pub const BACK_OFF_MAX: Duration = Duration::from_secs(30);

/// A backend that is put out so soon after its return stays out for twice as long as before.
pub const FLAP_WINDOW: Duration = Duration::from_secs(60);

/// A backend that is not ramping up.
pub const SHARE_FULL: u8 = 100;

/// Enough to warm up with, little enough to do no harm.
const SHARE_MIN: u8 = 10;

#[cfg(test)]
mod tests;
