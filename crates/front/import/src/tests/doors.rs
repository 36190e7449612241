//! Doors that hostile readers found: what a directive forbids stays forbidden.

use super::*;

/// The routes of a server that has these lines beside a pass to Tomcat.
fn routes_beside(lines: &str) -> Vec<String> {
    let conf = format!("Listen 80\nProxyPreserveHost On\n{lines}\nProxyPass / ajp://t:8009/\n");
    routes(&converted(&[("/c.conf", &conf)], None))
}

/// The routes of a server with files below `/srv`.
pub(super) fn routes_of_files(lines: &str) -> Vec<String> {
    let conf = format!("Listen 80\nDocumentRoot /srv\n{lines}\n");
    let files = [
        ("/c.conf", conf.as_str()),
        ("/srv/a.css", ""),
        ("/srv/in/a.css", ""),
    ];
    routes(&with_directories(&files, None))
}

#[test]
fn symbolic_links_are_followed_where_httpd_does() {
    for (lines, expected) in [
        ("", [false].as_slice()),
        (
            "<Directory /srv>\nOptions FollowSymLinks\n</Directory>",
            &[false],
        ),
        ("<Directory /srv>\nOptions All\n</Directory>", &[false]),
        ("<Directory /srv>\nOptions Indexes\n</Directory>", &[true]),
        ("<Directory /srv>\nOptions -Indexes\n</Directory>", &[false]),
        (
            "<Directory /srv>\nOptions -FollowSymLinks\n</Directory>",
            &[true],
        ),
        (
            "<Directory />\nOptions None\n</Directory>\n<Directory /srv>\nOptions +Indexes\n</Directory>",
            &[true],
        ),
        (
            "<Directory /srv>\nOptions SymLinksIfOwnerMatch\n</Directory>",
            &[true],
        ),
        (
            "Options None\n<Directory /srv/in>\nOptions FollowSymLinks\n</Directory>",
            &[false, true],
        ),
        (
            "<Directory /srv/in>\nOptions None\n</Directory>",
            &[true, false],
        ),
    ] {
        let routes = routes_of_files(lines);
        let off: Vec<bool> = routes
            .iter()
            .map(|it| it.contains("links = \"off\""))
            .collect();
        assert_eq!(off, expected, "{lines}: {routes:?}");
        assert!(routes.iter().all(|it| it.contains("files =")), "{routes:?}");
    }
    // Of which directories they are cannot be said.
    for section in ["<DirectoryMatch /in>", "<Directory \"/s*\">"] {
        let name = if section.contains("Match") {
            "DirectoryMatch"
        } else {
            "Directory"
        };
        let routes = routes_of_files(&format!("{section}\nOptions None\n</{name}>"));
        assert_eq!(routes, ["path = \"/\"; status = 404"], "{section}");
    }
}

/// A section with a directive of mod_access_compat takes over nothing of an outer `Satisfy Any`.
#[test]
fn a_section_that_replaces_satisfy_any_is_closed() {
    let inside = |guards: &str, inner: &str| {
        format!("<Directory /srv>\nSatisfy Any\n{guards}\n{inner}\n</Directory>")
    };
    let networks = "Require all denied\nOrder deny,allow\nDeny from all\nAllow from 10.0.0.0/8";
    let closed = |routes: &[String], name: &str| {
        let is_closed = |it: &String| it.contains(name) && it.ends_with("status = 403");
        routes.iter().any(is_closed)
    };
    for said in [
        "Allow from all",
        "Order deny,allow",
        "Satisfy All",
        "Deny from all\nSatisfy Any",
    ] {
        for section in ["Files a.css", "FilesMatch ^a\\.css$"] {
            let name = section.split(' ').next().unwrap();
            let files = format!("<{section}>\n{said}\n</{name}>");
            for lines in [
                inside(networks, &files),
                format!("{}\n{files}", inside(networks, "")),
                // A later section may refuse all users.
                format!(
                    "{}\n<Location />\nRequire all denied\n</Location>",
                    inside("", &files)
                ),
            ] {
                let routes = routes_of_files(&lines);
                assert!(closed(&routes, r"a\\.css"), "{lines}: {routes:?}");
                assert!(routes.iter().any(|it| it.contains("files =")), "{routes:?}");
            }
        }
        for section in ["DirectoryMatch /in", "Directory \"/s*/in\""] {
            let name = section.split(' ').next().unwrap();
            let lines = format!("{}\n<{section}>\n{said}\n</{name}>", inside(networks, ""));
            let routes = routes_of_files(&lines);
            assert!(!routes.concat().contains("files ="), "{lines}: {routes:?}");
        }
    }
    let dotted = r"<DirectoryMatch /\.well-known>";
    let lines = format!(
        "{}\n{dotted}\nAllow from all\n</DirectoryMatch>",
        inside(networks, "")
    );
    let routes = routes_of_files(&lines);
    assert!(closed(&routes, r"\\.well-known"), "{routes:?}");
    // Who may have the directory may have these files as well.
    for (guards, said) in [
        ("Require all denied\nDeny from all", "Allow from all"),
        (networks, "Allow from all\nSatisfy Any"),
    ] {
        let files = format!("<Files a.css>\n{said}\n</Files>");
        let routes = routes_of_files(&inside(guards, &files));
        assert!(!closed(&routes, r"a\\.css"), "{said}: {routes:?}");
    }
}

