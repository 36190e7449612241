//! Responses that the front compresses: of an application and of files, over HTTP/1.1 and HTTP/2.

use std::fs;
use std::io::{ErrorKind, Read};
use std::sync::Arc;

use catamaran_proxy::config::{
    Coding, CompressConfig, FilesConfig, Protocols, RouteConfig, RouteRules, RouteTarget,
};
use catamaran_testkit::{Deadline, HttpClient, Peer, Script};
use flate2::read::MultiGzDecoder;
use zstd_safe::DCtx;

use crate::files::{Client, Got, Tree};
use crate::{Front, config, loopback, start, tcp, to, wait_for_reason};

/// A page of 50,000 bytes.
fn page() -> Vec<u8> {
    let rows = (0..).flat_map(|at| format!("<tr><td>{at}</td></tr>\n").into_bytes());
    rows.take(50_000).collect()
}

/// A response of that page with these lines besides.
fn response(lines: &str) -> Vec<u8> {
    let page = page();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n{lines}\r\n",
        page.len()
    );
    [head.as_bytes(), &page].concat()
}

fn compressing(codings: Vec<Coding>) -> RouteRules {
    RouteRules {
        compress: Some(Arc::new(CompressConfig::new(codings))),
        ..RouteRules::default()
    }
}

/// A front that compresses what a backend sends, which plays this to each connection.
fn front(peer: &Peer) -> Front {
    front_with(peer, 64 << 20)
}

fn front_with(peer: &Peer, memory: u64) -> Front {
    front_of(peer, memory, vec![Coding::Zstd, Coding::Gzip])
}

fn front_of(peer: &Peer, memory: u64, codings: Vec<Coding>) -> Front {
    let mut config = config(&[loopback()], vec![to(peer)]);
    config.listeners[0].protocols = Protocols::Both;
    config.server.compress_memory = memory;
    config.routes[0].rules = Some(Arc::new(compressing(codings)));
    start(config).unwrap()
}

/// A backend that answers one request of each connection so.
fn answering(bytes: Vec<u8>) -> Peer {
    Peer::start_with(move |_| Script::new().expect_until(b"\r\n\r\n").send(&bytes))
}

pub(crate) fn decode(got: &Got) -> Vec<u8> {
    match got.header("content-encoding") {
        "gzip" => {
            let mut plain = Vec::new();
            MultiGzDecoder::new(&got.body[..])
                .read_to_end(&mut plain)
                .unwrap();
            plain
        }
        "zstd" => {
            let mut plain = Vec::with_capacity(1 << 20);
            let decoded = DCtx::create().decompress(&mut plain, &got.body);
            decoded.map_err(zstd_safe::get_error_name).unwrap();
            plain
        }
        "br" => {
            let mut plain = Vec::new();
            brotli::BrotliDecompress(&mut &got.body[..], &mut plain).unwrap();
            plain
        }
        "" => got.body.clone(),
        other => panic!("{other}"),
    }
}

