//! Makes random configurations. The vocabulary is small, so that requests often meet what the configuration names.

mod httpd;
mod nginx;

use fastrand::Rng;

use crate::stage::Kind;
use crate::tree::Node;

/// A random configuration as a tree.
pub(crate) fn tree(kind: Kind, random: &mut Rng) -> Vec<Node> {
    let mut nodes = match kind {
        Kind::Httpd => httpd::tree(random),
        Kind::Nginx => nginx::tree(random),
    };
    nodes.extend(program(random));
    nodes
}

/// A random one of these texts.
fn one<'t>(random: &mut Rng, texts: &[&'t str]) -> &'t str {
    texts[random.usize(..texts.len())]
}

/// A file of the document root that many servers would run as a program; mostly `None`.
fn program(random: &mut Rng) -> Option<Node> {
    let name = one(random, &["site/x.php", "site/up/x.php", "site/admin/x.cgi"]);
    (random.usize(..10) == 0).then(|| Node::File {
        name: name.to_owned(),
        included_by: String::new(),
        inner: vec![Node::Line(format!("FILE {name}"))],
    })
}

/// A random size of a configuration, from 0 to 3; most are small.
fn one_of_sizes(random: &mut Rng) -> usize {
    let small = random.usize(..3).min(random.usize(..5));
    let is_large = random.usize(..8) == 7;
    if is_large { 3 } else { small }
}

/// A template of the grammar with its placeholders filled in: `<path>`, `<regex>` and so on.
fn filled(random: &mut Rng, template: &str) -> String {
    let mut text = template.to_owned();
    for (name, words) in WORDS {
        while let Some(at) = text.find(name) {
            text.replace_range(at..at + name.len(), one(random, words));
        }
    }
    text
}

/// The lines of a random template, in which ` | ` separates lines.
fn lines(random: &mut Rng, templates: &[&str]) -> Vec<Node> {
    let template = one(random, templates);
    let text = filled(random, template);
    let lines = text.split(" | ");
    lines.map(|it| Node::Line(it.to_owned())).collect()
}

fn section(open: String, inner: Vec<Node>, close: &'static str) -> Node {
    Node::Section(open, inner, close)
}

/// Paths of files, of directories, and of nothing that exists.
pub(crate) const PATHS: &[&str] = &[
    "/",
    "/a",
    "/a.html",
    "/admin",
    "/admin/",
    "/admin/secret.txt",
    "/app",
    "/app/",
    "/app/admin",
    "/app/admin/x.txt",
    "/index.html",
    "/other/",
    "/other/secret.txt",
    "/shop",
    "/shop/",
    "/shop/1",
    "/up/",
    "/up/x.html",
    "/x.php",
    "/.hidden",
    "/.well-known/x",
];

/// The values of Host that requests have.
pub(crate) const HOSTS: &[&str] = &["a.org", "www.a.org", "b.org", "x.c.org"];

const REGEXES: &[&str] = &[
    "^/admin",
    "^/admin/",
    "^/admin$",
    "^/admin(/|$)",
    "^/admin/?$",
    "^/(admin|up)/",
    "^/(?!admin)",
    "^/ADMIN",
    "(?i)^/ADMIN",
    "/admin",
    "admin",
    "secret",
    "\\.php$",
    "\\.(txt|html)$",
    "\\.(txt|php)(/|$)",
    "\\.txt",
    "/\\.",
    "^/\\.",
    "^/shop/[0-9]+$",
    "^/shop/(?<id>[^/]+)$",
    "^/shop/\\d$",
    "^/app/(.*)$",
    "^/app/.*\\.txt$",
    "^/[a-z]+/$",
    "^/[^/]+$",
    "^/$",
    "^/a",
    ".",
    "/up/.*\\.html$",
    "\\x2ehtml$",
    "^/app/[[:alpha:]]+/",
    "x(?=\\.)",
    "^/((?!app).)*$",
];

/// Expressions about paths that the front matches in another form than other servers: with parameters, several
/// slashes or escaped slashes.
const ODD: &[&str] = &[
    ";",
    ";x",
    "^/admin;",
    "^/app/[^;]*$",
    "^/[^/;]+$",
    "//",
    "^//",
    "^/app//",
    "^/+admin",
    "%2[Ff]",
];

/// The placeholders of templates, each with its values.
const WORDS: &[(&str, &[&str])] = &[
    ("<path>", PATHS),
    ("<regex>", REGEXES),
    ("<odd>", ODD),
    (
        "<odd path>",
        &["/admin;x", "/app/;x", "//admin", "/app//admin", "/shop%2F1"],
    ),
    ("<host>", HOSTS),
    (
        "<hosts>",
        &[
            "a.org www.a.org",
            "b.org",
            "*.c.org",
            "www.a.org",
            "a.org",
            "x.c.org b.org",
        ],
    ),
    ("<backend>", &["{one}", "{two}"]),
    (
        "<client>",
        &[
            "127.0.0.1",
            "127.0.0.2",
            "127.0.0.0/30",
            "127.0.0.2/31",
            "192.0.2.66",
            "192.0.2.0/24",
            "127.0.0.0/8",
        ],
    ),
    (
        "<method>",
        &["GET", "POST", "PUT", "DELETE", "HEAD", "PROPFIND"],
    ),
    (
        "<file>",
        &[
            "*.txt",
            "secret*",
            "*.php",
            ".*",
            "x.html",
            "index.html",
            "*.??m*",
        ],
    ),
    (
        "<folder>",
        &[
            "{place}/site",
            "{place}/site/",
            "{place}/other",
            "{place}/other/",
        ],
    ),
    (
        "<below>",
        &[
            "",
            "/",
            "/admin",
            "/admin/",
            "/app",
            "/up",
            "/shop",
            "/app/admin",
            "/*",
        ],
    ),
];
