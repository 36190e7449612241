//! Users in a file: what clients get who may pass and who may not, over AJP and HTTP, to clients of HTTP/1.1 and HTTP/2.

use std::fs;
use std::path::Path;

use catamaran_e2e::{App, Front, curl};
use catamaran_testkit::{Deadline, replace_file};
use tempfile::TempDir;

use super::{Service, Stand, status};
use crate::reload::reload;

/// A front with users, groups, and an application, which shows what it was given.
struct UserStand {
    stand: Stand,
    folder: TempDir,
}

impl UserStand {
    fn start(protocol: &str, failures: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("users"), users(&["ann", "bob", "cat"])).unwrap();
        fs::write(folder.path().join("groups"), "ops: bob dan\n").unwrap();
        let app = App::start("threads", &[]).unwrap();
        let service = Service::start();
        let backend = match protocol {
            "ajp" => format!("ajp://{}", app.ajp()),
            _ => format!("http://{}", app.http()),
        };
        let config = CONFIG
            .replace("FOLDER", folder.path().to_str().unwrap())
            .replace("FAILURES", failures)
            .replace("SERVICE", &service.address.to_string())
            .replace("BACKEND", &backend);
        let front = Front::with_config(&config).unwrap();
        let files = front.directory().join("files");
        fs::create_dir(&files).unwrap();
        fs::write(files.join("page.txt"), "a file").unwrap();
        let stand = Stand {
            front,
            service,
            _app: app,
        };
        Self { stand, folder }
    }

    /// The response to a request with this user and password, such as `ann:secret`.
    fn by(&self, client: &str, path: &str, user: &str) -> String {
        self.stand.ask(client, path, &["--user", user])
    }

    /// The response to a request with this `Authorization`, from a client with this address.
    fn with(&self, client: &str, from: &str, authorization: &str) -> String {
        let authorization = format!("Authorization: {authorization}");
        let from = format!("X-Forwarded-For: {from}");
        let options = ["--header", &authorization, "--header", &from];
        self.stand.ask(client, "/app/x", &options)
    }

    fn front(&self) -> &Front {
        &self.stand.front
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Lines of users, all with the password `secret`.
fn users(names: &[&str]) -> String {
    let line = |name: &&str| format!("{name}:{HASH}\n");
    names.iter().map(line).collect()
}

/// Waits until it is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let ready = || is_so().then_some(());
    Deadline::default().poll(what, ready).unwrap();
}

/// Runs a test for each protocol of backends and clients.
fn each(test: impl Fn(&UserStand, &str, &str)) {
    for protocol in ["ajp", "http"] {
        let stand = UserStand::start(protocol, "100/s");
        for client in ["--http1.1", "--http2-prior-knowledge"] {
            test(&stand, protocol, client);
        }
    }
}

#[test]
fn the_application_is_told_the_user_and_not_the_password() {
    each(|stand, protocol, client| {
        let told = stand.by(client, "/app/x", "ann:secret");
        assert_eq!(status(&told), 200, "{told}");
        assert!(told.contains("[\"x-user\",\"ann\"]"), "{told}");
        assert!(
            !told.to_ascii_lowercase().contains("authorization"),
            "{told}"
        );
        if protocol == "ajp" {
            assert!(told.contains("\"user\": \"ann\""), "{told}");
        }
        let line = stand.front().wait_for_log("\"GET /app/x").unwrap();
        assert!(line.starts_with("127.0.0.1 - ann ["), "{line}");
        assert!(line.contains(" auth=staff auth_us="), "{line}");
        let passed = stand.by(client, "/passed/x", "ann:secret");
        assert!(
            passed
                .to_ascii_lowercase()
                .contains("[\"authorization\",\"basic "),
            "{passed}"
        );
        // Nobody else says who the user is, on a route with or without a sign-on.
        for path in ["/app/x", "/open/x"] {
            let options = [
                "--user",
                "ann:secret",
                "--header",
                "X_User: root",
                "--header",
                "x.user: root",
            ];
            let told = stand.stand.ask(client, path, &options);
            assert_eq!(status(&told), 200, "{told}");
            assert!(!told.contains("root"), "{path}: {told}");
        }
    });
}

