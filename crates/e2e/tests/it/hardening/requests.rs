//! Runs the rows of section 1: every case over each protocol to the backend, each transport to the
//! front, and each way of cutting the bytes.
//!
//! All tests share one front for each protocol. Nothing waits but for events: bytes, a close, a
//! line of the log.

use std::thread;

use catamaran_testkit::{Failure, HttpClient, Response};

use super::backend::{Id, Protocol};
use super::request_rows::{ROWS, spelled_out};
use super::row::{Case, Required, named};
use super::site::{Site, Transport};

/// How the bytes are cut into writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Whole,
    /// Writes of this length.
    Pieces(usize),
    /// Two writes, the first of this length.
    Halves(usize),
}

/// How many ways of cutting in two are tried, spread over the bytes.
const HALVES: usize = 6;

/// Longer requests are not sent byte by byte: a system call for each would take minutes.
const SINGLE_BYTES_MAX: usize = 2048;

/// One way to send a case.
struct Run<'a> {
    row: &'static str,
    case: &'a Case,
    site: &'static Site,
    transport: Transport,
    cut: Cut,
    id: Id,
}

/// Runs every case of the row called `name`.
pub(crate) fn check(name: &str) {
    let row = ROWS.iter().find(|row| row.name == name).unwrap();
    for (index, case) in (row.cases)().iter().enumerate() {
        thread::scope(|scope| {
            for protocol in Protocol::ALL {
                for transport in Transport::ALL {
                    let site = Site::shared(protocol);
                    // Each of the four ways is cut in two at other places.
                    let shift = index + 2 * usize::from(protocol == Protocol::Ajp);
                    let shift = 2 * shift + usize::from(transport == Transport::Unix);
                    scope.spawn(move || {
                        for cut in Cut::of(case.bytes.len(), shift) {
                            let id = Id::new();
                            let run = Run {
                                row: row.name,
                                case,
                                site,
                                transport,
                                cut,
                                id,
                            };
                            run.check();
                        }
                    });
                }
            }
        });
    }
    for protocol in Protocol::ALL {
        assert_eq!(
            Site::shared(protocol).backend.strays(),
            [""; 0],
            "{protocol:?}"
        );
    }
}

impl Cut {
    fn of(length: usize, shift: usize) -> Vec<Self> {
        let piece = if length <= SINGLE_BYTES_MAX { 1 } else { 997 };
        let halves = (0..HALVES).map(|nth| 1 + (nth * length / HALVES + shift) % (length - 1));
        let mut cuts = vec![Self::Whole, Self::Pieces(piece)];
        cuts.extend(halves.map(Self::Halves));
        cuts
    }

    /// Sends `bytes`; a front that has refused them need not take them all.
    fn send(self, client: &mut HttpClient, bytes: &[u8]) {
        let (first, rest) = match self {
            Self::Whole => (bytes, &b""[..]),
            Self::Pieces(length) => bytes.split_at(length.min(bytes.len())),
            Self::Halves(at) => bytes.split_at(at),
        };
        let piece = first.len();
        for bytes in [first].into_iter().chain(rest.chunks(match self {
            Self::Pieces(_) => piece,
            _ => usize::MAX,
        })) {
            if client.send(bytes).is_err() {
                return;
            }
            thread::yield_now();
        }
    }
}

