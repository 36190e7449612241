//! `drops`: a backend that closes idle connections at random while requests come (F1). No idempotent request may
//! fail; of the others none may be delivered twice, and few may fail.
//!
//! The backend counts deliveries by the number of the request, which is its path. It speaks HTTP/1.1 first and then
//! AJP13.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use catamaran_ajp::{BodyLength, Fields, Response, Server, ServerConfig, ServerEvent};
use catamaran_nights::Verdict;
use tokio::io::{self, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::client::Client;
use crate::flaky::{read_request, serve_apart};
use crate::tally::Tally;
use crate::tier::{Besieged, event_loop, pause, upstream};

/// What the backend received and did.
#[derive(Debug, Default)]
struct Seen {
    /// How often each POST arrived; the index is its number.
    posts: Mutex<Vec<u8>>,
    dropped: AtomicU64,
}

/// Runs the clients against a backend of HTTP/1.1, then against one of AJP13.
pub(crate) fn run(minutes: u64) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::default();
    for protocol in ["http", "ajp"] {
        let seen = Arc::new(Seen::default());
        let backend = start(protocol, &seen)?;
        let url = format!("{protocol}://{backend}");
        let front = Besieged::start("", &upstream(&[&url], ""))?;
        let tally = Arc::new(Tally::default());
        let runtime = event_loop()?;
        let length = Duration::from_secs(60 * minutes);
        runtime.block_on(ask_for(length, front.address(), &tally));
        judge(&mut verdict, protocol, &front, &tally, &seen)?;
    }
    Ok(verdict)
}

/// Prints the counts of one backend, and judges them.
fn judge(
    verdict: &mut Verdict,
    protocol: &str,
    front: &Besieged,
    tally: &Tally,
    seen: &Seen,
) -> anyhow::Result<()> {
    let dropped = seen.dropped.load(Ordering::Relaxed);
    println!("{protocol}: {tally}; connections dropped: {dropped}");
    let undelivered = "catamaran_reasons_total{culprit=\"backend\",reason=\"undelivered\"}";
    let stale = "catamaran_backend_connections_stale_total";
    for metric in ["catamaran_retries_total", stale, undelivered] {
        println!("{metric} {}", front.metric(metric)?);
    }
    let twice = {
        let posts = seen.posts.lock().unwrap_or_else(PoisonError::into_inner);
        posts.iter().filter(|count| **count > 1).count()
    };
    let (gets, posts) = (tally.total("get"), tally.total("post"));
    let failed = |kind| tally.total(kind) - tally.count(kind, &["200"]);
    let named = |claim: &str| format!("{protocol}: {claim}");
    verdict.at_least(&named("requests"), (gets + posts) as f64, 1e5);
    verdict.never(&named("GET failed"), failed("get"));
    verdict.never(&named("POST delivered twice"), twice as u64);
    let share = failed("post") as f64 / posts as f64;
    let figure = format!("{share:.1e}, {} of {posts}", failed("post"));
    verdict.judge(&named("POSTs that failed < 1e-4"), figure, share < 1e-4);
    Ok(())
}

/// Keeps [`CLIENTS`] clients sending for `length`; each pauses at random between its requests.
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

/// Sends request `number`, every tenth as a POST, on the kept connection in `slot` or on a new one, and counts its
/// outcome. The connection is kept if the response allows it.
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
            if !answer.closes {
                *slot = Some(client);
            }
        }
        Err(failure) => tally.failed(kind, failure),
    }
}

/// Starts the backend on a thread of its own.
fn start(protocol: &str, seen: &Arc<Seen>) -> anyhow::Result<SocketAddr> {
    let (is_ajp, seen) = (protocol == "ajp", Arc::clone(seen));
    serve_apart(move |stream| {
        let seen = Arc::clone(&seen);
        async move {
            // The front closes connections, too, which is not a failure.
            if is_ajp {
                serve_ajp(stream, &seen).await.ok();
            } else {
                serve_http(stream, &seen).await.ok();
            }
        }
    })
}

impl Seen {
    /// Waits for a request; `false` if the connection is to be closed, after a random time.
    async fn waits(&self, stream: &TcpStream) -> bool {
        let idle = Duration::from_micros(fastrand::u64(..IDLE_MAX_MICROS));
        let comes = timeout(idle, stream.readable()).await.is_ok();
        if !comes {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        comes
    }

    /// Counts a request if it is a POST.
    fn deliver(&self, method: &str, path: &str) {
        let number = path
            .strip_prefix('/')
            .and_then(|digits| digits.parse::<usize>().ok());
        let Some(number) = number.filter(|_| method == "POST") else {
            return;
        };
        let mut posts = self.posts.lock().unwrap_or_else(PoisonError::into_inner);
        if posts.len() <= number {
            posts.resize(number + 1, 0);
        }
        posts[number] = posts[number].saturating_add(1);
    }
}

/// Answers each request on the connection, until the connection is to be closed.
async fn serve_http(mut stream: TcpStream, seen: &Seen) -> io::Result<()> {
    let mut input = Vec::new();
    while seen.waits(&stream).await {
        // `read_request` returns the head in lower case, and `deliver` compares the method as it was sent.
        let mut start = [0; 64];
        let peeked = stream.peek(&mut start).await?;
        if read_request(&mut stream, &mut input).await?.is_none() {
            break;
        }
        let line = String::from_utf8_lossy(&start[..peeked]);
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_default();
        seen.deliver(word(), word());
        stream.write_all(ANSWER).await?;
    }
    Ok(())
}

/// Answers each request on the connection, once its body has come, until the connection is to be closed.
async fn serve_ajp(mut stream: TcpStream, seen: &Seen) -> anyhow::Result<()> {
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    let mut server = Server::new(ServerConfig::default());
    loop {
        if server.is_idle() && input.is_empty() && !seen.waits(&stream).await {
            return Ok(());
        }
        if stream.read_buf(&mut input).await? == 0 {
            return Ok(());
        }
        while let Some(event) = server.receive(&mut input, &mut output)? {
            let is_complete = match event {
                ServerEvent::Request(head) => {
                    seen.deliver(head.method.as_str(), &String::from_utf8_lossy(&head.path));
                    head.body == BodyLength::Known(0)
                }
                ServerEvent::Body(_) => false,
                ServerEvent::BodyEnd => true,
            };
            if is_complete {
                let head = Response {
                    status: http::StatusCode::OK,
                    reason: None,
                    headers: &Fields::new(),
                    body: BodyLength::Known(2),
                };
                server.send_head(&head, &mut output)?;
                server.send_data(b"ok", &mut output);
                server.send_end(&input, &mut output);
            }
        }
        stream.write_all(&output.split()).await?;
    }
}

/// The number of clients, each with one request at a time.
const CLIENTS: usize = 20;

/// The longest pause between two requests of a client, in milliseconds: about 2,000 requests per second in all.
const PAUSE_MAX: u64 = 20;

/// How long a connection may be idle at most.
const IDLE_MAX_MICROS: u64 = 30_000;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
