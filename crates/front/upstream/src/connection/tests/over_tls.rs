//! Tests what is known of a request over TLS when its connection breaks.

use catamaran_testkit::tls::{Pair, files, profile, settings, trust};
use catamaran_tls::Protocols;
use catamaran_transport::TlsStream;

use super::*;

/// How the backend ends the connection after the first exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The backend sends close_notify and FIN, before the request.
    InOrderBefore,
    /// The backend sends FIN alone, before the request: anybody on the way could forge that.
    CutBefore,
    /// The backend reads the request, then sends close_notify.
    InOrderAfter,
}

#[tokio::test]
async fn only_an_end_that_was_announced_is_a_proof() {
    for (end, expected) in [
        (End::InOrderBefore, true),
        (End::CutBefore, false),
        (End::InOrderAfter, false),
    ] {
        let (mut conn, mut peer) = connected().await;
        send(&mut conn, 0);
        poll_fn(|cx| conn.poll_write(cx)).await.unwrap();
        exchange(&mut peer, Some(ANSWER)).await;
        while !matches!(poll_fn(|cx| conn.poll_event(cx)).await.unwrap(), Event::End) {}
        assert!(conn.settle());
        match end {
            End::InOrderBefore => poll_fn(|cx| Pin::new(&mut peer).poll_shutdown(cx))
                .await
                .unwrap(),
            End::CutBefore => drop(std::mem::replace(&mut peer, nobody())),
            End::InOrderAfter => {}
        }
        send(&mut conn, 0);
        if end == End::InOrderAfter {
            poll_fn(|cx| conn.poll_write(cx)).await.unwrap();
            exchange(&mut peer, None).await;
            poll_fn(|cx| Pin::new(&mut peer).poll_shutdown(cx))
                .await
                .unwrap();
        }
        assert_eq!(broken(conn).await, expected, "{end:?}");
    }
}

#[tokio::test]
async fn the_handshake_is_no_part_of_the_request() {
    let (mut conn, mut peer) = connected().await;
    send(&mut conn, 0);
    assert!(conn.is_undelivered(), "nothing was given to the socket");
    poll_fn(|cx| conn.poll_write(cx)).await.unwrap();
    // With the response comes the acknowledgement of the request.
    exchange(&mut peer, Some(ANSWER)).await;
    while !matches!(poll_fn(|cx| conn.poll_event(cx)).await.unwrap(), Event::End) {}
    assert!(!conn.is_undelivered());
}

#[tokio::test]
async fn records_that_the_socket_refused_wait_to_be_written() {
    let (mut conn, mut peer) = connected().await;
    send(&mut conn, 8_000_000);
    poll_fn(|cx| Poll::Ready(conn.poll_write(cx).is_ready())).await;
    assert!(conn.unwritten() > 0 && !conn.settle());
    let mut received = 0;
    let mut buffer = BytesMut::new();
    // 8 MB and the head.
    while conn.unwritten() > 0 {
        poll_fn(|cx| {
            let written = conn.poll_write(cx);
            buffer.clear();
            buffer.reserve(64 * 1024);
            let read = peer.poll_read(cx, &mut buffer);
            if let Poll::Ready(read) = read {
                received += read.unwrap();
                return Poll::Ready(());
            }
            written.map(|written| assert!(written.is_ok()))
        })
        .await;
    }
    let head = received - received.min(8_000_000);
    assert!(head < 1000, "{received}");
}

/// Reads a head and sends `answer`.
async fn exchange(peer: &mut Stream, answer: Option<&str>) {
    let mut head = BytesMut::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.reserve(4096);
        poll_fn(|cx| peer.poll_read(cx, &mut head)).await.unwrap();
    }
    if let Some(answer) = answer {
        let mut output = Output::default();
        output.staging().extend_from_slice(answer.as_bytes());
        poll_fn(|cx| output.poll_write(cx, peer)).await.unwrap();
    }
}

fn nobody() -> Stream {
    let (ours, _) = UnixStream::pair().unwrap();
    Stream::Unix(ours)
}

/// Connects both ends of a connection over TLS on TCP.
async fn connected() -> (Connection, Stream) {
    let pair = Pair::self_signed(&["a.test"]);
    let trust = trust(&pair.chain, "a.test", None);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await;
    let mut ours = TlsStream::client(Stream::Tcp(stream.unwrap()), &trust).unwrap();
    let (peer, _) = listener.accept().await.unwrap();
    let profile = profile(&settings(), &files(&[pair]));
    let mut peer = TlsStream::server(Stream::Tcp(peer), profile.into(), Protocols::Http1).unwrap();
    let (mut none, mut nothing) = (BytesMut::new(), BytesMut::new());
    let (one, other) = tokio::join!(
        poll_fn(|cx| ours.poll_handshake(cx, &mut none)),
        poll_fn(|cx| peer.poll_handshake(cx, &mut nothing)),
    );
    one.unwrap();
    other.unwrap();
    (
        conn(Stream::Tls(Box::new(ours))),
        Stream::Tls(Box::new(peer)),
    )
}

const ANSWER: &str = "HTTP/1.1 204 No Content\r\n\r\n";