#[test]
fn a_proxy_section_of_one_backend_that_replaces_satisfy_any_closes_all() {
    let any = "<Proxy *>\nSatisfy Any\nRequire all denied\nOrder deny,allow\nDeny from all\nAllow from 10.0.0.0/8\n</Proxy>";
    assert!(routes_beside(any).concat().contains("upstream"));
    let one = "<Proxy ajp://t:8009/>\nAllow from all\n</Proxy>";
    assert_eq!(
        routes_beside(&format!("{any}\n{one}")),
        ["path = \"/\"; status = 403"]
    );
}

#[test]
fn guards_of_hidden_directories_hold_for_the_one_that_is_served() {
    for (expression, is_hidden) in [
        (r"/\.", true),
        (r"(^|/)\.w", true),
        (r"/\.[a-z-]+/secret", true),
        (r"/\.(git|well)", true),
        (r"/\.(git)?well", true),
        (r"/\.g*well", true),
        (r"/\.git", false),
        (r"/\.(git|svn)(/|$)", false),
        (r"/\.(?:git|svn)", false),
    ] {
        let guard =
            format!("<DirectoryMatch \"{expression}\">\nRequire all denied\n</DirectoryMatch>");
        let routes = routes_of_files(&guard);
        let found = routes
            .iter()
            .any(|it| it.contains("hide = \".well-known\""));
        assert_eq!(found, is_hidden, "{expression}: {routes:?}");
        assert!(routes.iter().any(|it| it.contains("files =")), "{routes:?}");
    }
}

#[test]
fn variables_that_keep_a_module_away_close_its_paths() {
    let everything = ["path = \"/\"; status = 403"];
    for line in [
        "BrowserMatch Evil no-proxy",
        "BrowserMatchNoCase Evil !no-proxy",
        "SetEnv no-proxy 1",
        "SetEnvIf Remote_Addr ^10 No-Proxy=1",
        "SetEnvIfNoCase User-Agent evil no-proxy",
        "SetEnvIfExpr \"true\" no-proxy",
        "RewriteEngine On\nRewriteRule ^ - [E=no-proxy:1]",
        "RewriteEngine On\nRewriteRule ^ - [L,ENV=no-proxy:1]",
    ] {
        assert_eq!(routes_beside(line), everything, "{line}");
    }
    let routes = routes_beside("SetEnvIf request_uri ^/static no-proxy");
    let expected = [
        "pattern = \"/static*\"; status = 404",
        "path = \"/\"; upstream = \"t\"",
    ];
    assert_eq!(routes, expected);
    let other = routes_beside("SetEnvIf Request_URI ^/static no-proxy-at-all");
    assert_eq!(other, ["path = \"/\"; upstream = \"t\""]);
}

#[test]
fn a_proxy_for_backends_closes_what_leads_to_them() {
    for line in [
        "ProxyRemote * http://p:3128",
        "ProxyRemoteMatch ^http http://p:3128",
    ] {
        assert_eq!(
            routes_beside(line),
            ["path = \"/\"; status = 403"],
            "{line}"
        );
    }
}

#[test]
fn files_of_a_directory_that_is_not_here_may_be_guards() {
    let optional = |mask: &str| format!("IncludeOptional {mask}");
    for mask in ["/nowhere/*.conf", "nowhere/*.conf", "/nowhere/*/a.conf"] {
        assert_eq!(
            routes_beside(&optional(mask)),
            ["path = \"/\"; status = 403"],
            "{mask}"
        );
    }
    for mask in ["/*.none", "none-*.conf", "/etc/apache2/mods-enabled/*.conf"] {
        assert_eq!(
            routes_beside(&optional(mask)),
            ["path = \"/\"; upstream = \"t\""],
            "{mask}"
        );
    }
}

