//! Responses that do not come straight from a backend: the front's answers and pages, files, and
//! responses of caches.
//!
//! They pass through the same policy and the same relay as the responses of backends.

use std::time::Duration;

use bytes::Bytes;
use catamaran_message::name::RETRY_AFTER;
use catamaran_message::{BodyLength, Fields};
use catamaran_upstream::Culprit;
use http::StatusCode;

use crate::counters::Reason;
use crate::exchange::downstream::{After, Downstream};
use crate::exchange::failure::Failure;
use crate::exchange::relay::{AttemptEnd, Relay, RelayError, Terms};
use crate::exchange::source::{Answer, Source};
use crate::exchange::state::Exchange;
use crate::exchange::verdict::{OwnAnswer, OwnContent};
use crate::exchange::{respond, secured};

/// Ends a failed exchange: sends a page if no response was begun, else cuts the response visibly.
pub(crate) async fn fail(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    failure: Failure,
) -> After {
    exchange.note_reason(failure.reason);
    if exchange.progress.status.is_some() {
        // The client still gets what the backend has sent; the cut shows that the rest is missing.
        let limit = if failure.is_gone() {
            Duration::ZERO
        } else {
            exchange.scene.listener.write_timeout
        };
        down.cut(exchange.scene.deadline, limit).await;
        return After::Cut;
    }
    if failure.client_gone {
        exchange.unsent = failure.is_gone().then_some(failure.status);
        return After::Cut;
    }
    if failure.reason.is_client() {
        down.abandon_upload();
    }
    send(exchange, down, page(exchange, failure.status)).await
}

/// Sends the front's own answer, as the listener or the route decided it.
pub(crate) async fn answer(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    own: OwnAnswer,
) -> After {
    if let Some(head) = own.spent {
        down.recycle(head);
    }
    let mut reason = own.reason;
    let answer = match own.content {
        OwnContent::Page(status) if status.is_success() => page(exchange, status).of_route(),
        OwnContent::Page(status) => page(exchange, status),
        OwnContent::Text(status, media_type, text) => {
            Answer::text(status, media_type.as_bytes(), text)
        }
        OwnContent::Allow(status, methods) => page(exchange, status).with(respond::allow(&methods)),
        OwnContent::Limited(seconds) => {
            let mut answer = page(exchange, StatusCode::TOO_MANY_REQUESTS);
            answer.add(RETRY_AFTER, itoa::Buffer::new().format(seconds));
            answer
        }
        OwnContent::Preflight => Answer::new(StatusCode::NO_CONTENT, Fields::new(), Bytes::new()),
        OwnContent::Redirect(status, location) => Answer::redirect(status, location, exchange.id),
        OwnContent::Challenge(file) => match secured::read_challenge(file).await {
            Some(bytes) => Answer::text(StatusCode::OK, b"text/plain", bytes),
            None => {
                reason = Reason::new(Culprit::Client, "acme-token");
                page(exchange, StatusCode::NOT_FOUND)
            }
        },
    };
    exchange.note_reason(reason);
    send(exchange, down, answer).await
}

/// The page for a status: the operator's, if there is one, else the front's.
pub(crate) fn page(exchange: &Exchange<'_>, status: StatusCode) -> Answer {
    let count = |reason| exchange.scene.worker.count(reason);
    let (headers, body) = exchange
        .decided
        .pages
        .answer(status, exchange.reason, count);
    Answer::new(status, headers, body)
}

/// Sends an answer of the front's own.
pub(crate) async fn send(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    answer: Answer,
) -> After {
    let status = answer.status();
    match serve(exchange, down, Source::Answer(answer)).await {
        Err(_) => After::Cut,
        Ok(()) if status == StatusCode::REQUEST_TIMEOUT => After::Late,
        Ok(()) => After::Done,
    }
}

/// Sends a response from a source other than a backend. The request's body is not read for it.
pub(crate) async fn serve(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    source: Source<'_, '_>,
) -> Result<(), Failure> {
    let relayed = relay(exchange, down, true, source).await;
    relayed.map_err(|error| error.failure())
}

/// Does the same as [`serve`], but returns the relay's own error, for callers that go on after a failure.
pub(crate) async fn relay(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    takes_interims: bool,
    source: Source<'_, '_>,
) -> Result<(), RelayError> {
    if !exchange.progress.body_complete {
        down.abandon_upload();
    }
    let policy = exchange.decided.policy(None, None);
    let terms = Terms {
        policy: &policy,
        takes_interims,
        body: BodyLength::Known(0),
        body_max: u64::MAX,
        expect_continue: false,
        end: AttemptEnd::NEVER,
        timed: false,
    };
    let relayed = Relay::new(exchange.scene, down, source, terms, &mut exchange.progress)
        .run()
        .await;
    relayed.map_err(|error| *error)
}
