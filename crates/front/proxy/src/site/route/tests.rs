//! Tests that the most specific route wins, and that nothing else is guessed.

mod conditions;
mod expressions;
mod linear;

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::config::{
    Activation, Exclusion, KnownNames, PathExpression, Redirect, RouteRules, RouteScheme, Template,
};
use crate::path;

fn route(hosts: &[&str], path: &str, name: &str) -> RouteConfig {
    RouteConfig {
        hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
        ..RouteConfig::new(path, RouteTarget::Upstream(name.to_owned()))
    }
}

fn table(routes: &[RouteConfig]) -> RouteTable {
    // An upstream's index is its name's only digit.
    RouteTable::new(routes, |name| name.parse().ok()).expect("known upstreams")
}

fn find(table: &RouteTable, host: &str, path: &str) -> Option<usize> {
    let route = table.find(wanted(host, false), path.as_bytes())?;
    Some(number(table, route))
}

fn wanted(host: &str, secure: bool) -> Wanted<'_> {
    Wanted {
        host: Some(host.as_bytes()),
        listener: Some(0),
        secure,
        method: &Method::GET,
        conditions: ConditionFacts::Assumed(false),
        with_parameters: None,
    }
}

/// The index of the upstream that a route leads to, or its status code.
fn number(table: &RouteTable, route: usize) -> usize {
    match table.routes()[route].action {
        Action::Upstream(index) => index,
        Action::Status(status) => status.as_u16().into(),
        Action::Split(index) => index,
        Action::Redirect => 308,
        Action::Files => 200,
    }
}

#[test]
fn a_prefix_is_of_whole_segments() {
    let table = table(&[route(&[], "/app", "1"), route(&[], "/docs/", "2")]);
    for path in ["/app", "/app/", "/app/x"] {
        assert_eq!(find(&table, "h", path), Some(1), "{path}");
    }
    assert_eq!(find(&table, "h", "/docs"), Some(2));
    for path in ["/apple", "/", "/Xapp", "/ap", "*"] {
        assert_eq!(find(&table, "h", path), None, "{path}");
    }
}

/// A route as a discovered member brings it, for a context that member `a` lacks.
fn found(path: &str, name: &str) -> RouteConfig {
    let rules = RouteRules {
        activation: vec![("a".to_owned(), Activation::Stopped)],
        ..RouteRules::default()
    };
    RouteConfig {
        rules: Some(Arc::new(rules)),
        found: true,
        ..route(&[], path, name)
    }
}

#[test]
fn a_found_route_goes_round_nothing_that_the_file_says() {
    let guard = |guarded: RouteConfig| RouteConfig {
        rules: Some(Arc::new(RouteRules {
            client_certificate: true,
            ..RouteRules::default()
        })),
        ..guarded
    };
    let status = |path: &str| RouteConfig::new(path, RouteTarget::Status(StatusCode::GONE));
    let of_suffix = RouteConfig {
        suffix: Some(".jsp".to_owned()),
        ..status("/demo")
    };
    let of_listener = RouteConfig {
        listen: vec![0],
        ..status("/inner")
    };
    let of_host = guard(route(&["h"], "/host", "1"));
    let files = [
        guard(route(&[], "/guarded", "1")),
        status("/status"),
        route(&[], "/other", "2"),
        of_suffix,
        of_listener,
        of_host,
    ];
    let contexts = [
        "/guarded/sub",
        "/status/sub",
        "/other/sub",
        "/demo/x",
        "/inner/sub",
        "/host/sub",
        "/free",
    ];
    let all = files
        .into_iter()
        .chain(contexts.map(|path| found(path, "1")));
    let table = table(&all.collect::<Vec<_>>());
    for (path, upstream, guarded, stops) in [
        ("/guarded/sub/x", 1, true, true),
        ("/guarded/other", 1, true, false),
        ("/status/sub", 410, false, false),
        ("/other/sub", 2, false, false),
        ("/demo/x/a.jsp", 410, false, false),
        ("/demo/x/a.html", 1, false, true),
        ("/inner/sub", 410, false, false),
        ("/host/sub", 1, true, false),
        ("/free", 1, false, true),
    ] {
        let index = table.find(wanted("h", false), path.as_bytes()).expect(path);
        let rules = table.routes()[index]
            .config
            .rules
            .clone()
            .unwrap_or_default();
        let what = (
            number(&table, index),
            rules.client_certificate,
            !rules.activation.is_empty(),
        );
        assert_eq!(what, (upstream, guarded, stops), "{path}");
    }
    // Of another listener the file has no route there.
    let other = Wanted {
        listener: Some(1),
        ..wanted("h", false)
    };
    let index = table.find(other, b"/inner/sub").expect("a route");
    assert_eq!(number(&table, index), 1);
}

