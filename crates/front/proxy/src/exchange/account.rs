//! Accounts for an exchange that has ended: its counters, and its line in the access log.

use std::time::SystemTime;

use http::StatusCode;
use tokio::time::Instant;

use crate::access_log::{Record, SessionLine, TraceLine};
use crate::exchange::downstream::Downstream;
use crate::exchange::logged::LoggedRequest;
use crate::exchange::spans;
use crate::exchange::state::Exchange;
use crate::site::Member;

/// The status that the client was sent; if none was sent, the one to log instead.
fn logged_status(exchange: &Exchange<'_>) -> Option<StatusCode> {
    exchange.progress.status.or(exchange.unsent)
}

/// Counts the exchange, and writes its line to the access log, unless its route has none.
pub(crate) fn account(exchange: &Exchange<'_>, down: &Downstream<'_>) {
    let worker = exchange.scene.worker;
    let counters = worker.counters();
    counters.response(exchange.progress.status);
    if let Some(outcome) = exchange.attempts.sticky {
        counters.sticky(outcome);
        if let Some(member) = exchange.attempts.member {
            member.backend.figures().sticky(worker.index(), outcome);
        }
    }
    if let Some(compression) = &exchange.progress.compression {
        compression.count(counters, down.sent());
    }
    spans::note_exchange(exchange, logged_status(exchange));
    let log = worker.access_log();
    if log.is_on() && !exchange.decided.is_unlogged {
        log.write(worker.index(), &record(exchange, down));
    }
}

/// The facts about the exchange for its line in the access log.
fn record<'r>(exchange: &'r Exchange<'_>, down: &Downstream<'_>) -> Record<'r> {
    let since = |at: Instant| at.saturating_duration_since(exchange.began);
    let request = exchange.logged.as_deref();
    let compression = exchange.progress.compression.as_ref();
    let ended = request.and_then(|it| it.ended);
    Record {
        ended: SystemTime::now(),
        id: exchange.id,
        given_id: exchange.decided.given_id.as_deref(),
        trace: exchange.trace.map(|trace| TraceLine {
            trace: trace.id,
            span: trace.span,
        }),
        client: exchange.decided.client_ip,
        request: request.map(LoggedRequest::line),
        status: logged_status(exchange).map(|status| status.as_u16()),
        received: exchange.progress.received,
        sent: if exchange.progress.status.is_some() {
            down.sent()
        } else {
            0
        },
        upstream: exchange
            .decided
            .upstream
            .map(|upstream| upstream.name.as_str()),
        backend: exchange.attempts.member.map(Member::name),
        session: exchange.attempts.sticky.map(|outcome| SessionLine {
            outcome,
            route: exchange.attempts.session_route.as_deref(),
            first_backend: exchange.attempts.first_member.map(Member::name),
        }),
        attempts: exchange.attempts.count,
        file: request.and_then(|it| it.file),
        compressed: compression
            .map(|it| it.figures())
            .or_else(|| request?.coded),
        cache: request.and_then(|it| it.cache),
        limit: request.and_then(|it| Some(it.limit.as_ref()?.name.as_str())),
        limit_dry: request.and_then(|it| Some(it.limit_dry.as_ref()?.name.as_str())),
        lease: request.and_then(|it| it.leased).map(since),
        upload: exchange.progress.uploaded_at.map(since),
        first_byte: exchange.progress.head_at.map(since),
        total: since(ended.unwrap_or_else(Instant::now)),
        reason: exchange.reason,
        protocol: down.protocol(),
        stream: down.stream(),
        tls: exchange.scene.peer.tls_facts(),
    }
}
