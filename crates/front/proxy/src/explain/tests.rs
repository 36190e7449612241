mod route_rules;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use tokio::time::Instant;

use super::*;
use crate::config::{
    Activation, Address, AuthConfig, AuthKind, BackendConfig, Coding, End, FieldName, ForwardAuth,
    HashBy, ListenAddress, ListenerConfig, LogConfig, Policy, Protocol, Protocols, QueryForm,
    RouteConfig, RouteRules, RouteTarget, SentHost, ServerConfig, StickyConfig, StickyCookie,
    TraceConfig, UpstreamConfig,
};
use crate::site::Choice;

fn backend(name: &str) -> BackendConfig {
    let mut backend = BackendConfig::new(Protocol::Ajp, Address::Unix(name.into()));
    backend.name = name.to_owned();
    backend.jvm_route = name.to_owned();
    backend
}

fn route(path: &str, target: RouteTarget) -> RouteConfig {
    RouteConfig::new(path, target)
}

fn to(name: &str) -> RouteTarget {
    RouteTarget::Upstream(name.to_owned())
}

/// A configuration with the upstream `shop`, which keeps sessions on its backends `a`, `b` and `c`, and the
/// upstream `one` with one backend.
fn config() -> Config {
    let mut shop = UpstreamConfig::new("shop", ["a", "b", "c"].map(backend).into());
    shop.backends[0].fallback = Some("c".to_owned());
    shop.sticky = Some(StickyConfig {
        set_cookie: Some(StickyCookie::new("OWN")),
        ..StickyConfig::default()
    });
    let one = UpstreamConfig::new("one", vec![backend("only")]);
    let hosted = RouteConfig {
        hosts: vec!["shop.example.org".to_owned()],
        ..route("/", to("one"))
    };
    let jsp = RouteConfig {
        suffix: Some(".jsp".to_owned()),
        ..route("/app", to("one"))
    };
    let refused = route(
        "/app/admin",
        RouteTarget::Status(http::StatusCode::NOT_FOUND),
    );
    Config {
        server: ServerConfig {
            trusted_proxies: vec!["10.0.0.0/8".parse().expect("a network")],
            ..ServerConfig::default()
        },
        tls: vec![],
        listeners: vec![ListenerConfig::new(ListenAddress::Tcp(
            "127.0.0.1:80".parse().expect("an address"),
        ))],
        caches: vec![],
        auths: Vec::new(),
        limits: vec![],
        upstreams: vec![shop, one],
        routes: vec![route("/app", to("shop")), hosted, jsp, refused],
        error_pages: None,
        log: LogConfig::default(),
        trace: None,
        admin: None,
    }
}

fn ask(config: &Config, url: &str, headers: &[&str]) -> Explanation {
    let question = Question {
        url: url.to_owned(),
        headers: headers.iter().map(|&it| it.to_owned()).collect(),
        ..Question::default()
    };
    explain(config, &question).expect("a question")
}

#[test]
fn each_request_is_explained_in_one_line() {
    let mut config = config();
    config.upstreams[0].backends[1].activation = Activation::Drain;
    for (url, cookie, expected) in [
        (
            "/app/x",
            "",
            "backend a or c of upstream shop, by round-robin",
        ),
        (
            "/app/x",
            "JSESSIONID=1.a",
            "backend a of upstream shop: its session is there",
        ),
        (
            "/app/x;jsessionid=1.b",
            "",
            "backend b of upstream shop: its session is there",
        ),
        (
            "/app/x",
            "JSESSIONID=1.z",
            "backend a or c of upstream shop, by round-robin",
        ),
        (
            "/app/x.jsp",
            "",
            "backend only of upstream one: there is no other",
        ),
        (
            "http://shop.example.org/app",
            "",
            "backend only of upstream one: there is no other",
        ),
        ("/app/./admin", "", "404: the route says so"),
        ("/apple", "", "404: no route matches"),
        ("/app/../..", "", "400: the path climbs above the root"),
        (
            "/app/..%2fx",
            "",
            "400: the path has a hidden dot segment, such as `..;` or `..%2f`",
        ),
        ("http://a_b!/", "", "400: it is no request: malformed host"),
        (
            "/%zz",
            "",
            "400: it is no request: malformed percent escape in the request target",
        ),
    ] {
        let cookie = format!("Cookie: {cookie}");
        let explanation = ask(&config, url, &[&cookie]);
        assert_eq!(explanation.summary, expected, "{url} {cookie}");
    }
}