#[test]
fn chains_of_certificates_are_as_long_as_in_the_source() {
    let of = |lines: &str| {
        let conf = format!(
            "Listen 443\nSSLEngine on\nSSLCertificateFile /a.pem\n{lines}\nProxyPreserveHost On\nProxyPass / ajp://t:8009/\n"
        );
        let files = [("/c.conf", conf.as_str()), ("/a.pem", ""), ("/ca.pem", "")];
        let import = with_directories(&files, None);
        let risks = said(&import, Weight::Risk).len();
        (routes(&import), risks, import.text)
    };
    let verify = "SSLVerifyClient require\nSSLCACertificateFile /ca.pem";
    let open = vec!["path = \"/\"; upstream = \"t\"".to_owned()];
    let asked = vec![format!("{}; client_certificate = \"required\"", open[0])];
    for (lines, depth) in [
        ("", "client_ca_depth = 0"),
        ("SSLVerifyDepth 1", "client_ca_depth = 0"),
        ("SSLVerifyDepth 3", "client_ca_depth = 2"),
        ("SSLVerifyDepth 10", ""),
    ] {
        let (routes, risks, text) = of(&format!("{verify}\n{lines}"));
        assert_eq!((routes, risks), (asked.clone(), 0), "{lines}");
        let line = text.lines().find(|it| it.starts_with("client_ca_depth"));
        assert_eq!(line.unwrap_or_default(), depth, "{lines}");
    }
    // Only a certificate that is its own issuer would be accepted.
    let (_, risks, text) = of(&format!("{verify}\nSSLVerifyDepth 0"));
    assert!(
        risks > 0 && text.contains("address = \"127.0.0.1:443\""),
        "{text}"
    );
    let (routes, risks, _) = of("SSLVerifyDepth 1");
    assert_eq!((routes, risks), (open, 0));
}

#[test]
fn authorities_below_others_count_as_such_in_the_source() {
    let root = catamaran_testkit::tls::Authority::new("root").unwrap();
    let below = root.below("below").unwrap();
    let both = format!("{}{}", root.pem(), below.pem());
    for (authorities, number, depth) in [
        (root.pem(), "", Some("1")),
        (both.clone(), "", Some("0")),
        (both.clone(), "ssl_verify_depth 4;", Some("3")),
        (both, "ssl_verify_depth 0;", None),
    ] {
        let tls = "listen 443 ssl; ssl_certificate /c; ssl_certificate_key /c;";
        let conf = format!(
            "server {{ {tls} ssl_verify_client on; ssl_client_certificate /ca.pem; {number}\n\
             location / {{ proxy_set_header Host $host; proxy_pass http://t:80; }} }}"
        );
        let files = [
            ("/nginx.conf", conf.as_str()),
            ("/c", ""),
            ("/ca.pem", &authorities),
        ];
        let import = with_directories(&files, None);
        let mut lines = import.text.lines();
        let found = lines.find_map(|it| it.strip_prefix("client_ca_depth = "));
        assert_eq!(found, depth, "{number} {}", import.text);
        assert_eq!(
            import.risks() == 0,
            depth.is_some(),
            "{number} {:?}",
            import.remarks
        );
    }
}

#[test]
fn both_tables_of_response_fields_count() {
    for (lines, expected) in [
        (
            "Header always set X-A a\nHeader unset X-A",
            "set = { X-A = \"a\" }",
        ),
        (
            "Header unset X-A\nHeader always set X-A a",
            "set = { X-A = \"a\" }",
        ),
        (
            "Header set X-A a\nHeader always set X-A a",
            "set = { X-A = \"a\" }",
        ),
        (
            "Header unset X-A\nHeader always unset X-A",
            "remove = \"X-A\"",
        ),
        (
            "Header set X-A a\nHeader merge X-A a",
            "set = { X-A = \"a\" }",
        ),
        (
            "Header set X-A b\nHeader always set X-A a",
            "set = { X-A = \"b\" }\nadd = { X-A = \"a\" }",
        ),
    ] {
        let conf = format!("Listen 80\n{lines}\nProxyPass / ajp://t:8009/\n");
        let import = converted(&[("/c.conf", &conf)], None);
        let (_, fields) = import.text.split_once("response_headers]\n").unwrap();
        let own = fields.split("\n\n").next().unwrap();
        assert_eq!(own.trim_end(), expected, "{lines}");
    }
    // The table of errors has none of the application's fields.
    let routes = routes_beside("Header always unset X-Frame-Options");
    assert_eq!(routes, ["path = \"/\"; upstream = \"t\""]);
}

#[test]
fn a_merged_field_of_requests_has_its_value_once() {
    let of = |lines: &str| routes_beside(lines).concat();
    let set = of("RequestHeader set X-Role guest\nRequestHeader merge X-Role guest");
    assert!(set.ends_with("set = { X-Role = \"guest\" }"), "{set}");
    let clients = of("RequestHeader merge X-Role guest");
    assert!(clients.ends_with("remove = \"X-Role\""), "{clients}");
}

