//! HTTP/2 against servers that answer on many streams, refuse some, leave, or break the protocol.
//!
//! The good server is `h2`'s; frames of bad ones are written byte by byte (RFC 9113, section 4.1).

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use catamaran_load::plan::{Plan, PlanFault, Protocol};
use catamaran_load::report::{Ending, FailureKind, Report};
use catamaran_load::start;
use catamaran_testkit::{Address, Peer, Script};
use h2::RecvStream;
use h2::server::SendResponse;
use http::{Request, Response};

use crate::bench::{open, pipelined, plan, requests, run};

fn http2(address: &Address, streams: u32) -> Plan {
    let mut plan = plan(address);
    plan.targets[0].endpoint.protocol = Protocol::Http2;
    plan.connections = pipelined(streams);
    plan
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

fn reset(stream: u32, reason: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &reason.to_be_bytes())
}

fn go_away(last: u32, reason: u32) -> Vec<u8> {
    frame(
        GOAWAY,
        0,
        0,
        &[last.to_be_bytes(), reason.to_be_bytes()].concat(),
    )
}

/// A server that has said hello.
fn hello() -> Script {
    Script::new().send(&frame(SETTINGS, 0, 0, b""))
}

/// `:method GET`, `:scheme http`: where each request of these tests has got to its fields.
fn asked(script: Script) -> Script {
    script.expect_until(&[0x82, 0x86])
}

/// The server closes its side. It reads on, for a socket that is closed with bytes unread is reset.
fn closed_by(script: Script) -> Script {
    script.finish_sending().stall()
}

/// Ten requests, one after another, of which each fails for the same reason.
fn check(script: Script, kind: FailureKind) -> Report {
    let peer = Peer::start(script);
    let report = run(Plan {
        stop: requests(10),
        ..http2(peer.address(), 1)
    });
    assert_eq!(report.failures.of(kind), 10, "{:?}", report.failures);
    assert_eq!(report.requests.started, 10);
    assert_eq!(report.ending, Ending::Requests);
    report
}

#[test]
fn a_close_instead_of_an_answer() {
    let report = check(closed_by(asked(hello())), FailureKind::EarlyClose);
    assert_eq!(report.connections.opened, 10);
    // It fails as well if nothing could be sent before the close.
    check(closed_by(Script::new()), FailureKind::EarlyClose);
}

#[test]
fn a_close_amid_the_body() {
    let head = frame(HEADERS, END_HEADERS, 1, OK);
    let answer = [head, frame(DATA, 0, 1, b"hello")].concat();
    let script = closed_by(asked(hello()).send(&answer));
    let report = check(script, FailureKind::TruncatedBody);
    assert_eq!(report.bytes.received_bodies, 50);
}

#[test]
fn what_is_not_http2() {
    let words = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    check(
        asked(Script::new()).send(words).stall(),
        FailureKind::BadHead,
    );
    check(Script::new().send(words).stall(), FailureKind::BadHead);
}

/// A stream that the server ends is one request, and the connection goes on.
#[test]
fn a_stream_that_is_reset() {
    const INTERNAL_ERROR: u32 = 2;
    let each =
        |script: Script, number: u32| asked(script).send(&reset(2 * number + 1, INTERNAL_ERROR));
    let script = (0..10).fold(hello(), each);
    let report = check(script.stall(), FailureKind::Reset);
    assert_eq!(
        (report.connections.opened, report.connections.reset),
        (1, 0)
    );
}

/// The same of an answer that had begun, and of one that is longer than it said.
#[test]
fn an_answer_that_ends_wrong() {
    const CANCEL: u32 = 8;
    let each = |script: Script, number: u32| {
        let stream = 2 * number + 1;
        let head = frame(HEADERS, END_HEADERS, stream, OK);
        asked(script).send(&[head, reset(stream, CANCEL)].concat())
    };
    check((0..10).fold(hello(), each).stall(), FailureKind::Reset);
    let each = |script: Script, number: u32| {
        // `content-length: 2`, its name by the index in HPACK's table.
        let length = [OK, &[0x0F, 0x0D, 1, b'2']].concat();
        let head = frame(HEADERS, END_HEADERS, 2 * number + 1, &length);
        let body = frame(DATA, END_STREAM, 2 * number + 1, b"three");
        asked(script).send(&[head, body].concat())
    };
    check((0..10).fold(hello(), each).stall(), FailureKind::BadBody);
}

/// RFC 9113, section 8.7: a request that the server says it has not looked at is sent once more.
#[test]
fn a_stream_that_is_refused() {
    const REFUSED_STREAM: u32 = 7;
    let each =
        |script: Script, number: u32| asked(script).send(&reset(2 * number + 1, REFUSED_STREAM));
    let report = check((0..20).fold(hello(), each).stall(), FailureKind::EarlyClose);
    assert_eq!(
        (report.connections.opened, report.connections.resent),
        (1, 10)
    );
}

#[test]
fn a_server_that_leaves_in_order() {
    const NO_ERROR: u32 = 0;
    let peer = Peer::start_with(|connection| {
        let answered = |stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, OK);
        match connection {
            // The first request is answered, the second one was not looked at.
            0 => asked(asked(hello()))
                .send(&[answered(1), go_away(1, NO_ERROR)].concat())
                .stall(),
            _ => asked(hello()).send(&answered(1)).stall(),
        }
    });
    let report = run(Plan {
        stop: requests(2),
        ..http2(peer.address(), 2)
    });
    assert_eq!((report.requests.ok, report.requests.failed), (2, 0));
    let connections = report.connections;
    assert_eq!((connections.opened, connections.resent), (2, 1));
}

