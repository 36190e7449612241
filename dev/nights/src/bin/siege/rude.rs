//! Clients that do not behave: some read slowly, some vanish in the middle of a request, and some send the hostile
//! bytes of the hardening tables.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::request_rows;
use crate::row::named;
use crate::tally::Tally;
use crate::tier::pause;

/// Reads three megabytes a few bytes at a time, again and again.
pub(crate) async fn read_slowly(front: SocketAddr, tally: Arc<Tally>) {
    loop {
        random_pause(5.0).await;
        let outcome = match download_slowly(front).await {
            Ok(SLOW_BODY..) => "whole",
            Ok(_) => "truncated",
            Err(_) => "failed",
        };
        tally.other("slow reader", outcome);
    }
}

/// Downloads once; returns the number of bytes.
async fn download_slowly(front: SocketAddr) -> std::io::Result<usize> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(16 * 1024)?;
    let mut stream = socket.connect(front).await?;
    let request =
        format!("GET /bytes/{SLOW_BODY} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut buffer = vec![0; 8 * 1024];
    let mut received = 0;
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(received),
            read => received += read,
        }
        pause(Duration::from_millis(200)).await;
    }
}

/// Connects, waits, begins a request, and closes the connection, again and again.
pub(crate) async fn vanish(front: SocketAddr, tally: Arc<Tally>) {
    loop {
        let Ok(mut stream) = TcpStream::connect(front).await else {
            tally.other("vanishing", "cannot connect");
            random_pause(1.0).await;
            continue;
        };
        random_pause(8.0).await;
        let (bytes, stay): (&[u8], f64) = match fastrand::u8(..7) {
            0 => (b"GET / HTTP/1.1\r\nHos", 0.1),
            1 => (b"GET /bytes/10000000 HTTP/1.1\r\nHost: a\r\n\r\n", 0.2),
            2 => (
                b"POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\nabc",
                0.2,
            ),
            3 => (b"GET /delay/2000 HTTP/1.1\r\nHost: a\r\n\r\n", 0.1),
            4 => (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0.0),
            5 => (b"GET /flaky HTTP/1.1\r\nHost: a\r\n\r\n", 0.01),
            // Sends nothing until the front closes the connection.
            _ => (b"GET / HTTP/1.1\r\n", 60.0),
        };
        // The front may have closed the connection meanwhile.
        stream.write_all(bytes).await.ok();
        let mut buffer = [0; 4096];
        timeout(Duration::from_secs_f64(stay), async {
            while let Ok(1..) = stream.read(&mut buffer).await {}
        })
        .await
        .ok();
        if fastrand::bool() {
            SockRef::from(&stream).set_linger(Some(Duration::ZERO)).ok();
        }
        tally.other("vanishing", "gone");
    }
}

/// Sends one case of the hardening tables after the other, in one piece or in several.
pub(crate) async fn attack(front: SocketAddr, tally: Arc<Tally>) {
    loop {
        let row = &request_rows::ROWS[fastrand::usize(..request_rows::ROWS.len())];
        let cases = (row.cases)();
        let bytes = named(&cases[fastrand::usize(..cases.len())].bytes, "i0000000");
        let Ok(mut stream) = TcpStream::connect(front).await else {
            tally.other("hostile", "cannot connect");
            random_pause(1.0).await;
            continue;
        };
        random_pause(8.0).await;
        // At most 50 pieces, so that a long request does not take too long.
        let piece = [1, 7, 100, usize::MAX][fastrand::usize(..4)].max(bytes.len() / 50 + 1);
        for piece in bytes.chunks(piece) {
            if stream.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        let mut received = Vec::new();
        let reading = stream.read_to_end(&mut received);
        let ended = timeout(Duration::from_secs(3), reading).await.is_ok();
        let status = String::from_utf8_lossy(received.get(9..12).unwrap_or(b"none"));
        let end = if ended { "" } else { " kept open" };
        tally.other("hostile", format!("{status}{end}"));
    }
}

/// A random pause, exponentially distributed.
async fn random_pause(mean: f64) {
    let seconds = -fastrand::f64().max(f64::MIN_POSITIVE).ln() * mean;
    pause(Duration::from_secs_f64(seconds.min(mean * 5.0))).await;
}

const SLOW_BODY: usize = 3_000_000;
