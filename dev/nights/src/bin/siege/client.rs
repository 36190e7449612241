//! A cheap HTTP/1.1 client, of which one thread runs thousands.
//!
//! It reads one response at a time by its framing, keeps the beginning of the body and counts the remaining bytes.
//! Failures have names of one or two words, by which they are counted.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Why there is no complete response.
pub(crate) type Failure = &'static str;

#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    input: Vec<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Whether the server closes the connection after it.
    pub(crate) closes: bool,
    /// Whether it has a Retry-After.
    pub(crate) retry_after: bool,
    /// The length of the body in bytes.
    pub(crate) length: u64,
    /// The beginning of the body, at most [`KEPT_MAX`] bytes.
    pub(crate) body: Vec<u8>,
}

impl Client {
    /// Connects within [`PATIENCE`].
    pub(crate) async fn connect(address: SocketAddr) -> Result<Self, Failure> {
        let connecting = timeout(PATIENCE, TcpStream::connect(address));
        let stream = match connecting.await {
            Ok(Ok(stream)) => stream,
            Ok(Err(_)) => return Err("cannot connect"),
            Err(_) => return Err("connect timeout"),
        };
        stream.set_nodelay(true).ok();
        Ok(Self::on(stream))
    }

    pub(crate) fn on(stream: TcpStream) -> Self {
        Self {
            stream,
            input: Vec::new(),
        }
    }

    /// Whether the server has neither closed the connection nor sent anything since the last response.
    pub(crate) fn is_quiet(&self) -> bool {
        let read = self.stream.try_read(&mut [0]);
        self.input.is_empty() && read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Sends `request` and reads the response.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<Answer, Failure> {
        let exchange = async {
            // A failure to send is ignored: the response, or its absence, tells more.
            let sent = self.stream.write_all(request).await;
            let answer = self.answer().await;
            if answer.is_ok() {
                sent.map_err(|_| "send failed")?;
            }
            answer
        };
        let answer = timeout(PATIENCE, exchange).await;
        answer.unwrap_or(Err("no answer in time"))
    }

    /// Reads one final response; interim ones before it are passed over.
    async fn answer(&mut self) -> Result<Answer, Failure> {
        loop {
            let head = self.head().await?;
            // Behind `http/1.1 `.
            let digits = head.get(9..12).unwrap_or_default();
            let status: u16 = digits.parse().map_err(|_| "not a response")?;
            // An interim response: the final one follows.
            if status < 200 {
                continue;
            }
            let has = |text: &str| head.contains(text);
            let mut answer = Answer {
                status,
                closes: has("\r\nconnection: close\r\n"),
                retry_after: has("\r\nretry-after: "),
                ..Answer::default()
            };
            let result = if has("\r\ntransfer-encoding: chunked\r\n") {
                self.chunks(&mut answer).await
            } else {
                let length = length(&head)?;
                self.take(length, &mut answer).await
            };
            return match result {
                Ok(()) => Ok(answer),
                Err(_) => Err("truncated"),
            };
        }
    }

    /// Reads a head, with its empty line, in lower case.
    async fn head(&mut self) -> Result<String, Failure> {
        let end = loop {
            if let Some(at) = find(&self.input, b"\r\n\r\n") {
                break at + 4;
            }
            let before = self.input.len();
            match self.stream.read_buf(&mut self.input).await {
                Ok(1..) => {}
                _ if before > 0 => return Err("truncated"),
                Ok(0) => return Err("closed"),
                Err(_) => return Err("reset"),
            }
        };
        let rest = self.input.split_off(end);
        let head = std::mem::replace(&mut self.input, rest);
        Ok(String::from_utf8_lossy(&head).to_ascii_lowercase())
    }

    /// Reads a chunked body with its trailer fields.
    async fn chunks(&mut self, answer: &mut Answer) -> io::Result<()> {
        loop {
            let line = self.line().await?;
            let length =
                u64::from_str_radix(line.trim(), 16).map_err(|_| io::ErrorKind::InvalidData)?;
            if length == 0 {
                // Trailer fields end with an empty line.
                while !self.line().await?.trim().is_empty() {}
                return Ok(());
            }
            self.take(length, answer).await?;
            // A line end follows the bytes of a chunk.
            self.line().await?;
        }
    }

    /// Reads a line, with its end.
    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(at) = find(&self.input, b"\n") {
                let rest = self.input.split_off(at + 1);
                let line = std::mem::replace(&mut self.input, rest);
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
            self.more().await?;
        }
    }

    /// Reads a body of this length; the answer keeps its first [`KEPT_MAX`] bytes.
    async fn take(&mut self, length: u64, answer: &mut Answer) -> io::Result<()> {
        let mut left = length;
        while left > 0 {
            if self.input.is_empty() {
                self.more().await?;
            }
            let count = left.min(self.input.len() as u64) as usize;
            let kept = KEPT_MAX.saturating_sub(answer.body.len()).min(count);
            answer.body.extend_from_slice(&self.input[..kept]);
            self.input.drain(..count);
            left -= count as u64;
            answer.length += count as u64;
        }
        Ok(())
    }

    /// Reads more bytes into the input; the end of the connection is an error.
    async fn more(&mut self) -> io::Result<()> {
        self.input.reserve(16 * 1024);
        match self.stream.read_buf(&mut self.input).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// The value of Content-Length; 0 if there is none.
fn length(head: &str) -> Result<u64, Failure> {
    let Some((_, rest)) = head.split_once("\r\ncontent-length: ") else {
        return Ok(0);
    };
    let digits = rest.lines().next().unwrap_or_default();
    digits.parse().map_err(|_| "not a response")
}

pub(crate) fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes
        .windows(pattern.len())
        .position(|window| window == pattern)
}

/// How long connecting may take, and how long an exchange may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many bytes of a body are kept.
const KEPT_MAX: usize = 64 * 1024;
