//! Tests of what nginx changes of cookies: it is the same in the front, or a risk.

use super::nginx::of_server;
use super::*;

/// The lines of cookies in the route of a location that has these directives, and the risks.
fn of_location(location: &str, directives: &str) -> (Vec<String>, Vec<String>) {
    let text = format!(
        "server_name shop.test;\nlocation {location} {{ {directives} proxy_set_header Host $host; proxy_pass http://t:80; }}"
    );
    let (_, import) = of_server(&text, &[]);
    let parsed = catamaran_config::parse("c.toml", &import.text);
    assert!(parsed.is_ok(), "{parsed:?}\n{}", import.text);
    let lines = import.text.lines().filter(|it| it.starts_with("cookie"));
    (
        lines.map(str::to_owned).collect(),
        said(&import, Weight::Risk),
    )
}

#[test]
fn domains_and_paths_of_cookies_are_replaced_as_in_nginx() {
    for (directives, expected) in [
        (
            "proxy_cookie_domain www.example.org .example.com; proxy_cookie_domain .$server_name.com en.$server_name.org;",
            "cookie_domain = [{ from = \"www.example.org\", to = \"example.com\" }, { from = \"shop.test.com\", to = \
             \"en.shop.test.org\" }]",
        ),
        (
            "proxy_cookie_domain ~^(.+)\\.com$ $1.$host;",
            "cookie_domain = [{ regex = \"(?i)^(.+)\\\\.com$\", to = \"{1}.{host}\" }]",
        ),
        (
            "proxy_cookie_path /app/ /; proxy_cookie_path ~^/r/(?<x>.+)$ /$x; proxy_cookie_path ~*^/c/(.+)$ /$1;",
            "cookie_path = [{ from = \"/app/\", to = \"/\" }, { regex = \"^/r/(?<x>.+)$\", to = \"/{x}\" }, { regex = \
             \"(?i)^/c/(.+)$\", to = \"/{1}\" }]",
        ),
        (
            "proxy_cookie_path /{a} /b}; proxy_cookie_domain a \"\";",
            "cookie_domain = [{ from = \"a\", to = \"\" }]; cookie_path = [{ from = \"/{{a}}\", to = \"/b}}\" }]",
        ),
        ("proxy_cookie_path /a /b; proxy_cookie_path off;", ""),
        ("proxy_cookie_domain off; proxy_cookie_flags off;", ""),
    ] {
        // Braces in words are quoted in nginx.
        let quoted = directives.replace("/{a} /b}", "\"/{a}\" \"/b}\"");
        let (lines, risks) = of_location("/", &quoted);
        assert_eq!(lines.join("; "), expected, "{directives}");
        assert!(risks.is_empty(), "{directives}: {risks:?}");
    }
    let (lines, _) = of_location("~ ^/(a|b)/", "proxy_cookie_path /x/ /$1/;");
    assert_eq!(
        lines,
        ["cookie_path = [{ from = \"/x/\", to = \"/{1}/\" }]"]
    );
}

#[test]
fn what_is_behind_a_cookie_rule_that_is_not_converted_is_lost_with_it() {
    for (lost, kept) in [
        ("proxy_cookie_path $request_uri /b;", ""),
        ("proxy_cookie_path /a $request_uri;", ""),
        ("proxy_cookie_path /a \"/b; Domain=x\";", ""),
        ("proxy_cookie_path ~^/(?=a) /b;", ""),
        ("proxy_cookie_domain ~^(a)\\1$ b;", ""),
        ("proxy_cookie_flags ~(?!a) secure;", ""),
        ("proxy_cookie_flags a $upstream_addr;", ""),
        ("proxy_cookie_flags a secure nosecure;", ""),
        ("proxy_cookie_flags $upstream_addr secure;", ""),
        (
            "proxy_cookie_path /a /b; proxy_cookie_path /c $request_uri;",
            "cookie_path = [{ from = \"/a\", to = \"/b\" }]",
        ),
    ] {
        let name = lost.split(' ').next().unwrap();
        let behind = if name.ends_with("flags") {
            "z secure"
        } else {
            "/z /y"
        };
        let (lines, risks) = of_location("/", &format!("{lost} {name} {behind};"));
        assert_eq!(lines.join("; "), kept, "{lost}");
        assert_eq!(risks.len(), 2, "{lost}: {risks:?}");
    }
}