#[test]
fn who_has_no_right_password_gets_nothing() {
    each(|stand, _, client| {
        // Row 6: one path for the route and the sign-on.
        let paths = [
            "/app/x",
            "/files/page.txt",
            "/stored/x",
            "/status",
            "/public/../app",
            "//app/y",
            "/%61pp",
        ];
        // What is stored for others.
        assert_eq!(status(&stand.by(client, "/stored/x", "ann:secret")), 200);
        for path in paths {
            let bare = stand.stand.ask(client, path, &[]);
            let wrong = stand.by(client, path, "ann:wrong");
            let unknown = stand.by(client, path, "nobody:secret");
            for (response, reason) in [
                (&bare, "denied"),
                (&wrong, "password"),
                (&unknown, "password"),
            ] {
                assert_eq!(status(response), 401, "{path}: {response}");
                let lower = response.to_ascii_lowercase();
                let challenge =
                    "www-authenticate: basic realm=\"staff only\", charset=\"utf-8\"\r\n";
                assert!(lower.contains(challenge), "{path}: {response}");
                assert!(
                    lower.contains("cache-control: no-store\r\n"),
                    "{path}: {response}"
                );
                assert!(
                    !response.contains("a file") && !response.contains("stored"),
                    "{response}"
                );
                let reason = format!("reason=client:auth-{reason} ");
                let line = stand.front().wait_for_log(&reason).unwrap();
                assert!(line.contains("127.0.0.1 - - ["), "{line}");
            }
            // Row 16: nothing tells a known user from an unknown one.
            let shape = |response: &str| {
                let lines = response.lines().filter(|line| !line.contains(':'));
                lines
                    .map(|line| line.replace(|it: char| it.is_ascii_hexdigit(), ""))
                    .collect::<String>()
            };
            assert_eq!(shape(&wrong), shape(&unknown), "{path}");
        }
        for (path, expected) in [
            ("/files/page.txt", "a file"),
            ("/status", "a text"),
            ("/stored/x", "stored"),
        ] {
            let served = stand.by(client, path, "ann:secret");
            assert!(served.ends_with(expected), "{path}: {served}");
        }
        // Row 19.
        let preflight = [
            "--request",
            "OPTIONS",
            "--header",
            "Origin: https://a.example",
            "--header",
            "Access-Control-Request-Method: GET",
        ];
        assert_eq!(status(&stand.stand.ask(client, "/app/x", &preflight)), 401);
        assert_eq!(
            status(&stand.stand.ask(client, "/shared/x", &preflight)),
            204
        );
    });
}

#[test]
fn credentials_that_cannot_be_read_are_wrong() {
    each(|stand, _, client| {
        let long = "QUFB".repeat(2800);
        // Row 17: `:`, a NUL, bad base64, 8 KiB, no colon, no user, not UTF-8.
        for (authorization, reason) in [
            ("Basic Og==", "password"),
            ("Basic YW5uOnNlAGNyZXQ=", "password"),
            ("Basic ann:secret", "password"),
            ("Basic", "password"),
            (&format!("Basic {}", &long[..7000]), "password"),
            ("Basic YW5u", "password"),
            ("Basic YW5uOv8=", "password"),
            ("Bearer YW5uOnNlY3JldA==", "denied"),
            ("BasicYW5uOnNlY3JldA==", "denied"),
        ] {
            let response = stand.with(client, "192.0.2.9", authorization);
            assert_eq!(status(&response), 401, "{authorization}: {response}");
            let reason = format!("reason=client:auth-{reason} ");
            stand.front().wait_for_log(&reason).unwrap();
        }
        let right = stand.with(client, "192.0.2.9", "bASIC  YW5uOnNlY3JldA==");
        assert_eq!(status(&right), 200, "{right}");
    });
}

#[test]
fn an_address_has_few_wrong_passwords() {
    for protocol in ["ajp", "http"] {
        for client in ["--http1.1", "--http2-prior-knowledge"] {
            check_few_wrong_passwords(protocol, client);
        }
    }
}

fn check_few_wrong_passwords(protocol: &str, client: &str) {
    let mut stand = UserStand::start(protocol, "3/h");
    let (right, wrong) = ("Basic YW5uOnNlY3JldA==", "Basic YW5uOndyb25n");
    // Right ones are not counted.
    for _ in 0..5 {
        assert_eq!(status(&stand.with(client, "192.0.2.1", right)), 200);
    }
    for expected in [401, 401, 401, 429, 429] {
        let response = stand.with(client, "192.0.2.1", wrong);
        assert_eq!(status(&response), expected, "{response}");
        let retry = response.to_ascii_lowercase().contains("retry-after: ");
        assert_eq!(retry, expected == 429, "{response}");
    }
    stand
        .front()
        .wait_for_log("reason=client:auth-limited ")
        .unwrap();
    // Who has signed on stays so. Another user of the address waits, another address does not.
    assert_eq!(status(&stand.with(client, "192.0.2.1", right)), 200);
    let bob = "Basic Ym9iOnNlY3JldA==";
    assert_eq!(status(&stand.with(client, "192.0.2.1", bob)), 429);
    assert_eq!(status(&stand.with(client, "192.0.2.2", bob)), 200);
    // A /64 is one address.
    for (number, expected) in [(1, 401), (2, 401), (3, 401), (4, 429)] {
        let from = format!("2001:db8::{number}");
        assert_eq!(
            status(&stand.with(client, &from, wrong)),
            expected,
            "{from}"
        );
    }
    assert_eq!(status(&stand.with(client, "2001:db8:0:1::1", wrong)), 401);
    // Reloads keep what addresses owe.
    reload(&mut stand.stand.front, "reloaded; listeners: 1 kept", 1);
    assert_eq!(status(&stand.with(client, "192.0.2.1", wrong)), 429);
}