#[test]
fn the_root_matches_everything() {
    let table = table(&[route(&[], "/", "1")]);
    for path in ["/", "/a", "/a/b", "*"] {
        assert_eq!(find(&table, "h", path), Some(1), "{path}");
    }
}

#[test]
fn only_a_route_without_conditions_takes_everything() {
    let all = || route(&[], "/", "1");
    let is_taken = |routes: &[RouteConfig]| {
        let table = table(routes);
        let taken = find(&table, "h", "/a.jsp").is_some();
        assert!(taken || !table.takes_all, "{routes:?}");
        (table.takes_all, taken)
    };
    assert_eq!(is_taken(&[all()]), (true, true));
    assert_eq!(is_taken(&[all(), route(&[], "/a", "2")]), (false, true));
    let exact = RouteConfig {
        exact: true,
        ..all()
    };
    let suffix = RouteConfig {
        suffix: Some(".do".into()),
        ..all()
    };
    let pattern = RouteConfig {
        pattern: Some("/b*".into()),
        ..all()
    };
    let scheme = RouteConfig {
        scheme: Some(RouteScheme::Https),
        ..all()
    };
    let listen = RouteConfig {
        listen: vec![1],
        ..all()
    };
    let exclude = RouteConfig {
        exclude: vec![Exclusion::Pattern("*.jsp".into())],
        ..all()
    };
    let other_host = route(&["other"], "/", "1");
    let deeper = route(&[], "/b", "1");
    let conditions = [exact, suffix, pattern, scheme, listen, exclude];
    for route in conditions.into_iter().chain([other_host, deeper]) {
        assert_eq!(is_taken(&[route]), (false, false));
    }
}

#[test]
fn the_most_specific_wins_whatever_the_order() {
    let exact = RouteConfig {
        exact: true,
        ..route(&[], "/app/login", "1")
    };
    let suffix = RouteConfig {
        suffix: Some(".jsp".into()),
        ..route(&[], "/app", "2")
    };
    let mut routes = vec![route(&[], "/", "0"), route(&[], "/app", "3"), suffix, exact];
    for _ in 0..routes.len() {
        routes.rotate_left(1);
        let table = table(&routes);
        assert_eq!(find(&table, "h", "/app/login"), Some(1));
        assert_eq!(find(&table, "h", "/app/x.jsp"), Some(2));
        assert_eq!(find(&table, "h", "/app/x"), Some(3));
        assert_eq!(find(&table, "h", "/app/login/x"), Some(3));
        assert_eq!(find(&table, "h", "/x"), Some(0));
    }
}

