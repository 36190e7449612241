//! `slowloris`: 10,000 connections that send a head one byte at a time (F7). What honest clients
//! wait may not change; rounds with and without them alternate, because machines drift. nginx with
//! the same timeout takes turns with the front: on few cores the slow clients cost the honest ones
//! something whoever serves them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use catamaran_e2e::Nginx;
use catamaran_testkit::Deadline;
use rustix::process::setpriority_process;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::paced::{self, Round};
use crate::tier::{App, Besieged, event_loop, mib, pause, upstream, wait};
use crate::verdict::Verdict;

/// The rounds of one front.
#[derive(Default)]
struct Series {
    calm: Vec<Round>,
    besieged: Vec<Round>,
}

pub(crate) fn run(minutes: u64) -> anyhow::Result<Verdict> {
    let app = App::start("ajp", "127.0.0.1:0")?;
    let front = Besieged::start("", &upstream(&[&app.url], ""))?;
    let http = App::start("http", "127.0.0.1:0")?;
    let (_, backend) = http.url.rsplit_once('/').context("a URL")?;
    let nginx = Nginx::with_room(backend.parse::<SocketAddr>()?, SLOW + 1000)?;
    let rounds = (minutes as usize * 60 / (4 * ROUND.as_secs() as usize)).max(3);
    let (mut ours, mut theirs) = (Series::default(), Series::default());
    let before = front.usage()?.private;
    let mut heap = 0;
    println!("front  slow connections  p50 ms  p99 ms  late ms  failed");
    for _ in 0..rounds {
        ours.add("ours", front.address(), || {
            heap = front.usage()?.private.max(heap);
            Ok(())
        })?;
        let open = || front.metric("catamaran_connections_open").ok();
        let gone = || open().filter(|open| *open < 5.0);
        Deadline::default().poll("the slow to be gone", gone)?;
        theirs.add("nginx", nginx.address(), || Ok(()))?;
        // It has no counters; closing is quick once they are.
        wait(Duration::from_secs(3))?;
    }
    let each = heap.saturating_sub(before) as f64 / SLOW as f64;
    println!(
        "besieged / calm, medians of the pairs: p50 {:.2}, nginx {:.2}; p99 of nginx {:.2}; heap {:.1} MiB",
        ours.ratio(|it| it.p50),
        theirs.ratio(|it| it.p50),
        theirs.ratio(|it| it.p99),
        mib(heap)
    );
    let mut verdict = Verdict::default();
    let ratio = ours.ratio(|it| it.p99);
    verdict.at_most("p99 besieged / calm, median of the pairs", ratio, 1.1);
    verdict.at_most("bytes of heap for each slow connection", each, 8192.0);
    let rounds = ours.calm.iter().chain(&ours.besieged);
    verdict.never("honest request failed", rounds.map(|it| it.failed).sum());
    verdict.never("panic or error in the log", front.alarms().len() as u64);
    Ok(verdict)
}

impl Series {
    /// A round without the slow connections and one with them, during which `look` is called.
    fn add(
        &mut self,
        name: &str,
        front: SocketAddr,
        look: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        self.calm.push(round(name, front, 0)?);
        let slow = Slow::default();
        thread::scope(|scope| -> anyhow::Result<()> {
            scope.spawn(|| slow.run(front));
            let all = || (slow.open.load(Ordering::Relaxed) >= SLOW * 9 / 10).then_some(());
            let come = Deadline::default().poll("the slow to connect", all);
            let result = come.map_err(anyhow::Error::from).and_then(|()| {
                wait(Duration::from_secs(3))?;
                let open = slow.open.load(Ordering::Relaxed);
                self.besieged.push(round(name, front, open)?);
                look()
            });
            slow.over.store(true, Ordering::Relaxed);
            result
        })
    }

    /// With the slow connections to without them.
    fn ratio(&self, of: fn(&Round) -> f64) -> f64 {
        paced::ratio(&self.calm, &self.besieged, of)
    }
}

/// What honest clients see.
fn round(name: &str, front: SocketAddr, slow: usize) -> anyhow::Result<Round> {
    let round = paced::round(&format!("http://{front}/"), 50, RATE, ROUND)?;
    println!(
        "{name:5}  {slow:16}  {:6.3}  {:6.3}  {:7.3}  {:6}",
        round.p50, round.p99, round.late, round.failed
    );
    Ok(round)
}

/// The slow connections.
#[derive(Debug, Default)]
struct Slow {
    open: Arc<AtomicUsize>,
    over: AtomicBool,
}

impl Slow {
    fn run(&self, front: SocketAddr) {
        // Attackers have machines of their own: here they take what the others leave.
        setpriority_process(None, NICE_MAX).expect("anyone may be nicer");
        let runtime = event_loop().expect("an event loop");
        runtime.block_on(async {
            let mut tasks = JoinSet::new();
            for number in 0..SLOW {
                tasks.spawn(drip(front, Arc::clone(&self.open)));
                // Evenly over the front's `head_timeout`, lest they come back in waves.
                if number % 20 == 0 {
                    pause(Duration::from_millis(20)).await;
                }
            }
            while !self.over.load(Ordering::Relaxed) {
                pause(Duration::from_millis(100)).await;
            }
            tasks.shutdown().await;
            self.open.store(0, Ordering::Relaxed);
        });
    }
}

/// Sends a head that never ends, a byte every five seconds; begins anew when the front has enough.
async fn drip(front: SocketAddr, open: Arc<AtomicUsize>) {
    loop {
        let Ok(mut stream) = TcpStream::connect(front).await else {
            pause(Duration::from_secs(1)).await;
            continue;
        };
        open.fetch_add(1, Ordering::Relaxed);
        for byte in HEAD.iter().cycle() {
            if stream.write_all(&[*byte]).await.is_err() {
                break;
            }
            pause(Duration::from_millis(4500 + fastrand::u64(..1000))).await;
        }
        open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Of this thread alone, on Linux.
const NICE_MAX: i32 = 19;
const SLOW: usize = 10_000;
/// Requests a second of the honest clients.
const RATE: usize = 1000;
const ROUND: Duration = Duration::from_secs(15);
const HEAD: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nX: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
