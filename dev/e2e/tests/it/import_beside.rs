//! What `catamaran import` writes, beside the servers whose files it reads: generated configurations of httpd with
//! mod_jk, of httpd with mod_proxy and of nginx are served by these and, converted, by the front. Both are asked for
//! the same paths, and must send them to the same backend or to none.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use catamaran_e2e::Front;
use catamaran_testkit::{Address, Deadline, HttpClient, Peer, Process, Script, address};
use tempfile::TempDir;

use crate::beside_mod_jk::container;
use crate::import::{import, text};

/// Whose configurations are generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    ModJk,
    ModProxy,
    Nginx,
}

/// What became of the requests.
#[derive(Debug, Default)]
struct Tally {
    asked: usize,
    served: usize,
    closed: usize,
    decided: usize,
}

/// A backend that answers every request on a connection with its name.
fn backend(source: Source, name: &str) -> Script {
    if source != Source::Nginx {
        return container(name);
    }
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{name}");
    Script::new()
        .expect_until(b"\r\n\r\n")
        .send(answer.as_bytes())
        .repeat(1000)
}

/// Who serves a path, or the status if that is another than 200, with where it leads.
fn ask(client: &mut Option<HttpClient>, front: SocketAddr, (host, path): (&str, &str)) -> String {
    let mut open = match client.take() {
        Some(open) => open,
        None => HttpClient::connect(front).unwrap(),
    };
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let answer = open.ask(head).unwrap();
    if answer.header("connection") != Some("close") {
        *client = Some(open);
    }
    let location = answer.header("location").unwrap_or_default().to_owned();
    match answer.status {
        200 => answer.text(),
        status if location.contains(MOVED) => format!("{status} {location}"),
        status => status.to_string(),
    }
}

/// The source's server with the configuration that the converted one is made of.
fn server(source: Source, directory: TempDir, address: SocketAddr) -> Process {
    let file = directory.path().join("source.conf");
    let mut command = match source {
        Source::Nginx => Command::new("/usr/sbin/nginx"),
        Source::ModJk | Source::ModProxy => Command::new("/usr/sbin/apache2"),
    };
    match source {
        Source::Nginx => command.args(["-e", "stderr", "-c"]).arg(file),
        // The connection of the comparison stays open, however long a request to the front takes.
        Source::ModJk | Source::ModProxy => command
            .args(["-DFOREGROUND", "-c", "KeepAliveTimeout 600", "-f"])
            .arg(file),
    };
    started(&mut command, directory, address)
}

/// Runs a server in a directory until it listens.
pub(crate) fn started(command: &mut Command, directory: TempDir, address: SocketAddr) -> Process {
    let mut process = Process::spawn_in(command, directory).unwrap();
    let listens = Address::from(address);
    let poll = Deadline::default().poll("the source's server", || {
        let ended = !matches!(process.try_wait(), Ok(None));
        let connected = listens.connect(Deadline::DEFAULT).is_ok();
        (connected || ended).then_some(connected)
    });
    assert!(poll.unwrap(), "it did not start: {}", process.stderr());
    process
}

fn one<'t>(random: &mut fastrand::Rng, of: &[&'t str]) -> &'t str {
    of[random.usize(..of.len())]
}

fn path(random: &mut fastrand::Rng) -> String {
    let count = random.usize(1..4);
    let segments = (0..count).map(|_| format!("/{}", one(random, SEGMENTS)));
    segments.collect::<Vec<_>>().concat()
}

/// A guard of httpd, in each of its forms.
fn guard(random: &mut fastrand::Rng, base: &str) -> String {
    let section = |inner: &str| format!("<Location {base}>\n{inner}\n</Location>");
    match random.usize(..12) {
        0 => section("Require all denied"),
        1 => section("Require all granted"),
        2 => section("Require ip 192.0.2.1"),
        3 => section("Order deny,allow\nDeny from all"),
        4 => section("Order allow,deny\nAllow from all\nDeny from 127.0.0.1"),
        5 => section("<RequireAll>\nRequire all granted\nRequire not ip 127.0.0.1\n</RequireAll>"),
        6 => section("SSLRequireSSL"),
        7 => section("<Limit GET>\nRequire all denied\n</Limit>"),
        8 => section("Redirect 403"),
        9 => format!("<LocationMatch \"^{base}/.*\\.jsp$\">\nRequire all denied\n</LocationMatch>"),
        10 => format!("<Location \"{base}*\">\nRequire all denied\n</Location>"),
        // Of files, which says nothing of what is passed on.
        _ => "<Files \"*.jsp\">\nRequire all denied\n</Files>".to_owned(),
    }
}

