//! What the source's machine has, and idioms of whole files: each is converted, or closed where its neighbour is not the
//! same.

use super::*;

/// The routes of a server of httpd that has these lines, and how many risks there are.
fn of_httpd(lines: &str, files: &[(&str, &str)]) -> (Vec<String>, usize) {
    let conf =
        format!("Listen 80\nServerRoot /etc/httpd\n{lines}\nProxyPass /app ajp://t:8009/app\n");
    let files: Vec<(&str, &str)> = [("/etc/httpd/c.conf", conf.as_str())]
        .into_iter()
        .chain(files.iter().copied())
        .collect();
    let import = converted(&files, None);
    (routes(&import), import.risks())
}

#[test]
fn an_empty_directory_of_programs_needs_no_decision() {
    let empty = ("/srv/cgi-bin", EMPTY_DIRECTORY);
    let program = ("/srv/cgi-bin/a", "");
    for (alias, file, status) in [
        ("ScriptAlias /cgi-bin/ /srv/cgi-bin/", empty, 404),
        ("ScriptAlias /cgi-bin /srv/cgi-bin", empty, 404),
        // These would be the programs `/srv/cgi-bin…`.
        ("ScriptAlias /cgi-bin/ /srv/cgi-bin", empty, 403),
        ("ScriptAlias /cgi-bin/ srv/cgi-bin/", empty, 403),
        ("ScriptAlias /cgi-bin/ /srv/cgi-bin/", program, 403),
        ("ScriptAlias /cgi-bin/ /srv/absent/", empty, 403),
        ("WSGIScriptAlias /cgi-bin/ /srv/cgi-bin/", empty, 403),
    ] {
        let (routes, risks) = of_httpd(alias, &[file]);
        let expected = format!("path = \"/cgi-bin\"; status = {status}");
        assert!(routes.contains(&expected), "{alias} {routes:#?}");
        assert_eq!(risks == 0, status == 404, "{alias}");
    }
}

#[test]
fn an_include_of_an_empty_directory_is_known_to_add_nothing() {
    let empty = ("/etc/httpd/conf.d", EMPTY_DIRECTORY);
    let other = ("/etc/httpd/conf.d/README", "");
    for (include, file, is_open) in [
        // httpd does not start so: its files are missing here.
        ("Include conf.d/*.conf", other, false),
        ("Include conf.d/*.conf", empty, false),
        ("IncludeOptional conf.d/*.conf", other, true),
        ("IncludeOptional conf.d/*.conf", empty, true),
        ("IncludeOptional conf.d/[a-z].conf", other, false),
        ("IncludeOptional */x.conf", other, false),
        ("Include conf.d/", empty, true),
        ("IncludeOptional conf.d/x.conf", other, true),
        ("Include conf.d/x.conf", other, false),
        ("Include conf.d/[a-z]*.conf", other, false),
        ("Include absent.d/*.conf", other, false),
        // The directory has another one, which is not read here.
        ("Include conf.d", ("/etc/httpd/conf.d/in/a.conf", ""), false),
    ] {
        let (routes, risks) = of_httpd(include, &[file]);
        assert_eq!(risks == 0, is_open, "{include}");
        let is_passed_on = routes.iter().any(|it| it.contains("upstream"));
        assert_eq!(is_passed_on, is_open, "{include} {routes:#?}");
    }
}

#[test]
fn error_pages_of_the_distribution_are_not_served() {
    let alias = "Alias /error/ /srv/error/\n<Directory /srv/error>\nAllowOverride None\nRequire all granted\n\
                 AddHandler type-map var\nAddOutputFilter Includes html\n</Directory>";
    let of_distribution = ["HTTP_NOT_FOUND.html.var", "include/top.html", "README"];
    let path = |name: &str| format!("/srv/error/{name}");
    for (further, risks) in [(None, false), (Some("shop.html.var"), true)] {
        let names: Vec<String> = of_distribution
            .into_iter()
            .chain(further)
            .map(path)
            .collect();
        let files: Vec<(&str, &str)> = names.iter().map(|it| (it.as_str(), "")).collect();
        let (routes, found) = of_httpd(alias, &files);
        let closed = "path = \"/error\"; status = 403".to_owned();
        assert!(routes.contains(&closed), "{further:?} {routes:#?}");
        assert_eq!(found > 0, risks, "{further:?}");
    }
}

