//! Clients that leave before they have their response: it is noticed in every phase, their requests
//! do not begin, and a backend that is at work keeps its permit.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use catamaran_proxy::config::{
    Address, BackendConfig, Config, ListenerConfig, Protocol, Protocols,
};
use catamaran_proxy::{BackendCounts, BoundAddress};
use catamaran_testkit::HttpClient;
use catamaran_testkit::http2::{Http2Client, Said, frame, kind, opening};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::health::{first, reasons, until};
use crate::http2::get;
use crate::{Front, NEVER, REQUEST, config, loopback, start, tcp, unix};

/// A backend whose connections the test plays by hand.
pub(crate) struct Backend(TcpListener);

impl Backend {
    pub(crate) fn start() -> Self {
        Self(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap())
    }

    pub(crate) fn config(&self, protocol: Protocol) -> BackendConfig {
        let address = Address::Tcp {
            host: Ipv4Addr::LOCALHOST.to_string(),
            port: self.0.local_addr().unwrap().port(),
        };
        BackendConfig {
            connections_max: 1,
            queue_timeout: NEVER,
            first_byte_timeout: NEVER,
            ..BackendConfig::new(protocol, address)
        }
    }

    pub(crate) fn accept(&self) -> Exchange {
        let (socket, _) = self.0.accept().unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        Exchange(socket)
    }

    /// Whether nobody has connected who was not accepted.
    fn is_left_alone(&self) -> bool {
        self.0.set_nonblocking(true).unwrap();
        let alone = self.0.accept().is_err();
        self.0.set_nonblocking(false).unwrap();
        alone
    }
}

/// One connection to the backend.
pub(crate) struct Exchange(TcpStream);

impl Exchange {
    /// The socket itself.
    pub(crate) fn socket(&mut self) -> &mut TcpStream {
        &mut self.0
    }

    /// Reads up to the end of a request's head.
    pub(crate) fn receive_head(&mut self) -> Vec<u8> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        head
    }

    /// Reads one AJP packet.
    fn receive_packet(&mut self) -> Vec<u8> {
        let mut packet = vec![0; 4];
        self.0.read_exact(&mut packet).unwrap();
        let length = u16::from_be_bytes([packet[2], packet[3]]);
        packet.resize(4 + usize::from(length), 0);
        self.0.read_exact(&mut packet[4..]).unwrap();
        packet
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Reads to the front's end of the connection, which must come in order.
    fn receive_to_end(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).unwrap();
        rest
    }
}

/// A front with one worker in front of `backend`.
fn front(backend: BackendConfig) -> Front {
    start(single(backend)).unwrap()
}

fn single(backend: BackendConfig) -> Config {
    let mut config = config(&[loopback()], vec![backend]);
    config.server.workers = 1.try_into().unwrap();
    config
}

fn client(running: &Front, bytes: &[u8]) -> HttpClient {
    let mut client = HttpClient::connect(tcp(running, 0)).unwrap();
    client.send(bytes).unwrap();
    client
}

/// Leaves without a FIN; a Unix socket knows no other way than to close.
fn reset(client: HttpClient) {
    client.socket().set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
}

fn until_counts(running: &Front, what: &str, are: impl Fn(BackendCounts) -> bool) {
    until(what, || are(first(running)).then_some(()));
}

fn until_gone(running: &Front, count: u64) {
    until("clients to be gone", || {
        (reasons(running, "client:gone") == count).then_some(())
    });
}

/// The front has half-closed the connection and keeps its permit until the backend closes.
fn abandoned(running: &Front, exchange: &mut Exchange) {
    assert_eq!(exchange.receive_to_end(), b"");
    until_gone(running, 1);
    let counts = first(running);
    assert_eq!((counts.open, counts.in_flight, counts.idle), (1, 1, 0));
    assert_eq!((counts.abandoned, counts.abandoned_total), (1, 1));
}

fn until_free(running: &Front) {
    until_counts(running, "the permit", |it| {
        (it.open, it.in_flight, it.abandoned) == (0, 0, 0)
    });
    let counts = first(running);
    assert_eq!((counts.abandoned_total, counts.share), (1, 100));
    // Nothing was held against the backend.
    assert_eq!((counts.probes_answered, counts.probes_failed), (0, 0));
    assert_eq!(running.counters().retries, 0);
}

