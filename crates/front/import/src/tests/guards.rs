//! Tests that paths which the source closes stay closed.

use super::*;

/// Converts these directives of httpd before a proxied backend, and returns the routes.
fn of_httpd(directives: &str) -> (Vec<String>, Import) {
    let conf =
        format!("Listen 80\nProxyPreserveHost On\n{directives}\nProxyPass / ajp://t:8009/\n");
    let import = converted(&[("/httpd.conf", &conf)], None);
    (routes(&import), import)
}

/// Converts a server of nginx with these directives before a proxied backend, and returns
/// the routes.
fn of_nginx(directives: &str) -> (Vec<String>, Import) {
    let conf = format!(
        "server {{\nlisten 80;\nproxy_set_header Host $host;\n{directives}\nlocation / {{ proxy_pass http://t:80; }}\n}}\n"
    );
    let import = converted(&[("/nginx.conf", &conf)], None);
    (routes(&import), import)
}

#[test]
fn what_nobody_knows_closes_where_it_stands() {
    for (directives, expected) in [
        ("SecRuleEngine On", "path = \"/\"; status = 403"),
        (
            "SSLProxyCARevocationFile /crl.pem",
            "path = \"/\"; status = 403",
        ),
        ("Include guards.conf", "path = \"/\"; status = 403"),
        (
            "IncludeOptional guards.conf",
            "path = \"/\"; upstream = \"t\"",
        ),
        ("ShibCompatWith24 On", "path = \"/\"; upstream = \"t\""),
        (
            "<Location /x>\nSSLRequire %{REMOTE_ADDR} eq 1\n</Location>",
            "path = \"/x\"; status = 403",
        ),
        (
            "<Location /x>\nMellonEnable auth\n</Location>",
            "path = \"/x\"; status = 403",
        ),
        (
            "<Location /x>\nRedirect 403\n</Location>",
            "path = \"/x\"; status = 403",
        ),
        (
            "<LocationMatch \"^/x(?!y)\">\nHeader set X-Frame-Options DENY\n</LocationMatch>",
            "pattern = \"/x*\"; status = 403",
        ),
        (
            "<LocationMatch \"^/x(?!y)\">\nHeader set Cache-Control no-store\n</LocationMatch>",
            "path = \"/\"; upstream = \"t\"",
        ),
        (
            "<IfModule !mod_x.c>\nHeader set X-Frame-Options DENY\n</IfModule>",
            "path = \"/\"; status = 403",
        ),
        (
            "<IfModule !mod_x.c>\nProxyPass /x ajp://t:8009/x\nKeepAlive On\n</IfModule>",
            "path = \"/\"; upstream = \"t\"",
        ),
        ("CaseFilter On", "path = \"/\"; status = 403"),
        (
            "Header edit X-Frame-Options a b",
            "path = \"/\"; status = 403",
        ),
        (
            "Header set X-Node \"%{NODE}e\"",
            "path = \"/\"; upstream = \"t\"",
        ),
    ] {
        let (routes, _) = of_httpd(directives);
        assert_eq!(routes[0], expected, "{directives}");
    }
}