#[test]
fn what_no_mount_gets_is_left_before_all_mounts() {
    const WORKERS: &str = "worker.list=a,b\nworker.a.type=ajp13\nworker.a.host=a\nworker.b.type=ajp13\nworker.b.host=b\n";
    let of = |map: &str| {
        let import = converted(&[("w.properties", WORKERS), ("u.properties", map)], None);
        (routes(&import).join("\n"), import.risks())
    };
    let (open, risks) = of("/*.cfm/*=a\n/*.cfm=a\n!/CFIDE/*=a\n");
    assert_eq!(risks, 0, "{open}");
    assert!(open.contains("path = \"/CFIDE\"; status = 404"), "{open}");
    let excludes =
        |it: &&str| it.contains("upstream = \"a\"") && it.contains("exclude = \"/CFIDE\"");
    assert!(open.lines().any(|it| excludes(&it)), "{open}");
    let every = open.lines().filter(|it| it.contains("upstream"));
    assert!(
        every
            .clone()
            .all(|it| excludes(&it) || it.contains("suffix")),
        "{open}"
    );
    // Another worker may have some of these paths.
    let (crossed, risks) = of("/*.cfm/*=a\n/*/x*=b\n!/CFIDE/*=a\n");
    assert_eq!(risks, 1, "{crossed}");
    let of_a = crossed.lines().filter(|it| it.contains("upstream = \"a\""));
    assert_eq!(of_a.count(), 0, "{crossed}");
}

/// The text of an import of nginx's files, the first of which is the main one, and its risks.
fn of_nginx(texts: &[(&str, &str)], prefix: Option<&str>) -> (String, usize) {
    let files = texts
        .iter()
        .map(|(name, text)| (PathBuf::from(name), (*text).to_owned()));
    let options = Options {
        files: vec![PathBuf::from(texts[0].0)],
        kind: Some(Kind::Nginx),
        prefix: prefix.map(PathBuf::from),
        ..Options::default()
    };
    let import = import(&Memory(files.collect()), &options).unwrap();
    (import.text.clone(), import.risks())
}

#[test]
fn an_include_of_nginx_adds_nothing_only_if_its_directory_is_here() {
    let empty = ("/etc/nginx/conf.d", EMPTY_DIRECTORY);
    let other = ("/etc/nginx/conf.d/README", "");
    for (include, file, is_open) in [
        ("conf.d/*.conf", other, true),
        ("conf.d/*.conf", empty, true),
        ("/etc/nginx/conf.d/*.conf", other, true),
        ("absent.d/*.conf", other, false),
        ("/absent/*.conf", other, false),
        ("conf.d/guards.conf", other, false),
        // nginx has other patterns than the importer looks for.
        ("conf.d/[a-z]*.conf", other, false),
        ("conf.d/?*.conf", other, false),
        // Which directories would fit is not known.
        ("*/*.conf", other, false),
    ] {
        for server in [
            format!("include {include}; location / {{ PASS }}"),
            format!("location / {{ include {include}; PASS }}"),
        ] {
            let server = server.replace(
                "PASS",
                "proxy_set_header Host $host; proxy_pass http://t:80;",
            );
            let main = format!("events {{ }} http {{ server {{ listen 80; {server} }} }}");
            let (text, risks) = of_nginx(&[("/etc/nginx/nginx.conf", &main), file], None);
            assert_eq!(
                text.contains("upstream = \"t\""),
                is_open,
                "{server}\n{text}"
            );
            assert_eq!(risks == 0, is_open, "{server}\n{text}");
        }
    }
}

