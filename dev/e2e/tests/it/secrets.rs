//! Another secret for an AJP connector while the others keep theirs, by the steps of docs/admin.md.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{fs, thread};

use catamaran_e2e::{Connector, Front, Tomcat, catamaran};
use catamaran_testkit::{Deadline, HttpClient, Signal};

/// Two instances of Tomcat behind a front that reads their secrets from files of `directory`.
fn front(directory: &str, urls: &[String; 2]) -> Front {
    let mut tables = TABLES.to_owned();
    for (name, url) in ["a", "b"].into_iter().zip(urls) {
        tables += &format!(
            "[[upstream.app.backend]]\nname = \"{name}\"\nurl = \"{url}\"\n\
             secret_file = \"{directory}/{name}.secret\"\n"
        );
    }
    Front::with_config(&tables).unwrap()
}

/// Runs a command of the operator, which must succeed.
fn run(front: &Front, command: &str) -> String {
    let (code, said) = type_command(front, command);
    assert_eq!(code, Some(0), "{command}: {said}");
    said
}

/// Runs a command of the operator; gives its exit code and what it said.
fn type_command(front: &Front, command: &str) -> (Option<i32>, String) {
    let config = front.directory().join("catamaran.toml");
    let words = command
        .split(' ')
        .chain(["--config", config.to_str().unwrap()]);
    let mut process = catamaran(&words.collect::<Vec<_>>()).unwrap();
    let status = process.wait(Deadline::default()).unwrap();
    (status.code(), process.stdout() + &process.stderr())
}

/// Asks for the page until `stopped`; every request must be served.
fn ask_until(stopped: &AtomicBool, front: std::net::SocketAddr, asked: &AtomicUsize) {
    let mut client = HttpClient::connect(front).unwrap();
    while !stopped.load(Ordering::Relaxed) {
        let answer = client
            .ask(b"GET /page.html HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        asked.fetch_add(1, Ordering::Relaxed);
        if answer.header("connection") == Some("close") {
            client = HttpClient::connect(front).unwrap();
        }
    }
}

/// Ends the requests, whatever becomes of the test.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_secret_is_changed_without_a_failed_request() {
    let secrets = tempfile::tempdir().unwrap();
    let write = |name: &str, secret: &str| {
        fs::write(secrets.path().join(format!("{name}.secret")), secret).unwrap();
    };
    write("a", Tomcat::SECRET);
    write("b", Tomcat::SECRET);
    let tomcat = Tomcat::start("a").unwrap();
    let urls = [&tomcat, Tomcat::shared().unwrap()].map(|it| it.url(Connector::AjpSecret));
    let mut front = front(secrets.path().to_str().unwrap(), &urls);
    let (stopped, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let address = front.address();
    // It lives until those who ask have ended.
    let _restarted = thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| ask_until(&stopped, address, &asked));
        }
        let _stop = Stop(&stopped);
        run(&front, "drain app/a --wait --timeout 30s");
        let restarted = tomcat.restart_with_secret("a", "the next secret").unwrap();
        // The operator forgot the file: nothing is activated, and no client finds out.
        let (code, said) = type_command(&front, "activate app/a --wait --timeout 6s");
        assert_eq!(code, Some(1), "{said}");
        let expected = "app/a is not fit to serve: GET /page.html failed: status 403 (is `secret` right?); \
                        nothing was changed, it is stopped";
        assert!(said.contains(expected), "{said}");
        write("a", "the next secret\n");
        front.process().signal(Signal::Hangup).unwrap();
        let said = front.wait_for_log("reloaded; ").unwrap();
        assert!(said.contains("changed a"), "{said}");
        run(&front, "probe app/a");
        run(&front, "activate app/a --wait");
        // From now on each of the two has a secret of its own, and no request is refused.
        let before = asked.load(Ordering::Relaxed);
        Deadline::default()
            .poll("requests", || {
                (asked.load(Ordering::Relaxed) > before + 20).then_some(())
            })
            .unwrap();
        restarted
    });
    let log = front.log();
    assert!(!log.contains("403 was the answer"), "{log}");
}

const TABLES: &str = r#"
[[listen]]
address = "127.0.0.1:0"
[[route]]
upstream = "app"
[admin]
address = "unix:{directory}/admin.sock"
[log]
access = "off"
[upstream.app]
sticky = "off"
[upstream.app.probe]
kind = "request"
path = "/page.html"
"#;
