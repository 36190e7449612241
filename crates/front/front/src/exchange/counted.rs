//! What an exchange counts for the backends that it asked, for metrics and administrators.

use std::error::Error;
use std::time::SystemTime;

use catamaran_upstream::LastFailure;
use tokio::time::Instant;

use super::Exchange;
use crate::control::events::Kind;
use crate::exchange::failure::{Causes, Failed};
use crate::exchange::relay::RelayError;
use crate::site::Member;

impl Exchange<'_> {
    /// Counts the head of the response, if one came, and how long it took.
    #[inline]
    pub(super) fn note_response(
        &self,
        member: &Member,
        began: Instant,
        error: Option<&RelayError>,
    ) {
        let worker = self.scene.worker;
        let status = match error {
            Some(RelayError::Declined(status)) => Some(*status),
            _ => self.progress.status,
        };
        if let Some(status) = status {
            member.backend.figures().responded(worker.index(), status);
            if let Some(run_max) = member.settings.eject_after_5xx {
                member.backend.note_status(status, run_max);
            }
        }
        if let Some(at) = self.progress.head_at.filter(|_| worker.keeps_times()) {
            let after = at.saturating_duration_since(began);
            member.backend.figures().answered(worker.index(), after);
        }
    }

    /// Counts how long a complete response took.
    pub(super) fn note_end(&self, member: &Member, began: Instant, ended: Instant) {
        let worker = self.scene.worker;
        if worker.keeps_times() {
            let after = ended.saturating_duration_since(began);
            member.backend.figures().completed(worker.index(), after);
        }
    }

    /// An attempt that failed before its relay began, counted and logged.
    pub(super) fn reported(
        &self,
        member: &Member,
        failed: Failed,
        error: &dyn Error,
    ) -> Box<Failed> {
        self.report(member, &failed, error);
        Box::new(failed)
    }

    /// Counts a failed attempt and logs it for the operator, unless the client caused it.
    pub(super) fn report(&self, member: &Member, failed: &Failed, error: &dyn Error) {
        let (upstream, backend) = (member.backend.upstream(), member.name());
        let (request, reason, causes) = (self.id, failed.failure.reason, Causes(error));
        if reason.is_client() {
            tracing::debug!(%request, upstream, backend, %reason, "{causes}");
            return;
        }
        tracing::warn!(%request, upstream, backend, %reason, "{causes}");
        member.backend.figures().failed_as(LastFailure {
            at: SystemTime::now(),
            reason: (reason.culprit(), reason.token()),
            stage: failed.stage.token(),
            request: request.to_string(),
            detail: causes.to_string(),
        });
        let text = format!("{reason}: {causes} (request {request})");
        let events = self.scene.worker.events();
        events.push(Kind::Failure, upstream, backend, text);
    }
}
