//! What was found out about a backend, for administrators and for the judgement of CPING.
//!
//! What decides that a backend is back must be a question that it has once answered. Not every connector answers
//! CPING: Undertow with a secret refuses it with 403. Such a backend is back when it can be connected to. Silence alone
//! says so late: a Tomcat listens before it has deployed, and answers nothing until then.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use catamaran_balance::health::Standing;
use tokio::time::Instant;

use super::Backend;
use crate::error::{LeaseError, PingFailure};
use crate::names::Resolution;
use crate::probe::{self, Found};

/// What is known of one backend besides its health: whether it speaks CPING, its last trouble, its last refusal.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    cping: Cping,
    /// Since when it can be connected to and is silent, while it is out and was never heard to answer CPING.
    silent_since: Option<Instant>,
    /// What was wrong when something was wrong last, as a sentence about "it".
    trouble: Option<String>,
    /// When 403 last answered the first request of a connection.
    refused: Option<Instant>,
}

/// Whether the backend speaks CPING.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cping {
    #[default]
    Unknown,
    /// It has once answered.
    Answered,
    /// It serves, and does not answer.
    Unspoken(PingFailure),
}

/// What else is known of a backend that did not answer CPING.
#[derive(Debug)]
struct History {
    is_out: bool,
    has_served: bool,
}

impl Findings {
    /// Whether the backend's reaction `how` to CPING shows that it serves but does not speak CPING.
    fn is_unspoken(&mut self, how: PingFailure, history: &History, now: Instant) -> bool {
        let since = self.silent_since.filter(|_| history.is_out).unwrap_or(now);
        self.silent_since = Some(since);
        match (self.cping, how) {
            (Cping::Answered, _) | (_, PingFailure::Garbled) => false,
            (Cping::Unspoken(_), _) | (_, PingFailure::Other) => true,
            (Cping::Unknown, PingFailure::Closed) if history.has_served => true,
            // It may be a process that was just started.
            (Cping::Unknown, PingFailure::Closed | PingFailure::Silent) => {
                history.is_out && now.saturating_duration_since(since) >= START_MAX
            }
        }
    }
}

impl Backend {
    fn lock_findings(&self) -> MutexGuard<'_, Findings> {
        self.findings()
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that it answered CPING.
    pub(crate) fn note_pong(&self) {
        let mut findings = self.lock_findings();
        (findings.cping, findings.silent_since) = (Cping::Answered, None);
    }

    /// Whether it is known not to answer CPING.
    pub(crate) fn ignores_cping(&self) -> bool {
        matches!(self.lock_findings().cping, Cping::Unspoken(_))
    }

    /// Lets an unanswered CPING count as a connection if the backend has never answered one and serves all the same.
    /// Where the configuration itself wants an answer, it does not.
    pub(crate) fn judge_cping(&self, found: Found) -> Found {
        let how = match found {
            Found::Silent(how) if !probe::wants_pong(&self.settings()) => how,
            Found::Ponged => {
                self.note_pong();
                return found;
            }
            _ => {
                self.lock_findings().silent_since = None;
                return found;
            }
        };
        let history = History {
            is_out: matches!(self.health().standing(), Standing::Out(_)),
            has_served: self.counts().received > 0,
        };
        let mut findings = self.lock_findings();
        let is_unspoken = findings.is_unspoken(how, &history, Instant::now());
        if !is_unspoken {
            return found;
        }
        let before = std::mem::replace(&mut findings.cping, Cping::Unspoken(how));
        drop(findings);
        if !matches!(before, Cping::Unspoken(_)) {
            let (upstream, backend) = (self.upstream(), &self.settings().name);
            tracing::warn!(
                upstream,
                backend,
                "the backend serves and does not speak CPING ({how}): a connection alone says that it is back. \
                 Set `ping_after_idle = \"off\"`, or a [probe] with kind = \"request\""
            );
        }
        Found::Unspoken(how)
    }

    /// Notes what is wrong with it, as a sentence about "it".
    pub(crate) fn note_trouble(&self, trouble: Option<String>) {
        self.lock_findings().trouble = trouble;
    }

    /// What was wrong last.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.lock_findings().trouble.clone()
    }

    /// Notes a 403 that answered the first request of a connection, which the backend then closed.
    /// Tomcat answers so to a wrong secret. It is logged once for each secret, as a possibility,
    /// because an application may answer so as well.
    pub fn note_refusal(self: &Arc<Self>) {
        let settings = self.settings();
        if settings.speaks_http() {
            return;
        }
        self.lock_findings().refused = Some(Instant::now());
        if self.is_refusal_told() {
            return;
        }
        let (upstream, backend) = (self.upstream(), &settings.name);
        tracing::warn!(upstream, backend, "{}", self.refusal());
    }

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

    /// Where its name leads, if it has one.
    #[must_use]
    pub fn resolution(&self) -> Option<Resolution> {
        self.settings().name().map(|name| name.resolution())
    }

    /// Puts it out if its name has never been resolved: that is known before a request asks for it.
    pub(crate) fn note_unresolved(self: &Arc<Self>) {
        let lack = self.settings().name().and_then(|name| name.lack());
        if let Some(reason) = lack.filter(|_| self.share() > 0 && !self.is_retired()) {
            self.note_failed_dial(&LeaseError::Unresolved { reason }, Instant::now());
        }
    }

    /// What an administrator should know of it, in words, although it may serve.
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
        if let Some(probe) = self.last_probe().filter(|it| !it.answered && !is_out) {
            remarks.push(format!("its last check failed: {}", probe.found));
        }
        if let Cping::Unspoken(how) = cping {
            remarks.push(format!(
                "it does not speak CPING ({how}): set `ping_after_idle = \"off\"`"
            ));
        }
        if let Some(known) = self.resolution()
            && let (Some(age), Some(failed)) = (known.age, known.failed)
        {
            remarks.push(format!(
                "its name {} does not resolve ({failed}): the addresses of {} s ago stay in use",
                known.host,
                age.as_secs()
            ));
        }
        remarks
    }
}

/// How long a refusal is shown.
const REFUSAL_SHOWN: Duration = Duration::from_secs(60);

/// After so long a process that listens has started: it is silent because it does not speak CPING.
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
        backend.judge_cping(Found::Silent(PingFailure::Silent));
        assert!(since(&backend).is_some());
        backend.judge_cping(Found::Failed(LeaseError::Dial {
            source: io::ErrorKind::ConnectionRefused.into(),
            tried: Tried::default(),
        }));
        assert_eq!(since(&backend), None);
    }
}
