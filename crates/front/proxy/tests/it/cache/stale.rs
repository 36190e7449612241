//! Stale responses: while another is fetched, and when none can be had.

use std::time::Duration;

use catamaran_testkit::Deadline;

use super::*;

/// A cache whose responses are stale at once, and of use for a minute.
fn lasting() -> CacheConfig {
    let mut pages = cache();
    pages.freshness.ttl = vec![(200..=200, 0)];
    pages.freshness.stale_if_error = 60;
    // Only a failure leads to a stale response, however slow the machine is.
    pages.stale_wait = NEVER;
    pages
}

/// An origin that answers once, and then as `then` says.
fn once(then: impl Fn(&Asked) -> (Vec<u8>, bool) + Send + Sync + 'static) -> Origin {
    Origin::start(move |asked| match asked.count {
        1 => (ok("", "page"), false),
        _ => then(asked),
    })
}

#[test]
fn a_backend_that_fails_is_not_seen() {
    let origin = once(|_| (Vec::new(), true));
    let front = front(&origin, lasting());
    assert_eq!(body(&get(&front, "/")), "page");
    for _ in 0..3 {
        let stale = get(&front, "/");
        assert_eq!((stale.status, body(&stale)), (200, "page"));
        assert!(
            status(&stale).starts_with("catamaran; hit; ttl="),
            "{stale:?}"
        );
    }
}

#[test]
fn a_status_of_a_redeploy_is_not_seen() {
    let origin = once(|_| (response("404 Not Found", "", "gone"), false));
    let mut pages = lasting();
    pages.stale_status = vec![404..=404];
    let front = front(&origin, pages);
    get(&front, "/");
    for _ in 0..3 {
        assert_eq!(body(&get(&front, "/")), "page");
    }
    // What is not stored is answered as it is.
    assert_eq!(get(&front, "/other").status, 200);
}

#[test]
fn a_status_that_is_none_of_them_is_passed_on() {
    let origin = once(|_| (response("404 Not Found", "", "gone"), false));
    let front = front(&origin, lasting());
    get(&front, "/");
    assert_eq!(get(&front, "/").status, 404);
}

#[test]
fn a_backend_that_is_silent_is_not_waited_for() {
    let (release, wait) = std::sync::mpsc::sync_channel::<()>(1);
    let wait = Mutex::new(wait);
    let origin = once(move |_| {
        wait.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv()
            .ok();
        (ok("", "late"), false)
    });
    let mut pages = lasting();
    pages.stale_wait = Duration::from_millis(50);
    pages.stale_retry = Duration::from_secs(60);
    let front = front(&origin, pages);
    assert_eq!(body(&get(&front, "/")), "page");
    assert_eq!(body(&get(&front, "/")), "page");
    assert_eq!(body(&get(&front, "/")), "page");
    Deadline::default()
        .poll("the fetch goes on", || {
            (origin.count("/") == 2).then_some(())
        })
        .unwrap();
    release.send(()).unwrap();
    Deadline::default()
        .poll("the late page is stored", || {
            (body(&get(&front, "/")) == "late").then_some(())
        })
        .unwrap();
}

#[test]
fn what_must_be_validated_is_never_used_stale() {
    for fields in [
        "Cache-Control: max-age=0, must-revalidate\r\nETag: \"e\"\r\n",
        "Cache-Control: no-cache\r\nETag: \"e\"\r\n",
        "Cache-Control: s-maxage=0\r\nETag: \"e\"\r\n",
    ] {
        let origin = Origin::start(move |asked| match asked.count {
            1 => (ok(fields, "page"), false),
            _ => (Vec::new(), true),
        });
        let front = front(&origin, lasting());
        assert_eq!(get(&front, "/").status, 200);
        assert_eq!(get(&front, "/").status, 502, "{fields}");
    }
}

#[test]
fn a_stale_page_is_sent_while_another_is_fetched() {
    let origin = Origin::start(|asked| {
        let fields = match asked.count {
            1 => "Cache-Control: max-age=0, stale-while-revalidate=60\r\n",
            _ => FRESH,
        };
        (ok(fields, &asked.count.to_string()), false)
    });
    let front = front(&origin, cache());
    assert_eq!(body(&get(&front, "/")), "1");
    assert_eq!(body(&get(&front, "/")), "1");
    Deadline::default()
        .poll("the new page is there", || {
            (body(&get(&front, "/")) == "2").then_some(())
        })
        .unwrap();
    assert_eq!(origin.count("/"), 2);
}

/// Those who wait for the fetch of another one have the stale page, too.
#[test]
fn a_status_of_a_redeploy_is_seen_by_none_of_many() {
    let origin = once(|_| (response("404 Not Found", "", "gone"), false));
    let mut pages = lasting();
    pages.stale_status = vec![404..=404];
    pages.stale_retry = Duration::from_millis(1);
    let front = front(&origin, pages);
    get(&front, "/");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_eq!(body(&get(&front, "/")), "page");
                }
            });
        }
    });
}
