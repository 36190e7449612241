//! Tests restrictions of httpd that are easily overlooked.

use super::*;

/// Converts directives of httpd; `files` exist beside them.
fn of(directives: &str, files: &[(&str, &str)]) -> Import {
    let texts = [&[("/httpd.conf", directives)], files].concat();
    with_directories(&texts, None)
}

/// Converts directives of httpd before a proxied backend, and returns the routes.
fn before_backend(directives: &str) -> (Vec<String>, Import) {
    let conf =
        format!("Listen 80\nProxyPreserveHost On\n{directives}\nProxyPass / ajp://t:8009/\n");
    let import = converted(&[("/httpd.conf", &conf)], None);
    (routes(&import), import)
}

fn has(import: &Import, line: &str) -> bool {
    import.text.lines().any(|it| it == line)
}

#[test]
fn addresses_of_loopback_and_of_one_family_stay_so() {
    for (listen, expected) in [
        (
            "Listen localhost:8080",
            &["127.0.0.1:8080", "[::1]:8080"][..],
        ),
        ("Listen 0.0.0.0:8080", &["0.0.0.0:8080"]),
        ("Listen [::]:8080", &["[::]:8080"]),
        ("Listen *:8080", &["[::]:8080"]),
        (
            "Listen 8080\n<VirtualHost localhost:8080>\nProxyPass /a ajp://t:8009/a\n</VirtualHost>",
            &["127.0.0.1:8080", "[::1]:8080"],
        ),
        // Only the source's machine can tell its address.
        ("Listen intern.example.org:8080", &["127.0.0.1:8080"]),
    ] {
        let import = of(&format!("{listen}\nProxyPass / ajp://t:8009/\n"), &[]);
        let addresses = import
            .text
            .lines()
            .filter_map(|it| it.strip_prefix("address = "));
        let addresses: Vec<&str> = addresses.map(|it| it.trim_matches('"')).collect();
        assert_eq!(addresses, expected, "{listen}");
    }
    let import = of(
        "Listen intern.example.org:8080\nProxyPass / ajp://t:8009/\n",
        &[],
    );
    assert_eq!(import.risks(), 1, "{:?}", import.remarks);
}

#[test]
fn backends_are_verified_as_the_source_verifies_them() {
    for (directives, verified, authority, risks) in [
        ("", false, false, 0),
        ("SSLProxyVerify none", false, false, 0),
        ("SSLProxyVerify require", true, false, 0),
        (
            "SSLProxyVerify require\nSSLProxyCACertificateFile /ca.pem",
            true,
            true,
            0,
        ),
        (
            "SSLProxyVerify require\nSSLProxyCACertificateFile /ca.pem\nSSLProxyVerifyDepth 3",
            true,
            true,
            0,
        ),
        (
            "SSLProxyVerify require\nSSLProxyCACertificateFile /none.pem",
            true,
            false,
            1,
        ),
        (
            "SSLProxyVerify require\nSSLProxyCACertificatePath /certs",
            true,
            false,
            1,
        ),
        ("SSLProxyVerify optional", true, false, 1),
        (
            "<Proxy *>\nSSLProxyVerify require\n</Proxy>",
            true,
            false,
            1,
        ),
        // The strictest of several holds for all.
        (
            "<Proxy https://o:8443>\nSSLProxyVerify none\n</Proxy>\n\
             <Proxy https://t:8443>\nSSLProxyVerify require\n</Proxy>",
            true,
            false,
            2,
        ),
        (
            "SSLProxyVerify require\n<Proxy https://o:8443>\nSSLProxyVerify none\n</Proxy>",
            true,
            false,
            1,
        ),
        (
            "<Proxy https://t:8443>\nSSLProxyVerify none\n</Proxy>",
            false,
            false,
            0,
        ),
    ] {
        let conf = format!("Listen 80\n{directives}\nProxyPass / https://t:8443/\n");
        let import = of(&conf, &[("/ca.pem", "x")]);
        assert_eq!(!has(&import, "verify = \"off\""), verified, "{directives}");
        assert_eq!(
            has(&import, "ca_file = \"/ca.pem\""),
            authority,
            "{directives}"
        );
        assert_eq!(import.risks(), risks, "{directives} {:?}", import.remarks);
        let depth = if directives.contains("Depth 3") { 2 } else { 0 };
        let line = format!("ca_depth = {depth}");
        assert_eq!(has(&import, &line), verified, "{directives}");
    }
}

