//! Clients over TLS: curl and OpenSSL in front, the built-in application behind.

mod acme;
mod by_name;
mod cache;
mod check;
mod demo;
mod files;
mod floods;
mod https;
mod resumption;
mod told;
mod tomcat;
mod usual_ports;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catamaran_e2e::{Front, curl};
use catamaran_testkit::tls::Authority;
use catamaran_testkit::{Process, Signal};
use rcgen::{DnType, SanType};
use serde_json::Value;

use crate::reload::application;

/// A front with TLS, its application, and the directory with everybody's files.
struct Site {
    front: Front,
    authority: Authority,
    files: tempfile::TempDir,
    _application: Option<Process>,
}

/// Serves `a.test` and `*.w.test`; `keys` are lines of the profile.
fn site(keys: &str) -> Site {
    let (application, url) = application();
    let backend = format!("[[upstream.app.backend]]\nurl = \"{url}\"\n");
    Site {
        _application: Some(application),
        ..site_before(&backend, keys)
    }
}

/// As [`site`], before the backend of this table; other tables may follow it.
fn site_before(backend: &str, keys: &str) -> Site {
    site_with(backend, keys, &[])
}

/// As [`site_before`], started with these flags.
fn site_with(backend: &str, keys: &str, flags: &[&str]) -> Site {
    site_prepared(backend, keys, flags, |_| {})
}

/// As [`site_with`], with files that `prepare` puts into the directory.
fn site_prepared(backend: &str, keys: &str, flags: &[&str], prepare: impl Fn(&Path)) -> Site {
    let files = tempfile::tempdir().unwrap();
    let authority = Authority::new("authority").unwrap();
    let directory = files.path();
    fs::write(directory.join("ca.pem"), authority.pem()).unwrap();
    for (file, names) in [
        ("a", &["a.test"]),
        ("w", &["*.w.test"]),
        ("client", &["client"]),
    ] {
        authority.issue(directory, file, names).unwrap();
    }
    fs::write(
        directory.join("clients.crl"),
        authority.revocations(&[]).unwrap(),
    )
    .unwrap();
    prepare(directory);
    let at = directory.display();
    let config = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = \"www\"\n\
         [tls.www]\n{}\n\
         [[tls.www.certificate]]\nchain = \"{at}/a.pem\"\nkey = \"{at}/a.key\"\n\
         [[tls.www.certificate]]\nchain = \"{at}/w.pem\"\nkey = \"{at}/w.key\"\n\
         [[route]]\nupstream = \"app\"\n{backend}\
         [admin]\naddress = \"127.0.0.1:0\"\n",
        keys.replace("{files}", &at.to_string())
    );
    let front = Front::with_config_and_flags(&config, flags).unwrap();
    Site {
        front,
        authority,
        files,
        _application: None,
    }
}

impl Site {
    /// What curl gets of `path`, asked of the host `name`.
    fn curl(&self, name: &str, path: &str, options: &[&str]) -> (String, Vec<u8>) {
        let SocketAddr::V4(address) = self.front.address() else {
            panic!("an address of IPv4");
        };
        let port = address.port();
        let output = curl()
            .arg("--cacert")
            .arg(self.files.path().join("ca.pem"))
            .args(["--resolve", &format!("{name}:{port}:127.0.0.1")])
            .args(["--write-out", "%{stderr}%{http_code}"])
            .args(options)
            .arg(format!("https://{name}:{port}{path}"))
            .output()
            .unwrap();
        (String::from_utf8(output.stderr).unwrap(), output.stdout)
    }

    fn snoop(&self, options: &[&str]) -> Value {
        let (status, body) = self.curl("a.test", "/snoop", options);
        assert_eq!(status, "200");
        serde_json::from_slice(&body).unwrap()
    }

