//! The rows of sections 2a and 2b that are more than an answer's bytes: backends that close, reset,
//! are silent, or answer before they were asked everything.
//!
//! A backend that closes at every byte of its answer (C32) is in `crate::failures`.

use catamaran_e2e::Front;
use catamaran_testkit::{Deadline, Failure, HttpClient, Response};

use super::ajp_response_rows::{chunk, end, head, hi};
use super::backend::{Answer, Backend, Id, Protocol, Then};
use super::responses::front;

#[test]
fn row_001_and_035_end_without_an_answer_on_a_fresh_connection() {
    for protocol in Protocol::ALL {
        for (method, _) in METHODS {
            for then in ENDS {
                let backend = Backend::start(protocol).unwrap();
                let front = front(&backend, "");
                let id = Id::new();
                backend.answer(&id, Answer::whole(b"", then));
                let answer = front.ask(request(method, &id)).unwrap();
                assert_eq!(answer.status, 502, "{protocol:?} {method} {then:?}");
                assert_eq!(backend.seen(&id).len(), 1, "{protocol:?} {method} {then:?}");
            }
        }
    }
}

#[test]
fn row_001_and_035_another_backend_gets_only_what_may_be_sent_twice() {
    for protocol in Protocol::ALL {
        let (bad, good) = (
            Backend::start(protocol).unwrap(),
            Backend::start(protocol).unwrap(),
        );
        let other = format!("[[upstream.app.backend]]\nurl = \"{}\"\n", good.url());
        let front = front(&bad, &other);
        for (method, may_repeat) in METHODS {
            let mut retried = 0;
            // The backends take turns, so each of two gets one of two requests first.
            for _ in 0..4 {
                let id = Id::new();
                bad.answer(&id, Answer::whole(b"", Then::Close));
                let answer = front.ask(request(method, &id)).unwrap();
                let (at_bad, at_good) = (bad.seen(&id).len(), good.seen(&id).len());
                let required = match (at_bad, may_repeat) {
                    (0, _) => (200, 1),
                    (_, true) => (200, 1),
                    (_, false) => (502, 0),
                };
                assert_eq!((answer.status, at_good), required, "{protocol:?} {method}");
                retried += at_bad;
            }
            assert!(retried > 0, "{protocol:?} {method}: never tried on the bad");
        }
    }
}

#[test]
fn row_002_and_035_end_without_an_answer_on_a_reused_connection() {
    for protocol in Protocol::ALL {
        for (method, may_repeat) in METHODS {
            for then in ENDS {
                let backend = Backend::start(protocol).unwrap();
                let front = front(&backend, "");
                honest(&front);
                let id = Id::new();
                backend.answer(&id, Answer::whole(b"", then));
                let answer = front.ask(request(method, &id)).unwrap();
                let required = if may_repeat { (200, 2) } else { (502, 1) };
                let got = (answer.status, backend.seen(&id).len());
                assert_eq!(got, required, "{protocol:?} {method} {then:?}");
                assert_eq!(
                    backend.connections_of(&id)[0],
                    0,
                    "not on the used connection"
                );
            }
        }
    }
}

/// The answer comes while most of the request's body is missing; the client waits (32), or goes on
/// sending for a while or all of it before it reads (31).
#[test]
fn row_031_and_032_answer_before_the_body_is_read() {
    for protocol in Protocol::ALL {
        for (length, more) in [(1_000_000, 0), (1_000_000, 100_000), (9_010_000, 9_000_000)] {
            let backend = Backend::start(protocol).unwrap();
            let front = front(&backend, "");
            let id = refused_early(&backend, protocol);
            let mut client = upload(&front, &id, length);
            let answer = client.ask(vec![b'x'; more]).unwrap();
            let got = (answer.status, answer.text(), answer.header("connection"));
            let required = (413, "hi".to_owned(), Some("close"));
            assert_eq!(got, required, "{protocol:?} {more}");
            let ended = backend.wait(backend.connections_of(&id)[0], |it| it.ended);
            assert!(ended, "{protocol:?} {more}: the connection stays open");
            honest(&front);
        }
    }
}

#[test]
fn row_031_a_body_is_not_read_for_ever_after_its_answer() {
    for limit in [
        "linger_max = \"1KiB\"\nlinger_timeout = \"1h\"\n",
        "linger_max = \"1GiB\"\nlinger_timeout = \"100ms\"\n",
    ] {
        let backend = Backend::start(Protocol::Http).unwrap();
        let front = Front::with_config(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n{limit}\
             [[route]]\nupstream = \"app\"\n[[upstream.app.backend]]\nurl = \"{}\"\n",
            backend.url()
        ))
        .unwrap();
        let id = refused_early(&backend, Protocol::Http);
        let mut client = upload(&front, &id, 1 << 30);
        assert_eq!(client.receive().unwrap().status, 413);
        assert_eq!(client.receive_to_end().unwrap(), b"");
        let cut = || client.send(b"x").err();
        Deadline::default().poll("a reset", cut).unwrap();
        honest(&front);
    }
}