#[test]
fn a_field_whose_value_is_not_known_is_taken_from_clients() {
    for directive in [
        "RequestHeader unset X-User early",
        "RequestHeader unset X-User env=ANYBODY",
        "RequestHeader edit X-User ^admin$ nobody",
        "RequestHeader edit* X-User a b",
        "RequestHeader setifempty X-User nobody",
        "RequestHeader append X-User \"%{REMOTE_USER}e\"",
        "RequestHeader set X-User a\nRequestHeader edit x-user a b",
        "RequestHeader set X-User a\nRequestHeader unset x-user",
        "<Proxy *>\nRequestHeader unset X-User\n</Proxy>",
        "<Proxy ajp://t:8009/>\nRequestHeader set X-User nobody\n</Proxy>",
        "<ProxyMatch ^ajp>\nRequestHeader unset X-User\n</ProxyMatch>",
        "<LocationMatch \"(?x)^/a+/x\">\nRequestHeader set X-User nobody\n</LocationMatch>",
    ] {
        let (_, import) = before_backend(directive);
        let removed = import
            .text
            .lines()
            .any(|it| it.eq_ignore_ascii_case("remove = \"X-User\""));
        assert!(removed, "{directive}\n{}", import.text);
        assert!(
            !import.text.contains("set = {"),
            "{directive}\n{}",
            import.text
        );
    }
    let (_, import) = before_backend("RequestHeader unset X.User\nRequestHeader set X~User a");
    let removed = "remove = [\"X.User\", \"X~User\"]";
    assert!(has(&import, removed), "{}", import.text);
    let (_, import) = before_backend("<Proxy *>\nRequestHeader set X-User nobody early\n</Proxy>");
    assert!(
        has(&import, "set = { X-User = \"nobody\" }"),
        "{}",
        import.text
    );
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
}

#[test]
fn clients_are_known_by_a_proxy_only_as_the_source_knows_them() {
    let guarded = "<Location /x>\nRequire ip 10.0.0.0/8\n</Location>";
    for directives in [
        // Private addresses are not taken from such a proxy.
        "RemoteIPHeader X-Forwarded-For\nRemoteIPTrustedProxy 192.0.2.5",
        // Without a field nothing is read.
        "RemoteIPInternalProxy 192.0.2.5",
    ] {
        let (routes, import) = before_backend(&format!("{directives}\n{guarded}"));
        assert_eq!(routes[0], "path = \"/x\"; status = 403", "{directives}");
        assert!(!import.text.contains("trusted_proxies = "), "{directives}");
        assert!(import.risks() > 0, "{directives}");
    }
}

#[test]
fn guards_that_are_merged_are_closed() {
    for (merging, expected) in [
        ("AuthMerging And", "path = \"/x\"; status = 403"),
        ("AuthMerging Or", "path = \"/x\"; status = 403"),
        ("AuthMerging Off", "path = \"/x\"; upstream = \"t\""),
    ] {
        let (routes, _) = before_backend(&format!(
            "<Location />\nRequire all denied\n</Location>\n<Location /x>\n{merging}\nRequire all granted\n</Location>"
        ));
        assert_eq!(routes[0], expected, "{merging}");
    }
}

#[test]
fn a_location_that_runs_files_is_closed() {
    for inner in [
        "AddHandler cgi-script .html",
        "AddType application/x-httpd-php .html",
        "SetOutputFilter INCLUDES",
    ] {
        let (routes, _) = before_backend(&format!("<Location /x>\n{inner}\n</Location>"));
        assert_eq!(routes[0], "path = \"/x\"; status = 403", "{inner}");
    }
}

#[test]
fn files_that_may_guard_a_directory_are_found_by_their_names() {
    let allowed = "<Directory /srv>\nAllowOverride All\n</Directory>";
    for (directives, file) in [
        (
            format!("AccessFileName acl.txt\n{allowed}"),
            "/srv/www/sub/acl.txt",
        ),
        (allowed.to_owned(), "/srv/.htaccess"),
        // Of which nobody says that it is not read.
        (String::new(), "/srv/www/sub/.htaccess"),
        (
            "<Directory /other>\nAllowOverride None\n</Directory>".to_owned(),
            "/srv/www/.htaccess",
        ),
        (
            "<Directory /srv>\nAllowOverrideList Require\n</Directory>".to_owned(),
            "/srv/www/.htaccess",
        ),
    ] {
        let conf = format!(
            "Listen 80\nDocumentRoot /srv/www\n{directives}\nProxyPass /app ajp://t:8009/app\n"
        );
        let import = of(
            &conf,
            &[(file, "Require all denied"), ("/srv/www/page.html", "")],
        );
        assert!(!import.text.contains("files = "), "{file}\n{}", import.text);
        assert!(import.risks() > 0, "{file}");
    }
}

#[test]
fn directories_are_compared_as_httpd_writes_them() {
    for (root, section) in [
        ("/srv", "<Directory /srv//private/>"),
        ("/srv/.", "<Directory /srv/private>"),
        ("/srv", "<Directory /srv/other/../private>"),
        ("/srv/other/..", "<Directory /srv/private>"),
        ("srv", "<Directory /srv/private>"),
    ] {
        let conf = format!(
            "Listen 80\nDocumentRoot {root}\n<Directory />\nRequire all granted\n</Directory>\n\
             {section}\nRequire all denied\n</Directory>\n"
        );
        let files = [
            ("/srv/page.html", ""),
            ("srv/page.html", ""),
            ("/srv/other/../page.html", ""),
        ];
        let import = of(&conf, &files);
        let is_closed = routes(&import)
            .iter()
            .any(|it| it == "path = \"/private\"; status = 403");
        assert!(
            is_closed || !import.text.contains("files = "),
            "{root} {section}\n{}",
            import.text
        );
    }
}

