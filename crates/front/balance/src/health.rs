//! Whether a backend is fit to be picked: a state machine fed with outcomes and the time.
//!
//! Only failures that no client can cause put a backend out: a connection that cannot be opened
//! makes it *unreachable*, a CPING without an answer *unwell*. Silence is the weaker sign, because a
//! container whose threads are all busy is silent, too: it is [excused](excuses) there.
//!
//! Where that is wanted, a run of responses 5xx puts a backend out, too ([`Health::erring`]): it is
//! *erring*. That can be a client's doing, so it is asked for by name.
//!
//! A backend that is [watched](Watch) is probed while it is up, too. It is *failing* when its probes
//! are answered wrongly or not at all, and comes back when several in a row were answered.
//!
//! An exchange that fails after its request was sent may have failed by that request's doing, so one
//! probe verifies the backend. A backend of which nothing is heard while an exchange awaits its
//! answer is *suspect*: others are preferred until a byte arrives. Probing itself is the work of a
//! keeper, of which each backend has at most one; this module tells it what to do next.
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

/// A moment, as the time since one that the caller chose; it only has to grow.
pub type Moment = Duration;

/// The health of one backend.
#[derive(Clone, Debug, Default)]
pub struct Health {
    state: State,
    /// The minimum duration of the last ejection.
    back_off: Duration,
    /// When the backend last came back from an ejection.
    returned: Option<Moment>,
    /// When the last probe ended.
    probed: Option<Moment>,
    /// When the last probe ended that was made because something was amiss.
    verified: Option<Moment>,
    /// Whether the probe under way is a regular one, begun while the backend was up.
    scheduled: bool,
    /// Whether a keeper looks after the backend.
    kept: bool,
    /// Why the backend is out, if it is.
    cause: Cause,
    /// Since when it is out, if it is.
    out_since: Moment,
    /// How the backend is probed while it is up; `None`: it is not.
    watch: Option<Watch>,
    /// When the next probe of a backend that is up is due.
    due: Option<Moment>,
    /// Probes in a row that failed while it was up.
    failed: u32,
    /// Probes in a row that were answered while it was out.
    passed: u32,
}

/// How a backend is probed while it is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// The time until the next probe.
    pub interval: Duration,
    /// The number of answered probes in a row that brings a backend back.
    pub up: u32,
    /// The number of failed probes in a row that puts a backend out.
    pub down: u32,
}

/// A backend's condition for operators: whether it may be picked, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It may be picked.
    Up,
    /// It may be picked; a probe finds out whether it should.
    Verifying,
    /// It is picked where no other can be.
    Suspect,
    /// It is not picked.
    Out {
        /// Why.
        cause: Cause,
        /// Since when.
        since: Moment,
        /// When the next probe begins at the latest; `None` if one is under way.
        next_probe: Option<Moment>,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// May be picked.
    #[default]
    Up,
    /// May be picked; a probe finds out whether it should.
    Verifying,
    /// May be picked where no other can. It is `mute` if it cannot be asked CPING; it has had no
    /// exchanges from `idle` on.
    Suspect { mute: bool, idle: Option<Moment> },
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
    /// Where no other can: nothing is heard of it.
    Suspect,
    /// No.
    Out(Cause),
}

/// Why a backend is out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// It cannot be connected to.
    #[default]
    Unreachable,
    /// It can be connected to and does not answer CPING.
    Unwell,
    /// It can be connected to, and its probes are answered wrongly or not in time.
    Failing,
    /// It answers, and one request after the other with a status 5xx.
    Erring,
}

