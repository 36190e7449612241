//! The keeper of a backend: a task that probes the backend until it is up again, or for ever if the
//! backend is also probed while it is up.
//!
//! A backend has at most one keeper, and a keeper makes one probe at a time, so that a backend that
//! restarts is not flooded with probes. There is one exception: while a probe waits for the answer to
//! its request and the backend is silent, CPING is sent on a second connection. The task runs on the
//! event loop of the worker that noticed the failure. It ends when the backend is up and not watched,
//! when it is retired, when nothing refers to the backend any more, or when its event loop ends. In the
//! last case [`Backend::sweep`] of another worker starts a new one.

use std::future::pending;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use catamaran_balance::health::{Cause, Condition, Outcome, PROBE_PERIOD, Standing, Task, Watch};
use http::StatusCode;
use tokio::time::{Instant, sleep_until, timeout};

use crate::backend::Backend;
use crate::error::{Culprit, LeaseError};
use crate::probe::{self, LastProbe, ProbeQuestion, ProbeResult};
use crate::settings::Settings;

impl Backend {
    /// The share of its weight that the backend gets now, in percent: 100 if it is well, less while
    /// it ramps up after it was out, 0 while it must not be picked.
    #[must_use]
    pub fn share(&self) -> u8 {
        self.health().share()
    }

    /// Records that requests find no other backend, which shortens the wait for the next probe.
    pub fn want(&self) {
        self.health().want();
    }

