//! What an operator sees and does on the second day: errors of an application, readiness, commands.

mod tomcats;

use std::fs;
use std::net::SocketAddr;

use catamaran_e2e::{Connector, Front, Tomcat, catamaran};
use catamaran_testkit::tls::Authority;
use catamaran_testkit::{Deadline, HttpClient, Process, address};
use rcgen::{CertificateParams, date_time_ymd};
use serde_json::Value;

use crate::reload::application;

#[test]
fn each_upstream_without_backends_is_named_and_the_wanted_ones_decide() {
    let (_application, url) = application();
    let refusing = address::refusing().unwrap();
    let config = |ready: &str| {
        format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"shop\"\n\
             [[route]]\npath = \"/reports\"\nupstream = \"reports\"\n\
             [[upstream.shop.backend]]\nurl = \"{url}\"\n\
             [[upstream.reports.backend]]\nname = \"gone\"\nurl = \"http://{refusing}\"\n\
             [[upstream.reports.backend]]\nname = \"drained\"\nurl = \"{url}\"\n\
             activation = \"drain\"\n\
             [admin]\naddress = \"127.0.0.1:0\"\n{ready}"
        )
    };
    for (ready, status, first) in [
        ("", 503, "not ready"),
        ("ready = [\"reports\"]\n", 503, "not ready"),
        ("ready = [\"shop\"]\n", 200, "ready"),
        ("ready = []\n", 200, "ready"),
    ] {
        let front = Front::with_config(&config(ready)).unwrap();
        assert_eq!(front.ask_admin("/readyz").unwrap().text(), "ready\n");
        assert_eq!(front.get("/reports").unwrap().status, 503);
        let said = Deadline::default().poll("an upstream without backends", || {
            let answer = front.ask_admin("/readyz").unwrap();
            (answer.text().lines().count() > 1).then_some(answer)
        });
        let said = said.unwrap();
        let text = format!("{first}\nupstream reports accepts no new clients\n");
        assert_eq!((said.status, said.text()), (status, text), "{ready}");
        let of = |upstream: &str| {
            let target = format!("/readyz?upstream={upstream}");
            front.ask_admin(&target).unwrap().status
        };
        assert_eq!((of("shop"), of("reports")), (200, 503));
        assert_eq!(
            front.metric("catamaran_upstream_ready").unwrap(),
            [0.0, 1.0]
        );
    }
}

/// Runs a command against the admin socket of a front.
fn run(front: &Front, arguments: &[&str]) -> (Option<i32>, String) {
    let admin = format!("unix:{}/admin.sock", front.directory().display());
    let words = [arguments, &["--admin", &admin]].concat();
    let mut process = catamaran(&words).unwrap();
    let status = process.wait(Deadline::default()).unwrap();
    (status.code(), process.stdout() + &process.stderr())
}

fn with_socket(url: &str, more: &str) -> String {
    format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\n\
         [[upstream.app.backend]]\nname = \"one\"\nurl = \"{url}\"\n\
         [admin]\naddress = [\"unix:admin.sock\", \"127.0.0.1:0\"]\n{more}"
    )
}

#[test]
fn an_upgrade_by_command_says_whether_it_worked() {
    let (_application, url) = application();
    let mut front = Front::with_config(&with_socket(&url, "")).unwrap();
    let first = front.process().id();
    let since = front.metric("catamaran_served_since_seconds").unwrap();
    let (code, said) = run(&front, &["upgrade"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("upgraded: process "), "{said}");
    assert!(
        said.contains(&format!("serves in place of {first}")),
        "{said}"
    );
    let (code, said) = run(&front, &["status", "--json"]);
    let status: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(code, Some(0));
    assert_ne!(status["process"], first);
    assert_eq!(
        front.metric("catamaran_served_since_seconds").unwrap(),
        since
    );
    // Until it stops accepting, the first one may be asked as well, and refuses.
    let ended = || front.process().try_wait().unwrap();
    Deadline::default().poll("the first to end", ended).unwrap();
    fs::write(front.directory().join("catamaran.toml"), "nonsense").unwrap();
    let (code, said) = run(&front, &["upgrade"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("error: not upgraded: the new process ended"),
        "{said}"
    );
    assert_eq!(front.get("/").unwrap().status, 200);
}

#[test]
fn logs_are_reopened_and_a_deadline_in_the_past_is_refused() {
    let (_application, url) = application();
    let front = Front::with_config(&with_socket(&url, "[log]\naccess = \"access.log\"\n")).unwrap();
    front.get("/before").unwrap();
    let at = |name: &str| front.directory().join(name);
    let has = |name: &str, path: &str| {
        let what = format!("{path} in {name}");
        let found = || {
            fs::read_to_string(at(name))
                .ok()
                .filter(|it| it.contains(path))
        };
        Deadline::default().poll(&what, found).unwrap();
    };
    has("access.log", "/before");
    fs::rename(at("access.log"), at("access.log.1")).unwrap();
    let (code, said) = run(&front, &["log", "reopen"]);
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "the access log was opened again\n")
    );
    front.get("/after").unwrap();
    has("access.log", "/after");
    let past = [
        "drain",
        "app/one",
        "--force",
        "--deadline",
        "2020-01-31T04:00:00Z",
    ];
    let (code, said) = run(&front, &past);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("`deadline` lies in the past: it is 20"),
        "{said}"
    );
    let (code, said) = run(&front, &["drain", "app/one", "--force", "--json"]);
    let drained: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!(
        (code, &drained["settings"]["activation"]),
        (Some(0), &"drain".into())
    );
    // The only backend accepts nobody new.
    assert_eq!(run(&front, &["status"]).0, Some(1));
    assert_eq!(run(&front, &["status", "app"]).0, Some(1));
    assert_eq!(run(&front, &["status", "app/one"]).0, Some(0));
    assert_eq!(run(&front, &["activate", "app/one"]).0, Some(0));
    let (code, said) = run(&front, &["status"]);
    assert_eq!(code, Some(0));
    assert!(
        said.contains(" UTC") && said.lines().all(|it| it.chars().count() <= 80),
        "{said}"
    );
}

