//! Tests of conditions of nginx on values of a request: they are tests of routes, or close their place.

use super::nginx::of_server;
use super::*;

/// Converts what stands in `http`, with one server that listens on port 80.
fn of_http(http: &str, server: &str) -> (Vec<String>, Import) {
    let text = format!(
        "events {{ }} http {{ include mime.types;\n{http}\nserver {{ listen 80;\n{server}\n}} }}"
    );
    let import = with_directories(&[("/nginx.conf", text.as_str())], None);
    (routes(&import), import)
}

#[test]
fn conditions_on_values_are_tests_of_routes() {
    for (condition, test) in [
        (
            "$http_user_agent ~* (bot|curl)",
            "header:user-agent ~ (?i)(bot|curl)",
        ),
        ("$http_x_a = 'a.b'", "header:x-a ~ ^a\\\\.b$"),
        ("$http_x_a != ''", "header:x-a !~ ^$"),
        ("$http_x_a", "header:x-a ~ ^(?:[^0]|0.)"),
        ("$arg_debug = 1", "query:debug ~ ^1$"),
        ("$cookie_pass !~ ^let-me-in$", "cookie:pass !~ ^let-me-in$"),
        ("$request_uri ~ '[.][.]'", "target ~ [.][.]"),
        ("$query_string ~ union", "query ~ union"),
    ] {
        let guard = format!("if ({condition}) {{ return 403; }}");
        let (routes, import) = of_server(&format!("location /a/ {{ {guard} {PASS} }}"), &[]);
        let guarded = |start: &str| format!("{start}match_regex = \"{test}\"; status = 403");
        let open = "path = \"/a\"; upstream = \"t\"".to_owned();
        let expected = [guarded("path = \"/a\"; "), open.clone()];
        assert_eq!(routes[1..3], expected, "{condition}");
        assert_eq!(import.risks(), 0, "{condition} {:?}", import.remarks);
        let (routes, _) = of_server(&format!("{guard}\nlocation /a/ {{ {PASS} }}"), &[]);
        let before = [
            guarded("path = \"/a\"; exact = true; "),
            guarded("path = \"/a\"; "),
            guarded("path = \"/\"; "),
        ];
        for expected in before.iter().chain([&open]) {
            assert!(routes.contains(expected), "{condition} {routes:#?}");
        }
    }
}

#[test]
fn conditions_that_routes_cannot_test_close_their_place() {
    for condition in [
        "$http_x_a ~ ^(?!good)",
        "$http_x_a ~ (a)\\\\1",
        "$http_x_a ~ a;b",
        "$http_x_a = $host",
        "$http_x_forwarded_for ~ ^10\\\\.",
        "$http_host ~ ^a(?=b)",
        "$remote_user = admin",
        "$arg_a = ä",
        "-f $request_filename",
        "$unknown",
        "$http_x_a > 1",
    ] {
        let guard = format!("if ({condition}) {{ return 403; }}");
        let (routes, import) = of_server(&format!("location / {{ {guard} {PASS} }}"), &[]);
        assert_eq!(routes, ["path = \"/\"; status = 403"], "{condition}");
        assert!(import.risks() > 0, "{condition}");
    }
}

#[test]
fn a_guard_holds_for_each_method_of_a_limit_and_each_scheme() {
    let (routes, _) = of_server(
        &format!(
            "if ($http_x = bad) {{ return 403; }}\n\
             location / {{ limit_except GET {{ deny all; }} {PASS} }}"
        ),
        &[],
    );
    let test = "match_regex = \"header:x ~ ^bad$\"";
    assert_eq!(
        routes,
        [
            format!("path = \"/\"; methods = \"GET\"; {test}; status = 403"),
            "path = \"/\"; methods = \"GET\"; upstream = \"t\"".to_owned(),
            format!("path = \"/\"; {test}; status = 403"),
            "path = \"/\"; status = 403".to_owned(),
        ]
    );
    let guard = "if ($scheme = http) { return 301 https://$host$request_uri; } if ($http_x = bad) { return 403; }";
    let (routes, _) = of_server(
        &format!(
            "listen 443 ssl; ssl_certificate /c.pem; ssl_certificate_key /k.pem;\n{guard}\nlocation / {{ {PASS} }}"
        ),
        &["/c.pem", "/k.pem"],
    );
    let rest = format!("path = \"/\"; {test}; status = 403");
    assert_eq!(
        routes,
        [
            "scheme = \"http\"; path = \"/\"; redirect = \"https://{host}{path_query}\"; status = 301".to_owned(),
            format!("scheme = \"https\"; {rest}"),
            "scheme = \"https\"; path = \"/\"; upstream = \"t\"".to_owned(),
        ]
    );
}

