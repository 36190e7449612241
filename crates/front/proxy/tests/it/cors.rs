//! CORS of a route: preflights that the front answers, and the fields of all other responses, whoever made them.

use std::sync::Arc;
use std::time::Duration;

use catamaran_proxy::config::{
    Address, BackendConfig, CacheConfig, Config, CorsConfig, FieldName, FilesConfig, LimitBy,
    LimitConfig, OriginPattern, Protocol, Protocols, Quota, RequestConditions, Rewrite,
    RouteConfig, RouteRules, RouteTarget, Unless, UpstreamConfig,
};
use catamaran_proxy::explain::{Question, explain};
use http::{Method, StatusCode};

use crate::cache::{Origin, response};
use crate::files::{Client, Got, Tree};
use crate::{Front, config, loopback, start, tcp};

fn cors() -> CorsConfig {
    let origin = |text| OriginPattern::parse(text).unwrap();
    CorsConfig {
        origins: [APP, "https://*.example.org"].map(origin).into(),
        methods: vec![Method::GET, Method::PUT, Method::POST],
        headers: vec![FieldName::from_static("X-Own")],
        expose: vec![FieldName::from_static("X-Total")],
        credentials: true,
        max_age: Duration::from_secs(600),
    }
}

fn shared(cors: CorsConfig) -> RouteRules {
    RouteRules {
        cors: Some(Arc::new(cors)),
        ..RouteRules::default()
    }
}

fn route(path: &str, target: &str, rules: RouteRules) -> RouteConfig {
    RouteConfig {
        rules: Some(Arc::new(rules)),
        ..RouteConfig::new(path, RouteTarget::Upstream(target.to_owned()))
    }
}

fn of_method(method: Method, route: RouteConfig) -> RouteConfig {
    RouteConfig {
        methods: vec![method],
        ..route
    }
}

/// A backend that allows everybody everything, and says which method it was asked with.
fn origin() -> Origin {
    Origin::start(|asked| {
        let method = asked.text.split(' ').next().unwrap_or_default();
        let fields = format!(
            "Cache-Control: max-age=60\r\nAccess-Control-Allow-Origin: *\r\n\
             Access-Control-Allow-Methods: DELETE\r\nAccess-Control-Allow-Credentials: true\r\nX-Method: {method}\r\n"
        );
        (response("200 OK", &fields, "0123456789"), false)
    })
}

/// A limit that all requests together exceed with the second GET.
fn few() -> LimitConfig {
    LimitConfig {
        name: "few".to_owned(),
        quota: Quota::rate(1, Duration::from_secs(3600), 1),
        by: LimitBy::All,
        methods: vec![Method::GET],
        except: Vec::new(),
        prefix: [32, 64],
        enforce: true,
        fields: false,
    }
}

fn front(origin: &Origin, tree: &Tree, change: impl FnOnce(&mut Config)) -> Front {
    let gone = catamaran_testkit::address::refusing().unwrap();
    let gone = Address::Tcp {
        host: gone.ip().to_string(),
        port: gone.port(),
    };
    let mut config = config(&[loopback()], vec![origin.backend()]);
    config.listeners[0].protocols = Protocols::Both;
    let dead = BackendConfig::new(Protocol::Http, gone);
    config
        .upstreams
        .push(UpstreamConfig::new("dead", vec![dead]));
    config.caches = vec![CacheConfig::new("pages")];
    config.limits = vec![few()];
    config.routes = routes(tree);
    change(&mut config);
    start(config).unwrap()
}

/// A route for each way to a response, all but the first with the same CORS.
fn routes(tree: &Tree) -> Vec<RouteConfig> {
    let ruled = |path, change: &dyn Fn(&mut RouteRules)| {
        let mut rules = shared(cors());
        change(&mut rules);
        route(path, "app", rules)
    };
    let to = |target: RouteTarget, route: RouteConfig| RouteConfig { target, ..route };
    let files = Some(Arc::new(FilesConfig::new(tree.root())));
    vec![
        RouteConfig::new("/", RouteTarget::Upstream("app".to_owned())),
        route("/api", "app", shared(cors())),
        route("/dead", "dead", shared(cors())),
        to(
            RouteTarget::Status(StatusCode::GONE),
            ruled("/off", &|_| {}),
        ),
        to(
            RouteTarget::Files,
            ruled("/files", &|rules| {
                rules.files.clone_from(&files);
                rules.rewrite = Some(Rewrite {
                    to: "/".to_owned(),
                    reverse: false,
                    internal_hosts: Vec::new(),
                });
            }),
        ),
        ruled("/cached", &|rules| rules.cache = Some("pages".to_owned())),
        ruled("/limited", &|rules| rules.limits = vec!["few".to_owned()]),
        ruled("/small", &|rules| rules.body_max = Some(3)),
        ruled("/partners", &|rules| rules.client_certificate = true),
        ruled("/denied", &|rules| {
            rules.deny = vec!["127.0.0.0/8".parse().unwrap()];
        }),
    ]
}

