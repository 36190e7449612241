//! Forms, uploads and bodies that nobody reads, over HTTP/2 to Tomcat: the exchanges of `interop`, over each
//! connector. The client is curl, or one that reads frames.

use std::fs;

use catamaran_e2e::{Container, Front, catamaran, curl};
use catamaran_testkit::http2::{
    END_HEADERS, END_STREAM, Http2Client, Said, block, frame, kind, opening,
};
use catamaran_testkit::{Deadline, Pattern, Sha256};

use crate::http2::{certify, tls_address};
use crate::through::value;

struct Site {
    front: Front,
    address: String,
    files: tempfile::TempDir,
}

impl Site {
    fn new(url: &str) -> Self {
        let files = tempfile::tempdir().unwrap();
        certify(files.path());
        let mut front = Front::with_config(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\nprotocols = [\"h2\", \"http/1.1\"]\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
             tls = \"www\"\n[[tls.www.certificate]]\nchain = \"{files}/chain.pem\"\n\
             key = \"{files}/key.pem\"\n\
             [[route]]\nupstream = \"app\"\n[[upstream.app.backend]]\nurl = \"{url}\"\n\
             [admin]\naddress = \"127.0.0.1:0\"\n",
            files = files.path().display()
        ))
        .unwrap();
        let address = tls_address(&mut front);
        Self {
            front,
            address,
            files,
        }
    }