#[test]
fn what_stands_behind_a_return_is_not_asked() {
    let (routes, _) = of_server(
        "location /a { return 403; if ($http_x) { return 200 secret; } }",
        &[],
    );
    assert!(!routes.iter().any(|it| it.contains("secret")), "{routes:?}");
}

#[test]
fn a_map_is_tests_of_the_value_that_it_asks() {
    let map = "map $http_user_agent $bad { default 0; ~*goodbot 0; ~*bot 1; \"\" 1; }";
    let guard = "if ($bad) { return 403; }";
    let (routes, import) = of_http(map, &format!("{guard} location / {{ {PASS} }}"));
    assert_eq!(
        routes,
        [
            "path = \"/\"; match_regex = \"header:user-agent ~ (?i)^$\"; status = 403",
            "path = \"/\"; match_regex = [\"header:user-agent !~ (?i)goodbot\", \"header:user-agent ~ (?i)bot\"]; \
             status = 403",
            "path = \"/\"; upstream = \"t\"",
        ]
    );
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
    let (routes, _) = of_http(
        "map $cookie_stage $stage { default live; beta next; }",
        "location / { proxy_set_header Host $host; add_header X-Stage $stage; proxy_pass http://$stage:80; }",
    );
    let fields =
        |stage: &str| format!("[route.response_headers]; add = {{ X-Stage = \"{stage}\" }}");
    assert_eq!(
        routes,
        [
            format!(
                "path = \"/\"; match_regex = \"cookie:stage ~ (?i)^beta$\"; upstream = \"next\"; {}",
                fields("next")
            ),
            format!("path = \"/\"; upstream = \"live\"; {}", fields("live")),
        ]
    );
}

#[test]
fn a_map_has_the_lines_of_its_files_and_names_of_the_server() {
    let text = "events { } http {\nmap $http_x $v { include one.map; server $server_name; }\n\
                server { listen 80; server_name a.org; location / { add_header X-V $v; return 204; } } }";
    let files = [
        ("/nginx.conf", text),
        ("/one.map", "a 1;\ninclude /two;"),
        ("/two", "b 2;"),
    ];
    let import = with_directories(&files, None);
    let expected = |key: &str, value: &str| {
        format!(
            "path = \"/\"; match_regex = \"header:x ~ (?i)^{key}$\"; status = 204; \
             [route.response_headers]; add = {{ X-V = \"{value}\" }}"
        )
    };
    let found = routes(&import);
    let own = found.iter().filter(|it| it.contains("match_regex"));
    let pairs = [("a", "1"), ("b", "2"), ("server", "a.org")];
    assert_eq!(
        own.collect::<Vec<_>>(),
        pairs
            .map(|(key, value)| expected(key, value))
            .iter()
            .collect::<Vec<_>>(),
        "{found:?} {:?}",
        import.remarks
    );
}

#[test]
fn a_map_that_is_not_known_closes_what_asks_it() {
    for map in [
        "map $http_x $v { include m.map; }",
        "map $http_x $v { a 1; hostnames; }",
        "map $http_x $v { hostnames; ~^a 1; }",
        "map $http_x $v { hostnames; ~^a.$ 1; }",
        "map $http_x $v { hostnames; ~^(a|b)$ 1; }",
        "map $http_x $v { a $host; }",
        "map $http_x $v { ~(a) $1; }",
        "map $http_x $v { ~^(?!a) 1; }",
        "map $remote_user $v { a 1; }",
        "map $http_x$arg_y $v { a 1; }",
    ] {
        let (routes, import) = of_http(
            map,
            &format!("location / {{ if ($v) {{ return 403; }} {PASS} }}"),
        );
        assert_eq!(routes, ["path = \"/\"; status = 403"], "{map}");
        assert!(import.risks() > 0, "{map}");
    }
}

#[test]
fn a_map_of_hosts_asks_whole_names_first_and_then_the_longest() {
    let map = "map $http_x $v { volatile; hostnames; default 0; ~*^c[0-9]\\.org$ 5; a.* 4; a.b.* 3; .a.org 2; *.b.a.org 1; a.com 6; }";
    let (routes, import) = of_http(map, "location / { add_header X-V $v; return 204; }");
    let of_value = |value: u8| format!("[route.response_headers]; add = {{ X-V = \"{value}\" }}");
    let expected: Vec<String> = [
        ("(?i)^a\\\\.com\\\\.?$", 6),
        ("(?i)\\\\.b\\\\.a\\\\.org\\\\.?$", 1),
        ("(?i)(?:^|\\\\.)a\\\\.org\\\\.?$", 2),
        ("(?i)^a\\\\.b\\\\..", 3),
        ("(?i)^a\\\\..", 4),
        ("(?i)^c[0-9]\\\\.org\\\\.?$", 5),
    ]
    .iter()
    .map(|(test, value)| {
        let test = format!("match_regex = \"header:x ~ {test}\"");
        format!("path = \"/\"; {test}; status = 204; {}", of_value(*value))
    })
    .chain([format!("path = \"/\"; status = 204; {}", of_value(0))])
    .collect();
    assert_eq!(routes, expected);
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
}

