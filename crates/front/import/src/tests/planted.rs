//! Plants every directive of the tables that may matter into a place that is served, and asks that the place is not
//! plainly open then, unless a reader says that it converted the directive.

use std::collections::BTreeSet;

use catamaran_config::{Nature, foreign_answer, foreign_directives};

use super::*;

/// Whether a directive of this nature matters at a place of these directives.
fn matters(server: &str, name: &str, around: &str) -> bool {
    let answer = foreign_answer(server, name).unwrap();
    let (nature, is_needless) = (answer.nature.unwrap(), answer.is_needless);
    // TLS of clients is the listener's.
    if name.starts_with("ssl_") || name.starts_with("SSL") && !name.starts_with("SSLProxy") {
        return false;
    }
    let forwards = around
        .to_ascii_lowercase()
        .replace('_', "")
        .contains("proxypass");
    match nature {
        Nature::Access | Nature::Content { of_files: false } => true,
        Nature::Content { of_files: true } => !forwards,
        Nature::Identity => forwards,
        Nature::Transport => forwards && !is_needless,
        Nature::Harmless => false,
    }
}

/// The directives that leave the place open though no reader says that it converted them, each with its place.
fn open(server: &str, places: &[(&str, &str)], end: &str) -> BTreeSet<String> {
    let file = format!("/{server}.conf");
    let files = ["/srv/a.css", "/srv/in/a.css", "/srv/out/a.css"];
    let mut found = BTreeSet::new();
    for (at, (before, after)) in places.iter().enumerate() {
        for directive in foreign_directives(server) {
            if !matters(server, directive.name, &format!("{before}{after}")) {
                continue;
            }
            let name = directive.name.replace('*', "X");
            for words in ["x y", "on", "/x /y"] {
                let text = format!("{before}{name} {words}{end}{after}");
                let mut texts = vec![(file.as_str(), text.as_str())];
                texts.extend(files.map(|it| (it, "")));
                let import = with_directories(&texts, None);
                let fates = import.directives.iter().filter(|it| it.name == name);
                let is_mapped = fates.into_iter().any(|it| it.fate == Fate::Mapped);
                let is_place = |it: &&String| {
                    it.starts_with("path = \"/in") || it.starts_with("pattern = \"/in")
                };
                let routes = routes(&import);
                let own = routes.iter().find(is_place).or_else(|| routes.last());
                let is_open =
                    own.is_some_and(|it| it.contains("upstream =") || it.contains("files ="));
                let may_be = |it: &&(&str, bool, &str)| {
                    let is_start = |start: &str| name.starts_with(start) && server == "httpd";
                    let mut names = it.0.split(' ');
                    let is_it = names.any(|start| name == start || is_start(start));
                    is_it && (it.1 || !before.contains('<'))
                };
                if is_open && !is_mapped && !OPEN.iter().any(|it| may_be(&it)) {
                    found.insert(format!("{name} {words} in {at}"));
                }
            }
        }
    }
    found
}

#[test]
fn what_is_planted_into_nginx_closes_its_place_or_is_converted() {
    assert_eq!(open("nginx", NGINX, ";"), BTreeSet::new());
}

#[test]
fn what_is_planted_into_httpd_closes_its_place_or_is_converted() {
    assert_eq!(open("httpd", HTTPD, "\n"), BTreeSet::new());
}

/// The places of nginx into which a directive is planted: what stands around it.
const NGINX: &[(&str, &str)] = &[
    (
        "server { listen 80; proxy_set_header Host $host; location /in { proxy_pass https://t:443;\n",
        "\n} location /out { proxy_pass https://t:443; } }",
    ),
    (
        "include mime.types;\nserver { listen 80; location /in { root /srv;\n",
        "\n} location /out { root /srv; } }",
    ),
    (
        "server { listen 80; proxy_set_header Host $host;\n",
        "\nlocation /in { proxy_pass https://t:443; } }",
    ),
    (
        "include mime.types;\nserver { listen 80; root /srv;\n",
        "\nlocation /in { } }",
    ),
    (
        "http {\n",
        "\nserver { listen 80; proxy_set_header Host $host; location /in { proxy_pass https://t:443; } } }",
    ),
];

/// The places of httpd.
const HTTPD: &[(&str, &str)] = &[
    (
        "Listen 80\nProxyPreserveHost On\n<Location /in>\n",
        "\n</Location>\nProxyPass /in ajp://t:8009/in\nProxyPass /out ajp://t:8009/out\n",
    ),
    (
        "Listen 80\nDocumentRoot /srv\n<Directory /srv/in>\n",
        "\n</Directory>\n",
    ),
    (
        "Listen 80\nDocumentRoot /srv\n<Directory /srv>\n",
        "\n</Directory>\n",
    ),
    (
        "Listen 80\nDocumentRoot /srv\n<Location /in>\n",
        "\n</Location>\n",
    ),
    (
        "Listen 80\nProxyPreserveHost On\n",
        "\nProxyPass /in ajp://t:8009/in\n",
    ),
    ("Listen 80\nDocumentRoot /srv\n", "\n"),
    (
        "Listen 80\nProxyPreserveHost On\n<Proxy *>\n",
        "\n</Proxy>\nProxyPass /in ajp://t:8009/in\n",
    ),
];

/// What may stay open though no reader converted it, whether in sections as well, and why.
const OPEN: &[(&str, bool, &str)] = &[
    (
        "auth_basic_user_file auth_delay auth_request_set",
        true,
        "it guards nothing without `auth_basic` or `auth_request`",
    ),
    (
        "default_type",
        true,
        "files of kinds that are in no table are `application/octet-stream`",
    ),
    (
        "proxy_ssl_verify proxy_ssl_verify_depth proxy_ssl_trusted_certificate",
        true,
        "nothing is verified without `on`",
    ),
    (
        "real_ip_header real_ip_recursive set_real_ip_from RemoteIP RPAF",
        true,
        "it is read for all servers, and closes what admits networks",
    ),
    (
        "rewrite RewriteRule Redirect ProxyPass Alias ScriptAlias WSGIScriptAlias",
        true,
        "it is about paths of its own",
    ),
    ("ssl", true, "it is the listener's"),
    (
        "try_files FallbackResource",
        true,
        "what is missing is answered 404",
    ),
    (
        "Action AddHandler AddOutputFilter AddType",
        true,
        "it is about names of its own, which are closed",
    ),
    (
        "AllowOverride",
        true,
        "a directory with a `.htaccess` is not served",
    ),
    ("Auth", true, "it guards what has a `Require`"),
    (
        "Anonymous CAS Gssapi Kerb Krb LDAP Mellon OIDC Otp Shib",
        false,
        "it guards what has a `Require`",
    ),
    (
        "Directory Files",
        true,
        "it is no section without its brackets",
    ),
    (
        "Options",
        true,
        "only directories say something of links, and that is converted",
    ),
    ("RequestHeader", true, "the field is removed"),
    ("SSLProxyVerify", true, "the front always verifies"),
];
