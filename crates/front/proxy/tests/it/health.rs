//! Backends that die, hang and come back: who is left out, who is not, and what clients notice.

use std::path::Path;
use std::thread;
use std::time::Duration;

use catamaran_proxy::BackendCounts;
use catamaran_proxy::config::{Address, BackendConfig, Protocol};
use catamaran_testkit::{Deadline, HttpClient, Peer, Script};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::{Front, NEVER, ask, backend, config, get, loopback, start, tcp, to};

/// Answers one request of a connection and closes it, so that nothing is pooled.
fn answering(path: &Path, body: &str) -> Peer {
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    let script = Script::new()
        .expect_until(b"\r\n\r\n")
        .send((head + body).as_bytes());
    Peer::start_unix(path, move |_| script.clone())
}

fn at(path: &Path, protocol: Protocol) -> BackendConfig {
    BackendConfig::new(protocol, Address::Unix(path.to_owned()))
}

/// What the front says of its first backend.
pub(crate) fn first(running: &Front) -> BackendCounts {
    running.backends()[0].counts
}

pub(crate) fn until<T>(what: &str, ready: impl FnMut() -> Option<T>) -> T {
    Deadline::default().poll(what, ready).unwrap()
}

pub(crate) fn reasons(running: &Front, name: &str) -> u64 {
    let reasons = running.counters().reasons;
    let mut named = reasons.iter().filter(|(it, _)| it.to_string() == name);
    named.next().map_or(0, |(_, count)| *count)
}

#[test]
fn f2_a_backend_that_dies_is_left_out_and_comes_back_slowly() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sock");
    let steady = backend("b");
    let mortal = answering(&path, "a");
    let slow = BackendConfig {
        slow_start: Duration::from_secs(3600),
        ..at(&path, Protocol::Http)
    };
    let running = start(config(&[loopback()], vec![slow, to(&steady)])).unwrap();
    let front = tcp(&running, 0);
    until("an answer of each", || {
        (get(front).text() == "a").then_some(())
    });
    assert_eq!(first(&running).share, 100);

    drop(mortal);
    // Whoever meets the dead backend is served by the other.
    until("the backend to be out", || {
        assert_eq!(get(front).text(), "b");
        (first(&running).share == 0).then_some(())
    });
    let _reborn = answering(&path, "a");
    until("the backend to be back", || {
        assert_eq!(get(front).status, 200);
        (first(&running).share > 0).then_some(())
    });
    let counts = first(&running);
    assert_eq!(
        (counts.share, counts.ejections),
        (10, 1),
        "a tenth at first"
    );
    assert_eq!(counts.probes_answered, 1);
    // A tenth of the weight of the other: one request in eleven.
    let answers: Vec<String> = (0..110).map(|_| get(front).text()).collect();
    let served = answers.iter().filter(|text| *text == "a").count();
    assert!((1..=20).contains(&served), "{served}");
}

#[test]
fn f6_when_all_are_out_the_answer_is_503_at_once_and_the_first_probe_ends_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sock");
    let running = start(config(&[loopback()], vec![at(&path, Protocol::Http)])).unwrap();
    let front = tcp(&running, 0);
    for _ in 0..20 {
        let answer = get(front);
        assert_eq!(
            (answer.status, answer.header("retry-after")),
            (503, Some("1"))
        );
    }
    // It takes one to notice, who is told the same.
    assert_eq!(reasons(&running, "backend:connect-failed"), 1);
    assert_eq!(reasons(&running, "front:no-backend"), 19);
    let _peer = answering(&path, "a");
    until("the backend to be back", || {
        (get(front).status == 200).then_some(())
    });
    assert_eq!(first(&running).probes_answered, 1);
}

#[test]
fn backends_that_refuse_are_passed_by_however_many_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let dead = |index: usize| at(&directory.path().join(index.to_string()), Protocol::Http);
    let steady = backend("b");
    let last = BackendConfig {
        distance: 1,
        ..to(&steady)
    };
    let backends = (0..6).map(dead).chain([last]).collect();
    let running = start(config(&[loopback()], backends)).unwrap();
    assert_eq!(get(tcp(&running, 0)).text(), "b", "by the first request");
}

#[test]
fn f5_a_backend_that_takes_no_connection_costs_one_timeout() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("full.sock");
    let _full = FullBacklog::new(&path);
    let silent = BackendConfig {
        connect_timeout: Duration::from_millis(100),
        ..at(&path, Protocol::Http)
    };
    let steady = backend("b");
    let running = start(config(&[loopback()], vec![silent, to(&steady)])).unwrap();
    let front = tcp(&running, 0);
    until("the backend to be out", || {
        assert_eq!(get(front).text(), "b");
        (first(&running).share == 0).then_some(())
    });
    assert_eq!(first(&running).ejections, 1);
}