#[test]
fn a_value_may_have_variables_of_the_request() {
    let header = "proxy_set_header X-V \"<${v}x>\";";
    let of_field =
        |value: &str| format!("[route.request_headers]; set = {{ X-V = \"<{value}x>\" }}");
    let (routes, import) = of_http(
        "map $http_x $v { a $host; default \"$w!\"; }\nmap $http_y $w { default $arg_w; }",
        &format!("location / {{ {header} {PASS} }}"),
    );
    assert_eq!(
        routes,
        [
            format!(
                "path = \"/\"; match_regex = \"header:x ~ (?i)^a$\"; upstream = \"t\"; {}",
                of_field("{host}")
            ),
            format!("path = \"/\"; upstream = \"t\"; {}", of_field("{query:w}!")),
        ]
    );
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
    let (routes, import) = of_server(
        &format!("location / {{ set $v $arg_w; {header} {PASS} }}"),
        &[],
    );
    let expected = format!("path = \"/\"; upstream = \"t\"; {}", of_field("{query:w}"));
    assert_eq!(routes, [expected]);
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
    // Which text the variable would have is not known, or it would name a backend.
    for set in [
        "set $v $remote_user;",
        "set $v $uri; rewrite ^/a$ /b redirect;",
        "set $v $arg_w; proxy_pass http://$v;",
        "set $v $http_w; root /srv/$v;",
    ] {
        let (routes, _) = of_server(&format!("location / {{ {set} {header} }}"), &[]);
        let text = routes.concat();
        assert!(
            !text.contains("upstream") && !text.contains("files"),
            "{set} {routes:?}"
        );
    }
}

#[test]
fn a_map_tries_no_expression_on_an_empty_value() {
    for (map, empty) in [
        (
            "map $http_authorization $v { default 1; \"~.*\" 0; }",
            "match_regex = \"header:authorization ~ ^$\"; status = 403",
        ),
        (
            "map $cookie_role $v { default 1; \"~^(staff|)$\" 0; }",
            "match_regex = \"cookie:role ~ ^$\"; status = 403",
        ),
        (
            "map $http_x $v { ~*^.?$ 0; default 1; \"\" 1; }",
            "match_regex = \"header:x ~ (?i)^$\"; status = 403",
        ),
    ] {
        let (routes, _) = of_http(
            map,
            &format!("location / {{ if ($v) {{ return 403; }} {PASS} }}"),
        );
        assert_eq!(routes[0], format!("path = \"/\"; {empty}"), "{map}");
        let twice = routes.iter().filter(|it| it.contains(" ~ ^$\"")).count();
        assert!(twice <= 1, "{map} {routes:#?}");
    }
    let (routes, _) = of_http(
        "map $cookie_role $realm { default Restricted; \"~^(staff|)$\" off; }",
        &format!("location / {{ auth_basic $realm; auth_basic_user_file /p; {PASS} }}"),
    );
    assert_eq!(
        routes[0],
        "path = \"/\"; match_regex = \"cookie:role ~ ^$\"; status = 403"
    );
}

