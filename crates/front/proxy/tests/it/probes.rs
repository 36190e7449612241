//! Backends that are probed while they are up: what puts them out, what brings them back, and what
//! becomes of an upstream when too many are out.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use catamaran_proxy::BackendCounts;
use catamaran_proxy::config::{BackendConfig, ProbeConfig, ProbeKind, ProbeRequest, Protocol};
use catamaran_testkit::address::unused;
use catamaran_testkit::{HttpClient, Peer, Script, ajp};

use crate::admin::{admin, status, with_admin};
use crate::health::{reasons, until};
use crate::{Front, REQUEST, backend, config, get, loopback, start, tcp, to};

/// Probed all the time.
pub(crate) fn probed(mut backend: BackendConfig, kind: ProbeKind, down: u32) -> BackendConfig {
    backend.probe = Some(ProbeConfig {
        interval: Duration::from_millis(20),
        // However slow the machine is.
        timeout: Duration::from_secs(30),
        down,
        ..ProbeConfig::new(kind)
    });
    backend.slow_start = Duration::ZERO;
    backend
}

pub(crate) fn asking(change: impl FnOnce(&mut ProbeRequest)) -> ProbeKind {
    let mut request = ProbeRequest {
        target: "/health?full".to_owned(),
        ..ProbeRequest::default()
    };
    change(&mut request);
    ProbeKind::Request(Box::new(request))
}

/// A backend whose status can be changed, and how many connections it had.
pub(crate) struct Changing {
    pub(crate) peer: Peer,
    status: Arc<AtomicU16>,
}

impl Changing {
    /// Each connection gets one answer with the status of the moment it was opened.
    pub(crate) fn new(protocol: Protocol) -> Self {
        let status = Arc::new(AtomicU16::new(200));
        let own = Arc::clone(&status);
        let peer = Peer::start_with(move |_| {
            let status = own.load(Ordering::SeqCst);
            let turn = match protocol {
                Protocol::Http => {
                    let answer = format!(
                        "HTTP/1.1 {status} x\r\nConnection: close\r\nContent-Length: 4\r\n\r\nfine"
                    );
                    Script::new()
                        .expect_until(b"\r\n\r\n")
                        .send(answer.as_bytes())
                }
                Protocol::Ajp => {
                    let head = ajp::send_headers(status, &[]);
                    let answer = [head, ajp::chunk(b"fine"), ajp::end_response(0)].concat();
                    Script::new().expect_packet().send(&answer)
                }
            };
            turn.stall()
        });
        Self { peer, status }
    }

    pub(crate) fn answer(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }
}

fn counts(running: &Front, index: usize) -> BackendCounts {
    running.backends()[index].counts
}

fn out(running: &Front, index: usize) {
    until("a backend to be out", || {
        (counts(running, index).share == 0).then_some(())
    });
}

fn back(running: &Front, index: usize) {
    until("a backend to be back", || {
        (counts(running, index).share == 100).then_some(())
    });
}

#[test]
fn an_application_that_answers_wrongly_is_out_until_it_answers_again() {
    for protocol in [Protocol::Http, Protocol::Ajp] {
        let (changing, steady) = (Changing::new(protocol), backend("steady"));
        let mut first = probed(to(&changing.peer), asking(|_| {}), 2);
        first.protocol = protocol;
        let running = start(config(&[loopback()], vec![first, to(&steady)])).unwrap();
        until("probes", || {
            (counts(&running, 0).probes_answered >= 3).then_some(())
        });
        assert_eq!(counts(&running, 0).ejections, 0);
        // As after an undeploy: nobody has asked for anything.
        changing.answer(404);
        out(&running, 0);
        let seen = counts(&running, 0);
        assert_eq!((seen.unwell, seen.ejections, seen.panic), (true, 1, false));
        assert!(seen.probes_failed >= 2, "{seen:?}");
        for _ in 0..6 {
            assert_eq!(get(tcp(&running, 0)).text(), "steady");
        }
        changing.answer(200);
        let failed = counts(&running, 0).probes_failed;
        back(&running, 0);
        let seen = counts(&running, 0);
        assert!(!seen.unwell && seen.probes_failed <= failed + 2, "{seen:?}");
        drop(running);
        let mut asked = (0..changing.peer.connections()).map(|index| changing.peer.received(index));
        // The last probe may have been given up before it asked.
        let asks = |bytes: Vec<u8>| {
            bytes.is_empty() || String::from_utf8_lossy(&bytes).contains("catamaran-probe")
        };
        assert!(asked.all(asks), "no client had it");
    }
}

