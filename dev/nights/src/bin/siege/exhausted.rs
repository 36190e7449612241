//! `fd`: the front can open no further file (F13). It must not use up the CPU, and must recover at once.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use catamaran_gauge::process::open_files;
use catamaran_nights::Verdict;
use catamaran_testkit::{Deadline, HttpClient};
use tokio::time::Instant;

use crate::honest::{Kind, Latency, Load};
use crate::tally::Tally;
use crate::tier::{App, Besieged, upstream, wait};

/// Uses up the files that the front may open, lets more clients connect for 15 s, then frees the files.
pub(crate) fn run() -> anyhow::Result<Verdict> {
    let app = App::start("ajp", "127.0.0.1:0")?;
    let tables = format!("head_timeout = \"5m\"\n{}", upstream(&[&app.url], ""));
    let front = Besieged::start("", &tables)?;
    ensure!(asks(&front).is_some(), "the front does not serve");
    // Clients use up the 50 files that are left.
    let limit = open_files(front.id)? + 50;
    lower_open_files_max(&front, limit)?;
    let mut held = Vec::new();
    let mut refused = 0;
    // A single refusal may be chance; after twenty no file is left.
    while refused < 20 {
        match holds(&front) {
            Some(client) => held.push(client),
            None => refused += 1,
        }
        ensure!(held.len() < 1000, "the limit has no effect");
    }
    let used = open_files(front.id)?;
    // The front keeps some files in reserve.
    ensure!(used + 5 >= limit, "{used} of {limit} descriptors are used");
    // The clients that are held are not idle, so the front closes none of them to make room.
    let knocking = Load {
        front: front.address(),
        clients: 20,
        rate: 20.0,
        mix: &[Kind::Page],
        latency: Latency::SinceDue,
        requests_max: 1,
    };
    let tally = Arc::new(Tally::default());
    let before = front.usage()?;
    let ((), time) = knocking.during(&tally, || wait(Duration::from_secs(15)))?;
    let busy = (front.usage()?.cpu - before.cpu).div_duration_f64(time);
    println!("{} clients held, then knocked: {tally}", held.len());
    drop(held);
    let began = Instant::now();
    Deadline::default().poll("a client to be served", || asks(&front).map(drop))?;
    let recovery = began.elapsed();
    let mut verdict = Verdict::default();
    verdict.at_most("part of a core used without descriptors", busy, 0.05);
    verdict.at_most(
        "seconds until clients are served again",
        recovery.as_secs_f64(),
        1.0,
    );
    verdict.never("panic or error in the log", front.alarms().len() as u64);
    Ok(verdict)
}

/// A client that was served and has sent a part of its next request. When descriptors run out, the front closes
/// clients that were idle for a second; this one never counts as idle.
fn holds(front: &Besieged) -> Option<HttpClient> {
    let mut client = HttpClient::connect(front.address()).ok()?;
    client.set_deadline(Deadline::after(PATIENCE));
    client.send(PAGE).ok()?;
    client.receive().ok()?;
    client.send(b"GET / HTTP/1.1\r\n").ok()?;
    Some(client)
}

/// A client that was served, and stays connected.
fn asks(front: &Besieged) -> Option<HttpClient> {
    let mut client = HttpClient::connect(front.address()).ok()?;
    client.send(PAGE).ok()?;
    client.receive().ok()?;
    Some(client)
}

/// Lowers the limit of open files (the soft limit alone) of the running front.
fn lower_open_files_max(front: &Besieged, limit: usize) -> anyhow::Result<()> {
    let id = front.id.to_string();
    let limit = format!("--nofile={limit}:");
    let status = Command::new("prlimit")
        .args(["--pid", &id, &limit])
        .status()?;
    ensure!(status.success(), "prlimit: {status}");
    Ok(())
}

const PAGE: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// How long a client that is to be held waits. Another thread may take the descriptor that the front reserves for
/// refusing connections; until one is closed, a connection is then neither served nor refused.
const PATIENCE: Duration = Duration::from_secs(2);
