//! A drain loses nobody: not who is about to ask, and not who waits in a listener's queue.

use std::thread;
use std::time::Duration;

use catamaran_testkit::{Failure, HttpClient};

use crate::{REQUEST, ask, backend, config, loopback, start, tcp, to};

#[test]
fn an_idle_client_may_ask_once_more_and_is_told() {
    let app = backend("app");
    let mut config = config(&[loopback()], vec![to(&app)]);
    config.server.drain_timeout = Duration::from_secs(40);
    let running = start(config).unwrap();
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    assert_eq!(ask(&mut client).header("connection"), None);
    running.drain();
    let last = ask(&mut client);
    assert_eq!(
        (last.status, last.header("connection")),
        (200, Some("close"))
    );
    running.join();
    assert_eq!(client.receive_to_end().unwrap(), b"");
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
            for _ in 0..4 {
                // A new connection for each request, until there are no more to be had.
                scope.spawn(move || {
                    let mut served = 0;
                    while let Ok(mut client) = HttpClient::connect(address) {
                        client.send(REQUEST).unwrap();
                        let answer: Result<_, Failure> = client.receive();
                        assert_eq!(answer.unwrap().text(), "app", "after {served}");
                        served += 1;
                    }
                    assert!(served > 0);
                });
            }
            running.drain();
            running.join();
        });
    }
}
