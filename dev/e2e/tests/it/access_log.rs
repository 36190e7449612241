//! What an operator finds in the access log: every exchange once, where it went, how long each
//! phase took, and a token for what went wrong.

use std::fs;
use std::process::Command;

use catamaran_e2e::{Connector, Front, Tomcat};
use catamaran_testkit::{Deadline, Peer, Script, Signal, address};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;

use crate::through::{front, value};

#[test]
fn a_line_in_the_combined_format() {
    let front = front(Connector::Ajp);
    let fields = "User-Agent: tests\r\nReferer: http://from.example/\r\n";
    let answer = front
        .ask(front.head("GET", "/page.html?x=1", fields))
        .unwrap();
    let line = front.wait_for_log("/page.html").unwrap();
    let sent = answer.body.len();
    let expected = format!(
        "\"GET /page.html?x=1 HTTP/1.1\" 200 {sent} \"http://from.example/\" \"tests\" upstream=app"
    );
    assert!(
        line.starts_with("127.0.0.1 - - [") && line.contains(&expected),
        "{line}"
    );
    for phase in ["lease_us", "first_byte_us", "total_us", "attempts"] {
        let number = line.split_once(&format!(" {phase}=")).unwrap().1;
        let number = number.split(' ').next().unwrap();
        assert!(number.parse::<u64>().is_ok(), "{phase} in {line}");
    }
    assert!(line.contains(" reason=- "), "{line}");
}

#[test]
fn a_format_of_ones_own_with_a_field_of_the_request() {
    let tomcat = Tomcat::shared().unwrap();
    let front = Front::to_app(&format!(
        "{}[log]\nformat = '{{{{{{client}}}}}} \"{{request}}\" {{status}} {{backend}} {{header:X-Tenant}} {{header:X-None}}'\n",
        tomcat.backend_table("app", Connector::Ajp)
    ))
    .unwrap();
    let upload = "Content-Length: 5\r\nX-Tenant: a \"b\"\r\n";
    let upload = front.head("POST", "/upload.jsp?a=b", upload) + "hello";
    assert_eq!(front.ask(upload).unwrap().status, 200);
    let line = front.wait_for_log("/upload.jsp").unwrap();
    let expected = "{127.0.0.1} \"POST /upload.jsp?a=b HTTP/1.1\" 200 ajp://";
    assert!(line.starts_with(expected), "{line}");
    assert!(line.trim_end().ends_with(" a \\\"b\\\" -"), "{line}");
}

#[test]
fn a_file_of_json_lines() {
    let tomcat = Tomcat::shared().unwrap();
    let front = Front::to_app(&format!(
        "{}[log]\naccess = \"access.log\"\nformat = \"json\"\n",
        tomcat.backend_table("app", Connector::Ajp)
    ))
    .unwrap();
    let upload = front.head("POST", "/upload.jsp?a=\"b\"", "Content-Length: 5\r\n") + "hello";
    let answer = front.ask(upload).unwrap();
    assert_eq!(answer.status, 200);
    let file = front.directory().join("access.log");
    let line = Deadline::default()
        .poll("a line in the file", || {
            let text = fs::read_to_string(&file).ok()?;
            text.ends_with('\n').then_some(text)
        })
        .unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["client"], "127.0.0.1");
    assert_eq!(line["method"], "POST");
    assert_eq!(line["path"], "/upload.jsp");
    assert_eq!(line["status"], 200);
    assert_eq!(line["received"], 5);
    assert_eq!(line["sent"], answer.body.len());
    assert_eq!(line["upstream"], "app");
    assert_eq!(line["attempts"], 1);
    assert!(
        line["total_us"].as_u64() >= line["first_byte_us"].as_u64(),
        "{line}"
    );
    assert!(
        line["first_byte_us"].as_u64() >= line["lease_us"].as_u64(),
        "{line}"
    );
}

