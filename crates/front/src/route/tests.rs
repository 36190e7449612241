//! The most specific route wins, and nothing else is guessed.

use super::*;

fn route(hosts: &[&str], path: &str, name: &str) -> RouteConfig {
    RouteConfig {
        hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
        path: path.to_owned(),
        exact: false,
        suffix: None,
        target: RouteTarget::Upstream(name.to_owned()),
    }
}

fn table(routes: &[RouteConfig]) -> RouteTable {
    // An upstream's index is its name's only digit.
    RouteTable::new(routes, |name| name.parse().ok()).expect("known upstreams")
}

fn find(table: &RouteTable, host: &str, path: &str) -> Option<usize> {
    match table.find(Some(host.as_bytes()), path.as_bytes())? {
        Action::Upstream(index) => Some(index),
        Action::Status(status) => Some(status.as_u16().into()),
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

#[test]
fn the_root_matches_everything() {
    let table = table(&[route(&[], "/", "1")]);
    for path in ["/", "/a", "/a/b", "*"] {
        assert_eq!(find(&table, "h", path), Some(1), "{path}");
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
        table.find(None, b"/"),
        None,
        "no host matches no named host"
    );
}

#[test]
fn escapes_compare_in_one_case() {
    let table = table(&[route(&[], "/%c3%a4", "1")]);
    assert_eq!(find(&table, "h", "/%C3%A4/x"), Some(1));
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
