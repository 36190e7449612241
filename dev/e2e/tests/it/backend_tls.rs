//! Backends over TLS: nginx, OpenSSL and our own front with certificates made on the spot. What any
//! backend must do right, all tests that go through every connector of Tomcat show over its own.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use catamaran_e2e::Front;
use catamaran_testkit::tls::Authority;
use catamaran_testkit::{Address, Deadline, HttpClient, Process, address};
use tempfile::TempDir;

use crate::reload::application;

/// The files of an authority that issues `good` for 127.x.y.z and `app.test`, `named` for
/// `other.test` alone, `expired`, and `front` for the front itself.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::new("ours").unwrap();
        let at = directory.path();
        fs::write(at.join("ca.pem"), authority.pem()).unwrap();
        let stranger = Authority::new("a stranger").unwrap();
        fs::write(at.join("stranger.pem"), stranger.pem()).unwrap();
        authority.issue(at, "good", &["app.test"]).unwrap();
        authority.issue(at, "named", &["other.test"]).unwrap();
        authority
            .issue_expired(at, "expired", &["app.test"])
            .unwrap();
        authority.issue(at, "front", &["front"]).unwrap();
        stranger.issue(at, "forged", &["front"]).unwrap();
        Self(directory)
    }

    fn path(&self, file: &str) -> String {
        self.0.path().join(file).to_str().unwrap().to_owned()
    }
}

/// nginx over TLS with this certificate. Its answers tell what it knows of the connection.
struct Nginx {
    process: Process,
    address: SocketAddr,
}

impl Nginx {
    fn new(files: &Files, certificate: &str, more: &str) -> Self {
        Self::at(address::unused().unwrap(), files, certificate, more)
    }

    fn at(address: SocketAddr, files: &Files, certificate: &str, more: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (chain, key) = (
            files.path(&format!("{certificate}.pem")),
            files.path(&format!("{certificate}.key")),
        );
        let at = directory.path().display();
        let config = format!(
            "daemon off; master_process off; pid {at}/pid; error_log stderr info;\n\
             events {{}}\n\
             http {{\n\
             access_log {at}/access.log; client_body_temp_path {at}/body;\n\
             proxy_temp_path {at}/proxy; fastcgi_temp_path {at}/fastcgi;\n\
             uwsgi_temp_path {at}/uwsgi; scgi_temp_path {at}/scgi;\n\
             server {{\n\
             listen {address} ssl; ssl_certificate {chain}; ssl_certificate_key {key};\n\
             ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:tls:1m; {more}\n\
             location / {{ return 200 \"$ssl_protocol $ssl_server_name $ssl_session_reused \
             $connection_requests $ssl_client_s_dn\"; }}\n\
             }}\n}}\n"
        );
        let file = directory.path().join("nginx.conf");
        fs::write(&file, config).unwrap();
        let mut command = Command::new("nginx");
        command.arg("-e").arg("stderr").arg("-c").arg(&file);
        let process = Process::spawn_in(&mut command, directory).unwrap();
        let listens = Address::from(address);
        Deadline::default()
            .poll(format!("nginx on {address}"), || {
                listens.connect(Deadline::DEFAULT).ok()
            })
            .unwrap();
        Self { process, address }
    }

    fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Lines of its access log: requests that it got.
    fn requests(&self) -> usize {
        let log = self.process.directory().join("access.log");
        fs::read_to_string(log).map_or(0, |text| text.lines().count())
    }
}

/// A front with one upstream of these backends, each with its keys.
fn front(backends: &[(&str, &str)]) -> Front {
    let mut tables = String::new();
    for (url, keys) in backends {
        writeln!(tables, "[[upstream.app.backend]]\nurl = \"{url}\"\n{keys}").unwrap();
    }
    Front::to_app(&format!(
        "{tables}[admin]\naddress = \"127.0.0.1:0\"\n[log]\nformat = \"json\"\n"
    ))
    .unwrap()
}

fn get(front: &Front) -> (u16, String) {
    let answer = front.get("/").unwrap();
    (answer.status, answer.text())
}

#[test]
fn a_verified_backend_serves_over_kept_and_resumed_connections() {
    let files = Files::new();
    let nginx = Nginx::new(&files, "good", "keepalive_requests 2;");
    let keys = format!(
        "ca_file = \"{}\"\nserver_name = \"app.test\"",
        files.path("ca.pem")
    );
    let front = front(&[(&nginx.url(), &keys)]);
    let mut client = HttpClient::connect(front.address()).unwrap();
    let answers: Vec<String> = (0..4)
        .map(|_| {
            client
                .ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                .unwrap()
                .text()
        })
        .collect();
    // The client keeps to one worker, and so to one pool.
    assert_eq!(
        answers,
        [
            "TLSv1.3 app.test . 1 ",
            "TLSv1.3 app.test . 2 ",
            "TLSv1.3 app.test r 1 ",
            "TLSv1.3 app.test r 2 "
        ]
    );
    let dialled = front
        .metric("catamaran_backend_connections_dialled_total")
        .unwrap();
    assert_eq!(dialled, [2.0]);
}