#[test]
fn what_changes_requests_of_nginx_or_responses_closes_where_it_stands() {
    for (directives, expected) in [
        ("auth_ldap x;", "path = \"/\"; status = 403"),
        ("include guards.conf;", "path = \"/\"; status = 403"),
        ("more_set_headers x;", "path = \"/\"; status = 403"),
        (
            "more_clear_input_headers X-User;",
            "path = \"/\"; status = 403",
        ),
        ("sub_filter a b;", "path = \"/\"; status = 403"),
        (
            "add_header X-Frame-Options $x;",
            "path = \"/\"; status = 403",
        ),
        (
            "add_header X-Node $hostname;",
            "path = \"/\"; upstream = \"t\"",
        ),
        ("ssl_reject_handshake on;", "path = \"/\"; upstream = \"t\""),
        (
            "proxy_pass_request_headers off;",
            "path = \"/\"; status = 403",
        ),
        ("ssi on;", "path = \"/\"; status = 403"),
        ("ssi off;", "path = \"/\"; upstream = \"t\""),
        ("xslt_stylesheet x.xslt;", "path = \"/\"; status = 403"),
        ("disable_symlinks on;", "path = \"/\"; status = 403"),
        ("disable_symlinks off;", "path = \"/\"; upstream = \"t\""),
        ("proxy_set_body x;", "path = \"/\"; status = 403"),
        ("proxy_method GET;", "path = \"/\"; status = 403"),
        (
            "proxy_pass_request_body on;",
            "path = \"/\"; upstream = \"t\"",
        ),
        ("proxy_ssl_crl /crl.pem;", "path = \"/\"; status = 403"),
        (
            "location = /x { ssi on; root /srv; }",
            "path = \"/x\"; exact = true; status = 403",
        ),
        (
            "proxy_method GET;\nlocation = /x { return 204; }",
            "path = \"/x\"; exact = true; status = 204",
        ),
        (
            "location ^~ /x { access_by_lua_block x; proxy_pass http://t:80; }",
            "pattern = \"/x*\"; status = 403",
        ),
    ] {
        let (routes, _) = of_nginx(directives);
        assert_eq!(routes[0], expected, "{directives}");
    }
}

#[test]
fn networks_that_are_kept_out_are_denied() {
    for (inner, expected) in [
        (
            "<RequireAll>\nRequire all granted\nRequire not ip 10.0.0.0/8\n</RequireAll>",
            "upstream = \"t\"; deny = \"10.0.0.0/8\"",
        ),
        (
            "<RequireAll>\nRequire ip 10\nRequire not ip 10.1\n</RequireAll>",
            "upstream = \"t\"; allow = \"10.0.0.0/8\"; deny = \"10.1.0.0/16\"",
        ),
        ("Require all granted\nRequire not ip 10.1", "status = 403"),
        (
            "<RequireAll>\nRequire ip 10\nRequire valid-user\n</RequireAll>",
            "status = 403",
        ),
        (
            "Order deny,allow\nDeny from all\nRequire all granted",
            "status = 403",
        ),
    ] {
        let (routes, _) = of_httpd(&format!("<Location /x>\n{inner}\n</Location>"));
        assert_eq!(routes[0], format!("path = \"/x\"; {expected}"), "{inner}");
    }
}

#[test]
fn two_modules_of_access_are_both_asked() {
    let (routes, _) = of_httpd(
        "<Location />\nOrder allow,deny\n</Location>\n<Location /x>\nRequire all granted\n</Location>",
    );
    assert_eq!(
        routes,
        ["path = \"/x\"; status = 403", "path = \"/\"; status = 403"]
    );
}

#[test]
fn a_section_of_proxies_opens_no_location() {
    let (routes, _) = of_httpd(
        "<Location /x>\nRequire ip 10.0.0.1\n</Location>\n<Proxy *>\nRequire ip 192.168.0.0/16\n</Proxy>",
    );
    assert_eq!(
        routes,
        [
            "path = \"/x\"; upstream = \"t\"; allow = \"10.0.0.1\"",
            "path = \"/\"; upstream = \"t\"; allow = \"192.168.0.0/16\"",
        ]
    );
}

#[test]
fn a_wildcard_of_a_location_is_one_segment() {
    let (routes, _) = of_httpd(
        "<Location />\nRequire all denied\n</Location>\n<Location \"/pub*\">\nRequire all granted\n</Location>",
    );
    assert_eq!(
        routes,
        [
            "regex = \"^/pub[^/]*$\"; upstream = \"t\"",
            "path = \"/\"; status = 403",
        ]
    );
    let (routes, import) = of_httpd(
        "<Location />\nRequire all denied\n</Location>\n<Location \"/pub[a-z]\">\nRequire all granted\n</Location>",
    );
    assert_eq!(routes, ["path = \"/\"; status = 403"]);
    assert!(import.risks() > 0);
}

