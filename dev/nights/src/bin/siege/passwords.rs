//! `passwords`: 1,000 wrong passwords a second, all from one address and then each from an address of its own, beside
//! clients that need none and clients whose right password is remembered (row 17 of the specification). Rounds without
//! and with the floods alternate, because the speed of a machine drifts.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use catamaran_nights::Verdict;
use catamaran_testkit::{Deadline, HttpClient};
use tokio::time::Instant;

use crate::paced::{self, Round};
use crate::tier::{App, Besieged, event_loop, pause};

/// Measures the clients in turn without a flood and with each of them.
pub(crate) fn run(minutes: u64) -> anyhow::Result<Verdict> {
    let app = App::start("ajp", "127.0.0.1:0")?;
    let folder = tempfile::tempdir()?;
    let users = folder.path().join("users");
    fs::write(&users, user_line()?)?;
    let tables = TABLES
        .replace("USERS", &users.to_string_lossy())
        .replace("BACKEND", &app.url);
    let front = Besieged::start("trusted_proxies = [\"127.0.0.1\"]\n", &tables)?;
    let rounds = (minutes * 60 / (3 * ROUND.as_secs())).max(3);
    let [mut calm, mut of_one, mut of_many] = [const { Vec::new() }; 3];
    let (from_one, from_many) = (Flood::default(), Flood::default());
    println!("flood  client    p50 ms  p99 ms  late ms  failed");
    for _ in 0..rounds {
        calm.push(measure("no", front.address())?);
        of_one.push(from_one.during("one", front.address(), |_| "203.0.113.9".to_owned())?);
        of_many.push(from_many.during("many", front.address(), |number| {
            let [_, high, middle, low] = number.to_be_bytes();
            format!("10.{high}.{middle}.{low}")
        })?);
    }
    let mut verdict = Verdict::default();
    for (place, client) in CLIENTS.iter().enumerate() {
        let of = |rounds: &[[Round; 2]]| rounds.iter().map(|pair| pair[place]).collect::<Vec<_>>();
        for (flood, flooded) in [("one", &of_one), ("many", &of_many)] {
            let ratio = paced::ratio(&of(&calm), &of(flooded), |it| it.p99);
            let what = format!("p99 of clients of {client}, flooded by {flood} / calm");
            verdict.at_most(&what, ratio, 1.1);
        }
    }
    let all = calm.iter().chain(&of_one).chain(&of_many).flatten();
    verdict.never("request failed", all.map(|round| round.failed).sum());
    let seconds = (rounds * ROUND.as_secs()) as f64;
    for (name, flood) in [("one", &from_one), ("many", &from_many)] {
        flood.print(name);
        let sent = flood.sum() as f64 / seconds;
        verdict.at_least(&format!("wrong passwords a second, {name}"), sent, 900.0);
        verdict.never(&format!("wrong password taken, {name}"), flood.others());
    }
    let limited = from_one.limited.load(Ordering::Relaxed) as f64;
    let share = limited / from_one.sum() as f64;
    verdict.at_least("share of 429 for one address", share, 0.9);
    verdict.never("panic or error in the log", front.alarms().len() as u64);
    Ok(verdict)
}

/// Counts of the answers to wrong passwords.
#[derive(Debug, Default)]
struct Flood {
    asked: AtomicU64,
    denied: AtomicU64,
    limited: AtomicU64,
    busy: AtomicU64,
}