#[test]
fn while_its_response_is_awaited() {
    let requests: [&[u8]; 2] = [
        REQUEST,
        b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n\r\n\r\n",
    ];
    for request in requests {
        let backend = Backend::start();
        let running = front(backend.config(Protocol::Http));
        let client = client(&running, request);
        let mut exchange = backend.accept();
        exchange.receive_head();
        if request.starts_with(b"PUT") {
            exchange.receive_head();
        }
        drop(client);
        abandoned(&running, &mut exchange);
        drop(exchange);
        until_free(&running);
        assert!(backend.is_left_alone(), "it was sent again");
    }
}

#[test]
fn while_the_backend_wants_no_body() {
    let backend = Backend::start();
    let running = front(backend.config(Protocol::Ajp));
    let mut request = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n".to_vec();
    request.extend([b'x'; 30_000]);
    let client = client(&running, &request);
    let mut exchange = backend.accept();
    exchange.receive_packet();
    exchange.receive_packet();
    drop(client);
    abandoned(&running, &mut exchange);
    drop(exchange);
    until_free(&running);
}

#[test]
fn while_the_backend_does_not_read_the_body() {
    let backend = Backend::start();
    let running = front(backend.config(Protocol::Http));
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n";
    let client = client(&running, head);
    let mut exchange = backend.accept();
    exchange.receive_head();
    // All buffers on the way are full.
    let socket = client.socket();
    socket.set_nonblocking(true).unwrap();
    let piece = vec![b'x'; 1 << 20];
    until("no more to be taken", || {
        let mut sent = 0;
        while (&*socket).write(&piece).is_ok() {
            sent += 1;
        }
        (sent == 0).then_some(())
    });
    // A FIN would have to wait behind those bytes.
    reset(client);
    until_gone(&running, 1);
    until_counts(&running, "the exchange to be given up", |it| {
        it.abandoned == 1
    });
    drop(exchange);
    until_free(&running);
}

#[test]
fn behind_more_requests_than_are_taken_in() {
    let directory = tempfile::tempdir().unwrap();
    for at in [loopback(), unix(directory.path())] {
        let backend = Backend::start();
        let mut config = single(backend.config(Protocol::Http));
        config.listeners = vec![ListenerConfig::new(at)];
        let running = start(config).unwrap();
        let mut client = match &running.addresses()[0] {
            BoundAddress::Tcp(address) => HttpClient::connect(*address).unwrap(),
            BoundAddress::Unix(path) => HttpClient::connect(path.clone()).unwrap(),
        };
        client.send(REQUEST).unwrap();
        let mut exchange = backend.accept();
        exchange.receive_head();
        client.send(&REQUEST.repeat(6000)).unwrap();
        // Over TCP a FIN might have to wait behind those bytes.
        reset(client);
        abandoned(&running, &mut exchange);
    }
}

#[test]
fn further_requests_are_no_leave() {
    let backend = Backend::start();
    let running = front(backend.config(Protocol::Http));
    let count = 4000;
    let mut client = client(&running, &REQUEST.repeat(count));
    let mut exchange = backend.accept();
    for _ in 0..count {
        exchange.receive_head();
        exchange.send(ANSWER);
        assert_eq!(client.receive().unwrap().text(), "ok");
    }
    assert_eq!(reasons(&running, "client:gone"), 0);
}

#[test]
fn while_it_waits_in_the_queue() {
    let backend = Backend::start();
    let running = front(backend.config(Protocol::Http));
    let mut served = client(&running, REQUEST);
    let mut exchange = backend.accept();
    exchange.receive_head();
    let body = b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody";
    let waiting: Vec<HttpClient> = [REQUEST, body, REQUEST, body, REQUEST]
        .iter()
        .map(|request| client(&running, request))
        .collect();
    until_counts(&running, "the queue", |it| it.waiting == 5);
    drop(waiting);
    until_gone(&running, 5);
    until_counts(&running, "an empty queue", |it| it.waiting == 0);
    assert_eq!(
        (first(&running).in_flight, first(&running).abandoned),
        (1, 0)
    );
    exchange.send(ANSWER);
    assert_eq!(served.receive().unwrap().text(), "ok");
    // The next request on that connection is the next client's.
    let mut next = client(&running, b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(exchange.receive_head().starts_with(b"GET /next "));
    exchange.send(ANSWER);
    assert_eq!(next.receive().unwrap().text(), "ok");
    assert_eq!(
        (first(&running).dialled, running.counters().retries),
        (1, 0)
    );
}

#[test]
fn while_the_backend_is_dialled() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("backend.sock");
    let name = SockAddr::unix(&path).unwrap();
    let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    listener.bind(&name).unwrap();
    listener.listen(0).unwrap();
    // Its backlog is full, so that dialling takes for ever.
    let filler = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    filler.connect(&name).unwrap();
    let backend = BackendConfig {
        connect_timeout: NEVER,
        ..BackendConfig::new(Protocol::Http, Address::Unix(path))
    };
    let running = front(backend);
    let client = client(&running, REQUEST);
    until_counts(&running, "the dial", |it| it.open == 1);
    drop(client);
    until_gone(&running, 1);
    until_counts(&running, "the permit", |it| {
        (it.open, it.in_flight) == (0, 0)
    });
    assert_eq!(first(&running).abandoned_total, 0);
}

