//! What a route says of its responses' fields, on answers that the front makes itself.

use std::sync::Arc;

use bytes::Bytes;
use catamaran_proxy::config::{
    Address, BackendConfig, CacheConfig, ErrorPages, FieldName, FieldRule, FilesConfig, Page,
    Placeholder, Protocol, Redirect, RouteConfig, RouteRules, RouteTarget, RouteText, Template,
    UpstreamConfig,
};
use http::{HeaderValue, StatusCode};

use crate::cache::{Origin, response};
use crate::files::{Client, Got, Tree};
use crate::{Front, config, loopback, start, tcp};

fn rules() -> RouteRules {
    let template = |value| Template::parse(value, Placeholder::OF_FIELDS).unwrap();
    let set = |(name, value)| FieldRule::Set(FieldName::from_static(name), template(value));
    RouteRules {
        response_headers: OF_BODIES
            .into_iter()
            .chain(OF_ALL)
            .map(set)
            .map(Into::into)
            .collect(),
        ..RouteRules::default()
    }
}

fn route(path: &str, target: RouteTarget, rules: RouteRules) -> RouteConfig {
    RouteConfig {
        rules: Some(Arc::new(rules)),
        ..RouteConfig::new(path, target)
    }
}

fn upstream(name: &str) -> RouteTarget {
    RouteTarget::Upstream(name.to_owned())
}

/// A front with a route for each way to an answer of its own. The origin answers 500 below `/error`.
fn front(tree: &Tree, origin: &Origin) -> Front {
    let gone = catamaran_testkit::address::refusing().unwrap();
    let gone = Address::Tcp {
        host: gone.ip().to_string(),
        port: gone.port(),
    };
    let mut config = config(&[loopback()], vec![origin.backend()]);
    config.listeners[0].protocols = catamaran_proxy::config::Protocols::Both;
    let dead = BackendConfig::new(Protocol::Http, gone);
    config
        .upstreams
        .push(UpstreamConfig::new("dead", vec![dead]));
    config.caches = vec![CacheConfig::new("pages")];
    config.error_pages = Some(Arc::new(ErrorPages {
        pages: vec![(
            500..=500,
            Arc::new(Page {
                file: "500.txt".into(),
                content_type: "text/plain",
                body: Some(Bytes::from_static(b"sorry")),
            }),
        )],
        replaced: vec![500..=500],
        maintenance: None,
    }));
    let cache = || Some("pages".to_owned());
    config.routes = vec![
        route(
            "/",
            RouteTarget::Files,
            RouteRules {
                files: Some(Arc::new(FilesConfig::new(tree.root()))),
                ..rules()
            },
        ),
        route("/dead", upstream("dead"), rules()),
        route("/error", upstream("app"), rules()),
        route(
            "/cached",
            upstream("app"),
            RouteRules {
                cache: cache(),
                ..rules()
            },
        ),
        route(
            "/denied",
            upstream("app"),
            RouteRules {
                deny: vec!["127.0.0.0/8".parse().unwrap()],
                ..rules()
            },
        ),
        route(
            "/away",
            RouteTarget::Redirect(Redirect {
                to: Template::parse("https://b/", Placeholder::OF_REDIRECTS).unwrap(),
                status: StatusCode::PERMANENT_REDIRECT,
            }),
            rules(),
        ),
        route("/off", RouteTarget::Status(StatusCode::GONE), rules()),
        route(
            "/done",
            RouteTarget::Status(StatusCode::NO_CONTENT),
            rules(),
        ),
    ];
    start(config).unwrap()
}

fn origin() -> Origin {
    Origin::start(|asked| {
        let fields = "Cache-Control: max-age=60\r\nContent-Type: text/plain\r\n";
        let status = if asked.target.contains("error") {
            "500 Oops"
        } else {
            "200 OK"
        };
        (response(status, fields, "0123456789"), false)
    })
}

fn has(got: &Got, (name, value): (&str, &str)) -> bool {
    got.headers.get_all(name).iter().any(|it| it == value)
}

