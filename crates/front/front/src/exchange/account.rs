//! What an exchange leaves behind: its counts, and its line in the access log.

use std::time::SystemTime;

use http::StatusCode;
use tokio::time::Instant;

use crate::access_log::{Record, SessionLine};
use crate::exchange::Exchange;
use crate::exchange::downstream::Downstream;
use crate::exchange::logged::LoggedRequest;
use crate::site::Member;

impl Exchange<'_> {
    /// The status that was sent to the client, or the one for the log.
    fn logged_status(&self) -> Option<StatusCode> {
        self.progress.status.or(self.unsent)
    }

    /// Counts the exchange and writes its line.
    pub(super) fn account(&self, down: &Downstream<'_>) {
        self.scene.worker.counters().response(self.progress.status);
        if let Some(outcome) = self.attempts.sticky {
            self.scene.worker.counters().sticky(outcome);
            if let Some(member) = self.attempts.member {
                let worker = self.scene.worker.index();
                member.backend.figures().sticky(worker, outcome);
            }
        }
        if let Some(compression) = &self.progress.compression {
            compression.count(self.scene.worker.counters(), down.sent());
        }
        let log = self.scene.worker.access_log();
        if !log.is_on() {
            return;
        }
        let since = |at: Instant| at.saturating_duration_since(self.began);
        let request = self.logged.as_deref();
        let compression = self.progress.compression.as_ref();
        let ended = request.and_then(|it| it.ended);
        let record = Record {
            ended: SystemTime::now(),
            id: self.id,
            given_id: self.decided.given_id.as_deref(),
            client: self.decided.client_ip,
            request: request.map(LoggedRequest::line),
            status: self.logged_status().map(|status| status.as_u16()),
            received: self.progress.received,
            sent: if self.progress.status.is_some() {
                down.sent()
            } else {
                0
            },
            upstream: self.decided.upstream.map(|upstream| upstream.name.as_str()),
            backend: self.attempts.member.map(Member::name),
            session: self.attempts.sticky.map(|outcome| SessionLine {
                outcome,
                route: self.attempts.session_route.as_deref(),
                first_backend: self.attempts.first_member.map(Member::name),
            }),
            attempts: self.attempts.count,
            file: request.and_then(|it| it.file),
            compressed: compression
                .map(|it| it.figures())
                .or_else(|| request?.coded),
            cache: request.and_then(|it| it.cache),
            lease: request.and_then(|it| it.leased).map(since),
            upload: self.progress.uploaded_at.map(since),
            first_byte: self.progress.head_at.map(since),
            total: since(ended.unwrap_or_else(Instant::now)),
            reason: self.reason,
            protocol: down.protocol(),
            stream: down.stream(),
            tls: self.scene.peer.tls.as_deref().map(|session| &session.facts),
        };
        log.write(self.scene.worker.index(), &record);
    }
}