pub(crate) fn accept(codings: &str) -> [(&'static str, String); 1] {
    [("accept-encoding", codings.to_owned())]
}

#[test]
fn an_applications_page_is_compressed_for_who_takes_it() {
    let lines = "ETag: \"v1\"\r\nAccept-Ranges: bytes\r\nVary: Cookie\r\n";
    let peer = answering(response(lines));
    let running = front(&peer);
    let address = tcp(&running, 0);
    for client in Client::BOTH {
        for (codings, expected) in [
            ("gzip", "gzip"),
            ("gzip, zstd", "zstd"),
            ("gzip;q=1, zstd;q=0.9", "gzip"),
            ("br", ""),
        ] {
            let got = client.ask(address, "GET", "/", &accept(codings));
            assert_eq!(
                got.header("content-encoding"),
                expected,
                "{client:?} {codings}"
            );
            assert!(decode(&got) == page(), "{client:?} {codings}");
            assert_eq!(got.header("vary"), "Cookie, Accept-Encoding");
            let is_coded = !expected.is_empty();
            assert_eq!(
                got.header("etag"),
                if is_coded { "W/\"v1\"" } else { "\"v1\"" }
            );
            assert_eq!(got.headers.contains_key("accept-ranges"), !is_coded);
            assert_eq!(got.headers.contains_key("content-length"), !is_coded);
            assert!(!is_coded || got.body.len() * 3 < page().len(), "{codings}");
        }
    }
    // A client can have its response before it is counted.
    let all = 6 * page().len() as u64;
    let counted = || {
        let counters = running.counters();
        // br, gzip, zstd
        let is_counted = counters.compressed == [0, 4, 2] && counters.compressed_bytes[0] == all;
        is_counted.then_some(counters.compressed_bytes)
    };
    let [before, after] = Deadline::default()
        .poll("all are counted", counted)
        .unwrap();
    assert!(after > 0 && after * 3 < before, "{after} of {before}");
}

/// Brotli is for bodies that are kept: one that streams is in the next coding, or in none.
#[test]
fn what_streams_is_never_in_brotli() {
    let peer = answering(response("ETag: \"v1\"\r\n"));
    let codings = vec![Coding::Brotli, Coding::Zstd, Coding::Gzip];
    let running = front_of(&peer, 64 << 20, codings);
    let address = tcp(&running, 0);
    for client in [Client::BOTH, Client::BOTH].concat() {
        for (codings, expected) in [("br", ""), ("br, gzip", "gzip"), ("br, gzip, zstd", "zstd")] {
            let got = client.ask(address, "GET", "/", &accept(codings));
            assert_eq!(
                got.header("content-encoding"),
                expected,
                "{client:?} {codings}"
            );
            assert_eq!(got.header("vary"), "Accept-Encoding");
            let etag = if expected.is_empty() {
                "\"v1\""
            } else {
                "W/\"v1\""
            };
            assert_eq!(got.header("etag"), etag);
            assert!(decode(&got) == page(), "{client:?} {codings}");
        }
    }
    let counted = || (running.counters().compressed == [0, 4, 4]).then_some(());
    Deadline::default()
        .poll("all are counted", counted)
        .unwrap();
}

#[test]
fn a_head_is_described_as_the_page_would_be() {
    let head = response("ETag: \"v1\"\r\n");
    let head = head[..head.len() - page().len()].to_vec();
    let peer = answering(head);
    let running = front(&peer);
    for client in Client::BOTH {
        let got = client.ask(tcp(&running, 0), "HEAD", "/", &accept("gzip"));
        assert_eq!((got.status, got.header("content-encoding")), (200, "gzip"));
        assert_eq!(got.header("etag"), "W/\"v1\"");
        assert!(got.body.is_empty() && !got.headers.contains_key("content-length"));
    }
    assert_eq!(running.counters().compressed, [0; 3]);
}

#[test]
fn what_is_not_to_be_compressed_comes_as_it_was_sent() {
    for lines in [
        "Content-Encoding: br\r\n",
        "Cache-Control: no-transform\r\n",
        "Content-Digest: sha-256=:AA==:\r\n",
    ] {
        let peer = answering(response(lines));
        let running = front(&peer);
        for client in Client::BOTH {
            let got = client.ask(tcp(&running, 0), "GET", "/", &accept("gzip"));
            assert!(got.body == page(), "{client:?} {lines}");
            assert_eq!(got.header("content-length"), "50000");
        }
    }
}

/// What the application has written so far reaches the client, though more is to come.
#[test]
fn events_of_a_stream_arrive_one_by_one() {
    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                          Transfer-Encoding: chunked\r\n\r\n";
    let chunk = b"9\r\ndata: 1\n\n\r\n";
    let peer = Peer::start(
        Script::new()
            .expect_until(b"\r\n\r\n")
            .send(HEAD)
            .send(chunk)
            .stall(),
    );
    let running = front(&peer);
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    client
        .send(b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
        .unwrap();
    let mut sink = Partial::default();
    let failed = client.receive_into(&mut sink);
    assert!(failed.is_err(), "the sink takes no more than it needs");
    assert_eq!(sink.plain(), b"data: 1\n\n");
}

/// Takes bytes until an event can be decoded of them.
#[derive(Default)]
struct Partial(Vec<u8>);

impl Partial {
    fn plain(&self) -> Vec<u8> {
        let mut plain = Vec::new();
        MultiGzDecoder::new(&self.0[..])
            .read_to_end(&mut plain)
            .ok();
        plain
    }
}

impl std::io::Write for Partial {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.plain().ends_with(b"\n\n") {
            return Err(ErrorKind::WriteZero.into());
        }
        self.0.extend_from_slice(bytes);
        if self.plain().ends_with(b"\n\n") {
            return Err(ErrorKind::WriteZero.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The announced length is not passed on, and still watched: half a page does not look like a whole one.
#[test]
fn a_page_that_breaks_off_is_cut_visibly() {
    let mut bytes = response("");
    bytes.truncate(bytes.len() - 20_000);
    let peer = Peer::start_with(move |_| {
        let script = Script::new().expect_until(b"\r\n\r\n");
        script.send(&bytes).finish()
    });
    let running = front(&peer);
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    client
        .send(b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: zstd\r\n\r\n")
        .unwrap();
    assert!(client.receive().is_err());
}

#[test]
fn beyond_the_memory_pages_are_sent_as_they_are() {
    let peer = answering(response(""));
    let running = front_with(&peer, Coding::Gzip.memory());
    let address = tcp(&running, 0);
    let got = Client::Http1.ask(address, "GET", "/", &accept("zstd"));
    assert!(got.body == page(), "zstd needs more than there is");
    assert_eq!(got.header("vary"), "Accept-Encoding");
    wait_for_reason(&running, "front:compress-memory");
    for _ in 0..3 {
        let got = Client::Http1.ask(address, "GET", "/", &accept("gzip"));
        assert_eq!(
            got.header("content-encoding"),
            "gzip",
            "it is freed each time"
        );
    }
}

#[test]
fn files_are_compressed_unless_they_are_beforehand() {
    let tree = Tree::new();
    fs::write(tree.root().join("long.txt"), page()).unwrap();
    fs::write(tree.root().join("both.txt"), page()).unwrap();
    fs::write(tree.root().join("both.txt.gz"), b"beforehand").unwrap();
    let running = crate::files::front(FilesConfig::new(tree.root()), |config| {
        config.routes = vec![RouteConfig {
            rules: Some(Arc::new(RouteRules {
                files: Some(Arc::new(FilesConfig::new(tree.root()))),
                ..compressing(vec![Coding::Gzip])
            })),
            ..RouteConfig::new("/", RouteTarget::Files)
        }];
    });
    let address = tcp(&running, 0);
    for client in Client::BOTH {
        let plain = client.get(address, "/long.txt");
        assert_eq!(plain.header("vary"), "Accept-Encoding");
        assert!(plain.body == page());
        let coded = client.ask(address, "GET", "/long.txt", &accept("gzip"));
        assert!(decode(&coded) == page() && coded.body.len() < page().len());
        let etag = coded.header("etag").to_owned();
        assert_eq!(etag, format!("W/{}", plain.header("etag")));
        let mut fields = accept("gzip").to_vec();
        fields.push(("if-none-match", etag));
        let same = client.ask(address, "GET", "/long.txt", &fields);
        assert_eq!((same.status, same.header("vary")), (304, "Accept-Encoding"));
        let mut fields = accept("gzip").to_vec();
        fields.push(("range", "bytes=0-9".to_owned()));
        let part = client.ask(address, "GET", "/long.txt", &fields);
        assert_eq!((part.status, part.header("content-encoding")), (206, ""));
        assert_eq!(part.body, &page()[..10]);
        let beforehand = client.ask(address, "GET", "/both.txt", &accept("gzip"));
        assert_eq!(beforehand.body, b"beforehand");
        let missing = client.ask(address, "GET", "/none", &accept("gzip"));
        assert_eq!(
            (missing.status, missing.header("content-encoding")),
            (404, "")
        );
    }
}

/// Whatever type they are given. What is coded by its name says so, once.
#[test]
fn files_that_are_coded_by_their_names_are_not_compressed() {
    let tree = Tree::new();
    let names = ["a.svgz", "a.gz", "a.tgz", "a.br", "a.zst", "a.woff2"];
    let mut files = FilesConfig::new(tree.root());
    for name in names {
        // As if they were coded.
        fs::write(tree.root().join(name), page()).unwrap();
        let extension = name.split_once('.').unwrap().1.to_owned();
        files.types.insert(extension, "text/plain".parse().unwrap());
    }
    // One that must not be sent in its place.
    fs::write(tree.root().join("a.svgz.gz"), "twice").unwrap();
    let running = crate::files::front(FilesConfig::new(tree.root()), |config| {
        config.routes = vec![RouteConfig {
            rules: Some(Arc::new(RouteRules {
                files: Some(Arc::new(files)),
                ..compressing(vec![Coding::Brotli, Coding::Gzip])
            })),
            ..RouteConfig::new("/", RouteTarget::Files)
        }];
    });
    let address = tcp(&running, 0);
    // A file in memory is compressed at the second request.
    for client in [Client::BOTH, Client::BOTH].concat() {
        for name in names {
            let got = client.ask(address, "GET", &format!("/{name}"), &accept("gzip, br"));
            let expected: &[&str] = if name == "a.svgz" { &["gzip"] } else { &[] };
            let codings = got.headers.get_all("content-encoding");
            assert_eq!(codings.iter().collect::<Vec<_>>(), expected, "{name}");
            assert!(got.body == page(), "{client:?} {name}");
            assert_eq!(got.header("vary"), "", "{name}");
        }
    }
}

/// The tag that a client has of a compressed page is a weak one of ours. Whoever changes the page by it is not
/// refused.
#[test]
fn a_backend_gets_the_tag_that_it_gave() {
    for (method, fields, expected) in [
        ("PUT", "if-match: W/\"v1\"", "\"v1\""),
        (
            "PUT",
            "if-match: W/\"a, W/\", \"b\",W/\"c\"",
            "\"a, W/\", \"b\",\"c\"",
        ),
        ("DELETE", "if-match: *", "*"),
        ("GET", "if-none-match: W/\"v1\"", "W/\"v1\""),
        // Parts of the compressed page do not go with parts of the other.
        ("GET", "range: bytes=5-\r\nif-range: W/\"v1\"", "W/\"v1\""),
        ("GET", "range: bytes=5-\r\nif-match: W/\"v1\"", "W/\"v1\""),
    ] {
        let peer = answering(response("ETag: \"v1\"\r\n"));
        let running = front(&peer);
        let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
        let request = format!("{method} / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n");
        assert_eq!(client.ask(request).unwrap().status, 200);
        let received = String::from_utf8(peer.received(0)).unwrap();
        let name = fields
            .rsplit("\r\n")
            .next()
            .unwrap()
            .split_once(':')
            .unwrap()
            .0;
        let mut lines = received.lines().filter_map(|line| line.split_once(": "));
        let line = lines.find(|(its, _)| its.eq_ignore_ascii_case(name));
        assert_eq!(line.unwrap().1, expected, "{method} {fields}");
    }
}

/// A client that reads nothing holds its encoder and a few pieces, and the others are served.
#[test]
fn a_slow_reader_holds_nobody_up() {
    let tree = Tree::new();
    fs::write(tree.root().join("vast.txt"), vec![b'a'; 4 << 20]).unwrap();
    let noise: Vec<u8> = (0..400_000_u64)
        .flat_map(|at| {
            at.wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .rotate_left(29)
                .to_le_bytes()
        })
        .collect();
    fs::write(tree.root().join("noise.txt"), &noise).unwrap();
    let rules = || {
        Some(Arc::new(RouteRules {
            files: Some(Arc::new(FilesConfig::new(tree.root()))),
            ..compressing(vec![Coding::Gzip])
        }))
    };
    let running = crate::files::front(FilesConfig::new(tree.root()), |config| {
        config.server.workers = std::num::NonZeroUsize::MIN;
        config.routes = vec![RouteConfig {
            rules: rules(),
            ..RouteConfig::new("/", RouteTarget::Files)
        }];
    });
    let address = tcp(&running, 0);
    let mut slow = HttpClient::connect(address).unwrap();
    slow.send(b"GET /noise.txt HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
        .unwrap();
    let fast = Client::Http1.ask(address, "GET", "/vast.txt", &accept("gzip"));
    assert_eq!(decode(&fast).len(), 4 << 20);
    let mut coded = Vec::new();
    let head = slow.receive_into(&mut coded).unwrap();
    assert_eq!(head.header("content-encoding"), Some("gzip"));
    let mut plain = Vec::new();
    MultiGzDecoder::new(&coded[..])
        .read_to_end(&mut plain)
        .unwrap();
    assert!(plain == noise);
    Deadline::default()
        .poll("its end in the counters".to_owned(), || {
            (running.counters().compressed == [0, 2, 0]).then_some(())
        })
        .unwrap();
}
