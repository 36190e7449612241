//! Requests over HTTP/2 with bodies, cookies and trailers: what a backend sees of them, over each
//! protocol, however the frames are cut. The rows are those of HTTP/2's own table; those that are refused
//! by their heads are in `http2::rows`, floods in `http2::floods`.

use catamaran_e2e::Front;
use catamaran_testkit::http2::{
    END_HEADERS, END_STREAM, Http2Client, Said, block, frame, kind, opening,
};

use super::backend::{Backend, Id, Protocol};

/// A front for HTTP/2 in clear, and its backend.
struct Site {
    protocol: Protocol,
    front: Front,
    backend: Backend,
}

impl Site {
    fn start(protocol: Protocol) -> Self {
        let backend = Backend::start(protocol).unwrap();
        let front = Front::with_config(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\nprotocols = [\"h2\"]\n\
             [[route]]\nupstream = \"app\"\n[[upstream.app.backend]]\nurl = \"{}\"\n",
            backend.url()
        ))
        .unwrap();
        Self {
            protocol,
            front,
            backend,
        }
    }

    /// Sends the frames of `request` on stream 1 in pieces of `cut`; returns the client and the first
    /// thing it is told.
    fn send(&self, request: &[u8], cut: usize) -> (Http2Client, Said) {
        let mut client = Http2Client::connect(self.front.address()).unwrap();
        client.send(&[&opening(65_535), request].concat(), cut);
        let said = client.next_said().unwrap();
        (client, said)
    }

    /// The backend sees the request as `required`; `{id}` in it stands for the request's name.
    fn serves(&self, name: &str, request: impl Fn(&Id) -> Vec<u8>, required: &str) {
        for cut in CUTS {
            let id = Id::new();
            let (mut client, said) = self.send(&request(&id), cut);
            let context = format!("{name}, {:?}, in pieces of {cut}", self.protocol);
            assert_eq!(said, Said::Status(1, 200), "{context}");
            assert_eq!(client.next_said().unwrap(), Said::End(1), "{context}");
            let required = required.replace("{id}", id.as_str());
            assert_eq!(self.backend.seen(&id), [required], "{context}");
        }
    }

    /// The stream is reset, no backend takes the request for complete, and the connection goes on.
    fn resets(&self, name: &str, request: impl Fn(&Id) -> Vec<u8>) {
        for cut in CUTS {
            let id = Id::new();
            let (mut client, said) = self.send(&request(&id), cut);
            let context = format!("{name}, {:?}, in pieces of {cut}", self.protocol);
            assert_eq!(said, Said::Reset(1, PROTOCOL_ERROR), "{context}");
            for index in self.backend.connections_of(&id) {
                assert!(self.backend.wait(index, |it| it.ended), "{context}: open");
            }
            assert_eq!(self.backend.seen(&id), [""; 0], "{context}");
            self.goes_on(&mut client, cut, &context);
        }
    }

    /// The connection serves another request.
    fn goes_on(&self, client: &mut Http2Client, cut: usize, context: &str) {
        let id = Id::new();
        client.send(&head(3, &id, END_STREAM, "GET", &[]), cut);
        let served = client.wait(|said| *said == Said::Status(3, 200)).unwrap();
        assert!(served.is_some(), "{context}: what follows");
        assert_eq!(self.backend.seen(&id).len(), 1, "{context}: what follows");
    }

    /// A body that was whole when it was passed on, and goes on: the backend has it as announced, or not
    /// at all if all frames came together.
    fn ignores_what_follows(&self, request: impl Fn(&Id) -> Vec<u8>, announced: &str) {
        for cut in CUTS {
            let id = Id::new();
            let (mut client, _) = self.send(&request(&id), cut);
            self.goes_on(&mut client, cut, "more, in a further frame");
            let announced = announced.replace("{id}", id.as_str());
            let seen = self.backend.seen(&id);
            assert!(seen.iter().all(|it| *it == announced), "{seen:?}");
        }
    }
}

fn each(test: impl Fn(&Site)) {
    for protocol in Protocol::ALL {
        test(&Site::start(protocol));
    }
}

/// A head; `flags` beside END_HEADERS.
pub(crate) fn head(
    stream: u32,
    id: &Id,
    flags: u8,
    method: &str,
    more: &[(&str, &str)],
) -> Vec<u8> {
    let path = format!("/{}", id.as_str());
    let fields = [
        (":method", method),
        (":scheme", "http"),
        (":authority", "a"),
        (":path", &path),
    ];
    let fields: Vec<_> = fields
        .iter()
        .chain(more)
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
        .collect();
    frame(kind::HEADERS, END_HEADERS | flags, stream, &block(&fields))
}

fn post(id: &Id, more: &[(&str, &str)]) -> Vec<u8> {
    head(1, id, 0, "POST", more)
}

