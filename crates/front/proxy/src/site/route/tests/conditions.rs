//! Tests of routes with conditions on fields, query and cookies.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;

use catamaran_message::RequestHead;

use super::*;
use crate::config::{FieldName, RequestConditions, RequestTest, Unless};

pub(super) const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

/// Conditions on up to two fields, two parameters and two cookies, whose values are `1` or `2`.
pub(super) fn beta(values: Range<u8>) -> impl Strategy<Value = RequestConditions> {
    let some = move || {
        let value = prop::option::weighted(0.4, values.clone());
        prop::array::uniform2(value).prop_map(|both| {
            let named = ["a", "b"].into_iter().zip(both);
            let pairs = named.filter_map(|(name, value)| Some((name, value?.to_string())));
            pairs.collect::<Vec<_>>()
        })
    };
    (some(), some(), some()).prop_map(|(headers, query, cookies)| {
        let owned = |pairs: Vec<(&str, String)>| {
            let pairs = pairs.into_iter();
            pairs
                .map(|(name, value)| (name.to_owned(), value))
                .collect()
        };
        let headers = headers.into_iter();
        let headers = headers.map(|(name, value)| (FieldName::from_static(name), value));
        RequestConditions {
            headers: headers.collect(),
            query: owned(query),
            cookies: owned(cookies),
            ..RequestConditions::default()
        }
    })
}

/// A head that meets these conditions and no others.
pub(super) fn head_of(conditions: &RequestConditions) -> RequestHead {
    let mut head = RequestHead::empty();
    let pairs = |pairs: &[(String, String)], between: &str| {
        let pairs = pairs.iter().map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join(between)
    };
    head.target.query = Some(pairs(&conditions.query, "&").into());
    for (name, value) in &conditions.headers {
        head.headers.append(name, value);
    }
    head.headers
        .append("Cookie", pairs(&conditions.cookies, "; "));
    head
}

