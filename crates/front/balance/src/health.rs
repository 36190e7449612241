//! Decides whether a backend may be picked: a state machine that is fed with outcomes and the time.
//!
//! Only failures that no client can cause put a backend out: if it cannot be connected to, it is
//! *unreachable*; if it does not answer CPING, *unwell*. Silence is the weaker sign, because a container
//! whose threads are all busy is silent, too: then it is [excused](excuses).
//!
//! If the configuration says so, a run of responses 5xx puts a backend out, too ([`Health::erring`]): it
//! is *erring*. A client can cause that, so it is off by default.
//!
//! A backend that is [watched](Watch) is also probed while it is up. It is *failing* when its probes are
//! answered wrongly or not at all, and comes back when several in a row were answered.
//!
//! An exchange that fails after its request was sent may have failed because of the request, so one probe
//! verifies the backend. A backend that sends nothing while an exchange awaits its answer is *suspect*:
//! others are preferred until a byte arrives. A keeper makes the probes, of which each backend has at most
//! one; this module tells it what to do next.
//!
//! ```text
//!          an exchange failed              unreachable, or silent
//!      Up ────────────────────► Verifying ───────────────────────┐
//!      ▲ ◄───────────────────── answered                         │
//!      │                                                         ▼
//!      │   no byte heard                   unreachable, silent   │
//!      ├────────────────────► Suspect ──────────────────────► Ejected ──► Probing
//!      │ ◄─────────────────── a byte, an answer                  ▲  due      │
//!      │                                                         ├───────────┤ neither
//!      └──────────────────────── answered ───────────────────────┴───────────┘
//! ```
//!
//! Not drawn: a failed dial ejects in every state, and silence that is excused leads to Suspect.

use std::time::Duration;

/// A point in time, as the time since a moment that the caller chose; it must never decrease.
pub type Moment = Duration;

/// The health of one backend: its state, and what decides the next one.
#[derive(Clone, Debug, Default)]
pub struct Health {
    state: State,
    /// The shortest time for which the last ejection keeps the backend out.
    back_off: Duration,
    /// When the backend last came back from an ejection.
    returned: Option<Moment>,
    /// When the last probe ended.
    probed: Option<Moment>,
    /// When the last probe ended that was not a regular one, but made because of a failure or silence.
    verified: Option<Moment>,
    /// Whether the probe under way is a regular one, begun while the backend was up.
    scheduled: bool,
    /// Whether the backend has a keeper.
    kept: bool,
    /// Why the backend is out; meaningless while it is not.
    cause: Cause,
    /// Since when the backend is out; meaningless while it is not.
    out_since: Moment,
    /// How the backend is probed while it is up; `None` if it is not probed.
    watch: Option<Watch>,
    /// When the next probe of a backend that is up is due.
    due: Option<Moment>,
    /// How many probes in a row failed while the backend was up.
    failed: u32,
    /// How many probes in a row were answered while the backend was out.
    passed: u32,
}

/// The rules by which a backend is probed while it is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// The time until the next regular probe.
    pub interval: Duration,
    /// The number of answered probes in a row that brings a backend back.
    pub up: u32,
    /// The number of failed probes in a row that puts a backend out.
    pub down: u32,
}

/// A backend's condition for operators: whether it may be picked, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The backend may be picked.
    Up,
    /// The backend may be picked; a probe finds out whether it is well.
    Verifying,
    /// The backend is picked only where no other can be.
    Suspect,
    /// The backend is not picked.
    Out {
        /// Why the backend is out.
        cause: Cause,
        /// When the backend was put out.
        since: Moment,
        /// When the next probe begins at the latest; `None` if one is under way.
        next_probe: Option<Moment>,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The backend may be picked, and no probe is needed.
    #[default]
    Up,
    /// The backend may be picked; a probe finds out whether it is well.
    Verifying,
    /// The backend may be picked where no other can. `mute`: it cannot be asked CPING; `idle`: since when
    /// it has had no exchanges.
    Suspect { mute: bool, idle: Option<Moment> },
    /// The backend must not be picked. It is not probed before `until`, unless requests find no other.
    Ejected { since: Moment, until: Moment },
    /// The backend must not be picked; a probe is under way.
    Probing,
}

