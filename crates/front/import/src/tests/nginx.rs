//! Tests that what nginx closes is converted alike or closed, and never opened.

use super::*;

/// Converts a configuration of nginx with these servers; `files` exist as well.
fn of_servers(servers: &str, files: &[&str]) -> Import {
    let conf = format!("events {{\n}} include mime.types;\n{servers}");
    let mut texts = vec![("/nginx.conf", conf.as_str())];
    texts.extend(files.iter().map(|it| (*it, "")));
    with_directories(&texts, None)
}

/// Converts a server that listens on port 80, and returns its routes.
pub(super) fn of_server(directives: &str, files: &[&str]) -> (Vec<String>, Import) {
    let import = of_servers(&format!("server {{\nlisten 80;\n{directives}\n}}\n"), files);
    (routes(&import), import)
}

#[test]
fn an_expression_that_is_not_read_closes_and_opens_nothing() {
    for inner in ["deny all;", "proxy_pass http://t:80;"] {
        for (expression, closed) in [
            ("^/(?|a|b)/admin", "regex = \"^/\"; status = 403"),
            (
                "^/(?!a/)[^/]+/admin",
                "regex = \"^/[^/]+/admin\"; status = 403",
            ),
            ("/a++/admin", "regex = \"/a+/admin\"; status = 403"),
        ] {
            let (routes, import) = of_server(
                &format!(
                    "location ~ \"{expression}\" {{ {inner} }}\nlocation ^~ /open/ {{ return 204; }}\n\
                     location / {{ proxy_pass http://t:80; }}"
                ),
                &[],
            );
            assert_eq!(routes.last().unwrap(), closed, "{expression} {inner}");
            let firm = "path = \"/open\"; before_regex = true; status = 204";
            assert!(routes.iter().any(|it| it == firm), "{routes:?}");
            assert!(import.risks() > 0);
        }
    }
}

#[test]
fn expressions_are_routes_in_the_order_of_the_file() {
    let (routes, _) = of_server(
        "proxy_set_header Host $host;\nlocation ~* \\.gif$ { proxy_pass http://a:80; }\n\
         location ~ \"^/(?<app>[a-z]+)/(.*)\" { proxy_set_header X-App $app; proxy_pass http://b:80/$2$is_args$args; }\n\
         location ~ ^/old/(.*)$ { return 301 https://n.org/$1; }\n\
         location ^~ /raw/ { return 204; }\nlocation /raw/deep/ { return 204; }\nlocation = /one { return 204; }",
        &[],
    );
    let expected = [
        "path = \"/one\"; exact = true; status = 204",
        "path = \"/raw/deep\"; status = 204",
        "path = \"/raw\"; before_regex = true; status = 204",
        "path = \"/\"; status = 404",
        "regex = \"(?i)\\\\.gif$\"; upstream = \"a\"",
        "regex = \"^/(?<app>[a-z]+)/(.*)\"; upstream = \"b\"; rewrite = \"/{2}\"; [route.request_headers]; \
         set = { X-App = \"{app}\" }",
        "regex = \"^/old/(.*)$\"; redirect = \"https://n.org/{1}\"; status = 301",
    ];
    for it in expected {
        assert!(routes.iter().any(|route| route == it), "{it}\n{routes:#?}");
    }
}

#[test]
fn expressions_inside_a_location_close_it_before_others() {
    let (routes, _) = of_server(
        "location ~ . { proxy_pass http://t:80; }\nlocation / { location ~ ^/a { deny all; } }",
        &[],
    );
    assert_eq!(routes, ["path = \"/\"; status = 403"]);
}

#[test]
fn redirects_by_rewrite_have_the_query_and_what_was_captured() {
    for (rewrite, expected) in [
        (
            "^/old/([0-9]+)$ /new/$1 permanent",
            "regex = \"^/old/([0-9]+)$\"; redirect = \"/new/{1}{search}\"; status = 301",
        ),
        (
            "^/old/(.*)$ https://n.org/x? redirect",
            "regex = \"^/old/(.*)$\"; redirect = \"https://n.org/x\"; status = 302",
        ),
        (
            "^(.*)$ https://n.org$1 permanent",
            "path = \"/\"; redirect = \"https://n.org{path_query}\"; status = 301",
        ),
        (
            "^/old/(.*)$ /new/$1?a=b permanent",
            "regex = \"^/old/(.*)$\"; redirect = \"/new/{1}?a=b{and_query}\"; status = 301",
        ),
        (
            "^/old/(.*)$ /new/$1 last",
            "regex = \"^/old/(.*)$\"; status = 403",
        ),
    ] {
        let (routes, _) = of_server(
            &format!("rewrite {rewrite};\nlocation / {{ deny all; }}"),
            &[],
        );
        assert!(
            routes.iter().any(|it| it == expected),
            "{rewrite} {routes:?}"
        );
    }
}

#[test]
fn a_location_redirects_by_a_rewrite_of_every_path() {
    for (directives, expected) in [
        (
            "rewrite ^ https://n.org$request_uri? permanent;",
            "path = \"/a\"; redirect = \"https://n.org{path_query}\"; status = 301",
        ),
        (
            "rewrite ^ http://n.org/x;",
            "path = \"/a\"; redirect = \"http://n.org/x{search}\"; status = 302",
        ),
        (
            "rewrite ^/a/(.*)$ http://n.org/$1 redirect; proxy_pass http://t:80;",
            "path = \"/a\"; status = 403",
        ),
        (
            "break; rewrite ^ http://n.org/x redirect; proxy_pass http://t:80;",
            "path = \"/a\"; status = 403",
        ),
    ] {
        let (routes, _) = of_server(&format!("location /a/ {{ {directives} }}"), &[]);
        assert!(
            routes.iter().any(|it| it == expected),
            "{directives} {routes:?}"
        );
    }
}

#[test]
fn a_route_that_check_refuses_is_closed() {
    let (routes, import) = of_server("allow 127.0.0.1;\nreturn 302 /app/;", &[]);
    assert_eq!(routes, ["path = \"/\"; status = 403"]);
    assert!(import.risks() > 0);
}

#[test]
fn what_an_expression_may_take_otherwise_is_closed() {
    for directives in [
        "location ~ ^/(a)+$ { return 301 /$1; }",
        "location ~ ^/(.*)$ { return 301 /$name; }",
        "location ~ ^/(.*)$ { proxy_pass http://t:80/$1; }",
        "location ~ ^/(.*)$ { proxy_pass http://t:80/$2$is_args$args; }",
        "location ~ ^/(.*)$ { proxy_pass http://$1; }",
        "location ~ ^/(.*)$ { root /srv/$1; }",
        "location ~ ^/(.*)$ { alias /srv/$1; }",
        "location ~ ^/(.*)$ { if ($http_x ~ (.*)) { } proxy_pass http://t:80; }",
    ] {
        let (routes, import) = of_server(directives, &["/srv/a.css"]);
        let opens = |it: &String| it.contains("upstream") || it.contains("files");
        let redirects = |it: &String| it.contains("redirect");
        assert!(
            !routes.iter().any(|it| opens(it) || redirects(it)),
            "{directives} {routes:?}"
        );
        assert!(import.risks() > 0, "{directives}");
    }
}