    /// Whether the backend is suspect, so that others are preferred.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        self.health().is_suspect()
    }

    /// Records that an exchange with this backend failed after its request was sent. The request may be
    /// the cause, so the backend is not put out, but probed once. Must be called within an event loop.
    pub fn verify(self: &Arc<Self>) {
        if self.settings().eject && self.health().verify() {
            self.attend();
        }
    }

    /// Records that no byte of the backend arrived for `suspect_after` while an exchange awaits its
    /// answer. The backend becomes suspect, and is sent CPING if its protocol has it. Must be called
    /// within an event loop.
    pub fn note_silence(self: &Arc<Self>) {
        if !self.is_suspect() && self.settings().eject && self.health().silent() {
            let (upstream, backend) = (self.upstream(), &self.settings().name);
            tracing::debug!(upstream, backend, "backend is suspect: it sends nothing");
            self.attend();
        }
    }

    /// Records a failed dial that began at `began`; most kinds of failure put the backend out.
    pub(crate) fn note_failed_dial(self: &Arc<Self>, error: &LeaseError, began: Instant) {
        if !self.settings().eject || error.culprit() != Culprit::Backend {
            return;
        }
        if let LeaseError::DialTimeout { .. } | LeaseError::Ping { .. } = error {
            // A burst of clients can fill a backlog or occupy all threads, and a SYN can get lost, so
            // a probe decides.
            return self.verify();
        }
        if self.health().connect_failed(began) {
            self.note_ejection(Cause::Unreachable, Some(error.trouble()));
            self.review();
        }
        self.attend();
    }

    /// Records the status of a response. `run_max` responses 5xx in a row put the backend out if another
    /// backend of its upstream answers well.
    pub fn note_status(self: &Arc<Self>, status: StatusCode, run_max: u32) {
        if self.note_in_row(status.is_server_error()) < run_max {
            return;
        }
        let Some(group) = self.group() else {
            return;
        };
        let is_out = {
            // Locked, so that two backends do not each count on the other to stay.
            let _deciding = group.decide();
            group.has_better(self) && !group.excuses(self) && self.health().erring()
        };
        if is_out {
            // The row of 5xx begins anew when the backend comes back.
            self.note_in_row(false);
            self.note_ejection(Cause::Erring, None);
            self.review();
            self.attend();
        }
    }

    /// Starts a keeper if the backend needs one and has none.
    pub(crate) fn keep(self: &Arc<Self>) {
        if self.is_retired() {
            return;
        }
        self.health().begin_watch(|| watch(self, Pace::Spread));
        if self.health().needs_keeper() {
            tokio::spawn(keep(Keeper(Arc::downgrade(self))));
        }
    }

    /// Starts a keeper if the backend needs one, and makes it act at once.
    fn attend(self: &Arc<Self>) {
        self.keep();
        self.attention().notify_one();
    }

    /// The backend's current state, for operators.
    #[must_use]
    pub fn state(&self) -> BackendState {
        let (condition, now) = self.health().condition();
        let share = self.share();
        match condition {
            Condition::Up if share < 100 => BackendState::Ramping { percent: share },
            Condition::Up => BackendState::Up,
            Condition::Verifying => BackendState::Verifying,
            Condition::Suspect => BackendState::Suspect,
            Condition::Out {
                cause,
                since,
                next_probe,
            } => BackendState::Out {
                cause,
                why: self.trouble().unwrap_or_else(|| words(cause).to_owned()),
                pardoned: self.health().is_pardoned() && cause.is_pardonable(),
                lasts: now.saturating_sub(since),
                next_probe: next_probe.map(|at| at.saturating_sub(now)),
            },
        }
    }

    /// Begins a probe for an operator, whatever the backend's state is: its own `[probe]`, else CPING to
    /// an AJP backend, else a connection. Returns the probe's number, and the future that makes it,
    /// which must be polled within an event loop. The outcome counts like that of a keeper's probe.
    ///
    /// # Cancel safety
    /// A probe whose future is dropped has no effect.
    pub fn begin_probe(
        self: &Arc<Self>,
    ) -> (u64, impl Future<Output = LastProbe> + Send + 'static) {
        let backend = Arc::clone(self);
        let number = self.next_probe();
        let probe = async move {
            let settings = backend.settings();
            let start = ProbeStart {
                number,
                began: Instant::now(),
            };
            let result = backend.judge_cping(probe::probe(&settings).await);
            let question = probe::question(&settings);
            let last_probe = backend.note_probe(&start, question, &result);
            let before = backend.health().standing();
            backend.conclude(&result, Asker::Operator);
            // The keeper's log of a suspicion is not known here, so the change is logged as if there was none.
            backend.log_change(before, &result, false);
            last_probe
        };
        (number, probe)
    }

    /// Makes the group check whether too much weight is out, after this backend's health has changed.
    fn review(&self) {
        if let Some(group) = self.group() {
            let _deciding = group.decide();
            group.review();
        }
    }

    /// Logs that the backend is out, and closes its unused connections. `trouble` is the reason: a clause in which "it"
    /// is the backend.
    fn note_ejection(&self, cause: Cause, trouble: Option<String>) {
        let closed = self.close_unused();
        let (upstream, backend) = (self.upstream(), &self.settings().name);
        let why = trouble.as_deref().unwrap_or_else(|| words(cause));
        tracing::warn!(upstream, backend, closed, "backend is out: {why}");
        self.note_trouble(trouble);
    }

    /// Logs what is remarkable of a probe, and stores it as the last one.
    fn note_probe(
        &self,
        start: &ProbeStart,
        question: ProbeQuestion,
        result: &ProbeResult,
    ) -> LastProbe {
        self.warn_of_probe(result);
        let probe = LastProbe {
            number: start.number,
            at: SystemTime::now(),
            took: start.began.elapsed(),
            question: match result {
                ProbeResult::Unspoken(_) => ProbeQuestion::Connection,
                _ => question,
            },
            answered: result.is_answer(),
            found: result.to_string(),
        };
        self.set_last_probe(probe.clone());
        probe
    }

    /// Logs what an operator should know of a probe, compared with the last one.
    fn warn_of_probe(&self, result: &ProbeResult) {
        let (upstream, backend) = (self.upstream(), &self.settings().name);
        if let ProbeResult::NotMade(error) = result {
            tracing::warn!(upstream, backend, %error, "cannot probe");
        }
        if let ProbeResult::Answered {
            cookie: Some(cookie),
        } = result
            && self.claim_sessions_warning()
        {
            let text = String::from_utf8_lossy(cookie);
            let name = text.split('=').next().unwrap_or_default();
            tracing::warn!(
                upstream,
                backend,
                cookie = name,
                "the answer to a probe sets a cookie: if that is a session, each probe begins one; \
                 let the probe ask for a page that begins none"
            );
        }
        let answered_before = self.last_probe().is_none_or(|probe| probe.answered);
        let is_out = matches!(self.health().standing(), Standing::Out(_));
        if !result.is_answer() && answered_before && !is_out {
            tracing::warn!(upstream, backend, "its check fails: {result}");
        }
    }

    /// Makes one probe, and stores it as the last one. If the backend does not answer a CPING meanwhile, that is the
    /// result.
    async fn probe(&self) -> ProbeResult {
        let settings = self.settings();
        let start = ProbeStart {
            number: self.next_probe(),
            began: Instant::now(),
        };
        let (result, question) = tokio::select! {
            result = probe::probe(&settings) => (self.judge_cping(result), probe::question(&settings)),
            result = self.silence(&settings) => (result, ProbeQuestion::Cping),
        };
        self.note_probe(&start, question, &result);
        result
    }

    /// Sends CPING on a second connection while a probe's request is under way and the backend is in
    /// doubt; returns when CPING is not answered. A request may take much longer than CPING, and must
    /// not delay the consequences of silence.
    async fn silence(&self, settings: &Settings) -> ProbeResult {
        if !probe::is_slower_than_cping(settings) {
            // The probe alone decides.
            return pending().await;
        }
        loop {
            while !self.health().is_doubted() {
                self.attention().notified().await;
            }
            let began = Instant::now();
            let result = self.judge_cping(probe::ask_cping(settings).await);
            if let ProbeResult::Silent(_) | ProbeResult::Failed(_) = result
                && self.health().is_doubted()
            {
                return result;
            }
            sleep_until(began + PROBE_PERIOD).await;
        }
    }

    /// Applies a probe's outcome to the backend's health, and reviews the group if the probe failed. Silence is excused
    /// if all connections are in use; every failure except that of a dial, if too many other backends are out.
    fn conclude(&self, result: &ProbeResult, asker: Asker) {
        let group = self.group();
        // Held until the group was reviewed, so that two backends are not put out at once.
        let _deciding = group.as_ref().map(|group| group.decide());
        let is_late = matches!(result, ProbeResult::Silent(_) | ProbeResult::Late);
        // A failed dial is left out: it is never excused.
        let has_failed = is_late || matches!(result, ProbeResult::Wrong(_));
        let is_busy = is_late && self.is_saturated();
        let is_spared =
            has_failed && !is_busy && group.as_ref().is_none_or(|group| group.excuses(self));
        let outcome = outcome(result, is_busy || is_spared);
        self.health().spare(is_spared);
        if !result.is_answer() && !matches!(result, ProbeResult::NotMade(_)) {
            self.note_trouble(Some(result.trouble()));
        }
        match asker {
            Asker::Keeper => self.health().probed(outcome),
            Asker::Operator => self.health().probed_for_operator(outcome),
        }
        match &group {
            Some(group) if has_failed || group.panics() => group.review(),
            // Also after a failed dial: who waits for a member asks for its next probe.
            Some(group) => group.note_change(),
            None => {}
        }
    }

    /// Logs how a probe changed the backend's health. `is_logged`: the log already says that the backend is
    /// suspect. Returns whether it says so after this call.
    fn log_change(&self, before: Standing, result: &ProbeResult, is_logged: bool) -> bool {
        let (upstream, backend) = (self.upstream(), &self.settings().name);
        let was_out = matches!(before, Standing::Out(_));
        match self.health().standing() {
            Standing::Out(_) if was_out => {}
            Standing::Out(cause) => self.note_ejection(cause, Some(result.trouble())),
            Standing::Up(_) if was_out => tracing::info!(upstream, backend, "backend is back"),
            Standing::Up(_) if is_logged => {
                tracing::info!(upstream, backend, "backend is not suspect any more");
            }
            Standing::Up(_) => tracing::debug!(upstream, backend, "probed: {result}"),
            Standing::Suspect if is_logged => return true,
            Standing::Suspect
                if matches!(result, ProbeResult::Connected | ProbeResult::Unspoken(_)) =>
            {
                tracing::info!(
                    upstream,
                    backend,
                    "backend is suspect: a request waits for its answer, and it sends nothing; others \
                     are preferred"
                );
                return true;
            }
            Standing::Suspect => {
                tracing::warn!(
                    upstream,
                    backend,
                    "backend is suspect: {result}; others are preferred. It still gets requests, for one of two \
                     reasons: its requests fill `connections_max`, so a probe may fail for want of a \
                     connection; or without it more backends would be out than `unwell_max` allows"
                );
                return true;
            }
        }
        false
    }
}

