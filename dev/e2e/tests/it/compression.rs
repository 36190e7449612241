//! What the front compresses: Tomcat's pages and events over AJP, for curl and for a browser, and what a client
//! that reads nothing costs.

use std::fs::{self, File};
use std::process::Command;
use std::time::{Duration, SystemTime};

use catamaran_e2e::{Browser, Connector, Front, Tomcat, curl};
use catamaran_testkit::{Deadline, HttpClient, Process};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};
use tempfile::TempDir;

/// A front that compresses what comes of a Tomcat, and of a directory before it.
fn before_tomcat(connector: Connector, files: &TempDir) -> Front {
    let tomcat = Tomcat::shared().unwrap();
    let tables = format!(
        "[[route]]\npath = \"/\"\nupstream = \"app\"\nfiles = \"{}\"\ncompress = [\"zstd\", \"gzip\"]\n{}\
         [log]\nformat = \"json\"\n",
        files.path().display(),
        tomcat.backend_table("app", connector)
    );
    Front::with_tables(&tables).unwrap()
}

/// Nobody opens the gate before the first line has come: it comes at Tomcat's flush.
#[test]
fn what_tomcat_flushes_reaches_curl_compressed() {
    let files = tempfile::tempdir().unwrap();
    for (index, connector) in [Connector::Ajp, Connector::Http].into_iter().enumerate() {
        let front = before_tomcat(connector, &files);
        for coding in ["gzip", "zstd"] {
            let gate = format!("/gate.jsp?name=compressed-{index}-{coding}");
            let head = front.directory().join("head");
            let mut command = curl();
            let accept = format!("Accept-Encoding: {coding}");
            let url = format!("http://{}{gate}&flush&wait", front.address());
            command.args(["--no-buffer", "--compressed", "--header", &accept]);
            command.arg("--dump-header").arg(&head).arg(url);
            let mut client = Process::spawn(&mut command).unwrap();
            let waiting = |line: &str| (line == "waiting").then_some(());
            client.wait_for_line("the first line", waiting).unwrap();
            let opened = front.get(&format!("{gate}&open")).unwrap();
            assert_eq!(opened.text(), "opened\n");
            assert!(client.wait(Deadline::default()).unwrap().success());
            assert_eq!(client.stdout(), "waiting\npassed\n");
            let head = fs::read_to_string(head).unwrap().to_ascii_lowercase();
            assert!(
                head.contains(&format!("content-encoding: {coding}")),
                "{head}"
            );
            front
                .wait_for_log(&format!("\"compressed\":\"{coding}\",\"plain\":15"))
                .unwrap();
        }
    }
}

/// A page of the front's files reads a stream of Tomcat's, as single-page applications do.
#[test]
fn a_browser_gets_each_event_when_tomcat_flushes_it() {
    let files = tempfile::tempdir().unwrap();
    let rows: String = (0..500).map(|at| format!("<p>row {at}</p>")).collect();
    let script = "<script>\
        async function listen(gate) {\
          const response = await fetch(gate + '&flush&wait');\
          window.coding = response.headers.get('content-encoding');\
          const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();\
          for (;;) {\
            const piece = await reader.read();\
            if (piece.done) break;\
            document.title += piece.value;\
          }\
          document.title += 'end';\
        }\
        </script>";
    let page = format!("<!doctype html><link rel=icon href=data:,><title></title>{script}{rows}");
    fs::write(files.path().join("stream.html"), page).unwrap();
    let front = before_tomcat(Connector::Ajp, &files);
    let mut browser = Browser::start(&[]).unwrap();
    let url = format!("http://{}/stream.html", front.address());
    browser.open(&url).unwrap();
    let rows = browser.evaluate("document.querySelectorAll('p').length");
    assert_eq!(rows.unwrap(), 500);
    browser
        .evaluate("listen('/gate.jsp?name=browser'); true")
        .unwrap();
    browser.wait("document.title.includes('waiting')").unwrap();
    let title = browser.evaluate("document.title").unwrap();
    assert!(!title.to_string().contains("end"), "{title}");
    let opened = front.get("/gate.jsp?name=browser&open").unwrap();
    assert_eq!(opened.status, 200);
    browser.wait("document.title.includes('passed')").unwrap();
    browser.wait("document.title.includes('end')").unwrap();
    assert!(browser.complaints().is_empty());
    for text in ["/stream.html", "name=browser&flush&wait"] {
        let line = front.wait_for_log(text).unwrap();
        assert!(line.contains("\"compressed\":\"zstd\""), "{line}");
    }
}

/// Server-sent events: the browser's own reader of them gets each when Tomcat flushes it.
#[test]
fn a_browser_gets_events_that_are_compressed() {
    let files = tempfile::tempdir().unwrap();
    let page = "<!doctype html><link rel=icon href=data:,><title></title>";
    fs::write(files.path().join("events.html"), page).unwrap();
    let front = before_tomcat(Connector::Ajp, &files);
    let mut browser = Browser::start(&[]).unwrap();
    let url = format!("http://{}/events.html", front.address());
    browser.open(&url).unwrap();
    let listen = "const events = new EventSource('/gate.jsp?name=events&events&flush&wait');\
                  events.onmessage = event => {\
                    document.title += event.data + '.';\
                    if (event.data == 'passed') events.close();\
                  }; true";
    browser.evaluate(listen).unwrap();
    browser.wait("document.title == 'waiting.'").unwrap();
    let opened = front.get("/gate.jsp?name=events&open").unwrap();
    assert_eq!(opened.status, 200);
    browser.wait("document.title == 'waiting.passed.'").unwrap();
    assert!(browser.complaints().is_empty());
    let line = front.wait_for_log("name=events&events&flush&wait").unwrap();
    assert!(line.contains("\"compressed\":\"zstd\""), "{line}");
    assert!(line.contains("\"status\":200"), "{line}");
}

