//! A running front takes another configuration, whole or not at all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use catamaran_proxy::config::{AccessLogTarget, ListenAddress, RouteTarget};
use catamaran_proxy::{ReloadError, StartError};
use catamaran_testkit::{Address, Deadline, Failure, HttpClient, Outcome, Peer, Script, address};

use crate::health::until;
use crate::{TURNS, ask, backend, config, get, loopback, start, tcp, to, unix};

#[test]
fn unchanged_backends_keep_their_connections_and_others_are_let_go() {
    let (kept, gone, new) = (backend("kept"), backend("gone"), backend("new"));
    let first = config(&[loopback()], vec![to(&kept), to(&gone)]);
    let mut second = first.clone();
    second.upstreams[0].backends[1] = to(&new);
    second.server.workers = 3.try_into().unwrap();
    let running = start(first).unwrap();
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    for _ in 0..10 {
        ask(&mut client);
    }
    assert_eq!((kept.connections(), gone.connections()), (1, 1));

    let report = running.reload(second).unwrap();
    assert_eq!(report.backends_kept, 1);
    assert_eq!(report.backends_added, [to(&new).name]);
    assert_eq!(report.backends_removed, [to(&gone).name]);
    assert_eq!(
        (report.listeners_kept, &report.at_next_start[..]),
        (1, &["workers"][..])
    );
    // The pooled connection of the one that is gone is closed at once.
    let _ = gone.wait_outcome(0);
    let answers: Vec<String> = (0..10).map(|_| ask(&mut client).text()).collect();
    assert!(answers.iter().all(|text| text != "gone"), "{answers:?}");
    assert!(answers.iter().any(|text| text == "new"), "{answers:?}");
    assert_eq!((kept.connections(), gone.connections()), (1, 1));
}

#[test]
fn a_request_in_flight_keeps_the_configuration_it_began_with() {
    let held = Script::new()
        .expect_until(b"\r\n\r\n")
        .send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nold")
        .expect_until(b"body")
        .send(b"end");
    let other = Script::new()
        .expect_until(b"\r\n\r\n")
        .send(b"HTTP/1.1 204 No Content\r\n\r\n")
        .expect_end();
    let old = Peer::start_with(move |index| if index == 0 { &held } else { &other }.clone());
    let mut first = config(&[loopback()], vec![to(&old)]);
    first.listeners[0].serve_half_closed = true;
    let mut second = first.clone();
    second.routes[0].target = RouteTarget::Status(http_gone());
    second.upstreams.clear();
    let running = start(first).unwrap();
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    client
        .send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n")
        .unwrap();
    client.receive_head().unwrap();
    assert_eq!(get(tcp(&running, 0)).status, 204);
    running.reload(second).unwrap();
    assert_eq!(get(tcp(&running, 0)).status, 410);
    // The pool is closed at once; it does not wait for the exchange that keeps the backend.
    assert_eq!(old.wait_outcome(1), Outcome::Completed);
    client.send(b"body").unwrap();
    client.finish_sending().unwrap();
    let rest = client.receive_to_end().unwrap();
    assert!(rest.ends_with(b"oldend"), "{rest:?}");
}

fn http_gone() -> http::StatusCode {
    http::StatusCode::GONE
}

