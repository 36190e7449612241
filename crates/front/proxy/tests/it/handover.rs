//! One front hands its listening sockets to another; here both are in one process.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use catamaran_proxy::config::{AdminConfig, Config, ListenAddress};
use catamaran_proxy::{HandoverError, Inheritance, OperatorCommands, start_inheriting};
use catamaran_testkit::{Address, HttpClient, address};

use crate::{Front, REQUEST, ask, backend, config, get, loopback, start, tcp, to, unix};

/// Starts another front with the sockets of `old`, which then drains and ends.
pub(crate) fn succeed(old: Front, config: Config) -> Front {
    let (offer, theirs) = old.offer().unwrap();
    let successor = thread::spawn(move || {
        let inheritance = Inheritance::receive(theirs).unwrap();
        Front(Some(
            start_inheriting(config, inheritance, OperatorCommands::default()).unwrap(),
        ))
    });
    let taken = offer.send_and_wait(LIMIT).unwrap();
    old.drain_for_successor(&taken);
    old.join();
    successor.join().unwrap()
}

#[test]
fn every_listener_goes_on_whatever_the_number_of_workers() {
    let app = backend("app");
    let directory = tempfile::tempdir().unwrap();
    let mut config = config(&[loopback(), unix(directory.path())], vec![to(&app)]);
    let mut running = start(config.clone()).unwrap();
    let before = running.addresses();
    for workers in [1, 5, 3] {
        let mut kept = HttpClient::connect(tcp(&running, 0)).unwrap();
        ask(&mut kept);
        config.server.workers = workers.try_into().unwrap();
        running = succeed(running, config.clone());
        assert_eq!(running.addresses(), before);
        assert_eq!(kept.receive_to_end().unwrap(), b"");
        // More than enough to meet each of the sockets that share the port.
        for _ in 0..100 {
            assert_eq!(get(tcp(&running, 0)).text(), "app");
        }
        let path = Address::Unix(directory.path().join("front.sock"));
        let mut client = HttpClient::connect(path).unwrap();
        assert_eq!(ask(&mut client).text(), "app");
    }
    drop(running);
    assert!(!directory.path().join("front.sock").exists());
}

#[test]
fn a_listener_that_the_next_does_not_want_is_drained() {
    let app = backend("app");
    let running = start(config(&[loopback(), loopback()], vec![to(&app)])).unwrap();
    let (first, second) = (tcp(&running, 0), tcp(&running, 1));
    let running = succeed(running, config(&[loopback()], vec![to(&app)]));
    assert_eq!(tcp(&running, 0), first);
    assert_eq!(get(first).text(), "app");
    assert!(HttpClient::connect(second).is_err());
}

#[test]
fn the_admin_listener_goes_on() {
    let app = backend("app");
    let config = Config {
        admin: Some(AdminConfig::new(vec![loopback()])),
        ..config(&[loopback()], vec![to(&app)])
    };
    let running = start(config.clone()).unwrap();
    let before = (running.addresses(), running.admin_addresses());
    let running = succeed(running, config);
    assert_eq!((running.addresses(), running.admin_addresses()), before);
    let address = running.admin_addresses()[0].to_string();
    let mut client = HttpClient::connect(
        address
            .strip_prefix("http://")
            .unwrap()
            .parse::<std::net::SocketAddr>()
            .unwrap(),
    )
    .unwrap();
    let answer = client
        .ask(b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    assert_eq!(answer.text(), "ready\n");
}

#[test]
fn handovers_under_load_fail_no_request() {
    let app = backend("app");
    let mut config = config(&[loopback()], vec![to(&app)]);
    // The old front then waits five seconds for the next request of an idle client.
    config.server.drain_timeout = Duration::from_secs(40);
    let mut running = start(config.clone()).unwrap();
    let address = tcp(&running, 0);
    let _running = thread::scope(|scope| {
        let clients: Vec<_> = [false, false, true]
            .map(|keep_alive| {
                scope.spawn(move || {
                    let mut client = HttpClient::connect(address).unwrap();
                    for _ in 0..500 {
                        let answer = client.ask(REQUEST).unwrap();
                        assert_eq!(answer.text(), "app");
                        if !keep_alive || answer.header("connection") == Some("close") {
                            client = HttpClient::connect(address).unwrap();
                        }
                    }
                })
            })
            .into();
        for _ in 0..3 {
            running = succeed(running, config.clone());
        }
        for client in clients {
            client.join().unwrap();
        }
        running
    });
}

/// A process that hangs before it is ready, or a child that it left, would keep the port when the front is gone.
#[test]
fn whoever_has_not_asked_for_the_sockets_has_none() {
    let app = backend("app");
    // Nobody else takes ports of this address in the moment when it is free.
    let address = address::unused().unwrap();
    let listen = ListenAddress::Tcp(address);
    let running = start(config(&[listen], vec![to(&app)])).unwrap();
    let (offer, theirs) = running.offer().unwrap();
    let error = offer.send_and_wait(Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, HandoverError::Late { .. }), "{error}");
    assert_eq!(get(address).text(), "app");
    drop(running);
    TcpListener::bind(address).expect("the port is free");
    drop(theirs);
}

#[test]
fn without_an_answer_nothing_changes() {
    let app = backend("app");
    let running = start(config(&[loopback()], vec![to(&app)])).unwrap();
    // It takes the sockets, and ends.
    let (offer, theirs) = running.offer().unwrap();
    let successor = thread::spawn(move || drop(Inheritance::receive(theirs).unwrap()));
    let error = offer.send_and_wait(LIMIT).unwrap_err();
    assert!(matches!(error, HandoverError::Ended), "{error}");
    successor.join().unwrap();
    // It never says a word.
    let (offer, theirs) = running.offer().unwrap();
    let error = offer.send_and_wait(Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, HandoverError::Late { .. }), "{error}");
    drop(theirs);
    for _ in 0..20 {
        assert_eq!(get(tcp(&running, 0)).text(), "app");
    }
}

#[test]
fn something_else_than_an_offer_is_refused() {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    drop(ours);
    assert!(Inheritance::receive(OwnedFd::from(theirs)).is_err());
    let file = std::fs::File::open("/dev/null").unwrap();
    assert!(Inheritance::receive(OwnedFd::from(file)).is_err());
}

const LIMIT: Duration = Duration::from_secs(30);