#[test]
fn only_sections_of_hidden_names_are_left_out() {
    for section in [
        "<FilesMatch \"(^|/)\\.|secret\">",
        "<DirectoryMatch \"/\\.*private\">",
    ] {
        let end = section.split([' ', '<']).nth(1).unwrap_or_default();
        let conf = format!(
            "Listen 80\nDocumentRoot /srv\n{section}\nRequire all denied\n</{end}>\nProxyPass /app ajp://t:8009/app\n"
        );
        let import = of(&conf, &[("/srv/page.html", "")]);
        assert!(
            !import.text.contains("files = "),
            "{section}\n{}",
            import.text
        );
    }
}

#[test]
fn a_host_that_no_route_can_have_is_not_left_to_the_default() {
    let hosts = |alias: &str| {
        format!(
            "Listen 80\n<VirtualHost *:80>\nServerName a.org\nProxyPass / ajp://t:8009/\n</VirtualHost>\n\
             <VirtualHost *:80>\nServerName b.org\nServerAlias {alias}\n<Location />\nRequire all denied\n</Location>\n\
             ProxyPass / ajp://u:8009/\n</VirtualHost>\n\
             <VirtualHost *:80>\nServerName www.c.org\nProxyPass / ajp://v:8009/\n</VirtualHost>\n"
        )
    };
    for (alias, later) in [
        (
            "www.*.org",
            "host = \"www.c.org\"; path = \"/\"; status = 403",
        ),
        (
            "w??",
            "host = \"www.c.org\"; path = \"/\"; upstream = \"v\"",
        ),
        ("*", "host = \"www.c.org\"; path = \"/\"; status = 403"),
    ] {
        let import = of(&hosts(alias), &[]);
        assert_eq!(
            routes(&import),
            [
                "host = \"a.org\"; path = \"/\"; upstream = \"t\"",
                "host = \"b.org\"; path = \"/\"; status = 403",
                later,
                "path = \"/\"; status = 403",
            ],
            "{alias}"
        );
        assert_eq!(
            import.sums.decided,
            1 + usize::from(alias != "w??"),
            "{alias}"
        );
        assert!(import.risks() > 0, "{alias}");
    }
    // The first host has all other names in any case.
    let import = of(
        "Listen 80\n<VirtualHost *:80>\nServerName a.org\nServerAlias www.*.org\n\
         ProxyPass / ajp://t:8009/\n</VirtualHost>\n",
        &[],
    );
    assert_eq!(routes(&import), ["path = \"/\"; upstream = \"t\""]);
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
}

#[test]
fn an_earlier_wildcard_of_one_listener_is_not_gone_round() {
    let import = of(
        "Listen 80\nListen 81\n<VirtualHost *:80>\nServerName a.org\nServerAlias *.x.org\n<Location />\n\
         Require all denied\n</Location>\nProxyPass / ajp://t:8009/\n</VirtualHost>\n\
         <VirtualHost *:80 *:81>\nServerName www.x.org\nProxyPass / ajp://u:8009/\n</VirtualHost>\n",
        &[],
    );
    let shown = routes(&import);
    assert!(!shown.iter().any(|it| it.contains("upstream")), "{shown:?}");
    assert!(import.risks() > 0);
}

#[test]
fn modules_that_are_not_loaded_are_not_there() {
    let guard = |condition: &str| {
        format!(
            "<IfModule {condition}>\n<Location /x>\nRequire all denied\n</Location>\n</IfModule>"
        )
    };
    let (closed, open) = (
        "path = \"/x\"; status = 403",
        "path = \"/\"; upstream = \"t\"",
    );
    let rewrite = "LoadModule authz_core_module modules/mod_authz_core.so\n\
                   LoadModule rewrite_module modules/mod_rewrite.so\n";
    for (before, condition, expected) in [
        (rewrite, "mod_ssl.c", open),
        (rewrite, "!mod_ssl.c", closed),
        (rewrite, "!ssl_module", closed),
        (rewrite, "mod_rewrite.c", closed),
        (rewrite, "!rewrite_module", open),
        (rewrite, "!mod_authz_core.c", open),
        (rewrite, "core.c", closed),
        // Of which modules there are nothing is known: its guards count.
        ("", "mod_ssl.c", closed),
        ("", "!mod_ssl.c", closed),
        (
            "IncludeOptional mods-enabled/*.load\n",
            "!mod_ssl.c",
            closed,
        ),
        // One module says nothing of the others.
        (
            "LoadModule jk_module modules/mod_jk.so\n",
            "mod_ssl.c",
            closed,
        ),
        // Where nothing but httpd's own is loaded, nothing else is there.
        (rewrite, "mod_php.c", open),
        (rewrite, "!mod_php.c", closed),
        // A name that a loaded module may have.
        (EVASIVE, "mod_evasive.c", closed),
        (EVASIVE, "!mod_evasive.c", closed),
        (RPAF, "mod_rpaf-2.0.c", closed),
        (RPAF, "mod_pagespeed.cc", closed),
        (RPAF, "!mod_shib.cpp", closed),
        (RPAF, "mpm_prefork_module", open),
        (RPAF, "mod_proxy_http2.c", open),
    ] {
        let (routes, _) = before_backend(&format!("{before}{}", guard(condition)));
        assert_eq!(routes[0], expected, "{before}{condition}");
    }
    // What such a section opens does not count.
    let opened = guard("!mod_ssl.c").replace("denied", "granted");
    let (routes, import) = before_backend(&format!(
        "<Location /x>\nRequire all denied\n</Location>\n{opened}"
    ));
    assert_eq!(routes[0], closed);
    assert!(import.risks() > 0);
}