/// A request that `backend` will answer 413 when it has its head.
fn refused_early(backend: &Backend, protocol: Protocol) -> Id {
    let id = Id::new();
    let answer = Answer {
        is_early: true,
        ..Answer::whole(&response(protocol, 413), Then::Serve)
    };
    backend.answer(&id, answer);
    id
}

/// The beginning of an upload of so many bytes.
fn upload(front: &Front, id: &Id, length: usize) -> HttpClient {
    let mut client = front.connect().unwrap();
    let fields = format!("Content-Length: {length}\r\n");
    let head = front.head("POST", &format!("/{}", id.as_str()), &fields);
    client.send(head.as_bytes()).unwrap();
    client.send(&[b'x'; 10_000]).unwrap();
    client
}

#[test]
fn row_034_silence_before_the_head() {
    for protocol in Protocol::ALL {
        let backend = Backend::start(protocol).unwrap();
        let front = impatient(&backend, "first_byte_timeout = \"100ms\"\n");
        let id = Id::new();
        backend.answer(&id, Answer::whole(b"", Then::Serve));
        let answer = front.ask(request("GET", &id)).unwrap();
        assert_eq!(answer.status, 504, "{protocol:?}");
        gave_up(&front, &backend, &id, "first-byte-timeout");
    }
}

#[test]
fn row_034_silence_within_the_body() {
    for protocol in Protocol::ALL {
        for (key, reason) in [
            ("idle_body_timeout", "idle-body-timeout"),
            ("exchange_timeout", "exchange-timeout"),
        ] {
            let backend = Backend::start(protocol).unwrap();
            let front = impatient(&backend, &format!("{key} = \"100ms\"\n"));
            let whole = response(protocol, 200);
            let half = match protocol {
                Protocol::Http => &whole[..whole.len() - 1],
                Protocol::Ajp => &whole[..whole.len() - end(1).len()],
            };
            let cut = || {
                let id = Id::new();
                backend.answer(&id, Answer::whole(half, Then::Serve));
                match front.ask(request("GET", &id)) {
                    Err(error) => Some((id, error.downcast::<Failure>().unwrap())),
                    // A busy machine may take all of `exchange_timeout` for the head.
                    Ok(answer) if key == "exchange_timeout" && answer.status == 504 => None,
                    Ok(answer) => panic!("{protocol:?} {key}: {answer:?}"),
                }
            };
            let (id, failure) = Deadline::default().poll("a cut", cut).unwrap();
            let status = Some(200);
            assert!(
                matches!(failure, Failure::Truncated { status: got, .. } if got == status),
                "{protocol:?} {key}: {failure:?}"
            );
            gave_up(&front, &backend, &id, reason);
        }
    }
}

/// A front whose backend has `keys`, and that reaches it without them as `http://patient`: what is to be
/// served must not depend on how fast the machine is.
fn impatient(backend: &Backend, keys: &str) -> Front {
    let url = backend.url();
    Front::with_config(&format!(
        "[server]\nworkers = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\n\
         [[route]]\nhost = \"patient\"\nupstream = \"patient\"\n\
         [[upstream.patient.backend]]\nurl = \"{url}\"\n[[upstream.app.backend]]\nurl = \"{url}\"\n{keys}"
    ))
    .unwrap()
}

#[test]
fn row_035_ping_before_reuse() {
    const PING: &[u8] = b"\x12\x34\0\x01\x0a";
    let backend = Backend::start(Protocol::Ajp).unwrap();
    let front = front(&backend, PINGS);
    honest(&front);
    let id = honest(&front);
    assert_eq!(backend.connections_of(&id), [0]);
    let received = backend.connection(0).received;
    let pings = received.windows(PING.len()).filter(|it| *it == PING);
    assert!(pings.count() > 0, "no CPING before the second request");
}

#[test]
fn row_c34_ping_answered_wrongly() {
    let answers = [
        chunk("hi"),
        head(200, &[]),
        end(1),
        b"AB\0\x01\x09AB\0\x01\x09".to_vec(),
        Vec::new(),
    ];
    for answer in answers {
        let backend = Backend::start(Protocol::Ajp).unwrap();
        let keys = "ping_after_idle = \"0s\"\nping_timeout = \"100ms\"\n";
        let front = front(&backend, keys);
        honest(&front);
        backend.answer_pings(&answer);
        let id = honest(&front);
        let what = answer.escape_ascii();
        assert_eq!(backend.connections_of(&id), [1], "{what}");
        assert!(backend.wait(0, |it| it.ended), "{what}: it stays open");
    }
}

