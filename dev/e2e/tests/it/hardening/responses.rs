//! Runs the rows of sections 2a and 2b: every case with the answer in one piece, byte by byte and
//! in halves.
//!
//! Each row has a front and a backend of its own and one case runs after the other, on one worker:
//! so it is known on which connection the next request has to come.

use std::cell::RefCell;

use catamaran_e2e::Front;
use catamaran_testkit::{Failure, HttpClient};

use super::backend::{Backend, Connection, Id, Protocol};
use super::http_response_rows::spelled_out;
use super::response_row::{Outcome, Request, ResponseCase, ResponseRow, seen};

/// One way to send a case.
struct Run<'a> {
    row: &'static str,
    case: &'a ResponseCase,
    front: &'a Front,
    backend: &'a Backend,
    pieces: Vec<usize>,
    /// What the access log has to say in the end: of which request, and what.
    reasons: &'a RefCell<Vec<(Id, &'static str)>>,
}

/// Runs every case of the row called `name`.
pub(crate) fn check(protocol: Protocol, rows: &'static [ResponseRow], name: &str) {
    let row = rows.iter().find(|row| row.name == name).unwrap();
    let backend = Backend::start(protocol).unwrap();
    let front = front(&backend, "");
    let reasons = RefCell::default();
    for case in (row.cases)() {
        let length = case.bytes.len();
        let piece = if length <= SINGLE_BYTES_MAX { 1 } else { 997 };
        let mut cuts = vec![vec![usize::MAX], vec![piece]];
        cuts.extend((1..=HALVES).map(|nth| vec![nth * length / (HALVES + 1), usize::MAX]));
        // A cut at 0 is none.
        cuts.retain(|pieces| pieces[0] > 0);
        for pieces in cuts {
            let run = Run {
                row: row.name,
                case: &case,
                front: &front,
                backend: &backend,
                pieces,
                reasons: &reasons,
            };
            run.check();
        }
    }
    // Last, because the log is written with some delay.
    for (id, reason) in reasons.take() {
        let line = front.wait_for_log(&format!("/{} ", id.as_str())).unwrap();
        let says = format!(" reason=backend:{reason} ");
        assert!(line.contains(&says), "{name}: not {reason}: {line}");
    }
}

/// A front with one worker and one backend; `keys` are lines of its table.
pub(crate) fn front(backend: &Backend, keys: &str) -> Front {
    Front::with_config(&format!(
        "[server]\nworkers = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\n\
         upstream = \"app\"\n[[upstream.app.backend]]\nurl = \"{}\"\n{keys}",
        backend.url()
    ))
    .unwrap()
}

impl Run<'_> {
    fn check(&self) {
        let id = Id::new();
        self.backend
            .answer(&id, self.case.answer(self.pieces.clone()));
        let mut client = self.front.connect().unwrap();
        client.send(&self.case.request.bytes(&id)).unwrap();
        let answer = match self.case.request {
            Request::Head => client.receive_head(),
            _ => client.receive(),
        };
        let places = self.backend.connections_of(&id);
        let [place] = places[..] else {
            panic!(
                "{}: it came to the backend {} times",
                self.what(),
                places.len()
            );
        };
        // Bytes behind a response are on their way to the front before anything else happens: what
        // came only after the next request could not be told from its response.
        let played = |it: &Connection| it.played.contains(&id) || it.ended;
        assert!(self.backend.wait(place, played), "{}", self.what());
        let reused = match &self.case.required {
            Outcome::BadGateway(reason) => {
                let answer = answer.unwrap_or_else(|failure| panic!("{}: {failure}", self.what()));
                assert_eq!(answer.status, 502, "{}: {answer:?}", self.what());
                self.reasons.borrow_mut().push((id, reason));
                false
            }
            Outcome::Truncated(status, reason) => {
                match answer {
                    Err(Failure::Truncated {
                        status: Some(got), ..
                    }) if got == *status => {}
                    other => panic!("{}: {other:?}", self.what()),
                }
                self.reasons.borrow_mut().push((id, reason));
                false
            }
            Outcome::Relayed { text, reused } => {
                let answer = answer.unwrap_or_else(|failure| panic!("{}: {failure}", self.what()));
                assert_eq!(seen(&answer, text), spelled_out(text), "{}", self.what());
                if self.case.request != Request::GetHttp10 {
                    self.another(&mut client);
                }
                *reused
            }
        };
        if let Some(said) = &self.case.said {
            self.backend_heard(place, said);
        }
        self.next_request(place, reused);
    }

    /// The front still serves, on the connection where it has to.
    fn next_request(&self, place: usize, reused: bool) {
        let mut client = self.front.connect().unwrap();
        let id = self.another(&mut client);
        let places = self.backend.connections_of(&id);
        assert_eq!(
            places.contains(&place),
            reused,
            "{}: on the same connection?",
            self.what()
        );
        if !reused {
            let closed = self.backend.wait(place, |it| it.ended);
            assert!(closed, "{}: the connection stays open", self.what());
        }
    }

    /// Another request on the client's connection: nothing of the last response is left over.
    fn another(&self, client: &mut HttpClient) -> Id {
        let id = Id::new();
        client.send(&Request::Get.bytes(&id)).unwrap();
        let answer = client.receive();
        let answer = answer.unwrap_or_else(|failure| panic!("{}, next: {failure}", self.what()));
        assert_eq!(answer.text(), id.as_str(), "{}, next", self.what());
        id
    }

    /// The last that the front said before the next request is `said`.
    fn backend_heard(&self, place: usize, said: &[u8]) {
        let contains = |bytes: &[u8]| bytes.windows(said.len()).any(|window| window == said);
        let heard = self.backend.wait(place, |it| contains(&it.received));
        assert!(heard, "{}: the front did not say so", self.what());
    }

    fn what(&self) -> String {
        let Self {
            row, case, pieces, ..
        } = self;
        let bytes = case.bytes[..case.bytes.len().min(160)].escape_ascii();
        format!("{row} in pieces {pieces:?} to {:?}: {bytes}", case.request)
    }
}

/// How many ways of cutting in two are tried, spread over the bytes.
const HALVES: usize = 5;

/// Longer answers are not sent byte by byte.
const SINGLE_BYTES_MAX: usize = 2048;