#[test]
fn failures_have_a_reason_and_the_id_that_the_client_was_shown() {
    let silent = Peer::start(Script::new().stall());
    let garbage = Peer::start(Script::new().expect(1).send(b"GARBAGE").stall());
    let impatient = "first_byte_timeout = \"100ms\"\n";
    let nobody = address::refusing().unwrap();
    let cases = [
        (format!("ajp://{nobody}"), "", &[503][..]),
        (format!("ajp://{}", silent.tcp_address()), impatient, &[504]),
        (
            format!("http://{}", silent.tcp_address()),
            impatient,
            &[504],
        ),
        (format!("ajp://{}", garbage.tcp_address()), "", &[502]),
        (format!("http://{}", garbage.tcp_address()), "", &[502]),
    ];
    for (url, keys, statuses) in cases {
        let backend = format!("[[upstream.app.backend]]\nurl = \"{url}\"\n{keys}");
        let front = Front::to_app(&backend).unwrap();
        let answer = front.get("/x").unwrap();
        let line = front.wait_for_log("\"GET /x ").unwrap();
        assert!(statuses.contains(&answer.status), "{url}: {line}");
        let token = line
            .split_once(" reason=")
            .unwrap()
            .1
            .split(' ')
            .next()
            .unwrap();
        assert!(token.starts_with("backend:"), "{url}: {line}");
        let id = line.split_once(" id=").unwrap().1;
        assert!(
            answer.text().contains(id),
            "{url}: {line} {}",
            answer.text()
        );
    }
}

#[test]
fn a_request_that_was_not_understood_has_a_line_too() {
    let front = front(Connector::Ajp);
    let answer = front
        .ask("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
        .unwrap();
    assert_eq!(answer.status, 400);
    let line = front.wait_for_log("reason=client:").unwrap();
    assert!(line.contains("\"-\" 400 "), "{line}");
    let id = line.split_once(" id=").unwrap().1;
    assert!(answer.text().contains(id), "{line}");
}

#[test]
fn a_fifo_without_a_reader_holds_up_neither_the_start_nor_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("access.log");
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, &fifo, FileType::Fifo, mode, 0).unwrap();
    let mut front = Front::with_tables(&format!(
        "[[route]]\nstatus = 404\n[log]\naccess = {:?}\n",
        fifo.to_str().unwrap()
    ))
    .unwrap();
    // Lines of 400 KB: more than the FIFO holds.
    let mut client = front.connect().unwrap();
    let request = front.head("GET", &format!("/{}", "x".repeat(4000)), "");
    for _ in 0..100 {
        assert_eq!(client.ask(&request).unwrap().status, 404);
    }
    front.process().signal(Signal::Terminate).unwrap();
    let status = front.process().wait(Deadline::default()).unwrap();
    assert!(status.success(), "{status}");
}

/// A request is found from front to Tomcat by its id.
#[test]
fn the_id_of_the_log_is_what_tomcat_gets() {
    for connector in [Connector::Ajp, Connector::Http] {
        let backend = Tomcat::shared().unwrap().backend_table("app", connector);
        let front = Front::with_tables(&format!(
            "[server]\ntrusted_proxies = [\"127.0.0.1\"]\n[[route]]\nupstream = \"app\"\n{backend}"
        ))
        .unwrap();
        let text = front.get("/snoop.jsp?own").unwrap().text();
        let line = front.wait_for_log("/snoop.jsp?own").unwrap();
        let id = line.split_once(" id=").unwrap().1;
        assert_eq!(value(&text, "header.x-request-id"), id, "{line}");
        let fields = "X-Request-Id: proxy/1-a\r\n";
        let head = front.head("GET", "/snoop.jsp?given", fields);
        let text = front.ask(head).unwrap().text();
        assert_eq!(value(&text, "header.x-request-id"), "proxy/1-a");
        let line = front.wait_for_log("/snoop.jsp?given").unwrap();
        assert!(line.contains(" given_id=\"proxy/1-a\" "), "{line}");
        let host = format!(" host=\"{}\" ms=", front.address().ip());
        assert!(line.contains(&host), "{line}");
    }
}

