//! Reads the rest of a request's body after the response, and discards it.
//!
//! Many clients write a whole request before they read. If the connection is closed while bytes are
//! on their way, the kernel answers them with a reset, and the client loses the response (RFC 9112,
//! section 9.6). So the rest is read and discarded, up to the listener's `linger_max` and
//! `linger_timeout`. If the response was the last of the connection, the sending side is closed
//! first.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::task::coop::poll_proceed;

use crate::client::pace::{Demand, Pace, Turn};
use crate::client::{BodyPart, ClientConnection};
use crate::config::ListenerConfig;
use crate::deadlines::Deadline;
use crate::worker::Worker;

/// The limits on reading, and discarding, the rest of what a client sends.
#[derive(Clone, Copy, Debug)]
struct Patience {
    bytes: u64,
    time: Duration,
    demand: Demand,
}

/// Reads the rest of the request's body after a response. `true` if another request may follow on
/// the connection; otherwise it is to be closed now.
pub(crate) async fn settle(
    worker: &Worker,
    client: &mut ClientConnection,
    deadline: &Deadline,
) -> bool {
    if client.request_body_done() {
        close(worker, client, deadline).await;
        return false;
    }
    let is_last = client.is_last();
    if is_last {
        finish_sending(deadline, client).await;
    }
    let patience = Patience::with_body(client.config());
    let has_ended = read(worker, deadline, client, patience, poll_body).await;
    if has_ended && client.can_reuse() {
        return true;
    }
    // If the sending side is closed and the client still sends beyond the limits, there is nothing more to wait for.
    if has_ended || !is_last {
        close(worker, client, deadline).await;
    }
    false
}

/// Closes a connection on which a request's head was refused, so that the end of its body is not
/// known.
pub(crate) async fn refused(worker: &Worker, client: &mut ClientConnection, deadline: &Deadline) {
    let patience = Patience::with_unknown(client.config());
    finish_sending(deadline, client).await;
    read(worker, deadline, client, patience, poll_bytes).await;
}

/// Closes a connection on which no further request follows, or whose client was too slow.
pub(crate) async fn close(worker: &Worker, client: &mut ClientConnection, deadline: &Deadline) {
    finish_sending(deadline, client).await;
    read(worker, deadline, client, Patience::SHORT, poll_bytes).await;
}

/// Sends close_notify over TLS and closes the sending side. Gives up after [`Patience::SHORT`], because a client that
/// reads nothing can keep close_notify from being sent.
async fn finish_sending(deadline: &Deadline, client: &mut ClientConnection) {
    let end = deadline.now() + Patience::SHORT.time;
    deadline.set(end);
    std::future::poll_fn(|cx| match client.poll_finish_sending(cx) {
        Poll::Pending if deadline.now() < end => Poll::Pending,
        Poll::Pending | Poll::Ready(()) => Poll::Ready(()),
    })
    .await;
}

/// Reads until `next` returns `None` or a limit is reached. `true`: `next` returned `None`.
async fn read(
    worker: &Worker,
    deadline: &Deadline,
    client: &mut ClientConnection,
    patience: Patience,
    mut next: impl FnMut(&mut ClientConnection, &mut Context<'_>) -> Poll<Option<usize>>,
) -> bool {
    let since = deadline.now();
    let end = since + patience.time;
    let mut pace = Pace::default();
    let mut bytes_left = patience.bytes;
    std::future::poll_fn(|cx| {
        loop {
            let now = deadline.now();
            let until = pace.wait(now, patience.demand).min(end);
            if now >= until || worker.sheds(since) {
                return Poll::Ready(false);
            }
            deadline.set(until);
            // A client that sends as fast as we read must not keep other tasks from running.
            let progress = ready!(poll_proceed(cx));
            let Some(len) = ready!(next(client, cx)) else {
                return Poll::Ready(true);
            };
            progress.made_progress();
            pace.moved(now, len as u64);
            if len as u64 > bytes_left {
                return Poll::Ready(false);
            }
            bytes_left -= len as u64;
        }
    })
    .await
}

/// The length of the body's next piece; `None` at its end, or if the client has failed.
fn poll_body(client: &mut ClientConnection, cx: &mut Context<'_>) -> Poll<Option<usize>> {
    let part = ready!(client.poll_body(cx));
    Poll::Ready(match part {
        Ok(BodyPart::Data(data)) => Some(data.len()),
        Ok(BodyPart::End) | Err(_) => None,
    })
}

/// The number of bytes read, whatever they are; `None` when the client has closed or the connection
/// failed.
fn poll_bytes(client: &mut ClientConnection, cx: &mut Context<'_>) -> Poll<Option<usize>> {
    client.discard_input();
    let read = ready!(client.poll_read(cx));
    Poll::Ready(read.ok().filter(|read| *read > 0))
}

impl Patience {
    /// The limits for a client that only has to read the response and to close.
    const SHORT: Self = Self {
        bytes: 256 * 1024,
        time: SHORT_TIME,
        demand: Demand {
            idle: SHORT_TIME,
            rate_min: 0,
            turn: Turn::ALONE,
        },
    };

    /// The limits for a client that is sending a body: the listener's settings.
    fn with_body(listener: &Arc<ListenerConfig>) -> Self {
        Self {
            bytes: listener.linger_max,
            time: listener.linger_timeout,
            demand: Demand {
                idle: listener.body_timeout,
                rate_min: listener.body_rate_min,
                turn: Turn::ALONE,
            },
        }
    }

    /// The limits for a client of which it is not known whether it is sending a body.
    fn with_unknown(listener: &Arc<ListenerConfig>) -> Self {
        let patience = Self::with_body(listener);
        Self {
            demand: Demand {
                idle: SHORT_TIME,
                ..patience.demand
            },
            ..patience
        }
    }
}

/// How long a client may take to read the response and to close. httpd: `SECONDS_TO_LINGER`, 2 s;
/// nginx: `lingering_timeout`, 5 s.
const SHORT_TIME: Duration = Duration::from_secs(2);
