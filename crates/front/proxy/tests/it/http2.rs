//! Clients of HTTP/2 whose responses the front has at the same time, and those that hold or cancel them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use catamaran_proxy::config::{BackendConfig, Config, ErrorPages, Page, Protocol, Protocols};
use catamaran_testkit::http2::{
    END_HEADERS, END_STREAM, Http2Client, Said, block, frame, kind, opening,
};
use catamaran_testkit::{HttpClient, Peer, Script};
use tokio::time::Instant;

use crate::health::{first, until};
use crate::leaving::{ANSWER, Backend, Exchange};
use crate::{Front, config, loopback, start, tcp, to, wait_for_reason};

pub(crate) fn get(stream: u32) -> Vec<u8> {
    request(stream, b"GET", b"/")
}

/// A request that the front refuses with 400; of HEAD, without a body.
fn refused(stream: u32) -> Vec<u8> {
    request(stream, b"HEAD", b"/%zz")
}

fn reset(stream: u32) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &8_u32.to_be_bytes())
}

fn request(stream: u32, method: &[u8], path: &[u8]) -> Vec<u8> {
    let fields: [(&[u8], &[u8]); 4] = [
        (b":method", method),
        (b":scheme", b"http"),
        (b":authority", b"a"),
        (b":path", path),
    ];
    frame(
        kind::HEADERS,
        END_HEADERS | END_STREAM,
        stream,
        &block(&fields),
    )
}

#[test]
fn responses_that_are_ready_together_leave_in_one_write() {
    let mut config = config(&[loopback()], Vec::new());
    config.listeners[0].protocols = Protocols::Both;
    config.routes.clear();
    config.upstreams.clear();
    let page = Page {
        file: "404.txt".into(),
        content_type: "text/plain",
        // Longer than what the library copies into one buffer with the head.
        body: Some(Bytes::from_static(&[b'x'; 300])),
    };
    config.error_pages = Some(Arc::new(ErrorPages {
        pages: vec![(404..=404, Arc::new(page))],
        replaced: Vec::new(),
        maintenance: None,
    }));
    let running = start(config).unwrap();
    let mut client = Http2Client::connect(tcp(&running, 0)).unwrap();
    let acknowledged = frame(kind::SETTINGS, END_STREAM, 0, &[]);
    let begun = [opening(65_535), acknowledged, get(1)].concat();
    client.send(&begun, usize::MAX);
    assert_eq!(
        client.wait(|said| *said == Said::End(1)).unwrap(),
        Some(Said::End(1))
    );
    let ten: Vec<u8> = (0..10).flat_map(|index| get(2 * index + 3)).collect();
    client.send(&ten, usize::MAX);
    let said = client.read_once().unwrap();
    for index in 0..10 {
        let stream = 2 * index + 3;
        assert!(said.contains(&Said::Status(stream, 404)), "{said:?}");
        assert!(said.contains(&Said::End(stream)), "{said:?}");
    }
    assert_eq!(client.body(), 11 * 300);
}

/// A front for HTTP/2 with one worker.
fn front(backend: BackendConfig, change: impl FnOnce(&mut Config)) -> Front {
    let mut config = config(&[loopback()], vec![backend]);
    config.server.workers = 1.try_into().unwrap();
    config.server.drain_timeout = Duration::from_secs(1);
    config.listeners[0].protocols = Protocols::Both;
    change(&mut config);
    start(config).unwrap()
}

/// What a client goes on sending, so that the front writes without a byte of a body.
type Noise = fn(u32) -> Vec<u8>;

#[test]
fn nothing_but_bodies_keeps_a_response() {
    const HELD: u32 = 20;
    let noises: [(&str, Noise); 4] = [
        ("PING", |_| frame(kind::PING, 0, 0, &[0; 8])),
        ("SETTINGS", |_| frame(kind::SETTINGS, 0, 0, &[])),
        ("HEAD", |round| refused(2 * (HELD + round) + 1)),
        ("PING and the window of a response", |round| {
            let stream = 2 * (round % HELD) + 1;
            let widened = frame(kind::WINDOW_UPDATE, 0, stream, &1_u32.to_be_bytes());
            [widened, frame(kind::PING, 0, 0, &[0; 8])].concat()
        }),
    ];
    let mut answer = b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n".to_vec();
    answer.resize(answer.len() + 300_000, b'x');
    for (name, noise) in noises {
        let script = Script::new().expect_until(b"\r\n\r\n").send(&answer);
        let peer = Peer::start(script.stall());
        let running = front(to(&peer), |config| {
            config.listeners[0].write_timeout = Duration::from_millis(300);
        });
        // Each response may be larger than all of the connection.
        let mut client = Http2Client::connect(tcp(&running, 0)).unwrap();
        let held: Vec<u8> = (0..HELD).flat_map(|index| get(2 * index + 1)).collect();
        client.send(&[opening(1 << 20), held].concat(), usize::MAX);
        let (mut begun, mut round, mut reset) = (0, 0, 0);
        until("all to be reset", || {
            // More of it than for the time limit of these responses would be a flood.
            if begun == HELD {
                client.send(&noise(round), usize::MAX);
                round += 1;
            }
            for said in client.read_once().unwrap() {
                match said {
                    Said::Status(stream, _) if stream < 2 * HELD => begun += 1,
                    Said::Reset(_, code) => {
                        assert_eq!(code, INTERNAL_ERROR, "{name}");
                        reset += 1;
                    }
                    Said::GoAway(_) | Said::Closed => panic!("{name}: {said:?}"),
                    Said::Status(..) | Said::End(_) | Said::Pong => {}
                }
            }
            (reset == HELD).then_some(())
        });
        assert_eq!(client.body(), 65_535, "{name}");
        wait_for_reason(&running, "client:write-timeout");
        until("the backend to be free", || {
            let counts = first(&running);
            ((counts.open, counts.in_flight) == (0, 0)).then_some(())
        });
        // The connection is as good as before.
        client.send(&refused(999_999), usize::MAX);
        let answered = |said: &Said| *said == Said::Status(999_999, 400);
        assert!(client.wait(answered).unwrap().is_some(), "{name}");
    }
}

