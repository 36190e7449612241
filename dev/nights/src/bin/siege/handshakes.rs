//! `handshakes`: full TLS handshakes as fast as OpenSSL can ask for them (the flood), and 10,000 connections on which
//! no handshake begins. Rounds with and without the flood alternate, because the speed of a machine drifts. The same
//! is done with nginx: on few cores the flood's own clients slow the other clients down, whichever server they use.

use std::fs;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use catamaran_nights::Verdict;
use catamaran_testkit::tls::Authority;
use catamaran_tier::{Launch, Process, Programs, Space, builtin};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::paced::{self, Round};
use crate::tier::{App, Besieged, event_loop, mib, pause, upstream, wait};

/// Measures ours and nginx in turn, without and with the flood, then opens the silent connections.
pub(crate) fn run(minutes: u64) -> anyhow::Result<Verdict> {
    let app = App::start("ajp", "127.0.0.1:0")?;
    let files = Space::shared()?;
    Authority::new("siege")?.issue(files.directory(), "www", &["localhost"])?;
    let folder = files.directory().display();
    let tables = format!(
        "tls = \"www\"\n[tls.www]\n[[tls.www.certificate]]\nchain = \"{folder}/www.pem\"\n\
         key = \"{folder}/www.key\"\n{}",
        upstream(&[&app.url], "")
    );
    let front = Besieged::start("", &tables)?;
    let http = App::start("http", "127.0.0.1:0")?;
    let nginx = nginx(&files, &http.url)?;
    let mut verdict = Verdict::default();
    // A round measures two servers, each without and with a flood.
    let round_count = (minutes * 60 / (4 * ROUND.as_secs())).max(3);
    let (mut ours, mut theirs) = (Series::default(), Series::default());
    println!("front  flood  p50 ms  p99 ms  late ms  failed");
    for _ in 0..round_count {
        ours.add("ours", front.address())?;
        theirs.add("nginx", nginx.address("https"))?;
    }
    println!("nginx, p99 flooded / calm: {:.2}", theirs.ratio());
    verdict.at_most("p99 flooded / calm, median of the pairs", ours.ratio(), 2.0);
    let rounds = ours.calm.iter().chain(&ours.flooded);
    let failed = rounds.map(|round| round.failed).sum();
    verdict.never("kept request failed", failed);
    let handshakes = front.metric("catamaran_tls_handshakes_total")?;
    verdict.at_least("handshakes", handshakes, 1000.0);
    silent(&front, &mut verdict)?;
    verdict.never("panic or error in the log", front.alarms().len() as u64);
    Ok(verdict)
}

/// nginx with two workers and the same certificate.
fn nginx(files: &Space, backend: &str) -> anyhow::Result<Process> {
    let stem = files.directory().join("www");
    let chain = fs::read(stem.with_extension("pem"))?;
    let key = fs::read(stem.with_extension("key"))?;
    // The target names one file with both.
    let certificate = stem.with_extension("both");
    fs::write(&certificate, [chain, key].concat())?;
    let target = builtin("nginx").context("a target")?;
    let set = [
        ("backend", backend),
        ("certificate", &certificate.to_string_lossy()),
        ("workers", "2"),
        ("ready_path", "/"),
    ];
    Ok(files.start(&Launch {
        name: "nginx",
        target: &target,
        settings: &target.settings(&set)?,
        programs: &Programs::new(),
        core: None,
        limit: None,
    })?)
}

/// The results of one front.
#[derive(Default)]
struct Series {
    calm: Vec<Round>,
    flooded: Vec<Round>,
}

impl Series {
    /// Measures `front` for one round without the flood and for one round with it, and adds both results.
    fn add(&mut self, name: &str, front: SocketAddr) -> anyhow::Result<()> {
        self.calm.push(round(name, front, "no")?);
        let _flood = Flood::begin(front)?;
        self.flooded.push(round(name, front, "yes")?);
        Ok(())
    }

    fn ratio(&self) -> f64 {
        paced::ratio(&self.calm, &self.flooded, |it| it.p99)
    }
}

/// Measures clients that keep their connections for one round, and prints the result.
fn round(name: &str, front: SocketAddr, flood: &str) -> anyhow::Result<Round> {
    let round = paced::round(&format!("https://{front}/"), 20, RATE, ROUND)?;
    println!(
        "{name:5}  {flood:5}  {:6.3}  {:6.3}  {:7.3}  {:6}",
        round.p50, round.p99, round.late, round.failed
    );
    Ok(round)
}

/// Opens connections on which nothing is sent. Judges that each is closed in time, and that no handshake stays open.
fn silent(front: &Besieged, verdict: &mut Verdict) -> anyhow::Result<()> {
    let before = front.usage()?.private;
    let (longest, heap) = event_loop()?.block_on(hold_all(front));
    println!(
        "{SILENT} silent connections: heap {:.1} MiB before, {:.1} MiB at most",
        mib(before),
        mib(heap)
    );
    // A deadline may be a tick late.
    let longest = longest.as_secs_f64();
    verdict.at_most("seconds until a silent connection is closed", longest, 10.5);
    let open = front.metric("catamaran_tls_handshakes_open")?;
    verdict.at_most("handshakes that are still open", open, 0.0);
    Ok(())
}

/// Opens all silent connections. Returns the longest time until one was closed, and the highest heap meanwhile.
async fn hold_all(front: &Besieged) -> (Duration, u64) {
    let mut sockets = JoinSet::new();
    for number in 0..SILENT {
        sockets.spawn(hold(front.address()));
        // Without a pause the backlog would overflow.
        if number % 500 == 0 {
            pause(Duration::from_millis(20)).await;
        }
    }
    let (mut longest, mut heap) = (Duration::ZERO, 0);
    while !sockets.is_empty() {
        heap = front.usage().map_or(heap, |usage| usage.private.max(heap));
        pause(Duration::from_millis(100)).await;
        while let Some(open) = sockets.try_join_next() {
            longest = longest.max(open.unwrap_or(HELD_MAX));
        }
    }
    (longest, heap)
}

/// Connects, sends nothing, and waits for the front to close; returns how long that took, at most [`HELD_MAX`].
async fn hold(front: SocketAddr) -> Duration {
    let Ok(mut stream) = TcpStream::connect(front).await else {
        return HELD_MAX;
    };
    let begun = Instant::now();
    // A reset counts as a close.
    let _ = timeout(HELD_MAX, stream.read(&mut [0])).await;
    begun.elapsed()
}

/// Several `openssl s_time`, which run only while nothing else wants the CPU, because real attackers have machines of
/// their own. With the lowest priority instead, they delayed the clients that are measured by a millisecond.
struct Flood(Vec<Child>);

impl Flood {
    /// Starts [`FLOODERS`] clients that make new handshakes until the flood is dropped.
    fn begin(front: SocketAddr) -> anyhow::Result<Self> {
        // With the lowest priority, the flood takes only time that nobody else wants.
        let start_client = || {
            Command::new("chrt")
                .args(["--idle", "0", "openssl", "s_time", "-new", "-time", "600"])
                .args(["-connect", &front.to_string()])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .context("openssl")
        };
        let clients = (0..FLOODERS).map(|_| start_client());
        let clients = clients.collect::<Result<_, _>>()?;
        wait(Duration::from_secs(1))?;
        Ok(Self(clients))
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// How long a connection is watched.
const HELD_MAX: Duration = Duration::from_secs(60);
const SILENT: usize = 10_000;
const FLOODERS: usize = 4;
/// The rate of the clients that keep their connections, in requests per second.
const RATE: usize = 500;
const ROUND: Duration = Duration::from_secs(10);