#[test]
fn flags_of_cookies_are_changed_by_their_names() {
    for (directives, expected) in [
        (
            "proxy_cookie_flags ~ secure httponly;",
            "cookie_flags = [\"Secure\", \"HttpOnly\"]",
        ),
        (
            "proxy_cookie_flags ~ samesite=strict;",
            "cookie = [{ flags = \"SameSite=Strict\" }]",
        ),
        (
            "proxy_cookie_flags a secure samesite=none; proxy_cookie_flags ~BAR nosecure nohttponly nosamesite; \
             proxy_cookie_flags $arg_c httponly nosamesite; proxy_cookie_flags ~ secure;",
            "cookie = [{ name = \"a\", flags = [\"Secure\", \"SameSite=None\"] }, { regex = \"(?i)BAR\", remove = \
             [\"Secure\", \"HttpOnly\", \"SameSite\"] }, { name = \"{query:c}\", flags = \"HttpOnly\", remove = \
             \"SameSite\" }, { flags = \"Secure\" }]",
        ),
        (
            "proxy_cookie_flags $arg_c $arg_f samesite=$arg_s nosecure;",
            "cookie = [{ name = \"{query:c}\", flags = [\"{query:f}\", \"samesite={query:s}\"], remove = \"Secure\" }]",
        ),
        (
            "proxy_cookie_path / \"/; HTTPOnly; Secure\";",
            "cookie_flags = [\"HttpOnly\", \"Secure\"]",
        ),
        (
            "proxy_cookie_path / \"/; secure; SameSite=None\"; proxy_cookie_path /a /b;",
            "cookie = [{ flags = [\"Secure\", \"SameSite=None\"] }]",
        ),
    ] {
        let (lines, risks) = of_location("/", directives);
        assert_eq!(lines.join("; "), expected, "{directives}");
        assert!(risks.is_empty(), "{directives}: {risks:?}");
    }
}

#[test]
fn httpd_turns_cookies_back_by_the_lists_of_all_levels() {
    let of = |lines: &str| {
        let conf =
            format!("Listen 80\nProxyPreserveHost On\nProxyPass /app ajp://t:8009/app\n{lines}\n");
        let import = converted(&[("/c.conf", &conf)], None);
        let routes = routes(&import).into_iter();
        let own: Vec<String> = routes.filter(|it| it.contains("upstream")).collect();
        (own.join("\n"), said(&import, Weight::Risk))
    };
    let start = "path = \"/app\"; upstream = \"t\"; ";
    for (lines, expected) in [
        (
            "ProxyPassReverseCookiePath /inner/ /app/",
            "cookie_path = [{ from = \"/inner/\", to = \"/app/\" }]",
        ),
        (
            "ProxyPassReverseCookieDomain .inner.example www.example.org",
            "cookie_domain = [{ from = \"inner.example\", to = \"www.example.org\" }]",
        ),
        (
            "<Location /app>\nProxyPassReverseCookiePath /b /y\n</Location>\nProxyPassReverseCookiePath /a /x",
            "cookie_path = [{ from = \"/a\", to = \"/x\" }, { from = \"/b\", to = \"/y\" }]",
        ),
    ] {
        let (routes, risks) = of(lines);
        assert_eq!(routes, format!("{start}{expected}"), "{lines}");
        assert!(risks.is_empty(), "{lines} {risks:?}");
    }
    for lines in [
        "ProxyPassReverseCookiePath /inner/ /${A}/ interpolate",
        "ProxyPassReverseCookiePath /inner/ \"/app/; Secure\"",
        "ProxyPassReverseCookieDomain inner.example",
    ] {
        let (routes, risks) = of(lines);
        assert_eq!(routes, start.trim_end_matches("; "), "{lines}");
        assert!(!risks.is_empty(), "{lines}");
    }
}