#[test]
fn a_sign_of_patterns_in_a_prefix_is_no_wildcard() {
    let (routes, import) = of_server(
        "location /pub* { proxy_pass http://t:80; }\nlocation / { deny all; }",
        &[],
    );
    assert!(
        routes.iter().all(|it| !it.contains("upstream")),
        "{routes:?}"
    );
    assert!(import.risks() > 0);
}

#[test]
fn what_decides_about_a_location_does_so_in_any_order() {
    for guard in [
        "internal;",
        "return 403;",
        "deny all;",
        "limit_except GET { deny all; }",
        "auth_basic x;",
    ] {
        for inner in [
            format!("{guard} proxy_pass http://t:80;"),
            format!("proxy_pass http://t:80; {guard}"),
        ] {
            let (routes, _) = of_server(&format!("location /x/ {{ {inner} }}"), &[]);
            let of_x = routes
                .iter()
                .find(|it| it.starts_with("path = \"/x\"; status"));
            assert!(of_x.is_some(), "{inner}\n{routes:?}");
        }
    }
}

#[test]
fn hosts_that_no_route_can_have_are_closed_where_they_would_come_to_another_server() {
    let open = "proxy_set_header Host $host; location / { proxy_pass http://t:80; }";
    let closed = "location / { deny all; }";
    for name in ["~^intern[0-9]*\\.x\\.org$", "www.x.*", "$hostname"] {
        let import = of_servers(
            &format!(
                "server {{ listen 80; listen 81; server_name x.org; {open} }}\n\
                 server {{ listen 80; server_name {name}; {closed} }}\n"
            ),
            &[],
        );
        let routes = routes(&import);
        for expected in [
            "host = \"x.org\"; listen = \"port-80\"; path = \"/\"; upstream = \"t\"",
            "listen = \"port-81\"; path = \"/\"; upstream = \"t\"",
            "listen = \"port-80\"; path = \"/\"; status = 403",
        ] {
            assert!(
                routes.iter().any(|it| it == expected),
                "{name}: {expected}\n{routes:?}"
            );
        }
        assert!(import.risks() > 0);
        // All that nobody names is its own.
        let import = of_servers(
            &format!("server {{ listen 80; server_name {name}; {open} }}\n"),
            &[],
        );
        assert_eq!(
            (self::routes(&import)[0].as_str(), import.risks()),
            ("path = \"/\"; upstream = \"t\"", 0)
        );
    }
}

#[test]
fn a_list_of_proxies_is_read_as_nginx_reads_it_or_believed_in_nothing() {
    let guard = "location /x/ { allow 10.0.0.0/8; deny all; proxy_pass http://t:80; }";
    for (proxies, is_plain) in [
        ("set_real_ip_from 10.0.0.5;", true),
        ("set_real_ip_from 10.0.0.5; real_ip_recursive off;", true),
        ("set_real_ip_from 10.0.0.0/8;", false),
        ("set_real_ip_from 10.0.0.0/8; real_ip_recursive off;", false),
        (
            "set_real_ip_from 10.0.0.5; set_real_ip_from 10.0.0.6;",
            false,
        ),
        ("set_real_ip_from 10.0.0.0/8; real_ip_recursive on;", true),
    ] {
        let (routes, import) = of_server(
            &format!("real_ip_header X-Forwarded-For; {proxies}\n{guard}"),
            &[],
        );
        let is_open = routes
            .iter()
            .any(|it| it.contains("allow = \"10.0.0.0/8\""));
        assert_eq!(is_open, is_plain, "{proxies}\n{routes:?}");
        assert_eq!(
            import.text.contains("trusted_proxies = "),
            is_plain,
            "{proxies}"
        );
    }
}

#[test]
fn a_field_whose_value_is_not_known_is_removed() {
    for (value, expected) in [
        ("\"\"", "remove = \"X-User\""),
        ("$host_x", "remove = \"X-User\""),
        ("$remote_addr_x", "remove = \"X-User\""),
        ("a$scheme$msec", "remove = \"X-User\""),
        ("$http_host$http_via", "remove = \"X-User\""),
        ("${host}_x", "set = { X-User = \"{host}_x\" }"),
        ("$host-x", "set = { X-User = \"{host}-x\" }"),
    ] {
        let (_, import) = of_server(
            &format!("location /x/ {{ proxy_set_header X-User {value}; proxy_pass http://t:80; }}"),
            &[],
        );
        assert!(import.text.contains(expected), "{value}\n{}", import.text);
    }
    for fields in [
        "proxy_set_header X-User $host; proxy_set_header x-user $weird;",
        "proxy_set_header X-User $weird; proxy_set_header x-user $host;",
        "proxy_set_header X-User $host; proxy_set_header x-user \"\";",
        "proxy_set_header X-User $host; proxy_set_header x-user $scheme;",
    ] {
        let text = format!("location /x/ {{ {fields} proxy_pass http://t:80; }}");
        let (_, import) = of_server(&text, &[]);
        let has = |it: &str| import.text.to_ascii_lowercase().contains(it);
        assert!(has("remove = \"x-user\""), "{fields}\n{}", import.text);
        assert!(!has("set = {"), "{fields}\n{}", import.text);
    }
    let hidden = "proxy_hide_header X-A; proxy_hide_header x-a; add_header X-A a;";
    let (_, import) = of_server(
        &format!("location / {{ {hidden} proxy_pass http://t:80; }}"),
        &[],
    );
    for line in ["remove = \"X-A\"\n", "add = { X-A = \"a\" }\n"] {
        assert!(import.text.contains(line), "{}", import.text);
    }
    let (routes, _) = of_server("location / { return 302 https://$host_x/; }", &[]);
    assert_eq!(routes[0], "path = \"/\"; status = 403");
    let (routes, _) = of_server(
        "location / { proxy_pass_request_headers off; proxy_pass http://t:80; }",
        &[],
    );
    assert_eq!(routes[0], "path = \"/\"; status = 403");
    let upgrade = |value: &str| {
        let text =
            format!("location / {{ proxy_set_header Upgrade {value}; proxy_pass http://t:80; }}");
        of_server(&text, &[]).1.text.contains("upgrade = ")
    };
    assert!(upgrade("$http_upgrade") && !upgrade("\"\""));
    let (_, import) = of_server(
        "server_name x.org;\nlocation / { proxy_set_header Host $server_name; proxy_pass http://t:80; }",
        &[],
    );
    assert!(import.text.contains("host = \"x.org\""), "{}", import.text);
}

