//! An application for trying a cache, whose responses contradict each other, answer something else than was asked, or
//! break off.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{self, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::flaky::{read_request, serve_apart};
use crate::tier::pause;

/// Starts the application; its address is returned.
pub(crate) fn start() -> anyhow::Result<SocketAddr> {
    serve_apart(|stream| async move {
        // Errors are expected: the application itself breaks connections off.
        serve(stream).await.ok();
    })
}

/// The paths below which each kind of response is. `/good` below them is always a page.
pub(crate) const PATHS: [&str; 4] = ["/page", "/turning", "/large", "/odd"];

/// Answers requests by the first part of their path, until a response breaks the connection off.
async fn serve(mut stream: TcpStream) -> io::Result<()> {
    let mut input = Vec::new();
    while let Some(head) = read_request(&mut stream, &mut input).await? {
        let has_body = !head.starts_with("head ");
        let path = head.split(' ').nth(1).unwrap_or_default();
        let mut answer = Answer::default();
        match path.split('/').nth(1) {
            _ if path.ends_with("/good") => {}
            Some("turning") => answer.turn(),
            Some("large") => {
                answer.length = 600_000 + fastrand::usize(..600_000);
                answer.fields = "Cache-Control: max-age=2\r\nCache-Tag: large\r\n".to_owned();
            }
            Some("odd") => match answer.be_odd(&head) {
                Turn::Send => {}
                Turn::Silence => pause(Duration::from_secs(4)).await,
                Turn::Drip => return answer.drip(&mut stream).await,
                Turn::Cut => return stream.write_all(&answer.bytes(true)[..500]).await,
                Turn::Reset => return SockRef::from(&stream).set_linger(Some(Duration::ZERO)),
            },
            _ => {}
        }
        stream.write_all(&answer.bytes(has_body)).await?;
    }
    Ok(())
}

struct Answer {
    status: &'static str,
    fields: String,
    length: usize,
}

enum Turn {
    Send,
    Silence,
    Drip,
    Cut,
    Reset,
}

impl Default for Answer {
    /// A page that is fresh for a second.
    fn default() -> Self {
        Self {
            status: "200 OK",
            fields: "Cache-Control: max-age=1\r\n".to_owned(),
            length: 4000,
        }
    }
}

impl Answer {
    /// Makes a response of random length that may be stored or, the next time, may not; it soon becomes stale.
    fn turn(&mut self) {
        self.fields = FIELDS[fastrand::usize(..FIELDS.len())].to_owned();
        self.length = [1000, 100_000, 500_000, 3_000_000][fastrand::usize(..4)];
    }

    /// Makes one of twenty odd responses, or says that none is to be sent in the usual way.
    fn be_odd(&mut self, head: &str) -> Turn {
        let fresh = "Cache-Control: max-age=60\r\n";
        let (status, fields) = match fastrand::u8(..20) {
            0 => ("416 Range Not Satisfiable", "Content-Range: bytes */10\r\n"),
            1 => ("412 Precondition Failed", ""),
            2 => ("404 Not Found", ""),
            3 => ("500 Oops", ""),
            4 => ("503 Later", "Retry-After: 1\r\n"),
            5 => ("200 OK", "Vary: X-Tenant, Accept-Encoding\r\n"),
            6 => ("200 OK", "Vary: *\r\n"),
            7 => ("200 OK", "Content-Encoding: gzip\r\n"),
            8 => ("200 OK", "Age: 4000000000\r\n"),
            9 => ("301 Moved", "Location: /page/1\r\n"),
            10 => return Turn::Silence,
            11 => return Turn::Drip,
            12 => return Turn::Cut,
            13 => return Turn::Reset,
            14 if head.contains("range: bytes=0-99\r\n") => {
                self.length = 100;
                ("206 Partial Content", "Content-Range: bytes 0-99/4000\r\n")
            }
            // It was not asked for in most cases.
            15 | 16 => {
                self.length = 0;
                ("304 Not Modified", "")
            }
            17 => {
                self.length = 0;
                ("204 No Content", "")
            }
            _ => ("200 OK", ""),
        };
        self.status = status;
        self.fields = format!("{fresh}{fields}");
        Turn::Send
    }

    /// The whole response. `has_body` is `false` for HEAD, whose Content-Length is that of GET.
    fn bytes(&self, has_body: bool) -> Vec<u8> {
        let Self {
            status,
            fields,
            length,
        } = self;
        let mut head =
            format!("HTTP/1.1 {status}\r\nETag: \"tag\"\r\nContent-Type: text/plain\r\n{fields}");
        if !status.starts_with("204") && !status.starts_with("304") {
            let _ = write!(head, "Content-Length: {length}\r\n");
        }
        head.push_str("\r\n");
        let body = if has_body { *length } else { 0 };
        let letters = (0..body).map(|index| b'a' + (index % 23) as u8);
        head.into_bytes().into_iter().chain(letters).collect()
    }

    /// Sends the response in chunks, a few at a time.
    async fn drip(&self, stream: &mut TcpStream) -> io::Result<()> {
        let Self { status, fields, .. } = self;
        let head = format!("HTTP/1.1 {status}\r\n{fields}Transfer-Encoding: chunked\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        for _ in 0..20 {
            stream.write_all(b"5\r\n01234\r\n").await?;
            pause(Duration::from_millis(50)).await;
        }
        stream.write_all(b"0\r\n\r\n").await
    }
}

const FIELDS: [&str; 6] = [
    "Cache-Control: max-age=0, stale-while-revalidate=60\r\n",
    "Cache-Control: max-age=1\r\n",
    "Cache-Control: max-age=1\r\nSet-Cookie: a=b\r\n",
    "Cache-Control: no-store\r\n",
    "Cache-Control: private\r\n",
    "",
];
