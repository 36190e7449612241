//! Tests which directories the front serves, and which it must not serve.

use super::*;

#[test]
fn a_document_root_is_served_with_the_guards_of_its_directories() {
    let conf = "Listen 80\nDocumentRoot /srv\nDirectoryIndex index.html start.html\nProxyPass /app ajp://t:8009/app\n\
                Alias /pics /var/pics\n<Directory />\nRequire all denied\n</Directory>\n\
                <Directory /srv>\nRequire all granted\n</Directory>\n\
                <Directory /srv/private>\nRequire ip 10.0.0.1\n</Directory>\n\
                <Directory /var/pics>\nRequire all granted\n</Directory>\n<Files \"*.bak\">\nRequire all denied\n</Files>\n\
                <FilesMatch \"^\\.ht\">\nRequire all denied\n</FilesMatch>\n";
    let files = [
        ("/httpd.conf", conf),
        ("/srv/index.html", ""),
        ("/srv/app.css", ""),
        ("/srv/private/x.html", ""),
        ("/var/pics/a.png", ""),
    ];
    let import = with_directories(&files, None);
    let keys = "charset = \"off\"; hide = \"*.bak\"; index = [\"index.html\", \"start.html\"]";
    assert_eq!(
        routes(&import),
        [
            "path = \"/app\"; upstream = \"t\"".to_owned(),
            format!("path = \"/pics\"; files = \"/var/pics\"; rewrite = \"/\"; {keys}"),
            format!("path = \"/private\"; files = \"/srv\"; {keys}; allow = \"10.0.0.1\""),
            format!("path = \"/\"; files = \"/srv\"; {keys}"),
        ]
    );
    assert_eq!(said(&import, Weight::Risk), Vec::<String>::new());
}

#[test]
fn a_virtual_host_that_no_request_reaches_changes_nothing_for_later_ones() {
    let dead = "<VirtualHost *:80>\nServerName dead.org\nDocumentRoot /srv\n</VirtualHost>\n";
    let live = "<VirtualHost 10.0.0.1:80>\nServerName a.org\nDocumentRoot /srv\n<Directory /srv>\n\
                AllowOverride None\nRequire all granted\nFallbackResource /index.html\n</Directory>\n</VirtualHost>\n";
    let of = |hosts: &str| {
        let conf = format!("Listen 10.0.0.1:80\n{hosts}");
        let import = with_directories(&[("/httpd.conf", &conf), ("/srv/index.html", "")], None);
        assert_eq!(import.risks(), 0, "{:?}", import.remarks);
        routes(&import)
    };
    let alone = of(live);
    assert!(alone[0].contains("files = \"/srv\""), "{alone:?}");
    assert_eq!(of(&format!("{dead}{live}")), alone);
}

#[test]
fn a_limit_of_bodies_is_on_files() {
    let conf = "Listen 80\nDocumentRoot /srv\nLimitRequestBody 1000\n<Directory /srv>\nRequire all granted\n\
                </Directory>\n<Directory /srv/up>\nLimitRequestBody 10\n</Directory>\n";
    let files = [
        ("/httpd.conf", conf),
        ("/srv/a.css", ""),
        ("/srv/up/a.css", ""),
    ];
    let import = with_directories(&files, None);
    let limit = |route: &String| -> Option<String> {
        let mut keys = route.split("; ");
        keys.find_map(|it| it.strip_prefix("body_max = "))
            .map(str::to_owned)
    };
    let limits: Vec<Option<String>> = routes(&import).iter().map(limit).collect();
    let expected = ["10", "1000"].map(|it| Some(it.to_owned()));
    assert_eq!(limits, expected, "{}", import.text);
}

#[test]
fn files_have_the_charset_of_their_server() {
    let conf = "Listen 80\nDocumentRoot /srv\nAddDefaultCharset UTF-8\nAddCharset ISO-8859-2 .pl\n\
                <Directory /srv>\nRequire all granted\n</Directory>\n";
    let files = [
        ("/httpd.conf", conf),
        ("/srv/index.html", ""),
        ("/srv/app.css", ""),
    ];
    let import = with_directories(&files, None);
    assert!(
        import.text.contains("charset = \"utf-8\""),
        "{}",
        import.text
    );
    let fate = |name: &str| {
        let found = import.directives.iter().find(|it| it.name == name);
        found
            .map(|it| (it.fate, it.reason.contains("`types`")))
            .unwrap()
    };
    assert_eq!(fate("AddDefaultCharset"), (Fate::Mapped, false));
    assert_eq!(fate("AddCharset"), (Fate::Dropped, true));
}

