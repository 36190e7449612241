//! Tests of guards of a server of nginx: where they stand among its rules, and how many tests they have.

use super::nginx::of_server;
use super::*;

/// Converts servers and what stands beside them.
fn of_servers(servers: &str) -> Import {
    with_directories(
        &[(
            "/nginx.conf",
            &format!("events {{\n}}\nhttp {{\n{servers}\n}}"),
        )],
        None,
    )
}

/// The routes for one host.
fn of_host(import: &Import, host: &str) -> Vec<String> {
    let all = routes(import);
    let start = format!("host = \"{host}\"; ");
    let own = all.iter().filter_map(|it| it.strip_prefix(&start));
    own.map(str::to_owned).collect()
}

#[test]
fn a_guard_is_asked_where_it_stands() {
    let bad = "if ($host = bad.example) { return 403; }";
    let probe = "if ($http_user_agent ~ Probe) { return 200 ok; }";
    let of = |lines: &str| {
        let server = format!("server_name a.org;\n{lines}\nlocation / {{ {PASS} }}");
        let import = of_server(&server, &[]).1;
        of_host(&import, "bad.example")
    };
    assert_eq!(
        of(&format!("{bad} {probe}")),
        ["path = \"/\"; status = 403"]
    );
    let test = "match_regex = \"header:user-agent ~ Probe\"";
    let text =
        format!("path = \"/\"; {test}; status = 200; text = \"ok\"; text_type = \"text/plain\"");
    assert_eq!(
        of(&format!("{probe} {bad}")),
        [text, "path = \"/\"; status = 403".to_owned()]
    );
}

#[test]
fn rules_above_a_guard_answer_before_it() {
    let moved = "rewrite ^/old$ /new permanent;";
    let (routes, _) = of_server(
        &format!(
            "if ($http_a) {{ return 403; }} {moved} if ($http_b) {{ return 410; }} location / {{ {PASS} }}"
        ),
        &[],
    );
    let test = |name: &str| format!("match_regex = \"header:{name} ~ ^(?:[^0]|0.)\"");
    let old = "regex = \"^/old$\"; ";
    assert_eq!(
        routes,
        [
            format!("{old}{}; status = 403", test("a")),
            format!("{old}redirect = \"/new{{search}}\"; status = 301"),
            format!("path = \"/\"; {}; status = 403", test("a")),
            format!("path = \"/\"; {}; status = 410", test("b")),
            "path = \"/\"; upstream = \"t\"".to_owned(),
        ]
    );
    // Other methods are refused behind the rule alone.
    let (routes, _) = of_server(
        &format!(
            "{moved} if ($request_method !~ ^(GET|HEAD|POST)$) {{ return 405; }} location / {{ {PASS} }}"
        ),
        &[],
    );
    assert_eq!(
        routes,
        [
            format!("{old}redirect = \"/new{{search}}\"; status = 301"),
            "path = \"/\"; methods = [\"GET\", \"POST\"]; upstream = \"t\"".to_owned(),
            "path = \"/\"; status = 405".to_owned(),
        ]
    );
}

#[test]
fn a_return_of_a_server_answers_before_guards_behind_it_and_loses_none_of_its_locations() {
    let guards = "if ($http_a) { return 403; } allow 10.0.0.1; deny all; auth_basic x;";
    let location = format!("location /app/ {{ allow 10.0.0.2; deny all; {PASS} }}");
    // nginx executes `return` in its rewrite phase, before it asks addresses.
    let (routes, import) = of_server(
        &format!("return 301 https://a.org/; {guards} {location}"),
        &[],
    );
    assert_eq!(
        routes,
        ["path = \"/\"; redirect = \"https://a.org/\"; status = 301"]
    );
    let condition = import.directives.iter().find(|it| it.name == "if");
    assert_eq!(condition.map(|it| it.fate), Some(Fate::Dropped));
    // What stands above the `return` is asked, and a `return` of an `if` leaves the rest.
    let (routes, _) = of_server(
        &format!(
            "if ($http_a) {{ return 403; }} if ($http_b) {{ return 410; }} deny all; {location}"
        ),
        &[],
    );
    let of_location = |it: &String| it.contains("upstream = \"t\"; allow = \"10.0.0.2\"");
    assert!(routes.iter().any(of_location), "{routes:?}");
    assert_eq!(
        routes.last().map(String::as_str),
        Some("path = \"/\"; status = 403")
    );
    // A `break` ends the phase: what stands behind it answers nothing.
    let (routes, import) = of_server(&format!("break; return 200 text; {location}"), &[]);
    assert!(!routes.concat().contains("text"), "{routes:?}");
    assert!(!routes.concat().contains("upstream"), "{routes:?}");
    assert!(import.risks() > 0);
}

