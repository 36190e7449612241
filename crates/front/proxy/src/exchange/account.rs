//! Accounts for an exchange that has ended: its counters, its spans, and its line in the access log.

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

/// Counts the exchange, notes its spans, and writes its line to the access log, unless its route has none.
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
    let since_began = |time: Instant| time.saturating_duration_since(exchange.began);
    let (decided, attempts) = (&exchange.decided, &exchange.attempts);
    let logged = exchange.logged.as_deref();
    let ended = logged.and_then(|logged| logged.ended);
    let compressed = match &exchange.progress.compression {
        Some(compression) => Some(compression.figures()),
        // A stored response may have been compressed when it was stored.
        None => logged.and_then(|logged| logged.coded),
    };
    Record {
        ended: SystemTime::now(),
        id: exchange.id,
        given_id: decided.given_id.as_deref(),
        trace: exchange.trace.map(|trace| TraceLine {
            trace: trace.id,
            span: trace.span,
        }),
        client: decided.client_ip,
        request: logged.map(LoggedRequest::line),
        status: logged_status(exchange).map(|status| status.as_u16()),
        received: exchange.progress.received,
        // An HTTP/1.x connection still has the count of its last response.
        sent: exchange.progress.status.map_or(0, |_| down.sent()),
        upstream: decided.upstream.map(|upstream| upstream.name.as_str()),
        backend: attempts.member.map(Member::name),
        session: attempts.sticky.map(|outcome| SessionLine {
            outcome,
            route: attempts.session_route.as_deref(),
            first_backend: attempts.first_member.map(Member::name),
        }),
        attempts: attempts.count,
        file: logged.and_then(|logged| logged.file),
        compressed,
        cache: logged.and_then(|logged| logged.cache),
        limit: logged.and_then(|logged| Some(logged.limit.as_ref()?.name.as_str())),
        limit_dry: logged.and_then(|logged| Some(logged.limit_dry.as_ref()?.name.as_str())),
        user: logged.and_then(|logged| logged.user.as_deref()),
        auth: logged.and_then(LoggedRequest::auth),
        lease: logged.and_then(|logged| logged.leased).map(since_began),
        upload: exchange.progress.uploaded_at.map(since_began),
        first_byte: exchange.progress.head_at.map(since_began),
        total: since_began(ended.unwrap_or_else(Instant::now)),
        reason: exchange.reason,
        protocol: down.protocol(),
        stream: down.stream(),
        tls: exchange.scene.peer.tls_facts(),
    }
}
