//! Requests over HTTP/2 that are refused: none of them reaches a backend.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

use catamaran_e2e::Front;
use catamaran_testkit::Deadline;
use catamaran_testkit::http2::{
    END_HEADERS, END_STREAM, Http2Client, Said, block, frame, kind, opening,
};

type Field = (&'static [u8], &'static [u8]);

/// What a row is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaction {
    /// A status; the connection is kept.
    Status(u16),
    /// PROTOCOL_ERROR on its stream; the connection is kept.
    Reset,
    /// GOAWAY with this code, and the close.
    GoAway(u32),
}

/// A front whose backends are never connected to.
struct Site {
    front: Front,
    backends: [TcpListener; 2],
}

impl Site {
    fn new() -> Self {
        let backends = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [ajp, http] = backends.each_ref().map(|it| it.local_addr().unwrap());
        let front = Front::with_config(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\nprotocols = [\"h2\", \"http/1.1\"]\n\
             [[route]]\npath = \"/ok\"\nstatus = 204\n\
             [[route]]\nhost = \"ajp.test\"\nupstream = \"ajp\"\n\
             [[route]]\nhost = \"http.test\"\nupstream = \"http\"\n\
             [[upstream.ajp.backend]]\nurl = \"ajp://{ajp}\"\n\
             [[upstream.http.backend]]\nurl = \"http://{http}\"\n\
             [admin]\naddress = \"127.0.0.1:0\"\n"
        ))
        .unwrap();
        Self { front, backends }
    }

    /// Sends `bytes` after the opening, then a good request on stream 101 unless the connection is to
    /// end, and compares.
    fn check(&self, name: &str, bytes: &[u8], expected: Reaction) {
        for cut in [usize::MAX, 7, 1] {
            let mut client = Http2Client::connect(self.front.address()).unwrap();
            client.send(&[&opening(65_535), bytes].concat(), cut);
            let refused = client.next_said().unwrap();
            let is_kept = match expected {
                Reaction::Status(status) => refused == Said::Status(1, status),
                Reaction::Reset => refused == Said::Reset(1, 1),
                Reaction::GoAway(code) => {
                    assert_eq!(refused, Said::GoAway(code), "{name}, in pieces of {cut}");
                    assert_eq!(client.wait(|_| false).unwrap(), None, "closed");
                    continue;
                }
            };
            assert!(
                is_kept,
                "{name}, in pieces of {cut}: {refused:?}, not {expected:?}"
            );
            let ok = [
                METHOD,
                SCHEME,
                (b":authority", b"a.test"),
                (b":path", b"/ok"),
            ];
            client.send(&head(101, &ok), cut);
            let served = client
                .wait(|said| matches!(said, Said::Status(101, _)))
                .unwrap();
            assert_eq!(served, Some(Said::Status(101, 204)), "{name}: what follows");
        }
    }

    /// Runs a row for each host.
    fn row(&self, name: &str, fields: &[Field], expected: Reaction) {
        for host in [b"ajp.test", b"http.test" as &[u8]] {
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, value)| {
                    if *value == b"HOST" {
                        (*name, host)
                    } else {
                        (*name, *value)
                    }
                })
                .collect();
            self.check(name, &head(1, &fields), expected);
        }
    }
}

fn head(stream: u32, fields: &[(&[u8], &[u8])]) -> Vec<u8> {
    frame(
        kind::HEADERS,
        END_HEADERS | END_STREAM,
        stream,
        &block(fields),
    )
}