    /// What `openssl s_client` says; it sends one request and waits for its end.
    fn s_client(&self, options: &[&str]) -> String {
        let address = self.front.address().to_string();
        let mut client = Command::new("openssl")
            .args(["s_client", "-ign_eof", "-connect", &address])
            .args(options)
            .current_dir(self.files.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
        std::io::Write::write_all(&mut client.stdin.take().unwrap(), request).unwrap();
        let output = client.wait_with_output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// SHA-256 of the certificate in `FILE.pem`, as OpenSSL says it.
    fn fingerprint(&self, file: &str) -> String {
        let output = Command::new("openssl")
            .args(["x509", "-noout", "-fingerprint", "-sha256", "-in"])
            .arg(self.path(&format!("{file}.pem")))
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let (_, digits) = said.trim().split_once('=').unwrap();
        digits.replace(':', "").to_lowercase()
    }

    fn path(&self, file: &str) -> String {
        self.files.path().join(file).to_str().unwrap().to_owned()
    }
}

#[test]
fn a_certificate_is_the_user_of_a_servlet() {
    let (_application, url) = application();
    let clients = "client_certificate = \"optional\"\nclient_ca = \"{files}/ca.pem\"";
    for (source, user) in [("subject_cn", "ann"), ("san_email", "ann@example.org")] {
        let backend = format!(
            "[upstream.app]\nremote_user = \"tls:{source}\"\n\
             [[upstream.app.backend]]\nurl = \"{url}\"\n"
        );
        let site = site_before(&backend, clients);
        let pair = site.authority.sign(&["ann.test"], |params| {
            params.distinguished_name.push(DnType::CommonName, "ann");
            let email = "ann@example.org".try_into().unwrap();
            params.subject_alt_names.push(SanType::Rfc822Name(email));
        });
        let pair = pair.unwrap();
        let (certificate, key) = (site.path("ann.pem"), site.path("ann.key"));
        fs::write(&certificate, pair.chain).unwrap();
        fs::write(&key, pair.key).unwrap();
        let snoop = site.snoop(&["--cert", &certificate, "--key", &key]);
        assert_eq!(snoop["user"], user, "{snoop}");
        let line = format!("127.0.0.1 - {user} [");
        site.front.wait_for_log(&line).unwrap();
        assert_eq!(site.snoop(&[])["user"], Value::Null);
    }
}

#[test]
fn an_application_behind_ajp_learns_of_tls_and_of_the_client() {
    let site = site("client_certificate = \"optional\"\nclient_ca = \"{files}/ca.pem\"");
    let forged = "X-SSL-Client-Cert: forged";
    let snoop = site.snoop(&[
        "--tlsv1.3",
        "--header",
        forged,
        "--header",
        "Client-Cert: :AAAA:",
    ]);
    assert_eq!(
        (&snoop["scheme"], &snoop["secure"]),
        (&"https".into(), &true.into())
    );
    assert_eq!(snoop["tls_protocol"], "TLSv1.3");
    assert_eq!(snoop["tls_cipher"], "TLS_AES_256_GCM_SHA384");
    assert_eq!(snoop["tls_key_size"], 256);
    assert_eq!(snoop["tls_certificate"], Value::Null);
    assert!(!snoop["headers"].to_string().contains("-cert"), "{snoop}");
    let (certificate, key) = (site.path("client.pem"), site.path("client.key"));
    let snoop = site.snoop(&["--tls-max", "1.2", "--cert", &certificate, "--key", &key]);
    assert_eq!(snoop["tls_cipher"], "ECDHE-ECDSA-AES256-GCM-SHA384");
    let chain = fs::read_to_string(&certificate)
        .unwrap()
        .replace("\r\n", "\n");
    let told = snoop["tls_certificate"].as_str().unwrap();
    assert!(
        chain.starts_with(told) && told.len() < chain.len(),
        "the leaf alone: {told}"
    );
    // The certificate was verified for the name of the handshake.
    let (status, _) = site.curl("a.test", "/", &["--header", "Host: x.w.test"]);
    assert_eq!(status, "421");
}

#[test]
fn bodies_pass_whole_and_names_have_their_certificates() {
    let site = site("");
    let upload = site.path("upload");
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    fs::write(&upload, &bytes).unwrap();
    for version in [["--tls-max", "1.2"], ["--tlsv1.3", "--tlsv1.3"]] {
        let data = format!("@{upload}");
        let options = [&version[..], &["--data-binary", &data]].concat();
        let (status, echoed) = site.curl("a.test", "/echo", &options);
        assert_eq!(status, "200");
        assert!(
            echoed.ends_with(&bytes),
            "{version:?}: {} bytes",
            echoed.len()
        );
        let (status, body) = site.curl("x.w.test", "/bytes/3000000", &version);
        assert_eq!((status.as_str(), body.len()), ("200", 3_000_000));
    }
    let (error, _) = site.curl("other.test", "/", &[]);
    assert!(
        error.contains("(60)"),
        "the default is for another name: {error}"
    );
    // One request beside TLS, and one for a name that the default serves.
    let answer = site.front.get("/").unwrap();
    assert_eq!(answer.status, 400);
    assert!(String::from_utf8_lossy(&answer.body).contains("https://"));
    let (status, _) = site.curl("a.test", "/", &["--header", "Host: unknown.test"]);
    assert_eq!(status, "200");
}

#[test]
fn a_strict_profile_refuses_unknown_names() {
    let site = site("strict_sni = true");
    let log = site.front.log();
    assert!(log.contains("listening on https://127.0.0.1:"), "{log}");
    for known in ["a.test", "x.w.test", "X.W.TEST"] {
        let said = site.s_client(&["-servername", known]);
        assert!(said.contains("HTTP/1.1 "), "{known}: {said}");
    }
    for unknown in [
        &["-servername", "b.test"][..],
        &["-servername", "w.test"],
        &["-servername", "y.x.w.test"],
        &["-noservername"],
    ] {
        assert!(!site.s_client(unknown).contains("HTTP/1.1"));
    }
    let (status, _) = site.curl("a.test", "/", &["--header", "Host: b.test"]);
    assert_eq!(status, "421");
    site.front.wait_for_log("client:tls-unknown-name").unwrap();
}

#[test]
fn certificates_are_replaced_under_load_and_broken_ones_are_not() {
    let site = site("certificate_watch = \"1s\"");
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stopped.load(Ordering::Relaxed) {
                    // Each with a handshake of its own, before, while and after they change.
                    assert_eq!(site.curl("a.test", "/", &[]).0, "200");
                }
            });
        }
        // Whatever comes of it, the others end.
        let _over = Over(&stopped);
        replace_certificates(&site);
    });
}

