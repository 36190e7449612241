//! Responses that do not come straight from a backend: the front's answers and pages, files, and
//! responses of caches.
//!
//! They pass through the same policy as the responses of backends, and files and responses of caches through the same
//! relay. The front's own answers are whole and in memory: they need a relay only if the client does not take them at once.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use catamaran_message::name::{CACHE_CONTROL, RETRY_AFTER, WWW_AUTHENTICATE};
use catamaran_message::{BodyLength, Fields};
use catamaran_upstream::Culprit;
use http::StatusCode;

use crate::boxed::boxed;
use crate::counters::Reason;
use crate::exchange::downstream::{After, Downstream};
use crate::exchange::failure::Failure;
use crate::exchange::relay::{AttemptEnd, Relay, RelayError, Terms};
use crate::exchange::response_policy::ResponsePolicy;
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
        OwnContent::Service(status, fields, body) => Answer::new(status, *fields, body),
        OwnContent::SignIn(location) => {
            let mut answer = Answer::redirect(StatusCode::FOUND, location, exchange.id);
            answer.add(CACHE_CONTROL, "no-store");
            answer
        }
        OwnContent::Unauthorized(challenge) => {
            let mut answer = page(exchange, StatusCode::UNAUTHORIZED);
            answer.add(WWW_AUTHENTICATE, challenge);
            answer.add(CACHE_CONTROL, "no-store");
            answer
        }
        OwnContent::Redirect(status, location) => Answer::redirect(status, location, exchange.id),
        OwnContent::Challenge(files) => {
            let memory = exchange.scene.worker.issued_memory();
            match secured::read_challenge(files, memory).await {
                Some(bytes) => Answer::text(StatusCode::OK, b"text/plain", bytes),
                None => {
                    reason = Reason::new(Culprit::Client, "acme-token");
                    page(exchange, StatusCode::NOT_FOUND)
                }
            }
        }
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

/// Sends an answer of the front's own. It is whole and in memory, so that most clients take it at once, without a relay.
pub(crate) async fn send(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    answer: Answer,
) -> After {
    let status = answer.status();
    let progress = &exchange.progress;
    let is_copied = progress.sink.is_some() || progress.compression.is_some();
    let is_sent = if is_copied || down.is_full() {
        let source = Source::Answer(answer);
        boxed(|| serve(exchange, down, source)).await.is_ok()
    } else {
        hand_over(exchange, down, answer) && write(exchange, down).await
    };
    match status {
        _ if !is_sent => After::Cut,
        StatusCode::REQUEST_TIMEOUT => After::Late,
        _ => After::Done,
    }
}

/// Hands a whole answer to the client's side, as the policy edits it. `false`: it cannot be sent.
fn hand_over(exchange: &mut Exchange<'_>, down: &mut Downstream<'_>, answer: Answer) -> bool {
    if !exchange.progress.body_complete {
        down.abandon_upload();
    }
    let (mut head, body, scope) = answer.into_parts();
    if head.status.is_success() && down.opens_by_success() {
        return false;
    }
    let policy = exchange.decided.policy(None, None);
    policy.edit(&mut head, exchange.scene, || scope);
    if down.send_head(&head).is_err() {
        return false;
    }
    exchange.progress.status = Some(head.status);
    if !body.is_empty() {
        down.send_data(body);
    }
    down.send_end()
}

/// Writes what was handed to the client's side. `false`: it was not written to its end.
async fn write(exchange: &mut Exchange<'_>, down: &mut Downstream<'_>) -> bool {
    let written = poll_fn(|cx| match down.poll_write(cx) {
        Poll::Pending => Poll::Ready(Ok(0)),
        ready @ Poll::Ready(_) => ready,
    });
    if written.await.is_err() {
        return false;
    }
    down.unwritten() == 0 || boxed(|| write_rest(exchange, down)).await
}

/// Does the rest of [`write()`] for a client that did not take everything at once: with a relay, which has deadlines.
async fn write_rest(exchange: &mut Exchange<'_>, down: &mut Downstream<'_>) -> bool {
    let policy = exchange.decided.policy(None, None);
    let source = Source::Answer(Answer::new(StatusCode::OK, Fields::new(), Bytes::new()));
    let progress = &mut exchange.progress;
    let mut relay = Relay::new(exchange.scene, down, source, terms(&policy, true), progress);
    relay.end_download();
    relay.run().await.is_ok()
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
    let terms = terms(&policy, takes_interims);
    let relayed = Relay::new(exchange.scene, down, source, terms, &mut exchange.progress)
        .run()
        .await;
    relayed.map_err(|error| *error)
}

/// What the relay needs to know of a request whose body is not read.
fn terms<'a>(policy: &'a ResponsePolicy<'a>, takes_interims: bool) -> Terms<'a> {
    Terms {
        policy,
        takes_interims,
        body: BodyLength::Known(0),
        body_max: u64::MAX,
        expect_continue: false,
        end: AttemptEnd::NEVER,
        timed: false,
    }
}