fn of_mod_jk(random: &mut fastrand::Rng) -> String {
    let (base, worker) = (path(random), one(random, &NODES));
    match random.usize(..14) {
        0 => format!("JkMount /* {worker}"),
        1 | 2 => format!("JkMount {base}/* {worker}"),
        3 => format!("JkMount {base}|/* {worker}"),
        4 => format!("JkMount {base} {worker}"),
        5 => format!("JkMount {base}/*.jsp {worker}"),
        6 => format!("JkMount /*.do {worker}"),
        7 => format!("JkUnMount {base}/* {worker}"),
        8 => format!("JkUnMount /*.jsp {}", one(random, &["*", worker])),
        9 => format!("JkMount {base}* {worker}"),
        10 => format!("<Location {base}>\nJkMount {worker}\n</Location>"),
        11 => format!("SetEnvIf REQUEST_URI \"^{base}/\" no-jk"),
        _ => guard(random, &base),
    }
}

fn of_mod_proxy(random: &mut fastrand::Rng, nodes: &[SocketAddr]) -> String {
    let base = path(random);
    let url = format!("ajp://{}", nodes[random.usize(..nodes.len())]);
    match random.usize(..22) {
        18..=21 => condition_of_httpd(random, &base),
        0..=2 => format!("ProxyPass {base} {url}{base}"),
        3 => format!("ProxyPass / {url}/"),
        4 => format!("ProxyPass {base} !"),
        5 => format!("ProxyPass {base}/ {url}{base}/"),
        6 => format!("ProxyPassMatch \"^{base}/(.*\\.jsp)$\" {url}{base}/$1"),
        7 => format!("ProxyPassMatch \"\\.do$\" {url}"),
        8 => format!("ProxyPassMatch \"^{base}.*x$\" !"),
        9 => format!("ProxyPass {base} {url}/other"),
        10 => format!("<Location {base}>\nProxyPass {url}{base}\n</Location>"),
        11 => format!("Redirect 403 {base}"),
        12 => format!("RewriteEngine on\nRewriteRule \"^{base}/\" - [F]"),
        13 => format!("RewriteEngine on\nRewriteRule \"^{base}/x$\" - [L]"),
        14 => format!(
            "RewriteEngine on\nRewriteCond %{{REQUEST_METHOD}} ^TRACE [OR]\nRewriteCond %{{SERVER_PORT}} .\n\
             RewriteRule \"^{base}\" - [F]"
        ),
        15 => "<Proxy *>\nRequire ip 127.0.0.1\n</Proxy>".to_owned(),
        _ => guard(random, &base),
    }
}

/// A rule for some hosts.
fn condition_of_httpd(random: &mut fastrand::Rng, base: &str) -> String {
    let tests = [
        "%{HTTP_HOST} ^b\\.org(:[0-9]+)?$ [NC]",
        "%{HTTP_HOST} !^a(:[0-9]+)?$",
        "%{HTTP_HOST} ^www\\. [NC]",
        "%{HTTP_HOST} !^www\\.",
        "%{SERVER_NAME} =b.org",
        "%{HTTP_HOST} a.org",
    ];
    let first = one(random, &tests);
    let conditions = match random.usize(..4) {
        0 => format!("RewriteCond {first}\nRewriteCond {}", one(random, &tests)),
        1 => format!(
            "RewriteCond {first} [OR]\nRewriteCond {}",
            one(random, &tests)
        )
        .replace("] [OR]", ",OR]"),
        _ => format!("RewriteCond {first}"),
    };
    let rule = match random.usize(..4) {
        0 => format!("RewriteRule \"^{base}\" - [F]"),
        1 => format!("RewriteRule \"^{base}/(.*)$\" \"http://{MOVED}/x/$1\" [R=301,L]"),
        2 => format!("RewriteRule ^ \"http://{MOVED}%{{REQUEST_URI}}\" [R=302,L]"),
        _ => {
            return format!(
                "RewriteEngine on\nRewriteCond %{{HTTP_HOST}} ^www\\.([a-z.]+)\nRewriteRule ^ - [F]\n\
                 RewriteCond %{{HTTP_HOST}} ^b\\.(.+)$\nRewriteRule ^ \"http://{MOVED}.%1%{{REQUEST_URI}}\" [R,L]"
            );
        }
    };
    format!("RewriteEngine on\n{conditions}\n{rule}")
}

/// What a server of nginx answers some hosts before it chooses a location.
fn condition_of_nginx(random: &mut fastrand::Rng, base: &str) -> String {
    let test = one(
        random,
        &[
            "= b.org",
            "!= a",
            "~* ^www\\.",
            "!~ ^www\\.",
            "~ ^(a|b.org)$",
        ],
    );
    let answer = match random.usize(..3) {
        0 => "return 403;".to_owned(),
        1 => format!("return 301 http://{MOVED}$request_uri;"),
        _ => format!("rewrite ^{base}/(.*)$ http://{MOVED}/x/$1 permanent;"),
    };
    match random.usize(..4) {
        0 => format!("if ($host ~* ^www\\.(.+)$) {{ return 301 http://$1.{MOVED}/; }}"),
        _ => format!("if ($host {test}) {{ {answer} }}"),
    }
}