#[test]
fn some_of_the_users_may_pass() {
    each(|stand, _, client| {
        for (user, expected) in [("bob", 200), ("cat", 200), ("ann", 401), ("dan", 401)] {
            let response = stand.by(client, "/admin/x", &format!("{user}:secret"));
            assert_eq!(status(&response), expected, "{user}: {response}");
        }
    });
}

#[test]
fn a_changed_file_is_in_use_and_a_faulty_one_is_not() {
    let stand = UserStand::start("http", "100/s");
    let client = "--http1.1";
    let answers = |user: &str| status(&stand.by(client, "/app/x", &format!("{user}:secret")));
    assert_eq!([answers("ann"), answers("eve")], [200, 401]);
    replace_file(&stand.path().join("users"), users(&["bob", "eve"])).unwrap();
    until("eve to be a user", || answers("eve") == 200);
    // Although the password was right a moment ago.
    assert_eq!(answers("ann"), 401);
    replace_file(&stand.path().join("users"), users(&["ann"]) + "eve:plain\n").unwrap();
    let refused = || {
        stand
            .front()
            .metric("catamaran_auth_files_refused")
            .unwrap()
    };
    until("the file to be refused", || refused().contains(&1.0));
    assert_eq!([answers("ann"), answers("eve")], [401, 200]);
    stand.front().wait_for_log("users, line 2: ").unwrap();
    replace_file(&stand.path().join("users"), users(&["ann"])).unwrap();
    until("ann to be a user", || answers("ann") == 200);
    assert!(!refused().contains(&1.0));
}

#[test]
fn a_user_has_few_requests_from_whatever_address() {
    for protocol in ["ajp", "http"] {
        let stand = UserStand::start(protocol, "100/s");
        let ask = |from: &str, user: &str| {
            let from = format!("X-Forwarded-For: {from}");
            let options = ["--user", user, "--header", &from];
            stand.stand.ask("--http1.1", "/limited/x", &options)
        };
        for (number, expected) in [(1, 200), (2, 200), (3, 429), (4, 429)] {
            let response = ask(&format!("192.0.2.{number}"), "ann:secret");
            assert_eq!(status(&response), expected, "{number}: {response}");
            // Of the limit by address, and of the one by user.
            let lower = response.to_ascii_lowercase();
            assert!(lower.contains("ratelimit: \"most\";r=8;"), "{response}");
            let left = 2_u32.saturating_sub(number);
            assert!(
                lower.contains(&format!(", \"each\";r={left};")),
                "{response}"
            );
        }
        let line = stand
            .front()
            .wait_for_log("reason=client:rate-limited ")
            .unwrap();
        assert!(
            line.contains(" - ann [") && line.contains(" limit=each"),
            "{line}"
        );
        assert_eq!(status(&ask("192.0.2.1", "bob:secret")), 200);
        // Who does not sign on is not counted as anybody.
        assert_eq!(status(&ask("192.0.2.9", "cat:wrong")), 401);
        let url = "/api/v1/explain?url=http://a/limited/x&header=Authorization:%20Basic%20YW5uOnNlY3JldA==";
        let explained = stand.front().ask_admin(url).unwrap().text();
        assert!(
            explained.contains("limit each refuses ann now"),
            "{explained}"
        );
    }
}

