//! What an operator finds in the access log: every exchange once, where it went, how long each
//! phase took, and a token for what went wrong.

use std::fs;

use catamaran_e2e::{Connector, Front, Tomcat};
use catamaran_testkit::{Deadline, Peer, Script, Signal, address};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;

use crate::through::front;

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
        client.send(request.as_bytes()).unwrap();
        assert_eq!(client.receive().unwrap().status, 404);
    }
    front.process().signal(Signal::Terminate).unwrap();
    let status = front.process().wait(Deadline::default()).unwrap();
    assert!(status.success(), "{status}");
}
