//! Files that a worker remembers: what clients get of them is what they get of files that are opened.

use std::fs::{self, File};
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use catamaran_proxy::config::{
    Coding, CompressConfig, Config, EtagRule, FilesConfig, RouteConfig, RouteRules, RouteTarget,
};
use catamaran_testkit::Deadline;
use flate2::read::MultiGzDecoder;
use tokio::time::Instant;

use super::{Client, Tree, address, front, pattern};
use crate::Front;
use crate::compress::{accept, decode};

fn alone(config: &mut Config) {
    config.server.workers = std::num::NonZeroUsize::MIN;
}

/// How many requests were answered by what was remembered, and by what was opened.
fn counted(running: &Front) -> (u64, u64) {
    let [hit, open, thread, ..] = running.counters().files;
    (hit, open + thread)
}

/// A file that was written long ago.
fn write(path: &std::path::Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    let file = File::options().write(true).open(path).unwrap();
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    file.set_modified(at).unwrap();
}

#[test]
fn what_is_remembered_is_answered_as_what_is_opened() {
    let tree = Tree::new();
    let running = front(FilesConfig::new(tree.root()), alone);
    let address = address(&running);
    for (path, bytes) in [("/page.html", 1456), ("/big.bin", 100_000), ("/dir2/", 400)] {
        for client in Client::BOTH {
            let (before, _) = counted(&running);
            let first = client.get(address, path);
            let etag = first.header("etag").to_owned();
            for (method, fields, status, body) in [
                ("GET", vec![], 200, pattern(bytes)),
                ("HEAD", vec![], 200, Vec::new()),
                (
                    "GET",
                    vec![("if-none-match", etag.clone())],
                    304,
                    Vec::new(),
                ),
                (
                    "GET",
                    vec![("if-match", "\"a\"".to_owned())],
                    412,
                    Vec::new(),
                ),
                (
                    "GET",
                    vec![("range", "bytes=3-9".to_owned())],
                    206,
                    pattern(10).split_off(3),
                ),
            ] {
                let got = client.ask(address, method, path, &fields);
                assert_eq!(got.status, status, "{client:?} {method} {path}");
                assert!(
                    status == 412 || got.body == body,
                    "{client:?} {path} {status}"
                );
                if status == 200 {
                    for name in ["etag", "last-modified", "content-length", "content-type"] {
                        assert_eq!(got.header(name), first.header(name), "{path} {name}");
                    }
                }
            }
            let (after, _) = counted(&running);
            assert!(after > before, "{client:?} {path}: nothing is remembered");
        }
    }
    let bytes = running.counters().files_bytes;
    assert!((1456..16 << 20).contains(&bytes), "{bytes}");
}

/// Without memory each request opens its file.
#[test]
fn nothing_is_remembered_if_nothing_may_be() {
    let tree = Tree::new();
    let running = front(FilesConfig::new(tree.root()), |config| {
        config.server.files_open = 0;
        config.server.files_memory = 0;
    });
    for _ in 0..3 {
        let got = Client::Http1.get(address(&running), "/page.html");
        assert_eq!(got.body, pattern(1456));
        assert_eq!(Client::Http1.get(address(&running), "/none").status, 404);
    }
    assert_eq!(counted(&running), (0, 3));
    assert_eq!(running.counters().files_bytes, 0);
}

/// What is done to a file, how, and what a client gets then.
type Change<'c> = (&'c str, &'c dyn Fn(), (u16, Vec<u8>));

