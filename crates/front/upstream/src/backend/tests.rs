//! Tests which requests get which pooled connection.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use catamaran_message::{BodyLength, Fields, Request};
use catamaran_testkit::address::unused;
use catamaran_testkit::{Peer, Script};
use http::Method;

use super::*;
use crate::client_facts::ClientFacts;
use crate::config::{Address, Protocol};
use crate::wire::Event;

#[tokio::test]
async fn a_request_that_must_not_run_twice_keeps_away_from_what_may_be_dropped() {
    let peer = Peer::start_with(|index| match index {
        0 => turn(),
        _ => turn().then(turn()).then(turn()).stall(),
    });
    let address = peer.tcp_address();
    let host = address.ip().to_string();
    let port = address.port();
    let mut config = BackendConfig::new(Protocol::Http, Address::Tcp { host, port });
    config.idle_timeout = Duration::from_secs(60);
    let backend = Backend::new("app", config, 1);
    let start = Instant::now();
    let after = |seconds| start + Duration::from_secs(seconds);

    exchange(&backend, Reuse::Lasting, after(0), false).await;
    // It is closed; that it was is noticed ten seconds later.
    let _ = peer.wait_outcome(0);
    // So that the event loop looks at its sockets.
    tokio::task::yield_now().await;
    exchange(&backend, Reuse::Any, after(10), false).await;
    exchange(&backend, Reuse::Lasting, after(14), true).await;
    exchange(&backend, Reuse::Any, after(24), true).await;
    exchange(&backend, Reuse::Lasting, after(34), false).await;
    assert_eq!(backend.counts().open, 1, "in place of the other");
    exchange(&backend, Reuse::Never, after(35), false).await;
}

#[tokio::test]
async fn exchanges_in_flight_are_summed_and_counted_as_load_only_for_who_reads_it() {
    let peer = Peer::start_with(|_| Script::new().stall());
    let address = peer.tcp_address();
    let host = address.ip().to_string();
    let port = address.port();
    let config = BackendConfig::new(Protocol::Http, Address::Tcp { host, port });
    let backend = Backend::new("app", config, 2);
    let (settings, now) = (backend.settings(), Instant::now());
    let lease = |worker| backend.lease(&settings, worker, Reuse::Any, now);
    let numbers = || (backend.in_flight(), backend.load());

    let unread = lease(0).await.unwrap();
    assert_eq!(numbers(), (1, 0));
    backend.keep_load(true);
    let (first, second) = (lease(0).await.unwrap(), lease(1).await.unwrap());
    assert_eq!(numbers(), (3, 2));
    // One that began before is not taken from the others' number.
    drop(unread);
    assert_eq!(numbers(), (2, 2));
    let left = first.leave_behind();
    assert_eq!(numbers(), (2, 2));
    backend.keep_load(false);
    drop((left, second));
    assert_eq!(numbers(), (0, 0));
}

#[tokio::test]
async fn each_probe_wakes_those_who_wait_for_a_member() {
    // Nobody else takes ports of this address when it is free.
    let free = unused().unwrap();
    let mut peer = Some(Peer::start_at(free, Script::new().stall()));
    let address = peer.as_ref().unwrap().tcp_address();
    let host = address.ip().to_string();
    let port = address.port();
    let config = BackendConfig::new(Protocol::Http, Address::Tcp { host, port });
    let backend = Backend::new("app", config, 1);
    let changed = Arc::<Notify>::default();
    let members = [(Arc::clone(&backend), 1)].into_iter();
    backend.configure(
        backend.settings(),
        Group::new(members, 100, Arc::clone(&changed)),
    );
    for is_well in [true, false] {
        let mut woken = pin!(changed.notified());
        woken.as_mut().enable();
        if !is_well {
            drop(peer.take());
        }
        assert_eq!(backend.begin_probe().1.await.answered, is_well);
        let is_woken = poll_fn(|cx| Poll::Ready(woken.as_mut().poll(cx).is_ready())).await;
        assert!(is_woken, "{is_well}");
    }
}

/// Does one exchange and gives its connection back at `now`.
async fn exchange(backend: &Arc<Backend>, reuse: Reuse, now: Instant, reused: bool) {
    let settings = backend.settings();
    let mut lease = backend.lease(&settings, 0, reuse, now).await.unwrap();
    assert_eq!(lease.is_reused(), reused, "{reuse:?}");
    let request = Request {
        method: &Method::POST,
        path: b"/",
        query: None,
        host: b"a",
        headers: &Fields::new(),
        body: BodyLength::Known(0),
    };
    lease
        .send_request(&request, &ClientFacts::local(), &settings)
        .unwrap();
    poll_fn(|cx| lease.poll_write(cx)).await.unwrap();
    while !matches!(
        poll_fn(|cx| lease.poll_event(cx)).await.unwrap(),
        Event::End
    ) {}
    lease.finish(now);
}

fn turn() -> Script {
    let script = Script::new().expect_until(b"\r\n\r\n");
    script.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
}
