//! The TLS handshake of an accepted connection.
//!
//! A handshake has one absolute deadline. The number that a worker has under way is limited, and also how many go on
//! in one turn of its event loop ([`crate::worker::handshakes`]). A failure is counted under its reason. It is logged
//! once in a while for each reason, since scanners cause most failures.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use catamaran_transport::HandshakeError;
use catamaran_upstream::Culprit;

use crate::client::{ClientConnection, linger};
use crate::config::TlsConfig;
use crate::counters::Reason;
use crate::deadlines::{Deadline, Tick};
use crate::limits::Limit;
use crate::worker::Worker;
use crate::worker::handshakes::Open;

/// The outcome of a handshake.
enum Outcome {
    Made,
    Failed(HandshakeError),
    TimedOut,
    /// It was given up to make room for another handshake.
    GivenUp,
}

/// Makes the TLS handshake of a connection that was accepted at `since`. `false`: the connection is to be closed.
pub(crate) async fn run(
    worker: &Worker,
    client: &mut ClientConnection,
    deadline: &Deadline,
    config: &TlsConfig,
    since: Tick,
) -> bool {
    match make(worker, client, deadline, config, since).await {
        Outcome::Made => {
            if let Some(session) = client.tls() {
                worker.counters().handshake(&session.facts);
                // The authority has seen what it asked for, and sends nothing (RFC 8737, section 3).
                if session.facts.alpn.as_deref() == Some("acme-tls/1") {
                    client.close_in_order();
                    return false;
                }
            }
            true
        }
        Outcome::Failed(HandshakeError::NotTls(first)) => {
            let reason = Reason::new(Culprit::Client, "plain-http-on-tls");
            fail(worker, client, deadline, reason, None);
            // So begins the method of a request in plain HTTP.
            if first.is_ascii_uppercase() {
                client.answer_in_clear(PLAIN_HTTP);
                linger::close(worker, client, deadline).await;
            }
            false
        }
        Outcome::GivenUp => {
            worker.turn_away(Limit::Handshakes);
            false
        }
        // A client that connects and sends nothing, such as a probe of a port, is not counted as a failure.
        Outcome::Failed(HandshakeError::Closed) if !client.has_begun_handshake() => false,
        outcome => {
            let (reason, error) = reason(&outcome);
            fail(worker, client, deadline, reason, error);
            false
        }
    }
}

/// Makes the handshake. Until the ClientHello has arrived whole, each step waits for a turn, because answering a
/// ClientHello is what costs.
async fn make(
    worker: &Worker,
    client: &mut ClientConnection,
    deadline: &Deadline,
    config: &TlsConfig,
    since: Tick,
) -> Outcome {
    let handshakes = worker.handshakes();
    let max = config.handshakes_max;
    let mut open = poll_fn(|cx| Poll::Ready(handshakes.begin(max, cx.waker()))).await;
    let _counted = worker.counters().count_handshake();
    let end = since + config.handshake_timeout;
    deadline.set(end);
    poll_fn(|cx| match poll(client, &mut open, cx) {
        Poll::Pending if deadline.now() >= end => Poll::Ready(Outcome::TimedOut),
        outcome => outcome,
    })
    .await
}

/// The next step of the handshake: waits for bytes and a turn while the ClientHello is incomplete.
fn poll(client: &mut ClientConnection, open: &mut Open<'_>, cx: &mut Context<'_>) -> Poll<Outcome> {
    if open.is_given_up() {
        return Poll::Ready(Outcome::GivenUp);
    }
    if !client.has_said_hello() {
        if let Err(error) = ready!(client.poll_readable(cx)) {
            return Poll::Ready(Outcome::Failed(error.into()));
        }
        ready!(open.poll_turn(cx));
    }
    let handshake = client.poll_handshake(cx);
    if client.has_said_hello() {
        open.heard();
    }
    Poll::Ready(match ready!(handshake) {
        Ok(()) => Outcome::Made,
        Err(error) => Outcome::Failed(error),
    })
}

/// The reason to count a failed handshake under, and the text of the error, if there is one.
fn reason(outcome: &Outcome) -> (Reason, Option<String>) {
    let (token, error) = match outcome {
        Outcome::Failed(HandshakeError::Tls(error)) => {
            (error.client_token(), Some(error.to_string()))
        }
        Outcome::Failed(HandshakeError::Io(error)) => {
            ("tls-handshake-closed", Some(error.to_string()))
        }
        Outcome::Failed(HandshakeError::Closed) => ("tls-handshake-closed", None),
        Outcome::Failed(HandshakeError::NotTls(_) | HandshakeError::TooLarge) => {
            ("tls-handshake", None)
        }
        // The first two are no failures that are counted here.
        Outcome::Made | Outcome::GivenUp | Outcome::TimedOut => ("tls-handshake-timeout", None),
    };
    (Reason::new(Culprit::Client, token), error)
}

/// Counts a failed handshake, and logs it unless one with this reason was logged lately.
fn fail(
    worker: &Worker,
    client: &ClientConnection,
    deadline: &Deadline,
    reason: Reason,
    error: Option<String>,
) {
    worker.count(reason);
    let log = worker.failure_log();
    if log.is_news(reason.token(), deadline.now()) {
        let error = error.unwrap_or_default();
        let remote = client.peer().remote;
        tracing::info!(%remote, %reason, error, "TLS handshake failed; further ones for this reason are only counted");
    }
}

/// The answer to a client that speaks plain HTTP on a port with TLS.
const PLAIN_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\
    Content-Length: 41\r\nConnection: close\r\n\r\nThis port speaks TLS: use https:// here.\n";