/// Both backends could take up each other's sessions, since they have the same key for tickets: if the
/// front offered them, the first connection to the second one would be a resumed one.
#[test]
fn sessions_belong_to_one_backend_and_one_name() {
    let files = Files::new();
    fs::write(files.path("tickets"), [7; 80]).unwrap();
    let more = format!(
        "keepalive_requests 1; ssl_session_ticket_key {};",
        files.path("tickets")
    );
    let [one, two] = [(), ()].map(|()| Nginx::new(&files, "good", &more));
    let mut tables = String::new();
    let routes = [
        ("one", &one, "app.test"),
        ("two", &two, "app.test"),
        ("other", &one, "other.test"),
    ];
    for (name, nginx, server_name) in routes {
        let url = nginx.url();
        writeln!(
            tables,
            "[[route]]\npath = \"/{name}\"\nupstream = \"{name}\"\n[[upstream.{name}.backend]]\n\
             url = \"{url}\"\nserver_name = \"{server_name}\"\nverify = \"off\""
        )
        .unwrap();
    }
    let front = Front::with_tables(&tables).unwrap();
    // Whatever worker serves it, a session belongs to the backend.
    let ask = |path: &str| front.get(path).unwrap().text();
    for reused in [".", "r", "r"] {
        for (name, _, server_name) in routes {
            let answer = ask(&format!("/{name}"));
            let expected = format!("TLSv1.3 {server_name} {reused} 1 ");
            assert_eq!(answer, expected, "{name}");
        }
    }
}

/// A backend's certificate is replaced by one that has expired, and by a good one again.
#[test]
fn a_certificate_that_changes_is_verified_anew() {
    let files = Files::new();
    let keys = format!(
        "ca_file = \"{}\"\nserver_name = \"app.test\"",
        files.path("ca.pem")
    );
    let first = Nginx::new(&files, "good", "");
    let address = first.address;
    let front = front(&[(&first.url(), &keys)]);
    assert_eq!(get(&front).0, 200);
    drop(first);
    let second = Nginx::at(address, &files, "expired", "");
    assert_eq!(get(&front).0, 502);
    front.wait_for_log(":tls-untrusted\"").unwrap();
    assert_eq!(second.requests(), 0);
    drop(second);
    let _third = Nginx::at(address, &files, "good", "");
    let served = || (get(&front).0 == 200).then_some(());
    Deadline::default()
        .poll("the backend to serve again", served)
        .unwrap();
}

#[test]
fn a_backend_with_the_wrong_certificate_gets_no_request() {
    let files = Files::new();
    let (ca, stranger) = (files.path("ca.pem"), files.path("stranger.pem"));
    let name = "server_name = \"app.test\"";
    for (certificate, keys, reason) in [
        (
            "good",
            format!("ca_file = \"{stranger}\"\n{name}"),
            "tls-untrusted",
        ),
        // Those of the system do not know ours.
        ("good", name.to_owned(), "tls-untrusted"),
        ("named", format!("ca_file = \"{ca}\"\n{name}"), "tls-name"),
        // By its address, which the certificate does not have.
        ("good", format!("ca_file = \"{ca}\""), "tls-name"),
        (
            "expired",
            format!("ca_file = \"{ca}\"\n{name}"),
            "tls-untrusted",
        ),
    ] {
        let nginx = Nginx::new(&files, certificate, "");
        let alone = front(&[(&nginx.url(), &format!("{keys}\neject = false"))]);
        for _ in 0..2 {
            assert_eq!(alone.get("/").unwrap().status, 502, "{certificate}");
        }
        alone.wait_for_log(&format!(":{reason}\"")).unwrap();

        // Nothing was sent, so that even a POST may go elsewhere.
        let (_application, url) = application();
        let both = front(&[(&nginx.url(), &keys), (&url, "distance = 1")]);
        let post = both.head("POST", "/echo", "Content-Length: 5\r\n") + "hello";
        let answer = both.ask(post).unwrap();
        assert_eq!(answer.status, 200);
        assert!(answer.text().ends_with("\r\n\r\nhello"));
        let reasons = both.metric("catamaran_retries_total").unwrap();
        assert_eq!(reasons, [1.0], "{certificate}");
        assert_eq!(nginx.requests(), 0, "{certificate}");
    }
}

#[test]
fn verification_that_is_off_is_told() {
    let files = Files::new();
    let nginx = Nginx::new(&files, "expired", "");
    let front = front(&[(&nginx.url(), "verify = \"off\"")]);
    assert_eq!(get(&front).0, 200);
    front.wait_for_log("is not verified").unwrap();
    let unverified = front.metric("catamaran_backend_tls_unverified").unwrap();
    assert_eq!(unverified, [1.0]);
}

