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
        ("Include conf.d/*.conf", other, true),
        ("Include conf.d/*.conf", empty, true),
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
