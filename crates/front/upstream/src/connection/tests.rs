//! Tests how a request's body is sent, and what is known when a connection breaks: whether any of
//! the request reached the backend, and whether the response is whole.

mod over_tls;

use std::future::poll_fn;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::task::Waker;
use std::time::Duration;

use catamaran_message::{BodyLength, Fields};
use catamaran_transport::HIGH_WATER;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;
use tokio::net::{TcpStream, UnixStream};

use super::*;
use crate::config::{Address, Protocol};

trait Peer: Read + Write + AsFd {}
impl<T: Read + Write + AsFd> Peer for T {}

/// What the backend does with a request on a connection that has carried an exchange before.
#[derive(Clone, Copy, Debug)]
enum Backend {
    ClosedBefore,
    ResetBefore,
    ReadsAndCloses,
    ReadsAndResets,
    ReadsPartAndCloses,
    ReadsNothingAndCloses,
}

use Backend::{
    ClosedBefore, ReadsAndCloses, ReadsAndResets, ReadsNothingAndCloses, ReadsPartAndCloses,
    ResetBefore,
};

#[tokio::test]
async fn only_a_proof_counts_on_tcp() {
    for &(backend, expected) in EITHER.iter().chain(&[(ResetBefore, true)]) {
        for body in [0, 10, 1_000_000] {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap());
            let stream = Stream::Tcp(stream.await.unwrap());
            let (peer, _) = listener.accept().unwrap();
            let undelivered = after(stream, Box::new(peer), backend, body).await;
            assert_eq!(undelivered, expected, "{backend:?}, {body} bytes");
        }
    }
}