#[test]
fn a_host_whose_value_is_not_known_is_not_left_to_the_client() {
    for (value, expected) in [
        ("$host_x", Some("backend")),
        ("\"\"", Some("backend")),
        ("$server_name", Some("backend")),
        ("$http_x_forwarded_host", Some("backend")),
        ("app.internal:8080", Some("backend")),
        ("app.internal", Some("app.internal")),
        ("$host", None),
        ("${host}", None),
        ("$http_host", None),
    ] {
        let text =
            format!("location / {{ proxy_set_header Host {value}; proxy_pass http://t:80; }}");
        let (_, import) = of_server(&text, &[]);
        let line = import
            .text
            .lines()
            .find_map(|it| it.strip_prefix("host = "));
        let expected = expected.map(|it| format!("\"{it}\""));
        assert_eq!(
            line.map(str::to_owned),
            expected,
            "{value}\n{}",
            import.text
        );
    }
}

#[test]
fn fields_of_responses_are_added_to_those_that_are_there() {
    let (_, import) = of_server(
        "location / { add_header Vary X-Theme; add_header Set-Cookie a=1; add_header Set-Cookie b=2; \
         add_header ETag x; proxy_set_header Host $host; proxy_pass http://t:80; }\nlocation /x/ { return 404; }",
        &[],
    );
    for line in [
        "set = { ETag = \"x\" }",
        "add = { Vary = \"X-Theme\" }",
        "add = { Set-Cookie = \"a=1\", set-cookie = \"b=2\" }",
        "statuses = [\"200\", \"201\", \"204\", \"206\", \"301-304\", \"307\", \"308\"]",
    ] {
        assert!(import.text.contains(line), "{}", import.text);
    }
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
    assert!(
        catamaran_config::parse("c.toml", &import.text).is_ok(),
        "{}",
        import.text
    );
}

#[test]
fn a_host_that_is_called_as_a_keyword_does_not_let_clients_choose() {
    let block = "upstream client { server t:80; }\n";
    for (server, is_said) in [
        ("location / { proxy_pass http://client; }", false),
        (
            "location / { proxy_set_header Host client; proxy_pass http://t:80; }",
            true,
        ),
        (
            "server_name client; location / { proxy_set_header Host $server_name; proxy_pass http://t:80; }",
            true,
        ),
    ] {
        let import = of_servers(&format!("{block}server {{ listen 80; {server} }}"), &[]);
        assert!(
            import.text.contains("host = \"backend\""),
            "{}",
            import.text
        );
        assert_eq!(import.risks() > 0, is_said, "{:?}", import.remarks);
    }
}

#[test]
fn a_limit_of_bodies_is_on_all_that_answers_with_content() {
    for (location, is_limited) in [
        ("proxy_pass http://t:80;", true),
        ("root /srv;", true),
        ("return 200 ok;", true),
        ("return 204;", true),
        ("stub_status;", true),
        ("return 404;", false),
        ("return 301 /x;", false),
    ] {
        let (routes, _) = of_server(
            &format!("location / {{ client_max_body_size 1k; {location} }}"),
            &["/srv/a.css", "/srv/b.html"],
        );
        let has_limit = routes[0].contains("body_max = \"1KiB\"");
        assert_eq!(has_limit, is_limited, "{location}: {routes:?}");
    }
}

#[test]
fn the_status_page_has_the_counts_of_the_front() {
    let (routes, import) = of_server(
        "location = /status { stub_status; }\n\
         location / { add_header X-Active $connections_active; return 204; }\n\
         location /app/ { add_header X-Active $connections_active; proxy_pass http://t:80; }",
        &[],
    );
    let page = "methods = \"GET\"; status = 200; text = \"Active connections: {connections_open}";
    assert!(routes[0].contains(page), "{routes:?}");
    assert!(
        routes[1].contains("path = \"/status\"; exact = true; status = 405"),
        "{routes:?}"
    );
    let has_count = |it: &&String| it.contains("X-Active = \"{connections_open}\"");
    assert_eq!(routes.iter().filter(has_count).count(), 1, "{routes:?}");
    assert!(catamaran_config::parse("c.toml", &import.text).is_ok());
}

#[test]
fn the_status_page_has_the_guards_of_its_location() {
    let of = |guard: &str, server: &str| {
        let zone = "limit_req_zone $binary_remote_addr zone=z:1m rate=5r/s;";
        let servers = format!(
            "{zone}\nserver {{ listen 80; {server} location = /status {{ stub_status; {guard} }} }}"
        );
        let import = of_servers(&servers, &[]);
        assert!(
            catamaran_config::parse("c.toml", &import.text).is_ok(),
            "{}",
            import.text
        );
        routes(&import)[0].clone()
    };
    for (guard, key) in [
        ("allow 127.0.0.1; deny all;", "allow = \"127.0.0.1\""),
        ("deny 10.0.0.1;", "deny = \"10.0.0.1\""),
        ("limit_req zone=z;", "limits = "),
        ("auth_basic off; satisfy all;", "text = "),
        (
            "satisfy any; allow 127.0.0.1; deny all;",
            "allow = \"127.0.0.1\"",
        ),
    ] {
        for route in [of(guard, ""), of("", guard)] {
            assert!(route.contains("text = \"Active"), "{guard}: {route}");
            assert!(route.contains(key), "{guard}: {route}");
        }
    }
    for guard in [
        "deny all;",
        "auth_basic x;",
        "auth_request /auth;",
        "secure_link $arg_x;",
        "access_by_lua x;",
    ] {
        for route in [of(guard, ""), of("", guard)] {
            assert!(!route.contains("text = "), "{guard}: {route}");
        }
    }
}

#[test]
fn a_server_without_a_name_beside_the_default_one_closes_hosts_that_are_not_named() {
    let named = "server { listen 80 default_server; server_name a.org; location / { proxy_set_header Host $host; \
                 proxy_pass http://t:80; } }";
    for (other, is_closed) in [
        ("server { listen 80; server_name \"\"; return 444; }", true),
        ("server { listen 80; return 444; }", true),
        (
            "server { listen 80; server_name b.org; return 444; }",
            false,
        ),
        ("server { listen 81; return 444; }", false),
    ] {
        for servers in [format!("{named}\n{other}"), format!("{other}\n{named}")] {
            let import = of_servers(&servers, &[]);
            assert!(import.text.contains("upstream = \"t\""), "{}", import.text);
            let is_named = import.text.contains("host = \"a.org\"");
            assert_eq!(
                is_named && import.risks() > 0,
                is_closed,
                "{servers}: {}",
                import.text
            );
        }
    }
    // nginx has the default server answer them, because it comes first.
    let import = of_servers(
        "server { listen 80 default_server; return 204; }\nserver { listen 80; return 444; }",
        &[],
    );
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
}