#[test]
fn a_server_that_leaves_in_anger() {
    const ENHANCE_YOUR_CALM: u32 = 11;
    let calm = go_away(1, ENHANCE_YOUR_CALM);
    check(
        closed_by(asked(hello()).send(&calm)),
        FailureKind::EarlyClose,
    );
    // One that leaves at once is not asked again and again.
    check(
        hello().send(&go_away(0, 0)).stall(),
        FailureKind::EarlyClose,
    );
}

/// The request fails alone: the stream is reset, and the connection serves the next one.
#[test]
fn no_answer_in_time() {
    let peer = Peer::start(hello().stall());
    let mut plan = http2(peer.address(), 1);
    plan.timeouts.request = Some(Duration::from_millis(20));
    plan.stop = requests(5);
    let report = run(plan);
    assert_eq!(report.failures.of(FailureKind::Timeout), 5);
    assert_eq!(report.connections.opened, 1);
}

/// Answers each batch of so many requests at once, and allows so many streams, with `body`.
fn batches(size: usize, body: &'static [u8]) -> (Address, Arc<AtomicUsize>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let served = Arc::<AtomicUsize>::default();
    let counter = Arc::clone(&served);
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            // The test's process ends it.
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, size, body, Arc::clone(&counter)));
            }
        });
    });
    (address.into(), served)
}

type Asked = (Request<RecvStream>, SendResponse<Bytes>);

async fn serve(
    stream: tokio::net::TcpStream,
    size: usize,
    body: &'static [u8],
    served: Arc<AtomicUsize>,
) {
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(u32::try_from(size).unwrap());
    let mut connection = builder.handshake(stream).await.unwrap();
    let mut batch: Vec<Asked> = Vec::new();
    while let Some(Ok(asked)) = connection.accept().await {
        batch.push(asked);
        if batch.len() < size {
            continue;
        }
        for (request, mut respond) in batch.drain(..) {
            assert_eq!(request.uri().path(), "/");
            assert!(request.headers().get("connection").is_none());
            let mut body_stream = respond.send_response(Response::new(()), false).unwrap();
            body_stream
                .send_data(Bytes::from_static(body), true)
                .unwrap();
            served.fetch_add(1, SeqCst);
        }
    }
}

/// No batch would ever be full with fewer streams, and the server refuses more.
#[test]
fn as_many_streams_as_asked_for_and_allowed() {
    for (streams, allowed) in [(4, 4), (10, 4)] {
        let (address, served) = batches(allowed, b"hello");
        let report = run(Plan {
            stop: requests(40),
            ..http2(&address, streams)
        });
        assert_eq!(report.requests.ok, 40, "{:?}", report.failures);
        assert_eq!(report.connections.opened, 1);
        assert_eq!(served.load(SeqCst), 40);
        assert_eq!(report.bytes.received_bodies, 200);
        assert!(
            report.bytes.received > report.bytes.received_bodies + report.bytes.received_heads / 2
        );
        assert_eq!(
            report.bytes.received,
            report.bytes.received_bodies + report.bytes.received_heads
        );
        assert_eq!(report.server.first_head, b"HTTP/2 200\r\n\r\n");
    }
}

/// Bodies longer than all windows together, so that each is opened again and again.
#[test]
fn bodies_longer_than_the_windows() {
    static BODY: [u8; 5_000_000] = [b'x'; 5_000_000];
    let (address, _) = batches(4, &BODY);
    let report = run(Plan {
        stop: requests(12),
        ..http2(&address, 4)
    });
    assert_eq!(report.requests.ok, 12, "{:?}", report.failures);
    assert_eq!(report.bytes.received_bodies, 60_000_000);
}

/// A request that is due takes a stream although others are under way: here no answer comes before
/// five are there.
#[test]
fn an_open_loop_uses_all_streams() {
    let (address, _) = batches(5, b"hello");
    let report = run(Plan {
        stop: requests(50),
        ..Plan {
            pace: open(500.0, 1, 1000),
            ..http2(&address, 5)
        }
    });
    assert_eq!(report.requests.ok, 50, "{:?}", report.failures);
    assert_eq!(report.latency.corrected.unwrap().censored.count(), 50);
}

#[test]
fn a_connection_is_closed_after_its_requests() {
    let (address, _) = batches(1, b"hello");
    let mut plan = Plan {
        stop: requests(10),
        ..http2(&address, 1)
    };
    plan.connections.requests_max = NonZeroU64::new(5);
    let report = run(plan);
    assert_eq!(report.requests.ok, 10, "{:?}", report.failures);
    let connections = report.connections;
    assert_eq!((connections.opened, connections.resent), (2, 0));
}

#[test]
fn http2_needs_kept_connections() {
    let peer = Peer::start(hello().stall());
    let mut plan = http2(peer.address(), 1);
    plan.connections.keep_alive = false;
    assert_eq!(start(plan).unwrap_err(), PlanFault::Http2WithoutKeepAlive);
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:status 200`, which is in HPACK's table.
const OK: &[u8] = &[0x88];
