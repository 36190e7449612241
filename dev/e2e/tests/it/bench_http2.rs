//! `bench --http2` against nginx, over TLS and in clear.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use catamaran_e2e::catamaran;
use catamaran_testkit::{Address, Deadline, Process, address};
use serde_json::Value;

/// nginx that speaks HTTP/2 on two ports, and HTTP/1.1 over TLS on a third.
pub(crate) struct Nginx {
    process: Process,
    tls: SocketAddr,
    clear: SocketAddr,
    pub(crate) only_http1: SocketAddr,
}

impl Nginx {
    /// It closes a connection after `requests`, and allows 128 streams, its default.
    pub(crate) fn start(requests: u32) -> Self {
        let [tls, clear, only_http1] = [(); 3].map(|()| address::unused().unwrap());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(path.join("cert.pem"), issued.cert.pem()).unwrap();
        fs::write(path.join("key.pem"), issued.signing_key.serialize_pem()).unwrap();
        let certificate = "ssl_certificate cert.pem; ssl_certificate_key key.pem;";
        let text = format!(
            "daemon off; error_log stderr; pid nginx.pid; worker_processes 1;\n\
             events {{ worker_connections 500; }}\n\
             http {{ access_log off; keepalive_requests {requests}; client_body_temp_path body;\n\
             proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;\n\
             scgi_temp_path scgi; {certificate}\n\
             server {{ listen {tls} ssl http2; listen {clear} http2; listen {only_http1} ssl;\n\
             location / {{ return 200 'hello'; }} location /none {{ return 404; }} }} }}\n"
        );
        fs::write(path.join("nginx.conf"), text).unwrap();
        let mut command = Command::new("/usr/sbin/nginx");
        command.arg("-p").arg(path).args(["-c", "nginx.conf"]);
        let process = Process::spawn_in(&mut command, directory).unwrap();
        let listens = || Address::from(tls).connect(Deadline::DEFAULT).ok();
        Deadline::default().poll("nginx", listens).unwrap();
        Self {
            process,
            tls,
            clear,
            only_http1,
        }
    }

    fn certificate(&self) -> String {
        let file: &Path = self.process.directory();
        file.join("cert.pem").display().to_string()
    }
}

/// Runs `bench --http2 --json` with these words; gives its exit code and its report.
fn bench(words: &str) -> (Option<i32>, Value) {
    let line = format!("bench --http2 --json -q {words}");
    let mut process = catamaran(&line.split(' ').collect::<Vec<_>>()).unwrap();
    let status = process.wait(Deadline::default()).unwrap();
    let said = process.stdout();
    let report = serde_json::from_str(&said)
        .unwrap_or_else(|error| panic!("{error}: {said}{}", process.stderr()));
    (status.code(), report)
}

/// nginx allows 128 streams, whatever is asked for.
#[test]
fn the_report_says_how_many_streams_there_were() {
    let nginx = Nginx::start(1_000_000);
    let words = format!("-n 3000 -c 1 --streams 1000 https://{}/", nginx.tls);
    let (_, report) = bench(&words);
    assert_eq!(report["streams"], 1000, "{report}");
    assert_eq!(report["streams_reached"], 128, "{report}");
}

#[test]
fn answers_come_on_many_streams_over_tls_and_in_clear() {
    let nginx = Nginx::start(1_000_000);
    // A Host field is the name that the certificate must have.
    let named = format!(
        "--cacert {} -H Host:localhost https://{}/",
        nginx.certificate(),
        nginx.tls
    );
    for url in [named, format!("http://{}/", nginx.clear)] {
        let (code, report) = bench(&format!("-n 2000 -c 4 --streams 16 {url}"));
        assert_eq!(code, Some(0), "{report}");
        assert_eq!(report["statuses"]["200"], 2000, "{report}");
        assert_eq!(report["protocol"], "HTTP/2");
        assert_eq!(report["streams"], 16);
        let connections = &report["connections"];
        assert_eq!(
            (&connections["opened"], &connections["resent"]),
            (&4.into(), &0.into())
        );
        assert_eq!(report["bytes"]["received_bodies"], 2000 * 5);
        assert!(
            report["server"]["software"]
                .as_str()
                .unwrap()
                .starts_with("nginx")
        );
    }
}

/// GOAWAY after 100 requests is no failure, also with others under way.
#[test]
fn a_server_that_limits_requests_gets_new_connections() {
    let nginx = Nginx::start(100);
    let (code, report) = bench(&format!("-n 2000 -c 2 --streams 8 http://{}/", nginx.clear));
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["statuses"]["200"], 2000, "{report}");
    let opened = report["connections"]["opened"].as_u64().unwrap();
    assert!((20..=60).contains(&opened), "{report}");
}

#[test]
fn an_open_loop_runs_over_http2() {
    let nginx = Nginx::start(1_000_000);
    let line = format!(
        "-n 200 --rate 400 -c 1 --streams 50 http://{}/none",
        nginx.clear
    );
    let (_, report) = bench(&line);
    assert_eq!(report["statuses"]["404"], 200, "{report}");
    assert_eq!(report["latency"]["corrected"]["count"], 200);
    assert_eq!(report["connections"]["opened"], 1);
}

/// ALPN: nginx offers HTTP/1.1 alone on that port.
#[test]
fn a_server_that_does_not_agree_to_http2_is_named() {
    let nginx = Nginx::start(1_000_000);
    let (code, report) = bench(&format!("-n 3 https://{}/", nginx.only_http1));
    assert_eq!(code, Some(1), "{report}");
    assert_eq!(report["failures"]["tls"], 3, "{report}");
    let (code, report) = bench(&format!("-n 3 http://{}/", nginx.only_http1));
    assert_eq!(code, Some(1), "{report}");
    assert_eq!(report["requests"]["failed"], 3, "{report}");
}

/// The text names the protocol, and `-v` shows both heads.
#[test]
fn the_report_says_that_it_was_http2() {
    let nginx = Nginx::start(1_000_000);
    let line = format!(
        "bench --http2 --streams 3 -n 30 -q -v 2 http://{}/",
        nginx.clear
    );
    let mut process = catamaran(&line.split(' ').collect::<Vec<_>>()).unwrap();
    let status = process.wait(Deadline::default()).unwrap();
    let said = process.stdout();
    assert_eq!(status.code(), Some(0), "{said}");
    for expected in [
        "GET / HTTP/2\n",
        "HTTP/2 200\n",
        "Protocol:               HTTP/2\n",
        "Streams:                3 per connection\n",
    ] {
        assert!(said.contains(expected), "{expected} in {said}");
    }
}
