//! A balancer's connection, on which some users cancel their requests and others wait.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use catamaran_testkit::http2::{frame, kind};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::backend::Backend;
use crate::client::{Connection, Ended, PATIENCE, request};
use crate::server::{Kind, Stage};
use crate::{Row, pause, ticks};

/// The row of the table: all servers are attacked at the same time.
pub(crate) async fn row(stage: &Stage) -> anyhow::Result<Row> {
    let mut runs = Vec::new();
    for kind in Kind::ALL {
        let backend = Backend::start().await?;
        let trusts = true;
        let server = kind.start(stage, backend.address, trusts)?;
        runs.push(tokio::spawn(async move {
            let cell = cancel(server.clear).await;
            drop((server, backend));
            cell
        }));
    }
    let mut cells = Vec::new();
    for run in runs {
        cells.push(run.await??);
    }
    Ok(Row {
        attack: "40 cancels a second on a balancer's connection".to_owned(),
        cells,
    })
}

/// The balancer, which has one connection at a time.
struct Balancer {
    address: SocketAddr,
    connection: Arc<Connection>,
    next: u32,
    connections: usize,
}

impl Balancer {
    /// The connection for the next request, and the id of its stream.
    async fn next(&mut self) -> anyhow::Result<(Arc<Connection>, u32)> {
        if !self.connection.is_open() {
            let connection = Connection::open(self.address, WINDOW).await;
            self.connection = Arc::new(connection.context("a further connection")?);
            self.connections += 1;
            self.next = 1;
        }
        let stream = self.next;
        self.next += 2;
        Ok((Arc::clone(&self.connection), stream))
    }
}

/// Sends requests at a steady rate beside clients that give up. Returns how many of the steady ones were lost, and the
/// number of connections.
async fn cancel(address: SocketAddr) -> anyhow::Result<String> {
    let mut balancer = Balancer {
        address,
        connection: Arc::new(Connection::open(address, WINDOW).await?),
        next: 1,
        connections: 1,
    };
    let begun = Instant::now();
    let (mut waiting, mut cancelling) = (JoinSet::new(), JoinSet::new());
    let (mut asked, mut lost) = (0, 0);
    let mut rounds = ticks(100.0);
    for round in 0_u32.. {
        rounds.tick().await;
        if begun.elapsed() >= TIME {
            break;
        }
        let (connection, stream) = balancer.next().await?;
        waiting.spawn(wait(connection, stream));
        asked += 1;
        // Two of five rounds begin a second request, and give it up.
        if round % 5 < 2 {
            let (connection, stream) = balancer.next().await?;
            cancelling.spawn(give_up(connection, stream));
        }
        while let Some(ended) = waiting.try_join_next() {
            match ended? {
                Ended::Answered(200) => {}
                Ended::Refused => {
                    let (connection, stream) = balancer.next().await?;
                    waiting.spawn(wait(connection, stream));
                }
                Ended::Answered(_) | Ended::Lost => lost += 1,
            }
        }
    }
    cancelling.join_all().await;
    let last = waiting.join_all().await;
    let is_lost = |ended: &&Ended| **ended != Ended::Answered(200);
    lost += last.iter().filter(is_lost).count();
    Ok(format!("{lost} of {asked}; {}", balancer.connections))
}

/// Sends a request and waits for the response.
async fn wait(connection: Arc<Connection>, stream: u32) -> Ended {
    connection.send(&request(stream, "GET", "http", "/")).await;
    connection.wait(stream, PATIENCE).await
}

/// Sends a request and cancels it before the response.
async fn give_up(connection: Arc<Connection>, stream: u32) {
    connection
        .send(&request(stream, "GET", "http", "/slow"))
        .await;
    pause(Duration::from_millis(100)).await;
    let cancelled = frame(kind::RST_STREAM, 0, stream, &CANCEL.to_be_bytes());
    connection.send(&cancelled).await;
}

const TIME: Duration = Duration::from_secs(20);

const WINDOW: u32 = 65_535;
const CANCEL: u32 = 8;
