//! The time limits of a route: of a whole exchange, and of each attempt.

use std::sync::Arc;
use std::time::Duration;

use catamaran_proxy::config::{BackendConfig, Config, RouteRules};
use catamaran_testkit::{HttpClient, Peer, Script};

use crate::health::reasons;
use crate::{Front, backend, config, get, loopback, start, tcp, to};

/// Reads a request and answers nothing.
fn mute() -> Peer {
    Peer::start(Script::new().expect_until(b"\r\n\r\n").stall())
}

fn fronted(backends: Vec<BackendConfig>, rules: RouteRules) -> Front {
    let mut config: Config = config(&[loopback()], backends);
    config.routes[0].rules = Some(Arc::new(rules));
    start(config).unwrap()
}

#[test]
fn an_attempt_that_takes_too_long_is_followed_by_one_on_another_backend() {
    let (mute, other) = (mute(), backend("other"));
    let backends = vec![to(&mute), to(&other)];
    let running = fronted(
        backends,
        RouteRules {
            // So long that the other backend always answers in time.
            attempt_timeout: Some(Duration::from_secs(4)),
            ..RouteRules::default()
        },
    );
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    for _ in 0..2 {
        let response = crate::ask(&mut client);
        assert_eq!((response.status, &response.body[..]), (200, &b"other"[..]));
    }
    let late = reasons(&running, "backend:attempt-timeout");
    assert!(late > 0);
    // A POST may have been processed. One of two gets the backend that is mute.
    let post = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    let mut statuses = [(); 2].map(|()| client.ask(post).unwrap().status);
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 504]);
    assert_eq!(reasons(&running, "backend:attempt-timeout"), late + 1);
}

#[test]
fn the_whole_exchange_has_a_limit_whoever_is_waited_for() {
    let mute = mute();
    let limited = BackendConfig {
        connections_max: 1,
        queue_timeout: Duration::from_secs(3600),
        ..to(&mute)
    };
    let running = fronted(
        vec![limited],
        RouteRules {
            exchange_timeout: Some(Duration::from_millis(200)),
            attempt_timeout: Some(Duration::from_secs(3600)),
            ..RouteRules::default()
        },
    );
    let address = tcp(&running, 0);
    // One waits for the response, the other for the connection.
    std::thread::scope(|scope| {
        let asked = [(); 2].map(|()| scope.spawn(|| get(address).status));
        for status in asked {
            assert_eq!(status.join().unwrap(), 504);
        }
    });
    assert_eq!(reasons(&running, "backend:exchange-timeout"), 2);
}
