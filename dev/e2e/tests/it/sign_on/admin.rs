//! The admin listener asks a service whether its client has signed on.

use std::fs;

use catamaran_e2e::{Front, curl};
use catamaran_testkit::Deadline;

use super::{Service, status};

/// A front whose admin listener asks the scripted service.
struct AdminStand {
    front: Front,
    service: Service,
}

impl AdminStand {
    fn start() -> Self {
        Self::with_timeout("60s")
    }

    /// As [`AdminStand::start`], where the service may take so long.
    fn with_timeout(timeout: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let token_file = folder.path().join("token");
        fs::write(&token_file, TOKEN).unwrap();
        let service = Service::start();
        let config = CONFIG
            .replace("SERVICE", &service.address.to_string())
            .replace("TIMEOUT", timeout)
            .replace("TOKEN", token_file.to_str().unwrap());
        let front = Front::with_config(&config).unwrap();
        Self { front, service }
    }

    /// The response, with its head, to a request with the cookie of a case and these options of curl.
    fn case(&self, path: &str, case: &str, options: &[&str]) -> String {
        let admin = self.front.admin_address().unwrap();
        let output = curl()
            .args(["--include", "--header", &format!("Cookie: case={case}")])
            .args(options)
            .arg(format!("http://{admin}{path}"))
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// Checks that the service's answer in a case keeps a client out, which reads this.
fn check_kept_out(stand: &AdminStand, path: &str, case: &str, expected: u16, text: &str) {
    let kept_out = stand.case(path, case, &[]);
    assert_eq!(status(&kept_out), expected, "{case}: {kept_out}");
    assert!(kept_out.contains(text), "{case}: {kept_out}");
    assert!(kept_out.contains("no-store"), "{case}: {kept_out}");
}

#[test]
fn a_service_that_is_silent_lets_nobody_in() {
    let stand = AdminStand::with_timeout("200ms");
    for path in ["/", "/api/v1/status"] {
        check_kept_out(&stand, path, "silent", 504, "auth-timeout");
    }
}

#[test]
fn a_service_lets_operators_in() {
    let stand = AdminStand::start();
    for path in ["/", "/api/v1/status"] {
        stand.service.take();
        let admitted = stand.case(path, "ann", &[]);
        assert_eq!(status(&admitted), 200, "{admitted}");
        let lower = admitted.to_ascii_lowercase();
        assert!(
            lower.contains("set-cookie: one=1\r\n")
                && lower.contains("set-cookie: two=2; path=/\r\n"),
            "{admitted}"
        );
        let asked = stand.service.only();
        assert!(asked.starts_with("get /auth http/1.1\r\n"), "{asked}");
        let uri = format!("x-forwarded-uri: {path}\r\n");
        assert!(asked.contains(&uri), "{uri}: {asked}");
        let denied = stand.case(path, "none", &[]);
        assert_eq!(status(&denied), 401, "{denied}");
        assert!(
            denied.contains("WWW-Authenticate: Sso\r\n") && denied.ends_with("who are you?"),
            "{denied}"
        );
        for (case, expected, token) in [
            ("forbidden", 403, "not you"),
            ("moved", 302, "Location: https://sso.example/login\r\n"),
            ("500", 502, "auth-status"),
            ("two", 502, "auth-claim"),
            ("cut", 502, "auth-answer"),
        ] {
            check_kept_out(&stand, path, case, expected, token);
        }
    }
    let browser = ["--header", "Accept: text/html"];
    let sent = stand.case("/api/v1/status?a=1", "none", &browser);
    assert_eq!(status(&sent), 302, "{sent}");
    let admin = stand.front.admin_address().unwrap().to_string();
    let url = format!("http://{admin}/api/v1/status?a=1");
    let encoded = url.replace(':', "%3A").replace('/', "%2F");
    let location = encoded.replace('?', "%3F").replace('=', "%3D");
    let line = format!("Location: https://sso.example/start?rd={location}\r\n");
    assert!(sent.contains(&line), "{line}: {sent}");
}

#[test]
fn a_change_by_a_user_of_the_service_is_logged_and_the_token_asks_nobody() {
    let stand = AdminStand::start();
    let change = |case: &str, options: &[&str]| {
        let changes = [
            "--request",
            "PATCH",
            "--header",
            "Content-Type: application/json",
            "--header",
            "If-Match: *",
            "--data",
            "{\"activation\": \"drain\"}",
        ];
        let options = [&changes[..], options].concat();
        stand.case("/api/v1/upstreams/app/backends/one", case, &options)
    };
    let refused = change("none", &[]);
    assert_eq!(status(&refused), 401, "{refused}");
    let foreign = change("ann", &["--header", "Origin: https://evil.example"]);
    assert_eq!(status(&foreign), 403, "{foreign}");
    let changed = change("ann", &[]);
    assert_eq!(status(&changed), 200, "{changed}");
    stand.front.wait_for_log("ann at 127.0.0.1:").unwrap();
    stand.service.take();
    let token = format!("Authorization: Bearer {TOKEN}");
    let by_token = stand.case("/api/v1/status", "none", &["--header", &token]);
    assert_eq!(status(&by_token), 200, "{by_token}");
    // Monitoring has neither. DNS rebinding does not reach the service.
    assert_eq!(status(&stand.case("/healthz", "none", &[])), 200);
    let rebound = stand.case("/", "ann", &["--header", "Host: evil.example"]);
    assert_eq!(status(&rebound), 421, "{rebound}");
    assert_eq!(stand.service.take(), Vec::<String>::new());
    // Granted, denied, sign-in, failed; a worker counts them later.
    let are_counted = || {
        let counts = stand.front.metric("catamaran_auth_requests_total").ok()?;
        (counts == [2.0, 1.0, 0.0, 0.0]).then_some(())
    };
    Deadline::default().poll("the counts", are_counted).unwrap();
}

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

const CONFIG: &str = r#"
[[listen]]
address = "127.0.0.1:0"
[admin]
address = "127.0.0.1:0"
token_file = "TOKEN"
auth = "staff"
[auth.staff]
upstream = "sso"
path = "/auth"
user = "X-Auth-User"
sign_in = "https://sso.example/start?rd={url}"
timeout = "TIMEOUT"
[upstream.sso]
[[upstream.sso.backend]]
url = "http://SERVICE"
[[upstream.app.backend]]
name = "one"
url = "http://127.0.0.1:1"
[[upstream.app.backend]]
url = "http://127.0.0.1:2"
[[route]]
upstream = "app"
"#;