/// Runs a command of docs/log.md in the front's directory; what it prints, without the end of the line.
fn shell(front: &Front, command: &str) -> String {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(front.directory());
    let output = shell.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.is_empty(), "{command}: {said}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

/// Waits until a command prints something.
fn shell_until_told(front: &Front, command: &str) -> String {
    let told = || Some(shell(front, command)).filter(|it| !it.is_empty());
    Deadline::default().poll(command.to_owned(), told).unwrap()
}

/// With the commands of docs/log.md: what was slow, what failed and why, and Tomcat's line of each.
#[test]
fn a_slow_and_a_failed_request_are_found_from_front_to_tomcat() {
    for connector in [Connector::Ajp, Connector::Http] {
        let tomcat = Tomcat::shared().unwrap();
        let front = Front::to_app(&format!(
            "{}[log]\naccess = \"access.log\"\nformat = \"json\"\n[upstream.app]\nretries = 0\n\
             first_byte_timeout = \"1s\"\n",
            tomcat.backend_table("app", connector)
        ))
        .unwrap();
        let name = format!("found-{connector:?}");
        // Longer than `first_byte_timeout`, so it is slow, and failed.
        let failed = front.get(&format!("/gate.jsp?wait&name={name}")).unwrap();
        assert_eq!(failed.status, 504);
        let shown = failed.header("x-request-id").unwrap().to_owned();
        tomcat.get(&format!("/gate.jsp?open&name={name}")).unwrap();

        let slow = "jq -r 'select(.total_us > 900000) | [.total_us, .id, .path, .backend] | @tsv' access.log";
        let slow = shell_until_told(&front, slow);
        let fields: Vec<&str> = slow.split('\t').collect();
        assert_eq!(
            (fields[1], fields[2]),
            (shown.as_str(), "/gate.jsp"),
            "{slow}"
        );
        let reasons = "jq -r '.reason // empty' access.log | sort | uniq -c | sort -rn";
        assert_eq!(
            shell(&front, reasons).trim(),
            "1 backend:first-byte-timeout"
        );
        let own = shell(&front, &format!("grep {shown} access.log"));
        let own: Value = serde_json::from_str(&own).unwrap();
        assert_eq!(
            (&own["status"], &own["backend"]),
            (&504.into(), &tomcat.url(connector).into())
        );

        // Tomcat's line comes when the application is done.
        let of_tomcat = format!("grep {shown} {}", tomcat.access_log().display());
        let line = shell_until_told(&front, &of_tomcat);
        let request = format!("\"GET /gate.jsp?wait&name={name} HTTP/1.1\" 200 ");
        assert!(
            line.contains(&request) && line.ends_with(&format!(" id={shown}")),
            "{line}"
        );
    }
}

#[test]
fn a_signal_opens_the_file_again() {
    let backend = Tomcat::shared()
        .unwrap()
        .backend_table("app", Connector::Http);
    let mut front = Front::to_app(&format!("{backend}[log]\naccess = \"access.log\"\n")).unwrap();
    let file = front.directory().join("access.log");
    let moved = front.directory().join("access.log.1");
    let has = |path: &std::path::Path, text: &str| {
        let found = || fs::read_to_string(path).ok()?.contains(text).then_some(());
        Deadline::default().poll(text, found).unwrap();
    };
    front.get("/page.html?before").unwrap();
    has(&file, "?before");
    fs::rename(&file, &moved).unwrap();
    front.process().signal(Signal::User1).unwrap();
    front
        .wait_for_log("the access log was opened again")
        .unwrap();
    front.get("/page.html?after").unwrap();
    has(&file, "?after");
    assert!(!fs::read_to_string(&moved).unwrap().contains("?after"));
}

#[test]
fn a_full_disk_holds_nothing_up_and_is_counted() {
    let backend = Tomcat::shared()
        .unwrap()
        .backend_table("app", Connector::Http);
    let front = Front::to_app(&format!(
        "{backend}[log]\naccess = \"/dev/full\"\n[admin]\naddress = \"127.0.0.1:0\"\n"
    ))
    .unwrap();
    for _ in 0..3 {
        assert_eq!(front.get("/page.html").unwrap().status, 200);
    }
    front.wait_for_log("cannot write the access log").unwrap();
    let lost = || {
        let lost = front.metric("catamaran_access_log_lines_lost_total").ok()?;
        (lost == [3.0]).then_some(())
    };
    Deadline::default().poll("three lost lines", lost).unwrap();
    let status = front.ask_admin("/api/v1/status").unwrap().text();
    let told = "\"troubles\":[\"lines of the access log are lost: No space left on device (os error 28)\"]";
    assert!(status.contains(told), "{status}");
    assert_eq!(front.get("/page.html").unwrap().status, 200);
}