/// How the client of an event stream leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leave {
    Http1,
    Http2Connection,
    Http2Stream,
}

/// Serves an event stream of which one event arrives, and has its client leave.
fn leave_event_stream(
    running: &Front,
    backend: &Backend,
    protocol: Protocol,
    leave: Leave,
) -> Exchange {
    let begin = || {
        let mut exchange = backend.accept();
        if protocol == Protocol::Ajp {
            exchange.receive_packet();
            // SEND_HEADERS 200 without a length, SEND_BODY_CHUNK "hi".
            exchange.send(b"AB\0\x0a\x04\0\xc8\0\x02OK\0\0\0AB\0\x06\x03\0\x02hi\0");
        } else {
            exchange.receive_head();
            exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n");
        }
        exchange
    };
    if leave == Leave::Http1 {
        let mut client = client(running, REQUEST);
        let exchange = begin();
        client.receive_head().unwrap();
        return exchange;
    }
    let mut client = Http2Client::connect(tcp(running, 0)).unwrap();
    client.send(&[opening(65_535), get(1)].concat(), usize::MAX);
    let exchange = begin();
    assert_eq!(client.next_said().unwrap(), Said::Status(1, 200));
    assert_eq!(client.read_body(2).unwrap(), b"hi");
    if leave == Leave::Http2Stream {
        client.send(&frame(kind::RST_STREAM, 0, 1, &8_u32.to_be_bytes()), 1);
        client.send(&frame(kind::PING, 0, 0, &[0; 8]), 1);
        assert_eq!(client.next_said().unwrap(), Said::Pong);
    }
    exchange
}

/// A backend that ignores a half-close, and has nothing to send, would keep its permit.
#[test]
fn while_the_response_is_under_way() {
    for protocol in [Protocol::Http, Protocol::Ajp] {
        for leave in [Leave::Http1, Leave::Http2Connection, Leave::Http2Stream] {
            let backend = Backend::start();
            let mut config = single(backend.config(protocol));
            config.listeners[0].protocols = Protocols::Both;
            let running = start(config).unwrap();
            // Each takes the only permit.
            for _ in 0..3 {
                let mut exchange = leave_event_stream(&running, &backend, protocol, leave);
                let told = exchange.0.read(&mut [0]).unwrap_err();
                assert_eq!(
                    told.kind(),
                    ErrorKind::ConnectionReset,
                    "{protocol:?} {leave:?}"
                );
                until_counts(&running, "the permit", |it| {
                    (it.open, it.in_flight) == (0, 0)
                });
            }
            let counts = first(&running);
            assert_eq!((counts.abandoned_total, counts.share), (0, 100));
            let reason = match leave {
                Leave::Http2Stream => "client:client-reset",
                Leave::Http1 | Leave::Http2Connection => "client:gone",
            };
            until("the reason", || {
                (reasons(&running, reason) == 3).then_some(())
            });
        }
    }
}

#[test]
fn an_unwanted_response_is_read_as_long_as_it_is_small() {
    for (length, rest) in [(2, &b"ok"[..]), (10_000_000, &[b'x'; 1_000_000])] {
        let backend = Backend::start();
        let running = front(backend.config(Protocol::Http));
        let client = client(&running, REQUEST);
        let mut exchange = backend.accept();
        exchange.receive_head();
        drop(client);
        abandoned(&running, &mut exchange);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        exchange.send(head.as_bytes());
        if rest.len() == 2 {
            exchange.send(rest);
            // It is still the backend's turn to close.
            assert_eq!(first(&running).abandoned, 1);
            drop(exchange);
        } else {
            exchange.0.write_all(rest).ok();
        }
        until_free(&running);
    }
}