#[test]
fn a_backend_that_does_not_speak_tls_is_said_to_be_so() {
    let (_application, url) = application();
    let secure = url.replace("ajp://", "https://");
    let front = front(&[(&secure, "verify = \"off\"\neject = false")]);
    assert_eq!(get(&front).0, 502);
    front.wait_for_log(":tls-handshake\"").unwrap();
}

#[test]
fn a_probe_makes_the_handshake_too() {
    let files = Files::new();
    let nginx = Nginx::new(&files, "named", "");
    let keys = format!(
        "ca_file = \"{}\"\nserver_name = \"app.test\"",
        files.path("ca.pem")
    );
    let tables = format!(
        "[upstream.app.probe]\nkind = \"connect\"\ninterval = \"100ms\"\ndown = 1\n\
         [[upstream.app.backend]]\nurl = \"{}\"\n{keys}\n",
        nginx.url()
    );
    let front = Front::to_app(&tables).unwrap();
    let line = front.wait_for_log("backend is out").unwrap();
    assert!(line.contains("cannot be connected to"), "{line}");
    assert_eq!(front.get("/").unwrap().status, 503);
}

#[test]
fn the_front_shows_its_certificate() {
    let files = Files::new();
    let verify = format!(
        "ssl_client_certificate {}; ssl_verify_client on;",
        files.path("ca.pem")
    );
    let nginx = Nginx::new(&files, "good", &verify);
    let trust = format!(
        "ca_file = \"{}\"\nserver_name = \"app.test\"",
        files.path("ca.pem")
    );
    let with = |certificate: &str| {
        format!(
            "{trust}\nclient_certificate = \"{}\"\nclient_key = \"{}\"",
            files.path(&format!("{certificate}.pem")),
            files.path(&format!("{certificate}.key"))
        )
    };
    let (status, text) = get(&front(&[(&nginx.url(), &with("front"))]));
    assert_eq!(status, 200);
    assert!(text.ends_with("CN=rcgen self signed cert"), "{text}");
    // nginx answers by itself where others send an alert.
    assert_eq!(get(&front(&[(&nginx.url(), &trust)])).0, 400);
    assert_eq!(get(&front(&[(&nginx.url(), &with("forged"))])).0, 400);

    // Over TLS 1.3 an alert comes only after the request was sent.
    let (_application, url) = application();
    let strict = Front::with_config(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = \"www\"\n\
         [tls.www]\nclient_certificate = \"required\"\nclient_ca = \"{}\"\n\
         [[tls.www.certificate]]\nchain = \"{}\"\nkey = \"{}\"\n\
         [[route]]\nupstream = \"app\"\n[[upstream.app.backend]]\nurl = \"{url}\"\n",
        files.path("ca.pem"),
        files.path("good.pem"),
        files.path("good.key")
    ))
    .unwrap();
    let strict_url = format!("https://{}", strict.address());
    let refused = front(&[(&strict_url, &trust)]);
    assert_eq!(get(&refused).0, 502);
    refused.wait_for_log(":tls-alert\"").unwrap();
}

/// OpenSSL's server, which sends what is written to it and prints what it gets.
struct SServer {
    child: Child,
    address: SocketAddr,
}

impl SServer {
    fn new(files: &Files, options: &[&str]) -> Self {
        let address = address::unused().unwrap();
        let child = Command::new("openssl")
            .current_dir(files.0.path())
            .args(["s_server", "-accept", &address.to_string()])
            .args([
                "-cert",
                &files.path("good.pem"),
                "-key",
                &files.path("good.key"),
            ])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Self { child, address };
        server.wait_for("ACCEPT");
        server
    }

    fn wait_for(&mut self, text: &str) {
        let output = BufReader::new(self.child.stdout.as_mut().unwrap());
        let mut lines = output.lines();
        while !lines.next().expect("more output").unwrap().contains(text) {}
    }

    fn send(&mut self, text: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(text.as_bytes()).unwrap();
        input.flush().unwrap();
    }
}

impl Drop for SServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn a_response_whose_end_is_not_announced_is_not_taken_for_complete() {
    let files = Files::new();
    let keys = format!(
        "ca_file = \"{}\"\nserver_name = \"app.test\"",
        files.path("ca.pem")
    );
    fs::write(files.0.path().join("page"), "whole").unwrap();
    // Serves the file with the close as its end, after close_notify.
    let server = SServer::new(&files, &["-WWW"]);
    let whole = front(&[(&format!("https://{}", server.address), &keys)]);
    let answer = whole.get("/page").unwrap();
    assert_eq!((answer.status, answer.text()), (200, "whole".to_owned()));

    let mut server = SServer::new(&files, &[]);
    let front = front(&[(&format!("https://{}", server.address), &keys)]);
    let mut client = front.connect().unwrap();
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    server.wait_for("GET / HTTP/1.1");
    server.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\npart\n");
    // The part was in the same record.
    client.receive_head().unwrap();
    server.child.kill().unwrap();
    let rest = client.receive_to_end().unwrap_or_default();
    assert!(!rest.ends_with(b"0\r\n\r\n"), "cut");
    front.wait_for_log(":tls-truncated").unwrap();
}
