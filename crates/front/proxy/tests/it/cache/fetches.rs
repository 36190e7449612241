//! Fetches for the cache: each has an end, whoever reads it.

use std::mem::MaybeUninit;
use std::time::Duration;

use catamaran_testkit::Deadline;

use super::operate::{admin, steered};
use super::*;

/// Waits until no fetch is under way, nobody waits for one, and no room is taken.
fn await_no_fetch(front: &Front) {
    let is_over = || {
        let (_, text) = admin(front, "GET", "/api/v1/caches", "");
        let all = ["fills_open", "fill_bytes", "waiters"];
        let is_none = |name: &&str| text.contains(&format!("\"{name}\":0"));
        all.iter().all(is_none).then_some(())
    };
    Deadline::default()
        .poll("no fetch is under way", is_over)
        .unwrap();
}

/// A page that is stale at once, and whose next response is long and may not be stored.
fn stale_then(fields: &'static str, chunked: bool) -> Origin {
    Origin::start(move |asked| {
        let bytes = match (&asked.target[..], asked.count) {
            ("/page", 1) => ok(
                "Cache-Control: max-age=0, stale-while-revalidate=600\r\n",
                "page",
            ),
            ("/page", _) if chunked => {
                let body = "x".repeat(LONG);
                format!(
                    "HTTP/1.1 200 OK\r\n{fields}Transfer-Encoding: chunked\r\n\r\n{LONG:x}\r\n{body}\r\n0\r\n\r\n"
                )
                .into_bytes()
            }
            ("/page", _) => ok(fields, &"x".repeat(LONG)),
            _ => ok("Cache-Control: no-store\r\n", "other"),
        };
        (bytes, false)
    })
}

#[test]
fn fetches_that_nobody_reads_take_no_connection() {
    for (fields, chunked) in [
        ("Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n", false),
        ("Cache-Control: no-store\r\n", false),
        ("Cache-Control: no-store\r\n", true),
        // It turns out to be too long.
        ("Cache-Control: max-age=60\r\n", true),
    ] {
        let origin = stale_then(fields, chunked);
        let (front, _directory) = steered(&origin, |config| {
            let backend = &mut config.upstreams[0].backends[0];
            backend.connections_max = 1;
            // A fetch that kept its connection would keep the next request waiting.
            backend.queue_timeout = NEVER;
        });
        for _ in 0..10 {
            let page = get(&front, "/page");
            assert!(matches!(page.body.len(), 4 | LONG), "{fields}: {page:?}");
        }
        Deadline::default()
            .poll("the page is fetched anew", || {
                (origin.count("/page") > 1).then_some(())
            })
            .unwrap();
        await_no_fetch(&front);
        for _ in 0..4 {
            assert_eq!(body(&get(&front, "/other")), "other", "{fields}");
        }
    }
}

/// Clients that read slowly do not keep the responses of others from being stored, and get all of their own.
#[test]
fn slow_readers_keep_nobody_from_storing() {
    const BODY: usize = 8 << 20;
    let origin = Origin::start(|asked| {
        let public = "Cache-Control: public, max-age=60\r\n";
        let bytes = match &asked.target[..] {
            "/other" => ok(FRESH, &"y".repeat(BODY)),
            "/chunked" => {
                let half = BODY / 2;
                let piece = "x".repeat(half);
                let head = format!("HTTP/1.1 200 OK\r\n{public}Transfer-Encoding: chunked\r\n\r\n");
                let rest = format!("{half:x}\r\n{piece}\r\n").repeat(2);
                format!("{head}{rest}0\r\n\r\n").into_bytes()
            }
            _ => ok(public, &"x".repeat(BODY)),
        };
        (bytes, false)
    });
    for (target, fields) in [
        ("/led", ""),
        ("/beside", "Cookie: JSESSIONID=ann\r\n"),
        ("/chunked", "Cookie: JSESSIONID=ann\r\n"),
    ] {
        // What is being received may take as much as one such body.
        let mut pages = cache();
        pages.memory = 8 * BODY as u64;
        let mut config = cached(origin.backend(), pages);
        config.listeners[0].write_timeout = Duration::from_secs(3600);
        config.listeners[0].write_rate_min = 0;
        let front = start(config).unwrap();
        let mut slow = HttpClient::connect(tcp(&front, 0)).unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        slow.send(request.as_bytes()).unwrap();
        // It has begun.
        assert_eq!(slow.socket().peek(&mut [MaybeUninit::uninit()]).unwrap(), 1);
        let stored = || {
            let other = get(&front, "/other");
            assert_eq!(other.body.len(), BODY);
            status(&other).contains("hit").then_some(())
        };
        Deadline::default()
            .poll("another is stored", stored)
            .unwrap();
        assert_eq!(slow.receive().unwrap().body.len(), BODY, "{target}");
    }
}

/// Clients of all kinds that come and leave, and responses of all kinds that are cut, purged and fetched anew: in the
/// end no fetch is under way, nobody waits, and no room is taken.
#[test]
fn every_fetch_has_an_end() {
    let origin = Origin::start(|asked| {
        let page = "x".repeat(300_000);
        let stale = "Cache-Control: public, max-age=0, stale-while-revalidate=9, stale-if-error=9\r\nETag: \"e\"\r\n";
        let head = format!("HTTP/1.1 200 OK\r\n{stale}Transfer-Encoding: chunked\r\n\r\n");
        match asked.count % 8 {
            0 => (b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec(), false),
            1 => (ok(stale, &page), false),
            2 => (ok("Cache-Control: no-store\r\n", &page), false),
            3 => (ok(&format!("{stale}Set-Cookie: a=b\r\n"), &page), false),
            4 => (format!("{head}fff\r\nxx").into_bytes(), true),
            5 => (response("503 Busy", "", "busy"), false),
            6 => (format!("{head}3\r\nabc\r\n0\r\n\r\n").into_bytes(), false),
            _ => (
                ok(&format!("{stale}Vary: Accept-Language\r\n"), &page),
                false,
            ),
        }
    });
    let mut pages = cache();
    pages.object_max = 200_000;
    let (front, _directory) = steered(&origin, |config| {
        config.upstreams[0].backends[0].connections_max = 5;
        config.caches = vec![pages.clone()];
    });
    let fields = [
        "",
        "Range: bytes=0-\r\n",
        "Range: bytes=9-99\r\n",
        "If-None-Match: \"e\"\r\n",
        "Cookie: JSESSIONID=a\r\n",
        "Accept-Language: de\r\n",
        "Cache-Control: no-cache\r\n",
    ];
    thread::scope(|scope| {
        for of in 0..30 {
            let (front, fields) = (&front, &fields);
            scope.spawn(move || {
                for turn in 0..30 {
                    let target = (of + turn) % 5;
                    let asking = fields[(of * 7 + turn) % fields.len()];
                    let request = format!("GET /{target} HTTP/1.1\r\nHost: a\r\n{asking}\r\n");
                    let mut client = HttpClient::connect(tcp(front, 0)).unwrap();
                    client.send(request.as_bytes()).unwrap();
                    // One in three leaves before the head, one within the body.
                    match turn % 3 {
                        0 => {}
                        1 => drop(client.receive_head()),
                        _ => drop(client.receive()),
                    }
                    if of == 0 && turn % 10 == 9 {
                        let wish = "{\"all\": true}";
                        admin(front, "POST", "/api/v1/caches/pages/purge", wish);
                    }
                }
            });
        }
    });
    await_no_fetch(&front);
    assert_eq!(get(&front, "/other").status, 200);
}

/// More than the front and the sockets' buffers hold.
const LONG: usize = 16 << 20;
