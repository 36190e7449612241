//! What is stored, how it is found again, and what takes it away.

use std::sync::Arc;

use catamaran_proxy::config::{
    FieldName, FieldRule, Placeholder, Rewrite, RouteRules, RouteTarget, Template, UpstreamConfig,
};

use super::*;

#[test]
fn the_second_client_gets_what_the_first_had_fetched() {
    let origin = Origin::saying("Cache-Control: max-age=60\r\nETag: \"e\"\r\n");
    let front = front(&origin, cache());
    let first = get(&front, "/a");
    let second = get(&front, "/a");
    assert_eq!((body(&first), body(&second)), ("/a 1", "/a 1"));
    assert_eq!(field(&first, "age"), None);
    let age: u32 = field(&second, "age").unwrap().parse().unwrap();
    assert!(age < 60, "{age}");
    assert_eq!(
        status(&first),
        "catamaran; fwd=miss; fwd-status=200; stored"
    );
    assert!(
        status(&second).starts_with("catamaran; hit; ttl="),
        "{second:?}"
    );
    assert_eq!(field(&second, "etag"), Some("\"e\""));
    assert!(field(&second, "date").is_some());
    assert_eq!(body(&get(&front, "/b")), "/b 1");
    assert_eq!(origin.count("/a"), 1);
}

#[test]
fn what_says_so_is_fetched_each_time() {
    for fields in [
        "Cache-Control: no-store\r\n",
        "Cache-Control: private, max-age=60\r\n",
        "Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n",
        "Cache-Control: max-age=60\r\nVary: *\r\n",
        "",
    ] {
        let origin = Origin::saying(fields);
        let front = front(&origin, cache());
        for count in 1..=3 {
            assert_eq!(body(&get(&front, "/")), format!("/ {count}"), "{fields}");
        }
    }
}

#[test]
fn conditions_ranges_and_heads_are_answered_from_memory() {
    let origin = Origin::start(|_| {
        let fields = "Cache-Control: max-age=60\r\nETag: \"e\"\r\nContent-Type: text/plain\r\n";
        (ok(fields, "0123456789"), false)
    });
    let front = front(&origin, cache());
    // The first, too, is judged on what came.
    let first = get_as(&front, "/", "If-None-Match: \"e\"\r\n");
    assert_eq!((first.status, body(&first)), (304, ""));
    let known = get_as(&front, "/", "If-None-Match: \"x\", W/\"e\"\r\n");
    assert_eq!((known.status, field(&known, "content-type")), (304, None));
    assert_eq!(get_as(&front, "/", "If-None-Match: \"x\"\r\n").status, 200);
    let part = get_as(&front, "/", "Range: bytes=2-4\r\n");
    assert_eq!((part.status, body(&part)), (206, "234"));
    assert_eq!(field(&part, "content-range"), Some("bytes 2-4/10"));
    let beyond = get_as(&front, "/", "Range: bytes=10-\r\n");
    assert_eq!(
        (beyond.status, field(&beyond, "content-range")),
        (416, Some("bytes */10"))
    );
    let other = get_as(&front, "/", "Range: bytes=2-4\r\nIf-Range: \"x\"\r\n");
    assert_eq!((other.status, body(&other)), (200, "0123456789"));
    let head = ask_as(&front, "HEAD", "/", "");
    assert_eq!(
        (head.status, field(&head, "content-length")),
        (200, Some("10"))
    );
    assert_eq!(origin.count("/"), 1);
}

#[test]
fn missed_ranges_and_heads_are_forwarded() {
    let origin = Origin::start(|asked| {
        let bytes = match asked.field("range") {
            Some(_) => response(
                "206 Partial Content",
                "Content-Range: bytes 0-1/4\r\n",
                "ab",
            ),
            None if asked.text.starts_with("HEAD") => {
                b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\n"
                    .to_vec()
            }
            None => ok(FRESH, "abcd"),
        };
        (bytes, false)
    });
    let front = front(&origin, cache());
    let part = get_as(&front, "/", "Range: bytes=0-1\r\n");
    assert_eq!(part.status, 206);
    assert!(status(&part).ends_with("; detail=range"), "{part:?}");
    assert_eq!(ask_as(&front, "HEAD", "/", "").status, 200);
    assert_eq!(body(&get(&front, "/")), "abcd");
    assert_eq!(body(&get(&front, "/")), "abcd");
    assert_eq!(origin.count("/"), 3);
}