#[test]
fn conditions_with_or_are_read_as_one() {
    let (routes, _) = of_httpd(
        "RewriteEngine On\nRewriteCond %{REQUEST_METHOD} ^TRACE [OR]\nRewriteCond %{REQUEST_METHOD} ^DELETE\n\
         RewriteRule ^/x - [F]",
    );
    assert_eq!(routes[0], "pattern = \"/x*\"; status = 403");
}

#[test]
fn clients_in_clear_are_kept_out_where_tls_is_required() {
    let (routes, _) = of_httpd("<Location /x>\nSSLRequireSSL\n</Location>");
    assert_eq!(routes[0], "path = \"/x\"; status = 403");
}

/// The routes of a server with these lines, and with these ones in a section.
fn routes_of_section(server: &str, lines: &str) -> Vec<String> {
    let conf = format!(
        "Listen 443\nSSLCertificateFile /a.pem\nSSLCACertificateFile /ca.pem\n{server}\nProxyPreserveHost On\n\
         ProxyPass / ajp://t:8009/\n<Location /in>\n{lines}\n</Location>\n"
    );
    let files = [("/c.conf", conf.as_str()), ("/a.pem", ""), ("/ca.pem", "")];
    routes(&with_directories(&files, None))
}

#[test]
fn what_a_require_asks_of_the_connection_is_asked_by_routes() {
    let tls = "SSLEngine on";
    let asking = "SSLEngine on\nSSLVerifyClient optional";
    let certificate = "path = \"/in\"; upstream = \"t\"; client_certificate = \"required\"";
    let all_of = |lines: &str| format!("<RequireAll>\n{lines}\n</RequireAll>");
    let any_of = |lines: &str| format!("<RequireAny>\n{lines}\n</RequireAny>");
    let closed = "path = \"/in\"; status = 403";
    let from_ten = format!("{certificate}; allow = \"10.0.0.0/8\"");
    for (server, lines, expected) in [
        (asking, "Require ssl-verify-client".to_owned(), certificate),
        (
            asking,
            "SSLVerifyClient optional\nRequire ssl-verify-client".to_owned(),
            certificate,
        ),
        (
            asking,
            all_of("Require ssl\nRequire ssl-verify-client"),
            certificate,
        ),
        (
            asking,
            all_of("Require ssl-verify-client\nRequire ip 10.0.0.0/8"),
            from_ten.as_str(),
        ),
        (
            asking,
            any_of("Require ssl-verify-client\nRequire ip 10.0.0.0/8"),
            closed,
        ),
        (
            asking,
            any_of("Require ssl-verify-client\nRequire ssl"),
            closed,
        ),
        (
            asking,
            "Require ssl-verify-client\nRedirect /in https://x.org/".to_owned(),
            closed,
        ),
        // Nobody has shown one.
        (tls, "Require ssl-verify-client".to_owned(), closed),
        (
            tls,
            "SSLVerifyClient none\nRequire ssl-verify-client".to_owned(),
            closed,
        ),
        (
            tls,
            "Require ssl".to_owned(),
            "path = \"/in\"; upstream = \"t\"",
        ),
        (tls, any_of("Require ssl\nRequire ip 10.0.0.0/8"), closed),
        ("", "Require ssl".to_owned(), closed),
    ] {
        let routes = routes_of_section(server, &lines);
        assert_eq!(routes[0], expected, "{server} {lines} {routes:?}");
    }
    let deeper = "Require ssl-verify-client\n</Location>\n<Location /in/all>\nRequire all granted";
    let open = "path = \"/in/all\"; upstream = \"t\"".to_owned();
    let routes = routes_of_section(asking, deeper);
    assert!(routes.contains(&open), "{routes:?}");
}

