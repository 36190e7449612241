//! Limits of requests, as clients and operators meet them.

use catamaran_e2e::{App, Front, catamaran, curl};
use catamaran_testkit::{Deadline, Response};

use crate::reload::{reload, rewrite};

/// A whole file with these tables, with an admin socket and a page for every path that the tables leave.
fn file(tables: &str) -> String {
    format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[server]\nworkers = 2\ntrusted_proxies = [\"127.0.0.1\"]\n\
         [admin]\naddress = \"unix:{{directory}}/admin.sock\"\n\
         [[route]]\nstatus = 200\ntext = \"open\"\n{tables}"
    )
}

/// A route for `/limited` with these limits, and one limit with these keys.
fn limited(keys: &str) -> Front {
    let route =
        "[[route]]\npath = \"/limited\"\nstatus = 200\ntext = \"served\"\nlimits = [\"few\"]\n";
    Front::with_config(&file(&format!("{route}[limit.few]\n{keys}\n"))).unwrap()
}

/// A request from this client, as the proxy in front of the front tells it.
fn ask(front: &Front, method: &str, path: &str, client: &str) -> Response {
    let fields = format!("X-Forwarded-For: {client}\r\nContent-Length: 0\r\n");
    front.ask(front.head(method, path, &fields)).unwrap()
}

fn statuses(front: &Front, method: &str, path: &str, clients: &[&str]) -> Vec<u16> {
    let ask = |client: &&str| ask(front, method, path, client).status;
    clients.iter().map(ask).collect()
}

/// Runs a command for this front; gives its exit code and what it printed.
fn run(front: &Front, arguments: &[&str]) -> (Option<i32>, String) {
    let config = front.directory().join("catamaran.toml");
    let mut words = arguments.to_vec();
    words.extend(["--config", config.to_str().unwrap()]);
    let mut process = catamaran(&words).unwrap();
    let status = process.wait(Deadline::default()).unwrap();
    (status.code(), process.stdout() + &process.stderr())
}

fn ok(front: &Front, arguments: &[&str]) -> String {
    let (code, said) = run(front, arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {said}");
    said
}

#[test]
fn a_client_beyond_its_rate_is_refused_and_told_when_to_come_again() {
    let front = limited("rate = \"2/h\"\nburst = 2");
    let one = ["192.0.2.1"; 3];
    assert_eq!(statuses(&front, "GET", "/limited", &one), [200, 200, 429]);
    let refused = ask(&front, "GET", "/limited", "192.0.2.1");
    let wait: u32 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=1800).contains(&wait) && wait > 1600, "{wait}");
    assert!(refused.text().contains("too many requests"));
    assert!(refused.header("ratelimit").is_none());
    // Others, other routes and the connection are none of its business.
    assert_eq!(statuses(&front, "GET", "/limited", &["192.0.2.2"]), [200]);
    assert_eq!(statuses(&front, "GET", "/", &["192.0.2.1"; 4]), [200; 4]);
    let line = front.wait_for_log("reason=client:rate-limited").unwrap();
    assert!(
        line.contains(" limit=few ") && line.starts_with("192.0.2.1 "),
        "{line}"
    );
    let shown = ok(&front, &["status", "--limits"]);
    assert_eq!(
        shown,
        "few: 3 passed, 2 refused; 2 keys owe something\nrefused most often:\n  few 192.0.2.1: 2\n"
    );
    let url = "http://a/limited";
    let admin = format!("unix:{}/admin.sock", front.directory().display());
    let explained = |client: &str| {
        let field = format!("X-Forwarded-For: {client}");
        let words = ["explain", url, "--admin", &admin, "--header", &field];
        let mut process = catamaran(&words).unwrap();
        process.wait(Deadline::default()).unwrap();
        process.stdout()
    };
    for _ in 0..2 {
        let text = explained("192.0.2.2");
        assert!(
            text.contains("limit few counts it to 192.0.2.2, of which 0 more would pass"),
            "{text}"
        );
    }
    assert!(explained("192.0.2.1").contains("limit few refuses 192.0.2.1 now"));
    assert_eq!(
        ok(&front, &["limit", "forget", "few", "192.0.2.1"]),
        "forgotten\n"
    );
    assert_eq!(statuses(&front, "GET", "/limited", &["192.0.2.1"]), [200]);
    assert_eq!(
        ok(&front, &["limit", "forget", "few", "192.0.2.9"]),
        "it owed nothing\n"
    );
    let (code, said) = run(&front, &["limit", "forget", "other", "192.0.2.1"]);
    assert!(
        code != Some(0) && said.contains("there is no limit \"other\""),
        "{said}"
    );
}

