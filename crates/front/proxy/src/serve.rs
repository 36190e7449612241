//! Serves one client's connection, from accept to close.
//!
//! The phases are idle → head → exchange → idle, until one side closes. There are many idle
//! connections, so the future of an idle connection is kept small. The state of an exchange is
//! boxed when the exchange begins, and buffers are given back when it ends. Waits of an idle
//! connection are functions that return a future, because the arguments of an `async fn` are
//! stored twice.

pub(crate) mod accept;
pub(crate) mod event_loop;
pub(crate) mod http2;
mod proxied;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use catamaran_http1::{Fault, ServerEvent};
use catamaran_message::RequestHead;
use catamaran_upstream::Culprit;
use http::StatusCode;

use crate::boxed::boxed;
use crate::client::{ClientConnection, handshake, linger};
use crate::config::{ListenerConfig, Protocols};
use crate::counters::Reason;
use crate::deadlines::{Deadline, Tick};
use crate::exchange;
use crate::exchange::downstream::{After, Downstream};
use crate::exchange::failure::Failure;
use crate::exchange::scene::Scene;
use crate::worker::Worker;

/// How the wait for a request ended.
enum Next {
    Request(Box<RequestHead>),
    Refused(Failure),
    /// The connection must be closed without a response.
    Close,
}

/// Serves a client until its connection is closed.
pub(crate) fn serve(
    worker: Arc<Worker>,
    mut client: ClientConnection,
) -> impl Future<Output = ()> + Send {
    let listener = Arc::clone(client.config());
    let deadline = worker.deadlines().join();
    // Four bytes, because there are many idle clients; a limit beyond their range is no limit.
    let mut served: u32 = 0;
    async move {
        deadline.attach().await;
        if client.awaited_profile().is_some() {
            let accepted = deadline.now();
            let handshake = shake_hands(&worker, &mut client, &deadline, accepted);
            if !Box::pin(handshake).await {
                return;
            }
        }
        if listener.protocols.has_http2() {
            match Box::pin(await_protocol(&worker, &mut client, &deadline)).await {
                Some(ClientProtocol::Http1) => {}
                Some(ClientProtocol::Http2) => {
                    return Box::pin(http2::serve(worker, client, deadline)).await;
                }
                None => return client.close_in_order(),
            }
        }
        let refused = loop {
            let wait = if served == 0 {
                listener.head_timeout
            } else {
                listener.keep_alive_timeout
            };
            if !client.has_input() && !idle(&worker, &mut client, &deadline, wait).await {
                client.close_in_order();
                return;
            }
            let head = match next_request(&listener, &mut client, &deadline).await {
                Next::Request(head) => head,
                Next::Refused(_) if served == 0 && client.meets_tls() => {
                    let reason = Reason::new(Culprit::Client, "tls-on-clear-port");
                    return worker.count(reason);
                }
                Next::Refused(failure) => break failure,
                Next::Close => {
                    client.close_in_order();
                    return;
                }
            };
            served = served.saturating_add(1);
            if u64::from(served) >= listener.keep_alive_requests {
                client.close_after();
            }
            let begin = || exchange_on(&worker, &listener, &mut client, &deadline, head);
            let after = boxed(begin).await;
            match after {
                After::Cut => return Box::pin(cut(worker, client)).await,
                After::Late => {
                    return Box::pin(linger::close(&worker, &mut client, &deadline)).await;
                }
                After::Done => {}
            }
            // The rest of the request's body may be on its way, or the connection ends.
            if !client.can_reuse()
                && !Box::pin(linger::settle(&worker, &mut client, &deadline)).await
            {
                return;
            }
            if !client.has_input() {
                client.release_buffers();
            }
        };
        Box::pin(refuse(&worker, &listener, &mut client, &deadline, refused)).await;
    }
}

/// The protocol that a client speaks.
#[derive(Clone, Copy)]
enum ClientProtocol {
    Http1,
    Http2,
}

/// Finds out which protocol the client speaks: HTTP/2 if it chose that in its TLS handshake, or begins with the preface of
/// HTTP/2. `None`: the connection must be closed.
async fn await_protocol(
    worker: &Worker,
    client: &mut ClientConnection,
    deadline: &Deadline,
) -> Option<ClientProtocol> {
    let listener = Arc::clone(client.config());
    let chosen = client.tls().and_then(|tls| tls.facts.alpn.as_deref());
    let must_be_http2 = chosen == Some("h2") || listener.protocols == Protocols::Http2;
    if !must_be_http2 && client.tls().is_some() {
        return Some(ClientProtocol::Http1);
    }
    let end = deadline.now() + listener.head_timeout;
    if !client.has_input() && !idle(worker, client, deadline, listener.head_timeout).await {
        return None;
    }
    deadline.set(end);
    let is_http2 = poll_fn(|cx| {
        loop {
            if let Some(is_http2) = http2::begins(client.input()) {
                return Poll::Ready(is_http2);
            }
            match client.poll_read(cx) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Pending if deadline.now() < end => return Poll::Pending,
                // Closed, failed or too late: what has come is left to HTTP/1.1, which refuses it.
                Poll::Ready(_) | Poll::Pending => return Poll::Ready(false),
            }
        }
    })
    .await;
    if is_http2 {
        return Some(ClientProtocol::Http2);
    }
    if must_be_http2 {
        worker.count(Reason::new(Culprit::Client, "h2-preface"));
        linger::close(worker, client, deadline).await;
        return None;
    }
    Some(ClientProtocol::Http1)
}