impl Run<'_> {
    fn check(&self) {
        let mut client = self.site.connect(self.transport);
        let bytes = named(&self.case.bytes, self.id.as_str());
        self.cut.send(&mut client, &bytes);
        match &self.case.required {
            Required::Refused { status, reason } => {
                let answer = self.refusal(&mut client, *status);
                let places = self.site.backend.connections_of(&self.id);
                assert_eq!(places, [0; 0], "{}: it reached the backend", self.what());
                if self.cut == Cut::Whole {
                    let line = self.log_line(&answer);
                    let says = format!(" reason=client:{reason} ");
                    assert!(line.contains(&says), "{}: {line}", self.what());
                    assert!(line.contains(" backend=- "), "{}: {line}", self.what());
                }
            }
            Required::CutOff { status, reason } => {
                let answer = self.refusal(&mut client, *status);
                for index in self.site.backend.connections_of(&self.id) {
                    let closed = self.site.backend.wait(index, |it| it.ended);
                    assert!(
                        closed,
                        "{}: the backend's connection stays open",
                        self.what()
                    );
                }
                let seen = self.site.backend.seen(&self.id);
                assert_eq!(
                    seen,
                    [""; 0],
                    "{}: the backend took it for complete",
                    self.what()
                );
                if self.cut == Cut::Whole {
                    let line = self.log_line(&answer);
                    let says = format!(" reason=client:{reason} ");
                    assert!(line.contains(&says), "{}: {line}", self.what());
                }
            }
            Required::Served { requests, closes } => {
                for _ in requests {
                    let answer = self.receive(&mut client);
                    assert_eq!(answer.status, 200, "{}: {answer:?}", self.what());
                    assert_eq!(answer.text(), self.id.as_str(), "{}", self.what());
                }
                let required: Vec<String> =
                    requests.iter().map(|text| self.spelled_out(text)).collect();
                let seen = self.site.backend.seen(&self.id);
                assert_eq!(seen, required, "{}", self.what());
                if *closes {
                    self.expect_end(&mut client);
                } else {
                    self.another(&mut client);
                }
            }
        }
    }

    /// Exactly one response that refuses and says that it closes, then the close.
    fn refusal(&self, client: &mut HttpClient, status: u16) -> Response {
        let answer = self.receive(client);
        assert_eq!(answer.status, status, "{}: {}", self.what(), answer.text());
        assert_eq!(
            answer.header("connection"),
            Some("close"),
            "{}",
            self.what()
        );
        self.expect_end(client);
        answer
    }

    /// Nothing is left over: the connection serves another request.
    fn another(&self, client: &mut HttpClient) {
        let id = Id::new();
        let request = format!("GET /{} HTTP/1.1\r\nHost: again\r\n\r\n", id.as_str());
        client.send(request.as_bytes()).unwrap();
        let answer = self.receive(client);
        assert_eq!(
            answer.text(),
            id.as_str(),
            "{}: the next request",
            self.what()
        );
    }

    fn receive(&self, client: &mut HttpClient) -> Response {
        let answer = client.receive();
        answer.unwrap_or_else(|failure| panic!("{}: {failure}", self.what()))
    }

    fn expect_end(&self, client: &mut HttpClient) {
        match client.receive_to_end() {
            Ok(rest) => assert_eq!(rest.escape_ascii().to_string(), "", "{}", self.what()),
            // The front stopped reading what it had refused.
            Err(Failure::Reset { received }) => assert_eq!(received, "", "{}", self.what()),
            Err(failure) => panic!("{}: {failure}", self.what()),
        }
    }

    /// The line of the access log about `answer`, a page of the front's own.
    fn log_line(&self, answer: &Response) -> String {
        let id = answer.header("x-request-id").unwrap();
        self.site.front.wait_for_log(&format!(" id={id}")).unwrap()
    }

    fn spelled_out(&self, text: &str) -> String {
        let listener = match self.transport {
            Transport::Tcp => self.site.front.address().to_string(),
            // A Unix socket has no name that could be a host.
            Transport::Unix => "127.0.0.1:0".to_owned(),
        };
        let text = spelled_out(text).replace("LISTENER", &listener);
        text.replace('$', self.id.as_str())
    }

    fn what(&self) -> String {
        let Self {
            row,
            case,
            site,
            transport,
            cut,
            ..
        } = self;
        let bytes: String = case
            .bytes
            .iter()
            .take(120)
            .map(|byte| byte.escape_ascii().to_string())
            .collect();
        format!(
            "{row} to {:?} over {transport:?}, {cut:?}: {bytes}",
            site.protocol
        )
    }
}
