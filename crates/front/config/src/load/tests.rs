use std::collections::BTreeSet;
use std::sync::Arc;

use catamaran_proxy::config::{MemberSource, Secret, ServicePort, Trust};
use rcgen::generate_simple_self_signed;

use super::*;
use crate::file::{SECTIONS, backend};
use crate::key::{AnyKey, Preset};
use crate::reference::own;

/// The text of a file that has all tables with what they need, and `added` as a line in one of
/// them.
fn file(header: &str, added: &str) -> String {
    let mut text = String::new();
    for &(table, needed) in TABLES {
        // These are for a route with an upstream alone.
        if table.starts_with("[[route.") && table != header {
            continue;
        }
        let key = added.split('=').next().unwrap_or_default();
        let here = table == header && !key.is_empty();
        // A route has one target, and a rewrite a prefix alone.
        let other = |line: &str| match key {
            "status " | "redirect " => table == "[[route]]",
            "split " => table == "[[route]]" && line.starts_with("upstream"),
            "exact " | "suffix " | "pattern " => {
                !added.ends_with("false") && line.starts_with("rewrite")
            }
            _ => false,
        };
        let replaced = |line: &&str| here && (line.starts_with(key) || other(line));
        let needed: Vec<&str> = needed.lines().filter(|line| !replaced(line)).collect();
        let needed = needed.join("\n");
        let added = if table == header { added } else { "" };
        text.push_str(&format!("{table}\n{needed}\n{added}\n"));
    }
    // For the samples of a fallback and of a route's target, and for challenges if the first listener has TLS.
    text + "[[listen]]\naddress = \"127.0.0.1:8081\"\n\
            [[upstream.NAME.backend]]\nname = \"b\"\nurl = \"ajp://127.0.0.1:8011\"\n\
            [upstream.tomcat]\n[[upstream.tomcat.backend]]\nurl = \"ajp://127.0.0.1:8010\"\n"
}

fn meaning(text: &str) -> String {
    let secret = |_: &Path| Ok("from a file, long enough for a key".to_owned());
    let surroundings = Surroundings {
        read_secret: &secret,
        ..Surroundings::none()
    };
    match parse_within("x.toml", text, &surroundings) {
        Ok(mut loaded) => {
            // Where a route stands is no part of what it means.
            loaded
                .config
                .routes
                .iter_mut()
                .for_each(|it| it.place = None);
            format!("{:#?}", loaded.config)
        }
        Err(report) => panic!("{report}\n{text}"),
    }
}

/// As [`file`], with those settings that the key requires, such as a backend of the right
/// protocol.
fn file_for(key: &str, header: &str, added: &str) -> String {
    let text = file(header, added);
    match key {
        // Sources have keys of their own.
        "from" if header == "[upstream.NAME.members]" => {
            let (_, keys) = IN_DNS.split_once('\n').expect("several lines");
            let text = text.replace(keys, "path = \"others.toml\"");
            text.replace("from = \"dns\"", "from = \"file\"")
        }
        "path" if header == "[upstream.NAME.members]" => match added {
            "" => text.replace(IN_DNS, "from = \"file\"\npath = \"others.toml\""),
            _ => text.replace(IN_DNS, "from = \"file\""),
        },
        "service" if header == "[upstream.NAME.members]" => match added {
            "" => text.replace(IN_DNS, IN_KUBERNETES),
            _ => text.replace(IN_DNS, "from = \"kubernetes\""),
        },
        _ if header == "[kubernetes]" => text.replace(IN_DNS, IN_KUBERNETES),
        // A sign-on has either kind of keys, and that of [admin] has users.
        "upstream" | "path" if header == "[auth.NAME]" && added.is_empty() => {
            text.replace(AUTH_SERVICE, AUTH_USERS)
        }
        "users_file" if !added.is_empty() => text.replace(AUTH_SERVICE, ""),
        "groups_file" | "users" | "groups" | "realm" | "failures" | "pass_credentials" => {
            text.replace(AUTH_SERVICE, AUTH_USERS)
        }
        "auth" if header == "[admin]" => text.replace(AUTH_SERVICE, AUTH_USERS),
        _ if header == "[mcmp]" => text.replace(IN_DNS, "from = \"mcmp\""),
        "client_cert_fields" => text.replace("ajp://127.0.0.1:8009", "http://127.0.0.1:8080"),
        "index"
        | "fallback"
        | "links"
        | "hide"
        | "etag"
        | "cache_control"
        | "cache_control_types"
        | "charset"
        | "types"
        | "precompressed"
            if header == "[[route]]" =>
        {
            text.replace(
                "upstream = \"NAME\"\nrewrite",
                "files = \"/srv/www\"\nrewrite",
            )
        }
        "regex" if header.starts_with("[[route.") && !added.is_empty() => {
            let text = text.replace("from = \"app.internal\"\n", "");
            let text = text.replace("prefix = \"http://b/\"\n", "");
            text.replace("from = \"/app/\"\n", "")
        }
        "in_flight" if !added.is_empty() => text.replace("rate = \"1/s\"\n", ""),
        "refuse_parameters" => {
            let regex = "upstream = \"NAME\"\nregex = \"^/x$\"\nrewrite";
            text.replace("upstream = \"NAME\"\nrewrite", regex)
        }
        "text" => text.replace("upstream = \"NAME\"\nrewrite = \"/inner\"", "status = 200"),
        "text_type" => text.replace(
            "upstream = \"NAME\"\nrewrite = \"/inner\"",
            "status = 200\ntext = \"fine\"",
        ),
        "statuses" => text.replace(header, &format!("{header}\nremove = \"X-None\"")),
        "compress_types" | "compress_min" => text.replace(
            "upstream = \"NAME\"\nrewrite",
            "upstream = \"NAME\"\ncompress = \"gzip\"\nrewrite",
        ),
        _ => text,
    }
}