#[test]
fn what_the_front_would_show_too_much_of_is_not_served() {
    for (name, section) in [
        ("/srv/index.php", ""),
        (
            "/srv/sub/.htaccess",
            "<Directory /srv>\nAllowOverride All\n</Directory>\n",
        ),
        (
            "/srv/page.html",
            "<Directory /srv>\nRequire valid-user\n</Directory>\n",
        ),
        (
            "/srv/page.html",
            "<Directory /srv>\nRewriteRule x y\n</Directory>\n",
        ),
    ] {
        let conf =
            format!("Listen 80\nDocumentRoot /srv\n{section}ProxyPass /app ajp://t:8009/app\n");
        let import = with_directories(&[("/httpd.conf", &conf), (name, "")], None);
        assert!(
            !import.text.contains("files = "),
            "{name} {section}\n{}",
            import.text
        );
        assert!(import.risks() > 0, "{name} {section}");
        let kept = with_directories(
            &[("/httpd.conf", &conf), (name, "")],
            Some("http://127.0.0.1:8081"),
        );
        assert!(
            kept.text.contains("path = \"/\"\nupstream = \"kept\""),
            "{}",
            kept.text
        );
    }
}

#[test]
fn files_of_nginx_go_before_an_application_or_have_a_page() {
    let conf = "include mime.types; server {\nlisten 80;\nroot /srv;\nproxy_set_header Host $host;\n\
                location / { try_files $uri $uri/ /index.html; }\n\
                location /app/ { try_files $uri @tomcat; }\n\
                location /pics/ { alias /var/pics/; expires 30d; }\n\
                location @tomcat { proxy_pass http://t:80; }\n}\n";
    let files = [
        ("/nginx.conf", conf),
        ("/srv/index.html", ""),
        ("/srv/app.css", ""),
        ("/var/pics/a.png", ""),
    ];
    let import = with_directories(&files, None);
    assert_eq!(
        routes(&import),
        [
            "path = \"/pics\"; exact = true; files = \"/srv\"; charset = \"off\"; fallback = \"index.html\"",
            "path = \"/pics\"; files = \"/var/pics\"; rewrite = \"/\"; cache_control = \"max-age=2592000\"; charset = \"off\"",
            "path = \"/app\"; exact = true; files = \"/srv\"; charset = \"off\"; fallback = \"index.html\"",
            "path = \"/app\"; files = \"/srv\"; charset = \"off\"; index = []; upstream = \"t\"",
            "path = \"/\"; files = \"/srv\"; charset = \"off\"; fallback = \"index.html\"",
        ]
    );
}

/// Converts httpd's `/srv`, which is open to all, together with these directives of the
/// server.
fn of_directory(directives: &str) -> Import {
    let conf = format!(
        "Listen 80\nDocumentRoot /srv\n{directives}\n<Directory /srv>\nRequire all granted\n</Directory>\n"
    );
    let files = [
        ("/httpd.conf", conf.as_str()),
        ("/srv/index.htm", ""),
        ("/srv/p.html", ""),
        ("/srv/raw/x.html", ""),
    ];
    with_directories(&files, None)
}

#[test]
fn names_of_which_httpd_makes_more_than_files_are_closed() {
    for directives in [
        "AddType application/x-httpd-php .html",
        "AddHandler cgi-script html",
        "AddOutputFilter INCLUDES .html",
        "AddOutputFilter INCLUDES;DEFLATE .html",
        "<Directory /srv>\nAddHandler server-parsed .html\n</Directory>",
        "<FilesMatch \"\\.html$\">\nSetHandler proxy:fcgi://127.0.0.1:9000\n</FilesMatch>",
        "<Files \"*.html\">\nForceType application/octet-stream\n</Files>",
        "<Files \"*.html\">\nHeader always set X-Robots-Tag vary\n</Files>",
        "<Directory /srv>\n<FilesMatch \"\\.html$\">\nHeader set Content-Disposition attachment\n</FilesMatch>\n</Directory>",
    ] {
        let import = of_directory(directives);
        let routes = routes(&import);
        let closed = |it: &String| {
            let names = [
                "(?i:\\\\.html)$",
                "(?:\\\\.html$)",
                "(?:.*/)?[^/]*\\\\.html$",
            ];
            let mut names = names.iter();
            it.ends_with("; status = 403") && names.any(|name| it.contains(name))
        };
        assert!(routes.iter().any(closed), "{directives}\n{routes:?}");
        assert!(
            routes
                .iter()
                .any(|it| it.starts_with("path = \"/\"; files = ")),
            "{directives}\n{routes:?}"
        );
        assert!(import.risks() > 0, "{directives}");
    }
    for directives in [
        "SetHandler server-parsed",
        "SetOutputFilter INCLUDES",
        "AddOutputFilterByType INCLUDES text/html",
        "XBitHack on",
        "ForceType application/x-httpd-php",
        "Action text/html /cgi-bin/run",
    ] {
        let import = of_directory(directives);
        assert!(
            !import.text.contains("files = "),
            "{directives}\n{}",
            import.text
        );
        assert!(import.risks() > 0, "{directives}");
    }
    for directives in [
        "SetOutputFilter DEFLATE",
        "AddOutputFilter INCLUDES .shtml\nAddHandler type-map var",
        "AddType text/x-web .html",
        "<FilesMatch \"\\.html$\">\nHeader set Cache-Control no-cache\n</FilesMatch>",
        "<FilesMatch \"^\\.ph(ar|p|ps|tml)$\">\nRequire all denied\n</FilesMatch>",
    ] {
        let routes = routes(&of_directory(directives));
        assert_eq!(routes.len(), 1, "{directives}\n{routes:?}");
    }
    let import = of_directory(
        "AddType text/x-web .html .xhtml\n<Directory /srv/raw>\nAddType text/plain .html\n</Directory>",
    );
    let types: Vec<&str> = import
        .text
        .lines()
        .filter(|it| it.starts_with("types = "))
        .collect();
    let expected = [
        "types = { \"html\" = \"text/plain\", \"xhtml\" = \"text/x-web\" }",
        "types = { \"html\" = \"text/x-web\", \"xhtml\" = \"text/x-web\" }",
    ];
    assert_eq!(types, expected);
}