#[test]
fn hosts_come_before_paths() {
    let table = table(&[
        route(&[], "/long/path", "0"),
        route(&["*.example.org"], "/", "1"),
        route(&["*.b.example.org"], "/", "2"),
        route(&["www.example.org", "other.example"], "/", "3"),
    ]);
    assert_eq!(find(&table, "www.example.org", "/long/path"), Some(3));
    assert_eq!(find(&table, "other.example", "/x"), Some(3));
    assert_eq!(find(&table, "a.example.org", "/long/path"), Some(1));
    assert_eq!(find(&table, "a.b.example.org", "/"), Some(2));
    assert_eq!(find(&table, "example.org", "/"), None);
    assert_eq!(find(&table, "notexample.org", "/long/path"), Some(0));
    assert_eq!(
        table.find(
            Wanted {
                host: None,
                listener: None,
                secure: false,
                method: &Method::GET,
                conditions: ConditionFacts::Assumed(false),
                with_parameters: None,
            },
            b"/"
        ),
        None,
        "no host matches no named host"
    );
}

/// The decision for a path as a client sends it: the upstream, a status, or the fault.
fn decide(table: &RouteTable, host: &str, path: &str) -> Result<Option<usize>, PathFault> {
    let path = path::normalise(&Bytes::copy_from_slice(path.as_bytes()))?;
    let route = table.decide(wanted(host, false), &path)?;
    Ok(route.map(|route| number(table, route)))
}

#[test]
fn paths_are_compared_decoded() {
    let table = table(&[
        route(&[], "/%c3%a4", "1"),
        route(&[], "/adm@in", "2"),
        route(&[], "/a%3Ab%2c", "3"),
        route(&[], "/100%25", "4"),
        route(&[], "/x%3by", "5"),
    ]);
    for (path, expected) in [
        ("/%C3%A4/x", Some(1)),
        ("/adm@in/x", Some(2)),
        ("/adm%40in", Some(2)),
        ("/%61dm%40%69n;x=1/y", Some(2)),
        ("/adm%2540in", None),
        ("/a:b,", Some(3)),
        ("/a%3ab%2C/", Some(3)),
        ("/100%25", Some(4)),
        ("/100%2525", None),
        ("/x%3By", Some(5)),
        ("/x;y", None),
    ] {
        assert_eq!(decide(&table, "h", path), Ok(expected), "{path}");
    }
}

#[test]
fn suffixes_are_compared_decoded() {
    let suffix = |suffix: &str, name: &str| RouteConfig {
        suffix: Some(suffix.to_owned()),
        ..route(&[], "/", name)
    };
    let table = table(&[
        suffix(".d%40o", "1"),
        suffix(".%c3%a4", "2"),
        suffix("5", "3"),
    ]);
    for (path, expected) in [
        ("/x.d@o", Some(1)),
        ("/x.d%40o", Some(1)),
        ("/x.d%40o;y=z", Some(1)),
        ("/x.%C3%A4", Some(2)),
        // The end of an escape is no character.
        ("/x%25", None),
        ("/x%255", Some(3)),
    ] {
        assert_eq!(decide(&table, "h", path), Ok(expected), "{path}");
    }
}

#[test]
fn an_ipv6_host_has_many_spellings() {
    let table = table(&[
        route(&["[::1]"], "/", "1"),
        route(&["[2001:db8:0:0::7]"], "/", "2"),
    ]);
    for (host, expected) in [
        ("[::1]", Some(1)),
        ("[0:0:0:0:0:0:0:1]", Some(1)),
        ("[0000::0.0.0.1]", Some(1)),
        ("[2001:db8::7]", Some(2)),
        ("[2001:0db8:0000::0007]", Some(2)),
        ("[::2]", None),
        ("::1", None),
    ] {
        assert_eq!(find(&table, host, "/x"), expected, "{host}");
    }
}