#[test]
fn a_map_whose_variable_something_else_sets_closes_what_asks_it() {
    let agents = "map $http_user_agent $blocked { default 0; ~*bot 1; }";
    let guard = "if ($blocked) { return 403; }";
    for (http, server) in [
        (agents.to_owned(), "if ($arg_x = evil) { set $blocked 1; }"),
        (agents.to_owned(), "set $Blocked 1;"),
        (
            agents.to_owned(),
            "auth_request_set $blocked $upstream_http_x;",
        ),
        (
            agents.to_owned(),
            "location ~ ^/n/(?<blocked>[01])/ { return 204; }",
        ),
        (
            agents.to_owned(),
            "location ~ ^/n/(?P<BLOCKED>[01])/ { return 204; }",
        ),
        (
            format!("{agents} map $http_x $BLOCKED {{ default 0; a 1; }}"),
            "",
        ),
        (
            format!("{agents} geo $blocked {{ default 0; 10.0.0.0/8 1; }}"),
            "",
        ),
        (
            format!("{agents} split_clients $remote_addr $blocked {{ 50% 1; * 0; }}"),
            "",
        ),
        (format!("{agents} perl_set $blocked 'sub {{ 1 }}';"), ""),
        (
            format!(
                "{agents} server {{ listen 81; location / {{ if ($arg_x) {{ set $blocked 1; }} }} }}"
            ),
            "",
        ),
    ] {
        for place in [
            format!("{guard} location / {{ {PASS} }}"),
            format!("location / {{ {guard} {PASS} }}"),
        ] {
            let (routes, import) = of_http(&http, &format!("{server} {place}"));
            let text = routes.concat();
            assert!(!text.contains("upstream"), "{http} {server} {routes:#?}");
            assert!(import.risks() > 0, "{http} {server}");
        }
    }
    // The same one in two files.
    let (routes, _) = of_http(
        &format!("{agents} {agents}"),
        &format!("{guard} location / {{ {PASS} }}"),
    );
    assert!(routes.concat().contains("upstream"), "{routes:#?}");
}

#[test]
fn a_sign_on_for_some_values_holds_for_each_scheme() {
    let text = format!(
        "events {{ }} http {{ include mime.types;\nmap $arg_preview $realm {{ default off; 1 Preview; }}\n\
         server {{ listen 80; listen 443 ssl; ssl_certificate /c.pem; ssl_certificate_key /k.pem;\n\
         location / {{ auth_basic $realm; auth_basic_user_file /p;\n\
         if ($scheme = http) {{ return 301 https://$host$request_uri; }} {PASS} }} }} }}"
    );
    let import = with_directories(
        &[
            ("/nginx.conf", text.as_str()),
            ("/c.pem", ""),
            ("/k.pem", ""),
        ],
        None,
    );
    let routes = routes(&import);
    let of_https = |it: &String| it.contains("scheme = \"https\"");
    let test = "match_regex = \"query:preview ~ (?i)^1$\"";
    let guard = format!("scheme = \"https\"; path = \"/\"; {test}; status = 403");
    assert_eq!(
        routes.iter().find(|it| of_https(it)),
        Some(&guard),
        "{routes:#?}"
    );
}

#[test]
fn a_method_that_is_refused_first_is_refused_for_each_scheme() {
    let guards = "if ($request_method = POST) { return 403; }\n\
                  if ($scheme = http) { return 301 https://$host$request_uri; }";
    for directives in [
        format!("{guards}\nlocation / {{ {PASS} }}"),
        format!("location / {{ {guards}\n{PASS} }}"),
    ] {
        let tls = "listen 443 ssl; ssl_certificate /c.pem; ssl_certificate_key /k.pem;";
        let (routes, _) = of_server(&format!("{tls}\n{directives}"), &["/c.pem", "/k.pem"]);
        for scheme in ["http", "https"] {
            let guard =
                format!("scheme = \"{scheme}\"; path = \"/\"; methods = \"POST\"; status = 403");
            assert!(routes.contains(&guard), "{routes:#?}");
        }
    }
}

#[test]
fn referers_are_tests_of_their_field() {
    let guard = "valid_referers none blocked example.org *.example.org; if ($invalid_referer) { return 403; }";
    let (routes, import) = of_server(&format!("location / {{ {guard} {PASS} }}"), &[]);
    assert_eq!(routes.len(), 3, "{routes:#?}");
    assert!(
        routes[1].contains("header:Referer !~ (?:^$)|"),
        "{routes:#?}"
    );
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
    let (routes, _) = of_server(
        &format!(
            "location / {{ valid_referers server_names; if ($invalid_referer) {{ return 403; }} {PASS} }} server_name ~a.b;"
        ),
        &[],
    );
    assert!(
        !routes.iter().any(|it| it.contains("upstream")),
        "{routes:?}"
    );
}

#[test]
fn a_value_that_a_location_sets_stands_where_it_is_used() {
    let pass = "proxy_set_header Host $host; proxy_pass $app;";
    let (routes, import) = of_server(
        &format!("location / {{ set $app http://t:80; {pass} }}"),
        &[],
    );
    assert_eq!(routes, ["path = \"/\"; upstream = \"t\""]);
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
    for sets in [
        "set $app http://t:80; if ($arg_a = $app) { set $app http://u:80; }",
        "if ($arg_a) { set $app http://u:80; } if ($app) { return 403; } if ($arg_b) { set $app http://v:80; }",
        "if ($remote_user) { set $app http://u:80; }",
        "if ($arg_a ~ (.*)) { set $app http://$1:80; }",
        "if ($arg_a) { set $app http://u:80; perl_set $app x; }",
        "set $app http://t:80; set $app http://u:80;",
        "set $app http://$host:80;",
        "set $app http://t:80; if ($app ~ t) { return 403; }",
        "if ($app) { return 403; } set $app http://t:80;",
        "set $other http://t:80;",
        "set $app http://t:80/x/;",
    ] {
        let (routes, _) = of_server(&format!("location / {{ {sets} {pass} }}"), &[]);
        assert!(
            !routes.iter().any(|it| it.contains("upstream")),
            "{sets} {routes:?}"
        );
    }
}