#[test]
fn the_file_that_stands_for_a_directory_meets_its_own_guards() {
    let files = [("/srv/index.html", ""), ("/srv/start.html", "")];
    for (guard, index) in [
        ("", "index = [\"index.html\", \"start.html\"]"),
        (
            "<Location /other.html>\nRequire all denied\n</Location>",
            "index = [\"index.html\", \"start.html\"]",
        ),
        (
            "ProxyPass /app ajp://t:8009/app",
            "index = [\"index.html\", \"start.html\"]",
        ),
        (
            "<Location /index.html>\nRequire all denied\n</Location>",
            "index = \"start.html\"",
        ),
        (
            "<Location /index.html>\nRequire ip 10.0.0.1\n</Location>",
            "index = \"start.html\"",
        ),
        (
            "<LocationMatch \"/index\\.html$\">\nRequire all denied\n</LocationMatch>",
            "index = \"start.html\"",
        ),
        (
            "<Files index.html>\nRequire all denied\n</Files>",
            "index = \"start.html\"",
        ),
        (
            "<Files \"*.html\">\nRequire all denied\n</Files>",
            "index = []",
        ),
        (
            "RewriteEngine On\nRewriteRule ^/ind - [F]",
            "index = \"start.html\"",
        ),
        (
            "ProxyPass /index.html ajp://t:8009/index.html",
            "index = \"start.html\"",
        ),
    ] {
        let conf = format!(
            "Listen 80\nDocumentRoot /srv\nDirectoryIndex index.html start.html\n{guard}\n"
        );
        let import = of(&conf, &files);
        assert!(has(&import, index), "{guard}\n{}", import.text);
        let says = import
            .remarks
            .iter()
            .any(|it| it.text.contains("stands for a directory"));
        assert_eq!(says, !index.contains(", "), "{guard} {:?}", import.remarks);
    }
    let nginx = "server {\nlisten 80;\nroot /srv;\nindex index.html start.html;\n\
                 location = /index.html { deny all; }\nlocation / { try_files $uri $uri/ =404; }\n}\n";
    let texts = [&[("/nginx.conf", nginx)], &files[..]].concat();
    let import = with_directories(&texts, None);
    // nginx tries no other file.
    assert!(has(&import, "index = []"), "{}", import.text);
}

#[test]
fn websocket_goes_where_the_source_sends_it() {
    let case = "Listen 80\n<VirtualHost *:80>\nServerName a\n<Proxy balancer://w>\nBalancerMember ws://127.0.0.1:81\n\
                </Proxy>\nProxyPass /ws/ balancer://w/ws/\nRewriteEngine On\n\
                RewriteCond %{HTTP:Upgrade} =websocket [NC]\nRewriteRule ^/?(.*) ws://127.0.0.1:81/$1 [P,L]\n\
                ProxyPass / http://127.0.0.1:81/\n</VirtualHost>\n";
    let import = of(case, &[]);
    let shown = routes(&import);
    assert!(
        shown[0].starts_with("path = \"/ws\"") && !shown[0].contains("status = 403"),
        "{shown:?}"
    );
    assert!(
        shown
            .iter()
            .all(|it| it.contains("upstream = ") && it.contains("upgrade = \"websocket\"")),
        "{shown:?}"
    );
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
    for (parameter, upgrades, risks) in [
        ("upgrade=NONE", false, 0),
        ("upgrade=h2c", false, 1),
        ("upgrade=WebSocket", true, 0),
    ] {
        let import = of(
            &format!("Listen 80\nProxyPass / http://t:81/ {parameter}\n"),
            &[],
        );
        assert_eq!(
            has(&import, "upgrade = \"websocket\""),
            upgrades,
            "{parameter}"
        );
        assert_eq!(import.risks(), risks, "{parameter}");
    }
    // Elsewhere, on other conditions, or with another path, it is not passed on.
    for (from, to) in [
        (
            "RewriteRule ^/?(.*) ws://127.0.0.1:81/",
            "RewriteRule ^/?(.*) ws://127.0.0.1:82/",
        ),
        ("=websocket [NC]", "!=websocket [NC]"),
        ("=websocket [NC]", "=websocket [NC,OR]"),
        ("%{HTTP:Upgrade}", "%{HTTP:X-Upgrade}"),
        ("[P,L]", "[P,S=1]"),
        (":81/$1", ":81/x/$1"),
    ] {
        let import = of(&case.replace(from, to), &[]);
        let shown = routes(&import);
        let at_root = shown
            .iter()
            .find(|it| it.starts_with("path = \"/\""))
            .unwrap();
        assert!(!at_root.contains("upgrade"), "{to}\n{shown:?}");
        assert!(import.risks() > 0, "{to}");
    }
}