fn keys() -> impl Iterator<Item = (&'static str, AnyKey)> {
    SECTIONS
        .iter()
        .flat_map(|section| section.keys().map(|key| (section.header, key)))
}

#[test]
fn each_default_of_the_reference_is_the_default_of_the_type() {
    let mut compared = 0;
    for (header, key) in keys() {
        if let Preset::Value(value) = key.preset
            && !is_of_tls(header, key.name)
        {
            let added = format!("{} = {value}", key.name);
            let plain = meaning(&file_for(key.name, header, ""));
            let meant = meaning(&file_for(key.name, header, &added));
            assert!(meant == plain, "{header} {added} changes something");
            compared += 1;
        }
    }
    assert!(compared > 40, "only {compared} keys have a default value");
}

#[test]
fn each_key_reaches_a_value_of_its_own() {
    let mut meanings = BTreeSet::new();
    let of_clear = |(header, key): &(&str, AnyKey)| !is_of_tls(header, key.name);
    for (header, key) in keys().filter(of_clear) {
        let mut added = format!("{} = {}", key.name, key.sample);
        if key.name == "hash_by" {
            added.insert_str(0, "policy = \"hash\"\n");
        }
        if key.name == "fields" && header == "[auth.NAME]" {
            added.insert_str(0, "user = \"X-User\"\n");
        }
        if key.name == "groups" {
            added.insert_str(0, "groups_file = \"groups\"\n");
        }
        if key.name == "groups_file" {
            added.insert_str(0, "groups = [\"all\"]\n");
        }
        if key.name == "auth_type" {
            added.insert_str(0, "remote_user = \"header:X-User\"\n");
        }
        if header == "[mcmp]" && ["group", "interface", "key_file"].contains(&key.name) {
            added.insert_str(0, "advertise = true\n");
        }
        if key.name == "hsts" {
            added.insert_str(0, "tls = \"NAME\"\n");
        }
        if key.name == "proxy_protocol" {
            added.insert_str(0, "proxy_protocol_from = [\"192.0.2.0/24\"]\n");
        }
        if key.name == "proxy_protocol_from" {
            added.insert_str(0, "proxy_protocol = true\n");
        }
        if key.name == "proxy_protocol_tls" {
            let others = "proxy_protocol = true\nproxy_protocol_from = [\"192.0.2.0/24\"]\n";
            added.insert_str(0, others);
        }
        if key.name == "obey" {
            added.insert_str(0, "ttl = { 200 = \"7s\" }\n");
        }
        if key.name == "tunnel_idle_timeout" {
            added.insert_str(0, "upgrade = [\"other\"]\n");
        }
        let plain = meaning(&file_for(key.name, header, ""));
        let meant = meaning(&file_for(key.name, header, &added));
        if key.preset == Preset::Required {
            // The samples of these are what the file says anyway.
            assert_eq!(meant, plain, "{header} {added}");
        } else {
            assert_ne!(meant, plain, "{header} {added} changes nothing");
            // Both lead to a secret, and no secret shows.
            let own = key.name == "secret_file" || meanings.insert((header, meant));
            assert!(own, "{header} {added} is wired to another key's value");
        }
    }
}

