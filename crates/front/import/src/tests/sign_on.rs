//! Sign-ons of nginx (`auth_request`): each is one of the front, or closes its place.

use super::*;

/// The import of a server on port 80.
fn of_server(lines: &str) -> Import {
    let conf = format!("server {{\nlisten 80;\nserver_name a.org;\n{lines}\n}}\n");
    converted(&[("/c.conf", &conf)], None)
}

/// The tables of sign-ons, each on one line.
pub(super) fn sign_ons(import: &Import) -> Vec<String> {
    let tables = import
        .text
        .split("\n[")
        .filter(|it| it.starts_with("auth."));
    let line = |table: &str| {
        let lines = table.lines().filter(|it| !it.is_empty());
        lines
            .collect::<Vec<_>>()
            .join("; ")
            .replacen("]; ", ": ", 1)
    };
    tables.map(line).collect()
}

/// Whether a request gets to the application without a sign-on or with one.
fn reaches(import: &Import) -> bool {
    routes(import)
        .iter()
        .any(|it| it.contains("upstream = \"app\""))
}

#[test]
fn a_service_that_nginx_asks_is_asked_by_the_front() {
    let import = of_server(&format!(
        "location / {{ auth_request /auth; proxy_pass http://app:80; {HOST} error_page 401 = @sign;\n\
         auth_request_set $user $upstream_http_x_auth_request_user;\n\
         auth_request_set $mail $upstream_http_x_auth_request_email;\n\
         auth_request_set $cookie $upstream_http_set_cookie; add_header Set-Cookie $cookie;\n\
         proxy_set_header X-User $user; proxy_set_header X-Mail ${{mail}}; }}\n\
         location @sign {{ return 302 /start?rd=$scheme://$http_host$request_uri; }}\n{ASKED}\n{PAGE}"
    ));
    assert_eq!(
        sign_ons(&import),
        [
            "auth.auth: upstream = \"sso\"; fields = { X-User = \"user\", X-Mail = \"X-Auth-Request-Email\" }; \
             path = \"/auth\"; sign_in = \"/start?rd={url}\"; timeout = \"60s\"; user = \"X-Auth-Request-User\""
        ]
    );
    let routes = routes(&import);
    for expected in [
        "path = \"/\"; upstream = \"app\"; auth = \"auth\"",
        "path = \"/auth\"; exact = true; status = 404",
        "pattern = \"/start*\"; upstream = \"sso\"",
    ] {
        let has = |it: &String| it.ends_with(expected);
        assert!(routes.iter().any(has), "{expected} {routes:#?}");
    }
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
}

#[test]
fn a_sign_on_is_inherited_and_asked_where_nginx_asks() {
    let pass = format!("{HOST} proxy_pass http://app:80;");
    let import = of_server(&format!(
        "auth_request /auth;\nlocation / {{ {pass} }}\nlocation /open/ {{ auth_request off; {pass} }}\n\
         location /text {{ return 200 ok; }}\nlocation /moved {{ return 302 /; }}\n{ASKED}"
    ));
    let routes = routes(&import);
    for (path, is_asked) in [
        ("/", true),
        ("/open", false),
        ("/text", false),
        ("/moved", false),
    ] {
        let start = format!("path = \"{path}\"; ");
        let alike = format!("pattern = \"{path}*\"; ");
        let mut own = routes.iter().map(|it| it.replace("host = \"a.org\"; ", ""));
        let own = own
            .find(|it| it.starts_with(&start) || it.starts_with(&alike))
            .unwrap();
        // nginx answers a `return` before it asks.
        assert_eq!(own.contains("auth = \"auth\""), is_asked, "{own}");
        assert!(!own.contains("status = 403"), "{own}");
    }
    assert_eq!(
        sign_ons(&import),
        ["auth.auth: upstream = \"sso\"; path = \"/auth\"; timeout = \"60s\""]
    );
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
}

/// The import of an application whose location asks `/auth`, of which these are further lines, of the location of `/auth`
/// and of the server.
fn of_asked(app: &str, asked: &str, server: &str) -> Import {
    of_server(&format!(
        "location / {{ auth_request /auth; {HOST} proxy_pass http://app:80; {app} }}\n\
         location = /auth {{ {asked} }}\n{server}"
    ))
}

