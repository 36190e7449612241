//! Sign-on before the application: each way in that such fronts have had, over AJP and HTTP, to clients of HTTP/1.1 and
//! HTTP/2. A scripted service answers by the cookie `case`, and tells what it was asked.

mod admin;
mod tunnels;
mod users;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use catamaran_e2e::{App, Front, curl};
use catamaran_testkit::Deadline;

/// The scripted service, and a backend whose responses may be stored.
struct Service {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Service {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&asked);
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let log = Arc::clone(&log);
                // A front that has enough of an answer breaks the connection.
                thread::spawn(move || serve(socket, &log).ok());
            }
        });
        Self { address, asked }
    }

    /// The heads that were received since the last call, in lower case.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    /// The only head that was received since the last call.
    fn only(&self) -> String {
        let asked = self.take();
        assert_eq!(asked.len(), 1, "{asked:?}");
        asked.into_iter().next().unwrap()
    }
}

fn serve(socket: TcpStream, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut input = BufReader::new(socket.try_clone()?);
    let mut output = socket;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if input.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let case = match head.split_once("case=") {
            _ if head.starts_with("GET /stored/own") => "own",
            _ if head.starts_with("GET /stored") => "stored",
            Some((_, rest)) => rest.split([';', '\r']).next().unwrap_or_default(),
            None => "",
        };
        let answer = answer(case);
        log.lock().unwrap().push(head.to_ascii_lowercase());
        output.write_all(answer.as_bytes())?;
        match case {
            "cut" => return Ok(()),
            "silent" => {
                // Until the front closes.
                input.read_to_end(&mut Vec::new())?;
            }
            "endless" => loop {
                output.write_all(b"4\r\nxxxx\r\n")?;
            },
            _ => {}
        }
    }
}

/// What the service answers in a case.
fn answer(case: &str) -> String {
    let whole = |status: &str, fields: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    match case {
        "ann" => whole(
            "200 OK",
            "X-Auth-User: ann\r\nX-Auth-Mail: ann@example.org\r\nX-Auth-Groups: a\r\nX-Auth-Groups: b\r\n\
             Set-Cookie: one=1\r\nSet-Cookie: two=2; Path=/\r\nCache-Control: public, max-age=60\r\n",
            "granted",
        ),
        "stored" => whole("200 OK", "Cache-Control: public, max-age=60\r\n", "stored"),
        "own" => whole(
            "200 OK",
            "Cache-Control: max-age=60, must-revalidate\r\n",
            "of one user",
        ),
        "anonymous" => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
        "two" => whole("200 OK", "X-Auth-User: ann\r\nX-Auth-User: root\r\n", ""),
        "nul" => whole("200 OK", "X-Auth-User: a\0nn\r\n", ""),
        "long" => whole(
            "200 OK",
            &format!("X-Auth-Mail: {}\r\n", "m".repeat(9 << 10)),
            "",
        ),
        "forbidden" => whole(
            "403 Forbidden",
            "X-Why: team\r\nCache-Control: public, max-age=60\r\n",
            "not you",
        ),
        "moved" => whole("302 Found", "Location: https://sso.example/login\r\n", ""),
        "partial" => whole("206 Partial Content", "X-Auth-User: ann\r\n", "x"),
        "304" => "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned(),
        "408" => whole("408 Request Timeout", "", "slow"),
        "500" => whole("500 Internal Server Error", "", "broken"),
        "huge" => "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n".to_owned(),
        "endless" => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
        "cut" => "HTTP/1.1 200 OK\r\nX-Auth-U".to_owned(),
        "silent" => String::new(),
        _ => whole(
            "401 Unauthorized",
            "WWW-Authenticate: Sso\r\n",
            "who are you?",
        ),
    }
}

/// A front with a service and an application, which shows what it was given.
struct Stand {
    front: Front,
    service: Service,
    _app: App,
}

impl Stand {
    fn start(protocol: &str) -> Self {
        Self::with_tables(protocol, "")
    }