#[test]
fn answers_of_the_front_have_no_fields_of_a_routes_bodies() {
    let (tree, origin) = (Tree::new(), origin());
    let running = front(&tree, &origin);
    let ask = |client: Client, method, path, fields: &[(&str, String)]| {
        client.ask(tcp(&running, 0), method, path, fields)
    };
    let range = || vec![("range", "bytes=99999-".to_owned())];
    for client in Client::BOTH {
        for (method, path, fields, status) in [
            ("GET", "/none", vec![], 404),
            ("GET", "/dir2", vec![], 308),
            ("DELETE", "/page.html", vec![], 405),
            ("GET", "/page.html", range(), 416),
            (
                "GET",
                "/page.html",
                vec![("if-match", "\"x\"".to_owned())],
                412,
            ),
            ("GET", "/dead", vec![], 503),
            ("GET", "/denied", vec![], 403),
            ("GET", "/away", vec![], 308),
            ("GET", "/off", vec![], 410),
            ("GET", "/error", vec![], 500),
            ("GET", "/cached/error", vec![], 500),
        ] {
            let got = ask(client, method, path, &fields);
            assert_eq!(got.status, status, "{client:?} {method} {path}");
            for field in OF_BODIES {
                assert!(!has(&got, field), "{client:?} {path} {status} {field:?}");
            }
            for field in OF_ALL {
                assert!(has(&got, field), "{client:?} {path} {status} {field:?}");
            }
        }
    }
    // What is served has them.
    for path in ["/page.html", "/cached/page"] {
        let got = ask(Client::Http1, "GET", path, &[]);
        assert_eq!(got.status, 200);
        for field in OF_BODIES.into_iter().chain(OF_ALL) {
            assert!(has(&got, field), "{path} {field:?}");
        }
    }
    let beyond = ask(Client::Http1, "GET", "/cached/page", &range());
    assert_eq!(beyond.status, 416, "cut from what is stored");
    for field in OF_BODIES {
        assert!(!has(&beyond, field), "{field:?}");
    }
}

#[test]
fn an_empty_answer_of_a_route_has_the_fields_of_a_life() {
    let (tree, origin) = (Tree::new(), origin());
    let running = front(&tree, &origin);
    let got = Client::Http1.ask(tcp(&running, 0), "GET", "/done", &[]);
    assert_eq!(got.status, 204);
    for field in OF_BODIES.into_iter().chain(OF_ALL) {
        let is_of_body = field.0.starts_with("content-") && field.0 != "content-security-policy";
        assert_eq!(has(&got, field), !is_of_body, "{field:?}");
    }
}

#[test]
fn a_text_shows_the_counts_of_the_front() {
    let mut config = config(&[loopback()], Vec::new());
    let text = RouteText {
        content: Template::parse_text(COUNTS, Placeholder::OF_TEXTS),
        media_type: HeaderValue::from_static("text/plain"),
    };
    let rules = RouteRules {
        text: Some(Arc::new(text)),
        ..RouteRules::default()
    };
    config.routes = vec![route("/counts", RouteTarget::Status(StatusCode::OK), rules)];
    let running = start(config).unwrap();
    for number in 1..3 {
        let got = Client::Http1.ask(tcp(&running, 0), "GET", "/counts", &[]);
        let text = String::from_utf8_lossy(&got.body);
        assert!(text.ends_with(&format!(" {number} {number}")), "{text}");
    }
}

/// RFC 9110, section 15.4.5: a 304 says what the 200 would say of its life, and nothing of a body.
#[test]
fn a_304_has_the_fields_of_a_life_and_none_of_a_body() {
    let (tree, origin) = (Tree::new(), origin());
    let running = front(&tree, &origin);
    let star = [("if-none-match", "*".to_owned())];
    let got = Client::Http1.ask(tcp(&running, 0), "GET", "/page.html", &star);
    assert_eq!(got.status, 304);
    for field in OF_BODIES.into_iter().chain(OF_ALL) {
        let is_of_body = field.0.starts_with("content-") && field.0 != "content-security-policy";
        assert_eq!(has(&got, field), !is_of_body, "{field:?}");
    }
}

const COUNTS: &str = "{connections_open} {connections_accepted} {requests_received}";

/// What describes a body or its life, and so none of ours.
const OF_BODIES: [(&str, &str); 11] = [
    ("cache-control", "public, max-age=31536000"),
    ("cdn-cache-control", "max-age=60"),
    ("expires", "Thu, 01 Jan 2099 00:00:00 GMT"),
    ("age", "7"),
    ("etag", "\"of-the-route\""),
    ("last-modified", "Thu, 01 Jan 2009 00:00:00 GMT"),
    ("content-encoding", "gzip"),
    ("content-language", "la"),
    ("content-disposition", "attachment"),
    ("accept-ranges", "bytes, of-the-route"),
    ("set-cookie", "seen=1"),
];

/// What holds for every response.
const OF_ALL: [(&str, &str); 3] = [
    ("x-frame-options", "DENY"),
    ("content-security-policy", "default-src 'self'"),
    ("vary", "Origin"),
];
