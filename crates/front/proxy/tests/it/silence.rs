//! Backends that accept connections and say nothing: who is suspect, who is put out, and where
//! requests go.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use catamaran_proxy::BackendCounts;
use catamaran_proxy::config::{Address, BackendConfig, Config, ProbeConfig, ProbeKind, Protocol};
use catamaran_testkit::{HttpClient, Peer, Script, ajp};

use crate::health::until;
use crate::{Front, REQUEST, TURNS, backend, config, get, loopback, start, tcp, to};

/// Suspected soon, and asked for an answer in a short time.
fn impatient(mut backend: BackendConfig, protocol: Protocol) -> BackendConfig {
    backend.protocol = protocol;
    backend.suspect_after = Some(Duration::from_millis(100));
    backend.ajp.ping_timeout = Duration::from_millis(100);
    backend
}

/// Never suspected, however slow the machine is.
fn patient(mut backend: BackendConfig, protocol: Protocol) -> BackendConfig {
    backend.protocol = protocol;
    backend.suspect_after = None;
    backend.ajp.ping_timeout = Duration::from_secs(30);
    backend
}

/// `None` is no limit.
fn fronted(backends: Vec<BackendConfig>, unwell_max: u8) -> Front {
    let mut config: Config = config(&[loopback()], backends);
    config.upstreams[0].unwell_max = unwell_max;
    start(config).unwrap()
}

/// Reads what comes, and answers nothing.
fn mute() -> Peer {
    Peer::start(Script::new().expect_packet().stall())
}

/// Answers each request of AJP13; nobody asks it CPING.
fn sound() -> Peer {
    let answer = [ajp::send_headers(200, &[]), ajp::end_response(1)].concat();
    let turn = Script::new().expect_packet().send(&answer);
    Peer::start(turn.repeat(TURNS).stall())
}

/// One that is suspected soon, and one that is not.
fn both(hung: &Peer, other: &Peer) -> Vec<BackendConfig> {
    let hung = impatient(to(hung), Protocol::Ajp);
    vec![hung, patient(to(other), Protocol::Ajp)]
}

fn counts(running: &Front, index: usize) -> BackendCounts {
    running.backends()[index].counts
}

fn send(running: &Front, request: &[u8]) -> HttpClient {
    let mut client = HttpClient::connect(tcp(running, 0)).unwrap();
    client.send(request).unwrap();
    client
}

#[test]
fn others_are_preferred_to_a_suspect_until_it_is_heard() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let at = listener.local_addr().unwrap();
    let host = at.ip().to_string();
    let port = at.port();
    let quiet = BackendConfig::new(Protocol::Http, Address::Tcp { host, port });
    let steady = backend("steady");
    let backends = vec![impatient(quiet, Protocol::Http), to(&steady)];
    let running = fronted(backends, 100);
    let mut clients = Vec::new();
    let (mut socket, _) = until("a request of the quiet backend", || {
        clients.push(send(&running, REQUEST));
        listener.accept().ok()
    });
    socket.set_nonblocking(false).unwrap();
    socket.read_exact(&mut [0; REQUEST.len()]).unwrap();
    until("suspicion", || counts(&running, 0).suspect.then_some(()));
    for _ in 0..20 {
        assert_eq!(get(tcp(&running, 0)).text(), "steady");
    }
    let before = counts(&running, 0);
    assert_eq!(
        (before.share, before.ejections, before.unwell),
        (100, 0, false)
    );

    socket
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nquiet")
        .unwrap();
    until("the end of suspicion", || {
        (!counts(&running, 0).suspect).then_some(())
    });
    let mut answers = clients.iter_mut().map(|it| it.receive().unwrap().text());
    assert!(answers.any(|text| text == "quiet"), "it is waited for");
}

/// A probe may take an hour here, and one is under way before the silence is noticed.
#[test]
fn a_request_of_a_probe_does_not_put_off_what_silence_leads_to() {
    for kind in [ProbeKind::Request(Box::default()), ProbeKind::Cping] {
        let (hung, other) = (mute(), sound());
        let mut backends = both(&hung, &other);
        backends[0].probe = Some(ProbeConfig {
            interval: Duration::from_millis(1),
            timeout: Duration::from_secs(3600),
            // Its own verdict never comes.
            down: 1_000_000,
            ..ProbeConfig::new(kind.clone())
        });
        let running = fronted(backends, 50);
        hung.wait_connections(1);
        until("the mute one to be out", || {
            assert_eq!(get(tcp(&running, 0)).status, 200);
            let seen = counts(&running, 0);
            (seen.share == 0 && seen.unwell).then_some(())
        });
    }
}