    /// As [`Stand::start`], with further tables.
    fn with_tables(protocol: &str, tables: &str) -> Self {
        let extended = format!("{tables}[cache.pages]");
        Self::changed(protocol, &[("[cache.pages]", &extended)])
    }

    /// As [`Stand::start`], with these changes of the configuration.
    fn changed(protocol: &str, changes: &[(&str, &str)]) -> Self {
        let service = Service::start();
        let app = App::start("threads", &[]).unwrap();
        let backend = match protocol {
            "ajp" => format!("ajp://{}", app.ajp()),
            _ => format!("http://{}", app.http()),
        };
        let mut config = CONFIG.replace("BACKEND", &backend);
        for (from, to) in changes {
            config = config.replace(from, to);
        }
        let config = config.replace("SERVICE", &service.address.to_string());
        let front = Front::with_config(&config).unwrap();
        let files = front.directory().join("files");
        std::fs::create_dir(&files).unwrap();
        std::fs::write(files.join("page.txt"), "a file").unwrap();
        Self {
            front,
            service,
            _app: app,
        }
    }

    /// The response, with its head, to a request with these options of curl.
    fn ask(&self, client: &str, path: &str, options: &[&str]) -> String {
        let url = format!("http://{}{path}", self.front.address());
        let output = curl()
            .args(["--include", "--path-as-is", client])
            .args(options)
            .arg(url)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!text.is_empty(), "{path} {options:?}: {output:?}");
        text
    }

    /// As [`Stand::ask`], with the cookie of a case.
    fn case(&self, client: &str, path: &str, case: &str, options: &[&str]) -> String {
        let cookie = format!("Cookie: case={case}; other=1");
        let mut all = vec!["--header", &cookie[..]];
        all.extend(options);
        self.ask(client, path, &all)
    }
}

fn status(response: &str) -> u16 {
    let code = response.split(' ').nth(1);
    code.and_then(|code| code.parse().ok())
        .unwrap_or_else(|| panic!("{response}"))
}

/// Runs a test for each protocol of backends and clients.
fn each(test: impl Fn(&Stand, &str, &str)) {
    for protocol in ["ajp", "http"] {
        let stand = Stand::start(protocol);
        for client in ["--http1.1", "--http2-prior-knowledge"] {
            test(&stand, protocol, client);
        }
    }
}

#[test]
fn the_application_is_told_who_signed_on_and_nobody_else_says_so() {
    each(|stand, protocol, client| {
        let told = stand.case(client, "/app/x?q=1", "ann", &[]);
        assert_eq!(status(&told), 200, "{told}");
        for wanted in [
            "[\"x-user\",\"ann\"]",
            "[\"x-mail\",\"ann@example.org\"]",
            "[\"x-groups\",\"a,b\"]",
        ] {
            assert!(told.contains(wanted), "{wanted}: {told}");
        }
        if protocol == "ajp" {
            assert!(told.contains("\"user\": \"ann\""), "{told}");
        }
        // Row 10: every cookie of the service.
        let lower = told.to_ascii_lowercase();
        assert!(lower.contains("set-cookie: one=1\r\n"), "{told}");
        assert!(lower.contains("set-cookie: two=2; path=/\r\n"), "{told}");
        assert!(
            !told.contains("case=ann") && told.contains("other=1"),
            "the cookie is hidden: {told}"
        );
        // Rows 1, 2 and 4; the client comes from a trusted proxy, too.
        let forged = [
            "--header",
            "X-User: root",
            "--header",
            "x.user: root",
            "--header",
            "X_User: root",
            "--header",
            "X-MAIL: root",
        ];
        for (path, case) in [("/app/x", "anonymous"), ("/open/x", "none")] {
            let told = stand.case(client, path, case, &forged);
            assert_eq!(status(&told), 200, "{told}");
            assert!(!told.contains("root"), "{path}: {told}");
            assert!(told.contains("\"user\": null"), "{told}");
        }
        if client == "--http1.1" {
            let told = stand.case(
                client,
                "/app/x",
                "ann",
                &["--header", "Connection: X-User, close"],
            );
            assert!(told.contains("[\"x-user\",\"ann\"]"), "{told}");
        }
    });
}