#[test]
fn the_admin_listener_asks_for_a_user() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("users"), users(&["ann"])).unwrap();
    let config = ADMIN_CONFIG.replace("FOLDER", folder.path().to_str().unwrap());
    let front = Front::with_config(&config).unwrap();
    let admin = front.admin_address().unwrap();
    let ask = |path: &str, options: &[&str]| {
        let url = format!("http://{admin}{path}");
        let output = curl()
            .arg("--include")
            .args(options)
            .arg(url)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for path in ["/", "/api/v1/status"] {
        let asked = ask(path, &[]);
        assert_eq!(status(&asked), 401, "{asked}");
        let challenge = "www-authenticate: basic realm=\"operators\"";
        assert!(asked.to_ascii_lowercase().contains(challenge), "{asked}");
        assert_eq!(status(&ask(path, &["--user", "ann:wrong"])), 401);
        assert_eq!(status(&ask(path, &["--user", "ann:secret"])), 200);
    }
    // A page that DNS rebinding leads here learns nothing about a password, and does not use up the failures.
    for user in ["ann:wrong", "ann:guess", "ann:other", "ann:secret"] {
        let rebound = ask("/", &["--user", user, "--header", "Host: evil.example"]);
        assert_eq!(status(&rebound), 421, "{user}: {rebound}");
    }
    // Monitoring has no password.
    assert_eq!(status(&ask("/healthz", &[])), 200);
    let change = [
        "--request",
        "PATCH",
        "--header",
        "Content-Type: application/json",
        "--header",
        "If-Match: *",
        "--data",
        "{\"activation\": \"drain\"}",
    ];
    let path = "/api/v1/upstreams/app/backends/one";
    assert_eq!(status(&ask(path, &change)), 401);
    let by_user = ask(path, &[&["--user", "ann:secret"], &change[..]].concat());
    assert_eq!(status(&by_user), 200, "{by_user}");
    front.wait_for_log("ann at 127.0.0.1:").unwrap();
    for expected in [401, 401, 429] {
        assert_eq!(
            status(&ask("/api/v1/status", &["--user", "ann:guess"])),
            expected
        );
    }
}

#[test]
fn explain_supposes_a_right_password() {
    let stand = UserStand::start("ajp", "100/s");
    let explain = |parameters: &str| {
        let url = format!("/api/v1/explain?url=http://a/app/x{parameters}");
        stand.front().ask_admin(&url).unwrap().text()
    };
    let bare = explain("");
    assert!(
        bare.contains("auth-denied") && bare.contains("has no user and password"),
        "{bare}"
    );
    // As the front refuses them: `ann` without a colon.
    let malformed = explain("&header=Authorization:%20Basic%20YW5u&auth=200");
    assert!(
        malformed.contains("auth-password") && malformed.contains("credentials have no colon"),
        "{malformed}"
    );
    let ann = "&header=Authorization:%20Basic%20YW5uOnNlY3JldA==";
    let supposed = explain(ann);
    assert!(
        supposed.contains("all else holds if it is right"),
        "{supposed}"
    );
    assert!(
        supposed.contains("\"remote_user\"") && supposed.contains("x-user"),
        "{supposed}"
    );
    assert!(explain(&format!("{ann}&auth=401")).contains("auth-password"));
    assert_eq!(
        stand
            .front()
            .metric("catamaran_auth_hashes_waiting")
            .unwrap(),
        [0.0]
    );
}

/// Made by: htpasswd -nbBC 4 ann secret
const HASH: &str = "$2y$04$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e.";

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
users_file = "FOLDER/users"
realm = "Staff only"
failures = "FAILURES"
fields = { X-User = "user" }
[auth.passing]
users_file = "FOLDER/users"
failures = "FAILURES"
pass_credentials = true
[auth.admins]
users_file = "FOLDER/users"
groups_file = "FOLDER/groups"
users = ["cat"]
groups = ["ops"]
failures = "FAILURES"
[upstream.stored]
[[upstream.stored.backend]]
url = "http://SERVICE"
[upstream.app]
remote_user = "auth"
[[upstream.app.backend]]
url = "BACKEND"
[cache.pages]
[limit.each]
rate = "2/h"
burst = 2
by = "user"
fields = true
[limit.most]
rate = "9/h"
burst = 9
fields = true
[[route]]
path = "/app"
upstream = "app"
rewrite = "/snoop"
rewrite_whole = true
auth = "staff"
[[route]]
path = "/passed"
upstream = "app"
rewrite = "/snoop"
rewrite_whole = true
auth = "passing"
[[route]]
path = "/admin"
upstream = "app"
rewrite = "/snoop"
rewrite_whole = true
auth = "admins"
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
path = "/limited"
upstream = "app"
rewrite = "/snoop"
rewrite_whole = true
auth = "staff"
limits = ["each", "most"]
[[route]]
path = "/files"
files = "{directory}"
auth = "staff"
[[route]]
path = "/stored"
upstream = "stored"
cache = "pages"
auth = "staff"
[[route]]
path = "/status"
status = 200
text = "a text"
auth = "staff"
"#;

const ADMIN_CONFIG: &str = r#"
[[listen]]
address = "127.0.0.1:0"
[admin]
address = "127.0.0.1:0"
auth = "operators"
[auth.operators]
users_file = "FOLDER/users"
failures = "4/h"
[[upstream.app.backend]]
name = "one"
url = "http://127.0.0.1:1"
[[upstream.app.backend]]
url = "http://127.0.0.1:2"
[[route]]
upstream = "app"
"#;
