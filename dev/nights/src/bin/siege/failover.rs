//! `failover`: three Tomcats under load, of which one is killed, started again, stopped, and cut off from the network
//! (F2 to F5).

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use catamaran_e2e::{Connector, Tomcat};
use catamaran_nights::Verdict;
use catamaran_testkit::{Deadline, Failure, HttpClient, Signal, signal_process};
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::time::Instant;

use crate::honest::{Kind, Latency, Load};
use crate::tally::{Tally, millis};
use crate::tier::{Besieged, upstream, wait};

/// Runs the scenes one after the other, each with a front of its own before the same Tomcats.
pub(crate) fn run() -> anyhow::Result<Verdict> {
    let mut tomcats = Vec::new();
    for route in ROUTES {
        tomcats.push(Tomcat::start(route)?);
    }
    let urls: Vec<String> = tomcats
        .iter()
        .map(|tomcat| tomcat.url(Connector::Ajp))
        .collect();
    let mut verdict = Verdict::default();
    kill_and_restart(&mut verdict, &mut tomcats, &urls)?;
    stand_still(&mut verdict, &tomcats, &urls)?;
    stand_still_in_a_body(&mut verdict, &tomcats[0])?;
    vanish_from_the_network(&mut verdict, &urls)?;
    Ok(verdict)
}

/// F2: only requests fail that were on their way to the killed Tomcat and must not be repeated.
fn kill_and_restart(
    verdict: &mut Verdict,
    tomcats: &mut [Tomcat],
    urls: &[String],
) -> anyhow::Result<()> {
    let front = front_to(urls, "slow_start = \"2s\"\n")?;
    let load = load(&front);
    load.during(&Arc::default(), || wait(WARM_UP))?;
    let tally = Arc::new(Tally::default());
    let killed = &tomcats[0];
    let (out, _) = load.during(&tally, || {
        wait(Duration::from_secs(2))?;
        signal_process(killed.process().id(), Signal::Kill)?;
        let out = wait_until_up(&front, urls.len() - 1)?;
        wait(Duration::from_secs(5))?;
        Ok(out)
    })?;
    println!(
        "kill -9: {tally}; p99 {:.1} ms",
        millis(tally.percentile(0.99))
    );
    judge_requests(verdict, "after kill -9", &tally);
    verdict.at_most(
        "F2: seconds until the killed one is out",
        out.as_secs_f64(),
        1.0,
    );
    let restart_tally = Arc::new(Tally::default());
    let ((restarted, back), _) = load.during(&restart_tally, || {
        let restarted = Tomcat::start_in_place_of(&tomcats[0], ROUTES[0])?;
        let back = wait_until_up(&front, urls.len())?;
        wait(Duration::from_secs(5))?;
        Ok((restarted, back))
    })?;
    tomcats[0] = restarted;
    println!(
        "restart: {restart_tally}; p99 {:.1} ms",
        millis(restart_tally.percentile(0.99))
    );
    judge_requests(verdict, "while it starts again", &restart_tally);
    verdict.at_most("F2: seconds until it is back", back.as_secs_f64(), 2.0);
    Ok(())
}

/// F3: clients of the other Tomcats notice nothing; after a first-byte timeout no client does.
fn stand_still(verdict: &mut Verdict, tomcats: &[Tomcat], urls: &[String]) -> anyhow::Result<()> {
    let front = front_to(urls, "first_byte_timeout = \"2s\"\n")?;
    let load = load(&front);
    load.during(&Arc::default(), || wait(WARM_UP))?;
    let calm = Arc::new(Tally::default());
    load.during(&calm, || wait(Duration::from_secs(10)))?;
    let stopped = tomcats[1].process().id();
    let tally = Arc::new(Tally::default());
    let (out, _) = load.during(&tally, || {
        wait(Duration::from_secs(2))?;
        signal_process(stopped, Signal::Stop)?;
        let out = wait_until_up(&front, urls.len() - 1)?;
        wait(Duration::from_secs(6))?;
        Ok(out)
    })?;
    let after = Arc::new(Tally::default());
    load.during(&after, || wait(Duration::from_secs(8)))?;
    signal_process(stopped, Signal::Continue)?;
    let back = wait_until_up(&front, urls.len())?;
    println!(
        "SIGSTOP: {tally}; out after {:.1} s, back {:.1} s after SIGCONT",
        out.as_secs_f64(),
        back.as_secs_f64()
    );
    println!(
        "served: p99 before {:.1} ms, meanwhile {:.1} ms, then {:.1} ms: {after}",
        millis(calm.percentile(0.99)),
        millis(tally.percentile(0.99)),
        millis(after.percentile(0.99))
    );
    // A third of the requests that came until the Tomcat was out, and of half a second more.
    let exposed = (RATE / 3.0 * (out.as_secs_f64() + 0.5)).ceil() as u64;
    let timed_out = tally.count("file", &["504"]) + tally.count("post", &["504"]);
    verdict.at_most("F3: 504s", timed_out as f64, exposed as f64);
    let others = tally.total("file") + tally.total("post")
        - timed_out
        - tally.count("file", &["200"])
        - tally.count("post", &["200"]);
    verdict.never("F3: other failure while one stands still", others);
    judge_requests(verdict, "once it is out", &after);
    verdict.at_most("F3: seconds until it is out", out.as_secs_f64(), 3.5);
    // A tenth more, or 5 ms, which is the noise of this machine.
    let limit = (millis(calm.percentile(0.99)) * 1.1).max(millis(calm.percentile(0.99)) + 5.0);
    verdict.at_most(
        "F3: p99 of those served, ms",
        millis(tally.percentile(0.99)),
        limit,
    );
    Ok(())
}

