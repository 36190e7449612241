//! Every course that a source can take, for every kind of client: the relay, and what the exchange makes
//! of its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use catamaran_http1::{Limits, Server, ServerEvent};
use catamaran_message::RequestHead;
use catamaran_testkit::http2::{
    END_HEADERS, END_STREAM, Http2Client, Said, block, frame, kind, opening,
};
use catamaran_testkit::{Deadline, Failure, HttpClient};
use socket2::{Domain, Socket, Type};
use tokio::task::JoinSet;

use super::scripted::{Script, Step, pattern};
use super::*;
use crate::config::{
    Address, Config, ListenAddress, ListenerConfig, Protocol, Protocols, UpstreamConfig,
};
use crate::deadlines::Deadline as WorkerDeadline;
use crate::exchange::downstream::Downstream;
use crate::exchange::scene::Scene;
use crate::exchange::{self, After};
use crate::listener::BoundAddress;
use crate::peer::PeerFacts;
use crate::worker::Worker;
use crate::{Running, start};

/// What a source does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    Streams,
    FailsBeforeHead,
    FailsAfterHead,
    FailsAmidBody,
    StallsBeforeHead,
    StallsAmidBody,
}

impl Course {
    /// The script of a body of `len` bytes, half of which come before what happens amid the body. With
    /// `waits` it happens only when the test says so.
    fn script(self, announced: bool, len: u64, waits: bool) -> Script {
        use Step::{Body, End, Fail, Head, Stall, Wait};
        let head = Head(announced.then_some(len));
        let half = len / 2;
        let steps = match self {
            Self::Streams => vec![head, Body(half), Wait, Body(len - half), End],
            Self::FailsBeforeHead => vec![Wait, Fail],
            Self::FailsAfterHead => vec![head, Wait, Fail],
            Self::FailsAmidBody => vec![head, Body(half), Wait, Fail],
            Self::StallsBeforeHead => vec![Stall],
            Self::StallsAmidBody => vec![head, Body(half), Stall],
        };
        let script = Script::new(steps);
        if !waits {
            script.go_on();
        }
        script
    }

    /// What a client gets that waits for it: the status, how many bytes of the body, and whether that is
    /// all.
    fn response(self, len: u64) -> (u16, Option<u64>, bool) {
        match self {
            Self::Streams => (200, Some(len), true),
            Self::FailsBeforeHead => (502, None, true),
            Self::FailsAfterHead => (200, Some(0), false),
            Self::FailsAmidBody | Self::StallsAmidBody => (200, Some(len / 2), false),
            Self::StallsBeforeHead => (504, None, true),
        }
    }

    /// The reason that is counted, if the client stays.
    fn reason(self) -> Option<&'static str> {
        match self {
            Self::Streams => None,
            Self::FailsBeforeHead | Self::FailsAfterHead | Self::FailsAmidBody => {
                Some("backend:closed")
            }
            Self::StallsBeforeHead => Some("backend:first-byte-timeout"),
            Self::StallsAmidBody => Some("backend:idle-body-timeout"),
        }
    }

    /// Bytes of the body that have been asked for when the source waits, or has stalled.
    fn before_wait(self, len: u64) -> u64 {
        match self {
            Self::Streams | Self::FailsAmidBody | Self::StallsAmidBody => len / 2,
            Self::FailsBeforeHead | Self::FailsAfterHead | Self::StallsBeforeHead => 0,
        }
    }
}

/// All courses, with and without an announced length.
fn cells() -> impl Iterator<Item = (Course, bool)> {
    let cells = COURSES.iter();
    cells.flat_map(|course| [true, false].map(|announced| (*course, announced)))
}

/// A front that no test asks for a backend.
struct Stage(Running);

impl Stage {
    fn new() -> Self {
        let address = Address::Tcp {
            host: "127.0.0.1".into(),
            port: 1,
        };
        let mut listener = ListenerConfig::new(ListenAddress::Tcp(([127, 0, 0, 1], 0).into()));
        listener.protocols = Protocols::Both;
        let backend = BackendConfig::new(Protocol::Http, address);
        let upstream = UpstreamConfig::new("app", vec![backend]);
        let mut config = Config::of_one(vec![listener], upstream);
        config.server.workers = 1.try_into().expect("a worker");
        config.server.drain_timeout = Duration::from_secs(10);
        Self(start(config).expect("a front"))
    }

    fn address(&self) -> SocketAddr {
        match &self.0.addresses()[0] {
            BoundAddress::Tcp(address) => *address,
            BoundAddress::Unix(path) => panic!("a Unix socket: {}", path.display()),
        }
    }

