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

/// One way to send a case.
struct Run<'a> {
    row: &'static str,
    case: &'a Case,
    site: &'static Site,
    transport: Transport,
    cut: Cut,
    id: Id,
}

/// What the access log has to say of an answer.
struct Logged {
    site: &'static Site,
    id: String,
    says: Vec<String>,
    what: String,
}

/// Runs every case of the row called `name`.
pub(crate) fn check(name: &str) {
    let row = ROWS.iter().find(|row| row.name == name).unwrap();
    let mut logged = Vec::new();
    for (index, case) in (row.cases)().iter().enumerate() {
        thread::scope(|scope| {
            let mut ways = Vec::new();
            for protocol in Protocol::ALL {
                for transport in Transport::ALL {
                    // Each way is cut in two at other places.
                    let shift = 4 * index + ways.len();
                    let way = move || every_cut(row.name, case, (protocol, transport), shift);
                    ways.push(scope.spawn(way));
                }
            }
            logged.extend(ways.into_iter().flat_map(|way| way.join().unwrap()));
        });
    }
    // Last, because the log is written with some delay.
    logged.iter().for_each(Logged::check);
    for protocol in Protocol::ALL {
        let strays = Site::shared(protocol).backend.strays();
        assert_eq!(strays, [""; 0], "{protocol:?}");
    }
}

fn every_cut(
    row: &'static str,
    case: &Case,
    (protocol, transport): (Protocol, Transport),
    shift: usize,
) -> Vec<Logged> {
    let cuts = Cut::of(case.bytes.len(), shift).into_iter();
    let logged = cuts.filter_map(|cut| {
        let run = Run {
            row,
            case,
            site: Site::shared(protocol),
            transport,
            cut,
            id: Id::new(),
        };
        run.check()
    });
    logged.collect()
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
        let pieces: Vec<&[u8]> = match self {
            Self::Whole => vec![bytes],
            Self::Pieces(length) => bytes.chunks(length).collect(),
            Self::Halves(at) => vec![&bytes[..at], &bytes[at..]],
        };
        for piece in pieces {
            if client.send(piece).is_err() {
                return;
            }
            // Gives the front a chance to see the piece alone.
            thread::yield_now();
        }
    }
}

impl Run<'_> {
    fn check(&self) -> Option<Logged> {
        let mut client = self.site.connect(self.transport);
        let bytes = named(&self.case.bytes, self.id.as_str());
        self.cut.send(&mut client, &bytes);
        match &self.case.required {
            Required::Refused { status, reason } => {
                let answer = if *reason == "route-status" {
                    self.page_of_a_route(&mut client, *status)
                } else {
                    self.refusal(&mut client, *status)
                };
                let places = self.site.backend.connections_of(&self.id);
                assert_eq!(places, [0; 0], "{}: it reached the backend", self.what());
                Some(self.logged(&answer, &[" backend=- ", &client_reason(reason)]))
            }
            Required::CutOff { status, reason } => {
                let answer = self.refusal(&mut client, *status);
                self.is_aborted();
                Some(self.logged(&answer, &[&client_reason(reason)]))
            }
            Required::Served { requests, closes } => {
                self.is_served(&mut client, requests);
                if *closes {
                    self.expect_end(&mut client);
                } else {
                    self.another(&mut client);
                }
                None
            }
        }
    }

    /// Exactly one response that refuses and says that it closes, then the close.
    fn refusal(&self, client: &mut HttpClient, status: u16) -> Response {
        let answer = self.receive(client);
        let (got, connection) = (answer.status, answer.header("connection"));
        assert_eq!(
            (got, connection),
            (status, Some("close")),
            "{}",
            self.what()
        );
        self.expect_end(client);
        answer
    }

    /// The answer to a request that is in order, after which the connection is kept.
    fn page_of_a_route(&self, client: &mut HttpClient, status: u16) -> Response {
        let answer = self.receive(client);
        let got = (answer.status, answer.header("connection"));
        assert_eq!(got, (status, None), "{}", self.what());
        self.another(client);
        answer
    }

    /// Whatever of the request a backend got, it knows that it was not all.
    fn is_aborted(&self) {
        let backend = &self.site.backend;
        for index in backend.connections_of(&self.id) {
            let closed = backend.wait(index, |it| it.ended);
            assert!(closed, "{}: the backend waits on", self.what());
        }
        let seen = backend.seen(&self.id);
        assert_eq!(seen, [""; 0], "{}: taken for complete", self.what());
    }

    fn is_served(&self, client: &mut HttpClient, requests: &[&str]) {
        for _ in requests {
            let answer = self.receive(client);
            let (got, body) = (answer.status, answer.text());
            let required = (200, self.id.as_str());
            assert_eq!((got, body.as_str()), required, "{}", self.what());
        }
        let requests = requests.iter().map(|text| self.spelled_out(text));
        let required: Vec<String> = requests.collect();
        let seen = self.site.backend.seen(&self.id);
        assert_eq!(seen, required, "{}", self.what());
    }

    /// Nothing is left over: the connection serves another request.
    fn another(&self, client: &mut HttpClient) {
        let id = Id::new();
        let request = format!("GET /{} HTTP/1.1\r\nHost: again\r\n\r\n", id.as_str());
        client.send(request.as_bytes()).unwrap();
        let answer = self.receive(client);
        assert_eq!(answer.text(), id.as_str(), "{}: the next", self.what());
    }

    fn receive(&self, client: &mut HttpClient) -> Response {
        let answer = client.receive();
        answer.unwrap_or_else(|failure| panic!("{}: {failure}", self.what()))
    }

    fn expect_end(&self, client: &mut HttpClient) {
        match client.receive_to_end() {
            Ok(rest) => assert_eq!(String::from_utf8_lossy(&rest), "", "{}", self.what()),
            // The front stopped reading what it had refused.
            Err(Failure::Reset { received }) => assert_eq!(received, "", "{}", self.what()),
            Err(failure) => panic!("{}: {failure}", self.what()),
        }
    }

    /// The line of the access log about `answer`, a page of the front's own, has to say this.
    fn logged(&self, answer: &Response, says: &[&str]) -> Logged {
        Logged {
            site: self.site,
            id: answer.header("x-request-id").unwrap().to_owned(),
            says: says.iter().map(|text| (*text).to_owned()).collect(),
            what: self.what(),
        }
    }

    fn spelled_out(&self, text: &str) -> String {
        let listener = match self.transport {
            Transport::Tcp => self.site.front.address().to_string(),
            // A Unix socket has no name of its own that could be a host.
            Transport::Unix => "localhost".to_owned(),
        };
        let text = spelled_out(text).replace("LISTENER", &listener);
        text.replace('$', self.id.as_str())
    }

    fn what(&self) -> String {
        let bytes = &self.case.bytes;
        let bytes = bytes[..bytes.len().min(120)].escape_ascii();
        let (row, protocol) = (self.row, self.site.protocol);
        let (transport, cut) = (self.transport, self.cut);
        format!("{row} to {protocol:?} over {transport:?}, {cut:?}: {bytes}")
    }
}

impl Logged {
    fn check(&self) {
        let log = &self.site.front;
        let line = log.wait_for_log(&format!(" id={}", self.id)).unwrap();
        for text in &self.says {
            assert!(line.contains(text), "{}: not{text}: {line}", self.what);
        }
    }
}

fn client_reason(reason: &str) -> String {
    format!(" reason=client:{reason} ")
}

/// How many ways of cutting in two are tried, spread over the bytes.
const HALVES: usize = 6;

/// Longer requests are not sent byte by byte: a system call for each would take minutes.
const SINGLE_BYTES_MAX: usize = 2048;