/// Renamed, rewritten in place, made longer and shorter, removed: what is remembered is seen to have changed
/// within a second, and no response is of two versions.
#[test]
fn a_change_is_seen_within_a_second() {
    let tree = Tree::new();
    let running = front(FilesConfig::new(tree.root()), alone);
    let address = address(&running);
    let next = tree.root().join("next");
    for (name, length) in [("small.txt", 3000), ("large.txt", 300_000)] {
        let path = tree.root().join(name);
        let url = format!("/{name}");
        write(&path, &vec![b'0'; length]);
        let whole = |letter: u8, length: usize| (200, vec![letter; length]);
        let changes: [Change<'_>; 5] = [
            (
                "renamed",
                &|| {
                    write(&next, &vec![b'1'; length]);
                    fs::rename(&next, &path).unwrap();
                },
                whole(b'1', length),
            ),
            (
                "rewritten",
                &|| fs::write(&path, vec![b'2'; length]).unwrap(),
                whole(b'2', length),
            ),
            (
                "shorter",
                &|| write(&path, &vec![b'3'; length / 2]),
                whole(b'3', length / 2),
            ),
            (
                "longer",
                &|| write(&path, &vec![b'4'; length + 1]),
                whole(b'4', length + 1),
            ),
            (
                "removed",
                &|| fs::remove_file(&path).unwrap(),
                (404, Vec::new()),
            ),
        ];
        let mut before = whole(b'0', length);
        for (what, change, after) in changes {
            let ask = || {
                let got = Client::Http1.get(address, &url);
                let body = if got.status == 200 {
                    got.body
                } else {
                    Vec::new()
                };
                (got.status, body)
            };
            // It is remembered.
            assert!((0..3).all(|_| ask() == before), "{name} before {what}");
            change();
            let changed = Instant::now();
            Deadline::default()
                .poll(format!("{name} {what}"), || {
                    let begun = changed.elapsed();
                    let got = ask();
                    assert!(got == before || got == after, "{name} {what}: a mixture");
                    let is_old = got == before && before != after;
                    assert!(!is_old || begun < Duration::from_secs(1), "{name} {what}");
                    (got == after).then_some(())
                })
                .unwrap();
            before = after;
        }
    }
}

fn compressing(root: std::path::PathBuf, codings: Vec<Coding>, config: &mut Config) {
    alone(config);
    let compress = CompressConfig::new(codings);
    config.routes = vec![RouteConfig {
        rules: Some(Arc::new(RouteRules {
            files: Some(Arc::new(FilesConfig::new(root))),
            compress: Some(Arc::new(compress)),
            ..RouteRules::default()
        })),
        ..RouteConfig::new("/", RouteTarget::Files)
    }];
}

/// The coding of a file in memory is made once, at the second request for it.
#[test]
fn a_coding_of_what_is_in_memory_is_kept() {
    let tree = Tree::new();
    let text = "a line of text\n".repeat(1000);
    write(&tree.root().join("text.txt"), text.as_bytes());
    let running = front(FilesConfig::new(tree.root()), |config| {
        compressing(tree.root(), vec![Coding::Gzip], config);
    });
    let address = address(&running);
    let gzip = [("accept-encoding", "gzip".to_owned())];
    let mut lengths = Vec::new();
    let mut tags = Vec::new();
    for client in [Client::BOTH, Client::BOTH].concat() {
        let got = client.ask(address, "GET", "/text.txt", &gzip);
        assert_eq!((got.status, got.header("content-encoding")), (200, "gzip"));
        assert_eq!(got.header("vary"), "Accept-Encoding");
        assert!(!got.headers.contains_key("accept-ranges"));
        let mut plain = String::new();
        MultiGzDecoder::new(&got.body[..])
            .read_to_string(&mut plain)
            .unwrap();
        assert!(plain == text, "{client:?}");
        lengths.push(got.header("content-length").to_owned());
        tags.push(got.header("etag").to_owned());
    }
    // The first is coded as it streams; the others have a length.
    assert_eq!(lengths[0], "");
    assert!(
        lengths[1..]
            .iter()
            .all(|length| length == &lengths[1] && !length.is_empty())
    );
    assert!(
        tags.iter()
            .all(|tag| tag == &tags[0] && tag.starts_with("W/\"")),
        "{tags:?}"
    );
    // A client can have its response before it is counted.
    let all = 4 * text.len() as u64;
    let counted = || {
        let counters = running.counters();
        (counters.compressed == [0, 4, 0] && counters.compressed_bytes[0] == all).then_some(())
    };
    Deadline::default()
        .poll("all are counted", counted)
        .unwrap();
    for client in Client::BOTH {
        let plain = client.get(address, "/text.txt");
        assert!(plain.body == text.as_bytes() && !plain.headers.contains_key("content-encoding"));
        let head = client.ask(address, "HEAD", "/text.txt", &gzip);
        assert_eq!(
            (head.status, head.header("content-encoding")),
            (200, "gzip")
        );
        let known = [gzip[0].clone(), ("if-none-match", tags[0].clone())];
        assert_eq!(client.ask(address, "GET", "/text.txt", &known).status, 304);
        let part = [gzip[0].clone(), ("range", "bytes=2-5".to_owned())];
        let part = client.ask(address, "GET", "/text.txt", &part);
        assert_eq!((part.status, &part.body[..]), (206, &b"line"[..]));
    }
}

