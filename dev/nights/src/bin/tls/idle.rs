//! Measures the memory of connections that made one request and are idle.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use anyhow::Context as _;
use catamaran_gauge::memory;
use catamaran_tier::Process;
use rustls::crypto::aws_lc_rs::{default_provider, kx_group};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::stand::{Key, Stand};

type Client = StreamOwned<ClientConnection, TcpStream>;

/// The bytes of memory for each connection, in a front that is started for this measurement.
pub(crate) fn measure(stand: &Stand, target: &str) -> anyhow::Result<f64> {
    let front = stand.front(&format!("{target}-idle"), target, Key::Ecdsa)?;
    let config = config(stand)?;
    let address = front.address("https");
    let open = |count| -> io::Result<Vec<Client>> {
        (0..count).map(|_| connect(address, &config)).collect()
    };
    let first = stand.space.inside(|| open(FIRST))?.context("the first")?;
    let before = memory(&front)?;
    let others = stand.space.inside(|| open(COUNT))?.context("the others")?;
    let after = memory(&front)?;
    drop((first, others));
    Ok((after - before) / COUNT as f64)
}

fn memory(front: &Process) -> anyhow::Result<f64> {
    Ok(memory::shares(&front.processes())?.proportional as f64)
}

/// A connection that has made one request.
fn connect(address: SocketAddr, config: &Arc<ClientConfig>) -> io::Result<Client> {
    let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
    let tls = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
    let mut client = StreamOwned::new(tls, TcpStream::connect(address)?);
    client.write_all(format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())?;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while !is_whole(&answer) {
        match client.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => answer.extend_from_slice(&buffer[..read]),
        }
    }
    Ok(client)
}

/// Whether the response has the whole page of the application.
fn is_whole(answer: &[u8]) -> bool {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    end.is_some_and(|end| answer.len() >= end + 4 + PAGE_BYTES)
}

/// A client of HTTP/1.1 with the key exchange X25519, which all fronts have, and without resumption.
fn config(stand: &Stand) -> anyhow::Result<Arc<ClientConfig>> {
    let mut provider = default_provider();
    provider.kx_groups = vec![kx_group::X25519];
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(
        stand.certificate(Key::Ecdsa),
    )?)?;
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

const PAGE_BYTES: usize = 347;
/// The connections that are open before memory is first read, so that what a front allocates only once is not
/// counted.
const FIRST: usize = 50;
const COUNT: usize = 2_000;