    /// What the application says to requests for these targets on one connection.
    fn curl(&self, targets: &[&str], options: &[&str]) -> String {
        let urls = targets
            .iter()
            .map(|target| format!("https://{}{target}", self.address));
        let output = curl()
            .args(["--fail", "--insecure", "--http2"])
            .args(options)
            .args(urls)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success(),
            "{options:?}: {said}\n{}",
            self.front.log()
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// A file with so many bytes of the pattern, and their digest.
    fn file(&self, length: u64) -> (String, String) {
        let path = self.files.path().join(length.to_string());
        let bytes = Pattern::bytes(length);
        fs::write(&path, &bytes).unwrap();
        let mut digest = Sha256::default();
        std::io::Write::write_all(&mut digest, &bytes).unwrap();
        (path.display().to_string(), digest.hex())
    }
}

#[test]
fn forms_and_uploads_reach_tomcat() {
    let started = Container::Tomcat10.start().unwrap();
    for url in started.urls() {
        println!("through {url}");
        let site = Site::new(url);
        let text = site.curl(&["/form?a=1"], &[]);
        assert_eq!(value(&text, "parameter.a"), "1", "{text}");
        for framing in FRAMINGS {
            forms(&site, framing);
            uploads(&site, framing);
        }
        for announces in [true, false] {
            for length in [1, 30_000] {
                unread(&site, announces, length);
            }
        }
        assert_eq!(site.front.metric("catamaran_retries_total").unwrap(), [0.0]);
    }
}

fn forms(site: &Site, framing: &[&str]) {
    let long = "x".repeat(20_000);
    let pairs = format!("a=1&long={long}");
    let text = site.curl(&["/form?q=0"], &[framing, &["-d", &pairs]].concat());
    for (name, expected) in [("a", "1"), ("long", &long), ("q", "0")] {
        assert_eq!(value(&text, &format!("parameter.{name}")), expected);
    }
    let (path, digest) = site.file(30_000);
    let file = format!("file=@{path};filename=f");
    let parts = ["-F", "text=hello", "-F", &file];
    let text = site.curl(&["/parts"], &[framing, &parts].concat());
    assert_eq!(value(&text, "part.text.length"), "5");
    assert_eq!(value(&text, "part.file.sha256"), digest);
}

fn uploads(site: &Site, framing: &[&str]) {
    for length in [0, 8187, 3_000_000] {
        let (path, digest) = site.file(length);
        let data = format!("@{path}");
        let text = site.curl(&["/upload"], &[framing, &["--data-binary", &data]].concat());
        assert_eq!(value(&text, "body.length"), length.to_string());
        assert_eq!(value(&text, "body.sha256"), digest);
    }
}

/// A body that the application leaves unread is not taken for what follows, on this connection or on
/// the backend's. The client reads frames: some versions of curl drop a response that ends before the
/// upload does, because the front then asks by RST_STREAM for no more of it (RFC 9113, section 8.1).
fn unread(site: &Site, announces: bool, length: usize) {
    let mut client = Http2Client::connect(site.front.address()).unwrap();
    client.send(&opening(1 << 20), usize::MAX);
    for stream in [1, 3, 5] {
        client.send(&upload(stream, announces, length), usize::MAX);
        let text = answer(&mut client, stream);
        assert_eq!(value(&text, "uri"), "/ignore", "{text}");
    }
    let form = request(b"GET", b"/form?a=1", &[]);
    let head = frame(kind::HEADERS, END_HEADERS | END_STREAM, 7, &form);
    client.send(&head, usize::MAX);
    let text = answer(&mut client, 7);
    assert_eq!(value(&text, "parameter.a"), "1", "{text}");
}

/// Three uploads on each connection, beside sixteen clients of `bench`.
#[test]
fn a_thousand_unread_uploads_are_answered_whole_beside_a_load() {
    let started = Container::Tomcat10.start().unwrap();
    let urls: Vec<_> = started.urls().collect();
    for url in &urls {
        let site = Site::new(url);
        let target = format!("http://{}/form?a=1", site.front.address());
        let load = [
            "bench",
            "-q",
            "-k",
            "-c",
            "16",
            "--duration",
            "10m",
            &target,
        ];
        let mut load = catamaran(&load).unwrap();
        let served = || site.front.metric("catamaran_requests_total").unwrap()[0];
        let is_loaded = || (served() > 1000.0).then_some(());
        Deadline::default().poll("the load", is_loaded).unwrap();
        let connections = 1_000_usize.div_ceil(3 * urls.len());
        for turn in 0..connections {
            unread(&site, turn % 2 == 0, 30_000);
        }
        let ended = load.try_wait().unwrap();
        assert!(ended.is_none(), "the load ended: {}", load.stderr());
        assert_eq!(site.front.metric("catamaran_retries_total").unwrap(), [0.0]);
    }
}

fn request(method: &[u8], path: &[u8], more: &[(&[u8], &[u8])]) -> Vec<u8> {
    let fields: [(&[u8], &[u8]); 4] = [
        (b":method", method),
        (b":scheme", b"http"),
        (b":authority", b"localhost"),
        (b":path", path),
    ];
    block(&[&fields[..], more].concat())
}

/// A whole request with a body that nobody reads.
fn upload(stream: u32, announces: bool, length: usize) -> Vec<u8> {
    let announced = length.to_string();
    let more: &[(&[u8], &[u8])] = if announces {
        &[(b"content-length", announced.as_bytes())]
    } else {
        &[]
    };
    let head = request(b"POST", b"/ignore", more);
    let mut frames = frame(kind::HEADERS, END_HEADERS, stream, &head);
    let body = vec![b'x'; length];
    let mut pieces = body.chunks(FRAME_MAX).peekable();
    while let Some(piece) = pieces.next() {
        let flags = if pieces.peek().is_none() {
            END_STREAM
        } else {
            0
        };
        frames.extend(frame(kind::DATA, flags, stream, piece));
    }
    frames
}

/// The text of a whole response 200. Streams before it may be reset by now, without an error.
fn answer(client: &mut Http2Client, stream: u32) -> String {
    let mut status = None;
    let before = client.body();
    loop {
        match client.next_said().unwrap() {
            Said::Status(of, it) if of == stream => status = Some(it),
            Said::End(of) if of == stream => break,
            Said::Reset(of, NO_ERROR) if of < stream => {}
            other => panic!("stream {stream}, status {status:?}: {other:?}"),
        }
    }
    assert_eq!(status, Some(200), "stream {stream}");
    let text = client.read_body(client.body() - before).unwrap();
    String::from_utf8(text).unwrap()
}

/// With the length that curl knows, and without.
const FRAMINGS: [&[&str]; 2] = [&[], &["-H", "content-length:"]];

/// The largest frame that every peer takes.
const FRAME_MAX: usize = 16_384;

const NO_ERROR: u32 = 0;