#[test]
fn values_that_are_added_one_after_the_other_are_all_there() {
    for (lines, expected) in [
        (
            "Header append X-A a\nHeader append X-A a",
            "add = { X-A = \"a, a\" }",
        ),
        (
            "Header append X-A a\nHeader add x-a b",
            "add = { X-A = \"a, b\" }",
        ),
        (
            "Header append X-A a\nHeader always append X-A b",
            "add = { X-A = \"a, b\" }",
        ),
        (
            "Header append X-A a\n<Location />\nHeader append X-A b\n</Location>",
            "add = { X-A = \"a, b\" }",
        ),
        // A cookie is a line of its own.
        (
            "Header add Set-Cookie a=1\nHeader add Set-Cookie b=2",
            "add = { Set-Cookie = \"a=1\", set-cookie = \"b=2\" }",
        ),
        (
            "RequestHeader append X-Role guest\nRequestHeader add X-Role guest",
            "add = { X-Role = \"guest, guest\" }",
        ),
    ] {
        let conf = format!("Listen 80\nProxyPreserveHost On\n{lines}\nProxyPass / ajp://t:8009/\n");
        let import = converted(&[("/c.conf", &conf)], None);
        assert!(import.text.contains(expected), "{lines}\n{}", import.text);
        assert_eq!(import.risks(), 0, "{lines} {:?}", import.remarks);
    }
    // A deeper directory has those of the outer one as well, once.
    let of = |path: &str, value: &str| {
        format!("<Directory {path}>\nHeader append X-A {value}\n</Directory>\n")
    };
    let routes = routes_of_files(&(of("/srv", "a") + &of("/srv/in", "b")));
    let ends: Vec<&str> = routes
        .iter()
        .filter_map(|it| it.split_once("X-A = ").map(|it| it.1))
        .collect();
    assert_eq!(ends, ["\"a, b\" }", "\"a\" }"], "{routes:?}");
}

#[test]
fn a_redirect_for_hosts_that_nobody_names_hides_what_is_behind_it() {
    let of = |rule: &str| {
        let condition = "RewriteCond %{HTTP_HOST} !^www\\.";
        routes_beside(&format!("RewriteEngine On\n{condition}\n{rule}"))
    };
    let routes = of("RewriteRule ^/app/(.*)$ https://a.org/ [R]");
    let mut of_all = routes.iter().filter(|it| !it.contains("host = "));
    let is_closed = |it: &String| it.contains("\"/app") && it.ends_with("status = 403");
    assert!(of_all.any(is_closed), "{routes:?}");
    let routes = of("RewriteRule ^ https://www.a.org%{REQUEST_URI} [R=301]");
    let expected = [
        "host = \"www.a.org\"; path = \"/\"; upstream = \"t\"",
        "path = \"/\"; redirect = \"https://www.a.org{path_query}\"; status = 301",
    ];
    assert_eq!(routes, expected);
}

/// What no host passes is not taken for a test of hosts in lower case.
#[test]
fn capital_letters_in_tests_of_hosts_in_lower_case_close() {
    for condition in ["%{SERVER_NAME} !=B.org", "%{SERVER_NAME} !^B\\.org$"] {
        let guard = format!("RewriteCond {condition}\nRewriteRule ^ - [F]");
        let routes = routes_beside(&format!("RewriteEngine On\n{guard}"));
        assert!(
            !routes.concat().contains("upstream"),
            "{condition} {routes:?}"
        );
        let of_any_case = guard.replace("\nRewriteRule", " [NC]\nRewriteRule");
        let routes = routes_beside(&format!("RewriteEngine On\n{of_any_case}"));
        assert!(
            routes.concat().contains("upstream"),
            "{condition} {routes:?}"
        );
    }
    for (test, is_open) in [
        ("$host != B.org", false),
        ("$host !~ ^B\\.org$", false),
        ("$host !~* ^B\\.org$", true),
    ] {
        let pass = "location / { proxy_pass http://t:80; }";
        let guarded = format!("if ({test}) {{ return 403; }}\n{pass}");
        let (routes, _) = nginx::of_server(&guarded, &[]);
        let opens = routes.concat().contains("upstream");
        assert_eq!(opens, is_open, "{test} {routes:?}");
    }
}

/// A backend gets no part of a value that the importer does not know.
#[test]
fn nothing_is_added_to_a_field_that_was_lost() {
    let edit = "RequestHeader edit X-Role admin guest";
    let deeper = "<Location />\nRequestHeader append X-Role guest\n</Location>";
    for lines in [
        format!("{edit}\nRequestHeader append X-Role guest"),
        format!("{edit}\nRequestHeader add x-role guest"),
        format!("{edit}\n{deeper}"),
    ] {
        let routes = routes_beside(&lines).concat();
        assert!(routes.ends_with("remove = \"X-Role\""), "{lines} {routes}");
    }
    let known = format!("{edit}\nRequestHeader unset X-Role\n{deeper}");
    let routes = routes_beside(&known).concat();
    assert!(routes.ends_with("add = { X-Role = \"guest\" }"), "{routes}");
}

