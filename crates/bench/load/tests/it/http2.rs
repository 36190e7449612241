//! HTTP/2 against servers that answer on many streams, refuse some, leave, or break the protocol.
//!
//! The good server is `h2`'s; frames of bad ones are written byte by byte (RFC 9113, section 4.1).

use std::io::Write;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::{self, JoinHandle};
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

/// The same requests with a body.
fn posting(mut plan: Plan, body: Vec<u8>) -> Plan {
    let request = &mut plan.targets[0].requests[0];
    request.method = "POST".to_owned();
    request.body = body.into();
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
    for script in [asked(Script::new()), Script::new()] {
        let report = check(script.send(words).stall(), FailureKind::BadHead);
        let reason = &report.failure_reasons[&FailureKind::BadHead];
        assert_eq!(reason, "a frame has a size that it cannot have");
    }
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
    let report = check((0..10).fold(hello(), each).stall(), FailureKind::BadBody);
    let reason = &report.failure_reasons[&FailureKind::BadBody];
    assert_eq!(reason, "the body is not as long as announced");
    assert_eq!(report.connections.opened, 1);
}

/// What comes before the head and behind the body is no part of an answer, and ends or fails none.
#[test]
fn interim_heads_and_trailers() {
    let each = |script: Script, number: u32| {
        let stream = 2 * number + 1;
        // `:status: 103`, and `a: b`, both as literals.
        let hints = [&[0x08, 3][..], b"103"].concat();
        let trailers = [0, 1, b'a', 1, b'b'];
        let answer = [
            frame(HEADERS, END_HEADERS, stream, &hints),
            frame(HEADERS, END_HEADERS, stream, OK),
            frame(DATA, 0, stream, b"hello"),
            frame(HEADERS, END_HEADERS | END_STREAM, stream, &trailers),
        ];
        asked(script).send(&answer.concat())
    };
    let peer = Peer::start((0..10).fold(hello(), each).stall());
    let report = run(Plan {
        stop: requests(10),
        ..http2(peer.address(), 1)
    });
    assert_eq!(report.requests.ok, 10, "{:?}", report.failures);
    assert_eq!(report.connections.opened, 1);
    assert_eq!(report.bytes.received_bodies, 50);
    assert_eq!(report.statuses[&200], 10);
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

/// Whatever the reason: a request that the server excludes was not looked at.
#[test]
fn a_request_that_an_angry_server_excludes() {
    let peer = Peer::start_with(|connection| match connection {
        0 => asked(hello()).send(&go_away(0, ENHANCE_YOUR_CALM)).stall(),
        _ => {
            let answer = frame(HEADERS, END_HEADERS | END_STREAM, 1, OK);
            asked(hello()).send(&answer).stall()
        }
    });
    let report = run(http2(peer.address(), 1));
    assert_eq!(report.requests.ok, 1, "{:?}", report.failures);
    let connections = report.connections;
    assert_eq!((connections.opened, connections.resent), (2, 1));
}

/// A server may answer before it has the whole request. What is left of that is not sent.
#[test]
fn an_answer_before_the_end_of_the_request() {
    const CANCEL: [u8; 4] = [0, 0, 0, 8];
    // No more of a body is taken than the first window allows.
    let each = |script: Script, number: u32| {
        let stream = 2 * number + 1;
        let answer = frame(HEADERS, END_HEADERS | END_STREAM, stream, OK);
        script
            .expect_until(&[0x83, 0x86])
            .send(&answer)
            .expect_until(&frame(RST_STREAM, 0, stream, &CANCEL))
    };
    let windows = frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0, 0, 0]);
    let script = Script::new().send(&[frame(SETTINGS, 0, 0, b""), windows].concat());
    let peer = Peer::start((0..3).fold(script, each).stall());
    let report = run(Plan {
        stop: requests(3),
        ..posting(http2(peer.address(), 1), vec![b'x'; 100_000])
    });
    assert_eq!(report.requests.ok, 3, "{:?}", report.failures);
    assert_eq!(report.connections.opened, 1);
}

/// A server that says `begun` to the first request, and then `endless` until the client closes. It reads nothing.
fn endless(begun: Vec<u8>, endless: Vec<u8>) -> (Address, JoinHandle<()>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().into();
    let endless = endless.repeat(10_000);
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut sent = stream.write_all(&begun);
        while sent.is_ok() {
            sent = stream.write_all(&endless);
        }
    });
    (address, server)
}

/// Frames without an end, which no window stops, end no deadline.
#[test]
fn a_server_that_never_stops() {
    let head = frame(HEADERS, END_HEADERS, 1, OK);
    let begun = [frame(SETTINGS, 0, 0, b""), head].concat();
    let (address, server) = endless(begun, frame(DATA, 0, 1, b""));
    let mut plan = http2(&address, 1);
    plan.timeouts.request = Some(Duration::from_millis(20));
    let report = run(plan);
    assert_eq!(report.failures.of(FailureKind::Timeout), 1);
    server.join().unwrap();
}

/// Nor are answers kept without a limit for a server that wants many and reads none.
#[test]
fn a_server_that_asks_and_does_not_read() {
    let (address, server) = endless(frame(SETTINGS, 0, 0, b""), frame(PING, 0, 0, &[0; 8]));
    let report = run(http2(&address, 1));
    let reason = &report.failure_reasons[&FailureKind::Write];
    assert_eq!(reason, "the server does not read what it is sent");
    server.join().unwrap();
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

/// Each connection is served by `serve`, which has a counter for its use.
fn served<F>(
    serve: impl Fn(tokio::net::TcpStream, Arc<AtomicUsize>) -> F + Send + 'static,
) -> (Address, Arc<AtomicUsize>)
where
    F: Future<Output = ()> + Send + 'static,
{
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
                tokio::spawn(serve(stream, Arc::clone(&counter)));
            }
        });
    });
    (address.into(), served)
}

/// Answers each batch of so many requests at once, and allows so many streams, with `body`.
fn batches(size: usize, body: &'static [u8]) -> (Address, Arc<AtomicUsize>) {
    served(move |stream, counter| serve(stream, size, body, counter))
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
            assert_eq!(request.method().as_str(), "GET");
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

/// The same of the bodies of requests: the server says how many bytes it had of each.
#[test]
fn requests_longer_than_the_windows() {
    const LEN: usize = 1_000_000;
    let (address, _) = served(|stream, _| async {
        let mut builder = h2::server::Builder::new();
        builder.initial_window_size(100_000);
        builder.initial_connection_window_size(150_000);
        let mut connection = builder.handshake::<_, Bytes>(stream).await.unwrap();
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            assert_eq!(request.headers()["content-length"], "1000000");
            tokio::spawn(async move {
                let mut body = request.into_body();
                let mut len = 0;
                while let Some(Ok(data)) = body.data().await {
                    len += data.len();
                    body.flow_control().release_capacity(data.len()).unwrap();
                }
                assert_eq!(len, LEN);
                respond.send_response(Response::new(()), true).unwrap();
            });
        }
    });
    let report = run(Plan {
        stop: requests(20),
        ..posting(http2(&address, 4), vec![b'x'; LEN])
    });
    assert_eq!(report.requests.ok, 20, "{:?}", report.failures);
    assert_eq!(report.connections.opened, 1);
    assert_eq!(report.bytes.sent_bodies, 20 * LEN as u64);
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
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

const ENHANCE_YOUR_CALM: u32 = 11;

/// `:status 200`, which is in HPACK's table.
const OK: &[u8] = &[0x88];