#[test]
fn relative_paths_of_nginx_are_those_of_its_main_file_and_of_its_prefix() {
    let server = "server { listen 443 ssl; ssl_certificate c.pem; ssl_certificate_key c.key; location / { root html; } }";
    let whole = format!("events {{ }} http {{ {server} }}");
    let files = |main: &'static str, text: &'static str| {
        [
            (main, text),
            ("/etc/nginx/c.pem", ""),
            ("/etc/nginx/c.key", ""),
            ("/opt/nginx/html/a.css", ""),
            ("/etc/nginx/html/secret.css", ""),
        ]
    };
    let whole: &'static str = whole.leak();
    let (text, _) = of_nginx(&files("/etc/nginx/nginx.conf", whole), Some("/opt/nginx"));
    assert!(text.contains("chain = \"/etc/nginx/c.pem\""), "{text}");
    assert!(text.contains("files = \"/opt/nginx/html\""), "{text}");
    // Without the prefix it is not known which directory this is.
    let (text, risks) = of_nginx(&files("/etc/nginx/nginx.conf", whole), None);
    assert!(!text.contains("files = ") && risks > 0, "{text}");
    // A file of a server alone does not tell where nginx's main file is.
    let (text, risks) = of_nginx(&files("/etc/nginx/a.conf", server), Some("/opt/nginx"));
    assert!(
        !text.contains("chain = \"/etc/nginx/c.pem\"") && risks > 0,
        "{text}"
    );
}

/// The routes of a server of nginx with these lines, and the risks.
fn of_server(lines: &str) -> (Vec<String>, Vec<String>) {
    let conf = format!("server {{\nlisten 80;\nserver_name a.org;\n{lines}\n}}\n");
    let import = converted(&[("/c.conf", &conf)], None);
    (routes(&import), said(&import, Weight::Risk))
}

#[test]
fn a_path_and_query_may_stand_before_other_text() {
    for (target, expected) in [
        ("https://b.org$request_uri", "https://b.org{path_query}"),
        ("https://b.org$request_uri/", "https://b.org{path}{search}/"),
        (
            "https://b.org/$request_uri/x",
            "https://b.org{path}{search}/x",
        ),
    ] {
        let (routes, risks) = of_server(&format!("return 301 {target};"));
        let expected = format!("path = \"/\"; redirect = \"{expected}\"; status = 301");
        assert_eq!(routes, [expected], "{target}");
        assert!(risks.is_empty(), "{target} {risks:?}");
    }
    let (routes, _) = of_server("return 301 https://$request_uri/x;");
    assert!(routes[0].contains("status = 403"), "{routes:?}");
}

#[test]
fn the_scheme_of_a_proxy_or_the_own_one_is_that_of_the_front() {
    const IDIOM: &str =
        "if ($http_x_forwarded_proto = '') { set $http_x_forwarded_proto $scheme; }";
    let told = "location / { proxy_pass http://t:80; proxy_set_header Host $http_host; \
                proxy_set_header X-Forwarded-Proto $http_x_forwarded_proto; \
                proxy_set_header X-Base $http_x_forwarded_proto://$http_host/; }";
    let (routes, risks) = of_server(&format!("{IDIOM} {told}"));
    assert!(risks.is_empty(), "{risks:?}");
    assert!(
        routes[0].contains("X-Base = \"{scheme}://{authority}/\""),
        "{routes:?}"
    );
    // What it decides, or what may leave the idiom out, stays a claim of a proxy.
    for lines in [
        format!("{IDIOM} if ($http_x_forwarded_proto = http) {{ return 403; }} {told}"),
        format!("if ($arg_a) {{ break; }} {IDIOM} {told}"),
        format!("{told} {IDIOM} if ($arg_a) {{ set $http_x_forwarded_proto http; }}"),
        told.to_owned(),
    ] {
        let (routes, risks) = of_server(&lines);
        assert!(!risks.is_empty(), "{lines} {routes:#?}");
    }
}