    /// How often a reason was counted.
    fn count(&self, reason: &str) -> u64 {
        let reasons = self.0.counters().reasons;
        let mut of_name = reasons.iter().filter(|(it, _)| it.to_string() == reason);
        of_name.next().map_or(0, |(_, count)| *count)
    }

    /// How often each of the reasons was counted that can come of these tests.
    fn counts(&self) -> Vec<u64> {
        REASONS.iter().map(|reason| self.count(reason)).collect()
    }

    /// Waits until one reason was counted once more than `before`, and asserts that no other was.
    fn counted(&self, reason: Option<&str>, before: &[u64], cell: &str) {
        let expected: Vec<u64> = REASONS
            .iter()
            .zip(before)
            .map(|(it, count)| count + u64::from(Some(*it) == reason))
            .collect();
        until(&format!("{reason:?} of {cell}"), || {
            self.counts() == expected
        });
    }

    /// Requests by which retries of backends are earned.
    fn earning(&self) -> u64 {
        self.0.shared.site.load().upstreams[0]
            .retry_budget
            .requests()
    }

    fn end(self) {
        self.0.drain();
        self.0.join();
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let waited = Deadline::default().poll(what, || is_so().then_some(()));
    waited.expect("in time");
}

/// What a client got: the status, the body, and whether that was all.
type Received = (u16, Vec<u8>, bool);

fn assert_received(course: Course, len: u64, received: &Received, cell: &str) {
    let (status, body_len, is_whole) = course.response(len);
    assert_eq!((received.0, received.2), (status, is_whole), "{cell}");
    match body_len {
        Some(body_len) => {
            assert_eq!(received.1.len() as u64, body_len, "{cell}");
            assert!(received.1 == pattern(0, body_len), "{cell}: other bytes");
        }
        None => assert!(received.1.starts_with(b"<!doctype html>"), "{cell}"),
    }
}

/// A client of HTTP/1.1 whose socket does not take much ahead of it.
fn http1(address: SocketAddr, path: &str) -> HttpClient {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).expect("a socket");
    socket
        .set_recv_buffer_size(256 * 1024)
        .expect("a small buffer");
    socket.connect(&address.into()).expect("a connection");
    let mut client = HttpClient::on(socket);
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    client.send(request.as_bytes()).expect("sent");
    client
}

fn receive_http1(client: &mut HttpClient) -> Received {
    let mut body = Vec::new();
    match client.receive_into(&mut body) {
        Ok(response) => (response.status, body, true),
        Err(Failure::Truncated { status, .. }) => (status.unwrap_or(0), body, false),
        Err(error) => panic!("{error}"),
    }
}

/// A client of HTTP/2 with this window for its stream. That of its connection is the first one.
fn http2(address: SocketAddr, path: &str, window: u32) -> Http2Client {
    let fields: [(&[u8], &[u8]); 4] = [
        (b":method", b"GET"),
        (b":scheme", b"http"),
        (b":authority", b"a"),
        (b":path", path.as_bytes()),
    ];
    let head = frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, &block(&fields));
    let mut client = Http2Client::connect(address).expect("a connection");
    let acknowledged = frame(kind::SETTINGS, END_STREAM, 0, &[]);
    client.send(&[opening(window), acknowledged, head].concat(), usize::MAX);
    client
}

/// Reads to the end of the response, and grants as much as it has read.
fn receive_http2(client: &mut Http2Client) -> Received {
    let (mut status, mut granted) = (0, 0);
    let is_whole = 'response: loop {
        for said in client.read_once().expect("in time") {
            match said {
                Said::Status(1, it) => status = it,
                Said::End(1) => break 'response true,
                Said::Reset(1, _) | Said::Closed => break 'response false,
                _ => {}
            }
        }
        let more = u32::try_from(client.body() - granted).expect("a few bytes");
        if more > 0 {
            let update = |stream| frame(kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
            client.send(&[update(0), update(1)].concat(), usize::MAX);
            granted = client.body();
        }
    };
    let body = client.read_body(client.body()).expect("what came");
    (status, body, is_whole)
}

/// Each event would be moved once more if it had not the form in which a backend's connection yields it.
#[test]
fn an_error_takes_no_room_beside_an_event() {
    type Polled<E> = Poll<Result<Event, E>>;
    assert_eq!(size_of::<Polled<SourceError>>(), size_of::<Event>());
    assert_eq!(size_of::<Polled<UpstreamError>>(), size_of::<Event>());
}

#[test]
fn a_client_of_http1_gets_what_there_is() {
    gets_what_there_is("http1", |stage, path| {
        receive_http1(&mut http1(stage.address(), path))
    });
}

