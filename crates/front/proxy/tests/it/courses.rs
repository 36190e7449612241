//! Every course that the response of a backend can take, for clients of HTTP/1.1 and of HTTP/2: what they get, and
//! the reason that is counted.

use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use catamaran_proxy::config::{BackendConfig, Protocol, Protocols};
use catamaran_testkit::http2::{Http2Client, Said, frame, kind, opening};
use catamaran_testkit::{Failure, HttpClient, Peer, Script};
use socket2::{Domain, Socket, Type};

use crate::health::{reasons, until};
use crate::leaving::Backend;
use crate::{Front, NEVER, REQUEST, config, loopback, start, tcp, to};

/// What a backend does.
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
    /// The script of a connection. The body's length is announced, or it comes in chunks.
    fn script(self, announced: bool) -> Script {
        let received = Script::new().expect_until(b"\r\n\r\n");
        if self == Self::FailsBeforeHead {
            return received;
        }
        if self == Self::StallsBeforeHead {
            return received.stall();
        }
        let (half, framing) = (
            vec![b'x'; LEN / 2],
            if announced {
                format!("Content-Length: {LEN}")
            } else {
                "Transfer-Encoding: chunked".to_owned()
            },
        );
        let piece = if announced {
            half
        } else {
            [format!("{:x}\r\n", LEN / 2).as_bytes(), &half, b"\r\n"].concat()
        };
        let head = format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n").into_bytes();
        match self {
            Self::Streams => {
                let end: &[u8] = if announced { b"" } else { b"0\r\n\r\n" };
                let body = [&piece, &piece, end].concat();
                received.send(&head).send(&body).stall()
            }
            Self::FailsAmidBody => received.send(&head).send(&piece),
            // In one piece, so that the silence begins behind it.
            Self::StallsAmidBody => received.send(&[head, piece].concat()).stall(),
            Self::FailsAfterHead | Self::FailsBeforeHead | Self::StallsBeforeHead => {
                received.send(&head)
            }
        }
    }

    /// How long the front waits for the head of a backend that takes this course, and for more of its body.
    fn patience(self) -> [Duration; 2] {
        match self {
            Self::StallsBeforeHead => [PATIENCE, NEVER],
            Self::StallsAmidBody => [NEVER, PATIENCE],
            Self::Streams | Self::FailsBeforeHead | Self::FailsAfterHead | Self::FailsAmidBody => {
                [NEVER; 2]
            }
        }
    }

    /// What a client gets: the status, how many bytes of the backend's body, and whether its response is whole.
    fn response(self) -> (u16, Option<usize>, bool) {
        match self {
            Self::Streams => (200, Some(LEN), true),
            Self::FailsBeforeHead => (502, None, true),
            Self::FailsAfterHead => (200, Some(0), false),
            Self::FailsAmidBody | Self::StallsAmidBody => (200, Some(LEN / 2), false),
            Self::StallsBeforeHead => (504, None, true),
        }
    }

    /// The reason that is counted.
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
}

/// A front whose backend is given up after so long a silence before its head, and in its body.
fn front(backend: BackendConfig, [before_head, in_body]: [Duration; 2]) -> Front {
    let mut config = config(
        &[loopback()],
        vec![BackendConfig {
            first_byte_timeout: before_head,
            idle_body_timeout: in_body,
            ..backend
        }],
    );
    let listener = &mut config.listeners[0];
    listener.protocols = Protocols::Both;
    // The client of a test may be slow.
    (listener.write_timeout, listener.write_rate_min) = (NEVER, 0);
    start(config).unwrap()
}

/// A client of HTTP/1.1 whose socket does not take much ahead of it.
fn http1(address: SocketAddr) -> HttpClient {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(256 * 1024).unwrap();
    socket.connect(&address.into()).unwrap();
    let mut client = HttpClient::on(socket);
    client.send(REQUEST).unwrap();
    client
}

/// What a client got: the status, the body, and whether that was all.
type Received = (u16, Vec<u8>, bool);

fn receive_http1(mut client: HttpClient) -> Received {
    let mut body = Vec::new();
    match client.receive_into(&mut body) {
        Ok(response) => (response.status, body, true),
        Err(Failure::Truncated { status, .. }) => (status.unwrap_or(0), body, false),
        Err(error) => panic!("{error}"),
    }
}

/// A client of HTTP/2 with this window for its stream. That of its connection is the first one.
fn http2(address: SocketAddr, window: u32) -> Http2Client {
    let mut client = Http2Client::connect(address).unwrap();
    let acknowledged = frame(kind::SETTINGS, 1, 0, &[]);
    let opening = [opening(window), acknowledged, crate::http2::get(1)].concat();
    client.send(&opening, usize::MAX);
    client
}

