//! Clients of all three servers at once: some keep their connections and begin new ones from time to time, some check
//! the certificate.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use catamaran_e2e::curl;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::client::Client;
use crate::servers::Server;

/// The results of the requests to one server, with their counts: a status such as `200`, or the name of a failure.
pub(crate) type Counts = BTreeMap<String, u64>;

/// All clients. Dropping them ends them.
#[derive(Debug)]
pub(crate) struct Visitors {
    counts: Vec<Arc<Mutex<Counts>>>,
    over: Arc<AtomicBool>,
}

impl Visitors {
    /// Starts the clients; those of TLS trust only this authority.
    pub(crate) fn of(servers: &[Server], authority: PathBuf) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let counts: Vec<Arc<Mutex<Counts>>> = servers.iter().map(|_| Arc::default()).collect();
        let addresses = servers.iter().map(|server| server.clear);
        let clear: Vec<_> = addresses.zip(counts.iter().map(Arc::clone)).collect();
        let is_over = Arc::clone(&over);
        thread::spawn(move || ask_in_clear(clear, &is_over));
        for (server, counts) in servers.iter().zip(&counts) {
            let (tls, authority) = (server.tls, authority.clone());
            let (counts, is_over) = (Arc::clone(counts), Arc::clone(&over));
            thread::spawn(move || ask_over_tls(tls, &authority, &counts, &is_over));
        }
        Self { counts, over }
    }

    /// The results so far, for each server.
    pub(crate) fn counts(&self) -> Vec<Counts> {
        let of = |counts: &Arc<Mutex<Counts>>| {
            counts
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone()
        };
        self.counts.iter().map(of).collect()
    }
}

impl Drop for Visitors {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn note(counts: &Mutex<Counts>, what: impl Into<String>) {
    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    *counts.entry(what.into()).or_default() += 1;
}

/// Runs [`CLIENTS`] clients of each server without TLS, until `over`.
fn ask_in_clear(servers: Vec<(SocketAddr, Arc<Mutex<Counts>>)>, over: &Arc<AtomicBool>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("an event loop");
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for (address, counts) in servers {
            for _ in 0..CLIENTS {
                tasks.spawn(visit(address, Arc::clone(&counts), Arc::clone(over)));
            }
        }
        tasks.join_all().await;
    });
}

/// Sends a request in each period until `over`, on connections that take [`REQUESTS`] each, and counts the outcomes.
async fn visit(address: SocketAddr, counts: Arc<Mutex<Counts>>, over: Arc<AtomicBool>) {
    let request = format!("GET {PAGE} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut open: Option<Client> = None;
    let mut requests_left = 0;
    while !over.load(Ordering::Relaxed) {
        ticks.tick().await;
        if requests_left == 0 {
            open = None;
            requests_left = REQUESTS;
        }
        requests_left -= 1;
        let exchange = async {
            let mut client = match open.take().filter(Client::is_quiet) {
                Some(client) => client,
                None => Client::connect(address).await?,
            };
            let answer = client.ask(request.as_bytes()).await?;
            if !answer.closes {
                open = Some(client);
            }
            Ok::<u16, &'static str>(answer.status)
        };
        match timeout(PATIENCE, exchange).await {
            Ok(Ok(status)) => note(&counts, status.to_string()),
            Ok(Err(failure)) => note(&counts, failure),
            Err(_) => note(&counts, "no answer in 5 s"),
        }
    }
}

/// Asks over TLS again and again until `over`, each time by a new curl, which checks the certificate.
fn ask_over_tls(tls: SocketAddr, authority: &PathBuf, counts: &Mutex<Counts>, over: &AtomicBool) {
    let url = format!("https://localhost:{}{PAGE}", tls.port());
    let resolve = format!("localhost:{}:{}", tls.port(), tls.ip());
    while !over.load(Ordering::Relaxed) {
        let mut curl = curl();
        curl.args(["--max-time", "5", "--resolve", &resolve, "--cacert"])
            .arg(authority)
            .args(["--output", "/dev/null", "--write-out", "%{http_code}", &url]);
        let outcome = match curl.output() {
            Ok(output) if output.status.success() => {
                String::from_utf8_lossy(&output.stdout).into_owned()
            }
            // The codes are documented in curl's manual.
            Ok(output) => match output.status.code() {
                Some(60) => "certificate refused".to_owned(),
                Some(28) => "no answer in 5 s".to_owned(),
                code => format!("curl ends with {code:?}"),
            },
            Err(error) => error.to_string(),
        };
        note(counts, outcome);
        thread::park_timeout(TLS_PERIOD);
    }
}

/// A static file of the Tomcats.
const PAGE: &str = "/plain/health";

/// The number of kept connections to each server, and the pause between two requests on one.
const CLIENTS: usize = 10;
const PERIOD: Duration = Duration::from_millis(250);
/// The number of requests on a connection.
const REQUESTS: u32 = 8;
/// How long a client waits for a page.
const PATIENCE: Duration = Duration::from_secs(5);
const TLS_PERIOD: Duration = Duration::from_millis(500);