#[test]
fn the_status_names_a_secret_that_may_be_wrong_at_the_first_answer() {
    let (refusing, steady) = (Changing::new(Protocol::Ajp), backend("steady"));
    refusing.answer(403);
    let ajp = BackendConfig {
        protocol: Protocol::Ajp,
        ..to(&refusing.peer)
    };
    // Long before the probe puts it out, and then as the cause.
    for (down, wanted) in [
        (
            1_000_000,
            "its last check failed: status 403 (is `secret` right?)",
        ),
        (1, "its probe fails: status 403 (is `secret` right?)"),
    ] {
        let first = probed(ajp.clone(), asking(|_| {}), down);
        // Another one: what is alone serves however it fails.
        let running = start(with_admin(vec![first, to(&steady)])).unwrap();
        until(wanted, || {
            status(admin(&running)).contains(wanted).then_some(())
        });
    }
    // Without a probe, a client's request finds it out.
    let running = start(with_admin(vec![ajp])).unwrap();
    assert_eq!(get(tcp(&running, 0)).status, 403);
    let wanted = "it may want a `secret`, and none is configured";
    until(wanted, || {
        status(admin(&running)).contains(wanted).then_some(())
    });
}

#[test]
fn a_hung_application_that_answers_cping_is_found_by_a_request_only() {
    // CPING is answered, requests are not.
    let hung = Peer::start_with(|_| {
        let cpong = ajp::to_web_server(&[9]);
        Script::new().expect_packet().send(&cpong).stall()
    });
    for (kind, puts_out) in [(ProbeKind::Cping, false), (asking(|_| {}), true)] {
        let steady = backend("steady");
        let mut first = probed(to(&hung), kind, 1);
        first.protocol = Protocol::Ajp;
        if puts_out {
            first.probe.as_mut().unwrap().timeout = Duration::from_millis(300);
        }
        let running = start(config(&[loopback()], vec![first, to(&steady)])).unwrap();
        if puts_out {
            out(&running, 0);
        } else {
            until("answers", || {
                (counts(&running, 0).probes_answered >= 3).then_some(())
            });
        }
        assert_eq!(counts(&running, 0).unwell, puts_out);
    }
}

#[test]
fn what_the_answer_must_be_can_be_said() {
    let peer = backend("all is fine here");
    for (name, kind, good) in [
        (
            "text",
            asking(|it| it.body = Some("is fine".to_owned())),
            true,
        ),
        (
            "no such text",
            asking(|it| it.body = Some("is bad".to_owned())),
            false,
        ),
        (
            "status",
            asking(|it| it.statuses = vec![500..=599, 200..=200]),
            true,
        ),
        (
            "no such status",
            asking(|it| it.statuses = vec![201..=399]),
            false,
        ),
    ] {
        let backends = vec![probed(to(&peer), kind, 1), to(&peer)];
        let running = start(config(&[loopback()], backends)).unwrap();
        until(name, || {
            let counts = counts(&running, 0);
            (counts.probes_answered + counts.probes_failed > 0).then_some(())
        });
        assert_eq!(counts(&running, 0).probes_answered > 0, good, "{name}");
    }
}

#[test]
fn a_closed_port_is_noticed_without_a_request() {
    // Nobody else takes ports of this address when it is free.
    let address = unused().unwrap();
    let listener = TcpListener::bind(address).unwrap();
    let peer = backend("steady");
    let mut gone = probed(to(&peer), ProbeKind::Connect, 3);
    gone.address = catamaran_proxy::config::Address::Tcp {
        host: address.ip().to_string(),
        port: address.port(),
    };
    let running = start(config(&[loopback()], vec![gone, to(&peer)])).unwrap();
    until("a probe", || {
        (counts(&running, 0).probes_answered > 0).then_some(())
    });
    assert_eq!(counts(&running, 0).share, 100);
    drop(listener);
    out(&running, 0);
    assert!(!counts(&running, 0).unwell);
}