#[tokio::test]
async fn only_a_proof_counts_on_a_unix_socket() {
    for &(backend, expected) in EITHER {
        for body in [0, 10, 1_000_000] {
            let (ours, peer) = std::os::unix::net::UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            let stream = Stream::Unix(UnixStream::from_std(ours).unwrap());
            let undelivered = after(stream, Box::new(peer), backend, body).await;
            assert_eq!(undelivered, expected, "{backend:?}, {body} bytes");
        }
    }
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_write() {
    let (ours, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let mut conn = conn(Stream::Unix(UnixStream::from_std(ours).unwrap()));
    assert!(conn.is_undelivered());
    send(&mut conn, 0);
    assert!(conn.is_undelivered());
    poll_fn(|cx| conn.poll_write(cx)).await.unwrap();
    assert!(!conn.is_undelivered());
}

#[tokio::test]
async fn packets_that_were_asked_for_together_leave_together() {
    let (ours, mut peer) = std::os::unix::net::UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let stream = Stream::Unix(UnixStream::from_std(ours).unwrap());
    let config = BackendConfig::new(Protocol::Ajp, Address::Unix("unused".into()));
    let mut conn = Connection::new(stream, &config, None);
    conn.send_request(
        &post(&Fields::new(), 1_000_000),
        &ClientFacts::local(),
        &config,
    )
    .unwrap();
    poll_fn(|cx| conn.poll_write(cx)).await.unwrap();

    let mut body = ByteQueue::default();
    body.push(vec![b'x'; 100_000].into());
    assert_eq!(conn.body_credit(), 8186, "the first comes unasked");
    conn.send_body(&mut body);
    peer.write_all(&b"AB\0\x03\x06\x1f\xfa".repeat(10)).unwrap();
    for _ in 0..10 {
        let event = poll_fn(|cx| conn.poll_event(cx)).await.unwrap();
        assert!(matches!(event, Event::BodyWanted));
    }
    assert_eq!(conn.body_credit(), HIGH_WATER, "there is a limit");
    conn.send_body(&mut body);
    assert_eq!(body.len(), 100_000 - 8 * 8186);
    assert_eq!(conn.body_credit(), 0);
    poll_fn(|cx| conn.poll_write(cx)).await.unwrap();
    assert_eq!(conn.body_credit(), 3 * 8186);
    conn.send_body(&mut body);
    assert_eq!(conn.unwritten(), 3 * 8192);
}

#[tokio::test]
async fn what_was_sent_before_a_reset_is_read_after_the_write_that_met_it() {
    for answer in [
        "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno",
        "HTTP/1.1 413 Too Large\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
    ] {
        let (mut conn, peer) = uploading(answer).await;
        reset_unread(peer, &conn);
        assert!(matches!(write_more(&mut conn), Poll::Ready(Err(_))));
        let events = all_events(&mut conn);
        assert!(
            matches!(&events[..], [Ok(Event::Head(head)), Ok(Event::Body(_)), Ok(Event::End)] if head.status == 413),
            "{events:?}"
        );
        assert_eq!((conn.unwritten(), conn.body_credit()), (0, 0));
        assert!(!conn.settle(), "a broken connection is not used again");
    }
}

#[tokio::test]
async fn a_reset_does_not_end_a_response_that_only_the_close_ends() {
    let (mut conn, peer) = uploading(CLOSE_DELIMITED).await;
    reset_unread(peer, &conn);
    assert!(matches!(write_more(&mut conn), Poll::Ready(Err(_))));
    let events = all_events(&mut conn);
    assert!(
        matches!(&events[..], [Ok(Event::Head(_)), Ok(Event::Body(_)), Err(Error::Io(error))]
            if error.kind() == io::ErrorKind::ConnectionReset),
        "{events:?}"
    );
}

#[tokio::test]
async fn a_close_in_order_ends_it_although_a_reset_follows() {
    let (mut conn, peer) = uploading(CLOSE_DELIMITED).await;
    SockRef::from(&peer)
        .shutdown(std::net::Shutdown::Write)
        .unwrap();
    reset_unread(peer, &conn);
    assert!(matches!(write_more(&mut conn), Poll::Ready(Err(_))));
    let events = all_events(&mut conn);
    assert!(
        matches!(
            &events[..],
            [Ok(Event::Head(_)), Ok(Event::Body(_)), Ok(Event::End)]
        ),
        "{events:?}"
    );
}

/// Begins a request with a body, to a backend that has read nothing and sent `answer`. The event
/// loop does not learn of the answer: it does not run until the test ends.
async fn uploading(answer: &str) -> (Connection, std::net::TcpStream) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap());
    let mut conn = conn(Stream::Tcp(stream.await.unwrap()));
    let (mut peer, _) = listener.accept().unwrap();
    let config = BackendConfig::new(Protocol::Http, Address::Unix("unused".into()));
    conn.send_request(
        &post(&Fields::new(), 1_000_000),
        &ClientFacts::local(),
        &config,
    )
    .unwrap();
    assert!(matches!(write_more(&mut conn), Poll::Ready(Ok(_))));
    peer.write_all(answer.as_bytes()).unwrap();
    (conn, peer)
}

/// Closes a socket with unread bytes, which sends a reset, and waits until our kernel has received
/// it.
fn reset_unread(peer: std::net::TcpStream, conn: &Connection) {
    drop(peer);
    let Stream::Tcp(stream) = &conn.stream else {
        panic!("TCP");
    };
    // Nothing is asked for: a hang-up is told in any case.
    let mut watched = [PollFd::new(stream, PollFlags::empty())];
    let limit = Timespec {
        tv_sec: 30,
        tv_nsec: 0,
    };
    assert_eq!(poll(&mut watched, Some(&limit)).unwrap(), 1, "a hang-up");
}

fn write_more(conn: &mut Connection) -> Poll<Result<usize, Error>> {
    let mut body = ByteQueue::default();
    body.push(vec![b'x'; 1000].into());
    conn.send_body(&mut body);
    conn.poll_write(&mut Context::from_waker(Waker::noop()))
}

