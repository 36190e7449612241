//! Clients: `openssl s_time` for handshakes, our own bench for requests.

use std::io::Read as _;

use anyhow::{Context as _, ensure};
use catamaran_e2e::binary;
use catamaran_tier::{Job, Priority, Process, Space};
use serde_json::Value;

use crate::stand::LOAD_CORE;

/// Connects again and again for a second; returns the number of handshakes.
pub(crate) fn handshakes(space: &Space, front: &Process, options: &str) -> anyhow::Result<f64> {
    let address = front.address("https");
    let command = format!("openssl s_time -connect {address} -time 1 {options}");
    let output = run(space, &command)?;
    // The last count: with -reuse an earlier one is about the connection that gets the session.
    let mut lines = output.lines().filter(|line| line.contains(" real seconds"));
    let count = lines.next_back().and_then(|line| line.split(' ').next());
    count
        .and_then(|count| count.parse().ok())
        .with_context(|| format!("{command}: {output}"))
}

/// Sends `count` requests.
pub(crate) fn requests(
    space: &Space,
    url: &str,
    options: &str,
    count: usize,
) -> anyhow::Result<()> {
    let path = binary()?;
    let program = path.display();
    let command = format!("{program} bench -q --json -W 1 -k {options} -n {count} {url}");
    let output = run(space, &command)?;
    let report: Value = serde_json::from_str(&output).with_context(|| output.clone())?;
    let served = report.pointer("/requests/ok").and_then(Value::as_u64);
    ensure!(
        served == Some(count as u64),
        "{count} requests of {url}: {output}"
    );
    Ok(())
}

/// Runs a program, and returns its output; words of `command` are separated by spaces.
fn run(space: &Space, command: &str) -> anyhow::Result<String> {
    let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
    let mut task = space.run(&Job {
        name: "load",
        core: Some(LOAD_CORE),
        priority: Priority::Inherited,
        limit: None,
        command: &words,
    })?;
    let mut said = String::new();
    let stdout = task.child.stdout.take().context("its output is piped")?;
    stdout.take(SAID_MAX).read_to_string(&mut said)?;
    task.child.wait()?;
    Ok(said)
}

const SAID_MAX: u64 = 1 << 20;