/// As players and download managers ask for it.
#[test]
fn a_range_of_all_of_it_is_one_fetch_of_all_of_it() {
    let origin = Origin::start(|asked| {
        let bytes = match (&asked.target[..], asked.field("range")) {
            (_, Some(_)) => response(
                "206 Partial Content",
                "Content-Range: bytes 0-3/4\r\n",
                "abcd",
            ),
            ("/whole", None) => ok("Cache-Control: max-age=60\r\nETag: \"e\"\r\n", "abcd"),
            (_, None) => ok("Cache-Control: no-store\r\n", "abcd"),
        };
        (bytes, false)
    });
    let front = front(&origin, cache());
    let parts: Vec<Response> = thread::scope(|scope| {
        let ask = || get_as(&front, "/whole", "Range: bytes=0-\r\n");
        let asking: Vec<_> = (0..10).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().map(|it| it.join().unwrap()).collect()
    });
    for part in parts {
        let range = field(&part, "content-range");
        assert_eq!(
            (part.status, range, body(&part)),
            (206, Some("bytes 0-3/4"), "abcd")
        );
    }
    assert_eq!(origin.count("/whole"), 1);
    assert_eq!(
        body(&get_as(&front, "/whole", "Range: bytes=1-2\r\n")),
        "bc"
    );
    let other = get_as(&front, "/whole", "Range: bytes=0-\r\nIf-Range: \"x\"\r\n");
    assert_eq!((other.status, origin.count("/whole")), (200, 1));
    // What cannot be stored is sent as it was asked for, and by one request.
    let part = get_as(&front, "/not", "Range: bytes=0-\r\n");
    assert_eq!(
        (part.status, body(&part), origin.count("/not")),
        (206, "abcd", 1)
    );
    assert!(status(&part).ends_with("; detail=no-store"), "{part:?}");
}

#[test]
fn what_is_stale_is_validated_and_updated() {
    let origin = Origin::start(|asked| {
        let fields = format!(
            "Cache-Control: max-age=0\r\nETag: \"e\"\r\nX-Count: {}\r\n",
            asked.count
        );
        let bytes = match asked.field("if-none-match") {
            Some("\"e\"") => format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n").into_bytes(),
            _ => ok(&fields, "page"),
        };
        (bytes, false)
    });
    let front = front(&origin, cache());
    assert_eq!(field(&get(&front, "/"), "x-count"), Some("1"));
    let validated = get(&front, "/");
    assert_eq!((validated.status, body(&validated)), (200, "page"));
    assert_eq!(field(&validated, "x-count"), Some("2"));
    assert!(
        status(&validated).contains("fwd-status=304"),
        "{validated:?}"
    );
}

#[test]
fn a_304_about_something_else_is_not_believed() {
    let origin = Origin::start(|asked| {
        let bytes = match asked.field("if-none-match") {
            Some(_) => b"HTTP/1.1 304 Not Modified\r\nETag: \"other\"\r\n\r\n".to_vec(),
            None => {
                let fields = "Cache-Control: max-age=0\r\nETag: \"e\"\r\n";
                ok(fields, &asked.count.to_string())
            }
        };
        (bytes, false)
    });
    let front = front(&origin, cache());
    assert_eq!(body(&get(&front, "/")), "1");
    // The second fetch was the one that was answered 304.
    assert_eq!(body(&get(&front, "/")), "3");
}