#[test]
fn an_expression_serves_no_index_about_which_another_rule_decides() {
    let conf = "Listen 80\nDocumentRoot /srv\nProxyPassMatch \\.html$ http://t:80\n\
                <Location ~ \"^/((?!app).)*$\">\nRequestHeader setifempty X-Role guest\n</Location>\n";
    let files = [
        ("/httpd.conf", conf),
        ("/srv/index.html", ""),
        ("/srv/a.css", ""),
    ];
    let found = routes(&with_directories(&files, None));
    let of_files: Vec<&String> = found.iter().filter(|it| it.contains("files = ")).collect();
    assert!(
        of_files.len() == 2 && of_files.iter().all(|it| it.contains("index = []")),
        "{found:?}"
    );
}

#[test]
fn a_member_for_websocket_is_where_the_ajp_member_of_its_route_takes_tunnels() {
    let of_members = |members: &str| {
        let conf = format!(
            "Listen 80\nProxyPreserveHost On\n<Proxy balancer://w>\n{members}\n</Proxy>\nProxyPass / balancer://w/\n"
        );
        of(&conf, &[])
    };
    let pairs = "BalancerMember ws://a:81 route=a\nBalancerMember ajp://a:8009 route=a\n\
                 BalancerMember ajp://b:8009 route=b\nBalancerMember ws://b:81 route=b";
    let import = of_members(pairs);
    let backends: Vec<&str> = import
        .text
        .lines()
        .filter(|it| it.contains("url = "))
        .collect();
    assert_eq!(
        backends,
        [
            "url = \"ajp://a:8009\"",
            "upgrade_url = \"http://a:81\"",
            "url = \"ajp://b:8009\"",
            "upgrade_url = \"http://b:81\"",
        ],
        "{}",
        import.text
    );
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
    let alone = of_members(&pairs.replace("ws://b:81 route=b", "ws://c:81 route=c"));
    assert!(!alone.text.contains("//c:81"), "{}", alone.text);
    assert_eq!(alone.risks(), 1, "{:?}", alone.remarks);
    let same = of_members("BalancerMember http://a:81\nBalancerMember ws://a:81");
    assert!(!same.text.contains("upgrade_url"), "{}", same.text);
    assert_eq!(same.risks(), 0, "{:?}", same.remarks);
}

#[test]
fn a_guard_by_an_expression_that_is_not_known_closes_everything() {
    for section in [
        "<LocationMatch \"(?x) ^/ admin\">\nRequire all denied\n</LocationMatch>",
        "RewriteEngine On\nRewriteRule \"(?x)^/[a-z]+/admin\" - [F]",
        "ProxyPassMatch \"(?x)^/[a-z]+/admin\" !",
    ] {
        let (routes, import) = before_backend(section);
        assert_eq!(routes, ["path = \"/\"; status = 403"], "{section}");
        assert!(import.risks() > 0);
    }
}

#[test]
fn variables_of_debian_are_those_of_its_file() {
    let envvars = "unset HOME\nexport APACHE_LOG_DIR=/var/log/apache2$SUFFIX\nexport T=\"t\"\nexport X=$(date)\n";
    let conf = "Listen 80\nProxyPass /${T} ajp://${T}:8009/\nErrorLog ${APACHE_LOG_DIR}/e\nServerName ${X}\n";
    let files = [
        ("/etc/apache2/sites-enabled/a.conf", conf),
        ("/etc/apache2/envvars", envvars),
    ];
    let import = converted(&files, None);
    let routes = routes(&import);
    assert_eq!(
        routes[0],
        "path = \"/t\"; upstream = \"t\"; rewrite = \"/\""
    );
    assert_eq!(said(&import, Weight::Risk).len(), 1, "{:?}", import.remarks);
}

#[test]
fn expressions_of_httpd_are_those_of_routes() {
    let named = "regex = \"^/(?<t>[a-z]+)/admin\"; status = 403";
    for (section, expected) in [
        (
            "<LocationMatch \"^/(?<t>[a-z]+)/admin\">\nRequire all denied\n</LocationMatch>",
            named,
        ),
        (
            "RedirectMatch ^/v([0-9]+)/(.*)\\.do$ https://a.org/$2/{$1}",
            "regex = \"^/v([0-9]+)/(.*)\\\\.do$\"; redirect = \"https://a.org/{2}/{{{1}}}{search}\"; status = 302",
        ),
        (
            "AliasMatch ^/v[0-9]/ /srv/v",
            "regex = \"^/v[0-9]/\"; status = 403",
        ),
        (
            "ProxyPassMatch ^/v([0-9]+)/(.*)$ ajp://u:8009/$2/v$1",
            "regex = \"^/v([0-9]+)/(.*)$\"; upstream = \"u\"; rewrite = \"/{2}/v{1}\"",
        ),
        (
            "ProxyPassMatch ^/v[0-9]+/ ajp://u:8009",
            "regex = \"^/v[0-9]+/\"; upstream = \"u\"",
        ),
        (
            "ProxyPassMatch ^/v[0-9]+/ !",
            "regex = \"^/v[0-9]+/\"; status = 404",
        ),
        (
            "ProxyPassMatch ^/v(a|b)+$ ajp://u:8009/$1",
            "regex = \"^/v(a|b)+$\"; status = 403",
        ),
        (
            "ProxyPass /a* ajp://u:8009/a*",
            "regex = \"^/a\\\\*(?:/|$)\"; upstream = \"u\"",
        ),
        (
            "ProxyPass /a* ajp://u:8009/b",
            "regex = \"^/a\\\\*(?:/|$)\"; status = 403",
        ),
    ] {
        check_route(section, expected);
    }
}

