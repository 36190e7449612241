//! The spans of an exchange and of its attempts, by the semantic conventions of OpenTelemetry for HTTP (1.23 and later).
//!
//! Of a request neither the query nor fields become part of a span, nor do parameters of its path, in which containers
//! keep sessions. [`crate::traces`] decides which exchanges have spans.

use catamaran_message::RequestHead;
use catamaran_upstream::Culprit;
use catamaran_upstream::config::Address;
use http::{Method, StatusCode, Version};
use tokio::time::Instant;

use crate::counters::Reason;
use crate::exchange::fields::forwarded::Sender;
use crate::exchange::fields::passage;
use crate::exchange::outgoing::Outgoing;
use crate::exchange::scene::Scene;
use crate::exchange::state::Exchange;
use crate::site::{Member, Site};
use crate::traces::span::{Period, Span};
use crate::traces::{Began, Trace, TraceSender};

/// How an attempt failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttemptFault {
    pub(crate) reason: Reason,
    /// The status of a response after which another backend is asked.
    pub(crate) declined: Option<StatusCode>,
}

/// Begins the trace of a request, or goes on with the client's; `None`: requests are not traced.
#[inline]
pub(crate) fn begin(scene: Scene<'_>, site: &Site, head: &RequestHead) -> Option<Box<Trace>> {
    match site.trace {
        None => None,
        Some(_) => begin_traced(scene, site, head),
    }
}

/// Does the work of [`begin`] if requests are traced.
#[inline(never)]
fn begin_traced(scene: Scene<'_>, site: &Site, head: &RequestHead) -> Option<Box<Trace>> {
    let config = site.trace.as_deref()?;
    let Sender { peer, identity } = Sender::new(scene.peer, head, &site.server.trusted_proxies);
    let sender = if peer.trusted {
        TraceSender::Trusted
    } else {
        TraceSender::Stranger
    };
    let traces = scene.worker.traces();
    let (mut trace, excess) = traces.begin(config, &head.headers, sender, Began::now);
    trace.is_secure = identity.secure;
    if excess.is_some() {
        let reason = Reason::new(Culprit::Client, "trace-strangers");
        scene.worker.count(reason);
    }
    Some(Box::new(trace))
}

/// Adds the span of an exchange that has ended, if it is recorded.
#[inline]
pub(crate) fn note_exchange(exchange: &Exchange<'_>, status: Option<StatusCode>) {
    if let Some(trace) = exchange.trace
        && let Some(began) = trace.recorded
    {
        add_exchange(exchange, trace, began, status);
    }
}

/// Makes the span of an exchange from what was logged of its request, and hands it over.
#[inline(never)]
fn add_exchange(exchange: &Exchange<'_>, trace: &Trace, began: Began, status: Option<StatusCode>) {
    let Some(request) = exchange.logged.as_ref().map(|logged| logged.line()) else {
        return;
    };
    let template = exchange.decided.route.map(|route| route.config.template());
    let method = known_method(request.method);
    let name = match &template {
        Some(template) => format!("{} {template}", method.unwrap_or("HTTP")),
        None => method.unwrap_or("HTTP").to_owned(),
    };
    let period = Period {
        exchange: began,
        began: began.instant,
        ended: Instant::now(),
    };
    let mut span = Span::new(trace, None, name, period);
    add_method(&mut span, request.method);
    span.text("url.path", without_parameters(request.path));
    span.text("url.scheme", passage::scheme(trace.is_secure));
    if let Some(host) = request.host {
        span.text("server.address", host);
    }
    if let Some(template) = &template {
        span.text("http.route", template.as_bytes());
    }
    span.text("network.protocol.version", version_number(request.version));
    span.text("client.address", exchange.decided.client_ip.to_string());
    span.text("catamaran.request_id", exchange.id.digits());
    add_status(&mut span, status);
    // With a success, the reason says why the response was cut; with 4xx, why the front made it.
    let is_blamed = exchange.reason.is_some_and(|reason| !reason.is_client());
    let has_failed = match status {
        Some(status) => status.is_server_error() || is_blamed && !status.is_client_error(),
        None => is_blamed,
    };
    if has_failed {
        fail(&mut span, status, exchange.reason);
    }
    exchange.scene.worker.traces().put(&span);
}