#[test]
fn a_listener_whose_clients_a_proxy_serves_over_tls_may_send_hsts() {
    let keys = "proxy_protocol = true\nproxy_protocol_from = [\"192.0.2.0/24\"]\n\
                proxy_protocol_tls = true\nhsts = \"max-age=31536000\"\n";
    let meant = meaning(&file("[[listen]]", keys));
    assert!(meant.contains("\"max-age=31536000\""), "{meant}");
}

/// Whether the key is only for backends over TLS, or has an effect only where files are read.
fn is_of_tls(header: &str, key: &str) -> bool {
    if header == "[tls.NAME.acme]" && ["ca_file", "eab_key_id", "eab_hmac_file"].contains(&key) {
        return true;
    }
    let of_backend = header.starts_with("[upstream.NAME]") || header.starts_with("[[upstream");
    of_backend
        && backend::KEYS
            .iter()
            .any(|it| it.name == key && it.group == backend::TLS)
}

/// Loads a file with one backend over TLS that has these keys.
///
/// `ca.pem`, `front.pem` and `front.key` are valid; `other.key` belongs to another
/// certificate.
fn over_tls(group: &str, keys: &str) -> Result<Arc<Trust>, String> {
    let made = || generate_simple_self_signed(["front".to_owned()]).unwrap();
    let (ours, other) = (made(), made());
    let read = |path: &Path| match path.to_str() {
        Some("/etc/ca.pem" | "/etc/front.pem") => Ok(ours.cert.pem().into_bytes()),
        Some("/etc/front.key") => Ok(ours.signing_key.serialize_pem().into_bytes()),
        Some("/etc/other.key") => Ok(other.signing_key.serialize_pem().into_bytes()),
        Some("/etc/locked.key") => Ok(b"-----BEGIN ENCRYPTED PRIVATE KEY-----\n-----END".to_vec()),
        Some("/etc/empty.pem") => Ok(Vec::new()),
        _ => Err("cannot be read: it is not there".to_owned()),
    };
    let surroundings = Surroundings {
        base: Path::new("/etc"),
        checks_files: true,
        read_pem: Some(&read),
        ..Surroundings::none()
    };
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\n\
         [upstream.app]\n{group}\n[[upstream.app.backend]]\nurl = \"https://app.test:1\"\n{keys}\n"
    );
    let loaded = parse_within("x.toml", &text, &surroundings).map_err(|report| {
        let said = report.to_string();
        said.lines().next().unwrap_or_default().to_owned()
    })?;
    let backend = &loaded.config.upstreams[0].backends[0];
    assert_eq!(backend.name, "https://app.test:1");
    Ok(Arc::clone(backend.tls.as_ref().expect("TLS")))
}

#[test]
fn what_a_backend_is_trusted_by_comes_from_its_keys_and_files() {
    let shown = |group: &str, keys: &str| format!("{:?}", over_tls(group, keys).unwrap());
    let plain = shown("", "ca_file = \"ca.pem\"");
    assert!(
        plain.contains("server_name: \"app.test\", verify: true"),
        "{plain}"
    );
    assert!(plain.contains("identity: None"), "{plain}");
    assert!(
        over_tls("", "").unwrap().verifies(),
        "by what the system trusts"
    );
    let named = shown("server_name = \"x.test\"", "ca_file = \"ca.pem\"");
    assert!(named.contains("server_name: \"x.test\""), "{named}");
    let own = shown(
        "server_name = \"x.test\"",
        "server_name = \"::1\"\nverify = \"off\"",
    );
    assert!(own.contains("server_name: \"::1\", verify: false"), "{own}");
    let pair = "client_certificate = \"front.pem\"\nclient_key = \"front.key\"";
    let mutual = shown(pair, "ca_file = \"ca.pem\"");
    assert!(
        mutual.contains("identity: Some(ClientIdentity(..))"),
        "{mutual}"
    );
}