#[test]
fn an_if_that_refuses_clients_without_a_certificate_is_a_key_of_the_route() {
    const PASS: &str = "proxy_set_header Host $host; proxy_pass http://t:80;";
    let of = |verify: &str, server: &str, location: &str| {
        let tls = "listen 443 ssl; ssl_certificate /c; ssl_certificate_key /c;";
        let conf = format!(
            "server {{ {tls} ssl_verify_client {verify}; ssl_client_certificate /ca.pem; {server}\n\
             location / {{ {PASS} }} location /in/ {{ {location} {PASS} }} }}"
        );
        let files = [("/nginx.conf", conf.as_str()), ("/c", ""), ("/ca.pem", "")];
        let import = with_directories(&files, None);
        let own = |it: &&String| it.starts_with("path = \"/in\"; ") && !it.contains("exact");
        let routes = routes(&import);
        let route = routes.iter().find(own).cloned().unwrap_or_default();
        (route, import)
    };
    let refusal = "if ($ssl_client_verify != SUCCESS) { return 403; }";
    for location in [
        refusal,
        "if ( $ssl_client_verify != \"SUCCESS\" ) { return 496; }",
    ] {
        let (route, import) = of("optional", "", location);
        assert!(
            route.contains("upstream") && route.contains("client_certificate = \"required\""),
            "{location} {}",
            import.text
        );
        assert_eq!(import.risks(), 0, "{:?}", import.remarks);
        // Other locations need none.
        let open = "path = \"/\"; upstream = \"t\"";
        assert!(
            routes(&import).iter().any(|it| it == open),
            "{}",
            import.text
        );
    }
    let others = [
        "if ($ssl_client_verify = SUCCESS) { return 403; }".to_owned(),
        "if ($ssl_client_verify != NONE) { return 403; }".to_owned(),
        "if ($ssl_client_verify != SUCCESS) { return 301 /x; }".to_owned(),
        "if ($ssl_client_verify != SUCCESS) { return 403 no; }".to_owned(),
        "if ($ssl_client_verify != SUCCESS) { rewrite ^ /x last; }".to_owned(),
        format!("{refusal} if ($http_a) {{ return 301 /x; }}"),
        format!("{refusal} return 301 /x;"),
    ];
    let elsewhere = [
        ("off", "", refusal),
        ("optional_no_ca", "", refusal),
        ("optional", refusal, ""),
    ];
    let optional = others.iter().map(|it| ("optional", "", it.as_str()));
    for (verify, server, location) in elsewhere.into_iter().chain(optional) {
        let (route, import) = of(verify, server, location);
        assert!(!route.contains("upstream"), "{verify} {location} {route}");
        assert!(import.risks() > 0, "{location} {}", import.text);
    }
}

#[test]
fn fields_that_an_application_may_trust_are_taken_from_clients() {
    let (_, import) = of_httpd("RequestHeader set X-User \"%{REMOTE_USER}e\"");
    assert!(
        import.text.contains("remove = \"X-User\""),
        "{}",
        import.text
    );
    let (_, import) =
        of_nginx("location /x { proxy_set_header X-User $remote_user; proxy_pass http://t:80; }");
    assert!(
        import.text.contains("remove = \"X-User\""),
        "{}",
        import.text
    );
}

#[test]
fn addresses_of_a_port_are_listeners_or_closed() {
    let host = |address: &str, path: &str| {
        format!("<VirtualHost {address}>\nProxyPass {path} ajp://t:8009{path}\n</VirtualHost>\n")
    };
    let conf = format!(
        "Listen 80\n{}{}",
        host("10.0.0.1:80", "/a"),
        host("10.0.0.2:80", "/b")
    );
    let import = converted(&[("/httpd.conf", &conf)], None);
    assert_eq!(
        routes(&import)[0],
        "listen = \"port-80-1\"; path = \"/a\"; upstream = \"t\""
    );
    assert!(
        import.text.contains("address = \"10.0.0.2:80\""),
        "{}",
        import.text
    );
    let conf = format!(
        "Listen 80\n{}{}",
        host("*:80", "/a"),
        host("127.0.0.1:80", "/b")
    );
    let import = converted(&[("/httpd.conf", &conf)], None);
    assert!(
        !import.text.contains("path = \"/b\"\nupstream"),
        "{}",
        import.text
    );
    let nginx = "server { listen 80; location /a { proxy_pass http://t:80; } }\n\
                 server { listen 127.0.0.1:80; server_name in; location /b { proxy_pass http://t:80; } }\n";
    let import = converted(&[("/nginx.conf", nginx)], None);
    assert!(
        !import.text.contains("path = \"/b*\"\nupstream"),
        "{}",
        import.text
    );
    assert!(import.risks() > 0);
}

