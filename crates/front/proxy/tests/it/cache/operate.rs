//! What operators see of a cache, and what they do to it.

use catamaran_proxy::BoundAddress;
use catamaran_proxy::config::{AdminConfig, ListenAddress, Protocols};
use catamaran_proxy::explain::{Question, explain};
use catamaran_testkit::http2::{END_HEADERS, END_STREAM, Http2Client, block, frame, kind, opening};
use catamaran_testkit::{Address as TestAddress, Deadline};
use tempfile::TempDir;

use super::*;

/// A front with a cache and an admin listener on a Unix socket, which may change everything.
pub(super) fn steered(origin: &Origin, change: impl FnOnce(&mut Config)) -> (Front, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let socket = ListenAddress::Unix(directory.path().join("admin.sock"));
    let mut config = cached(origin.backend(), cache());
    config.admin = Some(AdminConfig::new(vec![socket]));
    change(&mut config);
    (start(config).unwrap(), directory)
}

pub(crate) fn admin(front: &Front, method: &str, path: &str, body: &str) -> (u16, String) {
    let BoundAddress::Unix(socket) = &front.admin_addresses()[0] else {
        panic!("a Unix socket");
    };
    let mut client = HttpClient::connect(TestAddress::Unix(socket.clone())).unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let response = client.ask(request).unwrap();
    (response.status, String::from_utf8(response.body).unwrap())
}

fn purge(front: &Front, wish: &str) -> u16 {
    admin(front, "POST", "/api/v1/caches/pages/purge", wish).0
}

#[test]
fn responses_are_purged_by_url_prefix_tag_and_all() {
    let origin = Origin::start(|asked| {
        let fields = format!("{FRESH}Surrogate-Key: all t{}\r\n", &asked.target[1..2]);
        (ok(&fields, &asked.count.to_string()), false)
    });
    let (front, _directory) = steered(&origin, |_| {});
    let targets = ["/a", "/a?q", "/b", "/c/d"];
    let counts = || targets.map(|target| body(&get(&front, target)).to_owned());
    assert_eq!(counts(), ["1", "1", "1", "1"]);
    for (wish, expected) in [
        (r#"{"url": "http://a/a"}"#, ["2", "1", "1", "1"]),
        (r#"{"prefix": "http://a/a"}"#, ["3", "2", "1", "1"]),
        (r#"{"tag": "tb"}"#, ["3", "2", "2", "1"]),
        (r#"{"tag": "nobody"}"#, ["3", "2", "2", "1"]),
        (r#"{"all": true}"#, ["4", "3", "3", "2"]),
        // Nothing is there to be validated, so it is fetched.
        (
            r#"{"url": "http://A:80/b/../c/d", "soft": true}"#,
            ["4", "3", "3", "3"],
        ),
    ] {
        assert_eq!(purge(&front, wish), 200, "{wish}");
        assert_eq!(counts(), expected, "{wish}");
        assert_eq!(counts(), expected, "{wish}, again");
    }
    for wish in [
        "{}",
        r#"{"url": "/a"}"#,
        r#"{"url": "http://a/", "tag": "b"}"#,
        "[]",
        r#"{"all": 1}"#,
    ] {
        assert_eq!(purge(&front, wish), 400, "{wish}");
    }
    let (status, _) = admin(
        &front,
        "POST",
        "/api/v1/caches/other/purge",
        r#"{"all": true}"#,
    );
    assert_eq!(status, 404);
}

#[test]
fn what_a_cache_did_is_told() {
    let origin = Origin::saying(FRESH);
    let (front, _directory) = steered(&origin, |_| {});
    for target in ["/", "/", "/;p"] {
        get(&front, target);
    }
    let counted = || {
        let (_, text) = admin(&front, "GET", "/metrics", "");
        let has = |line: &str| text.lines().any(|it| it == line);
        let all = [
            "catamaran_cache_requests_total{cache=\"pages\",result=\"hit\"} 1",
            "catamaran_cache_requests_total{cache=\"pages\",result=\"miss\"} 1",
            "catamaran_cache_requests_total{cache=\"pages\",result=\"bypass\"} 1",
            "catamaran_cache_bypass_total{cache=\"pages\",reason=\"path-parameters\"} 1",
            "catamaran_cache_objects{cache=\"pages\"} 1",
            "catamaran_cache_waiters{cache=\"pages\"} 0",
            "catamaran_cache_fills_open{cache=\"pages\",age=\"under-10s\"} 0",
        ];
        all.into_iter().all(has).then_some(())
    };
    // A client can have its response before it is counted.
    Deadline::default().poll("all is counted", counted).unwrap();
    let (status, text) = admin(&front, "GET", "/api/v1/caches", "");
    assert_eq!(status, 200);
    assert!(
        text.contains("\"hit\":1") && text.contains("\"objects\":1"),
        "{text}"
    );
    let (status, text) = admin(&front, "GET", "/api/v1/caches/pages/keys", "");
    assert_eq!(status, 200);
    assert!(
        text.contains("{\"bytes\":") && text.contains("\"hits\":1,\"key\":\"http://a/ "),
        "{text}"
    );
    let (status, _) = admin(&front, "GET", "/api/v1/caches/others/keys", "");
    assert_eq!(status, 404);
    let (_, text) = admin(&front, "GET", "/api/v1/explain?url=http://a/", "");
    assert!(
        text.contains("\"stored\":\"fresh\"") && text.contains("http://a/ =app"),
        "{text}"
    );
}

#[test]
fn a_configuration_explains_its_cache() {
    let origin = Origin::saying(FRESH);
    let config = cached(origin.backend(), cache());
    let of = |url: &str| {
        let question = Question {
            url: url.to_owned(),
            ..Question::default()
        };
        explain(&config, &question).unwrap().cache.unwrap()
    };
    let shown = of("http://a/b");
    assert_eq!((&shown.stored[..], &shown.bypass), ("nothing", &None));
    assert!(shown.key.starts_with("http://a/b "), "{shown:?}");
    assert_eq!(
        of("http://a/b;c").bypass.as_deref(),
        Some("path-parameters")
    );
}

/// The tasks of a connection's streams end with it; a fetch is no task of theirs.
#[test]
fn a_client_of_http2_may_leave_what_others_wait_for() {
    let gate = Arc::new(std::sync::Barrier::new(2));
    let at_origin = Arc::clone(&gate);
    let origin = Origin::start(move |asked| {
        if asked.count == 1 {
            at_origin.wait();
            at_origin.wait();
        }
        (ok(FRESH, "page"), false)
    });
    let mut config = cached(origin.backend(), cache());
    config.listeners[0].protocols = Protocols::Both;
    let front = start(config).unwrap();
    let mut first = Http2Client::connect(tcp(&front, 0)).unwrap();
    let fields: [(&[u8], &[u8]); 4] = [
        (b":method", b"GET"),
        (b":scheme", b"http"),
        (b":authority", b"a"),
        (b":path", b"/"),
    ];
    let head = frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, &block(&fields));
    first.send(&[opening(65_535), head].concat(), usize::MAX);
    gate.wait();
    thread::scope(|scope| {
        let second = scope.spawn(|| get(&front, "/"));
        drop(first);
        gate.wait();
        assert_eq!(body(&second.join().unwrap()), "page");
    });
}
