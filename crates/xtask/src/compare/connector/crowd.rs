//! Idle connections beside a load: each has been served once and then keeps still.
//!
//! Over HTTP that is a GET of the page, over AJP13 a CPING, which every container answers. At the
//! end each one has to be there still, so that a server that closed them does not pass for good.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::served::{Protocol, Server};

/// Connections that do nothing.
#[derive(Debug)]
pub(super) struct Crowd(Vec<TcpStream>);

impl Crowd {
    /// Connects `count` times.
    pub(super) fn gather(
        server: &Server,
        protocol: Protocol,
        count: usize,
    ) -> anyhow::Result<Self> {
        let joined = (0..count).map(|number| {
            join(server, protocol).with_context(|| format!("idle connection {number}"))
        });
        Ok(Self(joined.collect::<Result<_, _>>()?))
    }

    /// Whether all of them are open and silent.
    pub(super) fn check(self) -> anyhow::Result<()> {
        for (number, stream) in self.0.iter().enumerate() {
            stream.set_nonblocking(true)?;
            match stream.peek(&mut [0]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => bail!("idle connection {number} was not left alone: {other:?}"),
            }
        }
        Ok(())
    }
}

fn join(server: &Server, protocol: Protocol) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(server.address(protocol)?)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    match protocol {
        Protocol::Ajp => {
            stream.write_all(&CPING)?;
            let mut pong = [0; CPONG.len()];
            stream.read_exact(&mut pong)?;
            ensure!(pong == CPONG, "answered {pong:?} to a CPING");
        }
        Protocol::Http => {
            let path = server.path();
            // In one piece: a server that looks at nothing answers each.
            let request = format!("GET {path} HTTP/1.1\r\nHost: compare.test\r\n\r\n");
            stream.write_all(request.as_bytes())?;
            let mut answer = Vec::new();
            while !ends_with_the_page(&answer) {
                let mut buffer = [0; 2048];
                let count = stream.read(&mut buffer)?;
                ensure!(
                    count > 0,
                    "closed after {:?}",
                    String::from_utf8_lossy(&answer)
                );
                answer.extend_from_slice(&buffer[..count]);
            }
        }
    }
    Ok(stream)
}

fn ends_with_the_page(answer: &[u8]) -> bool {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
    end.is_some_and(|end| answer.len() >= end + 4 + super::super::contender::PAGE_BYTES)
}

const CPING: [u8; 5] = [0x12, 0x34, 0, 1, 10];
const CPONG: [u8; 5] = [b'A', b'B', 0, 1, 9];
/// Longer than any pause a busy machine makes.
const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_over_when_all_of_its_bytes_are_there() {
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 347\r\n\r\n";
        let whole = format!("{head}{}", "x".repeat(347));
        assert!(ends_with_the_page(whole.as_bytes()));
        assert!(!ends_with_the_page(&whole.as_bytes()[..whole.len() - 1]));
        assert!(!ends_with_the_page(b"HTTP/1.1 200 OK\r\n"));
    }
}
