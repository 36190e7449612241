//! Large files, which the kernel sends itself where it can: whole, in parts, one after the other, and to clients
//! that read slowly.

use std::fs::{self, File};
use std::io::Write;
use std::time::UNIX_EPOCH;

use catamaran_proxy::config::FilesConfig;
use catamaran_testkit::HttpClient;

use super::{Client, Tree, address, front, pattern};

fn tree() -> Tree {
    let tree = Tree::new();
    fs::write(tree.root().join("large"), pattern(LEN)).unwrap();
    tree
}

#[test]
fn whole_files_and_parts_arrive_as_they_are() {
    let tree = tree();
    let running = front(FilesConfig::new(tree.root()), |_| {});
    let address = address(&running);
    let bytes = pattern(LEN);
    for client in Client::BOTH {
        let whole = client.get(address, "/large");
        assert!(whole.status == 200 && whole.body == bytes, "{client:?}");
        for (from, to) in [
            (0, 65_536),
            (1, 300_000),
            (262_143, 1 << 20),
            (LEN - 70_000, LEN - 1),
        ] {
            let range = [("range", format!("bytes={from}-{to}"))];
            let part = client.ask(address, "GET", "/large", &range);
            assert_eq!(part.status, 206);
            assert!(part.body == bytes[from..=to], "{client:?} {from} to {to}");
        }
        let range = [("range", "bytes=0-99999,1000000-1999999".to_owned())];
        let parts = client.ask(address, "GET", "/large", &range);
        assert_eq!(parts.status, 206);
        let (_, boundary) = parts
            .header("content-type")
            .split_once("boundary=")
            .unwrap();
        let mut expected = Vec::new();
        for (from, to) in [(0, 99_999), (1_000_000, 1_999_999)] {
            write!(
                expected,
                "\r\n--{boundary}\r\nContent-Type: application/octet-stream\r\n\
                 Content-Range: bytes {from}-{to}/{LEN}\r\n\r\n"
            )
            .unwrap();
            expected.extend_from_slice(&bytes[from..=to]);
        }
        write!(expected, "\r\n--{boundary}--\r\n").unwrap();
        assert!(parts.body == expected, "{client:?}");
    }
}

/// What follows a file on a connection is not sent before the file's end.
#[test]
fn responses_follow_each_other_on_one_connection() {
    let tree = tree();
    let running = front(FilesConfig::new(tree.root()), |_| {});
    let mut client = HttpClient::connect(address(&running)).unwrap();
    let requests = "GET /large HTTP/1.1\r\nHost: a\r\n\r\n\
                    GET /page.html HTTP/1.1\r\nHost: a\r\n\r\n\
                    GET /large HTTP/1.1\r\nHost: a\r\n\r\n\
                    GET /none HTTP/1.1\r\nHost: a\r\n\r\n";
    client.send(requests.as_bytes()).unwrap();
    for (status, len) in [
        (200, Some(LEN)),
        (200, Some(1456)),
        (200, Some(LEN)),
        (404, None),
    ] {
        let got = client.receive().unwrap();
        assert_eq!(got.status, status);
        assert!(len.is_none_or(|len| got.body == pattern(len)), "{len:?}");
    }
}

/// While one client reads nothing of its file, the same worker serves others.
#[test]
fn a_client_that_reads_nothing_holds_nobody_up() {
    let tree = tree();
    let running = front(FilesConfig::new(tree.root()), |config| {
        config.server.workers = std::num::NonZeroUsize::MIN;
        // However long the others take.
        config.listeners[0].write_timeout = crate::NEVER;
        config.listeners[0].write_rate_min = 0;
    });
    let address = address(&running);
    let mut slow: Vec<_> = (0..20)
        .map(|_| {
            let mut client = HttpClient::connect(address).unwrap();
            client
                .send(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
                .unwrap();
            client
        })
        .collect();
    for _ in 0..100 {
        assert!(Client::Http1.get(address, "/page.html").body == pattern(1456));
    }
    for client in &mut slow {
        assert!(client.receive().unwrap().body == pattern(LEN));
    }
}

/// To make a digest of it takes about an hour. Until then nobody would get a byte, and the front could not end.
#[test]
fn a_file_that_is_too_large_for_a_digest_is_sent_without_a_tag() {
    let tree = Tree::new();
    let file = File::create(tree.root().join("huge")).unwrap();
    file.set_len(1 << 40).unwrap();
    file.set_modified(UNIX_EPOCH).unwrap();
    let running = front(FilesConfig::new(tree.root()), |_| {});
    let range = [("range", "bytes=-10".to_owned())];
    let part = Client::Http1.ask(address(&running), "GET", "/huge", &range);
    assert_eq!((part.status, part.header("etag")), (206, ""));
    assert_eq!(part.body, [0; 10]);
}

/// Many windows, and a part of one.
const LEN: usize = (5 << 20) + 12_345;
