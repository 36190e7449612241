//! The applications behind both servers: each responds with its name and with the head of the request that it got, once
//! it has all of the request.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use catamaran_testkit::address;

/// Starts a backend that runs until the program ends.
pub(crate) fn start(name: &'static str) -> anyhow::Result<SocketAddr> {
    let address = address::unused()?;
    let listener = TcpListener::bind(address)?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                // A client that closes its connection does not concern other clients.
                let _ = serve(name, stream);
            });
        }
    });
    Ok(address)
}

/// Answers one request, and closes the connection.
fn serve(name: &str, mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    let mut buffer = [0; 16 * 1024];
    let end = loop {
        if let Some(end) = head.windows(4).position(|it| it == b"\r\n\r\n") {
            break end;
        }
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            count => head.extend_from_slice(&buffer[..count]),
        }
    };
    let echo = String::from_utf8_lossy(&head[..end]).replace("\r\n", "\n");
    // A server that refuses a body while it comes does not send the rest of it, and nginx none at all for an `error_page`
    // behind a guard, but its length.
    stream.set_read_timeout(Some(PATIENCE_FOR_BODIES))?;
    let mut received = head.split_off(end + 4);
    while !is_whole(&echo, &received) {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            count => received.extend_from_slice(&buffer[..count]),
        }
    }
    let body = format!("BACKEND {name}\n{echo}");
    let is_head = head.starts_with(b"HEAD ");
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
        body.len(),
        if is_head { "" } else { &body }
    );
    stream.write_all(answer.as_bytes())
}

/// Whether the body of a request with this head has come as a whole.
fn is_whole(head: &str, body: &[u8]) -> bool {
    let lower = head.to_ascii_lowercase();
    let mut lines = lower.lines();
    if lines.clone().any(|it| it == "transfer-encoding: chunked") {
        return body.ends_with(b"0\r\n\r\n");
    }
    let length = lines.find_map(|it| it.strip_prefix("content-length: "));
    length.is_none_or(|it| it.parse().is_ok_and(|length: usize| body.len() >= length))
}

/// How long the next bytes of a body may take; shorter than a client of the search waits for its response.
const PATIENCE_FOR_BODIES: Duration = Duration::from_secs(5);

const PATIENCE: Duration = Duration::from_secs(20);