#[test]
fn a_route_never_depends_on_how_a_separator_is_read() {
    let mut hidden = route(&[], "/manager", "");
    hidden.target = RouteTarget::Status(StatusCode::FORBIDDEN);
    let table = table(&[
        route(&[], "/", "1"),
        hidden,
        route(&["h2"], "/api%2Fx", "2"),
    ]);
    for path in [
        "/manager%2fhtml",
        "/manager%5Chtml",
        "/%2Fmanager",
        "/a%2f%5Cb/manager%2F",
    ] {
        let expected = match path {
            // Below `/a`, in each reading.
            "/a%2f%5Cb/manager%2F" => Ok(Some(1)),
            _ => Err(PathFault::Ambiguous),
        };
        assert_eq!(decide(&table, "h", path), expected, "{path}");
    }
    // Such paths are used: nothing is refused that goes the same way in each reading.
    for path in [
        "/job/a%2Fb/1",
        "/api/queues/%2F/q",
        "/@scope%2fname",
        "/a%5Cb",
        "/managers%2F",
    ] {
        assert_eq!(decide(&table, "h", path), Ok(Some(1)), "{path}");
    }
    assert_eq!(decide(&table, "h", "/manager/a%2Fb"), Ok(Some(403)));
    // Only one kind of container decodes the one and not the other.
    assert_eq!(
        decide(&table, "h", "/manager%2Fx%5Cy"),
        Err(PathFault::Ambiguous)
    );
    assert_eq!(decide(&table, "h2", "/api%2Fx"), Err(PathFault::Ambiguous));
    assert_eq!(decide(&table, "h2", "/api%2Fx%252F"), Ok(Some(1)));
}

#[test]
fn an_exclusion_is_a_status() {
    let mut hidden = route(&[], "/app/internal", "");
    hidden.target = RouteTarget::Status(StatusCode::NOT_FOUND);
    let table = table(&[route(&[], "/app", "1"), hidden]);
    assert_eq!(find(&table, "h", "/app/internal/x"), Some(404));
    assert_eq!(find(&table, "h", "/app/internals"), Some(1));
}

#[test]
fn an_unknown_upstream_is_named() {
    assert_eq!(
        RouteTable::new(&[route(&[], "/", "nine")], |_| None)
            .err()
            .as_deref(),
        Some("nine")
    );
}

#[test]
fn wildcards_are_looked_up_by_label() {
    let name = b"a.b.example.org";
    for (labels, expected) in [
        (0, None),
        (1, Some(".org")),
        (2, Some(".example.org")),
        (3, Some(".b.example.org")),
        (4, None),
    ] {
        assert_eq!(above(name, labels), expected.map(str::as_bytes));
    }
    assert_eq!(above(b"", 1), None);
}

#[test]
fn a_path_of_many_segments_needs_no_stack() {
    let deep = "/a".repeat(200_000);
    let table = table(&[route(&[], &deep, "1"), route(&[], "/a", "2")]);
    assert_eq!(find(&table, "h", &format!("{deep}/x")), Some(1));
    assert_eq!(find(&table, "h", &deep[2..]), Some(2));
}

#[test]
fn what_a_route_excludes_others_get() {
    let excluding = RouteConfig {
        exclude: vec![
            Exclusion::Prefix("/app/static/".to_owned()),
            Exclusion::Pattern("*.g%40f".to_owned()),
        ],
        ..route(&["h"], "/app", "1")
    };
    let table = table(&[excluding, route(&[], "/app/static", "2")]);
    assert_eq!(find(&table, "h", "/app/statics"), Some(1));
    assert_eq!(find(&table, "h", "/app/static/x"), Some(2));
    assert_eq!(decide(&table, "h", "/app/x.g@f"), Ok(None));
    // The exclusion would depend on the container.
    assert_eq!(
        decide(&table, "h", "/app/static%2Fx"),
        Err(PathFault::Ambiguous)
    );
}

#[test]
fn patterns_are_ranked_against_prefixes() {
    let pattern = |text: &str, name: &str| RouteConfig {
        pattern: Some(text.to_owned()),
        ..route(&[], "/", name)
    };
    let table = table(&[
        route(&[], "/", "0"),
        route(&[], "/app", "1"),
        pattern("/app*/x?.do", "2"),
        pattern("/*.do", "3"),
        pattern("/devops*", "4"),
    ]);
    assert_eq!(find(&table, "h", "/app/x1.do"), Some(2));
    assert_eq!(find(&table, "h", "/app/y.do"), Some(1));
    assert_eq!(find(&table, "h", "/other/y.do"), Some(3));
    assert_eq!(find(&table, "h", "/devops-x/y"), Some(4));
    assert_eq!(find(&table, "h", "/other"), Some(0));
}