/// F4: if a backend stops in the middle of a body, the client sees that the response is incomplete, as soon as the
/// time for a silent backend is over.
fn stand_still_in_a_body(verdict: &mut Verdict, tomcat: &Tomcat) -> anyhow::Result<()> {
    let urls = [tomcat.url(Connector::Ajp)];
    let front = front_to(&urls, "idle_body_timeout = \"2s\"\n")?;
    let mut client = HttpClient::connect(front.address())?;
    client.send(b"GET /download.jsp?bytes=200000000 HTTP/1.1\r\nHost: a\r\n\r\n")?;
    let announced: usize = client
        .receive_head()?
        .header("content-length")
        .context("a length")?
        .parse()?;
    let id = tomcat.process().id();
    signal_process(id, Signal::Stop)?;
    let start = Instant::now();
    let body = client.receive_to_end();
    let seconds = start.elapsed().as_secs_f64();
    signal_process(id, Signal::Continue)?;
    let (figure, is_cut) = match body {
        Ok(body) => (
            format!("{} bytes of {announced}", body.len()),
            body.len() < announced,
        ),
        Err(failure) => (
            failure.to_string(),
            matches!(failure, Failure::Reset { .. }),
        ),
    };
    verdict.judge("F4: a body that stops is cut visibly", figure, is_cut);
    verdict.at_most("F4: seconds until then", seconds, 3.0);
    Ok(())
}

/// F5: a backend that does not answer SYN.
fn vanish_from_the_network(verdict: &mut Verdict, urls: &[String]) -> anyhow::Result<()> {
    let (hole, _held) = black_hole()?;
    let mut urls_with_hole = urls.to_vec();
    urls_with_hole.push(format!("ajp://{}", hole.local_addr()?));
    let front = front_to(&urls_with_hole, "")?;
    let tally = Arc::new(Tally::default());
    let (out, _) = load(&front).during(&tally, || {
        let out = wait_until_up(&front, urls.len())?;
        wait(Duration::from_secs(5))?;
        Ok(out)
    })?;
    println!(
        "no answer to SYN: {tally}; p99 {:.1} ms",
        millis(tally.percentile(0.99))
    );
    judge_requests(verdict, "with one cut off", &tally);
    let p99 = tally.percentile(0.99).as_secs_f64();
    verdict.at_most("F5: p99 of all, seconds", p99, 1.2);
    verdict.at_most("F5: seconds until it is out", out.as_secs_f64(), 3.0);
    Ok(())
}

/// A listener whose backlog is full, so that Linux drops further SYNs.
fn black_hole() -> anyhow::Result<(TcpListener, Vec<Socket>)> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SockAddr::from(std::net::SocketAddr::from((
        [127, 0, 0, 1],
        0,
    ))))?;
    socket.listen(0)?;
    let listener = TcpListener::from(socket);
    let address = SockAddr::from(listener.local_addr()?);
    let mut held = Vec::new();
    for _ in 0..8 {
        let client = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        client.set_nonblocking(true)?;
        // Connections that are not accepted fill the backlog, too.
        client.connect(&address).ok();
        held.push(client);
    }
    Ok((listener, held))
}

fn front_to(urls: &[String], keys: &str) -> anyhow::Result<Besieged> {
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    Besieged::start("", &upstream(&urls, keys))
}

/// The load of all scenes. Latency counts from sending, so that clients which wait for a stopped Tomcat do not
/// delay the figures of others.
fn load(front: &Besieged) -> Load {
    Load {
        front: front.address(),
        clients: 60,
        rate: RATE,
        mix: MIX,
        latency: Latency::SinceSent,
        requests_max: 0,
    }
}

/// Waits until `number` backends are up; returns how long that took.
fn wait_until_up(front: &Besieged, number: usize) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let are_up = || {
        let count = front.metric("catamaran_backend_up").ok()?;
        (count as usize == number).then_some(())
    };
    let event = format!("{number} backends to be up");
    Deadline::default()
        .poll(&event, are_up)
        .with_context(|| front.front.log())?;
    Ok(began.elapsed())
}

/// Judges that no GET failed. After a kill up to three POSTs may fail, which were in flight; otherwise none.
fn judge_requests(verdict: &mut Verdict, when: &str, tally: &Tally) {
    let failed = |kind| tally.total(kind) - tally.count(kind, &["200"]);
    verdict.never(&format!("GET failed {when}"), failed("file"));
    let limit = if when.contains("kill") { 3.0 } else { 0.0 };
    verdict.at_most(
        &format!("POSTs failed {when}"),
        failed("post") as f64,
        limit,
    );
}

const ROUTES: [&str; 3] = ["one", "two", "three"];
const RATE: f64 = 150.0;
const WARM_UP: Duration = Duration::from_secs(8);
const MIX: &[Kind] = &[
    Kind::File,
    Kind::File,
    Kind::File,
    Kind::File,
    Kind::File,
    Kind::File,
    Kind::File,
    Kind::File,
    Kind::File,
    Kind::Post,
];
