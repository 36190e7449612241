//! C21: a container that ends its chunks with any byte or none, as Grizzly does (Payara, GlassFish).
//!
//! Each response is cut in two at every byte, and must arrive whole over HTTP/1.1 and HTTP/2, after a
//! GET and after an upload of several packets.

use catamaran_e2e::Front;
use catamaran_testkit::ajp::to_web_server;
use catamaran_testkit::http2::{END_STREAM, Http2Client, Said, frame, kind, opening};

use super::ajp_response_rows::{end, head};
use super::backend::{Answer, Backend, Id, Protocol, Then};
use super::over_http2;

/// A front that speaks both versions of HTTP in clear, and its container.
fn site() -> (Front, Backend) {
    let backend = Backend::start(Protocol::Ajp).unwrap();
    let front = Front::with_config(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nprotocols = [\"h2\", \"http/1.1\"]\n\
         [[route]]\nupstream = \"app\"\n[[upstream.app.backend]]\nurl = \"{}\"\n",
        backend.url()
    ))
    .unwrap();
    (front, backend)
}

/// A response in two chunks with a flush between them, each followed by `last`.
fn response(last: &[u8]) -> Vec<u8> {
    let chunk = |data: &str| {
        let len = u16::try_from(data.len()).unwrap().to_be_bytes();
        to_web_server(&[&[3], &len[..], data.as_bytes(), last].concat())
    };
    [
        head(200, &[]),
        chunk("hel"),
        chunk(""),
        chunk("lo!"),
        end(1),
    ]
    .concat()
}

/// Has the container answer one request after the other, each time cut at another byte, and hands the
/// name of each to `ask`.
fn at_every_byte(backend: &Backend, mut ask: impl FnMut(&Id, &str)) {
    for last in ENDS {
        let bytes = response(last);
        for cut in 1..bytes.len() {
            let id = Id::new();
            let mut answer = Answer::whole(&bytes, Then::Serve);
            answer.pieces = vec![cut, usize::MAX];
            backend.answer(&id, answer);
            ask(&id, &format!("{last:x?}, cut at {cut}"));
            assert_eq!(backend.seen(&id).len(), 1, "{last:x?}, cut at {cut}");
        }
    }
}

#[test]
fn row_c21_whole_over_http11() {
    let (front, backend) = site();
    for upload in [0, UPLOAD_BYTES] {
        let mut client = front.connect().unwrap();
        at_every_byte(&backend, |id, what| {
            let target = format!("/{}", id.as_str());
            let head = match upload {
                0 => front.head("GET", &target, ""),
                _ => front.head("POST", &target, &format!("Content-Length: {upload}\r\n")),
            };
            client
                .send(&[head.as_bytes(), &vec![b'x'; upload]].concat())
                .unwrap();
            let answer = client.receive();
            let answer = answer.unwrap_or_else(|failure| panic!("{what}: {failure}"));
            assert_eq!((answer.status, &*answer.text()), (200, "hello!"), "{what}");
        });
    }
}

#[test]
fn row_c21_whole_over_http2() {
    let (front, backend) = site();
    for method in ["GET", "POST"] {
        at_every_byte(&backend, |id, what| {
            let mut client = Http2Client::connect(front.address()).unwrap();
            client.send(&opening(65_535), usize::MAX);
            client.send(&http2_request(id, method), usize::MAX);
            let ended = client.wait(|said| matches!(said, Said::End(1) | Said::Reset(1, _)));
            assert_eq!(ended.unwrap(), Some(Said::End(1)), "{what}");
            let body = client.read_body(client.body()).unwrap();
            assert_eq!(body, b"hello!", "{what}");
        });
    }
}

fn http2_request(id: &Id, method: &str) -> Vec<u8> {
    if method == "GET" {
        return over_http2::head(1, id, END_STREAM, method, &[]);
    }
    let half = vec![b'x'; UPLOAD_BYTES / 2];
    [
        over_http2::head(1, id, 0, method, &[]),
        frame(kind::DATA, 0, 1, &half),
        frame(kind::DATA, END_STREAM, 1, &half),
    ]
    .concat()
}

/// More than two packets of a body.
const UPLOAD_BYTES: usize = 20_000;

/// What follows the data of every chunk of a container.
const ENDS: [&[u8]; 4] = [b"\x41", b"\xff", b"", b"\0"];
