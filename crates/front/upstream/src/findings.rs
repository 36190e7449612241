//! What was found out about a backend, for administrators and for the judgement of CPING.
//!
//! What decides that a backend is back must be a question that it has once answered. Not every connector answers
//! CPING: Undertow with a secret refuses it with 403. Such a backend is back when it can be connected to.

use std::fmt;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use catamaran_balance::health::{Cause, Standing};
use tokio::time::Instant;

use crate::backend::Backend;
use crate::config::Protocol;
use crate::probe::{self, Found};

/// What was found out.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    cping: Cping,
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

/// What came instead of the answer to CPING.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PingFailure {
    /// Nothing in time.
    Silent,
    /// The end of the connection.
    Closed,
    /// Another message, such as a response 403.
    Other,
}

impl fmt::Display for PingFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Silent => "no answer to CPING",
            Self::Closed => "no answer to CPING: the connection was closed",
            Self::Other => {
                "no answer to CPING: something else came, as from a connector that refuses it (403)"
            }
        })
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
        self.lock_findings().cping = Cping::Answered;
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
            _ => return found,
        };
        let health = self.health();
        let out = match health.standing() {
            Standing::Out(cause) => Some(cause),
            Standing::Up(_) | Standing::Suspect => None,
        };
        let mut findings = self.lock_findings();
        let is_unspoken = match (findings.cping, how) {
            (Cping::Unspoken(_), _) | (_, PingFailure::Other) => true,
            (Cping::Answered, _) => false,
            // It may be a process that was just started.
            (Cping::Unknown, _) if out == Some(Cause::Unreachable) => true,
            (Cping::Unknown, PingFailure::Closed) => health.heard() > 0,
            (Cping::Unknown, PingFailure::Silent) => out.is_some() && health.is_heard(),
        };
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
        if settings.protocol != Protocol::Ajp {
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