#[test]
fn a_route_that_check_refuses_is_closed() {
    let conf = "server {\nlisten 80;\nreturn 302 /app;\n}\n";
    let import = converted(&[("/nginx.conf", conf)], None);
    assert_eq!(routes(&import), ["path = \"/\"; status = 403"]);
    let risks = said(&import, Weight::Risk);
    assert!(risks[0].ends_with("; its route is closed"), "{risks:?}");
}

/// In httpd `/x.php` takes no `/x.php;x`, about which the later rule decides.
#[test]
fn a_rule_about_parameters_decides_beside_the_prefixes_before_it() {
    let closed = "regex = \"^/x\\\\.php;\"; status = 403";
    for (guard, is_closed) in [
        ("RedirectMatch 404 \";\"", true),
        ("RedirectMatch 302 \";\" https://a.org/", false),
        ("RedirectMatch 404 \"^/admin\"", false),
    ] {
        let routes = routes_beside(&format!("{guard}\nProxyPass /x.php ajp://u:8009/x.php"));
        let found = routes.iter().any(|it| it == closed);
        assert_eq!(found, is_closed, "{guard} {routes:?}");
        assert!(routes.concat().contains("upstream = \"u\""), "{routes:?}");
    }
}

/// The expression is asked for paths of the longest prefix, although a shorter one asks none.
#[test]
fn an_expression_behind_a_prefix_that_asks_none_guards_longer_prefixes() {
    let pass = "proxy_set_header Host $host; proxy_pass http://t:80;";
    let of = |first: &str, prefix: &str| {
        let conf = format!(
            "{first}\nlocation ~ ^/admin/?$ {{ deny all; }}\nlocation {prefix} {{ {pass} }}\nlocation ^~ / {{ return 404; }}"
        );
        nginx::of_server(&conf, &[]).0.concat().contains("upstream")
    };
    let rewrite = "rewrite ^/app/(.*)$ /$1 break;";
    assert!(!of(rewrite, "/admin"));
    // No expression comes before, or the prefix itself asks none.
    assert!(of("", "/admin"));
    let moved = "rewrite ^/app/(.*)$ /b/$1 permanent;";
    assert!(!of(moved, "/admin"));
    assert!(of(moved, "^~ /admin"));
}

/// httpd reads them as if they stood beside the section.
#[test]
fn what_is_no_demand_in_a_section_of_demands_stands_beside_it() {
    let of = |inner: &str| routes_beside(&format!("<Location /a>\n{inner}\n</Location>"));
    let denied = "Require all denied";
    for (inside, beside) in [
        (
            format!("Satisfy any\n<RequireAll>\nSatisfy all\n{denied}\n</RequireAll>"),
            format!("Satisfy all\n<RequireAll>\n{denied}\n</RequireAll>"),
        ),
        (
            "<RequireAny>\n<RequireAll>\nDeny from all\n</RequireAll>\nRequire all granted\n</RequireAny>"
                .to_owned(),
            "Require all granted\nDeny from all".to_owned(),
        ),
    ] {
        let routes = of(&inside);
        assert_eq!(routes, of(&beside), "{inside}");
        assert_eq!(routes[0], "path = \"/a\"; status = 403", "{inside}");
    }
}

/// Closing a route for the requests of another one does not make `check` accept it.
#[test]
fn a_route_that_check_refuses_closed_is_left_out_and_all_others_are_closed() {
    let paths = ["/b", "/a", "/a", "/a", "/"];
    let write = |withheld: &WithheldRoutes| {
        let mut text = "[[listen]]\naddress = \"127.0.0.1:80\"\n".to_owned();
        let left = (0..paths.len()).filter(|it| !withheld.omitted.contains(it));
        for index in left.clone() {
            let status = if withheld.closed.contains(&index) {
                403
            } else {
                204
            };
            let path = paths[index];
            text += &format!("\n[[route]]\npath = \"{path}\"\nstatus = {status}\n");
        }
        WrittenFile {
            text,
            files: Vec::new(),
            routes: left.count(),
            kept: 0,
        }
    };
    let (written, withheld) = accepted(&write, &mut Ledger::new(false));
    assert_eq!(withheld.omitted, [2, 3], "{}", written.text);
    assert_eq!(withheld.closed, [0, 1, 2, 3, 4]);
    assert_eq!(written.text.matches("status = 403").count(), 3);
    assert!(catamaran_config::parse("c.toml", &written.text).is_ok());
}

#[test]
fn targets_are_joined_with_paths_as_httpd_joins_them() {
    for (line, expected) in [
        (
            "ProxyPass /a/ ajp://u:8009/b",
            "path = \"/a\"; status = 403",
        ),
        (
            "ProxyPass /a/ ajp://u:8009/b/",
            "path = \"/a\"; upstream = \"u\"; rewrite = \"/b\"",
        ),
        (
            "ProxyPass /a ajp://u:8009/b/",
            "path = \"/a\"; upstream = \"u\"; rewrite = \"/b\"",
        ),
    ] {
        let routes = routes_beside(line);
        assert!(routes.iter().any(|it| it == expected), "{line}: {routes:?}");
    }
}