#[test]
fn a_service_that_the_front_cannot_ask_alike_closes_the_place() {
    let pass = format!("{HOST} proxy_pass http://sso:4180;");
    let with = |line: &str| format!("{pass} {line}");
    assert!(reaches(&of_asked("", &pass, "")));
    let of_location = [
        // The service is told what the front does not tell.
        with("proxy_set_header X-Original-URI $uri;"),
        with("proxy_set_header X-Real-IP $http_x_real_ip;"),
        with("proxy_set_header Cookie \"\";"),
        with("proxy_set_header X-Forwarded-Proto https;"),
        // Something else is asked.
        "return 200;".to_owned(),
        "proxy_pass http://sso:4180$request_uri;".to_owned(),
        "proxy_pass http://sso:4180/a?b=c;".to_owned(),
        with("if ($http_a) { return 200; }"),
        with("rewrite ^ /b break;"),
        with("proxy_method HEAD;"),
        with("proxy_pass_request_headers off;"),
        with("limit_req zone=a;"),
    ];
    let of_others = [
        ("", "rewrite ^/auth$ /other;"),
        ("", "if ($uri = /auth) { return 200; }"),
        // Who else may pass is not known.
        ("satisfy any; allow 10.0.0.0/8; deny all;", ""),
        ("auth_basic a; auth_basic_user_file /users;", ""),
    ];
    let mut imports: Vec<Import> = of_location.iter().map(|it| of_asked("", it, "")).collect();
    imports.extend(of_others.map(|(app, server)| of_asked(app, &pass, server)));
    // An expression may decide, and a query is no path.
    let app = |uri: &str| {
        format!("location / {{ auth_request {uri}; {HOST} proxy_pass http://app:80; }}")
    };
    let prefix = format!("location /auth {{ {pass} }} location ~ ^/a {{ {pass} }}");
    imports.push(of_server(&format!("{} {prefix}", app("/auth"))));
    imports.push(of_server(&format!(
        "{} location = /auth {{ {pass} }}",
        app("/auth?a=b")
    )));
    let inherited = format!(
        "proxy_set_header X-Role guest; {} location = /auth {{ proxy_pass http://sso:4180; }}",
        app("/auth")
    );
    imports.push(of_server(&inherited));
    for import in imports {
        assert!(!reaches(&import), "{}", import.text);
        assert!(import.risks() > 0, "{}", import.text);
    }
}

#[test]
fn what_a_service_is_told_as_the_front_tells_it_is_no_difference() {
    let import = of_server(&format!(
        "location / {{ auth_request /sso/verify; allow 10.0.0.0/8; deny all; {HOST} proxy_pass http://app:80; }}\n\
         location = /sso/verify {{ internal; deny all; proxy_pass http://sso:9091/api/verify; {HOST}\n\
         proxy_set_header X-Original-URL $scheme://$http_host$request_uri; proxy_set_header X-Original-Method $request_method;\n\
         proxy_set_header X-Forwarded-Uri $request_uri; proxy_set_header X-Original-URI $request_uri;\n\
         proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Real-IP $remote_addr;\n\
         proxy_set_header X-Api-Key $http_x_api_key; proxy_set_header Connection \"\"; }}"
    ));
    assert_eq!(
        sign_ons(&import),
        [
            "auth.sso-verify: upstream = \"sso\"; path = \"/api/verify\"; request_fields = \"X-Api-Key\"; timeout = \"60s\""
        ]
    );
    let routes = routes(&import);
    let guarded = "upstream = \"app\"; auth = \"sso-verify\"; allow = \"10.0.0.0/8\"";
    assert!(routes.iter().any(|it| it.ends_with(guarded)), "{routes:#?}");
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
}

