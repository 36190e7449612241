//! Facts found out about a backend, for administrators and for judging unanswered CPINGs.
//!
//! Whether a backend is back must be decided by a test that it has passed before. Not every connector answers CPING:
//! Undertow with a secret refuses it with 403. Such a backend is back when it accepts a connection. That a backend does
//! not know CPING is concluded late from mere silence: a Tomcat listens before it has deployed, and answers nothing
//! until then.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use catamaran_balance::health::Standing;
use tokio::time::Instant;

use super::Backend;
use crate::error::{LeaseError, PingFailure};
use crate::names::Resolution;
use crate::probe::{self, ProbeResult};

/// Facts about a backend besides its health: whether it speaks CPING, its last trouble, its last refusal.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    cping: Cping,
    /// Since when the backend accepts connections but does not answer, while it is out and has never answered CPING.
    silent_since: Option<Instant>,
    /// The last trouble: a clause in which "it" is the backend; `None`: there was none.
    trouble: Option<String>,
    /// When a 403 last answered the first request of a connection; `None`: never.
    refused: Option<Instant>,
}

/// What is known about a backend's support of CPING.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cping {
    #[default]
    Unknown,
    /// The backend has answered CPING at least once.
    Answered,
    /// The backend serves, but does not answer CPING.
    Unspoken(PingFailure),
}

/// Facts about a backend that did not answer CPING, by which the silence is judged.
#[derive(Debug)]
struct History {
    is_out: bool,
    has_served: bool,
}

impl Findings {
    /// Whether the unanswered CPING shows that the backend serves but does not speak CPING. Sets `silent_since`.
    fn is_unspoken(&mut self, failure: PingFailure, history: &History, now: Instant) -> bool {
        let silent_since = match self.silent_since {
            Some(since) if history.is_out => since,
            // The silence begins anew while the backend is up.
            _ => now,
        };
        self.silent_since = Some(silent_since);
        match (self.cping, failure) {
            // A backend that has answered CPING before is in trouble.
            (Cping::Answered, _) => false,
            // A backend that serves does not send garbage.
            (_, PingFailure::Garbled) => false,
            (Cping::Unspoken(_), _) => true,
            // The backend speaks AJP13, and refuses this message.
            (Cping::Unknown, PingFailure::Other) => true,
            (Cping::Unknown, PingFailure::Closed) if history.has_served => true,
            // It may be a process that was just started: only a long silence shows that it never answers.
            (Cping::Unknown, PingFailure::Closed | PingFailure::Silent) => {
                history.is_out && now.saturating_duration_since(silent_since) >= START_MAX
            }
        }
    }
}

impl Backend {
    fn lock_findings(&self) -> MutexGuard<'_, Findings> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the backend answered CPING.
    pub(crate) fn note_pong(&self) {
        let mut findings = self.lock_findings();
        findings.cping = Cping::Answered;
        findings.silent_since = None;
    }

    /// Whether the backend is known not to answer CPING although it serves.
    pub(crate) fn ignores_cping(&self) -> bool {
        matches!(self.lock_findings().cping, Cping::Unspoken(_))
    }

    /// Lets an unanswered CPING count as an accepted connection if the backend has never answered one and serves all
    /// the same; not if the configuration requires an answer.
    pub(crate) fn judge_cping(&self, result: ProbeResult) -> ProbeResult {
        let failure = match result {
            ProbeResult::Silent(failure) if !probe::wants_pong(&self.settings()) => failure,
            ProbeResult::Ponged => {
                self.note_pong();
                return result;
            }
            _ => {
                self.lock_findings().silent_since = None;
                return result;
            }
        };
        let history = History {
            is_out: matches!(self.health().standing(), Standing::Out(_)),
            has_served: self.counts().received > 0,
        };
        let mut findings = self.lock_findings();
        if !findings.is_unspoken(failure, &history, Instant::now()) {
            return result;
        }
        let before = std::mem::replace(&mut findings.cping, Cping::Unspoken(failure));
        drop(findings);
        if !matches!(before, Cping::Unspoken(_)) {
            let (upstream, backend) = (self.upstream(), &self.settings().name);
            tracing::warn!(
                upstream,
                backend,
                "the backend serves and does not speak CPING ({failure}): a connection alone says that it is back. \
                 Set `ping_after_idle = \"off\"`, or a [probe] with kind = \"request\""
            );
        }
        ProbeResult::Unspoken(failure)
    }

    /// Records what is wrong with the backend: a clause in which "it" is the backend; `None`: nothing.
    pub(crate) fn note_trouble(&self, trouble: Option<String>) {
        self.lock_findings().trouble = trouble;
    }