#[test]
fn a_last_condition_with_or_holds_always() {
    let conditions = "RewriteCond %{HTTP_HOST} =b.org [OR]\nRewriteRule ^/a - [F]";
    let routes = routes_beside(&format!("RewriteEngine On\n{conditions}"));
    assert_eq!(routes[0], "pattern = \"/a*\"; status = 403");
}

#[test]
fn long_names_of_flags_are_those_of_short_ones() {
    let of = |rule: &str| routes_beside(&format!("RewriteEngine On\n{rule}"));
    for (long, short) in [
        (
            "RewriteRule ^/Adm - [forbidden,nocase]",
            "RewriteRule ^/Adm - [F,NC]",
        ),
        ("RewriteRule ^/a - [Gone, Last]", "RewriteRule ^/a - [G]"),
        (
            "RewriteRule ^/a /b [redirect=301]",
            "RewriteRule ^/a /b [R=301]",
        ),
        (
            "RewriteRule ^/a /b [redirect,last]",
            "RewriteRule ^/a /b [R,L]",
        ),
        (
            "RewriteRule ^/a http://b/ [proxy]",
            "RewriteRule ^/a http://b/ [P]",
        ),
        (
            "RewriteRule ^/a - [last]\nRewriteRule ^/ - [F]",
            "RewriteRule ^/a - [L]\nRewriteRule ^/ - [F]",
        ),
        (
            "RewriteRule ^/a - [chain]\nRewriteRule ^/b - [F]",
            "RewriteRule ^/a - [C]\nRewriteRule ^/b - [F]",
        ),
        (
            "RewriteCond %{HTTP_HOST} =b.org [ornext]\nRewriteCond %{HTTP_HOST} =c.org\nRewriteRule ^/a - [F]",
            "RewriteCond %{HTTP_HOST} =b.org [OR]\nRewriteCond %{HTTP_HOST} =c.org\nRewriteRule ^/a - [F]",
        ),
        (
            "RewriteCond %{REQUEST_URI} !^/Ok [nocase]\nRewriteRule ^/ - [F]",
            "RewriteCond %{REQUEST_URI} !^/Ok [NC]\nRewriteRule ^/ - [F]",
        ),
    ] {
        assert_eq!(of(long), of(short), "{long}");
        let guards = of(long).concat();
        assert_ne!(guards, "path = \"/\"; upstream = \"t\"", "{long}");
    }
    // No other flag is one for some of its letters.
    assert_eq!(
        of("RewriteCond %{REQUEST_URI} !^/Ok [ornc]\nRewriteRule ^/ - [F]"),
        of("RewriteCond %{REQUEST_URI} !^/Ok\nRewriteRule ^/ - [F]"),
    );
}

#[test]
fn other_options_of_all_expressions_close_all_paths() {
    let guard = "RedirectMatch 404 ^/admin";
    for options in ["+ICASE", "ICASE", "-DOLLAR_ENDONLY", "None"] {
        let routes = routes_beside(&format!("RegexDefaultOptions {options}\n{guard}"));
        let of_backend = routes.iter().filter(|it| it.contains("upstream")).count();
        assert_eq!(of_backend, 0, "{options}: {routes:?}");
        let host = "<VirtualHost *:80>\nServerName a\nProxyPass / ajp://u:8009/\n</VirtualHost>";
        let routes = routes_beside(&format!("RegexDefaultOptions {options}\n{host}"));
        assert!(!routes.concat().contains("upstream"), "{routes:?}");
    }
}

#[test]
fn the_files_of_a_directory_are_those_of_its_section() {
    let index = |lines: &str| -> Vec<String> {
        let routes = routes_of_files(lines);
        let of = |it: &String| it.split("index = ").nth(1).unwrap_or("none").to_owned();
        routes.iter().map(of).collect()
    };
    for (lines, expected) in [
        ("DirectoryIndex a.css", ["\"a.css\""].as_slice()),
        (
            "DirectoryIndex a.css\nDirectoryIndex b.css",
            &["[\"a.css\", \"b.css\"]"],
        ),
        ("DirectoryIndex a.css /in/a.css b.css", &["\"a.css\""]),
        ("DirectoryIndex /in/a.css", &["[]"]),
        ("DirectoryIndex disabled", &["[]"]),
        (
            "<Directory /srv/in>\nDirectoryIndex a.css\n</Directory>",
            &["\"a.css\"", "none"],
        ),
        (
            "DirectoryIndex b.css\n<Directory /srv>\nDirectoryIndex a.css\n</Directory>",
            &["\"a.css\""],
        ),
    ] {
        assert_eq!(index(lines), expected, "{lines}");
    }
}