#[test]
fn one_path_is_redirected_by_a_value_before_all_others() {
    let location = |lines: &str| {
        format!("location / {{ {lines} proxy_set_header Host $host; proxy_pass http://t:80; }}")
    };
    let redirect = "if ($http_user_agent ~* 'iPhone|iPod') { rewrite ^/$ /small/ redirect; }";
    let (routes, risks) = of_server(&location(redirect));
    assert!(risks.is_empty(), "{risks:?}");
    let own = "path = \"/\"; exact = true; match_regex = \"header:user-agent ~ (?i)iPhone|iPod\"; \
               redirect = \"/small/{search}\"; status = 302";
    assert!(
        routes
            .iter()
            .any(|it| it.to_lowercase() == own.to_lowercase()),
        "{routes:#?}"
    );
    assert!(
        routes.contains(&"path = \"/\"; upstream = \"t\"".to_owned()),
        "{routes:#?}"
    );
    // So it is for a whole server.
    let pass = "location / { proxy_set_header Host $host; proxy_pass http://t:80; }";
    for (lines, is_open) in [
        (format!("{redirect} {pass}"), true),
        (
            format!("if ($arg_a) {{ return 403; }} {redirect} {pass}"),
            false,
        ),
    ] {
        let (routes, risks) = of_server(&lines);
        assert_eq!(risks.is_empty(), is_open, "{lines} {risks:?}");
        let is_passed_on = routes.iter().any(|it| it.ends_with("upstream = \"t\""));
        assert_eq!(is_passed_on, is_open, "{lines} {routes:#?}");
    }
    // An expression that matches the path decides about it.
    let guard = "location ~ ^/$ { deny all; proxy_pass http://t:80; }";
    let (routes, _) = of_server(&format!("{} {guard}", location(redirect)));
    assert!(
        !routes.iter().any(|it| it.contains("redirect")),
        "{routes:#?}"
    );
    // The front would prefer it to a guard above it, and to one by methods.
    for lines in [
        format!("if ($arg_a) {{ return 403; }} {redirect}"),
        format!("{redirect} limit_except GET {{ deny all; }}"),
        "if ($arg_a) { rewrite ^/a.*$ /b redirect; }".to_owned(),
        "if ($arg_a) { rewrite ^/a$ /b last; }".to_owned(),
    ] {
        let (routes, risks) = of_server(&location(&lines));
        let is_open = routes.iter().any(|it| it.contains("upstream"));
        assert!(!is_open && !risks.is_empty(), "{lines} {routes:#?}");
    }
}

#[test]
fn a_redirect_of_one_path_stays_one_of_that_path() {
    let redirect = |path: &str| {
        format!("if ($http_user_agent ~* iPhone) {{ rewrite ^{path}$ /small/ redirect; }}")
    };
    let pass = "proxy_pass http://t:80;";
    let of_host = "proxy_set_header Host $host;";
    // Both kinds of prefixes: of paths that stay as they are, and of those that the front writes anew.
    for lines in [format!("{of_host} {pass}"), pass.to_owned()] {
        let (routes, _) = of_server(&format!(
            "location /shop {{ {} {lines} }}",
            redirect("/shop")
        ));
        let redirects: Vec<&String> = routes.iter().filter(|it| it.contains("redirect")).collect();
        let is_of_path =
            |it: &&&String| it.starts_with("path = \"/shop\"; exact = true; match_regex");
        assert_eq!(
            redirects.iter().filter(is_of_path).count(),
            1,
            "{routes:#?}"
        );
        assert_eq!(redirects.len(), 1, "{routes:#?}");
        let longer = "pattern = \"/shop*\"; upstream = \"t\"";
        assert!(
            routes.iter().any(|it| it.starts_with(longer)),
            "{routes:#?}"
        );
    }
    // nginx tries no files for a request that meets the condition, whatever its path.
    for tries in ["try_files $uri @app;", "try_files $uri =404;"] {
        let app = format!("location @app {{ {of_host} {pass} }}");
        let of = |lines: &str| {
            of_server(&format!(
                "location / {{ root /srv; {lines} {tries} }} {app}"
            ))
        };
        let (routes, risks) = of(&redirect("/"));
        let is_closed = |it: &String| it.ends_with("status = 403");
        assert!(routes.iter().all(is_closed), "{tries} {routes:#?}");
        assert!(!risks.is_empty(), "{tries}");
    }
}

