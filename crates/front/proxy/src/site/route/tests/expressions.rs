//! Tests of routes with expressions and methods.

use super::*;

fn regex(hosts: &[&str], text: &str, name: &str) -> RouteConfig {
    RouteConfig {
        regex: Some(PathExpression::parse(text).expect(text)),
        ..route(hosts, "/", name)
    }
}

fn first(path: &str, name: &str) -> RouteConfig {
    RouteConfig {
        before_regex: true,
        ..route(&[], path, name)
    }
}

fn exact(path: &str, name: &str) -> RouteConfig {
    RouteConfig {
        exact: true,
        ..route(&[], path, name)
    }
}

fn of_methods(methods: &[Method], route: RouteConfig) -> RouteConfig {
    RouteConfig {
        methods: methods.to_vec(),
        ..route
    }
}

#[test]
fn an_expression_comes_after_an_exact_path_and_before_all_others() {
    let table = table(&[
        route(&[], "/", "0"),
        route(&[], "/shop/deep/below", "1"),
        regex(&[], "^/shop/", "2"),
        regex(&[], "[.]php$", "3"),
        exact("/shop/x.php", "4"),
        first("/images", "5"),
        route(&[], "/images/sub", "6"),
        route(&["h"], "/named", "7"),
    ]);
    for (path, expected) in [
        ("/shop/deep/below", 2),
        ("/shop/a.php", 2),
        ("/shop/x.php", 4),
        ("/a.php", 3),
        ("/images/a.php", 5),
        // The longest prefix decides whether expressions are asked.
        ("/images/sub/a.php", 3),
        ("/images/sub/a.html", 6),
        ("/other", 0),
        ("*", 0),
    ] {
        assert_eq!(find(&table, "other", path), Some(expected), "{path}");
    }
    // A host comes before all paths.
    assert_eq!(find(&table, "h", "/named/a.php"), Some(7));
    assert_eq!(find(&table, "h", "/a.php"), Some(3));
}

/// What a backend may decode or drop leads to the same route, or is refused.
#[test]
fn no_spelling_of_a_path_avoids_an_expression() {
    let table = table(&[route(&[], "/", "0"), regex(&[], "^/admin(/|$)", "1")]);
    for (path, expected) in [
        ("/admin/x", Ok(Some(1))),
        ("/%61dmin/x", Ok(Some(1))),
        ("//admin//x", Ok(Some(1))),
        ("/./admin", Ok(Some(1))),
        ("/x/../admin", Ok(Some(1))),
        ("/x/%2e%2E/admin", Ok(Some(1))),
        ("/admin;jsessionid=1/x", Ok(Some(1))),
        ("/admin;x", Ok(Some(1))),
        ("/;x/admin", Ok(Some(1))),
        ("/admin%2Fx", Err(PathFault::Ambiguous)),
        ("/admin%5cx", Err(PathFault::Ambiguous)),
        ("/%2Fadmin", Err(PathFault::Ambiguous)),
        ("/x/..;/admin", Err(PathFault::HiddenDots)),
        ("/x/..%2fadmin", Err(PathFault::HiddenDots)),
        ("/admin%0a", Err(PathFault::EscapedControl)),
        // Servers that tell letters apart have another path there; `(?i)` is for others.
        ("/Admin", Ok(Some(0))),
        ("/%2561dmin", Ok(Some(0))),
    ] {
        let normal = path::normalise(&Bytes::copy_from_slice(path.as_bytes()));
        let found = normal.and_then(|normal| table.decide(wanted("h", false), &normal));
        assert_eq!(found, expected, "{path}");
    }
}

#[test]
fn other_methods_get_the_next_route() {
    let get = [Method::GET, Method::HEAD];
    let table = table(&[
        of_methods(&get, route(&[], "/app", "0")),
        of_methods(&[Method::POST], route(&[], "/app", "1")),
        of_methods(&[Method::PUT], exact("/app/x", "2")),
        of_methods(&[Method::DELETE], regex(&[], "^/app/[0-9]+$", "3")),
        of_methods(&get, route(&[], "/wide", "4")),
        route(&[], "/wide", "5"),
        of_methods(&[Method::PATCH], route(&["h"], "/app", "6")),
    ]);
    for (method, path, expected) in [
        (Method::GET, "/app", Ok(0)),
        (Method::HEAD, "/app/x", Ok(0)),
        (Method::POST, "/app/x", Ok(1)),
        (Method::PUT, "/app/x", Ok(2)),
        (Method::DELETE, "/app/7", Ok(3)),
        (Method::GET, "/app/7", Ok(0)),
        (Method::GET, "/wide", Ok(4)),
        (Method::POST, "/wide", Ok(5)),
        (Method::PATCH, "/app", Ok(6)),
        (Method::DELETE, "/app", Err("GET HEAD PATCH POST")),
        (Method::OPTIONS, "/app/7", Err("DELETE GET HEAD PATCH POST")),
        (Method::GET, "/none", Err("")),
    ] {
        let path = path::normalise(&Bytes::copy_from_slice(path.as_bytes())).unwrap();
        let wanted = Wanted {
            method: &method,
            ..wanted("h", false)
        };
        let found = table.decide(wanted, &path).unwrap();
        let methods = table.methods(wanted, &path);
        let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
        let taken = found.map(|it| number(&table, it));
        let expected = expected.map_err(str::to_owned);
        assert_eq!(
            taken.ok_or_else(|| names.join(" ")),
            expected,
            "{method} {path:?}"
        );
    }
}

/// What an expression would decide about the parameters of a path is refused, if the route says so.
#[test]
fn parameters_that_decide_are_refused() {
    let strict = |text: &str, name: &str| RouteConfig {
        refuse_parameters: true,
        ..regex(&[], text, name)
    };
    for others in [vec![], vec![regex(&[], "^/loose$", "3")]] {
        let mut routes = vec![
            route(&[], "/", "0"),
            strict("jsessionid|[^a-z0-9/._-]", "1"),
            strict("[.]do$", "2"),
        ];
        routes.extend(others);
        let has_loose = routes.len() > 3;
        let table = table(&routes);
        for (path, expected) in [
            ("/a.do", Ok(Some(2))),
            ("/a", Ok(Some(0))),
            ("/secret.do;x", Err(PathFault::Ambiguous)),
            ("/a;jsessionid=1", Err(PathFault::Ambiguous)),
            ("/a;x", Err(PathFault::Ambiguous)),
            ("/a;%22", Err(PathFault::Ambiguous)),
            ("/loose", Ok(Some(if has_loose { 3 } else { 0 }))),
        ] {
            let normal = path::normalise(&Bytes::copy_from_slice(path.as_bytes())).unwrap();
            let found = table.decide(wanted("h", false), &normal);
            assert_eq!(found, expected, "{path}");
        }
    }
    let lenient = table(&[route(&[], "/", "0"), regex(&[], "[.]do$", "1")]);
    let normal = path::normalise(&Bytes::from("/secret.do;x")).unwrap();
    assert_eq!(lenient.decide(wanted("h", false), &normal), Ok(Some(1)));
}