#[test]
fn listeners_come_and_go() {
    let app = backend("app");
    let directory = tempfile::tempdir().unwrap();
    let first = config(&[loopback(), unix(directory.path())], vec![to(&app)]);
    let running = start(first).unwrap();
    let kept = tcp(&running, 0);
    let mut on_removed = HttpClient::connect(directory.path().join("front.sock")).unwrap();
    assert_eq!(ask(&mut on_removed).text(), "app");
    // Its next request has begun, so it is not closed as an idle one, however late the rest comes.
    let (begin, rest) = crate::REQUEST.split_at(10);
    on_removed.send(begin).unwrap();

    let another = loopback();
    let kept_by_its_port = ListenAddress::Tcp(kept);
    let report = running
        .reload(config(&[kept_by_its_port, another], vec![to(&app)]))
        .unwrap();
    assert_eq!(
        (report.listeners_kept, report.listeners_added.len()),
        (1, 1)
    );
    assert_eq!(report.listeners_removed.len(), 1);
    assert_eq!(tcp(&running, 0), kept);
    let added = tcp(&running, 1);
    assert_ne!(added, kept);
    assert_eq!(
        (get(added).text(), get(kept).text()),
        ("app".into(), "app".into())
    );
    // Whoever is connected there learns of the end with the next response.
    let last = on_removed.ask(rest).unwrap();
    assert_eq!(
        (last.status, last.header("connection")),
        (200, Some("close"))
    );
    assert_eq!(on_removed.receive_to_end().unwrap(), b"");
    Deadline::default()
        .poll("the removed socket to go", || {
            (!directory.path().join("front.sock").exists()).then_some(())
        })
        .unwrap();
}

#[test]
fn a_listeners_settings_hold_for_the_next_connection() {
    let app = backend("app");
    let first = config(&[loopback()], vec![to(&app)]);
    let mut second = first.clone();
    second.listeners[0].keep_alive_requests = 1;
    let running = start(first).unwrap();
    let address = tcp(&running, 0);
    let mut before = HttpClient::connect(address).unwrap();
    ask(&mut before);
    running.reload(second).unwrap();
    assert_eq!(ask(&mut before).header("connection"), None);
    assert_eq!(get(address).header("connection"), Some("close"));
}

#[test]
fn whatever_fails_leaves_everything_as_it_was() {
    let app = backend("app");
    let directory = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = ListenAddress::Tcp(taken.local_addr().unwrap());
    let good = config(&[loopback()], vec![to(&app)]);
    let running = start(good.clone()).unwrap();
    let before = running.addresses();

    let unix_and_busy = config(&[unix(directory.path()), busy], vec![]);
    let error = running.reload(unix_and_busy).unwrap_err();
    assert!(
        matches!(error, ReloadError::Start(StartError::Bind(_))),
        "{error}"
    );
    assert!(!directory.path().join("front.sock").exists());

    let mut dangling = good.clone();
    dangling.upstreams.clear();
    let error = running.reload(dangling).unwrap_err();
    assert!(
        matches!(
            error,
            ReloadError::Start(StartError::UnknownUpstream { .. })
        ),
        "{error}"
    );

    let mut unwritable = good;
    unwritable.listeners.clear();
    unwritable.log.access = AccessLogTarget::File(directory.path().join("none/access.log"));
    let error = running.reload(unwritable).unwrap_err();
    assert!(
        matches!(error, ReloadError::Start(StartError::AccessLog(_))),
        "{error}"
    );

    assert_eq!(running.addresses(), before);
    assert_eq!(get(tcp(&running, 0)).text(), "app");
}

#[test]
fn the_access_log_is_let_go_of_and_opened_anew() {
    let app = backend("app");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("access.log");
    let rotated = directory.path().join("access.log.1");
    let mut config = config(&[loopback()], vec![to(&app)]);
    config.log.access = AccessLogTarget::File(path.clone());
    let running = start(config.clone()).unwrap();
    get(tcp(&running, 0));
    std::fs::rename(&path, &rotated).unwrap();
    running.reload(config).unwrap();
    let lines = |path| std::fs::read_to_string(path).unwrap().lines().count();
    // What waited to be written when the file changed may still go to the old one.
    let mut asked = 1;
    let changed = Deadline::default().poll("a line in the new file", || {
        get(tcp(&running, 0));
        asked += 1;
        (lines(&path) > 0).then_some(())
    });
    changed.unwrap();
    drop(running);
    assert_eq!(lines(&rotated) + lines(&path), asked);
}