/// Rows 3 and 4: who a client is.
#[test]
fn a_client_is_whom_trusted_proxies_tell() {
    let front = limited("rate = \"1/h\"");
    let network = ["2001:db8:0:1::1", "2001:db8:0:1:ffff::2", "2001:db8:0:2::1"];
    assert_eq!(
        statuses(&front, "GET", "/limited", &network),
        [200, 429, 200]
    );
    let mapped = ["::ffff:192.0.2.1", "192.0.2.1"];
    assert_eq!(statuses(&front, "GET", "/limited", &mapped), [200, 429]);
    // The proxy's own requests, of which it does not tell the client.
    for _ in 0..3 {
        assert_eq!(front.get("/limited").unwrap().status, 200);
    }
    let page = ok(&front, &["status", "--json"]);
    assert!(page.contains("front:limit-no-client"), "{page}");
    // What a stranger claims does not count: the proxy's right-most entry does.
    let claims = ["10.1.1.1, 192.0.2.7", "10.1.1.2, 192.0.2.7"];
    assert_eq!(statuses(&front, "GET", "/limited", &claims), [200, 429]);
}

/// Rows 9 and 11: a body is not read, and a limit is not charged for what another refuses.
#[test]
fn a_refusal_is_early_and_costs_nothing_elsewhere() {
    let tables = "[[route]]\npath = \"/both\"\nstatus = 200\ntext = \"x\"\nlimits = [\"wide\", \"narrow\"]\n\
                  [[route]]\npath = \"/wide\"\nstatus = 200\ntext = \"x\"\nlimits = \"wide\"\n\
                  [limit.wide]\nrate = \"3/h\"\nburst = 3\n[limit.narrow]\nrate = \"1/h\"\nmethods = \"POST\"\n\
                  except = \"10.0.0.0/8\"\n";
    let front = Front::with_config(&file(tables)).unwrap();
    let one = ["192.0.2.1"; 5];
    assert_eq!(
        statuses(&front, "POST", "/both", &one),
        [200, 429, 429, 429, 429]
    );
    assert_eq!(statuses(&front, "GET", "/wide", &one[..3]), [200, 200, 429]);
    assert_eq!(
        statuses(&front, "POST", "/both", &["10.1.1.1"; 4]),
        [200, 200, 200, 429]
    );
    let fields = "X-Forwarded-For: 192.0.2.1\r\nContent-Length: 1073741824\r\n";
    let early = front.ask(front.head("POST", "/both", fields)).unwrap();
    assert_eq!(early.status, 429);
}

/// Row 12: what is not enforced is served, and a reload keeps what clients owe.
#[test]
fn a_dry_run_serves_and_a_reload_keeps_what_clients_owe() {
    let mut front = limited("rate = \"1/h\"\nenforce = false");
    let one = ["192.0.2.1"; 3];
    assert_eq!(statuses(&front, "GET", "/limited", &one), [200; 3]);
    front.wait_for_log(" limit_dry=few ").unwrap();
    let shown = ok(&front, &["status", "--limits"]);
    assert!(
        shown.starts_with("few: 1 passed, 0 refused, 2 would have been"),
        "{shown}"
    );
    let config = std::fs::read_to_string(front.directory().join("catamaran.toml")).unwrap();
    rewrite(&front, &config.replace("enforce = false", "fields = true"));
    reload(&mut front, "reloaded;", 1);
    let refused = ask(&front, "GET", "/limited", "192.0.2.1");
    assert_eq!(refused.status, 429);
    assert_eq!(
        refused.header("ratelimit-policy"),
        Some("\"few\";q=1;w=3600")
    );
    let left = refused.header("ratelimit").unwrap();
    assert!(left.starts_with("\"few\";r=0;t="), "{left}");
    let served = ask(&front, "GET", "/limited", "192.0.2.2");
    assert_eq!(served.status, 200);
    assert_eq!(served.header("ratelimit"), Some("\"few\";r=0;t=3600"));
}

/// A limit of the listener holds before routes are told apart, and once if a route has it as well.
#[test]
fn a_listener_limits_all_its_requests() {
    let config = file(
        "[[route]]\npath = \"/both\"\nstatus = 200\ntext = \"x\"\nlimits = \"all\"\n\
         [limit.all]\nrate = \"4/h\"\nburst = 4\nby = \"all\"\n",
    );
    let config = config.replacen("address", "limits = \"all\"\naddress", 1);
    let front = Front::with_config(&config).unwrap();
    let mut asked = Vec::new();
    for (path, client) in [
        ("/both", "192.0.2.1"),
        ("/", "192.0.2.2"),
        ("/both", "192.0.2.3"),
        ("/", "192.0.2.4"),
        ("/", "192.0.2.5"),
    ] {
        asked.push(ask(&front, "GET", path, client).status);
    }
    assert_eq!(asked, [200, 200, 200, 200, 429]);
}