/// The configuration has two listeners, one with TLS, and a route for the latter that asks for a certificate.
#[test]
fn the_listener_and_the_certificate_of_the_question_count() {
    let mut config = config();
    let mut inner = ListenerConfig::new(ListenAddress::Unix("/run/inner.sock".into()));
    inner.name = Some("inner".to_owned());
    inner.tls = Some("partners".to_owned());
    config.listeners.push(inner);
    let guarded = RouteRules {
        client_certificate: true,
        ..RouteRules::default()
    };
    config.routes.push(RouteConfig {
        listen: vec![1],
        rules: Some(Arc::new(guarded)),
        ..route("/partners", to("one"))
    });
    let ask = |listen: &str, client_certificate: bool| {
        let question = Question {
            url: "/partners".to_owned(),
            listen: listen.to_owned(),
            client_certificate,
            ..Question::default()
        };
        explain(&config, &question)
    };
    let open = ask("127.0.0.1:80", true).unwrap();
    assert_eq!(open.summary, "404: no route matches");
    let runner = open.others.iter().find(|it| it.route.path == "/partners");
    let runner = runner.expect("it is the nearest");
    assert_eq!(runner.why_not, "it is for other listeners");
    assert_eq!(runner.route.listen, ["inner"]);
    for name in ["inner", "unix:/run/inner.sock"] {
        let without = ask(name, false).unwrap();
        let answer = without.answer.expect("it is refused");
        assert_eq!(without.outcome, "refused");
        assert_eq!(
            (answer.status, &answer.reason[..]),
            (403, "client-certificate-missing")
        );
        let with = ask(name, true).unwrap();
        assert_eq!(with.backend.as_deref(), Some("only"));
        assert_eq!(with.request.expect("a request").listener, "inner");
    }
    let error = ask("outer", false).unwrap_err();
    assert_eq!(
        error,
        "there is no listener \"outer\"; there are 127.0.0.1:80, inner"
    );
}