fn ask(running: &Front, client: Client, method: &str, path: &str, fields: &[(&str, &str)]) -> Got {
    let fields = fields.iter();
    let fields: Vec<_> = fields
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect();
    client.ask(tcp(running, 0), method, path, &fields)
}

/// The fields of CORS of a response, and whether it varies by the origin.
fn fields(got: &Got) -> (Vec<(String, String)>, bool) {
    let all = got.headers.iter();
    let ours = all.filter(|(name, _)| name.as_str().starts_with("access-control-"));
    let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
    let mut fields: Vec<_> = ours
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect();
    fields.sort();
    (fields, got.header("vary").contains("Origin"))
}

fn allowed(origin: &str) -> (Vec<(String, String)>, bool) {
    let fields = [
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-origin", origin),
        ("access-control-expose-headers", "X-Total"),
    ];
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
    (fields.into(), true)
}

#[test]
fn every_response_of_the_route_has_the_fields_for_its_origin() {
    let (origin, tree) = (origin(), Tree::new());
    let running = front(&origin, &tree, |_| {});
    let before = ask(&running, Client::Http1, "GET", "/limited", &[]);
    assert_eq!((before.status, fields(&before)), (200, NOTHING));
    for client in Client::BOTH {
        for (method, path, status) in [
            ("GET", "/api/x", 200),
            ("HEAD", "/api/x", 200),
            ("GET", "/dead", 503),
            ("GET", "/off", 410),
            ("GET", "/files/page.html", 200),
            ("GET", "/files/none", 404),
            ("PUT", "/files/page.html", 405),
            ("GET", "/limited", 429),
            ("GET", "/partners", 403),
            ("GET", "/denied", 403),
            ("OPTIONS", "/api/x", 200),
        ] {
            let got = |origins: &[&str]| {
                let lines: Vec<_> = origins.iter().map(|it| ("origin", *it)).collect();
                let got = ask(&running, client, method, path, &lines);
                assert_eq!(got.status, status, "{client:?} {method} {path} {origins:?}");
                fields(&got)
            };
            assert_eq!(got(&[APP]), allowed(APP), "{client:?} {method} {path}");
            assert_eq!(got(&[SHOP]), allowed(SHOP), "{client:?} {method} {path}");
            for strange in [&[][..], &["null"], &[EVIL], &[APP, APP], &[APP, EVIL]] {
                assert_eq!(
                    got(strange),
                    NOTHING,
                    "{client:?} {method} {path} {strange:?}"
                );
            }
        }
    }
    let large = [("origin", APP), ("content-length", "4")];
    let refused = ask(&running, Client::Http1, "POST", "/small", &large);
    assert_eq!((refused.status, fields(&refused)), (413, allowed(APP)));
    // Of a route without it the backend's stay.
    let other = ask(&running, Client::Http1, "GET", "/", &[("origin", EVIL)]);
    assert_eq!(other.header("access-control-allow-origin"), "*");
    assert!(!fields(&other).1);
}

#[test]
fn what_a_cache_stores_is_for_every_origin() {
    let (origin, tree) = (origin(), Tree::new());
    let running = front(&origin, &tree, |_| {});
    for _ in 0..2 {
        for (asked, expected) in [(APP, allowed(APP)), (EVIL, NOTHING), (SHOP, allowed(SHOP))] {
            let got = ask(
                &running,
                Client::Http1,
                "GET",
                "/cached/x",
                &[("origin", asked)],
            );
            assert_eq!((got.status, fields(&got)), (200, expected), "{asked}");
        }
        let same = [("origin", APP), ("if-none-match", "\"none\"")];
        let got = ask(&running, Client::Http1, "GET", "/cached/x", &same);
        assert_eq!(fields(&got), allowed(APP));
    }
    assert_eq!(origin.count("/cached/x"), 1);
}

fn preflight<'f>(origin: &'f str, method: &'f str) -> Vec<(&'f str, &'f str)> {
    vec![
        ("origin", origin),
        ("access-control-request-method", method),
    ]
}

