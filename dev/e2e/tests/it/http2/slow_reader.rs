//! A client over TLS that reads nothing until the front's socket is full, and then reads all without a word: the last
//! records wait in the front until the socket takes them.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use catamaran_testkit::Deadline;
use catamaran_testkit::http2::{
    END_HEADERS, END_STREAM, Http2Client, Said, block, frame, kind, opening,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use socket2::{Domain, Socket, Type};

use super::{HOSTS, Site};

/// A client that trusts the site, and its socket. With small segments and a small window, both sockets together take
/// some 115 KB of a response.
fn connect(site: &Site, files: &Path) -> (Http2Client, TcpStream) {
    let mut roots = RootCertStore::empty();
    let chain = CertificateDer::from_pem_file(files.join("chain.pem")).unwrap();
    roots.add(chain).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = ServerName::try_from(HOSTS[0]).unwrap();
    let tls = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.set_tcp_mss(536).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], site.tls));
    socket.connect(&address.into()).unwrap();
    let socket = TcpStream::from(socket);
    let on = |socket| Ok(Box::new(StreamOwned::new(tls, socket)) as _);
    let client = Http2Client::on(socket.try_clone().unwrap(), on).unwrap();
    (client, socket)
}

/// What asks for a response, whose windows take all of it.
fn request(host: &str, length: usize) -> Vec<u8> {
    let path = format!("/bytes/{length}");
    let head = block(&[
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":authority", host.as_bytes()),
        (b":path", path.as_bytes()),
    ]);
    let more = (WINDOW - 65_535).to_be_bytes();
    [
        opening(WINDOW),
        frame(kind::WINDOW_UPDATE, 0, 0, &more),
        frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, &head),
    ]
    .concat()
}

/// Receives responses of several lengths, so that with some of them the last records find the socket full. `is_last`:
/// the connection ends behind them.
fn receive(keys: &str, is_last: bool) {
    let files = tempfile::tempdir().unwrap();
    let site = Site::new(files.path(), keys);
    for host in HOSTS {
        for length in (96..=192).step_by(32).map(|kib| kib * 1024) {
            let (mut client, socket) = connect(&site, files.path());
            client.send(&request(host, length), usize::MAX);
            let begun = || (socket.peek(&mut [0; 2048]).ok()? == 2048).then_some(());
            Deadline::default().poll("the response", begun).unwrap();
            // An answer of the front, which has gone on writing meanwhile.
            site.front.metric("catamaran_requests_total").unwrap();
            let end = client.wait(|said| *said == Said::End(1)).unwrap();
            assert_eq!((end, client.body()), (Some(Said::End(1)), length));
            if is_last {
                assert_eq!(client.wait(|_| false).unwrap(), None, "closed");
            }
        }
    }
}

#[test]
fn the_last_records_come_without_a_word_from_the_client() {
    receive("", false);
}

#[test]
fn a_connection_ends_behind_its_last_records() {
    receive("keep_alive_requests = 1", true);
}

/// The largest window.
const WINDOW: u32 = (1 << 31) - 1;