#[test]
fn who_a_client_is_behind_a_proxy_decides_about_networks() {
    let guarded = "<Location /x>\nRequire ip 10.0.0.0/8\n</Location>";
    for (directives, trusted, expected) in [
        (
            "RemoteIPHeader X-Forwarded-For\nRemoteIPInternalProxy 10.0.0.5",
            true,
            "path = \"/x\"; upstream = \"t\"; allow = \"10.0.0.0/8\"",
        ),
        (
            "RemoteIPHeader X-Client-IP\nRemoteIPInternalProxy 10.0.0.5",
            false,
            "path = \"/x\"; status = 403",
        ),
        (
            "RemoteIPHeader X-Forwarded-For",
            false,
            "path = \"/x\"; status = 403",
        ),
    ] {
        let (routes, import) = of_httpd(&format!("{directives}\n{guarded}"));
        assert_eq!(routes[0], expected, "{directives}");
        let says = import.text.contains("trusted_proxies = \"10.0.0.5\"");
        assert_eq!(says, trusted, "{directives}");
    }
    let nginx = "set_real_ip_from 10.0.0.5;\nlocation /x { allow 10.0.0.0/8; deny all; proxy_pass http://t:80; }";
    let (routes, _) = of_nginx(nginx);
    // nginx reads X-Real-IP by default.
    assert_eq!(routes[0], "pattern = \"/x*\"; status = 403");
    let (routes, _) = of_nginx(&format!("real_ip_header X-Forwarded-For;\n{nginx}"));
    assert_eq!(
        routes[0],
        "pattern = \"/x*\"; upstream = \"t\"; allow = \"10.0.0.0/8\""
    );
}

#[test]
fn two_hosts_of_a_listener_do_not_weaken_each_other() {
    let host = |name: &str, verify: &str, authority: &str| {
        format!(
            "server {{\nlisten 443 ssl;\nserver_name {name};\nssl_certificate /c;\nssl_certificate_key /c;\n\
             ssl_verify_client {verify};\nssl_client_certificate {authority};\n\
             location / {{ proxy_pass http://t:80; }}\n}}\n"
        )
    };
    let files = [("/c", "x"), ("/ca", "x"), ("/cb", "x")];
    let both = format!(
        "{}{}",
        host("a.org", "on", "/ca"),
        host("b.org", "optional", "/cb")
    );
    let options = Options {
        files: vec![PathBuf::from("/n")],
        ..Options::default()
    };
    let texts = files
        .iter()
        .map(|(name, text)| (PathBuf::from(name), (*text).to_owned()));
    let mut all: BTreeMap<PathBuf, String> = texts.collect();
    all.insert(PathBuf::from("/n"), both);
    let import = import(&Memory(all), &options).unwrap();
    // Two authorities cannot be told apart: the listener stays on loopback.
    assert!(
        import.text.contains("address = \"127.0.0.1:443\""),
        "{}",
        import.text
    );
    assert!(
        import.text.contains("client_certificate = \"required\""),
        "{}",
        import.text
    );
}

