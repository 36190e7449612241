//! `payara`: 2,000 requests to Payara over AJP13, half of them uploads of up to 30 KB, and half of them from clients
//! of HTTP/2. Each response is checked: it names the length and the digest of what was uploaded.
//!
//! Payara does not write the zero byte after the data of a body chunk, so any byte of an upload may be there. The
//! same requests over HTTP/1.1 go to Apache with each of its AJP13 modules, for comparison.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use catamaran_e2e::{Front, Httpd, Payara};
use catamaran_nights::Verdict;
use catamaran_testkit::http2::{
    END_HEADERS, END_STREAM, Http2Client, Said, block, frame, kind, opening,
};
use catamaran_testkit::{Deadline, Failure, HttpClient, Signal, sha256_hex};

use crate::tally::Tally;

/// One request.
struct Exchange {
    /// The body; `None` for a GET.
    upload: Option<Vec<u8>>,
    /// Whether the request has a Content-Length.
    has_length: bool,
}

/// Sends the exchanges through the front, over HTTP/1.1 and over HTTP/2. They are also sent through two modules of
/// httpd, which are only printed, to compare.
pub(crate) fn run() -> anyhow::Result<Verdict> {
    let payara = Payara::start()?;
    let mut front = Front::with_config(&config(payara.address()))?;
    let tally = Tally::default();
    over_http11("HTTP/1.1", front.address(), &tally);
    over_http2("HTTP/2", front.address(), &tally);
    let apaches = [
        (
            "mod_proxy_ajp",
            Httpd::with_mod_proxy_ajp(payara.address())?,
        ),
        ("mod_jk", Httpd::with_mod_jk(payara.address())?),
    ];
    for (module, httpd) in &apaches {
        over_http11(module, httpd.address(), &tally);
    }
    println!("{tally}");
    // When the front has ended, its log is complete.
    front.process().signal(Signal::Terminate)?;
    front.process().wait(Deadline::default())?;
    println!("reasons in the front's log: {:?}", reasons(&mut front));
    let mut verdict = Verdict::default();
    for kind in ["HTTP/1.1", "HTTP/2"] {
        let whole = tally.count(kind, &[WHOLE]);
        verdict.at_least(&format!("{kind}: whole responses"), whole as f64, 1000.0);
        let others = tally.total(kind) - whole;
        verdict.never(&format!("{kind}: response cut, wrong or missing"), others);
    }
    Ok(verdict)
}

/// A listener for both versions of HTTP, and Payara behind it.
fn config(payara: SocketAddr) -> String {
    format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nprotocols = [\"h2\", \"http/1.1\"]\n\
         [[route]]\nupstream = \"app\"\n[[upstream.app.backend]]\nurl = \"ajp://{payara}\"\n"
    )
}

/// The reasons in the access log, with their counts.
fn reasons(front: &mut Front) -> BTreeMap<String, u64> {
    let mut reasons = BTreeMap::new();
    for line in front.process().stdout().lines() {
        let reason = line
            .split(' ')
            .find_map(|it| it.strip_prefix("reason=backend:"));
        if let Some(reason) = reason {
            *reasons.entry(reason.to_owned()).or_default() += 1;
        }
    }
    reasons
}

/// A thousand exchanges: GETs and uploads in turn, the same in each run.
fn exchanges() -> impl Iterator<Item = Exchange> {
    let mut random = fastrand::Rng::with_seed(26);
    (0..EXCHANGES).map(move |nth| {
        let upload = (nth % 2 == 0).then(|| {
            let mut bytes = vec![0; random.usize(1..=UPLOAD_BYTES_MAX)];
            random.fill(&mut bytes);
            bytes
        });
        Exchange {
            upload,
            has_length: nth % 4 == 0,
        }
    })
}

impl Exchange {
    fn body(&self) -> &[u8] {
        self.upload.as_deref().unwrap_or_default()
    }

    fn method(&self) -> &'static str {
        if self.upload.is_some() { "POST" } else { "GET" }
    }

    /// Judges a response.
    fn outcome(&self, status: u16, body: &[u8]) -> &'static str {
        let (length, digest) = (self.body().len(), sha256_hex(self.body()));
        let method = format!("method={}\n", self.method());
        let end = format!("body.length={length}\nbody.sha256={digest}\n");
        match status {
            200 if body.starts_with(method.as_bytes()) && body.ends_with(end.as_bytes()) => WHOLE,
            200 => "wrong",
            _ => "not 200",
        }
    }
}

