//! A drain loses nobody: not who is about to ask, and not who waits in a listener's queue.

use std::net::SocketAddr;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use catamaran_testkit::{Failure, HttpClient, Response};
use tokio::time::Instant;

use crate::health::until;
use crate::{REQUEST, ask, backend, config, loopback, start, tcp, to};

#[test]
fn an_idle_client_may_ask_once_more_and_is_told() {
    let app = backend("app");
    let mut config = config(&[loopback()], vec![to(&app)]);
    config.server.drain_timeout = Duration::from_secs(40);
    until("a client that asks in time", || {
        let running = start(config.clone()).unwrap();
        let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
        assert_eq!(ask(&mut client).header("connection"), None);
        let drained = Instant::now();
        running.drain();
        // Unless this thread stood still meanwhile, the front waits for it.
        let sent = client.send(REQUEST);
        let is_late = drained.elapsed() > GRACE;
        let last = match sent.map_err(Failure::from).and_then(|()| client.receive()) {
            Err(_) if is_late => return None,
            last => last.unwrap(),
        };
        assert_eq!(
            (last.status, last.header("connection")),
            (200, Some("close"))
        );
        running.join();
        assert_eq!(client.receive_to_end().unwrap(), b"");
        Some(())
    });
}

#[test]
fn idle_clients_do_not_hold_a_drain_up() {
    let app = backend("app");
    let running = start(config(&[loopback()], vec![to(&app)])).unwrap();
    let mut used = HttpClient::connect(tcp(&running, 0)).unwrap();
    ask(&mut used);
    let mut unused = HttpClient::connect(tcp(&running, 0)).unwrap();
    running.drain();
    running.join();
    assert_eq!(used.receive_to_end().unwrap(), b"");
    assert_eq!(unused.receive_to_end().unwrap(), b"");
}

#[test]
fn whoever_could_connect_is_served() {
    let app = backend("app");
    for _ in 0..2 {
        // It ends when nobody connects any more; its time is not used up.
        let running = start(config(&[loopback()], vec![to(&app)])).unwrap();
        let address = tcp(&running, 0);
        thread::scope(|scope| {
            let (begun, began) = sync_channel(CLIENTS);
            for _ in 0..CLIENTS {
                let begun = begun.clone();
                // A new connection for each request, until there are no more to be had.
                scope.spawn(move || {
                    assert_eq!(ask_anew(address).unwrap().unwrap().text(), "app");
                    begun.send(()).unwrap();
                    drop(begun);
                    while let Some(answer) = ask_anew(address) {
                        assert!(answer.is_none_or(|it| it.text() == "app"));
                    }
                });
            }
            drop(begun);
            let were_served = began.iter().count();
            running.drain();
            running.join();
            assert_eq!(were_served, CLIENTS);
        });
    }
}

/// The response to a request on a new connection; `None`: there is none to be had. `Some(None)`: this thread stood still
/// before it sent the request, and the front did not wait for it.
fn ask_anew(address: SocketAddr) -> Option<Option<Response>> {
    let began = Instant::now();
    let mut client = HttpClient::connect(address).ok()?;
    let sent = client.send(REQUEST);
    let is_late = began.elapsed() > HANDSHAKES;
    match sent.map_err(Failure::from).and_then(|()| client.receive()) {
        Err(_) if is_late => Some(None),
        answer => Some(Some(answer.unwrap())),
    }
}

/// Clients that ask while the front drains.
const CLIENTS: usize = 4;

/// Less than the time for which a drain leaves idle clients open.
const GRACE: Duration = Duration::from_millis(400);

/// Less than the time for which a drain waits for the first request of the last connections.
const HANDSHAKES: Duration = Duration::from_millis(80);
