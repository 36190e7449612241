//! `limits`: far more new keys than the table of a limit has room for, each with one request. At the same time some
//! clients send at half the rate, none of whom may be refused, and some at twice the rate, who may not get more than
//! the rate (rows 5 and 6 of the specification). The same is done with nginx, with as much memory; its figures are
//! only printed.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use catamaran_nights::Verdict;
use catamaran_testkit::{Address, Deadline, HttpClient, Process, address};
use tokio::time::Instant;

use crate::tier::{Besieged, mib, usage, wait};

/// Besieges the front, then nginx, prints the figures of both and judges those of the front.
pub(crate) fn run(minutes: u64) -> anyhow::Result<Verdict> {
    let time = Duration::from_secs(minutes * 60);
    let front = Besieged::with_config(&front_file())?;
    let ours = siege(front.address(), front.id, time)?;
    let evicted = front.metric("catamaran_limit_evicted_total")?;
    let alarms = front.alarms().len() as u64;
    drop(front);
    println!("       strange keys  refused  honest  refused  greedy  passed  of allowed  MiB more");
    ours.print("ours");
    println!("{evicted} keys were forgotten; {alarms} panics or errors in the log");
    let (nginx, listens) = nginx()?;
    let theirs = siege(listens, nginx.id(), time)?;
    theirs.print("nginx");
    let mut verdict = Verdict::default();
    verdict.never("strange key refused", ours.strangers.refused());
    verdict.never(
        "request refused of a client at half the rate",
        ours.honest.refused(),
    );
    // The clocks of client and front differ by the time that a request takes.
    verdict.at_most("passed of allowed at twice the rate", ours.share(), 1.02);
    verdict.at_most("MiB that memory grew", ours.grew, 1.0);
    verdict.at_least("keys forgotten", evicted, 1.0);
    verdict.never("panic or error in the log", alarms);
    Ok(verdict)
}

/// The counts of the responses that some clients got.
#[derive(Clone, Copy, Debug, Default)]
struct Outcomes {
    asked: u64,
    passed: u64,
}

impl Outcomes {
    fn add(&mut self, status: u16) {
        self.asked += 1;
        self.passed += u64::from(status == 200);
    }

    fn refused(self) -> u64 {
        self.asked - self.passed
    }
}

/// The results of one server.
#[derive(Debug)]
struct Siege {
    strangers: Outcomes,
    honest: Outcomes,
    greedy: Outcomes,
    /// How long the clients at twice the rate sent.
    took: Duration,
    /// The growth of the server's memory in MiB.
    grew: f64,
}

impl Siege {
    /// The requests of the clients at twice the rate that passed, divided by what the rate and the burst allow.
    fn share(&self) -> f64 {
        let of_one = self.took.as_secs_f64() * RATE as f64 + BURST as f64;
        self.greedy.passed as f64 / (of_one * GREEDY as f64)
    }

    fn print(&self, name: &str) {
        let Self {
            strangers,
            honest,
            greedy,
            grew,
            ..
        } = self;
        println!(
            "{name:5}  {:12}  {:7}  {:6}  {:7}  {:6}  {:6}  {:10.3}  {grew:8.2}",
            strangers.asked,
            strangers.refused(),
            honest.asked,
            honest.refused(),
            greedy.asked,
            greedy.passed,
            self.share(),
        );
    }
}

/// Runs all clients against a server for `time`; `id` is its process.
fn siege(server: SocketAddr, id: u32, time: Duration) -> anyhow::Result<Siege> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let strangers = scope.spawn(|| strangers(server, &is_over));
        let honest = scope.spawn(|| paced(server, "honest", HONEST, HONEST * RATE / 2, &is_over));
        let greedy = scope.spawn(|| paced(server, "greedy", GREEDY, GREEDY * RATE * 2, &is_over));
        // After a second, everything that is allocated only once is there.
        let warm = wait(Duration::from_secs(1)).and_then(|()| usage(id));
        let end = wait(time).and_then(|()| usage(id));
        // An error is returned only after the clients were told to end.
        is_over.store(true, Ordering::Relaxed);
        let panics = "no client panics";
        let (strangers, _) = strangers.join().expect(panics)?;
        let (honest, _) = honest.join().expect(panics)?;
        let (greedy, took) = greedy.join().expect(panics)?;
        Ok(Siege {
            strangers,
            honest,
            greedy,
            took,
            grew: mib(end?.resident) - mib(warm?.resident),
        })
    })
}