#[test]
fn files_that_an_expression_guards_are_closed_alone() {
    for (section, expected) in [
        ("FilesMatch \"secret|key\"", ".*(?:secret|key)"),
        ("FilesMatch \"^secret\"", "(?:.*/)?secret"),
        ("FilesMatch \"^(a|b)$\"", "(?:.*/)?(a|b)$"),
        ("Files \"secret[0-9].*\"", "(?:.*/)?secret"),
        ("Files ~ \"key$\"", ".*(?:key$)"),
    ] {
        let end = section.split([' ', '"']).next().unwrap();
        for guard in [
            "Require all denied",
            "Require ip 10.0.0.0/8",
            "Require user a",
        ] {
            let lines = format!("<{section}>\n{guard}\n</{end}>");
            let served = "path = \"/\"; files = \"/srv\"; charset = \"off\"".to_owned();
            let closed = format!("regex = \"^/{expected}\"; status = 403");
            let found = routes(&of_directory(&lines));
            assert_eq!(found, [closed, served], "{lines}");
        }
    }
}

#[test]
fn a_directory_that_cannot_be_said_is_closed_alone() {
    for inner in [
        "SetHandler cgi-script",
        "SSLVerifyClient require",
        "RewriteRule x y",
        "<If \"true\">\nRequire all denied\n</If>",
    ] {
        let import = of_directory(&format!("<Directory /srv/raw>\n{inner}\n</Directory>"));
        let routes = routes(&import);
        assert!(
            routes
                .iter()
                .any(|it| it == "path = \"/raw\"; status = 403"),
            "{inner}\n{routes:?}"
        );
        assert!(
            routes
                .iter()
                .any(|it| it.starts_with("path = \"/\"; files = ")),
            "{inner}"
        );
        assert!(import.risks() > 0, "{inner}");
    }
}

#[test]
fn what_closes_a_directory_is_not_taken_back_by_a_deeper_section() {
    let open = "<Directory /srv/raw/open>\nRequire all granted\n</Directory>";
    for (directives, path) in [
        (
            "<Directory /srv/raw>\nSSLVerifyClient require\n</Directory>",
            "/raw/open",
        ),
        (
            "<Directory /srv/raw>\nSetHandler cgi-script\n</Directory>",
            "/raw/open",
        ),
        (
            "<Directory /srv/raw>\nSetHandler cgi-script\n</Directory>\n<Location /raw>\nRequire all granted\n</Location>",
            "/raw",
        ),
    ] {
        let import = of_directory(&format!("{directives}\n{open}"));
        let routes = routes(&import);
        let starts = format!("path = \"{path}");
        let shows = |it: &&String| it.starts_with(&starts) && it.contains("files = ");
        assert_eq!(routes.iter().find(shows), None, "{directives}");
    }
}

#[test]
fn types_that_a_deeper_directory_gives_back_to_names_are_those_of_names() {
    let import = of_directory(
        "<Directory /srv>\nForceType text/plain\n</Directory>\n<Directory /srv/raw>\nForceType None\n</Directory>",
    );
    let routes = routes(&import);
    let has_type = |it: &String| it.contains("Content-Type = \"text/plain\"");
    let types: Vec<bool> = routes
        .iter()
        .filter(|it| it.contains("files = "))
        .map(has_type)
        .collect();
    assert_eq!(types, [false, true], "{routes:?}");
}

#[test]
fn directories_have_the_fields_and_the_type_of_their_sections() {
    let import = of_directory(
        "AddType application/x-httpd-php .html\nHeader set X-Frame-Options SAMEORIGIN\n\
         <Directory /srv>\nHeader set X-Frame-Options DENY\n</Directory>\n\
         <Directory /srv/raw>\nForceType application/octet-stream\nHeader set Content-Disposition attachment\n</Directory>",
    );
    let routes = routes(&import);
    let fields = "[route.response_headers]; set = { Content-Disposition = \"attachment\", \
                  Content-Type = \"application/octet-stream\" }";
    // By its type alone a file is a program, and here it has another.
    assert!(
        routes[0].starts_with("path = \"/raw\"; files = ") && routes[0].ends_with(fields),
        "{routes:?}"
    );
    assert!(
        import.text.contains("X-Frame-Options = \"DENY\""),
        "{}",
        import.text
    );
    assert!(!import.text.contains("SAMEORIGIN"), "{}", import.text);
}
