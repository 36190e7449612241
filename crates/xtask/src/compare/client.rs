//! A small HTTP client on a blocking socket: one request at a time on a kept-alive connection.
//!
//! It takes only 200 with a length or in chunks (as `mod_proxy_ajp` sends what has a length);
//! anything else is an error, so a front that breaks a response is noticed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

/// One connection to a front.
#[derive(Debug)]
pub(super) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(super) fn connect(front: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(front).context("cannot connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        // A head and the page fit; thousands of these connections are held at once.
        let stream = BufReader::with_capacity(1024, stream);
        Ok(Self { stream })
    }

    /// Asks for `path` and throws the body away; its length is the result.
    pub(super) fn get(&mut self, path: &str) -> anyhow::Result<u64> {
        let head = format!("GET {path} HTTP/1.1\r\nHost: compare.test\r\n\r\n");
        self.stream.get_mut().write_all(head.as_bytes())?;
        self.receive()
    }

    /// Sends `length` bytes to `path`.
    pub(super) fn post(&mut self, path: &str, length: u64) -> anyhow::Result<u64> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: compare.test\r\nContent-Type: application/octet-stream\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        self.stream.get_mut().write_all(head.as_bytes())?;
        let sent = self.send(length);
        // A front that refuses says why before it closes; its words matter more than the broken pipe.
        let answer = self.receive();
        sent.context("the body was not taken")?;
        answer
    }

    /// In pieces large enough that the front may read as much at once as it likes.
    fn send(&mut self, length: u64) -> anyhow::Result<()> {
        let piece = vec![b'x'; 256 * 1024];
        let mut left = length;
        while left > 0 {
            let size = usize::try_from(left).map_or(piece.len(), |left| left.min(piece.len()));
            self.stream.get_mut().write_all(&piece[..size])?;
            left -= size as u64;
        }
        Ok(())
    }

    fn receive(&mut self) -> anyhow::Result<u64> {
        let mut status = String::new();
        self.stream.read_line(&mut status).context("no response")?;
        ensure!(
            status.starts_with("HTTP/1.1 200"),
            "answered {:?}",
            status.trim_end()
        );
        match self.framing()? {
            Framing::Length(length) => {
                self.discard(length)?;
                Ok(length)
            }
            Framing::Chunks => self.discard_chunks(),
        }
    }

    fn framing(&mut self) -> anyhow::Result<Framing> {
        let mut framing = None;
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            if name.eq_ignore_ascii_case("content-length") {
                framing = Some(Framing::Length(value.trim().parse()?));
            }
            if name.eq_ignore_ascii_case("transfer-encoding") {
                framing = Some(Framing::Chunks);
            }
        }
        framing.context("a response of unknown length")
    }

    fn discard_chunks(&mut self) -> anyhow::Result<u64> {
        let mut total = 0;
        loop {
            let line = self.line()?;
            let length = u64::from_str_radix(&line, 16).context("no chunk")?;
            self.discard(length)?;
            ensure!(self.line()?.is_empty(), "a chunk is longer than it says");
            total += length;
            if length == 0 {
                return Ok(total);
            }
        }
    }

    fn discard(&mut self, length: u64) -> anyhow::Result<()> {
        let mut left = length;
        let mut buffer = vec![0; 256 * 1024];
        while left > 0 {
            let limit = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
            match self.stream.read(&mut buffer[..limit])? {
                0 => bail!("{left} of {length} bytes are missing"),
                read => left -= read as u64,
            }
        }
        Ok(())
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        ensure!(line.ends_with('\n'), "the response ends in a line");
        Ok(line.trim_end().to_owned())
    }
}

/// How the end of a body is known.
#[derive(Debug)]
enum Framing {
    Length(u64),
    Chunks,
}

/// Longer than any pause a busy machine makes.
const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn answered(answer: &str) -> anyhow::Result<u64> {
        let answer = answer.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let front = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            assert!(stream.read(&mut request).unwrap() > 0);
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let result = Client::connect(front).unwrap().get("/");
        server.join().unwrap();
        result
    }

    #[test]
    fn a_whole_body_is_counted() {
        let length = answered("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc");
        assert_eq!(length.unwrap(), 3);
    }

    #[test]
    fn chunks_are_summed_up() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let whole = format!("{head}3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n");
        assert_eq!(answered(&whole).unwrap(), 13);
        assert!(answered(&format!("{head}3\r\nabcd\r\n0\r\n\r\n")).is_err());
        assert!(answered(&format!("{head}3\r\nabc\r\n")).is_err());
    }

    #[test]
    fn whatever_is_not_the_page_is_an_error() {
        for answer in [
            "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\n\r\nabc",
            "",
        ] {
            assert!(answered(answer).is_err(), "{answer:?}");
        }
    }
}