#[test]
fn a_value_that_conditions_set_is_that_of_the_last_one_that_holds() {
    let sets = "set $app t; if ($arg_a) { set $app u; } if ($arg_b = 1) { set $app v; }";
    let use_it = "add_header X-App $app; return 204;";
    for (server, location) in [(sets, ""), ("", sets)] {
        let (routes, import) = of_server(
            &format!("{server} location / {{ {location} {use_it} }}"),
            &[],
        );
        let route = |test: &str, value: &str| {
            format!(
                "path = \"/\"; {test}status = 204; [route.response_headers]; add = {{ X-App = \"{value}\" }}"
            )
        };
        let expected = [
            route("match_regex = \"query:b ~ ^1$\"; ", "v"),
            route("match_regex = \"query:a ~ ^(?:[^0]|0.)\"; ", "u"),
            route("", "t"),
        ];
        assert_eq!(routes, expected);
        assert_eq!(import.risks(), 0, "{:?}", import.remarks);
    }
    // A variable that nothing uses decides nothing.
    let (routes, import) = of_server(
        &format!("location / {{ if ($remote_user) {{ set $no 1; }} {PASS} }}"),
        &[],
    );
    assert_eq!(routes, ["path = \"/\"; upstream = \"t\""]);
    assert_eq!(import.risks(), 1, "{:?}", import.remarks);
}

#[test]
fn a_value_that_a_server_sets_twice_is_not_known() {
    let pass = "proxy_set_header Host $host; proxy_pass $app;";
    let (routes, _) = of_server(
        &format!("set $app http://t:80;\nlocation / {{ {pass} }}"),
        &[],
    );
    assert_eq!(routes, ["path = \"/\"; upstream = \"t\""]);
    for server in [
        format!("location / {{ set $App http://u:80; {pass} }}"),
        format!("location / {{ perl_set $app http://u:80; {pass} }}"),
        format!("location ~ ^/(?<app>.*)$ {{ {pass} }}"),
    ] {
        let (routes, _) = of_server(&format!("set $app http://t:80;\n{server}"), &[]);
        assert!(!routes.concat().contains("upstream"), "{routes:?}");
    }
}

#[test]
fn answers_of_a_server_have_its_fields() {
    let (routes, _) = of_server(
        "add_header X-A a always;\nreturn 301 https://$host$request_uri;",
        &[],
    );
    let expected = "path = \"/\"; redirect = \"https://{host}{path_query}\"; status = 301; [route.response_headers]; \
                    add = { X-A = \"a\" }";
    assert!(routes.iter().any(|it| it.contains(expected)), "{routes:?}");
}

#[test]
fn a_variable_that_the_source_sets_itself_is_none_of_the_request() {
    for set in [
        "set $http_x_user admin;",
        "if ($arg_a) { set $http_x_user admin; }",
        "location ~ ^/(?<http_x_user>.*)$ { return 204; }",
    ] {
        let (routes, _) = of_server(
            &format!("{set}\nlocation ^~ / {{ proxy_set_header X-User $http_x_user; {PASS} }}"),
            &[],
        );
        assert!(
            !routes.iter().any(|it| it.contains("{header:")),
            "{routes:?}"
        );
    }
    let (routes, _) = of_server(
        &format!(
            "location / {{ proxy_set_header X-User $http_x_name; add_header X-U \"$uri$is_args$args\"; {PASS} }}"
        ),
        &[],
    );
    assert_eq!(
        routes,
        [
            "path = \"/\"; upstream = \"t\"; [route.request_headers]; set = { X-User = \"{header:x-name}\" }; \
          [route.response_headers]; add = { X-U = \"{path}{search}\" }"
        ]
    );
    let (routes, _) = of_server(&format!("set $args a=b;\nlocation / {{ {PASS} }}"), &[]);
    assert_eq!(routes, ["path = \"/\"; status = 403"]);
}

const PASS: &str = "proxy_set_header Host $host; proxy_pass http://t:80;";
