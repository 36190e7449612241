//! `drops`: a backend that drops idle connections at random while requests come (F1). No idempotent
//! request may fail, none that is not may be delivered twice, and few of those may fail.
//!
//! The backend counts deliveries by the request's number, which is its path.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{self, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::client::Client;
use crate::flaky::{read_request, serve_apart};
use crate::tally::Tally;
use crate::tier::{Besieged, pause, upstream};
use crate::verdict::Verdict;

/// How often each POST arrived.
type Deliveries = Arc<Mutex<Vec<u8>>>;

pub(crate) fn run(minutes: u64) -> anyhow::Result<Verdict> {
    let deliveries = Deliveries::default();
    let dropped = Arc::new(AtomicU64::new(0));
    let backend = {
        let (deliveries, dropped) = (Arc::clone(&deliveries), Arc::clone(&dropped));
        serve_apart(move |stream| {
            let (deliveries, dropped) = (Arc::clone(&deliveries), Arc::clone(&dropped));
            async move {
                // The front closes, too.
                serve(stream, &deliveries, &dropped).await.ok();
            }
        })?
    };
    let url = format!("http://{backend}");
    let front = Besieged::start("", &upstream(&[&url], ""))?;
    let tally = Arc::new(Tally::default());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let length = Duration::from_secs(60 * minutes);
    runtime.block_on(ask_for(length, front.address(), &tally));
    println!("{tally}");
    println!("connections dropped: {}", dropped.load(Ordering::Relaxed));
    for metric in [
        "catamaran_retries_total",
        "catamaran_backend_connections_stale_total",
    ] {
        println!("{metric}: {}", front.metric(metric)?);
    }
    let undelivered = "catamaran_reasons_total{culprit=\"backend\",reason=\"undelivered\"}";
    println!("{undelivered}: {}", front.metric(undelivered)?);
    let duplicates = {
        let deliveries = deliveries.lock().unwrap_or_else(PoisonError::into_inner);
        deliveries.iter().filter(|count| **count > 1).count()
    };
    let mut verdict = Verdict::default();
    let failed = |kind| tally.total(kind) - tally.count(kind, &["200"]);
    verdict.at_least(
        "requests",
        (tally.total("get") + tally.total("post")) as f64,
        1e5,
    );
    verdict.never("GET failed", failed("get"));
    verdict.never("POST delivered twice", duplicates as u64);
    let share = failed("post") as f64 / tally.total("post") as f64;
    let figure = format!("{share:.1e}, {} of {}", failed("post"), tally.total("post"));
    verdict.judge("POSTs that failed < 1e-4", figure, share < 1e-4);
    Ok(verdict)
}

async fn ask_for(length: Duration, front: SocketAddr, tally: &Arc<Tally>) {
    let next = Arc::new(AtomicU64::new(0));
    let until = Instant::now() + length;
    let mut tasks = JoinSet::new();
    for _ in 0..CLIENTS {
        let (tally, next) = (Arc::clone(tally), Arc::clone(&next));
        tasks.spawn(async move {
            let mut client = None;
            while Instant::now() < until {
                ask(
                    front,
                    &mut client,
                    &tally,
                    next.fetch_add(1, Ordering::Relaxed),
                )
                .await;
                pause(Duration::from_millis(fastrand::u64(..PAUSE_MAX))).await;
            }
        });
    }
    while tasks.join_next().await.is_some() {}
}

async fn ask(front: SocketAddr, slot: &mut Option<Client>, tally: &Tally, number: u64) {
    let (kind, request) = if number.is_multiple_of(10) {
        let body = "x".repeat(100);
        let head = format!("POST /{number} HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n");
        ("post", head + &body)
    } else {
        ("get", format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n"))
    };
    let mut client = match slot.take() {
        Some(client) => client,
        None => match Client::connect(front).await {
            Ok(client) => client,
            Err(failure) => return tally.failed(kind, failure),
        },
    };
    match client.ask(request.as_bytes()).await {
        Ok(answer) => {
            tally.other(kind, answer.status);
            *slot = Some(client).filter(|_| !answer.closes);
        }
        Err(failure) => tally.failed(kind, failure),
    }
}

async fn serve(
    mut stream: TcpStream,
    deliveries: &Mutex<Vec<u8>>,
    dropped: &AtomicU64,
) -> io::Result<()> {
    let mut input = Vec::new();
    loop {
        // Fractions of a millisecond come from the time that the last answer took.
        let idle = Duration::from_micros(fastrand::u64(..IDLE_MAX_MICROS));
        let Ok(readable) = timeout(idle, stream.readable()).await else {
            dropped.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        readable?;
        let mut start = [0; 32];
        let peeked = stream.peek(&mut start).await?;
        if !read_request(&mut stream, &mut input).await? {
            return Ok(());
        }
        deliver(&start[..peeked], deliveries);
        stream.write_all(ANSWER).await?;
    }
}

/// Counts a POST under its number.
fn deliver(start: &[u8], deliveries: &Mutex<Vec<u8>>) {
    let start = String::from_utf8_lossy(start);
    let number = start.strip_prefix("POST /").and_then(|rest| {
        let digits = rest.split(' ').next()?;
        digits.parse::<usize>().ok()
    });
    if let Some(number) = number {
        let mut deliveries = deliveries.lock().unwrap_or_else(PoisonError::into_inner);
        if deliveries.len() <= number {
            deliveries.resize(number + 1, 0);
        }
        deliveries[number] = deliveries[number].saturating_add(1);
    }
}

/// Clients, each with one request at a time.
const CLIENTS: usize = 20;

/// Milliseconds between a client's requests, at most: about 2,000 requests a second.
const PAUSE_MAX: u64 = 20;

/// How long a connection may be idle, at most.
const IDLE_MAX_MICROS: u64 = 30_000;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
