//! `cache-clients`: thirty clients of a cache that leave early, and ask for ranges and with conditions, while
//! responses are purged and the front is reloaded. The application sends responses of all kinds, also wrong ones. At
//! the end no request may be open, and memory must not have grown.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use catamaran_nights::Verdict;
use catamaran_testkit::Signal;
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::client::Client;
use crate::odd;
use crate::tally::Tally;
use crate::tier::{Besieged, event_loop, mib, pause};

/// Runs the front before the application of [`odd`], and besieges it.
pub(crate) fn run(minutes: u64) -> anyhow::Result<Verdict> {
    let files = tempfile::tempdir()?;
    fs::write(files.path().join("token"), TOKEN)?;
    let text = config(files.path(), odd::start()?);
    let mut front = Besieged::with_config(&text)?;
    event_loop()?.block_on(besiege(&mut front, Duration::from_secs(60 * minutes)))
}

/// A front with a large cache, before a backend with few connections.
fn config(files: &Path, origin: SocketAddr) -> String {
    let token = files.join("token").display().to_string();
    format!(
        "[server]\nworkers = 2\n[log]\naccess = \"off\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
         token_file = \"{token}\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
         [cache.pages]\nmemory = \"8MiB\"\nobject_max = \"1MiB\"\nheuristic = \"10%\"\n\
         stale_while_revalidate = \"1m\"\nstale_if_error = \"1m\"\nuncacheable_for = \"1s\"\n\
         ttl = {{ \"400-499\" = \"1s\" }}\n\
         [[route]]\nupstream = \"app\"\ncache = \"pages\"\ncompress = [\"br\", \"zstd\", \"gzip\"]\n\
         [upstream.app]\nconnections_max = 20\n\
         [[upstream.app.backend]]\nurl = \"http://{origin}\"\nfirst_byte_timeout = \"2s\"\n\
         idle_body_timeout = \"2s\"\nidle_timeout = \"5s\"\n"
    )
}

/// The first sixth of the time shows how much memory is in use when such clients have gone; after the rest it may not
/// be more.
async fn besiege(front: &mut Besieged, time: Duration) -> anyhow::Result<Verdict> {
    let (warm_up, tally) = (Arc::new(Tally::default()), Arc::new(Tally::default()));
    let mut verdict = Verdict::default();
    load(front, time / 6, &warm_up).await?;
    settle(front, &mut verdict, "after the first sixth").await?;
    let before = front.usage()?;
    load(front, time - time / 6, &tally).await?;
    println!("{tally}");
    settle(front, &mut verdict, "at the end").await?;
    let after = front.usage()?;
    for (memory, before, after) in [
        ("heap", mib(before.private), mib(after.private)),
        ("RSS", mib(before.resident), mib(after.resident)),
    ] {
        println!("{memory}: {before:.1} MiB, then {after:.1} MiB");
        let name = format!("growth of the {memory} in MiB");
        verdict.at_most(&name, after - before, GROWTH_MAX);
    }
    let files = after.open_files.saturating_sub(before.open_files);
    verdict.at_most("more files open than before", files as f64, 2.0);
    for tally in [&warm_up, &tally] {
        let hung = tally.count("to the end", &["no end"]);
        verdict.never("response without an end", hung);
    }
    let served = tally.count("to the end", &["200", "206", "304"]);
    let share = served as f64 / tally.total("to the end").max(1) as f64;
    verdict.at_least(
        "share of the responses read to their end that are pages",
        share,
        0.3,
    );
    for line in front.alarms() {
        println!("{line}");
    }
    verdict.never("panic or error in the log", front.alarms().len() as u64);
    front.front.process().signal(Signal::Terminate)?;
    let status = front
        .front
        .process()
        .wait(catamaran_testkit::Deadline::default())?;
    verdict.judge("the front ends on SIGTERM with 0", status, status.success());
    Ok(verdict)
}

/// Keeps all clients, purges and reloads going for this time.
async fn load(front: &mut Besieged, time: Duration, tally: &Arc<Tally>) -> anyhow::Result<()> {
    let end = Instant::now() + time;
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn(visit_again(front.address(), Arc::clone(tally)));
    }
    for turn in 0.. {
        pause(Duration::from_secs(1)).await;
        if Instant::now() >= end {
            break;
        }
        let purge = PURGES[turn % PURGES.len()];
        let status = front.change("/api/v1/caches/pages/purge", TOKEN, purge)?;
        ensure!(status == 200, "a purge is answered {status}");
        // A reload every five seconds.
        if turn % 5 == 4 {
            front.front.process().signal(Signal::Hangup)?;
        }
    }
    clients.shutdown().await;
    Ok(())
}

