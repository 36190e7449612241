//! Tests of guards by method of nginx: they are methods of routes, or close their place.

use super::nginx::of_server;
use super::{routes, with_directories};

#[test]
fn guards_by_method_are_methods_of_routes() {
    let pass = "proxy_set_header Host $host; proxy_pass http://t:80;";
    for (directives, expected) in [
        (
            format!("location / {{ limit_except GET POST {{ deny all; }} {pass} }}"),
            &[
                "path = \"/\"; methods = [\"GET\", \"POST\"]; upstream = \"t\"",
                "path = \"/\"; status = 403",
            ][..],
        ),
        (
            format!("location / {{ if ($request_method = DELETE) {{ return 405; }} {pass} }}"),
            &[
                "path = \"/\"; methods = \"DELETE\"; status = 405",
                "path = \"/\"; upstream = \"t\"",
            ],
        ),
        (
            format!(
                "location / {{ if ($request_method ~ ^(TRACE|TRACK)$) {{ return 405; }} {pass} }}"
            ),
            &[
                "path = \"/\"; methods = \"TRACK\"; status = 405",
                "path = \"/\"; upstream = \"t\"",
            ],
        ),
        (
            format!("location / {{ if ($request_method = TRACE) {{ return 405; }} {pass} }}"),
            &["path = \"/\"; upstream = \"t\""],
        ),
        (
            format!(
                "if ($request_method !~ ^(GET|HEAD|POST)$) {{ return 444; }}\n\
                 location / {{ {pass} }}\nlocation ~ \\.php$ {{ deny all; }}\n\
                 location ^~ /a/ {{ limit_except POST {{ deny all; }} {pass} }}"
            ),
            &[
                "path = \"/a\"; exact = true; methods = [\"GET\", \"POST\"]; redirect = \"/a/{search}\"; status = 301",
                "path = \"/a\"; before_regex = true; methods = \"POST\"; upstream = \"t\"",
                "path = \"/a\"; before_regex = true; methods = \"GET\"; status = 403",
                "path = \"/\"; methods = [\"GET\", \"POST\"]; upstream = \"t\"",
                "regex = \"\\\\.php$\"; methods = [\"GET\", \"POST\"]; status = 403",
                "path = \"/\"; status = 403",
            ],
        ),
        (
            format!("if ($request_method = PUT) {{ return 405; }}\nlocation /a/ {{ {pass} }}"),
            &[
                "path = \"/a\"; exact = true; methods = \"PUT\"; status = 405",
                "path = \"/a\"; exact = true; redirect = \"/a/{search}\"; status = 301",
                "path = \"/a\"; methods = \"PUT\"; status = 405",
                "path = \"/a\"; upstream = \"t\"",
                "path = \"/\"; methods = \"PUT\"; status = 405",
                "path = \"/\"; status = 404",
            ],
        ),
    ] {
        let (routes, _) = of_server(&directives, &[]);
        assert_eq!(routes, expected, "{directives}");
    }
}

#[test]
fn guards_by_method_that_routes_cannot_have_are_closed() {
    let pass = "proxy_pass http://t:80;";
    for test in [
        "limit_except GET { allow 10.0.0.0/8; }",
        "limit_except GET { allow 10.0.0.0/8; deny all; auth_basic off; }",
        "satisfy any; limit_except GET { allow 10.0.0.0/8; deny all; }",
        "limit_except get { deny all; }",
        "if ($request_method !~ ^(GET|POST)$) { return 405; }",
        "if ($request_method = GET) { return 405; }",
        "limit_except HEAD { deny all; }",
        "if ($request_method != HEAD) { return 405; }",
        "if ($request_method ~ POST) { return 405; }",
        "if ($request_method != GET|HEAD) { return 405; }",
        "if ($request_method = PUT|POST) { return 405; }",
        "if ($request_method = ?:PUT) { return 405; }",
        "if ($request_method = POST) { set $x 1; return 405; }",
        "if ($request_method = POST) { proxy_pass http://u:80; }",
    ] {
        let (routes, import) = of_server(&format!("location / {{ {test} {pass} }}"), &[]);
        assert_eq!(routes, ["path = \"/\"; status = 403"], "{test}");
        assert!(import.risks() > 0, "{test}");
    }
}

#[test]
fn a_limit_by_address_is_a_route_for_the_other_methods() {
    let pass = "proxy_set_header Host $host; proxy_pass http://t:80;";
    let limit = "limit_except GET { allow 10.0.0.0/8; deny all; }";
    let route = |rest: &str| format!("path = \"/\"; {rest}");
    let get = "methods = \"GET\"; upstream = \"t\"";
    for (location, expected) in [
        (
            limit.to_owned(),
            [
                get.to_owned(),
                "upstream = \"t\"; allow = \"10.0.0.0/8\"".to_owned(),
            ],
        ),
        (
            "limit_except GET { deny 10.0.0.0/8; }".to_owned(),
            [
                get.to_owned(),
                "upstream = \"t\"; deny = \"10.0.0.0/8\"".to_owned(),
            ],
        ),
        // Its access rules replace those of the location, but not its sign-on.
        (
            format!("allow ::1; deny all; {limit}"),
            [
                format!("{get}; allow = \"::1\""),
                "upstream = \"t\"; allow = \"10.0.0.0/8\"".to_owned(),
            ],
        ),
        (
            format!("{limit} auth_basic a; auth_basic_user_file /users;"),
            [
                format!("{get}; auth = \"a\""),
                "upstream = \"t\"; auth = \"a\"; allow = \"10.0.0.0/8\"".to_owned(),
            ],
        ),
    ] {
        let conf = format!("server {{\nlisten 80;\nlocation / {{ {location} {pass} }}\n}}\n");
        let import = with_directories(&[("/nginx.conf", &conf), ("/users", USERS)], None);
        let routes = routes(&import);
        assert_eq!(routes, expected.map(|it| route(&it)), "{location}");
        assert_eq!(import.risks(), 0, "{location} {:?}", import.remarks);
    }
    // Nothing else of such a location is executed for other methods.
    for more in [
        "if ($http_a) { return 404; }",
        "try_files $uri @b;",
        "error_page 404 /x;",
    ] {
        let directives = format!("location / {{ {more} {limit} {pass} }} location @b {{ {pass} }}");
        let (routes, _) = of_server(&directives, &[]);
        assert!(!routes.concat().contains("upstream"), "{more}: {routes:?}");
    }
    // What closes the location closes it for all methods.
    let (routes, _) = of_server(&format!("location / {{ {limit} auth_jwt x; {pass} }}"), &[]);
    assert!(!routes.concat().contains("upstream"), "{routes:?}");
}