/// Whether a backend may be picked: fully, only as a last resort, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The backend may be picked. It came back at that moment from its last ejection, if it had any.
    Up(Option<Moment>),
    /// The backend may be picked where no other can, because it is silent or unwell.
    Suspect,
    /// The backend must not be picked.
    Out(Cause),
}

/// The cause for which a backend is out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// The backend cannot be connected to.
    #[default]
    Unreachable,
    /// The backend accepts connections, but does not answer CPING.
    Unwell,
    /// The backend accepts connections, but its probes are answered wrongly or not in time.
    Failing,
    /// The backend answered one request after the other with a status 5xx.
    Erring,
}

impl Cause {
    /// The cause as a token, for logs and counters.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Unwell => "unwell",
            Self::Failing => "failing",
            Self::Erring => "erring",
        }
    }

    /// Whether a backend that is out for this cause serves nevertheless if too many others are out.
    #[must_use]
    pub fn is_pardonable(self) -> bool {
        self != Self::Unreachable
    }
}

/// The next task of a backend's keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Probe the backend, and report the outcome to [`Health::probed`].
    Probe,
    /// Ask for the next task after this time.
    Wait(Duration),
    /// Stop: the backend is up, and no longer needs a keeper.
    Rest,
}

/// The outcome of a probe, as the keeper reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The backend answered CPING, or gave a good response.
    Answered,
    /// The backend accepted a connection, and there was no question to ask. The kernel also accepts
    /// connections for a process that is stopped.
    Connected,
    /// The backend accepted a connection, but did not answer CPING.
    Silent {
        /// Whether this silence must not put the backend out: see [`excuses`].
        excused: bool,
    },
    /// The backend accepted a connection, but its response was wrong or did not come in time.
    Wrong {
        /// Whether this response must not put the backend out: see [`excuses`].
        excused: bool,
    },
    /// The backend could not be connected to.
    Failed,
    /// The front could not make the probe, for example because of too many open files. This says nothing
    /// about the backend.
    NotMade,
}

impl Health {
    /// Whether the backend may be picked.
    #[must_use]
    pub fn standing(&self) -> Standing {
        match self.state {
            State::Up | State::Verifying => Standing::Up(self.returned),
            State::Suspect { .. } => Standing::Suspect,
            State::Ejected { .. } | State::Probing => Standing::Out(self.cause),
        }
    }

    /// Sets how the backend is probed while it is up; `None`: it is not. Each interval is used once, so
    /// that it can vary.
    pub fn watch(&mut self, watch: Option<Watch>) {
        self.watch = watch;
    }

    /// Whether the backend is probed while it is up.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// The backend's condition, for operators.
    #[must_use]
    pub fn condition(&self) -> Condition {
        match self.state {
            State::Up => Condition::Up,
            State::Verifying => Condition::Verifying,
            State::Suspect { .. } => Condition::Suspect,
            State::Ejected { until, .. } => Condition::Out {
                cause: self.cause,
                since: self.out_since,
                next_probe: Some(until),
            },
            State::Probing => Condition::Out {
                cause: self.cause,
                since: self.out_since,
                next_probe: None,
            },
        }
    }

    /// Reports that a connection could not be opened that was begun at `began`. Puts the backend out at
    /// once; `true` if it was not out before.
    ///
    /// A dial that began before the backend's return is ignored: it may time out because the backend was
    /// away when it began.
    pub fn connect_failed(&mut self, began: Moment, now: Moment) -> bool {
        if self.returned.is_some_and(|returned| began < returned) {
            return false;
        }
        match self.state {
            State::Up | State::Verifying | State::Suspect { .. } => {
                self.eject(now, Cause::Unreachable);
                true
            }
            State::Ejected { .. } | State::Probing => false,
        }
    }