#[test]
fn the_service_gets_what_the_route_matched_and_nothing_else() {
    each(|stand, _, client| {
        stand.service.take();
        let options = [
            "--data",
            "a=1",
            "--header",
            "X-Forwarded-Uri: /public",
            "--header",
            "X-Original-URL: /public",
            "--header",
            "X-Original-URI: /public",
            "--header",
            "X-Real-IP: 203.0.113.9",
            "--header",
            "X-Forwarded-Method: HEAD",
            "--header",
            "Range: bytes=0-1",
            "--header",
            "If-None-Match: \"a\"",
            "--header",
            "Remote-User: root",
            "--header",
            "X-Api-Key: k",
            "--header",
            "X-Other: o",
            "--header",
            "Authorization: Bearer t",
        ];
        let told = stand.case(client, "/app/x?q=1", "ann", &options);
        assert_eq!(status(&told), 200, "{told}");
        // Rows 5, 7 and 9.
        let asked = stand.service.only();
        assert!(asked.starts_with("get /auth http/1.1\r\n"), "{asked}");
        let host = stand.front.address();
        for wanted in [
            "x-forwarded-method: post\r\n".to_owned(),
            "x-original-method: post\r\n".to_owned(),
            "x-forwarded-uri: /app/x?q=1\r\n".to_owned(),
            "x-original-uri: /app/x?q=1\r\n".to_owned(),
            "x-real-ip: 127.0.0.1\r\n".to_owned(),
            format!("x-original-url: http://{host}/app/x?q=1\r\n"),
            "x-forwarded-proto: http\r\n".to_owned(),
            format!("x-forwarded-host: {host}\r\n"),
            "x-forwarded-for: 127.0.0.1\r\n".to_owned(),
            "cookie: case=ann; other=1\r\n".to_owned(),
            "authorization: bearer t\r\n".to_owned(),
            "x-api-key: k\r\n".to_owned(),
        ] {
            assert_eq!(asked.matches(&wanted).count(), 1, "{wanted}: {asked}");
        }
        for unwanted in [
            "/public",
            "203.0.113.9",
            "range",
            "if-none",
            "remote-user",
            "x-other",
            "content-",
            "transfer-",
        ] {
            assert!(!asked.contains(unwanted), "{unwanted}: {asked}");
        }
    });
}

#[test]
fn the_route_the_service_and_the_backend_see_one_path() {
    each(|stand, _, client| {
        stand.service.take();
        for path in [
            "/public/../app/y",
            "//app/y",
            "/%61pp/y",
            "/app/./y",
            "/app;v=1/y",
        ] {
            let told = stand.case(client, path, "ann", &[]);
            assert_eq!(status(&told), 200, "{path}: {told}");
            let asked = stand.service.only();
            let seen = if path.contains(';') {
                "/app;v=1/y"
            } else {
                "/app/y"
            };
            assert!(
                asked.contains(&format!("x-forwarded-uri: {seen}\r\n")),
                "{path}: {asked}"
            );
        }
    });
}

/// Checks that the service's answer in a case keeps a client out.
fn check_kept_out(stand: &Stand, client: &str, case: &str, expected: u16, reason: &str) {
    // Before the backend, a file, a stored response, and an answer of the front's own.
    for path in ["/app/x", "/files/page.txt", "/stored/x", "/status"] {
        let response = stand.case(client, path, case, &["--header", "Accept: text/plain"]);
        assert_eq!(status(&response), expected, "{case} {path}: {response}");
        let lower = response.to_ascii_lowercase();
        assert!(
            lower.contains("cache-control: no-store"),
            "{case}: {response}"
        );
        assert!(
            !response.contains("a file") && !response.contains("max-age=60"),
            "{response}"
        );
    }
    let reason = format!("reason={reason} ");
    let line = stand.front.wait_for_log(&reason).unwrap();
    assert!(line.contains(" auth=staff auth_us="), "{line}");
}