/// Reads all events up to the response's end or a failure.
fn all_events(conn: &mut Connection) -> Vec<Result<Event, Error>> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut events = Vec::new();
    while let Poll::Ready(event) = conn.poll_event(&mut cx) {
        let last = matches!(event, Ok(Event::End) | Err(_));
        events.push(event);
        if last {
            break;
        }
    }
    events
}

/// Does one whole exchange, then a second request to which `backend` reacts.
async fn after(stream: Stream, mut peer: Box<dyn Peer>, backend: Backend, body: usize) -> bool {
    let mut conn = conn(stream);
    send(&mut conn, 0);
    poll_fn(|cx| conn.poll_write(cx)).await.unwrap();
    read(&mut *peer, b"\r\n\r\n");
    peer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
    while !matches!(poll_fn(|cx| conn.poll_event(cx)).await.unwrap(), Event::End) {}
    assert!(conn.settle());
    match backend {
        ClosedBefore => drop(peer),
        ResetBefore => reset(peer),
        ReadsAndCloses | ReadsAndResets | ReadsPartAndCloses | ReadsNothingAndCloses => {
            send(&mut conn, body);
            // As much as there is room for.
            poll_fn(|cx| Poll::Ready(conn.poll_write(cx).is_ready())).await;
            match backend {
                ReadsNothingAndCloses => {}
                ReadsPartAndCloses => peer.read_exact(&mut [0; 10]).unwrap(),
                _ => read(&mut *peer, b"\r\n\r\n"),
            }
            if matches!(backend, ReadsAndResets) {
                reset(peer);
            } else {
                drop(peer);
            }
            return broken(conn).await;
        }
    }
    send(&mut conn, body);
    broken(conn).await
}

fn conn(stream: Stream) -> Connection {
    let config = BackendConfig::new(
        Protocol::Http,
        Address::Tcp {
            host: String::new(),
            port: 0,
        },
    );
    Connection::new(stream, &config, None)
}

fn post(headers: &Fields, body: u64) -> Request<'_> {
    Request {
        method: &http::Method::POST,
        path: b"/",
        query: None,
        host: b"a",
        headers,
        body: BodyLength::Known(body),
    }
}

fn send(conn: &mut Connection, body: usize) {
    let headers = Fields::new();
    let config = BackendConfig::new(Protocol::Http, Address::Unix("unused".into()));
    conn.send_request(&post(&headers, body as u64), &ClientFacts::local(), &config)
        .unwrap();
    if body > 0 {
        let mut pieces = ByteQueue::default();
        pieces.push(vec![b'x'; body].into());
        conn.send_body(&mut pieces);
        assert!(conn.finish_body());
    }
}

/// Drives the connection until it fails, as the relay does.
async fn broken(mut conn: Connection) -> bool {
    let failing = poll_fn(|cx| {
        let written = conn.poll_write(cx);
        let event = conn.poll_event(cx);
        match (written, event) {
            (Poll::Ready(Err(_)), _) | (_, Poll::Ready(Err(_))) => Poll::Ready(()),
            (_, Poll::Ready(Ok(event))) => panic!("{event:?}"),
            _ => Poll::Pending,
        }
    });
    timeout(Duration::from_secs(30), failing)
        .await
        .expect("a failure");
    conn.is_undelivered()
}

fn read(peer: &mut dyn Peer, end: &[u8]) {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end) {
        let mut byte = [0];
        peer.read_exact(&mut byte).unwrap();
        bytes.extend(byte);
    }
}

fn reset(peer: Box<dyn Peer>) {
    SockRef::from(&peer.as_fd())
        .set_linger(Some(Duration::ZERO))
        .unwrap();
}

const EITHER: &[(Backend, bool)] = &[
    (ClosedBefore, true),
    (ReadsAndCloses, false),
    (ReadsAndResets, false),
    (ReadsPartAndCloses, false),
    // It is true that nothing was read, but a reset looks the same when all was.
    (ReadsNothingAndCloses, false),
];

const CLOSE_DELIMITED: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\npartial-";
