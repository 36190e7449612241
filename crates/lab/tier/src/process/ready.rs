//! Tests whether a server serves, by a connection of its own, with one request if the target has a path for it.

use std::net::SocketAddr;
use std::time::Duration;

use catamaran_http_client::{BlockingClient, ClientRequest, ServerAddress};

use crate::server::Ready;

/// Tests once whether the server at `address` serves as `ready` expects. Without a path it is enough that the server
/// accepts a connection.
///
/// # Errors
/// The server does not serve; the text says why.
pub(super) fn ask(address: SocketAddr, ready: &Ready) -> Result<(), String> {
    let mut client = BlockingClient::connect(&ServerAddress::Tcp(address), ONE_TRY)
        .map_err(|error| format!("connecting to {address}: {error}"))?;
    let Some(path) = &ready.get else {
        return Ok(());
    };
    let host = address.to_string();
    let request = ClientRequest::get(path, &host);
    let limit = HEAD_MAX + ready.length.unwrap_or(UNCHECKED_BODY_MAX);
    let ignore_body = |_: &[u8]| ();
    let result = match client.ask(&request, limit, ignore_body) {
        Ok(answer) => check(answer.head.status.as_u16(), answer.body_bytes, ready),
        Err(error) => Err(error.to_string()),
    };
    result.map_err(|reason| format!("GET {path} of {address}: {reason}"))
}

/// Checks the status and the length of the body.
fn check(status: u16, length: u64, ready: &Ready) -> Result<(), String> {
    if status != ready.status {
        return Err(format!("status {status}, {} is expected", ready.status));
    }
    match ready.length {
        Some(expected) if expected != length => Err(format!(
            "a body of {length} bytes or more, {expected} are expected"
        )),
        _ => Ok(()),
    }
}

/// The time that one test may take; a slower server does not serve yet.
const ONE_TRY: Duration = Duration::from_secs(5);
/// The most bytes of a response's head, more than any server here sends.
const HEAD_MAX: u64 = 64 * 1024;
/// The most bytes that are read of a body whose length is not checked.
const UNCHECKED_BODY_MAX: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_length_are_as_expected_or_it_is_not_ready() {
        let ready = |length| Ready {
            port: "http".to_owned(),
            get: Some("/".to_owned()),
            status: 200,
            length,
            within: ONE_TRY,
        };
        assert_eq!(check(200, 5, &ready(None)), Ok(()));
        assert_eq!(check(200, 5, &ready(Some(5))), Ok(()));
        let fault = check(200, 5, &ready(Some(6))).unwrap_err();
        assert_eq!(fault, "a body of 5 bytes or more, 6 are expected");
        let fault = check(503, 0, &ready(None)).unwrap_err();
        assert_eq!(fault, "status 503, 200 is expected");
    }
}
