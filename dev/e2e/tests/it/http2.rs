//! Clients that speak HTTP/2: curl and h2load in front, the built-in application behind.

mod container;
mod floods;
mod jdk;
mod rows;
mod slow_reader;

use std::fs;
use std::path::Path;
use std::process::Command;

use catamaran_e2e::{App, Front, curl};
use serde_json::Value;

/// A front for HTTP/2 in clear and over TLS, and its application: `ajp.test` and `http.test` are the
/// same one.
struct Site {
    front: Front,
    tls: u16,
    _app: App,
}

/// Writes `chain.pem` and `key.pem` for the hosts.
fn certify(files: &Path) {
    let certified = rcgen::generate_simple_self_signed(HOSTS.map(str::to_owned)).unwrap();
    fs::write(files.join("chain.pem"), certified.cert.pem()).unwrap();
    fs::write(files.join("key.pem"), certified.signing_key.serialize_pem()).unwrap();
}

/// Where the front listens for TLS.
pub(crate) fn tls_address(front: &mut Front) -> String {
    let process = front.process();
    let address = process.wait_for_line("the listener with TLS", |line| {
        let (_, address) = line.split_once("listening on https://")?;
        Some(address.trim().to_owned())
    });
    address.unwrap()
}

impl Site {
    /// `keys` are lines of both listeners.
    fn new(files: &Path, keys: &str) -> Self {
        let app = App::start("epoll", &[]).unwrap();
        certify(files);
        let tables = TABLES
            .replace("{keys}", keys)
            .replace("{files}", files.to_str().unwrap())
            .replace("{ajp}", &app.ajp().to_string())
            .replace("{http}", &app.http().to_string());
        let mut front = Front::with_config(&tables).unwrap();
        let address = tls_address(&mut front);
        let (_, port) = address.rsplit_once(':').unwrap();
        let tls = port.parse().unwrap();
        Self {
            front,
            tls,
            _app: app,
        }
    }

    /// Runs curl for `path` of `host`, over TLS or not; returns the status, the version, and the body.
    fn curl(&self, tls: bool, host: &str, path: &str, options: &[&str]) -> (String, Vec<u8>) {
        let clear = self.front.address().port();
        let (scheme, port, version) = if tls {
            ("https", self.tls, "--http2")
        } else {
            ("http", clear, "--http2-prior-knowledge")
        };
        let output = curl()
            .arg("--insecure")
            .args(["--resolve", &format!("{host}:{port}:127.0.0.1"), version])
            .args(["--write-out", "%{stderr}%{http_code} %{http_version}"])
            .args(options)
            .arg(format!("{scheme}://{host}:{port}{path}"))
            .output()
            .unwrap();
        (String::from_utf8(output.stderr).unwrap(), output.stdout)
    }

    /// Runs `test` for each host in clear and over TLS.
    fn each(&self, test: impl Fn(&dyn Fn(&str, &[&str]) -> (String, Vec<u8>), bool, &str)) {
        for tls in [false, true] {
            for host in HOSTS {
                let curl = |path: &str, options: &[&str]| self.curl(tls, host, path, options);
                println!("TLS {tls}, {host}");
                test(&curl, tls, host);
            }
        }
    }
}

#[test]
fn requests_and_responses_pass_whole() {
    let files = tempfile::tempdir().unwrap();
    let site = Site::new(files.path(), "");
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let upload = files.path().join("upload");
    fs::write(&upload, &bytes).unwrap();
    let data = format!("@{}", upload.display());
    let file = upload.to_str().unwrap();
    site.each(|curl, _, _| {
        let (status, body) = curl("/bytes/3000000", &[]);
        assert_eq!((status.as_str(), body.len()), ("200 2", 3_000_000));
        // With its length, and without.
        for options in [
            &["--data-binary", &data][..],
            &["--upload-file", file, "-H", "content-length:"],
        ] {
            let (status, echoed) = curl("/echo", options);
            assert_eq!(status, "200 2");
            assert!(echoed.ends_with(&bytes), "{} bytes", echoed.len());
        }
        let (status, body) = curl("/bytes/1000", &["--head"]);
        assert_eq!(status, "200 2");
        let head = String::from_utf8(body).unwrap();
        assert!(head.contains("content-length: 1000\r\n"), "{head}");
        let (status, body) = curl("/status/204", &[]);
        assert_eq!((status.as_str(), body.len()), ("204 2", 0));
        let (_, streamed) = curl("/stream/3/1", &["--include"]);
        let streamed = String::from_utf8(streamed).unwrap();
        assert!(!streamed.contains("content-length") && !streamed.contains("transfer-encoding"));
        let (status, echoed) = curl("/echo", &["-H", "expect: 100-continue", "-d", "hello"]);
        assert_eq!(status, "200 2");
        assert!(echoed.ends_with(b"\r\n\r\nhello") || echoed.ends_with(b"\n\nhello"));
    });
    assert_eq!(site.front.metric("catamaran_retries_total").unwrap(), [0.0]);
}