impl Flood {
    /// Measures the clients while wrong passwords come from the addresses that `from` returns by their number.
    fn during(
        &self,
        name: &str,
        front: SocketAddr,
        from: impl Fn(u32) -> String + Sync,
    ) -> anyhow::Result<[Round; 2]> {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let flood = || self.send(front, &from, &is_over);
            let threads: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(flood)).collect();
            let measured = measure(name, front);
            // An error is returned only after the threads were told to end.
            is_over.store(true, Ordering::Relaxed);
            for thread in threads {
                thread.join().expect("no client panics")?;
            }
            measured
        })
    }

    /// Sends wrong passwords on one connection until `is_over`.
    fn send(
        &self,
        front: SocketAddr,
        from: &impl Fn(u32) -> String,
        is_over: &AtomicBool,
    ) -> anyhow::Result<()> {
        let mut client = HttpClient::connect(front)?;
        let clock = event_loop()?;
        let (begun, mut sent) = (Instant::now(), 0);
        while !is_over.load(Ordering::Relaxed) {
            let due = Duration::from_secs_f64(f64::from(sent) * CONNECTIONS as f64 / RATE as f64);
            clock.block_on(pause(due.saturating_sub(begun.elapsed())));
            sent += 1;
            let number = self.asked.fetch_add(1, Ordering::Relaxed);
            let address = from(u32::try_from(number)?);
            let credentials = base64(&format!("ann:{number:08}"));
            client.set_deadline(Deadline::after(PATIENCE));
            client.send(
                format!(
                    "GET /app HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {address}\r\n\
                     Authorization: Basic {credentials}\r\n\r\n"
                )
                .as_bytes(),
            )?;
            match client.receive()?.status {
                401 => self.denied.fetch_add(1, Ordering::Relaxed),
                429 => self.limited.fetch_add(1, Ordering::Relaxed),
                503 => self.busy.fetch_add(1, Ordering::Relaxed),
                _ => 0,
            };
        }
        Ok(())
    }

    fn sum(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Answers of another status, which nobody may get.
    fn others(&self) -> u64 {
        let known = [&self.denied, &self.limited, &self.busy];
        let known = known.map(|count| count.load(Ordering::Relaxed));
        self.sum() - known.iter().sum::<u64>()
    }

    fn print(&self, name: &str) {
        let [denied, limited, busy] =
            [&self.denied, &self.limited, &self.busy].map(|count| count.load(Ordering::Relaxed));
        println!("flood {name}: 401 {denied}, 429 {limited}, 503 {busy}");
    }
}

/// Measures both kinds of clients at the same time, and prints the results.
fn measure(flood: &str, front: SocketAddr) -> anyhow::Result<[Round; 2]> {
    let [open, signed_on] = thread::scope(|scope| {
        let open = || paced::round(&format!("http://{front}/open"), 5, CLIENT_RATE, ROUND);
        let signed_on = || {
            let url = format!("http://{front}/app");
            paced::round_with(&["-A", "ann:secret"], &url, 5, CLIENT_RATE, ROUND)
        };
        let threads = [scope.spawn(open), scope.spawn(signed_on)];
        threads.map(|thread| thread.join().expect("no client panics"))
    });
    let pair = [open?, signed_on?];
    for (client, round) in CLIENTS.iter().zip(&pair) {
        println!(
            "{flood:5}  {client:8}  {:6.3}  {:6.3}  {:7.3}  {:6}",
            round.p50, round.p99, round.late, round.failed
        );
    }
    Ok(pair)
}

/// The line of a user with bcrypt of cost 10, which `htpasswd` makes.
fn user_line() -> anyhow::Result<Vec<u8>> {
    let mut command = Command::new("htpasswd");
    let output = command.args(["-nbBC", "10", "ann", "secret"]).output();
    let output = output.context("htpasswd of apache2-utils")?;
    ensure!(output.status.success(), "htpasswd: {output:?}");
    Ok(output.stdout)
}

/// Base64 of a text whose length is a multiple of three.
fn base64(text: &str) -> String {
    let groups = text.as_bytes().chunks_exact(3);
    let digits = groups.flat_map(|group| {
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        [18, 12, 6, 0].map(|shift| char::from(DIGITS[(bits >> shift & 63) as usize]))
    });
    digits.collect()
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const TABLES: &str = r#"keep_alive_requests = 1000000000
[auth.staff]
users_file = "USERS"
[upstream.app]
[[upstream.app.backend]]
url = "BACKEND"
[[route]]
path = "/app"
upstream = "app"
rewrite = "/"
rewrite_whole = true
auth = "staff"
[[route]]
path = "/open"
upstream = "app"
rewrite = "/"
rewrite_whole = true
auth = "off"
"#;

/// The kinds of clients that are measured: on a route without a sign-on, and with a password that is remembered.
const CLIENTS: [&str; 2] = ["open", "signed on"];

/// Wrong passwords per second, and the connections on which they come: 64 of them may wait for a hash.
const RATE: u64 = 1000;
const CONNECTIONS: u64 = 200;

/// Requests per second of each kind of clients.
const CLIENT_RATE: usize = 100;

const ROUND: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(15);