#[test]
fn a_location_that_rewrites_its_paths_gets_what_the_only_other_one_does() {
    let pass = "proxy_set_header Host $host; proxy_pass http://t:80;";
    let leap = "location ~ '^/static/[0-9a-f]{8}\\/(.*)$' { rewrite '^/static/[0-9a-f]{8}\\/(.*)' /$1 last; }";
    let whole = format!("location / {{ deny 10.0.0.1; {pass} }}");
    let (routes, risks) = of_server(&format!("{leap} {whole}"));
    assert!(risks.is_empty(), "{risks:?}");
    let expression = r#"regex = "^/static/[0-9a-f]{8}/(.*)$"; upstream = "t"; rewrite = "/{1}"; deny = "10.0.0.1""#;
    assert!(routes.iter().any(|it| it == expression), "{routes:#?}");
    // nginx would rewrite such a path twice.
    let again = r#"regex = "^/static/[0-9a-f]{8}/static/[0-9a-f]{8}/"; status = 403"#;
    assert!(routes.iter().any(|it| it == again), "{routes:#?}");
    // Other locations may get the new path, or may decide otherwise.
    for lines in [
        format!("{leap} {whole} location /admin {{ deny all; {pass} }}"),
        format!("{leap} location / {{ root /srv; }}"),
        format!("location ~ '^/(a|b)/(.*)$' {{ rewrite '^/(a|b)/(.*)$' /$1 last; }} {whole}"),
        format!("location ~ '^/a/(.*)$' {{ rewrite '^/a/(.*)$' /$1 break; }} {whole}"),
        format!("location ~ '^/a/(.*)$' {{ rewrite '^/a/(.*)$' /b/$1 last; }} {whole}"),
        format!("merge_slashes off; {leap} {whole}"),
    ] {
        let (routes, _) = of_server(&lines);
        assert!(!leaps(&routes), "{lines} {routes:#?}");
    }
}

/// Whether an expression leads to a backend.
fn leaps(routes: &[String]) -> bool {
    let mut all = routes.iter();
    all.any(|it| it.contains("regex") && it.contains("upstream"))
}

#[test]
fn a_location_that_rewrites_its_paths_leaps_only_where_nothing_tells_old_paths_from_new_ones() {
    const LEAP: &str = "location ~ ^/a/(.*)$ { rewrite ^/a/(.*)$ /$1 last; }";
    let pass = |lines: &str| {
        format!("location / {{ {lines} proxy_set_header Host $host; proxy_pass http://t:80; }}")
    };
    for (outer, lines, is_open) in [
        ("", pass(""), true),
        ("log_format a $request_uri;", pass(""), true),
        (
            "",
            format!("{} location @b {{ add_header X-A $uri; }}", pass("")),
            true,
        ),
        ("", pass("proxy_set_header X-A $request_uri;"), false),
        ("", pass("proxy_set_header X-A ${request_uri};"), false),
        ("", pass("add_header X-A a$uri;"), false),
        ("", pass("if ($request_uri ~ ^/a/b) { return 403; }"), false),
        (
            "",
            format!("add_header X-A $document_uri; {}", pass("")),
            false,
        ),
        (
            "",
            format!("if ($uri ~ ^/b) {{ return 403; }} {}", pass("")),
            false,
        ),
        ("add_header X-A ${uri};", pass(""), false),
        (
            "map $request_uri $a { default 0; ~^/a/b 1; }",
            pass("if ($a) { return 403; }"),
            false,
        ),
        ("merge_slashes off;", pass(""), false),
        ("", format!("merge_slashes off; {}", pass("")), false),
    ] {
        let conf =
            format!("{outer}\nserver {{\nlisten 80;\nserver_name a.org;\n{LEAP}\n{lines}\n}}\n");
        let routes = routes(&converted(&[("/c.conf", &conf)], None));
        assert_eq!(leaps(&routes), is_open, "{conf} {routes:#?}");
    }
}
