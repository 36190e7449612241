//! A virtual host of 300 lines with mod_jk, files and Basic auth is taken over by three commands: `import --keep`,
//! `serve`, and `import --replay` with its own log. A browser signs on at the front with the password of the old server.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use catamaran_e2e::{Browser, Connector, Front, Tomcat, binary};
use catamaran_testkit::{Deadline, HttpClient, Process, address};

use crate::import::{import, text};
use crate::import_beside::started;

/// Writes the files of the virtual host, as they are with httpd at this address.
fn write_host(place: &Path, listens: SocketAddr, further: &str) {
    let tomcat = Tomcat::shared().unwrap().url(Connector::AjpTold);
    let (host, port) = tomcat
        .trim_start_matches("ajp://")
        .rsplit_once(':')
        .unwrap();
    let workers = include_str!("import_vhost/workers.properties");
    let workers = workers.replace("@HOST@", host).replace("@PORT@", port);
    fs::write(place.join("workers.properties"), workers).unwrap();
    let conf = include_str!("import_vhost/httpd.conf")
        .replace("@DIR@", &place.to_string_lossy())
        .replace("@MODULES@", "/usr/lib/apache2/modules")
        .replace("@LISTEN@", &listens.to_string())
        .replace("@PORT_OF_HOST@", &listens.port().to_string());
    let (_, inner) = conf.split_once("<VirtualHost").unwrap();
    assert!(inner.lines().count() >= 300, "{}", inner.lines().count());
    fs::write(place.join("httpd.conf"), conf + further).unwrap();
    fs::write(place.join("users"), USERS).unwrap();
    for (name, text) in FILES {
        let path = place.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn httpd(place: &Path, listens: SocketAddr) -> Process {
    let mut command = Command::new("/usr/sbin/apache2");
    command
        .arg("-DFOREGROUND")
        .arg("-f")
        .arg(place.join("httpd.conf"));
    started(&mut command, tempfile::tempdir().unwrap(), listens)
}

/// The status that a server answers with, as one of `www.example.org` unless the fields say otherwise.
fn status(server: SocketAddr, target: &str, fields: &str) -> u16 {
    let mut client = HttpClient::connect(server).unwrap();
    let host = if fields.contains("Host: ") {
        ""
    } else {
        "Host: www.example.org\r\n"
    };
    let head = format!("GET {target} HTTP/1.1\r\n{host}{fields}\r\n");
    client.ask(head).unwrap().status
}

#[test]
fn a_virtual_host_is_taken_over_by_three_commands() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let (before, after) = (address::unused().unwrap(), address::unused().unwrap());
    write_host(place, before, "");
    let old = httpd(place, before);
    for (target, expected) in REQUESTS {
        assert_eq!(status(before, target, ""), *expected, "{target}");
    }
    // Lines come after responses.
    let is_logged = || {
        let log = fs::read_to_string(place.join("access.log")).ok()?;
        (log.matches("\"GET /").count() >= REQUESTS.len()).then_some(())
    };
    Deadline::default()
        .poll("a line of each request", is_logged)
        .unwrap();
    drop(old);

    // The first command.
    let keep = format!("http://{after}");
    converts(place, &keep);

    // The old server moves, and learns who its clients are.
    write_host(place, after, REMOTE_IP);
    let _old = httpd(place, after);
    // The second command.
    let front = Front::with_file(&place.join("catamaran.toml"), &[]).unwrap();
    for (target, expected) in REQUESTS {
        assert_eq!(
            status(front.address(), target, ""),
            *expected,
            "{target} by the front"
        );
    }
    for (host, expected) in [
        ("example.org", 301),
        ("old-shop.example.org", 301),
        ("shop.example.org", 200),
    ] {
        let found = status(front.address(), "/open/x", &format!("Host: {host}\r\n"));
        assert_eq!(found, expected, "{host}");
    }

    browser_signs_on(&front);

    // The third.
    replays_alike(place, &keep, front.address());
}

/// What cannot be converted stays with the old server, at another address.
fn converts(place: &Path, keep: &str) {
    let arguments = [
        "--keep",
        keep,
        "--listen",
        "127.0.0.1:0",
        "--report",
        "json",
        "--out",
        "catamaran.toml",
        "httpd.conf",
    ];
    let output = import(place, &arguments);
    let said = text(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{said}\n{}",
        text(&output.stderr)
    );
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = |name: &str| report[name].as_u64().unwrap();
    let all = count("mapped") + count("dropped") + count("decided") + count("kept");
    assert_eq!(all, count("directives"));
    println!(
        "{all} directives: {} mapped, {} dropped, {} to decide, {} kept; {} routes, {} of them kept",
        count("mapped"),
        count("dropped"),
        count("decided"),
        count("kept"),
        count("routes"),
        count("routes_kept")
    );
    // The front asks for the passwords itself.
    let written = fs::read_to_string(place.join("catamaran.toml")).unwrap();
    assert!(written.contains("users_file = "), "{written}");
    let mut check = Command::new(binary().unwrap());
    let checked = check
        .arg("check")
        .arg(place.join("catamaran.toml"))
        .output()
        .unwrap();
    assert!(checked.status.success(), "{}", text(&checked.stderr));
}

/// The requests of the log have the same answers from both.
fn replays_alike(place: &Path, keep: &str, front: SocketAddr) {
    let new = format!("http://{}", front);
    let arguments = [
        "--replay",
        "access.log",
        "--old",
        keep,
        "--new",
        &new,
        "--host",
        "www.example.org",
        "--rate",
        "500/s",
    ];
    let output = import(place, &arguments);
    let said = text(&output.stdout);
    println!("{said}");
    assert_eq!(
        output.status.code(),
        Some(0),
        "{said}\n{}",
        text(&output.stderr)
    );
    let clean = format!("{0} requests to both: {0} answered alike", REQUESTS.len());
    assert!(said.contains(&clean), "{said}");
}

/// The page says who signed on, as the front tells Tomcat in the old server's place.
fn browser_signs_on(front: &Front) {
    let mut browser = Browser::start(&["www.example.org"]).unwrap();
    let port = front.address().port();
    let page = "www.example.org";
    let wrong = browser.open(&format!("http://alice:wrong@{page}:{port}/snoop.jsp"));
    let shown = browser.text().unwrap_or_default();
    assert!(!shown.contains("remote_user="), "{wrong:?} {shown}");
    browser
        .open(&format!("http://alice:{PASSWORD}@{page}:{port}/snoop.jsp"))
        .unwrap();
    let shown =
        browser.wait("document.body.innerText.includes('remote_user') && document.body.innerText");
    let shown = shown.unwrap().as_str().unwrap_or_default().to_owned();
    assert!(shown.contains("remote_user=alice"), "{shown}");
    // Signed on, the browser reads a draft: a file, which the front guards.
    browser
        .open(&format!(
            "http://alice:{PASSWORD}@{page}:{port}/drafts/novel.txt"
        ))
        .unwrap();
    let draft = browser
        .wait("document.body.innerText.includes('once') && 'read'")
        .unwrap();
    assert_eq!(draft, "read");
}

/// What the old server needs at its new address; docs/import.md says so.
const REMOTE_IP: &str = "RemoteIPHeader X-Forwarded-For\nRemoteIPInternalProxy 127.0.0.1\n";

const PASSWORD: &str = "wonder";

/// `htpasswd -nb alice wonder`.
const USERS: &str = "alice:$apr1$QO6qhvyZ$C/jvRaHE0Tltc3KKeuKqU.\n";

const FILES: &[(&str, &str)] = &[
    (
        "site/start/index.html",
        "<!DOCTYPE html><title>Start</title><p>Welcome.",
    ),
    ("site/minutes/may.txt", "decided\n"),
    ("site/drafts/novel.txt", "once upon a time\n"),
    ("downloads/prices.txt", "1 2 3\n"),
    ("press/logo.txt", "logo\n"),
    ("errors/403.html", "<!DOCTYPE html><title>Closed</title>"),
    ("errors/404.html", "<!DOCTYPE html><title>Not found</title>"),
    ("errors/500.html", "<!DOCTYPE html><title>Sorry</title>"),
    ("errors/503.html", "<!DOCTYPE html><title>Soon</title>"),
];

/// What the log has, with the status of each.
const REQUESTS: &[(&str, u16)] = &[
    ("/", 302),
    ("/start/", 200),
    ("/start/index.html", 200),
    ("/missing.txt", 404),
    ("/downloads/prices.txt", 200),
    ("/press/kit/logo.txt", 200),
    ("/errors/404.html", 200),
    ("/minutes/may.txt", 403),
    ("/drafts/novel.txt", 401),
    ("/news/2011/spring", 301),
    ("/events/expo", 301),
    ("/about-us", 301),
    ("/guestbook", 410),
    ("/sale", 302),
    ("/survey/a?b=c", 302),
    ("/index.php", 301),
    ("/phpmyadmin/", 410),
    ("/.git/config", 403),
    ("/open/x", 200),
    ("/open/x?a=b", 200),
    ("/page.html", 200),
    ("/company/", 404),
    ("/shop/static/x.css", 404),
    ("/open/static/x.css", 404),
    ("/open/office/a", 200),
    ("/open/closed/a", 403),
    ("/open/a.sql", 403),
    ("/open/WEB-INF/web.xml", 403),
    ("/adm@in/a", 200),
    ("/manager/html", 403),
    ("/webhooks/in", 404),
    ("/api/internal/keys", 403),
    ("/rest/debug", 403),
    ("/snoop.jsp", 401),
    ("/reports/2024", 401),
    ("/statistics", 401),
    ("/exports/all", 401),
];