fn check_route(lines: &str, expected: &str) {
    let conf = format!("Listen 80\nProxyPreserveHost On\n{lines}\nProxyPass /t ajp://t:8009/t\n");
    let routes = routes(&converted(&[("/httpd.conf", &conf)], None));
    let has_it = routes.iter().any(|it| it == expected);
    assert!(has_it, "{lines}: {routes:?}");
}

#[test]
fn rewrites_of_httpd_are_expressions_of_routes() {
    for (rewrite, expected) in [
        (
            "RewriteRule \"^/(?<t>[a-z]+)/admin\" - [F]",
            "regex = \"^/(?<t>[a-z]+)/admin\"; status = 403",
        ),
        (
            "RewriteRule ^/V([0-9]+)$ /w/$1 [NC,R=301,L]",
            "regex = \"(?i)^/V([0-9]+)$\"; redirect = \"/w/{1}{search}\"; status = 301",
        ),
        (
            "RewriteRule ^/Old/(.*)$ https://%{HTTP_HOST}/new/$1 [NC,R]",
            "scheme = \"http\"; regex = \"(?i)^/Old/(.*)$\"; redirect = \"https://{host}/new/{1}{search}\"; status = 302",
        ),
        (
            "RewriteRule ^/old/(.*)$ /new/$1? [R=301]",
            "regex = \"^/old/(.*)$\"; redirect = \"/new/{1}\"; status = 301",
        ),
        (
            "RewriteRule ^/v([0-9]+)/(.*)$ http://u:81/$2/v$1 [P,L]",
            "regex = \"^/v([0-9]+)/(.*)$\"; upstream = \"u\"; rewrite = \"/{2}/v{1}\"",
        ),
        (
            "RewriteRule ^/V([0-9]+)/ http://u:81/one [P,NC]",
            "regex = \"(?i)^/V([0-9]+)/\"; upstream = \"u\"; rewrite = \"/one\"",
        ),
        (
            "RewriteRule ^/v/ http://u:81%{REQUEST_URI} [P]",
            "path = \"/v\"; upstream = \"u\"",
        ),
        (
            "RewriteRule ^/v/(.*) http://u:81/$1?a=b [P]",
            "path = \"/v\"; status = 403",
        ),
    ] {
        check_route(&format!("RewriteEngine On\n{rewrite}"), expected);
    }
}

#[test]
fn a_guard_that_is_not_known_is_not_taken_back_by_a_deeper_section() {
    let deeper = "<Location /health>\nRequire all granted\n</Location>";
    for outer in [
        "<Location />\nLuaHookAccessChecker /x.lua check\n</Location>",
        "<Location />\nSecRule ARGS x deny\n</Location>",
        "<Location />\n<If \"true\">\nRequire all denied\n</If>\n</Location>",
        "<Location />\nMellonEnable auth\n</Location>",
        "<Location />\nAddHandler cgi-script .html\n</Location>",
        "<Location />\nSetEnvIf Remote_Addr x no-proxy\n</Location>",
        "<LocationMatch \"(?x)^/[a-z]+\">\nSSLVerifyClient require\n</LocationMatch>",
        "<LocationMatch \"(?x)^/[a-z]+\">\nRedirect 404\n</LocationMatch>",
        "<If \"true\">\nRequire all denied\n</If>",
    ] {
        let (routes, _) = before_backend(&format!("{outer}\n{deeper}"));
        let opens = routes.iter().any(|it| it.contains("upstream"));
        assert!(!opens, "{outer} {routes:?}");
    }
    // What an expression closes a section may open, as httpd lets it.
    let (routes, _) = before_backend(&format!(
        "<LocationMatch \"^/(?<t>[a-z]+)\">\nRequire all denied\n</LocationMatch>\n{deeper}"
    ));
    assert_eq!(
        routes[..2],
        [
            "path = \"/health\"; upstream = \"t\"",
            "regex = \"^/(?<t>[a-z]+)\"; exclude = \"/health\"; status = 403"
        ]
    );
}

#[test]
fn sections_of_all_backends_are_joined() {
    for (sections, expected) in [
        (
            "<Proxy *>\nRequire ip 10.0.0.0/8\n</Proxy>\n<Proxy *>\nRequestHeader set X-A b\n</Proxy>",
            "path = \"/\"; upstream = \"t\"; allow = \"10.0.0.0/8\"",
        ),
        (
            "<Proxy *>\nDeny from all\nOrder allow,deny\n</Proxy>\n<Proxy *>\nRequire all granted\n</Proxy>",
            "path = \"/\"; status = 403",
        ),
        (
            "<Proxy *>\nDeny from all\nOrder allow,deny\n</Proxy>\n<Location /x>\nRequire all granted\n</Location>",
            "path = \"/x\"; status = 403",
        ),
        (
            "<Proxy *>\nSSLRequireSSL\n</Proxy>\n<Proxy *>\nRequire all granted\n</Proxy>",
            "path = \"/\"; status = 403",
        ),
        (
            "<Proxy *>\nRequire all denied\n</Proxy>\n<Proxy *>\nRequire all granted\n</Proxy>",
            "path = \"/\"; upstream = \"t\"",
        ),
        (
            "<Proxy *>\nSecRule ARGS x deny\n</Proxy>\n<Location /x>\nRequire all granted\n</Location>",
            "path = \"/x\"; status = 403",
        ),
    ] {
        let (routes, _) = before_backend(sections);
        assert!(routes[0].starts_with(expected), "{sections} {routes:?}");
    }
}