#[test]
fn applications_and_the_log_are_told_of_http_2() {
    let files = tempfile::tempdir().unwrap();
    let site = Site::new(files.path(), "");
    let (status, body) = site.curl(true, "ajp.test", "/snoop?a=b", &["-b", "a=1; b=2"]);
    assert_eq!(status, "200 2");
    let snoop: Value = serde_json::from_slice(&body).unwrap();
    for (name, value) in [
        ("protocol", "HTTP/2.0"),
        ("scheme", "https"),
        ("server_name", "ajp.test"),
        ("tls_protocol", "TLSv1.3"),
    ] {
        assert_eq!(snoop[name], value, "{snoop}");
    }
    let headers = snoop["headers"].to_string().to_ascii_lowercase();
    assert!(headers.contains(r#"["via","2.0 catamaran"]"#), "{headers}");
    assert!(headers.contains(r#"["cookie","a=1; b=2"]"#), "{headers}");
    let (status, body) = site.curl(false, "http.test", "/echo", &["-d", "x"]);
    assert_eq!(status, "200 2");
    let echoed = String::from_utf8(body).unwrap();
    assert!(echoed.starts_with("POST /echo HTTP/1.1"), "{echoed}");
    assert!(echoed.contains("X-Forwarded-Proto: http\r\n"), "{echoed}");
    let (status, _) = site.curl(false, "none.test", "/", &[]);
    assert_eq!(status, "404 2");
    let line = |host: &str| -> Value {
        let line = site.front.wait_for_log(host).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    let told = line("ajp.test");
    assert_eq!(
        (&told["version"], &told["query"]),
        (&"HTTP/2.0".into(), &"a=b".into())
    );
    assert_eq!(line("http.test")["received"], 1);
    let told = line("none.test");
    assert_eq!(
        (&told["status"], &told["reason"]),
        (&404.into(), &"client:no-route".into())
    );
}

#[test]
fn many_requests_share_connections_and_others_speak_http_1() {
    let files = tempfile::tempdir().unwrap();
    let site = Site::new(files.path(), "");
    for url in [
        format!("http://127.0.0.1:{}/bytes/100", site.front.address().port()),
        format!("https://127.0.0.1:{}/bytes/100", site.tls),
    ] {
        for host in HOSTS {
            let output = Command::new("h2load")
                .args([
                    "-n",
                    "600",
                    "-c",
                    "3",
                    "-m",
                    "20",
                    "-H",
                    &format!(":authority: {host}"),
                    &url,
                ])
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(said.contains("600 succeeded, 0 failed"), "{said}");
            assert!(said.contains("status codes: 600 2xx"), "{said}");
        }
    }
    let (status, _) = site.curl(true, "ajp.test", "/", &["--http1.1"]);
    assert_eq!(status, "200 1.1");
    let (status, _) = site.curl(false, "ajp.test", "/", &["--http1.1"]);
    assert_eq!(status, "200 1.1");
}

const TABLES: &str = r#"
[[listen]]
address = "127.0.0.1:0"
protocols = ["h2", "http/1.1"]
{keys}
[[listen]]
address = "127.0.0.1:0"
tls = "www"
{keys}
[tls.www]
[[tls.www.certificate]]
chain = "{files}/chain.pem"
key = "{files}/key.pem"
[upstream.ajp]
[[upstream.ajp.backend]]
url = "ajp://{ajp}"
[upstream.http]
[[upstream.http.backend]]
url = "http://{http}"
[[route]]
host = "ajp.test"
upstream = "ajp"
[[route]]
host = "http.test"
upstream = "http"
[log]
access = "-"
format = "json"
[admin]
address = "127.0.0.1:0"
"#;

/// The hosts of the application.
const HOSTS: [&str; 2] = ["ajp.test", "http.test"];
