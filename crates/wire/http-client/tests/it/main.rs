//! The client before scripted servers.

mod tls;

use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use catamaran_http_client::name::IF_MATCH;
use catamaran_http_client::{BlockingClient, ClientAnswer, ClientRequest, Fields, ServerAddress};
use catamaran_testkit::{Address, Peer, Script};
use http::Method;
use socket2::{Domain, SockAddr, Socket, Type};

fn connect(address: &Address) -> BlockingClient {
    let address = match address {
        Address::Tcp(address) => ServerAddress::Tcp(*address),
        Address::Unix(path) => ServerAddress::Unix(path.clone()),
    };
    BlockingClient::connect(&address, PATIENCE).expect("a scripted server")
}

fn get(
    client: &mut BlockingClient,
    read_max: u64,
) -> Result<(ClientAnswer, Vec<u8>), std::io::Error> {
    let request = ClientRequest::get("/a?b", "h");
    let mut body = Vec::new();
    let answer = client.ask(&request, read_max, |bytes| body.extend_from_slice(bytes))?;
    Ok((answer, body))
}

#[test]
fn a_response_is_read_by_its_framing_and_the_connection_used_again() {
    let chunked =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
    let closed = b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\nnone";
    let head = b"GET /a?b HTTP/1.1\r\nHost: h\r\n\r\n";
    let script = Script::new().expect(head.len()).send(chunked);
    let peer = Peer::start(script.expect(head.len()).send(closed).finish());
    let mut client = connect(peer.address());
    let (answer, body) = get(&mut client, 1000).unwrap();
    assert_eq!((answer.head.status.as_u16(), &body[..]), (200, &b"abc"[..]));
    assert!(answer.is_whole && client.can_reuse());
    let (answer, body) = get(&mut client, 1000).unwrap();
    assert_eq!(
        (answer.head.status.as_u16(), &body[..]),
        (404, &b"none"[..])
    );
    assert!(answer.is_whole && !client.can_reuse());
    assert_eq!(peer.received(0), [head, &head[..]].concat());
}

#[test]
fn a_body_is_announced_and_unix_sockets_are_reached() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let expected = b"POST / HTTP/1.1\r\nHost: h\r\nIf-Match: *\r\nContent-Length: 2\r\n\r\nhi";
    let peer = Peer::start_unix(&path, |_| {
        let script = Script::new().expect(expected.len());
        script.send(b"HTTP/1.1 204 No Content\r\n\r\n").finish()
    });
    let request = ClientRequest {
        method: &Method::POST,
        fields: &Fields::from_iter([(IF_MATCH, b"*")]),
        body: b"hi",
        ..ClientRequest::get("/", "h")
    };
    let answer = connect(peer.address()).ask(&request, 1000, |_| ()).unwrap();
    assert_eq!(answer.head.status.as_u16(), 204);
    assert_eq!(peer.received(0), expected);
}

#[test]
fn a_response_that_trickles_is_not_waited_for_longer_than_is_wanted() {
    let trickle = Script::new().send(b"x").pause(Duration::from_millis(10));
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
    let peer = Peer::start(Script::new().send(head).then(trickle.repeat(10_000)));
    let mut client = connect(peer.address());
    client.limit_asks(Duration::from_millis(200));
    let error = get(&mut client, 1_000_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert!(error.to_string().contains("200ms"), "{error}");
}

#[test]
fn no_more_is_read_than_is_wanted() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
    let response = head.to_owned() + &"x".repeat(100_000);
    let peer = Peer::start(Script::new().send(response.as_bytes()).stall());
    let mut client = connect(peer.address());
    let (answer, body) = get(&mut client, head.len() as u64 + 10).unwrap();
    assert_eq!((answer.body_bytes, body.len()), (10, 10));
    assert!(!answer.is_whole && !client.can_reuse());
}

#[test]
fn what_is_no_whole_response_is_invalid() {
    for said in [
        "",
        "SSH-2.0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
    ] {
        let peer = Peer::start(Script::new().expect(1).send(said.as_bytes()).finish());
        let error = get(&mut connect(peer.address()), 1000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{said:?}: {error}");
    }
}

#[test]
fn a_silent_server_is_waited_for_until_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = ServerAddress::Tcp(listener.local_addr().unwrap());
    let mut client = BlockingClient::connect(&address, PATIENCE).unwrap();
    client.limit_waits(Duration::from_millis(20));
    let error = get(&mut client, 1000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(error.to_string(), "the server was silent for 20ms");
}

#[test]
fn the_shortest_wait_is_not_one_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let _silent = UnixListener::bind(&path).unwrap();
    let address = ServerAddress::Unix(path);
    let mut client = BlockingClient::connect(&address, Duration::from_nanos(1)).unwrap();
    let error = get(&mut client, 1000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(error.to_string(), "the server was silent for 1ms");
}

#[test]
fn a_server_that_does_not_read_is_waited_for_until_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = ServerAddress::Tcp(listener.local_addr().unwrap());
    let mut client = BlockingClient::connect(&address, PATIENCE).unwrap();
    client.limit_waits(Duration::from_millis(20));
    let request = ClientRequest {
        method: &Method::POST,
        // More than the buffers of two sockets take.
        body: &vec![b'x'; 64 << 20],
        ..ClientRequest::get("/", "h")
    };
    let error = client.ask(&request, 1000, |_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[test]
fn a_unix_socket_whose_queue_is_full_is_waited_for_until_the_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    socket.bind(&SockAddr::unix(&path).unwrap()).unwrap();
    socket.listen(0).unwrap();
    let connect = || {
        BlockingClient::connect(
            &ServerAddress::Unix(path.clone()),
            Duration::from_millis(20),
        )
    };
    let _queued = connect().unwrap();
    let error = connect().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[test]
fn a_response_is_read_as_long_as_the_caller_wants() {
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let script = Script::new().expect_until(b"\r\n\r\n").send(head);
    let peer = Peer::start(script.send(b"2\r\nab\r\n").stall());
    let mut client = connect(peer.address());
    client.limit_waits(PATIENCE * 2);
    let mut seen = Vec::new();
    let answer = client.ask_while(&ClientRequest::get("/", "h"), 1000, |head, piece| {
        seen.push((head.status.as_u16(), piece.to_vec()));
        piece.is_empty()
    });
    assert!(!answer.unwrap().is_whole && !client.can_reuse());
    assert_eq!(seen, [(200, b"".to_vec()), (200, b"ab".to_vec())]);
}

#[test]
fn another_thread_ends_a_wait() {
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let script = Script::new().expect_until(b"\r\n\r\n").send(head);
    let peer = Peer::start(script.stall());
    let mut client = connect(peer.address());
    let closer = client.closer().unwrap();
    let answer = client.ask_while(&ClientRequest::get("/", "h"), 1000, |_, _| {
        std::thread::scope(|scope| scope.spawn(|| closer.close()).join().unwrap());
        true
    });
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::InvalidData);
}

const PATIENCE: Duration = Duration::from_secs(20);