#[test]
fn when_all_are_unwell_all_serve_and_the_upstream_panics() {
    let all = [(); 3].map(|()| Changing::new(Protocol::Http));
    let backends = all.iter().map(|it| probed(to(&it.peer), asking(|_| {}), 1));
    let running = start(config(&[loopback()], backends.collect())).unwrap();
    all[0].answer(503);
    out(&running, 0);
    assert!(!counts(&running, 0).panic, "a third is less than a half");
    all[1].answer(503);
    all[2].answer(503);
    until("panic", || {
        let all = (0..3).map(|index| counts(&running, index));
        let serves = |counts: BackendCounts| counts.panic && counts.share > 0;
        all.into_iter().all(serves).then_some(())
    });
    // It is the application's own answer, not one of ours.
    assert_eq!(get(tcp(&running, 0)).text(), "fine");
    for one in &all[1..] {
        one.answer(200);
    }
    until("the end of the panic", || {
        let seen = [0, 1, 2].map(|index| counts(&running, index));
        let over = !seen[0].panic && seen[0].share == 0;
        (over && seen[1..].iter().all(|it| it.share == 100 && !it.suspect)).then_some(())
    });
}

#[test]
fn a_front_that_drains_probes_no_more() {
    let changing = Changing::new(Protocol::Http);
    let stuck = Peer::start(Script::new().expect_until(b"\r\n\r\n").stall());
    let fronts = [(); 2].map(|()| {
        let mut held = to(&stuck);
        held.distance = 0;
        let mut watched = probed(to(&changing.peer), asking(|_| {}), 1);
        watched.distance = 1;
        start(config(&[loopback()], vec![held, watched])).unwrap()
    });
    let probes = |front: &Front| counts(front, 1).probes_answered;
    let [leaving, staying] = &fronts;
    until("probes", || (probes(leaving) > 2).then_some(()));
    // Something is in flight, so that the drain lasts.
    let mut client = HttpClient::connect(tcp(leaving, 0)).unwrap();
    client.send(REQUEST).unwrap();
    let _ = stuck.wait_received(0, REQUEST.len());
    leaving.drain();
    until("the end of probing", || {
        let (before, then) = (probes(leaving), probes(staying));
        until("probes of the other", || {
            (probes(staying) > then + 20).then_some(())
        });
        (probes(leaving) == before).then_some(())
    });
    drop((client, stuck));
}

#[test]
fn a_status_that_is_to_be_retried_is_had_elsewhere_if_the_request_may_run_twice() {
    let (busy, steady) = (Changing::new(Protocol::Http), backend("steady"));
    busy.answer(503);
    let mut first = to(&busy.peer);
    first.retry_status = vec![503..=503];
    let mut last = to(&steady);
    last.distance = 1;
    let running = start(config(&[loopback()], vec![first, last])).unwrap();
    let ask = |request: &[u8]| {
        let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
        client.ask(request).unwrap()
    };
    for _ in 0..3 {
        assert_eq!(ask(REQUEST).text(), "steady");
    }
    let put = ask(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(put.text(), "steady");
    assert_eq!(reasons(&running, "backend:retry-status"), 4);
    // A POST may have been at work: its answer is the client's.
    let post = ask(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert_eq!((post.status, post.text().as_str()), (503, "fine"));
    // Another status is nobody's affair.
    busy.answer(500);
    assert_eq!(ask(REQUEST).status, 500);
}

#[test]
fn when_all_answer_so_the_last_answer_is_passed_on() {
    let all = [(); 2].map(|()| Changing::new(Protocol::Ajp));
    let backends = all.each_ref().map(|it| {
        it.answer(503);
        let mut backend = to(&it.peer);
        backend.protocol = Protocol::Ajp;
        backend.ajp.ping_after_idle = None;
        backend.retry_status = vec![500..=599];
        backend
    });
    let running = start(config(&[loopback()], backends.to_vec())).unwrap();
    for asked in 1..=3 {
        let answer = get(tcp(&running, 0));
        assert_eq!((answer.status, answer.text().as_str()), (503, "fine"));
        assert_eq!(reasons(&running, "backend:retry-status"), asked);
    }
    assert_eq!(
        counts(&running, 0).ejections + counts(&running, 1).ejections,
        0
    );
}