/// Sends all exchanges on one connection, or on a new one after a failure.
fn over_http11(kind: &'static str, address: SocketAddr, tally: &Tally) {
    let mut client = None;
    for exchange in exchanges() {
        let (outcome, next) = exchange_http11(&exchange, client.take(), address);
        tally.other(kind, outcome);
        client = next;
    }
}

/// Sends the request on the client's connection, or on a new one; returns the outcome, and the connection if it can be
/// used again.
fn exchange_http11(
    exchange: &Exchange,
    client: Option<HttpClient>,
    address: SocketAddr,
) -> (&'static str, Option<HttpClient>) {
    let mut client = match client {
        Some(client) => client,
        None => match HttpClient::connect(address) {
            Ok(client) => client,
            Err(_) => return ("cannot connect", None),
        },
    };
    client.set_deadline(Deadline::default());
    let is_chunked = exchange.upload.is_some() && !exchange.has_length;
    let framing = match &exchange.upload {
        None => String::new(),
        Some(_) if is_chunked => "Transfer-Encoding: chunked\r\n".to_owned(),
        Some(body) => format!("Content-Length: {}\r\n", body.len()),
    };
    let method = exchange.method();
    let head = format!("{method} /upload HTTP/1.1\r\nHost: {address}\r\n{framing}\r\n");
    // The response tells more than a failure to send.
    let _ = client.send(head.as_bytes());
    let mut body = exchange.body();
    let _ = if is_chunked {
        client.send_chunked(&mut body, 10_000)
    } else {
        client.send(body)
    };
    match client.receive() {
        Ok(answer) => {
            let outcome = exchange.outcome(answer.status, &answer.body);
            (outcome, (outcome == WHOLE).then_some(client))
        }
        Err(Failure::Truncated { .. }) => ("cut", None),
        Err(_) => ("no response", None),
    }
}

/// All exchanges, two on each connection: an upload fits its window.
fn over_http2(kind: &'static str, address: SocketAddr, tally: &Tally) {
    let mut client = None;
    for (nth, exchange) in exchanges().enumerate() {
        let mut here = match client.take() {
            Some(client) if nth % 2 == 1 => client,
            _ => match Http2Client::connect(address) {
                Ok(mut client) => {
                    client.send(&opening(65_535), usize::MAX);
                    client
                }
                Err(_) => {
                    tally.other(kind, "cannot connect");
                    continue;
                }
            },
        };
        // The first two streams that a client may open.
        let stream = if nth % 2 == 1 { 3 } else { 1 };
        tally.other(kind, exchange_http2(&exchange, &mut here, stream));
        client = Some(here);
    }
}

/// Sends the request on `stream`, and returns the outcome.
fn exchange_http2(exchange: &Exchange, client: &mut Http2Client, stream: u32) -> &'static str {
    let length = exchange.body().len().to_string();
    let mut fields = vec![
        (&b":method"[..], exchange.method().as_bytes()),
        (b":scheme", b"http"),
        (b":authority", b"localhost"),
        (b":path", b"/upload"),
    ];
    if exchange.upload.is_some() && exchange.has_length {
        fields.push((b"content-length", length.as_bytes()));
    }
    let flag_of_end = |is_last: bool| if is_last { END_STREAM } else { 0 };
    let flags = END_HEADERS | flag_of_end(exchange.upload.is_none());
    // `usize::MAX`: frames are sent in one piece.
    let head = frame(kind::HEADERS, flags, stream, &block(&fields));
    client.send(&head, usize::MAX);
    let mut pieces = exchange.body().chunks(FRAME_BYTES).peekable();
    while let Some(piece) = pieces.next() {
        let flags = flag_of_end(pieces.peek().is_none());
        client.send(&frame(kind::DATA, flags, stream, piece), usize::MAX);
    }
    let mut status = 0;
    let before = client.body();
    loop {
        match client.next_said() {
            Ok(Said::Status(id, code)) if id == stream => status = code,
            Ok(Said::End(id)) if id == stream => break,
            Ok(Said::Reset(id, _)) if id == stream => return "reset",
            Ok(Said::Closed) | Err(_) => return "no response",
            // What concerns another stream, or the connection.
            Ok(_) => {}
        }
    }
    match client.read_body(client.body() - before) {
        Ok(body) => exchange.outcome(status, &body),
        Err(_) => "no response",
    }
}

/// The only outcome that is right.
const WHOLE: &str = "whole";

const EXCHANGES: usize = 1000;

const UPLOAD_BYTES_MAX: usize = 30_000;

/// The most bytes of a DATA frame unless the peer allows more (RFC 9113, section 4.2).
const FRAME_BYTES: usize = 16_384;
