//! Handshakes that are many, silent, endless, or none.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use catamaran_e2e::Front;
use catamaran_testkit::Deadline;

use super::{Site, site};
use crate::reload::application;

/// A connection that has sent these bytes.
fn connect(front: &Front, bytes: &[u8]) -> TcpStream {
    let mut socket = TcpStream::connect(front.address()).unwrap();
    let patience = Duration::from_secs(60);
    socket.set_read_timeout(Some(patience)).unwrap();
    socket.write_all(bytes).unwrap();
    socket
}

/// What comes until the front closes.
fn read_to_end(socket: &mut TcpStream) -> Vec<u8> {
    let mut read = Vec::new();
    // A reset is a close, too: the front may not have read everything.
    let _ = socket.read_to_end(&mut read);
    read
}

/// Waits until a metric is this.
fn wait_for(site: &Site, metric: &str, value: f64) {
    let what = format!("{metric} {value}");
    let is = || (site.front.metric(metric).unwrap().iter().sum::<f64>() == value).then_some(());
    Deadline::default().poll(&what, is).unwrap();
}

#[test]
fn silent_handshakes_make_room_the_oldest_first() {
    let site = site("handshakes_max = 4\nhandshake_timeout = \"10m\"\n[server]\nworkers = 1");
    let open = "catamaran_tls_handshakes_open";
    // Each of them arrives before the next. Two have begun a ClientHello that does not end.
    let mut silent: Vec<TcpStream> = Vec::new();
    for number in 0..4 {
        let begun: &[u8] = if number % 2 == 0 {
            b""
        } else {
            b"\x16\x03\x01"
        };
        silent.push(connect(&site.front, begun));
        wait_for(&site, open, f64::from(number + 1));
    }
    let mut later = Vec::new();
    for oldest in &mut silent {
        let (status, _) = site.curl("a.test", "/", &[]);
        assert_eq!(status, "200");
        assert!(read_to_end(oldest).is_empty());
        // The next comes after those that are left.
        wait_for(&site, open, 3.0);
        later.push(connect(&site.front, b""));
        wait_for(&site, open, 4.0);
    }
    site.front.wait_for_log("front:tls-handshakes-max").unwrap();
}

/// What OpenSSL begins a handshake with.
fn client_hello() -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut client = Command::new("openssl")
        .args(["s_client", "-servername", "a.test", "-connect", &address])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut socket, _) = listener.accept().unwrap();
    let mut hello = vec![0; 5];
    socket.read_exact(&mut hello).unwrap();
    let length = usize::from(u16::from_be_bytes([hello[3], hello[4]]));
    hello.resize(5 + length, 0);
    socket.read_exact(&mut hello[5..]).unwrap();
    drop(socket);
    client.wait().unwrap();
    hello
}

/// Handshakes that stall after a whole ClientHello, and have been answered.
#[test]
fn stalled_handshakes_make_room_the_oldest_first() {
    let site = site("handshakes_max = 4\nhandshake_timeout = \"10m\"\n[server]\nworkers = 1");
    let hello = client_hello();
    let stall = || {
        let mut socket = connect(&site.front, &hello);
        let mut record = [0; 3];
        socket.read_exact(&mut record).unwrap();
        assert_eq!(record, [0x16, 3, 3]);
        socket
    };
    let mut stalled: Vec<TcpStream> = (0..4).map(|_| stall()).collect();
    for round in 0..8 {
        let (status, _) = site.curl("a.test", "/", &[]);
        assert_eq!(status, "200", "after {round}");
        // What is left of its answer, and the end.
        read_to_end(&mut stalled.remove(0));
        stalled.push(stall());
    }
    wait_for(&site, "catamaran_tls_handshakes_open", 4.0);
    site.front.wait_for_log("front:tls-handshakes-max").unwrap();
}

#[test]
fn what_is_no_handshake_is_refused_and_logged_once() {
    // Each worker logs once.
    let site = site("[server]\nworkers = 1");
    // A message of 16 MiB, of which records without end would come.
    let mut endless = vec![0x16, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff];
    endless.resize(5 + 0x4000, b'x');
    let mut socket = connect(&site.front, &endless);
    let alert = read_to_end(&mut socket);
    assert!(matches!(alert[..], [] | [21, 3, ..]), "{alert:?}");
    for request in ["GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let answer = read_to_end(&mut connect(&site.front, request.as_bytes()));
        assert!(answer.starts_with(b"HTTP/1.1 400 "), "{answer:?}");
    }
    // Neither TLS nor HTTP is closed without a word.
    assert!(read_to_end(&mut connect(&site.front, b"\0\x01\x02\x03")).is_empty());
    let reasons = site.front.ask_admin("/metrics").unwrap().text();
    for (reason, count) in [("tls-handshake", 1), ("plain-http-on-tls", 3)] {
        let line = format!("reason=\"{reason}\"}} {count}\n");
        assert!(reasons.contains(&line), "{line} in {reasons}");
    }
    let tokens = ["client:tls-handshake ", "client:plain-http-on-tls "];
    // The log is written behind what it tells of.
    for token in tokens {
        site.front.wait_for_log(token).unwrap();
    }
    let log = site.front.log();
    for token in tokens {
        assert_eq!(log.matches(token).count(), 1, "{token} in {log}");
    }
}

#[test]
fn tls_on_a_port_without_it_is_closed_and_counted() {
    let (_application, url) = application();
    let front = Front::with_config(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\n\
         [[upstream.app.backend]]\nurl = \"{url}\"\n[admin]\naddress = \"127.0.0.1:0\"\n"
    ))
    .unwrap();
    let output = Command::new("openssl")
        .args(["s_client", "-connect", &front.address().to_string()])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{said}");
    let metrics = front.ask_admin("/metrics").unwrap().text();
    let line = "culprit=\"client\",reason=\"tls-on-clear-port\"} 1\n";
    assert!(metrics.contains(line), "{metrics}");
    assert_eq!(front.get("/").unwrap().status, 200);
}