/// Completes the TLS handshake, if one is due; its time counts from `accepted`. `false`: the connection must
/// be closed.
pub(crate) async fn shake_hands(
    worker: &Worker,
    client: &mut ClientConnection,
    deadline: &Deadline,
    accepted: Tick,
) -> bool {
    match client.awaited_profile() {
        Some(profile) => handshake::run(worker, client, deadline, &profile.config, accepted).await,
        None => true,
    }
}

/// Serves one request of an HTTP/1.x connection.
async fn exchange_on(
    worker: &Worker,
    listener: &ListenerConfig,
    client: &mut ClientConnection,
    deadline: &Deadline,
    head: Box<RequestHead>,
) -> After {
    let peer = Kilobyte(client.peer());
    let scene = Scene {
        worker,
        listener,
        deadline,
        peer: &peer.0,
    };
    exchange::serve(scene, &mut Downstream::Http1(client), head).await
}

/// Makes the future that holds it a kilobyte large. Of a size that is no power of two the allocator (mimalloc 3) keeps no
/// list of free blocks for aligned requests, which all of Rust's are, and takes its slow path each time.
#[repr(align(128))]
struct Kilobyte<T>(T);

/// Answers a request that was refused, and closes the connection.
async fn refuse(
    worker: &Worker,
    listener: &ListenerConfig,
    client: &mut ClientConnection,
    deadline: &Deadline,
    failure: Failure,
) {
    let peer = client.peer();
    let scene = Scene {
        worker,
        listener,
        deadline,
        peer: &peer,
    };
    match exchange::refuse(scene, &mut Downstream::Http1(client), failure).await {
        After::Done => linger::refused(worker, client, deadline).await,
        After::Late => linger::close(worker, client, deadline).await,
        After::Cut => {}
    }
}

/// Closes the connection at once. If the client left while a backend may still process its request, waits for
/// the backend to finish, unless the front drains.
async fn cut(worker: Arc<Worker>, mut client: ClientConnection) {
    let abandoned = client.take_abandoned();
    drop(client);
    if let Some(exchange) = abandoned {
        tokio::select! {
            () = exchange.abandon() => {}
            _ = worker.drain().begun() => {}
        }
    }
}

/// Waits for the first bytes of the next request. `false`: the connection must be closed.
fn idle(
    worker: &Worker,
    client: &mut ClientConnection,
    deadline: &Deadline,
    limit: Duration,
) -> impl Future<Output = bool> {
    let since = deadline.now();
    let end = since + limit;
    deadline.set(end);
    poll_fn(move |cx| match client.poll_first_read(cx) {
        Poll::Ready(read) => Poll::Ready(matches!(read, Ok(1..))),
        Poll::Pending => {
            let close = deadline.now() >= end || client.must_close() || worker.sheds(since);
            // A request that has just arrived is served: the event loop is about to tell of it.
            if close && client.is_quiet() {
                Poll::Ready(false)
            } else {
                Poll::Pending
            }
        }
    })
}

/// Reads a request's head. The deadline is absolute: bytes that arrive slowly do not extend it.
fn next_request(
    listener: &ListenerConfig,
    client: &mut ClientConnection,
    deadline: &Deadline,
) -> impl Future<Output = Next> {
    let end = deadline.now() + listener.head_timeout;
    let mut undecoded = true;
    poll_fn(move |cx| {
        loop {
            if undecoded {
                match client.decode() {
                    // The head is not complete.
                    Ok(None) => deadline.set(end),
                    decoded => return Poll::Ready(next(decoded)),
                }
                undecoded = false;
            }
            let read = client.poll_read(cx);
            if read.is_pending() && deadline.now() >= end {
                let status = StatusCode::REQUEST_TIMEOUT;
                let failure = Failure::new(Culprit::Client, status, "head-timeout");
                return Poll::Ready(Next::Refused(failure));
            }
            match ready!(read) {
                Ok(1..) => undecoded = true,
                Ok(0) => return Poll::Ready(next(client.decode_eof().map(|()| None))),
                Err(_) => return Poll::Ready(Next::Close),
            }
        }
    })
}

/// The end of the wait for a request, by what the codec has decoded.
fn next(decoded: Result<Option<ServerEvent>, Fault>) -> Next {
    match decoded {
        Ok(Some(ServerEvent::Head(head))) => Next::Request(head),
        // A clean close. The codec never yields a body without a head.
        Ok(_) => Next::Close,
        Err(fault) => Next::Refused(Failure::new(Culprit::Client, fault.status(), fault.token())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<W, C, F>(_: fn(W, C) -> F) -> usize {
        size_of::<F>()
    }

    fn size_of_exchange<W, L, C, D, H, F>(_: fn(W, L, C, D, H) -> F) -> usize {
        size_of::<F>()
    }

    /// The test keeps the state of an exchange on the allocator's fast path, which ends at a kilobyte.
    #[test]
    fn an_exchange_is_small() {
        assert_eq!(size_of_exchange(exchange_on), 1024);
    }

    /// The test keeps an idle client in its size class: the allocator's next larger one would cost a quarter
    /// more.
    #[test]
    fn an_idle_client_is_small() {
        let size = size_of_future(serve);
        assert!(size <= 256, "{size} bytes");
    }
}
