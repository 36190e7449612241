//! A backend that sends a fixed response, with any head. It has no limits, so that the front's limits apply first.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use catamaran_testkit::ajp;

use super::heads::ResponseHead;

/// The protocol of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BackendProtocol {
    Ajp,
    Http,
}

/// A backend that serves until this process ends.
#[derive(Debug)]
pub(super) struct FixedBackend {
    protocol: BackendProtocol,
    head: ResponseHead,
    address: SocketAddr,
    answered: Arc<AtomicU64>,
}

impl FixedBackend {
    /// Starts a backend on a port of its own, which runs until the program ends.
    pub(super) fn start(protocol: BackendProtocol, head: ResponseHead) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let answered = Arc::new(AtomicU64::new(0));
        let response: Arc<[u8]> = match protocol {
            BackendProtocol::Ajp => ajp_response(head),
            BackendProtocol::Http => http_response(head),
        }
        .into();
        let counter = Arc::clone(&answered);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (response, counter) = (Arc::clone(&response), Arc::clone(&counter));
                thread::spawn(move || match protocol {
                    BackendProtocol::Ajp => serve_ajp(stream, &response, &counter),
                    BackendProtocol::Http => serve_http(stream, &response, &counter),
                });
            }
        });
        Ok(Self {
            protocol,
            head,
            address,
            answered,
        })
    }

    pub(super) fn is(&self, protocol: BackendProtocol, head: ResponseHead) -> bool {
        (self.protocol, self.head) == (protocol, head)
    }

    pub(super) fn url(&self) -> String {
        let scheme = match self.protocol {
            BackendProtocol::Ajp => "ajp",
            BackendProtocol::Http => "http",
        };
        format!("{scheme}://{}", self.address)
    }

    /// The number of requests that the backend has answered.
    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}

/// Answers HTTP requests of one connection until the front closes the connection.
fn serve_http(mut stream: TcpStream, response: &[u8], answered: &AtomicU64) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        // Requests have no body, so the next head follows.
        if line == b"\r\n" {
            answered.fetch_add(1, Ordering::Relaxed);
            stream.write_all(response)?;
        }
    }
}

/// Answers AJP13 requests of one connection until the front closes the connection.
fn serve_ajp(mut stream: TcpStream, response: &[u8], answered: &AtomicU64) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut start = [0; 4];
        reader.read_exact(&mut start)?;
        let [_, _, high, low] = start;
        let mut payload = vec![0; usize::from(u16::from_be_bytes([high, low]))];
        reader.read_exact(&mut payload)?;
        match payload.first() {
            Some(&FORWARD_REQUEST) => {
                answered.fetch_add(1, Ordering::Relaxed);
                stream.write_all(response)?;
            }
            Some(&CPING) => stream.write_all(&ajp::to_web_server(&[CPONG]))?,
            _ => {}
        }
    }
}

fn http_response(head: ResponseHead) -> Vec<u8> {
    let lines: String = head.fields().map(|field| format!("{field}\r\n")).collect();
    [b"HTTP/1.1 200 OK\r\n", lines.as_bytes(), b"\r\n", BODY].concat()
}

/// The packets of the response. The last one says that the connection may be used again (1).
fn ajp_response(head: ResponseHead) -> Vec<u8> {
    let fields: Vec<Vec<u8>> = head.fields().map(ajp_field).collect();
    [
        ajp::send_headers(200, &fields),
        ajp::chunk(BODY),
        ajp::end_response(1),
    ]
    .concat()
}

/// Encodes a response field for AJP13, with the code of its name if there is one, as Tomcat does.
fn ajp_field(field: &str) -> Vec<u8> {
    let (name, value) = field.split_once(": ").unwrap_or((field, ""));
    let codes = AJP_NAMES.iter().zip(1..);
    match codes.into_iter().find(|(known, _)| **known == name) {
        Some((_, code)) => ajp::coded(code, value),
        None => ajp::field(name, value),
    }
}

const BODY: &[u8] = &[b'x'; 347];
const FORWARD_REQUEST: u8 = 2;
const CPING: u8 = 10;
const CPONG: u8 = 9;
/// The names of response fields that have a code in AJP13, in the order of the codes, which begin at 1.
const AJP_NAMES: [&str; 7] = [
    "Content-Type",
    "Content-Language",
    "Content-Length",
    "Date",
    "Last-Modified",
    "Location",
    "Set-Cookie",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// What a backend answers to `request`, sent twice on a connection.
    fn answers(protocol: BackendProtocol, request: &[u8], length: usize) -> Vec<u8> {
        let backend = FixedBackend::start(protocol, ResponseHead::Application).unwrap();
        let mut stream = TcpStream::connect(backend.address).unwrap();
        stream.write_all(&[request, request].concat()).unwrap();
        let mut answers = vec![0; 2 * length];
        stream.read_exact(&mut answers).unwrap();
        assert_eq!(backend.answered(), 2);
        answers
    }

    #[test]
    fn every_request_of_a_connection_is_answered() {
        let expected = http_response(ResponseHead::Application);
        let request = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        let answers_http = answers(BackendProtocol::Http, request, expected.len());
        assert_eq!(answers_http, expected.repeat(2));
        let expected = ajp_response(ResponseHead::Application);
        let request = ajp::get().packet();
        let answers_ajp = answers(BackendProtocol::Ajp, &request, expected.len());
        assert_eq!(answers_ajp, expected.repeat(2));
    }

    #[test]
    fn names_that_tomcat_codes_are_coded() {
        assert_eq!(ajp_field("Set-Cookie: a=b"), ajp::coded(7, "a=b"));
        assert_eq!(ajp_field("Pragma: x"), ajp::field("Pragma", "x"));
    }
}