/// What is kept in Brotli is decoded by the reference implementation, which curl has.
#[test]
fn curl_decodes_a_file_that_is_kept_in_brotli() {
    let files = tempfile::tempdir().unwrap();
    let text: String = (0..1000).map(|at| format!("row {at}\n")).collect();
    let path = files.path().join("rows.txt");
    fs::write(&path, &text).unwrap();
    // A file goes into memory some time after it was written.
    let file = File::options().write(true).open(&path).unwrap();
    let written = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    file.set_modified(written).unwrap();
    let front = Front::with_tables(&format!(
        "[server]\nworkers = 1\n[[route]]\nfiles = \"{}\"\ncompress = [\"br\", \"gzip\"]\n",
        files.path().display()
    ))
    .unwrap();
    let head = front.directory().join("head");
    for coding in ["gzip", "br", "br"] {
        let mut command = curl();
        command.args(["--compressed", "--header", "Accept-Encoding: gzip, br"]);
        command.arg("--dump-header").arg(&head);
        command.arg(format!("http://{}/rows.txt", front.address()));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(output.stdout == text.as_bytes(), "{coding}");
        let head = fs::read_to_string(&head).unwrap().to_ascii_lowercase();
        let expected = format!("content-encoding: {coding}\r\n");
        assert!(head.contains(&expected), "{head}");
        assert!(head.contains("vary: accept-encoding"), "{head}");
        assert_eq!(head.contains("content-length"), coding == "br", "{head}");
    }
}

/// A directory with a text of so many bytes, most of which is noise that no coding makes shorter.
fn noise(bytes: u64) -> TempDir {
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("noise.txt");
    let mut shell = Command::new("sh");
    shell.args([
        "-ec",
        "head -c 33554432 /dev/urandom > \"$0\"; truncate -s \"$1\" \"$0\"",
    ]);
    shell.arg(path).arg(bytes.to_string());
    assert!(shell.status().unwrap().success());
    files
}

fn compressing(files: &TempDir, memory: &str) -> Front {
    Front::with_tables(&format!(
        "[server]\nworkers = 1\ncompress_memory = \"{memory}\"\n\
         [[route]]\nfiles = \"{}\"\ncompress = \"gzip\"\n\
         [admin]\naddress = \"127.0.0.1:0\"\n",
        files.path().display()
    ))
    .unwrap()
}

#[test]
fn a_client_that_reads_nothing_of_a_gibibyte_costs_little() {
    let files = noise(1 << 30);
    fs::write(files.path().join("small.txt"), vec![b'a'; 200_000]).unwrap();
    fs::write(files.path().join("tiny.txt"), "tiny").unwrap();
    let front = compressing(&files, "64MiB");
    let request = |path| front.head("GET", path, "Accept-Encoding: gzip\r\n");
    let warm = front.ask(request("/small.txt")).unwrap();
    assert_eq!(warm.header("content-encoding"), Some("gzip"));
    let held = || front.metric("catamaran_compress_memory_bytes").unwrap()[0];
    // A client has its response before what compressed it is free.
    let is_free = || (held() == 0.0).then_some(());
    Deadline::default().poll("no coder", is_free).unwrap();
    let before = front.memory().unwrap().private;
    let mut slow = front.connect().unwrap();
    slow.send(request("/noise.txt").as_bytes()).unwrap();
    // The one worker takes turns: each other request is a turn for this client as well.
    for _ in 0..1000 {
        assert_eq!(front.get("/tiny.txt").unwrap().text(), "tiny");
    }
    assert_eq!(held(), 384.0 * 1024.0, "it is being served");
    let grown = front.memory().unwrap().private.saturating_sub(before);
    println!("{grown} bytes more are resident");
    assert!(grown <= 1 << 20, "{grown} bytes");
}

#[test]
fn many_readers_hold_no_more_than_they_may_together() {
    raise_descriptors();
    let files = noise(1 << 26);
    let front = compressing(&files, "2MiB");
    let request = front.head("GET", "/noise.txt", "Accept-Encoding: gzip\r\n");
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            // Little of a response fits into the sockets.
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_recv_buffer_size(4096).unwrap();
            socket.connect(&front.address().into()).unwrap();
            let mut client = HttpClient::on(socket);
            client.send(request.as_bytes()).unwrap();
            client
        })
        .collect();
    let identity = || {
        let page = front.ask_admin("/metrics").unwrap().text();
        let line = page
            .lines()
            .find(|line| line.contains("reason=\"compress-memory\""))?;
        line.rsplit(' ').next()?.parse::<f64>().ok()
    };
    // Five of 384 KiB are within 2 MiB.
    let beyond = f64::from(CLIENTS - 5);
    Deadline::default()
        .poll("all to be answered", || {
            (identity()? >= beyond).then_some(())
        })
        .unwrap();
    assert_eq!(identity(), Some(beyond));
    let held = front.metric("catamaran_compress_memory_bytes").unwrap()[0];
    assert_eq!(held, f64::from(5 * 384 * 1024));
    drop(clients);
    Deadline::default()
        .poll("the memory to be free", || {
            let held = front.metric("catamaran_compress_memory_bytes").ok()?[0];
            (held == 0.0).then_some(())
        })
        .unwrap();
}

/// Lets this process have a socket for each client.
fn raise_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, raised).unwrap();
}

/// Clients that read nothing.
const CLIENTS: u32 = 1000;
