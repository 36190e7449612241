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
