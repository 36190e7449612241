//! HAProxy, nginx and curl before the front, telling by the PROXY protocol who the client is.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use catamaran_e2e::{App, Front, curl};
use catamaran_testkit::tls::Authority;
use catamaran_testkit::{Address, Deadline, Failure, HttpClient, Process, address};
use tempfile::TempDir;

use crate::reload::application;

/// HAProxy that passes connections of TCP on to `front`, with `option` on its server line.
fn haproxy(front: SocketAddr, option: &str) -> (Process, SocketAddr) {
    proxy("haproxy", &["-db", "-f"], |address, _| {
        format!(
            "global\n maxconn 100\ndefaults\n mode tcp\n timeout connect 30s\n timeout client 30s\n \
             timeout server 30s\nfrontend f\n bind {address}\n default_backend b\nbackend b\n \
             server s {front} {option}\n"
        )
    })
}

/// nginx that does the same; it has version 1 alone.
fn nginx(front: SocketAddr) -> (Process, SocketAddr) {
    proxy("nginx", &["-e", "stderr", "-c"], |address, directory| {
        format!(
            "load_module /usr/lib/nginx/modules/ngx_stream_module.so;\ndaemon off;\nmaster_process off;\n\
             pid {}/pid;\nevents {{}}\nstream {{ server {{ listen {address}; proxy_pass {front}; \
             proxy_protocol on; }} }}\n",
            directory.display()
        )
    })
}

/// Starts a proxy with a file, whose path follows `arguments`.
pub(crate) fn proxy(
    program: &str,
    arguments: &[&str],
    config: impl FnOnce(SocketAddr, &Path) -> String,
) -> (Process, SocketAddr) {
    let directory = tempfile::tempdir().unwrap();
    let address = address::unused().unwrap();
    let file = directory.path().join("proxy.conf");
    fs::write(&file, config(address, directory.path())).unwrap();
    let mut command = Command::new(program);
    command.args(arguments).arg(&file);
    let process = Process::spawn_in(&mut command, directory).unwrap();
    let listens = Address::from(address);
    Deadline::default()
        .poll(format!("{program} on {address}"), || {
            listens.connect(Deadline::DEFAULT).ok()
        })
        .unwrap();
    (process, address)
}

fn front(url: &str, tls: &str) -> Front {
    Front::with_config(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nproxy_protocol = true\n\
         proxy_protocol_from = [\"127.0.0.0/8\"]\n{tls}\n[[route]]\nupstream = \"app\"\n\
         [[upstream.app.backend]]\nurl = \"{url}\"\n[log]\nformat = \"json\"\n"
    ))
    .unwrap()
}

#[test]
fn haproxy_tells_the_client_in_both_versions() {
    let (_application, url) = application();
    let front = front(&url, "");
    for (index, option) in [
        "send-proxy",
        "send-proxy-v2",
        "send-proxy-v2 proxy-v2-options crc32c",
        // Its health checks say LOCAL.
        "send-proxy-v2 check",
    ]
    .into_iter()
    .enumerate()
    {
        let (_haproxy, address) = haproxy(front.address(), option);
        tells(&front, address, index + 20);
    }
}