#[test]
fn files_of_trust_at_fault_are_named() {
    for (keys, said) in [
        ("ca_file = \"gone.pem\"", "/etc/gone.pem cannot be read"),
        (
            "ca_file = \"empty.pem\"",
            "/etc/empty.pem has no CERTIFICATE block",
        ),
        ("client_certificate = \"front.pem\"", "need each other"),
        (
            "client_certificate = \"front.pem\"\nclient_key = \"other.key\"",
            "the key /etc/other.key is not that of the certificate",
        ),
        (
            "client_certificate = \"front.pem\"\nclient_key = \"locked.key\"",
            "the key /etc/locked.key is encrypted",
        ),
        (
            "client_certificate = \"empty.pem\"\nclient_key = \"front.key\"",
            "/etc/empty.pem has no CERTIFICATE block",
        ),
        ("server_name = \"a..b\"", "`server_name`"),
    ] {
        let error = over_tls("", keys).unwrap_err();
        assert!(error.contains(said), "{keys}: {error}");
    }
}

#[test]
fn a_key_of_an_upstream_is_the_default_of_its_backends() {
    let group = "connections_max = 7\nsecret = \"group\"\nping_after_idle = \"off\"";
    let text = file("[upstream.NAME]", group).replace(
        "url = \"ajp://127.0.0.1:8009\"",
        "url = \"ajp://127.0.0.1:8009\"\n[[upstream.NAME.backend]]\nconnections_max = 9\n\
         ping_after_idle = \"2s\"\nsecret_file = \"own\"\nurl = \"ajp://127.0.0.1:8019\"",
    );
    let secret = |path: &Path| Ok(path.display().to_string());
    let surroundings = Surroundings {
        base: Path::new("/etc"),
        read_secret: &secret,
        ..Surroundings::none()
    };
    let loaded = parse_within("x.toml", &text, &surroundings).unwrap();
    let [first, second, _] = &loaded
        .config
        .upstreams
        .iter()
        .find(|it| it.name == "NAME")
        .unwrap()
        .backends[..]
    else {
        panic!("two backends");
    };
    let seen = |backend: &BackendConfig| {
        let secret = backend.ajp.secret.clone();
        (
            backend.connections_max,
            secret,
            backend.ajp.ping_after_idle.map(|it| it.as_secs()),
        )
    };
    assert_eq!(
        seen(first),
        (7, Some(Secret::new("group".to_owned())), None)
    );
    assert_eq!(
        seen(second),
        (9, Some(Secret::new("/etc/own".to_owned())), Some(2))
    );
}

#[test]
fn each_key_is_described_once() {
    let mut seen = BTreeSet::new();
    for section in SECTIONS {
        for key in section.keys().filter(|key| own(section, *key)) {
            assert!(
                seen.insert((section.header, key.name)),
                "{} twice",
                key.name
            );
            let doc = key;
            for text in [doc.effect, doc.extremes] {
                assert!(
                    text.len() > 20 && text.ends_with('.'),
                    "{}: {text}",
                    key.name
                );
                assert!(!text.contains("  "), "{}: two spaces", key.name);
            }
            for text in [key.kind.describe(), doc.elsewhere.to_owned()] {
                assert!(
                    !text.ends_with('.') && !text.contains("  "),
                    "{}: {text}",
                    key.name
                );
            }
        }
    }
}