#[test]
fn a_client_of_http2_gets_what_there_is() {
    gets_what_there_is("http2", |stage, path| {
        receive_http2(&mut http2(stage.address(), path, 1 << 20))
    });
}

/// What a client gets that asks for a path, for each course.
fn gets_what_there_is(name: &str, ask: impl Fn(&Stage, &str) -> Received) {
    let stage = Stage::new();
    for (course, announced) in cells() {
        let cell = format!("{course:?}, announced: {announced}");
        let path = format!("/{name}/{course:?}/{announced}");
        let mut script = course.script(announced, LEN, false);
        script.patience = Some(PATIENCE);
        let script = script.publish(&path);
        let before = stage.counts();
        let received = ask(&stage, &path);
        assert_received(course, LEN, &received, &cell);
        stage.counted(course.reason(), &before, &cell);
        assert_eq!(script.has_ended(), course == Course::Streams, "{cell}");
        until("its end", || script.is_dropped());
    }
    assert_eq!(stage.earning(), 0, "no backend was asked");
    stage.end();
}

/// The source is asked for little more than the client takes, and its patience does not run meanwhile.
#[test]
fn a_client_that_reads_slowly_gets_all_of_it_and_no_more_is_held() {
    let stage = Stage::new();
    for (course, announced) in cells() {
        let cell = format!("{course:?}, announced: {announced}");
        let script = |path: &str, len| {
            let mut script = course.script(announced, len, false);
            script.patience = Some(PATIENCE);
            script.publish(path)
        };
        let has_much = matches!(course, Course::Streams);

        // More than the kernel takes for two sockets.
        let len = if has_much { 16 << 20 } else { LEN };
        let path = format!("/slow/http1/{course:?}/{announced}");
        let over_http1 = script(&path, len);
        let mut client = http1(stage.address(), &path);
        until("the first bytes", || over_http1.given() > 0 || !has_much);
        assert!(!over_http1.has_ended(), "{cell}");
        let received = receive_http1(&mut client);
        assert_received(course, len, &received, &cell);

        // More than is queued for a stream.
        let len = 4 * LEN;
        let path = format!("/slow/http2/{course:?}/{announced}");
        let over_http2 = script(&path, len);
        let mut client = http2(stage.address(), &path, 1000);
        until("the first bytes", || over_http2.given() > 0 || !has_much);
        assert!(!over_http2.has_ended(), "{cell}");
        let received = receive_http2(&mut client);
        assert_received(course, len, &received, &cell);
    }
    stage.end();
}

/// How a client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    Http1,
    Http2Connection,
    Http2Stream,
}

impl Leaving {
    /// Asks for `path`, leaves as soon as the source waits, and returns what is left of the connection.
    fn run(self, stage: &Stage, path: &str, script: &Script) -> Option<Http2Client> {
        let begun = || until("the source waits", || script.is_waiting());
        if self == Self::Http1 {
            let client = http1(stage.address(), path);
            begun();
            drop(client);
            return None;
        }
        let mut client = http2(stage.address(), path, 1 << 20);
        begun();
        if self == Self::Http2Connection {
            return None;
        }
        let cancelled = frame(kind::RST_STREAM, 0, 1, &8_u32.to_be_bytes());
        client.send(&cancelled, usize::MAX);
        Some(client)
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Http1 | Self::Http2Connection => "client:gone",
            Self::Http2Stream => "client:client-reset",
        }
    }
}

/// All courses, with and without an announced length, for each way to leave.
fn leaving_cells() -> impl Iterator<Item = (Leaving, Course, bool)> {
    let ways = [
        Leaving::Http1,
        Leaving::Http2Connection,
        Leaving::Http2Stream,
    ];
    ways.into_iter()
        .flat_map(|leaving| cells().map(move |(course, announced)| (leaving, course, announced)))
}

#[test]
fn a_source_whose_client_leaves_is_left_where_it_is() {
    let stage = Stage::new();
    for (leaving, course, announced) in leaving_cells() {
        let cell = format!("{course:?}, announced: {announced}, {leaving:?}");
        let path = format!("/left/{leaving:?}/{course:?}/{announced}");
        let script = course.script(announced, LEN, true).publish(&path);
        let before = stage.counts();
        let connection = leaving.run(&stage, &path, &script);
        until(&format!("{cell} is left"), || script.is_dropped());
        stage.counted(Some(leaving.reason()), &before, &cell);
        assert_eq!(script.given(), course.before_wait(LEN), "{cell}");
        drop(connection);
    }
    stage.end();
}

