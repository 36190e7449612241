//! `/healthz`, `/readyz` and `/metrics`: for machines that watch, whoever they are.

use catamaran_gauge::process;
use catamaran_message::RequestHead;
use http::StatusCode;
use http::header::ACCEPT;

use super::exposition::Format;
use super::metrics::{self, Observed};
use super::reply::Reply;
use crate::line_queue::LineQueue;
use crate::site::Member;
use crate::tls;
use crate::worker::Shared;

/// The answer, if the path is one of these.
pub(super) fn answer(shared: &Shared, head: &RequestHead) -> Option<Reply> {
    let query = head.target.query.as_deref();
    Some(match &*head.target.path {
        b"/healthz" => Reply::text(StatusCode::OK, "alive\n"),
        b"/readyz" => match super::request::parameter(query, "upstream") {
            Some(upstream) => readiness_of(shared, &upstream),
            None => readiness(&observe(shared)),
        },
        b"/metrics" => {
            let accept = head.headers.get_all(ACCEPT).iter();
            let accept: Vec<&str> = accept.filter_map(|value| value.to_str().ok()).collect();
            let format = Format::accepted(&accept.join(","));
            let text = metrics::render(&observe(shared), format);
            Reply::new(StatusCode::OK, format.content_type(), text)
        }
        _ => return None,
    })
}

fn readiness(observed: &Observed) -> Reply {
    let unready = StatusCode::SERVICE_UNAVAILABLE;
    match observed {
        Observed { ready: true, .. } => Reply::text(StatusCode::OK, "ready\n"),
        Observed { leaving: true, .. } => Reply::text(unready, "draining\n"),
        _ => Reply::text(unready, "every backend is out\n"),
    }
}

/// Whether a new session would be served by this upstream.
fn readiness_of(shared: &Shared, name: &str) -> Reply {
    let site = shared.site.load();
    let unready = StatusCode::SERVICE_UNAVAILABLE;
    let serves = |member: &Member| member.share() > 0;
    match site.upstream(name) {
        None => Reply::text(StatusCode::NOT_FOUND, "there is no such upstream\n"),
        Some(_) if shared.is_leaving() => Reply::text(unready, "draining\n"),
        Some(upstream) if upstream.members.iter().any(serves) => {
            Reply::text(StatusCode::OK, "ready\n")
        }
        Some(_) => Reply::text(unready, "no backend takes new sessions\n"),
    }
}

/// All that metrics tell.
pub(super) fn observe(shared: &Shared) -> Observed {
    let site = shared.site.load();
    let mut backends = site.status();
    let leaving = shared.is_leaving();
    let mut present = backends.iter().filter(|it| !it.retired).peekable();
    let usable = present.peek().is_none() || present.any(|it| it.counts.share > 0);
    backends.extend(shared.retired.status(&backends));
    Observed {
        counters: shared.counters.snapshot(shared.admission.open()),
        generation: site.generation,
        connections_max: site.server.connections_max,
        backends,
        usage: process::own_usage().ok(),
        certificates: tls::certificates(&shared.profiles.load()),
        log_lines_dropped: shared.access_log.dropped(),
        log_lines_lost: shared.access_log.lost(),
        own_log_lines_dropped: shared.own_log.get().map_or(0, LineQueue::dropped),
        own_log_lines_lost: shared.own_log.get().map_or(0, LineQueue::lost),
        draining: shared.drain.has_begun(),
        leaving,
        ready: usable && !leaving,
        state_file_fails: shared.control.state_file_fails(),
    }
}