fn granted(method: &str) -> (Vec<(String, String)>, bool) {
    let fields = [
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-headers", "X-Own"),
        ("access-control-allow-methods", method),
        ("access-control-allow-origin", APP),
        ("access-control-max-age", "600"),
    ];
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
    (fields.into(), true)
}

#[test]
fn preflights_are_answered_before_backends_and_certificates() {
    let (origin, tree) = (origin(), Tree::new());
    let running = front(&origin, &tree, |_| {});
    for client in Client::BOTH {
        for path in [
            "/api/x",
            "/dead",
            "/off",
            "/files/none",
            "/cached/x",
            "/limited",
            "/partners",
        ] {
            let got = ask(&running, client, "OPTIONS", path, &preflight(APP, "PUT"));
            assert_eq!((got.status, fields(&got)), (204, granted("PUT")), "{path}");
            assert_eq!(got.body, b"");
            assert_eq!(got.header("content-length"), "");
            let field = [
                preflight(APP, "PUT"),
                vec![("access-control-request-headers", "x-own")],
            ];
            let got = ask(&running, client, "OPTIONS", path, &field.concat());
            assert_eq!(fields(&got), granted("PUT"), "{path}");
            for (origin, method, headers) in [
                (EVIL, "PUT", ""),
                ("null", "PUT", ""),
                (APP, "DELETE", ""),
                (APP, "put", ""),
                (APP, "", ""),
                (APP, "PUT", "x-other"),
            ] {
                let headers = vec![("access-control-request-headers", headers)];
                let asked = [preflight(origin, method), headers].concat();
                let got = ask(&running, client, "OPTIONS", path, &asked);
                assert_eq!(
                    (got.status, fields(&got)),
                    (204, NOTHING),
                    "{path} {asked:?}"
                );
            }
            let twice = [preflight(APP, "PUT"), vec![("origin", APP)]].concat();
            let got = ask(&running, client, "OPTIONS", path, &twice);
            assert_eq!((got.status, fields(&got)), (204, NOTHING), "{path}");
            assert_eq!(origin.count(path), 0, "{path}");
        }
        let got = ask(
            &running,
            client,
            "OPTIONS",
            "/denied",
            &preflight(APP, "PUT"),
        );
        assert_eq!(got.status, 403);
        // Without CORS the backend answers.
        let got = ask(&running, client, "OPTIONS", "/", &preflight(APP, "PUT"));
        assert_eq!((got.status, got.header("x-method")), (200, "OPTIONS"));
    }
    let reasons = running.counters().reasons;
    let names: Vec<String> = reasons.keys().map(ToString::to_string).collect();
    for token in [
        "cors-preflight",
        "cors-origin",
        "cors-method",
        "cors-headers",
    ] {
        assert!(
            names.contains(&format!("client:{token}")),
            "{token}: {names:?}"
        );
    }
}

#[test]
fn a_preflight_gets_the_route_of_the_method_that_it_asks_for() {
    let (origin, tree) = (origin(), Tree::new());
    let narrow = || CorsConfig {
        methods: vec![Method::PUT],
        ..cors()
    };
    let running = front(&origin, &tree, |config| {
        config.routes = vec![
            of_method(Method::GET, route("/items", "app", RouteRules::default())),
            of_method(Method::PUT, route("/items", "app", shared(narrow()))),
            of_method(Method::GET, route("/wide", "app", RouteRules::default())),
            route("/wide", "app", shared(cors())),
            of_method(Method::PUT, route("/only", "app", shared(cors()))),
        ];
    });
    let answer = |path, method: &str| {
        let got = ask(
            &running,
            Client::Http1,
            "OPTIONS",
            path,
            &preflight(APP, method),
        );
        (got.status, fields(&got))
    };
    assert_eq!(answer("/items", "PUT"), (204, granted("PUT")));
    assert_eq!(answer("/only", "PUT"), (204, granted("PUT")));
    assert_eq!(answer("/wide", "PUT"), (204, granted("PUT")));
    // GET has a route of its own, of which the front says nothing.
    assert_eq!(answer("/wide", "GET"), (204, NOTHING));
    // No route of the path has OPTIONS, and none that GET or POST gets has CORS.
    assert_eq!(answer("/items", "GET").0, 405);
    assert_eq!(answer("/items", "POST").0, 405);
    assert_eq!(answer("/only", "GET").0, 405);
    assert_eq!(origin.count("/wide") + origin.count("/items"), 0);
    let put = ask(
        &running,
        Client::Http1,
        "PUT",
        "/items",
        &[("origin", APP), ("content-length", "0")],
    );
    assert_eq!((put.status, fields(&put)), (200, allowed(APP)));
}

