use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::*;

mod compress;
mod cookies;
mod doors;
mod expires;
mod files;
mod growth;
mod guards;
mod httpd;
mod index_files;
mod kept;
mod limits;
mod methods;
mod nginx;
mod passwords;
mod planted;
mod request_tests;
mod server_guards;
mod sign_on;
mod sources;
mod told;
mod tomcat;

/// Files that exist only in memory.
#[derive(Default)]
struct Memory(BTreeMap<PathBuf, String>);

impl Files for Memory {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let found = self.0.get(path).map(|it| it.clone().into_bytes());
        found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn matching(&self, pattern: &str) -> Vec<PathBuf> {
        let (start, end) = pattern.split_once('*').unwrap_or((pattern, ""));
        let fits = |path: &&PathBuf| {
            let text = path.to_string_lossy();
            if pattern.contains('*') {
                text.starts_with(start) && text.ends_with(end)
            } else {
                text == pattern
            }
        };
        self.0.keys().filter(fits).cloned().collect()
    }

    fn names(&self, directory: &Path) -> Option<Vec<String>> {
        if self
            .0
            .get(directory)
            .is_some_and(|it| it == EMPTY_DIRECTORY)
        {
            return Some(Vec::new());
        }
        let below = self
            .0
            .keys()
            .filter_map(|it| it.strip_prefix(directory).ok());
        let names = below.filter_map(|it| it.iter().next());
        let mut names: Vec<String> = names.map(|it| it.to_string_lossy().into_owned()).collect();
        names.dedup();
        (!names.is_empty()).then_some(names)
    }