#[test]
fn a_certificate_is_refused_as_long_as_it_is_and_no_longer() {
    let (_application, url) = application();
    let authority = Authority::new("authority").unwrap();
    let files = tempfile::tempdir().unwrap();
    authority.issue(files.path(), "a", &["a.test"]).unwrap();
    let at = files.path().display();
    let more = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = \"www\"\n[tls.www]\n\
         certificate_watch = \"1s\"\n\
         [[tls.www.certificate]]\nchain = \"{at}/a.pem\"\nkey = \"{at}/a.key\"\n"
    );
    let front = Front::with_config(&with_socket(&url, &more)).unwrap();
    let becomes = |value: f64| {
        let what = format!("catamaran_tls_certificate_refused {value}");
        let is = || {
            let now = front.metric("catamaran_tls_certificate_refused").unwrap();
            (now == [value]).then_some(())
        };
        Deadline::default().poll(&what, is).unwrap();
    };
    becomes(0.0);
    let (code, said) = run(&front, &["certificates"]);
    assert!(
        code == Some(0) && said.contains("[tls.www], read at "),
        "{said}"
    );
    assert!(said.contains("  a.test (ECDSA) ends "), "{said}");
    let good = fs::read(files.path().join("a.pem")).unwrap();
    fs::write(files.path().join("a.pem"), "nonsense").unwrap();
    becomes(1.0);
    let (code, said) = run(&front, &["certificates"]);
    assert!(
        code == Some(1) && said.contains("no CERTIFICATE block"),
        "{said}"
    );
    fs::write(files.path().join("a.pem"), good).unwrap();
    becomes(0.0);
}

#[test]
fn a_reload_says_which_certificates_it_replaced_and_which_are_doubtful() {
    let (_application, url) = application();
    let authority = Authority::new("authority").unwrap();
    let files = tempfile::tempdir().unwrap();
    let issue = |name: &str, until: i32| {
        let change = |params: &mut CertificateParams| {
            params.not_after = date_time_ymd(until, 1, 31);
        };
        let names = [format!("{name}.test")];
        authority
            .issue_with(files.path(), name, &[&names[0]], change)
            .unwrap();
    };
    issue("a", 2199);
    issue("b", 2020);
    let at = files.path().display();
    let pair = |name| {
        format!("[[tls.www.certificate]]\nchain = \"{at}/{name}.pem\"\nkey = \"{at}/{name}.key\"\n")
    };
    let more = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = \"www\"\n[tls.www]\n\
         certificate_watch = \"off\"\n{}{}",
        pair("a"),
        pair("b")
    );
    let front = Front::with_config(&with_socket(&url, &more)).unwrap();
    let (code, said) = run(&front, &["reload"]);
    assert!(
        code == Some(0) && said.contains("; certificates: 2 kept"),
        "{said}"
    );
    assert!(
        !said.contains("ENDED"),
        "it is what is served already: {said}"
    );

    issue("a", 2198);
    issue("b", 2021);
    let (code, said) = run(&front, &["reload"]);
    let replaced = "certificates: 0 kept, replaced a.test (ends 2198-01-31T00:00:00Z, EARLIER than the \
                    previous one: 2199-01-31T00:00:00Z), replaced b.test (ENDED 2021-01-31T00:00:00Z, ";
    assert!(code == Some(0) && said.contains(replaced), "{said}");
    let line = front.wait_for_log("EARLIER than the previous one").unwrap();
    assert!(line.contains("WARN"), "{line}");

    let (code, said) = run(&front, &["certificates", "--within", "14d"]);
    assert_eq!(code, Some(1), "one has ended: {said}");
    for (end, order) in [
        ("ends 2199-01-31 00:00:00 UTC", ", LATER than this one\n"),
        ("ended 2020-01-31 00:00:00 UTC", "\n"),
    ] {
        let replaced = format!(" in place of one that {end}{order}");
        assert!(said.contains(&replaced), "{replaced}: {said}");
    }
}