/// Adds the span of an attempt that has ended, if the trace is recorded. `began`: by [`Trace::clock`]; `fault`: it failed.
pub(crate) fn note_attempt(
    exchange: &Exchange<'_>,
    outgoing: &Outgoing<'_>,
    began: Option<Instant>,
    fault: Option<AttemptFault>,
) {
    let Some(began) = began else {
        return;
    };
    let (Some(trace), Some(member)) = (exchange.trace, exchange.attempts.member) else {
        return;
    };
    let Some(exchange_began) = trace.recorded else {
        return;
    };
    let number = exchange.attempts.count;
    let period = Period {
        exchange: exchange_began,
        began,
        ended: Instant::now(),
    };
    let method = known_method(&outgoing.head.method).unwrap_or("HTTP");
    let mut span = Span::new(trace, Some(number), method.to_owned(), period);
    add_method(&mut span, &outgoing.head.method);
    add_target(&mut span, outgoing, member);
    if let Some(upstream) = exchange.decided.upstream {
        span.text("catamaran.upstream", &upstream.name);
    }
    span.text("catamaran.backend", member.name());
    if number > 1 {
        span.number("http.request.resend_count", number - 1);
    }
    // A declined response is not passed on, so the exchange has no status of it.
    let declined = fault.and_then(|fault| fault.declined);
    let status = declined.or(exchange.progress.status);
    add_status(&mut span, status);
    let is_error = |status: StatusCode| status.is_client_error() || status.is_server_error();
    if fault.is_some() || status.is_some_and(is_error) {
        fail(&mut span, status, fault.map(|fault| fault.reason));
    }
    exchange.scene.worker.traces().put(&span);
}

/// Adds where an attempt went, and what was spoken there.
fn add_target(span: &mut Span, outgoing: &Outgoing<'_>, member: &Member) {
    let end = outgoing.end(&member.settings);
    let path = without_parameters(&outgoing.facts(None).path.forward);
    match end.address {
        Address::Tcp { host, port } => {
            let url = format!("{}://{}", end.protocol, end.address);
            span.text("url.full", [url.as_bytes(), &path].concat());
            span.text("server.address", host);
            span.number("server.port", *port);
        }
        Address::Unix(socket) => {
            span.text("url.path", path);
            span.text("server.address", socket.as_os_str().as_encoded_bytes());
        }
    }
    if end.protocol == "ajp" {
        span.text("network.protocol.name", "ajp");
        span.text("network.protocol.version", "1.3");
    } else {
        span.text("network.protocol.version", "1.1");
    }
}

fn add_status(span: &mut Span, status: Option<StatusCode>) {
    if let Some(status) = status {
        span.number("http.response.status_code", status.as_u16());
    }
}

/// Notes why something failed: by the token of the log, or else by the status.
fn fail(span: &mut Span, status: Option<StatusCode>, reason: Option<Reason>) {
    match (reason, status) {
        (Some(reason), _) => span.fail(reason.token()),
        (None, Some(status)) => span.fail(status.as_str()),
        (None, None) => span.fail("_OTHER"),
    }
}

/// Adds the method: one of those that the conventions know, or `_OTHER`, so that clients cannot make up values.
fn add_method(span: &mut Span, method: &Method) {
    match known_method(method) {
        Some(known) => span.text("http.request.method", known),
        None => {
            span.text("http.request.method", "_OTHER");
            span.text("http.request.method_original", method.as_str());
        }
    }
}

fn known_method(method: &Method) -> Option<&'static str> {
    let known = [
        "GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "CONNECT", "TRACE",
    ];
    known.into_iter().find(|name| *name == method.as_str())
}

fn version_number(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        _ => "1.1",
    }
}

/// A path without the parameters of its segments, `;NAME=VALUE`.
fn without_parameters(path: &[u8]) -> Vec<u8> {
    let mut bare = Vec::with_capacity(path.len());
    let mut is_parameter = false;
    for &byte in path {
        match byte {
            b'/' => is_parameter = false,
            b';' => is_parameter = true,
            _ => {}
        }
        if !is_parameter {
            bare.push(byte);
        }
    }
    bare
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_a_path_are_left_out() {
        for (path, bare) in [
            ("/a/b", "/a/b"),
            ("/a;jsessionid=1.b/c;x", "/a/c"),
            ("/;a/", "//"),
            ("*", "*"),
            ("", ""),
        ] {
            assert_eq!(
                without_parameters(path.as_bytes()),
                bare.as_bytes(),
                "{path}"
            );
        }
    }
}