#[test]
fn a_service_that_is_silent_keeps_the_client_out() {
    for protocol in ["ajp", "http"] {
        let stand = Stand::changed(protocol, &[(PATIENCE, "timeout = \"200ms\"\n")]);
        for client in ["--http1.1", "--http2-prior-knowledge"] {
            check_kept_out(&stand, client, "silent", 504, "backend:auth-timeout");
        }
    }
}

#[test]
fn whatever_the_service_answers_but_a_2xx_keeps_the_client_out() {
    each(|stand, _, client| {
        for (case, expected, reason) in [
            ("none", 401, "client:auth-denied"),
            ("forbidden", 403, "client:auth-denied"),
            ("moved", 302, "client:auth-denied"),
            ("partial", 502, "backend:auth-status"),
            ("304", 502, "backend:auth-status"),
            ("408", 502, "backend:auth-status"),
            ("500", 502, "backend:auth-status"),
            ("two", 502, "backend:auth-claim"),
            ("long", 502, "backend:auth-claim"),
            ("nul", 502, "backend:auth-answer"),
            ("huge", 502, "backend:auth-answer"),
            ("endless", 502, "backend:auth-answer"),
            ("cut", 502, "backend:auth-answer"),
        ] {
            check_kept_out(stand, client, case, expected, reason);
        }
        let forbidden = stand.case(client, "/app/x", "forbidden", &[]);
        assert!(forbidden.ends_with("not you"), "{forbidden}");
        let moved = stand
            .case(client, "/app/x", "moved", &[])
            .to_ascii_lowercase();
        assert!(
            moved.contains("location: https://sso.example/login\r\n"),
            "{moved}"
        );
    });
}

#[test]
fn a_browser_is_sent_to_sign_on_and_a_script_is_not() {
    each(|stand, _, client| {
        let page = ["--header", "Accept: text/html,*/*"];
        let sent = stand.case(client, "/app/x?a=1&b=%20", "none", &page);
        assert_eq!(status(&sent), 302, "{sent}");
        let host = stand.front.address().to_string().replace(':', "%3A");
        let location = format!(
            "ocation: /oauth2/start?rd=http%3A%2F%2F{host}%2Fapp%2Fx%3Fa%3D1%26b%3D%2520\r\n"
        );
        assert!(sent.contains(&location), "{location}: {sent}");
        // Row 13.
        assert!(
            sent.to_ascii_lowercase()
                .contains("cache-control: no-store\r\n"),
            "{sent}"
        );
        let script = [
            "--header",
            "Accept: text/html",
            "--header",
            "Sec-Fetch-Mode: cors",
        ];
        let post = ["--header", "Accept: text/html", "--request", "POST"];
        for options in [&script[..], &post, &[]] {
            let told = stand.case(client, "/app/x", "none", options);
            assert_eq!(status(&told), 401, "{told}");
            assert!(told.ends_with("who are you?"), "{told}");
        }
        let navigates = ["--header", "Sec-Fetch-Mode: navigate"];
        assert_eq!(
            status(&stand.case(client, "/app/x", "none", &navigates)),
            302
        );
        // Row 19: a preflight that no [route.cors] answers needs a sign-on, as any request does.
        let preflight = [
            "--request",
            "OPTIONS",
            "--header",
            "Origin: https://a.example",
            "--header",
            "Access-Control-Request-Method: GET",
        ];
        assert_eq!(status(&stand.ask(client, "/app/x", &preflight)), 401);
        stand.service.take();
        assert_eq!(status(&stand.ask(client, "/shared/x", &preflight)), 204);
        assert_eq!(stand.service.take(), Vec::<String>::new());
    });
}