#[test]
fn limits_of_methods_are_routes_for_methods() {
    let open = |methods: &str| format!("path = \"/\"; methods = {methods}upstream = \"t\"");
    let closed = |methods: &str| format!("path = \"/\"; methods = {methods}status = 403");
    let rest = |end: &str| format!("path = \"/\"; {end}");
    let (upstream, refused) = (rest("upstream = \"t\""), rest("status = 403"));
    for (limit, expected) in [
        (
            "<Limit POST>\nRequire all denied\n</Limit>",
            [closed("\"POST\"; "), upstream.clone()],
        ),
        (
            "<Limit PUT DELETE>\nOrder deny,allow\nDeny from all\n</Limit>",
            [closed("[\"DELETE\", \"PUT\"]; "), upstream.clone()],
        ),
        (
            "<LimitExcept GET POST>\nRequire all denied\n</LimitExcept>",
            [open("[\"GET\", \"POST\"]; "), refused.clone()],
        ),
        (
            "<LimitExcept HEAD>\nRequire all denied\n</LimitExcept>",
            [open("\"GET\"; "), refused.clone()],
        ),
        (
            "<Limit GET>\nRequire all granted\n</Limit>\n<LimitExcept GET>\nRequire all denied\n</LimitExcept>",
            [open("\"GET\"; "), refused.clone()],
        ),
        (
            "<Limit POST>\nRequire all denied\n</Limit>\n<Limit PUT>\nRequire all denied\n</Limit>",
            [closed("[\"POST\", \"PUT\"]; "), upstream.clone()],
        ),
        (
            "<Limit GET>\nRequire all granted\n</Limit>\nRequire all denied",
            [open("\"GET\"; "), refused.clone()],
        ),
        (
            "<LimitExcept GET POST>\nDeny from all\n</LimitExcept>\nOrder allow,deny\nAllow from all",
            [open("[\"GET\", \"POST\"]; "), refused.clone()],
        ),
        ("AllowMethods POST", [open("\"POST\"; "), refused.clone()]),
    ] {
        let routes = routes_beside(&format!("<Location />\n{limit}\n</Location>"));
        assert_eq!(routes, expected, "{limit}");
        let none = routes_beside(&format!(
            "<Location />\nRequire all denied\n</Location>\n<LocationMatch \"^/x\">\n{limit}\n</LocationMatch>"
        ));
        assert!(
            !none.concat().contains("path = \"/\"; upstream"),
            "{none:?}"
        );
    }
    for limit in [
        "<Limit POST>\nRequire ip 10.0.0.1\n</Limit>",
        "AllowMethods GET\nRequire ip 10.0.0.1",
        "<Limit POST>\nRequire all denied\nFrobnicate on\n</Limit>",
        "<Limit X|Y>\nRequire all denied\n</Limit>",
    ] {
        let routes = routes_beside(&format!("<Location />\n{limit}\n</Location>"));
        assert_eq!(routes, std::slice::from_ref(&refused), "{limit}");
    }
    let files = routes_of_files(
        "<Directory /srv>\n<LimitExcept GET>\nRequire all denied\n</LimitExcept>\n</Directory>",
    );
    assert!(
        files[0].contains("methods = \"GET\"; files = "),
        "{files:?}"
    );
    assert_eq!(files[1], refused);
}

#[test]
fn a_section_by_methods_keeps_what_the_server_says_of_methods() {
    let guard =
        "RewriteEngine On\nRewriteCond %{REQUEST_METHOD} !^(GET|HEAD|POST)$\nRewriteRule ^ - [F]";
    let upstream = |methods: &str| format!("path = \"/\"; methods = {methods}; upstream = \"t\"");
    let refused = |methods: &str| format!("path = \"/\"; {methods}status = 403");
    let both = "[\"GET\", \"POST\"]";
    for (limit, expected) in [
        (
            "<Limit PUT>\nRequire all denied\n</Limit>",
            vec![upstream(both), refused("methods = \"PUT\"; "), refused("")],
        ),
        (
            "<Limit POST>\nRequire all denied\n</Limit>",
            vec![
                refused("methods = \"POST\"; "),
                upstream("\"GET\""),
                refused(""),
            ],
        ),
        (
            "AllowMethods GET DELETE",
            vec![
                upstream("\"GET\""),
                refused("methods = \"POST\"; "),
                refused("methods = \"DELETE\"; "),
                refused(""),
            ],
        ),
    ] {
        let routes = routes_beside(&format!("{guard}\n<Location />\n{limit}\n</Location>"));
        assert_eq!(routes, expected, "{limit}");
    }
}