impl Cause {
    /// The cause in one word, for logs and counters.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Unwell => "unwell",
            Self::Failing => "failing",
            Self::Erring => "erring",
        }
    }

    /// Whether so many other backends may be out that this one serves all the same.
    #[must_use]
    pub fn is_pardonable(self) -> bool {
        self != Self::Unreachable
    }
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
    /// The backend answered CPING.
    Answered,
    /// It was connected to; there was nothing to ask it. The kernel accepts connections for a
    /// process that is stopped, too.
    Connected,
    /// It was connected to and did not answer CPING.
    Silent {
        /// Its silence must not put it out: see [`excuses`].
        excused: bool,
    },
    /// It was connected to, and the answer to a request was wrong or did not come in time.
    Wrong {
        /// It must not put the backend out: see [`excuses`].
        excused: bool,
    },
    /// It could not be connected to.
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
            State::Suspect { .. } => Standing::Suspect,
            State::Ejected { .. } | State::Probing => Standing::Out(self.cause),
        }
    }

    /// Sets how it is probed while it is up. Each interval is used once, so that it can vary.
    pub fn watch(&mut self, watch: Option<Watch>) {
        self.watch = watch;
    }

    /// Whether it is probed while it is up.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// The backend's condition.
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

    /// A connection that was begun at `began` could not be opened. Puts the backend out at once;
    /// `true` if it was not before.
    ///
    /// News from before the backend's return is no news: a dial that times out may have begun while
    /// the backend was away.
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

    /// An exchange failed in a way that may or may not be the backend's fault. It is verified by a
    /// probe, at most once in [`PROBE_PERIOD`]; `true` if a probe is to be made now. Scheduled probes
    /// do not count: they say nothing of what was found since.
    pub fn verify(&mut self, now: Moment) -> bool {
        let lately = self
            .verified
            .is_some_and(|verified| now < verified + PROBE_PERIOD);
        if self.state != State::Up || lately {
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

    /// A byte was heard of a backend that may be suspect; `true` if it was.
    pub fn heard(&mut self) -> bool {
        let suspected = matches!(self.state, State::Suspect { .. });
        if suspected {
            self.state = State::Up;
        }
        suspected
    }

    /// Whether the caller must become the keeper, which does what [`Self::next`] says. `true` only while
    /// there is no keeper; the caller is it until it is told to rest or [resigns](Self::resign).
    pub fn needs_keeper(&mut self) -> bool {
        let needed = (self.state != State::Up || self.watch.is_some()) && !self.kept;
        self.kept |= needed;
        needed
    }

    /// The keeper's next task. `wanted` says that requests find no other backend, which cuts the back-off
    /// short to [`PROBE_PERIOD`]. `in_use` says that the backend has exchanges.
    pub fn next(&mut self, now: Moment, wanted: bool, in_use: bool) -> Task {
        self.scheduled = self.state == State::Up;
        match self.state {
            State::Up => self.watch_on(now),
            State::Verifying | State::Probing => Task::Probe,
            State::Suspect { mute: false, .. } => self.ask_again(now),
            State::Suspect { idle, .. } => self.wait_for_idleness(now, idle, in_use),
            State::Ejected { since, until } => {
                let soonest = until.min(since + PROBE_PERIOD);
                let regular = if wanted { soonest } else { until };
                let due = regular.max(self.probed.map_or(regular, |probed| probed + PROBE_PERIOD));
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

    /// A probe that an operator asked for ended. It counts like one of the keeper's, which may have
    /// another under way.
    pub fn probed_for_operator(&mut self, now: Moment, outcome: Outcome) {
        let scheduled = std::mem::take(&mut self.scheduled);
        if let State::Ejected { .. } = self.state {
            self.state = State::Probing;
        }
        self.probed(now, outcome);
        self.scheduled = scheduled;
    }

    /// A probe ended.
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
        match (self.state, outcome) {
            (State::Verifying, Answered | Connected | NotMade) => self.state = State::Up,
            (State::Suspect { .. }, Answered) => self.state = State::Up,
            (State::Up, Silent { excused }) => self.fail(now, Cause::Unwell, excused),
            (State::Up | State::Verifying | State::Suspect { .. }, Wrong { excused }) => {
                self.fail(now, Cause::Failing, excused);
            }
            (State::Up, Failed) if self.watch.is_some() => self.eject(now, Cause::Unreachable),
            // It was begun before the silence was noted, and nothing was asked.
            (State::Suspect { .. }, Connected) if scheduled => {}
            // That a connection can be opened proves nothing.
            (State::Suspect { .. }, Connected) => {
                let idle = None;
                self.state = State::Suspect { mute: true, idle };
            }
            (State::Suspect { .. }, NotMade | Silent { excused: true }) => {}
            (State::Verifying, Silent { excused: true }) => self.state = SUSPECT,
            (State::Verifying | State::Suspect { .. }, Silent { excused: false }) => {
                self.eject(now, Cause::Unwell);
            }
            (State::Verifying | State::Suspect { .. }, Failed) => {
                self.eject(now, Cause::Unreachable);
            }
            (State::Probing, Answered | Connected) => self.pass(now),
            // Too many others have gone meanwhile.
            (State::Probing, Silent { excused: true } | Wrong { excused: true })
                if self.cause.is_pardonable() =>
            {
                self.state = SUSPECT;
            }
            (State::Probing, Failed | NotMade | Silent { .. } | Wrong { .. }) => {
                self.passed = 0;
                match outcome {
                    Failed => self.cause = Cause::Unreachable,
                    Wrong { .. } => self.cause = Cause::Failing,
                    _ => {}
                }
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

    /// What the keeper of a backend that is up has to do.
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

    /// A probe of a backend that is not out failed. Several in a row put it out.
    fn fail(&mut self, now: Moment, cause: Cause, excused: bool) {
        self.failed = self.failed.saturating_add(1);
        let enough = self.failed >= self.watch.map_or(1, |watch| watch.down);
        match self.state {
            _ if enough && !excused => self.eject(now, cause),
            State::Up | State::Verifying if enough => self.state = SUSPECT,
            State::Verifying => self.state = State::Up,
            _ => {}
        }
    }

    /// A probe of a backend that is out was answered. Several in a row bring it back.
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

    /// A suspect is asked CPING until it answers; at once, if only a scheduled probe came before.
    fn ask_again(&self, now: Moment) -> Task {
        match self.verified.map_or(Duration::ZERO, |verified| {
            (verified + PROBE_PERIOD).saturating_sub(now)
        }) {
            Duration::ZERO => Task::Probe,
            left => Task::Wait(left),
        }
    }

    /// A suspect that cannot be asked can be cleared by an exchange only. So it comes back slowly
    /// when it has had none for the time of the back-off.
    fn wait_for_idleness(&mut self, now: Moment, idle: Option<Moment>, in_use: bool) -> Task {
        let idle = idle.or(Some(now)).filter(|_| !in_use);
        self.state = State::Suspect { mute: true, idle };
        let back_off = self.next_back_off(now);
        if idle.is_none_or(|idle| now < idle + back_off) {
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

    /// The minimum duration of an ejection that begins now.
    fn next_back_off(&self, now: Moment) -> Duration {
        let flaps = self
            .returned
            .is_some_and(|returned| now < returned + FLAP_WINDOW);
        if flaps {
            (self.back_off * 2).clamp(BACK_OFF_MIN, BACK_OFF_MAX)
        } else {
            BACK_OFF_MIN
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

/// The share of its weight, in percent from 10 to 100, that a backend gets `age` after its return:
/// it grows in proportion to the time until `slow_start` is over.
#[must_use]
pub fn share(age: Duration, slow_start: Duration) -> u8 {
    if age >= slow_start {
        return SHARE_FULL;
    }
    let grown = age.as_millis() * u128::from(SHARE_FULL) / slow_start.as_millis().max(1);
    let percent = u8::try_from(grown).unwrap_or(SHARE_FULL);
    percent.clamp(SHARE_MIN, SHARE_FULL)
}

/// Whether a backend that does not answer CPING must not be put out for it. A container whose threads are
/// all busy answers no CPING on a fresh connection, and neither does one behind a network that is slow for
/// all.
///
/// `saturated` says that its exchanges fill its cap of connections. `out` is the weight of the
/// upstream's backends that would be out with this one, of `total`; no more than `unwell_max`
/// percent may be.
#[must_use]
pub fn excuses(saturated: bool, (out, total): (u64, u64), unwell_max: u8) -> bool {
    saturated || out * 100 > total * u64::from(unwell_max)
}

/// A suspect of which nothing is known yet.
const SUSPECT: State = State::Suspect {
    mute: false,
    idle: None,
};

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