/// Reads to the end of the response, and grants as much as it has read.
fn receive_http2(mut client: Http2Client) -> Received {
    let (mut status, mut granted) = (0, 0);
    let is_whole = 'response: loop {
        for said in client.read_once().unwrap() {
            match said {
                Said::Status(1, it) => status = it,
                Said::End(1) => break 'response true,
                Said::Reset(1, _) | Said::Closed => break 'response false,
                _ => {}
            }
        }
        let more = u32::try_from(client.body() - granted).unwrap();
        if more > 0 {
            let update = |stream| frame(kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
            client.send(&[update(0), update(1)].concat(), usize::MAX);
            granted = client.body();
        }
    };
    let body = client.read_body(client.body()).unwrap();
    (status, body, is_whole)
}

/// What a client gets, for each course.
fn check(ask: impl Fn(SocketAddr) -> Received) {
    for (course, announced) in COURSES.into_iter().flat_map(|it| [(it, true), (it, false)]) {
        let cell = format!("{course:?}, announced: {announced}");
        let peer = Peer::start(course.script(announced));
        let running = front(to(&peer), course.patience());
        let (status, body, is_whole) = ask(tcp(&running, 0));
        let (expected, len, whole) = course.response();
        assert_eq!((status, is_whole), (expected, whole), "{cell}");
        match len {
            Some(len) => assert!(body == vec![b'x'; len], "{cell}: {} bytes", body.len()),
            None => assert!(body.starts_with(b"<!doctype html>"), "{cell}"),
        }
        if let Some(reason) = course.reason() {
            until(&format!("{reason} of {cell}"), || {
                (reasons(&running, reason) == 1).then_some(())
            });
        }
        let counted = running.counters().reasons;
        assert_eq!(
            counted.len(),
            usize::from(course.reason().is_some()),
            "{cell}: {counted:?}"
        );
    }
}

#[test]
fn a_client_of_http1_gets_what_there_is() {
    check(|address| receive_http1(http1(address)));
}

#[test]
fn a_client_of_http2_gets_what_there_is() {
    check(|address| receive_http2(http2(address, 1 << 20)));
}

/// The backend is asked for little more than the client takes, and its timeouts do not run meanwhile.
#[test]
fn a_client_that_reads_slowly_gets_all_of_it_and_no_more_is_held() {
    type Client = Box<dyn FnOnce() -> Received + Send>;
    let check = |receive: fn(SocketAddr) -> Client| {
        let backend = Backend::start();
        let running = front(backend.config(Protocol::Http), [NEVER, MUCH_PATIENCE]);
        let client = receive(tcp(&running, 0));
        let mut exchange = backend.accept();
        exchange.receive_head();
        let socket = exchange.socket();
        socket
            .set_write_timeout(Some(MUCH_PATIENCE * 5 / 4))
            .unwrap();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {MUCH}\r\n\r\n");
        socket.write_all(head.as_bytes()).unwrap();
        let piece = vec![b'x'; 64 * 1024];
        let mut written = 0;
        let stopped = loop {
            match socket.write(&piece) {
                Ok(count) => written += count,
                Err(error) => break error,
            }
        };
        assert_eq!(stopped.kind(), ErrorKind::WouldBlock);
        assert!(written < MUCH / 2, "{written} bytes");
        socket.set_write_timeout(None).unwrap();
        let reading = thread::spawn(client);
        socket.write_all(&vec![b'x'; MUCH - written]).unwrap();
        let (status, body, is_whole) = reading.join().unwrap();
        assert_eq!((status, body.len(), is_whole), (200, MUCH, true));
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            check(|address| {
                let client = http1(address);
                Box::new(|| receive_http1(client))
            });
        });
        check(|address| {
            let client = http2(address, 1000);
            Box::new(|| receive_http2(client))
        });
    });
}

/// The length of a body, of which half is more than one piece.
const LEN: usize = 100_000;

/// More than the kernel takes for all sockets on the way.
const MUCH: usize = 48 << 20;

/// After how much silence a backend is given up that fails on purpose.
const PATIENCE: Duration = Duration::from_millis(60);

/// The same of a backend that writes as fast as it can: a busy machine must not keep it silent for so long.
const MUCH_PATIENCE: Duration = Duration::from_secs(4);

const COURSES: [Course; 6] = [
    Course::Streams,
    Course::FailsBeforeHead,
    Course::FailsAfterHead,
    Course::FailsAmidBody,
    Course::StallsBeforeHead,
    Course::StallsAmidBody,
];