/// A location, or a directive of the server. Two locations of one text are an error of nginx.
fn of_nginx(random: &mut fastrand::Rng, nodes: &[SocketAddr], seen: &mut Vec<String>) -> String {
    let base = path(random);
    let url = format!("http://{}", nodes[random.usize(..nodes.len())]);
    if random.usize(..10) == 0 {
        return condition_of_nginx(random, &base);
    }
    let place = match random.usize(..14) {
        0 | 1 => base.clone(),
        2 | 3 => format!("{base}/"),
        4 => format!("= {base}"),
        5 => format!("^~ {base}"),
        6 => format!("^~ {base}/"),
        7 => "~ \\.jsp$".to_owned(),
        8 => format!("~ ^{base}/"),
        9 => "~* \\.do$".to_owned(),
        10 => format!("~ ^{base}/.*\\.do$"),
        11 => "/".to_owned(),
        12 => "~ /(x|admin)/".to_owned(),
        _ => format!("~ ^{base}/[a-x]+$"),
    };
    let key = place.replace("^~ ", "");
    if seen.contains(&key) {
        return String::new();
    }
    let is_prefix = !place.starts_with(['~', '=']);
    seen.push(key);
    let body = match random.usize(..15) {
        0..=5 => format!("proxy_pass {url};"),
        6 if is_prefix => format!("proxy_pass {url}/;"),
        7 => format!("proxy_pass {url}; deny all;"),
        8 => format!("proxy_pass {url}; allow 192.0.2.1; deny all;"),
        9 => format!("proxy_pass {url}; allow 127.0.0.1; deny all;"),
        10 => "return 403;".to_owned(),
        11 => format!("proxy_pass {url}; satisfy any; deny all;"),
        12 => format!("limit_except POST {{ deny all; }} proxy_pass {url};"),
        13 => "internal;".to_owned(),
        _ => format!("proxy_pass {url}; deny 127.0.0.1;"),
    };
    format!("location {place} {{ {body} }}")
}