#[test]
fn a_balancers_cancels_end_no_connection() {
    let running = front(Backend::start().config(Protocol::Http), |config| {
        config.server.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    });
    let mut client = Http2Client::connect(tcp(&running, 0)).unwrap();
    let acknowledged = frame(kind::SETTINGS, END_STREAM, 0, &[]);
    client.send(&[opening(65_535), acknowledged].concat(), usize::MAX);
    // Each time one user is served, and twenty cancel.
    for round in 0..100 {
        let first = 42 * round + 1;
        let cancelled = (1..=20).flat_map(|index| {
            let stream = first + 2 * index;
            [refused(stream), reset(stream)].concat()
        });
        let sent: Vec<u8> = refused(first).into_iter().chain(cancelled).collect();
        client.send(&sent, usize::MAX);
        let said = client
            .wait(|said| {
                matches!(said, Said::End(it) if *it == first) || matches!(said, Said::GoAway(_))
            })
            .unwrap();
        assert_eq!(said, Some(Said::End(first)), "after {} cancels", 20 * round);
    }
}

/// A client that has a response under way from `backend` and resets so many other requests.
fn resetting(running: &Front, backend: &Backend, resets: u32) -> (Http2Client, Exchange) {
    let mut client = Http2Client::connect(tcp(running, 0)).unwrap();
    client.send(&[opening(65_535), get(1)].concat(), usize::MAX);
    let mut exchange = backend.accept();
    exchange.receive_head();
    for index in 1..=resets {
        let stream = 2 * index + 1;
        client.send(&[refused(stream), reset(stream)].concat(), usize::MAX);
    }
    (client, exchange)
}

fn goaway(client: &mut Http2Client) -> Option<Said> {
    client.wait(|said| matches!(said, Said::GoAway(_))).unwrap()
}

#[test]
fn after_too_many_resets_the_others_finish() {
    let backend = Backend::start();
    let running = front(backend.config(Protocol::Http), |config| {
        config.server.drain_timeout = Duration::from_secs(30);
    });
    let (mut client, mut exchange) = resetting(&running, &backend, 115);
    assert_eq!(goaway(&mut client), Some(Said::GoAway(NO_ERROR)));
    // It gets nothing further, ...
    client.send(&get(999), usize::MAX);
    let refused = client.wait(|said| matches!(said, Said::Reset(999, _)));
    assert_eq!(refused.unwrap(), Some(Said::Reset(999, REFUSED_STREAM)));
    // ... and what it had asked for.
    exchange.send(ANSWER);
    let ended = client.wait(|said| *said == Said::End(1)).unwrap();
    assert_eq!((ended, client.body()), (Some(Said::End(1)), 2));
    assert_eq!(client.wait(|_| false).unwrap(), None, "closed");
    wait_for_reason(&running, "client:h2-reset-flood");
    drop(running);
}

#[test]
fn those_that_do_not_finish_are_cut() {
    let backend = Backend::start();
    let running = front(backend.config(Protocol::Http), |config| {
        config.server.drain_timeout = Duration::from_millis(300);
    });
    let (mut client, _exchange) = resetting(&running, &backend, 115);
    assert_eq!(goaway(&mut client), Some(Said::GoAway(NO_ERROR)));
    assert_eq!(goaway(&mut client), Some(Said::GoAway(ENHANCE_YOUR_CALM)));
    assert_eq!(client.wait(|_| false).unwrap(), None, "closed");
}

#[test]
fn who_goes_on_resetting_is_cut_at_once() {
    let backend = Backend::start();
    let running = front(backend.config(Protocol::Http), |config| {
        config.server.drain_timeout = Duration::from_secs(3600);
    });
    let (mut client, _exchange) = resetting(&running, &backend, 400);
    let cut = client.wait(|said| *said == Said::GoAway(ENHANCE_YOUR_CALM));
    assert!(cut.unwrap().is_some());
    assert_eq!(client.wait(|_| false).unwrap(), None, "closed");
    drop(running);
}

