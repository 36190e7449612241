//! A backend that fails at random in every way it can: it answers, closes, resets, stalls, sends half a response, or
//! bytes that are no response.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{self, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::client::find;
use crate::tier::{event_loop, pause};

/// Starts the backend on a thread of its own, which runs as long as this process; returns its address.
pub(crate) fn start() -> anyhow::Result<SocketAddr> {
    serve_apart(|stream| async move {
        // Errors are expected: the connection ends in one of the random ways.
        serve(stream).await.ok();
    })
}

/// Runs `serve` for each connection to a new address, on a thread with an event loop of its own.
pub(crate) fn serve_apart<F>(
    serve: impl Fn(TcpStream) -> F + Send + 'static,
) -> anyhow::Result<SocketAddr>
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = event_loop()?;
    thread::spawn(move || {
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener).expect("within the runtime");
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    stream.set_nodelay(true).ok();
                    tokio::spawn(serve(stream));
                }
            }
        });
    });
    Ok(address)
}

/// Serves a connection until a request gets one of the endings. Of 20 requests, 13 get a good response, one of them
/// slowly, and one more is followed by a close.
async fn serve(mut stream: TcpStream) -> io::Result<()> {
    let mut input = Vec::new();
    while read_request(&mut stream, &mut input).await?.is_some() {
        match fastrand::u8(..20) {
            0..=11 => stream.write_all(ANSWER).await?,
            // Closes without a response.
            12 => return Ok(()),
            // Resets: with this setting the socket is closed by RST.
            13 => return SockRef::from(&stream).set_linger(Some(Duration::ZERO)),
            // Stalls, never answers, and reads the next request.
            14 => pause(Duration::from_secs(3)).await,
            // Sends a part of the response.
            15 => return stream.write_all(&ANSWER[..ANSWER.len() - 3]).await,
            // Sends a head that is none.
            16 => return stream.write_all(b"HTTP/1.1 2000 What\r\n\r\n").await,
            // Sends two responses to one request.
            17 => stream.write_all(&[ANSWER, ANSWER].concat()).await?,
            // Closes after the response, which did not announce it.
            18 => {
                stream.write_all(ANSWER).await?;
                return Ok(());
            }
            _ => drip(&mut stream).await?,
        }
    }
    Ok(())
}

/// Sends the response a few bytes at a time.
async fn drip(stream: &mut TcpStream) -> io::Result<()> {
    for piece in ANSWER.chunks(7) {
        stream.write_all(piece).await?;
        pause(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Reads one request from the stream, and returns its head in lower case; `None` at the end of the stream.
pub(crate) async fn read_request(
    stream: &mut TcpStream,
    input: &mut Vec<u8>,
) -> io::Result<Option<String>> {
    let end = loop {
        if let Some(position) = find(input, b"\r\n\r\n") {
            break position + 4;
        }
        if stream.read_buf(input).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&input[..end]).to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    let request_end = end + length.unwrap_or(0);
    while input.len() < request_end {
        if stream.read_buf(input).await? == 0 {
            return Ok(None);
        }
    }
    input.drain(..request_end);
    Ok(Some(head))
}

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789";