#[test]
fn what_a_proxy_before_nginx_may_say_otherwise_closes_the_place() {
    let of = |senders: &str, others: &str, fields: &str| {
        let conf = format!(
            "{senders}\nserver {{ listen 80; server_name secret.org;\n\
             location / {{ auth_request /auth; {HOST} proxy_pass http://app:80; }}\n\
             location = /auth {{ internal; proxy_pass http://sso; {HOST} {fields} }} }}\n{others}"
        );
        converted(&[("/c.conf", &conf)], None)
    };
    let url = "proxy_set_header X-Original-URL $scheme://$http_host$request_uri;";
    let host = "proxy_set_header X-Forwarded-Host $host;";
    let sender = "proxy_set_header X-Forwarded-For $remote_addr;";
    let address = "proxy_set_header X-Real-IP $remote_addr;";
    let trusting = "set_real_ip_from 10.0.0.1; real_ip_header X-Forwarded-For;";
    let all = [url, host, sender, address].concat();
    assert!(reaches(&of("", "", &all)));
    assert!(reaches(&of(trusting, "", "")));
    for fields in [&all, url, host, sender, address] {
        let import = of(trusting, "", fields);
        assert!(import.text.contains("trusted_proxies"), "{}", import.text);
        assert!(!reaches(&import), "{fields}\n{}", import.text);
        let is_said =
            |it: &Remark| it.weight == Weight::Risk && it.text.contains("`set_real_ip_from`");
        assert!(import.remarks.iter().any(is_said), "{:?}", import.remarks);
    }
    // Who reads of the proxy of another server names it for all.
    let other = format!(
        "server {{ listen 80; server_name b.org; location /a/ {{ {trusting} return 404; }} }}"
    );
    assert!(!reaches(&of("", &other, url)));
}

#[test]
fn a_page_to_sign_on_that_the_front_cannot_say_is_a_risk() {
    let of = |pages: &str, others: &str| {
        of_server(&format!(
            "location / {{ auth_request /auth; {HOST} proxy_pass http://app:80; {pages} }}\n{ASKED}\n{PAGE}\n{others}"
        ))
    };
    for (pages, others, sign_in) in [
        (
            "error_page 401 =302 https://sso.org/?to=$scheme://$host$request_uri;",
            "",
            Some("https://sso.org/?to={scheme}://{host}{path_query}"),
        ),
        (
            "error_page 401 https://$host/start;",
            "",
            Some("https://{host}/start"),
        ),
        (
            "error_page 401 = @s;",
            "location @s { return 303 $scheme://$host/start; }",
            Some("/start"),
        ),
        ("error_page 401 = /start;", "", None),
        (
            "error_page 401 403 = @s;",
            "location @s { return 302 /start; }",
            None,
        ),
        (
            "error_page 401 = @s;",
            "location @s { return 302 /start?token=$token; }",
            None,
        ),
        (
            "error_page 401 = @s;",
            "location @s { return 302 https://$http_host/start; }",
            None,
        ),
        (
            "error_page 401 = @s;",
            "location @s { return 301 /start; }",
            None,
        ),
        (
            "proxy_intercept_errors on; error_page 401 = @s;",
            "location @s { return 302 /start; }",
            None,
        ),
    ] {
        let import = of(pages, others);
        let table = sign_ons(&import).concat();
        let found = table
            .split("; ")
            .find_map(|it| it.strip_prefix("sign_in = "));
        let expected = sign_in.map(|it| format!("\"{it}\""));
        assert_eq!(
            found,
            expected.as_deref(),
            "{pages} {others}\n{}",
            import.text
        );
        assert!(reaches(&import), "{pages} {others}\n{}", import.text);
        assert_eq!(
            import.risks() == 0,
            sign_in.is_some(),
            "{pages} {:?}",
            import.remarks
        );
    }
    // Nobody could sign on at a page behind the sign-on itself.
    let import = of("error_page 401 = @s;", "location @s { return 302 /in; }");
    assert!(!reaches(&import) && import.risks() > 0, "{}", import.text);
}

#[test]
fn a_page_for_401_beside_a_place_without_a_sign_on_is_a_file_or_a_risk() {
    let of = |lines: &str| {
        let conf = format!(
            "server {{\nlisten 80;\nserver_name a.org;\nerror_page 401 /401.html;\n\
             location / {{ {HOST} proxy_pass http://app:80; {lines} }}\n\
             location = /401.html {{ root /www; }}\n}}\n"
        );
        let with_page = converted(&[("/c.conf", &conf), ("/www/401.html", "Who?")], None);
        (with_page, converted(&[("/c.conf", &conf)], None))
    };
    let is_said = |import: &Import| {
        let mut remarks = import.remarks.iter();
        remarks.any(|it| it.weight == Weight::Risk && it.text.contains("its page"))
    };
    for (lines, is_shown) in [
        ("", false),
        ("if ($http_a) { return 403; }", false),
        ("if ($http_a) { return 401; }", true),
        ("limit_req_status 401;", true),
    ] {
        let (with_page, without_page) = of(lines);
        let shows = with_page.text.contains("401 = \"/www/401.html\"");
        assert!(shows && !is_said(&with_page), "{lines}\n{}", with_page.text);
        assert_eq!(
            is_said(&without_page),
            is_shown,
            "{lines} {:?}",
            without_page.remarks
        );
    }
}