#[test]
fn a_permit_is_kept_from_others_until_the_backend_closes() {
    let backend = Backend::start();
    let running = front(backend.config(Protocol::Http));
    let left = client(&running, REQUEST);
    let mut exchange = backend.accept();
    exchange.receive_head();
    drop(left);
    abandoned(&running, &mut exchange);
    let mut next = client(&running, REQUEST);
    until_counts(&running, "the queue", |it| it.waiting == 1);
    assert!(backend.is_left_alone());
    drop(exchange);
    let mut exchange = backend.accept();
    exchange.receive_head();
    exchange.send(ANSWER);
    assert_eq!(next.receive().unwrap().text(), "ok");
    assert_eq!(first(&running).dialled, 2, "the first was not used again");
}

#[test]
fn a_permit_is_kept_no_longer_than_a_first_byte_may_take() {
    let backend = Backend::start();
    let running = front(BackendConfig {
        // The client leaves long before.
        first_byte_timeout: Duration::from_secs(5),
        ..backend.config(Protocol::Http)
    });
    let client = client(&running, REQUEST);
    let mut exchange = backend.accept();
    exchange.receive_head();
    drop(client);
    until_gone(&running, 1);
    until_free(&running);
    until("a reset", || exchange.0.write(ANSWER).err());
}

#[test]
fn a_drain_does_not_wait_for_what_nobody_wants() {
    let backend = Backend::start();
    let mut config = single(backend.config(Protocol::Http));
    config.server.drain_timeout = NEVER;
    let running = start(config).unwrap();
    let client = client(&running, REQUEST);
    let mut exchange = backend.accept();
    exchange.receive_head();
    drop(client);
    abandoned(&running, &mut exchange);
    drop(running);
    until("a reset", || exchange.0.write(ANSWER).err());
}

#[test]
fn a_client_that_was_given_all_may_leave() {
    let backend = Backend::start();
    let running = front(backend.config(Protocol::Ajp));
    let mut client = client(&running, REQUEST);
    let mut exchange = backend.accept();
    exchange.receive_packet();
    // SEND_HEADERS 200 with Content-Length 2 and SEND_BODY_CHUNK "ok".
    exchange.send(b"AB\0\x10\x04\0\xc8\0\x02OK\0\0\x01\xa0\x03\0\x012\0");
    exchange.send(b"AB\0\x06\x03\0\x02ok\0");
    assert_eq!(client.receive().unwrap().text(), "ok");
    drop(client);
    // Another of its kind shows that the front has had the time to see the first one leave.
    let bystander = self::client(&running, REQUEST);
    until_counts(&running, "the queue", |it| it.waiting == 1);
    drop(bystander);
    until_gone(&running, 1);
    // END_RESPONSE (reuse).
    exchange.send(b"AB\0\x02\x05\x01");
    until_counts(&running, "the connection in its pool", |it| it.idle == 1);
    assert_eq!(first(&running).abandoned_total, 0);
}

#[test]
fn a_half_close_is_a_leave_unless_it_is_to_be_served() {
    for serve in [false, true] {
        let backend = Backend::start();
        let mut config = single(backend.config(Protocol::Http));
        config.listeners[0].serve_half_closed = serve;
        let running = start(config).unwrap();
        let mut client = client(&running, REQUEST);
        let mut exchange = backend.accept();
        exchange.receive_head();
        client.finish_sending().unwrap();
        if !serve {
            assert_eq!(client.receive_to_end().unwrap(), b"");
            abandoned(&running, &mut exchange);
            continue;
        }
        exchange.send(ANSWER);
        assert_eq!(client.receive().unwrap().text(), "ok");
        assert_eq!(client.receive_to_end().unwrap(), b"");
        assert_eq!(reasons(&running, "client:gone"), 0);
    }
}

#[test]
fn a_reset_is_a_leave_even_after_a_half_close() {
    let backend = Backend::start();
    let mut config = single(backend.config(Protocol::Http));
    config.listeners[0].serve_half_closed = true;
    let running = start(config).unwrap();
    let client = client(&running, REQUEST);
    let mut exchange = backend.accept();
    exchange.receive_head();
    client.socket().shutdown(Shutdown::Write).unwrap();
    reset(client);
    abandoned(&running, &mut exchange);
}

pub(crate) const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
