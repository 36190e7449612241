//! Attacks by which one client tries to get another one's page, or to give it one.

use catamaran_proxy::config::Protocols;
use catamaran_testkit::Deadline;
use catamaran_testkit::http2::{END_HEADERS, END_STREAM, Http2Client, block, frame, kind, opening};

use super::operate::{admin, steered};
use super::*;

/// An origin whose account page is a user's, whatever stands behind its path, as many frameworks have it.
fn account() -> Origin {
    Origin::start(|asked| {
        let user = asked.field("cookie").unwrap_or("nobody").to_owned();
        let fields = if asked.target.starts_with("/account") {
            "Content-Type: text/html\r\n"
        } else {
            "Cache-Control: max-age=60\r\nContent-Type: text/css\r\n"
        };
        (ok(fields, &format!("{user} {}", asked.target)), false)
    })
}

#[test]
fn a_users_page_is_not_stored_under_the_name_of_a_file() {
    let origin = account();
    let mut pages = cache();
    pages.freshness.ttl = vec![(200..=200, 60)];
    // The application has a login that the operator forgot to name.
    pages.session_cookies = Vec::new();
    let front = front(&origin, pages);
    let victim = "Cookie: login=victim\r\n";
    for target in [
        "/account/x.css",
        "/account/x.js",
        "/account/a.png",
        "/account;x.css",
        "/account%3Bx.css",
        "/account%2Fx.css",
        "/account/%2e/x.css",
        "//account/x.css",
    ] {
        let seen = get_as(&front, target, victim);
        assert!(
            body(&seen).starts_with("login=victim"),
            "{target}: {seen:?}"
        );
        let stolen = get(&front, target);
        assert!(body(&stolen).starts_with("nobody"), "{target}: {stolen:?}");
    }
}

#[test]
fn what_the_key_does_not_know_does_not_poison() {
    let origin = Origin::start(|asked| {
        let said = [
            "x-original-url",
            "x-rewrite-url",
            "x-http-method-override",
            "x-forwarded-host",
        ];
        let said: Vec<&str> = said.iter().filter_map(|name| asked.field(name)).collect();
        (ok(FRESH, &format!("{} {said:?}", asked.target)), false)
    });
    let front = front(&origin, cache());
    for fields in [
        "X-Original-URL: /admin\r\n",
        "X-Rewrite-URL: /admin\r\n",
        "X-HTTP-Method-Override: POST\r\n",
        "X-Forwarded-Host: evil\r\n",
        "Content-Length: 5\r\n",
    ] {
        let mut client = HttpClient::connect(tcp(&front, 0)).unwrap();
        let payload = if fields.starts_with("Content-Length") {
            "q=bad"
        } else {
            ""
        };
        let request = format!("GET /p HTTP/1.1\r\nHost: a\r\n{fields}\r\n{payload}");
        client.ask(request).unwrap();
        let victim = get(&front, "/p");
        // The front itself tells the backend the host that was asked for.
        assert_eq!(body(&victim), "/p [\"a\"]", "{fields}");
    }
}

/// What a client gets because it asked for a part, or on a condition, is for nobody else.
#[test]
fn a_range_or_a_condition_of_one_client_is_not_everybodys() {
    const ASKING: [&str; 7] = [
        "Range: bytes=900-\r\n",
        "Range: bytes=0-\r\n",
        "Range: bytes=0-1\r\nIf-Range: \"x\"\r\n",
        "If-None-Match: \"x\"\r\n",
        "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
        "If: (<urn:x>)\r\n",
        "A-IM: vcdiff\r\n",
    ];
    let origin = Origin::start(|asked| {
        let names = ["range", "if-range", "if-none-match", "if-modified-since"];
        let all = [&names[..], &["if", "a-im"]].concat();
        let fields = "Cache-Control: public, max-age=60\r\nX-Of: one\r\n";
        let status = asked.target.split('/').nth(1).unwrap_or_default();
        let bytes = match all.iter().any(|name| asked.field(name).is_some()) {
            false => ok("Cache-Control: public, max-age=60\r\n", "page"),
            true if status == "304" => {
                format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n").into_bytes()
            }
            true => response(&format!("{status} So"), fields, "part"),
        };
        (bytes, false)
    });
    let mut pages = cache();
    pages.freshness.ttl = vec![(200..=205, 60), (400..=499, 60)];
    let front = front(&origin, pages);
    for status in ["416", "412", "200", "206", "226", "304", "404"] {
        for (at, asking) in ASKING.iter().enumerate() {
            for session in ["", "Cookie: JSESSIONID=a\r\n"] {
                let target = format!("/{status}/{at}/{}", session.len());
                get_as(&front, &target, &format!("{asking}{session}"));
                let victim = get(&front, &target);
                let seen = (victim.status, body(&victim), field(&victim, "x-of"));
                assert_eq!(seen, (200, "page", None), "{target} after {asking}");
            }
        }
    }
}