#[test]
fn a_scheme_comes_before_none() {
    let to = Template::parse("/elsewhere", KnownNames::NONE).unwrap();
    let status = StatusCode::PERMANENT_REDIRECT;
    let redirect = RouteConfig {
        scheme: Some(RouteScheme::Http),
        target: RouteTarget::Redirect(Redirect { to, status }),
        ..route(&[], "/", "0")
    };
    let table = table(&[route(&[], "/", "1"), redirect]);
    let find = |secure| table.find(wanted("h", secure), b"/x");
    assert_eq!((find(false), find(true)), (Some(1), Some(0)));
}

/// For a listener, the routes of other listeners do not exist; the rest are ranked as usual.
#[test]
fn a_route_is_for_its_listeners_alone() {
    let on = |listen: &[usize], path: &str, name: &str| RouteConfig {
        listen: listen.to_vec(),
        ..route(&[], path, name)
    };
    let pattern = |listen: &[usize], name: &str| RouteConfig {
        pattern: Some("/p*".to_owned()),
        ..on(listen, "/", name)
    };
    let secure = RouteConfig {
        scheme: Some(RouteScheme::Https),
        ..on(&[], "/", "4")
    };
    let suffix = RouteConfig {
        suffix: Some(".jsp".to_owned()),
        ..on(&[0], "/app", "5")
    };
    let table = table(&[
        on(&[], "/", "1"),
        on(&[0, 1], "/", "2"),
        on(&[0], "/app", "3"),
        secure,
        suffix,
        pattern(&[], "6"),
        pattern(&[1], "7"),
    ]);
    let find = |listener: Option<usize>, secure: bool, path: &str| {
        let wanted = Wanted {
            listener,
            ..wanted("h", secure)
        };
        number(&table, table.find(wanted, path.as_bytes()).unwrap())
    };
    assert!(table.has_listeners());
    for (listener, secure, path, expected) in [
        (Some(0), false, "/", 2),
        (Some(1), false, "/x", 2),
        (Some(2), false, "/x", 1),
        (None, false, "/x", 1),
        (Some(0), false, "/app", 3),
        (Some(1), false, "/app", 2),
        (Some(2), false, "/app", 1),
        // A route for a listener comes before one for a scheme.
        (Some(0), true, "/", 2),
        (Some(2), true, "/", 4),
        (Some(0), false, "/app/x.jsp", 5),
        (Some(1), false, "/app/x.jsp", 2),
        (Some(0), false, "/px", 6),
        (Some(1), false, "/px", 7),
    ] {
        assert_eq!(
            find(listener, secure, path),
            expected,
            "{listener:?} {secure} {path}"
        );
    }
}

/// Two routes to one upstream treat requests alike only if neither has rules.
#[test]
fn a_route_with_rules_differs_from_one_without() {
    let ruled = RouteConfig {
        rules: Some(std::sync::Arc::new(RouteRules::default())),
        ..route(&[], "/a", "1")
    };
    let routes = [route(&[], "/", "1"), ruled, route(&[], "/b", "1")];
    let table = table(&routes);
    assert_eq!(decide(&table, "h", "/b%2Fx"), Ok(Some(1)));
    assert_eq!(decide(&table, "h", "/a%2Fx"), Err(PathFault::Ambiguous));
}