    /// Reports an exchange that failed in a way that may or may not be the backend's fault. A probe
    /// verifies the backend, at most once in [`PROBE_PERIOD`]; `true` if a probe must be made now.
    /// Scheduled probes do not count, because they began before the failure.
    pub fn verify(&mut self, now: Moment) -> bool {
        let is_recent = |verified: Moment| now < verified + PROBE_PERIOD;
        if self.state != State::Up || self.verified.is_some_and(is_recent) {
            return false;
        }
        self.state = State::Verifying;
        true
    }

    /// Reports that no byte arrived on any connection for too long while an exchange awaits its answer.
    /// `true` if the backend becomes suspect by this.
    pub fn silent(&mut self) -> bool {
        let suspected = matches!(self.state, State::Up | State::Verifying);
        if suspected {
            self.state = SUSPECT;
        }
        suspected
    }

    /// Puts the backend out because it answered a run of requests with a status 5xx while others answered
    /// well; `true` if it was not out before.
    pub fn erring(&mut self, now: Moment) -> bool {
        match self.state {
            State::Up | State::Verifying | State::Suspect { .. } => {
                self.eject(now, Cause::Erring);
                true
            }
            State::Ejected { .. } | State::Probing => false,
        }
    }

    /// Reports that a byte arrived from a backend that may be suspect; `true` if it was suspect, and no
    /// longer is.
    pub fn heard(&mut self) -> bool {
        let suspected = matches!(self.state, State::Suspect { .. });
        if suspected {
            self.state = State::Up;
        }
        suspected
    }

    /// Whether the caller must become the keeper, which does what [`Self::next`] returns. `true` only
    /// while there is no keeper; the caller stays it until [`Task::Rest`] or [`Self::resign`].
    pub fn needs_keeper(&mut self) -> bool {
        let has_work = self.state != State::Up || self.watch.is_some();
        let is_needed = has_work && !self.kept;
        self.kept |= is_needed;
        is_needed
    }

