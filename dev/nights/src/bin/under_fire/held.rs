//! Clients that request responses and do not read them, while they keep their connections busy.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catamaran_testkit::http2::{frame, kind};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::backend::Backend;
use crate::client::{Connection, Ended, ask, request};
use crate::server::{Kind, Server, Stage};
use crate::{Row, ticks};

/// How the attackers behave.
#[derive(Clone, Copy, Debug)]
struct Attack {
    name: &'static str,
    /// The number of responses that each attacker requests.
    asks: u32,
    /// The window of each stream at first.
    window: u32,
    /// The frames that each attacker sends in a round.
    frames: fn(u32) -> Vec<u8>,
}

fn widened(stream: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, stream, &1_u32.to_be_bytes())
}

/// Runs all attacks on all servers at the same time; each attack has its own server and backend.
pub(crate) async fn rows(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let mut stands = Vec::new();
    for attack in ATTACKS {
        for kind in Kind::ALL {
            let backend = Backend::start().await?;
            let trusts = false;
            let server = kind.start(stage, backend.address, trusts)?;
            stands.push((attack, server, backend));
        }
    }
    let begin = |(attack, server, backend): (Attack, Server, Backend)| {
        tokio::spawn(async move { besiege(attack, &server, &backend).await })
    };
    let runs: Vec<_> = stands.into_iter().map(begin).collect();
    // They come in the order in which they were started: by attack, then by server.
    let mut runs = runs.into_iter();
    let mut rows = Vec::new();
    for attack in ATTACKS {
        let mut cells = Vec::new();
        for run in runs.by_ref().take(Kind::ALL.len()) {
            cells.push(run.await?);
        }
        rows.push(Row {
            attack: format!("responses held with {}", attack.name),
            cells,
        });
    }
    Ok(rows)
}

/// Attacks one server, and returns the cell of the table: requests that the backend is answering at three times, then
/// how many requests of other clients failed.
async fn besiege(attack: Attack, server: &Server, backend: &Backend) -> String {
    let address = server.clear;
    let begun = Instant::now();
    let mut attackers = JoinSet::new();
    let is_over = Arc::new(AtomicBool::new(false));
    for _ in 0..2 {
        attackers.spawn(hold(attack, address, Arc::clone(&is_over)));
    }
    sleep_until(begun + FIRST).await;
    let others = tokio::spawn(others(address, begun + LAST));
    let mut under_way = Vec::new();
    for at in [FIRST, Duration::from_secs(30), Duration::from_secs(60)] {
        sleep_until(begun + at).await;
        under_way.push(backend.in_flight().to_string());
    }
    let (asked, failed) = others.await.unwrap_or_default();
    is_over.store(true, Ordering::Relaxed);
    attackers.join_all().await;
    format!("{}; {failed} of {asked}", under_way.join(", "))
}

/// Runs one attacker until `is_over`.
async fn hold(attack: Attack, address: SocketAddr, is_over: Arc<AtomicBool>) {
    let Ok(connection) = Connection::open(address, attack.window).await else {
        return;
    };
    let asked = (0..attack.asks).flat_map(|index| request(2 * index + 1, "GET", "http", "/big"));
    connection.send(&asked.collect::<Vec<u8>>()).await;
    let mut rounds = ticks(40.0);
    for round in 0.. {
        rounds.tick().await;
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        connection.send(&(attack.frames)(round)).await;
    }
}

/// Sends requests of honest clients until `until`; returns their number, and how many were not answered 200.
async fn others(address: SocketAddr, until: Instant) -> (usize, usize) {
    let mut asking = JoinSet::new();
    let mut rounds = ticks(2.0);
    while Instant::now() < until {
        asking.spawn(ask(address, "http"));
        rounds.tick().await;
    }
    let answers = asking.join_all().await;
    let is_bad = |it: &&Ended| **it != Ended::Answered(200);
    (answers.len(), answers.iter().filter(is_bad).count())
}

const WIDE: u32 = 1 << 20;

const FIRST: Duration = Duration::from_secs(2);
const LAST: Duration = Duration::from_secs(75);

const ATTACKS: [Attack; 5] = [
    Attack {
        name: "PING",
        asks: 100,
        window: WIDE,
        frames: |_| frame(kind::PING, 0, 0, &[0; 8]),
    },
    Attack {
        name: "SETTINGS",
        asks: 100,
        window: WIDE,
        frames: |_| frame(kind::SETTINGS, 0, 0, &[]),
    },
    Attack {
        name: "HEAD of a small page",
        asks: 90,
        window: WIDE,
        frames: |round| request(2 * (100 + round) + 1, "HEAD", "http", "/"),
    },
    Attack {
        name: "one byte more for the connection",
        asks: 100,
        window: WIDE,
        frames: |_| widened(0),
    },
    Attack {
        name: "one byte more for one response after the other",
        asks: 100,
        window: 1,
        frames: |round| widened(2 * (round % 100) + 1),
    },
];