#[test]
fn what_a_parameter_closes_is_closed_without_it() {
    let denied = |section: &str, name: &str| format!("<{section}>\nRequire all denied\n</{name}>");
    for (lines, closed) in [
        (
            denied("Location \"/lit;v\"", "Location"),
            "path = \"/lit\"; before_regex = true; status = 403",
        ),
        (
            denied("LocationMatch \"^/s;v=1/\"", "LocationMatch"),
            "regex = \"^/s;v=1/\"; status = 403",
        ),
        (
            denied("Location \"/*;v*\"", "Location"),
            "regex = \"^/[^/]*;v[^/]*$\"; status = 403",
        ),
        (
            "RewriteEngine On\nRewriteRule ;jsessionid - [F]".to_owned(),
            "regex = \";jsessionid\"; status = 403",
        ),
        (
            "<Location \"/net;v\">\nRequire ip 10.0.0.0/8\n</Location>".to_owned(),
            "path = \"/net\"; before_regex = true; status = 403",
        ),
    ] {
        let routes = routes_beside(&lines);
        assert!(routes.iter().any(|it| it == closed), "{lines}: {routes:?}");
    }
    // They match without one as well.
    for expression in ["^/a/[^;]*$", "^/a(;.*)?$"] {
        let routes = routes_beside(&denied(
            &format!("LocationMatch \"{expression}\""),
            "LocationMatch",
        ));
        assert_eq!(routes.len(), 2, "{expression}: {routes:?}");
        assert!(
            routes.iter().any(|it| it.contains("upstream")),
            "{routes:?}"
        );
    }
}

#[test]
fn a_location_that_passes_on_takes_its_path_without_a_slash_whatever_else_it_says() {
    const PASS: &str = "proxy_set_header Host $host; proxy_pass http://t:80;";
    let redirect = Some("redirect = \"/x/{search}\"; status = 301");
    for (location, expected) in [
        ("location /x/ { PASS }", redirect),
        ("location /x/ { return 403; PASS }", redirect),
        ("location ^~ /x/ { deny all; PASS }", redirect),
        ("location /x/ { limit_rate_before 1; PASS }", redirect),
        ("location /x/ { internal; PASS }", Some("status = 404")),
        ("location = /x/ { internal; PASS }", Some("status = 404")),
        (
            "location = /x/ { internal; } location /x/ { PASS }",
            Some("status = 404"),
        ),
        (
            "location = /x/ { PASS } location /x/ { internal; PASS }",
            redirect,
        ),
        ("location /x/ { return 403; }", None),
        ("location /x/ { internal; return 200 a; }", None),
        (
            "location /x/ { PASS } location /x { return 410; }",
            Some("status = 410"),
        ),
    ] {
        let location = location.replace("PASS", PASS);
        let (routes, _) = nginx::of_server(&format!("{location}\nlocation / {{ {PASS} }}"), &[]);
        let start = "path = \"/x\"; exact = true; ";
        let own = routes.iter().filter_map(|it| it.strip_prefix(start));
        let found: Vec<&str> = own.filter(|it| !it.starts_with("upstream")).collect();
        assert_eq!(found, Vec::from_iter(expected), "{location} {routes:#?}");
    }
}

#[test]
fn a_virtual_host_does_not_inherit_that_escaped_slashes_are_taken() {
    let refused = |main: &str, own: &str| {
        let conf = format!(
            "Listen 80\n{main}\n<VirtualHost *:80>\nServerName a.org\n{own}\nProxyPreserveHost On\n\
             ProxyPass / ajp://t:8009/\n</VirtualHost>\n"
        );
        let import = converted(&[("/c.conf", &conf)], None);
        import.text.contains("# an escaped slash")
    };
    for value in ["On", "NoDecode"] {
        let line = format!("AllowEncodedSlashes {value}");
        assert!(refused(&line, ""), "{value}");
        assert!(!refused("", &line), "{value}");
        assert!(!refused("AllowEncodedSlashes Off", &line), "{value}");
        assert!(refused(&line, "AllowEncodedSlashes Off"), "{value}");
        let routes = routes_beside(&line);
        assert_eq!(routes, ["path = \"/\"; upstream = \"t\""], "{value}");
    }
}

#[test]
fn escaped_question_marks_are_refused_where_a_rule_passes_on_alone() {
    let conf = "Listen 80\nProxyPreserveHost On\nRewriteEngine On\nRewriteRule ^/app/(.*)$ http://u:80/app/$1 [P]\n\
                ProxyPass / http://t:80/\n<Location /admin>\nRequire ip 10.0.0.0/8\n</Location>\n";
    let import = converted(&[("/c.conf", conf)], None);
    let routes = routes(&import);
    let of_rule = "path = \"/app\"; ";
    let refusal = format!("{of_rule}match_regex = \"target ~ ^[^?]*%3[Ff]\"; status = 403");
    assert!(routes.contains(&refusal), "{routes:#?}");
    let own: Vec<&String> = routes
        .iter()
        .filter(|it| it.starts_with("path = \"/admin\""))
        .collect();
    let expected = "path = \"/admin\"; upstream = \"t\"; allow = \"10.0.0.0/8\"";
    assert_eq!(own, [expected], "{routes:#?}");
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
}
