//! The application behind each server, which counts the requests that it is answering.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::pause;

/// An application. It runs as long as the event loop does.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    in_flight: Arc<AtomicUsize>,
}

impl Backend {
    /// Starts the application on an address of its own.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let in_flight = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&in_flight);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                // A small buffer, so that responses that are not read stay in the application.
                SockRef::from(&socket)
                    .set_send_buffer_size(SEND_BUFFER)
                    .ok();
                tokio::spawn(serve(socket, Arc::clone(&counted)));
            }
        });
        Ok(Self { address, in_flight })
    }

    /// The number of requests whose responses are not completely written.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }
}

/// Counts a request until it is dropped.
struct InFlight(Arc<AtomicUsize>);

impl InFlight {
    fn begin(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers the requests of one connection: `/big` with 300 KB, `/slow` after a second, others at once.
async fn serve(mut socket: TcpStream, in_flight: Arc<AtomicUsize>) {
    let mut input = Vec::new();
    loop {
        let end = loop {
            let blank_line = input.windows(4).position(|bytes| bytes == b"\r\n\r\n");
            if let Some(position) = blank_line {
                break position + 4;
            }
            match socket.read_buf(&mut input).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
        };
        let head: Vec<u8> = input.drain(..end).collect();
        let counted = InFlight::begin(&in_flight);
        let has = |path: &[u8]| head.windows(path.len()).any(|bytes| bytes == path);
        if has(b" /slow ") {
            // It does the work also if the client has left, as most applications do.
            pause(Duration::from_secs(1)).await;
        }
        let length = if has(b" /big ") { 300_000 } else { 2 };
        let mut answer =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes();
        if !head.starts_with(b"HEAD ") {
            answer.resize(answer.len() + length, b'x');
        }
        if socket.write_all(&answer).await.is_err() {
            return;
        }
        drop(counted);
    }
}

const SEND_BUFFER: usize = 16 * 1024;