    fn fault(&self, text: &str) -> Option<String> {
        text.contains("locked.key")
            .then(|| "the key locked.key is encrypted".to_owned())
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

/// Converts texts, given with their names. The first one and those that end in `.properties` count as
/// named on the command line.
fn converted(texts: &[(&str, &str)], keep: Option<&str>) -> Import {
    let files = texts
        .iter()
        .map(|(name, text)| (PathBuf::from(name), (*text).to_owned()));
    let named = texts
        .iter()
        .enumerate()
        .filter(|(at, it)| *at == 0 || it.0.ends_with(".properties"));
    let options = Options {
        files: named.map(|it| PathBuf::from(it.1.0)).collect(),
        keep: keep.map(str::to_owned),
        inline_secrets: true,
        ..Options::default()
    };
    let import = import(&Memory(files.collect()), &options).unwrap();
    if let Err(report) = catamaran_config::parse("catamaran.toml", &import.text) {
        panic!("{report}\n{}", import.text);
    }
    adds_up(import)
}

/// Converts texts whose directories do not exist here, and drops the remarks that `check` would refuse
/// the lines with `files`.
fn with_directories(texts: &[(&str, &str)], keep: Option<&str>) -> Import {
    let files = texts
        .iter()
        .map(|(name, text)| (PathBuf::from(name), (*text).to_owned()));
    let options = Options {
        files: vec![PathBuf::from(texts[0].0)],
        keep: keep.map(str::to_owned),
        inline_secrets: true,
        ..Options::default()
    };
    let mut import = import(&Memory(files.collect()), &options).unwrap();
    import.remarks.retain(|it| {
        !it.text
            .contains("`check` refuses a line that was written, \"files = ")
    });
    adds_up(import)
}

fn adds_up(import: Import) -> Import {
    let sums = import.sums;
    assert_eq!(sums.total(), import.directives.len());
    assert_eq!(
        sums.total(),
        sums.mapped + sums.dropped + sums.decided + sums.kept
    );
    import
}

/// The routes of a converted file, each on one line, without their headers, empty lines, and what all expressions have;
/// and without those for escaped slashes, which each host of httpd has.
fn routes(import: &Import) -> Vec<String> {
    const OF_EXPRESSIONS: &str = "refuse_parameters = true";
    let all = import.text.split("\n[[route]]").skip(1);
    let blocks = all.filter(|it| !it.contains("# an escaped slash"));
    let line = |block: &str| {
        let has_expression = block.contains("\nregex = ");
        assert_eq!(has_expression, block.contains(OF_EXPRESSIONS), "{block}");
        let lines = block.lines().skip(1);
        let lines = lines.filter(|it| !it.is_empty() && *it != OF_EXPRESSIONS);
        lines.collect::<Vec<_>>().join("; ")
    };
    blocks.map(line).collect()
}

fn said(import: &Import, weight: Weight) -> Vec<String> {
    let of = import.remarks.iter().filter(|it| it.weight == weight);
    let line = |remark: &Remark| {
        let mut line = String::new();
        emit::say(remark, &mut line);
        line.trim_end().to_owned()
    };
    of.map(line).collect()
}

#[test]
fn workers_become_upstreams() {
    let map = "/app|/*=lb\n!/app/static/*=lb\n/*.jsp=one\n-/old/*=lb\n";
    let import = converted(&[("w.properties", WORKERS), ("u.properties", map)], None);
    assert_eq!(
        routes(&import),
        [
            "path = \"/app/static\"; exact = true; upstream = \"lb\"",
            "path = \"/app/static\"; status = 404",
            "path = \"/app\"; upstream = \"lb\"",
            "path = \"/\"; suffix = \".jsp\"; upstream = \"one\"",
            "path = \"/\"; status = 404",
        ]
    );
    for line in [
        "policy = \"least-in-flight\"",
        "first_byte_timeout = \"120s\"",
        "secret = \"s\"",
        "url = \"ajp://10.0.0.1:8009\"",
        "weight = 2",
        "activation = \"drain\"",
        "url = \"ajp://localhost:9009\"",
        "first = \"path\"",
    ] {
        assert!(import.text.contains(line), "{line}\n{}", import.text);
    }
    assert_eq!(said(&import, Weight::Risk), Vec::<String>::new());
    assert_eq!(import.sums.decided, 0);
}

#[test]
fn misspelt_keys_are_named_with_their_line() {
    let workers = "worker.list=a\nworker.a.hots=x\nworker.a.type=ajp13\n";
    let import = converted(
        &[("w.properties", workers), ("u.properties", "/*=a\n")],
        None,
    );
    let risks = said(&import, Weight::Risk);
    assert_eq!(risks.len(), 1, "{risks:?}");
    assert!(
        risks[0].starts_with("w.properties:2: ") && risks[0].contains("`host`"),
        "{risks:?}"
    );
}

#[test]
fn a_pattern_twice_is_the_last_one_and_unlisted_workers_serve_nothing() {
    let conf = "JkWorkersFile /w\nJkMount /a/* one\nJkMount /a/* lb\nJkMount /b/* ghost\n\
                <Location /jk>\nJkMount one\nRequire ip 127.0.0.1\n</Location>\n";
    let import = converted(&[("/httpd.conf", conf), ("/w", WORKERS)], None);
    assert_eq!(
        routes(&import),
        [
            "path = \"/a\"; upstream = \"lb\"",
            "path = \"/b\"; status = 404",
            "path = \"/jk\"; exact = true; upstream = \"one\"; allow = \"127.0.0.1\"",
            "path = \"/jk\"; status = 404",
            "path = \"/\"; status = 404",
        ]
    );
    assert!(
        said(&import, Weight::Risk).is_empty(),
        "{:?}",
        import.remarks
    );
}

#[test]
fn mounts_of_the_server_are_dead_beside_a_virtual_host() {
    let conf = "JkWorkersFile /w\nListen 80\nJkMount /a/* one\n<VirtualHost *:80>\nServerName x.org\n\
                JkMount /b/* one\n</VirtualHost>\n";
    let import = converted(&[("/httpd.conf", conf), ("/w", WORKERS)], None);
    assert_eq!(
        routes(&import),
        [
            "path = \"/b\"; upstream = \"one\"",
            "path = \"/\"; status = 404"
        ]
    );
    let notes = said(&import, Weight::Note);
    assert!(
        notes.iter().any(|it| it.starts_with("/httpd.conf:3: ")),
        "{notes:?}"
    );
    let copied = conf.replace("ServerName x.org", "ServerName x.org\nJkMountCopy On");
    let import = converted(&[("/httpd.conf", &copied), ("/w", WORKERS)], None);
    assert_eq!(routes(&import).len(), 3);
}

#[test]
fn what_is_guarded_by_a_sign_on_is_closed_or_kept() {
    let conf = "Listen 80\nProxyPreserveHost On\nProxyPass / ajp://t:8009/\n<Location /admin>\nAuthType Basic\n\
                AuthName x\nAuthUserFile /p\nRequire valid-user\n</Location>\n";
    let closed = converted(&[("/httpd.conf", conf)], None);
    assert_eq!(
        routes(&closed),
        [
            "path = \"/admin\"; status = 403",
            "path = \"/\"; upstream = \"t\""
        ]
    );
    assert!(closed.risks() > 0);
    let kept = converted(&[("/httpd.conf", conf)], Some("http://127.0.0.1:8081"));
    assert_eq!(
        routes(&kept),
        [
            "path = \"/admin\"; upstream = \"kept\"",
            "path = \"/\"; upstream = \"t\""
        ]
    );
    assert_eq!((kept.risks(), kept.sums.kept), (0, 5));
    assert_eq!(kept.routes, (3, 1));
}

#[test]
fn two_ports_are_a_boundary() {
    let conf = "Listen 80\nListen 8080\n<VirtualHost *:80>\nProxyPass /a ajp://t:8009/a\n</VirtualHost>\n\
                <VirtualHost *:8080>\nProxyPass /b ajp://t:8009/b\n</VirtualHost>\n";
    let import = converted(&[("/httpd.conf", conf)], None);
    assert_eq!(
        routes(&import),
        [
            "listen = \"port-80\"; path = \"/a\"; upstream = \"t\"",
            "listen = \"port-80\"; path = \"/\"; status = 404",
            "listen = \"port-8080\"; path = \"/b\"; upstream = \"t\"",
            "listen = \"port-8080\"; path = \"/\"; status = 404",
        ]
    );
}

#[test]
fn the_first_proxy_pass_wins_and_redirects_come_after() {
    let conf = "Listen 80\nRedirect /app https://x.org/new\nProxyPass /app/static !\nProxyPass /app ajp://t:8009/app\n\
                ProxyPass /app/deep ajp://u:8009/app/deep\nProxyPass /shop ajp://t:8009/store\n\
                RedirectMatch ^/$ /app/\nRewriteEngine On\nRewriteRule ^/secret - [F]\n";
    let import = converted(&[("/httpd.conf", conf)], None);
    assert_eq!(
        routes(&import),
        [
            "pattern = \"/secret*\"; status = 403",
            // What mod_proxy leaves alone goes to mod_alias.
            "path = \"/app/static\"; redirect = \"https://x.org/new/static{rest_query}\"; status = 302",
            "path = \"/app\"; upstream = \"t\"",
            "path = \"/shop\"; upstream = \"t\"; rewrite = \"/store\"",
            "path = \"/\"; exact = true; redirect = \"/app/\"; status = 302",
            "path = \"/\"; status = 404",
        ]
    );
}

#[test]
fn a_redirect_has_a_status_that_all_clients_follow_alike() {
    let conf = "Listen 80\nRedirect seeother /a https://x.org/b\nRedirect 305 /c https://x.org/d\n\
                RedirectMatch 303 ^/e$ /f\n";
    let import = converted(&[("/httpd.conf", conf)], None);
    assert_eq!(
        routes(&import),
        [
            "path = \"/a\"; redirect = \"https://x.org/b{rest_query}\"; status = 302",
            "path = \"/c\"; status = 403",
            "path = \"/e\"; exact = true; redirect = \"/f\"; status = 302",
            "path = \"/\"; status = 404",
        ]
    );
    let conf = "server {\nlisten 80;\nlocation = /a { return 303 /b; }\n}\n";
    let import = converted(&[("/nginx.conf", conf)], None);
    assert_eq!(
        routes(&import)[0],
        "path = \"/a\"; exact = true; redirect = \"/b\"; status = 302"
    );
}

#[test]
fn an_unknown_rewrite_closes_what_it_may_be_about() {
    let conf = "Listen 80\nProxyPass / ajp://t:8009/\nRewriteEngine On\nRewriteCond %{HTTP_COOKIE} !token\n\
                RewriteRule ^/intern/ /login [R]\n";
    let import = converted(&[("/httpd.conf", conf)], None);
    assert_eq!(
        routes(&import),
        [
            "path = \"/intern\"; exact = true; upstream = \"t\"",
            "path = \"/intern\"; status = 403",
            "path = \"/\"; upstream = \"t\"",
        ]
    );
    assert!(import.risks() > 0);
}

#[test]
fn a_directive_that_nobody_knows_is_named() {
    let import = converted(
        &[(
            "/httpd.conf",
            "Listen 80\nFrobnicate on\nProxyPass / ajp://t:8009/\n",
        )],
        None,
    );
    let risks = said(&import, Weight::Risk);
    assert!(
        risks
            .iter()
            .any(|it| it.starts_with("/httpd.conf:2: ") && it.contains("Frobnicate")),
        "{risks:?}"
    );
}

#[test]
fn placeholders_are_one_risk_each() {
    let conf = "Listen 80\n<VirtualHost *:80>\nServerName {{host}}\nServerAlias {{host}} ${X}\n\
                ProxyPass / ajp://t:8009/\n</VirtualHost>\n";
    let import = converted(&[("/httpd.conf", conf)], None);
    let risks = said(&import, Weight::Risk);
    assert_eq!(risks.len(), 2, "{risks:?}");
}

#[test]
fn nginx_prefers_exact_paths_then_firm_prefixes_then_expressions() {
    let conf = "upstream app {\n  server 10.0.0.1:8080 weight=2;\n  server 10.0.0.2:8080 backup;\n  ip_hash;\n}\n\
        server {\n  listen 80;\n  server_name x.org .y.org;\n  proxy_set_header Host $host;\n\
        location / { proxy_pass http://app; }\n  location = /health { return 204; }\n\
        location ^~ /static/ { proxy_pass http://app; }\n  location ~ \\.php$ { deny all; }\n\
        location /admin { allow 10.0.0.0/8; deny all; proxy_pass http://app; }\n}\n";
    let import = converted(&[("/nginx.conf", conf)], None);
    let shown: Vec<String> = routes(&import)
        .into_iter()
        .filter(|it| !it.starts_with("host"))
        .collect();
    assert_eq!(
        shown,
        [
            "path = \"/health\"; exact = true; status = 204",
            "path = \"/static\"; exact = true; redirect = \"/static/{search}\"; status = 301",
            "path = \"/static\"; before_regex = true; upstream = \"app\"",
            "pattern = \"/admin*\"; upstream = \"app\"; allow = \"10.0.0.0/8\"",
            "path = \"/\"; upstream = \"app\"",
            "regex = \"\\\\.php$\"; status = 403",
        ]
    );
    assert!(import.text.contains("policy = \"hash\""), "{}", import.text);
}

/// A request that Tomcat may have received is not sent again if mod_jk would not send it again.
#[test]
fn a_hash_of_nginx_is_by_one_field_or_reported() {
    let of = |key: &str| {
        let conf = format!(
            "upstream app {{\n  server 10.0.0.1:80;\n  hash {key};\n}}\n\
             server {{\n  listen 80;\n  location / {{ proxy_pass http://app; }}\n}}\n"
        );
        converted(&[("/nginx.conf", &conf)], None)
    };
    for (key, expected) in [
        ("$remote_addr", "address"),
        ("$uri", "path"),
        ("$request_uri", "path"),
        ("$http_x_user", "header:x-user"),
        ("$cookie_SID", "cookie:SID"),
        ("$arg_id", "query:id"),
    ] {
        let text = of(key).text;
        let expected = format!("hash_by = \"{expected}\"");
        assert!(text.contains(&expected), "{key}\n{text}");
    }
    for key in [
        "$http_host$uri",
        "$cookie_a-b",
        "$arg_",
        "$scheme",
        "${http_host}x",
    ] {
        let import = of(key);
        assert!(!import.text.contains("hash_by"), "{key}\n{}", import.text);
        let risks = said(&import, Weight::Risk);
        assert!(risks.iter().any(|it| it.contains(key)), "{key} {risks:?}");
    }
    let notes = said(&of("$request_uri"), Weight::Note);
    assert!(notes.iter().any(|it| it.contains("query")), "{notes:?}");
}

#[test]
fn a_redirect_of_a_section_comes_before_its_handlers_and_the_last_handler_counts() {
    let of = |inner: &str| {
        let conf = format!("Listen 80\n<Location /a>\n{inner}\n</Location>\n");
        routes(&converted(&[("/httpd.conf", &conf)], None))
    };
    let redirect = "Redirect 302 https://x.org/";
    let alone = of(redirect);
    assert!(alone.iter().any(|it| it.contains("redirect")), "{alone:?}");
    for handler in ["SetHandler server-status", "SetHandler other"] {
        assert_eq!(of(&format!("{redirect}\n{handler}")), alone);
        assert_eq!(of(&format!("{handler}\n{redirect}")), alone);
        assert_eq!(
            of(&format!("{handler}\nSetHandler None")),
            of("SetHandler None")
        );
    }
}

#[test]
fn recovery_options_say_what_may_be_sent_again() {
    for (options, expected) in [
        ("0", None),
        ("6", None),
        ("3", Some("none")),
        ("11", Some("none")),
        ("27", Some("safe")),
    ] {
        for worker in ["lb", "a"] {
            let workers = format!("{WORKERS}worker.{worker}.recovery_options={options}\n");
            let import = converted(
                &[("w.properties", &workers), ("u.properties", "/*=lb\n")],
                None,
            );
            let line = expected.map(|it| format!("retry_sent = \"{it}\""));
            let found = import.text.lines().find(|it| it.starts_with("retry_sent"));
            assert_eq!(
                found,
                line.as_deref(),
                "{worker} {options}: {}",
                import.text
            );
        }
    }
}

#[test]
fn names_of_hosts_are_those_that_a_route_may_have() {
    let label = "a".repeat(63);
    let longest = format!("{label}.{label}.{label}.{}", "b".repeat(61));
    for (name, is_one) in [
        (longest.as_str(), true),
        (&format!("{longest}b"), false),
        ("a_b.example.org", true),
        ("*.example.org", true),
        ("*.*.example.org", false),
        ("www.*.example.org", false),
        ("-a.example.org", false),
    ] {
        let httpd = format!(
            "Listen 80\n<VirtualHost *:80>\n</VirtualHost>\n<VirtualHost *:80>\nServerName {name}\n\
             ProxyPass / ajp://t:8009/\n</VirtualHost>\n"
        );
        let nginx = format!(
            "server {{\nlisten 80;\n}}\nserver {{\nlisten 80; server_name {name}; location / {{ proxy_pass http://t:80; }} }}\n"
        );
        for conf in [("/httpd.conf", httpd), ("/nginx.conf", nginx)] {
            let import = converted(&[(conf.0, &conf.1)], None);
            let line = format!("host = \"{name}\"");
            assert_eq!(
                import.text.lines().any(|it| it == line),
                is_one,
                "{} {name}\n{}",
                conf.0,
                import.text
            );
        }
    }
}

const WORKERS: &str = "worker.list=lb,one\nworker.t.type=ajp13\nworker.t.secret=s\nworker.t.reply_timeout=120000\n\
    worker.a.reference=worker.t\nworker.a.host=10.0.0.1\nworker.a.lbfactor=2\nworker.b.reference=worker.t\n\
    worker.b.host=10.0.0.2\nworker.b.activation=D\nworker.lb.type=lb\nworker.lb.balance_workers=a\n\
    worker.lb.balanced_workers=b\nworker.lb.method=B\nworker.one.port=9009\nworker.one.type=ajp13\n";

/// The content by which [`Memory`] has a directory without files.
const EMPTY_DIRECTORY: &str = "(an empty directory)";