    /// The keeper's next task. `wanted`: requests find no other backend, which shortens the back-off to
    /// [`PROBE_PERIOD`]. `in_use`: the backend has exchanges in flight.
    pub fn next(&mut self, now: Moment, wanted: bool, in_use: bool) -> Task {
        self.scheduled = self.state == State::Up;
        match self.state {
            State::Up => self.watch_on(now),
            State::Verifying | State::Probing => Task::Probe,
            State::Suspect { mute: false, .. } => self.ask_again(now),
            State::Suspect { idle, .. } => self.wait_for_idleness(now, idle, in_use),
            State::Ejected { since, until } => {
                let soonest = until.min(since + PROBE_PERIOD);
                let by_ejection = if wanted { soonest } else { until };
                let due = match self.probed {
                    Some(probed) => by_ejection.max(probed + PROBE_PERIOD),
                    None => by_ejection,
                };
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

    /// Reports the outcome of a probe that an operator asked for. It counts like one of the keeper, which
    /// may have another under way.
    pub fn probed_for_operator(&mut self, now: Moment, outcome: Outcome) {
        let scheduled = std::mem::take(&mut self.scheduled);
        if let State::Ejected { .. } = self.state {
            // The state in which `probed` expects a backend that is out.
            self.state = State::Probing;
        }
        self.probed(now, outcome);
        self.scheduled = scheduled;
    }

    /// Reports the outcome of a probe by the keeper.
    pub fn probed(&mut self, now: Moment, outcome: Outcome) {
        use Outcome::{Answered, Connected, Failed, NotMade, Silent, Wrong};
        let scheduled = std::mem::take(&mut self.scheduled);
        self.probed = Some(now);
        if !scheduled {
            self.verified = Some(now);
        }
        self.due = None;
        if let Answered | Connected = outcome {
            self.failed = 0;
        }
        match self.state {
            State::Up => match outcome {
                Silent { excused } => self.fail(now, Cause::Unwell, excused),
                Wrong { excused } => self.fail(now, Cause::Failing, excused),
                Failed if self.watch.is_some() => self.eject(now, Cause::Unreachable),
                Answered | Connected | NotMade | Failed => {}
            },
            State::Verifying => match outcome {
                Answered | Connected | NotMade => self.state = State::Up,
                Silent { excused: true } => self.state = SUSPECT,
                Silent { excused: false } => self.eject(now, Cause::Unwell),
                Wrong { excused } => self.fail(now, Cause::Failing, excused),
                Failed => self.eject(now, Cause::Unreachable),
            },
            State::Suspect { .. } => match outcome {
                Answered => self.state = State::Up,
                // A regular probe that began before the silence was noted, and asked nothing, proves nothing.
                Connected if scheduled => {}
                // An opened connection does not prove that the backend answers.
                Connected => self.state = MUTE_SUSPECT,
                NotMade | Silent { excused: true } => {}
                Silent { excused: false } => self.eject(now, Cause::Unwell),
                Wrong { excused } => self.fail(now, Cause::Failing, excused),
                Failed => self.eject(now, Cause::Unreachable),
            },
            State::Probing => self.probed_while_out(now, outcome),
            // The backend was put out while the probe was under way, for the time that this ejection takes.
            State::Ejected { .. } => {}
        }
    }

    /// Takes the outcome of a probe of a backend that is out.
    fn probed_while_out(&mut self, now: Moment, outcome: Outcome) {
        use Outcome::{Answered, Connected, Failed, NotMade, Silent, Wrong};
        match outcome {
            Answered | Connected => return self.pass(now),
            // Too many other backends have gone out since the probe began.
            Silent { excused: true } | Wrong { excused: true } if self.cause.is_pardonable() => {
                self.state = SUSPECT;
                return;
            }
            Failed => self.cause = Cause::Unreachable,
            Wrong { .. } => self.cause = Cause::Failing,
            NotMade | Silent { .. } => {}
        }
        self.passed = 0;
        self.state = State::Ejected {
            since: now,
            until: now + PROBE_PERIOD,
        };
    }

    /// Reports that the keeper stops with its work unfinished, such as when its thread ends. Another
    /// caller may become the keeper.
    pub fn resign(&mut self) {
        self.kept = false;
    }

    /// The next task of the keeper of a backend that is up.
    fn watch_on(&mut self, now: Moment) -> Task {
        let Some(watch) = self.watch else {
            self.kept = false;
            self.due = None;
            return Task::Rest;
        };
        let due = *self.due.get_or_insert(now + watch.interval);
        match due.saturating_sub(now) {
            Duration::ZERO => Task::Probe,
            left => Task::Wait(left.min(PROBE_PERIOD)),
        }
    }

    /// Counts a failed probe of a backend that is not out. Several in a row put it out.
    fn fail(&mut self, now: Moment, cause: Cause, excused: bool) {
        self.failed = self.failed.saturating_add(1);
        let is_enough = self.failed >= self.watch.map_or(1, |watch| watch.down);
        if is_enough && !excused {
            return self.eject(now, cause);
        }
        match self.state {
            State::Up | State::Verifying if is_enough => self.state = SUSPECT,
            State::Verifying => self.state = State::Up,
            // A suspect backend stays so.
            _ => {}
        }
    }

    /// Counts an answered probe of a backend that is out. Several in a row bring it back.
    fn pass(&mut self, now: Moment) {
        self.passed += 1;
        if self.passed >= self.watch.map_or(1, |watch| watch.up) {
            return self.come_back(now);
        }
        self.state = State::Ejected {
            since: now,
            until: now + PROBE_PERIOD,
        };
    }

    /// The keeper's task for a suspect backend that can be asked CPING: ask until it answers; at once, if
    /// only scheduled probes came before.
    fn ask_again(&self, now: Moment) -> Task {
        let due = self
            .verified
            .map_or(now, |verified| verified + PROBE_PERIOD);
        match due.saturating_sub(now) {
            Duration::ZERO => Task::Probe,
            left => Task::Wait(left),
        }
    }

    /// The keeper's task for a suspect backend that cannot be asked. Only an exchange can clear it, so it
    /// comes back slowly when it has had none for the time of the back-off.
    fn wait_for_idleness(&mut self, now: Moment, idle: Option<Moment>, in_use: bool) -> Task {
        if in_use {
            self.state = MUTE_SUSPECT;
            return Task::Wait(PROBE_PERIOD);
        }
        let idle_since = idle.unwrap_or(now);
        self.state = State::Suspect {
            mute: true,
            idle: Some(idle_since),
        };
        let back_off = self.next_back_off(now);
        if now < idle_since + back_off {
            return Task::Wait(PROBE_PERIOD);
        }
        self.back_off = back_off;
        self.come_back(now);
        self.kept = false;
        Task::Rest
    }

    fn come_back(&mut self, now: Moment) {
        self.state = State::Up;
        self.returned = Some(now);
    }

    /// The shortest duration of an ejection that begins now.
    fn next_back_off(&self, now: Moment) -> Duration {
        match self.returned {
            // It was out a short time ago.
            Some(returned) if now < returned + FLAP_WINDOW => {
                (self.back_off * 2).clamp(BACK_OFF_MIN, BACK_OFF_MAX)
            }
            _ => BACK_OFF_MIN,
        }
    }

    fn eject(&mut self, now: Moment, cause: Cause) {
        self.back_off = self.next_back_off(now);
        self.cause = cause;
        self.out_since = now;
        (self.failed, self.passed) = (0, 0);
        self.state = State::Ejected {
            since: now,
            until: now + self.back_off,
        };
    }
}

/// The percentage of its weight, from 10 to 100, that a backend gets `age` after its return: it grows in
/// proportion to the time until `slow_start` is over.
#[must_use]
pub fn share(age: Duration, slow_start: Duration) -> u8 {
    if age >= slow_start {
        return SHARE_FULL;
    }
    let grown = age.as_millis() * u128::from(SHARE_FULL) / slow_start.as_millis().max(1);
    let percent = u8::try_from(grown).unwrap_or(SHARE_FULL);
    percent.clamp(SHARE_MIN, SHARE_FULL)
}

/// Whether a backend that does not answer CPING must not be put out because of that. A container whose
/// threads are all busy answers no CPING on a new connection, nor does one behind a network that is slow
/// for all.
///
/// `saturated`: its exchanges use all connections that it may have. `out` is the weight of the upstream's
/// backends that would be out with this one, of `total`; no more than `unwell_max` percent may be out.
#[must_use]
pub fn excuses(saturated: bool, (out, total): (u64, u64), unwell_max: u8) -> bool {
    saturated || out * 100 > total * u64::from(unwell_max)
}

/// The state of a backend that has just become suspect.
const SUSPECT: State = State::Suspect {
    mute: false,
    idle: None,
};

/// The state of a suspect backend that cannot be asked CPING, and has exchanges.
const MUTE_SUSPECT: State = State::Suspect {
    mute: true,
    idle: None,
};

/// The shortest time between two probes of one backend, and between two verifications.
pub const PROBE_PERIOD: Duration = Duration::from_secs(1);

/// The shortest duration of an ejection.
pub const BACK_OFF_MIN: Duration = Duration::from_secs(1);

/// The longest time that an ejection lasts before the first probe.
pub const BACK_OFF_MAX: Duration = Duration::from_secs(30);

/// A backend that is put out within this time after its return stays out for twice as long as before.
pub const FLAP_WINDOW: Duration = Duration::from_secs(60);

/// The share, in percent, of a backend that is not ramping up.
pub const SHARE_FULL: u8 = 100;

/// The smallest share, in percent: enough to warm up with, little enough to do no harm.
const SHARE_MIN: u8 = 10;

#[cfg(test)]
mod tests;