#[test]
fn whom_to_trust_follows_the_configuration_of_the_request() {
    let app = backend("app");
    let first = config(&[loopback()], vec![to(&app)]);
    let mut second = first.clone();
    second.server.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let running = start(first).unwrap();
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n";
    client.ask(request).unwrap();
    let before = app.received(0).len();
    running.reload(second).unwrap();
    client.ask(request).unwrap();
    let received = app.received(0);
    let (first, second) = received.split_at(before);
    let claims = |head: &[u8]| String::from_utf8_lossy(head).contains("192.0.2.7");
    assert!(!claims(first) && claims(second));
}

#[test]
fn reloads_under_load_fail_no_request() {
    let app = backend("app");
    let directory = tempfile::tempdir().unwrap();
    let first = config(&[loopback()], vec![to(&app)]);
    let mut other = first.clone();
    other.server.via = None;
    let running = start(first.clone()).unwrap();
    let address = tcp(&running, 0);
    let stopped = AtomicBool::new(false);
    let mut served = 0;
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|index| {
                let stopped = &stopped;
                scope.spawn(move || ask_until(stopped, address.into(), index % 2 == 0))
            })
            .collect();
        for turn in 0..20 {
            let mut config = if turn % 2 == 0 { &other } else { &first }.clone();
            // A listener that comes with every second reload, and goes with the next.
            let path = directory.path().join(format!("{turn}.sock"));
            config.listeners.extend((turn % 2 == 0).then(|| {
                let address = ListenAddress::Unix(path);
                catamaran_proxy::config::ListenerConfig::new(address)
            }));
            let report = running.reload(config).unwrap();
            assert_eq!(report.backends_kept, 1, "{report}");
        }
        stopped.store(true, Ordering::Relaxed);
        served = clients.into_iter().map(|it| it.join().unwrap()).sum();
    });
    // An exchange is counted after its client has the answer.
    let counted = Deadline::default().poll("every answer counted", || {
        (running.counters().responses[2] >= served).then_some(())
    });
    counted.unwrap();
    let counters = running.counters();
    assert_eq!(counters.responses[2], served);
    assert_eq!(counters.reasons.len(), 0, "{counters:?}");
}

/// Asks at least ten times, and then until `stopped`; says how often.
fn ask_until(stopped: &AtomicBool, address: Address, keep_alive: bool) -> u64 {
    let connect = || HttpClient::connect(&address).unwrap();
    let mut client = connect();
    for asked in 1..REQUESTS_MAX {
        client.send(crate::REQUEST).unwrap();
        let answer: Result<_, Failure> = client.receive();
        assert_eq!(answer.unwrap().text(), "app");
        if asked >= 10 && stopped.load(Ordering::Relaxed) {
            return asked;
        }
        if !keep_alive {
            client = connect();
        }
    }
    REQUESTS_MAX - 1
}

#[test]
fn a_listener_that_was_removed_can_be_had_again_at_once() {
    let app = backend("app");
    let directory = tempfile::tempdir().unwrap();
    let free = address::unused().unwrap();
    let listeners = [loopback(), ListenAddress::Tcp(free), unix(directory.path())];
    let all = config(&listeners, vec![to(&app)]);
    let mut one = all.clone();
    one.listeners.truncate(1);
    let running = start(all.clone()).unwrap();
    for _ in 0..2 {
        assert_eq!(
            running.reload(one.clone()).unwrap().listeners_removed.len(),
            2
        );
        // A reload waits two seconds for the sockets, and fails if a worker stands still for longer.
        let added = until("the listeners", || {
            Some(running.reload(all.clone()).ok()?.listeners_added.len())
        });
        assert_eq!(added, 2);
        assert_eq!(get(free).status, 200);
    }
}

/// Clients that ask while the configuration changes.
const CLIENTS: u64 = 4;

/// All clients together stay within what one connection of the backend answers.
const REQUESTS_MAX: u64 = TURNS as u64 / CLIENTS;