/// What a probe's result is for the backend's health. `excused`: a failure is not held against the backend.
fn outcome(result: &ProbeResult, excused: bool) -> Outcome {
    match result {
        ProbeResult::Answered { .. } | ProbeResult::Ponged => Outcome::Answered,
        ProbeResult::Connected | ProbeResult::Unspoken(_) => Outcome::Connected,
        ProbeResult::Failed(_) => Outcome::Failed,
        ProbeResult::NotMade(_) => Outcome::NotMade,
        ProbeResult::Silent(_) => Outcome::Silent { excused },
        ProbeResult::Late | ProbeResult::Wrong(_) => Outcome::Wrong { excused },
    }
}

/// The cause of a probe: the keeper's schedule, or an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    Keeper,
    Operator,
}

/// The number and the beginning of a probe, to be recorded with its result.
struct ProbeStart {
    number: u64,
    began: Instant,
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

/// Runs a keeper: does what the backend's health says, until no keeper is needed.
async fn keep(mut keeper: Keeper) {
    // Whether the log says that the backend is suspect.
    let mut is_suspicion_logged = false;
    loop {
        let Some(backend) = keeper.0.upgrade() else {
            return;
        };
        if backend.is_retired() {
            return;
        }
        if !backend.is_watched() {
            backend.health().watch(None);
        }
        match backend.health().next(backend.in_flight() > 0) {
            Task::Wait(time) => {
                let attention = Arc::clone(backend.attention());
                // A backend that nothing else refers to must not live until the wait is over.
                drop(backend);
                // A notification ends the wait early.
                timeout(time, attention.notified()).await.ok();
            }
            Task::Probe => {
                let before = backend.health().standing();
                let result = backend.probe().await;
                backend.conclude(&result, Asker::Keeper);
                backend.health().watch(watch(&backend, Pace::Regular));
                is_suspicion_logged = backend.log_change(before, &result, is_suspicion_logged);
            }
            Task::Rest => {
                // `next` has resigned already. There may be another keeper by now, which must stay.
                keeper.0 = Weak::new();
                if backend.is_in_panic() {
                    backend.review();
                }
                if is_suspicion_logged {
                    let (upstream, backend) = (backend.upstream(), &backend.settings().name);
                    tracing::info!(upstream, backend, "backend is not suspect any more");
                }
                return;
            }
        }
    }
}

/// How the time until the next scheduled probe is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// At a random time within the interval, so that the backends of a front are not probed all at once.
    Spread,
    /// After the whole interval, a tenth more or less.
    Regular,
}

