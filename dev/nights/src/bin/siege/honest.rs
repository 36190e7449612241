//! Honest clients: kept-alive connections with pauses between their requests, at a bounded rate.
//!
//! Each client has a schedule of its requests. Latency usually counts from the time at which a request was due, so
//! that a front that stalls looks slow although its clients wait for it. The responses are checked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::client::{Answer, Client, Failure};
use crate::tally::Tally;
use crate::tier::event_loop;

/// The work of the clients.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) front: SocketAddr,
    pub(crate) clients: usize,
    /// Requests per second of all clients together.
    pub(crate) rate: f64,
    pub(crate) mix: &'static [Kind],
    pub(crate) latency: Latency,
    /// The number of requests on one connection; 0 for as many as the front allows.
    pub(crate) requests_max: usize,
}

/// The time from which the latency of a request counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Latency {
    /// The time at which it was due: if a client is held up, its later requests count as slow, too.
    SinceDue,
    /// The time at which it was sent: if a client is held up, only that request counts as slow.
    SinceSent,
}

/// A kind of request. It is sent as often as it is listed in [`Load::mix`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The page of 347 bytes.
    Page,
    /// The page, from the backend that fails at random; any status is right.
    Flaky,
    /// A POST whose body is sent back.
    Echo,
    /// A response of 200,000 bytes.
    Download,
    /// A request of 100,000 bytes.
    Upload,
    /// A page after 20 ms.
    Slow,
    /// The static file `/page.html` of the Tomcat application that the end-to-end tests deploy.
    File,
    /// A POST of 100 bytes to that application's `/method.jsp`.
    Post,
}

/// Running clients. A client stops only between two requests.
#[derive(Debug)]
pub(crate) struct Working {
    stopping: Arc<AtomicBool>,
    tasks: JoinSet<()>,
}

impl Load {
    /// Keeps the clients at work on a thread of their own while `act` does something to the front or its backends;
    /// returns its result and how long it took.
    pub(crate) fn during<T>(
        &self,
        tally: &Arc<Tally>,
        act: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<(T, Duration)> {
        let runtime = event_loop()?;
        let (over, ended) = tokio::sync::oneshot::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                runtime.block_on(async {
                    let working = self.start(tally);
                    // If the sender is dropped, the clients stop, too.
                    ended.await.ok();
                    working.stop().await;
                });
            });
            let began = Instant::now();
            let done = act();
            let took = began.elapsed();
            over.send(()).ok();
            Ok((done?, took))
        })
    }

    /// Starts the clients; the results of their requests are counted in `tally`.
    pub(crate) fn start(&self, tally: &Arc<Tally>) -> Working {
        let stopping = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for _ in 0..self.clients {
            tasks.spawn(run(self.clone(), Arc::clone(tally), Arc::clone(&stopping)));
        }
        Working { stopping, tasks }
    }
}

impl Working {
    /// Lets every client finish its request and close.
    pub(crate) async fn stop(mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        while self.tasks.join_next().await.is_some() {}
    }
}

/// One client of the load: sends requests at random times until `stopping`, and notes their outcomes.
async fn run(load: Load, tally: Arc<Tally>, stopping: Arc<AtomicBool>) {
    let pause = load.clients as f64 / load.rate;
    let mut client: Option<Client> = None;
    let mut requests = 0;
    // A random start, so that clients do not begin at the same time.
    let mut due = Instant::now() + Duration::from_secs_f64(pause * fastrand::f64());
    loop {
        while Instant::now() < due && !stopping.load(Ordering::Relaxed) {
            sleep_until(due.min(Instant::now() + STOPS_WITHIN)).await;
        }
        if stopping.load(Ordering::Relaxed) {
            return;
        }
        let kind = load.mix[fastrand::usize(..load.mix.len())];
        let began = match load.latency {
            Latency::SinceDue => due,
            Latency::SinceSent => Instant::now(),
        };
        let open = client.take().filter(Client::is_quiet);
        let (outcome, keep) = request(kind, load.front, open).await;
        requests += 1;
        match outcome {
            Ok(answer) => {
                if answer.status == 200 && kind != Kind::Flaky {
                    tally.served(kind.name(), began.elapsed());
                } else {
                    tally.other(kind.name(), answer.status);
                }
                if answer.status == 503 && !answer.retry_after {
                    tally.other("503", "without Retry-After");
                }
                let is_used_up = load.requests_max > 0 && requests % load.requests_max == 0;
                client = keep.filter(|_| !answer.closes && !is_used_up);
            }
            Err(failure) => tally.failed(kind.name(), failure),
        }
        due += Duration::from_secs_f64(interval(pause));
    }
}

/// A random pause: exponentially distributed, but short enough that the front does not close the idle connection.
fn interval(mean: f64) -> f64 {
    (-fastrand::f64().max(f64::MIN_POSITIVE).ln() * mean).min(40.0)
}

/// Sends a request on the client's connection, or on a new one. Returns the answer, and the connection if there is one.
async fn request(
    kind: Kind,
    front: SocketAddr,
    client: Option<Client>,
) -> (Result<Answer, Failure>, Option<Client>) {
    let mut client = match client {
        Some(client) => client,
        None => match Client::connect(front).await {
            Ok(client) => client,
            Err(failure) => return (Err(failure), None),
        },
    };
    let (bytes, body) = kind.request();
    let outcome = match client.ask(&bytes).await {
        Ok(answer) if answer.status == 200 && !kind.is_right(&answer, body) => Err("wrong body"),
        outcome => outcome,
    };
    (outcome, Some(client))
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Flaky => "flaky",
            Self::Echo => "echo",
            Self::Download => "download",
            Self::Upload => "upload",
            Self::Slow => "slow",
            Self::File => "file",
            Self::Post => "post",
        }
    }

    /// The bytes to send, and the length of the body in them.
    fn request(self) -> (Vec<u8>, usize) {
        let (method, path, body) = match self {
            Self::Page => ("GET", "/", 0),
            Self::Flaky => ("GET", "/flaky", 0),
            Self::Echo => ("POST", "/echo", 1 + fastrand::usize(..20_000)),
            Self::Download => ("GET", "/bytes/200000", 0),
            Self::Upload => ("PUT", "/sink", 100_000),
            Self::Slow => ("GET", "/delay/20", 0),
            Self::File => ("GET", "/page.html", 0),
            Self::Post => ("POST", "/method.jsp", 100),
        };
        let mut bytes = format!("{method} {path} HTTP/1.1\r\nHost: siege\r\n").into_bytes();
        if body > 0 {
            bytes.extend(format!("Content-Length: {body}\r\n").as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend((0..body).map(|index| b'a' + (index % 26) as u8));
        (bytes, body)
    }

    /// Whether the content of a response with status 200 is the expected one, as far as it is known.
    fn is_right(self, answer: &Answer, body: usize) -> bool {
        match self {
            // The page of `catamaran app`.
            Self::Page => answer.length == 347,
            Self::Download => answer.length == 200_000,
            Self::Echo => {
                let expected = (0..body).map(|index| b'a' + (index % 26) as u8);
                let start = answer.body.len().saturating_sub(body);
                answer.body[start..].iter().copied().eq(expected)
            }
            Self::Flaky | Self::Upload | Self::Slow | Self::File | Self::Post => true,
        }
    }
}

/// How soon a client notices that it is to stop.
const STOPS_WITHIN: Duration = Duration::from_millis(500);
