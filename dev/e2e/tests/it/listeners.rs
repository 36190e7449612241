//! Listeners are a boundary: `listen` and `client_certificate` of routes, before every source of a response.

use std::fs;
use std::net::SocketAddr;

use catamaran_e2e::{App, Front, curl};
use catamaran_testkit::http2::{
    self as frames, END_HEADERS, Http2Client, Said, block, kind, opening,
};
use catamaran_testkit::tls::Authority;
use catamaran_testkit::{Address, Failure, HttpClient};
use serde_json::Value;
use tempfile::TempDir;

use crate::reload::{nth_line, reload, rewrite};
use crate::upgrade::upgrade;

/// A front with a listener for everybody in clear, one for everybody over TLS, one that asks for
/// certificates and one behind a TCP proxy. The first three speak both HTTP/1.1 and HTTP/2.
struct Site {
    front: Front,
    files: TempDir,
    open: SocketAddr,
    public: SocketAddr,
    inner: SocketAddr,
    proxied: SocketAddr,
    _app: App,
}

impl Site {
    fn start() -> Self {
        let app = App::start("epoll", &[]).unwrap();
        let files = tempfile::tempdir().unwrap();
        let authority = Authority::new("authority").unwrap();
        fs::write(files.path().join("ca.pem"), authority.pem()).unwrap();
        for (file, name) in [("a", "a.test"), ("client", "client")] {
            authority.issue(files.path(), file, &[name]).unwrap();
        }
        let mut config = LISTENERS.replace("{files}", files.path().to_str().unwrap());
        for (name, lines, _) in SOURCES {
            config +=
                &format!("[[route]]\npath = \"/listen/{name}\"\nlisten = \"inner\"\n{lines}\n");
            config += &format!(
                "[[route]]\npath = \"/certificate/{name}\"\nclient_certificate = \"required\"\n{lines}\n"
            );
        }
        let (ajp, http) = (app.ajp(), app.http());
        config += &format!(
            "[[upstream.ajp.backend]]\nurl = \"ajp://{ajp}\"\n\
             [[upstream.http.backend]]\nurl = \"http://{http}\"\n\
             [[upstream.stopped.backend]]\nurl = \"http://{http}\"\nactivation = \"stopped\"\n"
        );
        let mut front = Front::with_config(&config).unwrap();
        let [open, public, inner, proxied] = addresses(&mut front);
        Self {
            front,
            files,
            open,
            public,
            inner,
            proxied,
            _app: app,
        }
    }

    /// The statuses that curl gets of all sources below `/GUARD`.
    fn statuses(&self, guard: &str, caller: &Caller, options: &[&str]) -> Vec<u16> {
        let port = caller.listener.port();
        let scheme = if caller.listener == self.open {
            "http"
        } else {
            "https"
        };
        // curl 7.88 cannot use a connection of HTTP/2 in clear twice.
        let at_once = match (caller.http2, scheme) {
            (true, "http") => 1,
            _ => SOURCES.len(),
        };
        let urls = SOURCES.map(|(name, ..)| format!("{scheme}://a.test:{port}/{guard}/{name}"));
        let asked = urls
            .chunks(at_once)
            .flat_map(|urls| self.curl(urls, caller, options));
        asked.collect()
    }