/// Sends [`STRANGERS`] requests per second until `is_over`, [`PIPELINE`] at a time. Each has a key (`X-Key`) that no
/// request before had.
fn strangers(server: SocketAddr, is_over: &AtomicBool) -> anyhow::Result<(Outcomes, Duration)> {
    let mut number = 0;
    clients(server, PIPELINE, STRANGERS, is_over, || {
        number += 1;
        format!("stranger-{number}")
    })
}

/// Sends `rate` requests per second until `is_over`, with `count` keys in turn.
fn paced(
    server: SocketAddr,
    name: &str,
    count: u64,
    rate: u64,
    is_over: &AtomicBool,
) -> anyhow::Result<(Outcomes, Duration)> {
    let mut number = 0;
    let at_once = 1;
    clients(server, at_once, rate, is_over, || {
        number += 1;
        format!("{name}-{}", number % count)
    })
}

/// Sends requests with the keys that `key` returns on one connection until `is_over`, `at_once` in a pipeline and
/// `rate` per second. Returns the counts, and how long it sent.
fn clients(
    server: SocketAddr,
    at_once: u64,
    rate: u64,
    is_over: &AtomicBool,
    mut key: impl FnMut() -> String,
) -> anyhow::Result<(Outcomes, Duration)> {
    let mut client = HttpClient::connect(server)?;
    let mut outcomes = Outcomes::default();
    let begun = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        let due = Duration::from_secs_f64(outcomes.asked as f64 / rate as f64);
        let early = due.saturating_sub(begun.elapsed());
        if early > TICK {
            wait(early)?;
        }
        client.set_deadline(Deadline::after(PATIENCE));
        let request = |_| format!("GET / HTTP/1.1\r\nHost: a\r\nX-Key: {}\r\n\r\n", key());
        let requests: String = (0..at_once).map(request).collect();
        client.send(requests.as_bytes())?;
        for _ in 0..at_once {
            outcomes.add(client.receive()?.status);
        }
    }
    Ok((outcomes, begun.elapsed()))
}

fn front_file() -> String {
    format!(
        "[server]\nworkers = 2\nlimit_memory = \"64KiB\"\n[log]\naccess = \"off\"\n\
         [admin]\naddress = \"127.0.0.1:0\"\n[limit.each]\nrate = \"{RATE}/s\"\nburst = {BURST}\nby = \"header:X-Key\"\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\nkeep_alive_requests = 1000000000\n\
         [[route]]\nstatus = 200\ntext = \"served\"\nlimits = \"each\"\n"
    )
}

/// Starts nginx with as much memory and the same limit; returns its address, too.
fn nginx() -> anyhow::Result<(Process, SocketAddr)> {
    let directory = tempfile::tempdir()?;
    let listens = address::unused()?;
    let at = directory.path().display().to_string();
    let file = format!(
        "daemon off;\nmaster_process off;\nuser root;\npid {at}/pid;\nerror_log stderr crit;\nevents {{ }}\nhttp {{\n\
         access_log off;\nkeepalive_requests 1000000000;\nclient_body_temp_path {at}/1;\nproxy_temp_path {at}/2;\n\
         fastcgi_temp_path {at}/3;\nuwsgi_temp_path {at}/4;\nscgi_temp_path {at}/5;\n\
         limit_req_zone $http_x_key zone=each:64k rate={RATE}r/s;\nlimit_req_status 429;\n\
         server {{ listen {listens}; location / {{ limit_req zone=each burst={} nodelay; empty_gif; }} }}\n}}\n",
        BURST - 1
    );
    let path = directory.path().join("nginx.conf");
    fs::write(&path, file)?;
    let mut command = Command::new("/usr/sbin/nginx");
    command.args(["-e", "stderr", "-c"]).arg(path);
    let process = Process::spawn_in(&mut command, directory).context("nginx")?;
    let connect = || Address::from(listens).connect(PATIENCE).ok();
    Deadline::default().poll("nginx to listen", connect)?;
    Ok((process, listens))
}

/// The requests per second that a key may send, and the burst.
const RATE: u64 = 1;
const BURST: u64 = 10;

/// The number of clients at half the rate, and of those at twice the rate.
const HONEST: u64 = 50;
const GREEDY: u64 = 10;

/// New keys per second: five times as many as 64 KiB have room for, because each is kept for a second.
const STRANGERS: u64 = 19_000;
const PIPELINE: u64 = 50;

/// A request may be sent this much too early.
const TICK: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(10);
