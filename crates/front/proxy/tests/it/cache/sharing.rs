//! Clients that want the same at the same time, and clients that must not share.

use std::sync::Barrier;

use catamaran_testkit::Deadline;

use super::operate::{admin, steered};
use super::*;

#[test]
fn many_at_once_are_one_fetch() {
    let origin = Origin::saying(FRESH);
    let front = front(&origin, cache());
    let bodies: Vec<String> = thread::scope(|scope| {
        let asking: Vec<_> = (0..50)
            .map(|_| scope.spawn(|| body(&get(&front, "/")).to_owned()))
            .collect();
        asking.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert!(bodies.iter().all(|body| body == "/ 1"), "{bodies:?}");
    assert_eq!(origin.count("/"), 1);
}

#[test]
fn what_is_not_shared_is_fetched_by_each() {
    let origin = Origin::saying("Cache-Control: no-store\r\n");
    let front = front(&origin, cache());
    let mut bodies: Vec<String> = thread::scope(|scope| {
        let asking: Vec<_> = (0..20)
            .map(|_| scope.spawn(|| body(&get(&front, "/")).to_owned()))
            .collect();
        asking.into_iter().map(|it| it.join().unwrap()).collect()
    });
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies.len(), 20);
}

#[test]
fn the_one_that_asked_first_may_leave() {
    let gate = Arc::new(Barrier::new(2));
    let at_origin = Arc::clone(&gate);
    let origin = Origin::start(move |asked| {
        if asked.count == 1 {
            at_origin.wait();
            at_origin.wait();
        }
        (ok(FRESH, &"x".repeat(100_000)), false)
    });
    let front = front(&origin, cache());
    let mut first = HttpClient::connect(tcp(&front, 0)).unwrap();
    first.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    gate.wait();
    thread::scope(|scope| {
        let second = scope.spawn(|| get(&front, "/"));
        drop(first);
        gate.wait();
        assert_eq!(second.join().unwrap().body.len(), 100_000);
    });
    assert_eq!(get(&front, "/").body.len(), 100_000);
}

/// Whatever is missing of a response, nobody takes it for whole, and nothing of it is stored.
#[test]
fn a_response_that_is_cut_anywhere_is_never_served_whole() {
    let whole = ok(FRESH, "0123456789");
    let length = whole.len();
    let origin = Origin::start(move |asked| {
        let at: usize = asked.target[1..].parse().unwrap();
        match asked.count {
            1 => (whole[..at].to_vec(), true),
            _ => (ok(FRESH, "again"), false),
        }
    });
    let mut backend = origin.backend();
    backend.retry_status = Vec::new();
    let mut config = cached(backend, cache());
    config.upstreams[0].retries = 0;
    let front = start(config).unwrap();
    for at in 0..length {
        let target = format!("/{at}");
        let mut client = HttpClient::connect(tcp(&front, 0)).unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        client.send(request.as_bytes()).unwrap();
        if let Ok(response) = client.receive() {
            assert!(response.status >= 500, "cut at {at}: {response:?}");
        }
        assert_eq!(body(&get(&front, &target)), "again", "cut at {at}");
    }
}

#[test]
fn a_page_of_one_user_is_never_another_ones() {
    let origin = Origin::start(|asked| {
        let user = asked
            .field("cookie")
            .or_else(|| asked.field("authorization"));
        (ok(FRESH, user.unwrap_or("nobody")), false)
    });
    let front = front(&origin, cache());
    let ann = "Cookie: x=1; JSESSIONID=ann\r\n";
    let bob = "Authorization: Basic bob\r\n";
    for _ in 0..2 {
        assert_eq!(body(&get(&front, "/")), "nobody");
        assert_eq!(body(&get_as(&front, "/", ann)), "x=1; JSESSIONID=ann");
        assert_eq!(body(&get_as(&front, "/", bob)), "Basic bob");
    }
}

#[test]
fn a_public_page_is_for_users_with_a_session_too() {
    let origin = Origin::saying("Cache-Control: public, max-age=60\r\n");
    let front = front(&origin, cache());
    let session = "Cookie: JSESSIONID=ann\r\n";
    assert_eq!(body(&get_as(&front, "/", session)), "/ 1");
    assert_eq!(body(&get(&front, "/")), "/ 1");
    assert_eq!(body(&get_as(&front, "/", session)), "/ 1");
}

/// The front goes on with the request of a slow client as if it were not there.
#[test]
fn nobody_waits_for_a_slow_client() {
    let origin = Origin::start(|_| (ok(FRESH, &"x".repeat(4 << 20)), false));
    let front = front(&origin, cache());
    let mut slow = HttpClient::connect(tcp(&front, 0)).unwrap();
    slow.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    Deadline::default()
        .poll("the origin is asked", || {
            (origin.count("/") == 1).then_some(())
        })
        .unwrap();
    assert_eq!(get(&front, "/").body.len(), 4 << 20);
    assert_eq!(slow.receive().unwrap().body.len(), 4 << 20);
    assert_eq!(origin.count("/"), 1);
}

/// Who waits for a fetch that somebody with other credentials began does not get what is for that one alone.
#[test]
fn who_follows_a_fetch_gets_what_is_for_both() {
    let session = "Cookie: JSESSIONID=ann\r\n";
    for validates in [false, true] {
        for (leader, follower) in [("", session), (session, "")] {
            let gate = Arc::new(Barrier::new(2));
            let at_origin = Arc::clone(&gate);
            let origin = Origin::start(move |asked| {
                let user = asked.field("cookie").unwrap_or("nobody");
                let bytes = match asked.count {
                    1 => ok("Cache-Control: public, max-age=0\r\nETag: \"e\"\r\n", "all"),
                    2 => {
                        at_origin.wait();
                        at_origin.wait();
                        if validates && leader.is_empty() {
                            format!("HTTP/1.1 304 Not Modified\r\n{FRESH}\r\n").into_bytes()
                        } else {
                            ok(FRESH, user)
                        }
                    }
                    _ => ok(FRESH, user),
                };
                (bytes, false)
            });
            let (front, _directory) = steered(&origin, |_| {});
            get(&front, "/");
            thread::scope(|scope| {
                scope.spawn(|| get_as(&front, "/", leader));
                gate.wait();
                let second = scope.spawn(|| get_as(&front, "/", follower));
                let line = "catamaran_cache_waiters{cache=\"pages\"} 2";
                let waits = || {
                    let (_, text) = admin(&front, "GET", "/metrics", "");
                    text.lines().any(|it| it == line).then_some(())
                };
                Deadline::default().poll(line, waits).unwrap();
                gate.wait();
                let own = if follower.is_empty() {
                    "nobody"
                } else {
                    "JSESSIONID=ann"
                };
                assert_eq!(body(&second.join().unwrap()), own, "after {leader:?}");
            });
        }
    }
}
