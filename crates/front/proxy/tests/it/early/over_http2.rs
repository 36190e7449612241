//! Uploads over HTTP/2 that are answered before they are complete.
//!
//! The client gets the whole response, then END_STREAM, and only then RST_STREAM with NO_ERROR, by which it
//! is asked to send no more (RFC 9113, section 8.1). A client that drops a response because of this reset
//! does wrong; some versions of curl do.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use catamaran_proxy::config::{BackendConfig, Config, Protocol, Protocols, RouteRules};
use catamaran_testkit::http2::{END_HEADERS, Http2Client, Said, block, frame, kind, opening};
use catamaran_testkit::{Peer, Script, ajp};

use crate::{Front, config, loopback, start, tcp, to};

fn front(backend: BackendConfig, change: impl FnOnce(&mut Config)) -> Front {
    let mut config = config(&[loopback()], vec![backend]);
    config.listeners[0].protocols = Protocols::Both;
    change(&mut config);
    start(config).unwrap()
}

/// The head of an upload that is longer than what is sent of it, and the beginning of its body.
fn upload(stream: u32, announces: bool) -> Vec<u8> {
    let mut fields: Vec<(&[u8], &[u8])> = vec![
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":authority", b"a"),
        (b":path", b"/"),
    ];
    if announces {
        fields.push((b"content-length", b"9000000"));
    }
    let head = frame(kind::HEADERS, END_HEADERS, stream, &block(&fields));
    let data = frame(kind::DATA, 0, stream, &[b'x'; 3000]);
    [head, data.clone(), data].concat()
}

/// Sixteen clients upload without a pause, each on connections of its own. Beside them one uploads
/// [`ROUNDS`] times. All of them read each answer frame by frame.
fn check(name: &str, running: &Front, status: u16, length: Option<usize>) {
    let expected = Expected {
        name,
        status,
        length,
    };
    let address = tcp(running, 0);
    let (over, begun) = (AtomicBool::new(false), Barrier::new(LOAD + 1));
    thread::scope(|scope| {
        for _ in 0..LOAD {
            scope.spawn(|| {
                begun.wait();
                while !over.load(Ordering::Relaxed) {
                    expected.upload_on_one_connection(address);
                }
            });
        }
        let _over = Over(&over);
        begun.wait();
        for _ in 0..ROUNDS / PER_CONNECTION {
            expected.upload_on_one_connection(address);
        }
    });
}

/// Ends the load, also when an assertion fails.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What each upload is answered.
struct Expected<'n> {
    name: &'n str,
    status: u16,
    /// `None` if there is some body.
    length: Option<usize>,
}

impl Expected<'_> {
    fn upload_on_one_connection(&self, address: SocketAddr) {
        let mut client = Http2Client::connect(address).unwrap();
        client.send(&opening(1 << 20), usize::MAX);
        // All of the connection's answers fit this window.
        let window = frame(kind::WINDOW_UPDATE, 0, 0, &(1_u32 << 24).to_be_bytes());
        client.send(&window, usize::MAX);
        for turn in 0..PER_CONNECTION {
            let (stream, before) = (2 * turn + 1, client.body());
            client.send(&upload(stream, turn % 2 == 0), usize::MAX);
            let words = format!("{}, stream {stream}", self.name);
            let mut next = || client.next_said().unwrap();
            assert_eq!(next(), Said::Status(stream, self.status), "{words}");
            assert_eq!(next(), Said::End(stream), "{words}");
            // No frame behind END_STREAM was looked at yet.
            let body = client.body() - before;
            match self.length {
                Some(length) => assert_eq!(body, length, "{words}"),
                None => assert!(body > 0, "{words}"),
            }
            let reset = client.next_said().unwrap();
            assert_eq!(reset, Said::Reset(stream, NO_ERROR), "{words}");
        }
    }
}

#[test]
fn an_answer_over_http1_is_whole_before_its_stream_is_reset() {
    let body = "y".repeat(LENGTH);
    let answer = format!("HTTP/1.1 413 Too Large\r\nContent-Length: {LENGTH}\r\n\r\n{body}");
    let script = Script::new().expect_until(b"\r\n\r\n");
    let peer = Peer::start(script.send(answer.as_bytes()).stall());
    let running = front(to(&peer), |_| ());
    check("HTTP/1.1", &running, 413, Some(LENGTH));
}

#[test]
fn an_answer_over_ajp_is_whole_before_its_stream_is_reset() {
    let piece = ajp::chunk(&[b'y'; 5000]);
    let body = piece.repeat(LENGTH / 5000);
    let head = ajp::send_headers(413, &[ajp::field("Content-Length", LENGTH.to_string())]);
    let answer = [head, body, ajp::end_response(0)].concat();
    let peer = Peer::start(Script::new().expect_packet().send(&answer).stall());
    let backend = BackendConfig {
        protocol: Protocol::Ajp,
        ..to(&peer)
    };
    let running = front(backend, |_| ());
    check("AJP13", &running, 413, Some(LENGTH));
}

#[test]
fn an_answer_without_a_length_is_whole_before_its_stream_is_reset() {
    let body = "y".repeat(LENGTH);
    let answer = format!(
        "HTTP/1.1 401 Unauthorized\r\nTransfer-Encoding: chunked\r\n\r\n{LENGTH:x}\r\n{body}\r\n0\r\n\r\n"
    );
    let script = Script::new().expect_until(b"\r\n\r\n");
    let peer = Peer::start(script.send(answer.as_bytes()).stall());
    let running = front(to(&peer), |_| ());
    check("chunked", &running, 401, Some(LENGTH));
}

#[test]
fn a_page_of_the_front_is_whole_before_its_stream_is_reset() {
    let peer = Peer::start(Script::new().stall());
    let running = front(to(&peer), |config| {
        config.routes[0].rules = Some(Arc::new(RouteRules {
            body_max: Some(4000),
            ..RouteRules::default()
        }));
    });
    check("page", &running, 413, None);
}

const NO_ERROR: u32 = 0;

/// How often one client gets each of the four kinds of answer: a thousand in all.
const ROUNDS: u32 = 250;

/// Clients beside it.
const LOAD: usize = 16;

/// Uploads, one after the other.
const PER_CONNECTION: u32 = 10;

/// Bytes of an answer: several frames.
const LENGTH: usize = 50_000;