#[test]
fn hosts_do_not_share() {
    let origin = Origin::start(|asked| (ok(FRESH, asked.field("host").unwrap_or("-")), false));
    let front = front(&origin, cache());
    let of = |host: &str, target: &str| {
        let mut client = HttpClient::connect(tcp(&front, 0)).unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        client.ask(request).unwrap()
    };
    assert_eq!(body(&of("a", "/")), "a");
    assert_eq!(body(&of("b", "/")), "b");
    // The target in absolute form says which host it is.
    assert_eq!(body(&of("b", "http://a/")), "a");
    assert_eq!(body(&of("b", "/")), "b");
}

#[test]
fn a_trusted_proxy_that_passes_claims_on_does_not_poison() {
    let origin = Origin::start(|asked| {
        let host = asked.field("x-forwarded-host").unwrap_or("-").to_owned();
        (ok(FRESH, &host), false)
    });
    let mut config = cached(origin.backend(), cache());
    config.server.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let front = start(config).unwrap();
    assert_eq!(
        body(&get_as(&front, "/", "X-Forwarded-Host: evil\r\n")),
        "evil"
    );
    assert_ne!(
        body(&get_as(&front, "/", "X-Forwarded-Host: good\r\n")),
        "evil"
    );
    assert_ne!(body(&get(&front, "/")), "evil");
}

/// A backend is told what the last element says, which the key has.
#[test]
fn what_a_proxy_lets_clients_put_before_its_scheme_is_no_part_of_the_key() {
    let origin = Origin::start(|asked| (ok(FRESH, &asked.count.to_string()), false));
    let mut config = cached(origin.backend(), cache());
    config.server.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let front = start(config).unwrap();
    let got = |claim: &str| {
        let field = format!("X-Forwarded-Proto: {claim}\r\n");
        body(&get_as(&front, "/", &field)).to_owned()
    };
    assert_eq!(got("a, https"), "1");
    assert_eq!(got("b, https"), "1");
    assert_eq!(got("http"), "2");
}

#[test]
fn bombs_of_fields_are_not_stored() {
    let origin = Origin::start(|asked| {
        let names: String = (0..300).map(|at| format!("x{at},")).collect();
        let fields = match &asked.target[..] {
            "/vary" => format!("Cache-Control: max-age=60\r\nVary: {names}\r\n"),
            "/tags" => format!("Cache-Control: max-age=60\r\nCache-Tag: {names}\r\n"),
            "/age" => "Cache-Control: max-age=60\r\nAge: -1\r\n".to_owned(),
            _ => "Cache-Control: max-age=100000000000000000000\r\n".to_owned(),
        };
        (ok(&fields, &asked.count.to_string()), false)
    });
    let front = front(&origin, cache());
    for (target, expected) in [("/vary", "2"), ("/tags", "2"), ("/age", "1"), ("/max", "1")] {
        let first = get(&front, target);
        assert_eq!(field(&first, "cache-tag"), None);
        assert_eq!(body(&get(&front, target)), expected, "{target}");
    }
}

/// Ten thousand streams of HTTP/2 wait for one page; their connections are dropped.
#[test]
fn ten_thousand_waiters_may_leave() {
    let (release, wait) = std::sync::mpsc::sync_channel::<()>(1);
    let wait = Mutex::new(wait);
    let origin = Origin::start(move |_| {
        let wait = wait.lock().unwrap_or_else(PoisonError::into_inner);
        // Once nobody releases any more, further fetches are answered at once.
        wait.recv().ok();
        (ok(FRESH, "page"), false)
    });
    let (front, _directory) = steered(&origin, |config| {
        config.listeners[0].protocols = Protocols::Both;
        // However slowly the heads are taken in, the fetch waits for the last.
        config.upstreams[0].backends[0].first_byte_timeout = NEVER;
    });
    let fields: [(&[u8], &[u8]); 4] = [
        (b":method", b"GET"),
        (b":scheme", b"http"),
        (b":authority", b"a"),
        (b":path", b"/"),
    ];
    let head = |stream| {
        frame(
            kind::HEADERS,
            END_HEADERS | END_STREAM,
            stream,
            &block(&fields),
        )
    };
    let connections: Vec<Http2Client> = (0..100)
        .map(|_| {
            let mut client = Http2Client::connect(tcp(&front, 0)).unwrap();
            let heads: Vec<u8> = (0..100).flat_map(|at| head(2 * at + 1)).collect();
            client.send(&[opening(65_535), heads].concat(), usize::MAX);
            client
        })
        .collect();
    let waiters = |wanted: &str| {
        let line = format!("catamaran_cache_waiters{{cache=\"pages\"}} {wanted}");
        let is_so = || {
            let (_, text) = admin(&front, "GET", "/metrics", "");
            text.lines().any(|it| it == line).then_some(())
        };
        Deadline::default().poll(&line, is_so).unwrap();
    };
    waiters("10000");
    drop(connections);
    waiters("0");
    let mut last = HttpClient::connect(tcp(&front, 0)).unwrap();
    last.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    // Should the fetch have been given up with the last waiter, another may be under way.
    drop(release);
    assert_eq!(last.receive().unwrap().body, b"page");
}
