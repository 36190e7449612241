//! Tests of `expires` and mod_expires: how long responses are fresh.

use super::nginx::of_server;
use super::*;

#[test]
fn expires_of_nginx_is_a_field_of_backends_and_texts_and_a_key_of_files() {
    for (location, expected) in [
        ("expires 30d; proxy_pass http://t:80;", Some(SET)),
        ("expires 30d; return 200 ok;", Some(SET)),
        ("expires off; proxy_pass http://t:80;", None),
        ("expires 30d; return 301 https://b.org/;", None),
        ("expires 30d; return 404;", None),
        (
            "expires 30d; root /srv;",
            Some("cache_control = \"max-age=2592000\""),
        ),
    ] {
        let other = "location = /other { proxy_set_header Host $host; proxy_pass http://t:80; }";
        let (routes, import) = of_server(
            &format!("location / {{ proxy_set_header Host $host; {location} }} {other}"),
            &["/srv/a.css", "/srv/b.html"],
        );
        assert_eq!(import.risks(), 0, "{location}: {:?}", import.remarks);
        let has_field = routes[1].contains(expected.unwrap_or("Cache-Control"));
        assert_eq!(has_field, expected.is_some(), "{location}: {routes:?}");
    }
    let (routes, import) = of_server(
        "location / { proxy_set_header Host $host; expires @15h30m; proxy_pass http://t:80; }",
        &[],
    );
    assert_eq!(routes, ["path = \"/\"; upstream = \"t\""]);
    assert!(import.risks() > 0);
}

#[test]
fn a_map_of_types_is_a_table_of_files() {
    let of = |map: &str, location: &str| {
        let conf = format!(
            "events {{\n}}\nhttp {{ include mime.types; map $sent_http_content_type $fresh {{ {map} }}\n\
             server {{ listen 80; location / {{ expires $fresh; proxy_set_header Host $host; {location} }} }} }}"
        );
        let files = [
            ("/nginx.conf", conf.as_str()),
            ("/srv/a.css", ""),
            ("/srv/b.html", ""),
        ];
        with_directories(&files, None)
    };
    let map = "default off; text/html epoch; ~image/ 30d; ~image/ 1d; text/css max;";
    let import = of(map, "root /srv;");
    let table = "cache_control_types = { \"image/*\" = \"max-age=2592000\", \"text/css\" = \"max-age=315360000\", \
                 \"text/html\" = \"no-cache\" }";
    assert!(import.text.contains(table), "{}", import.text);
    assert!(!import.text.contains("cache_control ="), "{}", import.text);
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
    let with_default = of("default 1h; text/html -1;", "root /srv;");
    let keys =
        "cache_control = \"max-age=3600\"\ncache_control_types = { \"text/html\" = \"no-cache\" }";
    assert!(with_default.text.contains(keys), "{}", with_default.text);
    for (map, location) in [
        (map, "proxy_pass http://t:80;"),
        ("default off; ~^(image|font) 1d;", "root /srv;"),
        ("default $http_x;", "root /srv;"),
    ] {
        let import = of(map, location);
        assert!(import.risks() > 0, "{map} {location}");
        assert!(!import.text.contains("\ncache_control"), "{}", import.text);
        assert!(
            !routes(&import)[0].contains("status = 403"),
            "{}",
            import.text
        );
    }
}

#[test]
fn files_keep_their_time_beside_an_application_with_another() {
    for (own, named, is_set) in [
        ("expires 30d;", "expires 30d;", true),
        ("expires 30d;", "expires 1h;", false),
        ("", "expires 1h;", false),
    ] {
        let (routes, _) = of_server(
            &format!(
                "location / {{ root /srv; {own} try_files $uri @app; }}\n\
                 location @app {{ {named} proxy_set_header Host $host; proxy_pass http://t:80; }}"
            ),
            &["/srv/a.css", "/srv/b.html"],
        );
        assert!(routes[0].contains("files = \"/srv\""), "{routes:?}");
        assert_eq!(routes[0].contains("Cache-Control"), is_set, "{routes:?}");
        let has_key = routes[0].contains("cache_control = \"max-age=2592000\"");
        assert_eq!(has_key, !own.is_empty(), "{routes:?}");
    }
}

#[test]
fn mod_expires_is_a_table_of_files() {
    let conf = "Listen 80\nDocumentRoot /srv\n<Directory /srv>\nAllowOverride None\nRequire all granted\n\
                ExpiresActive On\nExpiresDefault \"access plus 1 hour\"\nExpiresByType image/* \"access plus 1 month\"\n\
                ExpiresByType Text/HTML A0\n</Directory>\n\
                <Directory /srv/old>\nExpiresByType text/html \"modification plus 1 day\"\n</Directory>\n\
                <Directory /srv/new>\nExpiresActive Off\n</Directory>\n";
    let files = [
        ("/httpd.conf", conf),
        ("/srv/index.html", ""),
        ("/srv/old/a.html", ""),
        ("/srv/new/a.html", ""),
    ];
    let import = with_directories(&files, None);
    let of = |path: &str| {
        let start = format!("path = \"{path}\"; ");
        let mut found = routes(&import).into_iter();
        found.find(|it| it.starts_with(&start)).unwrap()
    };
    let hour = "cache_control = \"max-age=3600\"; cache_control_types = { \"image/*\" = \"max-age=2592000\", ";
    for (path, expected) in [
        ("/", format!("{hour}\"text/html\" = \"max-age=0\" }}")),
        ("/old", format!("{hour}\"text/html\" = \"off\" }}")),
    ] {
        assert!(of(path).contains(&expected), "{}", of(path));
    }
    assert!(!of("/new").contains("cache_control"), "{}", of("/new"));
    // Times from the last change of a file on are lost.
    let risks = said(&import, Weight::Risk);
    assert_eq!(risks.len(), 1, "{risks:?}");
    assert!(risks[0].contains(":12: "), "{risks:?}");
}

/// What makes responses of a backend fresh for 30 days.
const SET: &str = "remove = \"Expires\"; set = { Cache-Control = \"max-age=2592000\" }; statuses = [\"200\", \"201\", \"204\"";