#[test]
fn reads_secrets_from_regular_files_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ajp.secret");
    for (text, expected) in [
        ("hunter2\n", Ok("hunter2")),
        ("hunter2\r\n", Ok("hunter2")),
        ("two words", Ok("two words")),
        ("", Err("is empty")),
        ("\n", Err("is empty")),
        ("two\nlines\n", Err("control character")),
    ] {
        std::fs::write(&path, text).unwrap();
        match (secret_or_reason(&path), expected) {
            (Ok(secret), Ok(expected)) => assert_eq!(secret, expected),
            (Err(reason), Err(expected)) => assert!(reason.contains(expected), "{reason}"),
            (got, expected) => panic!("{text:?}: {got:?}, expected {expected:?}"),
        }
    }
    std::fs::write(&path, "x".repeat(5000)).unwrap();
    assert!(secret_or_reason(&path).unwrap_err().contains("larger than"));
    for other in [directory.path(), Path::new("/dev/zero")] {
        assert!(
            secret_or_reason(other)
                .unwrap_err()
                .contains("not a regular file")
        );
    }
    assert!(
        secret_or_reason(&directory.path().join("none"))
            .unwrap_err()
            .contains("cannot be read")
    );
}

#[test]
fn routes_know_their_lines() {
    let text = file("[[route]]", "path = \"/a\"") + "\n[[route]]\npath = \"/b\"\nstatus = 404\n";
    let loaded = parse("dir/x.toml", &text).expect("no fault");
    let headers = text
        .lines()
        .zip(1..)
        .filter(|(line, _)| *line == "[[route]]");
    let expected: Vec<String> = headers
        .map(|(_, line)| format!("dir/x.toml:{line}"))
        .collect();
    let routes = loaded.config.routes.iter();
    let places: Vec<String> = routes
        .filter_map(|it| Some(it.place.as_ref()?.to_string()))
        .collect();
    assert_eq!(places, expected);
}

#[test]
fn pages_are_read_with_the_file_and_a_missing_one_is_no_fault() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(directory.path().join(name), bytes);
    write("404.html", "not h\u{e9}re".as_bytes()).unwrap();
    write("latin.html", b"not h\xe9re").unwrap();
    write("large.txt", &vec![b'x'; (1 << 20) + 1]).unwrap();
    write("5xx.json", b"{}").unwrap();
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[upstream.app.backend]]\n\
                url = \"http://127.0.0.1:1\"\n[[route]]\nupstream = \"app\"\n[route.error_pages]\n\
                503 = \"latin.html\"\nreplace_errors = []\n\
                [error_pages]\n4xx = \"gone.html\"\n404 = \"404.html\"\n5xx = \"5xx.json\"\n\
                maintenance_page = \"large.txt\"\nreplace_errors = 500\n";
    write("catamaran.toml", text.as_bytes()).unwrap();
    let loaded = load(&directory.path().join("catamaran.toml")).unwrap();
    let said = loaded.report.to_string();
    assert!(
        said.contains("gone.html, which cannot be read: No such file"),
        "{said}"
    );
    assert!(
        said.contains("large.txt, which cannot be read: it is larger than 1048576"),
        "{said}"
    );
    assert_eq!(loaded.report.findings().len(), 2, "{said}");
    let pages = loaded.config.error_pages.as_ref().unwrap();
    let seen = |pages: &catamaran_proxy::config::ErrorPages| {
        let mut seen = Vec::new();
        for (statuses, page) in &pages.pages {
            seen.push((*statuses.start(), page.content_type, page.body.is_some()));
        }
        seen
    };
    let html = "text/html; charset=utf-8";
    let general = [
        (404, html, true),
        (400, html, false),
        (500, "application/json", true),
    ];
    assert_eq!(seen(pages), general);
    assert_eq!(pages.replaced, [500..=599]);
    assert!(
        pages
            .maintenance
            .as_ref()
            .is_some_and(|page| page.body.is_none())
    );
    // What the route does not say holds in general.
    let rules = loaded.config.routes[0].rules.as_ref().unwrap();
    let of_route = rules.error_pages.as_ref().unwrap();
    assert_eq!(seen(of_route)[0], (503, "text/html", true));
    assert_eq!(seen(of_route)[1..], general);
    assert!(of_route.replaced.is_empty() && of_route.maintenance.is_some());
}