#[test]
fn guards_and_limits_come_first_and_files_and_the_cache_after() {
    each(|stand, _, client| {
        stand.service.take();
        assert_eq!(status(&stand.case(client, "/denied", "ann", &[])), 403);
        assert_eq!(stand.service.take(), Vec::<String>::new());
        let file = stand.case(client, "/files/page.txt", "ann", &[]);
        assert!(file.ends_with("a file"), "{file}");
        assert!(
            file.to_ascii_lowercase().contains("set-cookie: one=1"),
            "{file}"
        );
        stand.service.take();
        // The first request may find what the client of the other protocol has stored.
        for number in 0..3 {
            let stored = stand.case(client, "/stored/x", "ann", &[]);
            assert_eq!(status(&stored), 200, "{stored}");
            assert!(
                stored.to_ascii_lowercase().contains("set-cookie: two=2"),
                "{stored}"
            );
            let asked = stand.service.take();
            let of_service = asked.iter().filter(|head| head.starts_with("get /auth "));
            assert_eq!(of_service.count(), 1, "{number}: {asked:?}");
            assert!(number == 0 || asked.len() == 1, "it is stored: {asked:?}");
            // A cache before the front must not give the cookie to others.
            assert!(
                stored
                    .to_ascii_lowercase()
                    .contains("cache-control: private\r\n"),
                "{stored}"
            );
            // Only what says that it is for everybody is stored.
            let own = stand.case(client, "/stored/own", "ann", &[]);
            assert!(own.ends_with("of one user"), "{own}");
            assert_eq!(stand.service.take().len(), 2, "{number}");
        }
        let line = stand.front.wait_for_log("\"GET /stored/x").unwrap();
        assert!(line.starts_with("127.0.0.1 - ann ["), "{line}");
    });
}

#[test]
fn a_request_for_a_tunnel_asks_by_a_plain_get() {
    let stand = Stand::start("http");
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nCookie: case=CASE\r\n";
    for (case, expected) in [("none", 401), ("ann", 200)] {
        let head = stand
            .front
            .head("GET", "/app/x", &upgrade.replace("CASE", case));
        // The application serves the request without a tunnel.
        assert_eq!(stand.front.ask(head).unwrap().status, expected);
        let asked = stand.service.only();
        assert!(asked.starts_with("get /auth http/1.1\r\n"), "{asked}");
        assert!(
            !asked.contains("upgrade") && !asked.contains("sec-websocket"),
            "{asked}"
        );
    }
}

#[test]
fn a_service_that_is_down_keeps_everybody_out() {
    for protocol in ["ajp", "http"] {
        let stand = Stand::changed(protocol, &[("SERVICE", "127.0.0.1:1")]);
        for client in ["--http1.1", "--http2-prior-knowledge"] {
            for _ in 0..3 {
                let answer = stand.case(client, "/app/x", "ann", &[]);
                assert_eq!(status(&answer), 503, "{answer}");
                assert!(!answer.contains("connector"), "{answer}");
            }
            assert_eq!(status(&stand.ask(client, "/open/x", &[])), 200);
        }
    }
}

#[test]
fn a_client_that_leaves_frees_its_place_at_the_service() {
    // The only connection would be taken for a minute.
    let keys = "//SERVICE\"\nconnections_max = 1\nqueue_timeout = \"1h\"";
    let changes = [("//SERVICE\"", keys)];
    for protocol in ["ajp", "http"] {
        let stand = Stand::changed(protocol, &changes);
        for client in ["--http1.1", "--http2-prior-knowledge"] {
            stand.service.take();
            let mut leaving = curl()
                .args([client, "--header", "Cookie: case=silent"])
                .arg(format!("http://{}/app/x", stand.front.address()))
                .spawn()
                .unwrap();
            let is_asked = || (!stand.service.asked.lock().unwrap().is_empty()).then_some(());
            Deadline::default()
                .poll("the service is asked", is_asked)
                .unwrap();
            leaving.kill().unwrap();
            leaving.wait().unwrap();
            let next = stand.case(client, "/app/x", "ann", &["--max-time", "20"]);
            assert_eq!(status(&next), 200, "{protocol} {client}: {next}");
        }
    }
}