#[test]
fn a_question_that_is_none_is_refused_in_words() {
    let config = config();
    let question = |url: &str, header: &str, from: &str| Question {
        url: url.to_owned(),
        headers: vec![header.to_owned()],
        from: from.to_owned(),
        ..Question::default()
    };
    for (url, header, from, words) in [
        ("app", "a: b", "", "is neither http://HOST/PATH"),
        ("http:///x", "a: b", "", "has no host"),
        ("http://u:p@h/", "a: b", "", "has a user"),
        ("/a b", "a: b", "", "escape them"),
        ("/", "a", "", "is no header"),
        ("/", "a: b\r\nHost: other", "", "is no header"),
        ("/", "a: b", "localhost", "is no IP address"),
    ] {
        let refused = explain(&config, &question(url, header, from)).expect_err("a fault");
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn the_other_routes_say_why_they_were_not_chosen() {
    let others = |url: &str| -> Vec<(String, bool, String)> {
        let explanation = ask(&config(), url, &[]);
        let all = explanation.others.into_iter();
        all.map(|it| (it.route.path, it.matches, it.why_not))
            .collect()
    };
    let own = |path: &str, matches, why: &str| (path.to_owned(), matches, why.to_owned());
    assert_eq!(
        others("/app/x.jsp"),
        [
            own("/app", true, "its suffix is less specific"),
            own(
                "/app/admin",
                false,
                "the path is not /app/admin or below it"
            ),
            own("/", false, "its host is another"),
        ]
    );
    assert_eq!(
        others("http://shop.example.org/app/x"),
        [
            own("/app", true, "its host is less specific"),
            own("/app", false, "the path does not end in .jsp"),
            own(
                "/app/admin",
                false,
                "the path is not /app/admin or below it"
            ),
        ]
    );
}

#[test]
fn a_session_is_followed_step_by_step() {
    let mut config = config();
    config.upstreams[0].backends[0].activation = Activation::Stopped;
    let cookie = "Cookie: JSESSIONID=1; JSESSIONID=\"2.z\"; OWN=x; JSESSIONID=3.a";
    let explanation = ask(&config, "/app;jsessionid=4.b", &[cookie]);
    let affinity = explanation.affinity.expect("sessions are kept");
    assert_eq!(affinity.outcome, "moved");
    let steps = affinity.steps.into_iter();
    let steps: Vec<_> = steps
        .map(|it| (it.source, it.value, it.backend, it.text))
        .collect();
    let step = |value: &str, backend: Option<&str>, text: &str| {
        let source = "cookie JSESSIONID".to_owned();
        (
            source,
            Some(value.to_owned()),
            backend.map(str::to_owned),
            text.to_owned(),
        )
    };
    assert_eq!(
        steps,
        [
            step("1", None, "has no route: is jvmRoute set?"),
            step("2.z", None, "names no backend, and nobody may have a copy"),
            step(
                "3.a",
                Some("c"),
                "names a, which is stopped: moved to c, its fallback"
            ),
        ]
    );
    assert_eq!(
        (explanation.backend.as_deref(), explanation.by.as_deref()),
        (Some("c"), Some("fallback"))
    );
    let sent = explanation.sent.expect("it is sent");
    let cookies = |(name, value): &(String, String)| (name == "cookie").then(|| value.clone());
    let cookies: Vec<String> = sent.fields.iter().filter_map(cookies).collect();
    assert_eq!(
        cookies,
        ["JSESSIONID=1; JSESSIONID=\"2.z\"; JSESSIONID=3.a"],
        "ours is not sent"
    );
    assert!(sent.set_cookie.is_some_and(|it| it.starts_with("OWN=")));
}

#[test]
fn what_is_sent_is_what_a_container_reads() {
    let question = Question {
        url: "https://www.example.org:8443/app/%61?q=1".to_owned(),
        method: "POST".to_owned(),
        headers: vec![
            "X-Forwarded-For: 192.0.2.7".to_owned(),
            "X-Forwarded-Proto: http".to_owned(),
            "Connection: X-Hop".to_owned(),
            "X-Hop: 1".to_owned(),
        ],
        from: "10.1.2.3:4711".to_owned(),
        ..Question::default()
    };
    let explanation = explain(&config(), &question).expect("a question");
    let request = explanation.request.expect("a request");
    assert_eq!(
        (&request.client[..], &request.from[..]),
        ("192.0.2.7", "10.1.2.3")
    );
    assert!(!request.secure, "the proxy that is trusted says so");
    let sent = explanation.sent.expect("it is sent");
    assert_eq!(sent.request, "POST /app/a?q=1");
    let has = |name: &str, value: &str| {
        let pair = (name.to_owned(), value.to_owned());
        sent.attributes.contains(&pair) || sent.fields.contains(&pair)
    };
    assert!(has("remote_addr", "192.0.2.7"), "{sent:?}");
    assert!(
        has("server_name", "www.example.org") && has("server_port", "8443"),
        "{sent:?}"
    );
    assert!(
        has("JK_LB_ACTIVATION", "ACT") && has("via", "1.1 catamaran"),
        "{sent:?}"
    );
    assert!(
        !sent
            .fields
            .iter()
            .any(|(name, _)| name == "x-hop" || name == "connection")
    );
    assert!(
        sent.timeouts
            .contains(&("first_byte_timeout".to_owned(), "1m".to_owned())),
        "{sent:?}"
    );
}

#[test]
fn what_becomes_of_a_trace() {
    let host = "127.0.0.1".to_owned();
    let trace = TraceConfig::new(Address::Tcp { host, port: 4318 });
    let config = Config {
        trace: Some(Arc::new(trace)),
        ..config()
    };
    let given = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let unwanted = given.replace("-01", "-00");
    let wanted = "goes on; it is recorded, as its sender says, if no more than 10";
    for (sent, sentence, begin, flags) in [
        ("X: y", "of which 1 % are recorded", "00-0000", "00"),
        (given, wanted, "00-4bf9", "01"),
        (&unwanted, "goes on; it is not recorded", "00-4bf9", "00"),
    ] {
        let explanation = ask(&config, "/app", &[sent]);
        let said = explanation.then.last().expect("a sentence");
        assert!(said.contains(sentence), "{said}");
        let sent = explanation.sent.expect("it is sent");
        let mut fields = sent.fields.iter();
        let parent = fields.find(|(name, _)| name == "traceparent");
        let (_, parent) = parent.expect("a parent");
        let end = format!("-0000000000000001-{flags}");
        assert!(
            parent.starts_with(begin) && parent.ends_with(&end),
            "{parent}"
        );
    }
}

#[test]
fn the_query_is_the_one_that_is_sent() {
    let mut config = config();
    let sent = |config: &Config| {
        let explanation = ask(config, "/app?x=[1]&q=100%", &[]);
        explanation.sent.expect("it is sent").request
    };
    assert_eq!(sent(&config), "GET /app?x=[1]&q=100%");
    config.listeners[0].query = QueryForm::Escaped;
    assert_eq!(sent(&config), "GET /app?x=%5B1%5D&q=100%25");
}

#[test]
fn what_has_effects_is_told_by_rule() {
    let explanation = ask(&config(), "/app", &["X_Real_IP: 192.0.2.9"]);
    assert_eq!(
        explanation.then,
        [
            "client:underscore-field-dropped is counted: a field was dropped",
            "an id is made for X-Request-Id; here it is 0000000000000000",
            "a backend is picked, by round-robin unless a session decides",
            "if the backend fails, at most 2 further attempts, each only if it is safe",
        ]
    );
}

#[test]
fn a_client_of_http2_is_read_as_one() {
    let mut config = config();
    config.upstreams[1].backends[0].protocol = Protocol::Http;
    config.listeners[0].protocols = Protocols::Both;
    let ask = |config: &Config, url: &str, method: &str, header: &str| {
        let question = Question {
            url: url.to_owned(),
            method: method.to_owned(),
            headers: vec![header.to_owned()],
            http2: true,
            ..Question::default()
        };
        explain(config, &question)
    };
    let url = "http://shop.example.org/chat";
    let explanation = ask(&config, url, "GET", "Accept: */*").expect("a question");
    let sent = explanation.sent.expect("it is sent");
    let via = ("via".to_owned(), "2.0 catamaran".to_owned());
    assert!(sent.fields.contains(&via), "{sent:?}");
    // What is malformed is no request.
    let reset = ask(&config, url, "GET", "Connection: close").expect("a question");
    assert!(reset.summary.contains("its stream is reset"), "{reset:?}");

    let connect = |config: &Config| ask(config, url, "CONNECT", ":protocol: websocket");
    let refused = connect(&config).expect("a question");
    assert!(refused.summary.contains("h2-pseudo"), "{refused:?}");
    config.routes[1].rules = Some(Arc::new(RouteRules {
        upgrade: vec!["websocket".to_owned()],
        ..RouteRules::default()
    }));
    let sent = connect(&config).expect("a question").sent.expect("sent");
    assert_eq!(sent.request, "GET /chat");
    assert_eq!(sent.tunnel.as_deref(), Some("websocket"));

    config.listeners[0].protocols = Protocols::Http1;
    let error = connect(&config).expect_err("no HTTP/2");
    assert!(error.contains("does not speak HTTP/2"), "{error}");
}

#[test]
fn a_tunnel_goes_to_the_upgrade_url() {
    let mut config = config();
    config.routes[1].rules = Some(Arc::new(RouteRules {
        upgrade: vec!["websocket".to_owned()],
        ..RouteRules::default()
    }));
    let url = "http://shop.example.org/chat";
    let headers = ["Connection: Upgrade", "Upgrade: WebSocket"];
    let without = ask(&config, url, &headers);
    let answer = without.answer.expect("it is refused");
    assert_eq!((answer.status, &answer.reason[..]), (501, "no-upgrade-url"));
    let end = End {
        address: Address::Tcp {
            host: "tomcat".to_owned(),
            port: 8080,
        },
        tls: None,
    };
    config.upstreams[1].backends[0].upgrade = Some(end);
    let sent = ask(&config, url, &headers).sent.expect("it is sent");
    assert_eq!(
        (&sent.protocol[..], &sent.address[..]),
        ("http", "tomcat:8080")
    );
    assert_eq!(sent.tunnel.as_deref(), Some("websocket"));
    let upgrade = ("upgrade".to_owned(), "websocket".to_owned());
    assert!(sent.fields.contains(&upgrade), "{sent:?}");
    let other = ask(&config, url, &[]).sent.expect("it is sent");
    assert_eq!((&other.protocol[..], other.tunnel), ("ajp", None));
}

/// A packet of AJP13 has less room than a head of HTTP/1.1, so such a request may be too large for one backend
/// only.
#[test]
fn a_request_that_only_some_backends_can_be_sent_is_shown_for_them() {
    let mut config = config();
    let mut only = vec![backend("a"), backend("b")];
    only[1].protocol = Protocol::Http;
    config.upstreams[1] = UpstreamConfig::new("one", only);
    let long = format!("X-Long: {}", "x".repeat(5000));
    let it = ask(&config, "http://shop.example.org/", &[&long, &long]);
    assert_eq!(
        (&it.outcome[..], it.backend.as_deref()),
        ("forward", None),
        "{}",
        it.summary
    );
    assert_eq!(it.sent.expect("it is sent").backend, "b");
    assert!(it.summary.contains("; or 431, "), "{}", it.summary);
    config.upstreams[1].backends.pop();
    let it = ask(&config, "http://shop.example.org/", &[&long, &long]);
    assert_eq!((&it.outcome[..], it.sent), ("refused", None));
    assert!(it.summary.starts_with("431: "), "{}", it.summary);
    assert!(!it.summary.contains("hide_cookies"), "{}", it.summary);
    // The cookies of a sign-on may be what is too large.
    config.auths = vec![AuthConfig {
        name: "staff".to_owned(),
        kind: AuthKind::Forward(ForwardAuth {
            upstream: "shop".to_owned(),
            path: Bytes::from_static(b"/auth"),
            user: None,
            fields: Vec::new(),
            request_fields: Vec::new(),
            sign_in: None,
            timeout: Duration::from_secs(5),
            answer_max: 1,
            hide_cookies: Vec::new(),
        }),
    }];
    config.routes[1].rules = Some(Arc::new(RouteRules {
        auth: Some("staff".to_owned()),
        ..RouteRules::default()
    }));
    let it = ask(&config, "http://shop.example.org/", &[&long, &long]);
    assert!(
        it.summary.contains("`hide_cookies` of [auth.staff]"),
        "{}",
        it.summary
    );
}

/// Of three backends only the second has an `upgrade_url`; the session leads to the first.
#[test]
fn a_tunnel_is_foreseen_as_far_as_the_exchange_would_try() {
    let mut config = config();
    let mut shop = UpstreamConfig::new("shop", ["a", "b", "c"].map(backend).into());
    shop.sticky = Some(StickyConfig::default());
    shop.backends[1].upgrade = Some(End {
        address: Address::Unix("b.http".into()),
        tls: None,
    });
    config.upstreams[0] = shop;
    let route = &mut config.routes[1];
    route.target = to("shop");
    route.rules = Some(Arc::new(RouteRules {
        upgrade: vec!["websocket".to_owned()],
        ..RouteRules::default()
    }));
    let url = "http://shop.example.org/chat";
    let asked = |config: &Config, cookie: &str| {
        let cookie = format!("Cookie: JSESSIONID={cookie}");
        let headers = ["Connection: Upgrade", "Upgrade: WebSocket", &cookie[..]];
        ask(config, url, &headers)
    };
    let member = |it: &Explanation, index: usize| {
        let member = &it.members[index];
        (member.share, member.why_not.clone().unwrap_or_default())
    };
    let (elsewhere, last) = (
        "no `upgrade_url`: the tunnel is tried elsewhere",
        "no `upgrade_url`: 501",
    );

    // Two retries pass both of the others, whichever comes first.
    for cookie in ["1.a", "1.c", "1"] {
        let it = asked(&config, cookie);
        assert_eq!(it.outcome, "forward", "{cookie}: {}", it.summary);
        assert_eq!(it.backend.as_deref(), Some("b"), "{cookie}");
        assert_eq!(member(&it, 1), (100.0, String::new()), "{cookie}");
        for refusing in [0, 2] {
            let expected = (0.0, elsewhere.to_owned());
            assert_eq!(member(&it, refusing), expected, "{cookie}");
        }
        assert!(!it.summary.contains("501"), "{}", it.summary);
        let sent = it.sent.expect("it is sent");
        assert_eq!(sent.address, "b.http");
    }
    assert_eq!(asked(&config, "1.b").by.as_deref(), Some("session"));

    // One retry may be used up by the other that refuses.
    config.upstreams[0].retries = 1;
    let it = asked(&config, "1");
    assert_eq!(it.backend.as_deref(), Some("b"));
    assert!(it.summary.contains("or 501"), "{}", it.summary);

    // Without a retry the session's backend has the last word, and each turn counts.
    config.upstreams[0].retries = 0;
    let it = asked(&config, "1.a");
    let answer = it.answer.as_ref().expect("it is refused");
    assert_eq!((answer.status, &answer.reason[..]), (501, "no-upgrade-url"));
    assert_eq!(member(&it, 0), (0.0, last.to_owned()));
    let it = asked(&config, "1");
    assert_eq!(member(&it, 1), (33.3, String::new()));
    assert_eq!(member(&it, 2), (0.0, last.to_owned()));
    assert!(it.summary.contains("or 501"), "{}", it.summary);
    assert_eq!(it.sent.expect("it is sent").backend, "b");

    // `force` keeps the session there: no other is tried.
    config.upstreams[0].retries = 2;
    config.upstreams[0].sticky.as_mut().expect("set").force = true;
    assert_eq!(asked(&config, "1.a").outcome, "refused");
}

fn sites() -> impl Strategy<Value = Config> {
    let activation = prop::sample::select(&Activation::ALL[..]);
    let member = (activation, 1_u32..5, 0_u32..2, any::<bool>());
    let members = prop::collection::vec(member, 1..5);
    let policy = prop::sample::select(vec![
        Policy::RoundRobin,
        Policy::LeastInFlight,
        Policy::Sessions,
        Policy::Traffic,
        Policy::Hash,
    ]);
    let sticky = prop::option::weighted(0.8, any::<bool>());
    (members, policy, sticky).prop_map(|(members, policy, sticky)| {
        let member = |(index, it): (usize, (Activation, u32, u32, bool))| {
            let mut backend = backend(&format!("b{index}"));
            (backend.activation, backend.weight, backend.distance) = (it.0, it.1, it.2);
            backend.domain = it.3.then(|| "g".to_owned());
            backend.fallback = it.3.then(|| "b0".to_owned()).filter(|_| index > 0);
            backend
        };
        let members = members.into_iter().enumerate().map(member).collect();
        let mut upstream = UpstreamConfig::new("shop", members);
        upstream.policy = policy;
        upstream.hash_by = HashBy::Path;
        upstream.sticky = sticky.map(|force| StickyConfig {
            force,
            set_cookie: Some(StickyCookie::new("OWN")),
            ..StickyConfig::default()
        });
        Config {
            upstreams: vec![upstream],
            routes: vec![route("/", to("shop"))],
            ..config()
        }
    })
}

/// Picks a member as a served request does.
fn serve(site: &Site, question: &Question) -> Option<usize> {
    let supposed = SupposedRequest::new(&site.listeners, question, |_| None).expect("a question");
    let (listener, peer) = (supposed.listener, supposed.peer.clone());
    let Ok(head) = supposed.read(site) else {
        panic!("a request");
    };
    let grounds = Grounds {
        site,
        listener,
        peer: &peer,
        id: RequestId::from_number(0),
        trace: None,
        worker: None,
    };
    let Decision::Forward(mut forward) = verdict::decide(grounds, head).settle().decision else {
        panic!("it is forwarded");
    };
    forward.outgoing.complete();
    let Forward {
        upstream, outgoing, ..
    } = &forward;
    let chosen = upstream.choose(0, outgoing.facts(None), &[], Instant::now());
    let member = |Choice { member, .. }: Choice<'_>| member;
    chosen.ok().flatten().map(member)
}

proptest! {
    /// The explained backend is the one that then gets the request, whatever was served and explained before.
    #[test]
    fn what_is_explained_is_what_is_served(
        config in sites(),
        requests in prop::collection::vec(("/[a-c]{1,2}(;jsessionid=[0-9]\\.b[0-5])?", "[0-9](\\.(b[0-5]|g))?"), 1..12),
    ) {
        let site = Site::new(&config, 1, &mut Vec::new()).expect("a site");
        site.configure();
        for (url, id) in requests {
            let question = Question {
                url,
                headers: vec![format!("Cookie: JSESSIONID={id}")],
                ..Question::default()
            };
            let explanation = explain_on(&site, &question, |_| None).expect("a question");
            prop_assert_eq!(&explain_on(&site, &question, |_| None).expect("the same"), &explanation);
            let members = &explanation.members;
            let shares: f64 = members.iter().map(|it| it.share).sum();
            match serve(&site, &question) {
                Some(member) => {
                    prop_assert!(members[member].share > 0.0, "{:?}", explanation);
                    prop_assert!((shares - 100.0).abs() < 0.5, "{:?}", members);
                    let name = &members[member].backend;
                    prop_assert!(explanation.backend.as_ref().is_none_or(|it| it == name));
                }
                None => prop_assert_eq!(
                    (&explanation.outcome[..], explanation.by.as_deref()),
                    ("refused", Some("nobody"))
                ),
            }
        }
    }
}

#[test]
fn a_backend_is_chosen_by_a_field_that_the_front_writes() {
    let mut shop = UpstreamConfig::new("shop", ["a", "b", "c"].map(backend).into());
    shop.policy = Policy::Hash;
    shop.hash_by = HashBy::Header(FieldName::from_static("Via"));
    let config = Config {
        upstreams: vec![shop],
        routes: vec![route("/", to("shop"))],
        ..config()
    };
    assert!(ask(&config, "/", &[]).backend.is_some());
}

#[test]
fn a_front_of_many_routes_is_explained_in_a_moment() {
    let routes = (0..20_000).map(|index| route(&format!("/app{index}/x"), to("one")));
    let config = Config {
        routes: routes.collect(),
        ..config()
    };
    let explanation = ask(&config, "/app77/y", &[]);
    assert_eq!(explanation.summary, "404: no route matches");
    assert_eq!(
        explanation.others[0].route.path, "/app77/x",
        "the nearest is shown"
    );
}

#[test]
fn a_compression_is_foretold_by_what_the_client_takes() {
    let mut config = config();
    let rules = RouteRules {
        compress: Some(Arc::new(crate::config::CompressConfig::new(vec![
            Coding::Brotli,
            Coding::Gzip,
        ]))),
        ..RouteRules::default()
    };
    config.routes.push(RouteConfig {
        rules: Some(Arc::new(rules)),
        ..route("/compressed", to("one"))
    });
    for (field, expected) in [
        ("Accept-Encoding: gzip", "is compressed with gzip if"),
        (
            "Accept-Encoding: gzip, br",
            "compressed with br once the front keeps the body in it, else with gzip, if",
        ),
        (
            "Accept-Encoding: br",
            "compressed with br once the front keeps the body in it, if",
        ),
        (
            "Accept-Encoding: gzip;q=1, br;q=0.5",
            "compressed with gzip if",
        ),
        ("Accept-Encoding: zstd", "is not compressed"),
    ] {
        let explanation = ask(&config, "http://a/compressed/x", &[field]);
        let then = explanation.then.last().expect("a rule");
        assert!(then.contains(expected), "{then}");
    }
}

/// Explaining a file opens nothing: it names the file that would be looked up.
#[test]
fn a_file_is_named_and_what_follows_without_it() {
    let mut config = config();
    let served = |target| {
        let mut files = crate::config::FilesConfig::new("/none/such");
        files.fallback = Some("app.html".to_owned());
        let rules = RouteRules {
            files: Some(Arc::new(files)),
            ..RouteRules::default()
        };
        (target, Some(Arc::new(rules)))
    };
    for (path, (target, rules)) in [
        ("/alone", served(RouteTarget::Files)),
        ("/both", served(to("one"))),
    ] {
        config.routes.push(RouteConfig {
            rules,
            ..route(path, target)
        });
    }
    let alone = ask(&config, "http://a/alone/x%20y.css", &[]);
    assert_eq!(
        (&alone.outcome[..], alone.route.unwrap().target.as_str()),
        ("answer", "files")
    );
    let file = "the file /none/such/alone/x y.css";
    assert_eq!(alone.summary, format!("200: {file}, or 404 without it"));
    assert!(
        alone.then.iter().any(|it| it.contains("app.html")),
        "{:?}",
        alone.then
    );
    let hidden = ask(&config, "http://a/alone/WEB-INF/web.xml", &[]);
    assert_eq!(hidden.answer.unwrap().status, 404);
    let both = ask(&config, "http://a/both/x.css", &[]);
    assert_eq!(
        (&both.outcome[..], both.backend.as_deref()),
        ("forward", Some("only"))
    );
    assert!(
        both.summary
            .starts_with("the file /none/such/both/x.css; without it backend only")
    );
    let jsp = ask(&config, "http://a/both/x.jsp", &[]);
    assert!(jsp.summary.starts_with("backend only"), "{}", jsp.summary);
    assert!(
        jsp.then[0].contains("no file is looked for"),
        "{:?}",
        jsp.then
    );
}
