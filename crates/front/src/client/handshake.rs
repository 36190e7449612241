//! The handshake of TLS on a connection that was accepted.
//!
//! It has one absolute deadline. How many a worker has under way is limited. A failure is counted
//! under its reason, and logged once in a while for each reason, since scanners cause most of them.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use catamaran_transport::HandshakeError;
use catamaran_upstream::Culprit;

use crate::client::{ClientConnection, linger};
use crate::config::TlsConfig;
use crate::worker::Worker;
use crate::worker::counters::Reason;
use crate::worker::deadlines::{Deadline, Tick};

/// The handshakes of one worker.
#[derive(Debug, Default)]
pub(crate) struct Handshakes {
    open: AtomicUsize,
    /// When a failure of each reason was logged last.
    logged: Mutex<Vec<(&'static str, Tick)>>,
}

impl Handshakes {
    /// How many are under way.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Whether a failure for this reason is to be logged now.
    fn is_news(&self, token: &'static str, now: Tick) -> bool {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        match logged.iter_mut().find(|(known, _)| *known == token) {
            Some((_, at)) if now < *at + LOG_PERIOD => false,
            Some((_, at)) => {
                *at = now;
                true
            }
            None => {
                logged.push((token, now));
                true
            }
        }
    }
}

/// One of the handshakes under way.
struct Open<'a>(&'a Handshakes);

impl<'a> Open<'a> {
    fn begin(handshakes: &'a Handshakes) -> Self {
        handshakes.open.fetch_add(1, Ordering::Relaxed);
        Self(handshakes)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Makes the handshake. `false` if the connection is to be closed.
pub(crate) async fn run(
    worker: &Worker,
    client: &mut ClientConnection,
    deadline: &Deadline,
    config: &TlsConfig,
) -> bool {
    let handshakes = worker.handshakes();
    if handshakes.open() >= config.handshakes_max {
        fail(
            worker,
            client,
            deadline,
            Reason::new(Culprit::Front, "tls-handshakes-max"),
            None,
        );
        return false;
    }
    let open = Open::begin(handshakes);
    let end = deadline.now() + config.handshake_timeout;
    deadline.set(end);
    let outcome = poll_fn(|cx| match client.poll_handshake(cx) {
        Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
        Poll::Pending if deadline.now() >= end => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await;
    drop(open);
    let (token, error) = match outcome {
        Some(Ok(())) => {
            if let Some(session) = client.tls() {
                worker.counters().handshake(&session.facts);
            }
            return true;
        }
        None => ("tls-handshake-timeout", None),
        Some(Err(HandshakeError::Tls(error))) => (error.client_token(), Some(error.to_string())),
        Some(Err(HandshakeError::NotTls(first))) => {
            fail(
                worker,
                client,
                deadline,
                Reason::new(Culprit::Client, "plain-http-on-tls"),
                None,
            );
            if first.is_ascii_uppercase() {
                client.answer_in_clear(PLAIN_HTTP);
                linger::close(worker, client, deadline).await;
            }
            return false;
        }
        // A client that comes and goes, such as a probe of a port, is none of our business.
        Some(Err(HandshakeError::Closed)) if !client.has_begun_handshake() => return false,
        Some(Err(HandshakeError::Closed)) => ("tls-handshake-closed", None),
        Some(Err(HandshakeError::Io(error))) => ("tls-handshake-closed", Some(error.to_string())),
    };
    let reason = Reason::new(Culprit::Client, token);
    fail(worker, client, deadline, reason, error);
    false
}

fn fail(
    worker: &Worker,
    client: &ClientConnection,
    deadline: &Deadline,
    reason: Reason,
    error: Option<String>,
) {
    worker.count(reason);
    if worker.handshakes().is_news(reason.token(), deadline.now()) {
        let error = error.unwrap_or_default();
        let remote = client.peer().remote;
        tracing::info!(%remote, %reason, error, "no TLS handshake; others for this reason are counted");
    }
}

/// What a client that speaks HTTP without TLS is told.
const PLAIN_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\
    Content-Length: 41\r\nConnection: close\r\n\r\nThis port speaks TLS: use https:// here.\n";

/// How often a failure of one reason is logged.
const LOG_PERIOD: Duration = Duration::from_secs(10);