#[test]
fn a_server_uses_tls_where_another_one_does() {
    let server = |listen: &str, name: &str| {
        format!(
            "server {{ listen {listen}; server_name {name}; ssl_certificate /{name}; ssl_certificate_key /{name}; \
             location / {{ return 204; }} }}\n"
        )
    };
    for (one, other) in [("8443 ssl", "8443"), ("8443", "8443 ssl")] {
        let servers = server(one, "a.org") + &server(other, "b.org");
        let import = of_servers(&servers, &["/a.org", "/b.org"]);
        for name in ["a.org", "b.org"] {
            let line = format!("chain = \"/{name}\"");
            assert!(
                import.text.contains(&line),
                "{one} {other}: {}",
                import.text
            );
        }
        assert_eq!(import.risks(), 0, "{:?}", import.remarks);
    }
}

#[test]
fn certificates_that_are_not_verified_are_not_asked_for() {
    let tls = "listen 443 ssl; ssl_certificate /c; ssl_certificate_key /c; ssl_verify_client optional_no_ca;";
    for (server, is_open) in [
        (tls.to_owned(), true),
        (format!("{tls} ssl_client_certificate /none;"), false),
    ] {
        let servers = format!("server {{ {server} location / {{ return 204; }} }}");
        let import = of_servers(&servers, &["/c"]);
        let is_answered = routes(&import).iter().any(|it| it.contains("status = 204"));
        assert_eq!(is_answered, is_open, "{}", import.text);
        assert!(import.risks() > 0);
    }
}

#[test]
fn fields_of_responses_may_have_values_of_tls_and_of_the_response() {
    for (field, expected) in [
        (
            "X-A \"$ssl_protocol/$ssl_cipher\"",
            Some("X-A = \"{tls_version}/{tls_cipher}\""),
        ),
        ("X-A $upstream_http_x_b", Some("X-A = \"{response:x-b}\"")),
        (
            "X-A $upstream_cookie_B",
            Some("X-A = \"{response_cookie:B}\""),
        ),
        ("X-A $sent_http_x_b", Some("X-A = \"{response:x-b}\"")),
        // The front has the response's fields before it adds others.
        ("X-A $sent_http_x_a", None),
        ("X-A $upstream_response_time", None),
    ] {
        let (_, import) = of_server(
            &format!(
                "location / {{ add_header {field}; proxy_set_header Host $host; proxy_pass http://t:80; }}"
            ),
            &[],
        );
        let line = expected.map_or("X-A", |it| it);
        let is_there = import.text.contains(&format!("add = {{ {line}"));
        assert_eq!(is_there, expected.is_some(), "{field}: {}", import.text);
        assert!(catamaran_config::parse("c.toml", &import.text).is_ok());
    }
    let (shown, _) = of_server(
        "location / { proxy_set_header X-A $upstream_http_x_b; proxy_set_header Host $host; proxy_pass http://t:80; }",
        &[],
    );
    assert!(
        shown[0].contains("remove = [\"X-A\"]") || shown[0].contains("remove = \"X-A\""),
        "{shown:?}"
    );
}

#[test]
fn a_field_that_a_location_adds_to_its_own_answer_is_known_where_it_is_named() {
    for (fields, expected) in [
        (
            "add_header A 1; add_header a {2}; add_header X $sent_http_a; add_header A 3;",
            Some("X = \"1, {{2}}\""),
        ),
        ("add_header X $sent_http_a; add_header A 3;", None),
        ("add_header A $host; add_header X $sent_http_a;", None),
        (
            "add_header Content-Type a/b; add_header X $sent_http_content_type;",
            None,
        ),
        (
            "expires 1d; add_header A 1; add_header X $sent_http_a;",
            None,
        ),
    ] {
        let quoted = fields.replace("{2}", "\"{2}\"");
        let (_, import) = of_server(&format!("location / {{ {quoted} return 204; }}"), &[]);
        let has_it = |it: &str| it.contains("X = ");
        let is_there = match expected {
            Some(line) => import.text.contains(line),
            None => import.text.lines().any(has_it),
        };
        assert_eq!(is_there, expected.is_some(), "{fields}: {}", import.text);
        assert!(catamaran_config::parse("c.toml", &import.text).is_ok());
    }
    let passed =
        "location / { add_header A 1; add_header X $sent_http_a; proxy_pass http://t:80; }";
    assert!(!of_server(passed, &[]).1.text.contains("X = "));
}

#[test]
fn texts_of_return_have_the_type_of_their_path() {
    for (location, expected) in [
        (
            "location = /robots.txt { default_type application/octet-stream; return 200 a; }",
            "text/plain",
        ),
        (
            "location /in/a.JSON { return 200 '{}'; }",
            "application/json",
        ),
        (
            "location = /a.b { default_type text/html; return 200 a; }",
            "text/html",
        ),
        (
            "location = /a.d/b { default_type text/html; return 200 a; }",
            "text/html",
        ),
    ] {
        let (routes, import) = of_server(location, &[]);
        let kind = format!("text_type = \"{expected}\"");
        let has_kind = |it: &String| it.contains(&kind);
        assert!(routes.iter().any(has_kind), "{location} {routes:?}");
        assert_eq!(import.risks(), 0, "{location} {:?}", import.remarks);
    }
    // Browsers would run what a client sent.
    let (routes, _) = of_server("location = /a.svg { return 200 $arg_a; }", &[]);
    assert!(!routes.concat().contains("text = "), "{routes:?}");
}

#[test]
fn texts_of_return_are_sent_unless_a_browser_would_run_what_clients_sent() {
    for (text, expected) in [
        (
            "return 200 ok;",
            "status = 200; text = \"ok\"; text_type = \"text/plain\"",
        ),
        (
            "default_type application/json; return 200 '{\"ip\":\"$remote_addr\"}';",
            "status = 200; text = \"{\\\"ip\\\":\\\"{client_ip}\\\"}\"; text_type = \"application/json\"",
        ),
        (
            "return 404 \"no $uri here\";",
            "status = 404; text = \"no {path} here\"; text_type = \"text/plain\"",
        ),
        (
            "default_type text/html; return 200 <p>$scheme;",
            "status = 200; text = \"<p>{scheme}\"; text_type = \"text/html\"",
        ),
        (
            "default_type text/html; return 200 <p>$uri;",
            "status = 403",
        ),
        ("return 200 $unknown;", "status = 403"),
        ("return 200 '{host}';", "status = 403"),
        ("return 204 text;", "status = 403"),
    ] {
        let (routes, import) = of_server(
            &format!("location = /x {{ {text} }}\nlocation / {{ proxy_pass http://t:80; }}"),
            &[],
        );
        let route = format!("path = \"/x\"; exact = true; {expected}");
        assert!(routes.contains(&route), "{text}: {routes:?}");
        assert_eq!(
            import.risks() > 0,
            expected == "status = 403",
            "{text}: {:?}",
            import.remarks
        );
    }
}