fn directives(source: Source, random: &mut fastrand::Rng, nodes: &[SocketAddr]) -> String {
    let mut seen = Vec::new();
    let lines = (0..random.usize(2..9)).map(|_| match source {
        Source::ModJk => of_mod_jk(random),
        Source::ModProxy => of_mod_proxy(random, nodes),
        Source::Nginx => of_nginx(random, nodes, &mut seen),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn workers(nodes: &[SocketAddr]) -> String {
    let mut text = format!("worker.list={}\n", NODES.join(","));
    for (name, node) in NODES.iter().zip(nodes) {
        text += &format!(
            "worker.{name}.type=ajp13\nworker.{name}.host={}\nworker.{name}.port={}\n",
            node.ip(),
            node.port()
        );
    }
    text
}

fn configuration(
    source: Source,
    directory: &Path,
    address: SocketAddr,
    directives: &str,
) -> String {
    let place = directory.display();
    if source == Source::Nginx {
        return format!(
            "daemon off;\nmaster_process off;\npid {place}/nginx.pid;\nevents {{ }}\nhttp {{\naccess_log off;\n\
             client_body_temp_path {place}/1;\nproxy_temp_path {place}/2;\nfastcgi_temp_path {place}/3;\n\
             uwsgi_temp_path {place}/4;\nscgi_temp_path {place}/5;\n\
             server {{\nlisten {address};\nserver_name {};\n{directives}\n}}\n}}\n",
            HOSTS.join(" ")
        );
    }
    let modules = [
        "mpm_event",
        "authz_core",
        "authz_host",
        "access_compat",
        "alias",
        "setenvif",
        "rewrite",
        "socache_shmcb",
        "ssl",
        "proxy",
        "proxy_ajp",
        "jk",
    ];
    let directives = match source {
        Source::ModProxy => format!(
            "<VirtualHost *:{}>\nServerName {}\nServerAlias {}\n{directives}\n</VirtualHost>",
            address.port(),
            HOSTS[0],
            HOSTS[1..].join(" ")
        ),
        _ => directives.to_owned(),
    };
    let modules =
        modules.map(|it| format!("LoadModule {it}_module /usr/lib/apache2/modules/mod_{it}.so\n"));
    format!(
        "ServerRoot {place}\nServerName localhost\nListen {address}\nPidFile httpd.pid\n\
         ErrorLog /dev/stderr\nMutex file:{place}\nDefaultRuntimeDir {place}\n{}\
         JkWorkersFile {place}/workers.properties\nJkShmFile {place}/shm\nJkLogFile /dev/null\n\
         ThreadsPerChild 5\nStartServers 1\nMaxRequestWorkers 5\nServerLimit 1\n{directives}\n",
        modules.concat()
    )
}

/// With `IMPORT_CONFIGURATIONS=200` the ten thousand requests of each kind that releases are tried with.
fn how_many() -> u64 {
    let said = env::var_os("IMPORT_CONFIGURATIONS").and_then(|it| it.into_string().ok());
    said.and_then(|it| it.parse().ok()).unwrap_or(8)
}

/// Serves one configuration by both, and compares them.
fn compare(source: Source, seed: u64, nodes: &[SocketAddr], tally: &mut Tally) {
    let mut random = fastrand::Rng::with_seed(seed);
    let directives = directives(source, &mut random, nodes);
    let (directory, address) = (tempfile::tempdir().unwrap(), address::unused().unwrap());
    let place = directory.path().to_owned();
    fs::write(place.join("workers.properties"), workers(nodes)).unwrap();
    let conf = configuration(source, &place, address, &directives);
    fs::write(place.join("source.conf"), conf).unwrap();
    let arguments = [
        "--listen",
        "127.0.0.1:0",
        "--out",
        "out.toml",
        "source.conf",
    ];
    let said = text(&import(&place, &arguments).stderr);
    let written = fs::read_to_string(place.join("out.toml")).unwrap_or_default();
    let _server = server(source, directory, address);
    let front = Front::with_file(&place.join("out.toml"), &[])
        .unwrap_or_else(|error| panic!("{directives}\n{said}\n{written}\n{error}"));
    let (mut theirs, mut ours) = (None, None);
    for _ in 0..50 {
        let ends = ["", "", "/", ".jsp", ".do", "x", "/x.jsp", "/x"];
        let path = path(&mut random) + one(&mut random, &ends);
        let host = match source {
            Source::ModJk => HOSTS[0],
            _ => one(&mut random, &HOSTS),
        };
        let [there, here] = [
            ask(&mut theirs, address, (host, &path)),
            ask(&mut ours, front.address(), (host, &path)),
        ];
        let is_served = NODES.contains(&there.as_str());
        tally.asked += 1;
        tally.served += usize::from(is_served);
        tally.closed += usize::from(!is_served);
        let noted = said.contains(&format!(
            "does not match {path} in the source; here it does"
        ));
        // What patterns cannot say is closed, and a risk says so.
        let is_said = DECIDED.iter().any(|it| said.contains(it));
        let is_decided = is_served && here == "403" && is_said;
        tally.decided += usize::from(is_decided);
        let is_moved = there.contains(MOVED);
        let fits = if is_served || is_moved {
            there == here || is_decided || is_moved && here == "403" && is_said
        } else {
            !NODES.contains(&here.as_str())
        };
        assert!(
            fits || noted,
            "seed {seed}, {host}{path}: the source {there}, here {here}\n{directives}\n{said}\n{written}"
        );
    }
}

fn all_compare(source: Source) {
    let nodes: Vec<SocketAddr> = NODES.iter().map(|_| address::unused().unwrap()).collect();
    let start = |(name, node): (&&str, &SocketAddr)| Peer::start_at(*node, backend(source, name));
    let _peers: Vec<Peer> = NODES.iter().zip(&nodes).map(start).collect();
    let mut tally = Tally::default();
    for seed in 0..how_many() {
        compare(source, seed, &nodes, &mut tally);
    }
    println!("{source:?}: {tally:?}");
    assert!(tally.served > 0 && tally.closed > 0);
    assert!(2 * tally.decided <= tally.served, "{tally:?}");
}

#[test]
fn mounts_of_mod_jk_are_served_as_httpd_serves_them() {
    all_compare(Source::ModJk);
}

#[test]
fn rules_of_mod_proxy_are_served_as_httpd_serves_them() {
    all_compare(Source::ModProxy);
}

#[test]
fn locations_of_nginx_are_served_as_nginx_serves_them() {
    all_compare(Source::Nginx);
}

/// How the importer says that it closed what the source serves.
const DECIDED: [&str; 3] = [
    "are answered 403",
    "here status 403",
    "here those are closed",
];

const NODES: [&str; 3] = ["a", "b", "c"];

const HOSTS: [&str; 3] = ["a", "b.org", "www.a.org"];

/// Where redirects of hosts lead.
const MOVED: &str = "moved.invalid";

const SEGMENTS: &[&str] = &["app", "apple", "x", "admin", "static"];