/// curl's own pauses, of 1 s and then 2 s, would have it refused twice.
#[test]
fn curl_waits_as_it_is_told() {
    let front = limited("rate = \"20/m\"");
    let url = format!("http://{}/limited", front.address());
    let output = curl()
        .args(["--retry", "5", "--write-out", " %{http_code}\n"])
        .args(["--header", "X-Forwarded-For: 192.0.2.1", &url, &url])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let first_and_last = said.starts_with("served 200\n") && said.ends_with("served 200\n");
    assert!(first_and_last, "{said}");
    let shown = ok(&front, &["status", "--limits"]);
    // The second came late enough by itself if none was refused.
    let refused = ["2 passed, 1 refused", "2 passed, 0 refused"];
    assert!(refused.iter().any(|it| shown.contains(it)), "{shown}");
}

/// Row 10: a place is given back with the response, and if the client leaves.
#[test]
fn requests_in_flight_give_their_places_back() {
    let app = App::start("epoll", &[]).unwrap();
    let tables = format!(
        "[[route]]\npath = \"/echo\"\nupstream = \"app\"\nlimits = \"few\"\n[limit.few]\nin_flight = 1\n\
         [[upstream.app.backend]]\nurl = \"ajp://{}\"\n",
        app.ajp()
    );
    let front = Front::with_config(&file(&tables)).unwrap();
    let fields = "X-Forwarded-For: 192.0.2.1\r\nContent-Length: 4\r\n";
    let shown = || ok(&front, &["status", "--limits"]);
    let begin = || {
        // A response is with its client before its place is given back.
        until(shown, |shown| shown.contains("0 in flight, of 0 keys"));
        let mut client = front.connect().unwrap();
        let request = front.head("POST", "/echo", fields) + "ab";
        client.send(request.as_bytes()).unwrap();
        until(shown, |shown| shown.contains("1 in flight, of 1 keys"));
        let refused = ask(&front, "POST", "/echo", "192.0.2.1");
        assert_eq!(refused.status, 429);
        assert_eq!(refused.header("retry-after"), Some("1"));
        client
    };
    let mut client = begin();
    front.wait_for_log("reason=client:in-flight").unwrap();
    assert_eq!(ask(&front, "POST", "/echo", "192.0.2.2").status, 200);
    client.send(b"cd").unwrap();
    assert_eq!(client.receive().unwrap().status, 200);
    let served = || ask(&front, "POST", "/echo", "192.0.2.1");
    until(served, |answer| answer.status == 200);
    drop(begin());
    until(served, |answer| answer.status == 200);
    until(shown, |shown| shown.contains("0 in flight, of 0 keys"));
}

/// Asks until an answer is as wanted.
fn until<T>(mut ask: impl FnMut() -> T, is_wanted: impl Fn(&T) -> bool) -> T {
    Deadline::default()
        .poll("such an answer", || Some(ask()).filter(&is_wanted))
        .unwrap()
}

#[test]
fn new_connections_of_an_address_have_a_rate() {
    let front = Front::with_config(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nconnection_rate = \"3/h\"\n\
         [[route]]\nstatus = 200\ntext = \"x\"\n[admin]\naddress = \"unix:{directory}/admin.sock\"\n",
    )
    .unwrap();
    for _ in 0..3 {
        assert_eq!(front.get("/").unwrap().status, 200);
    }
    assert!(front.get("/").is_err());
    let status = ok(&front, &["status", "--json"]);
    assert!(status.contains("front:connection-rate"), "{status}");
}

/// Row 7: an absent or empty field is the address, and so is one that is sent twice: backends may believe either line.
#[test]
fn a_field_may_be_the_key() {
    let front = limited("rate = \"1/h\"\nby = \"header:X-Key\"");
    let status = |client: &str, keys: &str| {
        let fields = format!("X-Forwarded-For: {client}\r\n{keys}");
        front
            .ask(front.head("GET", "/limited", &fields))
            .unwrap()
            .status
    };
    let (one, other) = ("192.0.2.1", "192.0.2.2");
    for (client, keys, expected) in [
        (one, "X-Key: a\r\n", 200),
        (other, "X-Key: a\r\n", 429),
        (one, "X-Key: a\r\nX-Key: b\r\n", 200),
        (one, "X-Key: c\r\nX-Key: d\r\n", 429),
        (one, "", 429),
        (one, "X-Key:\r\n", 429),
        (other, "", 200),
    ] {
        assert_eq!(status(client, keys), expected, "{client} {keys:?}");
    }
    let long = format!("X-Key: {}\r\n", "k".repeat(4000));
    assert_eq!([status(one, &long), status(one, &long)], [200, 429]);
    assert_eq!(ok(&front, &["limit", "forget", "few", "a"]), "forgotten\n");
    assert_eq!(status(other, "X-Key: a\r\n"), 200);
}
