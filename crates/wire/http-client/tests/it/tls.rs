//! The client over TLS.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;

use catamaran_http_client::{BlockingClient, ClientRequest, ServerAddress};
use catamaran_testkit::tls::{Authority, End, files, profile, settings, trust};
use catamaran_tls::{Connection, Protocols};

use crate::PATIENCE;

/// A server with a certificate for `a.test`, which answers one request. Its thread returns the request's head.
fn server(authority: &Authority) -> (SocketAddr, JoinHandle<Vec<u8>>) {
    let pair = authority.sign(&["a.test"], |_| {}).expect("a certificate");
    let profile = profile(&settings(), &files(&[pair]));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("a bound socket");
    let serve = move || {
        let (mut socket, _) = listener.accept().expect("a client");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let connection = Connection::server(&profile, Protocols::Http1).expect("a connection");
        let mut end = End::new(connection);
        let mut buffer = [0; 4096];
        while !end.plain.ends_with(b"\r\n\r\n") {
            match socket.read(&mut buffer) {
                Ok(len @ 1..) if end.receive(&buffer[..len]).is_ok() => {}
                // The client does not trust the certificate.
                _ => return end.plain.to_vec(),
            }
            socket.write_all(&std::mem::take(&mut end.out)).ok();
        }
        end.seal(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
        end.seal(&[b'x'; 100_000]);
        socket.write_all(&end.out).expect("a client");
        end.plain.to_vec()
    };
    (address, std::thread::spawn(serve))
}

#[test]
fn a_request_and_its_response_are_encrypted() {
    let authority = Authority::new("ca").expect("a key");
    let (address, server) = server(&authority);
    let trust = trust(&authority.pem(), "a.test", None);
    let connected = BlockingClient::connect_tls(&ServerAddress::Tcp(address), &trust, PATIENCE);
    let mut client = connected.expect("a trusted server");
    let mut body = Vec::new();
    let request = ClientRequest::get("/a?b", "a.test");
    let answer = client.ask(&request, 1 << 20, |bytes| body.extend_from_slice(bytes));
    let answer = answer.expect("a response");
    assert!(answer.is_whole && body == [b'x'; 100_000]);
    let request_bytes = server.join().expect("the server");
    assert_eq!(request_bytes, b"GET /a?b HTTP/1.1\r\nHost: a.test\r\n\r\n");
}

#[test]
fn a_server_that_is_not_trusted_is_sent_nothing() {
    let (authority, other) = (Authority::new("ca"), Authority::new("other"));
    let authority = authority.expect("a key");
    for (issuers, name) in [
        (other.expect("a key").pem(), "a.test"),
        (authority.pem(), "b.test"),
    ] {
        let (address, server) = server(&authority);
        let trust = trust(&issuers, name, None);
        let connected = BlockingClient::connect_tls(&ServerAddress::Tcp(address), &trust, PATIENCE);
        assert_eq!(
            connected.unwrap_err().kind(),
            ErrorKind::InvalidData,
            "{name}"
        );
        assert_eq!(server.join().expect("the server"), b"");
    }
}