#[test]
fn locations_inside_prefixes_stand_beside_them_with_what_they_inherit() {
    let (routes, import) = of_server(
        "location /a/ { allow 10.0.0.0/8; deny all; proxy_set_header X-A 1; proxy_set_header Host $host; \
         proxy_pass http://t:80;\n\
         location /a/open/ { allow all; proxy_pass http://t:80; location = /a/open/x { deny all; proxy_pass http://t:80; } }\n\
         location /a/none/ { return 404; } location /a/bare/ { } }\n\
         location /a/openly/ { return 410; }\nlocation / { return 404; }",
        &[],
    );
    // Without the slash it is another path, for which the outer location is.
    let find = |path: &str| {
        let is_exact = path.ends_with('x');
        let line = format!("path = \"{path}\"");
        let mut found = routes
            .iter()
            .filter(|it| it.starts_with(&line) && it.contains("exact = true") == is_exact);
        found.next().cloned().unwrap_or_default()
    };
    for (path, has, has_not) in [
        ("/a", "allow = \"10.0.0.0/8\"", "status = 403"),
        ("/a/open", "X-A = \"1\"", "allow = "),
        ("/a/open/x", "status = 403", "upstream = "),
        ("/a/none", "status = 404", "upstream = "),
        ("/a/openly", "status = 410", "upstream = "),
        ("/a/bare", "status = 404", "upstream = "),
    ] {
        let found = find(path);
        assert!(
            found.contains(has),
            "{path} has no {has}: {found}\n{}",
            import.text
        );
        assert!(
            !found.contains(has_not),
            "{path} has {has_not}: {found}\n{}",
            import.text
        );
    }
}

#[test]
fn locations_inside_others_that_have_no_place_beside_them_close() {
    for inner in [
        "location ~ \\.php$ { deny all; } proxy_pass http://t:80;",
        "alias /srv/a/; location /a/b/ { deny all; }",
        "internal; location /a/b/ { proxy_pass http://t:80; }",
        "limit_except GET { deny all; } location /a/b/ { proxy_pass http://t:80; }",
        "location /other/ { deny all; } proxy_pass http://t:80;",
        "proxy_pass http://t:80; location /a/ { deny all; proxy_pass http://t:80; }",
        "proxy_pass http://t:80; location /a/b/ { proxy_pass http://t:80; } } location /a/b { deny all;",
        "proxy_pass http://t:80; location = /a/b { proxy_pass http://t:80; } } location = /a/b { deny all;",
        "proxy_pass http://t:80; location /a/b/ { proxy_pass http://t:80; } } location ^~ /a/b/ { deny all;",
    ] {
        let (routes, import) = of_server(
            &format!("location /a/ {{ {inner} }}\nlocation / {{ proxy_pass http://t:80; }}"),
            &[],
        );
        let closed = "path = \"/a\"; status = 40";
        assert!(
            routes.iter().any(|it| it.starts_with(closed)),
            "{inner}\n{}",
            import.text
        );
        let opens = |it: &&String| it.starts_with("path = \"/a/") && it.contains("upstream");
        let opened = routes.iter().find(opens);
        assert_eq!(opened, None, "{inner}\n{}", import.text);
    }
}

#[test]
fn what_leads_to_backends_that_the_front_would_refuse_is_closed() {
    let (routes, import) = of_server(
        "location /a/ { proxy_pass https://t:443; proxy_ssl_certificate a.pem; proxy_ssl_certificate_key locked.key; \
         proxy_ssl_verify off; }\nlocation /b/ { proxy_pass http://t:80; }",
        &["/a.pem", "a.pem", "locked.key"],
    );
    let closed = "path = \"/a\"; status = 403".to_owned();
    assert!(routes.contains(&closed), "{}", import.text);
    assert!(!import.text.contains("https:"), "{}", import.text);
    assert!(import.text.contains("http://t:80"), "{}", import.text);
    let risks = said(&import, Weight::Risk);
    let has = |text: &str| risks.iter().any(|it| it.contains(text));
    assert!(has("cannot reach the upstream"), "{risks:?}");
}

#[test]
fn a_fixed_host_that_the_application_is_told_is_a_risk() {
    let risks = |value: &str| {
        let text = format!(
            "location / {{ proxy_set_header X-Forwarded-Host {value}; proxy_set_header Host $host; \
             proxy_pass http://t:80; }}"
        );
        of_server(&text, &[]).1.risks()
    };
    assert_eq!(
        (risks("$host"), risks("fixed.test"), risks("\"\"")),
        (0, 1, 1)
    );
}

#[test]
fn what_check_would_refuse_is_closed_in_the_file() {
    let import = converted(
        &[
            (
                "nginx.conf",
                "http { upstream app { server 127.0.0.1:81; server 127.0.0.1:81 weight=2; server 127.0.0.1:82; }\n\
                 server { listen 127.0.0.1:443 ssl; ssl_certificate a.pem; ssl_certificate_key locked.key;\n\
                 location / { proxy_pass http://app; } }\n\
                 server { listen 127.0.0.1:80 proxy_protocol; location / { return 204; } } }\n",
            ),
            ("a.pem", ""),
            ("locked.key", ""),
        ],
        None,
    );
    for line in [
        "name = \"http://127.0.0.1:81#2\"",
        "# the key locked.key is encrypted: until then it is kept from the network",
        "proxy_protocol_from = \"192.0.2.1\"",
    ] {
        assert!(import.text.contains(line), "{line}\n{}", import.text);
    }
    assert!(!import.text.contains("tls ="), "{}", import.text);
    let risks = said(&import, Weight::Risk);
    assert!(
        risks
            .iter()
            .any(|it| it.contains("cannot serve TLS on 127.0.0.1:443: the key locked.key")),
        "{risks:?}"
    );
}

#[test]
fn listeners_take_the_clients_of_the_source() {
    let pass = "location / { return 204; }";
    for (listens, expected) in [
        (&["listen 80;"][..], &["0.0.0.0:80"][..]),
        (&["listen *:80;"], &["0.0.0.0:80"]),
        (&["listen 0.0.0.0:80;"], &["0.0.0.0:80"]),
        (&[""], &["0.0.0.0:80"]),
        (&["listen 80; listen [::]:80;"], &["[::]:80"]),
        (&["listen [::]:80 ipv6only=off;"], &["[::]:80"]),
        (&["listen [::]:80;"], &["[::1]:80"]),
        (
            &["listen 80;", "listen 80; listen [::]:80;"],
            &["0.0.0.0:80", "[::]:80"],
        ),
        (&["listen localhost:80;"], &["127.0.0.1:80"]),
        (
            &["listen 80;", "listen 127.0.0.1:80; listen 8081;"],
            &["0.0.0.0:80", "0.0.0.0:8081"],
        ),
        (
            &["listen 80;", "listen intern:80; listen [::1]:8081;"],
            &["0.0.0.0:80", "[::1]:8081"],
        ),
        (&["listen 80; listen 127.0.0.1:80;"], &["0.0.0.0:80"]),
        (&["listen www.example.org:80;"], &["127.0.0.1:80"]),
    ] {
        let server =
            |(at, it): (usize, &&str)| format!("server {{ server_name h{at}.org; {it} {pass} }}\n");
        let servers: String = listens.iter().enumerate().map(server).collect();
        let import = of_servers(&servers, &[]);
        let found = import
            .text
            .lines()
            .filter_map(|it| it.strip_prefix("address = "));
        let expected: Vec<String> = expected.iter().map(|it| format!("\"{it}\"")).collect();
        assert_eq!(found.collect::<Vec<_>>(), expected, "{listens:?}");
    }
}

