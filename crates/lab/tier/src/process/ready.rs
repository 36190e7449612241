//! Whether a server serves: one request, over HTTP/1.0, so that the end of the connection is the end of
//! the response.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::server::Ready;

/// Asks once.
///
/// # Errors
/// Why it does not serve, as words.
pub(super) fn ask(address: SocketAddr, ready: &Ready) -> Result<(), String> {
    let mut stream = TcpStream::connect_timeout(&address, ONE_TRY)
        .map_err(|error| format!("connecting to {address}: {error}"))?;
    let Some(path) = &ready.get else {
        return Ok(());
    };
    let failed = |error| format!("GET {path} of {address}: {error}");
    stream.set_read_timeout(Some(ONE_TRY)).map_err(failed)?;
    stream.set_write_timeout(Some(ONE_TRY)).map_err(failed)?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut response = Vec::new();
    let limit = HEAD_MAX + ready.length.unwrap_or(HEAD_MAX);
    stream
        .take(limit)
        .read_to_end(&mut response)
        .map_err(failed)?;
    judge(&response, ready).map_err(|what| format!("GET {path} of {address}: {what}"))
}

fn judge(response: &[u8], ready: &Ready) -> Result<(), String> {
    let end = response.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.ok_or("no whole response")?;
    let head = String::from_utf8_lossy(&response[..end]);
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    if status != Some(ready.status) {
        let line = head.lines().next().unwrap_or_default();
        return Err(format!("`{line}`, status {} is expected", ready.status));
    }
    let length = (response.len() - end - 4) as u64;
    match ready.length {
        Some(expected) if expected != length => Err(format!(
            "a body of {length} bytes or more, {expected} are expected"
        )),
        _ => Ok(()),
    }
}

/// A server that answers this slowly does not serve yet.
const ONE_TRY: Duration = Duration::from_secs(5);
/// More than any head.
const HEAD_MAX: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(response: &str, length: Option<u64>) -> Result<(), String> {
        let ready = Ready {
            port: "http".to_owned(),
            get: Some("/".to_owned()),
            status: 200,
            length,
            within: ONE_TRY,
        };
        judge(response.as_bytes(), &ready)
    }

    #[test]
    fn status_and_length_are_as_expected_or_it_is_not_ready() {
        let whole = "HTTP/1.1 200 OK\r\nA: b\r\n\r\n12345";
        assert_eq!(judged(whole, None), Ok(()));
        assert_eq!(judged(whole, Some(5)), Ok(()));
        let fault = judged(whole, Some(6)).unwrap_err();
        assert_eq!(fault, "a body of 5 bytes or more, 6 are expected");
        let fault = judged("HTTP/1.1 503 Busy\r\n\r\n", None).unwrap_err();
        assert_eq!(fault, "`HTTP/1.1 503 Busy`, status 200 is expected");
        for cut in ["", "HTTP/1.1 200 OK\r\n", "\r\n\r\n", "SSH-2.0\r\n\r\n"] {
            assert!(judged(cut, None).is_err(), "{cut:?}");
        }
    }
}