fn data(flags: u8, bytes: &[u8]) -> Vec<u8> {
    frame(kind::DATA, flags, 1, bytes)
}

fn trailers(flags: u8, fields: &[(&[u8], &[u8])]) -> Vec<u8> {
    frame(kind::HEADERS, END_HEADERS | flags, 1, &block(fields))
}

#[test]
fn row_h2_10_a_body_unlike_its_length() {
    each(|site| {
        let five = |id: &Id| post(id, &[("content-length", "5")]);
        let whole = |id: &Id| [five(id), data(END_STREAM, b"hello")].concat();
        site.serves("as announced", whole, "POST /{id} | host: a | 5:hello");
        let more = |id: &Id| [five(id), data(END_STREAM, b"hello!")].concat();
        site.resets("more than announced", more);
        let less = |id: &Id| [five(id), data(END_STREAM, b"hell")].concat();
        site.resets("less than announced", less);
        let late = |id: &Id| [five(id), data(0, b"hello"), data(END_STREAM, b"!")].concat();
        site.ignores_what_follows(late, "POST /{id} | host: a | 5:hello");
        let ends = [(&b"x"[..], &b"1"[..])];
        let early = |id: &Id| [five(id), data(0, b"hel"), trailers(END_STREAM, &ends)].concat();
        site.resets("less, ended by trailers", early);
    });
}

#[test]
fn row_h2_11_a_body_without_a_length() {
    each(|site| {
        let seen = "POST /{id} | host: a | ?:hello";
        let once = |id: &Id| [post(id, &[]), data(END_STREAM, b"hello")].concat();
        site.serves("in one frame", once, seen);
        let bytes = |id: &Id| {
            let pieces: Vec<u8> = b"hello".iter().flat_map(|byte| data(0, &[*byte])).collect();
            [post(id, &[]), pieces, data(END_STREAM, b"")].concat()
        };
        site.serves("byte by byte", bytes, seen);
        let padded = |id: &Id| {
            let padded = data(END_STREAM | PADDED, b"\x03hello\0\0\0");
            [post(id, &[]), padded].concat()
        };
        site.serves("with padding", padded, seen);
        let like_chunks = |id: &Id| [post(id, &[]), data(END_STREAM, b"0\r\n\r\nGET / HTTP/1.1")];
        site.serves(
            "like the end of chunks",
            |id| like_chunks(id).concat(),
            "POST /{id} | host: a | ?:0\r\n\r\nGET / HTTP/1.1",
        );
        let none = |id: &Id| [post(id, &[]), data(END_STREAM, b"")].concat();
        site.serves("without a byte", none, "POST /{id} | host: a | ?:");
        let no_data = |id: &Id| head(1, id, END_STREAM, "POST", &[]);
        site.serves("none", no_data, "POST /{id} | host: a | 0:");
    });
}

#[test]
fn row_h2_12_cookie_crumbs_and_dropped_names() {
    each(|site| {
        let get = |id: &Id, fields: &[(&str, &str)]| head(1, id, END_STREAM, "GET", fields);
        let crumbs = [("cookie", "a=1"), ("x", "y"), ("cookie", "b=2; c=3")];
        site.serves(
            "crumbs",
            |id| get(id, &crumbs),
            "GET /{id} | cookie: a=1; b=2; c=3 | host: a | x: y | 0:",
        );
        let names = [("x_y", "1"), ("proxy", "http://evil"), ("te", "trailers")];
        site.serves("names", |id| get(id, &names), "GET /{id} | host: a | 0:");
    });
}

#[test]
fn row_h2_13_trailers() {
    each(|site| {
        let ended = |id: &Id| {
            let ends = trailers(END_STREAM, &[(b"x-sum", b"1"), (b"host", b"evil")]);
            [post(id, &[]), data(0, b"hello"), ends].concat()
        };
        site.serves("dropped", ended, "POST /{id} | host: a | ?:hello");
        let open = |id: &Id| {
            let goes_on = trailers(0, &[(b"x-sum", b"1")]);
            [post(id, &[]), data(0, b"hello"), goes_on].concat()
        };
        site.resets("without END_STREAM", open);
        let pseudo = |id: &Id| {
            let ends = trailers(END_STREAM, &[(b":path", b"/evil")]);
            [post(id, &[]), data(0, b"hello"), ends].concat()
        };
        site.resets("with a pseudo-field", pseudo);
        let of_connection = |id: &Id| {
            let ends = trailers(END_STREAM, &[(b"transfer-encoding", b"chunked")]);
            [post(id, &[]), data(0, b"hello"), ends].concat()
        };
        site.resets("with a field of the connection", of_connection);
    });
}

const PADDED: u8 = 8;
const PROTOCOL_ERROR: u32 = 1;

/// Whole, and cut where it hurts.
const CUTS: [usize; 3] = [usize::MAX, 7, 1];
