//! Clients of HTTP/2 whose responses the front has at the same time, and those that hold or cancel them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use catamaran_front::config::{BackendConfig, Config, ErrorPages, Page, Protocols};
use catamaran_front::{Running, start};
use catamaran_testkit::http2::{
    END_HEADERS, END_STREAM, Http2Client, Said, block, frame, kind, opening,
};
use catamaran_testkit::{Peer, Script};

use crate::health::{first, until};
use crate::{config, loopback, stop, tcp, to, wait_for_reason};

pub(crate) fn get(stream: u32) -> Vec<u8> {
    request(stream, b"GET", b"/")
}

/// A request that the front refuses with 400; of HEAD, without a body.
fn refused(stream: u32) -> Vec<u8> {
    request(stream, b"HEAD", b"/%zz")
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
    stop(running);
}

/// A front for HTTP/2 with one worker.
fn front(backend: BackendConfig, change: impl FnOnce(&mut Config)) -> Running {
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
        let (mut round, mut reset) = (0, 0);
        until("all to be reset", || {
            client.send(&noise(round), usize::MAX);
            round += 1;
            for said in client.read_once().unwrap() {
                match said {
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
        stop(running);
    }
}

const INTERNAL_ERROR: u32 = 2;