#[test]
fn a_path_of_members_is_not_lost() {
    let balancer = |one: &str, two: &str| {
        let conf = format!(
            "Listen 80\nProxyPreserveHost On\n<Proxy balancer://b>\nBalancerMember ajp://t:8009{one}\n\
             BalancerMember ajp://u:8009{two}\n</Proxy>\nProxyPass /video balancer://b\n"
        );
        routes(&converted(&[("/httpd.conf", &conf)], None))
    };
    assert_eq!(
        balancer("/Video", "/Video")[0],
        "path = \"/video\"; upstream = \"b\"; rewrite = \"/Video\""
    );
    assert_eq!(
        balancer("/Video", "/Other")[0],
        "path = \"/video\"; status = 403"
    );
}

#[test]
fn what_ignores_case_is_closed_in_any_case() {
    for directives in [
        "SetEnvIfNoCase Request_URI \"^/intern/\" no-jk\nJkMount /* one",
        "JkMount /* one\n<LocationMatch \"(?i)^/intern/\">\nRequire all denied\n</LocationMatch>",
        "JkMount /* one\nRedirectMatch 403 (?i)^/intern/",
    ] {
        let conf =
            format!("Listen 80\nJkWorkersFile /w\n{directives}\nProxyPass /x ajp://t:8009/x\n");
        let workers = "worker.list=one\nworker.one.type=ajp13\n";
        let import = converted(&[("/httpd.conf", &conf), ("/w", workers)], None);
        let routes = routes(&import);
        assert!(
            routes
                .iter()
                .any(|it| it.starts_with("regex = \"(?i)^/intern/\"; ")
                    && it.contains("; status = 40")),
            "{directives}\n{routes:?}"
        );
    }
}

#[test]
fn a_pattern_that_crosses_rules_closes_its_own_paths_alone() {
    for (section, status) in [
        ("Require all denied", "status = 403"),
        (
            "Require ip 10.0.0.1",
            "upstream = \"t\"; allow = \"10.0.0.1\"",
        ),
        ("Redirect 404", "status = 404"),
    ] {
        let conf = format!(
            "<LocationMatch \"/WEB-INF/\">\n{section}\n</LocationMatch>\nProxyPass /a ajp://t:8009/a"
        );
        let (routes, _) = of_httpd(&conf);
        assert_eq!(
            routes,
            [
                format!("pattern = \"*/WEB-INF/*\"; {status}"),
                "path = \"/a\"; upstream = \"t\"".to_owned(),
                "path = \"/\"; upstream = \"t\"".to_owned(),
            ],
            "{section}"
        );
    }
}

#[test]
fn fields_that_the_front_rules_are_left_to_it() {
    // `of_httpd` and `of_nginx` fail if `check` refuses what was written.
    for name in [
        "Expect",
        "Proxy-Connection",
        "Connection",
        "TE",
        "Upgrade",
        "Content-Length",
        "Forwarded",
        "Via",
        "X-Forwarded-For",
    ] {
        for directive in ["RequestHeader unset N early", "RequestHeader set N a"] {
            let (_, import) = of_httpd(&directive.replace('N', name));
            assert!(
                !import.text.contains("request_headers"),
                "{name} {directive}"
            );
        }
        for directive in ["Header unset N", "Header set N a", "Header edit N a b"] {
            of_httpd(&directive.replace('N', name));
        }
        for directive in ["proxy_set_header N \"\";", "proxy_set_header N a;"] {
            let (_, import) = of_nginx(&directive.replace('N', name));
            assert!(
                !import.text.contains("request_headers"),
                "{name} {directive}"
            );
        }
        for directive in ["proxy_hide_header N;", "add_header N a;"] {
            of_nginx(&directive.replace('N', name));
        }
    }
    // Others are the source's.
    for name in ["X-Real-IP", "X-Forwarded-Port", "X-Forwarded-Ssl"] {
        let line = format!("set = {{ {name} = \"a\" }}");
        let (_, import) = of_httpd(&format!("RequestHeader set {name} a"));
        assert!(import.text.contains(&line), "{}", import.text);
        let (_, import) = of_nginx(&format!("proxy_set_header {name} a;"));
        assert!(import.text.contains(&line), "{}", import.text);
    }
}