#[test]
fn what_refuses_before_a_return_of_the_server_is_not_lost() {
    let tls =
        "listen 443 ssl; ssl_certificate /c; ssl_certificate_key /c; ssl_client_certificate /c;";
    let files = |server: &str| {
        let conf = format!("events {{\n}}\nhttp {{\nserver {{ {tls} {server} }}\n}}");
        let import = with_directories(&[("/nginx.conf", &conf), ("/c", "")], None);
        routes(&import)
    };
    let text = "status = 200; text = \"ok\"; text_type = \"text/plain\"";
    for (server, expected) in [
        ("return 200 ok;", text.to_owned()),
        (
            "ssl_verify_client on; return 200 ok;",
            format!("{text}; client_certificate = \"required\""),
        ),
        (
            "ssl_verify_client on; location / { return 200 ok; }",
            format!("{text}; client_certificate = \"required\""),
        ),
        (
            "ssl_verify_client on; return 403;",
            "status = 403".to_owned(),
        ),
        (
            "ssl_reject_handshake on; return 200 ok;",
            "status = 403".to_owned(),
        ),
        ("ssl_ocsp on; return 200 ok;", "status = 403".to_owned()),
        ("ssl_ocsp off; return 200 ok;", text.to_owned()),
        (
            "rewrite_by_lua x; return 200 ok;",
            "status = 403".to_owned(),
        ),
    ] {
        assert_eq!(
            files(server),
            [format!("path = \"/\"; {expected}")],
            "{server}"
        );
    }
}

#[test]
fn what_an_error_page_answers_for_a_return_asks_for_the_certificate_as_well() {
    let tls = "listen 443 ssl; ssl_certificate /c; ssl_certificate_key /c;";
    let others = format!(
        "location = /gone {{ return 410 gone; }} location @gone {{ return 410 gone; }}\n\
         location @app {{ {PASS} }} location / {{ return 404; }}"
    );
    for page in [
        "error_page 404 = /gone; return 404;",
        "error_page 404 =200 @gone; return 404;",
        "error_page 418 = @app; return 418;",
    ] {
        for (verify, is_asked) in [
            ("ssl_client_certificate /c; ssl_verify_client on;", true),
            ("ssl_verify_client off;", false),
        ] {
            let server =
                format!("server {{ {tls} {verify} location = /x {{ {page} }}\n{others} }}");
            let conf = format!("events {{\n}}\nhttp {{\n{server}\n}}");
            let import = with_directories(&[("/nginx.conf", &conf), ("/c", "")], None);
            let routes = routes(&import);
            let own = routes
                .iter()
                .find(|it| it.starts_with("path = \"/x\"; exact = true; "));
            let own = own.unwrap_or_else(|| panic!("{page} {routes:#?}"));
            assert!(!own.ends_with("status = 403"), "{page} {own}");
            let demand = "client_certificate = \"required\"";
            assert_eq!(own.contains(demand), is_asked, "{page} {own}");
        }
    }
}

#[test]
fn tests_that_no_route_can_have_close_their_place_and_are_not_shown() {
    let entries =
        |count: usize| -> String { (0..count).map(|it| format!("sekret{it} 1; ")).collect() };
    let stage = "map $http_stage $stage { default live; sekret next; }";
    let guarded = |count: usize, more: &str| {
        let map = format!("map $cookie_tok $known {{ default 0; {} }}", entries(count));
        let guard = "if ($known = 0) { return 403; }";
        of_servers(&format!(
            "{stage} {map}\nserver {{ listen 80; location / {{ {guard} {more} {PASS} }} }}"
        ))
    };
    let few = guarded(16, "");
    assert!(
        routes(&few).iter().any(|it| it.contains("upstream")),
        "{}",
        few.text
    );
    assert_eq!(few.risks(), 0, "{:?}", few.remarks);
    let large = format!(
        "if ($cookie_tok !~ \"^sekret{}$\") {{ return 403; }}",
        "[a-z]{500}".repeat(300)
    );
    let many = of_server(&format!("location / {{ {large} {PASS} }}"), &[]).1;
    for import in [guarded(17, ""), many] {
        assert_eq!(
            routes(&import),
            ["path = \"/\"; status = 403"],
            "{}",
            import.text
        );
        assert!(import.risks() > 0, "{}", import.text);
        assert!(!import.text.contains("sekret"), "{}", import.text);
        assert!(
            catamaran_config::parse("catamaran.toml", &import.text).is_ok(),
            "{}",
            import.text
        );
    }
    // With the test of another variable there are too many.
    let joined = guarded(16, "add_header X-Stage $stage;");
    assert!(
        catamaran_config::parse("catamaran.toml", &joined.text).is_ok(),
        "{}",
        joined.text
    );
    let risks = said(&joined, Weight::Risk);
    assert!(
        risks
            .iter()
            .any(|it| it.contains("its tests of cookie:tok, header:stage:")),
        "{risks:?}"
    );
    assert!(!risks.iter().any(|it| it.contains("sekret")), "{risks:?}");
    let is_shut = |it: &String| it.contains("cookie:tok") && it.contains("; status = 403");
    assert!(routes(&joined).iter().any(is_shut), "{}", joined.text);
}

const PASS: &str = "proxy_set_header Host $host; proxy_pass http://t:80;";