/// The head of a request with these fields besides.
fn head_with(stream: u32, flags: u8, method: &[u8], more: &[(&[u8], &[u8])]) -> Vec<u8> {
    let fields: [(&[u8], &[u8]); 4] = [
        (b":method", method),
        (b":scheme", b"http"),
        (b":authority", b"a"),
        (b":path", b"/"),
    ];
    let block = block(&[&fields, more].concat());
    frame(kind::HEADERS, END_HEADERS | flags, stream, &block)
}

/// A client that has sent the opening and this.
fn client(running: &Front, bytes: &[u8]) -> Http2Client {
    let mut client = Http2Client::connect(tcp(running, 0)).unwrap();
    client.send(&[&opening(65_535), bytes].concat(), usize::MAX);
    client
}

/// A POST of five bytes that all have come, without its END_STREAM.
fn unended_post() -> Vec<u8> {
    let head = head_with(1, 0, b"POST", &[(b"content-length", b"5")]);
    [head, frame(kind::DATA, 0, 1, b"hello")].concat()
}

/// A backend that answers each POST of `hello`.
fn greeted() -> Peer {
    let turn = Script::new().expect_until(b"hello").send(ANSWER);
    Peer::start(turn.repeat(10).stall())
}

#[test]
fn the_end_of_a_request_that_has_all_its_bytes_is_waited_for() {
    let peer = greeted();
    let running = front(to(&peer), |_| {});
    let mut client = client(&running, &unended_post());
    let ended = client.wait(|said| matches!(said, Said::End(1) | Said::Reset(..)));
    assert_eq!(ended.unwrap(), Some(Said::End(1)));
    let ping = frame(kind::PING, 0, 0, &[0; 8]);
    client.send(&ping, usize::MAX);
    assert_eq!(client.next_said().unwrap(), Said::Pong);
    let end = frame(kind::DATA, END_STREAM, 1, &[]);
    client.send(&[end, ping].concat(), usize::MAX);
    assert_eq!(client.next_said().unwrap(), Said::Pong, "no reset");
}

#[test]
fn an_end_that_does_not_come_is_waited_for_as_long_as_lingering_takes() {
    let peer = greeted();
    let running = front(to(&peer), |config| {
        config.listeners[0].linger_timeout = Duration::from_millis(50);
    });
    let mut client = client(&running, &unended_post());
    let reset = client.wait(|said| matches!(said, Said::Reset(..))).unwrap();
    assert_eq!(reset, Some(Said::Reset(1, NO_ERROR)));
}

#[test]
fn a_request_that_crosses_the_end_of_an_idle_connection_is_served() {
    let peer = crate::backend("ok");
    let running = front(to(&peer), |config| {
        config.listeners[0].keep_alive_timeout = Duration::from_millis(50);
    });
    until("a request before the close", || {
        let began = Instant::now();
        let mut client = client(&running, &[]);
        assert_eq!(goaway(&mut client), Some(Said::GoAway(NO_ERROR)));
        client.send(&get(1), usize::MAX);
        // Unless this thread stood still meanwhile, the front waits for it.
        let is_late = began.elapsed() > LAST_TIME;
        let answered = client.wait(|said| matches!(said, Said::Status(..)));
        match answered.unwrap() {
            None if is_late => return None,
            said => assert_eq!(said, Some(Said::Status(1, 200))),
        }
        assert_eq!(client.wait(|_| false).unwrap(), None, "closed");
        Some(())
    });
}

/// Crumbs of a cookie are one field of the request that is sent.
#[test]
fn crumbs_count_and_measure_as_the_one_line_that_they_become() {
    let peer = crate::backend("ok");
    let running = front(to(&peer), |_| {});
    let (many, long) = (vec![b"c00=1".to_vec(); 97], vec![vec![b'c'; 4096]; 2]);
    for (crumbs, status) in [(many, 200), (long, 431)] {
        let fields: Vec<(&[u8], &[u8])> =
            crumbs.iter().map(|it| (&b"cookie"[..], &it[..])).collect();
        let mut client = client(&running, &head_with(1, END_STREAM, b"GET", &fields));
        assert_eq!(client.next_said().unwrap(), Said::Status(1, status));
    }
    let sent = String::from_utf8(peer.received(0)).unwrap().to_lowercase();
    assert_eq!(sent.matches("cookie: ").count(), 1, "{sent}");
    // Over HTTP/1.1 each line is within the limit.
    let lines = format!("Cookie: {}\r\n", "c".repeat(5000)).repeat(2);
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
    assert_eq!(client.ask(request).unwrap().status, 431);
    wait_for_reason(&running, "client:field-too-long");
}

/// Less than the time for which the front waits for requests that were on their way.
const LAST_TIME: Duration = Duration::from_millis(800);

const NO_ERROR: u32 = 0;
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;
const ENHANCE_YOUR_CALM: u32 = 11;