#[test]
fn a_cookie_that_does_not_fit_into_a_packet_is_hidden() {
    each(|stand, protocol, client| {
        // Row 15: with the service's cookie the head is larger than a packet of AJP13.
        let large = "c".repeat(8_050);
        let hidden = format!("Cookie: case=ann; case_1={large}");
        let told = stand.ask(client, "/app/x", &["--header", &hidden]);
        assert_eq!(status(&told), 200, "{told}");
        assert!(!told.contains("ccc"), "{told}");
        let other = format!("Cookie: case=ann; session={large}");
        let response = stand.ask(client, "/app/x", &["--header", &other]);
        let expected = if protocol == "ajp" { 431 } else { 200 };
        assert_eq!(status(&response), expected, "{response}");
    });
}

#[test]
fn explain_shows_the_question_and_supposes_an_answer() {
    let stand = Stand::with_tables(
        "ajp",
        "[upstream.app.attributes]\nMAIL = \"auth:X-Auth-Mail\"\n",
    );
    let explain = |auth: &str| {
        let url =
            format!("/api/v1/explain?url=http://a/app/x&header=Cookie:%20case=ann&auth={auth}");
        stand.front.ask_admin(&url).unwrap().text()
    };
    let plain = explain("");
    assert!(plain.contains("GET /auth"), "{plain}");
    assert!(
        plain.contains("all else holds if it answers 2xx"),
        "{plain}"
    );
    let granted = explain("200,X-Auth-User=ann,X-Auth-Mail=a@b");
    assert!(
        granted.contains("\"remote_user\"") && granted.contains("ann"),
        "{granted}"
    );
    assert!(
        granted.contains("\"MAIL\"") && granted.contains("a@b"),
        "{granted}"
    );
    let denied = explain("403");
    assert!(denied.contains("auth-denied"), "{denied}");
    assert!(explain("500").contains("auth-status"));
    assert!(explain("x").contains("begins with no status"));
    assert_eq!(
        stand.service.take(),
        Vec::<String>::new(),
        "nothing is sent"
    );
    stand.case("--http1.1", "/app/x", "ann", &[]);
    stand.case("--http1.1", "/app/x", "none", &[]);
    // Granted, denied, sign-in, failed.
    let counts = stand.front.metric("catamaran_auth_requests_total").unwrap();
    assert_eq!(counts, [1.0, 1.0, 0.0, 0.0]);
}

/// The line of [`CONFIG`] that says how long a service may take; no test but those of its end may come to it.
const PATIENCE: &str = "timeout = \"60s\"\n";

const CONFIG: &str = r#"
[[listen]]
address = "127.0.0.1:0"
protocols = ["http/1.1", "h2"]
[server]
trusted_proxies = ["127.0.0.1"]
[admin]
address = "127.0.0.1:0"
[log]
access = "-"
[auth.staff]
upstream = "sso"
path = "/auth"
user = "X-Auth-User"
fields = { X-User = "user", X-Mail = "X-Auth-Mail", X-Groups = "X-Auth-Groups" }
request_fields = ["X-Api-Key"]
sign_in = "/oauth2/start?rd={url}"
timeout = "60s"
hide_cookies = ["case*"]
[upstream.sso]
[[upstream.sso.backend]]
url = "http://SERVICE"
[upstream.app]
remote_user = "auth"
[[upstream.app.backend]]
url = "BACKEND"
[cache.pages]
[[route]]
path = "/app"
upstream = "app"
rewrite = "/snoop"
rewrite_whole = true
auth = "staff"
upgrade = ["websocket"]
[[route]]
path = "/open"
upstream = "app"
rewrite = "/snoop"
rewrite_whole = true
auth = "off"
[[route]]
path = "/shared"
upstream = "app"
auth = "staff"
[route.cors]
origins = ["https://a.example"]
[[route]]
path = "/denied"
upstream = "app"
auth = "staff"
deny = "127.0.0.0/8"
[[route]]
path = "/files"
files = "{directory}"
auth = "staff"
[[route]]
path = "/stored"
upstream = "sso"
cache = "pages"
auth = "staff"
[[route]]
path = "/status"
status = 200
text = "a file"
auth = "staff"
[[route]]
path = "/oauth2"
upstream = "sso"
auth = "off"
"#;