#[test]
fn a_limit_comes_before_what_the_location_returns() {
    for directives in [
        "location ^~ /r/ { limit_except GET { deny all; } return 200 ok; }",
        "location ^~ /r/ { if ($request_method = DELETE) { return 204; }\n\
         limit_except GET { deny all; } return 200 ok; }",
    ] {
        let (routes, _) = of_server(directives, &[]);
        let of_limit: Vec<&String> = routes.iter().filter(|it| !it.contains("404")).collect();
        assert!(
            of_limit[0].contains("methods = \"GET\"; status = 200"),
            "{routes:?}"
        );
        assert!(of_limit[1].ends_with("; status = 403"), "{routes:?}");
        assert_eq!(of_limit.len(), 2, "{routes:?}");
    }
}

#[test]
fn a_path_without_its_slash_has_all_rules_by_methods() {
    let (routes, import) = of_server(
        "location / { limit_except GET { deny all; } proxy_pass http://t:80; }\n\
         location /r/ { try_files $uri @app; }\n\
         location @app { proxy_pass http://t:80; }",
        &[],
    );
    let exact = "path = \"/r\"; exact = true; ";
    let of_path = routes.iter().filter_map(|it| it.strip_prefix(exact));
    let of_path: Vec<&str> = of_path.collect();
    assert_eq!(
        of_path,
        ["methods = \"GET\"; upstream = \"t\"", "status = 403"],
        "{routes:?} {}",
        import.text
    );
}

#[test]
fn two_guards_by_method_share_no_method() {
    let (routes, import) = of_server(
        "if ($request_method !~ ^(GET|HEAD|POST)$) { return 405; }\n\
         location /a/ { limit_except GET { deny all; } proxy_pass http://t:80; }",
        &[],
    );
    let of_prefix = routes
        .iter()
        .filter(|it| it.starts_with("path = \"/a\"; methods"));
    let of_prefix: Vec<&String> = of_prefix.collect();
    assert_eq!(
        of_prefix,
        [
            "path = \"/a\"; methods = \"GET\"; upstream = \"t\"",
            "path = \"/a\"; methods = \"POST\"; status = 403",
        ],
        "{routes:?}"
    );
    assert!(!import.text.contains("`check` refuses"), "{}", import.text);
}

/// For a route, GET includes HEAD, so that `check` takes a route for each of both for a repetition.
#[test]
fn a_limit_of_head_stands_beside_no_guard_of_get() {
    let (routes, import) = of_server(
        "if ($request_method !~ ^(GET|HEAD)$) { return 301 https://$host$request_uri; }\n\
         location / { limit_except HEAD { deny all; } proxy_pass http://t:80; }",
        &[],
    );
    assert!(!routes.concat().contains("upstream"), "{routes:?}");
    assert!(!import.text.contains("`check` refuses"), "{}", import.text);
    let loaded = catamaran_config::parse("c.toml", &import.text);
    assert!(loaded.is_ok(), "{}", import.text);
}

#[test]
fn more_expressions_than_a_file_may_have_are_closed() {
    let location = |it: usize| format!("location ~ ^/{it}$ {{ deny all; }}\n");
    let all: String = (0..2_001).map(location).collect();
    let (routes, import) = of_server(
        &format!("{all}location / {{ proxy_pass http://t:80; }}"),
        &[],
    );
    assert_eq!(routes, ["path = \"/\"; status = 403"]);
    assert!(import.risks() > 0);
}

#[test]
fn an_expression_on_the_method_takes_what_the_location_captured() {
    for (test, is_open) in [
        ("", true),
        ("if ($request_method = PUT) { return 405; }", true),
        (
            "if ($request_method !~ ^(GET|HEAD)$) { return 405; }",
            false,
        ),
        (
            "if ($request_method !~ ^(?:GET|HEAD)$) { return 405; }",
            false,
        ),
    ] {
        let redirect = format!("location ~ ^/(a+)/(.*)$ {{ {test} return 301 /b/$1; }}");
        let (routes, _) = of_server(&redirect, &[]);
        let is_there = routes.iter().any(|it| it.contains("redirect = \"/b/{1}\""));
        assert_eq!(is_there, is_open, "{test}: {routes:?}");
        let pass = "proxy_set_header Host $host; proxy_pass http://t:80/$1;";
        let (passes, _) = of_server(&format!("location ~ ^/(a+)/ {{ {test} {pass} }}"), &[]);
        let whole = pass.replace("/$1", "");
        let (wholes, _) = of_server(&format!("location ~ ^/(a+)/ {{ {test} {whole} }}"), &[]);
        assert!(wholes.concat().contains("upstream"), "{test}: {wholes:?}");
        assert!(
            is_open || !passes.concat().contains("upstream"),
            "{test}: {passes:?}"
        );
    }
}

const USERS: &str = "ann:$2y$04$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e.\n";