/// Generates routes with few hosts, segments and suffixes, so that many of them match one request.
fn routes() -> impl Strategy<Value = Vec<RouteConfig>> {
    let hosts = prop::sample::subsequence(
        vec!["a.org", "b.a.org", "*.a.org", "*.b.a.org", "*.org", "[::1]"],
        0..3,
    );
    let path = "(/(a|b|a%40|%2F|b%25)){0,3}/?";
    let suffix = prop::option::weighted(0.3, "(\\.x|b|@|%40|5|%2F)");
    let pattern = prop::option::weighted(0.3, "(/(a|b|\\*|\\?)){1,3}(\\*|\\.x)?");
    let exclude = prop::collection::vec(exclusion(), 0..2);
    let scheme = prop::option::weighted(0.3, scheme());
    let listen = prop::sample::subsequence(vec![0, 1, 2], 0..3);
    let expressions = vec!["^/a", "b$", "^/(a|b)/[^/]*$", "@", "x", "."];
    let regex = prop::option::weighted(0.2, prop::sample::select(expressions));
    let methods = prop::sample::subsequence(vec![Method::GET, Method::POST], 0..2);
    let matched = (hosts, path, any::<bool>(), suffix, pattern, regex);
    let beta = conditions::beta(0..2u8);
    let limits = (listen, scheme, methods, beta, any::<bool>());
    let route = (matched, exclude, limits, 0usize..9);
    let route = route.prop_map(|(matched, exclude, limits, upstream)| {
        let (hosts, path, exact, suffix, pattern, regex) = matched;
        let (listen, scheme, methods, conditions, first) = limits;
        let pattern = pattern.filter(|_| regex.is_none());
        let is_whole = pattern.is_some() || regex.is_some();
        let suffix = suffix.filter(|_| !is_whole);
        let exact = exact && !is_whole;
        RouteConfig {
            hosts: hosts.into_iter().map(str::to_owned).collect(),
            path: if path.is_empty() {
                "/".to_owned()
            } else {
                path
            },
            before_regex: first && !exact && regex.is_none(),
            exact,
            suffix,
            pattern,
            regex: regex.map(|it| PathExpression::parse(it).unwrap()),
            methods,
            conditions,
            exclude,
            listen,
            scheme,
            ..RouteConfig::new("/", RouteTarget::Upstream(upstream.to_string()))
        }
    });
    prop::collection::vec(route, 0..12)
}

fn exclusion() -> impl Strategy<Value = Exclusion> {
    prop_oneof![
        "/(a|b|a%40)(/a)?/?".prop_map(Exclusion::Prefix),
        "\\*(\\.x|b|/)|/a\\?".prop_map(Exclusion::Pattern),
    ]
}

fn scheme() -> impl Strategy<Value = RouteScheme> {
    prop_oneof![Just(RouteScheme::Http), Just(RouteScheme::Https)]
}

proptest! {
    /// The tables find the same route as a comparison with each route.
    #[test]
    fn the_tree_decides_as_the_rules_say(
        routes in routes(),
        host in "(([ab]\\.){0,3}(a\\.)?org|\\[(::1|0:0::1|::2)\\]|a)",
        path in "((/(a|b|a@|a%40|%2F|b%25|a\\.x|b;x|c)){0,4}/?|\\*)",
        listener in 0usize..3,
        secure: bool,
        method in prop::sample::select(vec![Method::GET, Method::POST, Method::PUT]),
        fields in conditions::beta(0..2u8),
    ) {
        let table = table(&routes);
        let path = if path.is_empty() { "/".to_owned() } else { path };
        let path = path::normalise(&Bytes::from(path)).unwrap();
        let head = conditions::head_of(&fields);
        let wanted = Wanted {
            listener: Some(listener),
            method: &method,
            conditions: ConditionFacts::Of(&head, conditions::CLIENT),
            ..wanted(&host, secure)
        };
        for path in std::iter::once(path.route().to_vec()).chain(path.readings()) {
            let expected = linear::find(&routes, &wanted, &path);
            let found = table.find(wanted, &path).map(|it| table.routes()[it].action);
            prop_assert_eq!(found, expected, "{:?}", path);
        }
    }
}