/// A file in memory is in Brotli from the second request on; one that is larger never is.
#[test]
fn a_file_in_memory_is_kept_in_brotli() {
    let tree = Tree::new();
    let text = "a line of text\n".repeat(1000);
    write(&tree.root().join("text.txt"), text.as_bytes());
    let large = text.repeat(10);
    write(&tree.root().join("large.txt"), large.as_bytes());
    let running = front(FilesConfig::new(tree.root()), |config| {
        compressing(tree.root(), vec![Coding::Brotli, Coding::Gzip], config);
    });
    let address = address(&running);
    let both = accept("gzip, br");
    let mut tags = Vec::new();
    for (at, client) in [Client::BOTH, Client::BOTH]
        .concat()
        .into_iter()
        .enumerate()
    {
        let got = client.ask(address, "GET", "/text.txt", &both);
        let coding = if at == 0 { "gzip" } else { "br" };
        assert_eq!(got.header("content-encoding"), coding, "{client:?}");
        assert_eq!(got.header("vary"), "Accept-Encoding");
        assert_eq!(got.headers.contains_key("content-length"), at > 0);
        assert!(decode(&got) == text.as_bytes(), "{client:?}");
        tags.push(got.header("etag").to_owned());
        let got = client.ask(address, "GET", "/large.txt", &both);
        assert_eq!(got.header("content-encoding"), "gzip", "{client:?}");
        assert!(decode(&got) == large.as_bytes(), "{client:?}");
    }
    assert!(tags[0].starts_with("W/\"") && tags.iter().all(|tag| *tag == tags[0]));
    let counted = || (running.counters().compressed == [3, 5, 0]).then_some(());
    Deadline::default()
        .poll("all are counted", counted)
        .unwrap();
    for client in Client::BOTH {
        let head = client.ask(address, "HEAD", "/text.txt", &both);
        assert_eq!(head.header("content-encoding"), "br");
        let length: usize = head.header("content-length").parse().unwrap();
        assert!(head.body.is_empty() && length * 3 < text.len(), "{length}");
        let known = [both[0].clone(), ("if-none-match", tags[0].clone())];
        assert_eq!(client.ask(address, "GET", "/text.txt", &known).status, 304);
        let got = client.ask(address, "GET", "/text.txt", &accept("gzip"));
        assert_eq!(got.header("content-encoding"), "gzip");
    }
}

#[test]
fn tags_of_content_are_those_of_the_bytes() {
    let tree = Tree::new();
    let mut files = FilesConfig::new(tree.root());
    files.etag = EtagRule::Content;
    let running = front(files, |_| {});
    let address = address(&running);
    for client in Client::BOTH {
        let tags = ["/x.txt", "/x.json", "/page.html", "/app.js"].map(|path| {
            let got = client.get(address, path);
            let tag = got.header("etag").to_owned();
            assert_eq!(tag.len(), 34, "{path} {tag}");
            let known = [("if-none-match", tag.clone())];
            assert_eq!(
                client.ask(address, "GET", path, &known).status,
                304,
                "{path}"
            );
            tag
        });
        // The same bytes under two names, and others.
        assert!(
            tags[0] == tags[1] && tags[0] != tags[2] && tags[2] != tags[3],
            "{tags:?}"
        );
        let gzip = [("accept-encoding", "gzip".to_owned())];
        let coded = client.ask(address, "GET", "/app.js", &gzip);
        assert_ne!(coded.header("etag"), tags[3]);
    }
}

/// Images of containers have files of 1970.
#[test]
fn a_file_of_1970_has_a_tag_of_its_content_and_no_date() {
    let tree = Tree::new();
    let file = File::options()
        .write(true)
        .open(tree.root().join("page.html"))
        .unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let running = front(FilesConfig::new(tree.root()), |_| {});
    for client in Client::BOTH {
        let got = client.get(address(&running), "/page.html");
        assert_eq!(got.header("etag").len(), 34);
        assert_eq!(got.header("last-modified"), "");
        let known = [("if-none-match", got.header("etag").to_owned())];
        let same = client.ask(address(&running), "GET", "/page.html", &known);
        assert_eq!(same.status, 304);
    }
}