/// Stops the others when dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn replace_certificates(site: &Site) {
    let serial = || {
        let said = site.s_client(&["-servername", "a.test"]);
        let begin = said.find("-----BEGIN").expect("a certificate");
        said[begin..].lines().take(8).collect::<String>()
    };
    let first = serial();
    fs::write(site.path("a.key"), "no key").unwrap();
    site.front
        .wait_for_log("the previous ones stay in force")
        .unwrap();
    assert_eq!(serial(), first, "the old one is served");
    site.authority
        .issue(site.files.path(), "a", &["a.test"])
        .unwrap();
    site.front
        .wait_for_log("certificates were replaced")
        .unwrap();
    assert_ne!(serial(), first);
    let reloads = "catamaran_tls_certificate_reloads_total";
    // The front may have read a new key before its chain was there, and refused this as well.
    let counts = site.front.metric(reloads).unwrap();
    assert!(counts[0] == 1.0 && counts[1] >= 1.0, "{counts:?}");
}

#[test]
fn an_expired_certificate_does_not_take_the_place_of_a_valid_one() {
    let mut site = site("certificate_watch = \"1s\"");
    site.authority
        .issue_expired(site.files.path(), "a", &["a.test"])
        .unwrap();
    // By a change of its files, and by a reload.
    site.front
        .wait_for_log("the previous ones stay in force: the certificate of a.test has expired")
        .unwrap();
    site.front.process().signal(Signal::Hangup).unwrap();
    site.front
        .wait_for_log("TLS profile \"www\": the certificate of a.test has expired")
        .unwrap();
    let status = site.front.ask_admin("/api/v1/status").unwrap().text();
    for told in [
        "the last reload was refused: ",
        "changed files of tls.www cannot be used",
    ] {
        assert!(status.contains(told), "{told}: {status}");
    }
    assert_eq!(site.curl("a.test", "/", &[]).0, "200");
}

#[test]
fn a_silent_client_is_closed_at_the_deadline_of_its_handshake() {
    let site = site("handshake_timeout = \"100ms\"");
    let mut socket = std::net::TcpStream::connect(site.front.address()).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut socket, &mut rest).unwrap();
    assert!(rest.is_empty());
    site.front
        .wait_for_log("client:tls-handshake-timeout")
        .unwrap();
}