#[test]
fn row_c34_cping_is_answered_with_bytes_behind_cpong() {
    let backend = Backend::start(Protocol::Ajp).unwrap();
    let front = front(&backend, PINGS);
    honest(&front);
    backend.answer_pings(b"AB\0\x03\x09\0\xff");
    let id = honest(&front);
    assert_eq!(backend.connections_of(&id), [0]);
}

#[test]
fn row_056_close_right_after_the_answer() {
    for protocol in Protocol::ALL {
        for then in ENDS {
            let backend = Backend::start(protocol).unwrap();
            let front = front(&backend, "");
            for place in 0..10 {
                let id = Id::new();
                backend.answer(&id, Answer::whole(&response(protocol, 200), then));
                // A POST, which nobody may repeat, must not meet the connection that is gone.
                let answer = front.ask(request("POST", &id)).unwrap();
                assert_eq!(answer.text(), "hi", "{protocol:?} {then:?}");
                assert_eq!(backend.connections_of(&id), [place], "{protocol:?}");
                assert!(backend.wait(place, |it| it.ended));
                until_told_of_the_end(backend.address.port());
            }
        }
    }
}

/// Waits until the kernel has brought a close to the other end of the connections that this port
/// had; a busy machine takes its time even on loopback.
fn until_told_of_the_end(port: u16) {
    let told = Deadline::default().poll("the close to arrive", || {
        let connections = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let mut states = connections.lines().skip(1).filter_map(|line| {
            let mut columns = line.split_whitespace().skip(1);
            let (local, state) = (columns.next()?, columns.nth(1)?);
            local.ends_with(&format!(":{port:04X}")).then_some(state)
        });
        // Established, or a FIN that is not yet acknowledged.
        (!states.any(|state| matches!(state, "01" | "04"))).then_some(())
    });
    told.unwrap();
}

#[test]
fn row_c35_many_small_packets() {
    const COUNT: usize = 100_000;
    let backend = Backend::start(Protocol::Ajp).unwrap();
    let front = front(&backend, "");
    let before = front.memory().unwrap().resident_peak;
    let id = Id::new();
    let pairs = [chunk("x"), chunk("")].concat().repeat(COUNT);
    let bytes = [head(200, &[]), pairs, end(1)].concat();
    backend.answer(&id, Answer::whole(&bytes, Then::Serve));
    let answer: Response = front.ask(request("GET", &id)).unwrap();
    assert_eq!(answer.body.len(), COUNT);
    let grown = front.memory().unwrap().resident_peak - before;
    assert!(grown < 8 << 20, "{grown} bytes for packets of one byte");
}

/// The connection is closed, the log says why, and the front serves on.
fn gave_up(front: &Front, backend: &Backend, id: &Id, reason: &str) {
    let ended = backend.wait(backend.connections_of(id)[0], |it| it.ended);
    assert!(ended, "{reason}: the connection stays open");
    let line = front.wait_for_log(&format!("/{} ", id.as_str())).unwrap();
    let says = format!(" reason=backend:{reason} ");
    assert!(line.contains(&says), "{line}");
    honest_to(front, "patient");
}

/// A request that is served as always.
fn honest(front: &Front) -> Id {
    honest_to(front, "a")
}

/// The same for this host.
fn honest_to(front: &Front, host: &str) -> Id {
    let id = Id::new();
    let request = request("GET", &id).replace("Host: a", &format!("Host: {host}"));
    let answer = front.ask(request).unwrap();
    assert_eq!(
        (answer.status, answer.text()),
        (200, id.as_str().to_owned())
    );
    id
}

fn request(method: &str, id: &Id) -> String {
    let id = id.as_str();
    format!("{method} /{id} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
}

/// A whole answer with the body `hi`.
fn response(protocol: Protocol, status: u16) -> Vec<u8> {
    match (protocol, status) {
        (Protocol::Http, _) => {
            format!("HTTP/1.1 {status} Odd\r\nContent-Length: 2\r\n\r\nhi").into_bytes()
        }
        (Protocol::Ajp, 200) => hi(),
        (Protocol::Ajp, _) => [head(status, &[]), chunk("hi"), end(1)].concat(),
    }
}

/// A connection is pinged before each further request, and however long that takes, it stays.
const PINGS: &str = "ping_after_idle = \"0s\"\nping_timeout = \"1h\"\n";

/// Methods, and whether a request may be sent again.
const METHODS: [(&str, bool); 5] = [
    ("GET", true),
    ("PUT", true),
    ("DELETE", true),
    ("POST", false),
    ("FOO", false),
];

const ENDS: [Then; 2] = [Then::Close, Then::Reset];