#[test]
fn f24_a_request_that_makes_backends_close_puts_nobody_out() {
    let poisoned = || Peer::start(Script::new().expect_until(b"\r\n\r\n"));
    let peers = [poisoned(), poisoned()];
    let running = start(config(&[loopback()], peers.iter().map(to).collect())).unwrap();
    let front = tcp(&running, 0);
    until("probes of both", || {
        assert_eq!(get(front).status, 502);
        let probed = |status: &catamaran_proxy::BackendStatus| status.counts.probes_answered > 0;
        running.backends().iter().all(probed).then_some(())
    });
    for status in running.backends() {
        assert_eq!(
            (status.counts.share, status.counts.ejections),
            (100, 0),
            "{status:?}"
        );
    }
}

/// A backend that closes without an answer is asked CPING. The first connection brings the
/// request, the second the probe. Returns the counts as soon as there was a probe and they are as `wanted`.
fn after_a_failed_exchange(
    probe: Script,
    patience: Duration,
    wanted: fn(&BackendCounts) -> bool,
) -> BackendCounts {
    let peer = Peer::start_with(move |index| match index {
        0 => Script::new().expect_packet(),
        _ => Script::new().expect(CPING.len()).then(probe.clone()),
    });
    let mut backend = BackendConfig {
        protocol: Protocol::Ajp,
        ..to(&peer)
    };
    backend.ajp.ping_timeout = patience;
    let mut config = config(&[loopback()], vec![backend]);
    config.upstreams[0].unwell_max = 100;
    let running = start(config).unwrap();
    assert_eq!(get(tcp(&running, 0)).status, 502);
    let counts = until("the probe", || {
        let counts = first(&running);
        let is_probed = counts.probes_answered + counts.probes_failed > 0;
        (is_probed && wanted(&counts)).then_some(counts)
    });
    assert_eq!(peer.wait_received(1, CPING.len()), CPING);
    drop(running);
    counts
}

#[test]
fn a_failed_exchange_is_followed_by_cping_and_silence_puts_out() {
    let answered = Script::new().send(CPONG).stall();
    let answered = after_a_failed_exchange(answered, NEVER, |_| true);
    assert_eq!((answered.share, answered.ejections), (100, 0));
    // A probe is counted before it puts the backend out.
    let silent = Script::new().stall();
    let is_out = |counts: &BackendCounts| counts.share == 0;
    let silent = after_a_failed_exchange(silent, Duration::from_millis(200), is_out);
    assert_eq!((silent.share, silent.ejections), (0, 1));
}

#[test]
fn ejection_can_be_turned_off() {
    let directory = tempfile::tempdir().unwrap();
    let stubborn = BackendConfig {
        eject: false,
        ..at(&directory.path().join("none.sock"), Protocol::Http)
    };
    let running = start(config(&[loopback()], vec![stubborn])).unwrap();
    for _ in 0..3 {
        assert_eq!(get(tcp(&running, 0)).status, 503);
    }
    assert_eq!(first(&running).ejections, 0);
}

#[test]
fn retries_end_with_their_budget() {
    // Each answers nothing, so that each request is tried on both.
    let failing = || Peer::start(Script::new().expect_until(b"\r\n\r\n"));
    let peers = [failing(), failing()];
    let running = start(config(&[loopback()], peers.iter().map(to).collect())).unwrap();
    let front = tcp(&running, 0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = HttpClient::connect(front).unwrap();
                until("the budget's end", || {
                    assert_eq!(ask(&mut client).status, 502);
                    (reasons(&running, "front:retry-budget") > 0).then_some(())
                });
            });
        }
    });
    assert!(
        running.counters().retries >= 1000,
        "what was saved is spent first"
    );
}

/// A Unix socket with so many connections waiting that the next one has to.
struct FullBacklog {
    #[expect(dead_code, reason = "kept open")]
    sockets: Vec<Socket>,
}

impl FullBacklog {
    fn new(path: &Path) -> Self {
        let name = SockAddr::unix(path).unwrap();
        let socket = || Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        let listener = socket();
        listener.bind(&name).unwrap();
        listener.listen(1).unwrap();
        let mut sockets = vec![listener];
        loop {
            let waiting = socket();
            waiting.set_nonblocking(true).unwrap();
            if waiting.connect(&name).is_err() {
                return Self { sockets };
            }
            sockets.push(waiting);
        }
    }
}

const CPING: &[u8] = b"\x12\x34\0\x01\x0a";
const CPONG: &[u8] = b"AB\0\x01\x09";
