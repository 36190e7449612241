//! Whether a name leads to this front, before an authority is asked for an order: authorities count failed orders.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use catamaran_http_client::{BlockingClient, ClientRequest, Fields, ServerAddress};
use http::{Method, StatusCode};
use tokio::task;

use super::store::Store;

/// Fetches an answer of this front over each address of a name, as the authority will do for http-01.
///
/// # Errors
/// The name cannot be looked up, or what answered at one of its addresses.
pub(super) async fn look(store: &Store, name: &str) -> io::Result<()> {
    let token = format!("preflight-{:032x}", fastrand::u128(..));
    let answer = format!("{token}.{name}");
    let _pending = store.answer(&token, &answer)?;
    let name = name.to_owned();
    // It waits for the resolver and for servers, and the attempt may be left meanwhile.
    let looked = task::spawn_blocking(move || fetch_from_all(&name, PORT, &token, &answer));
    looked
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn fetch_from_all(name: &str, port: u16, token: &str, expected: &str) -> io::Result<()> {
    let unknown = |error: &dyn std::fmt::Display| {
        io::Error::other(format!("{name} cannot be looked up: {error}"))
    };
    let looked_up = (name, port).to_socket_addrs();
    let mut addresses = looked_up.map_err(|error| unknown(&error))?.peekable();
    if addresses.peek().is_none() {
        return Err(unknown(&"it has no address"));
    }
    for address in addresses.take(ADDRESSES_MAX) {
        fetch(address, name, token, expected)
            .map_err(|error| io::Error::other(format!("{address} of {name}: {error}")))?;
    }
    Ok(())
}

/// Fetches the answer from one address.
fn fetch(address: SocketAddr, name: &str, token: &str, expected: &str) -> io::Result<()> {
    let mut client = BlockingClient::connect(&ServerAddress::Tcp(address), TIMEOUT)?;
    client.limit_asks(TIMEOUT);
    let request = ClientRequest {
        method: &Method::GET,
        target: &format!("/.well-known/acme-challenge/{token}"),
        host: name,
        fields: &Fields::new(),
        body: &[],
    };
    let mut body = Vec::new();
    let answer = client.ask(&request, ANSWER_MAX, |bytes| body.extend_from_slice(bytes))?;
    let status = answer.head.status;
    // The authority follows a redirect, which may lead to this front.
    if status.is_redirection() || status == StatusCode::OK && body == expected.as_bytes() {
        return Ok(());
    }
    let mut fields = answer.head.headers.iter();
    let named = fields.find(|field| field.name().eq_ignore_ascii_case(b"server"));
    let server = named.map_or_else(|| "none".into(), |it| String::from_utf8_lossy(it.value()));
    let text = format!("another server answered, with {status} (Server: {server})");
    Err(io::Error::other(text))
}

/// The port at which authorities ask (RFC 8555, section 8.3).
const PORT: u16 = 80;

/// How long a connection may take, and then its answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The most addresses of a name that are tried.
const ADDRESSES_MAX: usize = 4;

/// The most bytes of an answer, with its head.
const ANSWER_MAX: u64 = 16 << 10;

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// What is said of a server that answers with this.
    fn said(answer: &'static str) -> Result<(), String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let count = connection.read(&mut request).unwrap();
            connection.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&request[..count]).into_owned()
        });
        let fetched = fetch_from_all("127.0.0.1", port, "token", "token.a.test");
        let request = server.join().unwrap();
        let line = "GET /.well-known/acme-challenge/token HTTP/1.1\r\n";
        assert!(request.starts_with(line), "{request}");
        let port = format!(":{port}");
        fetched.map_err(|error| error.to_string().replace(&port, ""))
    }

    #[test]
    fn a_name_must_lead_to_what_this_front_answers() {
        assert_eq!(
            said("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\ntoken.a.test"),
            Ok(())
        );
        let redirect =
            "HTTP/1.1 301 Moved\r\nLocation: https://a.test/\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(said(redirect), Ok(()));
        let another = |status: &str, server: &str| {
            Err(format!(
                "127.0.0.1 of 127.0.0.1: another server answered, with {status} (Server: {server})"
            ))
        };
        let found = said("HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 5\r\n\r\nother");
        assert_eq!(found, another("200 OK", "nginx"));
        let missing = said("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(missing, another("404 Not Found", "none"));
    }

    #[test]
    fn a_name_without_an_address_leads_nowhere() {
        let error = fetch_from_all("no.such.name.invalid", 80, "token", "x").unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("no.such.name.invalid cannot be looked up: "),
            "{text}"
        );
    }
}