#[test]
fn malformed_fields_reset_the_stream() {
    let site = Site::new();
    let rows: &[(&str, Field)] = &[
        ("2 value with a space before", (b"x", b" a")),
        ("2 value with a tab after", (b"x", b"a\t")),
        ("2 value with CR", (b"x", b"a\rb")),
        ("2 value with LF", (b"x", b"a\nb")),
        ("2 value with NUL", (b"x", b"a\0b")),
        ("2 value with a control", (b"x", b"a\x01b")),
        ("1 a name in upper case", (b"X-A", b"1")),
        ("1 a name with a space", (b"x y", b"1")),
        ("1 an empty name", (b"", b"x")),
        ("4 an unknown pseudo-field", (b":x", b"1")),
        ("3 connection", (b"connection", b"close")),
        ("3 keep-alive", (b"keep-alive", b"1")),
        ("3 proxy-connection", (b"proxy-connection", b"close")),
        ("3 transfer-encoding", (b"transfer-encoding", b"chunked")),
        ("3 upgrade", (b"upgrade", b"h2c")),
        ("3 te", (b"te", b"gzip")),
        ("4 :method twice", METHOD),
        ("4 :scheme twice", SCHEME),
        ("4 :path twice", PATH),
        ("4 :status", (b":status", b"200")),
        ("9 length with a sign", (b"content-length", b"+5")),
        ("9 two lengths in one", (b"content-length", b"5,6")),
        ("10 a length without a body", (b"content-length", b"5")),
    ];
    for (name, field) in rows {
        site.row(name, &[METHOD, SCHEME, HOST, PATH, *field], Reaction::Reset);
    }
    let after = [METHOD, SCHEME, HOST, (b"x", b"1"), PATH];
    site.row("4 pseudo-field after a field", &after, Reaction::Reset);
    for (name, left_out) in [("method", 0), ("scheme", 1), ("path", 3)] {
        let mut fields = vec![METHOD, SCHEME, HOST, PATH];
        fields.remove(left_out);
        site.row(&format!("4 no {name}"), &fields, Reaction::Reset);
    }
    let equal = [
        METHOD,
        SCHEME,
        HOST,
        PATH,
        (b"content-length", b"0"),
        (b"content-length", b"0"),
    ];
    site.row("9 the same length twice", &equal, Reaction::Reset);
    site.has_counted(&[
        "h2-refused",
        "h2-field-value",
        "h2-content-length",
        "h2-pseudo",
    ]);
}

#[test]
fn what_http_forbids_is_answered() {
    let site = Site::new();
    let status = |name, fields: &[Field], status| site.row(name, fields, Reaction::Status(status));
    status("5 CONNECT", &[(b":method", b"CONNECT"), HOST], 405);
    status(
        "5 TRACE",
        &[(b":method", b"TRACE"), SCHEME, HOST, PATH],
        405,
    );
    for (name, path) in [
        ("6 dots in disguise", &b"/a/..;/b"[..]),
        ("6 an escape that is none", b"/%zz"),
        ("6 an escaped NUL", b"/%00"),
        ("6 a star", b"*"),
    ] {
        status(name, &[METHOD, SCHEME, HOST, (b":path", path)], 400);
    }
    status(
        "7 https in clear",
        &[METHOD, (b":scheme", b"https"), HOST, PATH],
        421,
    );
    status(
        "7 another scheme",
        &[METHOD, (b":scheme", b"ftp"), HOST, PATH],
        421,
    );
    for (name, authority) in [("8 userinfo", &b"u@a"[..]), ("8 port 0", b"a:0")] {
        let authority = (&b":authority"[..], authority);
        status(name, &[METHOD, SCHEME, authority, PATH], 400);
    }
    status(
        "8 another Host",
        &[METHOD, SCHEME, HOST, PATH, (b"host", b"b")],
        400,
    );
    status("8 no host", &[METHOD, SCHEME, PATH], 400);
    let two = [METHOD, SCHEME, PATH, (b"host", b"HOST"), (b"host", b"HOST")];
    status("8 two Hosts", &two, 400);
    let field: Field = (b"authorization", b"Basic eA==");
    let twice = [METHOD, SCHEME, HOST, PATH, field, field];
    status("two Authorizations", &twice, 400);
    let expects = [METHOD, SCHEME, HOST, PATH, (b"expect", b"more")];
    status("an unknown expectation", &expects, 417);
    let many: Vec<Field> = [METHOD, SCHEME, HOST, PATH]
        .into_iter()
        .chain((0..97).map(|_| (&b"x"[..], &b"1"[..])))
        .collect();
    status("14 many fields", &many, 431);
    site.has_counted(&[
        "connect",
        "method-trace",
        "scheme-mismatch",
        "host-syntax",
        "host-mismatch",
        "host-missing",
        "host-duplicate",
        "field-duplicate",
        "too-many-fields",
    ]);
}