    /// The last trouble of the backend: a clause in which "it" is the backend; `None`: there was none.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.lock_findings().trouble.clone()
    }

    /// Records that a 403 answered the first request of a connection, which the backend then closed. Tomcat answers so
    /// to a wrong secret. It is logged once for each secret, as a possibility, because an application may answer so,
    /// too.
    pub fn note_refusal(self: &Arc<Self>) {
        let settings = self.settings();
        if settings.speaks_http() {
            return;
        }
        self.lock_findings().refused = Some(Instant::now());
        if self.claim_refusal_warning() {
            let (upstream, backend) = (self.upstream(), &settings.name);
            tracing::warn!(upstream, backend, "{}", self.refusal());
        }
    }

    /// What a 403 to the first request of a connection may mean, in words.
    fn refusal(&self) -> String {
        let secret = match self.settings().ajp.secret {
            Some(_) => "`secret` may be wrong",
            None => "it may want a `secret`, and none is configured",
        };
        format!(
            "403 was the answer to the first request of a connection, and the backend closed it: \
             {secret} (or the connector refuses a request attribute, or the application answered so)"
        )
    }

    /// The addresses of the backend's host name; `None`: its address is not a name.
    #[must_use]
    pub fn resolution(&self) -> Option<Resolution> {
        self.settings().name().map(|name| name.resolution())
    }

    /// Puts the backend out if its name has never been resolved, so that no request has to find that out.
    pub(crate) fn note_unresolved(self: &Arc<Self>) {
        let unresolved = self.settings().name().and_then(|name| name.lack());
        if let Some(reason) = unresolved
            && self.share() > 0
            && !self.is_retired()
        {
            self.note_failed_dial(&LeaseError::Unresolved { reason }, Instant::now());
        }
    }

    /// Facts about the backend that an administrator should know even if it serves, in words.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let findings = self.lock_findings();
        let (cping, refused) = (findings.cping, findings.refused);
        drop(findings);
        if refused.is_some_and(|at| at.elapsed() < REFUSAL_SHOWN) {
            remarks.push(self.refusal());
        }
        let is_out = matches!(self.health().standing(), Standing::Out(_));
        if let Some(probe) = self.last_probe()
            && !probe.answered
            && !is_out
        {
            remarks.push(format!("its last check failed: {}", probe.found));
        }
        if let Cping::Unspoken(failure) = cping {
            remarks.push(format!(
                "it does not speak CPING ({failure}): set `ping_after_idle = \"off\"`"
            ));
        }
        if let Some(resolution) = self.resolution()
            && let (Some(age), Some(failed)) = (resolution.age, resolution.failed)
        {
            remarks.push(format!(
                "its name {} does not resolve ({failed}): the addresses of {} s ago stay in use",
                resolution.host,
                age.as_secs()
            ));
        }
        remarks
    }
}

/// How long a refusal is shown among the remarks.
const REFUSAL_SHOWN: Duration = Duration::from_secs(60);

/// How long a process that listens may take to start. A backend that is silent for longer does not speak CPING.
const START_MAX: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::config::{Address, BackendConfig, Protocol};
    use crate::error::{LeaseError, Tried};

    const UP: History = History {
        is_out: false,
        has_served: false,
    };
    const OUT: History = History {
        is_out: true,
        has_served: false,
    };

    #[test]
    fn silence_says_that_a_backend_serves_only_once_it_outlasts_a_start() {
        for how in [PingFailure::Silent, PingFailure::Closed] {
            let (mut findings, start) = (Findings::default(), Instant::now());
            let mut is_unspoken = |history, minutes: u64| {
                let now = start + Duration::from_secs(60 * minutes);
                findings.is_unspoken(how, history, now)
            };
            assert!(!is_unspoken(&OUT, 0));
            assert!(!is_unspoken(&UP, 1));
            assert!(!is_unspoken(&OUT, 2), "it was up meanwhile");
            assert!(is_unspoken(&OUT, 3), "silent since it was up");
            findings.cping = Cping::Answered;
            let later = start + Duration::from_secs(3600);
            assert!(!findings.is_unspoken(how, &OUT, later), "it has answered");
        }
    }

    #[test]
    fn a_connector_refuses_cping_in_ajp_and_has_never_answered_it() {
        let judged = |cping, how| {
            let mut findings = Findings {
                cping,
                ..Findings::default()
            };
            findings.is_unspoken(how, &OUT, Instant::now())
        };
        let unspoken = Cping::Unspoken(PingFailure::Other);
        for (cping, refuses) in [
            (Cping::Unknown, true),
            (Cping::Answered, false),
            (unspoken, true),
        ] {
            assert_eq!(judged(cping, PingFailure::Other), refuses, "{cping:?}");
            assert!(!judged(cping, PingFailure::Garbled), "{cping:?}");
        }
    }

    #[test]
    fn a_refused_connection_ends_what_silence_says() {
        let address = Address::Unix("/backend".into());
        let backend = Backend::new("app", BackendConfig::new(Protocol::Ajp, address), 1);
        let since = |backend: &Backend| backend.lock_findings().silent_since;
        backend.judge_cping(ProbeResult::Silent(PingFailure::Silent));
        assert!(since(&backend).is_some());
        backend.judge_cping(ProbeResult::Failed(LeaseError::Dial {
            source: io::ErrorKind::ConnectionRefused.into(),
            tried: Tried::default(),
        }));
        assert_eq!(since(&backend), None);
    }
}