#[test]
fn an_ajp_backend_that_does_not_answer_is_out_and_what_may_run_twice_goes_elsewhere() {
    let (hung, other) = (mute(), sound());
    let running = fronted(both(&hung, &other), 50);
    let mut clients: Vec<_> = (0..10).map(|_| send(&running, REQUEST)).collect();
    for client in &mut clients {
        assert_eq!(client.receive().unwrap().status, 200);
    }
    let (first, front) = (counts(&running, 0), running.counters());
    assert_eq!((first.ejections, first.unwell, first.share), (1, true, 0));
    assert_eq!(counts(&running, 1).ejections, 0);
    let out = front
        .reasons
        .iter()
        .find(|(it, _)| it.to_string() == "backend:backend-out");
    let out = out.map_or(0, |(_, count)| *count);
    assert!(out > 0 && out == front.retries, "{front:?}");
}

#[test]
fn neither_a_saturated_backend_nor_the_last_half_is_put_out_by_silence() {
    // How many connections it may have, beside the one in use.
    let rows = [
        ("saturated", 0, 100, false),
        ("room left", 1, 100, true),
        ("alone", 1, 50, false),
        ("never", 1, 0, false),
    ];
    for (name, room, unwell_max, puts_out) in rows {
        let hung = mute();
        let mut backend = impatient(to(&hung), Protocol::Ajp);
        backend.connections_max = 1 + room;
        let running = fronted(vec![backend], unwell_max);
        let _waiting = send(&running, REQUEST);
        let counts = until(name, || {
            let counts = counts(&running, 0);
            (counts.probes_failed >= 2).then_some(counts)
        });
        assert_eq!(counts.unwell, puts_out, "{name}: {counts:?}");
        assert_eq!(
            (counts.ejections > 0, counts.suspect),
            (puts_out, !puts_out),
            "{name}"
        );
        drop(hung);
    }
}

#[test]
fn a_fresh_connection_without_cpong_counts_as_none() {
    let (hung, other) = (mute(), pingable());
    let mut backends = both(&hung, &other);
    backends.iter_mut().for_each(|it| it.ajp.ping_fresh = true);
    let running = fronted(backends, 50);
    let post = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    until("a request that begins with the hung backend", || {
        let answer = send(&running, post).receive().unwrap();
        assert_eq!(answer.status, 200, "{:?}", running.counters());
        (running.counters().retries > 0).then_some(())
    });
    drop(running);
    let ping = ajp::to_container(&[10]);
    assert_eq!(hung.wait_received(0, ping.len()), ping, "CPING alone");
    for index in 1..hung.connections() {
        let received = hung.received(index);
        // The reader of a connection of the last moment may not have come to read.
        assert!(ping.starts_with(&received), "CPING alone: {received:?}");
    }
}

#[test]
fn a_backend_that_dies_of_cping_is_never_asked_if_the_key_is_off() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fragile.sock");
    let mut fragile = BackendConfig::new(Protocol::Ajp, Address::Unix(path.clone()));
    fragile.ajp.ping_after_idle = None;
    let running = fronted(vec![impatient(fragile, Protocol::Ajp)], 100);
    assert_eq!(get(tcp(&running, 0)).status, 503, "nothing listens there");
    until("it to be out", || {
        (counts(&running, 0).share == 0).then_some(())
    });

    let peer = fragile_at(&path);
    // The probe of a backend that is out, the first request of a connection, a pooled one.
    until("a first answer", || {
        (get(tcp(&running, 0)).status == 200).then_some(())
    });
    until("a connection to be used again", || {
        assert_eq!(get(tcp(&running, 0)).status, 200);
        (counts(&running, 0).reused > 0).then_some(())
    });
    // The probe of a suspect.
    let probed = counts(&running, 0).probes_answered;
    let mut waiting = Vec::new();
    until("suspicion", || {
        waiting.push(send(&running, REQUEST));
        counts(&running, 0).suspect.then_some(())
    });
    let after = until("the probe of a suspect", || {
        let counts = counts(&running, 0);
        (counts.probes_answered > probed).then_some(counts)
    });
    assert_eq!((after.ejections, after.unwell), (1, false), "{after:?}");

    let cping = ajp::to_container(&[10]);
    for index in 0..peer.connections() {
        let received = peer.received(index);
        let asked = received.windows(cping.len()).any(|it| it == cping);
        assert!(!asked, "CPING on connection {index}");
    }
}

/// Answers two requests of each connection and is silent to the third; CPING would count as one.
fn fragile_at(path: &Path) -> Peer {
    let answer = [ajp::send_headers(200, &[]), ajp::end_response(1)].concat();
    let turn = Script::new().expect_packet().send(&answer);
    let script = turn.repeat(2).expect_packet().stall();
    Peer::start_unix(path, move |_| script.clone())
}

/// Answers one CPING, then requests.
fn pingable() -> Peer {
    let cpong = Script::new()
        .expect_packet()
        .send(&ajp::to_web_server(&[9]));
    let answer = [ajp::send_headers(200, &[]), ajp::end_response(1)].concat();
    let turn = Script::new().expect_packet().send(&answer);
    Peer::start(cpong.then(turn.repeat(TURNS)).stall())
}