#[test]
fn faults_of_the_connection_end_it() {
    const PROTOCOL_ERROR: u32 = 1;
    const FLOW_CONTROL_ERROR: u32 = 3;
    const FRAME_SIZE_ERROR: u32 = 6;
    const COMPRESSION_ERROR: u32 = 9;
    let site = Site::new();
    let heads = |block: &[u8]| frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, block);
    let good = block(&[METHOD, SCHEME, (b":authority", b"ajp.test"), PATH]);
    let long = [b'x'; 16 * 1024];
    let resize = [&[0x3f, 0xe2, 0x1f][..], &good].concat();
    let rows: &[(&str, Vec<u8>, u32)] = &[
        ("22 index 0", heads(&[0x80]), COMPRESSION_ERROR),
        (
            "22 index out of range",
            heads(&[0xff, 0x00]),
            COMPRESSION_ERROR,
        ),
        (
            "22 a table beyond what we take",
            heads(&resize),
            COMPRESSION_ERROR,
        ),
        (
            "22 a long integer",
            heads(&[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            COMPRESSION_ERROR,
        ),
        (
            "22 EOS in a text",
            heads(&[0, 0x84, 0xff, 0xff, 0xff, 0xff, 0]),
            COMPRESSION_ERROR,
        ),
        (
            "23 stream 0",
            frame(kind::HEADERS, END_HEADERS, 0, &good),
            PROTOCOL_ERROR,
        ),
        (
            "23 an even stream",
            frame(kind::HEADERS, END_HEADERS, 2, &good),
            PROTOCOL_ERROR,
        ),
        (
            "23 PUSH_PROMISE",
            frame(5, END_HEADERS, 1, &[0, 0, 0, 2]),
            PROTOCOL_ERROR,
        ),
        (
            "23 a frame too large",
            frame(kind::DATA, 0, 1, &[&long[..], b"x"].concat()),
            FRAME_SIZE_ERROR,
        ),
        (
            "23 a window too wide",
            frame(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
            FLOW_CONTROL_ERROR,
        ),
        (
            "16 CONTINUATION without a head",
            frame(kind::CONTINUATION, END_HEADERS, 1, &good),
            PROTOCOL_ERROR,
        ),
    ];
    for (name, bytes, code) in rows {
        site.check(name, bytes, Reaction::GoAway(*code));
    }
    site.has_counted(&[
        "h2-protocol-error",
        "h2-flow-control-error",
        "h2-compression-error",
    ]);
}

#[test]
fn large_heads_are_answered_and_huge_ones_end_the_connection() {
    const ENHANCE_YOUR_CALM: u32 = 11;
    let site = Site::new();
    let long = [b'x'; 8000];
    let good = block(&[METHOD, SCHEME, (b":authority", b"ajp.test"), PATH]);
    let large = block(&[(b"x", &long)]).repeat(5);
    let mut bytes = frame(kind::HEADERS, END_STREAM, 1, &good);
    let (first, second) = large.split_at(16_000);
    bytes.extend(frame(kind::CONTINUATION, 0, 1, first));
    bytes.extend(frame(kind::CONTINUATION, 0, 1, &second[..16_000]));
    bytes.extend(frame(kind::CONTINUATION, END_HEADERS, 1, &second[16_000..]));
    site.check("14 above head_max", &bytes, Reaction::Status(431));
    // A field that is named once and referred to: 160 KB of few bytes.
    let mut bomb = [&good[..], &block(&[(b"x", &long[..3900])])].concat();
    bomb[good.len()] = 0x40;
    bomb.extend([0xbe; 40]);
    let bomb = frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, &bomb);
    site.check(
        "15 far above head_max",
        &bomb,
        Reaction::GoAway(ENHANCE_YOUR_CALM),
    );
    site.has_counted(&["h2-head-flood"]);
}

#[test]
fn other_protocols_are_told_apart() {
    let config = |protocols: &str| {
        format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\nprotocols = {protocols}\n\
             [[route]]\nstatus = 204\n"
        )
    };
    let front = Front::with_config(&config("[\"http/1.1\"]")).unwrap();
    let mut client = Http2Client::connect(front.address()).unwrap();
    let preface = front.ask(catamaran_testkit::http2::PREFACE).unwrap();
    assert!([400, 505].contains(&preface.status), "{preface:?}");
    client.send(b"GET /", 1);
    let front = Front::with_config(&config("[\"h2\"]")).unwrap();
    let mut client = Http2Client::connect(front.address()).unwrap();
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", usize::MAX);
    assert_eq!(client.next_said().unwrap(), Said::Closed);
}

impl Site {
    /// Nothing of what was refused reached a backend, and the reasons were counted.
    fn has_counted(&self, reasons: &[&str]) {
        for reason in reasons {
            let line = format!("culprit=\"client\",reason=\"{reason}\"}}");
            let is_counted = || {
                let metrics = self.front.ask_admin("/metrics").unwrap().text();
                metrics.contains(&line).then_some(())
            };
            Deadline::default().poll(reason, is_counted).unwrap();
        }
        for backend in &self.backends {
            backend.set_nonblocking(true).unwrap();
            let accepted: Result<SocketAddr, _> = backend.accept().map(|(_, peer)| peer);
            assert_eq!(accepted.unwrap_err().kind(), ErrorKind::WouldBlock);
        }
    }
}

const METHOD: Field = (b":method", b"GET");
const SCHEME: Field = (b":scheme", b"http");
const HOST: Field = (b":authority", b"HOST");
const PATH: Field = (b":path", b"/x");
