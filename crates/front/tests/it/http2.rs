//! Clients of HTTP/2 whose responses the front has at the same time.

use std::sync::Arc;

use bytes::Bytes;
use catamaran_front::config::{ErrorPages, Page, Protocols};
use catamaran_front::start;
use catamaran_testkit::http2::{
    END_HEADERS, END_STREAM, Http2Client, Said, block, frame, kind, opening,
};

use crate::{config, loopback, stop, tcp};

fn get(stream: u32) -> Vec<u8> {
    let fields: [(&[u8], &[u8]); 4] = [
        (b":method", b"GET"),
        (b":scheme", b"http"),
        (b":authority", b"a"),
        (b":path", b"/"),
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