    fn curl(&self, urls: &[String], caller: &Caller, options: &[&str]) -> Vec<u16> {
        let port = caller.listener.port();
        let mut command = curl();
        command.current_dir(self.files.path());
        command.args(["--cacert", "ca.pem", "--write-out", "%{http_code} "]);
        command.args(["--resolve", &format!("a.test:{port}:127.0.0.1")]);
        command.args(match (caller.http2, caller.listener == self.open) {
            (false, _) => &["--http1.1", "-HConnection: Upgrade", "-HUpgrade: websocket"][..],
            (true, true) => &["--http2-prior-knowledge"],
            (true, false) => &["--http2"],
        });
        if caller.certificate {
            command.args(["--cert", "client.pem", "--key", "client.key"]);
        }
        command.args(options);
        for url in urls {
            command.args(["--output", "/dev/null", url]);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        said.split_whitespace()
            .map(|it| it.parse().unwrap())
            .collect()
    }

    fn callers(&self) -> Vec<Caller> {
        let mut callers = Vec::new();
        for http2 in [false, true] {
            for (listener, certificate) in [
                (self.open, false),
                (self.public, false),
                (self.public, true),
                (self.inner, false),
                (self.inner, true),
            ] {
                callers.push(Caller {
                    listener,
                    certificate,
                    http2,
                });
            }
        }
        callers
    }

    fn explain(&self, query: &str) -> Value {
        let answer = self.front.ask_admin(&format!("/api/v1/explain?{query}"));
        serde_json::from_slice(&answer.unwrap().body).unwrap()
    }
}

#[derive(Debug)]
struct Caller {
    listener: SocketAddr,
    certificate: bool,
    http2: bool,
}

/// The addresses of all listeners, in the order of the file.
fn addresses<const COUNT: usize>(front: &mut Front) -> [SocketAddr; COUNT] {
    let mut found: Vec<SocketAddr> = Vec::new();
    let all = front.process().wait_for_line("the listeners", |line| {
        let (_, url) = line.split_once("listening on http")?;
        let (_, address) = url.split_once("://")?;
        let address = address.split_whitespace().next()?.parse().ok()?;
        if !found.contains(&address) {
            found.push(address);
        }
        <[SocketAddr; COUNT]>::try_from(found.clone()).ok()
    });
    all.unwrap()
}

/// What a client, or a proxy that is trusted, might say to be taken for another.
fn claims(inner: SocketAddr) -> Vec<String> {
    let port = inner.port();
    [
        "X-Forwarded-Proto: https".to_owned(),
        format!("X-Forwarded-Host: a.test:{port}"),
        format!("X-Forwarded-Port: {port}"),
        "X-Forwarded-For: 127.0.0.1".to_owned(),
        format!(
            "Forwarded: for=127.0.0.1;by=\"127.0.0.1:{port}\";proto=https;host=\"a.test:{port}\""
        ),
        "Client-Cert: :AAAA:".to_owned(),
        "X-SSL-Client-Cert: forged".to_owned(),
        "X-SSL-Client-Verify: SUCCESS".to_owned(),
        "X-Forwarded-Client-Cert: forged".to_owned(),
    ]
    .map(|it| format!("-H{it}"))
    .to_vec()
}

/// Each guard beside each source, over both protocols, with and without claims by a trusted proxy.
#[test]
fn each_source_is_behind_the_listener_and_the_certificate() {
    let site = Site::start();
    let served: Vec<u16> = SOURCES.iter().map(|(.., status)| *status).collect();
    let refused = |status: u16| vec![status; SOURCES.len()];
    let claims = claims(site.inner);
    let claims: Vec<&str> = claims.iter().map(String::as_str).collect();
    for caller in site.callers() {
        let is_inner = caller.listener == site.inner;
        for options in [&[][..], &claims] {
            let by_listener = site.statuses("listen", &caller, options);
            let expected = if is_inner {
                served.clone()
            } else {
                refused(404)
            };
            assert_eq!(by_listener, expected, "{caller:?} {options:?}");
            let by_certificate = site.statuses("certificate", &caller, options);
            let is_known = is_inner && caller.certificate;
            let expected = if is_known {
                served.clone()
            } else {
                refused(403)
            };
            assert_eq!(by_certificate, expected, "{caller:?} {options:?}");
        }
    }
    let front = &site.front;
    front
        .wait_for_log("reason=client:client-certificate-missing")
        .unwrap();
    let counted = front.ask_admin("/metrics").unwrap().text();
    let counted = counted
        .lines()
        .find(|it| it.contains("client-certificate-missing"));
    assert!(counted.is_some_and(|it| !it.ends_with(" 0")), "{counted:?}");
}

/// A tunnel over HTTP/2 is asked for by CONNECT.
#[test]
fn a_tunnel_over_http_2_is_behind_them_as_well() {
    let site = Site::start();
    for (path, expected) in [("/listen/tunnel", 501), ("/certificate/tunnel", 403)] {
        let fields = [
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            (":scheme", "http"),
            (":authority", "a.test"),
            (":path", path),
        ];
        let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let head = frames::frame(kind::HEADERS, END_HEADERS, 1, &block(&fields));
        let mut client = Http2Client::connect(site.open).unwrap();
        client.send(&[opening(65_535), head].concat(), usize::MAX);
        assert_eq!(
            client.next_said().unwrap(),
            Said::Status(1, expected),
            "{path}"
        );
    }
}

/// The listener is the one that accepted, whatever address a TCP proxy says that the client asked for.
#[test]
fn a_header_of_the_proxy_protocol_does_not_change_the_listener() {
    let site = Site::start();
    let port = site.inner.port();
    for (name, ..) in SOURCES {
        let mut client = HttpClient::connect(site.proxied).unwrap();
        let head = format!(
            "PROXY TCP4 192.0.2.1 127.0.0.1 40000 {port}\r\n\
             GET /listen/{name} HTTP/1.1\r\nHost: a.test:{port}\r\n\r\n"
        );
        assert_eq!(client.ask(head).unwrap().status, 404, "{name}");
    }
}

#[test]
fn an_explanation_knows_listeners_and_certificates() {
    let site = Site::start();
    for (name, _, served) in SOURCES {
        let status = |query: &str| {
            let explained = site.explain(query);
            if explained["outcome"] == "forward" {
                200
            } else {
                explained["answer"]["status"].as_u64().unwrap()
            }
        };
        let listen = |listener: &str| status(&format!("url=/listen/{name}&listen={listener}"));
        let served = u64::from(served);
        assert_eq!(
            [listen("open"), listen("public"), listen("inner")],
            [404, 404, served]
        );
        let url = format!("url=/certificate/{name}&listen=inner");
        let both = [
            status(&url),
            status(&format!("{url}&client_certificate=true")),
        ];
        assert_eq!(both, [403, served], "{name}");
    }
}

/// A file with two listeners, of which the one has the application and the other a status.
fn parted(order: [&str; 2]) -> String {
    let listeners = order.map(|name| {
        format!("[[listen]]\nname = \"{name}\"\naddress = \"unix:{{directory}}/{name}.sock\"\n")
    });
    listeners.concat()
        + "[[listen]]\naddress = \"127.0.0.1:0\"\n\
           [[route]]\nlisten = [\"inner\", \"127.0.0.1:0\"]\nupstream = \"app\"\n\
           [[route]]\nlisten = \"unix:{directory}/open.sock\"\nstatus = 403\n"
}

#[test]
fn the_boundary_holds_through_reloads_and_upgrades() {
    let app = App::start("epoll", &[]).unwrap();
    let upstream = format!("[[upstream.app.backend]]\nurl = \"ajp://{}\"\n", app.ajp());
    let mut front = Front::with_config(&(parted(["open", "inner"]) + &upstream)).unwrap();
    let directory = front.directory().to_owned();
    let at = |name: &str| Address::from(directory.join(format!("{name}.sock")));
    let connect = |name: &str| HttpClient::connect(at(name)).unwrap();
    let ask = |client: &mut HttpClient| {
        client
            .ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap()
            .status
    };
    let (mut open, mut inner) = (connect("open"), connect("inner"));
    let mut check = || {
        let old = [ask(&mut open), ask(&mut inner)];
        let new = [ask(&mut connect("open")), ask(&mut connect("inner"))];
        assert_eq!((old, new), ([403, 200], [403, 200]));
    };
    check();
    let path = directory.to_str().unwrap();
    let swapped = parted(["inner", "open"]).replace("{directory}", path) + &upstream;
    rewrite(&front, &swapped);
    reload(&mut front, "reloaded; listeners: 3 kept", 1);
    check();
    let first = front.process().id();
    let last = upgrade(front.process(), first, 1);
    for _ in 0..5 {
        assert_eq!(
            [ask(&mut connect("open")), ask(&mut connect("inner"))],
            [403, 200]
        );
    }
    catamaran_testkit::signal_process(last, catamaran_testkit::Signal::Terminate).unwrap();
}

/// A client of a listener that a reload removed has no route, not even one that is for all.
#[test]
fn a_removed_listener_has_no_routes() {
    let app = App::start("epoll", &[]).unwrap();
    let upstream = format!("[[upstream.app.backend]]\nurl = \"ajp://{}\"\n", app.ajp());
    let mut front = Front::with_config(&(parted(["open", "inner"]) + &upstream)).unwrap();
    let directory = front.directory().to_owned();
    let mut open = HttpClient::connect(Address::from(directory.join("open.sock"))).unwrap();
    let answer = open.ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert_eq!(answer.status, 403);
    // A request that has begun keeps its connection while the listener drains.
    open.send(b"GET / HTTP/1.1\r\nHost: a\r\n").unwrap();
    let alone = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\n";
    rewrite(&front, &(alone.to_owned() + &upstream));
    nth_line(front.process(), "listening on", 1);
    let said = reload(&mut front, "reloaded; listeners: 1 kept", 1);
    assert!(said.contains("open.sock"), "{said}");
    // It may be closed already.
    open.send(b"\r\n").ok();
    match open.receive() {
        Ok(answer) => assert_eq!(answer.status, 421, "{answer:?}"),
        // It had not been read when the drain closed what is idle.
        Err(failure) => assert!(
            matches!(failure, Failure::Closed | Failure::Reset { .. }),
            "{failure}"
        ),
    }
    assert_eq!(front.get("/").unwrap().status, 200);
}

/// What routes lead to, and what is answered to those whom they are for.
const SOURCES: [(&str, &str, u16); 6] = [
    ("ajp", "upstream = \"ajp\"\nrewrite = \"/\"", 200),
    ("http", "upstream = \"http\"\nrewrite = \"/\"", 200),
    ("page", "upstream = \"stopped\"", 503),
    ("status", "status = 410", 410),
    ("redirect", "redirect = \"/elsewhere\"", 308),
    (
        "tunnel",
        "upstream = \"http\"\nrewrite = \"/\"\nupgrade = \"websocket\"",
        200,
    ),
];

const LISTENERS: &str = r#"
[server]
trusted_proxies = ["127.0.0.1"]
[admin]
address = "127.0.0.1:0"

[[listen]]
name = "open"
address = "127.0.0.1:0"
protocols = ["h2", "http/1.1"]
[[listen]]
name = "public"
address = "127.0.0.1:0"
protocols = ["h2", "http/1.1"]
tls = "public"
[[listen]]
name = "inner"
address = "127.0.0.1:0"
protocols = ["h2", "http/1.1"]
tls = "inner"
[[listen]]
name = "proxied"
address = "127.0.0.1:0"
proxy_protocol = true
proxy_protocol_from = ["127.0.0.1"]

[tls.public]
[[tls.public.certificate]]
chain = "{files}/a.pem"
key = "{files}/a.key"
[tls.inner]
client_certificate = "optional"
client_ca = "{files}/ca.pem"
[[tls.inner.certificate]]
chain = "{files}/a.pem"
key = "{files}/a.key"
"#;