fn with(
    headers: &[(&'static str, &str)],
    cookies: &[(&str, &str)],
    route: RouteConfig,
) -> RouteConfig {
    let cookies = cookies
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let headers = headers.iter();
    let headers = headers.map(|(name, value)| (FieldName::from_static(name), (*value).to_owned()));
    RouteConfig {
        conditions: RequestConditions {
            headers: headers.collect(),
            cookies: cookies.collect(),
            ..RequestConditions::default()
        },
        ..route
    }
}

/// Routes that differ in methods and conditions alone are found in the order that they have in a tree.
#[test]
fn routes_for_every_url_need_no_tree() {
    let of_post = RouteConfig {
        methods: vec![Method::POST],
        ..route(&[], "/", "2")
    };
    let mut routes = vec![
        route(&[], "/", "0"),
        with(&[("X-Beta", "1")], &[], route(&[], "/", "1")),
        of_post,
        with(&[("X-Beta", "1")], &[], route(&[], "/", "3")),
        with(&[], &[("beta", "1")], route(&[], "/", "4")),
        route(&[], "/", "5"),
    ];
    let without_tree = table(&routes);
    routes.push(route(&["other"], "/", "6"));
    let with_tree = table(&routes);
    for (method, fields, expected) in [
        (Method::GET, &[][..], 0),
        (Method::GET, &[("X-Beta", "1")], 1),
        (Method::GET, &[("X-Beta", "1"), ("Cookie", "beta=1")], 1),
        (Method::GET, &[("Cookie", "beta=1")], 4),
        (Method::POST, &[("X-Beta", "1")], 2),
    ] {
        let mut head = RequestHead::empty();
        for (name, value) in fields {
            head.headers.append(*name, value);
        }
        let wanted = Wanted {
            method: &method,
            conditions: ConditionFacts::Of(&head, CLIENT),
            ..wanted("h", false)
        };
        for table in [&without_tree, &with_tree] {
            let found = table.find(wanted, b"/a").map(|it| number(table, it));
            assert_eq!(found, Some(expected), "{method} {fields:?}");
        }
    }
}

/// More conditions come first, fields before cookies; whoever meets none of them gets the route without.
#[test]
fn other_requests_get_the_next_route() {
    let table = table(&[
        route(&[], "/app", "0"),
        with(&[("X-Beta", "1")], &[], route(&[], "/app", "1")),
        with(
            &[("X-Beta", "1"), ("X-Tenant", "a")],
            &[],
            route(&[], "/app", "2"),
        ),
        with(&[], &[("beta", "1")], route(&[], "/app", "3")),
        RouteConfig {
            methods: vec![Method::POST],
            ..with(&[("X-Beta", "1")], &[], route(&[], "/api", "4"))
        },
        with(&[("X-Beta", "1")], &[], route(&[], "/deep/below", "5")),
        route(&[], "/deep", "6"),
    ]);
    let find = |path: &str, fields: &[(&str, &str)]| {
        let mut head = RequestHead::empty();
        for (name, value) in fields {
            head.headers.append(*name, value);
        }
        let wanted = Wanted {
            conditions: ConditionFacts::Of(&head, CLIENT),
            ..wanted("h", false)
        };
        let methods = table.methods(
            wanted,
            &path::normalise(&Bytes::copy_from_slice(path.as_bytes())).unwrap(),
        );
        let found = table.find(wanted, path.as_bytes());
        (found.map(|it| number(&table, it)), methods)
    };
    const BETA: (&str, &str) = ("x-beta", "1");
    for (path, fields, expected) in [
        ("/app/x", &[][..], Some(0)),
        ("/app/x", &[("x-beta", "2")], Some(0)),
        ("/app/x", &[BETA], Some(1)),
        ("/app/x", &[BETA, ("X-TENANT", "a")], Some(2)),
        ("/app/x", &[BETA, ("X-Tenant", "b")], Some(1)),
        ("/app/x", &[("Cookie", "a=b; beta=1")], Some(3)),
        ("/app/x", &[BETA, ("Cookie", "beta=1")], Some(1)),
        ("/deep/below", &[BETA], Some(5)),
        ("/deep/below", &[], Some(6)),
        ("/api", &[BETA], None),
    ] {
        assert_eq!(find(path, fields).0, expected, "{path} {fields:?}");
    }
    // The methods of a route are told only to those who meet its conditions.
    assert_eq!(find("/api", &[BETA]).1, [Method::POST]);
    assert_eq!(find("/api", &[]).1, Vec::<Method>::new());
}

/// A test of a value, or none.
fn some_test() -> impl Strategy<Value = Vec<RequestTest>> {
    let value = prop::sample::select(vec!["header:a", "cookie:a", "query:a", "query", "target"]);
    let sign = prop::sample::select(vec!["~", "!~"]);
    let test = (value, sign).prop_map(|(value, sign)| format!("{value} {sign} 1"));
    let test = test.prop_map(|text| RequestTest::parse(&text).unwrap());
    prop::collection::vec(test, 0..2)
}

/// A route with the conditions, for all methods or for POST, and perhaps for everybody without a cookie.
fn announced_route() -> impl Strategy<Value = RouteConfig> {
    let unless = (prop::bool::weighted(0.3), any::<bool>()).prop_map(|(has_unless, by_address)| {
        let unless = Unless {
            address: vec!["192.0.2.0/24".parse().unwrap()],
            cookie: None,
        };
        let by_cookie = Unless {
            address: Vec::new(),
            cookie: Some(("b".to_owned(), "1".to_owned())),
        };
        has_unless.then(|| Box::new(if by_address { unless } else { by_cookie }))
    });
    let paths = prop::sample::select(vec!["/", "/app", "/app/x"]);
    let conditions = (beta(1..3), some_test(), unless);
    (conditions, paths, any::<bool>()).prop_map(|((conditions, tests, unless), path, posts)| {
        RouteConfig {
            conditions: RequestConditions {
                tests,
                unless,
                ..conditions
            },
            methods: if posts {
                vec![Method::POST]
            } else {
                Vec::new()
            },
            ..route(&[], path, "0")
        }
    })
}

proptest! {
    /// Whatever fields and cookies the request has that a preflight announces: its route was among those for which the
    /// preflight was answered. If none takes it, there was none that is certain to take it.
    #[test]
    fn the_route_of_a_request_was_announced(
        routes in prop::collection::vec(announced_route(), 1..8),
        sent in beta(1..3),
        posts in any::<bool>(),
    ) {
        let table = table(&routes);
        let head = head_of(&sent);
        let mut preflight = RequestHead::empty();
        preflight.target.query.clone_from(&head.target.query);
        let method = if posts { Method::POST } else { Method::GET };
        let path = path::normalise(&Bytes::from_static(b"/app/x")).unwrap();
        let by = |conditions| Wanted {
            method: &method,
            conditions,
            ..wanted("h", false)
        };
        let announced = table.announced(by(ConditionFacts::Announced(&preflight, CLIENT)), &path);
        let found = table.decide(by(ConditionFacts::Of(&head, CLIENT)), &path).unwrap();
        match found {
            Some(found) => prop_assert!(announced.contains(&found), "{found}: {announced:?}"),
            None => {
                let conditions = announced.iter().map(|&it| &table.routes()[it].config.conditions);
                prop_assert!(conditions.clone().all(|it| !it.are_known_at_preflight()));
            }
        }
    }
}

/// The request may get a route that tests a field or a cookie, and the next one, too. A test of the query decides.
#[test]
fn a_preflight_announces_routes_with_tests() {
    let tested = |test: &str, name: &str| RouteConfig {
        conditions: RequestConditions {
            tests: vec![RequestTest::parse(test).unwrap()],
            ..RequestConditions::default()
        },
        ..route(&[], "/", name)
    };
    let mut head = RequestHead::empty();
    head.target.query = Some(Bytes::from_static(b"a=1"));
    let wanted = Wanted {
        conditions: ConditionFacts::Announced(&head, CLIENT),
        ..wanted("h", false)
    };
    let path = path::normalise(&Bytes::from_static(b"/")).unwrap();
    for (test, expected) in [
        ("header:a ~ 1", &[1, 0][..]),
        ("header:a !~ 1", &[1, 0]),
        ("cookie:a ~ 1", &[1, 0]),
        ("query:a ~ 1", &[1]),
        ("query:a ~ 2", &[0]),
        ("query !~ 1", &[0]),
        ("target ~ a=1$", &[1]),
    ] {
        let table = table(&[route(&[], "/", "0"), tested(test, "1")]);
        assert_eq!(table.announced(wanted, &path), expected, "{test}");
    }
}

#[test]
fn a_preflight_announces_few_routes() {
    let conditional = |index: usize| {
        let value = index.to_string();
        with(&[("X-Tenant", &value)], &[], route(&[], "/", "1"))
    };
    let table = table(&(0..100).map(conditional).collect::<Vec<_>>());
    let head = RequestHead::empty();
    let wanted = Wanted {
        conditions: ConditionFacts::Announced(&head, CLIENT),
        ..wanted("h", false)
    };
    let path = path::normalise(&Bytes::from_static(b"/")).unwrap();
    assert_eq!(table.announced(wanted, &path).len(), ANNOUNCED_MAX);
}
