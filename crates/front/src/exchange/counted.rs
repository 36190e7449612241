//! What an exchange counts for the backend that served it, for metrics and administrators.

use tokio::time::Instant;

use super::Exchange;
use crate::exchange::relay::RelayError;
use crate::site::Member;

impl Exchange<'_> {
    /// Counts the head of the response, if one came, and how long it took.
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
}
