//! HAProxy that ends TLS and speaks HTTP/2 in clear to the front (`proto h2`).

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use catamaran_e2e::{App, Front, curl};
use catamaran_testkit::Process;
use catamaran_testkit::http2::{self as frames, END_HEADERS, END_STREAM, Http2Client, Said};
use catamaran_testkit::http2::{block, kind, opening};
use catamaran_testkit::tls::Authority;
use serde_json::Value;

use crate::proxied_by::proxy;

/// A front for HTTP/2 in clear, before our own application over AJP and, below `/web`, over HTTP. `/https`
/// is for clients over TLS alone.
fn front(app: &App, server: &str) -> Front {
    let (ajp, http) = (app.ajp(), app.http());
    Front::with_config(&format!(
        "[server]\n{server}\n[[listen]]\naddress = \"127.0.0.1:0\"\nprotocols = [\"h2\", \"http/1.1\"]\n\
         [[route]]\nupstream = \"app\"\n\
         [[route]]\npath = \"/web\"\nrewrite = \"/\"\nupstream = \"web\"\n\
         [[route]]\npath = \"/https\"\nscheme = \"https\"\nstatus = 410\n\
         [[route]]\npath = \"/https\"\nscheme = \"http\"\nstatus = 409\n\
         [[route]]\npath = \"/url\"\nredirect = \"{{scheme}}://{{authority}}/to\"\n\
         [[upstream.app.backend]]\nurl = \"ajp://{ajp}\"\n\
         [[upstream.web.backend]]\nurl = \"http://{http}\"\n"
    ))
    .unwrap()
}

/// HAProxy with the certificate of `a.test`, and these lines in its frontend.
fn haproxy(front: SocketAddr, lines: &str, files: &Path) -> (Process, SocketAddr) {
    let both = ["a.pem", "a.key"].map(|file| fs::read_to_string(files.join(file)).unwrap());
    let both = both.concat();
    proxy("haproxy", &["-db", "-f"], |address, directory| {
        let file = directory.join("site.pem");
        fs::write(&file, both).unwrap();
        format!(
            "global\n maxconn 100\ndefaults\n mode http\n timeout connect 30s\n timeout client 30s\n \
             timeout server 30s\nfrontend f\n bind {address} ssl crt {} alpn h2,http/1.1\n{lines}\n \
             default_backend b\nbackend b\n server s {front} proto h2\n",
            file.display()
        )
    })
}

struct Site {
    front: Front,
    _app: App,
    _balancer: Process,
    address: SocketAddr,
    files: tempfile::TempDir,
}

impl Site {
    fn start(server: &str, lines: &str) -> Self {
        let app = App::start("epoll", &[]).unwrap();
        let files = tempfile::tempdir().unwrap();
        let authority = Authority::new("authority").unwrap();
        fs::write(files.path().join("ca.pem"), authority.pem()).unwrap();
        authority.issue(files.path(), "a", &["a.test"]).unwrap();
        let front = front(&app, server);
        let (balancer, address) = haproxy(front.address(), lines, files.path());
        Self {
            front,
            _app: app,
            _balancer: balancer,
            address,
            files,
        }
    }

    /// The status and the body, or where a redirect leads.
    fn ask(&self, version: &str, path: &str) -> (u16, String) {
        let (ip, port) = (self.address.ip(), self.address.port());
        let output = curl()
            .args([version, "--cacert", "ca.pem", "--include"])
            .args(["--resolve", &format!("a.test:{port}:{ip}")])
            .arg(format!("https://a.test:{port}{path}"))
            .current_dir(self.files.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        let (head, body) = said.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let location = head
            .lines()
            .find_map(|line| line.strip_prefix("location: "));
        (status, location.unwrap_or(body).to_owned())
    }
}

#[test]
fn its_scheme_is_believed_if_it_is_trusted() {
    // HAProxy passes on the `:scheme` of clients that speak HTTP/2, and writes `http` for the others.
    check_secure(&Site::start(TRUSTED, ""), &["--http2"]);
    let told = " http-request set-header X-Forwarded-Proto https if { ssl_fc }";
    check_secure(&Site::start(TRUSTED, told), &["--http2", "--http1.1"]);
}

fn check_secure(site: &Site, versions: &[&str]) {
    let port = site.address.port();
    for version in versions {
        let (status, body) = site.ask(version, "/snoop");
        assert_eq!(status, 200, "{version}: {body}");
        let seen: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            (&seen["scheme"], &seen["secure"]),
            (&"https".into(), &true.into()),
            "{version}: {seen}"
        );
        let (status, body) = site.ask(version, "/web/snoop");
        let body = body.replace(' ', "").to_ascii_lowercase();
        assert_eq!(status, 200);
        assert!(
            body.contains("[\"x-forwarded-proto\",\"https\"]"),
            "{version}: {body}"
        );
        assert_eq!(site.ask(version, "/https").0, 410, "a route for https");
        let to = format!("https://a.test:{port}/to");
        assert_eq!(site.ask(version, "/url"), (308, to));
    }
}

/// `X-Forwarded-Proto` is the proxy's own word, `:scheme` may be its client's.
#[test]
fn its_x_forwarded_proto_wins() {
    let site = Site::start(TRUSTED, " http-request set-header X-Forwarded-Proto http");
    for version in ["--http2", "--http1.1"] {
        let (status, body) = site.ask(version, "/snoop");
        let seen: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &seen["secure"]), (200, &false.into()), "{version}");
        assert_eq!(site.ask(version, "/https").0, 409, "a route for http");
    }
}

#[test]
fn others_are_told_that_it_is_not_for_this_server() {
    let site = Site::start("", "");
    let mut client = Http2Client::connect(site.front.address()).unwrap();
    let fields = [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "a.test"),
        (":path", "/snoop"),
        ("x-forwarded-proto", "https"),
    ];
    let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let flags = END_HEADERS | END_STREAM;
    let head = frames::frame(kind::HEADERS, flags, 1, &block(&fields));
    client.send(&[opening(65_535), head].concat(), usize::MAX);
    assert_eq!(client.next_said().unwrap(), Said::Status(1, 421));
    assert_eq!(site.ask("--http2", "/snoop").0, 421);
    site.front
        .wait_for_log("reason=client:scheme-mismatch")
        .unwrap();
}

const TRUSTED: &str = "trusted_proxies = [\"127.0.0.1\"]";