/// The rules for regular probes from now on, with a time until the next one; `None` if there are none.
fn watch(backend: &Backend, pace: Pace) -> Option<Watch> {
    let settings = backend.settings();
    let probe = settings.probe.as_ref()?;
    if !settings.eject || !backend.is_watched() {
        return None;
    }
    let part = match pace {
        Pace::Spread => fastrand::f64(),
        Pace::Regular => 0.9 + 0.2 * fastrand::f64(),
    };
    Some(Watch {
        interval: probe.interval.mul_f64(part),
        up: probe.up,
        down: probe.down,
    })
}

/// The backend's state for operators. `Display` writes it in a few words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendState {
    /// The backend gets its full share.
    Up,
    /// The backend came back lately and gets a part of its share.
    Ramping {
        /// The part of its share that the backend gets, in percent.
        percent: u8,
    },
    /// The backend gets its share; an exchange failed, and a probe finds out whether the backend is at
    /// fault.
    Verifying,
    /// Other backends are preferred: this one is silent, or its probe failed and did not put it out.
    Suspect,
    /// The backend is out and gets no requests.
    Out {
        /// The cause for which the backend is out.
        cause: Cause,
        /// The cause in words, with the details that are known.
        why: String,
        /// Whether the backend serves nevertheless where no other can, because too many others are out.
        pardoned: bool,
        /// How long the backend has been out so far.
        lasts: Duration,
        /// How long until the next probe at most; `None` while one is under way.
        next_probe: Option<Duration>,
    },
}

impl BackendState {
    /// Why the backend is out, in words; `None` if it is not out.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        match self {
            Self::Out { why, .. } => Some(why),
            Self::Up | Self::Ramping { .. } | Self::Verifying | Self::Suspect => None,
        }
    }

    /// The state as a token, for the admin API.
    #[must_use]
    pub fn token(&self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Ramping { .. } => "ramping",
            Self::Verifying => "verifying",
            Self::Suspect => "suspect",
            Self::Out { .. } => "out",
        }
    }
}

impl std::fmt::Display for BackendState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Up | Self::Verifying | Self::Suspect => f.write_str(self.token()),
            Self::Ramping { percent } => write!(f, "ramping {percent}%"),
            Self::Out {
                why,
                pardoned,
                lasts,
                next_probe,
                ..
            } => {
                write!(f, "out for {}s: {why}", lasts.as_secs())?;
                if *pardoned {
                    f.write_str(", serves where no other can")?;
                }
                match next_probe {
                    Some(left) => write!(f, ", next probe in {}s", left.as_secs()),
                    None => f.write_str(", being probed"),
                }
            }
        }
    }
}

/// The cause in words, for the log and the admin API: a clause in which "it" is the backend.
fn words(cause: Cause) -> &'static str {
    match cause {
        Cause::Unreachable => "it cannot be connected to",
        Cause::Unwell => "it does not answer CPING",
        Cause::Failing => "its probe fails",
        Cause::Erring => "it answered one request after the other with 5xx",
    }
}
