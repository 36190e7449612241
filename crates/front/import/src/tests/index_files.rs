//! Tests that an index file is served only if the rules about its own path allow it.

use super::*;

/// Converts a server of nginx with these directives, and returns its routes.
fn of_server(directives: &str, files: &[&str]) -> (Vec<String>, Import) {
    let conf = format!("include mime.types; server {{\nlisten 80;\n{directives}\n}}\n");
    let mut texts = vec![("/nginx.conf", conf.as_str())];
    texts.extend(files.iter().map(|it| (*it, "")));
    let import = with_directories(&texts, None);
    (routes(&import), import)
}

#[test]
fn an_index_meets_the_rules_about_its_own_path() {
    for (directives, met) in [
        ("location = /index.html { deny all; }", true),
        ("location = /sub/index.html { return 404; }", true),
        ("location ~ \\.html$ { deny all; }", true),
        ("location ~ /index { auth_basic x; }", true),
        ("location ~ \\.html$ { add_header X-A b; }", true),
        ("location ^~ /in { internal; }", true),
        ("location ~ \\.ht { deny all; }", true),
        ("location ~ \\.html$ { types { } }", true),
        (
            "location = /index.html { types { } default_type text/plain; }",
            true,
        ),
        ("location ~ /\\.ht { deny all; }", false),
        ("location ~ /\\. { deny all; }", false),
        ("location /secret/ { deny all; }", false),
        ("location = /other.html { deny all; }", false),
        ("location ~* \\.(js|html)$ { expires 1d; }", false),
        (
            "if ($scheme = http) { return 301 https://$host$request_uri; }",
            false,
        ),
    ] {
        let (routes, import) = of_server(
            &format!("root /srv;\n{directives}\nlocation / {{ }}"),
            &["/srv/index.html", "/srv/sub/index.html", "/srv/a.css"],
        );
        let of_files = routes
            .iter()
            .find(|it| it.starts_with("path = \"/\"") && it.contains("files = "));
        let without = of_files.is_some_and(|it| it.contains("index = []"));
        assert_eq!(without, met, "{directives}\n{routes:?}");
        let said = import.remarks.iter().any(|it| it.text.contains("`index`"));
        assert_eq!(said, met, "{directives}");
    }
    let (routes, _) = of_server(
        "root /srv; index index.jsp;\nlocation ~ \\.jsp$ { proxy_pass http://t:80; }",
        &["/srv/index.jsp", "/srv/a.css"],
    );
    assert!(
        routes.iter().any(|it| it.contains("index = []")),
        "{routes:?}"
    );
    let (routes, _) = of_server(
        "root /srv;\nlocation = / { }\nlocation / { deny all; }",
        &["/srv/index.html", "/srv/a.css"],
    );
    assert!(routes[0].contains("index = []"), "{routes:?}");
    // The server itself has no files, and decides about the index.
    let (routes, _) = of_server("location = /sub/ { root /srv; }", &["/srv/sub/index.html"]);
    assert!(routes[0].contains("index = []"), "{routes:?}");
}

/// nginx sends the first file that is there, or what the rule about it says.
#[test]
fn no_index_is_sent_in_the_place_of_one_that_is_named_before() {
    let conf =
        "root /srv; index a.html index.html;\nlocation = /a.html { deny all; }\nlocation / { }";
    for (file, expected) in [
        ("/srv/a.html", "index = []"),
        ("/srv/b.html", "index = \"index.html\""),
    ] {
        let (routes, _) = of_server(conf, &[file, "/srv/index.html"]);
        let has_index = |it: &String| it.starts_with("path = \"/\"") && it.contains(expected);
        assert!(routes.iter().any(has_index), "{file} {routes:?}");
    }
}

#[test]
fn a_page_for_what_is_missing_meets_the_rules_about_its_own_path() {
    for (directives, met) in [
        ("location = /app.html { deny all; }", true),
        ("location ~ \\.html$ { deny all; }", true),
        // `/x` without a slash is a rule of its own, of the last location.
        ("location = /app.html { deny all; }\nlocation /x/ { }", true),
        ("location /x/ { }", false),
        ("location = /other.html { deny all; }", false),
        // What is asked about the paths themselves has let the request pass.
        (
            "listen 443 ssl;\nif ($scheme = http) { return 301 https://$host$request_uri; }",
            false,
        ),
    ] {
        let (routes, import) = of_server(
            &format!("root /srv;\n{directives}\nlocation / {{ try_files $uri /app.html; }}"),
            &["/srv/app.html", "/srv/a.css"],
        );
        let has_page = routes.iter().any(|it| it.contains("fallback"));
        assert_eq!(has_page, !met, "{directives}\n{routes:?}");
        let says = |it: &Remark| it.text.contains("the page in the place");
        assert_eq!(import.remarks.iter().any(says), met, "{directives}");
    }
}