#[test]
fn all_of_ipv6_is_all_of_ipv4_too() {
    let (_application, url) = application();
    let Ok(probe) = std::net::TcpListener::bind("[::1]:0") else {
        // A machine without IPv6.
        return;
    };
    drop(probe);
    let front = Front::with_config(&format!(
        "[[listen]]\naddress = \"[::]:0\"\n[[route]]\nupstream = \"app\"\nallow = [\"127.0.0.0/8\"]\n\
         [[upstream.app.backend]]\nurl = \"{url}\"\n"
    ))
    .unwrap();
    let port = front.address().port();
    for (ip, status) in [("127.0.0.1", 200), ("[::1]", 403)] {
        let address: SocketAddr = format!("{ip}:{port}").parse().unwrap();
        let mut client = HttpClient::connect(address).unwrap();
        client
            .send(format!("GET /?{status} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes())
            .unwrap();
        assert_eq!(client.receive().unwrap().status, status, "{ip}");
    }
    let line = front.wait_for_log("GET /?200 ").unwrap();
    assert!(line.starts_with("127.0.0.1 - - "), "{line}");
}

#[test]
fn fields_of_all_routes_denied_networks_and_logs_of_hosts() {
    let (_application, url) = application();
    let front = Front::with_config(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\
         [server.response_headers]\nset = {{ X-Frame-Options = \"DENY\", X-Site = \"all\" }}\n\
         [[route]]\nupstream = \"app\"\n\
         [[route]]\npath = \"/bytes\"\nupstream = \"app\"\n\
         [route.response_headers]\nset = {{ X-Site = \"own\" }}\n\
         [[route]]\npath = \"/status\"\nstatus = 410\n\
         [[route]]\npath = \"/inside\"\nupstream = \"app\"\nallow = [\"127.0.0.0/8\"]\n\
         deny = [\"127.0.0.0/30\"]\n\
         [[route]]\npath = \"/snoop\"\nupstream = \"app\"\ndeny = [\"192.0.2.0/24\"]\n\
         [[upstream.app.backend]]\nurl = \"{url}\"\n\
         [log]\naccess = \"access.log\"\nhosts = {{ \"shop.test\" = \"shop.log\" }}\n"
    ))
    .unwrap();
    for (path, status, site) in [
        ("/", 200, Some("all")),
        ("/bytes/1", 200, Some("own")),
        ("/status", 410, Some("all")),
        ("/inside", 403, Some("all")),
        ("/snoop", 200, Some("all")),
    ] {
        let answer = front.get(path).unwrap();
        assert_eq!(
            (answer.status, answer.header("x-site")),
            (status, site),
            "{path}"
        );
        assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{path}");
    }
    let asked = b"GET /?shop HTTP/1.1\r\nHost: Shop.test\r\n\r\n";
    assert_eq!(front.ask(asked).unwrap().status, 200);
    let read = |name: &str| fs::read_to_string(front.directory().join(name)).unwrap_or_default();
    let shop = || Some(read("shop.log")).filter(|it| it.contains("GET /?shop "));
    let shop = Deadline::default()
        .poll("the line of the shop", shop)
        .unwrap();
    assert_eq!(shop.lines().count(), 1, "{shop}");
    let all = || Some(read("access.log")).filter(|it| it.lines().count() == 5);
    let all = Deadline::default().poll("the other lines", all).unwrap();
    assert!(
        all.contains("reason=client:route-denied") && !all.contains("?shop"),
        "{all}"
    );
}

#[test]
fn a_flood_of_failures_is_not_a_flood_of_lines() {
    let refusing = address::refusing().unwrap();
    let front = Front::with_config(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\n\
         [upstream.app]\neject = false\nretries = 0\n\
         [[upstream.app.backend]]\nurl = \"http://{refusing}\"\n[log]\naccess = \"off\"\n"
    ))
    .unwrap();
    for _ in 0..400 {
        assert_eq!(front.get("/").unwrap().status, 503);
    }
    front.wait_for_log("backend:").unwrap();
    let lines = front
        .log()
        .lines()
        .filter(|line| line.contains("backend:"))
        .count();
    assert!((1..=300).contains(&lines), "{lines} lines");
}

/// README's command, with the secret that a stock Tomcat asks for.
#[test]
fn a_front_without_a_file_has_the_secret_of_tomcat() {
    let tomcat = Tomcat::shared().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let secret = directory.path().join("ajp.secret");
    fs::write(&secret, Tomcat::SECRET).unwrap();
    let url = tomcat.url(Connector::AjpSecret);
    let serve = ["serve", "--listen", "127.0.0.1:0", "--upstream", &url];
    let ask = |more: &[&str]| {
        let process: Process = catamaran(&[&serve, more].concat()).unwrap();
        let address = process.wait_for_line("an address", |line| {
            line.strip_prefix("listening on http://")?
                .parse::<SocketAddr>()
                .ok()
        });
        let mut client = HttpClient::connect(address.unwrap()).unwrap();
        client
            .ask(b"GET /page.html HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap()
            .status
    };
    assert_eq!(ask(&[]), 403);
    assert_eq!(ask(&["--secret-file", secret.to_str().unwrap()]), 200);
}