#[test]
fn rules_of_mod_rewrite_are_in_force_by_the_last_word_of_their_server() {
    let rule = "RewriteRule ^/admin - [F]";
    let host = |server: &str, host: &str| {
        format!(
            "Listen 80\n{server}\n<VirtualHost *:80>\n{host}\nProxyPreserveHost On\nProxyPass / ajp://t:8009/\n\
             </VirtualHost>\n"
        )
    };
    for (conf, is_closed) in [
        (host("", &format!("{rule}\nRewriteEngine On")), true),
        (host("RewriteEngine On", rule), true),
        (
            host("RewriteEngine On", &format!("RewriteEngine Off\n{rule}")),
            false,
        ),
        (
            host("", &format!("RewriteEngine On\n{rule}\nRewriteEngine Off")),
            false,
        ),
        (host("", rule), false),
        (
            host(
                &format!("RewriteEngine On\nRewriteOptions Inherit\n{rule}"),
                "",
            ),
            true,
        ),
        (
            host(
                &format!("RewriteOptions InheritBefore\n{rule}"),
                "RewriteEngine On",
            ),
            true,
        ),
        (
            host(
                &format!("RewriteEngine On\nRewriteOptions InheritDown\n{rule}"),
                "",
            ),
            true,
        ),
        (
            host(
                &format!("RewriteEngine On\nRewriteOptions InheritDown\n{rule}"),
                "RewriteOptions IgnoreInherit",
            ),
            false,
        ),
        (host(&format!("RewriteEngine On\n{rule}"), ""), false),
    ] {
        let routes = routes(&of(&conf, &[]));
        let closes = routes.iter().any(|it| it.contains("status = 403"));
        assert_eq!(closes, is_closed, "{conf} {routes:?}");
    }
}

#[test]
fn a_virtual_host_of_the_very_address_is_before_all_with_a_wildcard() {
    let own = "<VirtualHost 10.0.0.1:80>\nServerName a.org\nProxyPass /a ajp://t:8009/a\n</VirtualHost>\n";
    for address in ["*:80", "_default_:80", "*"] {
        let wild = format!(
            "<VirtualHost {address}>\nServerName b.org\nProxyPass /b ajp://t:8009/b\n</VirtualHost>\n"
        );
        for hosts in [format!("{own}{wild}"), format!("{wild}{own}")] {
            let routes = routes(&of(&format!("Listen 10.0.0.1:80\n{hosts}"), &[]));
            assert_eq!(
                routes,
                [
                    "path = \"/a\"; upstream = \"t\"",
                    "path = \"/\"; status = 404"
                ],
                "{hosts}"
            );
        }
    }
    // Another address of the port has the wildcard's.
    let conf = format!(
        "Listen 10.0.0.1:80\nListen 10.0.0.2:80\n{own}<VirtualHost *:80>\nProxyPass /b ajp://t:8009/b\n</VirtualHost>"
    );
    let routes = routes(&of(&conf, &[]));
    for expected in [
        "listen = \"port-80-1\"; path = \"/a\"; upstream = \"t\"",
        "listen = \"port-80-2\"; path = \"/b\"; upstream = \"t\"",
    ] {
        assert!(routes.iter().any(|it| it == expected), "{routes:?}");
    }
}

#[test]
fn a_pass_in_a_section_of_an_expression_matches_nothing() {
    for (open, name, is_passed) in [
        ("<LocationMatch \"^/a\">", "ProxyPass", false),
        ("<Location ~ \"^/a\">", "ProxyPass", false),
        ("<LocationMatch \"/a\">", "ProxyPass", true),
        ("<LocationMatch \"^/a\">", "ProxyPassMatch", true),
    ] {
        let close = if open.contains('~') {
            "Location"
        } else {
            "LocationMatch"
        };
        let conf = format!("Listen 80\n{open}\n{name} http://t:80/\n</{close}>\n");
        let routes = routes(&of(&conf, &[]));
        let has_upstream = routes.iter().any(|it| it.contains("upstream"));
        assert_eq!(has_upstream, is_passed, "{conf} {routes:?}");
    }
}

#[test]
fn the_passes_of_a_server_are_before_those_of_its_virtual_hosts() {
    for (said, upstream) in [("", "t"), ("ProxyPassInherit Off\n", "u")] {
        let conf = format!(
            "Listen 80\nProxyPass /a ajp://t:8009/a\n\
             <VirtualHost *:80>\n{said}ProxyPass /a ajp://u:8009/a\n</VirtualHost>\n"
        );
        let routes = routes(&of(&conf, &[]));
        let expected = format!("path = \"/a\"; upstream = \"{upstream}\"");
        assert_eq!(routes[0], expected, "{conf}");
    }
}

