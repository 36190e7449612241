//! Codings of stored bodies, which are made once and kept.

use std::fmt::Write as _;

use catamaran_proxy::config::{Coding, CompressConfig, Protocols};
use catamaran_testkit::Deadline;
use serde_json::Value;
use tempfile::TempDir;

use super::operate::{admin, steered};
use super::*;
use crate::compress::{accept, decode};
use crate::files::{Client, Got};

/// A page of about so many bytes.
fn page(len: usize) -> String {
    let mut page = String::new();
    for at in 0.. {
        if page.len() >= len {
            break;
        }
        writeln!(page, "<tr><td>{at}</td></tr>").unwrap();
    }
    page
}

fn rules() -> RouteRules {
    rules_of(&[Coding::Zstd, Coding::Gzip])
}

fn rules_of(codings: &[Coding]) -> RouteRules {
    RouteRules {
        cache: Some(cache().name),
        compress: Some(Arc::new(CompressConfig::new(codings.to_vec()))),
        ..RouteRules::default()
    }
}

/// A front that stores what an origin says and compresses it for clients.
fn coding(origin: &Origin, pages: CacheConfig) -> Front {
    let mut config = cached(origin.backend(), pages);
    config.routes[0].rules = Some(Arc::new(rules()));
    start(config).unwrap()
}

/// An origin with a page of so many bytes, and a front that stores it and compresses it for clients.
fn compressing(len: usize) -> (Origin, Front, TempDir) {
    compressing_in(&[Coding::Zstd, Coding::Gzip], len)
}

fn compressing_in(codings: &[Coding], len: usize) -> (Origin, Front, TempDir) {
    compressing_within(64 << 20, codings, len)
}

/// Encoders may hold so much memory.
fn compressing_within(memory: u64, codings: &[Coding], len: usize) -> (Origin, Front, TempDir) {
    let origin = Origin::start(move |_| (ok(HTML, &page(len)), false));
    let (front, directory) = steered(&origin, |config| {
        config.listeners[0].protocols = Protocols::Both;
        config.server.compress_memory = memory;
        config.routes[0].rules = Some(Arc::new(rules_of(codings)));
    });
    (origin, front, directory)
}

fn ask(front: &Front, client: Client, coding: &str) -> Got {
    client.ask(tcp(front, 0), "GET", "/", &accept(coding))
}

/// Whether a coded response is one of which the coding was kept: its length is known beforehand.
fn is_kept(got: &Got) -> bool {
    got.headers.contains_key("content-length")
}

/// Bytes of memory that the cache takes.
fn bytes(front: &Front) -> u64 {
    let (_, text) = admin(front, "GET", "/api/v1/caches", "");
    let caches: Value = serde_json::from_str(&text).unwrap();
    caches["caches"][0]["bytes"].as_u64().unwrap()
}

#[test]
fn a_coding_is_made_at_the_second_hit_and_kept() {
    let (origin, front, _directory) = compressing(20_000);
    let plain = ask(&front, Client::Http1, "identity");
    assert_eq!(plain.body, page(20_000).as_bytes());
    assert_eq!(plain.header("vary"), "Accept-Encoding");
    let before = bytes(&front);
    // The first hit that wants a coding has it made as it streams, whichever that is.
    assert!(!is_kept(&ask(&front, Client::Http1, "gzip")));
    assert_eq!(bytes(&front), before);
    let mut kept = 0;
    for coding in ["gzip", "zstd"] {
        let mut bodies = Vec::new();
        for client in [Client::BOTH, Client::BOTH].concat() {
            let got = ask(&front, client, coding);
            assert!(is_kept(&got), "{client:?} {coding}");
            assert_eq!(got.header("content-encoding"), coding);
            assert_eq!(got.header("content-length"), got.body.len().to_string());
            assert_eq!(
                (got.header("etag"), got.header("vary")),
                ("W/\"v1\"", "Accept-Encoding")
            );
            assert!(!got.headers.contains_key("accept-ranges"));
            assert!(
                got.header("cache-status")
                    .starts_with("catamaran; hit; ttl=")
            );
            assert!(decode(&got) == page(20_000).as_bytes());
            bodies.push(got.body);
        }
        assert!(bodies.iter().all(|body| *body == bodies[0]), "{coding}");
        kept += bodies[0].len() as u64;
        assert!(
            bytes(&front) >= before + kept,
            "it counts in the cache's memory"
        );
    }
    assert_eq!(ask(&front, Client::Http1, "br").body, plain.body);
    assert_eq!(origin.count("/"), 1);
    // A client can have its response before it is counted.
    let counted = || {
        let counters = front.counters();
        let plain = 9 * plain.body.len() as u64;
        (counters.compressed == [0, 5, 4] && counters.compressed_bytes[0] == plain).then_some(())
    };
    Deadline::default()
        .poll("all are counted", counted)
        .unwrap();
}