/// Whoever may connect causes as many as it likes.
#[test]
fn strangers_are_counted_and_logged_once_in_a_while() {
    let front = Front::with_config(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nproxy_protocol = true\n\
         proxy_protocol_from = [\"192.0.2.0/24\", \"127.0.0.99\"]\n[[route]]\nstatus = 404\n\
         [admin]\naddress = \"127.0.0.1:0\"\n",
    )
    .unwrap();
    for (source, reason) in [
        ("127.0.0.1", "proxy-untrusted"),
        ("127.0.0.99", "proxy-header"),
    ] {
        for _ in 0..30 {
            let mut client =
                HttpClient::connect_from(source.parse().unwrap(), front.address()).unwrap();
            // It may be closed already.
            client.send(b"PROXY nonsense\r\n").ok();
            client.receive_to_end().ok();
        }
        let sample = format!("reason=\"{reason}\"}} 30\n");
        let counted = || {
            let metrics = front.ask_admin("/metrics").unwrap().text();
            metrics.contains(&sample).then_some(())
        };
        Deadline::default().poll(&sample, counted).unwrap();
        let token = format!("client:{reason}");
        front.wait_for_log(&token).unwrap();
        // One more if the thirty take longer than a line is good for.
        let lines = front.log().matches(&token).count();
        assert!((1..=2).contains(&lines), "{lines} lines: {}", front.log());
    }
}

#[test]
fn nginx_tells_the_client() {
    let (_application, url) = application();
    let front = front(&url, "");
    let (_nginx, address) = nginx(front.address());
    tells(&front, address, 40);
}

/// The application and the access log know the client's address, which ends with that number.
fn tells(front: &Front, proxy: SocketAddr, number: usize) {
    let source = format!("127.0.0.{number}");
    let mut client = HttpClient::connect_from(source.parse().unwrap(), proxy).unwrap();
    let answer = client
        .ask(b"GET /snoop HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    assert_eq!(answer.status, 200, "{proxy}");
    assert!(answer.text().contains(&source), "{}", answer.text());
    front
        .wait_for_log(&format!("\"client\":\"{source}\""))
        .unwrap();
}

/// A front that speaks TLS, with keys of its listener and of its profile; the certificate of `a.test` and
/// its issuer's, `ca.pem`, are in the directory.
fn front_with_tls(url: &str, listener: &str, profile: &str) -> (Front, TempDir) {
    let files = tempfile::tempdir().unwrap();
    let at = files.path().display();
    let authority = Authority::new("ours").unwrap();
    fs::write(files.path().join("ca.pem"), authority.pem()).unwrap();
    authority.issue(files.path(), "a", &["a.test"]).unwrap();
    let keys = format!(
        "{listener}\ntls = \"www\"\n[tls.www]\n{profile}\n[[tls.www.certificate]]\n\
         chain = \"{at}/a.pem\"\nkey = \"{at}/a.key\""
    );
    (front(url, &keys), files)
}

/// Without the header's share in it a connection would be held for `head_timeout`, an hour.
#[test]
fn the_header_has_its_time_from_that_of_the_handshake() {
    let (_application, url) = application();
    let (front, _files) = front_with_tls(
        &url,
        "head_timeout = \"1h\"",
        "handshake_timeout = \"300ms\"",
    );
    for begun in ["PROXY TCP4", "PROXY TCP4 192.0.2.7 192.0.2.8 5 6\r\n"] {
        let mut client = HttpClient::connect(front.address()).unwrap();
        client.send(begun.as_bytes()).unwrap();
        let end = client.receive_to_end();
        // Unread bytes make the close a reset.
        assert!(
            matches!(end, Ok(_) | Err(Failure::Reset { .. })),
            "{begun}: {end:?}"
        );
    }
}

#[test]
fn the_header_comes_before_tls() {
    let (_application, url) = application();
    let (front, files) = front_with_tls(&url, "", "");
    let port = front.address().port();
    let output = curl()
        .args(["--haproxy-protocol", "--interface", "127.0.0.31"])
        .arg("--cacert")
        .arg(files.path().join("ca.pem"))
        .args(["--resolve", &format!("a.test:{port}:127.0.0.1")])
        .arg(format!("https://a.test:{port}/snoop"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("127.0.0.31"), "{text} {:?}", output.stderr);
    front.wait_for_log("\"client\":\"127.0.0.31\"").unwrap();
}

/// HAProxy ends TLS, asks for a certificate, and tells of both: as if the front itself had ended TLS.
#[test]
fn tls_that_haproxy_ended_is_told_to_the_application() {
    let attributes = ["--allowed-request-attributes", "SSL_CLIENT_*"];
    let app = App::start("epoll", &attributes).unwrap();
    let url = format!("ajp://{}", app.ajp());
    let front = Front::with_config(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nproxy_protocol = true\n\
         proxy_protocol_from = [\"127.0.0.0/8\"]\nprotocols = [\"h2\", \"http/1.1\"]\n\
         [[route]]\nupstream = \"app\"\n[upstream.app.attributes]\n\
         SSL_CLIENT_S_DN_CN = \"tls:certificate_cn\"\n\
         [[upstream.app.backend]]\nurl = \"{url}\"\n"
    ))
    .unwrap();
    let files = tempfile::tempdir().unwrap();
    let at = files.path().display();
    let authority = Authority::new("ours").unwrap();
    fs::write(files.path().join("ca.pem"), authority.pem()).unwrap();
    for (name, of) in [("a", "a.test"), ("ann", "ann")] {
        let change = |params: &mut rcgen::CertificateParams| {
            params
                .distinguished_name
                .push(rcgen::DnType::CommonName, of);
        };
        authority
            .issue_with(files.path(), name, &[of], change)
            .unwrap();
        let both = ["pem", "key"].map(|it| files.path().join(format!("{name}.{it}")));
        let both = both.map(|file| fs::read_to_string(file).unwrap()).concat();
        fs::write(files.path().join(format!("{name}.both")), both).unwrap();
    }
    let (_haproxy, address) = proxy("haproxy", &["-db", "-f"], |address, _| {
        format!(
            "global\n maxconn 100\ndefaults\n mode tcp\n timeout connect 30s\n timeout client 30s\n \
             timeout server 30s\nfrontend f\n bind {address} ssl crt {at}/a.both ca-file {at}/ca.pem \
             verify optional alpn h2,http/1.1\n default_backend b\nbackend b\n \
             server s {} send-proxy-v2-ssl-cn proxy-v2-options ssl-cipher\n",
            front.address()
        )
    });
    let port = address.port();
    for (arguments, told) in [
        (&["--http2"][..], None),
        (&["--http1.1", "--cert", "ann.both"], Some("ann")),
    ] {
        let output = curl()
            .current_dir(files.path())
            .args(arguments)
            .args(["--cacert", "ca.pem", "--tlsv1.3"])
            .args(["--resolve", &format!("a.test:{port}:{}", address.ip())])
            .arg(format!("https://a.test:{port}/snoop"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let said: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&said["scheme"], &said["secure"]),
            (&"https".into(), &true.into())
        );
        assert_eq!(said["tls_protocol"], "TLSv1.3", "{text}");
        assert!(
            said["tls_cipher"].as_str().unwrap().starts_with("TLS_"),
            "{text}"
        );
        assert!(said["tls_key_size"].as_u64() >= Some(128), "{text}");
        let attributes = said["attributes"].as_array().unwrap();
        let name = attributes.iter().find(|it| it[0] == "SSL_CLIENT_S_DN_CN");
        assert_eq!(name.map(|it| it[1].as_str().unwrap()), told, "{text}");
    }
}