#[test]
fn certificates_of_backends_are_verified_as_there() {
    let ca = "proxy_ssl_verify on; proxy_ssl_trusted_certificate /ca.pem;";
    for (outer, inner, verifies) in [
        ("", "", false),
        ("", "proxy_ssl_verify off; proxy_ssl_verify_depth 2;", false),
        ("", ca, true),
        (ca, "", true),
        (ca, "proxy_ssl_verify_depth 1;", true),
        (ca, "proxy_ssl_verify off;", false),
    ] {
        let (_, import) = of_server(
            &format!("{outer}\nlocation / {{ {inner} proxy_pass https://t; }}"),
            &["/ca.pem"],
        );
        assert_eq!(
            import.text.contains("verify = \"off\""),
            !verifies,
            "{outer} {inner}"
        );
        assert_eq!(
            import.text.contains("ca_file = \"/ca.pem\""),
            verifies,
            "{outer} {inner}"
        );
        assert_eq!(
            import.text.contains("ca_depth = 1"),
            verifies,
            "{outer} {inner}"
        );
        // What a location takes back is a risk of its own.
        let is_taken_back = !outer.is_empty() && !verifies;
        assert_eq!(
            import.risks(),
            usize::from(is_taken_back),
            "{outer} {inner} {:?}",
            import.remarks
        );
    }
}

#[test]
fn a_rule_of_one_scheme_that_crosses_another_is_closed_for_both() {
    let (routes, import) = of_server(
        "proxy_set_header Host $host;\nlocation ~ /index { proxy_pass http://t:80; }\n\
         location ^~ /pub/ { if ($http_x_forwarded_proto != https) { return 403; } proxy_pass http://t:80; }",
        &[],
    );
    for expected in [
        "path = \"/pub\"; before_regex = true; status = 403",
        "regex = \"/index\"; upstream = \"t\"",
    ] {
        assert!(
            routes.iter().any(|it| it == expected),
            "{expected}\n{routes:#?}"
        );
    }
    assert!(
        said(&import, Weight::Risk)
            .iter()
            .any(|it| it.contains("HTTP or HTTPS alone")),
        "{:?}",
        import.remarks
    );
}

#[test]
fn a_rule_of_one_scheme_goes_before_a_longer_prefix() {
    let (routes, _) = of_server(
        "proxy_set_header Host $host;\nlocation /pub/ { proxy_pass http://t:80; }\n\
         location ~ \\.html$ { if ($http_x_forwarded_proto != https) { return 403; } proxy_pass http://t:80; }",
        &[],
    );
    let expected = "scheme = \"http\"; regex = \"\\\\.html$\"; status = 403";
    assert!(routes.iter().any(|it| it == expected), "{routes:#?}");
}

#[test]
fn an_exact_location_that_passes_requests_on_takes_its_path_without_a_slash() {
    let (routes, _) = of_server(
        "proxy_set_header Host $host;\nlocation = /admin/ { deny all; proxy_pass http://t:80; }\n\
         location / { proxy_pass http://t:80; }",
        &[],
    );
    let expected = "path = \"/admin\"; exact = true; redirect = \"/admin/{search}\"; status = 301";
    assert!(routes.iter().any(|it| it == expected), "{routes:#?}");
}

#[test]
fn a_directory_that_is_not_tried_has_no_index() {
    for (tries, expected) in [
        ("$uri =404", "; index = []"),
        ("$uri $uri/ =404", "; index = \"a.html\""),
        ("$uri $uri/index.html =404", "; index = \"index.html\""),
    ] {
        let (routes, _) = of_server(
            &format!("root /srv; index a.html; location / {{ try_files {tries}; }}"),
            &["/srv/a.html", "/srv/a.css"],
        );
        assert!(routes[0].ends_with(expected), "{tries}\n{routes:?}");
    }
}

#[test]
fn a_backend_on_a_unix_socket_is_called_localhost() {
    let block = "upstream my_app { server unix:/run/app.sock; }\n";
    for (before, target) in [("", "unix:/run/app.sock"), (block, "my_app")] {
        let server =
            format!("{before}server {{ listen 80; location / {{ proxy_pass http://{target}; }} }}");
        let import = of_servers(&server, &[]);
        let has_host = import.text.contains("host = \"localhost\"");
        assert!(has_host, "{}", import.text);
        assert_eq!(import.risks(), 0, "{:?}", import.remarks);
    }
}

#[test]
fn files_have_the_types_of_their_location_or_are_closed() {
    let files = ["/srv/raw/x.html", "/srv/up/x.html", "/srv/a.css"];
    let (routes, import) = of_server(
        "root /srv;\nlocation /raw/ { types { } default_type text/plain; }\n\
         location /up/ { types { application/octet-stream html js svg; } }\n\
         location /more/ { include mime.types; types { application/wasm wasm; } }",
        &files,
    );
    let of = |path: &str| {
        let start = format!("path = \"{path}\"; ");
        let found = routes
            .iter()
            .find(|it| it.starts_with(&start) && !it.contains("exact"));
        found.cloned().unwrap_or_default()
    };
    assert!(
        of("/raw").ends_with("set = { Content-Type = \"text/plain\" }"),
        "{routes:?}"
    );
    assert_eq!(of("/up"), "path = \"/up\"; status = 403");
    assert!(
        of("/more").contains("types = { \"wasm\" = \"application/wasm\" }"),
        "{routes:?}"
    );
    assert!(of("/").contains("files = \"/srv\""), "{routes:?}");
    let risks = said(&import, Weight::Risk);
    assert!(
        risks.len() == 1 && risks[0].contains("types of their own"),
        "{risks:?}"
    );
}

#[test]
fn what_a_proxy_before_it_says_of_the_scheme_is_a_condition_of_routes() {
    let directives = "location /a { proxy_set_header X-Forwarded-Proto $http_x_forwarded_proto; proxy_pass http://t:80; }\n\
        location /b { if ($http_x_forwarded_proto != \"https\") { return 301 https://$host$request_uri; } \
        proxy_pass http://t:80; }\n\
        location /c { if ($http_x_forwarded_proto != \"http\") { return 403; } proxy_pass http://t:80; }";
    for (trust, risks) in [
        ("", true),
        (
            "set_real_ip_from 10.0.0.5; real_ip_header X-Forwarded-For;",
            false,
        ),
    ] {
        let (routes, import) = of_server(&format!("{trust}\n{directives}"), &[]);
        for expected in [
            "path = \"/a\"; upstream = \"t\"; rewrite = \"/a\"",
            "scheme = \"http\"; path = \"/b\"; redirect = \"https://{host}{path_query}\"; status = 301",
            "scheme = \"https\"; path = \"/b\"; upstream = \"t\"; rewrite = \"/b\"",
        ] {
            assert!(
                routes.iter().any(|it| it == expected),
                "{expected}\n{routes:#?}"
            );
        }
        assert!(
            routes
                .iter()
                .all(|it| !it.contains("\"/c") || it.contains("status = 403")),
            "{routes:?}"
        );
        let asks = import
            .remarks
            .iter()
            .any(|it| it.weight == Weight::Risk && it.text.contains("trusted_proxies"));
        assert_eq!(asks, risks, "{:?}", import.remarks);
    }
}