#[test]
fn heads_conditions_and_ranges_are_those_of_the_coded_page() {
    let (_origin, front, _directory) = compressing(20_000);
    for _ in 0..3 {
        ask(&front, Client::Http1, "gzip");
    }
    for client in Client::BOTH {
        let address = tcp(&front, 0);
        let head = client.ask(address, "HEAD", "/", &accept("gzip"));
        assert_eq!(
            (head.header("content-encoding"), head.header("etag")),
            ("gzip", "W/\"v1\"")
        );
        assert!(head.body.is_empty() && !head.headers.contains_key("accept-ranges"));
        for (coding, etag) in [("gzip", "W/\"v1\""), ("identity", "\"v1\"")] {
            let mut fields = accept(coding).to_vec();
            fields.push(("if-none-match", "W/\"v1\"".to_owned()));
            let same = client.ask(address, "GET", "/", &fields);
            assert_eq!(
                (same.status, same.header("vary")),
                (304, "Accept-Encoding"),
                "{coding}"
            );
            assert_eq!(same.header("etag"), etag);
            assert!(same.body.is_empty() && !same.headers.contains_key("content-encoding"));
        }
        // A part is one of the plain page: a tag that is weak ties no parts together.
        let mut fields = accept("gzip").to_vec();
        fields.push(("range", "bytes=0-9".to_owned()));
        let part = client.ask(address, "GET", "/", &fields);
        assert_eq!((part.status, part.header("content-encoding")), (206, ""));
        assert_eq!(part.body, &page(20_000).as_bytes()[..10]);
        fields.push(("if-range", "W/\"v1\"".to_owned()));
        let whole = client.ask(address, "GET", "/", &fields);
        assert_eq!(
            (whole.status, whole.header("content-encoding")),
            (200, "gzip")
        );
        assert!(decode(&whole) == page(20_000).as_bytes());
    }
}

#[test]
fn a_purge_takes_codings_away() {
    let (origin, front, _directory) = compressing(20_000);
    for wish in [r#"{"all": true}"#, r#"{"prefix": "http://a/"}"#] {
        let asked = origin.count("/");
        // Miss, first hit, second hit.
        let kept = [(); 3].map(|()| is_kept(&ask(&front, Client::Http1, "gzip")));
        assert!(!kept[1] && kept[2], "{kept:?}");
        assert_eq!(origin.count("/"), asked + 1);
        let path = "/api/v1/caches/pages/purge";
        assert_eq!(admin(&front, "POST", path, wish).0, 200);
    }
    assert!(decode(&ask(&front, Client::Http1, "gzip")) == page(20_000).as_bytes());
    assert_eq!(origin.count("/"), 3);
}

#[test]
fn a_long_page_is_coded_on_a_thread() {
    let (origin, front, _directory) = compressing(300_000);
    let kept = || {
        let got = ask(&front, Client::Http1, "zstd");
        assert!(decode(&got) == page(300_000).as_bytes());
        is_kept(&got).then_some(())
    };
    Deadline::default()
        .poll("the coding is kept", kept)
        .unwrap();
    assert_eq!(origin.count("/"), 1);
}

#[test]
fn a_validated_page_keeps_its_codings() {
    // Stale at once, so that each use is validated.
    let fields = HTML.replace("max-age=60", "max-age=0");
    let origin = Origin::start(move |asked| match asked.field("if-none-match") {
        Some(_) => (
            b"HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n".to_vec(),
            false,
        ),
        None => (ok(&fields, &page(5_000)), false),
    });
    let front = coding(&origin, cache());
    let kept = [(); 5].map(|()| {
        let got = ask(&front, Client::Http1, "gzip");
        assert!(decode(&got) == page(5_000).as_bytes());
        is_kept(&got)
    });
    assert!(kept[3] && kept[4], "{kept:?}");
    assert_eq!(origin.count("/"), 5);
}

#[test]
fn a_page_without_room_for_its_coding_is_compressed_each_time() {
    let origin = Origin::start(|_| (ok(HTML, &page(30_000)), false));
    let mut pages = cache();
    (pages.memory, pages.object_max) = (320 << 10, 40 << 10);
    let front = coding(&origin, pages);
    for _ in 0..4 {
        let got = ask(&front, Client::Http1, "gzip");
        assert!(!is_kept(&got) && decode(&got) == page(30_000).as_bytes());
    }
    assert_eq!(origin.count("/"), 1);
}

/// What a client is told of a response, beside its body: its coding, tag and `Vary`.
fn told(got: &Got) -> (&str, &str, &str) {
    let [coding, etag, vary] = ["content-encoding", "etag", "vary"].map(|name| got.header(name));
    (coding, etag, vary)
}