/// What the backend says of the response in one language is not said of the one in another.
#[test]
fn a_304_changes_the_response_alone_that_answers_the_request() {
    for validator in [
        // The same for all languages, as some frameworks have it.
        "ETag: \"e\"\r\n",
        "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
    ] {
        let origin = Origin::start(move |asked| {
            let language = asked.field("accept-language").unwrap_or("-").to_owned();
            let fields = format!("Vary: Accept-Language\r\nContent-Language: {language}\r\n");
            let is_known = ["if-none-match", "if-modified-since"]
                .iter()
                .any(|name| asked.field(name).is_some());
            let bytes = if is_known {
                let fields = format!("{fields}{validator}{FRESH}");
                format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n").into_bytes()
            } else {
                let fields = format!("{fields}{validator}Cache-Control: max-age=0\r\n");
                ok(&fields, &language)
            };
            (bytes, false)
        });
        let front = front(&origin, cache());
        for language in ["de", "en", "de", "en", "fr", "en", "de"] {
            let page = get_as(&front, "/", &format!("Accept-Language: {language}\r\n"));
            let seen = (body(&page), field(&page, "content-language"));
            assert_eq!(seen, (language, Some(language)), "{validator}");
        }
    }
}

#[test]
fn browsers_share_what_the_origin_codes_alike() {
    let origin = Origin::start(|asked| {
        let coding = asked.field("accept-encoding").unwrap_or("-").to_owned();
        (
            ok(
                "Cache-Control: max-age=60\r\nVary: Accept-Encoding\r\n",
                &coding,
            ),
            false,
        )
    });
    let front = front(&origin, cache());
    for (accepts, expected) in [
        ("gzip, deflate, br, zstd", "br, gzip"),
        ("gzip, deflate, br", "br, gzip"),
        ("br;q=1.0, gzip;q=0.8, *;q=0.1", "br, gzip"),
        ("gzip", "gzip"),
        ("deflate, gzip;q=0.5", "gzip"),
        ("identity", "-"),
    ] {
        let fields = format!("Accept-Encoding: {accepts}\r\n");
        assert_eq!(body(&get_as(&front, "/", &fields)), expected, "{accepts}");
    }
    assert_eq!(origin.count("/"), 3);
}

#[test]
fn a_change_takes_away_what_it_changes() {
    let origin = Origin::start(|asked| {
        let bytes = match asked.text.split(' ').next() {
            Some("POST") if asked.target == "/refused" => response("403 Forbidden", "", ""),
            Some("POST") => response("303 See Other", "Location: http://a/b\r\n", ""),
            _ => ok(FRESH, &asked.count.to_string()),
        };
        (bytes, false)
    });
    let front = front(&origin, cache());
    for target in ["/a", "/b", "/c", "/refused"] {
        get(&front, target);
    }
    ask_as(&front, "POST", "/a", "Content-Length: 0\r\n");
    ask_as(&front, "POST", "/refused", "Content-Length: 0\r\n");
    for (target, expected) in [("/a", "3"), ("/b", "2"), ("/c", "1"), ("/refused", "1")] {
        assert_eq!(body(&get(&front, target)), expected, "{target}");
    }
}

/// A cache's key does not have the method, so all that asks for a stored response is told to be a GET.
#[test]
fn a_change_takes_away_what_was_stored_for_requests_that_tell_their_method() {
    let origin = Origin::start(|asked| {
        let told = asked.field("x-method").unwrap_or("-");
        let bytes = match told {
            "POST" => response("200 OK", "", ""),
            _ => ok(FRESH, &format!("{told} {}", asked.count)),
        };
        (bytes, false)
    });
    let mut config = cached(origin.backend(), cache());
    let method = Template::parse("{method}", Placeholder::OF_FIELDS).unwrap();
    let rules = RouteRules {
        request_headers: vec![FieldRule::Set(FieldName::from_static("X-Method"), method)],
        ..RouteRules::clone(config.routes[0].rules.as_ref().unwrap())
    };
    config.routes[0].rules = Some(Arc::new(rules));
    let front = start(config).unwrap();
    assert_eq!(body(&get(&front, "/")), "GET 1");
    let head = ask_as(&front, "HEAD", "/", "");
    assert!(status(&head).contains("; hit"), "{head:?}");
    ask_as(&front, "POST", "/", "Content-Length: 0\r\n");
    assert_eq!(body(&get(&front, "/")), "GET 3");
}

