//! `slowloris`: 10,000 connections that send a head one byte at a time (F7). What honest clients
//! wait may not change; rounds with and without them alternate, because machines drift.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use catamaran_testkit::Deadline;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::honest::{Kind, Latency, Load};
use crate::tally::{Tally, millis};
use crate::tier::{App, Besieged, event_loop, mib, pause, upstream, wait};
use crate::verdict::Verdict;

/// What one round showed.
struct Round {
    p50: f64,
    p99: f64,
    failed: u64,
}

pub(crate) fn run(minutes: u64) -> anyhow::Result<Verdict> {
    let app = App::start("ajp", "127.0.0.1:0")?;
    let front = Besieged::start("", &upstream(&[&app.url], ""))?;
    let rounds = (minutes as usize * 60 / (2 * ROUND.as_secs() as usize)).max(3);
    let (mut calm, mut besieged) = (Vec::new(), Vec::new());
    let before = front.usage()?.private;
    let mut heap = 0;
    println!("slow connections  p50 ms  p99 ms  failed");
    for _ in 0..rounds {
        calm.push(round(&front, 0)?);
        let slow = Slow::default();
        thread::scope(|scope| -> anyhow::Result<()> {
            scope.spawn(|| slow.run(front.address()));
            let all = || (slow.open.load(Ordering::Relaxed) >= SLOW * 9 / 10).then_some(());
            let come = Deadline::default().poll("the slow to connect", all);
            let result = come.map_err(anyhow::Error::from).and_then(|()| {
                wait(Duration::from_secs(3))?;
                besieged.push(round(&front, slow.open.load(Ordering::Relaxed))?);
                heap = front.usage()?.private.max(heap);
                Ok(())
            });
            slow.over.store(true, Ordering::Relaxed);
            result
        })?;
        let gone = || {
            front
                .metric("catamaran_connections_open")
                .ok()
                .filter(|open| *open < 5.0)
        };
        Deadline::default().poll("the slow to be gone", gone)?;
    }
    let ratio = |of: fn(&Round) -> f64| {
        let median = |rounds: &[Round]| {
            let mut values: Vec<f64> = rounds.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        median(&besieged) / median(&calm)
    };
    let each = heap.saturating_sub(before) as f64 / SLOW as f64;
    println!(
        "p50 besieged / calm: {:.2}; heap {:.1} MiB",
        ratio(|it| it.p50),
        mib(heap)
    );
    let mut verdict = Verdict::default();
    verdict.at_most(
        "p99 besieged / calm, medians of the rounds",
        ratio(|it| it.p99),
        1.1,
    );
    verdict.at_most("bytes of heap for each slow connection", each, 8192.0);
    let failed = calm.iter().chain(&besieged).map(|it| it.failed).sum();
    verdict.never("honest request failed", failed);
    verdict.never("panic or error in the log", front.alarms().len() as u64);
    Ok(verdict)
}

fn round(front: &Besieged, slow: usize) -> anyhow::Result<Round> {
    let tally = Arc::new(Tally::default());
    let load = Load {
        front: front.address(),
        clients: 50,
        rate: 200.0,
        mix: &[Kind::Page],
        latency: Latency::SinceDue,
        requests_max: 0,
    };
    load.during(&tally, || wait(ROUND))?;
    let round = Round {
        p50: millis(tally.percentile(0.5)),
        p99: millis(tally.percentile(0.99)),
        failed: tally.total("page") - tally.count("page", &["200"]),
    };
    println!(
        "{slow:16}  {:6.2}  {:6.2}  {:6}",
        round.p50, round.p99, round.failed
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
        let runtime = event_loop().expect("an event loop");
        runtime.block_on(async {
            let mut tasks = JoinSet::new();
            for number in 0..SLOW {
                tasks.spawn(drip(front, Arc::clone(&self.open)));
                if number % 50 == 0 {
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

const SLOW: usize = 10_000;
const ROUND: Duration = Duration::from_secs(15);
const HEAD: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nX: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