/// Waits until all clients have gone; judges that nothing is open and that each page is served, and purges the cache.
async fn settle(front: &Besieged, verdict: &mut Verdict, when: &str) -> anyhow::Result<()> {
    let until = Instant::now() + PATIENCE;
    let mut sum = f64::INFINITY;
    while sum > 0.0 && Instant::now() < until {
        pause(Duration::from_millis(500)).await;
        sum = 0.0;
        for gauge in GAUGES {
            sum += front.metric(gauge)?;
        }
    }
    for gauge in GAUGES {
        let value = front.metric(gauge)?;
        verdict.at_most(&format!("{gauge} {when}"), value, 0.0);
    }
    for path in odd::PATHS {
        let request = format!("GET {path}/good HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let answer = match Client::connect(front.address()).await {
            Ok(mut client) => client.ask(request.as_bytes()).await,
            Err(failure) => Err(failure),
        };
        let (figure, is_served) = match answer {
            Ok(answer) => (answer.status.to_string(), answer.status == 200),
            Err(failure) => (failure.to_owned(), false),
        };
        verdict.judge(&format!("{path} is served {when}"), figure, is_served);
    }
    let status = front.change("/api/v1/caches/pages/purge", TOKEN, r#"{"all": true}"#)?;
    ensure!(status == 200, "a purge is answered {status}");
    // The front frees entries that were just used after some seconds.
    pause(Duration::from_secs(12)).await;
    Ok(())
}

/// Sends one request after the other, each on a new connection, and counts their outcomes.
async fn visit_again(front: SocketAddr, tally: Arc<Tally>) {
    loop {
        match visit(front).await {
            Ok((kind, outcome)) => tally.other(kind, outcome),
            Err(_) => tally.other("gone", "no connection"),
        }
        pause(Duration::from_millis(fastrand::u64(..100))).await;
    }
}

/// Sends one request, whose response is read to its end, in part, or not at all.
async fn visit(front: SocketAddr) -> std::io::Result<(&'static str, String)> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(16 * 1024)?;
    let mut stream = socket.connect(front).await?;
    stream.write_all(request().as_bytes()).await?;
    let kind = match fastrand::u8(..8) {
        0 => "gone at once",
        1 => {
            read(&mut stream, fastrand::usize(1..100_000), Duration::ZERO).await;
            "gone in the middle"
        }
        2 => {
            let delay = Duration::from_millis(100);
            read(&mut stream, fastrand::usize(1..300_000), delay).await;
            "gone slowly"
        }
        _ => {
            let whole = read(&mut stream, usize::MAX, Duration::ZERO);
            let outcome = match timeout(PATIENCE, whole).await {
                Ok(head) => String::from_utf8_lossy(head.get(9..12).unwrap_or(b"cut")).into_owned(),
                Err(_) => "no end".to_owned(),
            };
            return Ok(("to the end", outcome));
        }
    };
    // Half of those that leave send RST instead of FIN.
    if fastrand::bool() {
        SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
    }
    Ok((kind, String::new()))
}

/// Reads `left` bytes, or to the end, with a pause of `delay` after each piece. Returns the first bytes.
async fn read(stream: &mut TcpStream, mut left: usize, delay: Duration) -> Vec<u8> {
    let (mut first, mut buffer) = (Vec::new(), vec![0; 16 * 1024]);
    while left > 0 {
        let Ok(read @ 1..) = stream.read(&mut buffer).await else {
            break;
        };
        left = left.saturating_sub(read);
        if first.len() < 12 {
            first.extend_from_slice(&buffer[..read]);
        }
        if !delay.is_zero() {
            pause(delay).await;
        }
    }
    first
}

/// A random request for one of 32 pages, in most cases by GET, with up to two fields.
fn request() -> String {
    let path = odd::PATHS[fastrand::usize(..odd::PATHS.len())];
    let method = ["GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "POST"][fastrand::usize(..8)];
    let mut text = format!(
        "{method} {path}/{} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n",
        fastrand::u8(..8)
    );
    for _ in 0..fastrand::usize(..3) {
        text.push_str(FIELDS[fastrand::usize(..FIELDS.len())]);
    }
    text.push_str("\r\n");
    text
}

const CLIENTS: usize = 30;

/// How long a response may take, and how long the front may need when all clients have gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much more memory the allocator may keep than before, in MiB.
const GROWTH_MAX: f64 = 8.0;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

const PURGES: [&str; 4] = [
    r#"{"url": "http://a/page/1"}"#,
    r#"{"prefix": "http://a/odd/"}"#,
    r#"{"tag": "large"}"#,
    r#"{"all": true, "soft": true}"#,
];

const GAUGES: [&str; 7] = [
    "catamaran_connections_open",
    "catamaran_cache_fills_open",
    "catamaran_cache_waiters",
    "catamaran_backend_in_flight",
    "catamaran_backend_waiting",
    "catamaran_backend_connections_in_use",
    "catamaran_backend_connections_open",
];

const FIELDS: [&str; 18] = [
    "Range: bytes=0-99\r\n",
    "Range: bytes=70000-\r\n",
    "Range: bytes=99999999-\r\n",
    "Range: bytes=0-0,5-9\r\n",
    "If-Range: \"other\"\r\n",
    "If-Range: \"tag\"\r\n",
    "If-None-Match: \"tag\"\r\n",
    "If-None-Match: *\r\n",
    "If-Match: \"other\"\r\n",
    "If-Modified-Since: Thu, 01 Jan 2099 00:00:00 GMT\r\n",
    "If-Unmodified-Since: Thu, 01 Jan 2009 00:00:00 GMT\r\n",
    "Cookie: JSESSIONID=1\r\n",
    "Authorization: Basic eA==\r\n",
    "Accept-Encoding: gzip\r\n",
    "Accept-Encoding: br, zstd\r\n",
    "Cache-Control: no-cache\r\n",
    "Cache-Control: only-if-cached\r\n",
    "X-Tenant: b\r\n",
];