/// Whichever upstream of a split is asked to change something, the pages of all are taken away.
#[test]
fn a_change_takes_away_what_others_of_a_split_gave() {
    let origin = |name: &'static str| {
        Origin::start(move |asked| {
            let bytes = match asked.text.split(' ').next() {
                Some("POST") => response("303 See Other", "Location: /b\r\n", ""),
                _ => ok(FRESH, name),
            };
            (bytes, false)
        })
    };
    let (one, other) = (origin("one"), origin("other"));
    let mut config = cached(one.backend(), cache());
    config.upstreams[0].name = "one".to_owned();
    let second = UpstreamConfig::new("other", vec![other.backend()]);
    config.upstreams.push(second);
    let shares = [("one", 1), ("other", 1)].map(|(name, weight)| (name.to_owned(), weight));
    config.routes[0].target = RouteTarget::Split(shares.into());
    let front = start(config).unwrap();
    let fill = || {
        for target in ["/a", "/b", "/c"] {
            for _ in 0..30 {
                get(&front, target);
            }
        }
        let count = |target| [one.count(target), other.count(target)];
        ["/a", "/b", "/c"].map(count)
    };
    let before = fill();
    assert_eq!(before, [[1, 1]; 3]);
    assert_eq!(fill(), before, "all are stored");
    ask_as(&front, "POST", "/a", "Content-Length: 0\r\n");
    let [changed, named, kept] = fill();
    // One of them was asked for the change as well.
    assert_eq!(changed.iter().sum::<usize>(), 5, "{changed:?}");
    assert_eq!((named, kept), ([2, 2], [1, 1]));
}

#[test]
fn what_a_query_rule_leaves_out_is_not_sent() {
    let origin = Origin::saying(FRESH);
    let mut pages = cache();
    pages.query = catamaran_proxy::config::QueryRule::Drop(vec!["utm_*".to_owned()]);
    let front = front(&origin, pages);
    for target in ["/?a=1&utm_x=2", "/?utm_y=3&a=1", "/?a=1"] {
        assert_eq!(body(&get(&front, target)), "/?a=1 1");
    }
}

#[test]
fn each_sending_is_edited_for_its_client() {
    let origin = Origin::saying(FRESH);
    let mut config = cached(origin.backend(), cache());
    let id = Template::parse("{request_id}", Placeholder::OF_FIELDS).unwrap();
    let rules = RouteRules {
        response_headers: vec![FieldRule::Set(FieldName::from_static("x-id"), id).into()],
        ..RouteRules::clone(config.routes[0].rules.as_ref().unwrap())
    };
    config.routes[0].rules = Some(Arc::new(rules));
    let front = start(config).unwrap();
    let ids: Vec<String> = (0..3)
        .map(|_| field(&get(&front, "/"), "x-id").unwrap().to_owned())
        .collect();
    assert!(ids[0] != ids[1] && ids[1] != ids[2], "{ids:?}");
    assert_eq!(origin.count("/"), 1);
}

#[test]
fn a_reload_keeps_what_is_stored_unless_requests_change() {
    let origin = Origin::saying(FRESH);
    let config = cached(origin.backend(), cache());
    let front = start(config.clone()).unwrap();
    get(&front, "/a");
    front.reload(config.clone()).unwrap();
    assert_eq!(body(&get(&front, "/a")), "/a 1");
    let mut rewritten = config;
    let rules = RouteRules {
        rewrite: Some(Rewrite {
            to: "/inner".to_owned(),
            reverse: true,
            internal_hosts: Vec::new(),
        }),
        ..RouteRules::clone(rewritten.routes[0].rules.as_ref().unwrap())
    };
    rewritten.routes[0].rules = Some(Arc::new(rules));
    front.reload(rewritten).unwrap();
    assert_eq!(body(&get(&front, "/a")), "/inner/a 1");
}

#[test]
fn a_response_without_a_length_is_stored_whole() {
    let origin = Origin::start(|asked| {
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";
        let text = match &asked.target[..] {
            "/chunked" => format!("{head}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
            _ => format!("{head}\r\nabc"),
        };
        (text.into_bytes(), asked.target != "/chunked")
    });
    let front = front(&origin, cache());
    for target in ["/chunked", "/until-close"] {
        for _ in 0..2 {
            assert_eq!(body(&get(&front, target)), "abc", "{target}");
        }
    }
    assert_eq!(origin.count("/chunked"), 1);
    // What ends with its connection may have been cut.
    assert_eq!(origin.count("/until-close"), 2);
}