#[test]
fn a_virtual_host_of_a_name_beside_a_wildcard_is_closed() {
    let host = |address: &str, path: &str| {
        format!(
            "<VirtualHost {address}>\nServerName h{}.org\nProxyPass {path} ajp://t:8009{path}\n</VirtualHost>\n",
            &path[1..]
        )
    };
    for other in ["*:80", "_default_:80", "other.example.org:80"] {
        let hosts = [host(other, "/a"), host("intern.example.org:80", "/b")].concat();
        let import = of(&format!("Listen 80\n{hosts}"), &[]);
        let opens = routes(&import)
            .iter()
            .any(|it| it.contains("path = \"/b\"; upstream"));
        assert!(!opens, "{other}\n{}", import.text);
    }
    // Alone it is the machine's own name.
    let import = of(
        &format!("Listen 80\n{}", host("intern.example.org:80", "/b")),
        &[],
    );
    assert_eq!(routes(&import)[0], "path = \"/b\"; upstream = \"t\"");
}

#[test]
fn the_host_that_backends_see_is_not_left_to_clients() {
    let tail = "ProxyPass / http://t:8080/\n";
    for (directives, expected) in [
        ("RequestHeader set Host app.internal", "app.internal"),
        ("RequestHeader set Host \"%{X}e\"", "backend"),
        ("RequestHeader set Host client", "backend"),
        ("RequestHeader set Host app.internal env=X", "backend"),
        ("RequestHeader edit Host a b", "backend"),
        ("RequestHeader unset Host", "backend"),
        (
            "<Location />\nRequestHeader set Host app.internal\n</Location>",
            "app.internal",
        ),
        (
            "<Proxy *>\nRequestHeader set Host app.internal\n</Proxy>",
            "app.internal",
        ),
        (
            "<Proxy http://t:8080/>\nRequestHeader set Host app.internal\n</Proxy>",
            "backend",
        ),
        (
            "<LocationMatch \"(?x)^/[a-z]+\">\nRequestHeader set Host app.internal\n</LocationMatch>",
            "backend",
        ),
        (
            "RequestHeader set Host a.internal\n<Location />\nRequestHeader set Host app.internal\n</Location>",
            "app.internal",
        ),
    ] {
        let import = of(
            &format!("Listen 80\nProxyPreserveHost On\n{directives}\n{tail}"),
            &[],
        );
        let hosts = import.text.lines().filter(|it| it.starts_with("host = "));
        let expected = format!("host = \"{expected}\"");
        assert_eq!(
            hosts.collect::<Vec<_>>(),
            [expected],
            "{directives}\n{}",
            import.text
        );
    }
}

#[test]
fn no_message_shows_a_secret() {
    let import = converted(
        &[(
            "/c.conf",
            "Listen 80\nuser:$apr1$salt$hunter2\nProxyPassMatch ^/a(.*)b$ ajp://a:8009/$1x secret=hunter2\n\
             ProxyPass /b ajp://a:8009/b frob_secret=hunter2\n<Location /c>\nSessionCryptoPassphrase hunter2\n\
             </Location>\n",
        )],
        None,
    );
    assert!(!import.text.contains("hunter2"), "{}", import.text);
    let fates = format!("{:?}", import.directives);
    assert!(!fates.contains("hunter2"), "{fates}");
}

#[test]
fn what_changes_nothing_for_backends_is_no_risk() {
    let of = |lines: &str| {
        let conf = format!("Listen 80\nProxyPreserveHost On\n{lines}\nProxyPass / ajp://t:8009/\n");
        let import = converted(&[("/c.conf", &conf)], None);
        (routes(&import), import.risks())
    };
    let variable = |name: &str| {
        format!(
            "RewriteEngine On\nRewriteCond %{{HTTP:Authorization}} ^(.*)\nRewriteRule .* - [e={name}:%1]"
        )
    };
    let open = ["path = \"/\"; upstream = \"t\""];
    for (lines, risks) in [
        (variable("HTTP_AUTHORIZATION"), 0),
        (variable("USER"), 1),
        ("<Location />\nSetHandler None\n</Location>".to_owned(), 0),
    ] {
        let (routes, found) = of(&lines);
        assert_eq!(
            (&routes[..], found),
            (&open.map(str::to_owned)[..], risks),
            "{lines}"
        );
    }
    // It takes back no handler of a section around it.
    let outer = "<Location /a>\nSetHandler server-status\n</Location>\n<Location /a/b>\nSetHandler None\n</Location>";
    let (routes, _) = of(outer);
    assert!(
        !routes
            .iter()
            .any(|it| it.contains("/a") && it.contains("upstream")),
        "{routes:?}"
    );
}

const EVASIVE: &str = "LoadModule authz_core_module modules/mod_authz_core.so\n\
                       LoadModule evasive20_module modules/mod_evasive20.so\n";
const RPAF: &str = "LoadModule authz_core_module modules/mod_authz_core.so\n\
                    LoadModule rpaf_module modules/mod_rpaf-2.0.so\n";