#[test]
fn a_pod_knows_its_api_server() {
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\n\
                [upstream.app.sticky]\n[upstream.app.members]\nfrom = \"kubernetes\"\n\
                service = \"shop/app\"\nport = \"ajp\"\n";
    let source_with = |address: Option<&'static str>| {
        let variables = |name: &str| match name {
            "KUBERNETES_SERVICE_HOST" => address.map(Into::into),
            "KUBERNETES_SERVICE_PORT" => Some("443".into()),
            _ => None,
        };
        let surroundings = Surroundings {
            variables: &variables,
            ..Surroundings::none()
        };
        let loaded = parse_within("x.toml", text, &surroundings).expect("no fault");
        let members = loaded.config.upstreams[0].members.clone();
        let members = members.expect("a source of members");
        assert_eq!(
            members.leave,
            std::time::Duration::ZERO,
            "not that of sessions"
        );
        match &members.source {
            MemberSource::Kubernetes(source) => source.clone(),
            other => panic!("{other:?}"),
        }
    };
    for (address, expected) in [
        ("10.96.0.1", "https://10.96.0.1:443"),
        ("fd00::1", "https://[fd00::1]:443"),
    ] {
        let server = source_with(Some(address)).api.server;
        assert_eq!(server.map(|url| url.to_string()).as_deref(), Some(expected));
    }
    let source = source_with(None);
    assert_eq!(source.api.server, None);
    assert_eq!(
        (&source.namespace[..], &source.service[..], source.port),
        ("shop", "app", Some(ServicePort::Name("ajp".to_owned())))
    );
}

/// The keys of members that are found in DNS.
const IN_DNS: &str =
    "from = \"dns\"\nname = \"members.internal\"\nprotocol = \"http\"\nport = 8010";

/// The keys of members that are pods.
const IN_KUBERNETES: &str = "from = \"kubernetes\"\nservice = \"others/app\"";

/// What a sign-on needs, of each kind.
const AUTH_SERVICE: &str = "upstream = \"NAME\"\npath = \"/auth\"";
const AUTH_USERS: &str = "users_file = \"users\"";

/// The tables of a file, each with what it needs.
const TABLES: &[(&str, &str)] = &[
    ("[server]", ""),
    ("[[listen]]", "address = \"127.0.0.1:8080\""),
    ("[tls.NAME]", ""),
    (
        "[[tls.NAME.certificate]]",
        "chain = \"/etc/ssl/www/fullchain.pem\"\nkey = \"/etc/ssl/www/privkey.pem\"",
    ),
    (
        "[tls.NAME.acme]",
        "names = [\"www.example.org\", \"example.org\"]\nterms_agreed = true",
    ),
    ("[upstream.NAME]", ""),
    ("[upstream.NAME.probe]", "kind = \"request\""),
    ("[upstream.NAME.sticky]", "set_cookie = \"OWN\""),
    ("[upstream.NAME.attributes]", ""),
    ("[upstream.NAME.members]", IN_DNS),
    (
        "[[upstream.NAME.backend]]",
        "url = \"ajp://127.0.0.1:8009\"",
    ),
    (
        "[mcmp]",
        "listen = \"10.0.0.1:6666\"\npeers = \"10.0.0.0/24\"",
    ),
    ("[kubernetes]", ""),
    ("[cache.NAME]", ""),
    ("[cache.pages]", ""),
    ("[limit.NAME]", "rate = \"1/s\""),
    ("[auth.NAME]", AUTH_SERVICE),
    ("[[route]]", "upstream = \"NAME\"\nrewrite = \"/inner\""),
    ("[server.response_headers]", ""),
    ("[route.unless]", "cookie = \"operator=1\""),
    ("[route.request_headers]", ""),
    ("[route.response_headers]", ""),
    (
        "[route.cors]",
        "origins = [\"https://app.example.org\", \"https://*.example.net\"]",
    ),
    ("[[route.cookie]]", "flags = \"Secure\""),
    (
        "[[route.cookie_domain]]",
        "from = \"app.internal\"\nto = \"/shop/\"",
    ),
    ("[[route.cookie_path]]", "from = \"/app/\"\nto = \"/shop/\""),
    (
        "[[route.reverse_url]]",
        "prefix = \"http://b/\"\nto = \"/shop/\"",
    ),
    ("[route.error_pages]", ""),
    ("[error_pages]", ""),
    (
        "[admin]",
        "address = [\"unix:/run/catamaran/admin.sock\", \"127.0.0.1:9090\"]",
    ),
    ("[log]", ""),
    ("[trace]", "address = \"http://127.0.0.1:4318\""),
];