#[test]
fn a_path_of_proxy_pass_stands_in_the_place_of_the_text_of_the_location() {
    let (routes, import) = of_server(
        "proxy_set_header Host $host;\nlocation = /health { proxy_pass http://b:80/actuator/health; }\n\
         location = /top { proxy_pass http://b:80/; }\nlocation /c { proxy_pass http://b:80/d/; }\n\
         location /e/ { proxy_pass http://b:80/f; }\nlocation /same { proxy_pass http://b:80/same/; }",
        &[],
    );
    for route in [
        "path = \"/health\"; exact = true; upstream = \"b\"; rewrite = \"/actuator/health\"; rewrite_whole = true",
        "path = \"/top\"; exact = true; upstream = \"b\"; rewrite = \"/\"; rewrite_whole = true",
        "path = \"/c\"; exact = true; upstream = \"b\"; rewrite = \"/d/\"; rewrite_whole = true",
        "path = \"/c\"; upstream = \"b\"; rewrite = \"/d\"",
        "pattern = \"/c*\"; status = 403",
        "path = \"/e/\"; exact = true; upstream = \"b\"; rewrite = \"/f\"; rewrite_whole = true",
        "path = \"/e\"; status = 403",
        "path = \"/same\"; exact = true; upstream = \"b\"; rewrite = \"/same/\"; rewrite_whole = true",
        "path = \"/same\"; upstream = \"b\"; rewrite = \"/same\"",
        "pattern = \"/same*\"; status = 403",
    ] {
        assert!(routes.iter().any(|it| it == route), "{route}\n{routes:#?}");
    }
    let risks = said(&import, Weight::Risk);
    assert!(
        matches!(&risks[..], [risk] if risk.contains("no such new path as `http://b:80/f`")),
        "{risks:?}"
    );
}

#[test]
fn a_path_of_proxy_pass_that_the_front_would_not_send_as_it_is_closes_its_location() {
    for (path, is_open) in [
        ("/y", true),
        ("/y-_.~!z", true),
        ("/y?a=b", false),
        ("/y?", false),
        ("/y%20z", false),
        ("/y#z", false),
        ("/y//z", false),
        ("/y/../z", false),
        ("/./y", false),
        ("/y\\\\z", false),
        ("/{y}", false),
        ("/y*", false),
        ("/\u{e4}", false),
    ] {
        for (location, end) in [("= /x", ""), ("/x/", "/"), ("= /x/", "/")] {
            let pass =
                format!("proxy_set_header Host $host; proxy_pass \"http://b:80{path}{end}\";");
            let (routes, import) = of_server(&format!("location {location} {{ {pass} }}"), &[]);
            let reaches = routes.iter().any(|it| it.contains("upstream = \"b\""));
            assert_eq!(reaches, is_open, "{location} {path} {routes:#?}");
            assert_eq!(
                import.risks() == 0,
                is_open,
                "{location} {path} {:?}",
                import.remarks
            );
        }
    }
}

#[test]
fn an_expression_takes_the_path_of_an_uneven_location() {
    let (routes, _) = of_server(
        "proxy_set_header Host $host;\nlocation /c { proxy_pass http://b:80/d/; }\n\
         location ~ c$ { proxy_pass http://other:80; }\nlocation ^~ /fc { proxy_pass http://b:80/g/; }",
        &[],
    );
    let of_path = |path: &str| {
        let start = format!("path = \"{path}\"; exact = true");
        routes.iter().any(|it| it.starts_with(&start))
    };
    assert!(!of_path("/c") && of_path("/fc"), "{routes:#?}");
}

#[test]
fn fields_have_the_host_and_port_of_proxy_pass() {
    for (url, host, port) in [
        ("http://b:81/x/", "b:81", "81"),
        ("https://b/x/", "b", "443"),
        ("http://[::1]/x/", "[::1]", "80"),
    ] {
        let (_, import) = of_server(
            &format!(
                "location /x/ {{ proxy_pass {url}; proxy_set_header X-A $proxy_host; add_header X-B $proxy_port; }}"
            ),
            &[],
        );
        for field in [format!("X-A = \"{host}\""), format!("X-B = \"{port}\"")] {
            assert!(import.text.contains(&field), "{field}\n{}", import.text);
        }
    }
}

#[test]
fn a_default_server_that_rejects_handshakes_makes_names_strict() {
    let certificate = "ssl_certificate /c.pem; ssl_certificate_key /k.pem;";
    let named = format!(
        "server {{ listen 443 ssl; server_name a.test; {certificate}\nlocation / {{ proxy_pass http://b:80; }} }}"
    );
    let rejecting = "server { listen 443 ssl default_server; ssl_reject_handshake on; }";
    let import = of_servers(&format!("{rejecting}\n{named}"), &["/c.pem", "/k.pem"]);
    assert!(import.text.contains("strict_sni = true"), "{}", import.text);
    assert!(
        !import.text.contains("kept from the network"),
        "{}",
        import.text
    );
    let other = "server { listen 443; server_name b.test; ssl_reject_handshake on;\nlocation / { proxy_pass http://b:80; } }";
    let import = of_servers(&format!("{named}\n{other}"), &["/c.pem", "/k.pem"]);
    assert!(!import.text.contains("strict_sni"), "{}", import.text);
    let routes = routes(&import);
    let closed = "host = \"b.test\"; path = \"/\"; status = 403";
    assert!(routes.iter().any(|it| it == closed), "{routes:#?}");
    let alone = of_servers(rejecting, &[]);
    assert!(
        alone.text.contains("it has no certificate"),
        "{}",
        alone.text
    );
}