#[test]
fn what_two_sign_ons_say_is_kept_apart() {
    let app = |path: &str, lines: &str| {
        format!(
            "location {path} {{ auth_request /auth; {HOST} proxy_pass http://app:80; {lines} }}"
        )
    };
    let user = "auth_request_set $u $upstream_http_remote_user; proxy_set_header X-User $u;";
    let import = of_server(&format!(
        "{}\n{}\n{ASKED}",
        app("/a/", user),
        app("/b/", "")
    ));
    let tables = sign_ons(&import);
    assert!(
        tables[0].starts_with("auth.auth: ") && tables[0].contains("user = \"Remote-User\""),
        "{tables:?}"
    );
    assert!(
        tables[1].starts_with("auth.auth-2: ") && !tables[1].contains("user"),
        "{tables:?}"
    );
    // A value that is not that of the answer alone is not told, and no client can set the field.
    let import = of_server(&format!(
        "{}\n{ASKED}",
        app(
            "/",
            "auth_request_set $t $upstream_http_x_token; proxy_set_header Authorization \"Bearer $t\";"
        )
    ));
    let routes = routes(&import);
    assert!(
        routes
            .iter()
            .any(|it| it.contains("remove = \"Authorization\"")),
        "{routes:#?}"
    );
    assert!(import.risks() > 0);
}

/// nginx executes `auth_request_set` after each `set`.
#[test]
fn a_variable_of_the_answer_has_no_value_of_the_client() {
    let set = "set $user $http_x_dev_user;";
    let of_answer = "auth_request /auth; auth_request_set $user $upstream_http_x_auth_user;";
    let pass = format!("{HOST} proxy_set_header X-User $user; proxy_pass http://app:80;");
    // Directives of the outer block, of the server and of its location.
    for (outer, server, location) in [
        ("", of_answer, set),
        (of_answer, "", set),
        ("", set, of_answer),
        (
            "",
            "if ($http_a) { set $user $http_x_dev_user; }",
            of_answer,
        ),
        (
            of_answer,
            "if ($http_a) { set $user $http_x_dev_user; }",
            "",
        ),
        (
            of_answer,
            "",
            "if ($http_a) { set $user $http_x_dev_user; }",
        ),
        (of_answer, "set $user x-dev-user;", ""),
        ("", "set $user x-dev-user;", of_answer),
    ] {
        let conf = format!(
            "{outer}\nserver {{ listen 80; server_name a.org; {server}\n\
             location / {{ {location} {pass} }}\n{ASKED} }}"
        );
        let import = converted(&[("/c.conf", &conf)], None);
        let lines: Vec<&str> = import
            .text
            .lines()
            .filter(|it| !it.starts_with('#'))
            .collect();
        let text = lines.join("\n").to_lowercase().replace('_', "-");
        assert!(!text.contains("x-dev-user"), "{conf}\n{text}");
        let is_told = sign_ons(&import)
            .concat()
            .contains("fields = { X-User = \"user\" }");
        assert!(is_told || !reaches(&import), "{conf}\n{text}");
    }
    // What nothing else gives a value has that of its `set`.
    let import = of_server(&format!("location / {{ {set} {pass} }}"));
    assert!(
        import.text.to_lowercase().contains("x-dev-user"),
        "{}",
        import.text
    );
}

const HOST: &str = "proxy_set_header Host $host;";

const ASKED: &str = "location = /auth { internal; proxy_pass http://sso:4180; proxy_pass_request_body off; \
    proxy_set_header Host $host; proxy_set_header Content-Length \"\"; }";

const PAGE: &str = "location /start { proxy_set_header Host $host; proxy_pass http://sso:4180; }";
