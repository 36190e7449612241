//! `passwords`: 1,000 wrong passwords a second, all from one address and then each from an address of its own, beside
//! clients that need none and clients whose right password is remembered (row 17 of the specification). Rounds without
//! and with the floods alternate, because the speed of a machine drifts.
//!
//! The flood and both kinds of clients are benches, each a process of its own with one thread. What is judged is the raw
//! latency of the clients: on two cores they wake late while others compute, which is not the front's doing.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::ops::Range;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use catamaran_e2e::catamaran;
use catamaran_nights::Verdict;
use catamaran_testkit::Deadline;
use serde_json::Value;

use crate::paced::{self, Round};
use crate::tier::{App, Besieged, wait};

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
    let mut from_one = Flood::new("one", |_| "203.0.113.9".to_owned());
    let mut from_many = Flood::new("many", |number| {
        let [_, high, middle, low] = number.to_be_bytes();
        format!("10.{high}.{middle}.{low}")
    });
    println!("flood  client    p50 ms  p99 ms  raw p99  late ms  failed");
    for _ in 0..rounds {
        calm.push(measure("no", front.address())?);
        of_one.push(from_one.during(front.address())?);
        of_many.push(from_many.during(front.address())?);
    }
    let mut verdict = Verdict::default();
    for (place, client) in CLIENTS.iter().enumerate() {
        let of = |rounds: &[[Round; 2]]| rounds.iter().map(|pair| pair[place]).collect::<Vec<_>>();
        for (flood, flooded) in [("one", &of_one), ("many", &of_many)] {
            let ratio = paced::ratio(&of(&calm), &of(flooded), |it| it.raw_p99);
            let what = format!("p99 of clients of {client}, flooded by {flood} / calm");
            verdict.at_most(&what, ratio, 1.1);
        }
    }
    let all = calm.iter().chain(&of_one).chain(&of_many).flatten();
    verdict.never("request failed", all.map(|round| round.failed).sum());
    for flood in [&from_one, &from_many] {
        flood.judge(&mut verdict);
    }
    let share = from_one.limited as f64 / from_one.answered as f64;
    verdict.at_least("share of 429 for one address", share, 0.9);
    verdict.never("panic or error in the log", front.alarms().len() as u64);
    Ok(verdict)
}

/// Wrong passwords, and counts of the answers to them.
struct Flood {
    name: &'static str,
    /// The address from which the password with this number comes.
    from: fn(u32) -> String,
    /// How many passwords there were.
    rows: u32,
    seconds: f64,
    answered: u64,
    denied: u64,
    limited: u64,
    busy: u64,
}

impl Flood {
    fn new(name: &'static str, from: fn(u32) -> String) -> Self {
        Self {
            name,
            from,
            rows: 0,
            seconds: 0.0,
            answered: 0,
            denied: 0,
            limited: 0,
            busy: 0,
        }
    }

    /// Measures the clients while the bench sends wrong passwords, none of which was sent before.
    fn during(&mut self, front: SocketAddr) -> anyhow::Result<[Round; 2]> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("passwords.csv");
        let time = ROUND + 2 * MARGIN;
        let next = self.rows + u32::try_from(time.as_secs() * RATE)?;
        fs::write(&file, self.table(self.rows..next)?)?;
        self.rows = next;
        let [rate, duration, connections] =
            [RATE, time.as_secs(), CONNECTIONS].map(|number| number.to_string());
        let mut bench = catamaran(&[
            "bench",
            "-q",
            "--json",
            "-l",
            "-k",
            "--arrivals=constant",
            "-W1",
            "-c",
            &connections,
            "--rate",
            &rate,
            "--duration",
            &duration,
            "--data-file",
            &file.to_string_lossy(),
            "--header=Authorization: Basic {{csv credentials}}",
            "--header=X-Forwarded-For: {{csv address}}",
            &format!("http://{front}/app"),
        ])?;
        wait(MARGIN)?;
        let measured = measure(self.name, front)?;
        bench.wait(Deadline::default())?;
        let report: Value = serde_json::from_str(&bench.stdout())
            .with_context(|| format!("bench: {}", bench.stderr()))?;
        self.count(&report)?;
        Ok(measured)
    }

    /// The rows of the passwords with these numbers.
    fn table(&self, numbers: Range<u32>) -> anyhow::Result<String> {
        let mut table = "credentials,address\n".to_owned();
        for number in numbers {
            let credentials = base64(&format!("ann:{number:08}"));
            writeln!(table, "{credentials},{}", (self.from)(number))?;
        }
        Ok(table)
    }

    /// Adds the counts of a report of the bench.
    fn count(&mut self, report: &Value) -> anyhow::Result<()> {
        let statuses = report["statuses"]
            .as_object()
            .context("bench reports no statuses")?;
        self.answered += statuses.values().filter_map(Value::as_u64).sum::<u64>();
        let seconds = report["elapsed_s"].as_f64();
        self.seconds += seconds.context("bench reports no time")?;
        let of = |status: &str| statuses.get(status).and_then(Value::as_u64).unwrap_or(0);
        self.denied += of("401");
        self.limited += of("429");
        self.busy += of("503");
        Ok(())
    }

    /// Prints the counts, and judges them.
    fn judge(&self, verdict: &mut Verdict) {
        let Self {
            name,
            answered,
            denied,
            limited,
            busy,
            ..
        } = self;
        println!("flood {name}: 401 {denied}, 429 {limited}, 503 {busy}");
        let rate = *answered as f64 / self.seconds;
        verdict.at_least(&format!("wrong passwords a second, {name}"), rate, 900.0);
        // Nobody may get an answer of another status.
        let others = answered - denied - limited - busy;
        verdict.never(&format!("wrong password taken, {name}"), others);
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
            "{flood:5}  {client:9} {:6.3}  {:6.3}  {:7.3}  {:7.3}  {:6}",
            round.p50, round.p99, round.raw_p99, round.late, round.failed
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

/// How long a flood lasts before and after the clients are measured.
const MARGIN: Duration = Duration::from_secs(2);