/// Others read it, too. Over HTTP/2 neither the end of the stream nor that of the connection ends it.
#[test]
fn a_source_that_others_want_goes_on_without_its_client() {
    let stage = Stage::new();
    for (leaving, course, announced) in leaving_cells() {
        let cell = format!("{course:?}, announced: {announced}, {leaving:?}");
        let path = format!("/outlived/{leaving:?}/{course:?}/{announced}");
        let mut script = course.script(announced, LEN, true);
        script.outlives_client = true;
        let stalls = matches!(course, Course::StallsBeforeHead | Course::StallsAmidBody);
        script.patience = stalls.then_some(PATIENCE);
        let script = script.publish(&path);
        let before = stage.counts();
        let connection = leaving.run(&stage, &path, &script);
        // A stall may be over before its client has left.
        until(&format!("{cell} is without a client"), || {
            script.is_alone() || script.is_dropped()
        });
        script.go_on();
        until(&format!("{cell} is over"), || script.is_dropped());
        // What came of the source if it failed, else what the client did.
        let reason = course.reason().unwrap_or_else(|| leaving.reason());
        stage.counted(Some(reason), &before, &cell);
        let is_whole = course == Course::Streams;
        let given = if is_whole {
            LEN
        } else {
            course.before_wait(LEN)
        };
        assert_eq!(
            (script.has_ended(), script.given()),
            (is_whole, given),
            "{cell}"
        );
        drop(connection);
    }
    stage.end();
}

/// A worker in the runtime of a test, beside those of the front.
struct OwnWorker {
    worker: Arc<Worker>,
    _clock: JoinSet<()>,
    deadline: WorkerDeadline,
    listener: ListenerConfig,
    peer: PeerFacts,
}

impl OwnWorker {
    async fn new(stage: &Stage) -> Self {
        let worker = Arc::new(Worker::new(0, Arc::clone(&stage.0.shared)));
        let mut clock = JoinSet::new();
        clock.spawn(Arc::clone(worker.deadlines()).run());
        let deadline = worker.deadlines().join();
        deadline.attach().await;
        let address = stage.address();
        Self {
            worker,
            _clock: clock,
            deadline,
            listener: ListenerConfig::new(ListenAddress::Tcp(address)),
            peer: PeerFacts {
                remote: address,
                local: address,
                secure: false,
                tls: None,
            },
        }
    }

    fn scene(&self) -> Scene<'_> {
        Scene {
            worker: &self.worker,
            listener: &self.listener,
            deadline: &self.deadline,
            peer: &self.peer,
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}

fn head(path: &str) -> Box<RequestHead> {
    let mut input = BytesMut::from(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    match Server::new(Limits::request()).receive(&mut input) {
        Ok(Some(ServerEvent::Head(head))) => head,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_exchange_without_a_client_receives_all_of_it() {
    let stage = Stage::new();
    runtime().block_on(async {
        let own = OwnWorker::new(&stage).await;
        for (course, announced) in cells() {
            let cell = format!("{course:?}, announced: {announced}");
            let path = format!("/nobody/{course:?}/{announced}");
            let mut script = course.script(announced, 16 << 20, false);
            script.patience = Some(PATIENCE);
            let script = script.publish(&path);
            let before = stage.counts();
            let mut down = Downstream::Nobody(Box::default());
            let after = exchange::serve(own.scene(), &mut down, head(&path)).await;
            let is_cut = !course.response(1).2;
            let expected = if is_cut { After::Cut } else { After::Done };
            assert_eq!(after, expected, "{cell}");
            stage.counted(course.reason(), &before, &cell);
            let is_whole = course == Course::Streams;
            let given = if is_whole {
                16 << 20
            } else {
                course.before_wait(16 << 20)
            };
            assert_eq!(
                (script.has_ended(), script.given()),
                (is_whole, given),
                "{cell}"
            );
            assert!(script.is_dropped(), "{cell}");
        }
    });
    stage.end();
}

/// The length of a body, of which half is more than one piece.
const LEN: u64 = 100_000;

/// After how much silence a source is given up, where that is what happens.
const PATIENCE: Duration = Duration::from_millis(60);

const COURSES: [Course; 6] = [
    Course::Streams,
    Course::FailsBeforeHead,
    Course::FailsAfterHead,
    Course::FailsAmidBody,
    Course::StallsBeforeHead,
    Course::StallsAmidBody,
];

/// Every reason that can come of these tests.
const REASONS: [&str; 5] = [
    "backend:closed",
    "backend:first-byte-timeout",
    "backend:idle-body-timeout",
    "client:gone",
    "client:client-reset",
];