#[test]
fn urls_of_backends_are_changed_as_proxy_redirect_says() {
    let (routes, import) = of_server(
        "location /a/ {\nset $name x;\nproxy_pass http://b:8081/in/;\n\
         proxy_redirect http://b:8081/$name/ https://$host:$server_port/;\nproxy_redirect ~*^(.+)/old/ $1/new/;\n\
         proxy_redirect http://$proxy_host/ $scheme://$http_host/;\nproxy_redirect default;\n}\n\
         location /n/ {\nproxy_pass http://b:8081/in/;\nproxy_redirect http://b:8081/n/ /;\n\
         location /n/n/ { proxy_pass http://b:8081; }\n}\n\
         location /off/ { proxy_pass http://b:8081/in/; proxy_redirect x y; proxy_redirect off; }\n\
         location /same/ { proxy_pass http://b:8081; proxy_redirect off; }\n\
         location /plain/ { proxy_pass http://b:8081/in/; proxy_redirect default; }\n\
         location ~ ^/e/ { proxy_pass http://b:8081; proxy_redirect y z; proxy_redirect default; }",
        &[],
    );
    let expected = [
        "path = \"/plain\"; upstream = \"b\"; rewrite = \"/in\"",
        "path = \"/same\"; upstream = \"b\"",
        "path = \"/off\"; upstream = \"b\"; rewrite = \"/in\"; reverse_url = []",
        "path = \"/n/n\"; upstream = \"b\"; reverse_url = [{ prefix = \"http://b:8081/n/\", to = \"/\" }]",
        "path = \"/n\"; upstream = \"b\"; rewrite = \"/in\"; reverse_url = [{ prefix = \"http://b:8081/n/\", to = \"/\" }]",
        "path = \"/a\"; upstream = \"b\"; rewrite = \"/in\"; reverse_url = [\
         { prefix = \"http://b:8081/x/\", to = \"https://{host}:80/\" }, \
         { regex = \"(?i)^(.+)/old/\", to = \"{1}/new/\" }, \
         { prefix = \"http://b:8081/\", to = \"{scheme}://{authority}/\" }, \
         { prefix = \"http://b:8081/in/\", to = \"/a/\" }]",
        "regex = \"^/e/\"; upstream = \"b\"; reverse_url = [\
         { prefix = \"y\", to = \"z\" }, { prefix = \"http://b:8081/\", to = \"/\" }]",
    ];
    for route in expected {
        assert!(routes.iter().any(|it| it == route), "{route}\n{routes:#?}");
    }
    assert_eq!(import.risks(), 0, "{:?}", said(&import, Weight::Risk));
}

#[test]
fn a_proxy_redirect_that_is_not_converted_is_a_risk_and_closes_nothing() {
    for redirect in [
        "$upstream_addr /",
        "~(?=x) /",
        "~^/x $2",
        "/x /$request_uri",
    ] {
        let (routes, import) = of_server(
            &format!("location / {{ proxy_pass http://b:8081; proxy_redirect {redirect}; }}"),
            &[],
        );
        assert_eq!(routes, ["path = \"/\"; upstream = \"b\""], "{redirect}");
        let risks = said(&import, Weight::Risk);
        assert!(
            risks.iter().any(|it| it.contains("proxy_redirect")),
            "{risks:?}"
        );
    }
}

#[test]
fn backends_are_asked_for_by_the_name_that_the_source_says() {
    for (directives, expected) in [
        ("proxy_ssl_name a.org;", "server_name = \"a.org\""),
        (
            "proxy_ssl_certificate /c; proxy_ssl_certificate_key /k;",
            "client_certificate = \"/c\"",
        ),
        ("proxy_ssl_name $host;", "status = 403"),
        (
            "proxy_ssl_certificate /c; proxy_ssl_certificate_key /none;",
            "status = 403",
        ),
    ] {
        let location = format!("location / {{ proxy_pass https://t:443; {directives} }}");
        let (_, import) = of_server(&location, &["/c", "/k"]);
        assert!(
            import.text.contains(expected),
            "{directives}\n{}",
            import.text
        );
    }
}

#[test]
fn an_error_page_answers_for_a_location_that_only_returns() {
    const PASS: &str = "proxy_set_header Host $host; proxy_pass http://t:80;";
    let of_x = |location: &str| {
        let text = format!(
            "location = /x {{ {location} }}\nlocation @app {{ deny 10.0.0.1; {PASS} }}\n\
             location = /gone {{ add_header X-A 1 always; return 410 gone; }}\n\
             location = /to {{ rewrite ^ http://b.org/ redirect; }}\n\
             location = /uri {{ return 302 https://b.org$uri; }}\nlocation / {{ {PASS} }}"
        );
        let (routes, import) = of_server(&text, &[]);
        let own = routes.iter();
        let own = own.filter_map(|it| it.strip_prefix("path = \"/x\"; exact = true; "));
        (own.collect::<Vec<&str>>().join("\n"), import.risks())
    };
    for (location, expected) in [
        (
            "error_page 418 = @app; return 418;",
            "upstream = \"t\"; deny = \"10.0.0.1\"",
        ),
        (
            "error_page 404 =301 http://$host/b; return 404;",
            "redirect = \"http://{host}/b\"; status = 301",
        ),
        (
            "error_page 403 404 http://b.org/; return 404;",
            "redirect = \"http://b.org/\"; status = 302",
        ),
        (
            "error_page 404 /to; return 404;",
            "redirect = \"http://b.org/\"; status = 302",
        ),
    ] {
        assert_eq!(of_x(location), (expected.to_owned(), 0), "{location}");
    }
    for (page, status) in [("", 404), ("=", 410), ("=200", 200)] {
        let location = format!("error_page 404 {page} /gone; return 404;");
        let (found, risks) = of_x(&location);
        assert!(
            found.contains(&format!("status = {status}")),
            "{location} {found}"
        );
        assert!(
            found.contains("text = \"gone\"") && risks == 0,
            "{location} {found}"
        );
    }
    // What the front cannot do stays the answer of the location, and a risk.
    for location in [
        "error_page 404 @app; return 404;",
        "error_page 404 = /uri; return 404;",
        "error_page 404 = @none; return 404;",
        "error_page 404 = @app; if ($arg_a) { return 403; } return 404;",
        "error_page 404 = @app; rewrite ^/x$ /y last; return 404;",
        "error_page 404 = @app; return 404 text;",
        "internal; error_page 404 = @app; return 404;",
        "recursive_error_pages on; error_page 404 = @app; return 404;",
        "include guards.conf; error_page 404 = @app; return 404;",
    ] {
        let (found, risks) = of_x(location);
        assert!(
            !found.contains("upstream") && !found.contains("redirect"),
            "{location} {found}"
        );
        assert!(risks > 0, "{location} {found}");
    }
}

#[test]
fn a_text_has_the_fields_of_its_place_unless_they_say_what_it_is() {
    for (field, is_open) in [
        ("X-Frame-Options DENY", true),
        ("Content-Security-Policy \"default-src 'none'\"", true),
        ("Content-Disposition attachment", false),
    ] {
        let location = format!("location / {{ add_header {field}; return 200 a; }}");
        let (routes, _) = of_server(&location, &[]);
        let name = field.split(' ').next().unwrap_or_default();
        assert!(routes[0].contains(name), "{field} {routes:?}");
        assert_eq!(
            routes[0].contains("text = \"a\""),
            is_open,
            "{field} {routes:?}"
        );
    }
    let fields = "add_header ETag a; add_header ETag ''; add_header X-A \"b\\n\";";
    let (routes, _) = of_server(&format!("location / {{ {fields} return 200 a; }}"), &[]);
    let text = routes.concat();
    assert!(text.contains("remove = \"ETag\""), "{text}");
    assert!(text.contains("X-A = \"b\""), "{text}");
}
