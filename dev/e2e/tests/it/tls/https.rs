//! The way to `https://`: redirections, HSTS, and ACME's challenges.

use std::fs;

use catamaran_e2e::Front;

use super::site_before;
use crate::reload::application;

/// A front in clear with these keys in its [[listen]]; `{directory}` is that of its file.
fn front(keys: &str, url: &str) -> Front {
    Front::with_config(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n{keys}\n[[route]]\nupstream = \"app\"\n\
         [[upstream.app.backend]]\nurl = \"{url}\"\n"
    ))
    .unwrap()
}

#[test]
fn clients_in_clear_are_sent_to_https() {
    let (_application, url) = application();
    for (value, at) in [("true", "www.test"), ("8443", "www.test:8443")] {
        let front = front(&format!("redirect_https = {value}"), &url);
        let mut client = front.connect().unwrap();
        for (host, path) in [
            ("www.test", "/a%20b?c=d&e"),
            ("WWW.test:8080", "//evil.test/"),
        ] {
            let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            client.send(head.as_bytes()).unwrap();
            // The connection is kept.
            let answer = client.receive().unwrap();
            assert_eq!(answer.status, 308);
            let location = format!("https://{at}{path}");
            assert_eq!(answer.header("location"), Some(&*location));
        }
        let form = "POST /form HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na=1";
        assert_eq!(front.ask(form).unwrap().status, 308);
        assert_eq!(front.ask("GET / HTTP/1.0\r\n\r\n").unwrap().status, 400);
        let acme = "/.well-known/acme-challenge/token";
        let line = front.get(acme).unwrap();
        assert_eq!(line.status, 404, "it is the application's");
    }
}

#[test]
fn a_trusted_proxy_that_speaks_tls_is_not_sent_away() {
    let (_application, url) = application();
    let keys = "redirect_https = true\n[server]\ntrusted_proxies = [\"127.0.0.1\"]";
    let front = front(keys, &url);
    let asked = |fields: &str| front.ask(front.head("GET", "/", fields)).unwrap().status;
    assert_eq!(asked("X-Forwarded-Proto: https\r\n"), 200);
    assert_eq!(asked("X-Forwarded-Proto: http\r\n"), 308);
    assert_eq!(asked(""), 308);
    let keys = "redirect_https = true";
    let front = self::front(keys, &url);
    let claim = front.head("GET", "/", "X-Forwarded-Proto: https\r\n");
    assert_eq!(front.ask(claim).unwrap().status, 308, "nobody trusts it");
}

#[test]
fn challenges_of_acme_are_answered_from_a_directory() {
    let (_application, url) = application();
    let front = front("redirect_https = true\nacme_webroot = \"acme\"", &url);
    let folder = front.directory().join("acme/.well-known/acme-challenge");
    fs::create_dir_all(folder.join("folder")).unwrap();
    fs::write(folder.join("to-ken_1"), "to-ken_1.digest").unwrap();
    fs::write(front.directory().join("acme/.well-known/secret"), "secret").unwrap();
    let get = |name: &str| front.get(&format!("/.well-known/acme-challenge/{name}"));
    let answer = get("to-ken_1").unwrap();
    assert_eq!((answer.status, &*answer.text()), (200, "to-ken_1.digest"));
    for none in ["token", "folder", "", "..%2fsecret", "..", "a.b"] {
        let answer = get(none).unwrap();
        // Dots are refused, or resolved and then redirected; nothing is read for them.
        assert!(
            [400, 404, 308].contains(&answer.status),
            "{none}: {}",
            answer.status
        );
        assert!(!answer.text().contains("secret"));
    }
    let post = front.head("POST", "/.well-known/acme-challenge/to-ken_1", "");
    assert_eq!(
        front.ask(post).unwrap().status,
        404,
        "it is the application's"
    );
}

#[test]
fn hsts_is_said_over_tls_unless_the_application_says_it() {
    // The backend says it itself for one path.
    let backend = backend();
    let table = format!("[[upstream.app.backend]]\nurl = \"http://{backend}\"\n");
    let site = site_before(&table, "");
    let config = site.front.directory().join("catamaran.toml");
    let text = fs::read_to_string(&config).unwrap();
    let text = text.replace("tls = \"www\"", "tls = \"www\"\nhsts = \"max-age=600\"");
    fs::write(&config, text).unwrap();
    let mut site = site;
    site.front
        .process()
        .signal(catamaran_testkit::Signal::Hangup)
        .unwrap();
    crate::reload::nth_line(site.front.process(), "reloaded", 1);
    for (path, expected) in [("/", "max-age=600"), ("/own", "max-age=7")] {
        let (status, body) = site.curl("a.test", path, &["--include"]);
        assert_eq!(status, "200");
        let text = String::from_utf8(body).unwrap().to_lowercase();
        let said: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("strict-transport-security: "))
            .collect();
        assert_eq!(said, [expected], "{text}");
    }
    // In clear nothing is said, not even by our own pages.
    let answer = site.front.get("/").unwrap();
    assert_eq!(answer.status, 400);
    assert_eq!(answer.header("strict-transport-security"), None);
}

/// A backend that says HSTS of its own at `/own`.
fn backend() -> std::net::SocketAddr {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
            let Some(Ok(first)) = lines.next() else {
                continue;
            };
            while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            let own = if first.contains("/own") {
                "Strict-Transport-Security: max-age=7\r\n"
            } else {
                ""
            };
            let answer =
                format!("HTTP/1.1 200 OK\r\n{own}Content-Length: 0\r\nConnection: close\r\n\r\n");
            socket.write_all(answer.as_bytes()).unwrap();
        }
    });
    address
}
