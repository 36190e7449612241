//! `overload`: more requests than the backend can answer (F17), and a flood of connections (F16).
//!
//! The backend is our application behind a limit of connections, and each request takes 20 ms. So its capacity is
//! known, and does not depend on the machine.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use catamaran_nights::Verdict;
use tokio::net::TcpSocket;
use tokio::time::{Instant, timeout};

use crate::honest::{Kind, Latency, Load};
use crate::tally::{Tally, millis};
use crate::tier::{App, Besieged, event_loop, upstream, wait};

pub(crate) fn run() -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::default();
    too_much_work(&mut verdict)?;
    too_many_connections(&mut verdict)?;
    Ok(verdict)
}

/// The front has more requests than its backend can answer: it must refuse the rest at once, and serve the others as
/// fast as before.
fn too_much_work(verdict: &mut Verdict) -> anyhow::Result<()> {
    let app = App::start("ajp", "127.0.0.1:0")?;
    let keys = format!("connections_max = {CONNECTIONS}\nqueue_max = {QUEUE}\n");
    let front = Besieged::start("", &upstream(&[&app.url], &keys))?;
    let load = |times: f64| Load {
        front: front.address(),
        clients: 600,
        rate: CAPACITY * times,
        mix: &[Kind::Slow],
        latency: Latency::SinceDue,
        requests_max: 0,
    };
    println!("load  rate/s  served/s  shed/s  other  p50 ms  p99 ms (of those served)");
    let measure = |times: f64| -> anyhow::Result<(Tally, f64)> {
        let shared = Arc::new(Tally::default());
        let act = || wait(Duration::from_secs(12));
        let ((), took) = load(times).during(&shared, act)?;
        let tally = Arc::into_inner(shared).expect("all clients are gone");
        let goodput = tally.count("slow", &["200"]) as f64 / took.as_secs_f64();
        let shed = tally.count("slow", &["503"]) as f64 / took.as_secs_f64();
        let others = tally.total("slow") - tally.count("slow", &["200", "503"]);
        let (p50, p99) = (tally.percentile(0.5), tally.percentile(0.99));
        println!(
            "{times:4}  {:6}  {goodput:8.1}  {shed:6.1}  {others:5}  {:6.1}  {:6.1}",
            CAPACITY * times,
            millis(p50),
            millis(p99)
        );
        Ok((tally, goodput))
    };
    // This result is not used: it fills pools, and the code is in the caches afterwards.
    measure(0.5)?;
    let (calm, _) = measure(0.5)?;
    let (_, peak) = measure(1.0)?;
    let (flooded, goodput) = measure(3.0)?;
    verdict.at_least(
        "goodput at thrice the capacity / at the capacity",
        goodput / peak,
        0.9,
    );
    let slower = millis(flooded.percentile(0.99)) / millis(calm.percentile(0.99));
    verdict.at_most(
        "p99 of the served at thrice the capacity / at half of it",
        slower,
        2.0,
    );
    let expected = flooded.count("slow", &["200", "503"]);
    let others = flooded.total("slow") - expected;
    verdict.never("answer but 200 and 503", others);
    let retries = front.metric("catamaran_retries_total")?;
    verdict.at_most(
        "retries per request",
        retries / flooded.total("slow") as f64,
        0.2,
    );
    verdict.never("503 without Retry-After", flooded.total("503"));
    Ok(())
}

/// Clients that have a connection must be served as before while others open as many as they can.
fn too_many_connections(verdict: &mut Verdict) -> anyhow::Result<()> {
    let app = App::start("ajp", "127.0.0.1:0")?;
    let limits = "connections_max = 1000\nconnections_per_address = 300\n";
    let front = Besieged::start(limits, &upstream(&[&app.url], ""))?;
    let load = Load {
        front: front.address(),
        clients: 50,
        rate: 200.0,
        mix: &[Kind::Page],
        latency: Latency::SinceDue,
        requests_max: 0,
    };
    let (calm, flooded) = (Arc::new(Tally::default()), Arc::new(Tally::default()));
    load.during(&calm, || wait(Duration::from_secs(10)))?;
    let flood = Flood::default();
    let opened = load.during(&flooded, || {
        wait(Duration::from_secs(2))?;
        thread::scope(|scope| {
            scope.spawn(|| flood.run(front.address()));
            wait(Duration::from_secs(12)).ok();
            let open = front.metric("catamaran_connections_open");
            flood.over.store(true, Ordering::Relaxed);
            open
        })
    })?;
    let attempts = flood.attempts.load(Ordering::Relaxed);
    println!(
        "flood: {attempts} connections; established clients: p99 {:.1} ms, before {:.1} ms; {flooded}",
        millis(flooded.percentile(0.99)),
        millis(calm.percentile(0.99)),
    );
    verdict.at_least("connections of the flood", attempts as f64, 5000.0);
    verdict.at_most("open connections during the flood", opened.0, 1000.0);
    let failed = flooded.total("page") - flooded.count("page", &["200"]);
    verdict.never(
        "request of an established client failed in the flood",
        failed,
    );
    verdict.never("panic or error in the log", front.alarms().len() as u64);
    Ok(())
}

/// Clients that open connections from eight addresses as fast as the front takes them, and hold them to the end.
#[derive(Debug, Default)]
struct Flood {
    attempts: AtomicU64,
    over: AtomicBool,
}

impl Flood {
    /// Opens a connection per millisecond from eight addresses, until `over`.
    fn run(&self, front: SocketAddr) {
        let runtime = event_loop().expect("an event loop");
        runtime.block_on(async {
            let mut held = Vec::new();
            let mut due = Instant::now();
            while !self.over.load(Ordering::Relaxed) {
                let number = self.attempts.fetch_add(1, Ordering::Relaxed);
                let source = Ipv4Addr::new(127, 0, 1, 1 + (number % 8) as u8);
                if let Some(stream) = connect_from(source, front).await {
                    held.push(stream);
                }
                if held.len() > 4000 {
                    // The front has closed most of these long ago.
                    held.drain(..2000);
                }
                // Timers are coarser than a millisecond, so ten connections are opened at once.
                due += Duration::from_millis(1);
                if number.is_multiple_of(10) {
                    tokio::time::sleep_until(due).await;
                }
            }
        });
    }
}

/// A connection from the address `source`; `None` if there is none within a second.
async fn connect_from(source: Ipv4Addr, front: SocketAddr) -> Option<tokio::net::TcpStream> {
    let socket = TcpSocket::new_v4().ok()?;
    socket.bind(SocketAddrV4::new(source, 0).into()).ok()?;
    timeout(Duration::from_secs(1), socket.connect(front))
        .await
        .ok()?
        .ok()
}

/// The number of connections to the backend, each of which serves about 50 requests per second.
const CONNECTIONS: u32 = 8;

/// How many requests may wait for one of them: for 10 ms.
const QUEUE: u32 = 4;

/// The backend's capacity in requests per second.
const CAPACITY: f64 = CONNECTIONS as f64 * 1000.0 / 21.0;