#[test]
fn brotli_is_made_of_a_stored_page_and_kept() {
    let codings = [Coding::Brotli, Coding::Zstd, Coding::Gzip];
    let (origin, front, _directory) = compressing_in(&codings, 20_000);
    // The miss streams, and so does the first hit: in the next coding.
    for (taken, coding) in [("br, gzip", "gzip"), ("br, gzip, zstd", "zstd")] {
        let got = ask(&front, Client::Http1, taken);
        assert_eq!(told(&got), (coding, "W/\"v1\"", "Accept-Encoding"));
        assert!(!is_kept(&got) && decode(&got) == page(20_000).as_bytes());
    }
    let before = bytes(&front);
    let mut bodies = Vec::new();
    for client in [Client::BOTH, Client::BOTH].concat() {
        let got = ask(&front, client, "gzip, deflate, br, zstd");
        assert_eq!(told(&got), ("br", "W/\"v1\"", "Accept-Encoding"));
        assert_eq!(got.header("content-length"), got.body.len().to_string());
        assert!(!got.headers.contains_key("accept-ranges"));
        assert!(decode(&got) == page(20_000).as_bytes(), "{client:?}");
        bodies.push(got.body);
    }
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    let kept = bytes(&front) - before;
    assert!(kept >= bodies[0].len() as u64, "{kept} bytes more");
    // Others have theirs, or none.
    for (taken, coding) in [("gzip", "gzip"), ("zstd, gzip", "zstd"), ("br;q=0", "")] {
        let got = ask(&front, Client::Http1, taken);
        assert_eq!(got.header("content-encoding"), coding);
        assert!(is_kept(&got) && decode(&got) == page(20_000).as_bytes());
    }
    assert_eq!(origin.count("/"), 1);
    // A client can have its response before it is counted.
    let counted = || (front.counters().compressed == [4, 2, 2]).then_some(());
    Deadline::default()
        .poll("all are counted", counted)
        .unwrap();
    let wish = r#"{"all": true}"#;
    assert_eq!(
        admin(&front, "POST", "/api/v1/caches/pages/purge", wish).0,
        200
    );
    assert_eq!(
        ask(&front, Client::Http1, "br").header("content-encoding"),
        ""
    );
    assert_eq!(origin.count("/"), 2);
}

/// Without a coding that streams, a page is sent as it is until the one in Brotli is there.
#[test]
fn heads_and_conditions_are_those_of_what_is_kept_in_brotli() {
    let (_origin, front, _directory) = compressing_in(&[Coding::Brotli], 20_000);
    let plain = ("", "\"v1\"", "Accept-Encoding");
    let coded = ("br", "W/\"v1\"", "Accept-Encoding");
    let head = |client: Client| client.ask(tcp(&front, 0), "HEAD", "/", &accept("br"));
    let unmodified = |client: Client| {
        let mut fields = accept("br").to_vec();
        fields.push(("if-none-match", "W/\"v1\"".to_owned()));
        client.ask(tcp(&front, 0), "GET", "/", &fields)
    };
    for _ in 0..2 {
        let got = ask(&front, Client::Http1, "br, gzip");
        assert_eq!(told(&got), plain);
        assert_eq!(got.body, page(20_000).as_bytes());
    }
    for client in Client::BOTH {
        assert_eq!(told(&head(client)), plain);
        assert_eq!(told(&unmodified(client)), plain);
    }
    let got = ask(&front, Client::Http1, "br");
    assert_eq!(told(&got), coded);
    for client in Client::BOTH {
        let head = head(client);
        assert_eq!(told(&head), coded);
        assert_eq!(head.header("content-length"), got.body.len().to_string());
        let unmodified = unmodified(client);
        assert_eq!(unmodified.status, 304);
        assert_eq!(told(&unmodified), ("", "W/\"v1\"", "Accept-Encoding"));
    }
}

#[test]
fn a_long_page_is_in_the_next_coding_until_the_one_in_brotli_is_made() {
    let (origin, front, _directory) = compressing_in(&[Coding::Brotli, Coding::Zstd], 300_000);
    let kept = || {
        let got = ask(&front, Client::Http1, "zstd, br");
        assert!(decode(&got) == page(300_000).as_bytes());
        let expected = if is_kept(&got) { "br" } else { "zstd" };
        assert_eq!(got.header("content-encoding"), expected);
        is_kept(&got).then_some(())
    };
    assert_eq!(kept(), None, "it is fetched");
    assert_eq!(kept(), None, "it is wanted once");
    Deadline::default().poll("it is kept", kept).unwrap();
    assert_eq!(origin.count("/"), 1);
}

/// Brotli needs more memory than the others.
#[test]
fn the_next_coding_is_kept_if_there_is_no_memory_for_brotli() {
    let codings = [Coding::Brotli, Coding::Zstd];
    let (_origin, front, _directory) = compressing_within(Coding::Zstd.memory(), &codings, 20_000);
    let kept = [(); 4].map(|()| {
        let got = ask(&front, Client::Http1, "br, zstd");
        assert_eq!(got.header("content-encoding"), "zstd");
        assert!(decode(&got) == page(20_000).as_bytes());
        is_kept(&got)
    });
    assert_eq!(kept, [false, false, true, true]);
}

/// Fields of a page that may be stored.
const HTML: &str = "Cache-Control: max-age=60\r\nContent-Type: text/html\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n";