/// A preflight has no cookies and no fields of the request that it announces.
#[test]
fn routes_that_a_preflight_cannot_tell_apart_must_agree() {
    let (origin, tree) = (origin(), Tree::new());
    let other = || CorsConfig {
        credentials: false,
        ..cors()
    };
    let beta = |route: RouteConfig| RouteConfig {
        conditions: RequestConditions {
            cookies: vec![("beta".to_owned(), "1".to_owned())],
            ..RequestConditions::default()
        },
        ..route
    };
    let closed = |route: RouteConfig, unless: Unless| RouteConfig {
        target: RouteTarget::Status(StatusCode::SERVICE_UNAVAILABLE),
        conditions: RequestConditions {
            unless: Some(Box::new(unless)),
            ..RequestConditions::default()
        },
        ..route
    };
    let by_cookie = || Unless {
        cookie: Some(("operator".to_owned(), "1".to_owned())),
        ..Unless::default()
    };
    let by_address = || Unless {
        address: vec!["127.0.0.0/8".parse().unwrap()],
        ..Unless::default()
    };
    let running = front(&origin, &tree, |config| {
        config.routes = vec![
            route("/same", "app", shared(cors())),
            beta(route("/same", "app", shared(cors()))),
            route("/other", "app", shared(cors())),
            beta(route("/other", "app", shared(other()))),
            route("/half", "app", RouteRules::default()),
            beta(route("/half", "app", shared(cors()))),
            route("/closed", "app", shared(cors())),
            closed(route("/closed", "app", RouteRules::default()), by_cookie()),
            route("/inside", "app", shared(cors())),
            closed(route("/inside", "app", RouteRules::default()), by_address()),
        ];
    });
    for (path, expected) in [
        ("/same", granted("PUT")),
        ("/other", NOTHING),
        ("/half", NOTHING),
        ("/closed", NOTHING),
        ("/inside", granted("PUT")),
    ] {
        let got = ask(
            &running,
            Client::Http1,
            "OPTIONS",
            path,
            &preflight(APP, "PUT"),
        );
        assert_eq!((got.status, fields(&got)), (204, expected), "{path}");
    }
    let reasons = running.counters().reasons;
    assert!(
        reasons
            .keys()
            .any(|it| it.to_string() == "client:cors-route")
    );
}

#[test]
fn it_is_explained_what_a_page_may_do() {
    let tree = Tree::new();
    let mut config = config(&[loopback()], Vec::new());
    config.limits = vec![few()];
    config.routes = routes(&tree);
    let dead = UpstreamConfig::new("dead", Vec::new());
    config.upstreams.push(dead);
    let said = |url: &str, method: &str, fields: &[&str]| {
        let question = Question {
            url: url.to_owned(),
            method: method.to_owned(),
            headers: fields.iter().map(|&it| it.to_owned()).collect(),
            ..Question::default()
        };
        let explained = explain(&config, &question).unwrap();
        (explained.summary, explained.then.join("; "))
    };
    let (_, then) = said("/off", "GET", &["Origin: https://app.example.org"]);
    let expected =
        "pages of https://app.example.org may read the response, with credentials ([route.cors])";
    assert_eq!(then, expected);
    let (_, then) = said("/off", "GET", &["Origin: null"]);
    assert!(
        then.starts_with("no page of another origin may read"),
        "{then}"
    );
    let put = "Access-Control-Request-Method: PUT";
    let (summary, then) = said(
        "/partners",
        "OPTIONS",
        &["Origin: https://app.example.org", put],
    );
    assert_eq!(summary, "204: a preflight that [route.cors] grants");
    assert!(then.contains("may send PUT, with credentials"), "{then}");
    let (summary, _) = said("/off", "OPTIONS", &["Origin: https://evil.test", put]);
    let expected = "204: a preflight, and `origins` of [route.cors] does not have its `Origin`";
    assert_eq!(summary, expected);
}

const APP: &str = "https://app.example.org";
const SHOP: &str = "https://shop.example.org";
const EVIL: &str = "https://evil.example.org.x";

/// What a response to a strange origin has.
const NOTHING: (Vec<(String, String)>, bool) = (Vec::new(), true);
