//! Clients that send a whole ClientHello and nothing more.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::backend::Backend;
use crate::server::{Kind, Stage};
use crate::{Row, ticks};

/// The rows of the table, one for each rate. The servers are attacked one after the other.
pub(crate) async fn rows(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for rate in [60, 460] {
        let mut cells = Vec::new();
        for kind in Kind::ALL {
            let backend = Backend::start().await?;
            let trusts = false;
            let server = kind.start(stage, backend.address, trusts)?;
            cells.push(stall(server.tls, rate, &stage.authority).await?);
        }
        rows.push(Row {
            attack: format!("{rate} stalled handshakes a second"),
            cells,
        });
    }
    Ok(rows)
}

/// Begins handshakes at this rate and abandons them; returns how many handshakes of other clients failed.
async fn stall(address: SocketAddr, rate: u32, authority: &[u8]) -> anyhow::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(authority.to_vec()))?;
    let config = Arc::new(
        ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth(),
    );
    let hello = hello(&config)?;
    let begun = Instant::now();
    let (mut attackers, mut others) = (JoinSet::new(), JoinSet::new());
    let mut next_attack = ticks(f64::from(rate));
    let mut next_other = ticks(10.0);
    while begun.elapsed() < TIME {
        tokio::select! {
            _ = next_attack.tick() => {
                attackers.spawn(leave(address, Arc::clone(&hello)));
            }
            _ = next_other.tick() => if begun.elapsed() >= COUNTED_FROM {
                let config = Arc::clone(&config);
                others.spawn_blocking(move || shake_hands(address, config));
            },
        }
    }
    let handshakes = others.join_all().await;
    let refused = handshakes.iter().filter(|result| result.is_err()).count();
    Ok(format!("{refused} of {}", handshakes.len()))
}

/// The bytes of a ClientHello.
fn hello(config: &Arc<ClientConfig>) -> anyhow::Result<Arc<Vec<u8>>> {
    let mut connection = begin(config)?;
    let mut hello = Vec::new();
    connection.write_tls(&mut hello)?;
    Ok(Arc::new(hello))
}

fn begin(config: &Arc<ClientConfig>) -> anyhow::Result<ClientConnection> {
    let name = ServerName::try_from("localhost")?;
    Ok(ClientConnection::new(Arc::clone(config), name)?)
}

/// An attacker: sends a ClientHello and waits until the server closes the connection.
async fn leave(address: SocketAddr, hello: Arc<Vec<u8>>) {
    let Ok(mut socket) = tokio::net::TcpStream::connect(address).await else {
        return;
    };
    if socket.write_all(&hello).await.is_ok() {
        let mut answer = [0; 4096];
        while let Ok(1..) = socket.read(&mut answer).await {}
    }
}

/// An honest client: completes a handshake.
fn shake_hands(address: SocketAddr, config: Arc<ClientConfig>) -> anyhow::Result<()> {
    let mut socket = TcpStream::connect_timeout(&address, PATIENCE)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let mut connection = begin(&config)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut socket)?;
    }
    Ok(())
}

const PATIENCE: Duration = Duration::from_secs(3);
const TIME: Duration = Duration::from_secs(25);
const COUNTED_FROM: Duration = Duration::from_secs(10);
